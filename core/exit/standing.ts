import { blockRanges, commitsIn } from "../blocks.ts";
import { invalid, MintmarkError } from "../errors.ts";
import { batchIdOf, type VaultId } from "../model.ts";
import type { CommitEvent, L1Reader, ProvenHop } from "../ports.ts";
import { BatchTree } from "../protocol/batch-tree.ts";
import { unpackHashes } from "../protocol/hex.ts";
import { isRedemption } from "../protocol/transfer.ts";
import { decodeTransferData, transferLeaves, transferOutputs } from "../protocol/transfer-data.ts";
import { hopOf, isTransferred } from "../protocol/transfer-proof.ts";
import { unpackBatchVaultId } from "../protocol/vault.ts";
import type { ExitKit } from "./kit.ts";

/** A chain that tells how a kit's vault stands. */
export type StandingChain = Pick<
  L1Reader,
  "settlement" | "verifyVault" | "verifyTransferred" | "withdrawn"
> &
  TransferLog;

/** A chain that tells which record spends a vault. */
type TransferLog = Pick<L1Reader, "block" | "blockNumber" | "events" | "rollupData">;

/** Where to look for the record that spends a vault. */
export interface SearchOptions {
  /** Where to begin; default the block of the vault's commit. Blocks before it come last. */
  readonly fromBlock?: bigint;
  readonly signal?: AbortSignal;
}

/** How a kit's vault stands on L1. */
export interface Standing {
  /**
   * The kit as L1 takes it now: with the refutation of a record that spends the vault but does not
   * count.
   */
  readonly kit: ExitKit;
  readonly withdrawnBefore: bigint;
  /** Units. */
  readonly left: bigint;
}

/**
 * How a kit's vault stands on L1. When a committed record spends the vault, looks for it, and has
 * the contract decide whether it counts.
 *
 * @throws MintmarkError `vault_spent` when the owner has given the vault away or redeemed it;
 *   `l1_failed` with the contract's reason
 *
 * @example
 * const { kit: complete, left } = await standingOf(kit, l1);
 */
export async function standingOf(
  kit: ExitKit,
  l1: StandingChain,
  options: SearchOptions = {},
): Promise<Standing> {
  const { refutation: _, ...bare } = kit;
  try {
    return await verified(kit, l1);
  } catch (error) {
    if (!isSpentError(error)) throw error;
    const spending = await findSpending(kit, l1, options);
    try {
      return await verified({ ...bare, refutation: spending }, l1);
    } catch (counted) {
      if (isSpentError(counted))
        throw new MintmarkError("vault_spent", whereItWent(kit.tip.vaultId, spending));
      throw counted;
    }
  }
}

/** Has the contract verify the kit. Rejects with its reason. */
export async function verified(kit: ExitKit, l1: StandingChain): Promise<Standing> {
  const { tip, token } = kit;
  if (!isTransferred(kit)) {
    const withdrawnBefore = await l1.verifyVault(kit);
    return { kit, withdrawnBefore, left: tip.amount - withdrawnBefore };
  }
  const { owner, left } = await l1.verifyTransferred(kit);
  const withdrawnBefore = await l1.withdrawn(tip.vaultId, token.standard);
  if (owner !== tip.owner || left + withdrawnBefore !== tip.amount) {
    const detail = `The kit names ${tip.amount} units of ${tip.owner}, and L1 ${left + withdrawnBefore} of ${owner}.`;
    throw invalid(detail);
  }
  return { kit, withdrawnBefore, left };
}

/** Whether the contract refused a vault because a record spends it. */
export function isSpentError(error: unknown): boolean {
  return (
    error instanceof MintmarkError &&
    error.code === "l1_failed" &&
    error.message.includes("VaultSpent(")
  );
}

function whereItWent(vaultId: VaultId, { outId, part, to, amount, header }: ProvenHop): string {
  const { batchNumber } = unpackBatchVaultId(outId);
  const what = amount === 0n ? `vault ${vaultId}` : `${amount} units of vault ${vaultId}`;
  const change = part === 0 && amount !== 0n ? ` The rest is in vault ${outId + 1n}.` : "";
  const did = isRedemption({ to }) ? `redeemed ${what}` : `gave ${what} to ${to}`;
  const made = isRedemption({ to }) ? "" : ` It is vault ${outId} now.`;
  const when = new Date(Number(header.committedAt) * 1000).toISOString();
  return `The owner ${did}, in ${batchIdOf("zk-rollup", batchNumber)} at ${when}.${made}${change}`;
}

/** The committed record that spends a kit's vault. There is at most one. */
async function findSpending(
  { tip, hops, header }: ExitKit,
  l1: StandingChain,
  options: SearchOptions,
) {
  const { vaultId } = tip;
  const start =
    options.fromBlock ?? (await blockAt(l1, (hops?.at(-1)?.header ?? header).committedAt));
  for await (const event of commitsAround(start, l1, options.signal)) {
    if (event.transfers !== true) continue;
    const data = await l1.rollupData(event.txHash);
    if (data === null)
      throw new MintmarkError("proof_not_ready", `The node lacks transaction ${event.txHash}.`);
    const groups = decodeTransferData(data);
    const outputs = transferOutputs(groups, event.batchNumber);
    const output = outputs.find(({ transfer }) => transfer.vaultId === vaultId);
    if (output === undefined) continue;
    const tree = new BatchTree(transferLeaves(groups, event.batchNumber));
    const siblings = unpackHashes(tree.siblings(unpackBatchVaultId(output.outId).slot));
    const { batchRoot, vaultCount, committedAt, sequence } = event;
    return hopOf(groups, output, {
      header: { batchRoot, vaultCount, committedAt, sequence },
      siblings,
    });
  }
  const detail = `A transfer spends vault ${vaultId}, but the node shows none. Ask another node.`;
  throw new MintmarkError("vault_spent", detail);
}

/**
 * The commits from a block on, then those before it: a hostile operator with enough members can
 * commit a record of a vault that does not exist yet.
 */
async function* commitsAround(
  start: bigint,
  l1: TransferLog,
  signal?: AbortSignal,
): AsyncGenerator<CommitEvent> {
  let isFirstSeen = false;
  async function* within(from: bigint, to: bigint): AsyncGenerator<CommitEvent> {
    for await (const event of commitsIn(l1, from, to, signal)) {
      isFirstSeen ||= event.sequence === 0n;
      yield event;
    }
  }
  yield* within(start, await l1.blockNumber());
  for (const [from, to] of [...blockRanges(0n, start - 1n)].reverse()) {
    if (isFirstSeen) return;
    yield* within(from, to);
  }
}

/** The first block at or after a time, in seconds since 1970. */
async function blockAt(l1: Pick<L1Reader, "block" | "blockNumber">, time: bigint): Promise<bigint> {
  let [low, high] = [0n, await l1.blockNumber()];
  while (low < high) {
    const middle = (low + high) / 2n;
    const block = await l1.block(middle);
    // A node can lack old blocks. The commit's own block is there, or its events could not be read
    // either.
    if (block === null || block.timestamp < time) low = middle + 1n;
    else high = middle;
  }
  return low;
}
