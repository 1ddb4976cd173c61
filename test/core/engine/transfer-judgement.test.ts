import { privateKeyToAccount } from "viem/accounts";
import { describe, expect, it } from "vitest";
import type { L1Event } from "../../../core/index.ts";
import { type Transfer, transfersDigest } from "../../../core/protocol/transfer.ts";
import { all, hashOf, OWNERS, refusal } from "./fixture.ts";
import { committed, HOME, signed, withdrawn } from "./l1-fixture.ts";
import { commits, signedTransfers, transferable } from "./transfers-fixture.ts";

const [owner] = OWNERS;
const ownerAddress = owner.address.toLowerCase() as `0x${string}`;
const friend = OWNERS[1].address.toLowerCase() as `0x${string}`;
const gameKey = privateKeyToAccount(`0x${"77".repeat(32)}`);
const ANY_ASSET = `0x${"00".repeat(32)}` as const;

type Made = Awaited<ReturnType<typeof transferable>>;
type Told = L1Event extends infer E
  ? E extends L1Event
    ? Omit<E, "txHash" | "blockNumber" | "logIndex">
    : never
  : never;

const whole = (vaultId: bigint, to: `0x${string}` = friend): Transfer => ({ vaultId, amount: 0n, to });

async function noProblems({ engine }: Pick<Made, "engine">): Promise<void> {
  expect((await engine.operator.verify()).problems).toEqual([]);
}

/** L1 tells of one event in a block, and of nothing else up to it. */
async function tell({ engine }: Made, event: Told, blockNumber: bigint): Promise<void> {
  const at = { txHash: hashOf(Number(blockNumber)), blockNumber, logIndex: 3 };
  await engine.operator.recordEvents(HOME, [{ ...event, ...at } as L1Event], blockNumber);
}

async function commit({ engine }: Made, batchNumber: number, blockNumber: bigint, committedAt?: bigint): Promise<void> {
  const event = await committed(engine, "zk-rollup", batchNumber, blockNumber);
  const sequence = await commits(engine);
  const told = { ...event, sequence, ...(committedAt !== undefined && { committedAt }) };
  await engine.operator.recordEvents(HOME, [told], blockNumber);
}

async function asked(made: Made, transfers: readonly Transfer[], options?: Parameters<typeof signedTransfers>[2]) {
  const { engine, tenant } = made;
  const { transferId } = await engine.transfers.request(
    tenant.principal,
    await signedTransfers(made, transfers, options),
  );
  return { transferId, read: () => engine.transfers.get(tenant.applicationId, transferId) };
}

const amounts = ({ transfers }: Awaited<ReturnType<Made["engine"]["transfers"]["get"]>>) =>
  transfers.map(({ amount }) => amount);

async function balances({ engine, tenant }: Made, user: number) {
  const found = await all(engine.vaults.balances(tenant.applicationId, tenant.users[user]?.userId ?? ""));
  return found.map(({ amount, available }) => [amount, available]);
}

describe("L1 decides transfers at the commit:", () => {
  it("a withdrawal of what the receiver no longer gets fails", async () => {
    const made = await transferable();
    const { engine, tenant, units } = made;
    const list = await asked(made, [whole(units)]);
    await engine.operator.sealTransfers();
    const vaultId = (await list.read()).transfers[0]?.newVaultId ?? 0n;
    const request = await signed(made, 100n, { vaultId, signer: OWNERS[1] as never, recipient: friend });
    const { withdrawalId } = await engine.withdrawals.request(tenant.principal, request);
    await engine.operator.recordEvents(HOME, [withdrawn(units, 30n, 30n, ownerAddress, 900n)], 900n);
    await commit(made, 0, 901n);
    const { status, failure } = await engine.withdrawals.get(tenant.applicationId, withdrawalId);
    expect([status, failure]).toEqual(["failed", expect.stringContaining("given this vault less")]);
    expect(await balances(made, 1)).toEqual([[70n, 70n]]);
    await noProblems(made);
  });

  it("a commit behind the deadline moves nothing, and the engine tells it", async () => {
    const made = await transferable();
    const { engine, tenant, units } = made;
    const list = await asked(made, [whole(units)]);
    const { deadline } = await list.read();
    await engine.operator.sealTransfers();
    await commit(made, 0, 901n, deadline + 1n);
    const { status, transfers } = await list.read();
    expect([status, transfers[0]?.amount]).toEqual(["settled", 0n]);
    expect(transfers[0]?.failure).toContain("after the deadline");
    expect(await balances(made, 0)).toContainEqual([100n, 0n]);
    const [transaction] = await all(engine.transactions.list(tenant.applicationId, { type: "transfer" }));
    expect(transaction).toMatchObject({ status: "failed", failure: transfers[0]?.failure });
    const events = await all(engine.events.stream(tenant.applicationId, { after: 0 }));
    expect(events.at(-1)).toMatchObject({ type: "transfer.failed", data: { failure: transfers[0]?.failure } });
    await noProblems(made);
  });
});

