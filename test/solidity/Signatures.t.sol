// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {Signatures} from "../../contracts/libraries/Signatures.sol";
import {expect} from "./support/Expect.sol";
import {vm} from "./support/Vm.sol";

/// @title The recovery of signers against OpenZeppelin's, which it replaces.
contract SignaturesTest {
    /// @dev The order of secp256k1.
    uint256 private constant ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141;

    function testFuzz_RecoversWhoSigned(uint256 key, bytes32 digest) external view {
        key = 1 + key % (ORDER - 1);
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(key, digest);
        address signer = vm.addr(key);
        bytes32 vs = bytes32(uint256(s) | uint256(v - 27) << 255);
        expect(this.signerOf(digest, abi.encodePacked(r, s, v)) == signer, "65 bytes");
        expect(this.signerOf(digest, abi.encodePacked(r, vs)) == signer, "64 bytes");
    }

    function testFuzz_AgreesOnDamagedSignatures(uint256 key, bytes32 digest, uint8 place, bytes1 byte_, uint8 v) external view {
        key = 1 + key % (ORDER - 1);
        (uint8 parity, bytes32 r, bytes32 s) = vm.sign(key, digest);
        _agree(digest, abi.encodePacked(r, s, v));
        bytes memory damaged = abi.encodePacked(r, s, parity);
        damaged[place % 65] = byte_;
        _agree(digest, damaged);
        bytes memory compact = abi.encodePacked(r, uint256(s) | uint256(parity - 27) << 255);
        compact[place % 64] = byte_;
        _agree(digest, compact);
        // The other signature of the same key and digest, with a large s.
        bytes memory mirrored = abi.encodePacked(r, ORDER - uint256(s), 55 - parity);
        expect(this.signerOf(digest, mirrored) == address(0), "each signature has one form");
        _agree(digest, mirrored);
    }

    function testFuzz_AgreesOnAnyBytes(bytes32 digest, bytes calldata signature) external view {
        _agree(digest, signature);
    }

    function signerOf(bytes32 digest, bytes calldata signature) external view returns (address) {
        return Signatures.signerOf(digest, signature);
    }

    /// @dev OpenZeppelin takes the compact form by another function.
    function expected(bytes32 digest, bytes calldata signature) external pure returns (address signer) {
        ECDSA.RecoverError fault;
        if (signature.length == 64) {
            (signer, fault,) = ECDSA.tryRecover(digest, bytes32(signature[:32]), bytes32(signature[32:]));
        } else {
            (signer, fault,) = ECDSA.tryRecoverCalldata(digest, signature);
        }
        if (fault != ECDSA.RecoverError.NoError) return address(0);
    }

    function _agree(bytes32 digest, bytes memory signature) private view {
        expect(this.signerOf(digest, signature) == this.expected(digest, signature), "not what OpenZeppelin says");
    }
}
