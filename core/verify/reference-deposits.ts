import { makingRoot } from "../protocol/making.ts";
import { packVaultId, type VaultPlace } from "../protocol/vault.ts";
import type { EntryOf } from "../store/entries.ts";
import { makingRecord } from "../store/records.ts";
import { keyOf } from "../store/store-keys.ts";
import { CHUNK_VAULTS, encodeChunk, type StoredVault } from "../store/vault-columns.ts";
import type { ReferencePortals } from "./reference-l1.ts";
import { type Handlers, hexOfKey, keyOfHex, ReferencePart } from "./reference-records.ts";
import { NO_ASSET, type ReferenceTenants } from "./reference-tenants.ts";
import type { ReferenceTokens } from "./reference-vaults.ts";
import type { ReferenceWithdrawals } from "./reference-withdrawals.ts";

/** Stands for the application and the asset of a vault that is no user's. */
const NOBODY = 0xffff_ffff;

/**
 * The part of the reference for vaults that L1 makes: each in memory, because it waits for a user.
 */
export class ReferenceDeposits extends ReferencePart<{
  readonly tenants: ReferenceTenants;
  readonly portals: ReferencePortals;
  readonly tokens: ReferenceTokens;
  readonly withdrawals: ReferenceWithdrawals;
}> {
  readonly #makings = this.kept("making", keyOf.making, makingRecord);
  readonly #vaults = new Map<number, StoredVault[]>();
  /** The latest entry of each ERC-721 id, by the key of its record. */
  readonly #entries = new Map<string, number>();

  readonly on = {
    vaultsMade: (entry) => {
      const { out } = this;
      const { making, entered, vaults } = entry;
      const { tenants, portals, withdrawals } = this.parts;
      const known = this.#makings.get(making);
      if (makingRoot({ chainId: portals.home, making, vaults }) !== entry.batchRoot)
        out.report(`making ${making} has another root than its vaults`);
      if ((known?.batchRoot ?? entry.batchRoot) !== entry.batchRoot)
        out.report(`making ${making} is another one than before`);
      if (known === undefined && making !== this.#makings.size + 1)
        out.report(`making ${making} is out of order`);
      this.#makings.add(making, entry);
      withdrawals.seeMaking(portals.home, entry);
      if (known !== undefined) return;
      const [first] = vaults;
      if (entered !== null && first !== undefined) {
        this.#entries.set(hexOfKey(keyOf.entry(first.assetType, entered)), making);
        const asset = tenants.assetOfType(portals.home, first.assetType);
        if (asset !== undefined) tenants.countId(asset.assetIndex, entered);
      }
      const stored = vaults.map((vault, slot): StoredVault => {
        const asset = tenants.assetOfType(portals.home, vault.assetType);
        const content =
          asset === undefined
            ? { assetIndex: NOBODY, amount: 0n, mintingBlob: "0x" as const }
            : {
                assetIndex: asset.assetIndex,
                amount: vault.amount,
                mintingBlob: vault.mintingBlob,
              };
        const holder = { applicationIndex: NOBODY, userIndex: NOBODY - slot, owner: vault.owner };
        return { ...holder, ...content, createdAt: out.time, updatedAt: out.time };
      });
      this.#vaults.set(making, stored);
    },
    deposited: (entry) => this.#deposit(entry),
  } satisfies Handlers;

  /** A made vault, which never changes but for its holder. */
  at({ batchNumber, slot }: VaultPlace): StoredVault | undefined {
    return this.#vaults.get(batchNumber)?.[slot];
  }

  override finish(): void {
    super.finish();
    for (const [making, vaults] of this.#vaults) {
      for (let first = 0; first < vaults.length; first += CHUNK_VAULTS) {
        const key = keyOf.chunk("made", making, first / CHUNK_VAULTS);
        const chunk = encodeChunk(vaults.slice(first, first + CHUNK_VAULTS));
        this.out.bytes(key, chunk, `the vaults of making ${making}`);
      }
      for (const [slot, { applicationIndex, owner }] of vaults.entries())
        if (applicationIndex === NOBODY)
          this.out.mark(keyOf.unclaimed(owner, making, slot), `the claim of making ${making}`);
    }
    for (const [key, making] of this.#entries)
      this.out.bytes(keyOfHex(key), keyOf.making(making).subarray(1), `the entry of ${making}`);
  }

  #deposit(entry: EntryOf<"deposited">): void {
    const { out } = this;
    const { making, slot, applicationIndex, userIndex, sequence, assetIndex } = entry;
    const { tenants, tokens } = this.parts;
    const vaultId = packVaultId({ mode: "made", batchNumber: making, slot });
    const name = `the deposit of vault ${vaultId}`;
    const record = this.#makings.get(making);
    const made = record?.vaults[slot];
    const vaults = this.#vaults.get(making);
    const user = tenants.owner(userIndex);
    const { assetType, assetId } = tenants.asset(assetIndex) ?? NO_ASSET;
    const isRight =
      user?.applicationIndex === applicationIndex &&
      user.owner === made?.owner &&
      assetType === made.assetType &&
      vaults?.[slot]?.applicationIndex === NOBODY;
    if (!isRight) out.report(`${name} is another user's, or was made before`);
    if (record === undefined || made === undefined || vaults === undefined) return;
    tenants.advance(name, { applicationIndex, sequence, count: 1 }, [assetIndex], []);
    const { owner, amount, mintingBlob } = made;
    const times = { createdAt: out.time, updatedAt: out.time };
    vaults[slot] = {
      applicationIndex,
      userIndex,
      owner,
      assetIndex,
      amount,
      mintingBlob,
      ...times,
    };
    for (const key of [
      keyOf.transaction(applicationIndex, sequence),
      keyOf.userTransaction(applicationIndex, userIndex, sequence),
      keyOf.applicationDeposit(applicationIndex, sequence),
      keyOf.deposit(vaultId),
    ])
      out.index(key, name);
    out.tell(applicationIndex, {
      type: "deposit.credited",
      userIndex,
      vaultId,
      assetId,
      tokenId: tokens.idOf({ assetIndex, mintingBlob }),
      amount,
      l1TxHash: record.txHash,
      l1BlockNumber: record.blockNumber,
    });
  }
}
