import { isAbsolute } from "node:path";
import { z } from "zod";
import { type Asset, type Engine, KzgThread, MintmarkError } from "../../../core/index.ts";
import { member, privateKey, url, whole } from "../settings/fields.ts";
import { SETTINGS } from "../settings/settings.ts";
import { ASSET_ID, ofAsset, operatorsAsset } from "./ledger.ts";
import { operation } from "./operation.ts";

/**
 * The connection to L1 is loaded when an operation runs: a command's help needs the forms alone.
 */
const toL1 = async () => {
  const [l1, { finalityOf }] = await Promise.all([
    import("../../../core/l1/index.ts"),
    import("../../jobs/chain.ts"),
  ]);
  return { ...l1, finalityOf };
};

const key = privateKey("Give a private key");
const rpc = url("the address of the chain's RPC").meta({
  description: "the chain's RPC",
  env: "MINTMARK_RPC_URL",
});
const blocks = whole(/^\d{1,18}$/, "Give a whole number of blocks.");
const addresses = z
  .array(z.url({ protocol: /^https?$/ }))
  .max(255)
  .default([]);
const followed = z.strictObject({
  rpc,
  fromBlock: blocks.meta({
    description: "deployment block of the settlement contract",
    env: "MINTMARK_FROM_BLOCK",
  }),
  confirmations: blocks
    .optional()
    .describe("blocks that make one final, for chains without finality"),
});
const members = SETTINGS.MINTMARK_MEMBERS.meta({
  description: "the committee, for validium: address=url, separated by commas",
  env: "MINTMARK_MEMBERS",
});
const commit = followed.extend({
  members,
  threshold: SETTINGS.MINTMARK_THRESHOLD.meta({
    description: "signatures that a validium batch needs",
    env: "MINTMARK_THRESHOLD",
  }),
  operatorKey: key
    .optional()
    .meta({ description: "the operator's private key", secret: "MINTMARK_OPERATOR_KEY" }),
  operatorSigner: member.optional().meta({
    description: "in place of the key: <address>=<url> of a service that signs",
    env: "MINTMARK_OPERATOR_SIGNER",
  }),
});

/**
 * Operations with L1: registering tokens and committing batches. Keys come with each call and are
 * not stored.
 */
