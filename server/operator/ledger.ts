import { isAbsolute } from "node:path";
import { z } from "zod";
import { BLOB_SCHEMES, LevelJournal, MAX_AMOUNT, MODES, type Mode } from "../../core/index.ts";
import { address, batchId, mode, page, standard, uuid } from "../schemas/common.ts";
import {
  assetToOperator,
  assetToWire,
  batchToWire,
  decimal,
  pageToWire,
  transactionToWire,
  withdrawalToWire,
} from "../wire/wire.ts";
import { operation } from "./operation.ts";

const folder = z.string().refine(isAbsolute, "Give the folder's whole path.");
const asset = z.strictObject({ assetId: uuid });
const enablement = asset.extend({ applicationId: uuid });
const positive = z
  .string()
  .regex(/^[1-9]\d{0,77}$/, "Give a whole number from 1.")
  .transform(BigInt);
const factsOfAsset = {
  standard,
  contractAddress: address,
  chainId: positive.optional(),
  quantum: positive.optional(),
  name: z.string().min(1, "Give the token's name.").max(200, "Give at most 200 characters."),
  symbol: z.string().min(1, "Give the token's symbol.").max(50, "Give at most 50 characters."),
  decimals: z.int("Give a whole number.").min(0).max(255, "Give at most 255.").optional(),
  blobScheme: z.enum(BLOB_SCHEMES).optional(),
  rawBlobs: z.boolean("Give true or false.").optional(),
  dataAvailabilityMode: mode.nullable().optional(),
  firstTokenId: z
    .string()
    .regex(/^(?:0|[1-9]\d{0,19})$/, "Give a whole number below 2^64.")
    .transform(BigInt)
    .nullable()
    .optional(),
  supplyCap: positive
    .refine((cap) => cap <= MAX_AMOUNT, `Give at most ${MAX_AMOUNT}.`)
    .nullable()
    .optional(),
};
const newAsset = z.strictObject({ assetId: uuid.optional(), ...factsOfAsset, applicationId: uuid.optional() });
const changedAsset = z.strictObject(factsOfAsset).partial().extend({ assetId: uuid });

/** Assets, batches, withdrawals, and whether all of it is what the journal says. */
export const LEDGER_OPERATIONS = {
  "assets.add": operation(newAsset, async (engine, input) => assetToOperator(await engine.assets.add(input))),
  "assets.change": operation(changedAsset, async (engine, { assetId, ...changes }) =>
    assetToOperator(await engine.assets.change(assetId, changes)),
  ),
  "assets.remove": operation(asset, async (engine, { assetId }) => {
    await engine.assets.remove(assetId);
    return { assetId, removed: true };
  }),
  "assets.list": operation(z.strictObject({ applicationId: uuid.optional() }), (engine, { applicationId }) =>
    applicationId === undefined
      ? Array.fromAsync(engine.operator.assets(), assetToOperator)
      : Array.fromAsync(engine.assets.list(applicationId), assetToWire),
  ),
  "assets.whitelist": operation(asset.extend({ whitelisted: z.boolean() }), async (engine, input) =>
    assetToOperator(
      await (input.whitelisted ? engine.assets.whitelist(input.assetId) : engine.assets.unlist(input.assetId)),
    ),
  ),
  "assets.enable": operation(enablement, async (engine, { applicationId, assetId }) =>
    assetToWire(await engine.assets.enable(applicationId, assetId)),
  ),
  "assets.disable": operation(enablement, async (engine, { applicationId, assetId }) =>
    assetToWire(await engine.assets.disable(applicationId, assetId)),
  ),
  "batches.seal": operation(z.strictObject({ mode: mode.optional() }), async (engine, input) => {
    const sealed = await Promise.all((input.mode ? [input.mode] : MODES).map((each) => engine.operator.seal(each)));
    return sealed.filter((batch) => batch !== null).map(batchToWire);
  }),
  "batches.status": operation(z.strictObject({ mode: mode.optional(), ...page }), async (engine, filter) =>
    pageToWire(await engine.batches.list(filter), batchToWire),
  ),
  "batches.data": operation(z.strictObject({ batchId }), async (engine, input) => {
    const { data, assets, ...batch } = await engine.batches.getSealed(...numberOf(input.batchId));
    const named = assets.map(({ chainId, assetType }) => ({ chainId: decimal(chainId), assetType }));
    return { ...batch, assets: named, data: Buffer.from(data).toString("hex") };
  }),
  "withdrawals.list": operation(z.strictObject({ applicationId: uuid, ...page }), async (engine, input) => {
    const { applicationId, ...options } = input;
    return pageToWire(
      await engine.transactions.list(applicationId, { ...options, type: "withdrawal" }),
      transactionToWire,
    );
  }),
  "withdrawals.show": operation(z.strictObject({ applicationId: uuid, withdrawalId: uuid }), async (engine, input) =>
    withdrawalToWire(await engine.withdrawals.get(input.applicationId, input.withdrawalId)),
  ),
  "withdrawals.pending": operation(z.strictObject({}), async (engine) => {
    const chains = engine.operator
      .portals()
      .map(({ chainId }) => Array.fromAsync(engine.operator.pendingWithdrawals(chainId)));
    return (await Promise.all(chains))
      .flat()
      .map(({ withdrawal, standard }) => ({ ...withdrawalToWire(withdrawal), standard }));
  }),
  backup: operation(z.strictObject({ folder }), async (engine, input, { signal, progress }) => {
    await using journal = await LevelJournal.open(input.folder);
    const onProgress = (entries: number) => progress(`${entries} journal entries`);
    return { folder: input.folder, ...(await engine.operator.backup(journal, { signal, onProgress })) };
  }),
  verify: operation(z.strictObject({}), async (engine, _, { signal, progress }) => {
    const onProgress = (entries: number) => progress(`${entries} journal entries`);
    const { state, ...report } = await engine.operator.verify({ signal, onProgress });
    const { countValidium, countRollup, ...roots } = state;
    return {
      ...report,
      state: { ...roots, countValidium: decimal(BigInt(countValidium)), countRollup: `${countRollup}` },
    };
  }),
} as const;

function numberOf(id: string): [Mode, number] {
  const dash = id.lastIndexOf("-");
  return [id.slice(0, dash) as Mode, Number(id.slice(dash + 1))];
}
