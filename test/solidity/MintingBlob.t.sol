// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Strings} from "@openzeppelin/contracts/utils/Strings.sol";
import {MintingBlob} from "../../contracts/libraries/MintingBlob.sol";
import {expect} from "./support/Expect.sol";

/// @title Which token a minting blob names: one spelling a number, and no blob read as what it does not say.
contract MintingBlobTest {
    function testFuzz_ADecimalNamesItself(uint256 id) external pure {
        bytes memory text = bytes(Strings.toString(id));
        expect(MintingBlob.tokenId(text) == id, "not its own number");
        bytes memory padded = abi.encodePacked("0", text);
        expect(MintingBlob.tokenId(padded) == uint256(keccak256(padded)), "a leading zero was read away");
        (uint256 found, uint256 start) = MintingBlob.imxTokenId(abi.encodePacked("{", text, "}:{}"));
        expect(found == id && start == text.length + 4, "not its own number in braces");
    }

    function testFuzz_ANumberPast256BitsIsAText(uint256 id, uint8 digit) external pure {
        bytes memory text = abi.encodePacked(Strings.toString(id | (1 << 255)), Strings.toString(digit % 10));
        expect(MintingBlob.tokenId(text) == uint256(keccak256(text)), "a number was cut");
    }

    function testFuzz_ANumberOf78DigitsPast256BitsIsAText(uint256 seed, uint8 first) external pure {
        // The digits behind the first. With a 1 in front, those of 2^256 and more overflow.
        uint256 power = 10 ** 77;
        uint256 least = first % 9 == 0 ? type(uint256).max - power + 1 : 0;
        uint256 rest = least + seed % (power - least);
        bytes memory digits = bytes(Strings.toString(rest));
        bytes memory text = new bytes(78);
        for (uint256 i; i < 78; ++i) text[i] = i + digits.length < 78 ? bytes1("0") : digits[i + digits.length - 78];
        text[0] = bytes1(0x31 + first % 9);
        expect(MintingBlob.tokenId(text) == uint256(keccak256(text)), "a number was cut");
    }

    function test_TheGreatestNumberNamesItselfAndTheNextIsAText() external pure {
        bytes memory text = bytes(Strings.toString(type(uint256).max));
        expect(MintingBlob.tokenId(text) == type(uint256).max, "not its own number");
        text[text.length - 1] = "6";
        expect(MintingBlob.tokenId(text) == uint256(keccak256(text)), "2^256 was cut");
        expect(MintingBlob.tokenId(bytes(Strings.toString(10 ** 77))) == 10 ** 77, "not its own number");
    }

    function testFuzz_AnyTextIsItsNumberOrItsHash(bytes calldata text) external pure {
        uint256 id = MintingBlob.tokenId(text);
        bool isDecimal = keccak256(bytes(Strings.toString(id))) == keccak256(text);
        expect(isDecimal || id == uint256(keccak256(text)), "neither its number nor its hash");
    }

    function testFuzz_RawBytesAreTheirNumber(bytes calldata blob) external view {
        try this.readRaw(blob) returns (uint256 id) {
            expect(keccak256(abi.encodePacked(id)) == keccak256(blob), "another number");
        } catch (bytes memory reason) {
            expect(blob.length != 32 && bytes4(reason) == MintingBlob.BlobInvalid.selector, "refused");
        }
    }

    function testFuzz_BracesAreReadInOneSpelling(bytes calldata blob) external view {
        _oneSpelling(blob);
    }

    /// @dev Random bytes hardly ever have the form; these have it but for one byte.
    function testFuzz_ABrokenSpellingIsRefusedOrAnother(uint256 id, bytes calldata blueprint, uint256 place, bytes1 byte_) external view {
        bytes memory blob = abi.encodePacked("{", Strings.toString(id), "}:{", blueprint, "}");
        blob[place % blob.length] = byte_;
        _oneSpelling(blob);
    }

    /// @dev As a token calls it.
    function read(bytes calldata blob) external pure returns (uint256, uint256) {
        return MintingBlob.imxTokenId(blob);
    }

    function readRaw(bytes calldata blob) external pure returns (uint256) {
        return MintingBlob.rawTokenId(blob);
    }

    function _oneSpelling(bytes memory blob) private view {
        try this.read(blob) returns (uint256 id, uint256 start) {
            bytes memory head = abi.encodePacked("{", Strings.toString(id), "}:{");
            expect(start == head.length && blob.length > start && blob[blob.length - 1] == "}", "not in braces");
            for (uint256 i; i < head.length; ++i) expect(blob[i] == head[i], "another spelling of the number");
        } catch (bytes memory reason) {
            expect(bytes4(reason) == MintingBlob.BlobInvalid.selector, "refused without a name");
        }
    }
}
