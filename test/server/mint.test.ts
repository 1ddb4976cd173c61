import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createWorld, entries, refusal, type World } from "./fixture.ts";

let world: World;
beforeAll(async () => {
  world = await createWorld({ limits: { usersPerRequest: 3, mintsPerRequest: 20 } });
});
afterAll(() => world[Symbol.asyncDispose]());

let token = 0;
const hex = (text: string) => Buffer.from(text).toString("hex");
const request = (...mints: unknown[]) => ({ users: [{ userId: world.users[0], mints }] });
const nft = (text: string, more: object = {}) => ({
  mintingBlob: hex(text),
  assetId: world.erc721.assetId,
  amount: 1,
  dataAvailabilityMode: "validium",
  ...more,
});
const coin = (more: object = {}) => ({
  mintingBlob: "",
  assetId: world.erc20.assetId,
  amount: 5,
  dataAvailabilityMode: "validium",
  ...more,
});

describe("a mint", () => {
  test("of all standards, in both modes, for several users is answered in request order", async () => {
    const [first, second] = world.users;
    const body = {
      users: [
        { userId: first, mints: entries(world, ++token) },
        { userId: second.toUpperCase(), mints: entries(world, ++token) },
      ],
    };
    const { status, body: reply } = await world.send("POST", "/api/v1/mint", { body });
    expect(status).toBe(200);
    expect(
      reply.transactions.map((one: { userIndex: number; mintIndex: number }) => [
        one.userIndex,
        one.mintIndex,
      ]),
    ).toEqual([0, 1].flatMap((user) => [0, 1, 2].map((mint) => [user, mint])));
    expect(reply.vaults).toHaveLength(6);
    expect(reply.vaults[0]).toMatchObject({
      userId: first,
      assetId: world.erc20.assetId,
      mintingBlob: "0x",
      tokenId: null,
      amount: "250",
      availableBalance: "250",
      withdrawnBalance: "0",
      transferredBalance: "0",
      status: "accepted",
      dataAvailabilityMode: "validium",
    });
    expect(reply.vaults[1]).toMatchObject({
      amount: "1",
      tokenId: "1",
      dataAvailabilityMode: "zk-rollup",
    });
    expect(reply.vaults[5]).toMatchObject({ userId: second, amount: "3", tokenId: "7" });
    expect((await world.send("GET", `/api/v1/mints/${reply.mintId}`)).body).toEqual(reply);
  });

  test("keeps amounts past 2^53 exact, as decimal strings", async () => {
    const body = request(coin({ amount: "9007199254740993", dataAvailabilityMode: "zk-rollup" }));
    const { body: reply } = await world.send("POST", "/api/v1/mint", { body });
    expect(reply.vaults[0].amount).toBe("9007199254740993");
  });

  test("is the same through the undocumented alias, marked deprecated", async () => {
    const { status, headers } = await world.send("POST", "/api/mint", {
      body: request(nft(`alias ${++token}`)),
    });
    expect(status).toBe(200);
    expect(headers.deprecation).toMatch(/^@\d+$/);
    expect(headers.link).toBe('</api/v1/mint>; rel="successor-version"');
  });

  test("with dryRun checks everything and changes nothing", async () => {
    const before = await world.snapshot();
    const good = await world.send("POST", "/api/v1/mint?dryRun=true", {
      body: request(coin(), nft(`dry ${++token}`)),
    });
    expect(good.body).toEqual({ dryRun: true, users: 1, mints: 2 });
    const bad = await world.send("POST", "/api/v1/mint?dryRun=true", {
      body: request(nft("dry", { amount: 2 })),
    });
    expect(refusal(bad).code).toBe("erc721_amount_not_one");
    expect(await world.snapshot()).toEqual(before);
  });
});

