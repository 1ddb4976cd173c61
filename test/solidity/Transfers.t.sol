// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {expect} from "./support/Expect.sol";
import {TransferHandler} from "./support/TransferHandler.sol";

/// @title Of the owner before a record and the owner after it, exactly one can withdraw, whatever anybody does.
contract TransferInvariants {
    TransferHandler private _handler;

    function setUp() external {
        _handler = new TransferHandler();
    }

    /// @dev Read by the test runner.
    function targetContracts() external view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(_handler);
    }

    function invariant_eachVaultPaysTheAccountThatTheLedgerNamesAndNobodyElse() external {
        _handler.checkEverybody();
    }

    /// @dev It would hold as well of actions that all fail: these do not.
    function test_theActionsReachWhatTheyAreFor() external {
        for (uint256 i; i < 400; ++i) {
            uint256 a = uint256(keccak256(abi.encode("a", i)));
            uint256 b = uint256(keccak256(abi.encode("b", i)));
            if (i % 8 == 0) _handler.mint(a, b, i % 16 == 0);
            else if (i % 8 == 1) _handler.transfer(a, b);
            else if (i % 8 == 2) _handler.give(a, b, uint64(b));
            else if (i % 8 == 3 && i < 40) _handler.authorizeSession(i / 8, a, type(uint256).max, 8, 3);
            else if (i % 8 == 4) _handler.approve(a, 1 + 2 * (b >> 2));
            else if (i % 8 == 5) _handler.wait(i % 3 == 0 ? a : 1);
            else if (i % 8 == 6) i % 16 == 6 ? _handler.commitApproved() : _handler.voidDuplicate(a, b);
            else _handler.withdraw(a, b & ~uint256(1), uint64(a), true);
        }
        expect(_handler.moves() >= 20, "hardly any vault was moved");
        expect(_handler.byApproval() != 0, "no vault was moved by an approval");
        expect(_handler.transferredExits() >= 3, "hardly any transferred vault was paid");
        expect(_handler.refutations() >= 3, "hardly any record was refuted");
        _handler.checkEverybody();
    }
}
