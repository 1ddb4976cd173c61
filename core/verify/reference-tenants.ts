import type { Address, Mode, Uuid } from "../model.ts";
import { assetType } from "../protocol/asset.ts";
import { hexToBytes } from "../protocol/hex.ts";
import { emptyOf } from "../store/layout.ts";
import * as records from "../store/records.ts";
import { blockOf, keyOf, keyString, prefixOf, requestByKey } from "../store/store-keys.ts";
import type { StoredVault } from "../store/vault-columns.ts";
import { type Handlers, hexOfKey, keyOfHex, ReferencePart } from "./reference-records.ts";

interface Owner {
  readonly applicationIndex: number;
  readonly owner: StoredVault["owner"];
}

/** An empty record stands for an asset that the journal has not added. */
export const NO_ASSET = emptyOf(records.assetRecord);

// Most milliseconds between the check of a link and the time of its entry
const CHECKED_BEFORE_MS = 60_000;

/**
 * The part of the reference for applications with their keys, assets, users, claim links, metadata
 * and webhooks, and for people with their sign-ins and audit logs.
 */
export class ReferenceTenants extends ReferencePart {
  readonly #applications = this.kept("application", keyOf.application, records.applicationRecord);
  readonly #keys = this.kept("key", keyOf.key, records.keyRecord);
  readonly #assets = this.kept("asset", keyOf.asset, records.assetRecord);
  readonly #enabled = new Map<string, Buffer>(); // The key is the application and the asset.
  readonly #owners: Owner[] = [];
  readonly #known = new Set<string>(); // Owners that have a user, by application
  readonly #claims = this.kept<Address, records.ClaimRecord>(
    "claim link",
    keyOf.claim,
    records.claimRecord,
  );
  readonly #collections = this.kept(
    "the metadata of asset",
    keyOf.collection,
    records.collectionRecord,
  );
  readonly #people = this.kept("person", keyOf.person, records.personRecord);
  readonly #webhooks = this.kept("webhook", keyOf.webhook, records.webhookRecord);
  readonly #tokens = this.kept("the metadata of the token at", keyOfHex, records.metadataRecord);
  readonly #logs = new Map<number, number>(); // The number of acts of each audit log
  /**
   * The last block with a mark, by mark: marks tell which assets and modes a block of requests has.
   */
  readonly #marked = new Map<string, number>();

  readonly on = {
    applicationCreated: (entry) => this.#applications.add(this.#applications.size, entry),
    applicationChanged: (entry) => this.#applications.change(entry.applicationIndex, entry),
    applicationSuspended: (entry) => this.#applications.change(entry.applicationIndex, entry),
    keyIssued: (entry) => this.#keys.add(this.#keys.size, entry),
    keyRevoked: ({ keyIndex }) => this.#keys.change(keyIndex, { revokedAt: this.out.time }),
    assetAdded: (entry) => {
      const type = assetType(entry.standard, entry.contractAddress, entry.quantum);
      this.#assets.add(this.#assets.size, { ...entry, assetType: type });
    },
    assetChanged: (entry) => this.#assets.change(entry.assetIndex, entry),
    assetRemoved: ({ assetIndex }) => this.#assets.change(assetIndex, { removed: true }),
    assetWhitelisted: (entry) => this.#assets.change(entry.assetIndex, entry),
    assetRegistered: (entry) =>
      this.#assets.change(entry.assetIndex, { ...entry, registered: true }),
    assetFault: (entry) => this.#assets.change(entry.assetIndex, entry),
    assetEnabled: ({ applicationIndex, assetIndex, enabled }) => {
      const id = `${applicationIndex}:${assetIndex}`;
      if (enabled) this.#enabled.set(id, keyOf.enablement(applicationIndex, assetIndex));
      else this.#enabled.delete(id);
      const type = enabled ? "asset.enabled" : "asset.disabled";
      this.out.tell(applicationIndex, {
        type,
        assetId: (this.asset(assetIndex) ?? NO_ASSET).assetId,
      });
    },
    userCreated: ({ applicationIndex, userIndex, userId, ownerAddress, reference }) => {
      const { out } = this;
      if (userIndex !== this.#owners.length) out.report(`user ${userId} is out of order`);
      this.#owners.push({ applicationIndex, owner: ownerAddress });
      const owned = `${applicationIndex} ${ownerAddress}`;
      const ownerAt = this.#known.has(owned)
        ? keyOf.ownerUser(ownerAddress, applicationIndex, userIndex)
        : keyOf.owner(ownerAddress, applicationIndex);
      this.#known.add(owned);
      out.put(ownerAt, records.ownerRecord, { userIndex, userId }, `the owner of user ${userId}`);
      if (reference !== null)
        out.mark(
          keyOf.userReference(applicationIndex, reference, userIndex),
          `the reference of user ${userId}`,
        );
      const record = { userId, ownerAddress, createdAt: out.time, reference };
      out.put(
        keyOf.user(applicationIndex, userIndex),
        records.userRecord,
        record,
        `user ${userId}`,
      );
      const index = { userIndex, ownerAddress };
      out.put(
        keyOf.userId(applicationIndex, userId),
        records.userIdRecord,
        index,
        `the index of user ${userId}`,
      );
    },
    claimsCreated: ({ applicationIndex, keyIndex, claims }) => {
      for (const [i, { link, mint, expiresAt }] of claims.entries()) {
        if (this.#claims.has(link)) this.out.report(`claim link ${link} is created twice`);
        const number = records.claimNumber(this.out.sequence, i);
        this.#claims.add(link, { applicationIndex, keyIndex, number, mint, expiresAt });
        const at = keyOf.applicationClaim(applicationIndex, number);
        this.out.bytes(at, hexToBytes(link), `the index of claim link ${link}`);
      }
    },
    claimCancelled: ({ link }) => this.#decide(link, { status: "cancelled" }),
    claimTaken: ({ kind: _, link, ...taken }) => {
      const expiresAt = this.#claims.get(link)?.expiresAt ?? null;
      if (expiresAt !== null && expiresAt + CHECKED_BEFORE_MS <= this.out.time)
        this.out.report(`the expired claim link ${link} is taken`);
      if (taken.mintSequence >= this.out.sequence)
        this.out.report(`the mint of claim link ${link} is in no earlier entry`);
      this.#decide(link, { status: "claimed", ...taken });
    },
    metadataSet: ({ assetId, tokens }) => {
      for (const { tokenId, metadata } of tokens) {
        const at = hexOfKey(keyOf.metadata(assetId, tokenId));
        if (
          this.#tokens.get(at)?.frozen === true ||
          this.#collections.get(assetId)?.frozen === true
        )
          this.out.report(`frozen metadata of token ${tokenId} changes`);
        this.#tokens.set(at, { metadata, frozen: false, updatedAt: this.out.time });
      }
    },
    metadataFrozen: ({ assetId, tokenIds }) => {
      for (const tokenId of tokenIds) {
        const at = hexOfKey(keyOf.metadata(assetId, tokenId));
        this.#tokens.change(at, { ...this.#tokens.get(at), frozen: true });
      }
    },
    collectionChanged: (entry) => {
      const { assetId, placeholder, frozen } = entry;
      const before = this.#collections.get(assetId);
      const isHidden = placeholder !== null && placeholder !== before?.placeholder;
      if (before?.frozen === true && (!frozen || isHidden))
        this.out.report(`the frozen metadata of asset ${assetId} changes`);
      this.#collections.set(assetId, { ...entry, updatedAt: this.out.time });
    },
    personInvited: (entry) => this.#people.add(this.#people.size, entry),
    personChanged: (entry) => this.#people.change(entry.personIndex, entry),
    personRemoved: ({ personIndex }) =>
      this.#people.change(personIndex, { link: null, signIns: [], removedAt: this.out.time }),
    personLinked: (entry) => this.#people.change(entry.personIndex, { link: entry }),
    personAddressed: (entry) => this.#people.change(entry.personIndex, entry),
    personSignedIn: ({ personIndex, tokenHash, byLink, expiresAt }) => {
      const { signIns = [], link = null } = this.#people.get(personIndex) ?? {};
      const opened = [...signIns, { tokenHash, openedAt: this.out.time, expiresAt }].slice(
        -records.MAX_SIGN_INS,
      );
      const change = { signIns: opened, link: byLink ? null : link, signedInAt: this.out.time };
      this.#people.change(personIndex, change);
    },
    personSignedOut: ({ personIndex, tokenHash: ended }) => {
      const { signIns = [] }: Partial<records.PersonRecord> = this.#people.get(personIndex) ?? {};
      this.#people.change(personIndex, {
        signIns: signIns.filter(({ tokenHash }) => tokenHash !== ended),
      });
    },
    acted: ({ applicationIndex, count }) => {
      const { sequence } = this.out;
      if (count < 1 || count >= sequence)
        this.out.report(`entry ${sequence} names changes that are not there`);
      const log = applicationIndex === null ? 0 : applicationIndex + 1;
      const acts = this.#logs.get(log) ?? 0;
      this.out.index(keyOf.audit(log, acts), `act ${acts} of audit log ${log}`);
      this.#logs.set(log, acts + 1);
    },
    webhookCreated: (entry) => this.#webhooks.add(this.#webhooks.size, entry),
    webhookDeleted: ({ webhookIndex }) =>
      this.#webhooks.change(webhookIndex, { status: "deleted" }),
    webhookSecretRotated: ({ webhookIndex }) => this.#rotate(webhookIndex),
    webhookSecretRotatedOnce: ({ webhookIndex, rotationId }) =>
      this.#rotate(webhookIndex, rotationId),
    webhookEnabled: ({ webhookIndex }) =>
      this.#webhooks.change(webhookIndex, { status: "active", failingSince: null, failure: null }),
    webhookDelivered: ({ webhookIndex, sequence: delivered }) =>
      this.#webhooks.change(webhookIndex, { delivered, failingSince: null, failure: null }),
    webhookChanged: ({ webhookIndex, types }) => this.#webhooks.change(webhookIndex, { types }),
    webhookEventSkipped: ({ webhookIndex, sequence: delivered }) =>
      this.#webhooks.change(webhookIndex, { delivered, failingSince: null, failure: null }),
    webhookFailing: ({ webhookIndex, failure }) =>
      this.#webhooks.change(webhookIndex, {
        failingSince: this.#failingSince(webhookIndex),
        failure,
      }),
    webhookDisabled: ({ webhookIndex, failure }) => {
      const failingSince = this.#failingSince(webhookIndex);
      this.#webhooks.change(webhookIndex, { status: "disabled", failingSince, failure });
      const { applicationIndex = 0, webhookId = "" } = this.#webhooks.get(webhookIndex) ?? {};
      this.out.tell(applicationIndex, { type: "webhook.disabled", webhookId, failure });
    },
  } satisfies Handlers;

  get userCount(): number {
    return this.#owners.length;
  }

  asset(assetIndex: number): records.AssetRecord | undefined {
    return this.#assets.get(assetIndex);
  }

  owner(userIndex: number): Owner | undefined {
    return this.#owners[userIndex];
  }

  /**
   * Counts the transactions of a request, which must be the application's next ones, and marks its
   * block.
   */
  advance(
    request: string,
    {
      applicationIndex,
      sequence,
      count,
    }: { applicationIndex: number; sequence: number; count: number },
    assets: readonly number[],
    modes: readonly Mode[],
  ): void {
    if (this.#applications.get(applicationIndex)?.nextSequence !== sequence)
      this.out.report(`${request} is out of sequence`);
    this.#applications.change(applicationIndex, { nextSequence: sequence + count });
    const block = blockOf(sequence);
    for (const mark of [
      ...[...new Set(assets)].map((asset) => prefixOf.assetMark(applicationIndex, asset)),
      ...[...new Set(modes)].map((mode) => prefixOf.modeMark(applicationIndex, mode)),
    ]) {
      const name = keyString(mark);
      if (this.#marked.get(name) === block) continue;
      this.#marked.set(name, block);
      this.out.mark(requestByKey(mark, block), `a mark of block ${block}`);
    }
  }

  countMints(keyIndex: number, count: number): void {
    const used = this.#keys.get(keyIndex)?.mintsUsed ?? 0n;
    this.#keys.change(keyIndex, { mintsUsed: used + BigInt(count) });
  }

  /** Adds to the minted supply of an asset; subtracts for a negative amount. */
  countSupply(assetIndex: number, amount: bigint): void {
    const minted = this.asset(assetIndex)?.minted ?? 0n;
    this.#assets.change(assetIndex, { minted: minted + amount });
  }

  /** The asset of a type on a chain; undefined for none that is still visible. */
  assetOfType(chainId: bigint, type: string): records.AssetRecord | undefined {
    return [...this.#assets.values()].find(
      (asset) => !asset.removed && asset.chainId === chainId && asset.assetType === type,
    );
  }

  /** An ERC-721 token exists: the engine's next id is above it. */
  countId(assetIndex: number, tokenId: bigint): void {
    const next = this.asset(assetIndex)?.nextTokenId ?? null;
    if (next !== null && tokenId >= next)
      this.#assets.change(assetIndex, { nextTokenId: tokenId + 1n });
  }

  override finish(): void {
    for (const index of this.#applications.keys())
      this.#applications.change(index, { eventCount: this.out.eventsOf(index) });
    super.finish();
    for (const [id, key] of this.#enabled) this.out.mark(key, `enablement ${id}`);
    for (const [log, count] of this.#logs)
      this.out.put(
        keyOf.auditCount(log),
        records.auditCountRecord,
        { log, count },
        `the length of audit log ${log}`,
      );
  }

  #decide(link: Address, change: Partial<records.ClaimRecord>): void {
    if ((this.#claims.get(link)?.status ?? "open") !== "open")
      this.out.report(`claim link ${link} is decided twice`);
    this.#claims.change(link, { ...change, decidedAt: this.out.time });
  }

  #rotate(webhookIndex: number, rotationId?: Uuid): void {
    const { applicationIndex = 0, rotations: before = 0 } = this.#webhooks.get(webhookIndex) ?? {};
    const rotations = before + 1;
    this.#webhooks.change(webhookIndex, { rotations, rotatedAt: this.out.time });
    if (rotationId === undefined) return;
    const key = keyOf.rotation(applicationIndex, rotationId);
    this.out.put(
      key,
      records.rotationRecord,
      { webhookIndex, rotations },
      `rotation ${rotationId}`,
    );
  }

  #failingSince(webhookIndex: number): number {
    return this.#webhooks.get(webhookIndex)?.failingSince ?? this.out.time;
  }
}
