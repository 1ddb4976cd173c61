import { decodeFunctionData } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { afterAll, expect, test } from "vitest";
import type { L1Event } from "../../core/index.ts";
import { stateCommitmentAbi } from "../../core/l1/abi.ts";
import { createWorld, refusal, SETTLEMENT } from "./fixture.ts";

const owner = privateKeyToAccount(`0x${"11".repeat(32)}`);
const HOUR = 3_600n;
const DEADLINE = BigInt(Math.floor(Date.now() / 1000)) + HOUR;

const world = await createWorld();
const { body } = await world.send("POST", "/api/v1/users", {
  body: { ownerAddress: owner.address },
});
const userId: string = body.userId;
afterAll(() => world[Symbol.asyncDispose]());

/** A vault of 10 units, in a sealed batch or in the open one. */
async function vault(sealed: boolean): Promise<string> {
  const mint = {
    mintingBlob: "",
    assetId: world.erc20.assetId,
    amount: 10,
    dataAvailabilityMode: "validium",
  };
  const { body } = await world.send("POST", "/api/v1/mint", {
    body: { users: [{ userId, mints: [mint] }] },
  });
  if (sealed) await world.engine.operator.seal("validium");
  return body.vaults[0].vaultId;
}

const DOMAIN = {
  name: "Mintmark",
  version: "1",
  chainId: Number(SETTLEMENT.chainId),
  verifyingContract: SETTLEMENT.contract,
} as const;

/**
 * A list as its owner signs it, by the documentation alone: 4 units of each vault unless changed.
 */
async function signedList(
  vaultIds: readonly string[],
  { quantity = 4n, deadline = DEADLINE, by = owner } = {},
) {
  const vaults = vaultIds.map((vaultId) => ({
    vaultId: BigInt(vaultId),
    withdrawnBefore: 0n,
    quantity,
  }));
  const signature = await by.signTypedData({
    domain: DOMAIN,
    types: {
      WithdrawalList: [
        { name: "vaults", type: "ListedVault[]" },
        { name: "recipient", type: "address" },
        { name: "deadline", type: "uint64" },
      ],
      ListedVault: [
        { name: "vaultId", type: "uint64" },
        { name: "withdrawnBefore", type: "uint64" },
        { name: "quantity", type: "uint64" },
      ],
    },
    primaryType: "WithdrawalList",
    message: { vaults, recipient: owner.address, deadline },
  });
  const listed = vaultIds.map((vaultId) => ({ vaultId, quantity: `${quantity}` }));
  return { vaults: listed, deadline: deadline.toString(), signature };
}

const signed = (vaultId: string, change: Parameters<typeof signedList>[1] = {}) =>
  signedList([vaultId], change);

const ask = (body: object, key?: string) =>
  world.send("POST", "/api/v1/withdrawals", { body, ...(key && { key }) });

test("an owner's signed withdrawal is accepted, reserves its quantity and is listed", async () => {
  const vaultId = await vault(true);
  const { status, body: answer } = await ask(await signed(vaultId));
  expect(status).toBe(202);
  const [{ withdrawal: body }] = answer.vaults;
  expect(body).toMatchObject({
    vaultId,
    userId,
    quantity: "4",
    withdrawnBefore: "0",
    status: "accepted",
  });
  expect(body.recipient).toBe(owner.address.toLowerCase());
  expect((await world.send("GET", `/api/v1/withdrawals/${body.withdrawalId}`)).body).toEqual(body);
  expect((await world.send("GET", `/api/v1/vaults/${vaultId}`)).body).toMatchObject({
    amount: "10",
    availableBalance: "6",
    withdrawnBalance: "0",
    transferredBalance: "0",
  });
  const { body: transactions } = await world.send("GET", "/api/v1/transactions?type=withdrawal");
  expect(transactions.data[0]).toMatchObject({
    transactionId: body.withdrawalId,
    amount: "4",
    mintId: null,
  });
  const again = await ask(await signed(vaultId));
  expect([again.status, again.body]).toEqual([202, answer]);
  const other = await ask(await signed(vaultId, { quantity: 3n }));
  expect(refusal(other)).toMatchObject({ status: 409, code: "withdrawal_pending" });
});

test("each refusal has its code, and reserves nothing", async () => {
  const [sealed, open] = [await vault(true), await vault(false)];
  const good = await signed(sealed);
  const readOnly = await world.newKey(["read", "mint"]);
  const before = await world.snapshot();
  const refused = async (body: object, key?: string) => refusal(await ask(body, key));
  expect(await refused(await signed(open))).toMatchObject({ status: 409, code: "proof_not_ready" });
  expect(await refused(good, world.otherKey)).toMatchObject({
    status: 404,
    code: "vault_not_found",
  });
  expect(await refused(good, readOnly)).toMatchObject({ status: 403, code: "scope_missing" });
  expect(
    await refused({
      vaults: [{ vaultId: 1, quantity: "01", more: 1 }],
      deadline: "-1",
      signature: "x",
    }),
  ).toEqual({
    status: 400,
    code: "validation_failed",
    errors: [
      ...["/vaults/0/vaultId", "/vaults/0/quantity", "/vaults/0/more", "/deadline", "/signature"],
    ].map((field) => `${field} validation_failed`),
  });
  expect(await world.snapshot()).toEqual(before);
});

