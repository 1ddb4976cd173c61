import { blockRanges } from "../../blocks.ts";
import { MintmarkError } from "../../errors.ts";
import type { L1Event, L1Reader } from "../../ports.ts";
import type { TransferGroup } from "../../protocol/transfer-data.ts";
import { TRANSFER_FAULTS } from "../../protocol/transfer-rules.ts";
import type { Archive } from "../archive/archive.ts";
import type { JudgedRecord } from "../archive/archive-transfers.ts";
import { nextBlock } from "../archive/keys.ts";
import { Refusal } from "./refusal.ts";

/**
 * Seconds that a commit may take after the signature. A record must still be valid then: an invalid one would cost its
 * owner the vault's transfers for ever.
 */
const COMMIT_SLACK = 600n;

/**
 * Judges each record of a batch of transfers by L1's rule, from final state. The batch must be the next on L1.
 *
 * @throws Refusal `transfer` for a record that L1 would not count; `behind` when the archive does not have a vault yet
 */
export async function requireValid(
  groups: readonly TransferGroup[],
  { batchNumber, sequence }: { readonly batchNumber: number; readonly sequence: bigint },
  archive: Archive,
  l1: Pick<L1Reader, "block" | "blockNumber" | "events">,
): Promise<void> {
  const newest = await l1.block("latest");
  if (newest === null) throw new MintmarkError("l1_failed", "the node has no newest block");
  const committedAt = newest.timestamp + COMMIT_SLACK;
  const judged = await archive.judge(groups, { batchNumber, sequence, committedAt });
  if (judged === null) throw new Refusal("behind", "this member lacks the data of a vault in the batch: ask again");
  for (const { transfer, fault, sessionUntil, deadline } of judged) {
    const { vaultId } = transfer;
    if (fault === "no_vault") throw new Refusal("behind", `this member knows no final vault ${vaultId}: ask again`);
    if (fault !== null) {
      const why = `${TRANSFER_FAULTS[fault]} (${fault})`;
      throw new Refusal("transfer", `the transfer of vault ${vaultId} does not count: ${why}`);
    }
    // L1 checks the deadline at the commit, and no session.
    if (sessionUntil !== null && sessionUntil < deadline)
      throw new Refusal("transfer", `the session for the transfer of vault ${vaultId} ends before its deadline`);
    if ((await archive.spending(vaultId)) !== null) throw new Refusal("transfer", `vault ${vaultId} is spent already`);
  }
  for (const records of Map.groupBy(judged, ({ digest }) => digest).values()) {
    const other = records.find(({ vault }) => vault?.owner !== records[0]?.vault?.owner);
    if (other !== undefined)
      throw new Refusal("transfer", `vault ${other.transfer.vaultId} has another owner than the others of its list`);
  }
  await requireUnchanged(judged, archive, l1);
}

/** Requires that no newer event, final or not, makes a record invalid. */
async function requireUnchanged(
  judged: readonly JudgedRecord[],
  { position }: Archive,
  l1: Pick<L1Reader, "blockNumber" | "events">,
): Promise<void> {
  const byVault = new Map(judged.flatMap((record) => (record.vault ? [[record.vault.vaultId, record] as const] : [])));
  const origins = new Set(judged.map(({ vault }) => vault?.origin));
  // An owner can revoke any key, so only what rests on a session counts: else one owner could hold up every batch.
  const sessions = new Set(judged.map(({ vault, sessionKey }) => `${vault?.owner} ${sessionKey}`));
  const signers = new Set(
    judged.flatMap(({ vault, digest, signer }) => [`${vault?.owner} ${digest}`, `${signer} ${digest}`]),
  );
  const spoils = (event: L1Event): boolean => {
    if (event.type === "transfersCancelled") return signers.has(`${event.owner} ${event.digest}`);
    if (event.type === "duplicateVoided") return origins.has(event.laterVaultId);
    if (event.type === "sessionRevoked") return sessions.has(`${event.owner} ${event.key}`);
    const record = event.type === "withdrawn" ? byVault.get(event.vaultId) : undefined;
    if (event.type !== "withdrawn" || record?.vault == null) return false;
    return record.transfer.amount >= record.vault.amount - event.withdrawnTotal;
  };
  if (position === null) return;
  for (const [first, last] of blockRanges(nextBlock(position), await l1.blockNumber())) {
    const event = (await l1.events(first, last)).find(spoils);
    if (event !== undefined)
      throw new Refusal("transfer", `transaction ${event.txHash} makes a record invalid (${event.type})`);
  }
}
