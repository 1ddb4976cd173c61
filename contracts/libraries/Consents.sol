// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ICommits} from "../interfaces/ICommits.sol";

/// @dev Lowest bits of the parts of the registry's word of an asset: its issuer, the issuer's
/// epoch, whether the issuer is suspended.
uint256 constant ISSUER = 8;
uint256 constant ISSUER_EPOCH = 168;
uint256 constant SUSPENDED = 232;

/// @title The packed consents of a commit; docs/protocol.md 5.
/// @dev Arithmetic is unchecked: every number is at most a length of calldata.
library Consents {
    /// @dev An asset in the issuer's message: chainId(8) ‖ assetType(32) ‖ issuerEpoch(8).
    uint256 private constant ENTRY_BYTES = 48;

    /// @notice The consent that begins at an offset: count(1) ‖ index(1 each) ‖ length(2) ‖
    /// signature.
    /// @param assets The batch's manifest, packed.
    /// @param terms The registry's word of each asset.
    /// @return end Offset of the next consent.
    /// @return named The assets that the consent names; bit i stands for asset i.
    /// @return issuer The issuer of all named assets; the zero address when they have different
    /// ones, or when one is suspended.
    /// @return assetsHash Hash of the named assets in the issuer's message.
    function read(
        bytes calldata consents,
        uint256 offset,
        bytes calldata assets,
        uint256[] memory terms
    )
        internal
        pure
        returns (
            uint256 end,
            uint256 named,
            address issuer,
            bytes32 assetsHash,
            bytes calldata signature
        )
    {
        unchecked {
            uint256 count;
            uint256 place;
            uint256 entries;
            assembly ("memory-safe") {
                place := add(consents.offset, offset)
                count := byte(0, calldataload(place))
                entries := mload(0x40)
                mstore(0x40, add(add(entries, mul(ENTRY_BYTES, count)), 32))
                let lengthPlace := add(add(place, 1), count)
                signature.offset := add(lengthPlace, 2)
                signature.length := shr(240, calldataload(lengthPlace))
                end := sub(add(signature.offset, signature.length), consents.offset)
            }
            if (end > consents.length) revert ICommits.ConsentsMalformed(offset);
            for (uint256 i; i < count; ++i) {
                uint256 index;
                assembly ("memory-safe") {
                    index := byte(0, calldataload(add(add(place, 1), i)))
                }
                if (index >= terms.length) revert ICommits.ConsentsMalformed(offset);
                uint256 term;
                assembly ("memory-safe") {
                    term := mload(add(add(terms, 32), shl(5, index)))
                }
                address own = address(uint160(term >> ISSUER));
                if (i == 0) issuer = own;
                if (issuer != own || (term >> SUSPENDED) & 1 == 1) issuer = address(0);
                named |= 1 << index;
                assembly ("memory-safe") {
                    // Each entry overwrites the surplus bytes of the one before.
                    let entry := add(entries, mul(ENTRY_BYTES, i))
                    calldatacopy(entry, add(assets.offset, mul(40, index)), 40)
                    mstore(add(entry, 40), shl(192, shr(ISSUER_EPOCH, term)))
                }
            }
            assembly ("memory-safe") {
                assetsHash := keccak256(entries, mul(ENTRY_BYTES, count))
            }
        }
    }
}
