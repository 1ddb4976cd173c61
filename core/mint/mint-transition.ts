import { closeOpenBatch, requireRoom, sealClosed } from "../batches/seal.ts";
import { tell } from "../events/event-log.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { markRequest } from "../ledger/marks.ts";
import type { OpenBatch } from "../ledger/open-batch.ts";
import { enablementId } from "../ledger/tenant-tables.ts";
import type { CachedUser } from "../ledger/user-cache.ts";
import { type Address, MODES, type Principal, type Uuid } from "../model.ts";
import { hexToBytes } from "../protocol/hex.ts";
import { timeUuid } from "../store/binary.ts";
import type { Group } from "../store/group.ts";
import { FAULTY, type MintColumns, youngList } from "../store/mint-columns.ts";
import { encodeMintEntry, type MintHeader, PlacedColumns } from "../store/mint-entry.ts";
import type { ApplicationRecord, AssetRecord, KeyRecord } from "../store/records.ts";
import { keyOf } from "../store/store-keys.ts";
import { amountOf } from "../store/vault-columns.ts";
import type { Transition } from "../store/writer.ts";
import { requireKey } from "../tenants/api-keys.ts";
import { availability } from "../tenants/asset-view.ts";
import { isOwner, putUser, recipientKey, recipientOf } from "../tenants/users.ts";
import type { EntryReport, Issues } from "./form.ts";
import type { ReadMint } from "./reader.ts";
import { RequestedBindings, RequestedMetadata } from "./requested-records.ts";
import { numberTokens, RequestedTokens } from "./requested-tokens.ts";

type MintedUsers = readonly Pick<CachedUser, "userId" | "ownerAddress">[];

/** An accepted request, as it is in the journal. A class for the reason of {@link youngList}. */
export class Minted {
  readonly time: number;
  readonly header: MintHeader;
  readonly columns: MintColumns;
  readonly placed: PlacedColumns;
  readonly users: MintedUsers;

  constructor(
    time: number,
    header: MintHeader,
    columns: MintColumns,
    placed: PlacedColumns,
    users: MintedUsers,
  ) {
    this.time = time;
    this.header = header;
    this.columns = columns;
    this.placed = placed;
    this.users = users;
  }
}

/** An accepted request; for a repetition the journal sequence of the first one. */
type MintOutcome = Minted | number;

/** The outcome of a dry run, which has no entry in the journal. */
const DRY = -1;

/** A record that a mint decides: the mint happens once for it, in the same write. */
export interface Decision {
  readonly key: Buffer;
  /**
   * The caller's key and the request's digest, for the mint's journal entry; null for a claim link.
   */
  readonly idempotency: MintHeader["idempotency"];
  /**
   * The journal sequence of the mint that has decided it; null while none has. Throws when none may
   * any more.
   */
  earlier(record: Buffer | undefined, group: Group): number | null;
  decide(group: Group, mint: { readonly sequence: number; readonly mintId: Uuid }): void;
}

/** Units that a request adds to one asset, or tokens if the engine numbers them. */
interface AssetUse {
  /** The asset record when the request was parsed. */
  readonly asset: AssetRecord;
  /** Sums of the words of its amounts. */
  high: number;
  low: number;
}

/** The bit of the rollup among a request's modes. */
const ROLLUP = 1 << MODES.indexOf("zk-rollup");
/** Numbered ids stay below 2^256. */
const IDS = 1n << 256n;

/**
 * One mint request in the writer. It checks everything against the state, in columns: a check looks
 * at single entries only to tell what is wrong. It throws all faults as one error, or applies
 * everything, which cannot fail. The result is null when an asset has changed since the request was
 * read, so that it must be read again.
 */
