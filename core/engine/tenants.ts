import { listOf } from "../ledger/list.ts";
import type { Tenants } from "../tenant-types.ts";
import { authenticate, issueKey, keyView, revokeKey } from "../tenants/api-keys.ts";
import { applicationView, createApplication, suspendApplication } from "../tenants/applications.ts";
import {
  addAsset,
  assetView,
  durableAsset,
  listAssets,
  markAssetRegistered,
  setEnabled,
  setMintingFault,
  whitelistAsset,
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
    suspendApplication: async (applicationId, suspended, wait) =>
      suspendApplication(context.ledger, applicationId, suspended, wait?.signal),

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
    whitelistAsset: async (assetId, whitelisted, wait) =>
      whitelistAsset(context.ledger, assetId, whitelisted, wait?.signal),
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
      return assetView(ledger, durableAsset(ledger, assetId), applicationIndex);
    },
    assets: (applicationId, filter = {}) =>
      listOf(filter, async (at) => listAssets(context.ledger, context.cursors, applicationId, at)),
  };
}
