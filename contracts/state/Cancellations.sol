// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ICancellations} from "../interfaces/ICancellations.sol";
import {Messages} from "../libraries/Messages.sol";
import {PackedItems} from "../libraries/PackedItems.sol";
import {OwnTypedData} from "./OwnTypedData.sol";
import {VaultState} from "./VaultState.sol";

/// @title Cancelling what an owner has signed.
abstract contract Cancellations is VaultState, OwnTypedData, ICancellations {
    /// @inheritdoc ICancellations
    function cancelAuthorization(uint64 vaultId, uint64 withdrawnBefore, uint64 quantity, address recipient, uint64 deadline) external {
        bytes32 digest = _digestOf(Messages.withdrawal(vaultId, withdrawnBefore, quantity, recipient, deadline));
        _hasCancelled[vaultId >> 8] |= 1 << (vaultId & 0xff);
        _cancel(digest);
    }

    /// @inheritdoc ICancellations
    function cancelList(bytes calldata vaults, address recipient, uint64 deadline) external {
        PackedItems.requireEntries(vaults);
        _cancel(_digestOf(Messages.withdrawalList(vaults, recipient, deadline)));
    }

    function _cancel(bytes32 digest) private {
        _cancelled[msg.sender][digest] = true;
        emit AuthorizationCancelled(msg.sender, digest);
    }
}
