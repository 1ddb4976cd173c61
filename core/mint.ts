import { createHash } from "node:crypto";
import { v7 as uuidv7 } from "uuid";
import { availability } from "./assets.ts";
import { MintmarkError } from "./errors.ts";
import type { Group } from "./group.ts";
import { idempotencyRecord } from "./idempotency.ts";
import { decodeRecord, encodeRecord } from "./layout.ts";
import { enablementId, type Ledger } from "./ledger.ts";
import { type MintEntry, type PlacedMint, vaultIdOf } from "./mint-entry.ts";
import type { Hex, Mode, Principal, Standard } from "./model.ts";
import type { Holding, OpenBatch } from "./open-batch.ts";
import { type AssetRecord, type KeyRecord, type UserIdRecord, userIdRecord } from "./records.ts";
import type { Issues, MintRequest } from "./request.ts";
import { closeOpenBatch, sealBatch } from "./seal.ts";
import {
  idempotencyKeyKey,
  journalKey,
  keyString,
  mintKey,
  tokenKey,
  transactionKey,
  userIdKey,
  userTransactionKey,
} from "./store-keys.ts";
import { fastTokenIdOf } from "./token-id.ts";
import type { Transition } from "./writer.ts";

/** What became of a mint request. */
export interface MintOutcome {
  /** The journal sequence of the mint; of the first one when it was replayed. */
  readonly sequence: number;
  /** null when the request is a repetition: the answer is in the journal. */
  readonly minted: { readonly time: number; readonly entry: MintEntry; readonly users: readonly ResolvedUser[] } | null;
}

export interface ResolvedUser extends UserIdRecord {
  readonly userId: string;
}

interface ReadyMint {
  readonly asset: AssetRecord;
  readonly mode: Mode;
  readonly amount: bigint;
  readonly blob: Hex;
  /** null for ERC-20. */
  readonly tokenKey: Buffer | null;
}

/**
 * One mint request on its way through the writer: first everything is checked against the state, then everything is applied, which
 * can no longer fail.
 */
export class MintTransition implements Transition<MintOutcome> {
  readonly weight: number;
  readonly #ledger: Ledger;
  readonly #principal: Principal;
  readonly #request: MintRequest;
  readonly #issues: Issues;
  readonly #idempotency: { readonly key: Hex; readonly digest: Hex } | null;
  readonly #checkOnly: boolean;
  /** Per entry what is known of it so far; null when it has an issue. */
  #mints: (ReadyMint | null)[] = [];
  /** Which of `keys` are those of users that were not in the cache, by position in the request. */
  #askedUsers: number[] = [];

  constructor(
    ledger: Ledger,
    principal: Principal,
    request: MintRequest,
    issues: Issues,
    options: { readonly idempotency: { readonly key: Hex; readonly digest: Hex } | null; readonly checkOnly?: boolean },
  ) {
    this.#ledger = ledger;
    this.#principal = principal;
    this.#request = request;
    this.#issues = issues;
    this.#idempotency = options.idempotency;
    this.#checkOnly = options.checkOnly ?? false;
    this.weight = request.mints.length;
  }

