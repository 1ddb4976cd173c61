import { describe, expect, it } from "vitest";
import type { Database, Engine, L1Event, Mode, VaultId } from "../../../core/index.ts";
import { LevelJournal, MODES, restoreStore } from "../../../core/index.ts";
import type { SealedBatch } from "../../../core/ports.ts";
import type { Transfer } from "../../../core/protocol/transfer.ts";
import type { TransferGroup } from "../../../core/protocol/transfer-data.ts";
import { claimed } from "../../settlement/transfers-fixture.ts";
import {
  hashOf,
  knownAsset,
  memory,
  mintOf,
  OWNERS,
  openTest,
  refusal,
  requestOf,
} from "./fixture.ts";
import { committed, HOME, hear, withdrawn } from "./l1-fixture.ts";
import { commits, signedTransfers, transferable } from "./transfers-fixture.ts";

const friend = OWNERS[1].address.toLowerCase() as `0x${string}`;
const third = OWNERS[2].address.toLowerCase() as `0x${string}`;
const whole = (vaultId: VaultId, to = friend): Transfer => ({ vaultId, amount: 0n, to });
const BINARY = { keyEncoding: "buffer", valueEncoding: "buffer" } as const;

async function copyOf(database: Database): Promise<Database> {
  const copy = memory();
  await copy.open();
  const records = await database.iterator<Buffer, Buffer>(BINARY).all();
  await copy.batch(
    records.map(([key, value]) => ({ type: "put" as const, key, value })),
    BINARY,
  );
  await copy.close();
  return copy;
}

/** An engine with a history of its own, and one whose store is a copy of what it was before. */
async function twoHistories() {
  const database = memory();
  const made = await transferable({ store: database });
  const other = await openTest(await copyOf(database), { clock: made.clock.read });
  let block = 900n;
  const events: L1Event[] = [];
  const hostile: SealedBatch[] = [];
  const tell = async (event: L1Event) => {
    events.push(event);
    await hear(made.engine, event);
  };
  /** L1 takes what the first engine has sealed, and it is final. */
  const settle = async () => {
    for (const mode of MODES) {
      for (const { status, batchNumber } of (
        await Array.fromAsync(made.engine.batches.list({ mode }))
      ).reverse()) {
        if (status !== "sealed") continue;
        const event = await committed(made.engine, mode, batchNumber, ++block);
        await tell({ ...event, sequence: await commits(made.engine) });
      }
    }
    await made.engine.operator.recordFinalized(HOME, block);
  };
  const give = async (
    engine: Engine,
    transfers: readonly Transfer[],
    signer = OWNERS[0] as (typeof OWNERS)[number],
  ) => {
    const request = await signedTransfers({ engine, clock: made.clock }, transfers, {
      signer: signer as never,
    });
    const { transferId } = await engine.transfers.request(made.tenant.principal, request);
    return () => engine.transfers.get(made.tenant.applicationId, transferId);
  };
  const withdraw = (vaultId: VaultId, units: bigint) =>
    tell(withdrawn(vaultId, units, units, friend, ++block));
  /** The second engine learns that L1 has the first one's history. */
  const adopt = async () => {
    const [first] = events.filter((event) => event.type === "batchCommitted");
    const foreign = { ...(first as object), batchRoot: `0x${"11".repeat(32)}` } as L1Event;
    expect((await refusal(hear(other, foreign))).code).toBe("history_diverged");
    const claims = async (mode: Mode, from: number) => {
      const { countValidium, countRollup } = made.engine.batches.state();
      const count = mode === "validium" ? countValidium : countRollup;
      const batches = [];
      for (let number = from; number < count; number++) {
        const { batchRoot, dataHash, data, vaultCount } = await made.engine.batches.getSealed(
          mode,
          number,
        );
        batches.push({ mode, batchNumber: number, batchRoot, dataHash, data, vaultCount });
      }
      if (mode === "zk-rollup") batches.push(...hostile);
      return { mode, first: from, batches };
    };
    await other.operator.adopt([await claims("zk-rollup", 0), await claims("validium", 1)]);
    expect((await other.operator.verify()).problems).toEqual([]);
    await other.operator.recordEvents(HOME, events, block);
    await other.operator.recordFinalized(HOME, block);
    expect((await other.operator.verify()).problems).toEqual([]);
  };
  /** L1 takes a batch of transfers that no Mintmark engine makes. */
  const attack = async (groups: readonly TransferGroup[]) => {
    const { countRollup: batchNumber } = made.engine.batches.state();
    const batch = claimed(groups, batchNumber + hostile.length);
    const { batchRoot, vaultCount, dataHash } = batch;
    const header = {
      batchRoot,
      vaultCount,
      committedAt: 1000n + ++block,
      sequence: await nextSequence(),
    };
    const place = { txHash: hashOf(Number(block)), blockNumber: block, logIndex: 0 };
    events.push({
      type: "batchCommitted",
      mode: "zk-rollup",
      batchNumber: batch.batchNumber,
      dataHash,
      ...place,
      ...header,
    });
    hostile.push(batch);
    return batch.batchNumber;
  };
  const nextSequence = async () => (await commits(made.engine)) + BigInt(hostile.length);
  /** Both say this of each vault, whichever user of the owner holds it. */
  const same = async () => {
    for (const mode of MODES) {
      const { countValidium, countRollup } = made.engine.batches.state();
      for (let number = 0; number < (mode === "validium" ? countValidium : countRollup); number++) {
        const { vaultCount } = await made.engine.batches.get(mode, number);
        expect((await other.batches.get(mode, number)).kind).toBe(
          (await made.engine.batches.get(mode, number)).kind,
        );
        const first = (mode === "validium" ? 0n : 1n << 63n) | (BigInt(number) << 20n);
        for (let slot = 0n; slot < vaultCount; slot++) {
          const [here, there] = await Promise.all(
            [made.engine, other].map((engine) =>
              engine.vaults.content(first | slot).catch(({ code }) => code),
            ),
          );
          expect([first | slot, there]).toEqual([first | slot, here]);
        }
      }
    }
  };
  return { ...made, other, give, settle, withdraw, attack, adopt, same, events };
}

