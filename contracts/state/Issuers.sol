// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ICommittee} from "../interfaces/ICommittee.sol";
import {IIssuers} from "../interfaces/IIssuers.sol";
import {MAX_DELAY} from "../interfaces/Model.sol";
import {ISSUER, ISSUER_EPOCH, SUSPENDED} from "../libraries/Consents.sol";
import {AssetRegistry} from "./AssetRegistry.sol";
import {TimeLockedRoles} from "./TimeLockedRoles.sol";

/// @dev The issuer that a token can name.
interface IIssued {
    function issuer() external view returns (address);
}

/// @title Issuers of tokens.
/// @dev More protection takes effect at once, and less protection after the delay. So nobody can
/// remove an issuer unseen with a stolen key of the token's admin.
abstract contract Issuers is TimeLockedRoles, AssetRegistry, IIssuers {
    /// @inheritdoc IIssuers
    function scheduleIssuer(address token, address issuer) external {
        _requireSpeaker(token);
        if (_issuerIn(_firstTermsOf(token)) == address(0)) {
            _setIssuer(token, issuer);
            return;
        }
        uint64 activeFrom = uint64(block.timestamp) + _changeDelay();
        _scheduledIssuer[token] = Change(issuer, activeFrom);
        emit IssuerScheduled(token, issuer, activeFrom);
    }

    /// @inheritdoc IIssuers
    function activateIssuer(address token) external {
        _requireSpeaker(token);
        Change memory change = _scheduledIssuer[token];
        if (change.activeFrom == 0 || block.timestamp < change.activeFrom)
            revert ICommittee.ChangeNotDue(change.activeFrom);
        if (block.timestamp > change.activeFrom + MAX_DELAY)
            revert ChangeExpired(change.activeFrom);
        delete _scheduledIssuer[token];
        _setIssuer(token, change.issuer);
    }

    /// @inheritdoc IIssuers
    function cancelIssuer(address token) external {
        _requireSpeaker(token);
        delete _scheduledIssuer[token];
        emit IssuerScheduled(token, address(0), 0);
    }

    /// @inheritdoc IIssuers
    function suspendIssuer(address token) external {
        _requireSpeaker(token);
        address issuer = _issuerIn(_firstTermsOf(token));
        if (issuer == address(0)) revert IssuerUnknown(token);
        emit IssuerSuspended(token, issuer, _putIssuer(token, issuer, 1));
    }

    /// @inheritdoc IIssuers
    function issuerOf(
        uint64 chainId,
        uint256 assetType
    ) external view returns (address issuer, uint64 epoch, bool suspended) {
        uint256 terms = _termsAt(chainId, assetType);
        return (_issuerIn(terms), uint64(terms >> ISSUER_EPOCH), (terms >> SUSPENDED) & 1 == 1);
    }

    function _nextSequence() internal view override returns (uint64) {
        return uint64(_head >> SEQUENCE);
    }

    function _onRegistered(uint64 chainId, uint256 assetType, bool isFirst) internal override {
        Asset storage registered = _assets[chainId][assetType];
        uint256 terms = uint8(registered.standard);
        if (chainId != block.chainid) {
            _commitTerms[chainId][assetType] = terms;
        } else if (!isFirst) {
            _commitTerms[chainId][assetType] = terms | (1 << FURTHER);
        } else {
            address token = registered.token;
            (bool answered, uint256 issuer) = _ask(token, abi.encodeCall(IIssued.issuer, ()));
            _commitTerms[chainId][assetType] = terms;
            // A word that is no address names no issuer.
            if (answered && issuer != 0 && issuer >> 160 == 0)
                _setIssuer(token, address(uint160(issuer)));
        }
    }

    function _setIssuer(address token, address issuer) private {
        emit IssuerChanged(token, issuer, _putIssuer(token, issuer, 0));
    }

    /// @dev Stores the issuer and raises the epoch.
    function _putIssuer(
        address token,
        address issuer,
        uint256 suspended
    ) private returns (uint64 epoch) {
        uint256 terms = _firstTermsOf(token);
        epoch = uint64(terms >> ISSUER_EPOCH) + 1;
        _commitTerms[uint64(block.chainid)][_firstOf[token]] =
            uint8(terms) |
            (uint256(uint160(issuer)) << ISSUER) |
            (uint256(epoch) << ISSUER_EPOCH) |
            (suspended << SUSPENDED);
    }

    function _requireSpeaker(address token) private view {
        if (_firstOf[token] == 0) revert IssuerUnknown(token);
        if (!_speaksFor(msg.sender, token)) revert NotTokenOwner(token, msg.sender);
    }
}
