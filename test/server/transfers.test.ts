import { decodeFunctionData, type Hex, type TypedDataDefinition, zeroAddress } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, describe, expect, test } from "vitest";
import type { Asset } from "../../core/index.ts";
import { stateCommitmentAbi } from "../../core/l1/index.ts";
import { transfersDigest } from "../../core/protocol/index.ts";
import { type Answer, refusal, type SendOptions, signedIn, type World } from "./fixture.ts";
import { transferWorld } from "./transfers-fixture.ts";

const owner = privateKeyToAccount(generatePrivateKey());
const friend = privateKeyToAccount(generatePrivateKey()).address.toLowerCase();

let world: World;
let userId: string;
const made = await transferWorld(owner);
({ world, userId } = made);
afterAll(() => world[Symbol.asyncDispose]());

const final = () => made.final();
const prepare = (transfers: readonly object[], options: SendOptions = {}, path = "/api/v1") =>
  world.send("POST", `${path}/transfers/prepare`, { ...options, body: { transfers } });

/** Signs what was prepared, as a wallet does, and sends what the answer says. */
async function submitted({ body }: Answer, options: SendOptions = {}, by = owner): Promise<Answer> {
  const signature = await by.signTypedData(body.typedData as TypedDataDefinition);
  return world.send("POST", body.submit.path, {
    ...options,
    body: { ...body.submit.body, signature },
  });
}

