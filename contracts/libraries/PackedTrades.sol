// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {MAX_BATCH_VAULTS, Vault} from "../interfaces/Model.sol";
import {Orders} from "./Orders.sol";
import {PackedItems} from "./PackedItems.sol";

/// @title The packed trades of {IMakings-settle}: the format of docs/protocol.md 11.
/// @dev Functions read first and check once, as those of {PackedItems}. Arithmetic is unchecked:
/// every number is at most a length of calldata.
library PackedTrades {
    /// @dev One owner's half of a trade: what its side says, and what the call finds out.
    struct Side {
        uint256 flags;
        /// @dev The side's place in the call's trades.
        uint256 place;
        /// @dev Number of the vault's batch and asset in the call.
        uint256 asset;
        /// @dev The vault that is given of; the tip, if records have made it.
        uint64 vaultId;
        /// @dev Quantized units that it gives.
        uint64 units;
        uint64 want;
        uint64 before;
        uint64 deadline;
        /// @dev Parts of the calldata: length above the lower 32 bits, which are the offset.
        uint256 shares;
        uint256 signature;
        address owner;
        bool hasCancelled;
        address token;
        uint256 tokenId;
        uint256 quantum;
        /// @dev Hash of what it gives.
        bytes32 give;
    }

    uint256 internal constant HAS_AMOUNTS = 1;
    uint256 internal constant HAS_WANT = 2;
    uint256 internal constant HAS_BEFORE = 4;
    uint256 internal constant HAS_SHARES = 8;
    uint256 internal constant HAS_WAY = 16;
    uint256 internal constant HAS_TAKER = 32;
    uint256 private constant ALL_FLAGS = 63;

    uint256 private constant MAX_SHARES = 4;
    /// @dev length:u16.
    uint256 private constant FRAME_BYTES = 2;
    /// @dev flags:u8 asset:u8 slot:u24.
    uint256 private constant HEAD_BYTES = 5;
    uint256 private constant U64_BYTES = 8;

    /// @notice The end of the trade at an offset, and how many of its two vaults have a way.
    function next(
        bytes calldata trades,
        uint256 offset
    ) internal pure returns (uint256 end, uint256 ways) {
        unchecked {
            end = offset;
            for (uint256 i; i < 2; ++i) {
                uint256 frame = _word(trades, end);
                if ((frame >> 232) & HAS_WAY != 0) ++ways;
                end += FRAME_BYTES + (frame >> 240);
            }
            if (end > trades.length) revert PackedItems.ItemsMalformed(offset);
        }
    }

    /// @notice The side at an offset of the trades, and the offset behind it.
    function sideAt(
        bytes calldata trades,
        uint256 offset
    ) internal pure returns (bytes calldata side, uint256 end) {
        unchecked {
            uint256 length = _word(trades, offset) >> 240;
            side = _slice(trades, offset + FRAME_BYTES, length);
            end = offset + FRAME_BYTES + length;
        }
    }

    /// @notice Number of the batch and asset of a side's vault.
    function assetOf(bytes calldata side) internal pure returns (uint256) {
        return uint8(_word(side, 0) >> 240);
    }

    /// @notice The vault that a side gives of.
    /// @param firstVaultId The id of slot 0 in the vault's batch.
    function vaultIdOf(bytes calldata side, uint64 firstVaultId) internal pure returns (uint64) {
        uint256 head = _word(side, 0);
        if ((head >> 248) & HAS_WAY != 0) return uint64(head >> 152);
        return firstVaultId | uint24(head >> 216);
    }

    /// @notice The minting blob of a side's vault.
    function mintingBlobOf(bytes calldata side) internal pure returns (bytes calldata) {
        unchecked {
            uint256 cursor = HEAD_BYTES;
            if ((_word(side, 0) >> 248) & HAS_WAY != 0) cursor += U64_BYTES;
            return _slice(side, cursor + 1, _word(side, cursor) >> 248);
        }
    }

    /// @notice The parts of a side.
    /// @param firstVaultId The id of slot 0 in the vault's batch.
    /// @return side The parts of the order.
    /// @return vault The vault at which its records begin, without its asset.
    function read(
        bytes calldata packed,
        uint64 firstVaultId
    )
        internal
        view
        returns (
            Side memory side,
            Vault memory vault,
            bytes calldata hops,
            bytes calldata refutation,
            bytes32[] calldata siblings
        )
    {
        unchecked {
            uint256 head = _word(packed, 0);
            uint256 flags = head >> 248;
            side.flags = flags;
            side.asset = uint8(head >> 240);
            uint256 slot = uint24(head >> 216);
            vault.vaultId = firstVaultId | uint64(slot);
            side.vaultId = vaultIdOf(packed, firstVaultId);
            bytes calldata mintingBlob = mintingBlobOf(packed);
            vault.mintingBlob = mintingBlob;
            uint256 cursor = _end(packed, mintingBlob);
            vault.chainId = uint64(block.chainid);
            vault.owner = address(uint160(_word(packed, cursor) >> 96));
            cursor += 20;
            (vault.amount, side.units) = (1, 1);
            if (flags & HAS_AMOUNTS != 0) {
                uint256 amounts = _word(packed, cursor);
                (vault.amount, side.units) = (uint64(amounts >> 192), uint64(amounts >> 128));
                cursor += 2 * U64_BYTES;
            }
            if (flags & HAS_WANT != 0) {
                side.want = uint64(_word(packed, cursor) >> 192);
                cursor += U64_BYTES;
            }
            if (flags & HAS_BEFORE != 0) {
                side.before = uint64(_word(packed, cursor) >> 192);
                cursor += U64_BYTES;
            }
            side.deadline = uint64(_word(packed, cursor) >> 192);
            cursor += U64_BYTES;
            bool valid = flags <= ALL_FLAGS && slot < MAX_BATCH_VAULTS;
            if (flags & HAS_SHARES != 0) {
                uint256 count = _word(packed, cursor) >> 248;
                valid = valid && count <= MAX_SHARES;
                side.shares = _part(packed, ++cursor, count * Orders.SHARE_BYTES);
                cursor += count * Orders.SHARE_BYTES;
            }
            (hops, refutation) = (_slice(packed, 0, 0), _slice(packed, 0, 0));
            if (flags & HAS_WAY != 0) {
                uint256 lengths = _word(packed, cursor) >> 224;
                hops = _slice(packed, cursor + 4, lengths >> 16);
                refutation = _slice(packed, cursor + 4 + hops.length, lengths & 0xffff);
                cursor = _end(packed, refutation);
            }
            uint256 length = _word(packed, cursor) >> 240;
            side.signature = _part(packed, cursor + 2, length);
            cursor += 2 + length;
            if (!valid || cursor > packed.length || (packed.length - cursor) % 32 != 0)
                revert PackedItems.ItemMalformed(side.vaultId);
            assembly ("memory-safe") {
                siblings.offset := add(packed.offset, cursor)
                siblings.length := shr(5, sub(packed.length, cursor))
            }
        }
    }

    /// @notice A part of the calldata that a side has noted.
    function partOf(uint256 noted) internal pure returns (bytes calldata part) {
        assembly ("memory-safe") {
            part.offset := and(noted, 0xffffffff)
            part.length := shr(32, noted)
        }
    }

    function _part(
        bytes calldata packed,
        uint256 offset,
        uint256 length
    ) private pure returns (uint256 noted) {
        assembly ("memory-safe") {
            noted := or(shl(32, length), add(packed.offset, offset))
        }
    }

    /// @dev The offset behind a slice of `packed`.
    function _end(
        bytes calldata packed,
        bytes calldata slice
    ) private pure returns (uint256 offset) {
        assembly ("memory-safe") {
            offset := sub(add(slice.offset, slice.length), packed.offset)
        }
    }

    function _word(bytes calldata data, uint256 offset) private pure returns (uint256 word) {
        assembly ("memory-safe") {
            word := calldataload(add(data.offset, offset))
        }
    }

    function _slice(
        bytes calldata data,
        uint256 offset,
        uint256 length
    ) private pure returns (bytes calldata slice) {
        assembly ("memory-safe") {
            slice.offset := add(data.offset, offset)
            slice.length := length
        }
    }
}
