import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import fc from "fast-check";
import { describe, expect, expectTypeOf } from "vitest";
import {
  type ApplicationEvent,
  type Engine,
  type EngineEvents,
  type EventData,
  type EventType,
  MODES,
  type Uuid,
  WITHDRAWAL_EVENTS,
} from "../../../core/index.ts";
import { EventHub } from "../../../core/ledger/event-hub.ts";
import { Followers } from "../../../core/ledger/followers.ts";
import { readJournal } from "../../../core/store/journal.ts";
import { LevelStore } from "../../../core/store/level-store.ts";
import { PREFIX } from "../../../core/store/store-keys.ts";
import { Reference } from "../../../core/verify/reference.ts";
import { withdrawOne } from "../../one-withdrawal.ts";
import {
  all,
  fixture,
  hashOf,
  mintOf,
  newTenant,
  openTest,
  refusal,
  requestOf,
  type TestTenant,
} from "./fixture.ts";
import { it } from "./it.ts";
import { committed, HOME, holding, ownerAddress, signed, withdrawn } from "./l1-fixture.ts";

const eventsOf = (engine: Engine, applicationId: Uuid, after = 0) =>
  all(engine.events.stream(applicationId, { after }));
const typesOf = (events: readonly ApplicationEvent[]) => events.map(({ type }) => type);

/** Takes the next events while following; the rest stays to be read. */
async function take(
  events: AsyncIterator<ApplicationEvent>,
  count: number,
): Promise<ApplicationEvent[]> {
  const taken: ApplicationEvent[] = [];
  while (taken.length < count) {
    const { value, done } = await events.next();
    if (done) throw new Error(`the events ended after ${taken.length}`);
    taken.push(value);
  }
  return taken;
}

