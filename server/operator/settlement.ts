import { privateKeyToAccount } from "viem/accounts";
import { z } from "zod";
import { HttpBatchSource } from "../../core/archive/index.ts";
import { type Asset, type Engine, type Hex, MintmarkError } from "../../core/index.ts";
import { connectL1, readL1 } from "../../core/l1/index.ts";
import { adoptFromL1 } from "../../core/settlement/index.ts";
import { claimSettling } from "../operations/settler-claim.ts";
import { remoteMembers, settlerOver } from "../operations/settling.ts";
import { SETTINGS } from "../settings/settings.ts";
import { assetToOperator } from "../wire/wire.ts";
import { ofAsset } from "./ledger.ts";
import { operation } from "./operation.ts";

const ID = "0b9c5a52-6a39-4a0a-8c56-5f1f2f6f1a21";
const privateKey = z
  .string()
  .regex(/^0x[0-9a-fA-F]{64}$/, "Give a private key: 0x and 64 hex digits.")
  .transform((text) => text as Hex);
const rpc = z
  .url({ protocol: /^https?$/, error: "Give the address of the chain's RPC." })
  .meta({ description: "the chain's RPC", env: "MINTMARK_RPC_URL" });
const blocks = z
  .string()
  .regex(/^\d{1,18}$/, "Give a whole number of blocks.")
  .transform(BigInt);
/** How a chain is read. */
const followed = z.strictObject({
  rpc,
  fromBlock: blocks.meta({ description: "block of the settlement contract's deployment", env: "MINTMARK_FROM_BLOCK" }),
  confirmations: blocks.optional().describe("blocks that make one final, for chains without finality"),
});
const commit = followed.extend({
  members: SETTINGS.MINTMARK_MEMBERS.meta({
    description: "the committee, for validium: address=url with commas between",
    env: "MINTMARK_MEMBERS",
  }),
  threshold: SETTINGS.MINTMARK_THRESHOLD.meta({
    description: "signatures that a validium batch needs",
    env: "MINTMARK_THRESHOLD",
  }),
  operatorKey: privateKey.meta({ description: "the operator's private key", secret: "MINTMARK_OPERATOR_KEY" }),
});

/** What needs L1: registering tokens, and bringing batches there. Keys come with each call and are kept nowhere. */
export const SETTLEMENT_OPERATIONS = {
  "assets.register": operation({
    summary: "note that L1's registry has the token; with a key, register it there first",
    examples: [`${ID} --rpc https://rpc.example`, `${ID} --key-stdin < registrar.key`],
    input: ofAsset.extend({
      rpc,
      registrarKey: privateKey.optional().meta({
        description: "the paying account's private key",
        secret: "MINTMARK_REGISTRAR_KEY",
      }),
    }),
    args: ["assetId"],
    async run(engine, { assetId, rpc, registrarKey }) {
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
  }),
  "batches.adopt": operation({
    summary: "put L1's history in the place of this store's, after two servers ran on copies of one store",
    examples: ["--from-block 19000000 --rpc https://rpc.example --peers https://member.example"],
    input: followed.extend({
      peers: z
        .array(z.url({ protocol: /^https?$/ }))
        .max(255)
        .default([])
        .meta({ description: "who has validium data, with commas between", env: "MINTMARK_PEERS" }),
    }),
    async run(engine, { rpc, fromBlock, confirmations, peers }, { signal }) {
      const finality = confirmations === undefined ? "finalized" : { confirmations };
      const l1 = await readL1({ ...engine.settlement, rpc, finality });
      const sources = peers.map((peer) => new HttpBatchSource(peer));
      return await adoptFromL1({ engine, l1, fromBlock, sources, signal });
    },
  }),
  "batches.commit": operation({
    summary: "one round with L1: see what happened there, commit what is sealed, send withdrawals that are due",
    examples: [
      "--from-block 19000000 --rpc https://rpc.example --key-stdin < operator.key",
      "--from-block 19000000 --threshold 2 --members 0x…=https://a.example,0x…=https://b.example",
    ],
    input: commit,
    async run(engine, input, { signal }) {
      using _ = claimSettling(engine, { code: "l1_failed", detail: "Another commit is under way; wait for it." });
      return await settle(engine, input, signal);
    },
  }),
};

/** One round of the settler: watches, commits whatever is sealed, and sends withdrawals that are due. */
async function settle(engine: Engine, input: z.output<typeof commit>, signal: AbortSignal): Promise<unknown> {
  const { chainId, contract } = engine.settlement;
  const operator = privateKeyToAccount(input.operatorKey);
  const finality = input.confirmations === undefined ? "finalized" : { confirmations: input.confirmations };
  const l1 = await connectL1({ rpc: input.rpc, contract, chainId, account: operator, finality });
  const members = remoteMembers(input.members, operator, engine);
  const { settler } = settlerOver({ ...input, members }, { engine, l1, fromBlock: input.fromBlock });
  return settler.round(signal);
}

async function findAsset(engine: Engine, wanted: string): Promise<Asset> {
  for await (const asset of engine.operator.assets()) if (asset.assetId === wanted) return asset;
  throw new MintmarkError("asset_not_found");
}
