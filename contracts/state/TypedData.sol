// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC5267} from "@openzeppelin/contracts/interfaces/IERC5267.sol";
import {MessageHashUtils} from "@openzeppelin/contracts/utils/cryptography/MessageHashUtils.sol";

string constant DOMAIN_NAME = "Mintmark";
string constant DOMAIN_VERSION = "1";

/// @title The digests of the EIP-712 messages that this contract reads.
/// @dev The domain is that of the contract that runs this code.
abstract contract TypedData {
    bytes32 private constant DOMAIN_TYPEHASH = keccak256(
        "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"
    );

    /// @param message The message's struct hash.
    function _digestOf(bytes32 message) internal view returns (bytes32) {
        return MessageHashUtils.toTypedDataHash(_domain(), message);
    }

    function _domain() internal view virtual returns (bytes32);

    function _computedDomain() internal view returns (bytes32) {
        return
            keccak256(
                abi.encode(
                    DOMAIN_TYPEHASH,
                    keccak256(bytes(DOMAIN_NAME)),
                    keccak256(bytes(DOMAIN_VERSION)),
                    block.chainid,
                    address(this)
                )
            );
    }
}

/// @title The domain's parts, for wallets and whoever else asks.
abstract contract PublishedDomain is IERC5267 {
    /// @inheritdoc IERC5267
    function eip712Domain()
        external
        view
        returns (
            bytes1 fields,
            string memory name,
            string memory version,
            uint256 chainId,
            address verifyingContract,
            bytes32 salt,
            uint256[] memory extensions
        )
    {
        // Bits 0 to 3: the first four parts are in use.
        return (
            0x0f,
            DOMAIN_NAME,
            DOMAIN_VERSION,
            block.chainid,
            address(this),
            bytes32(0),
            new uint256[](0)
        );
    }
}

/// @title Digests with the domain's hash in the code, which saves gas.
abstract contract OwnTypedData is TypedData {
    uint256 private immutable _domainChainId = block.chainid;
    bytes32 private immutable _domainHash = _computedDomain();

    /// @dev A fork of the chain gives the contract another domain.
    function _domain() internal view override returns (bytes32) {
        return block.chainid == _domainChainId ? _domainHash : _computedDomain();
    }
}
