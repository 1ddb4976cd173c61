import type { z } from "zod";
import type {
  Application,
  Asset,
  Balance,
  Batch,
  BatchVaultProof,
  Engine,
  EngineState,
  ListedWithdrawal,
  MintReceipt,
  MintResult,
  Page,
  PortalIdentity,
  Transaction,
  Usage,
  User,
  Vault,
  Withdrawal,
} from "../../core/index.ts";
import type { application } from "../schemas/application.ts";
import type { asset } from "../schemas/assets.ts";
import type { batch, portal, state } from "../schemas/batches.ts";
import type { mintReply } from "../schemas/mint.ts";
import type { transaction } from "../schemas/transactions.ts";
import type { usage } from "../schemas/usage.ts";
import type { balance, user } from "../schemas/users.ts";
import type { vault, vaultProof } from "../schemas/vaults.ts";
import type { withdrawal } from "../schemas/withdrawals.ts";

// The core's things as JSON: the one place where a bigint becomes a decimal string and a time becomes RFC 3339. Every field is named
// here, so that nothing the core may add one day is published by accident; the compiler holds each result equal to its schema.

/** A whole number without rounding: decimal digits. */
export function decimal(value: bigint): string {
  return value.toString();
}

export function decimalOrNull(value: bigint | null): string | null {
  return value === null ? null : decimal(value);
}

let lastTime = Number.NaN;
let lastText = "";

/** RFC 3339 in UTC. The things of one answer mostly share a time, so the last one is kept. */
export function time(milliseconds: number): string {
  if (milliseconds !== lastTime) {
    lastText = new Date(milliseconds).toISOString();
    lastTime = milliseconds;
  }
  return lastText;
}

function times<K extends string>(timestamps: Readonly<Partial<Record<K, number>>>): Partial<Record<K, string>> {
  const texts: Partial<Record<K, string>> = {};
  for (const name in timestamps) {
    const at = timestamps[name];
    if (at !== undefined) texts[name] = time(at);
  }
  return texts;
}

export function pageToWire<T, W>(page: Page<T>, toWire: (entry: T) => W) {
  const { data, nextCursor, hasMore, limit } = page;
  return { data: data.map(toWire), pagination: { nextCursor, hasMore, limit } };
}

export function vaultToWire(from: Vault): z.output<typeof vault> {
  return {
    vaultId: decimal(from.vaultId),
    userId: from.userId,
    ownerAddress: from.ownerAddress,
    assetId: from.assetId,
    assetType: from.assetType,
    quantum: decimal(from.quantum),
    decimals: from.decimals,
    mintingBlob: from.mintingBlob,
    tokenId: decimalOrNull(from.tokenId),
    dataAvailabilityMode: from.dataAvailabilityMode,
    amount: decimal(from.amount),
    availableBalance: decimal(from.availableBalance),
    withdrawnBalance: decimal(from.withdrawnBalance),
    batchId: from.batchId,
    status: from.status,
    createdAt: time(from.createdAt),
    updatedAt: time(from.updatedAt),
  };
}

export async function mintToWire(from: MintResult): Promise<z.output<typeof mintReply>> {
  const receipt = await from.receipt();
  return {
    mintId: from.mintId,
    vaults: from.vaults.map(vaultToWire),
    transactions: from.transactions.map(({ transactionId, userIndex, mintIndex, vaultId, status }) => ({
      transactionId,
      userIndex,
      mintIndex,
      vaultId: decimal(vaultId),
      status,
    })),
    receipt: receipt === null ? null : receiptToWire(receipt),
  };
}

export function receiptToWire({ root, count, time, signer, signature, chainIds }: MintReceipt) {
  const chains = Object.entries(chainIds).map(([assetId, chainId]) => [assetId, decimal(chainId)] as const);
  return { root, count, time, signer, signature, chainIds: Object.fromEntries(chains) };
}

export function transactionToWire(from: Transaction): z.output<typeof transaction> {
  return {
    transactionId: from.transactionId,
    sequence: from.sequence,
    type: from.type,
    status: from.status,
    mintId: from.mintId,
    reference: from.reference,
    userId: from.userId,
    vaultId: decimal(from.vaultId),
    assetId: from.assetId,
    quantum: decimal(from.quantum),
    decimals: from.decimals,
    mintingBlob: from.mintingBlob,
    amount: decimal(from.amount),
    dataAvailabilityMode: from.dataAvailabilityMode,
    batchId: from.batchId,
    l1TxHash: from.l1TxHash,
    l1BlockNumber: decimalOrNull(from.l1BlockNumber),
    failure: from.failure,
    timestamps: times(from.timestamps),
  };
}

export function assetToWire(from: Asset): z.output<typeof asset> {
  return {
    assetId: from.assetId,
    standard: from.standard,
    assetType: from.assetType,
    chainId: decimal(from.chainId),
    contractAddress: from.contractAddress,
    name: from.name,
    symbol: from.symbol,
    quantum: decimal(from.quantum),
    decimals: from.decimals,
    blobScheme: from.blobScheme,
    rawBlobs: from.rawBlobs,
    dataAvailabilityMode: from.dataAvailabilityMode,
    nextTokenId: decimalOrNull(from.nextTokenId),
    supplyCap: decimalOrNull(from.supplyCap),
    minted: decimal(from.minted),
    whitelisted: from.whitelisted,
    enabled: from.enabled,
    registered: from.registered,
    minterLocked: from.minterLocked,
    mintable: from.mintable,
    mintingAvailable: from.mintingAvailable,
    unavailableReason: from.unavailableReason,
  };
}

