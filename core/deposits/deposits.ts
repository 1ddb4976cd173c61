import type { EngineContext } from "../ledger/context.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { type List, listOf, type PageOptions } from "../ledger/list.ts";
import { readUsers } from "../ledger/user-records.ts";
import type { Deposit, Uuid } from "../model.ts";
import { packVaultId } from "../protocol/vault.ts";
import { readMaking } from "../vaults/makings.ts";
import type { TransactionFilter } from "../vaults/transaction-range.ts";
import type { Found, ScanOptions } from "../vaults/transaction-scan.ts";
import { findPage } from "../vaults/transactions.ts";
import { amountIn, tokenIn } from "../vaults/vaults.ts";

/** Filter of a list of deposits. */
export interface DepositFilter
  extends PageOptions,
    Pick<
      TransactionFilter,
      "userId" | "ownerAddress" | "assetId" | "vaultId" | "createdAfter" | "createdBefore"
    > {}

export function depositsOf(context: EngineContext): Deposits {
  return {
    list: (applicationId, filter = {}, options = {}) =>
      listOf(context, "deposits", applicationId, filter, async (start, ledger) => {
        const wanted = { ...filter, type: "deposit" } as const;
        const { found, next } = await findPage(
          ledger,
          applicationId,
          wanted,
          "desc",
          start,
          options,
        );
        const { applicationIndex } = ledger.tenants.application(applicationId, null);
        return { data: await depositViews(ledger, applicationIndex, found), next };
      }),
  };
}

async function depositViews(
  ledger: Ledger,
  applicationIndex: number,
  found: readonly Found[],
): Promise<Deposit[]> {
  const users = await readUsers(
    ledger,
    applicationIndex,
    found.map(({ userIndex }) => userIndex),
  );
  const deposits: Deposit[] = [];
  for (const [i, { source, place, assetIndex, mintingBlob }] of found.entries()) {
    if (source.type !== "deposit") continue;
    const asset = ledger.tenants.assetAt(assetIndex);
    const { txHash, blockNumber } = await readMaking(ledger, place.batchNumber);
    deposits.push({
      vaultId: packVaultId(place),
      userId: users[i]?.userId ?? "",
      ownerAddress: source.vault.owner,
      assetId: asset.assetId,
      tokenId: tokenIn(asset, mintingBlob),
      mintingBlob,
      ...amountIn(asset, source.vault.amount),
      l1TxHash: txHash,
      l1BlockNumber: blockNumber,
      createdAt: source.time,
    });
  }
  return deposits;
}

/**
 * Tokens that came back from L1, as vaults that L1 made. The engine tells of one when its block is
 * final.
 *
 * @example
 * for await (const { userId, vaultId, amount } of engine.deposits.list(applicationId))
 * show(userId, vaultId, amount);
 */
export interface Deposits {
  /** Newest first. Pages can be short, as with {@link Transactions.list}. */
  list(applicationId: Uuid, filter?: DepositFilter, options?: ScanOptions): List<Deposit>;
}