describe("a list is authorized by", () => {
  const HOUR = 3_600n;
  const session = (made: Made, more: Partial<Extract<Told, { type: "sessionAuthorized" }>> = {}) => ({
    type: "sessionAuthorized" as const,
    owner: owner.address,
    key: gameKey.address,
    until: BigInt(made.clock.now) / 1000n + 10n * HOUR,
    limit: 40n,
    assetType: ANY_ASSET,
    authorizedAt: 1_850n,
    ...more,
  });
  const part = (vaultId: bigint, amount: bigint) => ({ vaultId, amount, to: friend });
  const byKey = { signer: gameKey };

  it("a key whose session is final, and covers asset, amount and deadline", async () => {
    const made = await transferable();
    const { engine, tenant, units, items } = made;
    const ask = async (transfers: readonly Transfer[], seconds = 7_200) =>
      refusal(
        engine.transfers.request(tenant.principal, await signedTransfers(made, transfers, { ...byKey, seconds })),
      );
    const invalid = { code: "signature_invalid" };
    expect(await ask([part(units, 40n)])).toMatchObject(invalid);
    const { assetType } = (await engine.vaults.get(tenant.applicationId, units)) ?? {};
    await tell(made, session(made, { assetType }), 900n);
    expect(await ask([part(units, 40n)])).toMatchObject(invalid);
    const known = () => engine.transfers.session(owner.address, gameKey.address);
    expect(await known()).toMatchObject({ limit: 40n, revokedAt: 0n, isFinal: false });
    await engine.operator.recordFinalized(HOME, 900n);
    expect([(await known())?.isFinal, await engine.transfers.session(friend, gameKey.address)]).toEqual([true, null]);
    expect(await ask([part(units, 41n)])).toMatchObject(invalid);
    expect(await ask([whole(units)])).toMatchObject(invalid);
    expect(await ask([part(items, 2n)])).toMatchObject(invalid);
    expect(await ask([part(units, 40n)], 11 * 3_600)).toMatchObject(invalid);
    const list = await asked(made, [part(units, 40n)], byKey);
    await noProblems(made);
    await engine.operator.sealTransfers();
    await commit(made, 0, 901n);
    expect(amounts(await list.read())).toEqual([40n, 60n]);
    await noProblems(made);
  });

  it("the owner's approval on L1, without a signature", async () => {
    const made = await transferable();
    const { engine, tenant, units } = made;
    const { signature: _, ...message } = await signedTransfers(made, [whole(units)]);
    const request = { ...message, signature: "0x" as const };
    const digest = transfersDigest(engine.settlement, message);
    const ask = () => engine.transfers.request(tenant.principal, request);
    expect(await refusal(ask())).toMatchObject({ code: "signature_invalid" });
    await tell(made, { type: "transfersApproved", owner: owner.address, digest, approvedAt: 1_850n }, 900n);
    expect(await refusal(ask())).toMatchObject({ code: "signature_invalid" });
    await engine.operator.recordFinalized(HOME, 900n);
    const { transferId } = await ask();
    await engine.operator.sealTransfers();
    await commit(made, 0, 901n);
    expect(amounts(await engine.transfers.get(tenant.applicationId, transferId))).toEqual([100n]);
    await noProblems(made);
  });
});
