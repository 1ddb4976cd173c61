import { enablementId } from "../ledger/ledger.ts";
import { idempotencyRecord } from "../ledger/mint/idempotency.ts";
import { encodeBatchTokens } from "../ledger/tokens/batch-tokens.ts";
import { MODES, type Mode } from "../model.ts";
import { assetType } from "../protocol/asset.ts";
import { tokenIdOf } from "../protocol/blob.ts";
import { hexToBytes } from "../protocol/hex.ts";
import type { VaultPlace } from "../protocol/vault.ts";
import type { Entry, EntryOf } from "../store/entries.ts";
import type { BatchEventType } from "../store/event-record.ts";
import type { Journaled } from "../store/journal.ts";
import { encodeRecord } from "../store/layout.ts";
import { type MintEntry, type PlacedMint, vaultIdOf } from "../store/mint-entry.ts";
import {
  type ApplicationRecord,
  type AssetRecord,
  applicationRecord,
  assetRecord,
  type BatchRecord,
  type HeadRecord,
  headRecord,
  type KeyRecord,
  keyRecord,
  type PortalRecord,
  portalRecord,
  userIdRecord,
  userRecord,
} from "../store/records.ts";
import * as keys from "../store/store-keys.ts";
import type { StoredVault } from "../store/vault-chunk.ts";
import { batchName, NO_ASSET, ReferenceBatches, type Roots } from "./reference-batches.ts";
import { ReferenceEvents } from "./reference-events.ts";
import { batchExpected, COMPARED_WHOLE, chunksExpected, type Expected, expectedRecord } from "./reference-records.ts";
import { ReferenceTokens, type Suspect, tokenName } from "./reference-tokens.ts";
import { ReferenceWebhooks } from "./reference-webhooks.ts";
import { ReferenceWithdrawals } from "./reference-withdrawals.ts";

/** A batch while its vaults are known one by one: open, or closed and about to be sealed by the next entries. */
interface Growing {
  readonly vaults: StoredVault[];
  mintCount: number;
}

/** What must be known of the whole journal before its first entry: records that a later entry changes or takes away. */
export interface Foreseen {
  /** As {@link ReferenceBatches} asks for. */
  readonly voidings: ReadonlyMap<string, number>;
  /** Journal sequence before which idempotency keys are forgotten in the end. */
  readonly keysForgotten: number;
}

/**
 * The engine's state derived from the journal alone, one entry at a time, as plainly as possible: the second implementation that
 * `verify` holds the store to. It keeps in memory what is few or not sealed yet; everything else it tells as soon as it is determined.
 */