describe("an idempotency key", () => {
  test("replays the first answer, and refuses another body", async () => {
    const headers = { "Idempotency-Key": `key ${++token}` };
    const body = request(coin(), nft(`idempotent ${token}`));
    const first = await world.send("POST", "/api/v1/mint", { body, headers });
    const before = await world.snapshot();
    const again = await world.send("POST", "/api/v1/mint", { body, headers });
    expect(first.headers["idempotency-replayed"]).toBeUndefined();
    expect(again.headers["idempotency-replayed"]).toBe("true");
    expect(again.body).toEqual(first.body);
    const other = await world.send("POST", "/api/v1/mint", { body: request(coin()), headers });
    expect(refusal(other)).toMatchObject({ status: 422, code: "idempotency_key_reused" });
    expect(await world.snapshot()).toEqual(before);
  });

  test("mints once however many requests race", async () => {
    const headers = { "Idempotency-Key": `key ${++token}` };
    const body = request(nft(`race ${token}`));
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => world.send("POST", "/api/v1/mint", { body, headers })),
    );
    const minted = answers.filter(({ status }) => status === 200);
    expect(minted.length).toBeGreaterThan(0);
    expect(new Set(minted.map((answer) => answer.body.mintId)).size).toBe(1);
    for (const answer of answers) {
      if (answer.status !== 200)
        expect(refusal(answer)).toMatchObject({ status: 409, code: "idempotency_in_progress" });
    }
  });

  test.each(["", "x".repeat(256), "naïve"])("%j is refused", async (key) => {
    const answer = await world.send("POST", "/api/v1/mint", {
      body: request(coin()),
      headers: { "Idempotency-Key": key },
    });
    expect(refusal(answer)).toEqual({
      status: 400,
      code: "validation_failed",
      errors: ["/headers/idempotency-key validation_failed"],
    });
  });
});

