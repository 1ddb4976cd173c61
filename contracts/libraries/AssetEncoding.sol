// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Standard} from "../interfaces/Model.sol";

/// @title Asset types and asset ids, exactly as StarkEx derives them.
library AssetEncoding {
    bytes4 private constant ERC20_SELECTOR = bytes4(keccak256("MintableERC20Token(address)"));
    bytes4 private constant ERC721_SELECTOR = bytes4(keccak256("MintableERC721Token(address,uint256)"));
    bytes4 private constant ERC1155_SELECTOR = bytes4(keccak256("MintableERC1155Token(address,uint256)"));

    uint256 private constant MASK_250 = (1 << 250) - 1;
    uint256 private constant MASK_240 = (1 << 240) - 1;

    /// @notice The low 250 bits of keccak256(selector ‖ token ‖ quantum).
    function assetType(Standard standard, address token, uint256 quantum) internal pure returns (uint256) {
        bytes memory assetInfo = abi.encodeWithSelector(_selector(standard), token);
        return uint256(keccak256(abi.encodePacked(assetInfo, quantum))) & MASK_250;
    }

    /// @notice The asset id of a minting blob: 240 bits of a hash, and flags.
    function mintableAssetId(Standard standard, uint256 type_, bytes memory blob) internal pure returns (uint256 id) {
        id = uint256(keccak256(abi.encodePacked("MINTABLE:", type_, keccak256(blob)))) & MASK_240;
        id |= 1 << 250;
        if (standard != Standard.ERC721) id |= 1 << 249;
        if (standard == Standard.ERC20) id |= 1 << 248;
    }

    function _selector(Standard standard) private pure returns (bytes4) {
        if (standard == Standard.ERC20) return ERC20_SELECTOR;
        return standard == Standard.ERC721 ? ERC721_SELECTOR : ERC1155_SELECTOR;
    }
}
