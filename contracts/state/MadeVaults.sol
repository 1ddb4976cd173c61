// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IMakings} from "../interfaces/IMakings.sol";
import {MADE, Mode, Vault} from "../interfaces/Model.sol";
import {LeafTree} from "../libraries/LeafTree.sol";
import {Manifest} from "../libraries/Manifest.sol";
import {StateProof} from "../libraries/StateProof.sol";
import {VaultWords} from "../libraries/VaultWords.sol";
import {OwnerSignatures} from "./OwnerSignatures.sol";
import {Roles} from "./Roles.sol";
import {Tips} from "./Tips.sol";

/// @title How a making comes into the state: its vaults' leaves, the assets that they name, and the
/// header.
abstract contract MadeVaults is Roles, Tips, OwnerSignatures, IMakings {
    /// @dev A making that is under way. Its memory is reserved for as many vaults as it has at
    /// last.
    struct Making {
        uint64 number;
        uint256 count;
        /// @dev Place of the leaves in memory.
        uint256 leaves;
        /// @dev The assets, in the order in which the vaults name them first.
        uint256[] assets;
        uint256 known;
    }

    /// @dev A vault of more units has no words.
    uint256 internal constant MAX_UNITS = uint64(type(int64).max);
    /// @dev The memory around a tree's leaves that {LeafTree-fold} overwrites.
    uint256 private constant ROOM_BEFORE = 0x100;
    uint256 private constant ROOM_BEHIND = 0x140;

    /// @dev Takes the next number, so nothing may call another contract between this and {_end}.
    /// @param most Most vaults, at most 256.
    function _begin(uint256 most) internal view returns (Making memory making) {
        making.number = uint64(_head >> MAKINGS) + 1;
        making.assets = new uint256[](most);
        uint256 leaves;
        assembly ("memory-safe") {
            leaves := add(mload(0x40), ROOM_BEFORE)
            mstore(0x40, add(add(leaves, shl(5, most)), ROOM_BEHIND))
        }
        making.leaves = leaves;
    }

    /// @dev Makes the vault of the next slot.
    function _add(Making memory making, Vault memory vault) internal {
        unchecked {
            uint256 slot = making.count++;
            uint256[] memory assets = making.assets;
            uint256 known = making.known;
            uint256 index;
            while (index < known && assets[index] != vault.assetType) ++index;
            if (index == known) {
                assets[index] = vault.assetType;
                making.known = known + 1;
            }
            (uint256 head, bytes memory continuations) = VaultWords.wordsOf(vault, index);
            if (head == 0 || index == Manifest.MAX_ASSETS)
                revert VaultUnpayable(vault.owner, vault.amount, vault.mintingBlob);
            uint64 vaultId = MADE | (making.number << 20) | uint64(slot);
            _put(making.leaves, slot, VaultWords.leaf(vaultId, head, continuations));
            emit VaultMade(vaultId, vault.owner, vault.assetType, vault.amount, vault.mintingBlob);
        }
    }

    function _end(Making memory making) internal {
        (uint256 leaves, uint256 known) = (making.leaves, making.known);
        bytes32 content = LeafTree.fold(leaves, making.count);
        for (uint256 i; i < known; ++i)
            _put(leaves, i, Manifest.leaf(uint64(block.chainid), making.assets[i]));
        _keep(making.number, LeafTree.fold(leaves, known), content, uint32(making.count));
    }

    /// @dev Stores a making's header. It has the kind of a validium batch, whose numbers are far
    /// below those of makings. It holds no time, so an ERC-721 is mature at once: L1 has checked
    /// that no other vault of the id counts.
    function _keep(
        uint64 making,
        bytes32 manifestRoot,
        bytes32 content,
        uint32 vaultCount
    ) internal {
        uint256 head = _head;
        uint64 sequence = uint64(head >> SEQUENCE);
        bytes32 batchRoot = Manifest.batchRoot(uint8(Mode.Validium), manifestRoot, content);
        _headers[Mode.Validium][(MADE >> 20) | making] = StateProof.headerHash(
            batchRoot,
            vaultCount,
            0,
            sequence
        );
        _head = head + (1 << MAKINGS);
        emit Made(making, batchRoot, vaultCount, sequence);
    }

    function _put(uint256 leaves, uint256 index, bytes32 leaf) private pure {
        assembly ("memory-safe") {
            mstore(add(leaves, shl(5, index)), leaf)
        }
    }

    function _domain() internal view override returns (bytes32) {
        return _computedDomain();
    }
}
