import { afterAll, describe, expect, test } from "vitest";
import { createWorld, refusal } from "./fixture.ts";

// The original service's published requests, aliases included: as its documentation and its SDKs
// send them.

const world = await createWorld();
afterAll(() => world[Symbol.asyncDispose]());

/** A mint as the original documents it: a minting blob, an asset, an amount, a mode. */
function body(id: string, mode: string) {
  const entry = { amount: "1", dataAvailabilityMode: mode };
  const mints = [
    { mintingBlob: Buffer.from(id).toString("hex"), assetId: world.erc721.assetId, ...entry },
    { mintingBlob: "0x37", assetId: world.erc1155.assetId.toUpperCase(), ...entry, amount: 12 },
    { mintingBlob: "", assetId: world.erc20.assetId, ...entry, amount: "9007199254740993" },
  ];
  return { users: [{ userId: world.users[0], mints }] };
}

describe("a mint", () => {
  let id = 0;
  test.each(["/api/v1/mint", "/api/mint"])(
    "by %s with minting blobs, amounts and modes",
    async (path) => {
      for (const mode of ["validium", "zk-rollup"]) {
        const { status, body: answer } = await world.send("POST", path, {
          body: body(String(++id), mode),
        });
        expect(status).toBe(200);
        expect(answer.vaults).toHaveLength(3);
        expect(answer.transactions.map((one: { status: string }) => one.status)).toEqual(
          Array(3).fill("accepted"),
        );
        expect(answer.vaults[0]).toMatchObject({
          tokenId: String(id),
          amount: "1",
          dataAvailabilityMode: mode,
        });
      }
    },
  );

  test.each([
    ["Validium", "validium"],
    ["VALIDIUM", "validium"],
    ["ZkRollup", "zk-rollup"],
    ["ZK_ROLLUP", "zk-rollup"],
    ["zkRollup", "zk-rollup"],
  ])("in the mode %s, which is %s", async (spelt, mode) => {
    const { body: answer } = await world.send("POST", "/api/v1/mint", {
      body: body(String(++id), spelt),
    });
    expect(answer.vaults[0].dataAvailabilityMode).toBe(mode);
    const list = await world.send(
      "GET",
      `/api/v1/transactions?dataAvailabilityMode=${spelt}&limit=1`,
    );
    expect(list.body.data[0].dataAvailabilityMode).toBe(mode);
  });

  test("in a mode of no spelling is refused", async () => {
    for (const mode of ["rollup", "zk rollup", "", "Validium!", "v".repeat(1_000)]) {
      expect(
        refusal(await world.send("POST", "/api/v1/mint", { body: body("900", mode) })).code,
      ).toBe("validation_failed");
    }
  });
});

test("assets are listed by the types of the original's SDKs", async () => {
  for (const [type, standard] of [
    ["MintableErc721", "erc721"],
    ["MINTABLE_ERC20", "erc20"],
    ["Erc1155", "erc1155"],
    ["mintable-erc1155", "erc1155"],
  ]) {
    const { body: page } = await world.send(
      "GET",
      `/api/v1/assets?assetType=${type}&mintable=true`,
    );
    expect(
      page.data.map((asset: { standard: string }) => asset.standard),
      type,
    ).toEqual([standard]);
  }
  expect(refusal(await world.send("GET", "/api/v1/assets?assetType=Eth"))).toMatchObject({
    status: 400,
  });
});

test("health is the bare word for those who take plain text, without a key", async () => {
  const bare = await world.send("GET", "/healthz", {
    key: null,
    headers: { accept: "text/plain" },
  });
  expect([bare.status, bare.text, bare.headers["content-type"]]).toEqual([
    200,
    "Healthy",
    "text/plain; charset=utf-8",
  ]);
  // The original's client asks in this way.
  const client = "application/json, text/plain, */*";
  expect(
    (await world.send("GET", "/healthz", { key: null, headers: { accept: client } })).text,
  ).toBe("Healthy");
  for (const accept of ["*/*", "application/json", "text/html"]) {
    const { body: answer } = await world.send("GET", "/healthz", {
      key: null,
      headers: { accept },
    });
    expect(answer.status, accept).toBe("Healthy");
  }
});

