// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Handler} from "./support/Handler.sol";
import {deploy} from "./support/Vm.sol";

/// @dev What holds after every sequence of what owners, operators, watchers and thieves may do.
contract SettlementInvariants {
    Handler private _handler;

    function setUp() external {
        _handler = Handler(deploy("test/solidity/support/Handler.sol/Handler", ""));
    }

    function targetContracts() external view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(_handler);
    }

    /// @dev All after each sequence: to find one costs more than to check it.
    function invariant_headersRootsVaultsAndSupplyHoldAndNobodyTakesWhatIsNotTheirs() external view {
        require(_handler.headersHold(), "a header has changed");
        require(_handler.rootsHold(), "a state root is not that of the batches committed");
        require(_handler.vaultsHold(), "a vault has paid something else than its owner asked, or more than it holds");
        require(_handler.supplyHolds(), "minted on L1 is not what was withdrawn, or not to the earlier card's owner");
        string memory complaint = _handler.complaint();
        require(bytes(complaint).length == 0, complaint);
    }
}
