import { z } from "zod";
import type { EventData } from "../../core/index.ts";
import * as s from "./common.ts";

const batch = z.strictObject({
  batchId: z.string(),
  dataAvailabilityMode: s.mode,
  vaultCount: z.int().describe("Vaults of all applications."),
  batchRoot: s.outHash,
  l1TxHash: s.outHash.nullable(),
  l1BlockNumber: s.outDecimal.nullable(),
});

const withdrawal = z.strictObject({
  withdrawalId: s.outUuid,
  userId: s.outUuid,
  chainId: s.outDecimal,
  vaultId: s.outDecimal,
  quantity: s.outDecimal,
  recipient: s.outAddress,
  l1TxHash: s.outHash.nullable(),
  l1BlockNumber: s.outDecimal.nullable(),
  failure: z.string().nullable(),
});

const mint = z.strictObject({ mintId: s.outUuid, users: z.int(), mints: z.int() });
const failedMint = z.strictObject({ firstVaultId: s.outDecimal, vaults: z.int(), failure: z.string() });
const transfer = z.strictObject({ transferId: s.outUuid, transfers: z.int(), redemptions: z.int() });
const redeemed = z.strictObject({
  transferId: s.outUuid,
  userId: s.outUuid,
  vaultId: s.outDecimal,
  amount: s.outDecimal.describe("Units; 0: all that was left of the vault."),
});
const failedTransfer = z.strictObject({ transferId: s.outUuid, failure: z.string() });
const asset = z.strictObject({ assetId: s.outUuid });

const DATA = {
  "mint.accepted": mint,
  "mint.failed": failedMint,
  "asset.enabled": asset,
  "asset.disabled": asset,
  "batch.sealed": batch,
  "batch.submitted": batch,
  "batch.settled": batch,
  "batch.finalized": batch,
  "batch.reverted": batch,
  "withdrawal.accepted": withdrawal,
  "withdrawal.submitted": withdrawal,
  "withdrawal.attempt_refused": withdrawal,
  "withdrawal.settled": withdrawal,
  "withdrawal.finalized": withdrawal,
  "withdrawal.failed": withdrawal,
  "withdrawal.reverted": withdrawal,
  "transfer.accepted": transfer,
  "transfer.redeemed": redeemed,
  "transfer.failed": failedTransfer,
  "webhook.disabled": z.strictObject({ webhookId: s.outUuid, failure: z.string() }),
} as const satisfies Record<keyof EventData, z.ZodType>;

type Type = keyof typeof DATA;
type Wire<T extends Type> = z.ZodObject<{
  sequence: z.ZodInt;
  type: z.ZodLiteral<T>;
  createdAt: typeof s.outTime;
  data: (typeof DATA)[T];
}>;

const events = Object.entries(DATA).map(([type, data]) =>
  z.strictObject({
    sequence: z.int().describe("1, 2, 3 … within the application, consecutive."),
    type: z.literal(type),
    createdAt: s.outTime,
    data,
  }),
) as unknown as { [T in Type]: Wire<T> }[Type][];

/** One event; its type is the discriminator. */
export const event = s.responseComponent(
  "Event",
  z.discriminatedUnion("type", events as [(typeof events)[0], ...typeof events]),
);

export const eventType = z.enum(Object.keys(DATA) as [Type, ...Type[]]);

export const eventPage = s.responseComponent("EventPage", {
  data: z.array(event),
  hasMore: z.boolean().describe("Whether there are more now: continue after the last one's sequence."),
});

export const eventQuery = z.strictObject({
  after: s.eventSequence
    .optional()
    .describe("Only events after this one; default all. A Last-Event-ID header has precedence."),
  limit: s.page.limit,
});
