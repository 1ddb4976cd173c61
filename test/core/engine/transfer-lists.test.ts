import { zeroAddress } from "viem";
import { describe, expect, it, vi } from "vitest";
import {
  STATUSES,
  type Transaction,
  type TransactionFilter,
  type TransferFilter,
} from "../../../core/index.ts";
import { MAX_GROUP_TRANSFERS } from "../../../core/protocol/index.ts";
import { PREFIX } from "../../../core/store/store-keys.ts";
import { all, type Fixture, mintOf, OWNERS, requestOf } from "./fixture.ts";
import { commitAll, signedTransfers, transferable } from "./transfers-fixture.ts";

const friend = OWNERS[1].address.toLowerCase() as `0x${string}`;

/** Transfers of every status, among mints of both modes at other times. */
async function busy() {
  const world = await transferable();
  const { engine, tenant, assets, units, items, token, clock } = world;
  const later = () => {
    clock.now += 10_000;
  };
  const mint = async (mode: "validium" | "zk-rollup", id: number) => {
    later();
    await engine.mint(
      tenant.principal,
      requestOf(tenant.users[0], mintOf(assets.erc721, id, 1, mode)),
    );
  };
  const ask = async (vaultId: bigint, amount: bigint, to = friend) => {
    later();
    return engine.transfers.request(
      tenant.principal,
      await signedTransfers(world, [{ vaultId, amount, to }]),
    );
  };
  const first = await ask(units, 30n);
  await mint("validium", 100);
  await engine.operator.seal("validium");
  later();
  await engine.operator.sealTransfers();
  later();
  await mint("zk-rollup", 101);
  await engine.operator.seal("zk-rollup");
  await commitAll(engine, "zk-rollup", 0);
  await commitAll(engine, "validium", 1);
  const made = (await engine.transfers.get(tenant.applicationId, first.transferId)).transfers;
  await ask(made[1]?.newVaultId ?? 0n, 10n);
  await mint("zk-rollup", 102);
  await engine.operator.sealTransfers();
  await ask(items, 0n, zeroAddress);
  await mint("validium", 103);
  await ask(token, 0n);
  clock.now += 100_000_000;
  expect(await engine.operator.sealTransfers()).toBeNull();
  const open = await ask(token, 0n);
  expect(open.status).toBe("accepted");
  return { ...world, made };
}

