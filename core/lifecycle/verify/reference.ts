import type { Hash, Mode } from "../../model.ts";
import { hexToBytes } from "../../protocol/hex.ts";
import { packVaultId, unpackVaultId, type VaultPlace } from "../../protocol/vault.ts";
import type { Entry, EntryOf } from "../../store/entries.ts";
import type { Journaled } from "../../store/journal.ts";
import { encodeRecord } from "../../store/layout.ts";
import type { MintEntry } from "../../store/mint-entry.ts";
import {
  type AdoptedList,
  type BatchRecord,
  type DivergenceRecord,
  divergenceRecord,
  type HeadRecord,
  headRecord,
  idempotencyRecord,
  lostRecord,
} from "../../store/records.ts";
import * as keys from "../../store/store-keys.ts";
import { decodeChunk, type StoredVault } from "../../store/vault-columns.ts";
import { batchName, type Commit, ReferenceBatches, type Roots, withoutVoids } from "./reference-batches.ts";
import { ReferenceClaims } from "./reference-claims.ts";
import { ReferenceEvents } from "./reference-events.ts";
import { ReferenceMarks } from "./reference-marks.ts";
import { ReferencePeople } from "./reference-people.ts";
import { ReferencePortals } from "./reference-portals.ts";
import { ReferencePowers } from "./reference-powers.ts";
import { COMPARED_WHOLE, chunksExpected, type Expected, expectedRecord } from "./reference-records.ts";
import { ReferenceTenants } from "./reference-tenants.ts";
import { ReferenceTokens, type Suspect, tokenName } from "./reference-tokens.ts";
import { ReferenceTransfers, type VaultAt } from "./reference-transfers.ts";
import { ReferenceVaults } from "./reference-vaults.ts";
import { ReferenceWebhooks } from "./reference-webhooks.ts";
import { ReferenceWithdrawals } from "./reference-withdrawals.ts";

/**
 * Facts of the whole journal that are needed before its first entry, because later entries change or delete records.
 */
export interface Foreseen {
  /** For {@link ReferenceBatches}. */
  readonly voidings: ReadonlyMap<string, number>;
  /** The first batch of each mode that L1's history replaces, for each adoption. */
  readonly adoptions: readonly (readonly Pick<BatchRecord, "mode" | "batchNumber">[])[];
  /** Idempotency keys before this journal sequence are deleted in the end. */
  readonly keysForgotten: number;
}

/** The binding of an ERC-1155 id, and the first batch of each mode that holds it. */
interface Binding {
  readonly expected: Expected;
  readonly firsts: Readonly<Partial<Record<Mode, number>>>;
}

/**
 * The engine's state derived from the journal alone, one entry at a time, with plain code. `verify` compares the store
 * with it. It shares no computation with the ledger: this room imports only byte formats and protocol functions. It
 * keeps records in memory that are few, or not sealed yet, and returns all others once final.
 */
