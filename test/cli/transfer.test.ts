import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createClient, transfer } from "../../server/client/index.ts";
import { type TransferWorld, transferWorld } from "../server/transfers-fixture.ts";
import { mintmark } from "./cli.ts";

const ownerKey = generatePrivateKey();
const owner = privateKeyToAccount(ownerKey);
const friend = privateKeyToAccount(generatePrivateKey()).address;

let made: TransferWorld;
let settings: Record<string, string>;
beforeAll(async () => {
  made = await transferWorld(owner);
  const url = await made.world.app.listen({ host: "127.0.0.1", port: 0 });
  settings = { MINTMARK_URL: url, MINTMARK_OWNER_KEY: ownerKey };
});
afterAll(() => made.world[Symbol.asyncDispose]());

test("an owner gives a vault away with its key alone, and waits until that is final", async () => {
  const { ticket } = await made.final();
  const given = mintmark(["transfer", ticket, "--to", friend, "--wait", "--json"], settings);
  const { engine, applicationId } = made.world;
  const isAccepted = async () =>
    (await engine.transactions.list(applicationId, { type: "transfer" })).data.length > 0;
  await expect.poll(isAccepted).toBe(true);
  await engine.operator.sealTransfers();
  await made.commit("zk-rollup");
  const { code, json } = await given;
  expect(code).toBe(0);
  const { status, transfers } = json();
  expect(status).toBe("finalized");
  expect(transfers).toMatchObject([{ vaultId: ticket, to: friend.toLowerCase(), hops: 1 }]);
  const { ownerAddress } = await engine.vaults.get(applicationId, BigInt(transfers[0].newVaultId));
  expect(ownerAddress).toBe(friend.toLowerCase());
});

test("an application redeems a part of a vault with its API key and the owner's signature", async () => {
  const { units } = await made.final();
  const byKey = { ...settings, MINTMARK_API_KEY: made.world.key };
  const nowhere = await mintmark(["redeem", units], {
    ...settings,
    MINTMARK_URL: "http://127.0.0.1:1",
  });
  expect([nowhere.code, nowhere.stderr]).toEqual([
    3,
    expect.stringContaining("is its address right?"),
  ]);
  const { code, stdout } = await mintmark(["redeem", units, "--amount", "3"], byKey);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^status +accepted$/m);
  const { code: again, stderr } = await mintmark(["redeem", units], byKey);
  expect(again).toBe(1);
  expect(stderr).toContain("vault_spent");
});

test("a transfer to nobody, of a part of several vaults, or by a session without an API key is not sent", async () => {
  const zero = `0x${"00".repeat(20)}`;
  for (const [args, message] of [
    [["transfer", "1", "--to", zero], "use `mintmark redeem`"],
    [["redeem", "1", "2", "--amount", "3"], "--amount and --units are for one vault"],
    [["redeem", "1", "--session"], "--session needs MINTMARK_API_KEY"],
    [["redeem", "1", "--deadline", "tomorrow"], "--deadline: give a time such as"],
  ] as const) {
    const { code, stderr } = await mintmark(args, settings);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  }
});

test("the client signs nothing but what it was asked for", async () => {
  const { ticket } = await made.final();
  const deadline = String(Math.floor(Date.now() / 1000) + 7_200);
  let [truth, lie] = [friend.toLowerCase(), `0x${"ee".repeat(20)}`];
  const lying: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    return new Response((await response.text()).replaceAll(truth, lie), response);
  };
  const client = createClient({
    baseUrl: settings.MINTMARK_URL ?? "",
    apiKey: made.world.key,
    fetch: lying,
  });
  const signer = () => Promise.reject(new Error("asked to sign"));
  const attempt = (options: { deadline?: string } = { deadline }) =>
    transfer(client, { transfers: [{ vaultId: ticket, to: friend }], signer, ...options });
  await expect(attempt()).rejects.toThrow("other transfers than it was asked for");
  [truth, lie] = [deadline, `${deadline}0`];
  await expect(attempt()).rejects.toThrow("another deadline than it was asked for");
  // The server chooses the deadline, but not one that keeps the signature usable for years.
  [truth, lie] = ['"deadline":"', '"deadline":"9'];
  await expect(attempt({})).rejects.toThrow("another deadline than it was asked for");
  // The message of a session can hold the transfers as well, and would give its key every vault of
  // the owner.
  for (const [from, to] of [
    ['"primaryType":"Transfers"', '"primaryType":"Session"'],
    ['"name":"Mintmark"', '"name":"Permit2"'],
  ] as const) {
    [truth, lie] = [from, to];
    await expect(attempt()).rejects.toThrow("another message than it was asked for");
  }
});

test("a transfer that L1 has cannot be cancelled any more, and no transaction is sent", async () => {
  const { ticket } = await made.final();
  const byKey = { ...settings, MINTMARK_API_KEY: made.world.key };
  const { json: given } = await mintmark(["transfer", ticket, "--to", friend, "--json"], byKey);
  const { engine, applicationId } = made.world;
  const { transferId } = given();
  await engine.operator.sealTransfers();
  await made.commit("zk-rollup");
  const isFinal = async () =>
    (await engine.transfers.get(applicationId, transferId)).status === "finalized";
  await expect.poll(isFinal).toBe(true);
  // Nothing answers at this address, so an attempt to send would end with another error.
  const chain = {
    MINTMARK_RPC_URL: "http://127.0.0.1:1",
    MINTMARK_CONTRACT: `0x${"11".repeat(20)}`,
  };
  const { code, stderr } = await mintmark(["cancel-transfer", given().digest], {
    ...byKey,
    ...chain,
  });
  expect(code).toBe(1);
  expect(stderr).toContain("can no longer be cancelled");
});
