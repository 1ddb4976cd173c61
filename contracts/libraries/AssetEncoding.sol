// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Standard} from "../interfaces/Model.sol";

/// @title Asset types, exactly as StarkEx derives them.
library AssetEncoding {
    bytes4 private constant ERC20_SELECTOR = bytes4(keccak256("MintableERC20Token(address)"));
    bytes4 private constant ERC721_SELECTOR = bytes4(
        keccak256("MintableERC721Token(address,uint256)")
    );
    bytes4 private constant ERC1155_SELECTOR = bytes4(
        keccak256("MintableERC1155Token(address,uint256)")
    );

    uint256 private constant MASK_250 = (1 << 250) - 1;

    /// @notice The low 250 bits of keccak256(selector ‖ token ‖ quantum).
    function assetType(
        Standard standard,
        address token,
        uint256 quantum
    ) internal pure returns (uint256) {
        bytes memory assetInfo = abi.encodeWithSelector(_selector(standard), token);
        return uint256(keccak256(abi.encodePacked(assetInfo, quantum))) & MASK_250;
    }

    function _selector(Standard standard) private pure returns (bytes4) {
        if (standard == Standard.ERC20) return ERC20_SELECTOR;
        return standard == Standard.ERC721 ? ERC721_SELECTOR : ERC1155_SELECTOR;
    }
}
