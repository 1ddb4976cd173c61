// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";

/// @title A contract wallet of one key, honest or not when it is asked about a signature.
contract Wallet1271 is IERC1271 {
    enum Manner {
        Honest,
        Reverts,
        BurnsGas,
        AnswersTooMuch,
        AnswersNothing,
        Slow
    }

    error NotTheKey();
    error NoOpinion();

    address private immutable _key;
    Manner private immutable _manner;

    constructor(address key, Manner manner) {
        _key = key;
        _manner = manner;
    }

    /// @notice Acts for its owner, for instance withdraws as `msg.sender`.
    function execute(address target, bytes calldata payload) external returns (bytes memory) {
        if (msg.sender != _key) revert NotTheKey();
        (bool succeeded, bytes memory answer) = target.call(payload);
        if (succeeded) return answer;
        assembly ("memory-safe") {
            revert(add(answer, 0x20), mload(answer))
        }
    }

    function isValidSignature(
        bytes32 hash,
        bytes calldata signature
    ) external view returns (bytes4) {
        if (_manner == Manner.Reverts) revert NoOpinion();
        if (_manner == Manner.BurnsGas) {
            assembly ("memory-safe") {
                invalid()
            }
        }
        if (_manner == Manner.AnswersTooMuch) {
            assembly ("memory-safe") {
                return(0, 400000)
            }
        }
        if (_manner == Manner.AnswersNothing) {
            assembly ("memory-safe") {
                stop()
            }
        }
        if (_manner == Manner.Slow) {
            uint256 end = gasleft() - 380_000;
            uint256 turns;
            while (gasleft() > end) ++turns;
        }
        (address signer, ECDSA.RecoverError fault, ) = ECDSA.tryRecoverCalldata(hash, signature);
        return
            fault == ECDSA.RecoverError.NoError && signer == _key
                ? this.isValidSignature.selector
                : bytes4(0xffffffff);
    }
}
