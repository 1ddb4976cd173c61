import type { Hash } from "../model.ts";
import type { StateRoots } from "../protocol/commitment.ts";
import { hexToBytes } from "../protocol/hex.ts";
import {
  type BatchPlace,
  type BatchVaultPlace,
  packVaultId,
  unpackVaultId,
} from "../protocol/vault.ts";
import type { EntryOf } from "../store/entries.ts";
import type { Journaled } from "../store/journal.ts";
import type { MintJournalEntry } from "../store/mint-entry.ts";
import type { AdoptedList, DivergenceRecord, LostRun } from "../store/records.ts";
import { divergenceRecord, headRecord, idempotencyRecord, lostRecord } from "../store/records.ts";
import { DIVERGENCE_KEY, HEAD_KEY, keyOf, PREFIX } from "../store/store-keys.ts";
import { decodeBatchTokens } from "../store/token-index.ts";
import { decodeChunk, type StoredVault } from "../store/vault-columns.ts";
import { equalHashes, type TokenBatch } from "./equal-hashes.ts";
import { ReferenceBatches, withoutVoids } from "./reference-batches.ts";
import { ReferenceDeposits } from "./reference-deposits.ts";
import type { CommitToBlob } from "./reference-derive.ts";
import { type PowerEntry, ReferencePortals } from "./reference-l1.ts";
import { ReferenceOrders } from "./reference-orders.ts";
import {
  COMPARED_WHOLE,
  type Expected,
  type Handlers,
  Output,
  type ReferencePart,
  type ReportFault,
} from "./reference-records.ts";
import { ReferenceTenants } from "./reference-tenants.ts";
import { ReferenceTransfers, type VaultAt } from "./reference-transfers.ts";
import {
  batchName,
  putChunks,
  ReferenceTokens,
  ReferenceVaults,
  tokenName,
} from "./reference-vaults.ts";
import { ReferenceWithdrawals } from "./reference-withdrawals.ts";

/**
 * Not countable: bindings of ERC-1155 ids repeat at later mints; the journal does not tell the
 * rest.
 */
const UNCOUNTED: ReadonlySet<number> = new Set(
  (["secret", "position", "format", "binding"] as const).map((name) => PREFIX[name]),
);

type AdoptedBatch = EntryOf<"historyAdopted">["batches"][number];

/**
 * Facts of the whole journal that are needed before its first entry, because later entries change
 * or delete records.
 */
export interface Foreseen {
  /** The number of entries that make slots of a batch void, by {@link batchName}. */
  readonly voidings: ReadonlyMap<string, number>;
  /** The first batch of each mode that L1's history replaces, for each adoption. */
  readonly adoptions: readonly (readonly BatchPlace[])[];
  /** Idempotency keys before this journal sequence are deleted in the end. */
  readonly keysForgotten: number;
}

/** A reference needs these besides the journal's entries in turn. */
interface Sources {
  readonly seed: Uint8Array; // The store's own, for hashes of tokens
  readonly foreseen: Foreseen; // Read from this journal beforehand
  readonly commit: CommitToBlob; // The commitment to a blob
  readonly vaultAt: VaultAt; // A vault among the records that are final
  /** The record of a sealed batch's tokens. */
  readonly tokensAt: (place: BatchPlace) => Promise<Buffer>;
}

/** The parts, each after those that it asks. */
function partsOf(
  out: Output,
  { seed, foreseen, commit, vaultAt }: Sources,
  adoptions: readonly (readonly BatchPlace[])[],
) {
  const voidings = new Map(foreseen.voidings);
  const tenants = new ReferenceTenants({ out });
  const portals = new ReferencePortals({ out });
  const hasChanges = voidings.size > 0 || adoptions.length > 0;
  const changesLater = (place: BatchPlace) =>
    hasChanges && ((voidings.get(batchName(place)) ?? 0) > 0 || batches.isReplaced(place));
  const tokens = new ReferenceTokens({ out, tenants, seed, changesLater });
  const vaults = new ReferenceVaults({ out, tenants, tokens });
  const batches: ReferenceBatches = new ReferenceBatches({
    out,
    tenants,
    tokens,
    voidings,
    adoptions,
    commit,
  });
  const whenWithdrawn = (vaultId: bigint) => transfers.judgeSpender(vaultId);
  const lineOf = (vaultId: bigint) => transfers.lineOf(vaultId);
  const withdrawals = new ReferenceWithdrawals({ out, tenants, whenWithdrawn, lineOf });
  const deposits = new ReferenceDeposits({ out, tenants, portals, tokens, withdrawals });
  const transfers = new ReferenceTransfers({
    out,
    tenants,
    portals,
    batches,
    withdrawals,
    vaultAt: async (place) => (place.mode === "made" ? deposits.at(place) : vaultAt(place)),
  });
  const orders = new ReferenceOrders({ out });
  return { tenants, portals, tokens, batches, vaults, withdrawals, deposits, transfers, orders };
}

