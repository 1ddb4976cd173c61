import type { Address, Hex, PublicClient } from "viem";
import { parseAbi, toFunctionSelector } from "viem";
import { generatePrivateKey, privateKeyToAddress } from "viem/accounts";
import type { MintingBlobScheme, Standard } from "../../core/index.ts";
import { askL1, codeOn, orIfSilent } from "../../core/l1/connection.ts";
import { MINTING_BLOB_SCHEMES } from "../../core/model.ts";
import { mintingBlobTextOf } from "../../core/protocol/minting-blob.ts";

const ABI = parseAbi([
  "function supportsInterface(bytes4 id) view returns (bool)",
  "function name() view returns (string)",
  "function symbol() view returns (string)",
  "function decimals() view returns (uint8)",
  "function owner() view returns (address)",
  "function imx() view returns (address)",
  "function starkEx() view returns (address)",
  "function minter() view returns (address)",
  "function MINTER_ROLE() view returns (bytes32)",
  "function hasRole(bytes32 role, address account) view returns (bool)",
  "function mintFor(address to, uint256 quantity, bytes mintingBlob)",
  "function ownerOf(uint256 id) view returns (address)",
  "function balanceOf(address account) view returns (uint256)",
  "function balanceOf(address account, uint256 id) view returns (uint256)",
]);
const MINT_FOR = toFunctionSelector("mintFor(address,uint256,bytes)").slice(2);
/** Contracts name their minter by one of these. */
const NAMED = ["owner", "imx", "starkEx", "minter"] as const;
const INTERFACES = { erc721: "0x80ac58cd", erc1155: "0xd9b67a26" } as const;

/**
 * Tells what a token contract of somebody else is, and whether withdrawals can mint it, by calls
 * that change nothing.
 *
 * @param settlement - the contract that would mint at a withdrawal; optional
 */
export async function inspectToken(client: PublicClient, token: Address, settlement?: Address) {
  const code = await codeOn(client)(token);
  if (code === "0x")
    throw new Error(`${token} has no code on this chain. Check the address and the network.`);
  const read: Read = (functionName, args = []) =>
    orIfSilent<unknown, null>(
      client.readContract({ abi: ABI, address: token, functionName, args } as never),
      null,
    );
  const standard = await standardOf(read);
  const mintFor = await namesMintFor(client, token, code);
  const tried = standard === null ? null : { client, token, standard };
  // Accounts that the contract names, and whether each may mint.
  const minters: { readonly role: string; readonly address: Address; readonly mints: boolean }[] =
    [];
  // The schemes whose minting blob minted the id that was meant.
  let schemes: readonly MintingBlobScheme[] = [];
  for (const named of await mintersOf(read, settlement)) {
    const own = tried === null ? [] : await schemesFor(tried, named.address);
    if (schemes.length === 0) schemes = own;
    minters.push({ ...named, mints: own.length > 0 });
  }
  // The result of a mint by the settlement contract; null where none was named.
  const withdrawal =
    settlement === undefined || tried === null
      ? null
      : await mintOf(tried, settlement, schemes[0] ?? "mintmark");
  const nextStep = () => {
    if (standard === null) return "It is no ERC-20, ERC-721 or ERC-1155 token. Check the address.";
    if (mintFor === false)
      return `It has no mintFor. Write an adapter: mintmark assets inspect ${token} --adapter ./adapter`;
    if (settlement === undefined)
      return "Give --contract, the settlement contract, to try a withdrawal.";
    if (withdrawal?.works !== true) {
      const who =
        minters.map(({ role, address }) => `${role} ${address}`).join(", ") || "its administrator";
      return `Let the settlement contract ${settlement} mint. Ask ${who}.`;
    }
    const scheme = standard === "erc20" ? "" : ` --scheme ${schemes[0] ?? "mintmark"}`;
    return `Add it: mintmark assets add ${token} --standard ${standard}${scheme} --name … --symbol … --application …`;
  };
  return {
    standard,
    name: await read("name"),
    symbol: await read("symbol"),
    decimals: await read("decimals"),
    mintFor,
    minters,
    schemes,
    withdrawal,
    next: nextStep(),
  };
}

interface Tried {
  readonly client: PublicClient;
  readonly token: Address;
  readonly standard: Standard;
}

