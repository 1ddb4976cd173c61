import { requireRoom } from "../batches/batches.ts";
import { sealClosed } from "../batches/seal.ts";
import { AmountSum } from "../columns/amount-words.ts";
import type { MintColumns } from "../columns/mint-columns.ts";
import { tell } from "../events/event-log.ts";
import { enablementId, type Ledger } from "../ledger/ledger.ts";
import { markRequest } from "../ledger/marks.ts";
import type { OpenBatch } from "../ledger/open-batch.ts";
import type { CachedUser } from "../ledger/user-cache.ts";
import type { Address, Principal, Uuid } from "../model.ts";
import { hexToBytes } from "../protocol/hex.ts";
import type { Group } from "../store/group.ts";
import { encodeRecord } from "../store/layout.ts";
import type { MintHeader, PlacedColumns } from "../store/mint-entry.ts";
import { type AssetRecord, idempotencyRecord, type KeyRecord } from "../store/records.ts";
import { journalKey, mintKey, mintReferenceKey, transactionKey, userTransactionKey } from "../store/store-keys.ts";
import type { Transition } from "../store/writer.ts";
import { requireKey } from "../tenants/api-keys.ts";
import { availability } from "../tenants/asset-view.ts";
import { isOwner, putUser, recipientKey, recipientOf } from "../tenants/users.ts";
import { shortDecimalIn } from "../tokens/token-id.ts";
import { earlierMint, type Idempotency, idempotencyKeyOf, idempotencyOf } from "./idempotency.ts";
import { hasIds, numberTokens } from "./numbering.ts";
import { Placing } from "./placing.ts";
import { RequestedMetadata } from "./requested-metadata.ts";
import { RequestedBindings, RequestedTokens } from "./requested-tokens.ts";
import { timeUuid } from "./time-uuid.ts";

/** An accepted request, as it is in the journal. */
export interface Minted {
  readonly time: number;
  readonly header: MintHeader;
  readonly columns: MintColumns;
  readonly placed: PlacedColumns;
  readonly users: readonly CachedUser[];
}

/** The outcome of a mint request. */
export interface MintOutcome {
  /** The journal sequence of the mint; for a repetition, that of the first request. */
  readonly sequence: number;
  /** null for a repetition: the answer is in the journal. */
  readonly minted: Minted | null;
}

/** A record that a mint decides: the mint happens once for it, in the same write. */
export interface Decision {
  readonly key: Buffer;
  /** The journal sequence of the mint that has decided it; null while none has. Throws when none may any more. */
  earlier(record: Buffer | undefined): number | null;
  /** Writes what the mint has decided. */
  decide(group: Group, mint: { readonly sequence: number; readonly mintId: Uuid }): void;
}

/** A user of a request; null for an owner who becomes a user with this mint. */
type Resolved = CachedUser | null;

/** What a request adds to one asset. */
interface AssetUse {
  readonly asset: AssetRecord;
  readonly sum: AmountSum;
  /** Whether the engine chooses the ids. */
  readonly isNumbered: boolean;
}

/**
 * One mint request in the writer. It checks everything against the state, then applies everything; applying cannot
 * fail. The result is null when a check fails, and nothing has changed. {@link MintCheck} then finds the reasons: it is
 * slower and easier to follow.
 */
export class MintTransition implements Transition<MintOutcome | null> {
  readonly weight: number;
  readonly #ledger: Ledger;
  readonly #principal: Principal;
  /** The request. Once it is accepted, it has an entry for each token that the engine numbers. */
  #columns: MintColumns;
  readonly #idempotency: Idempotency | null;
  readonly #decision: Decision | null;
  readonly #uses = new Map<number, AssetUse>();
  #tokens: RequestedTokens;
  readonly #bindings: RequestedBindings;
  readonly #metadata: RequestedMetadata;
  /** Users that the cache lacked, by position in the request. */
  #askedUsers: number[] = [];
  #bindingCount = 0;
  #tokenCount = 0;
  #wrong = false;
  /** A bit for each mode of the request, by its position in `MODES`. */
  #modes = 0;
  /** Whether the engine chooses an id of the request. */
  #isNumbered = false;

  constructor(
    ledger: Ledger,
    principal: Principal,
    columns: MintColumns,
    idempotency: Idempotency | null,
    decision: Decision | null = null,
  ) {
    this.#ledger = ledger;
    this.#principal = principal;
    this.#columns = columns;
    this.#idempotency = idempotency;
    this.#decision = decision;
    this.#tokens = new RequestedTokens(ledger, columns);
    this.#bindings = new RequestedBindings(ledger, columns);
    this.#metadata = new RequestedMetadata(ledger, columns);
    this.weight = columns.minted;
  }

