import { asset, assetPage, assetQuery, standardsOf } from "../schemas/assets.ts";
import { type Endpoint, endpoint, json } from "./api/endpoint.ts";

const oneAsset = json(200, "The asset.", asset);

export const assetEndpoints: readonly Endpoint[] = [
  endpoint("Assets", "read", "GET /api/v1/assets", "listAssets", {
    summary: "The operator's assets, as shown to the application",
    query: assetQuery,
    success: json(200, "One page.", assetPage),
    async handle({ engine, applicationId, query: { assetType, ...rest } }) {
      const filter = assetType === undefined ? rest : { ...rest, standard: standardsOf(assetType) };
      return await engine.assets.list(applicationId, filter);
    },
  }),
  endpoint("Assets", "read", "GET /api/v1/assets/{assetId}", "getAsset", {
    summary: "One asset",
    success: oneAsset,
    errors: ["asset_not_found"],
    handle: ({ engine, applicationId, params }) => engine.assets.get(applicationId, params.assetId),
  }),
  endpoint("Assets", "assets", "PUT /api/v1/assets/{assetId}/enablement", "enableAsset", {
    summary: "Enable an asset for the application",
    success: oneAsset,
    errors: ["asset_not_found", "asset_not_whitelisted"],
    handle: ({ engine, applicationId, params }) => engine.assets.enable(applicationId, params.assetId),
  }),
  endpoint("Assets", "assets", "DELETE /api/v1/assets/{assetId}/enablement", "disableAsset", {
    summary: "Disable an asset for the application",
    description: "Minted tokens stay; only new mints are refused.",
    success: oneAsset,
    errors: ["asset_not_found"],
    handle: ({ engine, applicationId, params }) => engine.assets.disable(applicationId, params.assetId),
  }),
];
