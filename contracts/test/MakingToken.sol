// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IMakings} from "../interfaces/IMakings.sol";
import {MintingBlobScheme, Standard} from "../interfaces/Model.sol";

/// @dev A token of any standard and scheme that makes whatever vaults it is asked for, also while
/// it mints. Its vaults are made only, if `only` is 1.
contract MakingToken {
    Standard public immutable standard;
    MintingBlobScheme public immutable mintingBlobScheme;
    uint256 private immutable _only;
    IMakings private immutable _settlement;
    mapping(address holder => uint256) public held;
    uint256 private _makesAtMint;

    constructor(Standard standard_, MintingBlobScheme scheme, uint256 only, IMakings settlement) {
        (standard, mintingBlobScheme, _only, _settlement) = (standard_, scheme, only, settlement);
    }

    function make(
        uint256 assetType,
        address owner,
        uint256 amount,
        bytes calldata mintingBlob
    ) external returns (uint64) {
        return _settlement.make(assetType, owner, amount, mintingBlob);
    }

    /// @notice Each mint makes a vault of this asset first.
    function arm(uint256 assetType) external {
        _makesAtMint = assetType;
    }

    function mintFor(address to, uint256 quantity, bytes calldata mintingBlob) external {
        if (_makesAtMint != 0) _settlement.make(_makesAtMint, to, quantity, mintingBlob);
        held[to] += quantity;
    }

    function madeOnly() external view returns (uint256) {
        return _only;
    }

    function transferable() external pure returns (bool) {
        return true;
    }

    function supportsInterface(bytes4 id) external view returns (bool) {
        if (id == 0x01ffc9a7) return true;
        return
            (standard == Standard.ERC721 && id == 0x80ac58cd) ||
            (standard == Standard.ERC1155 && id == 0xd9b67a26);
    }
}
