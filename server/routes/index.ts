import type { Endpoint } from "./api/endpoint.ts";
import { assetEndpoints } from "./assets.ts";
import { batchEndpoints, stateEndpoints } from "./batches.ts";
import { claimEndpoints } from "./claims.ts";
import { consoleEndpoints } from "./console.ts";
import { depositEndpoints } from "./deposits.ts";
import { dropEndpoints } from "./drops.ts";
import { eventEndpoints } from "./events.ts";
import { metadataEndpoints } from "./metadata.ts";
import { mintEndpoints } from "./mint.ts";
import { newTokenEndpoints } from "./new-tokens.ts";
import { orderEndpoints, ownerOrderEndpoints } from "./orders.ts";
import { ownerEndpoints } from "./owner.ts";
import { serviceEndpoints } from "./service.ts";
import { sessionKeyEndpoints } from "./session-keys.ts";
import { settlementEndpoints } from "./settlements.ts";
import { transactionEndpoints } from "./transactions.ts";
import { ownerTransferEndpoints, transferEndpoints } from "./transfers.ts";
import { userEndpoints } from "./users.ts";
import { publicVaultEndpoints, vaultEndpoints } from "./vaults.ts";
import { webhookEndpoints } from "./webhooks.ts";
import { ownerWithdrawalEndpoints, withdrawalEndpoints } from "./withdrawals.ts";

/** Every route of the API, in the order of the documentation. */
export const ENDPOINTS: readonly Endpoint[] = [
  ...mintEndpoints,
  ...dropEndpoints,
  ...claimEndpoints,
  ...transactionEndpoints,
  ...assetEndpoints,
  ...metadataEndpoints,
  ...userEndpoints,
  ...vaultEndpoints,
  ...withdrawalEndpoints,
  ...depositEndpoints,
  ...transferEndpoints,
  ...sessionKeyEndpoints,
  ...orderEndpoints,
  ...settlementEndpoints,
  ...eventEndpoints,
  ...webhookEndpoints,
  ...batchEndpoints,
  ...publicVaultEndpoints,
  ...stateEndpoints,
  ...consoleEndpoints,
  ...newTokenEndpoints,
  ...ownerEndpoints,
  ...ownerWithdrawalEndpoints,
  ...ownerTransferEndpoints,
  ...ownerOrderEndpoints,
  ...serviceEndpoints,
];
