import { hashTypedData, type TypedDataDefinition } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { withdrawalListDigest } from "../../core/protocol/typed-data.ts";
import {
  type Answer,
  createWorld,
  refusal,
  SETTLEMENT,
  type SendOptions,
  signedIn,
  type World,
} from "./fixture.ts";

const owner = privateKeyToAccount(generatePrivateKey());
const stranger = privateKeyToAccount(generatePrivateKey());

let world: World;
let users: readonly [string, string];
let signIn: SendOptions;
beforeAll(async () => {
  world = await createWorld();
  const register = async (ownerAddress: string, key?: string) =>
    (await world.send("POST", "/api/v1/users", { body: { ownerAddress }, ...(key && { key }) }))
      .body.userId;
  users = [await register(owner.address), await register(owner.address, world.otherKey)];
  signIn = await signedIn(world, owner);
});
afterAll(() => world[Symbol.asyncDispose]());

/**
 * Vaults of ten units for the owner's user, each in a sealed batch of its own, unless it is to stay
 * open.
 */
async function vaults(
  count: number,
  { user = users[0], key = world.key, open = false } = {},
): Promise<string[]> {
  const ids: string[] = [];
  for (let i = 0; i < count; i++) {
    const mint = {
      mintingBlob: "",
      assetId: world.erc20.assetId,
      amount: 10,
      dataAvailabilityMode: "validium",
    };
    const { body } = await world.send("POST", "/api/v1/mint", {
      key,
      body: { users: [{ userId: user, mints: [mint] }] },
    });
    ids.push(body.vaults[0].vaultId);
    if (!open) await world.engine.operator.seal("validium");
  }
  return ids;
}

const prepare = (body: object, options: SendOptions = {}) =>
  world.send("POST", "/api/v1/withdrawals/prepare", { ...options, body });
/** Signs what was prepared, as a wallet does, and sends what the answer says. */
async function submitted({ body }: Answer, by = owner, options: SendOptions = {}): Promise<Answer> {
  const signature = await by.signTypedData(body.typedData as TypedDataDefinition);
  return world.send("POST", body.submit.path, {
    ...options,
    body: { ...body.submit.body, signature },
  });
}
const namesOf = (ids: readonly string[]) => ids.map((vaultId) => ({ vaultId }));
const codesOf = (refused: readonly { vaultId: string; error: { code: string } }[]) =>
  refused.map(({ vaultId, error }) => [vaultId, error.code]);

test("one vault is prepared as a list of one, plain JSON whose digest is the protocol's", async () => {
  const [vaultId = ""] = await vaults(1);
  const given = {
    vaults: [{ vaultId, quantity: "4" }],
    recipient: stranger.address,
    deadline: "1893456000",
  };
  const soon = String(Math.floor(Date.now() / 1000) + 3600);
  expect(refusal(await prepare(given))).toMatchObject({ code: "deadline_invalid" });
  const prepared = await prepare({ ...given, deadline: soon });
  const { ownerAddress, typedData, submit, refused } = prepared.body;
  expect([prepared.status, ownerAddress, refused]).toEqual([200, owner.address.toLowerCase(), []]);
  const message = {
    vaults: [{ vaultId, withdrawnBefore: "0", quantity: "4" }],
    ...{ recipient: stranger.address.toLowerCase(), deadline: soon },
  };
  expect(typedData).toMatchObject({
    primaryType: "WithdrawalList",
    message,
    domain: { chainId: 31_337 },
  });
  expect(Object.keys(typedData.types)).toEqual(["EIP712Domain", "WithdrawalList", "ListedVault"]);
  const digest = withdrawalListDigest(SETTLEMENT, {
    vaults: [{ vaultId: BigInt(vaultId), withdrawnBefore: 0n, quantity: 4n }],
    ...{ recipient: stranger.address, deadline: BigInt(soon) },
  });
  expect(hashTypedData(typedData)).toBe(digest);
  expect(submit.path).toBe("/api/v1/withdrawals");
  expect(await submitted(prepared)).toMatchObject({
    status: 202,
    body: { vaults: [{ vaultId, withdrawal: { quantity: "4", status: "accepted" } }] },
  });
});

