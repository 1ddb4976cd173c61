// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC20Metadata} from "@openzeppelin/contracts/token/ERC20/extensions/IERC20Metadata.sol";
import {IERC721Metadata} from "@openzeppelin/contracts/token/ERC721/extensions/IERC721Metadata.sol";
import {IStateCommitment} from "../interfaces/IStateCommitment.sol";
import {EscrowERC20} from "./EscrowERC20.sol";
import {EscrowERC721} from "./EscrowERC721.sol";

/// @title Creates escrows, each at the address that its own terms give (CREATE2).
/// @notice So whoever knows the factory's address knows the code of each of its escrows. Anybody
/// can create one, once.
contract EscrowFactory {
    event EscrowCreated(
        address indexed settlement,
        address indexed token,
        uint256 quantum,
        address escrow
    );

    function createERC20(
        IStateCommitment settlement,
        IERC20Metadata token,
        uint256 quantum
    ) external returns (EscrowERC20 escrow) {
        escrow = new EscrowERC20{salt: 0}(settlement, token, quantum);
        emit EscrowCreated(address(settlement), address(token), quantum, address(escrow));
    }

    function createERC721(
        IStateCommitment settlement,
        IERC721Metadata token
    ) external returns (EscrowERC721 escrow) {
        escrow = new EscrowERC721{salt: 0}(settlement, token);
        emit EscrowCreated(address(settlement), address(token), 1, address(escrow));
    }
}
