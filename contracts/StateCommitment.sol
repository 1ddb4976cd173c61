// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {IAssetRegistry} from "./interfaces/IAssetRegistry.sol";
import {ICommittee} from "./interfaces/ICommittee.sol";
import {IIssuers} from "./interfaces/IIssuers.sol";
import {IOperatorRoles} from "./interfaces/IOperatorRoles.sol";
import {IVaultProofs} from "./interfaces/IVaultProofs.sol";
import {BatchHeader, BlobScheme, Standard, Vault, VaultPath} from "./interfaces/Model.sol";
import {BlobVaults} from "./libraries/BlobVaults.sol";
import {Administration} from "./state/Administration.sol";
import {AssetRegistry} from "./state/AssetRegistry.sol";
import {Committee} from "./state/Committee.sol";
import {Commits} from "./state/Commits.sol";
import {Issuers} from "./state/Issuers.sol";
import {SettlementState} from "./state/SettlementState.sol";
import {TimeLockedRoles} from "./state/TimeLockedRoles.sol";
import {VaultProofs} from "./state/VaultProofs.sol";
import {Withdrawals} from "./state/Withdrawals.sol";

/// @title The settlement contract: append-only state of all mints, and the exit of their owners.
/// @notice No proxy and no upgrade. A successor is a new contract and imports nothing. This contract keeps its minter
/// roles, so that owners can always withdraw.
contract StateCommitment is Commits {
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
    }

    /// @dev A contract that lends only its code. The constructor creates it, and nothing can replace it.
    address private immutable _administration;

    constructor(Config memory config) EIP712("Mintmark", "1") Committee(config.changeDelay) Withdrawals(config.maturity) {
        _administration = address(new Administration(config.changeDelay));
        _grantRole(DEFAULT_ADMIN_ROLE, config.admin);
        _grantRole(GUARDIAN_ROLE, config.guardian);
        _grantRole(OPERATOR_ROLE, config.operator);
        _setCommittee(config.committee, config.threshold, 0);
    }

    /// @notice The engine version: ERC-721 is available from 4, ERC-20 and ERC-1155 from 5.
    function engineVersion() external pure returns (uint256) {
        return 5;
    }

    /// @inheritdoc ICommittee
    function scheduleCommittee(address[] calldata, uint8) external override(ICommittee, Committee) {
        _administer();
    }

    /// @inheritdoc ICommittee
    function activateCommittee(address[] calldata, uint8) external override(ICommittee, Committee) {
        _administer();
    }

    /// @inheritdoc ICommittee
    function cancelCommittee() external override(ICommittee, Committee) {
        _administer();
    }

    /// @inheritdoc IOperatorRoles
    function scheduleOperator(address) external override(IOperatorRoles, TimeLockedRoles) {
        _administer();
    }

    /// @inheritdoc IOperatorRoles
    function activateOperator(address) external override(IOperatorRoles, TimeLockedRoles) {
        _administer();
    }

    /// @inheritdoc IOperatorRoles
    function cancelOperator(address) external override(IOperatorRoles, TimeLockedRoles) {
        _administer();
    }

    /// @inheritdoc IOperatorRoles
    function revokeOperator(address) external override(IOperatorRoles, TimeLockedRoles) {
        _administer();
    }

    /// @inheritdoc IAssetRegistry
    function registerAsset(Standard, uint64, address, uint256, BlobScheme)
        external
        override(IAssetRegistry, AssetRegistry)
        returns (uint256)
    {
        _administer();
    }

    /// @inheritdoc IIssuers
    function scheduleIssuer(address, address) external override(IIssuers, Issuers) {
        _administer();
    }

    /// @inheritdoc IIssuers
    function activateIssuer(address) external override(IIssuers, Issuers) {
        _administer();
    }

    /// @inheritdoc IIssuers
    function cancelIssuer(address) external override(IIssuers, Issuers) {
        _administer();
    }

    /// @inheritdoc IIssuers
    function suspendIssuer(address) external override(IIssuers, Issuers) {
        _administer();
    }

    /// @inheritdoc IOperatorRoles
    function pauseCommits(bool) external override(IOperatorRoles, SettlementState) {
        _administer();
    }

    function grantRole(bytes32, address) public override {
        _administer();
    }

    function revokeRole(bytes32, address) public override {
        _administer();
    }

    function renounceRole(bytes32, address) public override {
        _administer();
    }

    /// @inheritdoc IVaultProofs
    function voidDuplicate(
        Vault calldata,
        BatchHeader calldata,
        VaultPath calldata,
        Vault calldata,
        BatchHeader calldata,
        VaultPath calldata
    ) external override(IVaultProofs, VaultProofs) {
        _administer();
    }

    /// @dev Here for the usual vaults, by the {Administration} for the others, whose code would not fit.
    function _opened(Vault memory vault, uint256 assetIndex, BlobVaults.Batch memory batch, bytes32[] calldata path)
        internal
        view
        override
        returns (bool)
    {
        uint256 head = BlobVaults.headOf(vault, assetIndex);
        if (head != 0) return BlobVaults.openedHead(vault.vaultId, head, batch, path);
        return Administration(_administration).opened(vault, assetIndex, batch, path);
    }

    /// @dev Runs this call with the code of {Administration} on this contract's storage, and returns its answer.
    function _administer() private {
        address code = _administration;
        assembly ("memory-safe") {
            let free := mload(0x40)
            calldatacopy(free, 0, calldatasize())
            let done := delegatecall(gas(), code, free, calldatasize(), 0, 0)
            returndatacopy(free, 0, returndatasize())
            if iszero(done) { revert(free, returndatasize()) }
            return(free, returndatasize())
        }
    }
}
