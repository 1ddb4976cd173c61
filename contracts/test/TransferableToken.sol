// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {MintingBlobScheme, Standard} from "../interfaces/Model.sol";

/// @dev A token whose vaults can be transferred, or one that answers that question in a hostile
/// way. It counts what it mints, and mints an ERC-721 id once.
contract TransferableToken {
    enum Answer {
        Yes,
        No,
        Reverts,
        Two,
        TwoWords,
        Empty,
        BurnsGas
    }

    error Refused();

    Standard public immutable standard;
    Answer public immutable answer;
    address public immutable issuer;
    address private immutable _settler;
    mapping(address holder => mapping(bytes32 mintingBlobHash => uint256)) public held;
    mapping(bytes32 mintingBlobHash => uint256) public minted;

    constructor(Standard standard_, Answer answer_, address settler, address issuer_) {
        (standard, answer, _settler, issuer) = (standard_, answer_, settler, issuer_);
    }

    function mintFor(address to, uint256 quantity, bytes calldata mintingBlob) external {
        if (msg.sender != _settler) revert Refused();
        bytes32 hash = keccak256(mintingBlob);
        if (standard == Standard.ERC721 && (minted[hash] != 0 || quantity != 1)) revert Refused();
        minted[hash] += quantity;
        held[to][hash] += quantity;
    }

    function transferable() external view returns (uint256) {
        if (answer == Answer.Reverts) revert Refused();
        uint256 burnt;
        if (answer == Answer.BurnsGas) while (true) ++burnt;
        uint256 word =
            answer == Answer.No
                ? 0
                : answer == Answer.Two
                    ? 2
                    : 1;
        uint256 size =
            answer == Answer.Empty
                ? 0
                : answer == Answer.TwoWords
                    ? 64
                    : 32;
        assembly ("memory-safe") {
            mstore(0x00, word)
            mstore(0x20, word)
            return(0x00, size)
        }
    }

    function supportsInterface(bytes4 id) external view returns (bool) {
        if (id == 0x01ffc9a7) return true;
        return
            (standard == Standard.ERC721 && id == 0x80ac58cd) ||
            (standard == Standard.ERC1155 && id == 0xd9b67a26);
    }

    function mintingBlobScheme() external pure returns (MintingBlobScheme) {
        return MintingBlobScheme.Mintmark;
    }
}