describe("a bad mint gets its documented error and changes nothing", () => {
  /** A pointer that begins with a digit is of that mint of the first user. */
  type Case = readonly [
    name: string,
    code: string,
    pointers: readonly string[],
    body: () => unknown,
  ];
  const asset = (more: object) => async () => {
    const { assetId } = await world.engine.assets.add({
      standard: "erc721",
      contractAddress: `0x${(++token).toString(16).padStart(40, "d")}`,
      name: "N",
      symbol: "N",
      ...more,
    });
    return assetId;
  };
  const cases: readonly Case[] = [
    [
      "an unknown asset",
      "asset_not_found",
      ["0/assetId"],
      () => request(nft("x", { assetId: crypto.randomUUID() })),
    ],
    [
      "an asset that the application has not enabled",
      "asset_not_enabled",
      ["1/assetId"],
      () => request(coin(), nft("x", { assetId: notEnabled })),
    ],
    [
      "an asset that is not whitelisted",
      "asset_not_whitelisted",
      ["0/assetId"],
      () => request(nft("x", { assetId: notWhitelisted })),
    ],
    [
      "an asset that is not registered",
      "asset_not_registered",
      ["0/assetId"],
      () => request(nft("x", { assetId: notRegistered })),
    ],
    [
      "an unknown user",
      "user_not_found",
      ["/users/0/userId"],
      () => ({ users: [{ userId: crypto.randomUUID(), mints: [coin()] }] }),
    ],
    [
      "another application's user",
      "user_not_found",
      ["/users/0/userId"],
      () => ({ users: [{ userId: world.otherUser, mints: [coin()] }] }),
    ],
    [
      "the same user twice",
      "duplicate_user",
      ["/users/1/userId"],
      () => ({ users: [...request(coin()).users, ...request(coin()).users] }),
    ],
    [
      "amount 2 of an ERC-721",
      "erc721_amount_not_one",
      ["0/amount"],
      () => request(nft("x", { amount: 2 })),
    ],
    ["amount 0", "amount_out_of_range", ["0/amount"], () => request(coin({ amount: 0 }))],
    [
      "an amount past 2^63 - 1",
      "amount_out_of_range",
      ["0/amount"],
      () => request(coin({ amount: "9223372036854775808" })),
    ],
    [
      "an amount that is no whole number",
      "validation_failed",
      ["0/amount"],
      () => request(coin({ amount: 1.5 })),
    ],
    [
      "a minting blob that is not hex",
      "minting_blob_invalid",
      ["0/mintingBlob"],
      () => request(nft("x", { mintingBlob: "zz" })),
    ],
    [
      "half a byte of minting blob",
      "minting_blob_invalid",
      ["0/mintingBlob"],
      () => request(nft("x", { mintingBlob: "0x123" })),
    ],
    [
      "a minting blob of 256 bytes",
      "minting_blob_invalid",
      ["0/mintingBlob"],
      () => request(nft("x".repeat(256))),
    ],
    [
      "a minting blob on ERC-20",
      "minting_blob_invalid",
      ["0/mintingBlob"],
      () => request(coin({ mintingBlob: "31" })),
    ],
    [
      "a minting blob that is no text",
      "minting_blob_invalid",
      ["0/mintingBlob"],
      () => request(nft("x", { mintingBlob: "1001" })),
    ],
    [
      "an id and a minting blob",
      "validation_failed",
      ["0/tokenId"],
      () => request(nft("x", { tokenId: "1001" })),
    ],
    [
      "an id of an ERC-20",
      "validation_failed",
      ["0/tokenId"],
      () => request({ ...coin({ tokenId: "1" }), mintingBlob: undefined }),
    ],
    [
      "no token of an ERC-721",
      "validation_failed",
      ["0/tokenId"],
      () => request({ ...nft("x"), mintingBlob: undefined }),
    ],
    [
      "no minting blob on ERC-721",
      "minting_blob_invalid",
      ["0/mintingBlob"],
      () => request(nft("")),
    ],
    [
      "the same ERC-721 twice in one request",
      "duplicate_mint",
      ["1/mintingBlob"],
      () => request(nft("twin"), nft("twin", { dataAvailabilityMode: "zk-rollup" })),
    ],
    [
      "an ERC-721 that exists",
      "token_already_minted",
      ["0/mintingBlob"],
      () => request(nft("taken", { dataAvailabilityMode: "zk-rollup" })),
    ],
    [
      "an ERC-721 that exists by another spelling",
      "token_already_minted",
      ["0/mintingBlob"],
      () => request(nft("taken", { mintingBlob: `0x${hex("taken").toUpperCase()}` })),
    ],
    [
      "another minting blob for an ERC-1155 id",
      "token_id_conflict",
      ["0/mintingBlob"],
      () => request(coin({ assetId: imx, mintingBlob: hex("{1}:{two}") })),
    ],
    [
      "too many users",
      "batch_too_large",
      ["/users"],
      () => ({ users: Array(4).fill(request(coin()).users[0]) }),
    ],
    ["too many mints", "batch_too_large", ["/users"], () => request(...Array(21).fill(coin()))],
    [
      "more than the supply cap",
      "supply_cap_exceeded",
      ["0/amount"],
      () => request(coin({ assetId: capped, amount: 11 })),
    ],
    ["an empty asset id", "validation_failed", ["0/assetId"], () => request(coin({ assetId: "" }))],
    ["no users", "validation_failed", ["/users"], () => ({ users: [] })],
    ["no mints", "validation_failed", ["/users/0/mints"], () => request()],
    ["null", "validation_failed", [""], () => null],
    ["a list", "validation_failed", [""], () => []],
    [
      "unknown fields",
      "validation_failed",
      ["/x", "/users/0/y", "0/z"],
      () => ({ users: [{ ...request(coin({ z: 1 })).users[0], y: 1 }], x: 1 }),
    ],
    [
      "a bad mode",
      "validation_failed",
      ["0/dataAvailabilityMode"],
      () => request(coin({ dataAvailabilityMode: "rollup" })),
    ],
    [
      "everything missing",
      "validation_failed",
      ["/assetId", "/amount", "/dataAvailabilityMode"].map((field) => `0${field}`),
      () => request({}),
    ],
  ];

  let notEnabled: string;
  let notWhitelisted: string;
  let notRegistered: string;
  let imx: string;
  let capped: string;
  beforeAll(async () => {
    const { engine, applicationId } = world;
    const ready = async (more: object) => {
      const id = await asset(more)();
      await engine.assets.whitelist(id);
      await engine.operator.recordRegistered(id);
      return id;
    };
    notEnabled = await ready({});
    notWhitelisted = await asset({})();
    notRegistered = await asset({})();
    await engine.assets.whitelist(notRegistered);
    imx = await ready({ standard: "erc1155", mintingBlobScheme: "imx" });
    capped = await ready({ standard: "erc20", supplyCap: 10n });
    for (const id of [notRegistered, imx, capped]) await engine.assets.enable(applicationId, id);
    const body = request(nft("taken"), coin({ assetId: imx, mintingBlob: hex("{1}:{one}") }));
    await world.send("POST", "/api/v1/mint", { body });
  });

  test.each(cases)("%s: %s", async (_name, code, pointers, body) => {
    const before = await world.snapshot();
    const answer = await world.send("POST", "/api/v1/mint", { body: body() });
    expect(refusal(answer)).toMatchObject({ code });
    const dry = await world.send("POST", "/api/v1/mint?dryRun=true", { body: body() });
    expect(refusal(dry)).toEqual(refusal(answer));
    const whole = pointers.map((pointer) =>
      /^\d/.test(pointer) ? `/users/0/mints/${pointer}` : pointer,
    );
    expect(answer.body.errors.map(({ pointer }: { pointer: string }) => pointer).sort()).toEqual(
      whole.sort(),
    );
    expect(await world.snapshot()).toEqual(before);
  });

  test.each([
    ["9007199254740993", "/users/0/mints/0/amount malformed_json"],
    ["1.0000000000000001", "/users/0/mints/0/amount malformed_json"],
    ['1,"amount":2', "/users/0/mints/0/amount malformed_json"],
  ])("an amount written as %s is never silently changed", async (literal, error) => {
    const before = await world.snapshot();
    const raw = JSON.stringify(request(coin())).replace('"amount":5', `"amount":${literal}`);
    const answer = await world.send("POST", "/api/v1/mint", { raw });
    expect(refusal(answer)).toEqual({ status: 400, code: "malformed_json", errors: [error] });
    expect(await world.snapshot()).toEqual(before);
  });

  test("a token of the other application exists for this one too", async () => {
    const body = { users: [{ userId: world.otherUser, mints: [nft("theirs")] }] };
    expect((await world.send("POST", "/api/v1/mint", { body, key: world.otherKey })).status).toBe(
      200,
    );
    const answer = await world.send("POST", "/api/v1/mint", { body: request(nft("theirs")) });
    expect(refusal(answer)).toMatchObject({ status: 409, code: "token_already_minted" });
  });
});

