// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {AccessControlEnumerable} from "@openzeppelin/contracts/access/extensions/AccessControlEnumerable.sol";
import {MintingBlobScheme} from "../interfaces/Model.sol";
import {IMakings} from "../interfaces/IMakings.sol";
import {IMintable} from "../interfaces/IMintable.sol";

/// @title The minter of a token, which can be fixed for ever.
/// @dev Once locked, nobody can replace or remove the minter, or add another. So the settlement
/// contract can always pay, and nobody else can mint. From then on holders can enter: burn a token
/// and receive a vault of it. With another minter, somebody could mint the burned id again.
abstract contract MinterLock is AccessControlEnumerable, IMintable {
    bytes32 public constant MINTER_ROLE = keccak256("MINTER");

    /// @notice The scheme by which `mintFor` reads its minting blob.
    MintingBlobScheme public immutable mintingBlobScheme;
    /// @notice The issuer that must consent to mints; the zero address for none. The settlement
    /// contract asks once, at registration.
    address public immutable issuer;
    /// @notice Whether owners can give vaults of this token away before they withdraw. The
    /// settlement contract asks once, at registration.
    bool public immutable transferable;
    bool public minterLocked;
    /// @dev The minter when it was locked. In the same word, so that an entry reads one.
    address private _lockedMinter;
    /// @dev The asset as which the settlement contract has registered this token.
    uint256 private immutable _assetType;

    event MinterLocked();

    error MinterIsLocked();
    /// @notice Nobody enters before {lockMinter}.
    error MinterNotLocked();
    error MinterNotAlone(uint256 minters);
    /// @notice This token supports the schemes `Imx` and `Mintmark`.
    error MintingBlobSchemeUnsupported(MintingBlobScheme scheme);

    constructor(
        address admin,
        address minter,
        MintingBlobScheme scheme,
        address issuer_,
        bool transferable_,
        uint256 assetType
    ) {
        if (scheme == MintingBlobScheme.Raw32) revert MintingBlobSchemeUnsupported(scheme);
        mintingBlobScheme = scheme;
        issuer = issuer_;
        transferable = transferable_;
        _assetType = assetType;
        _grantRole(DEFAULT_ADMIN_ROLE, admin);
        _grantRole(MINTER_ROLE, minter);
    }

    /// @notice Fixes the minter for ever. Owners of vaults should demand it.
    function lockMinter() external onlyRole(DEFAULT_ADMIN_ROLE) {
        uint256 minters = getRoleMemberCount(MINTER_ROLE);
        if (minters != 1) revert MinterNotAlone(minters);
        minterLocked = true;
        _lockedMinter = getRoleMember(MINTER_ROLE, 0);
        emit MinterLocked();
    }

    function supportsInterface(bytes4 id) public view virtual override returns (bool) {
        return id == type(IMintable).interfaceId || super.supportsInterface(id);
    }

    /// @dev Has the minter make a vault of what the caller has burned. Reverts when the owner is
    /// the zero address, or the settlement contract could not pay the vault.
    /// @param amount Base units.
    function _makeVault(
        address owner,
        uint256 amount,
        bytes memory mintingBlob
    ) internal returns (uint64 vaultId) {
        if (!minterLocked) revert MinterNotLocked();
        return IMakings(_lockedMinter).make(_assetType, owner, amount, mintingBlob);
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