/** As the operator sees it: what an application has enabled, and so may mint now, is that application's. */
export function assetToOperator(from: Asset) {
  const { enabled: _enabled, mintingAvailable: _available, unavailableReason: _reason, ...known } = assetToWire(from);
  return known;
}

export function applicationToWire(from: Application): z.output<typeof application> {
  const { applicationId, name, suspended, dataAvailabilityMode, createdAt } = from;
  return { applicationId, name, suspended, dataAvailabilityMode, createdAt: time(createdAt) };
}

export function usageToWire({ mints, transactions, keys, periods }: Usage): z.output<typeof usage> {
  return {
    mints: decimal(mints),
    transactions,
    keys: keys.map(({ keyId, mintsUsed, mintQuota, revokedAt }) => ({
      keyId,
      mintsUsed: decimal(mintsUsed),
      mintQuota: decimalOrNull(mintQuota),
      revokedAt: revokedAt === null ? null : time(revokedAt),
    })),
    periods: periods.map(({ since, until, transactions }) => ({
      since: time(since),
      until: time(until),
      transactions,
    })),
  };
}

export function userToWire(from: User): z.output<typeof user> {
  const { userId, ownerAddress, reference, createdAt } = from;
  return { userId, ownerAddress, reference, createdAt: time(createdAt) };
}

export function balanceToWire(from: Balance): z.output<typeof balance> {
  return {
    assetId: from.assetId,
    quantum: decimal(from.quantum),
    decimals: from.decimals,
    tokenId: decimalOrNull(from.tokenId),
    mintingBlob: from.mintingBlob,
    amount: decimal(from.amount),
    available: decimal(from.available),
    withdrawn: decimal(from.withdrawn),
  };
}

export function batchToWire(from: Batch): z.output<typeof batch> {
  return {
    batchId: from.batchId,
    mode: from.mode,
    batchNumber: from.batchNumber,
    vaultCount: from.vaultCount,
    status: from.status,
    assets: from.assets.map(({ chainId, assetType }) => ({ chainId: decimal(chainId), assetType })),
    leftOut: (from.leftOut ?? []).flatMap(({ asset, failure }) => {
      const named = from.assets[asset];
      return named === undefined ? [] : [{ chainId: decimal(named.chainId), assetType: named.assetType, failure }];
    }),
    content: from.content,
    batchRoot: from.batchRoot,
    dataHash: from.dataHash,
    stateRoot: from.stateRoot,
    l1TxHash: from.l1TxHash,
    l1BlockNumber: decimalOrNull(from.l1BlockNumber),
    committedAt: decimalOrNull(from.committedAt),
    l1Sequence: decimalOrNull(from.l1Sequence),
    timestamps: times(from.timestamps),
  };
}

export function proofToWire({ vault, header, ...rest }: BatchVaultProof): z.output<typeof vaultProof> {
  return {
    vault: {
      vaultId: decimal(vault.vaultId),
      chainId: decimal(vault.chainId),
      owner: vault.owner,
      assetType: vault.assetType,
      amount: decimal(vault.amount),
      blob: vault.blob,
    },
    vaultCount: rest.vaultCount,
    batchRoot: rest.batchRoot,
    leaf: rest.leaf,
    siblings: [...rest.siblings],
    assetPath: { index: rest.assetPath.index, siblings: [...rest.assetPath.siblings] },
    header: header && {
      batchRoot: header.batchRoot,
      vaultCount: header.vaultCount,
      committedAt: decimal(header.committedAt),
      sequence: decimal(header.sequence),
    },
  };
}

export function portalToWire({ chainId, contract }: PortalIdentity): z.output<typeof portal> {
  return { chainId: decimal(chainId), contract };
}

export function stateToWire(
  engine: Pick<Engine, "settlement" | "operator">,
  sealed: EngineState,
  committed: EngineState,
): z.output<typeof state> {
  const { settlement } = engine;
  return {
    ...portalToWire(settlement),
    engineVersion: settlement.engineVersion,
    portals: engine.operator.portals().map(portalToWire),
    sealed: rootsToWire(sealed),
    committed: rootsToWire(committed),
  };
}

function rootsToWire({ countValidium, countRollup, rootValidium, rootRollup, commitment }: EngineState) {
  return { countValidium, countRollup, rootValidium, rootRollup, commitment };
}

export function listedWithdrawalToWire({ vaultId, withdrawal, error }: ListedWithdrawal) {
  return {
    vaultId: decimal(vaultId),
    withdrawal: withdrawal && withdrawalToWire(withdrawal),
    error: error && { code: error.code, detail: error.message },
  };
}

export function withdrawalToWire(from: Withdrawal): z.output<typeof withdrawal> {
  return {
    withdrawalId: from.withdrawalId,
    userId: from.userId,
    chainId: decimal(from.chainId),
    vaultId: decimal(from.vaultId),
    quantity: decimal(from.quantity),
    recipient: from.recipient,
    withdrawnBefore: decimal(from.withdrawnBefore),
    deadline: decimal(from.deadline),
    status: from.status,
    l1TxHash: from.l1TxHash,
    l1BlockNumber: decimalOrNull(from.l1BlockNumber),
    failure: from.failure,
    createdAt: time(from.createdAt),
    updatedAt: time(from.updatedAt),
  };
}