export class MintTransition implements Transition<MintOutcome | null> {
  readonly weight: number;
  readonly #ledger: Ledger;
  readonly #principal: Principal;
  /** The request. Once it is accepted, it has an entry for each token that the engine numbers. */
  #columns: MintColumns;
  readonly #issues: Issues;
  readonly #decision: Decision | null;
  /** Whether it checks everything and changes nothing. */
  readonly #isDry: boolean;
  /** The key is the asset's index. */
  readonly #uses = new Map<number, AssetUse>();
  /** null while no entry is an ERC-721 token. */
  #tokens: RequestedTokens | null = null;
  /** null while no entry is an ERC-1155 token. */
  #bindings: RequestedBindings | null = null;
  readonly #metadata: RequestedMetadata | null;
  /** The users; null for an owner who becomes one with this mint, and after a fault. */
  readonly #users = youngList<CachedUser | null>();
  /** Users that the cache lacked, by position in the request. */
  readonly #askedUsers = youngList<number>();
  /** A bit for each mode of the request, by its position in `MODES`. */
  #modes = 0;
  /** Whether the engine chooses an id of the request. */
  #isNumbered = false;

  constructor(
    ledger: Ledger,
    principal: Principal,
    { columns, issues, assets }: ReadMint,
    {
      decision = null,
      isDry = false,
    }: { readonly decision?: Decision | null; readonly isDry?: boolean },
  ) {
    this.#ledger = ledger;
    this.#principal = principal;
    this.#columns = columns;
    this.#issues = issues;
    this.#decision = decision;
    this.#isDry = isDry;
    for (const asset of assets) this.#uses.set(asset.assetIndex, { asset, high: 0, low: 0 });
    this.#metadata = columns.metadata !== null ? new RequestedMetadata(ledger, columns) : null;
    this.weight = columns.minted;
  }

  keys(): Buffer[] {
    const { applicationIndex: application } = this.#ledger.tenants.application(
      this.#principal.applicationId,
      null,
    );
    const keys = youngList<Buffer>();
    if (this.#decision !== null) keys.push(this.#decision.key);
    const { recipients } = this.#columns;
    for (let i = 0; i < recipients.length; i++) {
      const recipient = recipients[i] ?? null;
      const known =
        recipient === null ? undefined : this.#ledger.tenants.users.get(application, recipient);
      this.#users.push(known ?? null);
      if (recipient === null || known !== undefined) continue;
      this.#askedUsers.push(i);
      keys.push(recipientKey(application, recipient));
    }
    this.#readTokens();
    this.#bindings?.addKeys(keys);
    this.#tokens?.addKeys(keys);
    this.#metadata?.addKeys(keys);
    return keys;
  }

