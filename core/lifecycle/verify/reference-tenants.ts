import type { Mode } from "../../model.ts";
import { assetType } from "../../protocol/asset.ts";
import type { EntryOf } from "../../store/entries.ts";
import * as records from "../../store/records.ts";
import { blockOf, keyOf, keyString, prefixOf, requestByKey } from "../../store/store-keys.ts";
import type { StoredVault } from "../../store/vault-columns.ts";
import { type Handlers, Part } from "./reference-records.ts";

/** The application of a user, and its owner address. */
interface Owner {
  readonly applicationIndex: number;
  readonly owner: StoredVault["owner"];
}

/** What stands for an asset that the journal has not added. */
export const NO_ASSET = {
  assetId: "00000000-0000-0000-0000-000000000000",
  chainId: 0n,
  assetType: `0x${"00".repeat(32)}`,
} as const;

/** Changeable facts of a new asset. */
const UNMINTED = {
  minted: 0n,
  whitelisted: false,
  registered: false,
  minterLocked: null,
  fault: null,
  removed: false,
  transferable: null,
};

/** The part of the reference for applications, keys, assets and users. */
export class ReferenceTenants extends Part {
  readonly #applications = this.kept("application", keyOf.application, records.applicationRecord);
  readonly #keys = this.kept("key", keyOf.key, records.keyRecord);
  readonly #assets = this.kept("asset", keyOf.asset, records.assetRecord);
  readonly #enabled = new Map<string, Buffer>(); // By application and asset
  readonly #owners: Owner[] = [];
  readonly #known = new Set<string>(); // Owners that have a user, by application
  /** The last block with a mark, by mark: marks tell which assets and modes a block of requests has. */
  readonly #marked = new Map<string, number>();

  readonly on = {
    applicationCreated: (entry) => {
      const fresh = { suspended: false, createdAt: this.out.time, nextSequence: 0, eventCount: 0 };
      this.#applications.set(this.#applications.size, { ...entry, ...fresh });
    },
    applicationChanged: ({ applicationIndex, dataAvailabilityMode }) =>
      this.#applications.change(applicationIndex, { dataAvailabilityMode }),
    applicationSuspended: ({ applicationIndex, suspended }) =>
      this.#applications.change(applicationIndex, { suspended }),
    keyIssued: (entry) => {
      const fresh = { mintsUsed: 0n, createdAt: this.out.time, revokedAt: null };
      this.#keys.set(this.#keys.size, { ...entry, ...fresh });
    },
    keyRevoked: ({ keyIndex }) => this.#keys.change(keyIndex, { revokedAt: this.out.time }),
    assetAdded: (entry) => {
      const type = assetType(entry.standard, entry.contractAddress, entry.quantum);
      const record = { ...entry, ...UNMINTED, assetType: type, createdAt: this.out.time };
      this.#assets.set(this.#assets.size, record);
    },
    assetChanged: ({ assetIndex, rawBlobs, dataAvailabilityMode }) =>
      this.#assets.change(assetIndex, { rawBlobs, dataAvailabilityMode }),
    assetRemoved: ({ assetIndex }) => this.#assets.change(assetIndex, { removed: true }),
    assetWhitelisted: ({ assetIndex, whitelisted }) => this.#assets.change(assetIndex, { whitelisted }),
    assetRegistered: ({ assetIndex, minterLocked, transferable }) =>
      this.#assets.change(assetIndex, { registered: true, minterLocked, transferable }),
    assetFault: ({ assetIndex, fault }) => this.#assets.change(assetIndex, { fault }),
    assetEnabled: ({ applicationIndex, assetIndex, enabled }) => {
      const id = `${applicationIndex}:${assetIndex}`;
      if (enabled) this.#enabled.set(id, keyOf.enablement(applicationIndex, assetIndex));
      else this.#enabled.delete(id);
      const type = enabled ? "asset.enabled" : "asset.disabled";
      this.out.tell(applicationIndex, { type, assetId: (this.asset(assetIndex) ?? NO_ASSET).assetId });
    },
    userCreated: (entry) => this.#user(entry),
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

  /** Counts the transactions of a request, which must be the application's next ones, and marks its block. */
  advance(
    request: string,
    { applicationIndex, sequence, count }: { applicationIndex: number; sequence: number; count: number },
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

  /** An ERC-721 token exists: the engine's next id is above it. */
  countId(assetIndex: number, tokenId: bigint): void {
    const next = this.asset(assetIndex)?.nextTokenId ?? null;
    if (next !== null && tokenId >= next) this.#assets.change(assetIndex, { nextTokenId: tokenId + 1n });
  }

  override finish(): void {
    for (const index of this.#applications.keys())
      this.#applications.change(index, { eventCount: this.out.eventsOf(index) });
    super.finish();
    for (const [id, key] of this.#enabled) this.out.mark(key, `enablement ${id}`);
  }

  #user({ applicationIndex, userIndex, userId, ownerAddress, reference }: EntryOf<"userCreated">): void {
    const { out } = this;
    if (userIndex !== this.#owners.length) out.report(`user ${userId} is out of order`);
    this.#owners.push({ applicationIndex, owner: ownerAddress });
    const owned = `${applicationIndex} ${ownerAddress}`;
    const ownerAt = this.#known.has(owned)
      ? keyOf.ownerUser(applicationIndex, ownerAddress, userIndex)
      : keyOf.owner(applicationIndex, ownerAddress);
    this.#known.add(owned);
    out.put(ownerAt, records.ownerRecord, { userIndex, userId }, `the owner of user ${userId}`);
    if (reference !== null)
      out.mark(keyOf.userReference(applicationIndex, reference, userIndex), `the reference of user ${userId}`);
    const record = { userId, ownerAddress, createdAt: out.time, reference };
    out.put(keyOf.user(applicationIndex, userIndex), records.userRecord, record, `user ${userId}`);
    const index = { userIndex, ownerAddress };
    out.put(keyOf.userId(applicationIndex, userId), records.userIdRecord, index, `the index of user ${userId}`);
  }
}
