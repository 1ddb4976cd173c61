// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title The schemes of minting blobs; docs/protocol.md 1.
library MintingBlob {
    error BlobInvalid(bytes blob);

    /// @dev The decimal digits of 2^256 - 1.
    uint256 private constant MAX_DIGITS = 78;

    /// @notice The token id of a blob of scheme `mintmark`: the number of a canonical decimal, or
    /// the hash of any other blob.
    function tokenId(bytes memory blob) internal pure returns (uint256 id) {
        bool isDecimal;
        (isDecimal, id) = decimal(blob, 0, blob.length);
        if (!isDecimal) id = uint256(keccak256(blob));
    }

    /// @notice The token id and where the blueprint starts (it ends before the last byte) of a blob
    /// of scheme `imx`: `{id}:{blueprint}`.
    function imxTokenId(
        bytes memory blob
    ) internal pure returns (uint256 id, uint256 blueprintStart) {
        unchecked {
            uint256 end = 1;
            while (end < blob.length && blob[end] != "}") ++end;
            bool valid;
            (valid, id) = decimal(blob, 1, end);
            blueprintStart = end + 3;
            valid =
                valid &&
                blob.length > blueprintStart &&
                blob[0] == "{" &&
                blob[end + 1] == ":" &&
                blob[end + 2] == "{" &&
                blob[blob.length - 1] == "}";
            if (!valid) revert BlobInvalid(blob);
        }
    }

    /// @notice The token id of a blob of scheme `raw32`: its 32 bytes.
    function rawTokenId(bytes memory blob) internal pure returns (uint256) {
        if (blob.length != 32) revert BlobInvalid(blob);
        return uint256(bytes32(blob));
    }

    /// @notice Whether the bytes from `start` to before `end`, all within `text`, are a canonical
    /// decimal below 2^256, and its value.
    function decimal(
        bytes memory text,
        uint256 start,
        uint256 end
    ) internal pure returns (bool valid, uint256 value) {
        unchecked {
            uint256 digits = end - start;
            if (end <= start || digits > MAX_DIGITS) return (false, 0);
            uint256 lead;
            assembly ("memory-safe") {
                let at := add(add(text, 0x20), start)
                lead := xor(byte(0, mload(at)), 0x30)
                valid := iszero(and(iszero(lead), gt(digits, 1)))
                for {
                    let behind := add(at, digits)
                } lt(at, behind) {
                    at := add(at, 1)
                } {
                    let digit := xor(byte(0, mload(at)), 0x30)
                    valid := and(valid, lt(digit, 10))
                    value := add(mul(value, 10), digit)
                }
            }
            // 2^256 has the most digits, and is below 1.2 * 10^77. What begins with 1 and overflows
            // wraps to less than 0.85 * 10^77, which is below 3 * 2^254, and that is below 10^77.
            if (digits == MAX_DIGITS && (lead != 1 || value < 3 << 254)) valid = false;
            if (!valid) value = 0;
        }
    }
}
