import { assetType } from "../../protocol/asset.ts";
import type { Entry, EntryOf } from "../../store/entries.ts";
import { encodeRecord } from "../../store/layout.ts";
import {
  type ApplicationRecord,
  type AssetRecord,
  applicationRecord,
  assetRecord,
  type KeyRecord,
  keyRecord,
  ownerRecord,
  userIdRecord,
  userRecord,
} from "../../store/records.ts";
import * as keys from "../../store/store-keys.ts";
import type { StoredVault } from "../../store/vault-columns.ts";
import { NO_ASSET } from "./reference-batches.ts";
import type { ReferenceEvents } from "./reference-events.ts";
import { ReferenceMetadata } from "./reference-metadata.ts";
import { type Expected, expectedRecord } from "./reference-records.ts";

/** The application of a user, and its owner address. */
interface Owner {
  readonly applicationIndex: number;
  readonly owner: StoredVault["owner"];
}

/** The part of the reference for applications, keys, assets and users. */
export class ReferenceTenants {
  readonly #report: (problem: string) => void;
  readonly #events: ReferenceEvents;
  readonly #applications: ApplicationRecord[] = [];
  readonly #keys: KeyRecord[] = [];
  readonly #assets: AssetRecord[] = [];
  readonly #metadata: ReferenceMetadata;
  /** `applicationIndex:assetIndex`. */
  readonly #enabled = new Set<string>();
  readonly #owners: Owner[] = [];
  /** Owners that have a user, by application. */
  readonly #known = new Set<string>();

  constructor(report: (problem: string) => void, events: ReferenceEvents) {
    this.#report = report;
    this.#events = events;
    this.#metadata = new ReferenceMetadata(report);
  }

  get userCount(): number {
    return this.#owners.length;
  }

  asset(assetIndex: number): AssetRecord | undefined {
    return this.#assets[assetIndex];
  }

  owner(userIndex: number): Owner | undefined {
    return this.#owners[userIndex];
  }

