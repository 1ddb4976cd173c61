import { privateKeyToAccount } from "viem/accounts";
import { z } from "zod";
import { HttpBatchSource } from "../../core/archive/index.ts";
import { type Address, type Asset, type Engine, type Hex, MintmarkError } from "../../core/index.ts";
import { connectL1, readL1 } from "../../core/l1/index.ts";
import { adoptFromL1 } from "../../core/settlement/index.ts";
import { claimSettling } from "../operations/settler-claim.ts";
import { remoteMembers, settlerOver } from "../operations/settling.ts";
import { address, uuid } from "../schemas/common.ts";
import { assetToOperator } from "../wire/wire.ts";
import { operation } from "./operation.ts";

const privateKey = z
  .string()
  .regex(/^0x[0-9a-fA-F]{64}$/, "Give a private key: 0x and 64 hex digits.")
  .transform((text) => text as Hex);
const rpc = z.url({ protocol: /^https?$/, error: "Give the address of the chain's RPC." });
const member = z.strictObject({ address, url: z.url({ protocol: /^https?$/ }) });
const blocks = z
  .string()
  .regex(/^\d{1,18}$/, "Give a whole number of blocks.")
  .transform(BigInt);
const commit = z.strictObject({
  rpc,
  operatorKey: privateKey,
  fromBlock: blocks,
  confirmations: blocks.optional(),
  members: z.array(member).max(255),
  threshold: z.int().min(0).max(255),
});

const adopt = commit.pick({ rpc: true, fromBlock: true, confirmations: true }).extend({
  peers: z.array(z.url({ protocol: /^https?$/ })).max(255),
});

/** What needs L1: registering tokens, and bringing batches there. Keys come with each call and are kept nowhere. */
export const SETTLEMENT_OPERATIONS = {
  "assets.register": operation(
    z.strictObject({ assetId: uuid, rpc, registrarKey: privateKey.optional() }),
    async (engine, { assetId, rpc, registrarKey }) => {
      const asset = await findAsset(engine, assetId);
      const { chainId, contract } = engine.settlement;
      const l1 = await readL1({ rpc, contract, chainId });
      const registration = () => l1.registration(asset.chainId, asset.assetType);
      let registered = await registration();
      if (registered === null) {
        if (registrarKey === undefined) {
          throw new MintmarkError(
            "asset_not_registered",
            "L1's registry does not have it; give the key of an account that pays for registering it.",
          );
        }
        const registrar = await connectL1({ rpc, contract, chainId, account: privateKeyToAccount(registrarKey) });
        await registrar.registerAsset(asset);
        registered = await registration();
      }
      // Another chain's token cannot be asked through this chain's node.
      const isHere = asset.chainId === chainId;
      // What is minted in another scheme than L1 reads could never be withdrawn. An ERC-20 has no blobs.
      if (isHere && asset.standard !== "erc20" && registered?.blobScheme !== asset.blobScheme) {
        const detail = `L1 reads this token's blobs as ${registered?.blobScheme}; it was added here as ${asset.blobScheme}, and stays so.`;
        throw new MintmarkError("validation_failed", detail);
      }
      const facts = isHere ? await l1.token(asset.contractAddress, asset.standard) : {};
      return assetToOperator(await engine.operator.recordRegistered(assetId, facts));
    },
  ),
  "batches.adopt": operation(adopt, async (engine, { rpc, fromBlock, confirmations, peers }, { signal }) => {
    const finality = confirmations === undefined ? "finalized" : { confirmations };
    const l1 = await readL1({ ...engine.settlement, rpc, finality });
    const sources = peers.map((peer) => new HttpBatchSource(peer));
    return await adoptFromL1({ engine, l1, fromBlock, sources, signal });
  }),
  "batches.commit": operation(commit, async (engine, input, { signal }) => {
    using _ = claimSettling(engine, { code: "l1_failed", detail: "Another commit is under way; wait for it." });
    return await settle(engine, input, signal);
  }),
} as const;

/** One round of the settler: watches, commits whatever is sealed, and sends withdrawals that are due. */
async function settle(engine: Engine, input: z.output<typeof commit>, signal: AbortSignal): Promise<unknown> {
  const { chainId, contract } = engine.settlement;
  const operator = privateKeyToAccount(input.operatorKey);
  const finality = input.confirmations === undefined ? "finalized" : { confirmations: input.confirmations };
  const l1 = await connectL1({ rpc: input.rpc, contract, chainId, account: operator, finality });
  const members = remoteMembers(input.members as readonly { address: Address; url: string }[], operator, engine);
  const { settler } = settlerOver({ ...input, members }, { engine, l1, fromBlock: input.fromBlock });
  return settler.round(signal);
}

async function findAsset(engine: Engine, wanted: string): Promise<Asset> {
  for await (const asset of engine.operator.assets()) if (asset.assetId === wanted) return asset;
  throw new MintmarkError("asset_not_found");
}
