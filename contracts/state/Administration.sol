// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDeployment, IHistory} from "../interfaces/IStateCommitment.sol";
import {MADE_ONLY, Mode, TRANSFERABLE} from "../interfaces/Model.sol";
import {StateProof} from "../libraries/StateProof.sol";
import {Cancellations} from "./OwnerSignatures.sol";
import {IMintingTerms} from "./AssetRegistry.sol";
import {Issuers} from "./Issuers.sol";
import {PublishedDomain} from "./TypedData.sol";
import {VaultRecords} from "./VaultRecords.sol";

/// @title The settlement contract apart from commits and withdrawals: who may act, which
/// assets there are, which duplicate is void, what an owner cancels, and what the state is.
/// @dev Its code runs on the settlement contract's storage, and nothing can replace it. Both
/// together would be larger than a chain's limit for one contract. It has no roles in its own
/// storage, and nothing depends on that storage. It has no constructor and no immutable value, so
/// each deployment of it has the same code.
contract Administration is Issuers, VaultRecords, Cancellations, PublishedDomain, IHistory {
    /// @inheritdoc IHistory
    uint256 public constant MAX_ROLLUP_VAULTS = ROLLUP_VAULTS;

    /// @inheritdoc IHistory
    function engineVersion() external pure returns (uint256) {
        return 5;
    }

    /// @inheritdoc IHistory
    function history() external view returns (bytes32) {
        return _history;
    }

    /// @inheritdoc IHistory
    function batchCounts() public view returns (uint64 validium, uint64 rollup) {
        return (uint32(_head), uint32(_head >> 32));
    }

    /// @inheritdoc IHistory
    function makings() external view returns (uint64) {
        return uint64(_head >> MAKINGS);
    }

    /// @inheritdoc IHistory
    function latestEntry(uint256 assetType, uint256 tokenId) external view returns (uint64) {
        return _entries[assetType][tokenId];
    }

    /// @inheritdoc IHistory
    function stateRoot(Mode mode) public view returns (bytes32 root) {
        (uint64 validium, uint64 rollup) = batchCounts();
        uint256 count = mode == Mode.Validium ? validium : rollup;
        bytes32 zero;
        for (uint256 h; h < StateProof.STATE_HEIGHT; ++h) {
            root =
                (count >> h) & 1 == 1
                    ? StateProof.node(_frontier[uint8(mode)][h], root)
                    : StateProof.node(root, zero);
            zero = StateProof.node(zero, zero);
        }
    }

    /// @inheritdoc IHistory
    function stateCommitment() external view returns (bytes32) {
        (uint64 validium, uint64 rollup) = batchCounts();
        return
            StateProof.stateCommitment(
                uint64(block.chainid),
                address(this),
                stateRoot(Mode.Validium),
                stateRoot(Mode.ZkRollup),
                validium,
                rollup
            );
    }

    function _changeDelay() internal view override returns (uint64) {
        return IDeployment(address(this)).changeDelay();
    }

    function _flagsOf(address token) internal view override returns (uint8 flags) {
        if (
            IDeployment(address(this)).transfersCode() != address(0) &&
            _says(token, abi.encodeCall(IMintingTerms.transferable, ()))
        ) flags = TRANSFERABLE;
        if (_says(token, abi.encodeCall(IMintingTerms.madeOnly, ()))) flags |= MADE_ONLY;
    }

    function _domain() internal view override returns (bytes32) {
        return _computedDomain();
    }
}