  apply(group: Group, stored: readonly (Buffer | undefined)[]): MintOutcome | null {
    const application = this.#ledger.tenants.application(this.#principal.applicationId, group);
    const { applicationIndex } = application;
    const key = requireKey(this.#ledger, group, this.#principal);
    let at = 0;
    if (this.#decision !== null) {
      const record = group.resolve(this.#decision.key, stored[at++]);
      const earlier = this.#decision.earlier(record, group);
      if (earlier !== null) return earlier;
    }
    for (const { asset } of this.#uses.values()) {
      const now = this.#ledger.tenants.assetNow(asset.assetIndex, group);
      // Another asset has its id, or it takes other minting blobs.
      if (now.removed !== asset.removed || now.rawMintingBlobs !== asset.rawMintingBlobs)
        return null;
    }
    this.#resolveUsers(group, applicationIndex, stored, at);
    this.#checkAssets(group, applicationIndex);
    const left = key.mintQuota === null ? null : key.mintQuota - key.mintsUsed;
    if (left !== null && left < this.weight)
      this.#issues.ofRequest("", "quota_exceeded", `the key has ${left} mints left`);
    this.#metadata?.check(group, stored, applicationIndex, this.#report);
    this.#bindings?.check(group, stored, this.#report);
    this.#tokens?.take(stored, this.#report);
    try {
      this.#issues.throwIfAny();
      // These checks are last because they can pass later. The issues above cannot.
      this.#ledger.l1.requirePromising();
      requireRoom(this.#ledger, group, this.weight, this.#modes);
    } catch (error) {
      this.#tokens?.giveBack();
      throw error;
    }
    if (this.#isDry) {
      this.#tokens?.giveBack();
      return DRY;
    }
    if (this.#isNumbered) {
      const numbered = numberTokens(this.#columns, (index) =>
        this.#ledger.tenants.assetNow(index, group),
      );
      this.#tokens ??= new RequestedTokens(this.#ledger, this.#columns);
      this.#tokens.takeNumbered(group, numbered, stored);
      this.#columns = numbered.columns;
    }
    this.#bindings?.bind(group);
    return this.#apply(group, application, key);
  }

  /**
   * Sums up the entries of each asset, and notes the tokens that must be new or bound to their
   * minting blob.
   */
  #readTokens(): void {
    const columns = this.#columns;
    const { count, assetIndex, mode, amountHigh, amountLow } = columns;
    let use: AssetUse | undefined;
    for (let entry = 0; entry < count; entry++) {
      if (columns.isMarked(entry, FAULTY)) continue;
      this.#modes |= 1 << mode[entry]!;
      if (use?.asset.assetIndex !== assetIndex[entry]) use = this.#uses.get(assetIndex[entry]!);
      if (use === undefined)
        throw new Error("an entry was read by an asset that is not the request's");
      const { asset } = use;
      if (asset.nextTokenId !== null) {
        this.#isNumbered = true;
        use.low += columns.quantityAt(entry);
        continue;
      }
      use.high += amountHigh[entry]!;
      use.low += amountLow[entry]!;
      if (asset.standard === "erc721") {
        this.#tokens ??= new RequestedTokens(this.#ledger, columns);
        this.#tokens.ask(asset, entry);
      } else if (asset.standard === "erc1155") {
        this.#bindings ??= new RequestedBindings(this.#ledger, columns);
        this.#bindings.ask(asset, entry);
      }
    }
  }

  /** Finds the users that the cache lacked, and reports those that there are not, or twice. */
  #resolveUsers(
    group: Group,
    application: number,
    stored: readonly (Buffer | undefined)[],
    from: number,
  ): void {
    const { recipients } = this.#columns;
    for (const [i, position] of this.#askedUsers.entries()) {
      const recipient = recipients[position] ?? "";
      const record = group.resolve(recipientKey(application, recipient), stored[from + i]);
      if (record === undefined) this.#requireCreatable(position, recipient);
      else
        this.#users[position] = this.#ledger.tenants.users.remember(
          application,
          recipient,
          recipientOf(recipient, record),
        );
    }
    if (recipients.length === 1) return;
    const seen = new Set<number>();
    for (const [i, user] of this.#users.entries()) {
      if (user === null) continue;
      if (seen.has(user.userIndex)) {
        const field = isOwner(recipients[i] ?? "") ? "/ownerAddress" : "/userId";
        this.#issues.ofUser(i, field, "duplicate_user", "occurs more than once in this request");
      }
      seen.add(user.userIndex);
    }
  }

