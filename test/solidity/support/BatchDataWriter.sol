// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Standard} from "../../../contracts/interfaces/Model.sol";
import {standardOf} from "./NaiveBatchData.sol";

/// @title Batch data drawn from a seed: every form of every field, now and then one that the grammar forbids.
library BatchDataWriter {
    struct Source {
        uint256 seed;
        uint256 drawn;
        uint256 assets;
        uint256 owners;
    }

    function write(uint256 seed) internal pure returns (bytes memory data) {
        Source memory source = Source(seed, 0, 0, 0);
        source.assets = 1 + draw(source, 4);
        source.owners = draw(source, 6);
        data = abi.encodePacked(uint8(1), uint16(source.assets), _assets(source), uint16(source.owners));
        for (uint256 i; i < source.owners; ++i) data = abi.encodePacked(data, uint160(draw(source, 1 << 160)));
        // A run of each asset, and some more.
        uint256 runs = draw(source, 40) == 0 ? 1 + draw(source, 4) : source.assets + draw(source, 3);
        for (uint256 i; i < runs; ++i) {
            if (draw(source, 8) == 0) data = abi.encodePacked(data, uint16(0xffff), uint24(1 + draw(source, 12)));
            data = abi.encodePacked(data, _run(source, data, i < source.assets ? i : draw(source, source.assets)));
        }
    }

    /// @dev Ascending, mostly.
    function _assets(Source memory source) private pure returns (bytes memory packed) {
        uint256 chainId;
        uint256 assetType;
        for (uint256 i; i < source.assets; ++i) {
            uint256 step = draw(source, 2);
            chainId += step;
            assetType = step == 0 && draw(source, 40) != 0 ? assetType + 1 + draw(source, 1 << 200) : draw(source, 1 << 250);
            packed = abi.encodePacked(packed, uint64(chainId), assetType);
        }
    }

    /// @dev A number below `bound`.
    function draw(Source memory source, uint256 bound) internal pure returns (uint256) {
        return uint256(keccak256(abi.encode(source.seed, source.drawn++))) % bound;
    }

    function _run(Source memory source, bytes memory before, uint256 asset) private pure returns (bytes memory run) {
        uint256 length = 1 + draw(source, 12);
        (uint256 ownerForm, uint256 blobForm, uint256 amountForm) = _forms(source, _standardAt(before, asset));
        run = abi.encodePacked(uint16(asset), uint8(amountForm << 4 | blobForm << 2 | ownerForm), uint24(length));
        if (ownerForm == 3) run = abi.encodePacked(run, uint16(_ownerIndex(source)));
        uint256 blobLength = blobForm == 1 ? _rawLength(source) : 1 + draw(source, 32);
        if (blobForm != 0) run = abi.encodePacked(run, uint8(blobLength));
        if (blobForm == 3) run = abi.encodePacked(run, _decimal(source, blobLength));
        for (; length > 0; --length) {
            if (ownerForm == 0) run = abi.encodePacked(run, uint160(draw(source, 1 << 160)));
            if (ownerForm == 1) run = abi.encodePacked(run, uint8(_ownerIndex(source)));
            if (ownerForm == 2) run = abi.encodePacked(run, uint16(_ownerIndex(source)));
            if (amountForm != 0) run = abi.encodePacked(run, _low(1 + draw(source, 1 << 63), amountForm));
            if (blobForm == 1) run = abi.encodePacked(run, _raw(source, blobLength));
            if (blobForm == 2) run = abi.encodePacked(run, _low(draw(source, 1 << (4 * blobLength)), (blobLength + 1) / 2));
        }
    }

    /// @dev Those that fit the standard, mostly.
    function _forms(Source memory source, Standard standard)
        private
        pure
        returns (uint256 ownerForm, uint256 blobForm, uint256 amountForm)
    {
        ownerForm = source.owners == 0 ? 0 : draw(source, 4);
        blobForm = standard == Standard.ERC20 ? 0 : 1 + draw(source, 3);
        amountForm = standard == Standard.ERC721 ? 0 : draw(source, 9);
        if (draw(source, 40) == 0) (blobForm, amountForm) = (draw(source, 4), draw(source, 16));
    }

    function _ownerIndex(Source memory source) private pure returns (uint256) {
        return draw(source, source.owners + (draw(source, 60) == 0 ? 2 : 0));
    }

    /// @dev None (each record has its own), within a word, or longer.
    function _rawLength(Source memory source) private pure returns (uint256) {
        uint256 kind = draw(source, 3);
        return kind == 0 ? 0 : kind == 1 ? 1 + draw(source, 32) : 1 + draw(source, 255);
    }

    function _raw(Source memory source, uint256 blobLength) private pure returns (bytes memory) {
        uint256 length = blobLength == 0 ? draw(source, 60) + (draw(source, 50) == 0 ? 0 : 1) : blobLength;
        bytes memory raw = new bytes(length);
        for (uint256 i; i < length; ++i) raw[i] = bytes1(uint8(draw(source, 256)));
        return blobLength == 0 ? abi.encodePacked(uint8(length), raw) : raw;
    }

    /// @dev Packed digits; often ending in nines, so that the run carries, and sometimes overflows.
    function _decimal(Source memory source, uint256 digits) private pure returns (bytes memory) {
        uint256 packed = digits == 1 ? draw(source, 10) : 1 + draw(source, 9);
        uint256 nines = draw(source, digits + 1);
        for (uint256 i = 1; i < digits; ++i) packed = packed << 4 | (i + nines >= digits ? 9 : draw(source, 10));
        return _low(packed, (digits + 1) / 2);
    }

    /// @dev The lowest `width` bytes.
    function _low(uint256 value, uint256 width) private pure returns (bytes memory low) {
        low = new bytes(width);
        for (uint256 i; i < width; ++i) low[width - 1 - i] = bytes1(uint8(value >> (8 * i)));
    }

    function _standardAt(bytes memory data, uint256 asset) private pure returns (Standard) {
        uint256 assetType;
        uint256 start = 3 + 40 * asset + 8;
        for (uint256 i; i < 32; ++i) assetType = assetType << 8 | uint8(data[start + i]);
        return standardOf(assetType);
    }
}