export class Reference {
  entries = 0;
  vaults = 0;
  mints = 0;
  tokens = 0;
  readonly sealed: Record<Mode, number> = { validium: 0, "zk-rollup": 0 };
  readonly #report: (problem: string) => void;
  readonly #applications: ApplicationRecord[] = [];
  readonly #keys: KeyRecord[] = [];
  readonly #assets: AssetRecord[] = [];
  readonly #enabled = new Set<string>();
  /** By chain, the settlement contract's first. */
  readonly #portals = new Map<bigint, PortalRecord>();
  readonly #owners: { readonly applicationIndex: number; readonly owner: StoredVault["owner"] }[] = [];
  readonly #batches: ReferenceBatches;
  readonly #growing: Record<Mode, Map<number, Growing>> = { validium: new Map(), "zk-rollup": new Map() };
  readonly #events = new ReferenceEvents();
  readonly #withdrawals = new ReferenceWithdrawals(this.#events);
  readonly #webhooks = new ReferenceWebhooks(this.#events);
  readonly #uniqueness: ReferenceTokens;
  readonly #keysForgotten: number;
  readonly #counts = new Map<number, number>();
  #head: HeadRecord = {
    journalLength: 0,
    time: 0,
    userCount: 0,
    keysForgotten: 0,
  };

  /**
   * @param seed - the store's own, for hashes of tokens
   * @param foreseen - of the same journal
   */
  constructor(report: (problem: string) => void, seed: Uint8Array, { voidings, keysForgotten }: Foreseen) {
    this.#report = report;
    this.#keysForgotten = keysForgotten;
    this.#batches = new ReferenceBatches(
      voidings,
      this.#events,
      (index) => this.#assets[index],
      (vaults) => this.#tokensOf(vaults),
    );
    this.#uniqueness = new ReferenceTokens(seed);
  }

  /** Takes in the next entry; returns the records that are determined by now and will not change. */
  apply({ sequence, time, entry }: Journaled): Expected[] {
    if (time < this.#head.time) this.#report(`journal entry ${sequence} is older than the one before`);
    this.entries++;
    this.#head = { ...this.#head, journalLength: sequence + 1, time };
    const expected = entry.kind === "mint" ? this.#mint(entry, sequence, time) : this.#apply(entry, sequence, time);
    for (const { key } of expected) this.#count(key[0] ?? 0);
    return expected;
  }

  /** Pairs of vaults found since the last time that may hold the same ERC-721 token. */
  suspects(): Suspect[] {
    return this.#uniqueness.suspects();
  }

  /** The token that a vault of the store holds, as {@link suspects} tells tokens. */
  tokenOf(vault: StoredVault): string | null {
    const asset = this.#assets[vault.assetIndex];
    const tokenId = asset === undefined ? null : tokenIdOf(asset.standard, asset.blobScheme, vault.blob);
    return tokenId === null ? null : tokenName(vault.assetIndex, tokenId);
  }

  /** A vault of a batch that is not sealed yet. */
  growingVault({ mode, batchNumber, slot }: VaultPlace): StoredVault | undefined {
    return this.#growing[mode].get(batchNumber)?.vaults[slot];
  }

  /** Whether the records under a prefix are compared at the end, all of them. */
  comparesWhole(prefix: number): boolean {
    return COMPARED_WHOLE.has(prefix);
  }

  /** How many records there must be under a prefix; null where it cannot be told. */
  countOf(prefix: number): number | null {
    if (COMPARED_WHOLE.has(prefix) || prefix === keys.PREFIX.secret) return null;
    if (prefix === keys.PREFIX.journal) return this.entries;
    if (prefix === keys.PREFIX.seed) return 1;
    // Later mints of a bound ERC-1155 id tell of the same record again.
    if (prefix === keys.PREFIX.binding) return null;
    return this.#counts.get(prefix) ?? 0;
  }

  /** The records that could change until now. */
  finish(): Expected[] {
    const growing = MODES.flatMap((mode) =>
      [...this.#growing[mode]].flatMap(([number, batch]) => this.#open(mode, number, batch)),
    );
    for (const { key } of growing) this.#count(key[0] ?? 0);
    return [
      { key: keys.HEAD_KEY, value: encodeRecord(headRecord, this.#head), name: "the head" },
      ...this.#applications.map((facts, i) => {
        const record = { ...facts, eventCount: this.#events.countOf(i) };
        return expectedRecord(keys.applicationKey(i), encodeRecord(applicationRecord, record), `application ${i}`);
      }),
      ...this.#keys.map((record, i) => expectedRecord(keys.apiKeyKey(i), encodeRecord(keyRecord, record), `key ${i}`)),
      ...this.#assets.map((record, i) =>
        expectedRecord(keys.assetKey(i), encodeRecord(assetRecord, record), `asset ${i}`),
      ),
      ...[...this.#portals.values()].map((record) =>
        expectedRecord(
          keys.portalKey(record.chainId),
          encodeRecord(portalRecord, record),
          `the contract on chain ${record.chainId}`,
        ),
      ),
      ...[...this.#enabled].map((id) => this.#enablement(id)),
      ...this.#batches.finish(),
      ...growing,
      ...this.#withdrawals.finish(),
      ...this.#webhooks.finish(),
    ];
  }

  #count(prefix: number): void {
    this.#counts.set(prefix, (this.#counts.get(prefix) ?? 0) + 1);
  }

  #enablement(id: string): Expected {
    const [application = 0, asset = 0] = id.split(":").map(Number);
    return expectedRecord(keys.enablementKey(application, asset), Buffer.from([1]), `enablement ${id}`);
  }

  #apply(entry: Entry, sequence: number, time: number): Expected[] {
    switch (entry.kind) {
      case "genesis":
      case "mirrorAdded":
        this.#portals.set(entry.chainId, newPortal(entry));
        return [];
      case "applicationCreated": {
        const { applicationIndex, applicationId, name } = entry;
        this.#applications.push({
          applicationIndex,
          applicationId,
          name,
          suspended: false,
          createdAt: time,
          nextSequence: 0,
          eventCount: 0,
        });
        return [];
      }
      case "applicationSuspended":
        this.#change(this.#applications, entry.applicationIndex, { suspended: entry.suspended });
        return [];
      case "keyIssued": {
        const { kind: _, ...facts } = entry;
        this.#keys.push({ ...facts, mintsUsed: 0n, createdAt: time, revokedAt: null });
        return [];
      }
      case "keyRevoked":
        this.#change(this.#keys, entry.keyIndex, { revokedAt: time });
        return [];
      case "assetAdded":
        this.#assets.push(newAsset(entry, time));
        return [];
      case "assetWhitelisted":
        this.#change(this.#assets, entry.assetIndex, { whitelisted: entry.whitelisted });
        return [];
      case "assetRegistered":
        this.#change(this.#assets, entry.assetIndex, { registered: true, minterLocked: entry.minterLocked });
        return [];
      case "assetFault":
        this.#change(this.#assets, entry.assetIndex, { fault: entry.fault });
        return [];
      case "assetEnabled": {
        const id = enablementId(entry.applicationIndex, entry.assetIndex);
        if (entry.enabled) this.#enabled.add(id);
        else this.#enabled.delete(id);
        const type = entry.enabled ? "asset.enabled" : "asset.disabled";
        const { assetId } = this.#assets[entry.assetIndex] ?? NO_ASSET;
        return [this.#events.tell(entry.applicationIndex, time, { type, assetId })];
      }
      case "userCreated":
        return this.#user(entry, time);
      case "batchSealed":
        return this.#seal(entry, time);
      case "slotsVoided":
        return this.#void(entry, time);
      case "idempotencyForgotten": {
        const { upTo } = entry;
        if (upTo <= this.#head.keysForgotten || upTo > sequence)
          this.#report(`entry ${sequence} forgets up to ${upTo}`);
        this.#head = { ...this.#head, keysForgotten: upTo };
        return [];
      }
      default:
        return this.#settlement(entry, sequence, time);
    }
  }

  #change<T>(records: T[], index: number, change: Partial<T>): void {
    const record = records[index];
    if (record === undefined) this.#report(`the journal changes a record ${index} that it never made`);
    else records[index] = { ...record, ...change };
  }

  #user(entry: EntryOf<"userCreated">, time: number): Expected[] {
    const { applicationIndex, userIndex, userId, ownerAddress } = entry;
    if (userIndex !== this.#owners.length) this.#report(`user ${userId} is out of order`);
    this.#owners.push({ applicationIndex, owner: ownerAddress });
    this.#head = { ...this.#head, userCount: userIndex + 1 };
    const record = encodeRecord(userRecord, { userId, ownerAddress, createdAt: time });
    const index = encodeRecord(userIdRecord, { userIndex, ownerAddress });
    return [
      expectedRecord(keys.userKey(applicationIndex, userIndex), record, `user ${userId}`),
      expectedRecord(keys.userIdKey(applicationIndex, userId), index, `the index of user ${userId}`),
    ];
  }

  #mint(entry: MintEntry, sequence: number, time: number): Expected[] {
    const { applicationIndex: application, firstSequence, mintId } = entry;
    const expected: Expected[] = [];
    const reference = keys.journalKey(sequence).subarray(1);
    const index = (key: Buffer): void =>
      void expected.push(expectedRecord(key, reference, `an index of mint ${mintId}`));
    index(keys.mintKey(mintId));
    index(keys.transactionKey(application, firstSequence));
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
        if (mint !== undefined) expected.push(...this.#place(mint, application, userIndex, time));
      }
    }
    if (this.#applications[application]?.nextSequence !== firstSequence)
      this.#report(`mint ${mintId} is out of sequence`);
    this.#change(this.#applications, application, { nextSequence: firstSequence + entry.mints.length });
    const used = (this.#keys[entry.keyIndex]?.mintsUsed ?? 0n) + BigInt(entry.mints.length);
    this.#change(this.#keys, entry.keyIndex, { mintsUsed: used });
    const told = { mintId, users: entry.users.length, mints: entry.mints.length };
    expected.push(this.#events.tell(application, time, { type: "mint.accepted", ...told }));
    return expected;
  }

  /** Puts one mint into its vault by the rules of docs/protocol.md 3. */
  #place(mint: PlacedMint, applicationIndex: number, userIndex: number, time: number): Expected[] {
    const { assetIndex, amount, blob, mode, batchNumber, slot } = mint;
    const asset = this.#assets[assetIndex];
    const user = this.#owners[userIndex];
    if (asset === undefined || user?.applicationIndex !== applicationIndex) {
      this.#report(`vault ${vaultIdOf(mint)} has no asset or no user`);
      return [];
    }
    this.mints++;
    this.#assets[assetIndex] = { ...asset, minted: asset.minted + amount };
    const batch = this.#growingBatch(mode, batchNumber);
    const vault = batch.vaults[slot];
    batch.mintCount++;
    if (mint.amountBefore === 0n) {
      if (slot !== batch.vaults.length) this.#report(`vault ${vaultIdOf(mint)} is out of order`);
      const { owner } = user;
      batch.vaults.push({
        applicationIndex,
        userIndex,
        owner,
        assetIndex,
        amount,
        blob,
        createdAt: time,
        updatedAt: time,
      });
      this.vaults++;
    } else if (
      vault?.userIndex !== userIndex ||
      vault.assetIndex !== assetIndex ||
      vault.blob !== blob ||
      vault.amount !== mint.amountBefore ||
      vault.createdAt !== time - mint.age ||
      asset.standard === "erc721"
    ) {
      this.#report(`a mint was added to vault ${vaultIdOf(mint)} to which it does not belong`);
    } else {
      vault.amount += amount;
      vault.updatedAt = time;
    }
    return this.#token(mint, asset);
  }

  #token(mint: PlacedMint, asset: AssetRecord): Expected[] {
    const tokenId = tokenIdOf(asset.standard, asset.blobScheme, mint.blob);
    if (tokenId === null) return [];
    if (asset.standard === "erc721") {
      this.tokens++;
      this.#uniqueness.add(mint, tokenId);
      return [];
    }
    const key = keys.bindingKey(mint.assetIndex, tokenId);
    return [expectedRecord(key, Buffer.from(hexToBytes(mint.blob)), `token ${tokenId} of ${asset.assetId}`)];
  }

  #growingBatch(mode: Mode, batchNumber: number): Growing {
    const known = this.#growing[mode].get(batchNumber);
    if (known !== undefined) return known;
    const first = { vaults: [], mintCount: 0 };
    this.#growing[mode].set(batchNumber, first);
    return first;
  }

  #seal(entry: EntryOf<"batchSealed">, time: number): Expected[] {
    const { mode, batchNumber, vaultCount, mintCount } = entry;
    const { vaults, mintCount: mints } = this.#growingBatch(mode, batchNumber);
    this.#growing[mode].delete(batchNumber);
    const { roots, expected } = this.#batches.seal(entry, vaults, time);
    const same = batchNumber === this.sealed[mode] && vaultCount === vaults.length && mintCount === mints;
    if (!same || !sameRoots(entry, roots)) {
      this.#report(`${batchName(entry)} was sealed with other vaults or another root than follow from its mints`);
    }
    this.sealed[mode]++;
    return [...chunksExpected(mode, batchNumber, vaults), ...expected];
  }

  #void(entry: EntryOf<"slotsVoided">, time: number): Expected[] {
    const { mode, batchNumber, voids } = entry;
    const resealed = this.#batches.voidSlots(entry, time);
    if (resealed === null || !sameRoots(entry, resealed.roots)) {
      this.#report(`slots of ${batchName(entry)} became void that could not, or with another root than follows`);
    }
    if (resealed === null) return [];
    for (const { vault, slot } of resealed.voided) {
      const asset = this.#assets[vault.assetIndex];
      if (asset === undefined) continue;
      this.#assets[vault.assetIndex] = { ...asset, minted: asset.minted - vault.amount };
      const tokenId = asset.standard === "erc721" ? tokenIdOf("erc721", asset.blobScheme, vault.blob) : null;
      if (tokenId === null) continue;
      this.tokens--;
      this.#uniqueness.remove({ mode, batchNumber, slot }, vault.assetIndex, tokenId);
    }
    return [...resealed.expected, ...this.#withdrawals.failVoided(entry, voids, time)];
  }

  #tokensOf(vaults: readonly (StoredVault | null)[]): Buffer {
    const found = vaults.flatMap((vault, slot) => {
      const asset = vault === null ? undefined : this.#assets[vault.assetIndex];
      if (vault === null || asset?.standard !== "erc721") return [];
      const tokenId = tokenIdOf(asset.standard, asset.blobScheme, vault.blob);
      return tokenId === null ? [] : [{ slot, hash: this.#uniqueness.hash(vault.assetIndex, tokenId) }];
    });
    const hashes = Uint32Array.from(found, ({ hash }) => hash);
    return encodeBatchTokens({ hashes, slots: Uint32Array.from(found, ({ slot }) => slot) });
  }

  #open(mode: Mode, batchNumber: number, { vaults, mintCount }: Growing): Expected[] {
    const none = { batchRoot: null, dataHash: null, stateRoot: null, l1TxHash: null, l1BlockNumber: null };
    const notYet = {
      committedAt: null,
      l1Sequence: null,
      sealedAt: null,
      submittedAt: null,
      settledAt: null,
      finalizedAt: null,
    };
    const openedAt = vaults[0]?.createdAt ?? 0;
    const facts = { mode, batchNumber, status: "open" as const, vaultCount: vaults.length, mintCount, openedAt };
    return [batchExpected({ ...facts, ...none, ...notYet }), ...chunksExpected(mode, batchNumber, vaults)];
  }

  #settlement(entry: Entry, sequence: number, time: number): Expected[] {
    switch (entry.kind) {
      case "batchSubmitted": {
        const submittedAt = this.#batches.at(entry)?.submittedAt ?? time;
        const submitted = { status: "submitted", l1TxHash: entry.txHash, submittedAt } as const;
        return this.#changeBatch(entry, submitted, "batch.submitted", time);
      }
      case "batchCommitted": {
        const { txHash: l1TxHash, blockNumber: l1BlockNumber, committedAt, l1Sequence } = entry;
        const submittedAt = this.#batches.at(entry)?.submittedAt ?? time;
        const onL1 = { l1TxHash, l1BlockNumber, committedAt, l1Sequence, submittedAt };
        return this.#changeBatch(entry, { status: "settled", ...onL1, settledAt: time }, "batch.settled", time);
      }
      case "l1Observed":
        this.#changePortal(entry.chainId, { observed: entry.blockNumber });
        return [];
      case "l1Finalized": {
        const { chainId, blockNumber } = entry;
        this.#changePortal(chainId, { finalized: blockNumber });
        const final = { status: "finalized", finalizedAt: time } as const;
        const within = (block: bigint) => this.#isHome(chainId) && block <= blockNumber;
        return [
          ...this.#batches.changeSettled(within, final, "batch.finalized", time),
          ...this.#withdrawals.finalize(chainId, blockNumber, time),
        ];
      }
      case "l1Reorganised": {
        const { chainId, blockNumber } = entry;
        const observed = this.#portals.get(chainId)?.observed ?? null;
        if (observed !== null && observed >= blockNumber) {
          this.#changePortal(chainId, { observed: blockNumber > 0n ? blockNumber - 1n : null });
        }
        const gone = { l1BlockNumber: null, committedAt: null, l1Sequence: null, settledAt: null };
        const reverted = { status: "submitted", ...gone } as const;
        const within = (block: bigint) => this.#isHome(chainId) && block >= blockNumber;
        return [
          ...this.#batches.changeSettled(within, reverted, "batch.reverted", time),
          ...this.#withdrawals.revert(chainId, blockNumber, time),
        ];
      }
      case "withdrawalRequested": {
        this.#change(this.#applications, entry.applicationIndex, { nextSequence: entry.sequence + 1 });
        return this.#withdrawals.request(entry, sequence, time);
      }
      default:
        return [...this.#withdrawals.apply(entry, time), ...this.#webhooks.apply(entry, time)];
    }
  }

  /** Batches are committed on the chain of the first portal. */
  #isHome(chainId: bigint): boolean {
    return chainId === this.#portals.keys().next().value;
  }

  #changePortal(chainId: bigint, change: Partial<PortalRecord>): void {
    const portal = this.#portals.get(chainId);
    if (portal === undefined) this.#report(`the journal tells of chain ${chainId}, on which it has no contract`);
    else this.#portals.set(chainId, { ...portal, ...change });
  }

  #changeBatch(
    entry: EntryOf<"batchSubmitted" | "batchCommitted">,
    change: Partial<BatchRecord>,
    type: BatchEventType,
    time: number,
  ): Expected[] {
    if (this.#batches.at(entry) === undefined) {
      this.#report(`the journal tells of ${batchName(entry)} before it is sealed`);
      return [];
    }
    return this.#batches.change(entry, change, type, time);
  }
}

function sameRoots(entry: Roots, roots: Roots): boolean {
  const { batchRoot, dataHash, stateRoot } = roots;
  return entry.batchRoot === batchRoot && entry.dataHash === dataHash && entry.stateRoot === stateRoot;
}

function newPortal({ chainId, contract }: EntryOf<"genesis" | "mirrorAdded">): PortalRecord {
  return { chainId, contract, observed: null, finalized: null };
}

function newAsset({ kind: _, ...facts }: EntryOf<"assetAdded">, time: number): AssetRecord {
  const type = assetType(facts.standard, facts.contractAddress, facts.quantum);
  const fresh = { minted: 0n, whitelisted: false, registered: false, minterLocked: null, fault: null };
  return { ...facts, ...fresh, assetType: type, createdAt: time };
}
