// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {AccessControlEnumerable} from "@openzeppelin/contracts/access/extensions/AccessControlEnumerable.sol";
import {BlobScheme} from "../interfaces/Model.sol";
import {IMintable} from "../interfaces/IMintable.sol";

/// @title The minter of a token, which can be fixed for ever.
/// @dev Once locked, nobody can replace or remove the minter, or add another. So the settlement
/// contract can always pay, and nobody else can mint.
abstract contract MinterLock is AccessControlEnumerable, IMintable {
    bytes32 public constant MINTER_ROLE = keccak256("MINTER");

    /// @notice The scheme by which `mintFor` reads its minting blob.
    BlobScheme public immutable blobScheme;
    /// @notice The issuer that must consent to mints; the zero address for none. The settlement
    /// contract asks once, at registration.
    address public immutable issuer;
    /// @notice Whether owners can give vaults of this token away before they withdraw. The
    /// settlement contract asks once, at registration.
    bool public immutable transferable;
    bool public minterLocked;

    event MinterLocked();

    error MinterIsLocked();
    error MinterNotAlone(uint256 minters);
    /// @notice This token supports the schemes `Imx` and `Mintmark`.
    error BlobSchemeUnsupported(BlobScheme scheme);

    constructor(
        address admin,
        address minter,
        BlobScheme scheme,
        address issuer_,
        bool transferable_
    ) {
        if (scheme == BlobScheme.Raw32) revert BlobSchemeUnsupported(scheme);
        blobScheme = scheme;
        issuer = issuer_;
        transferable = transferable_;
        _grantRole(DEFAULT_ADMIN_ROLE, admin);
        _grantRole(MINTER_ROLE, minter);
    }

    /// @notice Fixes the minter for ever. Owners of vaults should demand it.
    function lockMinter() external onlyRole(DEFAULT_ADMIN_ROLE) {
        uint256 minters = getRoleMemberCount(MINTER_ROLE);
        if (minters != 1) revert MinterNotAlone(minters);
        minterLocked = true;
        emit MinterLocked();
    }

    function supportsInterface(bytes4 id) public view virtual override returns (bool) {
        return id == type(IMintable).interfaceId || super.supportsInterface(id);
    }

    function _grantRole(bytes32 role, address account) internal override returns (bool) {
        if (role == MINTER_ROLE && minterLocked) revert MinterIsLocked();
        return super._grantRole(role, account);
    }

    function _revokeRole(bytes32 role, address account) internal override returns (bool) {
        if (role == MINTER_ROLE && minterLocked) revert MinterIsLocked();
        return super._revokeRole(role, account);
    }
}
