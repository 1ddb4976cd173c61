import { describe, expect } from "vitest";
import type { JsonObject, Uuid } from "../../../core/index.ts";
import {
  type Fixture,
  fixture,
  knownAsset,
  mintOf,
  openTest,
  refusal,
  requestOf,
} from "./fixture.ts";
import { it } from "./it.ts";

const IMAGE = `ipfs://${"b".repeat(59)}/1.png`;
const ONE = {
  name: "One",
  description: "the first",
  image: IMAGE,
  attributes: [{ trait_type: "Colour", value: "red" }],
};
const TWO = { name: "Two" };

/** An ERC-721 asset that is reserved for the tenant, and what most tests do with it. */
async function owned(standard: "erc721" | "erc1155" | "erc20" = "erc721") {
  const made = await fixture();
  const { engine, tenant } = made;
  const { applicationId } = tenant;
  const assetId = await knownAsset(engine, standard, { applicationId });
  return {
    ...made,
    assetId,
    set: (tokenId: bigint, metadata: unknown) =>
      engine.metadata.set(applicationId, assetId, { tokenId, metadata }),
    served: async (tokenId: bigint) =>
      JSON.parse((await engine.metadata.served(assetId, tokenId)).json) as unknown,
    mint: (text: string | number, metadata: unknown, more: object = {}) =>
      engine.mint(
        tenant.principal,
        requestOf(tenant.users[0], {
          ...mintOf(assetId, text),
          metadata: metadata as JsonObject,
          ...more,
        }),
      ),
  };
}

async function reopened(
  { engine, database }: Fixture,
  read: (engine: Fixture["engine"]) => Promise<unknown>,
) {
  await engine.close();
  await using again = await openTest(database);
  expect((await again.operator.verify()).problems).toEqual([]);
  return read(again);
}

