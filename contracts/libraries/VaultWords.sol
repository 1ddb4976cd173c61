// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Vault} from "../interfaces/Model.sol";
import {MintingBlob} from "./MintingBlob.sol";

/// @title The one encoding of a vault: a head of 32 bytes, and up to nine continuations of 31;
/// docs/protocol.md 2.
/// @notice Batch data spells these words, trees hash them, and blobs hold them. L1 makes a vault's
/// words and compares. It decodes none, so what is not exactly a vault's words pays nobody.
///
///     head = tag:u8 assetIndex:u8 owner:20 payload:10       tag = form(4) ‖ continuations(4)
///
library VaultWords {
    uint256 internal constant CONTINUATION_BYTES = 31;

    uint256 private constant MAX_AMOUNT = uint64(type(int64).max);

    /// @dev The forms. The first one that fits a vault is the only one.
    uint256 private constant AMOUNT = 1;
    /// @dev A unit of a token id; this form and the next two, one for each {_tokenIdIn}.
    uint256 private constant TOKEN_ID = 2;
    uint256 private constant COUNTED_ID = 5;
    uint256 private constant BYTES = 6;

    /// @dev The spellings of a token id. `RAW` is any 32 bytes that are neither of the others.
    uint256 private constant DECIMAL = 0;
    uint256 private constant BRACED = 1;
    uint256 private constant RAW = 2;
    uint256 private constant NONE = 3;

    /// @dev Lowest bits of the parts of a head. The amount of a counted id stands above the id.
    uint256 private constant FORM = 252;
    uint256 private constant CONTINUATIONS = 248;
    uint256 private constant ASSET = 240;
    uint256 private constant OWNER = 80;
    uint256 private constant COUNT = 40;

    /// @dev The end of a braced id: `}:{}`.
    uint256 private constant BRACES = 0x7d3a7b7d;

    /// @notice A vault's words.
    /// @return head The first word as a tree has it; zero when no token can mint the vault. In
    /// blobs it also has the place of the first continuation, at {placed}.
    /// @return continuations Their contents, 31 bytes each.
    function wordsOf(
        Vault memory vault,
        uint256 assetIndex
    ) internal pure returns (uint256 head, bytes memory continuations) {
        unchecked {
            uint256 amount = vault.amount;
            bytes memory mintingBlob = vault.mintingBlob;
            uint256 length = mintingBlob.length;
            // Unchecked: an amount of 0 is too large too.
            if (amount - 1 >= MAX_AMOUNT || length > 255) return (0, continuations);
            head = (assetIndex << ASSET) | (uint256(uint160(vault.owner)) << OWNER);
            if (length == 0) return (head | (AMOUNT << FORM) | amount, continuations);
            (uint256 spelling, uint256 id) = _tokenIdIn(mintingBlob);
            if (amount == 1 && spelling != NONE) {
                head |= (TOKEN_ID + spelling) << FORM;
                if (id < 1 << 80) return (head | id, continuations);
                continuations = new bytes(CONTINUATION_BYTES);
                assembly ("memory-safe") {
                    mstore(add(continuations, 0x20), shl(8, id))
                }
                return (head | (1 << CONTINUATIONS) | (id >> 248), continuations);
            }
            if (spelling == DECIMAL && id < 1 << 40 && amount < 1 << 40)
                return (head | (COUNTED_ID << FORM) | (amount << COUNT) | id, continuations);
            uint256 count = (length + CONTINUATION_BYTES) / CONTINUATION_BYTES;
            continuations = new bytes(count * CONTINUATION_BYTES);
            assembly ("memory-safe") {
                mstore8(add(continuations, 0x20), length)
                mcopy(add(continuations, 0x21), add(mintingBlob, 0x20), length)
            }
            return (head | (BYTES << FORM) | (count << CONTINUATIONS) | amount, continuations);
        }
    }

    /// @notice keccak256(0x00 ‖ vaultId(8) ‖ head(32) ‖ continuations(31 each)).
    function leaf(
        uint64 vaultId,
        uint256 head,
        bytes memory continuations
    ) internal pure returns (bytes32 hash) {
        assembly ("memory-safe") {
            let free := mload(0x40)
            let length := mload(continuations)
            mstore(free, shl(184, vaultId))
            mstore(add(free, 9), head)
            if length {
                mcopy(add(free, 41), add(continuations, 0x20), length)
            }
            hash := keccak256(free, add(41, length))
        }
    }

    /// @notice A head with the place of its first continuation in the blobs.
    function placed(uint256 head, uint256 place) internal pure returns (uint256) {
        return head | (place << 64);
    }

    /// @dev How a minting blob spells a token id, and the id. 32 digits are a decimal.
    function _tokenIdIn(
        bytes memory mintingBlob
    ) private pure returns (uint256 spelling, uint256 id) {
        unchecked {
            uint256 length = mintingBlob.length;
            bool valid;
            (valid, id) = MintingBlob.decimal(mintingBlob, 0, length);
            if (valid) return (DECIMAL, id);
            uint256 last;
            assembly ("memory-safe") {
                last := mload(add(mintingBlob, length))
            }
            if (uint32(last) == BRACES && length > 5 && mintingBlob[0] == "{") {
                (valid, id) = MintingBlob.decimal(mintingBlob, 1, length - 4);
                if (valid) return (BRACED, id);
            }
            return length == 32 ? (RAW, last) : (NONE, 0);
        }
    }
}
