// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Standard} from "../../contracts/interfaces/Model.sol";
import {AssetEncoding} from "../../contracts/libraries/AssetEncoding.sol";
import {expect} from "./support/Expect.sol";

/// @title Asset ids as StarkEx publishes them (test/vectors/starkex-assets.json).
contract AssetEncodingTest {
    function test_PublishedVectors() external pure {
        address coin = 0x5da41D8b03b656ac0dAac9f27B98fEbA461dfBAD;
        address card = 0x7A42586B2ab661458097094582b22B3c05342bd9;
        bytes memory blob = hex"deadbeef";
        _check(Standard.ERC20, coin, 1e9, blob, 0x700f163c4d559288a2edbb10162eed11f4de87c56875b970fee1534da69cc80);
        _check(Standard.ERC721, card, 1, blob, 0x400715adb86fb84bc0c27f4aff1f78fb6118b5b5e978fd7e0e047634a3a56d9);
        _check(Standard.ERC1155, card, 1, blob, 0x60047b06b775209daf643439760dd879b53d0409b50a5eb02b87bce1aa7818a);
        _check(Standard.ERC20, coin, 1e9, "", 0x700647bc248467d08520d5b4edbe5677d72599c4a928b3442b0f9b2f45a923c);
    }

    function testFuzz_IdsTellStandardsApart(address token, uint128 quantum, bytes calldata blob) external pure {
        uint256 erc20 = _id(Standard.ERC20, token, quantum, blob) >> 248;
        uint256 erc721 = _id(Standard.ERC721, token, quantum, blob) >> 248;
        uint256 erc1155 = _id(Standard.ERC1155, token, quantum, blob) >> 248;
        expect(erc20 == 7 && erc721 == 4 && erc1155 == 6, "the flags above 240 bits");
        expect(AssetEncoding.assetType(Standard.ERC20, token, quantum) < 1 << 250, "an asset type has 250 bits");
    }

    function _check(Standard standard, address token, uint256 quantum, bytes memory blob, uint256 published) private pure {
        expect(_id(standard, token, quantum, blob) == published, "not the published id");
    }

    function _id(Standard standard, address token, uint256 quantum, bytes memory blob) private pure returns (uint256) {
        return AssetEncoding.mintableAssetId(standard, AssetEncoding.assetType(standard, token, quantum), blob);
    }
}
