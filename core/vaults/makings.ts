import { MintmarkError } from "../errors.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { batchIdOf, type VaultId } from "../model.ts";
import type { BatchHeader } from "../ports.ts";
import { proveMadeVault } from "../protocol/making.ts";
import type { BatchVaultProof } from "../protocol/proof.ts";
import type { VaultPlace } from "../protocol/vault.ts";
import { decodeRecord } from "../store/layout.ts";
import { type MakingRecord, makingRecord } from "../store/records.ts";
import { endOf, keyOf, prefixOf } from "../store/store-keys.ts";
import { fastTokenIdOf } from "../store/token-id.ts";
import type { StoredVault } from "../store/vault-columns.ts";
import { originOf } from "./transfer-lists.ts";
import type { LocatedVault } from "./vaults.ts";

/** A final making. Throws `store_corrupt` when it is missing. */
export async function readMaking(ledger: Ledger, making: number): Promise<MakingRecord> {
  const name = batchIdOf("made", making);
  const stored = await ledger.store.get(keyOf.making(making));
  if (stored === undefined) throw new MintmarkError("store_corrupt", `${name} is missing.`);
  return decodeRecord(makingRecord, stored, name);
}

/** L1's header of a making. */
export function headerOfMaking({ batchRoot, vaults, l1Sequence }: MakingRecord): BatchHeader {
  return { batchRoot, vaultCount: vaults.length, committedAt: 0n, sequence: l1Sequence };
}

/** The proof of a made vault, whoever's it is. */
export async function madeProof(ledger: Ledger, place: VaultPlace): Promise<BatchVaultProof> {
  const { vaults, l1Sequence: sequence } = await readMaking(ledger, place.batchNumber);
  const { chainId } = ledger.services.settlement;
  return proveMadeVault({ chainId, making: place.batchNumber, vaults, sequence }, place.slot);
}

/** Why a vault never counts again. */
export function cameBack(making: number): string {
  return `the token came back from L1, and counts as the vault of ${batchIdOf("made", making)} alone`;
}

/**
 * Why vaults never count on L1 again, in order: an entry of the same ERC-721 id came after their
 * mint. Null for the others.
 */
export async function lineageFaults(
  ledger: Ledger,
  located: readonly (LocatedVault | null)[],
): Promise<(MintmarkError | null)[]> {
  const faultOf = async ({ place, vault }: LocatedVault) => {
    const end = await lineageEnd(ledger, await originOf(ledger, place), vault);
    if (end === null) return null;
    return new MintmarkError("vault_void", `The vault is void: ${cameBack(end)}.`);
  };
  const hasMakings = ledger.batches.makings.count(null) > 0;
  return Promise.all(located.map((each) => (hasMakings && each ? faultOf(each) : null)));
}

/**
 * The entry that ended the lineage of an ERC-721 vault, by its making; null while the vault counts.
 *
 * @param origin - the place of the vault where its chain of transfers begins
 */
export async function lineageEnd(
  ledger: Ledger,
  origin: VaultPlace,
  { assetIndex, mintingBlob }: Pick<StoredVault, "assetIndex" | "mintingBlob">,
): Promise<number | null> {
  if (ledger.tenants.standards[assetIndex] !== "erc721" || mintingBlob === "0x") return null;
  const { standard, mintingBlobScheme, assetType } = ledger.tenants.assetAt(assetIndex);
  const tokenId = fastTokenIdOf(standard, mintingBlobScheme, mintingBlob);
  if (tokenId === null) return null;
  const stored = await ledger.store.get(keyOf.entry(assetType, tokenId));
  if (stored === undefined) return null;
  const latest = stored.readUInt32BE();
  return origin.mode === "made" && origin.batchNumber >= latest ? null : latest;
}

/** The block of the newest withdrawal of a vault; null for none. */
export async function lastBlockOf(ledger: Ledger, vaultId: VaultId): Promise<bigint | null> {
  const prefix = prefixOf.vaultEvent(vaultId);
  const range = { gte: prefix, lt: endOf(prefix), reverse: true, limit: 1 };
  for await (const [key] of ledger.store.entries(range)) return key.readBigUInt64BE(9);
  return null;
}

/**
 * Tells what became of a vault that L1 has taken whole: `renewed` into a vault of its owner, or
 * `traded` into one of somebody else; null when its token was paid, and until the making is final.
 */
export async function remadeAs(
  ledger: Ledger,
  vaultId: VaultId,
  { owner, assetIndex, mintingBlob }: StoredVault,
): Promise<"renewed" | "traded" | null> {
  const block = await lastBlockOf(ledger, vaultId);
  const { assetType } = ledger.tenants.assetAt(assetIndex);
  if (block === null) return null;
  const count = ledger.batches.makings.count(null);
  let low = 1;
  for (let high = count + 1; low < high; ) {
    const middle = Math.floor((low + high) / 2);
    if ((await readMaking(ledger, middle)).blockNumber < block) low = middle + 1;
    else high = middle;
  }
  let found: "traded" | null = null;
  for (let making = low; making <= count; making++) {
    const { blockNumber, vaults } = await readMaking(ledger, making);
    if (blockNumber !== block) break;
    const same = vaults.filter(
      (made) => made.assetType === assetType && made.mintingBlob === mintingBlob,
    );
    if (same.some((made) => made.owner === owner)) return "renewed";
    if (same.length > 0) found = "traded";
  }
  return found;
}
