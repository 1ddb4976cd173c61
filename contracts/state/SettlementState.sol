// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ISSUER} from "../libraries/Consents.sol";
import {CommitteeState} from "./Committee.sol";
import {VaultState} from "./VaultState.sol";

/// @title The storage that the settlement contract and its {Administration} share: all that it has.
/// @dev Both inherit this behind the roles and before anything else with storage, so that their
/// storage layouts are the same.
abstract contract SettlementState is CommitteeState, VaultState {
    struct Change {
        address issuer;
        uint64 activeFrom;
    }

    /// @dev A key that may transfer an owner's vaults. Each time is written once.
    struct Session {
        uint64 authorizedAt;
        uint64 until;
        uint64 revokedAt;
        /// @dev Most quantized units of one record.
        uint64 limit;
        /// @dev Zero for every asset.
        uint256 assetType;
    }

    /// @dev A signer's word on L1 about a list of transfers. Each time is written once.
    struct Approval {
        uint64 approvedAt;
        uint64 cancelledAt;
    }

    uint256 internal constant SEQUENCE = 64;
    uint256 internal constant EPOCH = 128;
    uint256 internal constant PAUSED = 192;
    uint256 internal constant MAKINGS = 193;
    uint256 internal constant FURTHER = 233;
    uint256 internal constant ROLLUP_VAULTS = 1 << 15;

    /// @dev One word, because every commit reads and writes it: count of validium batches (bits 0
    /// to 31), of rollup batches (32 to 63), sequence of the next commit (64 to 127), the
    /// committee's epoch (128 to 191), whether committing is paused (192), count of makings (193 to
    /// 255). No chain has the gas for 2^42 makings, whose ids would be invalid.
    uint256 internal _head;
    /// @dev The word that a commit reads of an asset: its standard (bits 0 to 7), its issuer (8 to
    /// 167), the issuer's epoch (168 to 231), whether the issuer is suspended (232), whether the
    /// token's first asset holds the issuer (233). So all assets of a token have one issuer.
    mapping(uint64 chainId => mapping(uint256 assetType => uint256)) internal _commitTerms;
    mapping(address token => Change) internal _scheduledIssuer;
    mapping(address operator => uint64 activeFrom) internal _scheduledOperator;

    /// @dev Roots of completed left subtrees, by mode and height. Entry h is valid when bit h of
    /// the count is set.
    bytes32[32][2] internal _frontier;

    bytes32 internal _history;

    mapping(address owner => mapping(address key => Session)) internal _sessions;
    mapping(address signer => mapping(bytes32 digest => Approval)) internal _approvals;

    /// @dev The word of an asset, with its token's issuer. Zero when nobody registered the asset.
    function _termsAt(uint64 chainId, uint256 assetType) internal view returns (uint256 terms) {
        terms = _commitTerms[chainId][assetType];
        if ((terms >> FURTHER) & 1 == 1) terms = _firstTermsOf(_assets[chainId][assetType].token);
    }

    function _issuerIn(uint256 terms) internal pure returns (address) {
        return address(uint160(terms >> ISSUER));
    }

    /// @dev The word of a token's first asset. The token's other assets have the same standard.
    function _firstTermsOf(address token) internal view returns (uint256) {
        return _commitTerms[uint64(block.chainid)][_firstOf[token]];
    }
}
