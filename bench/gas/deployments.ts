import {
  type Address,
  concatHex,
  encodeAbiParameters,
  type Hex,
  keccak256,
  size,
  toHex,
} from "viem";
import { type ContractName, readArtifact } from "../../core/l1/artifact.ts";
import { deployContract } from "../../scripts/deploy/deployer.ts";
import { account, openGasChain, owners } from "./chain.ts";
import { measurement, type Section } from "./report.ts";

const MANY = 100;
/** A proof has so many siblings in a list of a million. */
const SIBLINGS = 20;

/**
 * The cost of mints without an L2: OpenZeppelin's tokens and ERC721A, without access control or
 * metadata. Withdrawals are compared with a mint to an owner without a balance, in a transaction of
 * its own.
 */
export async function plainSection() {
  const { viem, gasOf } = await openGasChain();
  const [erc721, erc721a] = [
    await viem.deployContract("PlainERC721"),
    await viem.deployContract("PlainERC721A"),
  ];
  const [erc1155, erc20] = [
    await viem.deployContract("PlainERC1155"),
    await viem.deployContract("PlainERC20"),
  ];
  const [first, second] = owners(2, "plain") as [Address, Address];
  const many = owners(MANY, "plain many");
  const ids = Array.from({ length: MANY }, (_, i) => BigInt(100_000 + i));
  const ones = ids.map(() => 1n);
  // The first mint of a contract also sets counters that were zero.
  await gasOf(erc721.write.mint([first, 1n]));
  await gasOf(erc721a.write.mint([first, 1n]));
  await gasOf(erc1155.write.mint([first, 1n, 1n]));
  await gasOf(erc20.write.mint([first, 1n]));
  const newOwner = {
    erc721: await gasOf(erc721.write.mint([second, 2n])),
    erc1155: await gasOf(erc1155.write.mint([second, 2n, 1n])),
    erc20: await gasOf(erc20.write.mint([second, 1n])),
  };
  const row = async (label: string, hash: Promise<Hex>, count = 1) =>
    measurement(label, await gasOf(hash), count);
  const claims = {
    erc721: await claimGas(await viem.deployContract("PlainClaimERC721"), gasOf),
    erc20: await claimGas(await viem.deployContract("PlainClaimERC20"), gasOf),
  };
  const oneOwner = Array.from({ length: MANY }, () => second);
  const section: Section = {
    title: "Plain mints on L1, to compare",
    method: `OpenZeppelin's tokens and ERC721A, with a bare \`mint\` and no access control. None is the contract's first mint.\nA claim is OpenZeppelin's MerkleProof of ${SIBLINGS} siblings and its BitMaps, and a mint.`,
    unit: "mint",
    measurements: [
      measurement("ERC-721, new owner", newOwner.erc721),
      await row("ERC-721, owner who holds some", erc721.write.mint([second, 3n])),
      await row(
        `ERC-721, ${MANY} at once, one owner`,
        erc721.write.mintMany([oneOwner, 1_000n]),
        MANY,
      ),
      await row(
        `ERC-721, ${MANY} at once, each to a new owner`,
        erc721.write.mintMany([many, 2_000n]),
        MANY,
      ),
      await row(
        `ERC721A, ${MANY} at once, one owner`,
        erc721a.write.mint([second, BigInt(MANY)]),
        MANY,
      ),
      await row(
        `ERC721A, ${MANY} at once, each to a new owner`,
        erc721a.write.mintMany([many]),
        MANY,
      ),
      measurement("ERC-1155, new owner", newOwner.erc1155),
      await row(
        `ERC-1155, ${MANY} ids at once, one owner`,
        erc1155.write.mintBatch([second, ids, ones]),
        MANY,
      ),
      measurement("ERC-20, new holder", newOwner.erc20),
      await row("ERC-20, holder", erc20.write.mint([second, 1n])),
      measurement("ERC-721, claimed by a Merkle proof, new owner", claims.erc721.claim),
      measurement("ERC-20, claimed by a Merkle proof, new holder", claims.erc20.claim),
      measurement("The root of all claims", claims.erc721.root),
    ],
  };
  return { newOwner, section };
}

/** The gas of a list's root, and of its second claim. The first one makes the bitmap's word. */
async function claimGas(
  contract: {
    readonly write: {
      setRoot(args: readonly [Hex]): Promise<Hex>;
      claim(args: readonly [bigint, Address, bigint, readonly Hex[]]): Promise<Hex>;
    };
  },
  gasOf: (hash: Promise<Hex>) => Promise<number>,
) {
  const claims = owners(2, "claim").map(
    (owner, i) => [BigInt(i), owner, 10_000n + BigInt(i)] as const,
  );
  const leaves = claims.map((claim) => {
    const types = ["uint256", "address", "uint256"].map((type) => ({ type }));
    return keccak256(keccak256(encodeAbiParameters(types, claim)));
  });
  const [left, right] = leaves as [Hex, Hex];
  const above = Array.from({ length: SIBLINGS - 1 }, (_, i) => keccak256(toHex(`sibling ${i}`)));
  const root = [right, ...above].reduce(
    (node, sibling) => keccak256(concatHex([node, sibling].toSorted())),
    left,
  );
  const [first, second] = claims as [(typeof claims)[0], (typeof claims)[0]];
  const rootGas = await gasOf(contract.write.setRoot([root]));
  await gasOf(contract.write.claim([...first, [right, ...above]]));
  return { root: rootGas, claim: await gasOf(contract.write.claim([...second, [left, ...above]])) };
}

/** EIP-170. */
const CODE_LIMIT = 24_576;
const COMMITTEE = 5;

export async function deploymentSection(): Promise<Section> {
  const { by, state, created, tokens } = await openGasChain();
  const admin = account("administrator").address;
  const source = { sourceChainId: 1n, sourceContract: state.address };
  const terms = {
    committee: owners(COMMITTEE, "member").toSorted(),
    threshold: 3,
    changeDelay: 604_800n,
  };
  const mirror = { admin, ...source, ...terms, maturity: 86_400n };
  const deployed: readonly (readonly [ContractName, { readonly gasUsed: bigint }])[] = [
    ["StateCommitment", created.state],
    ["Transfers", created.transfers],
    ["Makings", created.makings],
    ["StateMirror", await deployContract(by, "StateMirror", [mirror])],
    ["AdminTimeLock", await deployContract(by, "AdminTimeLock", [604_800n, [admin], [admin]])],
    ["MintableERC20", tokens.erc20],
    ["MintableERC721", tokens.erc721],
    ["MintableERC1155", tokens.erc1155],
    ["EscrowFactory", await deployContract(by, "EscrowFactory", [])],
  ];
  const measurements = deployed.map(([name, { gasUsed }]) => {
    const bytes = size(readArtifact(name).deployedBytecode).toLocaleString("en");
    return measurement(`${name}, ${bytes} bytes of code`, Number(gasUsed));
  });
  return {
    title: "Deployment",
    method: `The limit of a contract's code is ${CODE_LIMIT.toLocaleString("en")} bytes.`,
    unit: "deployment",
    measurements: [
      ...measurements,
      measurement("Registering an asset", tokens.erc721.gas),
      measurement("Registering an asset with an issuer", tokens.issued.gas),
    ],
  };
}