describe("the events of an application", () => {
  it("cover the whole lives of an asset, a mint, its batch and its withdrawal, with their state at the time", async () => {
    const made = await holding();
    const { engine, tenant, assets } = made;
    await using _ = engine;
    const { applicationId, principal, users } = tenant;
    await engine.assets.disable(applicationId, assets.erc1155);
    await engine.operator.recordSubmitted("validium", 0, hashOf(1));
    await engine.operator.recordEvents(HOME, [await committed(engine, "validium", 0, 7n)], 7n);
    await engine.operator.recordReorg(HOME, 7n);
    await engine.operator.recordEvents(HOME, [await committed(engine, "validium", 0, 8n)], 8n);
    const { withdrawalId } = await withdrawOne(engine, principal, await signed(made, 40n));
    await engine.operator.recordWithdrawalAttempt(withdrawalId, "no gas");
    await engine.operator.recordWithdrawalSubmitted(withdrawalId, hashOf(2));
    await engine.operator.recordEvents(HOME, [withdrawn(0n, 40n, 40n, ownerAddress, 9n)], 9n);
    await engine.operator.recordReorg(HOME, 9n);
    await engine.operator.recordEvents(HOME, [withdrawn(0n, 40n, 40n, ownerAddress, 10n)], 10n);
    await engine.operator.recordFinalized(HOME, 10n);
    const events = await eventsOf(engine, applicationId);
    expect(typesOf(events)).toEqual([
      ...[
        "asset.enabled",
        "asset.enabled",
        "asset.enabled",
        "mint.accepted",
        "batch.sealed",
        "asset.disabled",
      ],
      ...["batch.submitted", "batch.settled", "batch.reverted", "batch.settled"],
      ...[
        "withdrawal.accepted",
        "withdrawal.attempt_refused",
        "withdrawal.submitted",
        "withdrawal.settled",
      ],
      ...["withdrawal.reverted", "withdrawal.settled", "batch.finalized", "withdrawal.finalized"],
    ]);
    expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, i) => i + 1));
    const { batchRoot } = await engine.batches.get("validium", 0);
    const batch = {
      batchId: "validium-0",
      dataAvailabilityMode: "validium",
      vaultCount: 1,
      batchRoot,
    };
    const withdrawal = {
      withdrawalId,
      userId: users[0]?.userId,
      chainId: HOME,
      vaultId: 0n,
      quantity: 40n,
      recipient: ownerAddress,
    };
    const [mint] = (await engine.transactions.list(applicationId)).data.filter(
      ({ type }) => type === "mint",
    );
    expect(events[3]?.data).toEqual({ mintId: mint?.mintId, users: 1, mints: 1 });
    expect(events[5]?.data).toEqual({ assetId: assets.erc1155 });
    expect(events[6]?.data).toEqual({ ...batch, l1TxHash: hashOf(1), l1BlockNumber: null });
    expect(events[7]?.data).toEqual({ ...batch, l1TxHash: hashOf(7), l1BlockNumber: 7n });
    expect(events[8]?.data).toEqual({ ...batch, l1TxHash: hashOf(7), l1BlockNumber: null });
    const refused = { ...withdrawal, l1TxHash: null, l1BlockNumber: null, failure: "no gas" };
    expect(events[11]?.data).toEqual(refused);
    expect(events[17]?.data).toEqual({
      ...withdrawal,
      l1TxHash: hashOf(1000),
      l1BlockNumber: 10n,
      failure: null,
    });
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  it("reach one listener of all applications, as each stream tells them", async ({
    engine,
    tenant,
    assets,
  }) => {
    const heard: { applicationId: string; event: ApplicationEvent }[] = [];
    const known = (await eventsOf(engine, tenant.applicationId)).length;
    const stop = engine.events.on("event", (one) => void heard.push(one));
    await engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc721, 1)));
    await engine.assets.disable(tenant.applicationId, assets.erc20);
    await engine.operator.seal("validium");
    const told = (await eventsOf(engine, tenant.applicationId)).slice(known);
    expect(told.map(({ type }) => type)).toEqual([
      "mint.accepted",
      "asset.disabled",
      "batch.sealed",
    ]);
    const { applicationId } = tenant;
    await expect.poll(() => heard).toEqual(told.map((event) => ({ applicationId, event })));
    stop();
    await engine.assets.enable(applicationId, assets.erc20);
    expect((await eventsOf(engine, applicationId)).length).toBe(known + told.length + 1);
    expect(heard.length).toBe(told.length);
  });

  it("continue over restarts without gap or duplicate, and follow from the journal alone", async () => {
    const folder = await mkdtemp(join(tmpdir(), "mintmark-events-"));
    try {
      const told: ApplicationEvent[] = [];
      const { assets, tenant, engine } = await fixture({ store: folder });
      await engine.close();
      for (let round = 0; round < 4; round++) {
        await using again = await openTest(folder);
        await again.mint(
          tenant.principal,
          requestOf(tenant.users[0], mintOf(assets.erc721, round)),
        );
        if (round % 2 === 1) await again.operator.seal("validium");
        told.push(...(await eventsOf(again, tenant.applicationId, told.length)));
      }
      await using again = await openTest(folder);
      expect(told.map(({ sequence }) => sequence)).toEqual(told.map((_, i) => i + 1));
      expect(await eventsOf(again, tenant.applicationId)).toEqual(told);
      await again.close();
      const store = await LevelStore.open(folder, true);
      const foreseen = { voidings: new Map(), adoptions: [], keysForgotten: 0 };
      const reference = new Reference(() => {}, {
        seed: new Uint8Array(32),
        foreseen,
        commit: () => Promise.reject(),
        vaultAt: async () => undefined,
        tokensAt: () => Promise.reject(),
      });
      const replayed = new Map<string, string>();
      for await (const journaled of readJournal(store)) {
        for (const { key, value } of await reference.apply(journaled))
          replayed.set(key.toString("hex"), Buffer.from(value).toString("hex"));
      }
      const range = {
        gte: Buffer.from([PREFIX.applicationEvent]),
        lt: Buffer.from([PREFIX.applicationEvent + 1]),
      };
      const stored = await all(store.entries(range));
      await store.close();
      expect(stored).toHaveLength(told.length);
      for (const [key, value] of stored)
        expect(replayed.get(key.toString("hex"))).toBe(value.toString("hex"));
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it("reach a follower once durable, even a slow one", async ({ engine, tenant, assets }) => {
    const { applicationId, principal, users } = tenant;
    const stop = new AbortController();
    const follow = { after: 3, follow: true, signal: stop.signal };
    const [quick, slow] = [
      engine.events.stream(applicationId, follow),
      engine.events.stream(applicationId, follow),
    ];
    const next = quick.next();
    const mint = (token: number) =>
      engine.mint(principal, requestOf(users[0], mintOf(assets.erc721, token)));
    const { mintId } = await mint(0);
    expect((await next).value).toMatchObject({
      sequence: 4,
      type: "mint.accepted",
      data: { mintId },
    });
    // More than is read at a time.
    await Promise.all(Array.from({ length: 400 }, (_, i) => mint(i + 1)));
    const taken = await take(slow, 401);
    expect(taken.map(({ sequence }) => sequence)).toEqual(taken.map((_, i) => i + 4));
    expect(await take(quick, 400)).toEqual(taken.slice(1));
    const waiting = slow.next();
    stop.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
    await expect(quick.next()).rejects.toThrow("enough");
  });

  it("end for a follower when the engine is closed", async () => {
    const { engine, tenant } = await fixture();
    const waiting = engine.events.stream(tenant.applicationId, { after: 3, follow: true }).next();
    await engine.close();
    expect((await refusal(waiting)).code).toBe("engine_closed");
    expect(() => engine.events.stream(tenant.applicationId)).toThrow(
      expect.objectContaining({ code: "engine_closed" }),
    );
  });

  it.for([4, -1, 0.5, Number.NaN])(
    "refuse the start after %s",
    async (after, { engine, tenant }) => {
      const events = () => engine.events.stream(tenant.applicationId, { after });
      expect(events).toThrow(expect.objectContaining({ code: "validation_failed" }));
      expect(() => engine.events.stream("nobody")).toThrow(
        expect.objectContaining({ code: "application_not_found" }),
      );
    },
  );
});

/** An act of one of two tenants. */
const action = fc.record({
  tenant: fc.nat(1),
  what: fc.oneof(
    fc.record({
      kind: fc.constant("mint" as const),
      mode: fc.constantFrom(...MODES),
      mints: fc.integer({ min: 1, max: 4 }),
    }),
    fc.record({ kind: fc.constant("seal" as const), mode: fc.constantFrom(...MODES) }),
    fc.record({ kind: fc.constant("submit" as const), mode: fc.constantFrom(...MODES) }),
    fc.record({ kind: fc.constant("toggle" as const), enabled: fc.boolean() }),
  ),
});

describe("two applications", () => {
  it("each get only their own events, and events of every batch with their vaults", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(action, { maxLength: 25 }), async (actions) => {
        const { engine, tenant, assets, database, clock } = await fixture();
        const tenants: [TestTenant, TestTenant] = [
          tenant,
          await newTenant(engine, Object.values(assets)),
        ];
        const expected: string[][] = [[], []];
        const inOpen = { validium: new Set<number>(), "zk-rollup": new Set<number>() };
        const sealed: {
          mode: (typeof MODES)[number];
          number: number;
          members: number[];
          submitted: boolean;
        }[] = [];
        let token = 0;
        let [enabledFirst, enabledSecond] = [true, true];
        for (const { tenant: at, what } of actions) {
          const { applicationId, principal, users } = tenants[at] ?? tenant;
          if (what.kind === "mint") {
            const mints = Array.from({ length: what.mints }, () =>
              mintOf(assets.erc721, token++, 1, what.mode),
            );
            const { mintId } = await engine.mint(principal, requestOf(users[0], ...mints));
            expected[at]?.push(`mint.accepted ${mintId}`);
            inOpen[what.mode].add(at);
          } else if (what.kind === "seal") {
            const batch = await engine.operator.seal(what.mode);
            const members = [...inOpen[what.mode]];
            inOpen[what.mode].clear();
            expect(batch === null).toBe(members.length === 0);
            if (batch === null) continue;
            for (const member of members) expected[member]?.push(`batch.sealed ${batch.batchId}`);
            sealed.push({ mode: what.mode, number: batch.batchNumber, members, submitted: false });
          } else if (what.kind === "submit") {
            const next = sealed.find(({ mode, submitted }) => mode === what.mode && !submitted);
            if (next === undefined) continue;
            next.submitted = true;
            const { batchId } = await engine.operator.recordSubmitted(
              next.mode,
              next.number,
              hashOf(next.number),
            );
            for (const member of next.members) expected[member]?.push(`batch.submitted ${batchId}`);
          } else {
            const was = at === 0 ? enabledFirst : enabledSecond;
            await (what.enabled ? engine.assets.enable : engine.assets.disable).call(
              engine,
              applicationId,
              assets.erc20,
            );
            if (at === 0) enabledFirst = what.enabled;
            else enabledSecond = what.enabled;
            if (was !== what.enabled)
              expected[at]?.push(`asset.${what.enabled ? "enabled" : "disabled"} ${assets.erc20}`);
          }
        }
        expect((await engine.operator.verify()).problems).toEqual([]);
        await engine.close();
        await using again = await openTest(database, { clock: clock.read });
        for (const [i, { applicationId }] of tenants.entries()) {
          const told = await eventsOf(again, applicationId, 3);
          expect(told.map(({ type, data }) => `${type} ${subjectOf(data)}`)).toEqual(expected[i]);
        }
      }),
      { numRuns: 40 },
    );
  });
});

