// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {MinterLock} from "./MinterLock.sol";

/// @title Facts of a whole contract for marketplaces: its owner, and its metadata (ERC-7572).
abstract contract ContractMetadata is MinterLock {
    /// @notice Where the JSON of the whole contract is; empty for nowhere.
    string public contractURI;

    event ContractURIUpdated();

    /// @notice The first of the present admins, for marketplaces that ask for one; the zero address
    /// without an admin. Grants nothing itself.
    function owner() external view returns (address) {
        return
            getRoleMemberCount(DEFAULT_ADMIN_ROLE) == 0
                ? address(0)
                : getRoleMember(DEFAULT_ADMIN_ROLE, 0);
    }

    function setContractURI(string calldata uri) external onlyRole(DEFAULT_ADMIN_ROLE) {
        contractURI = uri;
        emit ContractURIUpdated();
    }
}