describe("transfers", () => {
  test("are prepared as plain JSON, signed once, taken, and shown to the application alone", async () => {
    const { ticket, units } = await final();
    const prepared = await prepare([
      { vaultId: ticket, to: friend },
      { vaultId: units, amount: "4", to: friend },
    ]);
    const { deadline } = prepared.body.submit.body;
    const transfers = [
      { vaultId: BigInt(ticket), amount: 0n, to: friend as `0x${string}` },
      { vaultId: BigInt(units), amount: 4n, to: friend as `0x${string}` },
    ];
    expect(prepared.body).toMatchObject({
      ownerAddress: owner.address.toLowerCase(),
      digest: transfersDigest(world.engine.settlement, { transfers, deadline: BigInt(deadline) }),
      submit: { path: "/api/v1/transfers" },
    });
    const taken = await submitted(prepared);
    expect(taken.status).toBe(202);
    expect(taken.body).toMatchObject({
      status: "accepted",
      transfers: [
        { vaultId: ticket, userId, to: friend, isChange: false, newVaultId: null, hops: 1 },
        { vaultId: units, to: friend, isChange: false },
        { vaultId: units, to: null, isChange: true, toUserId: userId },
      ],
    });
    const path = String(taken.headers.location);
    expect((await world.send("GET", path)).body).toEqual(taken.body);
    expect(refusal(await world.send("GET", path, { key: world.otherKey })).code).toBe(
      "transfer_not_found",
    );
    const { body: listed } = await world.send("GET", "/api/v1/transactions?type=transfer");
    expect(
      listed.data.map(({ transactionId }: { transactionId: string }) => transactionId),
    ).toEqual(
      taken.body.transfers.map((one: { transactionId: string }) => one.transactionId).toReversed(),
    );
    expect((await world.send("GET", `/api/v1/vaults/${ticket}`)).body.availableBalance).toBe("0");
    expect((await submitted(prepared)).body).toEqual(taken.body);
    await world.engine.operator.sealTransfers();
    const { body } = await world.send("GET", path);
    const [sword] = body.transfers;
    expect(body.status).toBe("batched");
    expect((await world.send("GET", `/api/v1/vaults/${sword.newVaultId}`)).body.ownerAddress).toBe(
      friend,
    );
    expect((await world.send("GET", "/api/v1/transfers")).body.data).toEqual([body]);
    expect((await world.send("GET", "/api/v1/transfers?status=batched")).body.data).toEqual([body]);
    expect((await world.send("GET", "/api/v1/transfers?status=failed")).body.data).toEqual([]);
    expect(refusal(await world.send("GET", "/api/v1/transfers?status=redeemed")).code).toBe(
      "validation_failed",
    );
    const from = owner.address.toLowerCase();
    const of = ({ assetId, name, symbol }: Asset) => {
      return { from, assetId, name, symbol, quantum: "1", decimals: 0 };
    };
    expect(body.transfers).toMatchObject([
      { ...of(world.erc721), tokenId: expect.any(String), amount: "1", amountDecimal: "1" },
      { ...of(world.erc20), tokenId: null, amount: "4", amountDecimal: "4" },
      { ...of(world.erc20), tokenId: null, amount: "6", amountDecimal: "6" },
    ]);
    expect(
      (await world.send("GET", "/api/v1/transfers", { key: world.otherKey })).body.data,
    ).toEqual([]);
  });

  test("show where a vault comes from and where it went; what waits is told to its application alone", async () => {
    const { units } = await final();
    const { body: prepared } = await prepare([{ vaultId: units, amount: "4", redeem: true }]);
    const { body: taken } = await submitted({ body: prepared } as Answer);
    const path = `v1/vaults/${units}/history`;
    const waiting = (await world.send("GET", `/api/${path}`)).body;
    expect(waiting).toMatchObject({
      before: [],
      after: [{ amount: "4" }, { amount: null, newVaultId: null }],
    });
    expect((await world.send("GET", `/public/${path}`, { key: null })).body.after).toEqual([]);
    await world.engine.operator.sealTransfers();
    const from = owner.address.toLowerCase();
    const { body } = await world.send("GET", `/public/${path}`, { key: null });
    expect(body.before).toEqual([]);
    expect(body.after).toMatchObject([
      {
        vaultId: units,
        from,
        to: zeroAddress,
        isChange: false,
        newVaultId: null,
        amount: "4",
        status: "batched",
      },
      { vaultId: units, from, to: from, isChange: true, amount: "6" },
    ]);
    const change = body.after[1].newVaultId;
    const remaining = ({ headers }: { headers: Record<string, unknown> }) =>
      Number(/r=(\d+)/.exec(String(headers.ratelimit))?.[1]);
    const limits = remaining(await world.send("GET", "/api/v1/limits"));
    const own = await world.send("GET", `/api/v1/vaults/${change}/proof`);
    // Its one transfer is read for the proof and for the calldata.
    expect(limits - remaining(own)).toBeGreaterThan(300);
    const proof = (await world.send("GET", `/public/v1/vaults/${change}/proof`, { key: null }))
      .body;
    expect(proof).toMatchObject({
      vault: { vaultId: units, owner: from },
      hops: [{ outId: change, part: 1 }],
    });
    const of = (await world.send("GET", `/api/v1/vaults/${change}/history`)).body;
    expect(of).toMatchObject({
      before: [{ transferId: taken.transferId, newVaultId: change }],
      after: [],
    });
    const foreign = await world.send("GET", `/api/${path}`, { key: world.otherKey });
    expect(refusal(foreign).code).toBe("vault_not_found");
  });

  test("need the scope transfer, and are of the key's own application", async () => {
    const { ticket } = await final();
    const transfers = [{ vaultId: ticket, to: friend }];
    const reader = await world.newKey(["read", "withdraw"]);
    expect(refusal(await prepare(transfers, { key: reader })).code).toBe("scope_missing");
    expect(refusal(await prepare(transfers, { key: world.otherKey })).code).toBe("vault_not_found");
    const mine = await prepare(transfers);
    expect(refusal(await submitted(mine, { key: world.otherKey })).code).toBe("vault_not_found");
  });
});

