// SPDX-License-Identifier: MIT
// The interface has no other user. The constant has the name of the function that it is.
// solhint-disable one-contract-per-file, no-empty-blocks, const-name-snakecase
pragma solidity 0.8.37;

import {IERC721Metadata} from "@openzeppelin/contracts/token/ERC721/extensions/IERC721Metadata.sol";
import {IStateCommitment} from "../interfaces/IStateCommitment.sol";
import {MintingBlobScheme, Standard} from "../interfaces/Model.sol";
import {AssetEncoding} from "../libraries/AssetEncoding.sol";
import {Escrow} from "./Escrow.sol";

/// @dev Tokens older than ERC-721 have it, such as CryptoKitties. There an owner may call nothing
/// else: `transferFrom` needs an approval, which the owner's own call does not replace.
interface IOldToken {
    function transfer(address to, uint256 tokenId) external;
}

/// @title The escrow of an ERC-721.
/// @dev It asks the token who owns an id, because some old tokens return without moving it.
contract EscrowERC721 is Escrow {
    MintingBlobScheme public constant mintingBlobScheme = MintingBlobScheme.Raw32;
    bytes4 private constant ERC721_INTERFACE = 0x80ac58cd;
    IERC721Metadata public immutable token;

    /// @notice The caller does not hold the token. An approval is not enough.
    error NotHolder(uint256 tokenId, address caller);

    constructor(
        IStateCommitment settlement_,
        IERC721Metadata token_
    ) Escrow(settlement_, AssetEncoding.assetType(Standard.ERC721, address(this), 1)) {
        token = token_;
    }

    /// @notice Pulls a token of the caller, which has approved it, and makes a vault of it.
    function enter(address owner, uint256 tokenId) external returns (uint64 vaultId) {
        _requireRegistered();
        if (token.ownerOf(tokenId) != msg.sender) revert NotHolder(tokenId, msg.sender);
        token.transferFrom(msg.sender, address(this), tokenId);
        _requireOwner(tokenId, address(this));
        return settlement.make(_assetType, owner, 1, abi.encode(tokenId));
    }

    /// @notice Pays a withdrawal with the token that the escrow holds.
    function mintFor(address to, uint256, bytes calldata mintingBlob) external onlySettlement {
        uint256 tokenId = abi.decode(mintingBlob, (uint256));
        if (to == address(this)) revert TokenNotMoved();
        try token.transferFrom(address(this), to, tokenId) {} catch (bytes memory reason) {
            try IOldToken(address(token)).transfer(to, tokenId) {} catch {
                assembly ("memory-safe") {
                    revert(add(reason, 0x20), mload(reason))
                }
            }
        }
        _requireOwner(tokenId, to);
    }

    function name() external view returns (string memory) {
        return token.name();
    }

    function symbol() external view returns (string memory) {
        return token.symbol();
    }

    function tokenURI(uint256 tokenId) external view returns (string memory) {
        return token.tokenURI(tokenId);
    }

    /// @dev The registry takes it for an ERC-721, so nobody registers it as another standard.
    function supportsInterface(bytes4 id) public view override returns (bool) {
        return id == ERC721_INTERFACE || super.supportsInterface(id);
    }

    function _requireOwner(uint256 tokenId, address owner) private view {
        if (token.ownerOf(tokenId) != owner) revert TokenNotMoved();
    }
}