describe("a store that adopts L1's history", () => {
  it("has its transfers, through several hops, splits, redemptions and withdrawals", async () => {
    const world = await twoHistories();
    const { engine, other, tenant, assets, token, units, items, give, settle, adopt, same } = world;
    const first = await give(engine, [whole(token), { vaultId: items, amount: 3n, to: friend }]);
    await engine.operator.sealTransfers();
    await settle();
    const [given, part] = (await first()).transfers.map(({ newVaultId }) => newVaultId ?? 0n) as [
      bigint,
      bigint,
    ];
    await engine.mint(
      tenant.principal,
      requestOf(tenant.users[3], mintOf(assets.erc20, "", 8, "zk-rollup")),
    );
    await engine.mint(tenant.principal, requestOf(tenant.users[3], mintOf(assets.erc721, 77)));
    await give(
      engine,
      [whole(given, third), { vaultId: part, amount: 0n, to: `0x${"00".repeat(20)}` }],
      OWNERS[1],
    );
    await give(engine, [{ vaultId: units, amount: 60n, to: third }]);
    await engine.operator.sealTransfers();
    await engine.operator.seal("validium");
    await world.withdraw(units, 50n);
    await settle();
    await adopt();
    await same();
    // The receivers are users of the application here, too, and the chain of records goes on.
    // The batch has its lists in the order of their vaults.
    const tip = (1n << 63n) | (2n << 20n) | 2n;
    const again = await give(other, [whole(tip, friend)], OWNERS[2]);
    await other.operator.sealTransfers();
    expect((await again()).transfers).toMatchObject([{ vaultId: tip, hops: 3, amount: 1n }]);
    expect((await other.operator.verify()).problems).toEqual([]);
  });

  it("gives up lists whose vaults are gone there, and keeps the others waiting", async () => {
    const world = await twoHistories();
    const { engine, other, token, units, items, give, settle, adopt, same } = world;
    const goesOn = await give(other, [whole(units)]);
    await other.operator.sealTransfers();
    const conflicts = await give(other, [whole(items, third)]);
    const shared = [whole(token)];
    const alike = await give(other, shared);
    await give(engine, [whole(items)]);
    await give(engine, shared);
    await engine.operator.sealTransfers();
    await settle();
    await adopt();
    await same();
    expect([(await goesOn()).status, (await alike()).status]).toEqual(["accepted", "finalized"]);
    await other.operator.sealTransfers();
    expect((await conflicts()).failure).toContain("Another transfer");
    expect([(await goesOn()).status, (await conflicts()).status]).toEqual(["batched", "failed"]);
    expect((await other.operator.verify()).problems).toEqual([]);
  });

  it("takes over from an operator that has committed records which L1 does not count", async () => {
    const world = await twoHistories();
    const { engine, other, tenant, assets, token, units, items, settle, attack, adopt } = world;
    const mint = requestOf(tenant.users[1], mintOf(assets.erc20, "", 9));
    const [foreign] = (await engine.mint(tenant.principal, mint)).transactions.map(
      ({ vaultId }) => vaultId,
    );
    await engine.operator.seal("validium");
    await settle();
    const signed = (
      transfers: readonly Transfer[],
      signer = OWNERS[0] as (typeof OWNERS)[number],
    ) =>
      signedTransfers({ engine, clock: world.clock }, transfers, {
        signer: signer as never,
      }) as Promise<TransferGroup>;
    const rollup = (batch: bigint, slot: bigint) => (1n << 63n) | (batch << 20n) | slot;
    // Slots that the batch does not have, and a record that spends what comes of one.
    const [missing, absent, beyond] = [97n, 98n, 99n];
    await attack([
      await signed([whole(missing, third)]),
      await signed([whole(absent), whole(units), { vaultId: beyond, amount: 3n, to: third }]),
      await signed([whole(foreign ?? 0n, third), whole(items, third)]),
    ]);
    await attack([await signed([whole(rollup(0n, 0n))], OWNERS[2]), await signed([whole(token)])]);
    await adopt();

    const content = (vaultId: bigint) =>
      other.proofs.content(vaultId).then(
        ({ owner, amount }) => [owner, amount],
        ({ code }) => code,
      );
    const made = async (batch: bigint, count: number) =>
      Promise.all(Array.from({ length: count }, (_, slot) => content(rollup(batch, BigInt(slot)))));
    const none = "vault_not_found";
    expect(await made(0n, 7)).toEqual([none, none, [friend, 100n], none, none, none, [third, 7n]]);
    expect(await made(1n, 2)).toEqual([none, [friend, 1n]]);
    // An owner can withdraw a vault whose record does not count, with the record as the refutation.
    const refuted = async (vaultId: bigint) => {
      const { vault, header, refutation } = await other.proofs.exit(vaultId);
      return [vault.vaultId, header !== null, refutation?.outId];
    };
    expect(await refuted(foreign ?? 0n)).toEqual([foreign, true, rollup(0n, 5n)]);
    for (const id of [rollup(0n, 0n), rollup(0n, 1n), rollup(1n, 0n)]) {
      expect((await other.transfers.history(id)).before.map(({ status }) => status)).not.toContain(
        "finalized",
      );
      expect((await refusal(other.proofs.exit(id))).code).toBe(none);
    }

    const lists = await Promise.all(
      [units, foreign ?? 0n].map(
        async (id) => (await other.transfers.history(id)).after[0]?.transferId ?? "",
      ),
    );
    const [adopted] = (await Array.fromAsync(other.applications.list())).filter(({ name }) =>
      name.startsWith("Adopted"),
    );
    const rooms = [tenant.applicationId, adopted?.applicationId ?? ""];
    const all = await Promise.all(lists.map((id, i) => other.transfers.get(rooms[i] ?? "", id)));
    const counted = all.map(({ transfers }) =>
      transfers.map(({ from, failure }) => [from, failure === null]),
    );
    const [ann, bob] = [OWNERS[0].address.toLowerCase(), friend];
    const gone = [`0x${"00".repeat(20)}`, false];
    expect(counted).toEqual([
      [gone, [ann, true], gone, gone],
      [
        [bob, false],
        [ann, true],
      ],
    ]);

    // A reorganisation drops the batches, L1 takes them again, and a restored store says the same.
    await other.operator.recordReorg(HOME, 902n, "below final");
    await other.operator.recordEvents(HOME, world.events.slice(-2), 950n);
    expect(await made(0n, 7)).toEqual([none, none, [friend, 100n], none, none, none, [third, 7n]]);
    await using journal = await LevelJournal.open(memory());
    await other.operator.backup(journal);
    const copy = memory();
    await restoreStore(journal, copy);
    const restored = await openTest(copy, { clock: world.clock.read, createIfMissing: false });
    expect((await restored.operator.verify()).problems).toEqual([]);
    expect((await restored.proofs.exit(foreign ?? 0n)).refutation?.outId).toBe(rollup(0n, 5n));

    // L1 no longer has them. Their lists fail, and the vaults are free.
    await restored.operator.recordReorg(HOME, 902n, "below final");
    for (const batch of [0, 1]) {
      expect(await restored.operator.transferFault(batch, 2_000n)).not.toBeNull();
      await restored.operator.takeBackTransfers(batch, "L1 has replaced it");
    }
    await restored.operator.sealTransfers();
    expect((await restored.transfers.history(units)).after).toEqual([]);
    expect((await restored.operator.verify()).problems).toEqual([]);
  });

  it("takes a batch without any vault into a new store, once the store has an asset", async () => {
    const engine = await openTest(memory(), {});
    const self = 1n << 63n;
    const signature = `0x${"00".repeat(64)}` as const;
    const records = [whole(self), { vaultId: 5n, amount: 3n, to: friend }, whole(self | 3n)];
    const batch = claimed([{ transfers: records, deadline: 5n, signature }], 0);
    const { batchRoot, vaultCount, dataHash } = batch;
    const header = { batchRoot, vaultCount, committedAt: 1000n, sequence: 0n };
    const place = { batchNumber: 0, txHash: hashOf(5), blockNumber: 5n, logIndex: 0 };
    const event: L1Event = {
      type: "batchCommitted",
      mode: "zk-rollup",
      dataHash,
      ...place,
      ...header,
    };
    expect((await refusal(hear(engine, event))).code).toBe("history_diverged");
    const histories = [
      { mode: "zk-rollup", first: 0, batches: [batch] },
      { mode: "validium", first: 0, batches: [] },
    ] as const;
    expect((await refusal(engine.operator.adopt(histories))).code).toBe("asset_not_found");
    await knownAsset(engine, "erc721");
    await engine.operator.adopt(histories);
    await hear(engine, event);
    const { before, after } = await engine.transfers.history(self);
    expect([before.length, after.length]).toEqual([1, 1]);
    const [room] = await Array.fromAsync(engine.applications.list());
    const list = await engine.transfers.get(room?.applicationId ?? "", after[0]?.transferId ?? "");
    expect(list.transfers.map(({ tokenId, failure }) => [tokenId, failure !== null])).toEqual(
      Array.from({ length: 4 }, () => [null, true]),
    );
    expect((await refusal(engine.vaults.get(room?.applicationId ?? "", self))).code).toBe(
      "vault_not_found",
    );
    expect((await engine.operator.verify()).problems).toEqual([]);
  });
});
