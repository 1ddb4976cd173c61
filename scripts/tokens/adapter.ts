import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Standard } from "../../core/index.ts";

/**
 * How a token is minted, and the questions that the settlement contract, engines and wallets ask
 * it, which the adapter passes on. The test has a stand-in for the token: whoever has the real one
 * changes it to behave alike.
 */
const KINDS = {
  erc20: {
    signature: "mint(address to, uint256 amount)",
    args: "to, quantity",
    views: [
      ["totalSupply()", "totalSupply()", "uint256"],
      ["decimals()", "decimals()", "uint8"],
      ["balanceOf(address account)", "balanceOf(account)", "uint256"],
    ],
    id: "",
    standIn: `    uint256 public totalSupply;
    uint8 public constant decimals = 18;
    mapping(address account => uint256) public balanceOf;

    function mint(address to, uint256 amount) external onlyMinter returns (bool) {
        if (isClosed) return false;
        totalSupply += amount;
        balanceOf[to] += amount;
        return true;
    }
`,
    holds: "adapter.balanceOf(OWNER) == 5",
  },
  erc721: {
    signature: "mint(address to, uint256 id)",
    args: "to, _idOf(mintingBlob)",
    views: [["ownerOf(uint256 id)", "ownerOf(id)", "address"]],
    id: " || id == 0x80ac58cd",
    standIn: `    mapping(uint256 id => address) public ownerOf;

    function mint(address to, uint256 id) external onlyMinter returns (bool) {
        if (isClosed) return false;
        require(ownerOf[id] == address(0), "it exists");
        ownerOf[id] = to;
        return true;
    }
`,
    holds: "adapter.ownerOf(7) == OWNER",
  },
  erc1155: {
    signature: "mint(address to, uint256 id, uint256 amount, bytes calldata data)",
    args: 'to, _idOf(mintingBlob), quantity, ""',
    views: [["balanceOf(address account, uint256 id)", "balanceOf(account, id)", "uint256"]],
    id: " || id == 0xd9b67a26",
    standIn: `    mapping(address account => mapping(uint256 id => uint256)) public balanceOf;

    function mint(address to, uint256 id, uint256 amount, bytes calldata) external onlyMinter returns (bool) {
        if (isClosed) return false;
        balanceOf[to][id] += amount;
        return true;
    }
`,
    holds: "adapter.balanceOf(OWNER, 7) == 5",
  },
} as const;

/**
 * Writes an adapter for a token without `mintFor`, and its test, into a folder. The adapter needs
 * the token's right to mint; the settlement contract registers the adapter.
 *
 * @returns the files
 */
export async function writeAdapter(folder: string, standard: Standard): Promise<string[]> {
  await mkdir(folder, { recursive: true });
  const files = { "MintAdapter.sol": adapter(standard), "MintAdapter.t.sol": testOf(standard) };
  for (const [name, text] of Object.entries(files))
    await writeFile(join(folder, name), text, { flag: "wx" });
  return Object.keys(files).map((name) => join(folder, name));
}

const isUnique = (standard: Standard) => standard !== "erc20";

