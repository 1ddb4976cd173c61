import type { WaitOptions } from "../abort.ts";
import type { List, PageOptions } from "../ledger/list.ts";
import { listOf } from "../ledger/list.ts";
import type { Address, ApiKey, Application, Asset, Principal, User, Uuid } from "../model.ts";
import type { IssuedKey, NewKey } from "../tenants/api-keys.ts";
import { authenticate, issueKey, keyView, revokeKey } from "../tenants/api-keys.ts";
import { applicationView, createApplication, setSuspended } from "../tenants/applications.ts";
import type { AssetFilter, NewAsset } from "../tenants/assets.ts";
import {
  addAsset,
  assetView,
  durableAsset,
  listAssets,
  markAssetRegistered,
  setEnabled,
  setMintingFault,
  setWhitelisted,
} from "../tenants/assets.ts";
import { createUser, listUsers, readUser } from "../tenants/users.ts";
import type { EngineContext } from "./context.ts";

export function tenants(context: EngineContext): Tenants {
  return {
    createApplication: async (application, wait) => createApplication(context.ledger, application, wait?.signal),
    application: async (applicationId) => applicationView(context.ledger.application(applicationId)),
    async *applications() {
      for (const record of context.ledger.applications.values()) yield applicationView(record);
    },
    suspendApplication: async (applicationId, wait) => setSuspended(context.ledger, applicationId, true, wait?.signal),
    resumeApplication: async (applicationId, wait) => setSuspended(context.ledger, applicationId, false, wait?.signal),

    issueKey: async (applicationId, key = {}, wait) => issueKey(context.ledger, applicationId, key, wait?.signal),
    async *keys(applicationId) {
      const { ledger } = context;
      const { applicationIndex } = ledger.application(applicationId);
      for (const key of ledger.keys.values()) {
        if (key.applicationIndex === applicationIndex) yield keyView(ledger, key);
      }
    },
    revokeKey: async (keyId, wait) => revokeKey(context.ledger, keyId, wait?.signal),
    authenticate: async (token) => authenticate(context.ledger, token),

    addAsset: async (asset, wait) => addAsset(context.ledger, asset, wait?.signal),
    async *allAssets() {
      const { ledger } = context;
      for (const asset of ledger.assets.values()) yield assetView(ledger, asset, null);
    },
    whitelistAsset: async (assetId, wait) => setWhitelisted(context.ledger, assetId, true, wait?.signal),
    unlistAsset: async (assetId, wait) => setWhitelisted(context.ledger, assetId, false, wait?.signal),
    markAssetRegistered: async (assetId, facts = {}, wait) =>
      markAssetRegistered(context.ledger, assetId, facts.minterLocked ?? null, wait?.signal),
    setMintingFault: async (assetId, fault, wait) => setMintingFault(context.ledger, assetId, fault, wait?.signal),

    createUser: async (applicationId, user, wait) => createUser(context.ledger, applicationId, user, wait?.signal),
    user: async (applicationId, userId) => readUser(context.ledger, applicationId, userId),
    users: (applicationId, page = {}) =>
      listOf(page, async (at) => listUsers(context.ledger, context.cursors, applicationId, at)),

    enableAsset: async (applicationId, assetId, wait) =>
      setEnabled(context.ledger, applicationId, assetId, true, wait?.signal),
    disableAsset: async (applicationId, assetId, wait) =>
      setEnabled(context.ledger, applicationId, assetId, false, wait?.signal),
    async asset(applicationId, assetId) {
      const { ledger } = context;
      const { applicationIndex } = ledger.application(applicationId);
      return assetView(ledger, durableAsset(ledger, applicationIndex, assetId), applicationIndex);
    },
    assets: (applicationId, filter = {}) =>
      listOf(filter, async (at) => listAssets(context.ledger, context.cursors, applicationId, at)),
  };
}

/** Applications, their keys and users, and the assets that they may mint. */
export interface Tenants {
  createApplication(
    application: { readonly applicationId?: Uuid; readonly name: string },
    wait?: WaitOptions,
  ): Promise<Application>;
  application(applicationId: Uuid): Promise<Application>;
  applications(): AsyncIterable<Application>;
  /** Refuses the application's keys until it is let in again by {@link Tenants.resumeApplication}. */
  suspendApplication(applicationId: Uuid, wait?: WaitOptions): Promise<Application>;
  resumeApplication(applicationId: Uuid, wait?: WaitOptions): Promise<Application>;
  issueKey(applicationId: Uuid, key?: NewKey, wait?: WaitOptions): Promise<IssuedKey>;
  keys(applicationId: Uuid): AsyncIterable<ApiKey>;
  revokeKey(keyId: string, wait?: WaitOptions): Promise<ApiKey>;
  /** Makes a token known. It is minted once whitelisted, registered and enabled; one of an application is enabled at once. */
  addAsset(asset: NewAsset, wait?: WaitOptions): Promise<Asset>;
  /** Every known asset, `enabled` false. */
  allAssets(): AsyncIterable<Asset>;
  /** Lets applications enable the asset. */
  whitelistAsset(assetId: Uuid, wait?: WaitOptions): Promise<Asset>;
  /** Takes it off the whitelist: nothing of it is minted any more. */
  unlistAsset(assetId: Uuid, wait?: WaitOptions): Promise<Asset>;
  /**
   * What the settlement layer found: why L1 would refuse to mint of the asset, or null when it would not. With a fault nothing of it is
   * minted (`mint_unwithdrawable`), and `unavailableReason` tells it.
   */
  setMintingFault(assetId: Uuid, fault: string | null, wait?: WaitOptions): Promise<Asset>;
  /** The settlement layer read the asset in L1's registry. */
  markAssetRegistered(
    assetId: Uuid,
    facts?: { readonly minterLocked?: boolean | null },
    wait?: WaitOptions,
  ): Promise<Asset>;

  authenticate(token: string): Promise<Principal>;
  /** Idempotent for the same id and address; another address for a known id is `user_exists`. */
  createUser(
    applicationId: Uuid,
    user: { readonly userId?: Uuid; readonly ownerAddress: Address },
    wait?: WaitOptions,
  ): Promise<User>;
  user(applicationId: Uuid, userId: Uuid): Promise<User>;
  users(applicationId: Uuid, page?: PageOptions): List<User>;
  enableAsset(applicationId: Uuid, assetId: Uuid, wait?: WaitOptions): Promise<Asset>;
  disableAsset(applicationId: Uuid, assetId: Uuid, wait?: WaitOptions): Promise<Asset>;
  asset(applicationId: Uuid, assetId: Uuid): Promise<Asset>;
  assets(applicationId: Uuid, filter?: AssetFilter): List<Asset>;
}