export class Reference {
  entries = 0;
  readonly sealed: Record<Mode, number> = { validium: 0, "zk-rollup": 0 };
  readonly #report: (problem: string) => void;
  readonly #batches: ReferenceBatches;
  readonly #events = new ReferenceEvents();
  readonly #withdrawals = new ReferenceWithdrawals(this.#events, (vaultId, time) =>
    this.#transfers.judgeSpender(vaultId, time),
  );
  readonly #powers = new ReferencePowers();
  readonly #webhooks = new ReferenceWebhooks(this.#events);
  readonly #people: ReferencePeople;
  readonly #tenants: ReferenceTenants;
  readonly #claims: ReferenceClaims;
  readonly #portals: ReferencePortals;
  readonly #tokens: ReferenceTokens;
  readonly #vaults: ReferenceVaults;
  readonly #transfers: ReferenceTransfers;
  readonly #sealedVault: VaultAt;
  readonly #keysForgotten: number;
  readonly #counts = new Map<number, number>();
  readonly #marks = new ReferenceMarks();
  /** The assets of a sealed batch's vaults, by its name. */
  readonly #assetsOf = new Map<string, Uint32Array>();
  /** Adoptions still to come. */
  readonly #adoptions: Foreseen["adoptions"][number][];
  /** Bindings of ERC-1155 ids that a later adoption can change. */
  readonly #bindings = new Map<string, Binding>();
  #divergence: DivergenceRecord | null = null;
  #head: HeadRecord = { journalLength: 0, time: 0, userCount: 0, keysForgotten: 0 };

  /**
   * @param seed - the store's own, for hashes of tokens
   * @param foreseen - of the same journal
   * @param commit - the commitment to a blob
   * @param vaultAt - a vault among the records that are final
   */
  constructor(
    report: (problem: string) => void,
    seed: Uint8Array,
    { voidings, adoptions, keysForgotten }: Foreseen,
    commit: Commit,
    vaultAt: VaultAt,
  ) {
    this.#report = report;
    this.#keysForgotten = keysForgotten;
    this.#adoptions = [...adoptions];
    this.#portals = new ReferencePortals(report);
    this.#tenants = new ReferenceTenants(report, this.#events);
    this.#claims = new ReferenceClaims(report);
    this.#people = new ReferencePeople(report);
    const assetAt = (index: number) => this.#tenants.asset(index);
    const tokens = new ReferenceTokens(seed, assetAt);
    this.#tokens = tokens;
    this.#vaults = new ReferenceVaults(report, this.#tenants, tokens);
    const sealedVault: VaultAt = async (place) => this.#batches.keptVault(place) ?? (await vaultAt(place));
    this.#sealedVault = sealedVault;
    this.#transfers = new ReferenceTransfers(
      report,
      this.#events,
      this.#withdrawals,
      sealedVault,
      (index) => this.#tenants.owner(index),
      {
        assetAt,
        batchAt: (place) => this.#batches.at(place),
        isVoid: (place) => this.#batches.isVoid(place),
        isHome: (chainId) => this.#portals.isHome(chainId),
        powersOf: (owner, list) => this.#powers.of(owner, list),
      },
    );
    const isReplaced = (place: Pick<BatchRecord, "mode" | "batchNumber">) => this.#isReplaced(place);
    const tokensOf = (vaults: readonly (StoredVault | null)[]) => tokens.recordOf(vaults);
    this.#batches = new ReferenceBatches(report, voidings, isReplaced, this.#events, assetAt, tokensOf, commit);
  }

  get vaults(): number {
    return this.#vaults.vaults;
  }

  /** The root of a mode's state tree over its sealed batches. */
  root(mode: Mode): Hash {
    return this.#batches.root(mode);
  }

  get mints(): number {
    return this.#vaults.mints;
  }

  get tokens(): number {
    return this.#tokens.size;
  }

  /** Applies the next entry; returns the records that are final now. */
  async apply({ sequence, time, entry }: Journaled): Promise<Expected[]> {
    if (time < this.#head.time) this.#report(`journal entry ${sequence} is older than the one before`);
    this.entries++;
    this.#head = { ...this.#head, journalLength: sequence + 1, time };
    const expected =
      entry.kind === "mint" ? this.#mint(entry, sequence, time) : await this.#apply(entry, sequence, time);
    for (const { key } of expected) this.#count(key[0] ?? 0);
    return expected;
  }

  /** Pairs of vaults, found since the last call, that may hold the same ERC-721 token. */
  suspects(): Suspect[] {
    return this.#tokens.suspects();
  }

  /** The token of a vault of the store, named as in {@link suspects}. */
  tokenOf(vault: StoredVault): string | null {
    const tokenId = this.#tokens.idOf(vault);
    return tokenId === null ? null : tokenName(vault.assetIndex, tokenId);
  }

  /** A vault of a batch before sealing. */
  growingVault(place: VaultPlace): StoredVault | undefined {
    return this.#vaults.at(place);
  }

  /** Whether all records under a prefix are compared at the end. */
  comparesWhole(prefix: number): boolean {
    return COMPARED_WHOLE.has(prefix);
  }

  /** The number of records under a prefix; null where the reference cannot tell. */
  countOf(prefix: number): number | null {
    if (COMPARED_WHOLE.has(prefix) || prefix === keys.PREFIX.secret || prefix === keys.PREFIX.position) return null;
    if (prefix === keys.PREFIX.format) return null;
    if (prefix === keys.PREFIX.journal) return this.entries;
    if (prefix === keys.PREFIX.seed) return 1;
    // Later mints of a bound ERC-1155 id return the same record again.
    if (prefix === keys.PREFIX.binding) return null;
    return this.#counts.get(prefix) ?? 0;
  }

  /** The records that could change until now. */
  finish(): Expected[] {
    const growing = [...this.#vaults.finish(), ...this.#transfers.vaults()];
    for (const { key } of growing) this.#count(key[0] ?? 0);
    const head = { ...this.#head, userCount: this.#tenants.userCount };
    return [
      { key: keys.HEAD_KEY, value: encodeRecord(headRecord, head), name: "the head" },
      ...this.#diverged(),
      ...this.#tenants.finish(),
      ...this.#claims.finish(),
      ...this.#portals.finish(),
      ...this.#batches.finish(),
      ...growing,
      ...this.#withdrawals.finish(),
      ...this.#transfers.finish(),
      ...this.#powers.finish(this.#portals.home),
      ...this.#webhooks.finish(),
      ...this.#people.finish(),
    ];
  }

  #diverged(): Expected[] {
    if (this.#divergence === null) return [];
    const value = encodeRecord(divergenceRecord, this.#divergence);
    return [{ key: keys.DIVERGENCE_KEY, value, name: "the divergence" }];
  }

  #count(prefix: number): void {
    this.#counts.set(prefix, (this.#counts.get(prefix) ?? 0) + 1);
  }

  #apply(entry: Entry, sequence: number, time: number): Expected[] | Promise<Expected[]> {
    switch (entry.kind) {
      case "genesis":
      case "mirrorAdded":
        this.#portals.add(entry);
        return [];
      case "batchSealed":
        return this.#seal(entry, time);
      case "slotsVoided":
        return this.#void(entry, time);
      case "assetsLeftOut": {
        const roots = this.#batches.setLeftOut(entry);
        if (roots === null || !sameRoots(entry, roots))
          this.#report(`assets of ${batchName(entry)} are left out that could not be, or with a wrong root`);
        return [];
      }
      case "slotsLeftOut":
        return this.#leaveOut(entry, time);
      case "transfersRequested":
        return this.#request(entry, sequence, time);
      case "transfersBatched":
        this.#vaults.addTransfers(entry.batchNumber, this.#transfers.batch(entry, time));
        return [];
      case "transfersTakenBack":
        return this.#takeBack(entry, time);
      case "transfersFailed":
        return this.#transfers.fail(entry, time);
      case "historyAdopted":
        return this.#adopt(entry, sequence, time);
      case "historyDiverged":
        this.#divergence = { detail: entry.detail, since: time };
        return [];
      case "idempotencyForgotten": {
        const { upTo } = entry;
        if (upTo <= this.#head.keysForgotten || upTo > sequence)
          this.#report(`entry ${sequence} deletes keys up to ${upTo}`);
        this.#head = { ...this.#head, keysForgotten: upTo };
        return [];
      }
      default:
        if (this.#claims.apply(entry, sequence, time)) return [];
        if (this.#people.apply(entry, sequence, time) || this.#powers.apply(entry)) return [];
        return this.#tenants.apply(entry, time) ?? this.#settlement(entry, sequence, time);
    }
  }

  #mint(entry: MintEntry, sequence: number, time: number): Expected[] {
    const { applicationIndex: application, firstSequence, mintId } = entry;
    const expected: Expected[] = [];
    const reference = keys.journalKey(sequence).subarray(1);
    const index = (key: Buffer): void =>
      void expected.push(expectedRecord(key, reference, `an index of mint ${mintId}`));
    index(keys.mintKey(mintId));
    index(keys.transactionKey(application, firstSequence));
    for (const name of new Set(entry.references.values()))
      index(keys.mintReferenceKey(application, name, firstSequence));
    if (entry.idempotency !== null && sequence >= this.#keysForgotten) {
      const { key, digest } = entry.idempotency;
      const record = encodeRecord(idempotencyRecord, { digest, sequence });
      const at = keys.idempotencyKeyKey(application, Buffer.from(key.slice(2), "hex"));
      expected.push(expectedRecord(at, record, `the idempotency record of mint ${mintId}`));
    }
    let next = 0;
    for (const { userIndex, count } of entry.users) {
      index(keys.userTransactionKey(application, userIndex, firstSequence));
      for (let i = 0; i < count; i++) {
        const mint = entry.mints[next++];
        if (mint === undefined) continue;
        const bound = this.#vaults.place(mint, application, userIndex, time);
        if (this.#adoptions.length === 0) expected.push(...bound);
        else this.#bind(bound, mint);
      }
    }
    const assets = entry.mints.map(({ assetIndex }) => assetIndex);
    const modes = entry.mints.map(({ mode }) => mode);
    expected.push(...this.#marks.of(application, firstSequence, assets, modes));
    if (!this.#tenants.advance(application, firstSequence, entry.mints.length))
      this.#report(`mint ${mintId} is out of sequence`);
    this.#tenants.countMints(entry.keyIndex, entry.mints.length);
    const told = { mintId, users: entry.users.length, mints: entry.mints.length };
    expected.push(this.#events.tell(application, time, { type: "mint.accepted", ...told }));
    return expected;
  }

  async #seal(entry: EntryOf<"batchSealed">, time: number): Promise<Expected[]> {
    const { mode, batchNumber, vaultCount, mintCount } = entry;
    const { vaults, mintCount: mints, inBlobs, transfers } = this.#vaults.take(mode, batchNumber);
    this.#assetsOf.set(
      batchName(entry),
      Uint32Array.from(vaults, ({ assetIndex }) => assetIndex),
    );
    const groups = transfers ? this.#transfers.ofBatch(entry) : null;
    const { roots, expected } = await this.#batches.seal(entry, vaults, time, inBlobs, groups);
    const same = batchNumber === this.sealed[mode] && vaultCount === vaults.length && mintCount === mints;
    if (!same || !sameRoots(entry, roots)) {
      this.#report(`${batchName(entry)} was sealed with other vaults or another root than its mints give`);
    }
    this.sealed[mode]++;
    const held = vaults.map((vault) => (vault.amount === 0n ? null : vault));
    // L1 may give a transfer's vaults other units, so their records come at the end.
    const chunks = transfers ? [] : chunksExpected(mode, batchNumber, vaults);
    const written = [...chunks, ...this.#tokens.itemsOf(mode, batchNumber, held)];
    return [...(this.#isReplaced(entry) ? [] : written), ...expected];
  }

  async #request(entry: EntryOf<"transfersRequested">, sequence: number, time: number): Promise<Expected[]> {
    const { applicationIndex, firstSequence, transferId } = entry;
    const { assets, modes, slots, expected } = await this.#transfers.request(entry, sequence, time);
    if (!this.#tenants.advance(applicationIndex, firstSequence, slots))
      this.#report(`transfer ${transferId} is out of sequence`);
    return [...this.#marks.of(applicationIndex, firstSequence, assets, modes), ...expected];
  }

  async #takeBack(entry: EntryOf<"transfersTakenBack">, time: number): Promise<Expected[]> {
    this.#transfers.takeBack(entry.batchNumber, time);
    const emptied = await this.#batches.takeBack(entry, time);
    if (emptied === null || !sameRoots(entry, emptied.roots))
      this.#report(
        `the transfers of batch ${entry.batchNumber} are taken back that could not be, or with a wrong root`,
      );
    if (emptied === null) return [];
    const { voids, ...place } = emptied.voids;
    return [...emptied.expected, ...this.#withdrawals.failVoided(place, voids, time)];
  }

  #isReplaced({ mode, batchNumber }: Pick<BatchRecord, "mode" | "batchNumber">): boolean {
    return this.#adoptions.some((firsts) =>
      firsts.some((first) => first.mode === mode && first.batchNumber <= batchNumber),
    );
  }

  /** L1's batches replace batches of the journal. */
  async #adopt(entry: EntryOf<"historyAdopted">, sequence: number, time: number): Promise<Expected[]> {
    const { firsts, batches, lost, failure, inBlobs, transfers } = entry;
    this.#adoptions.shift();
    this.#divergence = null;
    const dropped = firsts.flatMap(({ mode, batchNumber: first }) => [
      ...this.#batches.drop(mode, first),
      ...this.#vaults.drop(mode, first),
    ]);
    const minted = dropped.filter((batch) => !batch.transfers);
    for (const { mode, batchNumber, vaults } of minted) this.#countAll({ mode, batchNumber }, vaults, -1n);
    this.#unbind(firsts);
    for (const { mode, batchNumber } of firsts) if (mode === "zk-rollup") this.#transfers.drop(batchNumber, time);
    const vaultsOf = new Map(minted.map((batch) => [batchName(batch), batch.all]));
    const expected = lost.flatMap((each) => {
      const vaults = vaultsOf.get(batchName(each));
      const voids = each.runs.map((run) => ({ ...run, failure }));
      return vaults === undefined ? [] : this.#events.failMints({ ...each, voids }, vaults, time);
    });
    for (const each of lost) expected.push(...this.#withdrawals.failLost(each, failure, time));
    for (const each of lost) {
      const value = encodeRecord(lostRecord, { ...each, upTo: sequence, failure, since: time });
      expected.push({ key: keys.lostKey(each.mode, each.batchNumber, sequence), value, name: "lost mints" });
    }
    for (const [i, batch] of batches.entries()) {
      const lists = transfers?.find(({ place }) => place === i)?.lists ?? null;
      expected.push(...(await this.#adoptBatch(batch, time, inBlobs?.includes(i) ?? false, lists)));
    }
    await this.#adoptLists(entry, sequence, time);
    for (const { mode, batchNumber } of firsts) {
      this.sealed[mode] = batchNumber + batches.filter((batch) => batch.mode === mode).length;
    }
    if (this.#adoptions.length > 0) return expected;
    const settled = [...this.#bindings.values()].map(({ expected: binding }) => binding);
    this.#bindings.clear();
    return [...expected, ...settled];
  }

  async #adoptBatch(
    batch: EntryOf<"historyAdopted">["batches"][number],
    time: number,
    inBlobs: boolean,
    lists: readonly AdoptedList[] | null,
  ): Promise<Expected[]> {
    const { mode, batchNumber, voids, given } = batch;
    const vaults = vaultsOf(batch);
    this.#assetsOf.set(
      batchName(batch),
      Uint32Array.from(vaults, ({ assetIndex }) => assetIndex),
    );
    const counts = { vaultCount: vaults.length, mintCount: lists === null ? vaults.length : 0 };
    const sealed = { ...batch, ...counts };
    const { roots, expected } = await this.#batches.adopt(sealed, vaults, voids, time, inBlobs, lists, given);
    if (!sameRoots(batch, roots)) this.#report(`${batchName(batch)} was adopted with a wrong root`);
    const held = withoutVoids(vaults, voids);
    if (lists !== null) {
      const units = held.map((vault) => (vault?.amount === 0n ? null : vault));
      return this.#isReplaced(batch) ? expected : [...this.#tokens.itemsOf(mode, batchNumber, units), ...expected];
    }
    this.#countAll({ mode, batchNumber }, held, 1n);
    for (const vault of held) if (vault !== null) this.#bind(this.#tokens.bindingOf(vault), batch);
    if (this.#isReplaced(batch)) return expected;
    const written = [...chunksExpected(mode, batchNumber, vaults), ...this.#tokens.itemsOf(mode, batchNumber, held)];
    return [...written, ...expected];
  }

  /** Puts the lists of L1's batches over the vaults that they take, which may be of the same history. */
  async #adoptLists({ batches, transfers }: EntryOf<"historyAdopted">, sequence: number, time: number): Promise<void> {
    const adopted = new Map(
      batches.flatMap((batch) =>
        vaultsOf(batch).map((vault, slot) => [packVaultId({ ...batch, slot }), vault] as const),
      ),
    );
    for (const { place, lists } of transfers ?? []) {
      const batch = batches[place];
      if (batch === undefined) continue;
      for (const { vaultId } of lists.flatMap((list) => list.transfers)) {
        const vault = adopted.get(vaultId) ?? (await this.#sealedVault(unpackVaultId(vaultId)));
        if (vault !== undefined) adopted.set(vaultId, vault);
      }
      this.#transfers.adopt(batch.batchNumber, lists, vaultsOf(batch), sequence, time);
    }
    this.#transfers.learn(adopted);
  }

  /** Adds vaults to the supplies and the tokens, or removes them; null for a void slot. */
  #countAll(
    { mode, batchNumber }: Pick<BatchRecord, "mode" | "batchNumber">,
    vaults: readonly (StoredVault | null)[],
    sign: 1n | -1n,
  ): void {
    for (const [slot, vault] of vaults.entries()) {
      if (vault === null) continue;
      this.#tenants.countSupply(vault.assetIndex, sign * vault.amount);
      const tokenId = this.#tokens.isUnique(vault) ? this.#tokens.idOf(vault) : null;
      if (tokenId === null) continue;
      if (sign < 0n) this.#tokens.remove({ mode, batchNumber, slot }, vault.assetIndex, tokenId);
      else {
        this.#tokens.add({ ...vault, mode, batchNumber, slot }, tokenId);
        this.#tenants.countId(vault.assetIndex, tokenId);
      }
    }
  }

  #bind(bound: readonly Expected[], { mode, batchNumber }: Pick<BatchRecord, "mode" | "batchNumber">): void {
    for (const expected of bound) {
      const name = keys.keyString(expected.key);
      const { firsts = {} } = this.#bindings.get(name) ?? {};
      this.#bindings.set(name, { expected, firsts: { [mode]: batchNumber, ...firsts } });
    }
  }

  /** Deletes bindings that no batch holds once the batches from these on are gone. */
  #unbind(dropped: readonly Pick<BatchRecord, "mode" | "batchNumber">[]): void {
    for (const [name, { expected, firsts }] of this.#bindings) {
      const left = Object.entries(firsts).filter(([mode, first]) =>
        dropped.every((from) => from.mode !== mode || first < from.batchNumber),
      );
      if (left.length === 0) this.#bindings.delete(name);
      else this.#bindings.set(name, { expected, firsts: Object.fromEntries(left) });
    }
  }

  async #leaveOut(entry: EntryOf<"slotsLeftOut">, time: number): Promise<Expected[]> {
    const left = await this.#batches.leaveOut(entry, time);
    if (left === null) this.#report(`slots of ${batchName(entry)} are left out that L1's history does not leave out`);
    return left === null ? [] : [...left.expected, ...this.#release(entry, left.voided, time)];
  }

  async #void(entry: EntryOf<"slotsVoided">, time: number): Promise<Expected[]> {
    const resealed = await this.#batches.voidSlots(entry, time);
    if (resealed === null || !sameRoots(entry, resealed.roots)) {
      this.#report(`slots of ${batchName(entry)} became void that could not, or with a wrong root`);
    }
    return resealed === null ? [] : [...resealed.expected, ...this.#release(entry, resealed.voided, time)];
  }

  /** Releases the tokens and amounts of void slots; their pending withdrawals have failed. */
  #release(
    entry: EntryOf<"slotsVoided"> | EntryOf<"slotsLeftOut">,
    voided: readonly { readonly slot: number; readonly vault: StoredVault }[],
    time: number,
  ): Expected[] {
    const { mode, batchNumber, voids } = entry;
    for (const { vault, slot } of voided) {
      this.#tenants.countSupply(vault.assetIndex, -vault.amount);
      const tokenId = this.#tokens.isUnique(vault) ? this.#tokens.idOf(vault) : null;
      if (tokenId !== null) this.#tokens.remove({ mode, batchNumber, slot }, vault.assetIndex, tokenId);
    }
    return this.#withdrawals.failVoided(entry, voids, time);
  }

  #settlement(entry: Entry, sequence: number, time: number): Expected[] {
    switch (entry.kind) {
      case "batchSubmitted":
        return this.#batches.progress(entry, time);
      case "batchCommitted":
        return [...this.#batches.progress(entry, time), ...this.#transfers.judgeBatch(entry, time)];
      case "l1Observed":
        this.#portals.observe(entry);
        return [];
      case "l1Finalized": {
        const { chainId, blockNumber } = entry;
        this.#portals.finalize(entry);
        const final = { status: "finalized", finalizedAt: time } as const;
        const within = (block: bigint) => this.#portals.isHome(chainId) && block <= blockNumber;
        return [
          ...this.#batches.changeCommitted(["settled"], within, final, "batch.finalized", time),
          ...this.#withdrawals.finalize(chainId, blockNumber, time),
        ];
      }
      case "l1Reorganised": {
        const { chainId, blockNumber } = entry;
        this.#portals.revert(chainId, blockNumber);
        const gone = { l1BlockNumber: null, committedAt: null, l1Sequence: null, settledAt: null, finalizedAt: null };
        const reverted = { status: "submitted", ...gone } as const;
        const within = (block: bigint) => this.#portals.isHome(chainId) && block >= blockNumber;
        if (this.#portals.isHome(chainId)) this.#powers.revert(blockNumber);
        return [
          ...this.#batches.changeCommitted(["settled", "finalized"], within, reverted, "batch.reverted", time),
          ...this.#withdrawals.revert(chainId, blockNumber, time),
        ];
      }
      case "withdrawalRequested": {
        const { applicationIndex, vaultId } = entry;
        this.#tenants.advance(applicationIndex, entry.sequence, 1);
        const place = unpackVaultId(vaultId);
        const assetIndex = this.#assetsOf.get(batchName(place))?.[place.slot] ?? 0;
        return [
          ...this.#marks.of(applicationIndex, entry.sequence, [assetIndex], [place.mode]),
          ...this.#withdrawals.request(entry, assetIndex, sequence, time),
        ];
      }
      default:
        return [...this.#withdrawals.apply(entry, time), ...this.#webhooks.apply(entry, time)];
    }
  }
}

function vaultsOf({ chunks }: EntryOf<"historyAdopted">["batches"][number]): StoredVault[] {
  return chunks.flatMap((chunk) => decodeChunk(hexToBytes(chunk)));
}

function sameRoots(entry: Roots, roots: Roots): boolean {
  const { batchRoot, dataHash, stateRoot } = roots;
  return entry.batchRoot === batchRoot && entry.dataHash === dataHash && entry.stateRoot === stateRoot;
}
