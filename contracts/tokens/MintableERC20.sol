// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {ERC20Capped} from "@openzeppelin/contracts/token/ERC20/extensions/ERC20Capped.sol";
import {ERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/ERC20Permit.sol";
import {MintingBlobScheme, Standard} from "../interfaces/Model.sol";
import {AssetEncoding} from "../libraries/AssetEncoding.sol";
import {ContractMetadata} from "./ContractMetadata.sol";
import {MinterLock} from "./MinterLock.sol";

/// @title An ERC-20 that the settlement contract mints on withdrawal.
contract MintableERC20 is ERC20Capped, ERC20Permit, ContractMetadata {
    /// @notice Base units of one quantized unit. The registry accepts no other quantum.
    uint256 public immutable quantum;

    error MintingBlobNotEmpty(bytes mintingBlob);
    error QuantumZero();
    /// @notice A token with a cap cannot be entered: others could fill what the entry freed, and
    /// the cap would refuse the exit.
    error CapForbidsEntry(uint256 cap);

    /// @param cap Most base units that can ever exist; type(uint256).max for no cap.
    /// @param quantum_ Base units of one quantized unit.
    /// @param issuer_ The issuer that must consent to mints; the zero address for none.
    /// @param transferable_ Whether owners can give vaults away before they withdraw.
    constructor(
        string memory name,
        string memory symbol,
        uint256 cap,
        uint256 quantum_,
        address admin,
        address minter,
        address issuer_,
        bool transferable_
    )
        ERC20(name, symbol)
        ERC20Capped(cap)
        ERC20Permit(name)
        MinterLock(
            admin,
            minter,
            MintingBlobScheme.Mintmark,
            issuer_,
            transferable_,
            AssetEncoding.assetType(Standard.ERC20, address(this), quantum_)
        )
    {
        if (quantum_ == 0) revert QuantumZero();
        quantum = quantum_;
    }

    function mintFor(
        address to,
        uint256 quantity,
        bytes calldata mintingBlob
    ) external onlyRole(MINTER_ROLE) {
        if (mintingBlob.length != 0) revert MintingBlobNotEmpty(mintingBlob);
        _mint(to, quantity);
    }

    /// @notice Burns units of the caller and makes a vault of them. Nobody can bring them back but
    /// the vault's owner, who withdraws it.
    /// @param amount Base units, a multiple of `quantum`.
    function enter(address owner, uint256 amount) external returns (uint64 vaultId) {
        if (cap() != type(uint256).max) revert CapForbidsEntry(cap());
        _burn(msg.sender, amount);
        return _makeVault(owner, amount, "");
    }

    function _update(
        address from,
        address to,
        uint256 value
    ) internal override(ERC20, ERC20Capped) {
        super._update(from, to, value);
    }
}
