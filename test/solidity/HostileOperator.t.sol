// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {expect} from "./support/Expect.sol";
import {HostileOperator} from "./support/HostileOperator.sol";
import {deploy} from "./support/Vm.sol";

/// @title What holds whatever a hostile operator and committee commit, and whatever the administration does meanwhile.
contract HostileOperatorInvariants {
    HostileOperator private _hostile;

    function setUp() external {
        _hostile = HostileOperator(deploy("test/solidity/support/HostileOperator.sol/HostileOperator", ""));
    }

    /// @dev Read by the test runner.
    function targetContracts() external view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(_hostile);
    }

    /// @dev All after each sequence: to find one costs more than to check it.
    function invariant_batchesNeverChangeVaultsPayWhatTheyHoldAndTheEarlierDuplicateWins() external view {
        _check();
    }

    /// @dev They would hold as well of actions that all fail: these do not.
    function test_theActionsReachWhatTheyAreFor() external {
        for (uint256 i; i < 300; ++i) {
            uint256 random = uint256(keccak256(abi.encode(i)));
            uint64 quantity = uint64(random >> 16) & ~uint64(1);
            if (i % 6 == 0) _hostile.commitRollupBatch(random, random, uint8(random >> 200));
            else if (i % 6 == 3) _hostile.commitValidiumBatch(random, random, i % 12 == 9, uint8(random >> 200));
            else if (i % 6 == 4) _hostile.wait(uint32(random));
            // The owner calls, signs, or signs a list.
            else _hostile.withdraw(random, quantity, [0, 1, 8][(random >> 80) % 3], address(uint160(random >> 96)));
        }
        // The seeds are fixed, so the count depends only on the tokens' addresses. A consent to one asset is to the first
        // of the manifest, whose order is that of the asset types, which follow from the addresses. In 80 deployments at
        // other addresses, 49 withdrawals were paid and 43 duplicates voided, or 50 and 42. Fewer than 40 mean that the
        // contract or an action has changed. An earlier version paid 39 times, because its tokens had other addresses.
        expect(_hostile.withdrawals() >= 40, "hardly any withdrawal was paid");
        expect(_hostile.voids() >= 20, "hardly any duplicate was voided");
        _check();
    }

    /// @dev Such a batch holds an item, and behind it a vault of the same asset type that names another chain.
    function test_aListPaysAVaultBesideOneOfAnotherChain() external {
        _hostile.commitValidiumBatch(0x4abbb8995f7719b5a922c226411ffd9e069183a69e86522d23f191a817, 3, true, 0);
        _hostile.withdraw(1, 0, 8, address(0xabcd));
        expect(_hostile.withdrawals() == 1, "the item was not paid");
        _check();
    }

    function _check() private view {
        _hostile.checkHeaders();
        _hostile.checkRoots();
        _hostile.checkVaults();
        _hostile.checkSupplies();
        _hostile.checkEarliestWins();
    }
}