function subjectOf(data: ApplicationEvent["data"]): string {
  if ("mintId" in data) return data.mintId;
  return "batchId" in data ? data.batchId : "assetId" in data ? data.assetId : "";
}

const withdrawal = (applicationId: string) =>
  ({ applicationId }) as EngineEvents["withdrawal.accepted"];

it("an embedder hears of changes by the names that webhooks and streams have for them", async () => {
  type Own = Exclude<keyof EngineEvents, EventType>;
  expectTypeOf<Own>().toEqualTypeOf<"access" | "batch" | "event" | "webhook">();
  expectTypeOf<EngineEvents["batch.sealed"]["event"]["data"]>().toEqualTypeOf<
    EventData["batch.sealed"]
  >();
  const made = await holding();
  const { engine, tenant } = made;
  const heard: ApplicationEvent[] = [];
  const heardFrom = (await eventsOf(engine, tenant.applicationId)).length;
  const types = ["mint.accepted", "batch.sealed", ...WITHDRAWAL_EVENTS] as const;
  engine.events.on(types, ({ event }) => heard.push(event));
  await withdrawOne(engine, tenant.principal, await signed(made, 10n));
  await engine.events.stream(tenant.applicationId, { after: heardFrom, follow: true }).next();
  expect(typesOf(heard)).toEqual(["withdrawal.accepted"]);
  expect(await eventsOf(engine, tenant.applicationId, heardFrom)).toEqual(heard);
});