test("several vaults are prepared as one list, without those that cannot be withdrawn", async () => {
  const [one = "", two = "", three = ""] = await vaults(3);
  const [foreign = ""] = await vaults(1, { user: users[1], key: world.otherKey });
  const [open = ""] = await vaults(1, { open: true });
  await submitted(await prepare({ vaults: namesOf([two]) }));
  const asked = [
    { vaultId: one },
    { vaultId: two },
    { vaultId: open },
    { vaultId: foreign },
    { vaultId: "77" },
  ];
  const prepared = await prepare({ vaults: [...asked, { vaultId: three, quantity: "3" }] });
  const { typedData, refused, submit, nextCursor } = prepared.body;
  expect(codesOf(refused)).toEqual([
    [two, "withdrawal_pending"],
    [open, "proof_not_ready"],
    [foreign, "vault_not_found"],
    ["77", "vault_not_found"],
  ]);
  const listed = [
    { vaultId: BigInt(one), withdrawnBefore: 0n, quantity: 10n },
    { vaultId: BigInt(three), withdrawnBefore: 0n, quantity: 3n },
  ];
  const deadline = BigInt(typedData.message.deadline);
  expect(Number(deadline) - Date.now() / 1000).toBeGreaterThan(6.9 * 86_400);
  expect(hashTypedData(typedData)).toBe(
    withdrawalListDigest(SETTLEMENT, { vaults: listed, recipient: owner.address, deadline }),
  );
  expect([submit.path, nextCursor]).toEqual(["/api/v1/withdrawals", null]);
  const { status, body } = await submitted(prepared);
  expect(status).toBe(202);
  expect(
    body.vaults.map(({ withdrawal }: { withdrawal: { quantity: string } }) => withdrawal.quantity),
  ).toEqual(["10", "3"]);
  expect(refusal(await prepare({ vaults: namesOf([one]) })).code).toBe("withdrawal_pending");
  expect(refusal(await prepare({ vaults: namesOf(["77"]) })).code).toBe("vault_not_found");
  await world.engine.operator.seal("validium");
  const nothing = { vaults: [{ vaultId: foreign, quantity: "0" }] };
  expect(refusal(await prepare(nothing, { key: world.otherKey })).errors).toEqual([
    "/vaults/0/quantity validation_failed",
  ]);
});

test("all of a token is prepared at once, and the rest after a full list", async () => {
  await using own = await createWorld();
  const { body: user } = await own.send("POST", "/api/v1/users", {
    body: { ownerAddress: owner.address },
  });
  const { erc721, erc20 } = own;
  const mints = Array.from({ length: 300 }, (_, i) => ({
    ...{ tokenId: String(i), assetId: erc721.assetId, amount: 1, dataAvailabilityMode: "validium" },
  }));
  await own.send("POST", "/api/v1/mint", { body: { users: [{ userId: user.userId, mints }] } });
  await own.engine.operator.seal("validium");
  const all = { ownerAddress: owner.address, assetId: erc721.assetId };
  const ask = (body: object) => own.send("POST", "/api/v1/withdrawals/prepare", { body });
  const first = (await ask(all)).body;
  expect(first.typedData.message.vaults).toHaveLength(256);
  const second = (await ask({ ...all, cursor: first.nextCursor })).body;
  expect([second.typedData.message.vaults.length, second.nextCursor]).toEqual([44, null]);
  const seventh = (await ask({ ...all, tokenId: "7" })).body;
  expect([seventh.typedData.primaryType, seventh.refused]).toEqual(["WithdrawalList", []]);
  expect(refusal(await ask({ ...all, assetId: erc20.assetId })).code).toBe("vault_not_found");
  for (const wrong of [
    {},
    { ownerAddress: owner.address },
    { ...all, vaults: [{ vaultId: "1" }] },
    { vaults: [] },
  ]) {
    expect(refusal(await ask(wrong))).toMatchObject({ status: 400, code: "validation_failed" });
  }
});

test("a signed-in owner withdraws its own whole vaults of every application, and follows them", async () => {
  const [mine = ""] = await vaults(1);
  const [others = ""] = await vaults(1, { user: users[1], key: world.otherKey });
  const ids = [mine, others];
  const ask = (vaultIds: readonly string[], options = signIn) =>
    world.send("POST", "/owner/v1/withdrawals/prepare", { ...options, body: { vaultIds } });
  const prepared = await ask(ids);
  expect(prepared.body.submit.path).toBe("/owner/v1/withdrawals");
  expect(prepared.body.typedData.primaryType).toBe("WithdrawalList");
  const part = structuredClone(prepared);
  part.body.typedData.message.vaults[0].quantity = "9";
  part.body.submit.body.vaults[0].quantity = "9";
  const { body: refused } = await submitted({ ...part }, owner, signIn);
  expect(codesOf(refused.vaults.filter(({ error }: { error: unknown }) => error))).toEqual([
    [mine, "amount_out_of_range"],
  ]);
  const again = await ask([mine]);
  const { status, body } = await submitted(again, owner, signIn);
  expect(status).toBe(202);
  expect(body.vaults).toEqual([
    { vaultId: mine, withdrawal: expect.objectContaining({ quantity: "10" }), error: null },
  ]);
  expect(body.vaults[0].withdrawal).not.toHaveProperty("userId");
  const query = [...ids, "77"].map((vaultId) => `vaultId=${vaultId}`).join("&");
  const follow = (options: SendOptions) =>
    world.send("GET", `/owner/v1/withdrawals?${query}`, options);
  expect((await follow(signIn)).body.vaults).toEqual([
    body.vaults.map(({ vaultId, withdrawal }: { vaultId: string; withdrawal: object }) => ({
      vaultId,
      withdrawal,
    }))[0],
    {
      vaultId: others,
      withdrawal: expect.objectContaining({ vaultId: others, status: "accepted" }),
    },
    { vaultId: "77", withdrawal: null },
  ]);
  // Each application finds its own.
  const { body: listed } = await world.send("GET", "/api/v1/withdrawals?limit=1", {
    key: world.otherKey,
  });
  expect(listed.data[0]).toMatchObject({ vaultId: others, userId: users[1] });
});