export const SETTLEMENT_OPERATIONS = {
  "assets.register": operation({
    summary: "record that L1's registry has the token; with a key, register it there first",
    examples: [`${ASSET_ID} --rpc https://rpc.example`, `${ASSET_ID} --key-stdin < registrar.key`],
    input: ofAsset.extend({
      rpc,
      registrarKey: key.optional().meta({
        description: "the paying account's private key",
        secret: "MINTMARK_REGISTRAR_KEY",
      }),
    }),
    args: ["assetId"],
    answer: operatorsAsset,
    async run(engine, { assetId, rpc, registrarKey }) {
      const [{ privateKeyToAccount }, { connectL1, readL1 }] = await Promise.all([
        import("viem/accounts"),
        toL1(),
      ]);
      const asset = await findAsset(engine, assetId);
      const { settlement } = engine;
      const l1 = await readL1({ ...settlement, rpc });
      const registration = () => l1.registration(asset.chainId, asset.assetType);
      let registered = await registration();
      if (registered === null) {
        if (registrarKey === undefined) {
          throw new MintmarkError(
            "asset_not_registered",
            "L1's registry does not have the token; give a key that pays for the registration.",
          );
        }
        const registrar = await connectL1({
          ...settlement,
          rpc,
          account: privateKeyToAccount(registrarKey),
        });
        await registrar.registerAsset(asset);
        registered = await registration();
      }
      // This chain's node cannot read a token of another chain.
      const isHere = asset.chainId === settlement.chainId;
      // Mints in a scheme other than L1's could never be withdrawn. An ERC-20 has no minting blobs.
      if (
        isHere &&
        asset.standard !== "erc20" &&
        registered?.mintingBlobScheme !== asset.mintingBlobScheme
      ) {
        const detail = `L1 reads this token's minting blobs as ${registered?.mintingBlobScheme}; the asset here has ${asset.mintingBlobScheme}, permanently.`;
        throw new MintmarkError("validation_failed", detail);
      }
      const transferable = isHere && (await l1.isTransferable(asset));
      const facts = {
        transferable,
        ...(isHere && (await l1.token(asset.contractAddress, asset.standard))),
      };
      return await engine.operator.recordRegistered(assetId, facts);
    },
  }),
  "batches.adopt": operation({
    summary: "replace this store's history by L1's, after two servers ran on copies of one store",
    examples: ["--from-block 19000000 --rpc https://rpc.example --peers https://member.example"],
    input: followed.extend({
      peers: addresses.meta({
        description:
          "sources of the data of validium batches and of those in blobs, separated by commas",
        env: "MINTMARK_PEERS",
      }),
      members: members.meta({
        description: "the committee, asked after the peers: address=url, separated by commas",
        env: "MINTMARK_MEMBERS",
      }),
      beacons: addresses.meta({
        description: "beacon nodes, asked before them for blobs, separated by commas",
        env: "MINTMARK_BEACONS",
      }),
      blobs: z
        .string()
        .refine(isAbsolute, "Give the folder's whole path.")
        .optional()
        .meta({ description: "folder of blobs, asked first", env: "MINTMARK_BLOBS", isPath: true }),
    }),
    async run(
      engine,
      { rpc, fromBlock, confirmations, peers, members, beacons, blobs: folder },
      { signal },
    ) {
      const [{ BeaconNode, BlobFolder, HttpBatchSource }, { finalityOf, readL1 }, { adoptFromL1 }] =
        await Promise.all([
          import("../../../core/archive/index.ts"),
          toL1(),
          import("../../../core/settlement/index.ts"),
        ]);
      const l1 = await readL1({ ...engine.settlement, rpc, finality: finalityOf(confirmations) });
      const urls = new Set([...peers, ...members.map(({ url }) => url)]);
      const sources = [...urls].map((url) => new HttpBatchSource(url));
      const folders = folder === undefined ? [] : [new BlobFolder(folder)];
      const blobs = [...folders, ...beacons.map((url) => new BeaconNode(url))];
      return await adoptFromL1({ engine, l1, fromBlock, blobs, sources, signal });
    },
  }),
  rescan: operation({
    examples: ["--from-block 19000000 --rpc https://rpc.example"],
    input: followed.extend({
      chain: whole(/^[1-9]\d{0,18}$/, "Give a chain id.")
        .optional()
        .describe("id of a mirror's chain; default the settlement contract's"),
      takeBack: z
        .boolean()
        .default(false)
        .describe("first take back what is recorded of these blocks, whatever the node says now"),
    }),
    async run(engine, { rpc, fromBlock, confirmations, chain, takeBack }, { signal }) {
      const [{ finalityOf, readL1, readMirror }, { rescan }] = await Promise.all([
        toL1(),
        import("../../../core/settlement/index.ts"),
      ]);
      const { chainId, contract } = engine.operator.portal(chain ?? engine.settlement.chainId);
      const at = { chainId, contract, rpc, finality: finalityOf(confirmations) };
      const isHome = chainId === engine.settlement.chainId;
      const portal = await (isHome ? readL1(at) : readMirror(at));
      const { added, toBlock } = await rescan({ engine, portal, fromBlock, takeBack, signal });
      return { added, toBlock: `${toBlock}` };
    },
  }),
  "batches.commit": operation({
    summary: "one round with L1: read its events, commit sealed batches, send due withdrawals",
    examples: [
      "--from-block 19000000 --rpc https://rpc.example --key-stdin < operator.key",
      "--from-block 19000000 --threshold 2 --members 0x…=https://a.example,0x…=https://b.example",
    ],
    input: commit,
    async run(
      engine,
      { rpc, confirmations, members, operatorKey, operatorSigner, ...terms },
      { signal },
    ) {
      const [
        { RemoteMember },
        { connectL1, finalityOf },
        { accountOf },
        { reserveSettling, settlerOver },
      ] = await Promise.all([
        import("../../../core/committee/index.ts"),
        toL1(),
        import("../account.ts"),
        import("../settling.ts"),
      ]);
      using _ = reserveSettling(engine, {
        code: "l1_failed",
        detail: "Another commit is in progress; wait for it.",
      });
      const operator = await accountOf({ key: operatorKey, signer: operatorSigner });
      if (operator === undefined) throw new MintmarkError("validation_failed", NO_KEY);
      const { settlement } = engine;
      const kzg = new KzgThread();
      try {
        const finality = finalityOf(confirmations);
        const l1 = await connectL1({ ...settlement, rpc, account: operator, finality, kzg });
        const asked = members.map(
          (member) => new RemoteMember({ ...member, operator, settlement }),
        );
        return await settlerOver({ ...terms, engine, l1, members: asked }).settler.round(signal);
      } finally {
        await kzg.close();
      }
    },
  }),
};

const NO_KEY = "Give the operator's key, its keystore, or MINTMARK_OPERATOR_SIGNER.";

async function findAsset(engine: Engine, wanted: string): Promise<Asset> {
  for await (const asset of engine.operator.assets()) if (asset.assetId === wanted) return asset;
  throw new MintmarkError("asset_not_found");
}
