import { MintmarkError } from "../../errors.ts";
import { type Hex, MODES, type Principal } from "../../model.ts";
import { tokenIdOf } from "../../protocol/blob.ts";
import type { Group } from "../../store/group.ts";
import { decodeRecord, encodeRecord } from "../../store/layout.ts";
import { type MintHeader, PlacedColumns } from "../../store/mint-entry.ts";
import { type AssetRecord, type KeyRecord, userIdRecord } from "../../store/records.ts";
import {
  bindingKey,
  journalKey,
  keyString,
  mintKey,
  transactionKey,
  userIdKey,
  userTransactionKey,
} from "../../store/store-keys.ts";
import type { Transition } from "../../store/writer.ts";
import type { OpenBatch } from "../batches/open-batch.ts";
import { closeOpenBatch, sealClosed } from "../batches/seal.ts";
import { tell } from "../events/event-log.ts";
import { enablementId, type Ledger } from "../ledger.ts";
import { availability } from "../tenants/assets.ts";
import type { CachedUser } from "../tenants/user-cache.ts";
import { shortDecimalIn } from "../tokens/short-decimal.ts";
import { TokenLookup } from "../tokens/uniqueness.ts";
import { hexOf, type NewVault } from "../vaults/vault-columns.ts";
import { AmountSum } from "./amount-words.ts";
import { earlierMint, type Idempotency, idempotencyKeyOf, idempotencyOf, idempotencyRecord } from "./idempotency.ts";
import type { MintColumns } from "./mint-columns.ts";
import { timeUuid } from "./time-uuid.ts";

/** A request that was accepted, as it went into the journal. */
export interface Minted {
  readonly time: number;
  readonly header: MintHeader;
  readonly columns: MintColumns;
  readonly placed: PlacedColumns;
  readonly users: readonly CachedUser[];
}

/** What became of a mint request. */
export interface MintOutcome {
  /** The journal sequence of the mint; of the first one when it was replayed. */
  readonly sequence: number;
  /** null when the request is a repetition: the answer is in the journal. */
  readonly minted: Minted | null;
}

/** What a request makes of one asset. */
interface AssetUse {
  readonly asset: AssetRecord;
  readonly sum: AmountSum;
}

/** An ERC-1155 id that is not known to be bound. */
interface Asked {
  readonly entry: number;
  readonly key: Buffer;
  readonly short: number;
}

/** Refs of tokens whose vaults have no place yet: their entries' positions in the request, above every vault's ref. */
const PENDING = 0xfff0_0000;

/**
 * One mint request on its way through the writer: first everything is checked against the state, then everything is applied, which
 * can no longer fail. The result is null, and nothing is changed, when something is wrong: {@link MintCheck}, which is slower and plain,
 * tells what.
 */
export class MintTransition implements Transition<MintOutcome | null> {
  readonly weight: number;
  readonly #ledger: Ledger;
  readonly #principal: Principal;
  readonly #columns: MintColumns;
  readonly #idempotency: Idempotency | null;
  readonly #uses = new Map<number, AssetUse>();
  /** null while no token's hash is known. */
  #lookup: TokenLookup | null = null;
  /** By entry; of ERC-721 only. */
  readonly #tokenHash: Uint32Array;
  #bindings: Asked[] = [];
  /** Users that were not in the cache, by position in the request. */
  #askedUsers: number[] = [];
  #wrong = false;

  constructor(ledger: Ledger, principal: Principal, columns: MintColumns, idempotency: Idempotency | null) {
    this.#ledger = ledger;
    this.#principal = principal;
    this.#columns = columns;
    this.#idempotency = idempotency;
    this.#tokenHash = new Uint32Array(columns.count);
    this.weight = columns.count;
  }