describe("an owner who signs in", () => {
  test("transfers its own vaults, sees the transfer, and nobody else does", async () => {
    const { ticket } = await final();
    const session = await signedIn(world, owner);
    const prepared = await prepare([{ vaultId: ticket, to: friend }], session, "/owner/v1");
    const taken = await submitted(prepared, session);
    expect(taken.body).toMatchObject({
      status: "accepted",
      transfers: [{ vaultId: ticket, to: friend }],
    });
    const path = `/owner/v1/transfers/${taken.body.transferId}`;
    expect((await world.send("GET", path, session)).body).toEqual(taken.body);
    expect(JSON.stringify(taken.body)).not.toContain(userId);
    const stranger = privateKeyToAccount(generatePrivateKey());
    const other = await signedIn(world, stranger);
    expect(refusal(await world.send("GET", path, other)).code).toBe("transfer_not_found");
    expect(refusal(await prepare([{ vaultId: ticket, to: friend }], other, "/owner/v1")).code).toBe(
      "vault_not_found",
    );
  });

  test("has its gas paid for only so many vaults a day, and a repeated list costs nothing", async () => {
    const { world: few, final: more } = await transferWorld(owner, { ownerRelayVaults: 1 });
    await using _ = few;
    const session = await signedIn(few, owner);
    const { ticket: one, units: two } = await more();
    const ask = (vaultId: string) =>
      few.send("POST", "/owner/v1/transfers/prepare", {
        ...session,
        body: { transfers: [{ vaultId, to: friend }] },
      });
    const { body: prepared } = await ask(one);
    const signature = await owner.signTypedData(prepared.typedData);
    const request = { ...session, body: { ...prepared.submit.body, signature } };
    const first = await few.send("POST", prepared.submit.path, request);
    expect(first.status).toBe(202);
    expect((await few.send("POST", prepared.submit.path, request)).body).toEqual(first.body);
    expect(refusal(await ask(two))).toMatchObject({ status: 429, code: "rate_limited" });
  });

  test("withdraws a vault that a transfer made, alone and whole, and nobody else does", async () => {
    const { world: few, final: more, commit } = await transferWorld(owner, { ownerRelayVaults: 2 });
    await using _ = few;
    const holder = privateKeyToAccount(generatePrivateKey());
    const { units } = await more();
    const gift = [{ vaultId: units, amount: "4", to: holder.address.toLowerCase() }];
    const { body: given } = await few.send("POST", "/api/v1/transfers/prepare", {
      body: { transfers: gift },
    });
    const consent = await owner.signTypedData(given.typedData);
    const { body: taken } = await few.send("POST", given.submit.path, {
      body: { ...given.submit.body, signature: consent },
    });
    await few.engine.operator.sealTransfers();
    await commit("zk-rollup");
    const { body: transfer } = await few.send("GET", `/api/v1/transfers/${taken.transferId}`);
    const [made, change] = transfer.transfers.map(
      ({ newVaultId }: { newVaultId: string }) => newVaultId,
    );
    const { ticket: minted } = await more();
    const session = await signedIn(few, holder);
    const ask = (vaultIds: readonly string[], options: SendOptions) =>
      few.send("POST", "/owner/v1/withdrawals/prepare", { ...options, body: { vaultIds } });
    const giver = await signedIn(few, owner);
    expect(refusal(await ask([made], giver)).code).toBe("vault_not_found");
    expect(refusal(await ask([change], session)).code).toBe("vault_not_found");
    // It stands in one list with others.
    const mixed = (await ask([minted, change], giver)).body;
    expect(
      mixed.typedData.message.vaults.map(({ vaultId }: { vaultId: string }) => vaultId),
    ).toEqual([minted, change]);
    const { body: prepared } = await ask([made], session);
    expect(prepared.typedData).toMatchObject({
      primaryType: "WithdrawalList",
      message: {
        vaults: [{ vaultId: made, quantity: "4", withdrawnBefore: "0" }],
        recipient: holder.address.toLowerCase(),
      },
    });
    const send = async (
      body: object,
      by = holder,
      options: SendOptions = session,
      message = {},
    ) => {
      const [vault] = prepared.typedData.message.vaults;
      const typedData = {
        ...prepared.typedData,
        message: { ...prepared.typedData.message, vaults: [{ ...vault, ...message }] },
      };
      const signature = await by.signTypedData(typedData);
      return few.send("POST", prepared.submit.path, { ...options, body: { ...body, signature } });
    };
    const { body: whole } = prepared.submit;
    expect(refusal(await send(whole, owner)).code).toBe("signature_invalid");
    expect(refusal(await send(whole, holder, giver)).code).toBe("vault_not_found");
    // The list says what its owner signed, since the day's vaults are counted by it.
    const later = { ...whole, vaults: [{ ...whole.vaults[0], withdrawnBefore: "1" }] };
    expect(refusal(await send(later)).code).toBe("signature_invalid");
    expect(refusal(await send(later, holder, session, { withdrawnBefore: "1" })).code).toBe(
      "signature_invalid",
    );
    const part = { ...whole, vaults: [{ ...whole.vaults[0], quantity: "3" }] };
    expect(refusal(await send(part, holder, session, { quantity: "3" })).code).toBe(
      "amount_out_of_range",
    );
    const accepted = await send(whole);
    expect(accepted.status).toBe(202);
    expect(accepted.body.vaults).toMatchObject([
      { vaultId: made, withdrawal: { quantity: "4" }, error: null },
    ]);
    expect(accepted.body.vaults[0].withdrawal).not.toHaveProperty("userId");
    // Refused and repeated requests cost nothing of the day's two vaults.
    expect((await send(whole)).body).toEqual(accepted.body);
    const wanted = await ask([made, change], session);
    expect(refusal(wanted).code).toBe("rate_limited");
    const newest = await few.send("GET", `/owner/v1/withdrawals?vaultId=${made}`, session);
    expect(newest.body.vaults[0].withdrawal).toEqual(accepted.body.vaults[0].withdrawal);
  });
});