test("an owner's sign-in withdraws nobody else's vaults, and costs a unit for each", async () => {
  const [vaultId = ""] = await vaults(1);
  const foreign = await signedIn(world, stranger);
  const ask = (options: SendOptions) =>
    world.send("POST", "/owner/v1/withdrawals/prepare", {
      ...options,
      body: { vaultIds: [vaultId] },
    });
  const prepared = await ask(signIn);
  expect(refusal(await ask(foreign)).code).toBe("vault_not_found");
  expect(refusal(await submitted(prepared, stranger, foreign)).code).toBe("vault_not_found");
  expect(refusal(await submitted(prepared, stranger, signIn)).code).toBe("signature_invalid");
  expect(refusal(await ask({ key: null })).code).toBe("credentials_missing");
  expect(refusal(await ask({})).code).toBe("credentials_missing");
  const unknown = await world.send("GET", `/owner/v1/withdrawals?vaultId=${vaultId}`, foreign);
  expect(unknown.body.vaults).toEqual([{ vaultId, withdrawal: null }]);
  await using poor = await createWorld({
    rateLimits: { publicReads: { units: 20, windowSeconds: 3600 } },
  });
  const saved = world;
  world = poor;
  const poorSession = await signedIn(world, owner);
  world = saved;
  const many = Array.from({ length: 19 }, (_, i) => String(i));
  const body = { vaultIds: many };
  const paid = await poor.send("POST", "/owner/v1/withdrawals/prepare", { ...poorSession, body });
  expect(refusal(paid).code).toBe("rate_limited");
});

describe("the operator pays for an owner", () => {
  let shared: World;
  let paying: World;
  beforeEach(() => {
    shared = world;
  });
  afterEach(async () => {
    world = shared;
    await paying[Symbol.asyncDispose]();
  });

  /** A server that pays for so many vaults of an owner a day, three of which the owner has. */
  async function start(ownerRelayVaults: number, now: () => number) {
    paying = await createWorld({ ownerRelayVaults, now });
    world = paying;
    const { body } = await paying.send("POST", "/api/v1/users", {
      body: { ownerAddress: owner.address },
    });
    return { ids: await vaults(3, { user: body.userId }), options: await signedIn(world, owner) };
  }
  const ask = (vaultIds: readonly string[], options: SendOptions) =>
    paying.send("POST", "/owner/v1/withdrawals/prepare", { ...options, body: { vaultIds } });
  const settings = async () => (await paying.app.inject("/explorer/settings.json")).json();

  test("for so many vaults a day, not for refused or repeated ones", async () => {
    let now = 0;
    const { ids, options } = await start(2, () => now);
    const [first = "", second = "", third = ""] = ids;
    expect(await settings()).toMatchObject({ relayVaults: 2 });
    expect(refusal(await ask(ids, options))).toMatchObject({ code: "validation_failed" });
    const prepared = await ask([first, second], options);
    // A list by another key is refused, and counts nothing.
    expect(refusal(await submitted(prepared, stranger, options)).code).toBe("signature_invalid");
    expect((await submitted(prepared, owner, options)).status).toBe(202);
    // The list is sent again, as after a lost answer.
    expect((await submitted(prepared, owner, options)).status).toBe(202);
    const later = await ask([third], options);
    expect(refusal(later)).toMatchObject({ code: "rate_limited" });
    expect(later.body.detail).toMatch(
      /pays for 0 more of your vaults now.*by your own transaction/,
    );
    expect(later.headers["retry-after"]).toBe("43200");
    now += 43_200_000;
    expect((await submitted(await ask([third], options), owner, options)).status).toBe(202);
  });

  test("once for a list that is sent twice at once", async () => {
    const { ids, options } = await start(4, () => 0);
    const [first = "", second = "", third = ""] = ids;
    const prepared = await ask([first, second], options);
    const both = await Promise.all([
      submitted(prepared, owner, options),
      submitted(prepared, owner, options),
    ]);
    expect(both.map(({ status }) => status)).toEqual([202, 202]);
    // Two of the four are left: one for the third vault, one for nobody.
    expect((await submitted(await ask([third], options), owner, options)).status).toBe(202);
    const { detail } = (await ask([first, second], options)).body;
    expect(detail).toContain("pays for 1 more");
  });

  test("for none when the operator turns it off, before the owner signs", async () => {
    const { ids, options } = await start(0, () => 0);
    expect(await settings()).toMatchObject({ relayVaults: 0 });
    expect(refusal(await ask(ids.slice(0, 1), options))).toMatchObject({ code: "owner_relay_off" });
    const list = {
      vaults: [{ vaultId: ids[0], quantity: "10" }],
      deadline: "1893456000",
      signature: "0x00",
    };
    const sent = await paying.send("POST", "/owner/v1/withdrawals", { ...options, body: list });
    expect(refusal(sent)).toMatchObject({ code: "owner_relay_off" });
    // The application still withdraws for its users.
    expect((await prepare({ vaults: namesOf(ids) })).status).toBe(200);
  });
});
