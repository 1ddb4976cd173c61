// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title Blobs of packed digits: four bits for each character of 0x30 to 0x3f; docs/protocol.md 4.
/// @notice A text is left-aligned in its word. Callers guarantee that `digits` is 1 to 32.
library DigitText {
    /// @dev The text of packed digits, left-aligned. Nibble n is the character 0x30 + n. Each line
    /// doubles the gaps between the nibbles, until each has a byte.
    function expand(uint256 packed, uint256 digits) internal pure returns (uint256 text) {
        assembly ("memory-safe") {
            let x := packed
            x := and(
                or(x, shl(64, x)),
                0x0000000000000000ffffffffffffffff0000000000000000ffffffffffffffff
            )
            x := and(
                or(x, shl(32, x)),
                0x00000000ffffffff00000000ffffffff00000000ffffffff00000000ffffffff
            )
            x := and(
                or(x, shl(16, x)),
                0x0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff
            )
            x := and(
                or(x, shl(8, x)),
                0x00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff
            )
            x := and(
                or(x, shl(4, x)),
                0x0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f
            )
            text := shl(
                shl(3, sub(32, digits)),
                add(x, 0x3030303030303030303030303030303030303030303030303030303030303030)
            )
        }
    }

    /// @dev The first text of a consecutive run. It has only decimal digits and no leading zero, so
    /// that it can be counted up.
    function isDecimal(uint256 packed, uint256 digits) internal pure returns (bool) {
        unchecked {
            for (uint256 i; i < digits; ++i) {
                if ((packed >> (4 * i)) & 0xf > 9) return false;
            }
            return
                packed >> (4 * digits) == 0 && (digits == 1 || packed >> (4 * (digits - 1)) != 0);
        }
    }

    /// @dev The next number as text; 0 when it has one digit more.
    function successor(uint256 text, uint256 digits) internal pure returns (uint256 next) {
        unchecked {
            next = text;
            uint256 place = 256 - 8 * digits;
            for (;;) {
                next += 1 << place;
                if ((next >> place) & 0xff != 0x3a) return next;
                next -= 10 << place;
                place += 8;
                if (place == 256) return 0;
            }
        }
    }
}