test("no mint is accepted while too many vaults wait for L1, and the response has a retry time", async () => {
  await using full = await createWorld({ limits: { mintsPerRequest: 3, uncommittedVaults: 6 } });
  const body = () => ({ users: [{ userId: full.users[0], mints: entries(full, ++token) }] });
  for (let i = 0; i < 2; i++)
    expect((await full.send("POST", "/api/v1/mint", { body: body() })).status).toBe(200);
  // Two of the second request's entries have added to vaults; of the third's that is known too
  // late.
  expect(full.engine.batches.uncommittedVaults()).toBe(4);
  const refused = await full.send("POST", "/api/v1/mint", { body: body() });
  expect([refused.status, refused.body.code, refused.headers["retry-after"]]).toEqual([
    503,
    "backpressure",
    "10",
  ]);
  const dryRun = async (of: unknown) => {
    const answer = await full.send("POST", "/api/v1/mint?dryRun=true", { body: of });
    return [answer.status, answer.body.code, answer.headers["retry-after"]];
  };
  expect(await dryRun(body())).toEqual([503, "backpressure", "10"]);
  // A request that waiting does not mend is not told to wait.
  const [wrong] = entries(full, ++token);
  const never = {
    users: [{ userId: full.users[0], mints: Array(3).fill({ ...wrong, amount: "0" }) }],
  };
  expect(await dryRun(never)).toEqual([422, "amount_out_of_range", undefined]);
});

test("a dry run is refused like a mint while the store has not been compared with L1", async () => {
  await using uncompared = await createWorld();
  uncompared.engine.operator.awaitComparison();
  const body = { users: [{ userId: uncompared.users[0], mints: entries(uncompared, 1) }] };
  for (const path of ["/api/v1/mint", "/api/v1/mint?dryRun=true"]) {
    const refused = await uncompared.send("POST", path, { body });
    expect([refused.status, refused.body.code, refused.headers["retry-after"]]).toEqual([
      503,
      "l1_not_compared",
      "5",
    ]);
  }
});

test("an address is minted to in the application's default mode", async () => {
  await using world = await createWorld();
  const ownerAddress = `0x${"4f".repeat(20)}`;
  const body = {
    users: [{ ownerAddress, mints: [{ assetId: world.erc721.assetId, tokenId: "77" }] }],
  };
  expect(refusal(await world.send("POST", "/api/v1/mint", { body }))).toMatchObject({
    status: 400,
    errors: ["/users/0/mints/0/dataAvailabilityMode validation_failed"],
  });
  const defaults = { dataAvailabilityMode: "zk-rollup" };
  const changed = await world.send("PUT", "/api/v1/application/defaults", { body: defaults });
  expect(changed).toMatchObject({
    status: 200,
    body: { applicationId: world.applicationId, ...defaults },
  });
  expect((await world.send("GET", "/api/v1/application")).body).toEqual(changed.body);
  const minted = await world.send("POST", "/api/v1/mint", { body });
  expect(minted.body.vaults).toMatchObject([{ ownerAddress, tokenId: "77", ...defaults }]);
  const minter = await world.newKey(["mint"]);
  const other = {
    users: [
      {
        ownerAddress: `0x${"50".repeat(20)}`,
        mints: [{ assetId: world.erc721.assetId, tokenId: "78" }],
      },
    ],
  };
  expect(
    refusal(await world.send("POST", "/api/v1/mint", { body: other, key: minter })),
  ).toMatchObject({
    status: 403,
    code: "scope_missing",
  });
});
