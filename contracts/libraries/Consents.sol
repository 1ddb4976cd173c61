// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IStateCommitment} from "../interfaces/IStateCommitment.sol";

/// @dev Where the parts begin in the word that the registry keeps of an asset: its issuer, the issuer's epoch, whether the issuer is suspended.
uint256 constant ISSUER = 8;
uint256 constant ISSUER_EPOCH = 168;
uint256 constant SUSPENDED = 232;

/// @title The packed consents of a commit; docs/protocol.md 5.
/// @dev Unchecked: every number here is at most a length of calldata.
library Consents {
    /// @dev Of an asset in what an issuer signs: chainId(8) ‖ assetType(32) ‖ issuerEpoch(8).
    uint256 private constant ENTRY_BYTES = 48;

    /// @dev One consent, all but its signature.
    struct Consent {
        /// @dev Where the next consent begins.
        uint256 end;
        /// @dev The assets that it names; bit i stands for asset i.
        uint256 named;
        /// @dev Of all named assets; the zero address when they have different ones, or one of them is suspended.
        address issuer;
        /// @dev Of the named assets, as the issuer signs it.
        bytes32 assetsHash;
    }

    /// @notice The consent that begins at an offset: count(1) ‖ index(1 each) ‖ length(2) ‖ signature.
    /// @param assets The batch's manifest, packed.
    /// @param terms What the registry keeps of each of its assets.
    function read(bytes calldata consents, uint256 offset, bytes calldata assets, uint256[] memory terms)
        internal
        pure
        returns (Consent memory consent, bytes calldata signature)
    {
        unchecked {
            uint256 count;
            uint256 place;
            assembly ("memory-safe") {
                place := add(consents.offset, offset)
                count := byte(0, calldataload(place))
                let lengthPlace := add(add(place, 1), count)
                signature.offset := add(lengthPlace, 2)
                signature.length := shr(240, calldataload(lengthPlace))
                mstore(consent, sub(add(signature.offset, signature.length), consents.offset))
            }
            if (consent.end > consents.length) revert IStateCommitment.ConsentsMalformed(offset);
            for (uint256 i; i < count; ++i) {
                uint256 index;
                assembly ("memory-safe") {
                    index := byte(0, calldataload(add(add(place, 1), i)))
                }
                if (index >= terms.length) revert IStateCommitment.ConsentsMalformed(offset);
                uint256 term = terms[index];
                address own = address(uint160(term >> ISSUER));
                if (i == 0) consent.issuer = own;
                if (consent.issuer != own || (term >> SUSPENDED) & 1 == 1) consent.issuer = address(0);
                consent.named |= 1 << index;
                assembly ("memory-safe") {
                    // Past the free memory pointer, and never allocated. Each entry writes over what the last one has written too far.
                    let entry := add(mload(0x40), mul(ENTRY_BYTES, i))
                    calldatacopy(entry, add(assets.offset, mul(40, index)), 40)
                    mstore(add(entry, 40), shl(192, shr(ISSUER_EPOCH, term)))
                }
            }
            bytes32 assetsHash;
            assembly ("memory-safe") {
                assetsHash := keccak256(mload(0x40), mul(ENTRY_BYTES, count))
            }
            consent.assetsHash = assetsHash;
        }
    }
}
