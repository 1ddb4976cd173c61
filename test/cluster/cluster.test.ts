import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { MemoryLevel } from "memory-level";
import { afterAll, describe, expect, test } from "vitest";
import { beginJournal, ClusterNode, type ClusterOptions } from "../../core/cluster/node.ts";
import { PostgresJournal } from "../../core/cluster/postgres-journal.ts";
import type { Journal, L1Event } from "../../core/index.ts";
import { LevelJournal, openEngine } from "../../core/index.ts";
import { FillSender, type L1Trader, ordersOf } from "../../core/orders/index.ts";
import { KzgThread } from "../../core/protocol/kzg/kzg-thread.ts";
import { type OrderMessage, orderTypedData } from "../../core/protocol/typed-data.ts";
import { packVaultId, unpackVaultId } from "../../core/protocol/vault.ts";
import { lower } from "../../scripts/deploy/deployer.ts";
import {
  all,
  knownAsset,
  mintingBlobOf,
  mintOf,
  newTenant,
  OWNERS,
  requestOf,
  SETTLEMENT,
} from "../core/engine/fixture.ts";
import { HOME, made, withdrawn } from "../core/engine/l1-fixture.ts";
import { testDatabase } from "./database.ts";

const database = await testDatabase();
const folder = await mkdtemp(join(tmpdir(), "mintmark-nodes-"));
afterAll(async () => {
  await database[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

const KEY = randomBytes(32);
let shards = 0;
const newShard = () => `test-${shards++}`;
const server = (name: string) => ({ name, url: `http://${name}.test` });
const open = (shard: string, keys: readonly Uint8Array[] = [KEY]) =>
  PostgresJournal.open({ url: database.primary.url, shard, keys });
const texts = async (journal: Journal, from: number) =>
  (await all(journal.read(from))).map((entry) => Buffer.from(entry).toString());

/** Acts as if a standby of PostgreSQL that lacked the newest entry had become the primary. */
async function loseLast(shard: string, last: number): Promise<void> {
  const before = `select hash from mintmark_journal where shard = '${shard}' and position = ${last - 1}`;
  await database.primary.query(
    `begin;
    update mintmark_shard set head = ${last}, confirmed = ${last}, hash = (${before}) where id = '${shard}';
    delete from mintmark_journal where shard = '${shard}' and position = ${last};
    commit`,
  );
}

describe.each([
  {
    name: "LevelJournal",
    make: async () => {
      const level = new MemoryLevel<Buffer, Buffer>({ storeEncoding: "buffer" });
      return LevelJournal.open(level);
    },
  },
  {
    name: "PostgresJournal",
    make: async () => {
      const journal = await open(newShard());
      expect(await journal.lead(server("a"), 5_000)).not.toBeNull();
      return journal;
    },
  },
])("$name keeps what the port promises", ({ make }) => {
  test("entries in order, from any number on, without a gap", async () => {
    await using journal = await make();
    expect(await journal.length()).toBe(0);
    expect(await texts(journal, 0)).toEqual([]);
    const entries = Array.from({ length: 70 }, (_, i) => Buffer.from(`entry ${i}`));
    await journal.append(0, entries.slice(0, 3));
    await journal.append(3, entries.slice(3));
    await journal.append(70, []);
    expect(await journal.length()).toBe(70);
    expect(await texts(journal, 0)).toEqual(entries.map(String));
    expect(await texts(journal, 68)).toEqual(["entry 68", "entry 69"]);
    expect(await texts(journal, 70)).toEqual([]);
  });

  test("an append at another length changes nothing", async () => {
    await using journal = await make();
    await journal.append(0, [Buffer.from("one")]);
    for (const length of [0, 2]) {
      await expect(journal.append(length, [Buffer.from("two")])).rejects.toMatchObject({
        code: "store_mismatch",
      });
    }
    expect(await texts(journal, 0)).toEqual(["one"]);
  });

  test("entries of any bytes and of one megabyte", async () => {
    await using journal = await make();
    const entries = [Buffer.alloc(0), Buffer.from([0, 255, 39, 92]), randomBytes(1 << 20)];
    await journal.append(0, entries);
    expect((await all(journal.read(0))).map((entry) => Buffer.from(entry).toString("hex"))).toEqual(
      entries.map((entry) => entry.toString("hex")),
    );
  });
});

describe("the journal on PostgreSQL", () => {
  test("has one leader: the old one's entries never follow the new one's", async () => {
    const shard = newShard();
    await using one = await open(shard);
    await using two = await open(shard);
    const first = await one.lead(server("one"), 60_000);
    await one.append(0, [Buffer.from("of one")]);
    expect(await two.lead(server("two"), 60_000)).toBeNull();
    // The lease ends at once, as if its server had stood still for longer than that.
    const takeOver = async () => {
      await database.primary.query(
        `update mintmark_shard set lease_until = '-infinity' where id = '${shard}'`,
      );
      return two.lead(server("two"), 5_000);
    };
    await expect.poll(takeOver).toMatchObject({ epoch: 2, length: 1 });
    await expect(one.append(1, [Buffer.from("too late")])).rejects.toMatchObject({
      code: "not_leader",
    });
    expect(first?.lost.aborted).toBe(true);
    await two.append(1, [Buffer.from("of two")]);
    expect(await texts(two, 0)).toEqual(["of one", "of two"]);
    expect((await two.status()).leader).toEqual(server("two"));
  });

  test("does not acknowledge while no standby has the entry, not even when the wait is cancelled", async () => {
    const shard = newShard();
    await using journal = await open(shard);
    await journal.lead(server("a"), 2_000);
    await journal.append(0, [Buffer.from("one")]);
    database.standby.freeze(true);
    let isAcknowledged = false;
    const appended = journal.append(1, [Buffer.from("two")]).then(() => {
      isAcknowledged = true;
    });
    try {
      for (let i = 0; i < 4; i++) {
        await pause(150);
        await database.primary.query(
          "select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'",
        );
      }
      // The primary shows the entry, which proves nothing.
      await expect
        .poll(() =>
          database.primary.query(
            `select 1 from mintmark_journal where shard = '${shard}' and position = 1`,
          ),
        )
        .toHaveLength(1);
      expect(isAcknowledged).toBe(false);
      await using reader = await open(shard);
      expect(await texts(reader, 0)).toEqual(["one"]);
    } finally {
      database.standby.freeze(false);
    }
    await appended;
    expect(await texts(journal, 0)).toEqual(["one", "two"]);
  });

  test("does not acknowledge an entry for which PostgreSQL waits no longer", async () => {
    const shard = newShard();
    await using journal = await open(shard);
    const lead = await journal.lead(server("a"), 2_000);
    await journal.append(0, [Buffer.from("one")]);
    // From here to the next heartbeat nothing else waits for the standby.
    await expect.poll(async () => (await journal.status()).confirmed).toBe(1);
    database.standby.freeze(true);
    let isAcknowledged = false;
    const appended = journal.append(1, [Buffer.from("two")]).then(() => {
      isAcknowledged = true;
    });
    const waiting = () =>
      database.primary.query("select 1 from pg_stat_activity where wait_event = 'SyncRep'");
    try {
      await expect.poll(waiting).not.toEqual([]);
      // A manager of PostgreSQL does this when its standbys are gone. It ends the waits, in success
      // and without a warning.
      await database.primary.query("alter system set synchronous_standby_names = ''");
      await database.primary.query("select pg_reload_conf()");
      await expect.poll(waiting).toEqual([]);
      await expect.poll(() => lead?.available).toBe(false);
      expect(isAcknowledged).toBe(false);
    } finally {
      await database.primary.query("alter system reset synchronous_standby_names");
      await database.primary.query("select pg_reload_conf()");
      database.standby.freeze(false);
    }
    await appended;
    expect(await texts(journal, 0)).toEqual(["one", "two"]);
  });

  test("has a new leader when the old one is silent, however the database's clock jumps", async () => {
    const shard = newShard();
    await using journal = await open(shard);
    await database.primary.query(
      `update mintmark_shard set epoch = 1, leader = 'gone', url = 'http://gone.test',
        lease_until = clock_timestamp() + interval '1 hour' where id = '${shard}'`,
    );
    expect((await journal.status()).leader).toEqual({ name: "gone", url: "http://gone.test" });
    expect(await journal.lead(server("a"), 60_000)).toBeNull();
    await expect.poll(() => journal.lead(server("a"), 200)).toMatchObject({ epoch: 2 });
  });

  test("a server whose takeover is in doubt gives way to one that takes over meanwhile", async () => {
    const shard = newShard();
    await using journal = await open(shard);
    const waits = () =>
      database.primary.query("select pid from pg_stat_activity where wait_event = 'SyncRep'");
    const cancel = async () => {
      await expect.poll(waits, { interval: 20 }).not.toEqual([]);
      await database.primary.query(
        "select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'",
      );
    };
    database.standby.freeze(true);
    try {
      const lead = journal.lead(server("slow"), 5_000);
      await cancel();
      // It confirms its lead now. The other's write waits for the row, then for no standby.
      await expect.poll(waits, { interval: 20 }).not.toEqual([]);
      const overtaken = database.primary.query(
        `set synchronous_commit = local;
        update mintmark_shard set epoch = epoch + 1, leader = 'quick', url = 'http://quick.test' where id = '${shard}'`,
      );
      await cancel();
      await overtaken;
      expect(await lead).toBeNull();
    } finally {
      database.standby.freeze(false);
    }
    expect((await journal.status()).epoch).toBe(2);
  });

  test("a leader without a change to append notices that the database has lost its newest entry", async () => {
    const shard = newShard();
    await using journal = await open(shard);
    const lead = await journal.lead(server("a"), 400);
    await journal.append(0, [Buffer.from("kept"), Buffer.from("lost")]);
    await loseLast(shard, 1);
    await expect.poll(() => lead?.lost.aborted).toBe(true);
    expect((await journal.status()).confirmed).toBe(1);
  });

  test("continues after its connections were cut, without a repeated entry", async () => {
    await using journal = await open(newShard());
    await journal.lead(server("a"), 5_000);
    for (let i = 0; i < 20; i++) {
      const appended = journal.append(i, [Buffer.from(`entry ${i}`)]);
      if (i % 3 === 0) {
        await database.primary.query(
          "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'mintmark %'",
        );
      }
      await appended;
    }
    expect(await texts(journal, 0)).toEqual(Array.from({ length: 20 }, (_, i) => `entry ${i}`));
  });

  test("stores no plain text, and refuses a changed, moved or foreign entry", async () => {
    const shard = newShard();
    await using journal = await open(shard);
    await journal.lead(server("a"), 5_000);
    await journal.append(0, [Buffer.from("a secret of a webhook"), Buffer.from("another")]);
    const rows = await database.primary.query(
      `select body from mintmark_journal where shard = '${shard}'`,
    );
    expect(rows.map(({ body }) => String(body)).join()).not.toContain("secret");
    await expect.poll(async () => (await journal.status()).confirmed).toBe(2);
    await using stranger = await open(shard, [randomBytes(32)]);
    await expect(texts(stranger, 0)).rejects.toMatchObject({ code: "store_corrupt" });
    // A new key in front, and the old one behind it.
    await using rotated = await open(shard, [randomBytes(32), KEY]);
    expect(await texts(rotated, 0)).toHaveLength(2);
    const copy = `update mintmark_journal set body = (select body from mintmark_journal where shard = '${shard}' and position = 0)`;
    await database.primary.query(`${copy} where shard = '${shard}' and position = 1`);
    await expect(texts(rotated, 0)).rejects.toMatchObject({ code: "store_corrupt" });
  });

  test("refuses a database that keeps one copy, unless the operator accepts that", async () => {
    const standby = { url: database.standby.url, shard: "x", keys: [KEY] };
    await expect(PostgresJournal.open(standby)).rejects.toMatchObject({
      code: "journal_unavailable",
      message: expect.stringContaining("is a standby"),
    });
    await database.primary.query("alter system set synchronous_standby_names = ''");
    await database.primary.query("select pg_reload_conf()");
    try {
      await expect
        .poll(() => database.primary.query("show synchronous_standby_names"))
        .toEqual([{ synchronous_standby_names: "" }]);
      await expect(open(newShard())).rejects.toThrow("synchronous_standby_names is empty");
      const options = { url: database.primary.url, shard: newShard(), keys: [KEY], single: true };
      await using single = await PostgresJournal.open(options);
      await single.lead(server("a"), 5_000);
      await single.append(0, [Buffer.from("one")]);
      expect(await texts(single, 0)).toEqual(["one"]);
    } finally {
      await database.primary.query("alter system reset synchronous_standby_names");
      await database.primary.query("select pg_reload_conf()");
    }
  });
});

describe("a cluster", () => {
  async function join(
    shard: string,
    name: string,
    options: Partial<ClusterOptions> = {},
  ): Promise<ClusterNode> {
    return ClusterNode.join({
      store: `${folder}/${shard}-${name}`,
      journal: await open(shard),
      server: server(name),
      settlement: SETTLEMENT,
      environment: "sandbox",
      createIfMissing: true,
      leaseMs: 10_000,
      ...options,
    });
  }
  const caughtUp = (node: ClusterNode, leader: ClusterNode) =>
    expect.poll(() => node.position).toBe(leader.position);

  test("has a leader that mints and standbys that show it, refuse changes, and take over", async () => {
    const shard = newShard();
    await using one = await join(shard, "one");
    await using two = await join(shard, "two");
    expect([one.role, two.role, two.leader]).toEqual(["leader", "standby", server("one")]);
    const asset = await knownAsset(one.engine, "erc721");
    const tenant = await newTenant(one.engine, [asset]);
    const minted = await one.engine.mint(
      tenant.principal,
      requestOf(tenant.users[0], mintOf(asset, 1)),
    );
    await caughtUp(two, one);
    const { vaultId = 0n } = minted.vaults[0] ?? {};
    expect(await two.engine.vaults.get(tenant.applicationId, vaultId)).toEqual(
      await one.engine.vaults.get(tenant.applicationId, vaultId),
    );
    await expect(
      two.engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(asset, 2))),
    ).rejects.toMatchObject({ code: "not_leader" });
    await one.engine.operator.seal("validium");
    await caughtUp(two, one);
    expect(await two.engine.proofs.vault(vaultId)).toEqual(await one.engine.proofs.vault(vaultId));
    const state = one.engine.batches.state();
    expect(two.engine.batches.state()).toEqual(state);
    await one.close();
    await expect.poll(() => two.role).toBe("leader");
    expect(two.engine.batches.state()).toEqual(state);
    await expect(
      two.engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(asset, 1))),
    ).rejects.toMatchObject({ code: "token_already_minted" });
    await two.engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(asset, 2)));
    expect((await two.engine.operator.verify()).problems).toEqual([]);
  });

  test("a takeover keeps open orders and a fill in flight, and ends both once", async () => {
    const shard = newShard();
    await using one = await join(shard, "one");
    await using two = await join(shard, "two");
    const asset = await knownAsset(one.engine, "erc1155");
    await one.engine.operator.recordRegistered(asset, { transferable: true });
    const tenant = await newTenant(one.engine, [asset]);
    const { applicationId, principal } = tenant;
    const orders = ({ engine }: ClusterNode) => ordersOf(engine);
    const terms = { listing: "application", fee: null, assets: [] } as const;
    await orders(one).setTerms(applicationId, terms);
    const { assetType } = await one.engine.assets.get(applicationId, asset);
    const [seller, buyer] = [OWNERS[0], OWNERS[1]];
    const item = (owner: typeof seller | typeof buyer, id: number, amount: bigint) => ({
      owner: lower(owner.address),
      assetType,
      amount,
      mintingBlob: mintingBlobOf(id),
    });
    const vaults = [item(seller, 1, 1n), item(buyer, 2, 250n), item(seller, 3, 1n)];
    const hearFinal = (node: ClusterNode, events: readonly L1Event[], block: bigint) =>
      node.engine.operator.recordEvents(HOME, events, block, { finalized: block });
    await hearFinal(one, [made(1, vaults, 1n)], 1n);
    const [sword = 0n, purse = 0n, shield = 0n] = [0, 1, 2].map((slot) =>
      packVaultId({ mode: "made", batchNumber: 1, slot }),
    );
    const sign = (order: OrderMessage, signer: typeof seller | typeof buyer) =>
      signer.signTypedData(orderTypedData(one.engine.settlement, order));
    const listed = async (vaultId: bigint) => {
      const want = { assetId: asset, tokenId: 2n, amount: 250n };
      const { order } = await orders(one).prepare(principal, { vaultId, want });
      return orders(one).create(principal, { ...order, signature: await sign(order, seller) });
    };
    const { orderId } = await listed(sword);
    const open = await listed(shield);
    const counter = await orders(one).prepareFill(principal, orderId, { vaultId: purse });
    const signature = await sign(counter.order, buyer);
    const request = { ...counter.order, signature };
    const taken = await orders(one).fill(principal, orderId, request);
    await caughtUp(two, one);
    const shown = (node: ClusterNode) => all(orders(node).list(applicationId));
    expect(await shown(two)).toEqual(await shown(one));
    await expect(orders(two).cancel(principal, open.orderId)).rejects.toMatchObject({
      code: "not_leader",
    });

    await one.close();
    await expect.poll(() => two.role).toBe("leader");
    expect(await orders(two).fill(principal, orderId, request)).toEqual(taken);
    await expect(
      orders(two).prepareFill(principal, open.orderId, { vaultId: purse }),
    ).rejects.toMatchObject({ code: "fill_pending" });
    const swapped = [{ ...item(buyer, 1, 1n) }, { ...item(seller, 2, 250n) }];
    const events = [
      withdrawn(sword, 1n, 1n, buyer.address, 2n, 0),
      withdrawn(purse, 250n, 250n, seller.address, 2n, 1),
      { ...made(2, swapped, 2n), logIndex: 2 },
    ];
    await hearFinal(two, events, 2n);
    await two.engine.operator.recordFinalized(HOME, 2n);
    const l1 = { blockNumber: async () => 2n } as L1Trader;
    expect(await new FillSender({ engine: two.engine, l1 }).send()).toBe(0);
    const status = async (id: string) => (await orders(two).get(applicationId, id)).status;
    expect(await status(orderId)).toBe("settled");
    expect(await status(taken.orderId)).toBe("settled");
    expect(await status(open.orderId)).toBe("open");
    expect((await orders(two).cancel(principal, open.orderId)).status).toBe("cancelled");
    expect((await two.engine.operator.verify()).problems).toEqual([]);
  });

  test("a takeover goes on with the open rollup batch, and seals the one that the leader could only close", async () => {
    const shard = newShard();
    await using works = { kzg: new KzgThread(), [Symbol.asyncDispose]: () => works.kzg.close() };
    await using one = await join(shard, "one", {
      kzg: new KzgThread(new URL("file:///missing.mjs")),
    });
    await using two = await join(shard, "two", { kzg: works.kzg });
    const asset = await knownAsset(one.engine, "erc721");
    const { principal, users } = await newTenant(one.engine, [asset]);
    const MODE = "zk-rollup";
    const texts = (id: number) => [`${id}`, `${id}${"x".repeat(70)}`];
    const mint = async ({ engine }: ClusterNode, id: number) => {
      const mints = texts(id).map((text) => mintOf(asset, text, 1, MODE));
      const { vaults } = await engine.mint(principal, requestOf(users[0], ...mints));
      return vaults
        .map(({ vaultId }) => unpackVaultId(vaultId))
        .map(({ batchNumber, slot }) => [batchNumber, slot]);
    };
    one.engine.operator.placeInBlobs(SETTLEMENT.chainId, true);
    expect(await mint(one, 1)).toEqual([
      [0, 0],
      [0, 1],
    ]);
    await expect(one.engine.operator.seal(MODE)).rejects.toMatchObject({ code: "kzg_unavailable" });
    expect(await mint(one, 2)).toEqual([
      [1, 0],
      [1, 1],
    ]);
    await caughtUp(two, one);
    const kinds = async ({ engine }: ClusterNode) =>
      (await all(engine.batches.list({ mode: MODE }))).map(({ batchId, kind, status }) => [
        batchId,
        kind,
        status,
      ]);
    expect(await kinds(two)).toEqual(await kinds(one));
    expect(two.engine.batches.getOpen(MODE)).toMatchObject({
      batchNumber: 1,
      vaultCount: 2,
    });

    await one.close();
    await expect.poll(() => two.role).toBe("leader");
    await expect.poll(() => two.engine.batches.state().countRollup).toBe(1);
    two.engine.operator.placeInBlobs(SETTLEMENT.chainId, true);
    expect(await mint(two, 3)).toEqual([
      [1, 2],
      [1, 3],
    ]);
    for (const text of [1, 2, 3].flatMap(texts)) {
      const again = two.engine.mint(principal, requestOf(users[0], mintOf(asset, text, 1, MODE)));
      await expect(again).rejects.toMatchObject({ code: "token_already_minted" });
    }
    expect(await two.engine.operator.seal(MODE)).toMatchObject({
      batchNumber: 1,
      kind: "blobs",
      vaultCount: 4,
    });
    // The new leader sealed the closed one before it knew that L1 takes blobs.
    expect(await kinds(two)).toEqual([
      [`${MODE}-1`, "blobs", "sealed"],
      [`${MODE}-0`, "calldata", "sealed"],
    ]);
    expect((await two.engine.operator.verify()).problems).toEqual([]);
  });

  test("a server with an empty folder fills it, and one of another journal is refused", async () => {
    const shard = newShard();
    await using one = await join(shard, "one");
    const asset = await knownAsset(one.engine, "erc20");
    const tenant = await newTenant(one.engine, [asset]);
    for (let i = 0; i < 5; i++) {
      await one.engine.mint(tenant.principal, requestOf(tenant.users[i % 4], mintOf(asset, "", 7)));
    }
    await using late = await join(shard, "late");
    await caughtUp(late, one);
    expect((await late.engine.operator.verify()).problems).toEqual([]);
    await late.close();
    const other = newShard();
    await using _ = await join(other, "one");
    await expect(join(other, "late", { store: `${folder}/${shard}-late` })).rejects.toMatchObject({
      code: "store_mismatch",
    });
  });

  test("bounds its journal by snapshots, from which a server with an empty folder starts", async () => {
    const shard = newShard();
    await using one = await join(shard, "one", { journalBytes: 1 });
    const asset = await knownAsset(one.engine, "erc721");
    const tenant = await newTenant(one.engine, [asset]);
    const journal = await open(shard);
    const mint = async (from: number) => {
      for (let i = 0; i < 10; i++) {
        await one.engine.mint(
          tenant.principal,
          requestOf(tenant.users[0], mintOf(asset, from + i)),
        );
      }
    };
    await mint(0);
    await one.keepSnapshot();
    await mint(100);
    await one.keepSnapshot();
    await mint(200);
    expect((await journal.status()).pruned).toBeGreaterThan(10);
    await using late = await join(shard, "late");
    await caughtUp(late, one);
    expect((await late.engine.operator.verify()).problems).toEqual([]);
    expect(late.engine.batches.state()).toEqual(one.engine.batches.state());
    await journal.close();
  });

  test("refuses changes while the journal is away, and goes on by itself", async () => {
    await using one = await join(newShard(), "one", { leaseMs: 2_000 });
    const { engine } = one;
    expect(one.awayMs).toBe(0);
    database.standby.freeze(true);
    const underWay = engine.applications.create({ name: "under way" });
    try {
      await expect.poll(() => one.fault).not.toBeNull();
      const refused = expect.objectContaining({ code: "journal_unavailable" });
      await expect
        .poll(() => engine.applications.create({ name: "refused" }).catch((e) => e))
        .toEqual(refused);
    } finally {
      database.standby.freeze(false);
    }
    await underWay;
    await expect.poll(() => one.fault).toBeNull();
    expect(one.awayMs).toBeGreaterThan(0);
    await expect
      .poll(() =>
        engine.applications.create({ name: "next" }).then(
          ({ name }) => name,
          () => "",
        ),
      )
      .toBe("next");
    expect((await engine.applications.list()).data.map(({ name }) => name)).toEqual([
      "under way",
      "next",
    ]);
    expect([one.engine, one.isLeader]).toEqual([engine, true]);
  });

  test("a standby still follows a journal that kept two snapshots of the same length", async () => {
    const shard = newShard();
    await using one = await join(shard, "one");
    await using two = await join(shard, "two");
    for (const name of ["first", "second", "third"]) await one.engine.applications.create({ name });
    await caughtUp(two, one);
    await one.keepSnapshot();
    await one.keepSnapshot();
    await one.engine.applications.create({ name: "next" });
    await caughtUp(two, one);
    await one.close();
    await expect.poll(() => two.role).toBe("leader");
    expect((await two.engine.applications.list()).data).toHaveLength(4);
  });

  test("begins with one server's store, and with the folder of a server whose database is gone", async () => {
    const alone = `${folder}/alone`;
    const options = { settlement: SETTLEMENT, environment: "sandbox" } as const;
    const engine = await openEngine({ ...options, store: alone, createIfMissing: true });
    const asset = await knownAsset(engine, "erc721");
    const tenant = await newTenant(engine, [asset]);
    for (let i = 0; i < 8; i++)
      await engine.mint(
        tenant.principal,
        requestOf(tenant.users[0], mintOf(asset, i), mintOf(asset, i + 20)),
      );
    await engine.operator.seal("validium");
    await engine.close();
    const begin = async (from: string, shard: string) => {
      await using journal = await open(shard);
      return await beginJournal(from, { ...options, journal, server: server("command") });
    };
    const [first, next] = [newShard(), newShard()];
    const entries = await begin(alone, first);
    // An interrupted command is repeated like this.
    expect(await begin(alone, first)).toBe(entries);
    const one = await join(first, "one");
    const minted = await one.engine.mint(
      tenant.principal,
      requestOf(tenant.users[0], mintOf(asset, 39)),
    );
    const [state, vaults] = [
      one.engine.batches.state(),
      await all(one.engine.vaults.list(tenant.applicationId)),
    ];
    expect(vaults).toHaveLength(17);
    await expect(begin(alone, first)).rejects.toMatchObject({ code: "not_leader" });
    await one.close();
    await expect(begin(alone, first)).rejects.toMatchObject({ code: "store_mismatch" });
    await begin(`${folder}/${first}-one`, next);
    await using two = await join(next, "two");
    expect(two.engine.batches.state()).toEqual(state);
    expect(await two.engine.mints.get(tenant.applicationId, minted.mintId)).toMatchObject({
      mintId: minted.mintId,
    });
    expect(await all(two.engine.vaults.list(tenant.applicationId))).toEqual(vaults);
    expect((await two.engine.operator.verify()).problems).toEqual([]);
  });

  test("its servers' stores are refused to an engine that works alone", async () => {
    const shard = newShard();
    const one = await join(shard, "one");
    await one.close();
    const alone = openEngine({
      store: `${folder}/${shard}-one`,
      environment: "sandbox",
      settlement: SETTLEMENT,
    });
    await expect(alone).rejects.toMatchObject({ code: "store_mismatch" });
  });

  test("no server goes on with a journal that has lost what the server's store holds", async () => {
    const shard = newShard();
    await using one = await join(shard, "one");
    await using two = await join(shard, "two");
    await one.engine.applications.create({ name: "kept" });
    await one.engine.applications.create({ name: "lost" });
    await caughtUp(two, one);
    await loseLast(shard, one.position - 1);
    await expect(one.engine.applications.create({ name: "after" })).rejects.toMatchObject({
      code: "not_leader",
    });
    for (const node of [one, two]) {
      await expect.poll(() => node.ended.reason).toMatchObject({ code: "store_mismatch" });
    }
    await using three = await join(shard, "three");
    await expect.poll(() => three.isLeader).toBe(true);
    expect((await three.engine.applications.list()).data.map(({ name }) => name)).toEqual(["kept"]);
  });
});
