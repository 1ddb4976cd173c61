import type { Endpoint } from "./api/endpoint.ts";
import { applicationEndpoints } from "./application.ts";
import { assetEndpoints } from "./assets.ts";
import { batchEndpoints, stateEndpoints } from "./batches.ts";
import { claimEndpoints } from "./claims.ts";
import { consoleEndpoints } from "./console.ts";
import { dropEndpoints } from "./drops.ts";
import { eventEndpoints } from "./events.ts";
import { healthEndpoints } from "./health.ts";
import { limitEndpoints } from "./limits.ts";
import { metadataEndpoints } from "./metadata.ts";
import { mintEndpoints } from "./mint.ts";
import { newTokenEndpoints } from "./new-tokens.ts";
import { openApiEndpoints } from "./openapi.ts";
import { ownerEndpoints } from "./owner.ts";
import { ownerWithdrawalEndpoints } from "./owner-withdrawals.ts";
import { sessionKeyEndpoints } from "./session-keys.ts";
import { tokenEndpoints } from "./token.ts";
import { transactionEndpoints } from "./transactions.ts";
import { ownerTransferEndpoints, transferEndpoints } from "./transfers.ts";
import { usageEndpoints } from "./usage.ts";
import { userEndpoints } from "./users.ts";
import { publicVaultEndpoints, vaultEndpoints } from "./vaults.ts";
import { webhookEndpoints } from "./webhooks.ts";
import { withdrawalEndpoints } from "./withdrawals.ts";

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
  ...transferEndpoints,
  ...sessionKeyEndpoints,
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
  ...limitEndpoints,
  ...applicationEndpoints,
  ...usageEndpoints,
  ...tokenEndpoints,
  ...healthEndpoints,
  ...openApiEndpoints,
];