  keys(): Buffer[] {
    const application = this.#ledger.latestApplication(this.#principal.applicationId).applicationIndex;
    const keys: Buffer[] = [];
    if (this.#idempotency !== null) keys.push(idempotencyKeyOf(application, this.#idempotency));
    for (const [i, userId] of this.#columns.userIds.entries()) {
      if (this.#ledger.users.get(application, userId) !== undefined) continue;
      this.#askedUsers.push(i);
      keys.push(userIdKey(application, userId));
    }
    this.#readTokens();
    for (const { key } of this.#bindings) keys.push(key);
    for (const key of this.#lookup?.keys() ?? []) keys.push(key);
    return keys;
  }

  apply(group: Group, stored: readonly (Buffer | undefined)[]): MintOutcome | null {
    const application = this.#ledger.latestApplication(this.#principal.applicationId);
    const key = requireKey(this.#ledger, this.#principal);
    let at = 0;
    if (this.#idempotency !== null) {
      const place = idempotencyKeyOf(application.applicationIndex, this.#idempotency);
      const earlier = earlierMint(group.resolve(place, stored[at++]), this.#idempotency);
      if (earlier !== null) return { sequence: earlier, minted: null };
    }
    const behindUsers = at + this.#askedUsers.length;
    const behindBindings = behindUsers + this.#bindings.length;
    const users = this.#resolveUsers(group, application.applicationIndex, stored.slice(at, behindUsers));
    if (this.#wrong || users === null || !this.#allows(application.applicationIndex, key)) return null;
    const bound = this.#checkBindings(group, stored.slice(behindUsers, behindBindings));
    if (bound === null) return null;
    this.#lookup?.receive(stored.slice(behindBindings));
    if (!this.#takeTokens()) return null;
    for (const { entry, key: place, short } of bound) {
      group.stage(place, Buffer.from(this.#columns.blobAt(entry).slice(2), "hex"));
      if (short >= 0) this.#ledger.bindings.add(this.#columns.assetIndex[entry] as number, short);
    }
    return this.#apply(group, application.applicationIndex, key, users);
  }

  /** Checks every entry against its asset's standard and scheme, and finds out what must be read of its token. */
  #readTokens(): void {
    const { count, assetIndex, amountHigh, amountLow, blobs, blobEnd } = this.#columns;
    let use: AssetUse | null = null;
    let start = 0;
    for (let entry = 0; entry < count && !this.#wrong; entry++) {
      if (use === null || use.asset.assetIndex !== assetIndex[entry]) use = this.#use(assetIndex[entry] as number);
      const end = blobEnd[entry] as number;
      const { standard } = use.asset;
      use.sum.add(amountHigh[entry] as number, amountLow[entry] as number);
      if (standard === "erc20") {
        this.#wrong ||= end !== start;
      } else {
        const short = use.asset.blobScheme === "mintmark" ? shortDecimalIn(blobs, start, end) : -1;
        if (standard === "erc1155") this.#askBinding(use.asset, entry, short);
        else if (amountHigh[entry] === 0 && amountLow[entry] === 1) this.#askToken(use.asset, entry, short);
        else this.#wrong = true;
      }
      start = end;
    }
  }

  #use(assetIndex: number): AssetUse {
    const known = this.#uses.get(assetIndex);
    if (known !== undefined) return known;
    const use = { asset: this.#ledger.assetAt(assetIndex), sum: new AmountSum() };
    this.#uses.set(assetIndex, use);
    return use;
  }

  #askToken(asset: AssetRecord, entry: number, short: number): void {
    const { hasher } = this.#ledger;
    const tokenId = short >= 0 ? null : this.#tokenId(asset, entry);
    const hash = tokenId === null ? hasher.ofShortId(asset.assetIndex, short) : hasher.ofId(asset.assetIndex, tokenId);
    this.#tokenHash[entry] = hash;
    const candidates = this.#ledger.tokens.candidates(hash);
    if (candidates === null) return;
    this.#lookup ??= new TokenLookup(this.#ledger);
    this.#lookup.prepare(candidates);
  }

  #askBinding(asset: AssetRecord, entry: number, short: number): void {
    if (short >= 0 && this.#ledger.bindings.has(asset.assetIndex, short)) return;
    const tokenId = short >= 0 ? BigInt(short) : this.#tokenId(asset, entry);
    this.#bindings.push({ entry, key: bindingKey(asset.assetIndex, tokenId), short });
  }

  /** The entry's token id by the plain way; when its blob has none, the request is wrong and 0 is returned. */
  #tokenId(asset: AssetRecord, entry: number): bigint {
    try {
      return tokenIdOf(asset.standard, asset.blobScheme, this.#columns.blobAt(entry)) ?? 0n;
    } catch (error) {
      if (!(error instanceof MintmarkError) || error.code !== "blob_invalid") throw error;
      this.#wrong = true;
      return 0n;
    }
  }

  #resolveUsers(group: Group, application: number, stored: readonly (Buffer | undefined)[]): CachedUser[] | null {
    const { userIds } = this.#columns;
    for (const [i, position] of this.#askedUsers.entries()) {
      const userId = userIds[position] ?? "";
      const record = group.resolve(userIdKey(application, userId), stored[i]);
      if (record === undefined) return null;
      this.#ledger.users.set(application, userId, decodeRecord(userIdRecord, record, `User ${userId}`));
    }
    const users: CachedUser[] = [];
    for (const userId of userIds) {
      const user = this.#ledger.users.get(application, userId);
      if (user === undefined) return null;
      users.push(user);
    }
    return users;
  }

  /** Whether the assets can be minted, within their caps, and the key has mints left. */
  #allows(applicationIndex: number, key: KeyRecord): boolean {
    const { settlement, enablements } = this.#ledger;
    if (key.mintQuota !== null && key.mintsUsed + BigInt(this.weight) > key.mintQuota) return false;
    for (const [assetIndex, { sum }] of this.#uses) {
      const asset = this.#ledger.assetAt(assetIndex);
      const enabled = enablements.latest(enablementId(applicationIndex, assetIndex)) ?? false;
      if (availability(settlement, asset, enabled) !== null) return false;
      if (asset.supplyCap !== null && asset.minted + sum.total > asset.supplyCap) return false;
    }
    return true;
  }

  /** For ERC-1155 the first blob binds the id: the entries that bind one; null when one of them is bound to another blob. */
  #checkBindings(group: Group, stored: readonly (Buffer | undefined)[]): Asked[] | null {
    const bound: Asked[] = [];
    const inRequest = new Map<string, Hex>();
    for (const [i, asked] of this.#bindings.entries()) {
      const name = keyString(asked.key);
      const blob = this.#columns.blobAt(asked.entry);
      const record = group.resolveString(name, stored[i]);
      const known = record === undefined ? inRequest.get(name) : hexOf(record, 0, record.length);
      if (known !== undefined && known !== blob) return null;
      if (known === undefined) {
        inRequest.set(name, blob);
        bound.push(asked);
      } else if (asked.short >= 0) {
        this.#ledger.bindings.add(this.#columns.assetIndex[asked.entry] as number, asked.short);
      }
    }
    return bound;
  }

  /** Puts the request's ERC-721 tokens into the index, without a place for now; none of them when one exists already. */
  #takeTokens(): boolean {
    const { tokens } = this.#ledger;
    const { count, assetIndex } = this.#columns;
    for (let entry = 0; entry < count; entry++) {
      if (!this.#isUnique(assetIndex[entry] as number)) continue;
      const hash = this.#tokenHash[entry] as number;
      if (tokens.insertNew(hash, PENDING + entry)) continue;
      if (this.#exists(tokens.candidates(hash) ?? [], entry)) {
        for (let taken = entry - 1; taken >= 0; taken--) {
          if (this.#isUnique(assetIndex[taken] as number))
            tokens.remove(this.#tokenHash[taken] as number, PENDING + taken);
        }
        return false;
      }
      tokens.insert(hash, PENDING + entry);
    }
    return true;
  }

  #isUnique(assetIndex: number): boolean {
    return this.#ledger.standards[assetIndex] === "erc721";
  }

  /** Whether one of the candidates is the entry's token: another entry's of this request, or one that was minted. */
  #exists(candidates: readonly number[], entry: number): boolean {
    const { assetIndex } = this.#columns;
    const asset = this.#ledger.assetAt(assetIndex[entry] as number);
    const tokenId = this.#tokenId(asset, entry);
    const earlier = candidates.filter((ref) => ref >= PENDING).map((ref) => ref - PENDING);
    const minted = candidates.filter((ref) => ref < PENDING);
    this.#lookup ??= new TokenLookup(this.#ledger);
    return (
      earlier.some((other) => assetIndex[other] === asset.assetIndex && this.#tokenId(asset, other) === tokenId) ||
      this.#lookup.holds(minted, asset.assetIndex, tokenId)
    );
  }

  #apply(group: Group, applicationIndex: number, key: KeyRecord, users: readonly CachedUser[]): MintOutcome {
    const ledger = this.#ledger;
    const columns = this.#columns;
    const application = ledger.latestApplication(this.#principal.applicationId);
    const time = ledger.now();
    const openPlaces = { validium: placeOf(ledger.open("validium")), "zk-rollup": placeOf(ledger.open("zk-rollup")) };
    const placed = new PlacedColumns(columns.count);
    const closed = this.#place(placed, users, time);
    const idempotency = idempotencyOf(this.#idempotency);
    const header: MintHeader = {
      applicationIndex,
      keyIndex: key.keyIndex,
      firstSequence: application.nextSequence,
      mintId: timeUuid(time),
      idempotency,
      openPlaces,
      users: users.map(({ userIndex }, i) => ({ userIndex, count: columns.userCounts[i] ?? 0 })),
    };
    const { sequence } = ledger.recordMint(group, header, columns, placed, time);
    for (const [assetIndex, { sum }] of this.#uses) {
      const asset = ledger.assetAt(assetIndex);
      ledger.putAsset(group, { ...asset, minted: asset.minted + sum.total });
    }
    indexMint(group, header, sequence);
    ledger.putApplication(group, { ...application, nextSequence: application.nextSequence + columns.count });
    ledger.putKey(group, { ...key, mintsUsed: key.mintsUsed + BigInt(columns.count) });
    const { mintId } = header;
    const told = { users: users.length, mints: columns.count };
    tell(ledger, group, applicationIndex, time, { type: "mint.accepted", mintId, ...told });
    const { applicationId } = application;
    group.onDurable(() => ledger.emit("mint", { applicationId, mintId, mints: columns.count }));
    for (const batch of closed) void sealClosed(ledger, group, batch);
    return { sequence, minted: { time, header, columns, placed, users } };
  }

  /** Gives every entry its vault, going on in the next batch whenever one is full; returns the batches that are. */
  #place(placed: PlacedColumns, users: readonly CachedUser[], time: number): OpenBatch[] {
    const { assetIndex, amountHigh, amountLow, mode, blobs, blobEnd, userCounts } = this.#columns;
    const closed: OpenBatch[] = [];
    const vault = { assetIndex: 0, amountHigh: 0, amountLow: 0, blobs, start: 0, end: 0 };
    let entry = 0;
    for (const [i, user] of users.entries()) {
      for (const end = entry + (userCounts[i] ?? 0); entry < end; entry++) {
        vault.assetIndex = assetIndex[entry] as number;
        vault.amountHigh = amountHigh[entry] as number;
        vault.amountLow = amountLow[entry] as number;
        vault.start = vault.end;
        vault.end = blobEnd[entry] as number;
        this.#placeEntry(placed, closed, entry, mode[entry] as number, user, vault, time);
      }
    }
    return closed;
  }

  #placeEntry(
    placed: PlacedColumns,
    closed: OpenBatch[],
    entry: number,
    modeNumber: number,
    user: CachedUser,
    vault: NewVault,
    time: number,
  ): void {
    const ledger = this.#ledger;
    const mode = MODES[modeNumber] ?? "validium";
    const standard = ledger.standards[vault.assetIndex] ?? "erc20";
    let open = ledger.open(mode);
    const slot = standard === "erc721" ? -1 : open.growing(user, vault);
    if (slot >= 0) {
      placed.existing(entry, open, slot, time);
      open.grow(slot, vault.amountHigh, vault.amountLow, time);
      return;
    }
    if (!open.fits(vault)) {
      closed.push(closeOpenBatch(ledger, mode));
      open = ledger.open(mode);
    }
    const hash = this.#tokenHash[entry] as number;
    const added = open.add(user, vault, standard, time, hash);
    placed.added(entry, open, added);
    if (standard === "erc721") ledger.tokens.move(hash, PENDING + entry, ledger.refOf(open, added));
  }
}

/** The key as the writer has it: it may have been revoked or suspended since the request was let in. */
export function requireKey(ledger: Ledger, principal: Principal): KeyRecord {
  const index = ledger.keyIndices.get(principal.keyId);
  const key = index === undefined ? undefined : ledger.keys.latest(index);
  const application = ledger.latestApplication(principal.applicationId);
  if (key === undefined || key.applicationIndex !== application.applicationIndex || key.revokedAt !== null) {
    throw new MintmarkError("credentials_invalid");
  }
  if (key.expiresAt !== null && key.expiresAt <= ledger.clock()) throw new MintmarkError("credentials_expired");
  if (application.suspended) throw new MintmarkError("application_suspended");
  return key;
}

function placeOf(open: OpenBatch) {
  return { batchNumber: open.batchNumber, slot: open.vaultCount };
}

/** The records that find a mint in the journal: by its id, by sequence, by user, by idempotency key. */
function indexMint(group: Group, header: MintHeader, sequence: number): void {
  const reference = journalKey(sequence).subarray(1);
  group.put(mintKey(header.mintId), reference);
  group.put(transactionKey(header.applicationIndex, header.firstSequence), reference);
  for (const { userIndex } of header.users) {
    group.put(userTransactionKey(header.applicationIndex, userIndex, header.firstSequence), reference);
  }
  if (header.idempotency === null) return;
  const { digest } = header.idempotency;
  group.stage(
    idempotencyKeyOf(header.applicationIndex, header.idempotency),
    encodeRecord(idempotencyRecord, { digest, sequence }),
  );
}