describe("the metadata of a token", () => {
  it("is set before its mint or later, and served as it is", async () => {
    const made = await owned();
    await made.set(1n, ONE);
    await made.mint(1, undefined);
    expect(await made.served(1n)).toEqual(ONE);
    await made.set(1n, TWO);
    expect(await made.served(1n)).toEqual(TWO);
    expect(await refusal(made.served(2n))).toMatchObject({ code: "metadata_not_found" });
    expect(
      await made.engine.metadata.get(made.tenant.applicationId, made.assetId, 1n),
    ).toMatchObject({
      metadata: TWO,
      frozen: false,
      hidden: false,
      updatedAt: made.clock.now,
    });
    expect(
      await reopened(made, async (engine) => (await engine.metadata.served(made.assetId, 1n)).json),
    ).toBe(JSON.stringify(TWO));
  });

  it("is set at mint, with the same write, and a repetition of the mint changes nothing", async () => {
    const made = await owned();
    const { engine, tenant, assetId } = made;
    const request = requestOf(tenant.users[0], { ...mintOf(assetId, 7), metadata: ONE });
    const first = await engine.mint(tenant.principal, request, { idempotencyKey: "k" });
    await made.set(7n, TWO);
    const again = await engine.mint(tenant.principal, request, { idempotencyKey: "k" });
    expect(again.mintId).toBe(first.mintId);
    expect(await made.served(7n)).toEqual(TWO);
    const other = requestOf(tenant.users[0], { ...mintOf(assetId, 7), metadata: TWO });
    expect(
      await refusal(engine.mint(tenant.principal, other, { idempotencyKey: "k" })),
    ).toMatchObject({
      code: "idempotency_key_reused",
    });
    expect(
      await reopened(made, async (opened) => (await opened.metadata.served(assetId, 7n)).json),
    ).toBe(JSON.stringify(TWO));
  });

  it("of a refused mint is not set", async () => {
    const made = await owned();
    await made.mint(1, ONE);
    const twice = made.mint(1, TWO);
    expect(await refusal(twice)).toEqual({
      code: "token_already_minted",
      issues: { "/users/0/mints/0/mintingBlob": "token_already_minted" },
    });
    expect(await made.served(1n)).toEqual(ONE);
  });

  it("goes to the ids that the engine gives", async ({ engine, tenant }) => {
    const { applicationId } = tenant;
    const { assetId } = await engine.assets.add({
      standard: "erc721",
      contractAddress: `0x${"c1".repeat(20)}`,
      name: "Numbered",
      symbol: "NUM",
      applicationId,
      firstTokenId: 10n,
      dataAvailabilityMode: "validium",
    });
    await engine.operator.recordRegistered(assetId);
    await engine.metadata.set(applicationId, assetId, {
      tokenId: 11n,
      metadata: { name: "set before" },
    });
    // An id that the engine may give next could otherwise be one that no mint can describe.
    expect(await refusal(engine.metadata.freezeTokens(applicationId, assetId, [11n]))).toEqual({
      code: "metadata_not_found",
      issues: { "/tokenIds/0": "metadata_not_found" },
    });
    const mint = (...mints: object[]) =>
      engine.mint(tenant.principal, {
        users: [{ userId: tenant.users[0]?.userId, mints }],
      } as unknown);
    await mint({ assetId, metadata: ONE }, { assetId, metadata: TWO }, { assetId, quantity: 2 });
    const read = async (id: bigint) =>
      JSON.parse((await engine.metadata.served(assetId, id)).json) as unknown;
    expect([await read(10n), await read(11n)]).toEqual([ONE, TWO]);
    expect(await refusal(mint({ assetId, quantity: 2, metadata: ONE }))).toEqual({
      code: "validation_failed",
      issues: { "/users/0/mints/0/metadata": "validation_failed" },
    });
    await engine.metadata.freezeTokens(applicationId, assetId, [11n]);
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  it("never changes once it is frozen, by no way", async () => {
    const made = await owned("erc1155");
    const { engine, tenant, assetId } = made;
    const { applicationId } = tenant;
    expect(await refusal(engine.metadata.freezeTokens(applicationId, assetId, [1n]))).toMatchObject(
      {
        code: "metadata_not_found",
      },
    );
    await made.set(1n, ONE);
    await made.set(2n, TWO);
    expect((await engine.metadata.served(assetId, 1n)).final).toBe(false);
    await engine.metadata.freezeTokens(applicationId, assetId, [1n, 1n]);
    await engine.metadata.freezeTokens(applicationId, assetId, [1n]);
    expect((await engine.metadata.served(assetId, 1n)).final).toBe(true);
    expect(await refusal(made.set(1n, TWO))).toMatchObject({ code: "metadata_frozen" });
    const both = [2n, 1n].map((tokenId) => ({ tokenId, metadata: { name: "new" } }));
    expect(await refusal(engine.metadata.setAll(applicationId, assetId, both))).toEqual({
      code: "metadata_frozen",
      issues: { "/tokens/1/metadata": "metadata_frozen" },
    });
    expect(await refusal(made.mint(1, TWO))).toEqual({
      code: "metadata_frozen",
      issues: { "/users/0/mints/0/metadata": "metadata_frozen" },
    });
    // A repetition is no change.
    await made.set(1n, ONE);
    await made.mint(1, ONE);
    expect(await made.served(1n)).toEqual(ONE);
    expect(await made.served(2n)).toEqual(TWO);
    expect(
      await reopened(made, async (again) => (await again.metadata.served(assetId, 1n)).final),
    ).toBe(true);
  });

  it("stays shown once it is frozen, also when its issuer hides the other tokens afterwards", async () => {
    const made = await owned();
    const { engine, tenant, assetId } = made;
    const { applicationId } = tenant;
    const hide = (placeholder: unknown) =>
      engine.metadata.changeCollection(applicationId, assetId, { placeholder });
    await made.set(1n, ONE);
    await made.set(2n, TWO);
    await engine.metadata.freezeTokens(applicationId, assetId, [1n]);
    await hide({ name: "Mystery" });
    expect(await made.served(1n)).toEqual(ONE);
    expect((await engine.metadata.served(assetId, 1n)).final).toBe(true);
    expect(await engine.metadata.get(applicationId, assetId, 1n)).toMatchObject({
      frozen: true,
      hidden: false,
    });
    expect(await made.served(2n)).toEqual({ name: "Mystery" });
    // To freeze a hidden token would show it.
    const freeze = (...ids: bigint[]) => engine.metadata.freezeTokens(applicationId, assetId, ids);
    expect(await refusal(freeze(1n, 2n))).toMatchObject({ code: "metadata_hidden" });
    await freeze(1n);
    await hide(null);
    await freeze(2n);
    expect(
      await reopened(made, async (again) => (await again.metadata.served(assetId, 2n)).final),
    ).toBe(true);
  });

  it("of an id that a request names twice is the last one", async () => {
    const made = await owned("erc1155");
    const { engine, tenant, assetId } = made;
    await made.set(1n, ONE);
    const named = (metadata: JsonObject) => ({ ...mintOf(assetId, 1), metadata });
    await engine.mint(tenant.principal, requestOf(tenant.users[0], named(TWO), named(ONE)));
    expect(await made.served(1n)).toEqual(ONE);
    await engine.mint(tenant.principal, requestOf(tenant.users[0], named(ONE), named(TWO)));
    expect(
      await reopened(made, async (again) => (await again.metadata.served(assetId, 1n)).json),
    ).toBe(JSON.stringify(TWO));
  });
});

describe("the metadata of an asset", () => {
  it("hides all tokens behind a placeholder until the reveal, and freezes them", async () => {
    const made = await owned();
    const { engine, tenant, assetId } = made;
    const change = (changes: object) =>
      engine.metadata.changeCollection(tenant.applicationId, assetId, changes);
    await made.set(1n, ONE);
    await change({ placeholder: { name: "Mystery" } });
    for (const id of [1n, 2n]) expect(await made.served(id)).toEqual({ name: "Mystery" });
    expect(await engine.metadata.get(tenant.applicationId, assetId, 1n)).toMatchObject({
      metadata: ONE,
      hidden: true,
    });
    await made.set(2n, TWO);
    await engine.metadata.freeze(tenant.applicationId, assetId);
    // Frozen, but not shown yet: nobody may cache it for ever.
    expect((await engine.metadata.served(assetId, 1n)).final).toBe(false);
    for (const call of [
      made.set(1n, TWO),
      made.set(3n, TWO),
      made.mint(3, TWO),
      change({ placeholder: TWO }),
    ])
      expect(await refusal(call)).toMatchObject({ code: "metadata_frozen" });
    await made.mint(3, undefined);
    expect(await change({ placeholder: null })).toMatchObject({ placeholder: null, frozen: true });
    expect([await made.served(1n), await made.served(2n)]).toEqual([ONE, TWO]);
    expect(await refusal(change({ placeholder: TWO }))).toMatchObject({ code: "metadata_frozen" });
    expect((await engine.metadata.served(assetId, 1n)).final).toBe(true);
    expect(
      await reopened(made, async (again) => (await again.metadata.served(assetId, 2n)).final),
    ).toBe(true);
  });

  it("has the asset's name and symbol, and its own fields", async () => {
    const made = await owned("erc20");
    const { engine, tenant, assetId } = made;
    const contract = async () =>
      JSON.parse((await engine.metadata.servedContract(assetId)).json) as unknown;
    expect(await contract()).toEqual({ name: "erc20", symbol: "erc20" });
    const about = { name: "Gold", image: IMAGE, external_link: "https://gold.example" };
    await engine.metadata.changeCollection(tenant.applicationId, assetId, {
      contractMetadata: about,
    });
    expect(await contract()).toEqual({ ...about, symbol: "erc20" });
    expect(await engine.metadata.getCollection(tenant.applicationId, assetId)).toMatchObject({
      contractMetadata: about,
    });
    expect(await refusal(made.set(1n, ONE))).toMatchObject({ code: "validation_failed" });
    expect(
      await refusal(
        engine.mint(
          tenant.principal,
          requestOf(tenant.users[0], { ...mintOf(assetId, ""), metadata: ONE }),
        ),
      ),
    ).toEqual({
      code: "validation_failed",
      issues: { "/users/0/mints/0/metadata": "validation_failed" },
    });
    expect(
      await reopened(made, async (again) => (await again.metadata.servedContract(assetId)).json),
    ).toContain("Gold");
  });

  it("outlives a change of the asset before its first mint", async () => {
    const made = await owned();
    await made.set(1n, ONE);
    await made.engine.assets.change(made.assetId, { name: "Renamed" });
    expect(await made.served(1n)).toEqual(ONE);
  });

  it("is not for an application that shares the asset, or that cannot see it", async () => {
    const made = await owned();
    const { engine, tenant, assets, assetId } = made;
    const other = await engine.applications.create({ name: "other" });
    const token = { tokenId: 1n, metadata: ONE };
    const of = (applicationId: Uuid, asset: Uuid) => [
      engine.metadata.set(applicationId, asset, token),
      engine.metadata.freezeTokens(applicationId, asset, [1n]),
      engine.metadata.changeCollection(applicationId, asset, { contractMetadata: ONE }),
      engine.metadata.freeze(applicationId, asset),
    ];
    for (const call of of(tenant.applicationId, assets.erc721))
      expect(await refusal(call)).toMatchObject({ code: "asset_shared" });
    for (const call of of(other.applicationId, assetId))
      expect(await refusal(call)).toMatchObject({ code: "asset_not_found" });
    const shared = requestOf(tenant.users[0], { ...mintOf(assets.erc721, 1), metadata: ONE });
    expect(await refusal(engine.mint(tenant.principal, shared))).toEqual({
      code: "asset_shared",
      issues: { "/users/0/mints/0/metadata": "asset_shared" },
    });
    expect(await refusal(engine.metadata.served(other.applicationId, 1n))).toMatchObject({
      code: "asset_not_found",
    });
  });
});

describe("the form of metadata", () => {
  const deep = (levels: number): unknown => (levels === 0 ? "end" : [deep(levels - 1)]);
  it.each<[string, unknown, string]>([
    ["no object", [], ""],
    ["a text", "One", ""],
    ["a value that JSON lacks", { amount: 1n }, "/amount"],
    ["a number that is none", { level: Number.NaN }, "/level"],
    ["an object with a class", { since: new Date(0) }, "/since"],
    ["deep nesting", { properties: deep(6) }, "/properties/0/0/0/0/0"],
    ["many values", { properties: Array(1_000).fill(1) }, "/properties/998"],
    ["too many bytes", { lore: "ü".repeat(4_100) }, ""],
    ["a name that is none", { name: 7 }, "/name"],
    ["a long name", { name: "x".repeat(201) }, "/name"],
    ["a plain http image", { image: "http://example.com/1.png" }, "/image"],
    ["a script as image", { image: "javascript:alert(1)" }, "/image"],
    ["an SVG in the address", { image: "data:image/svg+xml;base64,PHN2Zz4=" }, "/image"],
    ["a page in the address", { image: "data:text/html;base64,PHN2Zz4=" }, "/image"],
    ["an address with a password", { image: "https://user:secret@example.com/1.png" }, "/image"],
    ["an address with a line break", { image: "https://example.com/\n1.png" }, "/image"],
    ["an ipfs address without a hash", { image: "ipfs://1.png" }, "/image"],
    ["a picture as animation", { animation_url: "data:image/png;base64,AAAA" }, "/animation_url"],
    ["a link to ipfs", { external_url: IMAGE }, "/external_url"],
    ["attributes that are no list", { attributes: {} }, "/attributes"],
    ["too many attributes", { attributes: Array(101).fill({ value: 1 }) }, "/attributes"],
    ["an attribute without a value", { attributes: [{ trait_type: "Colour" }] }, "/attributes"],
    [
      "an attribute with a list",
      { attributes: [{ trait_type: "Colour", value: [] }] },
      "/attributes",
    ],
    ["a key with a slash", { "a/b": { "c~d": 1n } }, "/a~1b/c~0d"],
  ])("refuses %s, at its place", async (_, metadata, pointer) => {
    const made = await owned();
    await using _engine = made.engine;
    expect((await refusal(made.set(1n, metadata))).issues).toEqual({
      [pointer]: "validation_failed",
    });
    const place = `/users/0/mints/0/metadata${pointer}`;
    expect((await refusal(made.mint(1, metadata))).issues).toEqual({
      [place]: "validation_failed",
    });
  });

  it.each<[string, object]>([
    ["https", { image: "https://example.com/a%20b.png?size=1#x" }],
    ["ipfs", { image: IMAGE, animation_url: `ipfs://${"Q".repeat(46)}` }],
    ["pixels in the address", { image: `data:image/png;base64,${"A".repeat(100)}==` }],
    [
      "fields of other tools",
      { dna: "0xff", edition: 3, compiler: "art", properties: { level: { max: 1.5 } } },
    ],
    ["nothing", {}],
    ["a key that objects have", JSON.parse('{"toString":"x","__proto__":{"a":1}}') as object],
    ["text of all languages", { name: "Дракон 🐉", description: "a\nb" }],
  ])("takes %s", async (_, metadata) => {
    const made = await owned();
    await made.set(1n, metadata);
    expect(JSON.stringify(await made.served(1n))).toBe(JSON.stringify(metadata));
    await made.mint(2, metadata);
    expect(await made.served(2n)).toEqual(await made.served(1n));
  });
});

it("bounds the tokens of a call, and refuses one that is named twice", async () => {
  const { engine, tenant, assetId } = await owned();
  const setAll = (ids: readonly bigint[]) =>
    engine.metadata.setAll(
      tenant.applicationId,
      assetId,
      ids.map((tokenId) => ({ tokenId, metadata: TWO })),
    );
  const many = Array.from({ length: 1_001 }, (_, i) => BigInt(i));
  for (const ids of [[], many, [1n, 1n], [-1n], [1n << 256n]])
    expect(await refusal(setAll(ids))).toMatchObject({ code: "validation_failed" });
  await setAll(many.slice(1));
  expect((await engine.metadata.served(assetId, 1_000n)).json).toBe(JSON.stringify(TWO));
});