describe("a list", () => {
  const list = (path: string) => world.send("GET", path);

  test.each([
    [
      "/api/v1/assets?asset_type=MINTABLE_ERC721&page_size=1",
      "/api/v1/assets?assetType=erc721&limit=1",
    ],
    ["/api/v1/transactions?transaction_status=Streamed", "/api/v1/transactions?status=accepted"],
    [
      "/api/v1/transactions?transactionStatus=Confirmed&pageSize=2",
      "/api/v1/transactions?status=finalized&limit=2",
    ],
    ["/api/v1/transactions?operation=Mint&page_size=2", "/api/v1/transactions?type=mint&limit=2"],
    ["/api/v1/transactions?type=FullWithdrawal", "/api/v1/transactions?type=withdrawal"],
    ["/api/v1/transactions?tx_type=Mint&page_number=1", "/api/v1/transactions?type=mint"],
    ["/api/v1/transactions?transaction_status=Created", "/api/v1/transactions?status=accepted"],
    ["/api/v1/assets?asset_symbol=ERC721", "/api/v1/assets?symbol=ERC721"],
  ])("%s is %s", async (theirs, ours) => {
    const { status, body: page } = await list(theirs);
    expect(status).toBe(200);
    expect(page).toEqual((await list(ours)).body);
  });

  test.each([
    ["page_number=2", "/query/page_number", "give `pagination.nextCursor`"],
    ["sortBy=name", "/query/sortBy", "give `order`"],
    ["creation_date=2026-11-28", "/query/creation_date", "`createdAfter`"],
    ["asset_symbol=SWRD", "/query/asset_symbol", "`assetId`"],
    ["txHash=0x", "/query/txHash", "Give status, type, userId,"],
    [
      "transaction_status_comparison=IsEqualTo",
      "/query/transaction_status_comparison",
      "compare by equality",
    ],
    [
      "status=accepted&transaction_status=Failed",
      "/query/transaction_status",
      "Unknown parameter.",
    ],
    ["constructor=1", "/query/constructor", "Unknown parameter."],
  ])("says for %s what to give instead", async (query, pointer, advice) => {
    const { status, body: problem } = await list(`/api/v1/transactions?${query}`);
    expect(status).toBe(400);
    expect(problem.errors).toMatchObject([{ pointer, detail: expect.stringContaining(advice) }]);
  });
});

test.each(["deploy", "enable"])("POST /assets/%s is of another method", async (action) => {
  const { status, body: problem } = await world.send("POST", `/api/v1/assets/${action}`, {
    body: {},
  });
  expect([status, problem.code]).toEqual([405, "method_not_allowed"]);
});

describe("a token", () => {
  const credentials = () => ({
    grant_type: "client_credentials",
    client_id: world.keyId,
    client_secret: world.key,
  });

  test("is given for JSON as for a form, whatever the audience, and mints", async () => {
    const asked = { ...credentials(), audience: "https://mint.example" };
    const { status, body: token } = await world.send("POST", "/oauth/token", {
      key: null,
      body: asked,
    });
    expect(status).toBe(200);
    const headers = { authorization: `Bearer ${token.access_token}` };
    const minted = await world.send("POST", "/api/v1/mint", {
      key: null,
      headers,
      body: body("77", "validium"),
    });
    expect(minted.status).toBe(200);
    const list = await world.send("GET", "/api/v1/transactions?limit=1", { key: null, headers });
    expect(list.body.data).toHaveLength(1);
  });

  test("is refused for JSON that is none, and for other types with what to send", async () => {
    const send = (raw: string, type: string) =>
      world.send("POST", "/oauth/token", { key: null, raw, headers: { "content-type": type } });
    expect((await send("{", "application/json")).body).toMatchObject({
      status: 400,
      error: "invalid_request",
    });
    expect((await send('["a"]', "application/json")).body).toMatchObject({
      status: 400,
      error: "invalid_request",
    });
    const other = await send("<token/>", "application/xml");
    expect(other.body).toMatchObject({
      status: 415,
      code: "unsupported_media_type",
      error: "invalid_request",
    });
    expect(other.body.detail).toContain(
      "as application/x-www-form-urlencoded or application/json,",
    );
    expect(other.body.error_description).toBe(other.body.detail);
  });
});
