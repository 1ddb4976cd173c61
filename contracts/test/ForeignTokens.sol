// SPDX-License-Identifier: MIT
// They refuse in the words of the originals, and lie together as one subject.
// solhint-disable one-contract-per-file, gas-custom-errors, reason-string, no-empty-blocks
pragma solidity 0.8.37;

import {Ownable} from "@openzeppelin/contracts/access/Ownable.sol";
import {AccessControl} from "@openzeppelin/contracts/access/AccessControl.sol";
import {ERC1155} from "@openzeppelin/contracts/token/ERC1155/ERC1155.sol";
import {ERC721} from "@openzeppelin/contracts/token/ERC721/ERC721.sol";
import {IMintable} from "../interfaces/IMintable.sol";

/// @dev The tokens of other engines have this in common: an owner, one minter, and no word of how
/// they read minting blobs.
abstract contract ForeignMinter is Ownable {
    address public immutable starkEx;

    error NotAuthorizedError();
    error InvalidMintAmountError();

    constructor(address minter) Ownable(msg.sender) {
        starkEx = minter;
    }

    modifier onlyStarkEx() {
        if (msg.sender != starkEx) revert NotAuthorizedError();
        _;
    }

    /// @dev StarkExpress: the first 32 bytes, whatever follows.
    function _rawId(bytes calldata mintingBlob) internal pure returns (uint256) {
        require(mintingBlob.length >= 32, "toUint256_outOfBounds");
        return uint256(bytes32(mintingBlob[:32]));
    }
}

/// @title An ERC-721 with the published interface of StarkExpress's, unchanged.
contract StarkExpressERC721 is ERC721, ForeignMinter {
    constructor(address minter) ERC721("Stark", "STRK") ForeignMinter(minter) {}

    function mintFor(address to, uint256 amount, bytes calldata mintingBlob) external onlyStarkEx {
        if (amount != 1) revert InvalidMintAmountError();
        _safeMint(to, _rawId(mintingBlob));
    }

    function supportsInterface(bytes4 interfaceId) public view override returns (bool) {
        return interfaceId == type(IMintable).interfaceId || super.supportsInterface(interfaceId);
    }
}

/// @title An ERC-1155 with the published interface of StarkExpress's, unchanged.
contract StarkExpressERC1155 is ERC1155, ForeignMinter {
    /// @dev Ids from here on are refused.
    uint256 public limit = type(uint256).max;

    constructor(address minter) ERC1155("") ForeignMinter(minter) {}

    function setLimit(uint256 to) external onlyOwner {
        limit = to;
    }

    function mintFor(address to, uint256 amount, bytes calldata mintingBlob) external onlyStarkEx {
        uint256 id = _rawId(mintingBlob);
        require(id < limit, "limit");
        _mint(to, id, amount, "");
    }

    function supportsInterface(bytes4 interfaceId) public view override returns (bool) {
        return interfaceId == type(IMintable).interfaceId || super.supportsInterface(interfaceId);
    }
}

/// @title An ERC-721 with the published interface of Immutable X's `Mintable`, unchanged.
contract ImxAsset is ERC721, Ownable {
    address public imx;
    mapping(uint256 => bytes) public blueprints;

    event AssetMinted(address to, uint256 id, bytes blueprint);

    constructor(address owner_, address imx_) ERC721("Asset", "AST") Ownable(owner_) {
        imx = imx_;
    }

    modifier onlyOwnerOrIMX() {
        require(
            msg.sender == imx || msg.sender == owner(),
            "Function can only be called by owner or IMX"
        );
        _;
    }

    function mintFor(
        address user,
        uint256 quantity,
        bytes calldata mintingBlob
    ) external onlyOwnerOrIMX {
        require(quantity == 1, "Mintable: invalid quantity");
        uint256 colon;
        while (mintingBlob[colon] != ":") ++colon;
        uint256 id;
        for (uint256 i = 1; i < colon - 1; ++i) id = id * 10 + uint8(mintingBlob[i]) - 0x30;
        _safeMint(user, id);
        blueprints[id] = mintingBlob[colon + 2:mintingBlob.length - 1];
        emit AssetMinted(user, id, blueprints[id]);
    }
}

/// @dev Has an AccessControl admin, and says nothing else.
contract AdministeredToken is AccessControl {
    constructor(address admin) {
        _grantRole(DEFAULT_ADMIN_ROLE, admin);
    }

    function mintFor(address, uint256, bytes calldata) external {}
}