  /** Applies an entry of this part; null for any other. */
  apply(entry: Entry, time: number): Expected[] | null {
    switch (entry.kind) {
      case "applicationCreated": {
        const { kind: _, ...facts } = entry;
        const fresh = { suspended: false, createdAt: time, nextSequence: 0, eventCount: 0 };
        this.#applications.push({ ...facts, ...fresh });
        return [];
      }
      case "applicationChanged": {
        const { kind: _, applicationIndex, ...changed } = entry;
        return this.#change(this.#applications, applicationIndex, changed);
      }
      case "assetChanged": {
        const { kind: _, assetIndex, ...changed } = entry;
        return this.#change(this.#assets, assetIndex, changed);
      }
      case "applicationSuspended":
        return this.#change(this.#applications, entry.applicationIndex, { suspended: entry.suspended });
      case "keyIssued": {
        const { kind: _, ...facts } = entry;
        this.#keys.push({ ...facts, mintsUsed: 0n, createdAt: time, revokedAt: null });
        return [];
      }
      case "keyRevoked":
        return this.#change(this.#keys, entry.keyIndex, { revokedAt: time });
      case "assetAdded":
        this.#assets.push(newAsset(entry, time));
        return [];
      case "assetRemoved":
        return this.#change(this.#assets, entry.assetIndex, { removed: true });
      case "assetWhitelisted":
        return this.#change(this.#assets, entry.assetIndex, { whitelisted: entry.whitelisted });
      case "assetRegistered":
        return this.#change(this.#assets, entry.assetIndex, {
          registered: true,
          minterLocked: entry.minterLocked,
          transferable: entry.transferable,
        });
      case "assetFault":
        return this.#change(this.#assets, entry.assetIndex, { fault: entry.fault });
      case "assetEnabled": {
        const id = `${entry.applicationIndex}:${entry.assetIndex}`;
        if (entry.enabled) this.#enabled.add(id);
        else this.#enabled.delete(id);
        const type = entry.enabled ? "asset.enabled" : "asset.disabled";
        const { assetId } = this.asset(entry.assetIndex) ?? NO_ASSET;
        return [this.#events.tell(entry.applicationIndex, time, { type, assetId })];
      }
      case "userCreated":
        return this.#user(entry, time);
      default:
        return this.#metadata.apply(entry, time) ? [] : null;
    }
  }

  /** Counts transactions of an application from a sequence on; false when that is not its next one. */
  advance(applicationIndex: number, firstSequence: number, count: number): boolean {
    const next = this.#applications[applicationIndex]?.nextSequence;
    this.#change(this.#applications, applicationIndex, { nextSequence: firstSequence + count });
    return next === firstSequence;
  }

  countMints(keyIndex: number, count: number): void {
    const used = this.#keys[keyIndex]?.mintsUsed ?? 0n;
    this.#change(this.#keys, keyIndex, { mintsUsed: used + BigInt(count) });
  }

  /** Adds to the minted supply of an asset; subtracts for a negative amount. */
  countSupply(assetIndex: number, amount: bigint): void {
    const minted = this.asset(assetIndex)?.minted ?? 0n;
    this.#change(this.#assets, assetIndex, { minted: minted + amount });
  }

  /** An ERC-721 token exists: the engine's next id is above it. */
  countId(assetIndex: number, tokenId: bigint): void {
    const next = this.asset(assetIndex)?.nextTokenId ?? null;
    if (next !== null && tokenId >= next) this.#change(this.#assets, assetIndex, { nextTokenId: tokenId + 1n });
  }

  finish(): Expected[] {
    return [
      ...this.#applications.map((facts, i) => {
        const record = { ...facts, eventCount: this.#events.countOf(i) };
        return expectedRecord(keys.applicationKey(i), encodeRecord(applicationRecord, record), `application ${i}`);
      }),
      ...this.#keys.map((record, i) => expectedRecord(keys.apiKeyKey(i), encodeRecord(keyRecord, record), `key ${i}`)),
      ...this.#assets.map((record, i) =>
        expectedRecord(keys.assetKey(i), encodeRecord(assetRecord, record), `asset ${i}`),
      ),
      ...[...this.#enabled].map((id) => {
        const [application = 0, asset = 0] = id.split(":").map(Number);
        return expectedRecord(keys.enablementKey(application, asset), Buffer.from([1]), `enablement ${id}`);
      }),
      ...this.#metadata.finish(),
    ];
  }

  #user(entry: EntryOf<"userCreated">, time: number): Expected[] {
    const { applicationIndex, userIndex, userId, ownerAddress, reference } = entry;
    if (userIndex !== this.#owners.length) this.#report(`user ${userId} is out of order`);
    this.#owners.push({ applicationIndex, owner: ownerAddress });
    const record = encodeRecord(userRecord, { userId, ownerAddress, createdAt: time, reference });
    const index = encodeRecord(userIdRecord, { userIndex, ownerAddress });
    const owned = `${applicationIndex} ${ownerAddress}`;
    const ownerAt = this.#known.has(owned)
      ? keys.ownerUserKey(applicationIndex, ownerAddress, userIndex)
      : keys.ownerKey(applicationIndex, ownerAddress);
    this.#known.add(owned);
    const named = reference === null ? [] : [keys.userReferenceKey(applicationIndex, reference, userIndex)];
    return [
      expectedRecord(ownerAt, encodeRecord(ownerRecord, { userIndex, userId }), `the owner of user ${userId}`),
      ...named.map((key) => expectedRecord(key, Buffer.from([1]), `the reference of user ${userId}`)),
      expectedRecord(keys.userKey(applicationIndex, userIndex), record, `user ${userId}`),
      expectedRecord(keys.userIdKey(applicationIndex, userId), index, `the index of user ${userId}`),
    ];
  }

  #change<T>(records: T[], index: number, change: Partial<T>): Expected[] {
    const record = records[index];
    if (record === undefined) this.#report(`the journal changes a record ${index} that it never created`);
    else records[index] = { ...record, ...change };
    return [];
  }
}

function newAsset({ kind: _, ...facts }: EntryOf<"assetAdded">, time: number): AssetRecord {
  const type = assetType(facts.standard, facts.contractAddress, facts.quantum);
  const fresh = {
    minted: 0n,
    whitelisted: false,
    registered: false,
    minterLocked: null,
    fault: null,
    removed: false,
    transferable: null,
  };
  return { ...facts, ...fresh, assetType: type, createdAt: time };
}
