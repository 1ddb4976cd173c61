import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import { PostgresJournal } from "../../core/cluster/postgres-journal.ts";
import { all } from "../core/engine/fixture.ts";
import { testDatabase } from "./database.ts";

const database = await testDatabase();
afterAll(() => database[Symbol.asyncDispose]());

const KEY = randomBytes(32);
let shards = 0;
const newShard = () => `hostile-${shards++}`;
const server = (name: string) => ({ name, url: `http://${name}.test` });
const open = (shard: string, url = database.primary.url, patienceMs = 5_000) =>
  PostgresJournal.open({ url, shard, keys: [KEY], patienceMs });
const bytes = (...texts: string[]) => texts.map((text) => Buffer.from(text));
async function* parts(...texts: string[]): AsyncGenerator<Uint8Array> {
  yield* bytes(...texts);
}
const texts = async (entries: AsyncIterable<Uint8Array> | null) =>
  (await all(entries ?? parts())).map((entry) => Buffer.from(entry).toString());

test("a deposed leader's snapshot neither replaces the new leader's nor prunes what that one lacks", async () => {
  const shard = newShard();
  await using one = await open(shard);
  await using two = await open(shard);
  await one.lead(server("one"), 1_000);
  await one.append(0, bytes("a", "b", "c", "d"));
  const written = Promise.withResolvers<void>();
  const goesOn = Promise.withResolvers<void>();
  async function* slow(): AsyncGenerator<Uint8Array> {
    yield Buffer.from("old, part 0");
    written.resolve();
    await goesOn.promise;
    yield Buffer.from("old, part 1");
  }
  const kept = one.keepSnapshot(2, slow());
  await written.promise;
  // The database's clock and this process both see the lease run out: `one` is frozen, say.
  await database.primary.query(
    `update mintmark_shard set lease_until = '-infinity', leader = null where id = '${shard}'`,
  );
  expect(await two.lead(server("two"), 60_000)).not.toBeNull();
  await two.append(4, bytes("e", "f"));
  await two.keepSnapshot(5, parts("new, part 0", "new, part 1"));
  await two.append(6, bytes("g", "h"));
  goesOn.resolve();
  await expect(kept).rejects.toMatchObject({ code: "not_leader" });
  expect(await texts(await two.snapshot())).toEqual(["new, part 0", "new, part 1"]);
  expect((await two.status()).pruned).toBe(0);
  expect(await texts(two.read(0))).toEqual(["a", "b", "c", "d", "e", "f", "g", "h"]);
  await two.keepSnapshot(7, parts("newer"));
  expect((await two.status()).pruned).toBe(3);
  expect(await texts(two.read(4))).toEqual(["e", "f", "g", "h"]);
});

test("a takeover needs no right to end the connections of the old leader's role", async () => {
  const shard = newShard();
  const { primary } = database;
  await using _ = await open(shard);
  const urls = ["old", "new"].map((role) => primary.url.replace("mintmark@", `${role}_role@`));
  for (const role of ["old_role", "new_role"]) {
    await primary.query(`create role ${role} login`);
    await primary.query(
      `grant select, insert, update, delete on all tables in schema public to ${role}`,
    );
  }
  await using one = await open(shard, urls[0]);
  await using two = await open(shard, urls[1]);
  await one.lead(server("one"), 60_000);
  await one.append(0, bytes("a"));
  await primary.query(
    `update mintmark_shard set lease_until = '-infinity', leader = null where id = '${shard}'`,
  );
  expect(await two.lead(server("two"), 60_000)).not.toBeNull();
  await expect(one.append(1, bytes("lost"))).rejects.toMatchObject({ code: "not_leader" });
  await two.append(1, bytes("b"));
  expect(await texts(two.read(0))).toEqual(["a", "b"]);
});

test("a leader says that a database with a full disk takes nothing, though it still prolongs its lease", async () => {
  const shard = newShard();
  const { primary } = database;
  await using one = await open(shard);
  const lead = await one.lead(server("one"), 1_000);
  await one.append(0, bytes("a"));
  await primary.query(
    `create function refuse() returns trigger language plpgsql as
      $$ begin raise exception 'could not extend file' using errcode = 'disk_full'; end $$`,
  );
  await primary.query(
    `create trigger refuse before insert on mintmark_journal
      for each row when (new.shard = '${shard}') execute function refuse()`,
  );
  const appended = one.append(1, bytes("b"));
  await expect.poll(() => lead?.available).toBe(false);
  expect(lead?.lost.aborted).toBe(false);
  await primary.query("drop function refuse cascade");
  await appended;
  expect(lead?.available).toBe(true);
  expect(await texts(one.read(0))).toEqual(["a", "b"]);
});

test("a server behind a slow line catches up, with large entries too", async () => {
  const shard = newShard();
  await using one = await open(shard);
  await one.lead(server("one"), 60_000);
  const entries = Array.from({ length: 16 }, () => randomBytes(400_000));
  await one.append(0, entries);
  await using line = await slowLine(database.primary.port, 2_000_000);
  const url = new URL(database.primary.url);
  url.port = `${line.port}`;
  await using two = await open(shard, url.href, 2_500);
  await expect.poll(async () => (await two.status()).confirmed).toBe(entries.length);
  const read = await all(two.read(0));
  expect(read.map((entry, i) => entries[i]?.equals(entry))).toEqual(entries.map(() => true));
  expect(entries[15]?.equals((await two.entry(15)) ?? Buffer.alloc(0))).toBe(true);
});

/** A way to a server that lets so many bytes a second through to the client. */
async function slowLine(port: number, bytesPerSecond: number) {
  const running = new Set<{ destroy(): void }>();
  const way = createServer((client) => {
    const other = connect({ port, host: "127.0.0.1" });
    for (const socket of [client, other]) running.add(socket.on("error", () => {}));
    client.pipe(other);
    void (async () => {
      for await (const chunk of other) {
        await pause((1_000 * chunk.length) / bytesPerSecond);
        client.write(chunk);
      }
    })().catch(() => {});
  });
  way.listen(0, "127.0.0.1");
  await once(way, "listening");
  return {
    port: (way.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      for (const socket of running) socket.destroy();
      way.close();
    },
  };
}
