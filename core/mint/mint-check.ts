import { requireRoom } from "../batches/batches.ts";
import type { Issues, MintRequest, NamedAmount, NamedToken } from "../columns/request.ts";
import { hexOf } from "../columns/vault-columns.ts";
import { type ErrorCode, MintmarkError } from "../errors.ts";
import { enablementId, type Ledger } from "../ledger/ledger.ts";
import { type Address, type Hex, MODES, type Mode, type Principal, type Uuid } from "../model.ts";
import { blobTextOf } from "../protocol/blob.ts";
import { quantizedAmount } from "../protocol/quantized.ts";
import type { Group } from "../store/group.ts";
import type { AssetRecord } from "../store/records.ts";
import { bindingKey, keyString, metadataKey } from "../store/store-keys.ts";
import type { Transition } from "../store/writer.ts";
import { requireKey } from "../tenants/api-keys.ts";
import { availability, isVisible } from "../tenants/asset-view.ts";
import { isOwner, recipientKey, recipientOf } from "../tenants/users.ts";
import { mintedTokenId } from "../tokens/token-id.ts";
import { earlierMint, type Idempotency, idempotencyKeyOf } from "./idempotency.ts";
import type { MintOutcome } from "./mint.ts";
import { hasIds } from "./numbering.ts";
import { mintedMetadataObstacle, refusesMetadata } from "./requested-metadata.ts";
import { TokenLookup } from "./uniqueness.ts";

/** An entry whose asset can be minted and whose blob names a token of it. */
interface ReadyMint extends ReadyToken {
  readonly asset: AssetRecord;
  /** Quantized units. */
  readonly amount: bigint;
  /** The field that gives it. */
  readonly amountField: string;
  /** Of its token, as JSON. */
  readonly metadata: string | null;
}

interface ReadyToken {
  /** The field that names it. */
  readonly field: "/tokenId" | "/mintingBlob" | "/quantity";
  readonly blob: Hex;
  /** null for ERC-20, and where the engine gives the ids. */
  readonly tokenId: bigint | null;
  /** Tokens that the entry mints: 1 for ERC-20 and ERC-1155. */
  readonly quantity: bigint;
}

/**
 * Checks a mint request against the state and collects every issue. Changes nothing. Slower than {@link
 * MintTransition}, which only finds that something is wrong. Null when nothing is wrong.
 */
export class MintCheck implements Transition<MintOutcome | null> {
  readonly weight: number;
  readonly #ledger: Ledger;
  readonly #principal: Principal;
  readonly #request: MintRequest;
  readonly #issues: Issues;
  readonly #idempotency: Idempotency | null;
  readonly #lookup: TokenLookup;
  #metadataCount = 0;
  /** What is known of each entry; null for an entry with an issue. */
  #mints: (ReadyMint | null)[] = [];

  constructor(
    ledger: Ledger,
    principal: Principal,
    request: MintRequest,
    issues: Issues,
    idempotency: Idempotency | null,
  ) {
    this.#ledger = ledger;
    this.#principal = principal;
    this.#request = request;
    this.#issues = issues;
    this.#idempotency = idempotency;
    this.#lookup = new TokenLookup(ledger);
    this.weight = request.mints.reduce((sum, { token }) => sum + (token?.field === "quantity" ? token.quantity : 1), 0);
  }

  keys(): Buffer[] {
    const application = this.#ledger.latestApplication(this.#principal.applicationId).applicationIndex;
    const keys: Buffer[] = [];
    if (this.#idempotency !== null) keys.push(idempotencyKeyOf(application, this.#idempotency));
    for (const { recipient } of this.#request.users) {
      if (recipient !== null) keys.push(recipientKey(application, recipient));
    }
    this.#mints = this.#each((user, at, position) => this.#readMint(application, user, at, position));
    for (const mint of this.#mints) {
      if (mint === null || mint.tokenId === null) continue;
      if (mint.asset.standard === "erc1155") keys.push(bindingKey(mint.asset.assetIndex, mint.tokenId));
      else this.#lookup.prepare(this.#ledger.tokens.candidates(this.#hashOf(mint, mint.tokenId)) ?? []);
    }
    const ofMetadata = this.#mints.flatMap((mint) => {
      return !mint || mint.tokenId === null || mint.metadata === null
        ? []
        : [metadataKey(mint.asset.assetId, mint.tokenId)];
    });
    this.#metadataCount = ofMetadata.length;
    return [...keys, ...this.#lookup.keys(), ...ofMetadata];
  }

