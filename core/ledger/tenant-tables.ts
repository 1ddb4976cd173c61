import { MintmarkError } from "../errors.ts";
import type { Address, Standard, Uuid } from "../model.ts";
import { type Group, RecordTable, Table } from "../store/group.ts";
import * as records from "../store/records.ts";
import { keyOf } from "../store/store-keys.ts";
import { UserCache } from "./user-cache.ts";

/** Applications, and what is theirs: keys, webhooks, people, assets and users. */
export class TenantTables {
  readonly applications = new RecordTable(
    keyOf.application,
    records.applicationRecord,
    "applicationIndex",
    "applicationId",
  );
  readonly keys = new RecordTable(keyOf.key, records.keyRecord, "keyIndex", "keyId");
  readonly keysOf = this.keys.indexBy(({ applicationIndex }) => applicationIndex);
  /** Keys that count for usage: those in force, and those that minted before they were revoked. */
  readonly keysCounted = this.keys.indexBy(({ applicationIndex, mintsUsed, revokedAt }) =>
    revokedAt !== null && mintsUsed === 0n ? undefined : applicationIndex,
  );
  /** Keys of programs that are not revoked. Expired ones leave when the next one is issued. */
  readonly keysInForce = this.keys.indexBy(({ applicationIndex, ofPerson, revokedAt }) =>
    ofPerson || revokedAt !== null ? undefined : applicationIndex,
  );
  readonly webhooks = new RecordTable(
    keyOf.webhook,
    records.webhookRecord,
    "webhookIndex",
    "webhookId",
  );
  /** Webhooks that are not deleted. */
  readonly webhooksOf = this.webhooks.indexBy(({ applicationIndex, status }) =>
    status === "deleted" ? undefined : applicationIndex,
  );
  readonly people = new RecordTable(keyOf.person, records.personRecord, "personIndex", "personId");
  /** People by application; the operator's under null, as in {@link teamOf}. */
  readonly peopleOf = this.people.indexBy(({ applicationIndex }) => applicationIndex);
  /** People who are not removed. */
  readonly teamOf = this.people.indexBy(({ applicationIndex, removedAt }) =>
    removedAt === null ? applicationIndex : undefined,
  );
  readonly peopleByWallet = this.people.indexBy(({ address, removedAt }) =>
    removedAt === null ? (address ?? undefined) : undefined,
  );
  /** Log 0 is the operator's; log n + 1 is that of the application with index n. */
  readonly auditCounts = new RecordTable(keyOf.auditCount, records.auditCountRecord, "log");
  /** A removed asset's id may name a later one. */
  readonly assets = new RecordTable(keyOf.asset, records.assetRecord, "assetIndex", "assetId");
  /** Assets by application, removed ones too; null has those of no application. */
  readonly assetsOf = this.assets.indexBy(({ applicationIndex }) => applicationIndex);
  /** Assets by chain and contract; removed ones are left out. */
  readonly assetsByContract = this.assets.indexBy(({ chainId, contractAddress, removed }) =>
    removed ? undefined : `${chainId} ${contractAddress}`,
  );
  readonly assetsByType = this.assets.indexBy(({ chainId, assetType, removed }) =>
    removed ? undefined : `${chainId} ${assetType}`,
  );
  /** The standard of each asset, by index. It never changes. */
  readonly standards: Standard[] = [];
  /** Metadata that assets have of their own, by asset id. */
  readonly collections = new RecordTable(keyOf.collection, records.collectionRecord, "assetId");
  readonly enablements = new Table<string, boolean>();
  readonly users = new UserCache();
  /**
   * Called when deposits may find the users that they wait for: with the address of a new user, or
   * null when an application has a further asset.
   */
  claimDeposits: (owner: Address | null) => void = () => {};

  /** The application. Throws `application_not_found`. */
  application(applicationId: Uuid, group: Group | null): records.ApplicationRecord {
    const record = this.applications.named(applicationId, group);
    if (record === undefined) throw new MintmarkError("application_not_found");
    return record;
  }

  /** The id of an application, which never changes. */
  applicationIdAt(applicationIndex: number): Uuid {
    const record = this.applications.ahead(applicationIndex);
    if (record === undefined)
      throw new MintmarkError("store_corrupt", `Application ${applicationIndex} is missing.`);
    return record.applicationId;
  }

  /** The facts of an asset, which never change. */
  assetAt(assetIndex: number): records.AssetFacts {
    const record = this.assets.ahead(assetIndex);
    if (record === undefined) throw assetMissing(assetIndex);
    return record;
  }

  /** An asset with the facts that change. */
  assetNow(assetIndex: number, group: Group | null): records.AssetRecord {
    const record = this.assets.view(group).get(assetIndex);
    if (record === undefined) throw assetMissing(assetIndex);
    return record;
  }

  /** Whether the asset is an ERC-1155 token of a scheme that is not this project's own. */
  readonly isForeign = (assetIndex: number): boolean =>
    this.standards[assetIndex] === "erc1155" &&
    this.assetAt(assetIndex).mintingBlobScheme !== "mintmark";

  putAsset(group: Group, record: records.AssetRecord): void {
    this.standards[record.assetIndex] = record.standard;
    this.assets.set(group, record);
  }
}

function assetMissing(assetIndex: number): MintmarkError {
  return new MintmarkError("store_corrupt", `Asset ${assetIndex} is missing.`);
}

export function enablementId(applicationIndex: number, assetIndex: number): string {
  return `${applicationIndex}:${assetIndex}`;
}