/** Where upgradable proxies keep their implementation, or its beacon (EIP-1967). */
const IMPLEMENTATION = "0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc";
const BEACON = "0xa3f0ad74e5423aebfd80d3ef4346578335a9a72aeaee59ff6cb3582b35133d50";
/** The code of a minimal proxy (ERC-1167), with its implementation. */
const MINIMAL = /^0x363d3d373d3d3d363d73([0-9a-f]{40})5af4/;

/** Whether a token's code names `mintFor`; null for a proxy, whose code does not tell. */
async function namesMintFor(
  client: PublicClient,
  token: Address,
  code: Hex,
): Promise<boolean | null> {
  if (code.includes(MINT_FOR)) return true;
  const slotOf = async (slot: Hex) =>
    ((await client.getStorageAt({ address: token, slot })) ?? "0x").slice(-40);
  const isNone = (address: string) => /^[0x]*$/.test(address);
  return askL1("looking for the token's implementation", async () => {
    const upgradable = await slotOf(IMPLEMENTATION);
    const behind = MINIMAL.exec(code)?.[1] ?? upgradable;
    if (isNone(behind)) return isNone(await slotOf(BEACON)) ? false : null;
    return (await codeOn(client)(`0x${behind}`)).includes(MINT_FOR);
  });
}

/** Asks the token. Null where it has no such function. */
type Read = (functionName: string, args?: readonly unknown[]) => Promise<unknown>;

async function standardOf(read: Read): Promise<Standard | null> {
  for (const [standard, id] of Object.entries(INTERFACES))
    if ((await read("supportsInterface", [id])) === true) return standard as Standard;
  return (await read("decimals")) === null ? null : "erc20";
}

async function mintersOf(read: Read, settlement: Address | undefined) {
  const found: { readonly role: string; readonly address: Address }[] = [];
  for (const role of NAMED) {
    const address = (await read(role)) as Address | null;
    if (address !== null && BigInt(address) !== 0n) found.push({ role: `${role}()`, address });
  }
  const role = await read("MINTER_ROLE");
  if (
    role !== null &&
    settlement !== undefined &&
    (await read("hasRole", [role, settlement])) === true
  )
    found.push({ role: "MINTER_ROLE", address: settlement });
  return found;
}

/**
 * The schemes in which a mint by an account makes the very id that its minting blob names; for an
 * ERC-20, the empty minting blob.
 */
async function schemesFor(tried: Tried, minter: Address): Promise<MintingBlobScheme[]> {
  const found: MintingBlobScheme[] = [];
  const schemes = tried.standard === "erc20" ? (["mintmark"] as const) : MINTING_BLOB_SCHEMES;
  for (const scheme of schemes) if ((await mintOf(tried, minter, scheme)).works) found.push(scheme);
  return found;
}

/** Simulates a mint and asks, behind it, who owns it (`eth_simulateV1`). */
async function mintOf(
  { client, token, standard }: Tried,
  minter: Address,
  scheme: MintingBlobScheme,
) {
  // Nobody has this account, and hardly a token this id.
  const to = privateKeyToAddress(generatePrivateKey());
  const id = BigInt(to) >> 100n;
  const mintingBlob =
    standard === "erc20"
      ? ""
      : Buffer.from(mintingBlobTextOf(scheme, `${id}`), "latin1").toString("hex");
  const mint = {
    abi: ABI,
    to: token,
    functionName: "mintFor",
    args: [to, 1n, `0x${mintingBlob}`],
  } as const;
  const ask =
    standard === "erc721"
      ? ({ abi: ABI, to: token, functionName: "ownerOf", args: [id] } as const)
      : ({
          abi: ABI,
          to: token,
          functionName: "balanceOf",
          args: standard === "erc20" ? [to] : [to, id],
        } as const);
  const { results } = await askL1("simulating a mint (eth_simulateV1)", () =>
    client.simulateCalls({ account: minter, calls: [mint, ask as never] }),
  );
  const [minted, asked] = results;
  if (minted.status === "failure") return { works: false, reason: reasonOf(minted.error) };
  const works =
    String(asked.result).toLowerCase() === (standard === "erc721" ? to.toLowerCase() : "1");
  return {
    works,
    reason: works
      ? null
      : "the mint went through, and made another token than its minting blob names",
  };
}

function reasonOf(error: Error | undefined): string {
  const { shortMessage = "" } = (error ?? {}) as { shortMessage?: string };
  return (shortMessage || error?.message || "it reverts without a reason")
    .split("\n")
    .slice(0, 3)
    .join(" ");
}
