// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title What a minting blob says, by either scheme of docs/protocol.md 1.
library MintingBlob {
    error BlobInvalid(bytes blob);

    /// @notice The token id of a blob of scheme `mintmark`: a canonical decimal is itself, anything else its hash.
    function tokenId(bytes memory blob) internal pure returns (uint256 id) {
        bool isDecimal;
        (isDecimal, id) = decimal(blob, 0, blob.length);
        if (!isDecimal) id = uint256(keccak256(blob));
    }

    /// @notice The token id and where the blueprint starts (it ends before the last byte) of a blob of scheme `imx`: `{id}:{blueprint}`.
    function imxTokenId(bytes memory blob) internal pure returns (uint256 id, uint256 blueprintStart) {
        unchecked {
            uint256 end = 1;
            while (end < blob.length && blob[end] != "}") ++end;
            bool valid;
            (valid, id) = decimal(blob, 1, end);
            blueprintStart = end + 3;
            valid = valid && blob.length > blueprintStart && blob[0] == "{" && blob[end + 1] == ":" && blob[end + 2] == "{"
                && blob[blob.length - 1] == "}";
            if (!valid) revert BlobInvalid(blob);
        }
    }

    /// @notice Whether the bytes from `start` to before `end` are a canonical decimal below 2^256, and its value.
    function decimal(bytes memory text, uint256 start, uint256 end) internal pure returns (bool valid, uint256 value) {
        unchecked {
            if (end <= start || end - start > 78 || (end - start > 1 && text[start] == "0")) return (false, 0);
            for (; start < end; ++start) {
                uint256 digit = uint256(uint8(text[start])) ^ 0x30;
                if (digit > 9 || value > (type(uint256).max - digit) / 10) return (false, 0);
                value = value * 10 + digit;
            }
            return (true, value);
        }
    }
}
