import type { Archive } from "../archive/archive.ts";
import type { JudgedRecord } from "../archive/archive-transfers.ts";
import { type BatchContent, isBatch, vaultsOf, versionedHashesOf } from "../archive/derive.ts";
import { nextBlock } from "../archive/keys.ts";
import type { KnownAssets } from "../archive/vault-index.ts";
import { blockRanges, requireBlock } from "../blocks.ts";
import { type ErrorCode, MintmarkError } from "../errors.ts";
import { batchIdOf } from "../model.ts";
import { inPieces } from "../pieces.ts";
import type { AssetId, L1Event, L1Reader, ProposedBatch } from "../ports.ts";
import { BatchDataError } from "../protocol/batch-data.ts";
import { blobsIn, isBlobBatchData, readBlobBatchData } from "../protocol/blob-batch.ts";
import { bytesToHex, keccak256 } from "../protocol/hex.ts";
import { tokenIdOf } from "../protocol/minting-blob.ts";
import { TransferDataError, type TransferGroup } from "../protocol/transfer-data.ts";
import { TRANSFER_FAULTS } from "../protocol/transfer-rules.ts";
import { unpackVaultId } from "../protocol/vault.ts";

/** The reasons of a committee member or an issuer for refusing a signature. They are stable. */
export const REFUSAL_REASONS = [
  "mode",
  "behind",
  "diverged",
  "equivocation",
  "gap",
  "ahead",
  "data_hash",
  "malformed",
  "root",
  "duplicate",
  "unregistered",
  "cap",
  "transfer",
  "committed",
  "not_issuer",
  "not_allowed",
] as const;
/** Why a signature was refused. */
export type RefusalReason = (typeof REFUSAL_REASONS)[number];

/**
 * A committee member or an issuer refuses to sign a batch.
 *
 * @example
 * if (error instanceof Refusal) reply.code(422).send({ reason: error.reason, detail: error.message
 * });
 */
export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly reason: RefusalReason;

  constructor(reason: RefusalReason, detail: string) {
    super(detail);
    this.reason = reason;
  }
}

/**
 * Most batches stored ahead of L1. An honest operator needs few; a hostile one would fill the disk.
 */
export const MAX_AHEAD = 16;

/**
 * Derives a batch from its data on the archive's thread, and compares the result with what the
 * operator says, before any signature. A rollup batch may be in blobs, whose commitments take about
 * 50 ms each. Rejects with `kzg_unavailable` when they cannot be computed.
 *
 * @throws Refusal `data_hash`, `malformed`, or `root`
 */
export async function deriveProposed(
  batch: ProposedBatch,
  { kzg, deriving }: Pick<Archive, "kzg" | "deriving">,
): Promise<BatchContent> {
  const { mode, batchNumber, dataHash, data } = batch;
  const inBlobs = mode === "zk-rollup" && isBlobBatchData(data);
  if (!inBlobs && bytesToHex(keccak256(data)) !== dataHash) throw badHash();
  const readHashes = () => versionedHashesOf(blobsIn(readBlobBatchData(data)), kzg);
  // An element outside of the field fails the validation.
  const versionedHashes = inBlobs ? await wellFormed(readHashes, "validation_failed") : undefined;
  const derived = await wellFormed(() =>
    deriving.derive(mode, batchNumber, data, { versionedHashes }),
  );
  if (isBatch(derived, batch)) return derived;
  if (derived.dataHash !== dataHash) throw badHash();
  throw new Refusal(
    "root",
    `the data gives root ${derived.batchRoot} of ${derived.vaultCount} slots`,
  );
}

function badHash(): Refusal {
  return new Refusal("data_hash", "the data does not have this hash");
}

/**
 * Checks every slot of a batch, and every vault against the final registration of its asset, by
 * L1's rules.
 *
 * @throws Refusal `unregistered`, or `malformed`
 */
export async function requireRegistered(derived: BatchContent, assets: KnownAssets) {
  if (derived.malformed !== null)
    throw new Refusal("malformed", `slot ${derived.malformed} is neither void nor a vault`);
  // A vault counts only if its asset was registered before its batch, and only final registrations
  // are permanent.
  await assets.learn(derived.assets);
  const registrationOf = ({ chainId, assetType }: AssetId) => {
    const asset = assets.known(chainId, assetType);
    if (asset !== null) return asset;
    throw new Refusal("unregistered", `asset ${assetType} has no final registration on L1`);
  };
  for (const asset of derived.assets) registrationOf(asset);
  const vaults = vaultsOf(derived);
  await wellFormed(() =>
    inPieces(vaults.length, (i) => {
      const vault = vaults[i]!;
      const { standard, mintingBlobScheme } = registrationOf(vault);
      tokenIdOf(standard, mintingBlobScheme, vault.mintingBlob);
      if (standard === "erc721" && vault.amount !== 1n)
        throw new Refusal("malformed", "the amount of an ERC-721 vault is not 1");
    }),
  );
}

