import { afterAll, describe, expect, test } from "vitest";
import type { Asset } from "../../core/index.ts";
import { type Answer, createWorld } from "./fixture.ts";

const IMAGE = `ipfs://${"b".repeat(59)}/7.png`;
const SEVEN = { name: "Seven", image: IMAGE, attributes: [{ trait_type: "Suit", value: "red" }] };

// The clock stands, so that no unit of the rate limit comes back.
const world = await createWorld({ now: () => 0 });
const { engine, applicationId } = world;
const reserved = async (standard: Asset["standard"], contractAddress: `0x${string}`) => {
  const names = { name: "Card", symbol: "CARD" };
  const added = await engine.assets.add({ standard, contractAddress, ...names, applicationId });
  return engine.operator.recordRegistered(added.assetId);
};
const card = await reserved("erc721", `0x${"ca".repeat(20)}`);
const item = await reserved("erc1155", `0x${"cb".repeat(20)}`);
afterAll(() => world[Symbol.asyncDispose]());

const own = (asset: Asset, path: string) => `/api/v1/assets/${asset.assetId}${path}`;
const put = (asset: Asset, path: string, body?: unknown) =>
  world.send("PUT", own(asset, path), body === undefined ? {} : { body });
const served = (asset: Asset, path = "", headers: Record<string, string> = {}) =>
  world.send("GET", `/public/v1/metadata/${asset.assetId}${path}`, { key: null, headers });

describe("the metadata of a token", () => {
  test("is set, read back, and served without a key", async () => {
    const set = await put(card, "/tokens/7/metadata", SEVEN);
    expect(set.body).toMatchObject({ tokenId: "7", metadata: SEVEN, frozen: false, hidden: false });
    expect((await world.send("GET", own(card, "/tokens/7/metadata"))).body).toEqual(set.body);
    const answer = await served(card, "/7");
    expect(answer.body).toEqual(SEVEN);
    expect(answer.headers).toMatchObject({
      "content-type": "application/json; charset=utf-8",
      "access-control-allow-origin": "*",
      "cache-control": "public, max-age=60",
      "cross-origin-resource-policy": "cross-origin",
    });
    expect((await served(card, "/8")).body).toMatchObject({
      code: "metadata_not_found",
      status: 404,
    });
  });

  test("is sent again only when it has changed", async () => {
    await put(card, "/tokens/7/metadata", SEVEN);
    const { etag } = (await served(card, "/7")).headers;
    const again = await served(card, "/7", { "if-none-match": `"other", W/${etag}` });
    expect([again.status, again.text, again.headers.etag]).toEqual([304, "", etag]);
    await put(card, "/tokens/7/metadata", { name: "Changed" });
    expect((await served(card, "/7", { "if-none-match": String(etag) })).body).toEqual({
      name: "Changed",
    });
  });

  test("can be cached for ever once it is frozen", async () => {
    await put(card, "/tokens/9/metadata", SEVEN);
    expect((await put(card, "/metadata/frozen", { tokenIds: ["9"] })).body).toEqual({ tokens: 1 });
    expect((await served(card, "/9")).headers["cache-control"]).toBe(
      "public, max-age=31536000, immutable",
    );
    expect((await put(card, "/tokens/9/metadata", { name: "New" })).body).toMatchObject({
      code: "metadata_frozen",
    });
    expect((await put(card, "/metadata/frozen", { tokenIds: ["404"] })).body).toMatchObject({
      code: "metadata_not_found",
      errors: [{ pointer: "/tokenIds/0" }],
    });
  });

  test("is set for a thousand tokens at once, at their cost", async () => {
    const lore = "x".repeat(200);
    const tokens = Array.from({ length: 1_000 }, (_, i) => ({
      tokenId: String(5_000 + i),
      metadata: { name: `#${i}`, lore },
    }));
    const left = async (answer: Promise<Answer>) =>
      Number(/r=(\d+)/.exec(String((await answer).headers.ratelimit))?.[1]);
    const before = await left(world.send("GET", own(card, "")));
    const answer = world.send("POST", own(card, "/metadata"), { body: { tokens } });
    expect((await answer).body).toEqual({ tokens: 1_000 });
    expect(before - (await left(answer))).toBe(1_000);
    expect((await served(card, "/5999")).body).toEqual({ name: "#999", lore });
    const bad = [
      { tokenId: "1", metadata: SEVEN },
      { tokenId: "2", metadata: { image: "http://plain" } },
    ];
    expect(
      (await world.send("POST", own(card, "/metadata"), { body: { tokens: bad } })).body,
    ).toMatchObject({
      code: "validation_failed",
      errors: [{ pointer: "/tokens/1/metadata/image" }],
    });
    expect((await served(card, "/1")).status).toBe(404);
  });

  test("is found by a sealed vault, or its contract's where it has none", async () => {
    await put(item, "/tokens/55/metadata", SEVEN);
    const entry = {
      assetId: item.assetId,
      tokenId: "55",
      amount: 1,
      dataAvailabilityMode: "zk-rollup",
    };
    const coins = { assetId: world.erc20.assetId, amount: 1, dataAvailabilityMode: "zk-rollup" };
    const bare = { ...entry, tokenId: "56" };
    const body = { users: [{ userId: world.users[0], mints: [entry, coins, bare] }] };
    const { vaults } = (await world.send("POST", "/api/v1/mint", { body })).body;
    const at = (i: number) =>
      world.send("GET", `/public/v1/vaults/${vaults[i].vaultId}/metadata`, { key: null });
    expect((await at(0)).body).toMatchObject({ code: "proof_not_ready" });
    await world.engine.operator.seal("zk-rollup");
    expect((await at(0)).body).toEqual(SEVEN);
    expect((await at(1)).body).toEqual({
      name: "Token erc20",
      symbol: "ERC20",
      decimals: 0,
      quantum: "1",
    });
    expect((await at(2)).body).toMatchObject({ name: "Card", symbol: "CARD" });
  });

  test("needs a key that mints, of the application that the asset is reserved for", async () => {
    const path = own(card, "/tokens/7/metadata");
    const reader = await world.newKey(["read"]);
    expect((await world.send("PUT", path, { key: reader, body: SEVEN })).body).toMatchObject({
      code: "scope_missing",
    });
    const other = await world.send("PUT", path, { key: world.otherKey, body: SEVEN });
    expect(other.body).toMatchObject({ code: "asset_not_found" });
    expect((await put(world.erc721, "/tokens/7/metadata", SEVEN)).body).toMatchObject({
      code: "asset_shared",
      status: 409,
    });
  });
});

describe("the metadata of an asset", () => {
  test("is served for contractURI, with name and symbol", async () => {
    expect((await served(item)).body).toEqual({ name: "Card", symbol: "CARD" });
    const contract = { image: IMAGE, external_link: "https://cards.example" };
    expect((await put(item, "/collection", { contractMetadata: contract })).body).toMatchObject({
      contractMetadata: contract,
      placeholder: null,
    });
    expect((await served(item)).body).toEqual({ name: "Card", symbol: "CARD", ...contract });
    expect(
      (await put(item, "/collection", { contractMetadata: { image: "x" } })).body,
    ).toMatchObject({
      errors: [{ pointer: "/contractMetadata/image" }],
    });
    const unknown = await world.send("GET", `/public/v1/metadata/${world.applicationId}`, {
      key: null,
    });
    expect(unknown.body).toMatchObject({ code: "asset_not_found" });
  });
});
