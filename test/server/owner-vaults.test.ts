import type { TypedDataDefinition } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, expect, test } from "vitest";
import { OTHER_OWNER, refusal, type SendOptions, signedIn } from "./fixture.ts";
import { transferWorld } from "./transfers-fixture.ts";

const owner = privateKeyToAccount(generatePrivateKey());
const friend = privateKeyToAccount(generatePrivateKey());
// A page's cost is counted, so next to nothing refills.
const publicReads = { units: 100_000, windowSeconds: 10_000_000 };
const made = await transferWorld(owner, { rateLimits: { publicReads } });
const { world, userId } = made;
afterAll(() => world[Symbol.asyncDispose]());

let tokens = 1_000;
const mint = async (mode: "validium" | "zk-rollup", user = userId, key = world.key, count = 1) => {
  const mints = Array.from({ length: count }, () => ({
    assetId: world.erc721.assetId,
    tokenId: String(tokens++),
    amount: 1,
    dataAvailabilityMode: mode,
  }));
  const body = { users: [{ userId: user, mints }] };
  const answer = await world.send("POST", "/api/v1/mint", { key, body });
  return answer.body.vaults.map(({ vaultId }: { vaultId: string }) => vaultId) as string[];
};
const listed = async (by: SendOptions, query = "") =>
  (await world.send("GET", `/owner/v1/vaults${query}`, by)).body;
const standings = async (by: SendOptions) =>
  Object.fromEntries(
    (await listed(by)).data.map(({ vaultId, standing }: Record<string, string>) => [
      vaultId,
      standing,
    ]),
  );
/** Signs what was prepared, as a wallet does, and sends what the answer says. */
async function submitted(by: SendOptions, path: string, body: object) {
  const prepared = await world.send("POST", path, { ...by, body });
  const signature = await owner.signTypedData(prepared.body.typedData as TypedDataDefinition);
  const { submit } = prepared.body;
  return world.send("POST", submit.path, { ...by, body: { ...submit.body, signature } });
}

test("an owner sees its tokens of all applications at once, and how each stands until it is gone", async () => {
  const by = await signedIn(world, owner);
  expect((await listed(by)).data).toEqual([]);
  const { ticket, units } = await made.final();
  const elsewhere = await world.engine.users.create(world.otherApplicationId, {
    ownerAddress: owner.address,
  });
  const [arriving] = await mint("zk-rollup");
  const [other] = await mint("validium", elsewhere.userId, world.otherKey);
  await mint("validium", world.users[1]);
  expect(await standings(by)).toEqual({
    [String(arriving)]: "arriving",
    [ticket]: "held",
    [units]: "held",
    [String(other)]: "arriving",
  });
  const page = await listed(by);
  expect(page.data[0]).toMatchObject({
    vaultId: arriving,
    ownerAddress: owner.address.toLowerCase(),
    batchId: "zk-rollup-0",
    slot: 0,
    chainId: "31337",
    status: "accepted",
    hops: 0,
    transfer: null,
    withdrawal: null,
  });
  expect(page.data[0]).not.toHaveProperty("userId");

  // A part of the units is given, and the rest is a vault of its own once the batch is sealed.
  const to = friend.address.toLowerCase();
  const given = await submitted(by, "/owner/v1/transfers/prepare", {
    transfers: [{ vaultId: units, amount: "4", to }],
  });
  expect(await standings(by)).toMatchObject({ [units]: "given", [ticket]: "held" });
  await world.engine.operator.sealTransfers();
  await made.commit("zk-rollup");
  const { data } = await listed(by);
  expect(data.find(({ vaultId }: { vaultId: string }) => vaultId === units)).toMatchObject({
    standing: "given",
    transfer: { transferId: given.body.transferId, to, status: "finalized" },
  });
  expect(data.filter(({ hops }: { hops: number }) => hops === 1)).toMatchObject([
    { standing: "held", amount: "6" },
  ]);
  const ofFriend = await signedIn(world, friend);
  expect((await listed(ofFriend)).data).toMatchObject([{ amount: "4", standing: "held", hops: 1 }]);

  const { ticket: second } = await made.final();
  await submitted(by, "/owner/v1/transfers/prepare", {
    transfers: [{ vaultId: second, redeem: true }],
  });
  const left = await submitted(by, "/owner/v1/withdrawals/prepare", { vaultIds: [ticket] });
  expect(left.body.vaults).toMatchObject([{ error: null }]);
  expect(await standings(by)).toMatchObject({ [second]: "redeemed", [ticket]: "leaving" });
  const [leaving] = (await listed(by)).data.filter(
    ({ vaultId }: { vaultId: string }) => vaultId === ticket,
  );
  expect(leaving.withdrawal).toMatchObject({ vaultId: ticket, status: "accepted", quantity: "1" });
});

