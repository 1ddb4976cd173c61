import type { z } from "zod";
import type { ApplicationEvent } from "../../core/index.ts";
import type { event } from "../schemas/events.ts";
import { decimal, decimalOrNull, time } from "./wire.ts";

type Wire = z.output<typeof event>;

/** An event as JSON, as the stream, the pages and the webhooks all show it. */
export function eventToWire({ sequence, type, createdAt, data }: ApplicationEvent): Wire {
  return { sequence, type, createdAt: time(createdAt), data: dataToWire(data) } as Wire;
}

/** Every field is named here, as in server/wire/wire.ts. */
function dataToWire(data: ApplicationEvent["data"]): Wire["data"] {
  if ("mintId" in data) return { mintId: data.mintId, users: data.users, mints: data.mints };
  if ("webhookId" in data) return { webhookId: data.webhookId, failure: data.failure };
  if ("assetId" in data) return { assetId: data.assetId };
  if ("firstVaultId" in data) {
    return { firstVaultId: decimal(data.firstVaultId), vaults: data.vaults, failure: data.failure };
  }
  const onL1 = { l1TxHash: data.l1TxHash, l1BlockNumber: decimalOrNull(data.l1BlockNumber) };
  if ("batchId" in data) {
    const { batchId, dataAvailabilityMode, vaultCount, batchRoot } = data;
    return { batchId, dataAvailabilityMode, vaultCount, batchRoot, ...onL1 };
  }
  return {
    withdrawalId: data.withdrawalId,
    userId: data.userId,
    chainId: decimal(data.chainId),
    vaultId: decimal(data.vaultId),
    quantity: decimal(data.quantity),
    recipient: data.recipient,
    ...onL1,
    failure: data.failure,
  };
}