  keys(): Buffer[] {
    const application = this.#ledger.latestApplication(this.#principal.applicationId).applicationIndex;
    const keys: Buffer[] = [];
    if (this.#idempotency !== null) keys.push(idempotencyKeyOf(application, this.#idempotency));
    if (this.#decision !== null) keys.push(this.#decision.key);
    for (const [i, recipient] of this.#columns.recipients.entries()) {
      if (this.#ledger.users.get(application, recipient) !== undefined) continue;
      this.#askedUsers.push(i);
      keys.push(recipientKey(application, recipient));
    }
    this.#readTokens();
    const ofBindings = this.#bindings.keys();
    this.#bindingCount = ofBindings.length;
    const ofTokens = this.#tokens.keys();
    this.#tokenCount = ofTokens.length;
    return [...keys, ...ofBindings, ...ofTokens, ...this.#metadata.keys()];
  }

  apply(group: Group, stored: readonly (Buffer | undefined)[]): MintOutcome | null {
    const application = this.#ledger.latestApplication(this.#principal.applicationId);
    const key = requireKey(this.#ledger, this.#principal);
    this.#ledger.requirePromising();
    let at = 0;
    if (this.#idempotency !== null) {
      const place = idempotencyKeyOf(application.applicationIndex, this.#idempotency);
      const earlier = earlierMint(group.resolve(place, stored[at++]), this.#idempotency);
      if (earlier !== null) return { sequence: earlier, minted: null };
    }
    if (this.#decision !== null) {
      const earlier = this.#decision.earlier(group.resolve(this.#decision.key, stored[at++]));
      if (earlier !== null) return { sequence: earlier, minted: null };
    }
    requireRoom(this.#ledger, this.weight);
    const behindUsers = at + this.#askedUsers.length;
    const behindBindings = behindUsers + this.#bindingCount;
    const users = this.#resolveUsers(group, application.applicationIndex, stored.slice(at, behindUsers));
    if (this.#wrong || users === null || !this.#allows(application.applicationIndex, key)) return null;
    if (!this.#bindings.check(group, stored.slice(behindUsers, behindBindings))) return null;
    const behindTokens = behindBindings + this.#tokenCount;
    if (!this.#metadata.check(group, stored.slice(behindTokens), application.applicationIndex)) return null;
    this.#tokens.receive(stored.slice(behindBindings, behindTokens));
    if (this.#isNumbered) {
      const numbered = numberTokens(this.#columns, (index) => this.#ledger.assetAt(index));
      this.#tokens = this.#tokens.numbered(numbered);
      this.#columns = numbered.columns;
    }
    if (!this.#tokens.take()) return null;
    this.#bindings.bind(group);
    return this.#apply(group, application.applicationIndex, key, users);
  }

  /** Checks every entry against its asset's standard and scheme, and collects the records to read for its token. */
  #readTokens(): void {
    const { count, assetIndex, mode, amountHigh, amountLow, blobs, blobEnd } = this.#columns;
    let use: AssetUse | null = null;
    let start = 0;
    let modes = 0;
    for (let entry = 0; entry < count && !this.#wrong; entry++) {
      modes |= 1 << (mode[entry] as number);
      if (use === null || use.asset.assetIndex !== assetIndex[entry]) use = this.#use(assetIndex[entry] as number);
      const end = blobEnd[entry] as number;
      const { standard } = use.asset;
      if (use.isNumbered) {
        use.sum.add(0, this.#columns.quantityAt(entry));
        this.#wrong ||= end !== start || amountHigh[entry] !== 0 || amountLow[entry] !== 1;
        this.#isNumbered = true;
        continue;
      }
      use.sum.add(amountHigh[entry] as number, amountLow[entry] as number);
      if (standard === "erc20") {
        this.#wrong ||= end !== start;
      } else {
        const short = use.asset.blobScheme === "mintmark" ? shortDecimalIn(blobs, start, end) : -1;
        const one = amountHigh[entry] === 0 && amountLow[entry] === 1;
        if (standard === "erc1155") this.#wrong ||= !this.#bindings.ask(use.asset, entry, short);
        else this.#wrong ||= !one || !this.#tokens.ask(use.asset, entry, short);
      }
      start = end;
    }
    this.#modes = modes;
  }

  #use(assetIndex: number): AssetUse {
    const known = this.#uses.get(assetIndex);
    if (known !== undefined) return known;
    const asset = this.#ledger.assetAt(assetIndex);
    const use = { asset, sum: new AmountSum(), isNumbered: asset.nextTokenId !== null };
    this.#uses.set(assetIndex, use);
    return use;
  }

  /**
   * The users; null for an owner who becomes one with this mint. The whole is null when an id is unknown or an owner is
   * named twice.
   */
  #resolveUsers(group: Group, application: number, stored: readonly (Buffer | undefined)[]): Resolved[] | null {
    const { recipients } = this.#columns;
    for (const [i, position] of this.#askedUsers.entries()) {
      const recipient = recipients[position] ?? "";
      const record = group.resolve(recipientKey(application, recipient), stored[i]);
      if (record !== undefined) this.#ledger.users.set(application, recipient, recipientOf(recipient, record));
    }
    const users: Resolved[] = [];
    let owners = 0;
    for (const recipient of recipients) {
      const user = this.#ledger.users.get(application, recipient) ?? null;
      if (isOwner(recipient)) owners++;
      else if (user === null) return null;
      users.push(user);
    }
    if (owners === 0) return users;
    const known = users.flatMap((user) => (user === null ? [] : [user.userIndex]));
    if (known.length < users.length && !this.#principal.scopes.includes("users")) return null;
    return new Set(known).size === known.length ? users : null;
  }

  /** Creates the missing users. */
  #createUsers(group: Group, application: number, users: readonly Resolved[]): CachedUser[] {
    return users.map((known, i) => {
      if (known !== null) return known;
      const ownerAddress = this.#columns.recipients[i] as Address;
      const made = { userId: timeUuid(this.#ledger.now()), ownerAddress, reference: null };
      const user = putUser(this.#ledger, group, application, made, true);
      return { ...user, applicationIndex: application, owner: hexToBytes(ownerAddress, 20) };
    });
  }

  /** Whether the assets can be minted within their caps, and the key has mints left. */
  #allows(applicationIndex: number, key: KeyRecord): boolean {
    const { settlement, enablements } = this.#ledger;
    if (key.mintQuota !== null && key.mintsUsed + BigInt(this.weight) > key.mintQuota) return false;
    for (const [assetIndex, { sum, isNumbered }] of this.#uses) {
      const asset = this.#ledger.assetAt(assetIndex);
      const enabled = enablements.latest(enablementId(applicationIndex, assetIndex)) ?? false;
      if (availability(settlement, asset, enabled) !== null) return false;
      if (asset.supplyCap !== null && asset.minted + sum.total > asset.supplyCap) return false;
      if (isNumbered && !hasIds(asset, sum.total)) return false;
    }
    return true;
  }

  #apply(group: Group, applicationIndex: number, key: KeyRecord, resolved: readonly Resolved[]): MintOutcome {
    const ledger = this.#ledger;
    const columns = this.#columns;
    const users = this.#createUsers(group, applicationIndex, resolved);
    const application = ledger.latestApplication(this.#principal.applicationId);
    const time = ledger.now();
    const openPlaces = {
      validium: placeOf(ledger.unsealed.open("validium")),
      "zk-rollup": placeOf(ledger.unsealed.open("zk-rollup")),
    };
    const placing = new Placing(ledger, columns, this.#tokens);
    placing.place(users, time);
    const { placed, closed } = placing;
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
      const nextTokenId = asset.nextTokenId === null ? null : asset.nextTokenId + sum.total;
      ledger.putAsset(group, { ...asset, minted: asset.minted + sum.total, nextTokenId });
    }
    indexMint(group, header, columns, sequence);
    this.#metadata.put(group, columns);
    markRequest(ledger, group, applicationIndex, header.firstSequence, this.#uses.keys(), this.#modes);
    ledger.putApplication(group, { ...application, nextSequence: application.nextSequence + columns.count });
    ledger.putKey(group, { ...key, mintsUsed: key.mintsUsed + BigInt(columns.count) });
    const { mintId } = header;
    this.#decision?.decide(group, { sequence, mintId });
    const told = { users: users.length, mints: columns.count };
    tell(ledger, group, applicationIndex, time, { type: "mint.accepted", mintId, ...told });
    const { applicationId } = application;
    group.onDurable(() => ledger.emit("mint", { applicationId, mintId, mints: columns.count }));
    for (const batch of closed) void sealClosed(ledger, group, batch);
    return { sequence, minted: { time, header, columns, placed, users } };
  }
}

function placeOf(open: OpenBatch) {
  return { batchNumber: open.batchNumber, slot: open.vaultCount };
}

/** The index records of a mint: by id, sequence, user, reference and idempotency key. */
function indexMint(group: Group, header: MintHeader, columns: MintColumns, sequence: number): void {
  const reference = journalKey(sequence).subarray(1);
  group.put(mintKey(header.mintId), reference);
  group.put(transactionKey(header.applicationIndex, header.firstSequence), reference);
  for (const { userIndex } of header.users) {
    group.put(userTransactionKey(header.applicationIndex, userIndex, header.firstSequence), reference);
  }
  for (const name of columns.referenceNames()) {
    group.put(mintReferenceKey(header.applicationIndex, name, header.firstSequence), reference);
  }
  if (header.idempotency === null) return;
  const { digest } = header.idempotency;
  group.stage(
    idempotencyKeyOf(header.applicationIndex, header.idempotency),
    encodeRecord(idempotencyRecord, { digest, sequence }),
  );
}