/**
 * The engine's state derived from the journal alone, one entry at a time, with plain code. `verify`
 * compares the store with it. It shares no computation with the ledger: this room imports only byte
 * formats and protocol functions. It keeps records in memory that are few, or not sealed yet, and
 * returns all others once final.
 */
export class Reference {
  entries = 0;
  readonly #out: Output;
  readonly #sources: Sources;
  readonly #parts: ReturnType<typeof partsOf>;
  readonly #on: Required<Handlers>;
  readonly #adoptions: (readonly BatchPlace[])[]; // Adoptions still to come
  #divergence: DivergenceRecord | null = null;
  #keysForgotten = 0;
  readonly #twice = new Set<string>(); // Tokens that are reported

  constructor(report: ReportFault, sources: Sources) {
    this.#out = new Output(report);
    this.#sources = sources;
    this.#adoptions = [...sources.foreseen.adoptions];
    this.#parts = partsOf(this.#out, sources, this.#adoptions);
    const { tenants, portals, batches, withdrawals, deposits, transfers, orders } = this.#parts;
    const ofOne = {
      ...tenants.on,
      ...portals.on,
      ...batches.on,
      ...withdrawals.on,
      ...deposits.on,
      ...transfers.on,
      ...orders.on,
    };
    this.#on = { ...ofOne, ...this.#onSeveral() };
  }

  get totals() {
    const { vaults, tokens } = this.#parts;
    return { vaults: vaults.vaults, mints: vaults.mints, tokens: tokens.size };
  }

  get roots(): StateRoots {
    const { batches } = this.#parts;
    const counts = {
      countValidium: batches.count("validium"),
      countRollup: batches.count("zk-rollup"),
    };
    return {
      ...counts,
      rootValidium: batches.root("validium"),
      rootRollup: batches.root("zk-rollup"),
    };
  }

  /**
   * Applies the next entry; returns the records that are final now. Those of the entries before
   * must be readable.
   */
  async apply({ sequence, time, entry }: Journaled): Promise<Expected[]> {
    const out = this.#out;
    await this.#compareSuspects();
    if (time < out.time) out.report(`journal entry ${sequence} is older than the one before`);
    this.entries++;
    out.sequence = sequence;
    out.time = time;
    if (entry.kind === "mint") this.#mint(entry);
    else await this.#on[entry.kind](entry as never);
    return out.take();
  }

  /** The number of all records so far. */
  get records(): number {
    return this.entries + this.#out.count;
  }

  /** The number of records under a prefix; null where the reference cannot tell. */
  countOf(prefix: number): number | null {
    if (COMPARED_WHOLE.has(prefix) || UNCOUNTED.has(prefix)) return null;
    if (prefix === PREFIX.journal) return this.entries;
    if (prefix === PREFIX.seed) return 1;
    return this.#out.countOf(prefix);
  }