  apply(group: Group, stored: readonly (Buffer | undefined)[]): MintOutcome | null {
    const application = this.#ledger.latestApplication(this.#principal.applicationId).applicationIndex;
    const key = requireKey(this.#ledger, this.#principal);
    let at = 0;
    if (this.#idempotency !== null) {
      const place = idempotencyKeyOf(application, this.#idempotency);
      const earlier = earlierMint(group.resolve(place, stored[at++]), this.#idempotency);
      if (earlier !== null) return { sequence: earlier, minted: null };
    }
    const users = new Set<number>();
    for (const [i, { field, recipient }] of this.#request.users.entries()) {
      if (recipient === null) continue;
      const record = group.resolve(recipientKey(application, recipient), stored[at++]);
      const user = record === undefined ? null : recipientOf(recipient, record);
      if (user === null) this.#requireCreatable(i, recipient);
      else if (users.has(user.userIndex))
        this.#issues.ofUser(i, `/${field}`, "duplicate_user", "occurs more than once in this request");
      if (user !== null) users.add(user.userIndex);
    }
    const metadataAt = stored.length - this.#metadataCount;
    this.#checkTokens(group, stored.slice(at, metadataAt));
    this.#checkMetadata(group, stored.slice(metadataAt));
    this.#checkSupply();
    if (key.mintQuota !== null && key.mintsUsed + BigInt(this.weight) > key.mintQuota) {
      this.#issues.ofRequest("", "quota_exceeded", `the key has ${key.mintQuota - key.mintsUsed} mints left`);
    }
    this.#issues.throwIfAny();
    // These checks are last because they can pass later. The issues above cannot.
    this.#ledger.requirePromising();
    requireRoom(this.#ledger, this.weight);
    return null;
  }

  /** An owner gets a user with the first mint, if the key may create users. */
  #requireCreatable(user: number, recipient: Uuid | Address): void {
    if (!isOwner(recipient)) this.#issues.ofUser(user, "/userId", "user_not_found", "no such user in this application");
    else if (!this.#principal.scopes.includes("users")) {
      const detail = "no user has this address yet, and the key does not carry the scope users to create one";
      this.#issues.ofUser(user, "/ownerAddress", "scope_missing", detail);
    }
  }

  /** Goes through the entries until the list of issues is full: of each user, then of all. */
  #each<T>(visit: (user: number, at: number, position: number) => T): T[] {
    const results: T[] = [];
    for (const [user, { count }] of this.#request.users.entries()) {
      for (let at = 0; at < count && !this.#issues.more; at++) results.push(visit(user, at, results.length));
    }
    return results;
  }

  #readMint(applicationIndex: number, user: number, at: number, position: number): ReadyMint | null {
    const mint = this.#request.mints[position];
    if (mint === undefined) return null;
    if (mint.assetId === null) {
      if (mint.mode === "default") this.#defaultMode(null, user, at);
      return null;
    }
    const index = this.#ledger.assetIndices.get(mint.assetId);
    const asset = index === undefined ? undefined : this.#ledger.assets.latest(index);
    if (asset === undefined || !isVisible(asset, applicationIndex)) {
      this.#issues.ofMint(user, at, "/assetId", "asset_not_found", "no such asset");
      return null;
    }
    const enabled = this.#ledger.enablements.latest(enablementId(applicationIndex, asset.assetIndex)) ?? false;
    const obstacle = availability(this.#ledger.settlement, asset, enabled);
    if (obstacle !== null) this.#issues.ofMint(user, at, "/assetId", obstacle.code, obstacle.detail);
    const amount = mint.amount === null ? null : this.#readAmount(asset, mint.amount, user, at);
    const token = mint.token === null ? null : this.#readToken(asset, mint.token, user, at);
    const mode = mint.mode === "default" ? this.#defaultMode(asset, user, at) : mint.mode;
    const { metadata } = mint;
    const refused =
      metadata === null ? null : mintedMetadataObstacle(this.#ledger, asset, applicationIndex, token?.quantity ?? 1n);
    if (refused !== null) this.#issues.ofMint(user, at, "/metadata", refused.code, refused.detail);
    if (token === null || obstacle !== null || amount === null || mode === null || refused !== null) return null;
    const amountField = `/${mint.amount?.field ?? "amount"}`;
    return { asset, amountField, ...token, amount: amount * token.quantity, metadata };
  }

  /** @param asset - null when it is unknown */
  #defaultMode(asset: AssetRecord | null, user: number, at: number): Mode | null {
    const application = this.#ledger.latestApplication(this.#principal.applicationId);
    const mode = asset?.dataAvailabilityMode ?? application.dataAvailabilityMode;
    if (mode === null) {
      const detail = `must be one of ${MODES.join(", ")}: neither asset nor application has a default`;
      this.#issues.ofMint(user, at, "/dataAvailabilityMode", "validation_failed", detail);
    }
    return mode;
  }

  #readAmount(asset: AssetRecord, amount: NamedAmount, user: number, at: number): bigint | null {
    const refuse = (field: string, code: ErrorCode, detail: string): null => {
      this.#issues.ofMint(user, at, field, code, detail);
      return null;
    };
    if (amount.field === "amountDecimal") {
      const field = "/amountDecimal";
      if (asset.standard !== "erc20") return refuse(field, "validation_failed", "is for ERC-20 alone; give amount");
      try {
        return quantizedAmount(amount.text, asset);
      } catch (error) {
        if (!(error instanceof MintmarkError)) throw error;
        return refuse(field, error.code, error.message);
      }
    }
    if (amount.field === null) {
      if (asset.standard === "erc721") return 1n;
      return refuse("/amount", "validation_failed", "give the amount; only an ERC-721 token needs none");
    }
    // A token that is named twice gets that error, whatever its amount.
    if (asset.standard === "erc721" && amount.units !== 1n)
      refuse("/amount", "erc721_amount_not_one", "must be 1 for an ERC-721 token");
    return amount.units;
  }

  #readToken(asset: AssetRecord, token: NamedToken, user: number, at: number): ReadyToken | null {
    if (token.field === "quantity" || (token.field === null && asset.nextTokenId !== null))
      return this.#readQuantity(asset, token.field === null ? 1 : token.quantity, user, at);
    const field = token.field === "mintingBlob" ? "/mintingBlob" : "/tokenId";
    if (asset.nextTokenId !== null) {
      const detail = "the engine numbers this asset's tokens; give their quantity instead";
      this.#issues.ofMint(user, at, field, "validation_failed", detail);
      return null;
    }
    if (token.field === null && asset.standard !== "erc20") {
      this.#issues.ofMint(user, at, field, "validation_failed", "name the token by tokenId, or by mintingBlob");
      return null;
    }
    if (token.field === "tokenId" && asset.standard === "erc20") {
      this.#issues.ofMint(user, at, field, "validation_failed", "an ERC-20 token has no ids; leave this out");
      return null;
    }
    try {
      const blob = blobOf(asset, token);
      return { field, blob, tokenId: mintedTokenId(asset, Buffer.from(blob.slice(2), "hex")), quantity: 1n };
    } catch (error) {
      if (!(error instanceof MintmarkError) || error.code !== "blob_invalid") throw error;
      this.#issues.ofMint(user, at, field, error.code, error.message);
      return null;
    }
  }

  #readQuantity(asset: AssetRecord, quantity: number, user: number, at: number): ReadyToken | null {
    const field = "/quantity";
    if (asset.nextTokenId === null) {
      const detail = "is for ERC-721 assets whose tokens the engine numbers; name this token by tokenId";
      this.#issues.ofMint(user, at, field, "validation_failed", detail);
      return null;
    }
    return { field, blob: "0x", tokenId: null, quantity: BigInt(quantity) };
  }