  /** An owner gets a user with the first mint, if the key may create users. */
  #requireCreatable(user: number, recipient: Uuid | Address): void {
    if (!isOwner(recipient))
      this.#issues.ofUser(user, "/userId", "user_not_found", "no such user in this application");
    else if (!this.#principal.scopes.includes("users")) {
      const detail =
        "no user has this address yet, and the key does not carry the scope users to create one";
      this.#issues.ofUser(user, "/ownerAddress", "scope_missing", detail);
    }
  }

  /** Reports each entry of an asset that cannot be minted, or not so much of it. */
  #checkAssets(group: Group, applicationIndex: number): void {
    const { services, tenants } = this.#ledger;
    for (const { asset: read, high, low } of this.#uses.values()) {
      const asset = tenants.assetNow(read.assetIndex, group);
      const enablement = enablementId(applicationIndex, asset.assetIndex);
      const enabled = tenants.enablements.view(group).get(enablement) ?? false;
      const reason = availability(services.settlement, asset, enabled);
      if (reason !== null)
        this.#columns.assetIndex.forEach((index, entry) => {
          if (index === asset.assetIndex)
            this.#report(entry, "/assetId", reason.code, reason.detail);
        });
      this.#checkRollup(asset);
      if (supplyFault(asset, amountOf(high, low)) !== null) this.#reportSupply(asset);
    }
  }

  /** Reports the rollup entries of an asset that rollup batches cannot pay. */
  #checkRollup({ assetIndex, chainId }: AssetRecord): void {
    const detail = (this.#modes & ROLLUP) === 0 ? null : this.#ledger.batches.blobs.unpaid(chainId);
    if (detail === null) return;
    const { assetIndex: indexes, mode } = this.#columns;
    indexes.forEach((index, entry) => {
      if (index === assetIndex && MODES[mode[entry]!] === "zk-rollup")
        this.#report(entry, "/dataAvailabilityMode", "rollup_not_available", detail);
    });
  }

  /** Reports the entries that exceed an asset's cap, or its last id. */
  #reportSupply(asset: AssetRecord): void {
    const columns = this.#columns;
    let total = 0n;
    for (let entry = 0; entry < columns.count; entry++) {
      if (columns.assetIndex[entry] !== asset.assetIndex || columns.isMarked(entry, FAULTY))
        continue;
      total +=
        asset.nextTokenId === null
          ? amountOf(columns.amountHigh[entry]!, columns.amountLow[entry]!)
          : BigInt(columns.quantityAt(entry));
      const fault = supplyFault(asset, total);
      if (fault === null) continue;
      const field = fault.ofToken ? columns.tokenField(entry) : columns.amountField(entry);
      this.#report(entry, field, "supply_cap_exceeded", fault.detail);
    }
  }

  readonly #report: EntryReport = (entry, path, code, detail) => {
    let at = entry;
    let user = 0;
    for (const count of this.#columns.userCounts) {
      if (at < count) break;
      at -= count;
      user++;
    }
    this.#issues.ofMint(user, at, path, code, detail);
  };

  #createUser(group: Group, application: number, position: number): CachedUser {
    const ownerAddress = this.#columns.recipients[position] as Address;
    const made = {
      userId: timeUuid(this.#ledger.journal.now(group)),
      ownerAddress,
      reference: null,
    };
    const user = putUser(this.#ledger, group, application, made, true);
    return { ...user, applicationIndex: application, owner: hexToBytes(ownerAddress, 20) };
  }

  #apply(group: Group, application: ApplicationRecord, key: KeyRecord): MintOutcome {
    const ledger = this.#ledger;
    const columns = this.#columns;
    const { applicationIndex } = application;
    const users = this.#users.map(
      (known, i) => known ?? this.#createUser(group, applicationIndex, i),
    );
    const time = ledger.journal.now(group);
    const validium = ledger.batches.unsealed.open(group, "validium");
    const rollup = ledger.batches.unsealed.open(group, "zk-rollup");
    const openPlaces = {
      validium: { batchNumber: validium.batchNumber, slot: validium.vaults.count },
      "zk-rollup": { batchNumber: rollup.batchNumber, slot: rollup.vaults.count },
    };
    const { placed, closed } = placeEntries(ledger, group, columns, this.#tokens, users, time);
    const header: MintHeader = {
      applicationIndex,
      keyIndex: key.keyIndex,
      firstSequence: application.nextSequence,
      mintId: timeUuid(time),
      idempotency: this.#decision?.idempotency ?? null,
      openPlaces,
      users: users.map(({ userIndex }, i) => ({ userIndex, count: columns.userCounts[i] ?? 0 })),
    };
    const { sequence } = ledger.journal.append(
      group,
      time,
      encodeMintEntry(time, header, columns, placed),
    );
    for (const [assetIndex, { high, low }] of this.#uses) {
      const asset = ledger.tenants.assets.change(group, assetIndex);
      const total = amountOf(high, low);
      asset.minted += total;
      if (asset.nextTokenId !== null) asset.nextTokenId += total;
    }
    indexMint(group, header, columns, sequence);
    this.#metadata?.put(group, columns);
    markRequest(
      ledger,
      group,
      applicationIndex,
      header.firstSequence,
      this.#uses.keys(),
      this.#modes,
    );
    ledger.tenants.applications.change(group, applicationIndex).nextSequence += columns.count;
    ledger.tenants.keys.change(group, key.keyIndex).mintsUsed += BigInt(columns.count);
    const { mintId } = header;
    this.#decision?.decide(group, { sequence, mintId });
    const told = { users: users.length, mints: columns.count };
    tell(ledger, group, applicationIndex, time, { type: "mint.accepted", mintId, ...told });
    for (const batch of closed) void sealClosed(ledger, group, batch);
    return new Minted(time, header, columns, placed, users);
  }
}