  keys(): Buffer[] {
    const application = this.#ledger.latestApplication(this.#principal.applicationId).applicationIndex;
    const keys: Buffer[] = [];
    if (this.#idempotency !== null) keys.push(this.#idempotencyKey(application, this.#idempotency.key));
    for (const [i, { userId }] of this.#request.users.entries()) {
      if (userId === null || this.#ledger.users.get(application, userId) !== undefined) continue;
      this.#askedUsers.push(i);
      keys.push(userIdKey(application, userId));
    }
    this.#readMints(application);
    for (const mint of this.#mints) if (mint?.tokenKey) keys.push(mint.tokenKey);
    return keys;
  }

  apply(group: Group, stored: readonly (Buffer | undefined)[]): MintOutcome {
    const application = this.#ledger.latestApplication(this.#principal.applicationId);
    const key = this.#keyRecord();
    let at = 0;
    if (this.#idempotency !== null) {
      const place = this.#idempotencyKey(application.applicationIndex, this.#idempotency.key);
      const earlier = this.#earlier(group.resolve(place, stored[at++]));
      if (earlier !== null) return { sequence: earlier, minted: null };
    }
    const users = this.#resolveUsers(
      group,
      application.applicationIndex,
      stored.slice(at, at + this.#askedUsers.length),
    );
    this.#checkTokens(group, stored.slice(at + this.#askedUsers.length));
    this.#checkSupply();
    if (key.mintQuota !== null && key.mintsUsed + BigInt(this.weight) > key.mintQuota) {
      this.#issues.ofRequest("", "quota_exceeded", `the key has ${key.mintQuota - key.mintsUsed} mints left`);
    }
    this.#issues.throwIfAny();
    if (this.#checkOnly) return { sequence: -1, minted: null };
    return this.#apply(group, application.applicationIndex, key, users);
  }

  /** The key as the writer has it: it may have been revoked or suspended since the request was let in. */
  #keyRecord(): KeyRecord {
    const index = this.#ledger.keyIndices.get(this.#principal.keyId);
    const key = index === undefined ? undefined : this.#ledger.keys.latest(index);
    const application = this.#ledger.latestApplication(this.#principal.applicationId);
    if (key === undefined || key.applicationIndex !== application.applicationIndex || key.revokedAt !== null) {
      throw new MintmarkError("credentials_invalid");
    }
    if (key.expiresAt !== null && key.expiresAt <= this.#ledger.clock()) throw new MintmarkError("credentials_expired");
    if (application.suspended) throw new MintmarkError("application_suspended");
    return key;
  }

  #idempotencyKey(applicationIndex: number, keyHash: Hex): Buffer {
    return idempotencyKeyKey(applicationIndex, Buffer.from(keyHash.slice(2), "hex"));
  }

  /** The journal sequence of the mint that this request repeats, null when it is new. */
  #earlier(record: Buffer | undefined): number | null {
    if (record === undefined) return null;
    const { digest, sequence } = decodeRecord(idempotencyRecord, record, "An idempotency record");
    if (digest !== this.#idempotency?.digest) throw new MintmarkError("idempotency_key_reused");
    return sequence;
  }

  /** Checks every entry against assets and schemes, and makes the keys of the tokens. */
  #readMints(applicationIndex: number): void {
    this.#mints = [];
    let next = 0;
    for (const [user, { count }] of this.#request.users.entries()) {
      for (let mint = 0; mint < count; mint++) this.#mints.push(this.#readMint(applicationIndex, user, mint, next++));
    }
  }

  #readMint(applicationIndex: number, user: number, at: number, position: number): ReadyMint | null {
    const mint = this.#request.mints[position];
    if (mint === undefined || mint.assetId === null) return null;
    const index = this.#ledger.assetIndices.get(mint.assetId);
    const asset = index === undefined ? undefined : this.#ledger.assets.latest(index);
    if (asset === undefined) {
      this.#issues.ofMint(user, at, "/assetId", "asset_not_found", "no such asset");
      return null;
    }
    const enabled = this.#ledger.enablements.latest(enablementId(applicationIndex, asset.assetIndex)) ?? false;
    const obstacle = availability(this.#ledger.settlement, asset, enabled);
    if (obstacle !== null) this.#issues.ofMint(user, at, "/assetId", obstacle.code, obstacle.detail);
    if (asset.standard === "erc721" && mint.amount !== null && mint.amount !== 1n) {
      this.#issues.ofMint(user, at, "/amount", "erc721_amount_not_one", "must be 1 for an ERC-721 token");
    }
    const token = mint.blob === null ? null : this.#readToken(asset, mint.blob, user, at);
    if (token === null || obstacle !== null || mint.amount === null || mint.mode === null || mint.blob === null)
      return null;
    return { asset, mode: mint.mode, amount: mint.amount, blob: mint.blob, tokenKey: token.key };
  }

  #readToken(asset: AssetRecord, blob: Hex, user: number, at: number): { readonly key: Buffer | null } | null {
    try {
      const tokenId = fastTokenIdOf(asset.standard, asset.blobScheme, blob);
      return { key: tokenId === null ? null : tokenKey(asset.assetIndex, tokenId) };
    } catch (error) {
      if (!(error instanceof MintmarkError) || error.code !== "blob_invalid") throw error;
      this.#issues.ofMint(user, at, "/mintingBlob", error.code, error.message);
      return null;
    }
  }

  #resolveUsers(group: Group, application: number, stored: readonly (Buffer | undefined)[]): ResolvedUser[] {
    for (const [i, position] of this.#askedUsers.entries()) {
      const userId = this.#request.users[position]?.userId;
      if (!userId) continue;
      const record = group.resolve(userIdKey(application, userId), stored[i]);
      if (record !== undefined) {
        this.#ledger.users.set(application, userId, decodeRecord(userIdRecord, record, `User ${userId}`));
      }
    }
    const users: ResolvedUser[] = [];
    for (const [i, { userId }] of this.#request.users.entries()) {
      if (userId === null) continue;
      const user = this.#ledger.users.get(application, userId);
      if (user === undefined) this.#issues.ofUser(i, "/userId", "user_not_found", "no such user in this application");
      else users.push({ ...user, userId });
    }
    return users;
  }

