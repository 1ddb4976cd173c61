// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {BatchData} from "../../contracts/libraries/BatchData.sol";
import {Manifest} from "../../contracts/libraries/Manifest.sol";
import {BatchDataWriter} from "./support/BatchDataWriter.sol";
import {NaiveBatchData, standardOf} from "./support/NaiveBatchData.sol";
import {expect} from "./support/Expect.sol";
import {deploy} from "./support/Vm.sol";

/// @title The decoder of rollup batches against its naive twin: the same root, or both refuse.
contract BatchDataTest {
    uint64 private constant FIRST_VAULT_ID = (1 << 63) | (7 << 20);
    uint256 private constant MAX_VAULTS = 40;

    NaiveBatchData private _naive;

    function setUp() external {
        _naive = NaiveBatchData(deploy("test/solidity/support/NaiveBatchData.sol/NaiveBatchData", ""));
    }

    function testFuzz_ReadsEveryForm(uint256 seed) external {
        _compare(BatchDataWriter.write(seed));
    }

    function testFuzz_RefusesOrReadsChangedData(uint256 seed, uint16 place, uint8 change) external {
        bytes memory data = BatchDataWriter.write(seed);
        data[place % data.length] ^= bytes1(change);
        _compare(data);
    }

    function testFuzz_RefusesTruncatedData(uint256 seed, uint16 length) external {
        bytes memory data = BatchDataWriter.write(seed);
        length = uint16(length % data.length);
        assembly ("memory-safe") {
            mstore(data, length)
        }
        _compare(data);
    }

    function testFuzz_RefusesExtendedData(uint256 seed, bytes calldata tail) external {
        _compare(abi.encodePacked(BatchDataWriter.write(seed), tail));
    }

    function testFuzz_SurvivesAnyBytes(bytes calldata data) external {
        _compare(data);
    }

    function testFuzz_SurvivesAnyBytesOfTheVersion(bytes calldata data) external {
        _compare(abi.encodePacked(hex"01_0001", uint64(1), uint256(1), hex"0001", uint160(1), data));
    }

    function _compare(bytes memory data) private {
        try _naive.root(data, FIRST_VAULT_ID, MAX_VAULTS) returns (bytes32 root, uint256 count) {
            (bytes32 fastRoot, uint256 fastCount) = this.fast(data);
            expect(root == fastRoot && count == fastCount, "the decoders differ");
        } catch {
            try this.fast(data) {
                expect(false, "only the naive decoder refuses");
            } catch (bytes memory reason) {
                bool named = bytes4(reason) == BatchData.BatchDataInvalid.selector || bytes4(reason) == Manifest.ManifestInvalid.selector;
                expect(named, "refused without saying what is wrong");
            }
        }
    }

    /// @dev As the contract calls it.
    function fast(bytes calldata data) external pure returns (bytes32, uint256) {
        bytes calldata assets = BatchData.assets(data);
        uint256[] memory terms = new uint256[](Manifest.count(assets));
        for (uint256 i; i < terms.length; ++i) {
            (, uint256 assetType) = Manifest.assetAt(assets, i);
            terms[i] = uint8(standardOf(assetType));
        }
        return BatchData.root(data, FIRST_VAULT_ID, terms, MAX_VAULTS);
    }
}