describe("a session key", () => {
  const game = privateKeyToAccount(generatePrivateKey());
  const session = () => world.send("GET", `/api/v1/session-keys/${owner.address}/${game.address}`);

  test("gets its owner's signature and a call for any account, transfers once L1 tells of it, and can be revoked", async () => {
    const { ticket, units } = await final();
    const { engine, erc721 } = world;
    const { chainId, contract } = engine.settlement;
    expect((await session()).body).toMatchObject({ status: "none", until: null });
    const until = String(Math.floor(Date.now() / 1000) + 30 * 86_400);
    const wanted = {
      ownerAddress: owner.address,
      keyAddress: game.address,
      until,
      limit: "1",
      assetId: erc721.assetId,
    };
    const asked = await world.send("POST", "/api/v1/session-keys/prepare", { body: wanted });
    const over = { body: { ...wanted, until: `${Math.floor(Date.now() / 1000) - 1}` } };
    const late = await world.send("POST", "/api/v1/session-keys/prepare", over);
    expect([late.status, late.body.errors]).toMatchObject([400, [{ pointer: "/until" }]]);
    const signature = await owner.signTypedData(asked.body.typedData as TypedDataDefinition);
    const { body } = await world.send("POST", "/api/v1/session-keys/prepare", {
      body: { ...wanted, signature },
    });
    expect(body.call).toMatchObject({ chainId: `${chainId}`, to: contract });
    const { functionName, args } = decodeFunctionData({
      abi: stateCommitmentAbi,
      data: body.call.data,
    });
    const terms = [owner.address, game.address, BigInt(until), 1n, BigInt(erc721.assetType)];
    expect([functionName, args]).toEqual(["authorizeSession", [...terms, signature]]);
    const byKey = await prepare([{ vaultId: ticket, to: friend }]);
    expect(refusal(await submitted(byKey, {}, game)).code).toBe("signature_invalid");
    const facts = {
      owner: owner.address.toLowerCase() as Hex,
      key: game.address.toLowerCase() as Hex,
    };
    const place = { txHash: `0x${"5a".repeat(32)}`, blockNumber: 500n, logIndex: 0 } as const;
    const opened = {
      ...facts,
      until: BigInt(until),
      limit: 1n,
      assetType: erc721.assetType,
      authorizedAt: 1_000n,
    };
    await engine.operator.recordEvents(
      chainId,
      [{ type: "sessionAuthorized", ...opened, ...place }],
      500n,
    );
    expect((await session()).body.status).toBe("pending");
    const again = await world.send("POST", "/api/v1/session-keys/prepare", { body: wanted });
    expect([again.status, again.body.errors]).toMatchObject([400, [{ pointer: "/keyAddress" }]]);
    await engine.operator.recordFinalized(chainId, 500n);
    expect((await session()).body).toMatchObject({
      status: "active",
      limit: "1",
      assetType: erc721.assetType,
    });
    expect((await submitted(byKey, {}, game)).status).toBe(202);
    const other = await prepare([{ vaultId: units, to: friend }]);
    expect(refusal(await submitted(other, {}, game)).code).toBe("signature_invalid");
    const { data } = (await session()).body.revocation;
    expect(decodeFunctionData({ abi: stateCommitmentAbi, data })).toEqual({
      functionName: "revokeSession",
      // Without a signature the owner's own account sends it.
      args: [owner.address, game.address, "0x"],
    });
    const revoked = {
      type: "sessionRevoked",
      ...facts,
      revokedAt: 2_000n,
      ...place,
      blockNumber: 501n,
    } as const;
    await engine.operator.recordEvents(chainId, [revoked], 501n);
    expect((await session()).body).toMatchObject({ status: "revoked", revokedAt: "2000" });
  });
});