test("pages of an owner's tokens hold each token once, of many users and while new ones come", async () => {
  const many = privateKeyToAccount(generatePrivateKey());
  const by = await signedIn(world, many);
  const expected = new Set<string>();
  for (let i = 0; i < 5; i++) {
    const [applicationId, key] =
      i % 2 === 0 ? [world.applicationId, world.key] : [world.otherApplicationId, world.otherKey];
    const user = await world.engine.users.create(applicationId, { ownerAddress: many.address });
    // A user without any token is passed over.
    await world.engine.users.create(applicationId, { ownerAddress: many.address });
    for (const vaultId of await mint("validium", user.userId, key, 3)) expected.add(vaultId);
  }
  const seen: string[] = [];
  let query = "?limit=2";
  for (let pages = 0; pages < 20; pages++) {
    const { data, pagination } = await listed(by, query);
    expect(data.length).toBeLessThanOrEqual(2);
    seen.push(...data.map(({ vaultId }: { vaultId: string }) => vaultId));
    if (pagination.nextCursor === null) break;
    query = `?limit=2&cursor=${pagination.nextCursor}`;
    if (pages === 1) await mint("validium", (await newest(many.address)) ?? "", world.key);
  }
  expect(seen.length).toBe(new Set(seen).size);
  expect([...expected].filter((vaultId) => !seen.includes(vaultId))).toEqual([]);
});

const newest = async (ownerAddress: `0x${string}`) =>
  (await world.engine.users.list(world.applicationId, { ownerAddress })).data[0]?.userId;

test("a page examines a bounded number of transactions, is priced by them, and misses none", async () => {
  const holder = privateKeyToAccount(generatePrivateKey());
  const by = await signedIn(world, holder);
  const { userId: user } = await world.engine.users.create(world.applicationId, {
    ownerAddress: holder.address,
  });
  const [oldest] = await mint("validium", user);
  // All of these are one vault: an owner's list has one row for 12,000 transactions.
  const point = {
    assetId: world.erc20.assetId,
    amount: 1,
    dataAvailabilityMode: "validium",
  };
  for (let i = 0; i < 2; i++)
    await world.send("POST", "/api/v1/mint", {
      body: { users: [{ userId: user, mints: Array(6_000).fill(point) }] },
    });
  const before = await left(by);
  const first = await listed(by);
  expect(first.pagination.hasMore).toBe(true);
  expect(before - (await left(by))).toBeGreaterThan(20);
  const second = await listed(by, `?cursor=${first.pagination.nextCursor}`);
  expect(
    [...first.data, ...second.data].map(({ vaultId }: { vaultId: string }) => vaultId),
  ).toContain(oldest);
  expect(second.pagination.nextCursor).toBe(null);
});

/** Units of rate that are left, after one unit for asking. */
async function left(by: SendOptions): Promise<number> {
  const { headers } = await world.send("GET", "/owner/v1/sign-in", by);
  return Number(/r=(\d+)/.exec(String(headers.ratelimit))?.[1]);
}

test("the list is the signed-in owner's alone, and so are its cursors", async () => {
  const by = await signedIn(world, owner);
  const { pagination } = await listed(by, "?limit=1");
  const stranger = await signedIn(world, privateKeyToAccount(generatePrivateKey()));
  expect((await listed(stranger)).data).toEqual([]);
  const foreign = `/owner/v1/vaults?limit=1&cursor=${pagination.nextCursor}`;
  expect(refusal(await world.send("GET", foreign, stranger)).code).toBe("cursor_invalid");
  expect(refusal(await world.send("GET", "/owner/v1/vaults", { key: null })).code).toBe(
    "credentials_missing",
  );
  const asked = await world.send("GET", `/owner/v1/vaults?ownerAddress=${OTHER_OWNER}`, by);
  expect(refusal(asked).code).toBe("validation_failed");
});

const PAGE = { host: "localhost:3000", "mintmark-owner": "1" };

test("a page's sign-in is a cookie that no script reads, and ends when the owner signs out", async () => {
  const send = (
    method: "GET" | "POST" | "DELETE",
    headers: Record<string, string>,
    body?: object,
  ) => world.send(method, "/owner/v1/sign-in", { key: null, headers, body });
  const { message } = (
    await world.send("POST", "/owner/v1/challenge", {
      key: null,
      headers: PAGE,
      body: { address: owner.address },
    })
  ).body;
  const proof = { message, signature: await owner.signMessage({ message }) };
  const opened = await send("POST", PAGE, proof);
  const set = String(opened.headers["set-cookie"]);
  expect(set).toMatch(/^mintmark_owner=[\w.-]+; Max-Age=\d+; Path=\/; HttpOnly; SameSite=Strict$/);
  const cookie = set.split(";")[0] ?? "";
  const inPage = { ...PAGE, cookie };
  expect((await send("GET", inPage)).body).toEqual({
    address: owner.address.toLowerCase(),
    expiresAt: opened.body.expiresAt,
  });
  expect((await listed({ key: null, headers: inPage })).data.length).toBeGreaterThan(0);
  // Another site's request has no such header, and a browser says where a request comes from.
  const strangers: Record<string, string>[] = [
    { host: PAGE.host, cookie },
    { ...inPage, "sec-fetch-site": "same-site" },
    { ...inPage, "mintmark-owner": "0" },
    { host: PAGE.host, cookie, "mintmark-console": "1" },
  ];
  for (const headers of strangers)
    expect(refusal(await send("GET", headers)).code).toBe("credentials_missing");
  const ended = await send("DELETE", inPage);
  expect(String(ended.headers["set-cookie"])).toMatch(/^mintmark_owner=; Max-Age=0; /);
  expect(refusal(await send("GET", inPage)).code).toBe("credentials_invalid");
  const bearer = { authorization: `Bearer ${opened.body.token}` };
  expect(refusal(await send("GET", bearer)).code).toBe("credentials_invalid");
  // A program gets no cookie.
  const fresh = await signedIn(world, owner);
  expect((await world.send("GET", "/owner/v1/sign-in", fresh)).headers["set-cookie"]).toBe(
    undefined,
  );
});
