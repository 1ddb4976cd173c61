// SPDX-License-Identifier: MIT
// A permit may fail. The constant has the name of the function that it is.
// solhint-disable no-empty-blocks, const-name-snakecase
pragma solidity 0.8.37;

import {IERC20Metadata} from "@openzeppelin/contracts/token/ERC20/extensions/IERC20Metadata.sol";
import {IERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/IERC20Permit.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {IStateCommitment} from "../interfaces/IStateCommitment.sol";
import {MintingBlobScheme, Standard} from "../interfaces/Model.sol";
import {AssetEncoding} from "../libraries/AssetEncoding.sol";
import {Escrow} from "./Escrow.sol";

/// @title The escrow of an ERC-20.
/// @dev A token whose balances shrink by themselves leaves the last owner unpaid. One that keeps a
/// fee cannot be entered.
contract EscrowERC20 is Escrow {
    using SafeERC20 for IERC20Metadata;

    MintingBlobScheme public constant mintingBlobScheme = MintingBlobScheme.Mintmark;
    IERC20Metadata public immutable token;
    /// @notice Base units of one quantized unit. The registry accepts no other quantum.
    uint256 public immutable quantum;

    constructor(
        IStateCommitment settlement_,
        IERC20Metadata token_,
        uint256 quantum_
    ) Escrow(settlement_, AssetEncoding.assetType(Standard.ERC20, address(this), quantum_)) {
        token = token_;
        quantum = quantum_;
    }

    /// @notice {enter} with the holder's permit (ERC-2612). A permit that somebody has brought
    /// before is as good.
    function enterWithPermit(
        address owner,
        uint256 amount,
        uint256 deadline,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external returns (uint64 vaultId) {
        try
            IERC20Permit(address(token)).permit(
                msg.sender,
                address(this),
                amount,
                deadline,
                v,
                r,
                s
            )
        {} catch {}
        return enter(owner, amount);
    }

    /// @notice Pays a withdrawal from what the escrow holds.
    function mintFor(address to, uint256 quantity, bytes calldata) external onlySettlement {
        uint256 before = token.balanceOf(address(this));
        token.safeTransfer(to, quantity);
        if (token.balanceOf(address(this)) != before - quantity) revert TokenNotMoved();
    }

    function name() external view returns (string memory) {
        return token.name();
    }

    function symbol() external view returns (string memory) {
        return token.symbol();
    }

    function decimals() external view returns (uint8) {
        return token.decimals();
    }

    /// @notice Pulls units of the caller, which has approved them, and makes a vault of them.
    /// @param amount Base units, a multiple of `quantum`.
    function enter(address owner, uint256 amount) public returns (uint64 vaultId) {
        _requireRegistered();
        uint256 before = token.balanceOf(address(this));
        token.safeTransferFrom(msg.sender, address(this), amount);
        if (token.balanceOf(address(this)) != before + amount) revert TokenNotMoved();
        return settlement.make(_assetType, owner, amount, "");
    }
}
