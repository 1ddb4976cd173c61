// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {ERC721} from "@openzeppelin/contracts/token/ERC721/ERC721.sol";
import {MerkleProof} from "@openzeppelin/contracts/utils/cryptography/MerkleProof.sol";
import {BitMaps} from "@openzeppelin/contracts/utils/structs/BitMaps.sol";

/// @title Claims without an L2: each owner proves a place in a list, of which the issuer wrote the
/// root, and nobody restricts who writes it.
abstract contract PlainClaims {
    using BitMaps for BitMaps.BitMap;

    bytes32 public root;
    BitMaps.BitMap private _claimed;

    error Refused(uint256 index);

    function setRoot(bytes32 newRoot) external {
        root = newRoot;
    }

    /// @param value The id of an ERC-721, or the amount of an ERC-20.
    function claim(uint256 index, address owner, uint256 value, bytes32[] calldata proof) external {
        bytes32 leaf = keccak256(bytes.concat(keccak256(abi.encode(index, owner, value))));
        if (_claimed.get(index) || !MerkleProof.verifyCalldata(proof, root, leaf)) {
            revert Refused(index);
        }
        _claimed.set(index);
        _give(owner, value);
    }

    function _give(address owner, uint256 value) internal virtual;
}

contract PlainClaimERC721 is ERC721("Plain", "PLAIN"), PlainClaims {
    function _give(address owner, uint256 tokenId) internal override {
        _mint(owner, tokenId);
    }
}

contract PlainClaimERC20 is ERC20("Plain", "PLAIN"), PlainClaims {
    function _give(address owner, uint256 amount) internal override {
        _mint(owner, amount);
    }
}