describe("lists with transfers", () => {
  it("miss nothing, whatever filter narrows them", async () => {
    const { engine, tenant, made } = await busy();
    const { applicationId } = tenant;
    const list = (filter: TransactionFilter) =>
      all(engine.transactions.list(applicationId, { ...filter, limit: 2 }));
    const every = await list({ order: "asc" });
    expect(new Set(every.map(({ status }) => status))).toEqual(
      new Set(["accepted", "batched", "finalized", "failed"]),
    );
    const check = async (filter: TransactionFilter, holds: (one: Transaction) => boolean) => {
      const expected = every.filter(holds).map(({ transactionId }) => transactionId);
      const ids = (found: readonly Transaction[]) =>
        found.map(({ transactionId }) => transactionId);
      for (const type of [undefined, "transfer", "mint"] as const) {
        const wanted = every.filter(
          (one) => holds(one) && (type === undefined || one.type === type),
        );
        expect(
          ids(await list({ ...filter, type, order: "asc" })),
          JSON.stringify([filter.status, type]),
        ).toEqual(ids(wanted));
        expect(ids(await list({ ...filter, type }))).toEqual(ids(wanted).reverse());
      }
      return expected.length;
    };
    for (const status of [
      "accepted",
      "batched",
      "submitted",
      "settled",
      "finalized",
      "failed",
    ] as const)
      await check({ status }, (one) => one.status === status);
    for (const batchId of new Set(every.map((one) => one.batchId))) {
      expect(await check({ batchId }, (one) => one.batchId === batchId)).toBeGreaterThan(0);
    }
    for (const user of tenant.users) {
      const found = await list({ userId: user.userId, status: "finalized" });
      const isTheirs = ({ transactionId }: Transaction) =>
        made.some((one) => one.transactionId === transactionId && one.toUserId === user.userId);
      expect(found.map((one) => one.transactionId)).toEqual(
        every
          .filter(
            (one) => one.status === "finalized" && (one.userId === user.userId || isTheirs(one)),
          )
          .map((one) => one.transactionId)
          .reverse(),
      );
    }
    for (const vaultId of new Set(every.map((one) => one.vaultId))) {
      const maker = made
        .filter(({ newVaultId }) => newVaultId === vaultId)
        .map(({ transactionId }) => transactionId);
      await check(
        { vaultId },
        (one) => one.vaultId === vaultId || maker.includes(one.transactionId),
      );
    }
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  it("of signed lists miss none of a status or a time, newest first, on pages of any length", async () => {
    const { engine, tenant } = await busy();
    const { applicationId } = tenant;
    const list = (filter: TransferFilter) => all(engine.transfers.list(applicationId, filter));
    const every = await list({});
    expect(every.map(({ status }) => status)).toEqual([
      "accepted",
      "failed",
      "failed",
      "batched",
      "finalized",
    ]);
    const amounts = new Map(
      every.flatMap(({ transfers }) => transfers.map((one) => [one.transactionId, one.amount])),
    );
    const transactions = await all(engine.transactions.list(applicationId, { type: "transfer" }));
    expect(new Map(transactions.map((one) => [one.transactionId, one.amount || null]))).toEqual(
      amounts,
    );
    const { transactionId, amount } = transactions.at(-1) as Transaction;
    expect(await engine.transactions.get(applicationId, transactionId)).toMatchObject({ amount });
    for (const limit of [1, 2, 100]) {
      expect(await list({ limit })).toEqual(every);
      for (const status of STATUSES)
        expect(await list({ status, limit }), status).toEqual(
          every.filter((one) => one.status === status),
        );
    }
    const [newest, , third, , oldest] = every.map(({ createdAt }) => createdAt) as [
      number,
      ...number[],
    ];
    expect(await list({ createdAfter: oldest ?? 0, createdBefore: newest, limit: 1 })).toEqual(
      every.slice(1, 4),
    );
    expect(await list({ createdAfter: (third ?? 0) - 1, createdBefore: (third ?? 0) + 1 })).toEqual(
      [every[2]],
    );
    expect(await list({ createdAfter: newest })).toEqual([]);
    const wrong = (await engine.transfers.list(applicationId, { limit: 1 })).nextCursor ?? "";
    await expect(list({ cursor: wrong, status: "failed" })).rejects.toThrow(
      expect.objectContaining({ code: "cursor_invalid" }),
    );
  });

  it("of signed lists name the giver, the token, and what is given, kept and burnt", async () => {
    const world = await transferable();
    const { engine, tenant, assets, units, token, items } = world;
    const transfers = [
      { vaultId: units, amount: 30n, to: zeroAddress },
      { vaultId: items, amount: 0n, to: zeroAddress },
      { vaultId: token, amount: 0n, to: friend },
    ];
    const { transferId } = await engine.transfers.request(
      tenant.principal,
      await signedTransfers(world, transfers),
    );
    const read = async () => {
      const { transfers: shown } = await engine.transfers.get(tenant.applicationId, transferId);
      return shown.map(({ assetId, tokenId, from, amount }) => [assetId, tokenId, from, amount]);
    };
    const [{ erc20, erc721, erc1155 }, from] = [assets, OWNERS[0].address.toLowerCase()];
    const shown = (amounts: readonly (bigint | null)[]) => [
      [erc20, null, from, amounts[0]],
      [erc20, null, from, amounts[1]],
      [erc1155, 5n, from, amounts[2]],
      [erc721, 1n, from, amounts[3]],
    ];
    expect(await read()).toEqual(shown([30n, null, null, null]));
    await engine.operator.sealTransfers();
    expect(await read()).toEqual(shown([30n, 70n, 7n, 1n]));
    const { after } = await engine.transfers.history(items);
    expect(after).toMatchObject([{ to: zeroAddress, amount: 7n }]);
  });

  it("of signed lists show the largest first, and look at few of those that they do not show", async () => {
    const world = await transferable();
    const { engine, tenant, assets } = world;
    const size = MAX_GROUP_TRANSFERS;
    const vaultIds: bigint[] = [];
    for (let i = 0; i < 6; i++) {
      const mints = Array.from({ length: size }, (_, at) =>
        mintOf(assets.erc721, 10_000 + i * size + at),
      );
      const { transactions } = await engine.mint(
        tenant.principal,
        requestOf(tenant.users[0], ...mints),
      );
      vaultIds.push(...transactions.map(({ vaultId }) => vaultId));
    }
    await engine.operator.seal("validium");
    await commitAll(engine, "validium", 1);
    for (let i = 0; i < 6; i++) {
      const transfers = vaultIds
        .slice(i * size, (i + 1) * size)
        .map((vaultId) => ({ vaultId, amount: 0n, to: friend }));
      await engine.transfers.request(tenant.principal, await signedTransfers(world, transfers));
    }
    const { applicationId } = tenant;
    const first = await engine.transfers.list(applicationId);
    expect(first).toMatchObject({ data: [{ transfers: { length: size } }], hasMore: true });
    expect(await all(engine.transfers.list(applicationId))).toHaveLength(6);
    const none = await engine.transfers.list(applicationId, { status: "failed" });
    expect(none).toMatchObject({ data: [], hasMore: true });
    const rest = await engine.transfers.list(applicationId, {
      status: "failed",
      cursor: none.nextCursor ?? "",
    });
    expect(rest).toMatchObject({ data: [], hasMore: false });
  });

  it("find an ERC-721 token where it is now", async () => {
    const world = await transferable();
    const { engine, tenant, token, assets } = world;
    const move = async (vaultId: bigint, to: `0x${string}`, signer = OWNERS[0]) => {
      const request = await signedTransfers(world, [{ vaultId, amount: 0n, to }], { signer });
      const { transferId } = await engine.transfers.request(tenant.principal, request);
      const batch = await engine.operator.sealTransfers();
      await commitAll(engine, "zk-rollup", batch?.batchNumber ?? 0);
      return (
        (await engine.transfers.get(tenant.applicationId, transferId)).transfers[0]?.newVaultId ??
        null
      );
    };
    const search = () =>
      all(engine.vaults.list(tenant.applicationId, { assetId: assets.erc721, tokenId: 1n }));
    expect((await search()).map(({ vaultId }) => vaultId)).toEqual([token]);
    const given = await move(token, friend);
    expect((await search()).map(({ vaultId, ownerAddress }) => [vaultId, ownerAddress])).toEqual([
      [given, friend],
    ]);
    await move(given ?? 0n, zeroAddress, OWNERS[1]);
    expect(
      (await search()).map(({ vaultId, transferredBalance }) => [vaultId, transferredBalance]),
    ).toEqual([[given, 1n]]);
  });
});

describe("work", () => {
  /** The records of lists that a call reads. */
  async function listsRead(
    { database }: Pick<Fixture, "database">,
    call: () => Promise<unknown>,
  ): Promise<number> {
    const isList = (key: unknown) => (key as Buffer)[0] === PREFIX.transferList;
    const one = vi.spyOn(database, "get");
    const many = vi.spyOn(database, "getMany");
    await call();
    const read = [
      ...one.mock.calls.map(([key]) => key),
      ...many.mock.calls.flatMap(([keys]) => keys),
    ].filter(isList);
    one.mockRestore();
    many.mockRestore();
    return read.length;
  }

  /** Tokens that one user holds, final on L1. */
  async function tokens(count: number, rollupBytes: number) {
    const world = await transferable({ limits: { rollupBytes } });
    const { engine, tenant, assets } = world;
    const mints = Array.from({ length: count }, (_, i) =>
      mintOf(assets.erc721, 2 + i, 1, "validium"),
    );
    const { transactions } = await engine.mint(
      tenant.principal,
      requestOf(tenant.users[0], ...mints),
    );
    await engine.operator.seal("validium");
    await commitAll(engine, "validium", 1);
    const giver = OWNERS[0].address.toLowerCase() as `0x${string}`;
    const given = (ids: readonly bigint[]) =>
      ids.map((vaultId) => ({ vaultId, amount: 0n, to: giver }));
    return { world, given, vaultIds: transactions.map(({ vaultId }) => vaultId as bigint) };
  }

  it("of a request reads the list that made its vaults once, and not once for each of them", async () => {
    const { world, given, vaultIds } = await tokens(100, 8_192);
    const { engine, tenant } = world;
    const first = await signedTransfers(world, given(vaultIds));
    const { transferId } = await engine.transfers.request(tenant.principal, first);
    await engine.operator.sealTransfers();
    await commitAll(engine, "zk-rollup", 0);
    const { transfers } = await engine.transfers.get(tenant.applicationId, transferId);
    const again = { transfers: given(transfers.map(({ newVaultId }) => newVaultId ?? 0n)) };
    expect(await listsRead(world, () => engine.transfers.prepare(tenant.principal, again))).toBe(1);
  });

  it("of a page of a user's transactions is bounded by the lists that it reads, and not by what they give to the user", async () => {
    const { world, vaultIds } = await tokens(7_000, 126_976);
    const { engine, tenant } = world;
    const [, , rare] = tenant.users;
    for (let i = 0; i < vaultIds.length; i += 1_000) {
      const ids = vaultIds.slice(i, i + 1_000);
      const to = (j: number) =>
        (j === 0 ? OWNERS[2].address.toLowerCase() : friend) as `0x${string}`;
      const list = ids.map((vaultId, j) => ({ vaultId, amount: 0n, to: to(j) }));
      await engine.transfers.request(tenant.principal, await signedTransfers(world, list));
    }
    const filter = { userId: rare?.userId ?? "", type: "transfer", status: "failed" } as const;
    const page = () => engine.transactions.list(tenant.applicationId, filter);
    expect(await listsRead(world, async () => expect((await page()).data).toEqual([]))).toBe(5);
    expect(
      await all(engine.transactions.list(tenant.applicationId, { ...filter, status: "accepted" })),
    ).toHaveLength(7);
  });

  it("of a batch reads no more waiting lists than it takes, and the first one behind them", async () => {
    const { world, given, vaultIds } = await tokens(30, 2_048);
    const { engine, tenant } = world;
    for (let i = 0; i < vaultIds.length; i++)
      await engine.transfers.request(
        tenant.principal,
        await signedTransfers(world, given(vaultIds.slice(i, i + 1))),
      );
    const carried = Math.floor((2_048 - 1) / 100);
    expect(await listsRead(world, () => engine.operator.sealTransfers())).toBe(carried + 1);
    expect((await engine.batches.get("zk-rollup", 0)).vaultCount).toBe(carried);
  });
});