  /** The records that could change until now. A record that comes twice has the later value. */
  async finish(): Promise<Expected[]> {
    await this.#compareSuspects();
    await this.#compareTokens();
    const counts = { userCount: this.#parts.tenants.userCount, keysForgotten: this.#keysForgotten };
    const head = { journalLength: this.entries, time: this.#out.time, ...counts };
    this.#out.put(HEAD_KEY, headRecord, head, "the head");
    if (this.#divergence !== null)
      this.#out.put(DIVERGENCE_KEY, divergenceRecord, this.#divergence, "the divergence");
    for (const part of Object.values<ReferencePart>(this.#parts)) part.finish();
    return this.#out.take();
  }

  /** Whether two ERC-721 tokens of one hash are the same, by the earlier one's vault. */
  async #compareSuspects(): Promise<void> {
    for (const { earlier, token } of this.#parts.tokens.suspects()) {
      const { name } = await this.#tokenAt(earlier);
      if (name === token) this.#reportTwice(token);
    }
  }

  /** Finds tokens of two vaults among those that no entry takes away. */
  async #compareTokens(): Promise<void> {
    const { tokens } = this.#parts;
    const removed = Map.groupBy(tokens.removed, ({ hash }) => hash);
    const hashes = new Set(removed.keys());
    for await (const { hash, places } of equalHashes(this.#tokenBatches(), tokens.size, hashes)) {
      const found = await Promise.all(places.map((place) => this.#tokenAt(place)));
      for (const [i, { name, addedAt }] of found.entries()) {
        if (name === null) continue;
        const isTwice = found.findIndex((other) => other.name === name) < i;
        // In one millisecond, the token can have been freed first.
        const isRemoved = removed
          .get(hash)
          ?.some(({ token, removedAt }) => token === name && addedAt < removedAt);
        if (isTwice || isRemoved === true) this.#reportTwice(name);
      }
    }
  }

  #tokenBatches(): TokenBatch[] {
    const { batches, tokens, vaults } = this.#parts;
    const sealed = batches.sealed().map(({ mode, batchNumber, vaultCount }) => {
      const place = { mode, batchNumber };
      const read = async () =>
        decodeBatchTokens(await this.#sources.tokensAt(place), batchName(place));
      return { ...place, vaultCount, tokens: read };
    });
    const unsealed = vaults.unsealed().map(({ vaults: held, ...place }) => {
      const read = async () => decodeBatchTokens(tokens.recordOf(held), batchName(place));
      return { ...place, vaultCount: held.length, tokens: read };
    });
    return [...sealed, ...unsealed];
  }

  /** The ERC-721 token of a vault, null without one, and when the journal got it. */
  async #tokenAt(place: BatchVaultPlace) {
    const { batches, tokens, vaults } = this.#parts;
    const vault = vaults.at(place) ?? (await this.#sources.vaultAt(place));
    const tokenId = vault === undefined ? null : tokens.idOf(vault);
    if (vault === undefined || tokenId === null) return { name: null, addedAt: 0 };
    return { name: tokenName(vault.assetIndex, tokenId), addedAt: batches.addedAt(place, vault) };
  }

  /** Reports a token once, however often it was minted. */
  #reportTwice(token: string): void {
    if (this.#twice.has(token)) return;
    this.#twice.add(token);
    this.#out.report(`token ${token} was minted twice`);
  }

  /** The entries that concern several parts. */
  #onSeveral() {
    return {
      batchSealed: (entry) => this.#seal(entry),
      slotsVoided: async (entry) => {
        if (!(await this.#parts.batches.voidSlots(entry)))
          this.#out.report(
            `slots of ${batchName(entry)} became void that could not, or with a wrong root`,
          );
        this.#parts.withdrawals.failVoided(entry, entry.voids);
      },
      slotsLeftOut: async (entry) => {
        if (await this.#parts.batches.leaveOut(entry))
          this.#parts.withdrawals.failVoided(entry, entry.voids);
        else
          this.#out.report(
            `slots of ${batchName(entry)} are left out that L1's history does not leave out`,
          );
      },
      transfersBatched: (entry) =>
        this.#parts.vaults.addTransfers(entry.batchNumber, this.#parts.transfers.batch(entry)),
      transfersTakenBack: async (entry) => {
        const { batchNumber } = entry;
        this.#parts.transfers.takeBack(batchNumber);
        const voids = await this.#parts.batches.takeBack(entry);
        if (voids !== null)
          return this.#parts.withdrawals.failVoided({ mode: "zk-rollup", batchNumber }, voids);
        this.#out.report(
          `transfers of batch ${batchNumber} are taken back that could not be, or with a wrong root`,
        );
      },
      historyAdopted: (entry) => this.#adopt(entry),
      historyDiverged: ({ detail }) => {
        this.#divergence = { detail, since: this.#out.time };
      },
      requestKept: ({ applicationIndex, key, digest }) =>
        this.#keepKey(applicationIndex, { key, digest }, "a request"),
      idempotencyForgotten: ({ upTo }) => {
        const { sequence } = this.#out;
        if (upTo <= this.#keysForgotten || upTo > sequence)
          this.#out.report(`entry ${sequence} deletes keys up to ${upTo}`);
        this.#keysForgotten = upTo;
      },
      batchCommitted: (entry) => {
        this.#parts.batches.settle(entry);
        this.#parts.transfers.judgeBatch(entry);
      },
      transferSessionAuthorized: (entry) => this.#power(entry),
      transferSessionRevoked: (entry) => this.#power(entry),
      transfersApproved: (entry) => this.#power(entry),
      transfersCancelled: (entry) => this.#power(entry),
      l1Finalized: (entry) => {
        this.#parts.portals.finalize(entry);
        if (this.#parts.portals.isHome(entry.chainId))
          this.#parts.batches.finalize(entry.blockNumber);
        this.#parts.withdrawals.finalize(entry);
      },
      l1Reorganised: (entry) => {
        this.#parts.portals.revert(entry);
        if (this.#parts.portals.isHome(entry.chainId))
          this.#parts.batches.revert(entry.blockNumber);
        this.#parts.withdrawals.revert(entry);
      },
      withdrawalRequested: async (entry) => {
        const { applicationIndex, sequence, vaultId, withdrawalId } = entry;
        const place = unpackVaultId(vaultId);
        const assetIndex = (await this.#parts.transfers.heldAt(place))?.assetIndex ?? 0;
        const request = { applicationIndex, sequence, count: 1 };
        this.#parts.tenants.advance(
          `withdrawal ${withdrawalId}`,
          request,
          [assetIndex],
          place.mode === "made" ? [] : [place.mode],
        );
        this.#parts.withdrawals.request(entry, assetIndex);
      },
    } satisfies Handlers;
  }

  /** The record of a key that no later entry deletes. */
  #keepKey(
    applicationIndex: number,
    { key, digest }: { readonly key: Hash; readonly digest: Hash },
    what: string,
  ): void {
    const out = this.#out;
    if (out.sequence < this.#sources.foreseen.keysForgotten) return;
    const record = { digest, sequence: out.sequence };
    const at = keyOf.idempotency(applicationIndex, key);
    out.put(at, idempotencyRecord, record, `the idempotency record of ${what}`);
  }

  #power(entry: PowerEntry): void {
    this.#parts.portals.power(entry);
    this.#parts.transfers.judgeAfter(entry.blockNumber);
  }

  #mint({
    applicationIndex,
    firstSequence,
    mintId,
    keyIndex,
    users,
    mints,
    references,
    idempotency,
  }: MintJournalEntry): void {
    const out = this.#out;
    const name = `an index of mint ${mintId}`;
    out.index(keyOf.mint(mintId), name);
    out.index(keyOf.transaction(applicationIndex, firstSequence), name);
    for (const reference of new Set(references.values()))
      out.index(keyOf.mintReference(applicationIndex, reference, firstSequence), name);
    if (idempotency !== null) this.#keepKey(applicationIndex, idempotency, `mint ${mintId}`);
    let next = 0;
    for (const { userIndex, count } of users) {
      out.index(keyOf.userTransaction(applicationIndex, userIndex, firstSequence), name);
      for (const mint of mints.slice(next, next + count))
        this.#parts.vaults.place(mint, applicationIndex, userIndex, this.#adoptions.length > 0);
      next += count;
    }
    const request = { applicationIndex, sequence: firstSequence, count: mints.length };
    const assets = mints.map(({ assetIndex }) => assetIndex);
    const modes = mints.map(({ mode }) => mode);
    this.#parts.tenants.advance(`mint ${mintId}`, request, assets, modes);
    this.#parts.tenants.countMints(keyIndex, mints.length);
    out.tell(applicationIndex, {
      type: "mint.accepted",
      mintId,
      users: users.length,
      mints: mints.length,
    });
  }

  async #seal(entry: EntryOf<"batchSealed">): Promise<void> {
    const { mode, batchNumber, vaultCount, mintCount } = entry;
    const isNext = batchNumber === this.#parts.batches.count(mode);
    const { vaults, mintCount: mints, transfers } = this.#parts.vaults.take(mode, batchNumber);
    const groups = transfers ? this.#parts.transfers.ofBatch(entry) : null;
    const isRight = await this.#parts.batches.seal({ ...entry, vaults, groups });
    if (!isRight || !isNext || vaultCount !== vaults.length || mintCount !== mints)
      this.#out.report(
        `${batchName(entry)} was sealed with other vaults or another root than its mints give`,
      );
    this.#putVaults(entry, vaults, [], transfers);
  }

  /** Puts out the vaults of a sealed batch, and its ERC-1155 tokens. */
  #putVaults(
    place: BatchPlace,
    vaults: readonly StoredVault[],
    voids: AdoptedBatch["voids"],
    areTransfers: boolean,
  ): void {
    if (this.#parts.batches.isReplaced(place)) return;
    // L1 may give a transfer's vaults other units, so their records come at the end.
    if (!areTransfers) putChunks(this.#out, place, vaults);
    const held = withoutVoids(vaults, voids).map((vault) => (vault?.amount === 0n ? null : vault));
    this.#parts.tokens.putItems(place, held);
  }

  /** L1's batches replace batches of the journal. */
  async #adopt(entry: EntryOf<"historyAdopted">): Promise<void> {
    const { firsts, batches, lost, failure, transfers } = entry;
    const { sequence: upTo, time: since } = this.#out;
    this.#adoptions.shift();
    this.#divergence = null;
    const dropped = firsts
      .flatMap(({ mode, batchNumber: first }) => [
        ...this.#parts.batches.drop(mode, first),
        ...this.#parts.vaults.drop(mode, first),
      ])
      .filter((batch) => !batch.transfers);
    for (const batch of dropped) this.#parts.tokens.countAll(batch, batch.vaults, -1n);
    this.#parts.tokens.unbind(firsts);
    for (const { mode, batchNumber } of firsts)
      if (mode === "zk-rollup") this.#parts.transfers.drop(batchNumber);
    const vaultsOf = new Map(dropped.map((batch) => [batchName(batch), batch.all]));
    const failed = (runs: readonly LostRun[]) => runs.map((run) => ({ ...run, failure }));
    for (const each of lost)
      this.#parts.batches.tellFailed(each, failed(each.runs), vaultsOf.get(batchName(each)) ?? []);
    for (const each of lost) {
      this.#parts.withdrawals.failIn(each, failed(each.runs));
      const key = keyOf.lost(each.mode, each.batchNumber, upTo);
      this.#out.put(key, lostRecord, { ...each, upTo, failure, since }, "lost mints");
    }
    for (const [i, batch] of batches.entries()) {
      const lists = transfers?.find(({ place }) => place === i)?.lists ?? null;
      await this.#adoptBatch(batch, lists);
    }
    await this.#adoptLists(entry);
    if (this.#adoptions.length === 0) this.#parts.tokens.finish();
  }

  async #adoptBatch(batch: AdoptedBatch, groups: readonly AdoptedList[] | null): Promise<void> {
    const vaults = vaultsOf(batch);
    const mintCount = groups === null ? vaults.length : 0;
    const sealing = { ...batch, vaults, mintCount, groups, isAdopted: true };
    if (!(await this.#parts.batches.seal(sealing)))
      this.#out.report(`${batchName(batch)} was adopted with a wrong root`);
    if (groups === null) {
      const held = withoutVoids(vaults, batch.voids);
      this.#parts.tokens.countAll(batch, held, 1n);
      for (const vault of held) if (vault !== null) this.#parts.tokens.bind(batch, vault, true);
    }
    this.#putVaults(batch, vaults, batch.voids, groups !== null);
  }

  /**
   * Puts the lists of L1's batches over the vaults that they take, which may be of the same
   * history.
   */
  async #adoptLists({ batches, transfers }: EntryOf<"historyAdopted">): Promise<void> {
    const adopted = new Map<bigint, StoredVault>();
    for (const batch of batches)
      for (const [slot, vault] of vaultsOf(batch).entries())
        adopted.set(packVaultId({ ...batch, slot }), vault);
    for (const { place, lists } of transfers ?? []) {
      const batch = batches[place];
      if (batch === undefined) continue;
      for (const { vaultId } of lists.flatMap((list) => list.transfers)) {
        const vault =
          adopted.get(vaultId) ?? (await this.#parts.transfers.vaultAt(unpackVaultId(vaultId)));
        if (vault !== undefined) adopted.set(vaultId, vault);
      }
      this.#parts.transfers.adopt(batch.batchNumber, lists, vaultsOf(batch));
    }
    this.#parts.transfers.learn(adopted);
  }
}

function vaultsOf({ chunks }: AdoptedBatch): StoredVault[] {
  return chunks.flatMap((chunk) => decodeChunk(hexToBytes(chunk)));
}
