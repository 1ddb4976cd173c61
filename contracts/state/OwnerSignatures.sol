// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";
import {ICancellations, IWithdrawals} from "../interfaces/IWithdrawals.sol";
import {Messages} from "../libraries/Messages.sol";
import {Signatures} from "../libraries/Signatures.sol";
import {TypedData} from "./TypedData.sol";
import {VaultState} from "./VaultState.sol";

/// @title Whether an owner has signed a message: with a key, or through a wallet contract.
abstract contract OwnerSignatures is TypedData {
    /// @dev Reverts unless the owner calls, or has signed the message.
    function _requireBy(address owner, bytes32 message, bytes calldata signature) internal view {
        if (signature.length == 0 && msg.sender == owner) return;
        _requireSigned(owner, _digestOf(message), signature);
    }

    function _requireSigned(address owner, bytes32 digest, bytes calldata signature) internal view {
        if (!_signed(owner, digest, signature, gasleft()))
            revert IWithdrawals.SignatureInvalid(digest);
    }

    /// @dev Tries the key first, because an account with delegated code (EIP-7702) still signs with
    /// its key. Then it asks the wallet contract, with at most `gas_`.
    function _signed(
        address owner,
        bytes32 digest,
        bytes calldata signature,
        uint256 gas_
    ) internal view returns (bool) {
        address signer = Signatures.signerOf(digest, signature);
        if (signer != address(0) && signer == owner) return true;
        return
            owner.code.length != 0 &&
            _walletTakes(
                owner,
                abi.encodeCall(IERC1271.isValidSignature, (digest, signature)),
                gas_
            );
    }

    /// @dev Copies only one word of the answer.
    function _walletTakes(
        address wallet,
        bytes memory question,
        uint256 gas_
    ) private view returns (bool taken) {
        bytes4 yes = IERC1271.isValidSignature.selector;
        assembly ("memory-safe") {
            taken := staticcall(gas_, wallet, add(question, 0x20), mload(question), 0, 32)
            taken := and(and(taken, gt(returndatasize(), 31)), eq(mload(0), yes))
        }
    }
}

/// @title Taking back what an account has signed of withdrawals.
abstract contract Cancellations is VaultState, OwnerSignatures, ICancellations {
    /// @inheritdoc ICancellations
    function cancel(address signer, bytes32 id, bytes calldata signature) external {
        if (_cancelled[signer][id]) return;
        _requireBy(signer, Messages.cancellation(signer, id), signature);
        _cancelled[signer][ANY] = true;
        _cancelled[signer][id] = true;
        emit AuthorizationCancelled(signer, id);
    }

    /// @inheritdoc ICancellations
    function isCancelled(address signer, bytes32 id) external view returns (bool) {
        return _cancelled[signer][id];
    }
}