  #hashOf({ asset }: ReadyMint, tokenId: bigint): number {
    return this.#ledger.hasher.ofId(asset.assetIndex, tokenId);
  }

  /** An ERC-721 token exists once. The first blob that names an ERC-1155 id binds it. */
  #checkTokens(group: Group, stored: readonly (Buffer | undefined)[]): void {
    const bindings = this.#mints.filter((mint) => mint?.asset.standard === "erc1155").length;
    this.#lookup.receive(stored.slice(bindings));
    const inRequest = new Map<string, Hex>();
    let asked = 0;
    this.#each((user, at, position) => {
      const mint = this.#mints[position];
      if (!mint || mint.tokenId === null) return;
      const { asset, field, tokenId, blob } = mint;
      const key = bindingKey(asset.assetIndex, tokenId);
      const token = keyString(key);
      const earlier = inRequest.get(token);
      inRequest.set(token, blob);
      if (asset.standard === "erc1155") {
        const record = group.resolve(key, stored[asked++]);
        const bound = record === undefined ? earlier : hexOf(record, 0, record.length);
        if (bound === undefined || bound === blob) return;
        const detail = `the token id is bound to the blob ${bound}`;
        this.#issues.ofMint(user, at, field, "token_id_conflict", detail);
      } else if (this.#exists(mint, tokenId)) {
        const detail = "this token has been minted before";
        this.#issues.ofMint(user, at, field, "token_already_minted", detail);
      } else if (earlier !== undefined) {
        this.#issues.ofMint(user, at, field, "duplicate_mint", "occurs more than once in this request");
      }
    });
  }

  #checkMetadata(group: Group, stored: readonly (Buffer | undefined)[]): void {
    let asked = 0;
    this.#each((user, at, position) => {
      const mint = this.#mints[position];
      if (!mint || mint.tokenId === null || mint.metadata === null) return;
      const record = group.resolve(metadataKey(mint.asset.assetId, mint.tokenId), stored[asked++]);
      if (refusesMetadata(record, mint.metadata))
        this.#issues.ofMint(user, at, "/metadata", "metadata_frozen", "this token's metadata is frozen");
    });
  }

  #exists(mint: ReadyMint, tokenId: bigint): boolean {
    const candidates = this.#ledger.tokens.candidates(this.#hashOf(mint, tokenId));
    return candidates !== null && this.#lookup.holds(candidates, mint.asset.assetIndex, tokenId);
  }

  #checkSupply(): void {
    const totals = new Map<AssetRecord, bigint>();
    this.#each((user, at, position) => {
      const mint = this.#mints[position];
      if (!mint) return;
      const total = (totals.get(mint.asset) ?? mint.asset.minted) + mint.amount;
      totals.set(mint.asset, total);
      if (!hasIds(mint.asset, total - mint.asset.minted))
        this.#issues.ofMint(user, at, mint.field, "supply_cap_exceeded", "no ids below 2^256 are left");
      if (mint.asset.supplyCap !== null && total > mint.asset.supplyCap) {
        const left = mint.asset.supplyCap - mint.asset.minted;
        const detail = `${left} units are left for this request`;
        this.#issues.ofMint(user, at, mint.amountField, "supply_cap_exceeded", detail);
      }
    });
  }
}

function blobOf({ blobScheme }: AssetRecord, token: NamedToken): Hex {
  if (token.field === "mintingBlob") return token.blob;
  if (token.field !== "tokenId") return "0x";
  return `0x${Buffer.from(blobTextOf(blobScheme, token.digits), "latin1").toString("hex")}`;
}
