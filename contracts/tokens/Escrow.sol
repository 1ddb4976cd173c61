// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ERC165} from "@openzeppelin/contracts/utils/introspection/ERC165.sol";
import {IMintable} from "../interfaces/IMintable.sol";
import {IStateCommitment} from "../interfaces/IStateCommitment.sol";

/// @title Holds tokens that exist already, and is itself the token that a settlement contract
/// knows.
///
/// @notice The way of a token that this project has not made:
///
///   1. Somebody creates the token's escrow ({EscrowFactory}), and registers it. It answers
///      `madeOnly()`, so no operator can mint what it does not hold.
///   2. A holder approves the escrow and calls its `enter`. The escrow pulls the token, and has the
///      settlement contract make a vault.
///   3. The vault is given away and withdrawn as all are. {mintFor} pays it from what is held.
///
/// Nobody administers an escrow, and it has no other way out than {mintFor}.
abstract contract Escrow is IMintable, ERC165 {
    IStateCommitment public immutable settlement;
    /// @dev The asset as which the settlement contract has registered this escrow.
    uint256 internal immutable _assetType;

    /// @notice The settlement contract has not registered this escrow as an asset whose vaults are
    /// made only. Register it first.
    error EscrowNotRegistered(uint256 assetType);
    /// @notice Only the settlement contract pays.
    error NotSettlement(address caller);
    /// @notice The token's own books do not show that exactly this has moved.
    error TokenNotMoved();

    modifier onlySettlement() {
        if (msg.sender != address(settlement)) revert NotSettlement(msg.sender);
        _;
    }

    constructor(IStateCommitment settlement_, uint256 assetType) {
        settlement = settlement_;
        _assetType = assetType;
    }

    /// @notice The registry asks once. Only vaults that this escrow has made count.
    function madeOnly() external pure returns (bool) {
        return true;
    }

    /// @notice The registry asks once. Owners can give vaults away.
    function transferable() external pure returns (bool) {
        return true;
    }

    function supportsInterface(bytes4 id) public view virtual override returns (bool) {
        return id == type(IMintable).interfaceId || super.supportsInterface(id);
    }

    /// @dev Asked before each pull: vaults of an asset that is not made only can come from batches.
    function _requireRegistered() internal view {
        if (!settlement.isMadeOnly(uint64(block.chainid), _assetType))
            revert EscrowNotRegistered(_assetType);
    }
}
