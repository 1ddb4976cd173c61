// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IMakings} from "./interfaces/IMakings.sol";
import {IDeployment} from "./interfaces/IStateCommitment.sol";
import {ITransfers} from "./interfaces/ITransfers.sol";
import {checkedDelay} from "./interfaces/Model.sol";
import {Administration} from "./state/Administration.sol";
import {Commits} from "./state/Commits.sol";
import {GUARDIAN, OPERATOR} from "./state/Roles.sol";
import {Withdrawals} from "./state/Withdrawals.sol";

/// @title The settlement contract: append-only state of all mints, and the exit of their owners.
///
/// @notice A token's way through this contract:
///
///   1. Somebody registers the token ({AssetRegistry-registerAsset}). That grants nothing: the
///      token's own minter role decides whether anything is minted.
///   2. Mints happen outside, for nothing. Each one is a vault: an owner, an asset, an amount and a
///      minting blob.
///   3. The operator commits vaults in batches ({Commits}). L1 keeps a hash for each batch.
///   4. Owners may give vaults away by signed records, which the operator commits too
///      ({Transfers}).
///   5. The owner withdraws ({Withdrawals}, {Transfers-withdrawTransferred}): a proof shows that a
///      batch holds the vault, and this contract mints the token. No operator takes part.
///   6. If two vaults hold one ERC-721 token, anybody voids the later one before it matures
///      ({VaultRecords-voidDuplicate}).
///   7. The holder of a token brings it back: the token burns it and has this contract make a vault
///      ({Makings-make}), which is withdrawn or given away like any other. An owner of many small
///      vaults, or of one at its last transfer, has this contract make them anew
///      ({Renewals-renew}).
///   8. Two owners sign orders for each other's vaults. Anybody has this contract settle them
///      ({Trades-settle}).
///
/// Four pieces of code run on this one storage, because one contract could not hold them: commits
/// and withdrawals here, transfers in {Transfers}, L1's own vaults in {Makings}, all else in
/// {Administration}. {fallback} finds the piece by the function's selector.
///
/// No proxy and no upgrade. A successor is a new contract and imports nothing. This contract keeps
/// its minter roles, so that owners can always withdraw.
contract StateCommitment is Commits, IDeployment {
    struct Config {
        /// @dev Schedules operators and committees. A time lock or multisig.
        address admin;
        /// @dev Pauses committing, revokes operators. Never touches withdrawing.
        address guardian;
        /// @dev A plain account: rollup data must be its transaction's own input.
        address operator;
        /// @dev Strictly ascending.
        address[] committee;
        uint8 threshold;
        /// @dev Seconds that a new operator or committee is announced before it is active.
        uint64 changeDelay;
        /// @dev Seconds that an ERC-721 vault waits after its commit; see {voidDuplicate}.
        uint64 maturity;
        /// @dev A {Transfers}, whose code runs here for ever; zero for a deployment without
        /// transfers.
        address transfersCode;
        /// @dev A {Makings}, whose code runs here for ever; zero for a deployment that makes no
        /// vaults.
        address makingsCode;
    }

    /// @notice The address has no code of its own. An account that delegates (EIP-7702) can change
    /// what it delegates to.
    error NoCode(address account);

    /// @dev The code of an account that delegates begins with it.
    bytes3 private constant DELEGATION = 0xef0100;
    /// @inheritdoc IDeployment
    /// @dev An {Administration}, which lends only its code. The constructor creates it, and nothing
    /// can replace it. Both have the same storage layout; a test compares them.
    address public immutable administrationCode;
    /// @inheritdoc IDeployment
    /// @dev A {Transfers}, which somebody has deployed before. It lends only its code, too.
    address public immutable transfersCode;
    /// @inheritdoc IDeployment
    /// @dev A {Makings}, which lends only its code, too.
    address public immutable makingsCode;
    /// @inheritdoc IDeployment
    uint64 public immutable changeDelay;

    constructor(Config memory config) Withdrawals(config.maturity) {
        transfersCode = _lent(config.transfersCode);
        makingsCode = _lent(config.makingsCode);
        changeDelay = checkedDelay(config.changeDelay);
        administrationCode = address(new Administration());
        _grantFirst(0, config.admin);
        _grantFirst(GUARDIAN, config.guardian);
        _grantFirst(OPERATOR, config.operator);
        _setCommittee(config.committee, config.threshold, 0);
    }

    /// @notice Runs every other function of {IStateCommitment} on this contract's storage, those of
    /// {ITransfers} with the code of {Transfers}, those of {IMakings} with the code of {Makings}
    /// and all others with the code of {Administration}, and returns the answer. It takes no ether,
    /// and reverts when no code has the function.
    // solhint-disable-next-line no-complex-fallback
    fallback() external {
        address code = _codeOf(msg.sig);
        assembly ("memory-safe") {
            let free := mload(0x40)
            calldatacopy(free, 0, calldatasize())
            let done := delegatecall(gas(), code, free, calldatasize(), 0, 0)
            returndatacopy(free, 0, returndatasize())
            if iszero(done) {
                revert(free, returndatasize())
            }
            return(free, returndatasize())
        }
    }

    /// @dev {Administration} has no functions whose code this deployment lacks.
    function _codeOf(bytes4 selector) private view returns (address) {
        if (_isOfTransfers(selector) && transfersCode != address(0)) return transfersCode;
        if (_isOfMakings(selector) && makingsCode != address(0)) return makingsCode;
        return administrationCode;
    }

    function _isOfMakings(bytes4 selector) private pure returns (bool) {
        return
            selector == IMakings.make.selector ||
            selector == IMakings.renew.selector ||
            selector == IMakings.settle.selector;
    }

    function _isOfTransfers(bytes4 selector) private pure returns (bool) {
        return
            selector == ITransfers.commitTransferBatch.selector ||
            selector == ITransfers.withdrawTransferredItem.selector ||
            selector == ITransfers.withdrawTransferred.selector ||
            selector == ITransfers.verifyTransferred.selector ||
            selector == ITransfers.isSpent.selector ||
            selector == ITransfers.approveTransfers.selector ||
            selector == ITransfers.approval.selector ||
            selector == ITransfers.authorizeSession.selector ||
            selector == ITransfers.revokeSession.selector ||
            selector == ITransfers.session.selector ||
            selector == ITransfers.cancelTransfers.selector;
    }

    /// @dev Reverts unless the address is zero or has code of its own, which nobody can change.
    function _lent(address code) private view returns (address) {
        if (code != address(0) && (code.code.length == 0 || bytes3(code.code) == DELEGATION))
            revert NoCode(code);
        return code;
    }
}
