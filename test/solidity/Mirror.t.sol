// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {expect} from "./support/Expect.sol";
import {MirrorHandler} from "./support/MirrorHandler.sol";
import {deploy} from "./support/Vm.sol";

/// @title What holds at a mirror after every sequence of what relayers, members, owners and thieves may do.
contract MirrorInvariants {
    MirrorHandler private _handler;

    function setUp() external {
        _handler = MirrorHandler(deploy("test/solidity/support/MirrorHandler.sol/MirrorHandler", ""));
    }

    /// @dev Read by the test runner.
    function targetContracts() external view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(_handler);
    }

    /// @dev All after each sequence: to find one costs more than to check it.
    function invariant_stateOnlyGrowsVaultsNeverChangeAndPayWhatTheyHoldHereOnly() external view {
        _check();
    }

    /// @dev They would hold as well of a mirror that refuses everything: this one does not.
    function test_theActionsReachWhatTheyAreFor() external {
        for (uint256 i; i < 300; ++i) {
            uint256 random = uint256(keccak256(abi.encode(i)));
            uint8 manner = uint8(random >> 80);
            if (i % 10 == 0) _handler.commitAtSource(random, random, random % 8 < 4);
            else if (i % 10 == 1) _handler.advance(random);
            else if (i % 10 == 2) _handler.advanceWrongly(random, manner);
            else if (i % 10 == 3) _handler.importBatch(random);
            else if (i % 10 == 4) _handler.importWrongly(random, manner, uint64(random >> 16) % 32);
            else if (i % 10 == 5) _handler.wait(random);
            else if (i % 50 == 6) _handler.changeCommittee(manner);
            else _handler.withdraw(random, uint64(random >> 16) & ~uint64(1), manner % 2, address(uint160(random >> 96)));
        }
        expect(_handler.withdrawals() >= 20, "hardly any withdrawal was paid");
        expect(_handler.voids() >= 5, "hardly any duplicate was voided");
        expect(_handler.refusals() >= 60, "hardly anything was refused");
        _check();
    }

    function _check() private view {
        _handler.checkState();
        _handler.checkHeaders();
        _handler.checkVaults();
        _handler.checkSupplies();
    }
}