/**
 * Places every entry of a request in a vault of the open batch of its mode. A full batch is
 * followed by the next one.
 */
function placeEntries(
  ledger: Ledger,
  group: Group,
  columns: MintColumns,
  tokens: RequestedTokens | null,
  users: readonly CachedUser[],
  time: number,
) {
  const { assetIndex, amountHigh, amountLow, mode, mintingBlobs, mintingBlobEnd, userCounts } =
    columns;
  const placed = new PlacedColumns(columns.count);
  const closed: OpenBatch[] = [];
  const vault = { assetIndex: 0, amountHigh: 0, amountLow: 0, mintingBlobs, start: 0, end: 0 };
  let entry = 0;
  for (const [i, user] of users.entries()) {
    for (const end = entry + (userCounts[i] ?? 0); entry < end; entry++) {
      vault.assetIndex = assetIndex[entry]!;
      vault.amountHigh = amountHigh[entry]!;
      vault.amountLow = amountLow[entry]!;
      vault.start = vault.end;
      vault.end = mintingBlobEnd[entry]!;
      const modeOf = MODES[mode[entry]!] ?? "validium";
      const standard = ledger.tenants.standards[vault.assetIndex] ?? "erc20";
      let open = ledger.batches.unsealed.open(group, modeOf);
      const slot = standard === "erc721" ? -1 : open.growing(user, vault);
      if (slot >= 0) {
        const { vaults } = open;
        const age = time - vaults.createdAt[slot]!;
        placed.added(entry, open.batchNumber, slot);
        placed.grew(entry, vaults.amountHigh[slot]!, vaults.amountLow[slot]!, age);
        open.grow(slot, vault.amountHigh, vault.amountLow, time);
        continue;
      }
      const hash = tokens?.hashes[entry] ?? 0;
      let added = open.add(user, vault, standard, time, hash);
      if (added < 0) {
        closed.push(closeOpenBatch(ledger, group, modeOf));
        open = ledger.batches.unsealed.open(group, modeOf);
        added = open.add(user, vault, standard, time, hash);
      }
      placed.added(entry, open.batchNumber, added);
      if (standard === "erc721") tokens?.place(entry, open, added);
    }
  }
  return { placed, closed };
}

/** Why a request cannot mint so much of an asset; null when it can. */
function supplyFault({ nextTokenId, supplyCap, minted }: AssetRecord, total: bigint) {
  if (nextTokenId !== null && nextTokenId + total > IDS)
    return { ofToken: true, detail: "no ids below 2^256 are left" };
  if (supplyCap === null || minted + total <= supplyCap) return null;
  return { ofToken: false, detail: `${supplyCap - minted} units are left for this request` };
}

/** The index records of a mint: by id, sequence, user and reference. */
function indexMint(group: Group, header: MintHeader, columns: MintColumns, sequence: number): void {
  const reference = keyOf.journal(sequence).subarray(1);
  group.put(keyOf.mint(header.mintId), reference);
  group.put(keyOf.transaction(header.applicationIndex, header.firstSequence), reference);
  for (const { userIndex } of header.users)
    group.put(
      keyOf.userTransaction(header.applicationIndex, userIndex, header.firstSequence),
      reference,
    );
  for (const name of columns.references ?? [])
    if (name !== null)
      group.put(
        keyOf.mintReference(header.applicationIndex, name, header.firstSequence),
        reference,
      );
}
