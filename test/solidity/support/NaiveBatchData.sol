// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Standard} from "../../../contracts/interfaces/Model.sol";
import {NaiveTree} from "./NaiveTree.sol";

/// @dev The registry of these tests: every asset type has a standard.
function standardOf(uint256 assetType) pure returns (Standard) {
    return Standard(1 + assetType % 3);
}

/// @title docs/protocol.md 4 read literally: one field after another, each vault spelled out. Slow, and meant to be obvious.
contract NaiveBatchData {
    struct Entry {
        uint256 length;
        uint256 asset;
        uint256 ownerForm;
        uint256 blobForm;
        uint256 amountForm;
        uint256 blobLength;
        address owner;
        string first;
    }

    error Refused(string why);

    bytes private _data;
    uint256 private _cursor;
    uint64[] private _chainIds;
    uint256[] private _assetTypes;
    address[] private _owners;
    bytes32[] private _leaves;
    /// @dev By index of the asset: whether a vault is of it.
    mapping(uint256 index => bool) private _used;

    /// @notice The root of the batch's vaults and number of slots; reverts with {Refused}.
    function root(bytes calldata data, uint64 firstVaultId, uint256 maxVaults)
        external
        returns (bytes32, uint256)
    {
        _data = data;
        (_cursor, _chainIds, _assetTypes) = (0, new uint64[](0), new uint256[](0));
        (_owners, _leaves) = (new address[](0), new bytes32[](0));
        if (_number(1) != 1) revert Refused("version");
        _readAssets();
        for (uint256 count = _number(2); count > 0; --count) _owners.push(address(uint160(_number(20))));
        do _run(firstVaultId, maxVaults);
        while (_cursor < data.length);
        for (uint256 i; i < _chainIds.length; ++i) if (!_used[i]) revert Refused("unused asset");
        return (NaiveTree.root(_leaves, NaiveTree.heightOf(_leaves.length)), _leaves.length);
    }

    function _readAssets() private {
        uint256 count = _number(2);
        if (count > 255) revert Refused("too many assets");
        for (uint256 i; i < count; ++i) {
            (uint64 chainId, uint256 assetType) = (uint64(_number(8)), _number(32));
            bool ascends = i == 0 || chainId > _chainIds[i - 1] || (chainId == _chainIds[i - 1] && assetType > _assetTypes[i - 1]);
            if (!ascends) revert Refused("order of the assets");
            _chainIds.push(chainId);
            _assetTypes.push(assetType);
            _used[i] = false;
        }
    }

    function _run(uint64 firstVaultId, uint256 maxVaults) private {
        Entry memory entry;
        entry.asset = _number(2);
        bool isVoid = entry.asset == 0xffff;
        if (!isVoid) {
            uint256 form = _number(1);
            (entry.amountForm, entry.blobForm, entry.ownerForm) = (form >> 4, (form >> 2) & 3, form & 3);
        }
        entry.length = _number(3);
        if (entry.length == 0) revert Refused("empty run");
        if (_leaves.length + entry.length > maxVaults) revert Refused("too many vaults");
        if (isVoid) {
            for (uint256 i; i < entry.length; ++i) _leaves.push(0);
            return;
        }
        _checkForms(entry);
        if (entry.ownerForm == 3) entry.owner = _ownerAt(_number(2));
        if (entry.blobForm != 0) entry.blobLength = _number(1);
        if (entry.blobForm >= 2 && (entry.blobLength == 0 || entry.blobLength > 32)) revert Refused("digits");
        if (entry.blobForm == 3) entry.first = _firstOfRange(entry);
        for (uint256 i; i < entry.length; ++i) _leaves.push(_record(entry, firstVaultId + uint64(_leaves.length), i));
    }

    function _checkForms(Entry memory entry) private {
        if (entry.asset >= _chainIds.length) revert Refused("asset index");
        _used[entry.asset] = true;
        Standard standard = standardOf(_assetTypes[entry.asset]);
        if (entry.amountForm > 8) revert Refused("amount form");
        if (standard == Standard.ERC721 && entry.amountForm != 0) revert Refused("amount of an ERC-721");
        if ((standard == Standard.ERC20) != (entry.blobForm == 0)) revert Refused("blob form");
    }

    function _record(Entry memory entry, uint64 vaultId, uint256 place) private returns (bytes32) {
        address owner = entry.owner;
        if (entry.ownerForm == 0) owner = address(uint160(_number(20)));
        else if (entry.ownerForm != 3) owner = _ownerAt(_number(entry.ownerForm));
        uint256 amount = entry.amountForm == 0 ? 1 : _number(entry.amountForm);
        if (amount == 0 || amount > 2 ** 63 - 1) revert Refused("amount");
        bytes memory blob = _blob(entry, place);
        bytes memory head = abi.encodePacked(uint8(0), vaultId, _chainIds[entry.asset], owner, _assetTypes[entry.asset]);
        return keccak256(abi.encodePacked(head, uint64(amount), blob));
    }

    function _blob(Entry memory entry, uint256 place) private returns (bytes memory blob) {
        if (entry.blobForm == 0) return "";
        if (entry.blobForm == 1) {
            uint256 length = entry.blobLength == 0 ? _number(1) : entry.blobLength;
            if (length == 0) revert Refused("empty blob");
            return _bytes(length);
        }
        return entry.blobForm == 2 ? _packed(entry.blobLength) : _decimal(_value(bytes(entry.first)) + place, entry.blobLength);
    }

    function _firstOfRange(Entry memory entry) private returns (string memory) {
        bytes memory first = _packed(entry.blobLength);
        for (uint256 i; i < first.length; ++i) if (first[i] > "9") revert Refused("digit above 9");
        if (first.length > 1 && first[0] == "0") revert Refused("leading zero");
        if (_value(first) + entry.length - 1 >= 10 ** entry.blobLength) revert Refused("range overflow");
        return string(first);
    }

    /// @dev So many characters 0x30 to 0x3f, a nibble each, a zero nibble in front of an odd number.
    function _packed(uint256 digits) private returns (bytes memory text) {
        bytes memory packed = _bytes((digits + 1) / 2);
        text = new bytes(digits);
        uint256 skipped = digits % 2;
        if (skipped == 1 && uint8(packed[0]) >> 4 != 0) revert Refused("front nibble");
        for (uint256 i; i < digits; ++i) {
            uint8 pair = uint8(packed[(i + skipped) / 2]);
            text[i] = bytes1(0x30 + ((i + skipped) % 2 == 0 ? pair >> 4 : pair & 0xf));
        }
    }

    function _decimal(uint256 value, uint256 digits) private pure returns (bytes memory text) {
        text = new bytes(digits);
        for (uint256 i = digits; i > 0; --i) (text[i - 1], value) = (bytes1(uint8(0x30 + value % 10)), value / 10);
    }

    function _value(bytes memory digits) private pure returns (uint256 value) {
        for (uint256 i; i < digits.length; ++i) value = value * 10 + uint8(digits[i]) - 0x30;
    }

    function _ownerAt(uint256 index) private view returns (address) {
        if (index >= _owners.length) revert Refused("owner index");
        return _owners[index];
    }

    function _number(uint256 width) private returns (uint256 value) {
        bytes memory read = _bytes(width);
        for (uint256 i; i < width; ++i) value = value << 8 | uint8(read[i]);
    }

    function _bytes(uint256 width) private returns (bytes memory read) {
        if (_cursor + width > _data.length) revert Refused("truncated");
        read = new bytes(width);
        for (uint256 i; i < width; ++i) read[i] = _data[_cursor + i];
        _cursor += width;
    }
}