function adapter(standard: Standard): string {
  const { signature, args, views, id } = KINDS[standard];
  const declared = views.map(
    ([view, , returned]) => `    function ${view} external view returns (${returned});\n`,
  );
  const passed = views.map(
    ([view, asked, returned]) => `
    /// @notice Passes on the token's answer.
    function ${view} external view returns (${returned}) {
        return token.${asked};
    }
`,
  );
  return `// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

/// @dev The adapter calls these functions. Change \`mint\` here and below if your token spells it
/// in another way.
interface IToken {
    function ${signature} external;
${declared.join("")}}

/// @title Mints a token for a settlement contract, in the interface of StarkEx's mintable tokens.
/// @notice Give the adapter the token's right to mint, and register the adapter's address in place
/// of the token's.
contract MintAdapter {
    IToken public immutable token;
    /// @notice The only account that mints: the settlement contract.
    address public immutable minter;

    error NotMinter(address caller);
    error MintingBlobInvalid();
    error NotMinted();
${standard === "erc721" ? "    error QuantityInvalid(uint256 quantity);\n" : ""}
    constructor(IToken token_, address minter_) {
        token = token_;
        minter = minter_;
    }

    /// @notice Mints \`quantity\` of the token that \`mintingBlob\` names to \`to\`.
    function mintFor(address to, uint256 quantity, bytes calldata mintingBlob) external {
        if (msg.sender != minter) revert NotMinter(msg.sender);
${standard === "erc721" ? "        if (quantity != 1) revert QuantityInvalid(quantity);\n" : ""}${standard === "erc20" ? "        if (mintingBlob.length != 0) revert MintingBlobInvalid();\n" : ""}        _mint(abi.encodeCall(IToken.mint, (${args})));
    }
${isUnique(standard) ? SCHEME : ""}${passed.join("")}
    /// @notice ERC-165: \`IMintable\`${isUnique(standard) ? ", `mintingBlobScheme`" : ""} and the
    /// standard of the token.
    function supportsInterface(bytes4 id) external pure returns (bool) {
        return id == 0x01ffc9a7 || id == this.mintFor.selector${id};
    }

    /// @dev Some tokens return false in place of a revert. Then nothing was minted, and the vault
    /// must stay.
    function _mint(bytes memory data) private {
        (bool isDone, bytes memory answer) = address(token).call(data);
        if (!isDone) {
            assembly ("memory-safe") {
                revert(add(answer, 32), mload(answer))
            }
        }
        bool isMinted = answer.length == 0
            ? address(token).code.length != 0
            : uint256(bytes32(answer)) != 0;
        if (!isMinted) revert NotMinted();
    }
${isUnique(standard) ? ID_OF : ""}}
`;
}

const SCHEME = `
    /// @notice Scheme 2, \`raw32\`: a minting blob is the id in 32 bytes.
    function mintingBlobScheme() external pure returns (uint8) {
        return 2;
    }
`;
const ID_OF = `
    function _idOf(bytes calldata mintingBlob) private pure returns (uint256) {
        if (mintingBlob.length != 32) revert MintingBlobInvalid();
        return uint256(bytes32(mintingBlob));
    }
`;

function testOf(standard: Standard): string {
  const mintingBlob = isUnique(standard) ? "abi.encode(uint256(7))" : '""';
  const quantity = standard === "erc721" ? "1" : "5";
  const { standIn, holds } = KINDS[standard];
  return `// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

import {IToken, MintAdapter} from "./MintAdapter.sol";

/// @dev A token that only one account mints, as yours does.
contract TokenOfTest {
    address public minter;
    bool private isClosed;

    modifier onlyMinter() {
        require(msg.sender == minter, "not the minter");
        _;
    }

    function setMinter(address minter_) external {
        minter = minter_;
    }

    function close() external {
        isClosed = true;
    }

${standIn}}

/// @dev Runs in Foundry (forge test) and in Hardhat (hardhat test solidity). The test is the
/// settlement contract.
contract MintAdapterTest {
    address private constant OWNER = address(0xA11CE);
    TokenOfTest private token;
    MintAdapter private adapter;

    function setUp() public {
        token = new TokenOfTest();
        adapter = new MintAdapter(IToken(address(token)), address(this));
        token.setMinter(address(adapter));
    }

    function test_theSettlementContractMints() public {
        adapter.mintFor(OWNER, ${quantity}, ${mintingBlob});
        require(${holds}, "the owner has no token");
    }

    function test_falseIsNoMint() public {
        token.close();
        try adapter.mintFor(OWNER, ${quantity}, ${mintingBlob}) {
            revert("nothing was minted");
        } catch (bytes memory reason) {
            require(bytes4(reason) == MintAdapter.NotMinted.selector, "another error");
        }
    }

    function test_nobodyElseMints() public {
        MintAdapter other = new MintAdapter(IToken(address(token)), OWNER);
        token.setMinter(address(other));
        try other.mintFor(OWNER, ${quantity}, ${mintingBlob}) {
            revert("a stranger minted");
        } catch (bytes memory reason) {
            require(bytes4(reason) == MintAdapter.NotMinter.selector, "another error");
        }
    }
}
`;
}