describe("the hub of events", () => {
  it("publishes them in the order of emission, though some are read first and one fails", async () => {
    const hub = new EventHub();
    const told: (string | null)[] = [];
    hub.on("withdrawal.accepted", ({ applicationId }) => told.push(applicationId));
    hub.on("access", ({ applicationId }) => told.push(applicationId));
    const reads = [1, 2, 3].map(() => Promise.withResolvers<EngineEvents["withdrawal.accepted"]>());
    hub.emit("access", { applicationId: "first" });
    for (const { promise } of reads) hub.emit("withdrawal.accepted", () => promise);
    hub.emit("access", { applicationId: "last" });
    expect(told).toEqual(["first"]);
    reads[2]?.resolve(withdrawal("third"));
    reads[1]?.reject(new Error("the store has failed"));
    await new Promise((resolve) => setImmediate(resolve));
    expect(told).toEqual(["first"]);
    reads[0]?.resolve(withdrawal("second"));
    await hub.told();
    expect(told).toEqual(["first", "second", "third", "last"]);
    hub.emit("access", { applicationId: "at once" });
    expect(told.at(-1)).toBe("at once");
  });
});

it("a withdrawal is published before its engine has closed", async () => {
  const made = await holding();
  const { engine, tenant } = made;
  const told: string[] = [];
  engine.events.on(WITHDRAWAL_EVENTS, ({ event: { type } }) => told.push(type));
  await withdrawOne(engine, tenant.principal, await signed(made, 10n));
  await engine.close();
  expect(told).toEqual(["withdrawal.accepted"]);
});

describe("followers of events", () => {
  it("who leave while they are due are not woken", async () => {
    const followers = new Followers();
    const leaving = new AbortController();
    const { signal } = new AbortController();
    const staying = Array.from({ length: 100 }, () => followers.next(1, signal));
    const left = followers.next(1, leaving.signal);
    followers.wake(1);
    leaving.abort(new Error("left"));
    await expect(left).rejects.toThrow("left");
    await Promise.all(staying);
  });

  it("all read every event in order, even if most of them waited for their turn", async ({
    made,
  }) => {
    const { engine, tenant, assets } = made;
    const end = new AbortController();
    const [rounds, readers] = [20, 500];
    const before = await lastSequence(engine.events.stream(tenant.applicationId));
    const read = Array.from({ length: readers }, async () => {
      const seen: number[] = [];
      const { signal } = end;
      for await (const event of engine.events.stream(tenant.applicationId, {
        after: before,
        follow: true,
        signal,
      })) {
        seen.push(event.sequence);
        if (seen.length === rounds) return seen;
      }
      return seen;
    });
    for (let round = 0; round < rounds; round++) {
      await engine.mint(
        tenant.principal,
        requestOf(tenant.users[0], mintOf(assets.erc721, 1_000 + round)),
      );
      await wait(1);
    }
    const expected = Array.from({ length: rounds }, (__, i) => before + 1 + i);
    for (const seen of await Promise.all(read)) expect(seen).toEqual(expected);
  });
});

async function lastSequence(events: AsyncIterable<{ readonly sequence: number }>): Promise<number> {
  let value = 0;
  for await (const { sequence } of events) value = sequence;
  return value;
}
