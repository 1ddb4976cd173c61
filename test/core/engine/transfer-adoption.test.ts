import { describe, expect, it } from "vitest";
import { type Database, type Engine, type L1Event, MODES, type Mode, type VaultId } from "../../../core/index.ts";
import type { Transfer } from "../../../core/protocol/transfers.ts";
import { memory, mintOf, OWNERS, openTest, refusal, requestOf } from "./fixture.ts";
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
  const tell = async (event: L1Event) => {
    events.push(event);
    await hear(made.engine, event);
  };
  /** L1 takes what the first engine has sealed, and it is final. */
  const settle = async () => {
    for (const mode of MODES) {
      for (const { status, batchNumber } of (await Array.fromAsync(made.engine.batches.list({ mode }))).reverse()) {
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
    const request = await signedTransfers({ engine, clock: made.clock }, transfers, { signer: signer as never });
    const { transferId } = await engine.transfers.request(made.tenant.principal, request);
    return () => engine.transfers.get(made.tenant.applicationId, transferId);
  };
  const withdraw = (vaultId: VaultId, units: bigint) => tell(withdrawn(vaultId, units, units, friend, ++block));
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
        const { batchRoot, dataHash, data, vaultCount } = await made.engine.batches.getSealed(mode, number);
        batches.push({ mode, batchNumber: number, batchRoot, dataHash, data, vaultCount });
      }
      return { mode, first: from, batches };
    };
    await other.operator.adopt([await claims("zk-rollup", 0), await claims("validium", 1)]);
    expect((await other.operator.verify()).problems).toEqual([]);
    await other.operator.recordEvents(HOME, events, block);
    await other.operator.recordFinalized(HOME, block);
    expect((await other.operator.verify()).problems).toEqual([]);
  };
  /** What both say of each vault, whichever user of the owner holds it. */
  const same = async () => {
    for (const mode of MODES) {
      const { countValidium, countRollup } = made.engine.batches.state();
      for (let number = 0; number < (mode === "validium" ? countValidium : countRollup); number++) {
        const { vaultCount } = await made.engine.batches.get(mode, number);
        expect((await other.batches.get(mode, number)).kind).toBe((await made.engine.batches.get(mode, number)).kind);
        const first = (mode === "validium" ? 0n : 1n << 63n) | (BigInt(number) << 20n);
        for (let slot = 0n; slot < vaultCount; slot++) {
          const [here, there] = await Promise.all(
            [made.engine, other].map((engine) => engine.vaults.content(first | slot).catch(({ code }) => code)),
          );
          expect([first | slot, there]).toEqual([first | slot, here]);
        }
      }
    }
  };
  return { ...made, other, give, settle, withdraw, adopt, same };
}

describe("a store that adopts L1's history", () => {
  it("has its transfers, through several hops, splits, redemptions and withdrawals", async () => {
    const world = await twoHistories();
    const { engine, other, tenant, assets, token, units, items, give, settle, adopt, same } = world;
    const first = await give(engine, [whole(token), { vaultId: items, amount: 3n, to: friend }]);
    await engine.operator.sealTransfers();
    await settle();
    const [given, part] = (await first()).transfers.map(({ newVaultId }) => newVaultId ?? 0n) as [bigint, bigint];
    await engine.mint(tenant.principal, requestOf(tenant.users[3], mintOf(assets.erc20, "", 8, "zk-rollup")));
    await engine.mint(tenant.principal, requestOf(tenant.users[3], mintOf(assets.erc721, 77)));
    await give(engine, [whole(given, third), { vaultId: part, amount: 0n, to: `0x${"00".repeat(20)}` }], OWNERS[1]);
    await give(engine, [{ vaultId: units, amount: 60n, to: third }]);
    await engine.operator.sealTransfers();
    await engine.operator.seal("validium");
    await world.withdraw(units, 50n);
    await settle();
    await adopt();
    await same();
    // The receivers are users of the application here, too, and the chain of records goes on.
    const tip = (1n << 63n) | (2n << 20n);
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
});
