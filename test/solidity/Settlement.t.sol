// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Handler} from "./support/Handler.sol";

/// @dev What holds after every sequence of what owners, operators, watchers and thieves may do.
contract SettlementInvariants {
    Handler private _handler;

    function setUp() external {
        _handler = new Handler();
    }

    function targetContracts() external view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(_handler);
    }

    function invariant_committedHeadersNeverChange() external view {
        require(_handler.headersHold(), "a header has changed");
    }

    function invariant_stateOnlyGrows() external view {
        require(_handler.rootsHold(), "a state root is not that of the batches committed");
    }

    function invariant_withdrawnIsWhatOwnersAskedAndNeverMoreThanTheVault() external view {
        require(_handler.vaultsHold(), "a vault has paid something else");
    }

    function invariant_mintedOnL1IsWhatWasWithdrawnAndTheEarlierCardWins() external view {
        require(_handler.supplyHolds(), "the tokens do not add up");
    }

    function invariant_nobodyTakesWhatIsNotTheirsAndNoOwnerIsRefused() external view {
        string memory complaint = _handler.complaint();
        require(bytes(complaint).length == 0, complaint);
    }
}
