import { MintmarkError } from "../errors.ts";
import type { Hash, VaultId } from "../model.ts";
import type { L1Reader, L1Registration, L1Voider } from "../ports.ts";
import { ZERO_ADDRESS } from "../protocol/hex.ts";
import { unpackBatchVaultId } from "../protocol/vault.ts";
import type { Archive } from "./archive.ts";
import type { Commit } from "./keys.ts";

/** Two vaults of one ERC-721 token. The later one is now void. */
export interface VoidedDuplicate {
  readonly earlier: VaultId;
  readonly later: VaultId;
  readonly txHash: `0x${string}`;
}

/** The contract that voids vaults. `proof_not_ready`: nobody can withdraw the vault there yet. */
export type VoidingPortal = Pick<L1Reader, "settlement" | "withdrawn" | "registration"> &
  L1Voider & {
    /**
     * The batch's place in the portal's order; null while the portal does not have it. Default: the
     * commit's own.
     */
    readonly sequenceOf?: (commit: Commit) => Promise<bigint | null>;
  };

/** Options of {@link voidDuplicates}. */
export interface VoidOptions {
  readonly archive: Archive;
  readonly portal: VoidingPortal;
  readonly onVoided?: (voided: VoidedDuplicate) => void;
  readonly signal?: AbortSignal;
}

const MOST_NAMED = 3; // Failures that an error names one by one

/**
 * Voids every committed vault of an ERC-721 token of the portal's chain but the first. Returns the
 * number of voided vaults. Continues after a refusal by L1, and throws at the end.
 *
 * @example
 * await follow({ archive, l1, fromBlock });
 * const voided = await voidDuplicates({ archive, portal: l1 });
 */
export async function voidDuplicates({
  archive,
  portal,
  onVoided,
  signal,
}: VoidOptions): Promise<number> {
  const failures: unknown[] = [];
  let voided = 0;
  for (const token of await vaultsByToken(archive, portal)) {
    const [earlier, ...others] = await inL1Order(archive, portal, token);
    if (earlier === undefined) continue;
    for (const later of others) {
      signal?.throwIfAborted();
      if (await isOver(archive, portal, later)) continue;
      try {
        const [first, second] = [
          await archive.vaultProof(earlier),
          await archive.vaultProof(later),
        ];
        const { txHash } = await portal.voidDuplicate(first, second, { signal });
        voided++;
        onVoided?.({ earlier, later, txHash });
      } catch (error) {
        signal?.throwIfAborted();
        if (error instanceof MintmarkError && error.code === "proof_not_ready") continue;
        if (!(await isOver(archive, portal, later))) failures.push(error);
      }
    }
  }
  if (failures.length > 0) throw new AggregateError(failures, sentenceOf(failures));
  return voided;
}

/**
 * Whether the later vault can pay nobody any more: another watcher has voided it, or it has left,
 * itself or through transfers. L1 cannot see the latter, and would take a void that changes
 * nothing.
 */
async function isOver(archive: Archive, portal: VoidingPortal, later: VaultId): Promise<boolean> {
  const tip = await archive.tipOf(later);
  if ((await archive.output(tip))?.owner === ZERO_ADDRESS) return true;
  for (const vaultId of new Set([later, tip]))
    if ((await archive.withdrawn(vaultId)) > 0n || (await portal.withdrawn(vaultId, "erc721")) > 0n)
      return true;
  return false;
}

/**
 * The vaults of each token that has several. For each vault but the first, the index stores the one
 * before it. The order starts at a random place, so watchers do not all try the same vault first.
 */
async function vaultsByToken(
  archive: Archive,
  portal: VoidingPortal,
): Promise<readonly TokenVaults[]> {
  const { chainId } = portal.settlement;
  const registrations = new Map<Hash, L1Registration | null>();
  const byHolder = new Map<VaultId, TokenVaults>();
  for await (const { assetType, scheme, holder, vaultId } of archive.duplicates(chainId)) {
    if (!registrations.has(assetType))
      registrations.set(assetType, await portal.registration(chainId, assetType));
    const registration = registrations.get(assetType) ?? null;
    if (registration?.mintingBlobScheme !== scheme) continue;
    const { vaultIds = [holder] } = byHolder.get(holder) ?? {};
    byHolder.set(holder, { since: registration.since, vaultIds: [...vaultIds, vaultId] });
  }
  const tokens = [...byHolder.values()];
  const start = Math.floor(Math.random() * tokens.length);
  return [...tokens.slice(start), ...tokens.slice(0, start)];
}

/** Vaults of one token, and the sequence of the first batch with valid vaults. */
interface TokenVaults {
  readonly since: bigint;
  readonly vaultIds: readonly VaultId[];
}

/**
 * The valid vaults whose data is here, in the portal's order. A member also holds batches that it
 * signed and nobody committed; committed ones come first. Vaults from before their token's
 * registration do not count.
 */
async function inL1Order(
  archive: Archive,
  { sequenceOf }: VoidingPortal,
  { since, vaultIds }: TokenVaults,
): Promise<VaultId[]> {
  const places: { readonly vaultId: VaultId; readonly sequence: bigint }[] = [];
  for (const vaultId of vaultIds) {
    const { mode, batchNumber } = unpackBatchVaultId(vaultId);
    if (!(await archive.holds(mode, batchNumber))) continue;
    const commit = await archive.commit(mode, batchNumber);
    if (commit === null) continue;
    const sequence = sequenceOf === undefined ? commit.sequence : await sequenceOf(commit);
    if (sequence !== null && sequence >= since) places.push({ vaultId, sequence });
  }
  places.sort((a, b) => Number(a.sequence - b.sequence || a.vaultId - b.vaultId));
  return places.map(({ vaultId }) => vaultId);
}

function sentenceOf(failures: readonly unknown[]): string {
  const named = failures.slice(0, MOST_NAMED).map(String).join("; ");
  return failures.length > MOST_NAMED
    ? `${named}; and ${failures.length - MOST_NAMED} more`
    : named;
}
