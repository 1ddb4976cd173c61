// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {Vault} from "../interfaces/Model.sol";
import {BlobVaults} from "../libraries/BlobVaults.sol";
import {Committee} from "./Committee.sol";
import {SettlementState} from "./SettlementState.sol";
import {VaultProofs} from "./VaultProofs.sol";

/// @title What the settlement contract does apart from commits and withdrawals: who may act, which assets there are,
/// which duplicate is void, and whether blobs hold a vault.
/// @dev Its code runs on the settlement contract's storage, and nothing can replace it. Both together would be larger
/// than a chain's limit for one contract. It has no roles in its own storage, and nothing depends on that storage.
contract Administration is SettlementState, VaultProofs {
    constructor(uint64 changeDelay) EIP712("Mintmark", "1") Committee(changeDelay) {}

    /// @notice {BlobVaults-opened}; it reads no storage.
    function opened(Vault calldata vault, uint256 assetIndex, BlobVaults.Batch calldata batch, bytes32[] calldata path)
        external
        view
        returns (bool)
    {
        return _opened(vault, assetIndex, batch, path);
    }
}
