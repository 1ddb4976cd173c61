// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {MintingBlobScheme} from "../interfaces/Model.sol";

/// @title The schemes of minting blobs; docs/protocol.md 1.
library MintingBlob {
    error MintingBlobInvalid(bytes mintingBlob);

    /// @dev The decimal digits of 2^256 - 1.
    uint256 private constant MAX_DIGITS = 78;

    /// @notice The token id of a minting blob of any scheme.
    function idOf(
        MintingBlobScheme scheme,
        bytes memory mintingBlob
    ) internal pure returns (uint256 id) {
        if (scheme == MintingBlobScheme.Raw32) return rawTokenId(mintingBlob);
        if (scheme == MintingBlobScheme.Mintmark) return tokenId(mintingBlob);
        (id, ) = imxTokenId(mintingBlob);
    }

    /// @notice The token id of a minting blob of scheme `mintmark`: the number of a canonical
    /// decimal, or the hash of any other minting blob.
    function tokenId(bytes memory mintingBlob) internal pure returns (uint256 id) {
        bool isDecimal;
        (isDecimal, id) = decimal(mintingBlob, 0, mintingBlob.length);
        if (!isDecimal) id = uint256(keccak256(mintingBlob));
    }

    /// @notice The token id and where the blueprint starts (it ends before the last byte) of a
    /// minting blob of scheme `imx`: `{id}:{blueprint}`.
    function imxTokenId(
        bytes memory mintingBlob
    ) internal pure returns (uint256 id, uint256 blueprintStart) {
        unchecked {
            uint256 end = 1;
            while (end < mintingBlob.length && mintingBlob[end] != "}") ++end;
            bool valid;
            (valid, id) = decimal(mintingBlob, 1, end);
            blueprintStart = end + 3;
            valid =
                valid &&
                mintingBlob.length > blueprintStart &&
                mintingBlob[0] == "{" &&
                mintingBlob[end + 1] == ":" &&
                mintingBlob[end + 2] == "{" &&
                mintingBlob[mintingBlob.length - 1] == "}";
            if (!valid) revert MintingBlobInvalid(mintingBlob);
        }
    }

    /// @notice The token id of a minting blob of scheme `raw32`: its 32 bytes.
    function rawTokenId(bytes memory mintingBlob) internal pure returns (uint256) {
        if (mintingBlob.length != 32) revert MintingBlobInvalid(mintingBlob);
        return uint256(bytes32(mintingBlob));
    }

    /// @notice Whether the bytes from `start` to before `end`, all within `text`, are a canonical
    /// decimal below 2^256, and its value.
    /// @dev It reads up to 32 digits at once: a loop over them would cost three times as much.
    function decimal(
        bytes memory text,
        uint256 start,
        uint256 end
    ) internal pure returns (bool valid, uint256 value) {
        assembly ("memory-safe") {
            let digits := sub(end, start)
            if lt(sub(digits, 1), MAX_DIGITS) {
                // A word at this place and n behind it ends with digit n.
                let place := add(text, start)
                let lead := byte(0, mload(add(place, 32)))
                // The first word has those digits that fill no whole word behind it.
                let count := add(and(sub(digits, 1), 31), 1)
                let done := 0
                valid := or(eq(digits, 1), iszero(eq(lead, 0x30)))
                for {} 1 {} {
                    done := add(done, count)
                    // One digit a byte. The bytes in front of the first digit become zeros.
                    let unused := shl(3, sub(32, count))
                    let word := xor(
                        shr(unused, shl(unused, mload(add(place, done)))),
                        shr(
                            unused,
                            0x3030303030303030303030303030303030303030303030303030303030303030
                        )
                    )
                    // A byte above 9 sets its highest bit in the sum, or has that bit itself.
                    let sum := add(
                        word,
                        0x7676767676767676767676767676767676767676767676767676767676767676
                    )
                    valid := and(
                        valid,
                        iszero(
                            and(
                                or(word, sum),
                                0x8080808080808080808080808080808080808080808080808080808080808080
                            )
                        )
                    )
                    // Each line joins two neighbours: high * 10^n + low. No lane overflows.
                    word := and(
                        shr(8, mul(word, add(shl(8, 1), 10))),
                        0x00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff
                    )
                    word := and(
                        shr(16, mul(word, add(shl(16, 1), 100))),
                        0x0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff
                    )
                    word := and(
                        shr(32, mul(word, add(shl(32, 1), 10000))),
                        0x00000000ffffffff00000000ffffffff00000000ffffffff00000000ffffffff
                    )
                    word := and(
                        shr(64, mul(word, add(shl(64, 1), 100000000))),
                        0x0000000000000000ffffffffffffffff0000000000000000ffffffffffffffff
                    )
                    word := shr(128, mul(word, add(shl(128, 1), 10000000000000000)))
                    value := add(mul(value, 100000000000000000000000000000000), word)
                    if or(eq(done, digits), iszero(valid)) {
                        break
                    }
                    count := 32
                }
                // 2^256 has the most digits, and is below 1.2 * 10^77. What begins with 1 and
                // overflows wraps to less than 0.85 * 10^77, which is below 3 * 2^254, and that is
                // below 10^77.
                if eq(digits, MAX_DIGITS) {
                    valid := and(valid, and(eq(lead, 0x31), iszero(lt(value, shl(254, 3)))))
                }
                value := mul(value, valid)
            }
        }
    }
}
