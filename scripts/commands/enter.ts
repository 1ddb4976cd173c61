import type { Address, Hash, Standard } from "../../core/index.ts";
import { assetType } from "../../core/protocol/asset.ts";
import { MAX_UINT256 } from "../../core/protocol/bounds.ts";
import { packVaultId } from "../../core/protocol/vault.ts";
import { readUuid } from "../../core/validate.ts";
import { enterSettings } from "../../server/process/settings/process-settings.ts";
import { addressOf, EXAMPLE_ASSET, partOf, processAccount } from "../cli/arguments.ts";
import { command, type Options } from "../cli/command.ts";
import { UsageError } from "../cli/exit.ts";
import { type Chain, chainOf, ifFunded, makingOf, unfunded } from "../cli/l1.ts";
import { assetOf, serverOf } from "./session.ts";

const TOKEN = "0x5FbDB2315678afecb367f032d93F642f64180aa3";
const FRIEND = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
const STANDARDS: readonly Standard[] = ["erc20", "erc721", "erc1155"];

export const enterCommand = command({
  examples: [
    `enter ${TOKEN} --amount 12.5 --rpc https://rpc.example --contract 0x… < owner.key`,
    `enter ${TOKEN} --token-id 7 --owner ${FRIEND} --wait`,
    `enter ${EXAMPLE_ASSET} --token-id 7 --url https://mint.example`,
  ],
  settings: enterSettings,
  options: {
    "--amount <tokens>": "whole tokens, such as 12.5, of an ERC-20 or ERC-1155",
    "--units <number>": "in the place of --amount: units, as the API counts them",
    "--token-id <id>": "the id of an ERC-721 or ERC-1155",
    "--owner <address>": "who gets the vault; default the account that signs",
    "--wait": "wait until the vault is final, so that its id stays",
    "--url <url>": "the server's address, for an assetId (MINTMARK_URL, with MINTMARK_API_KEY)",
  },
  notes:
    "The account that holds the token on L1 signs and pays: MINTMARK_OWNER_KEY, or standard input." +
    "\nIts tokens are burned, and L1 makes a vault of them in the same transaction.",
  async work({ options, args: [named = ""], ...running }, settings) {
    const { signal, progress } = running;
    const { account } = await processAccount("OWNER");
    const holder = account.address.toLowerCase() as Address;
    const owner = options.owner === undefined ? holder : addressOf(options.owner, "--owner");
    const token = await tokenOf(named, options, signal);
    const { connectL1 } = await import("../../core/l1/index.ts");
    const { enterToken, requireMakings } = await import("../../core/exit/enter.ts");
    const l1 = await connectL1({ ...chainOf(settings), account });
    await requireMakings(l1);
    const { standard, quantum } = await registrationOf(l1, token, settings.MINTMARK_RPC_URL);
    const tokenId = idOf(options, standard);
    const units = await unitsOf(options, standard, async () => ({
      quantum,
      decimals: (await l1.token(token, standard)).decimals,
    }));
    const onSent = (sent: Hash) => progress(`sent transaction ${sent}`);
    const entry = { token, standard, quantum, tokenId, units };
    const entering = enterToken({ l1, account: holder, owner, ...entry, signal, onSent });
    const { txHash } = await ifFunded(l1, entering, unfunded(holder));
    const made = await makingOf(l1, txHash, options.wait === true, running);
    const { making, blockNumber, blocksToFinal } = made;
    const vaultId = packVaultId({ mode: "made", batchNumber: Number(making), slot: 0 });
    const next =
      blocksToFinal === 0n
        ? `The server credits vault ${vaultId} to the user of ${owner}: see GET /api/v1/deposits. ` +
          `Then give it away by \`mintmark transfer ${vaultId}\`, or withdraw it.`
        : `Wait for about ${blocksToFinal} more blocks, until block ${blockNumber} is final. ` +
          "Until then, a reorganisation can change the vault's id.";
    return {
      vaultId,
      ownerAddress: owner,
      token,
      tokenId,
      amount: units,
      txHash,
      blockNumber,
      next,
    };
  },
});

/** The token's address. A server only tells which token an `assetId` means. */
async function tokenOf(named: string, options: Options, signal: AbortSignal): Promise<Address> {
  if (readUuid(named) === null)
    return addressOf(named, "<token>", "give the token's address, or its assetId");
  return (await assetOf(serverOf(options), named, signal)).token;
}

/** How L1 has registered a token of its own chain. A token is registered as one standard. */
async function registrationOf(l1: Chain, token: Address, rpc: string) {
  const [{ createPublicClient, http, parseAbi }, { orIfSilent }] = await Promise.all([
    import("viem"),
    import("../../core/l1/connection.ts"),
  ]);
  const node = createPublicClient({ transport: http(rpc) });
  const abi = parseAbi(["function quantum() view returns (uint256)"]);
  const asked = node.readContract({ abi, address: token, functionName: "quantum" });
  const quantum = await orIfSilent(asked, 1n);
  const { chainId, contract } = l1.settlement;
  const found = await l1.registrations(
    STANDARDS.map((standard) => ({
      chainId,
      assetType: assetType(standard, token, standard === "erc20" ? quantum : 1n),
    })),
  );
  const registration = found.find((each) => each !== null);
  if (registration) return registration;
  throw new Error(
    `${token} is not registered with ${contract} on chain ${chainId}: look at --rpc and --contract, ` +
      "or register it by `mintmark assets register`",
  );
}

function idOf({ tokenId }: Options, standard: Standard): bigint | null {
  if (standard === "erc20") {
    if (tokenId === undefined) return null;
    throw new UsageError("--token-id: an ERC-20 has no ids; give --amount");
  }
  if (typeof tokenId === "string" && /^\d{1,78}$/.test(tokenId) && BigInt(tokenId) <= MAX_UINT256)
    return BigInt(tokenId);
  throw new UsageError("--token-id: give the token's id, a whole number");
}

async function unitsOf(
  options: Options,
  standard: Standard,
  whole: Parameters<typeof partOf>[1],
): Promise<bigint> {
  const units = await partOf(options, whole);
  if (standard === "erc721") {
    if (units === undefined) return 1n;
    throw new UsageError("--amount: an ERC-721 comes back as a whole; give --token-id alone");
  }
  if (units !== undefined) return units;
  throw new UsageError("--amount: give the whole tokens that come back, or --units");
}