  /** An ERC-721 token exists once; for ERC-1155 the first blob binds the id. */
  #checkTokens(group: Group, stored: readonly (Buffer | undefined)[]): void {
    const inRequest = new Map<string, Hex>();
    let asked = 0;
    let position = 0;
    for (const [user, { count }] of this.#request.users.entries()) {
      for (let at = 0; at < count; at++) {
        const mint = this.#mints[position++];
        if (!mint?.tokenKey) continue;
        const token = keyString(mint.tokenKey);
        const known = group.resolveString(token, stored[asked++]);
        this.#checkToken(mint, known, inRequest.get(token), (path, code, detail) =>
          this.#issues.ofMint(user, at, path, code, detail),
        );
        inRequest.set(token, mint.blob);
      }
    }
  }

  #checkToken(
    mint: ReadyMint,
    known: Buffer | undefined,
    earlier: Hex | undefined,
    report: (
      path: string,
      code: "token_already_minted" | "duplicate_mint" | "token_id_conflict",
      detail: string,
    ) => void,
  ): void {
    if (mint.asset.standard === "erc721") {
      if (known !== undefined) report("/mintingBlob", "token_already_minted", "this token has been minted before");
      else if (earlier !== undefined) report("/mintingBlob", "duplicate_mint", "occurs more than once in this request");
      return;
    }
    const bound = known === undefined ? earlier : `0x${known.toString("hex")}`;
    if (bound !== undefined && bound !== mint.blob) {
      report("/mintingBlob", "token_id_conflict", `the token id is bound to the blob ${bound}`);
    }
  }

  #checkSupply(): void {
    const totals = new Map<AssetRecord, bigint>();
    let position = 0;
    for (const [user, { count }] of this.#request.users.entries()) {
      for (let at = 0; at < count; at++) {
        const mint = this.#mints[position++];
        if (!mint || mint.asset.supplyCap === null) continue;
        const total = (totals.get(mint.asset) ?? mint.asset.minted) + mint.amount;
        totals.set(mint.asset, total);
        if (total > mint.asset.supplyCap) {
          const left = mint.asset.supplyCap - mint.asset.minted;
          this.#issues.ofMint(user, at, "/amount", "supply_cap_exceeded", `${left} units are left for this request`);
        }
      }
    }
  }

  #apply(group: Group, applicationIndex: number, key: KeyRecord, users: readonly ResolvedUser[]): MintOutcome {
    const ledger = this.#ledger;
    const application = ledger.latestApplication(this.#principal.applicationId);
    const time = ledger.now();
    const openPlaces = { validium: placeOf(ledger.open("validium")), "zk-rollup": placeOf(ledger.open("zk-rollup")) };
    const { placed, closed } = this.#place(group, applicationIndex, users, time);
    const entry: MintEntry = {
      kind: "mint",
      applicationIndex,
      keyIndex: key.keyIndex,
      firstSequence: application.nextSequence,
      mintId: uuidv7(),
      idempotency: this.#idempotency,
      openPlaces,
      users: users.map(({ userIndex }, i) => ({ userIndex, count: this.#request.users[i]?.count ?? 0 })),
      mints: placed,
    };
    const { sequence } = ledger.record(group, entry, time);
    this.#index(group, entry, sequence);
    ledger.putApplication(group, { ...application, nextSequence: application.nextSequence + placed.length });
    ledger.putKey(group, { ...key, mintsUsed: key.mintsUsed + BigInt(placed.length) });
    const { mintId } = entry;
    const { applicationId } = application;
    group.onDurable(() => ledger.emit("mint", { applicationId, mintId, mints: placed.length }));
    for (const batch of closed) sealBatch(ledger, group, batch);
    return { sequence, minted: { time, entry, users } };
  }

  /** Gives every entry its vault, going on in the next batch whenever one is full. */
  #place(group: Group, applicationIndex: number, users: readonly ResolvedUser[], time: number) {
    const placed: PlacedMint[] = [];
    const closed: OpenBatch[] = [];
    const minted = new Map<number, bigint>();
    for (const [i, user] of users.entries()) {
      const end = placed.length + (this.#request.users[i]?.count ?? 0);
      while (placed.length < end) {
        const mint = this.#mints[placed.length];
        if (!mint) throw new Error("a checked mint is missing");
        const { asset, blob } = mint;
        const holding = {
          applicationIndex,
          userIndex: user.userIndex,
          owner: user.ownerAddress,
          assetIndex: asset.assetIndex,
          blob,
        };
        const place = placeMint(this.#ledger, closed, holding, asset.standard, mint, time);
        placed.push(place);
        minted.set(asset.assetIndex, (minted.get(asset.assetIndex) ?? 0n) + mint.amount);
        if (mint.tokenKey !== null) bindToken(group, asset.standard, mint.tokenKey, place);
      }
    }
    for (const [assetIndex, amount] of minted) {
      const asset = this.#ledger.assetAt(assetIndex);
      this.#ledger.putAsset(group, { ...asset, minted: asset.minted + amount });
    }
    return { placed, closed };
  }

  /** The records that find the mint in the journal: by its id, by sequence, by user, by idempotency key. */
  #index(group: Group, entry: MintEntry, sequence: number): void {
    const reference = journalKey(sequence).subarray(1);
    group.put(mintKey(entry.mintId), reference);
    group.put(transactionKey(entry.applicationIndex, entry.firstSequence), reference);
    for (const { userIndex } of entry.users) {
      group.put(userTransactionKey(entry.applicationIndex, userIndex, entry.firstSequence), reference);
    }
    if (entry.idempotency !== null) {
      const key = this.#idempotencyKey(entry.applicationIndex, entry.idempotency.key);
      group.stage(key, encodeRecord(idempotencyRecord, { digest: entry.idempotency.digest, sequence }));
    }
  }
}

function placeOf(open: OpenBatch) {
  return { batchNumber: open.batchNumber, slot: open.vaults.length };
}

function placeMint(
  ledger: Ledger,
  closed: OpenBatch[],
  holding: Holding,
  standard: Standard,
  { asset, mode, amount, blob }: ReadyMint,
  time: number,
): PlacedMint {
  const { assetIndex } = asset;
  let open = ledger.open(mode);
  const slot = open.growing(holding, standard, amount);
  const vault = slot === undefined ? undefined : open.vaults[slot];
  if (slot !== undefined && vault !== undefined) {
    const { amount: amountBefore, createdAt } = vault;
    open.grow(slot, vault, amount, time);
    return { assetIndex, mode, batchNumber: open.batchNumber, slot, amountBefore, age: time - createdAt, amount, blob };
  }
  if (!open.fits(holding, amount)) {
    closed.push(closeOpenBatch(ledger, mode));
    open = ledger.open(mode);
  }
  const place = { batchNumber: open.batchNumber, slot: open.add(holding, standard, amount, time) };
  return { assetIndex, mode, ...place, amountBefore: 0n, age: 0, amount, blob };
}

/** ERC-721: the token's vault. ERC-1155: the blob that its id is bound to. */
function bindToken(group: Group, standard: Standard, key: Buffer, place: PlacedMint): void {
  if (standard === "erc1155") {
    group.stage(key, Buffer.from(place.blob.slice(2), "hex"));
    return;
  }
  const vaultId = Buffer.allocUnsafe(8);
  vaultId.writeBigUInt64BE(vaultIdOf(place));
  group.stage(key, vaultId);
}

/** What tells two requests under one idempotency key apart: SHA-256 over the validated content. */
export function requestDigest(request: MintRequest): Hex {
  const digest = createHash("sha256");
  let next = 0;
  for (const { userId, count } of request.users) {
    digest.update(`user ${userId} ${count}\n`);
    for (let i = 0; i < count; i++) {
      const mint = request.mints[next++];
      digest.update(`${mint?.assetId} ${mint?.mode} ${mint?.amount} ${mint?.blob}\n`);
    }
  }
  return `0x${digest.digest("hex")}`;
}

export function idempotencyKeyHash(key: string): Hex {
  return `0x${createHash("sha256").update(key).digest("hex")}`;
}
