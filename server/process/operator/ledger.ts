import { z } from "zod";
import { MAX_AMOUNT, MINTING_BLOB_SCHEMES, MODES } from "../../../core/index.ts";
import { address, batchId, mode, page, pageOf, standard, uuid } from "../../routes/api/fields.ts";
import { writerOf } from "../../routes/api/writer.ts";
import { asset } from "../../routes/assets.ts";
import { batch, batchesOf, batchOf, batchView } from "../../routes/batches.ts";
import { whole } from "../settings/fields.ts";
import { operation } from "./operation.ts";
import { APPLICATION, ofApplication } from "./tenants.ts";

export const ASSET_ID = "0b9c5a52-6a39-4a0a-8c56-5f1f2f6f1a21";

export const ofAsset = z.strictObject({ assetId: uuid });
/** An asset without the fields that depend on an application. */
export const operatorsAsset = asset.omit({
  enabled: true,
  mintingAvailable: true,
  unavailableReason: true,
});
const enablement = {
  input: ofAsset.extend(ofApplication.shape),
  answer: asset,
  args: ["assetId"],
  examples: [`${ASSET_ID} ${APPLICATION}`],
} as const;
const positive = whole(/^[1-9]\d{0,77}$/, "Give a whole number from 1.");
const name = (what: string, most: number) =>
  z.string().min(1, `Give ${what}.`).max(most, `Give at most ${most} characters.`).describe(what);
const token = z.strictObject({
  standard,
  contractAddress: address.describe("the token's contract"),
  name: name("the token's name", 200),
  symbol: name("the token's symbol", 50),
});
/** Further facts of a {@link token}. A change keeps missing fields; `null` resets one. */
const facts = z
  .strictObject({
    chainId: positive.describe("the token's chain; default the settlement's"),
    quantum: positive.describe("ERC-20: base units of one quantized unit; default 1"),
    decimals: z
      .int("Give a whole number.")
      .min(0)
      .max(255, "Give at most 255.")
      .describe("decimals of the token; default 0"),
    mintingBlobScheme: z
      .enum(MINTING_BLOB_SCHEMES)
      .describe("how minting blobs name token ids; default mintmark"),
    rawMintingBlobs: z
      .boolean("Give true or false.")
      .describe("true to accept minting blobs of any bytes; default false, text only"),
    dataAvailabilityMode: mode
      .nullable()
      .describe("for mints that name none; default none, the application's"),
    firstTokenId: whole(/^(?:0|[1-9]\d{0,19})$/, "Give a whole number below 2^64.")
      .nullable()
      .describe(
        "ERC-721: the engine numbers the tokens from this id on; default none, mints name ids",
      ),
    supplyCap: positive
      .refine((cap) => cap <= MAX_AMOUNT, `Give at most ${MAX_AMOUNT}.`)
      .nullable()
      .describe("most units that can ever be minted; default none, no limit"),
  })
  .partial();

export const LEDGER_OPERATIONS = {
  "assets.add": operation({
    summary: "add a token contract",
    examples: [
      "0xbcf26943c0197d2ee0e5d05c716be60cc2761508 --standard erc721 --name Swords --symbol SWRD",
    ],
    input: z.strictObject({
      ...token.shape,
      assetId: uuid.optional().describe("its id; default a fresh one"),
      applicationId: uuid
        .optional()
        .describe(
          "the application that owns the token and alone can enable it; default none, any can",
        ),
      ...facts.shape,
    }),
    args: ["contractAddress"],
    answer: operatorsAsset,
    run: (engine, input) => engine.assets.add(input),
  }),
  "assets.change": operation({
    summary:
      "change an asset: its mode and its minting blobs at any time, all else before the first mint",
    examples: [`${ASSET_ID} --mode zk-rollup`, `${ASSET_ID} --standard erc1155 --scheme imx`],
    input: ofAsset.extend({ ...token.partial().shape, ...facts.shape }),
    args: ["assetId"],
    answer: operatorsAsset,
    run: (engine, { assetId, ...changes }) => engine.assets.change(assetId, changes),
  }),
  "assets.remove": operation({
    summary: "remove an asset without mints",
    examples: [ASSET_ID],
    input: ofAsset,
    args: ["assetId"],
    async run(engine, { assetId }) {
      await engine.assets.remove(assetId);
      return { assetId, removed: true };
    },
  }),
  "assets.list": operation({
    summary: "list every asset; all its fields with --json",
    examples: ["", `${APPLICATION} --json`],
    input: z.strictObject({
      applicationId: uuid
        .optional()
        .describe(
          "as this application sees them: enabled assets, and those that can be minted now",
        ),
    }),
    columns: [
      ...[
        "assetId",
        "standard",
        "symbol",
        "contractAddress",
        "chainId",
        "whitelisted",
        "registered",
      ],
      ...["quantum", "decimals", "minted", "supplyCap"],
    ],
    run: (engine, { applicationId }) =>
      applicationId === undefined
        ? Array.fromAsync(engine.operator.assets(), writerOf(operatorsAsset))
        : Array.fromAsync(engine.assets.list(applicationId), writerOf(asset)),
  }),
  "assets.whitelist": operation({
    summary: "let applications enable and mint the asset",
    examples: [ASSET_ID, `${ASSET_ID} --remove`],
    input: ofAsset.extend({
      remove: z.boolean().default(false).describe("take it off the list again"),
    }),
    args: ["assetId"],
    answer: operatorsAsset,
    run: ({ assets }, { assetId, remove }) =>
      remove ? assets.unlist(assetId) : assets.whitelist(assetId),
  }),
  "assets.enable": operation({
    ...enablement,
    summary: "enable the asset for an application",
    run: (engine, { applicationId, assetId }) => engine.assets.enable(applicationId, assetId),
  }),
  "assets.disable": operation({
    ...enablement,
    summary: "disable the asset for an application",
    run: (engine, { applicationId, assetId }) => engine.assets.disable(applicationId, assetId),
  }),
  "batches.seal": operation({
    summary: "close the open batches now, of one mode or of both",
    examples: ["", "--mode zk-rollup"],
    input: z.strictObject({ dataAvailabilityMode: mode.optional() }),
    answer: z.array(batch),
    async run(engine, { dataAvailabilityMode: mode }) {
      const sealed = await Promise.all(
        (mode ? [mode] : MODES).map((each) => engine.operator.seal(each)),
      );
      return sealed.filter((batch) => batch !== null).map(batchView);
    },
  }),
  "batches.status": operation({
    summary: "list batches with their status, newest first; all their fields with --json",
    examples: ["", "--mode validium --limit 5 --json"],
    input: z.strictObject({ mode: mode.optional(), ...page }),
    columns: ["batchId", "vaultCount", "status", "l1BlockNumber", "l1TxHash"],
    answer: pageOf(batch),
    run: (engine, filter) => batchesOf(engine, filter),
  }),
  "export.batch": operation({
    summary: "write a sealed batch's encoded data to a file",
    examples: ["zk-rollup-3 --output zk-rollup-3.bin"],
    input: z.strictObject({ batchId }),
    args: ["batchId"],
    file: "data",
    async run(engine, input) {
      const { data, assets, ...batch } = await engine.batches.getSealed(...batchOf(input.batchId));
      const named = assets.map(({ chainId, assetType }) => ({ chainId: `${chainId}`, assetType }));
      return { ...batch, assets: named, data: Buffer.from(data).toString("hex") };
    },
  }),
};
