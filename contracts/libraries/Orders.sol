// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title The EIP-712 struct hashes of orders; docs/protocol.md 11.
library Orders {
    bytes32 private constant ITEM_TYPEHASH = keccak256(
        "Item(address token,uint256 id,uint256 amount)"
    );
    bytes32 private constant SHARE_TYPEHASH = keccak256("Share(address to,uint256 amount)");
    bytes32 private constant ORDER_TYPEHASH = keccak256(
        "Order(Item give,Item want,Share[] shares,address taker,uint64 vaultId,uint64 withdrawnBefore,uint64 deadline)Item(address token,uint256 id,uint256 amount)Share(address to,uint256 amount)"
    );

    /// @dev to:20 units:u64.
    uint256 internal constant SHARE_BYTES = 28;

    /// @notice An amount of a token.
    /// @param amount Base units.
    function item(address token, uint256 id, uint256 amount) internal pure returns (bytes32 hash) {
        bytes32 typeHash = ITEM_TYPEHASH;
        assembly ("memory-safe") {
            let free := mload(0x40)
            mstore(free, typeHash)
            mstore(add(free, 0x20), token)
            mstore(add(free, 0x40), id)
            mstore(add(free, 0x60), amount)
            hash := keccak256(free, 0x80)
        }
    }

    /// @notice The array of an order's shares.
    /// @param packed Whole shares of 28 bytes.
    /// @param quantum Base units of one unit.
    function shares(bytes calldata packed, uint256 quantum) internal pure returns (bytes32 hash) {
        bytes32 typeHash = SHARE_TYPEHASH;
        assembly ("memory-safe") {
            // Memory: the three words of the present share, then the hashes of the shares so far.
            let share := mload(0x40)
            let hashes := add(share, 0x60)
            let next := hashes
            mstore(share, typeHash)
            let end := add(packed.offset, packed.length)
            for {
                let from := packed.offset
            } lt(from, end) {
                from := add(from, SHARE_BYTES)
            } {
                let word := calldataload(from)
                mstore(add(share, 0x20), shr(96, word))
                mstore(add(share, 0x40), mul(and(shr(32, word), 0xffffffffffffffff), quantum))
                mstore(next, keccak256(share, 0x60))
                next := add(next, 0x20)
            }
            hash := keccak256(hashes, sub(next, hashes))
        }
    }

    /// @notice An owner gives units of a vault, and receives others.
    function order(
        bytes32 give,
        bytes32 want,
        bytes32 sharesHash,
        address taker,
        uint64 vaultId,
        uint64 withdrawnBefore,
        uint64 deadline
    ) internal pure returns (bytes32 hash) {
        bytes32 typeHash = ORDER_TYPEHASH;
        assembly ("memory-safe") {
            let free := mload(0x40)
            mstore(free, typeHash)
            mstore(add(free, 0x20), give)
            mstore(add(free, 0x40), want)
            mstore(add(free, 0x60), sharesHash)
            mstore(add(free, 0x80), taker)
            mstore(add(free, 0xa0), vaultId)
            mstore(add(free, 0xc0), withdrawnBefore)
            mstore(add(free, 0xe0), deadline)
            hash := keccak256(free, 0x100)
        }
    }
}
