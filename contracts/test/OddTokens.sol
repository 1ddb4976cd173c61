// SPDX-License-Identifier: MIT
// They lie together as one subject.
// solhint-disable one-contract-per-file
pragma solidity 0.8.37;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {ERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/ERC20Permit.sol";
import {ERC721} from "@openzeppelin/contracts/token/ERC721/ERC721.sol";

/// @dev The ways in which a token treats a transfer. `Silent` answers yes and moves nothing.
enum Oddity {
    None,
    Fee,
    Silent,
    Hook
}

/// @title An ERC-20 that behaves as some old or strange tokens do.
contract OddERC20 is ERC20Permit {
    Oddity public oddity;
    address private _hooked;
    bytes private _payload;

    constructor() ERC20("Odd", "ODD") ERC20Permit("Odd") {}

    function mint(address to, uint256 amount) external {
        _mint(to, amount);
    }

    /// @notice With `Hook`, each transfer calls the target first, as ERC-777 calls the sender.
    function behave(Oddity to, address target, bytes calldata payload) external {
        (oddity, _hooked, _payload) = (to, target, payload);
    }

    function decimals() public pure override returns (uint8) {
        return 6;
    }

    function _update(address from, address to, uint256 value) internal override {
        if (from == address(0) || oddity == Oddity.None) return super._update(from, to, value);
        if (oddity == Oddity.Silent) return;
        if (oddity == Oddity.Fee) {
            super._update(from, address(0), 1);
            return super._update(from, to, value - 1);
        }
        oddity = Oddity.None;
        (bool done, bytes memory answer) = _hooked.call(_payload);
        assembly ("memory-safe") {
            if iszero(done) {
                revert(add(answer, 0x20), mload(answer))
            }
        }
        super._update(from, to, value);
        oddity = Oddity.Hook;
    }
}

/// @title An ERC-721 that can answer a transfer without moving the token.
contract OddERC721 is ERC721 {
    bool public silent;

    constructor() ERC721("Odd", "ODD") {}

    function mint(address to, uint256 tokenId) external {
        _mint(to, tokenId);
    }

    function behave(bool silent_) external {
        silent = silent_;
    }

    function transferFrom(address from, address to, uint256 tokenId) public override {
        if (!silent) super.transferFrom(from, to, tokenId);
    }
}

/// @title A token that is older than ERC-721, as CryptoKitties: its owner calls `transfer`, and
/// only an approved account calls `transferFrom`.
contract OldToken {
    string public name = "Old";
    string public symbol = "OLD";
    mapping(uint256 tokenId => address) public ownerOf;
    mapping(uint256 tokenId => address) public approvedFor;

    error NotAllowed();

    function mint(address to, uint256 tokenId) external {
        ownerOf[tokenId] = to;
    }

    function approve(address to, uint256 tokenId) external {
        if (ownerOf[tokenId] != msg.sender) revert NotAllowed();
        approvedFor[tokenId] = to;
    }

    function transfer(address to, uint256 tokenId) external {
        if (ownerOf[tokenId] != msg.sender || to == address(this)) revert NotAllowed();
        _move(to, tokenId);
    }

    function transferFrom(address from, address to, uint256 tokenId) external {
        if (approvedFor[tokenId] != msg.sender || ownerOf[tokenId] != from) revert NotAllowed();
        _move(to, tokenId);
    }

    function _move(address to, uint256 tokenId) private {
        delete approvedFor[tokenId];
        ownerOf[tokenId] = to;
    }
}
