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

    /// @notice The consent that begins at an offset: count(1) ‖ index(1 each) ‖ length(2) ‖ signature.
    /// @param assets The batch's manifest, packed.
    /// @param terms What the registry keeps of each of its assets.
    /// @return next Where the consent after it begins.
    /// @return named Bit i stands for asset i.
    /// @return issuer Of all named assets; the zero address when they have different ones, or it is suspended.
    /// @return assetsHash Of the named assets, as the issuer signs it.
    function read(bytes calldata consents, uint256 offset, bytes calldata assets, uint256[] memory terms)
        internal
        pure
        returns (uint256 next, uint256 named, address issuer, bytes32 assetsHash, bytes calldata signature)
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
                next := sub(add(signature.offset, signature.length), consents.offset)
            }
            if (next > consents.length) revert IStateCommitment.ConsentsMalformed(offset);
            for (uint256 i; i < count; ++i) {
                uint256 index;
                assembly ("memory-safe") {
                    index := byte(0, calldataload(add(add(place, 1), i)))
                }
                if (index >= terms.length) revert IStateCommitment.ConsentsMalformed(offset);
                uint256 term = terms[index];
                address own = address(uint160(term >> ISSUER));
                if (i == 0) issuer = own;
                if (issuer != own || (term >> SUSPENDED) & 1 == 1) issuer = address(0);
                named |= 1 << index;
                assembly ("memory-safe") {
                    // Past the free memory pointer, and never allocated. Each entry writes over what the last one has written too far.
                    let entry := add(mload(0x40), mul(ENTRY_BYTES, i))
                    calldatacopy(entry, add(assets.offset, mul(40, index)), 40)
                    mstore(add(entry, 40), shl(192, shr(ISSUER_EPOCH, term)))
                }
            }
            assembly ("memory-safe") {
                assetsHash := keccak256(mload(0x40), mul(ENTRY_BYTES, count))
            }
        }
    }
}