test("once its batch is committed on L1, a vault's proof comes with calldata for its owner alone", async () => {
  await world.engine.operator.seal("validium");
  const vaultId = await vault(true);
  const path = `/api/v1/vaults/${vaultId}/proof`;
  expect((await world.send("GET", path)).body).toMatchObject({
    header: null,
    withdrawCalldata: null,
  });
  const { batchId } = (await world.send("GET", `/api/v1/vaults/${vaultId}`)).body;
  const commits: L1Event[] = [];
  for (let batchNumber = 0; batchNumber <= Number(batchId.split("-")[1]); batchNumber++) {
    const { batchRoot, dataHash, vaultCount } = await world.engine.batches.getSealed(
      "validium",
      batchNumber,
    );
    commits.push({
      ...{ type: "batchCommitted", mode: "validium", batchNumber, batchRoot, dataHash, vaultCount },
      ...{ committedAt: 1_800_000_000n, sequence: BigInt(batchNumber) },
      ...{ txHash: `0x${"aa".repeat(32)}`, blockNumber: 9n, logIndex: batchNumber },
    });
  }
  await world.engine.operator.recordEvents(world.engine.settlement.chainId, commits, 9n);
  const { body } = await world.send("GET", path);
  expect(body.header).toMatchObject({ committedAt: "1800000000", vaultCount: 1 });
  const { functionName, args } = decodeFunctionData({
    abi: stateCommitmentAbi,
    data: body.withdrawCalldata,
  });
  const [content, header, vaultPath, quantity, recipient, ...others] = args as readonly unknown[];
  expect(functionName).toBe("withdraw");
  expect(content).toMatchObject({ vaultId: BigInt(vaultId), amount: 10n, owner: owner.address });
  expect(header).toMatchObject({ batchRoot: body.batchRoot, committedAt: 1_800_000_000n });
  const alone = { siblings: [], assetIndex: 0, assetSiblings: [] };
  expect([vaultPath, quantity, recipient]).toEqual([alone, 10n, owner.address]);
  expect(others).toEqual([]);
  const { body: settled } = await world.send("GET", `/api/v1/transactions?vaultId=${vaultId}`);
  expect(settled.data[0]).toMatchObject({
    status: "settled",
    l1BlockNumber: "9",
    l1TxHash: `0x${"aa".repeat(32)}`,
  });
  const { body: committed } = await world.send("GET", `/public/v1/batches/${batchId}`);
  expect(committed).toMatchObject({ status: "settled", committedAt: "1800000000" });
});

test("an owner's one signature withdraws from many vaults, and the answer says of each what came of it", async () => {
  const [one, two] = [await vault(true), await vault(true)];
  const list = await signedList([one, "77", two]);
  const { status, body } = await ask(list);
  expect(status).toBe(202);
  expect(body.vaults).toEqual([
    {
      vaultId: one,
      withdrawal: expect.objectContaining({ quantity: "4", status: "accepted", userId }),
      error: null,
    },
    {
      vaultId: "77",
      withdrawal: null,
      error: { code: "vault_not_found", detail: expect.any(String) },
    },
    { vaultId: two, withdrawal: expect.objectContaining({ vaultId: two }), error: null },
  ]);
  expect((await ask(list)).body).toEqual(body);
  const readOnly = await world.newKey(["read", "mint"]);
  const before = await world.snapshot();
  const refused = async (change: object, key?: string) =>
    refusal(await ask({ ...list, ...change }, key));
  expect(await refused({ deadline: (DEADLINE + 1n).toString() })).toMatchObject({
    code: "signature_invalid",
  });
  expect(await refused(await signedList([one], { deadline: 1n }))).toMatchObject({
    code: "deadline_invalid",
  });
  expect(await refused({}, world.otherKey)).toMatchObject({ status: 404, code: "vault_not_found" });
  expect(await refused({}, readOnly)).toMatchObject({ code: "scope_missing" });
  const many = Array.from({ length: 257 }, (_, i) => ({ vaultId: `${i}`, quantity: "1" }));
  for (const vaults of [[], many, [{ vaultId: 1, quantity: "1" }], "no"]) {
    expect(await refused({ vaults })).toMatchObject({ status: 400, code: "validation_failed" });
  }
  const twice = [list.vaults[0], list.vaults[0]];
  expect(await refused({ vaults: twice })).toMatchObject({
    status: 400,
    code: "validation_failed",
  });
  expect(await world.snapshot()).toEqual(before);
});
