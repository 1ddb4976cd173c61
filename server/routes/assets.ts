import { asset, assetPage, assetParams, assetQuery, standardsOf } from "../schemas/assets.ts";
import { assetToWire, pageToWire } from "../schemas/wire.ts";
import { type Endpoint, endpoint } from "./api/endpoint.ts";

const oneAsset = { status: 200, description: "The asset.", schemas: [asset] } as const;

export const assetEndpoints: readonly Endpoint[] = [
  endpoint("GET /api/v1/assets", "listAssets", {
    tag: "Assets",
    access: "read",
    summary: "The operator's assets, as shown to the application",
    query: assetQuery,
    success: { status: 200, description: "One page.", schemas: [assetPage] },
    async handle({ service: { engine }, principal, query: { assetType, ...rest } }) {
      const filter = assetType === undefined ? rest : { ...rest, standard: standardsOf(assetType) };
      return pageToWire(await engine.assets.list(principal.applicationId, filter), assetToWire);
    },
  }),
  endpoint("GET /api/v1/assets/{assetId}", "getAsset", {
    tag: "Assets",
    access: "read",
    summary: "One asset",
    params: assetParams,
    success: oneAsset,
    errors: ["asset_not_found"],
    async handle({ service: { engine }, principal, params }) {
      return assetToWire(await engine.assets.get(principal.applicationId, params.assetId));
    },
  }),
  endpoint("PUT /api/v1/assets/{assetId}/enablement", "enableAsset", {
    tag: "Assets",
    access: "assets",
    summary: "Enable an asset for the application",
    params: assetParams,
    success: oneAsset,
    errors: ["asset_not_found", "asset_not_whitelisted"],
    async handle({ service: { engine }, principal, params }) {
      return assetToWire(await engine.assets.enable(principal.applicationId, params.assetId));
    },
  }),
  endpoint("DELETE /api/v1/assets/{assetId}/enablement", "disableAsset", {
    tag: "Assets",
    access: "assets",
    summary: "Disable an asset for the application",
    description: "Minted tokens stay; only new mints are refused.",
    params: assetParams,
    success: oneAsset,
    errors: ["asset_not_found"],
    async handle({ service: { engine }, principal, params }) {
      return assetToWire(await engine.assets.disable(principal.applicationId, params.assetId));
    },
  }),
];