/** Turns errors of the decoder or of a minting blob scheme into the refusal `malformed`. */
async function wellFormed<T>(
  work: () => T | Promise<T>,
  code: ErrorCode = "minting_blob_invalid",
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const malformed =
      error instanceof BatchDataError ||
      error instanceof TransferDataError ||
      (error instanceof MintmarkError && error.code === code);
    throw malformed ? new Refusal("malformed", error.message) : error;
  }
}

/**
 * Seconds that a commit may take after the signature. A record must still be valid then: an invalid
 * one would cost its owner the vault's transfers for ever.
 */
const COMMIT_SLACK = 600n;

/**
 * Judges each record of a batch of transfers by L1's rule, from final state. The batch must be the
 * next on L1.
 *
 * @throws Refusal `transfer` for a record that L1 would not count; `behind` when the archive does
 *   not have a vault yet
 */
export async function requireValid(
  groups: readonly TransferGroup[],
  { batchNumber, sequence }: { readonly batchNumber: number; readonly sequence: bigint },
  archive: Archive,
  l1: Pick<L1Reader, "block" | "blockNumber" | "events">,
): Promise<void> {
  const committedAt = (await requireBlock(l1, "latest")).timestamp + COMMIT_SLACK;
  const { judged, waiting } = await archive.judge(groups, { batchNumber, sequence, committedAt });
  for (const vaultId of waiting) {
    const { mode, batchNumber } = unpackVaultId(vaultId);
    const lacking = batchIdOf(mode, batchNumber);
    const remedy =
      "ask again, or give it a source that has them: a peer, or a beacon node for blobs";
    throw new Refusal("behind", `this member lacks the data of batch ${lacking}: ${remedy}`);
  }
  for (const { transfer, fault, sessionUntil, deadline } of judged) {
    const { vaultId } = transfer;
    if (fault === "no_vault")
      throw new Refusal("behind", `this member knows no final vault ${vaultId}: ask again`);
    if (fault !== null) {
      const why = `${TRANSFER_FAULTS[fault]} (${fault})`;
      throw new Refusal("transfer", `the transfer of vault ${vaultId} does not count: ${why}`);
    }
    // L1 checks the deadline at the commit, and no session.
    if (sessionUntil !== null && sessionUntil < deadline)
      throw new Refusal(
        "transfer",
        `the session for the transfer of vault ${vaultId} ends before its deadline`,
      );
    if ((await archive.spending(vaultId)) !== null)
      throw new Refusal("transfer", `vault ${vaultId} is spent already`);
  }
  for (const records of Map.groupBy(judged, ({ digest }) => digest).values()) {
    const other = records.find(({ vault }) => vault?.owner !== records[0]?.vault?.owner);
    if (other !== undefined)
      throw new Refusal(
        "transfer",
        `vault ${other.transfer.vaultId} has another owner than the others of its list`,
      );
  }
  await requireUnchanged(judged, archive, l1);
}

/** Requires that no newer event, final or not, makes a record invalid. */
async function requireUnchanged(
  judged: readonly JudgedRecord[],
  { position }: Archive,
  l1: Pick<L1Reader, "blockNumber" | "events">,
): Promise<void> {
  const byVault = new Map(
    judged.flatMap((record) => (record.vault ? [[record.vault.vaultId, record] as const] : [])),
  );
  const origins = new Set(judged.map(({ vault }) => vault?.origin));
  // An owner can revoke any key, so only what rests on a session counts: else one owner could hold
  // up every batch.
  const sessions = new Set(judged.map(({ vault, sessionKey }) => `${vault?.owner} ${sessionKey}`));
  const signers = new Set(
    judged.flatMap(({ vault, digest, signer }) => [
      `${vault?.owner} ${digest}`,
      `${signer} ${digest}`,
    ]),
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
      throw new Refusal(
        "transfer",
        `transaction ${event.txHash} makes a record invalid (${event.type})`,
      );
  }
}
