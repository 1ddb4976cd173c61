import { execFile } from "node:child_process";
import { createHmac } from "node:crypto";
import { readdirSync } from "node:fs";
import { cp, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Level } from "level";
import { type Hex, recoverTypedDataAddress, type TypedDataDefinition, toHex } from "viem";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseExitKit } from "../core/guards/exit/browser.ts";
import { exitWithKit } from "../core/guards/exit/index.ts";
import { requireWholeKit } from "../core/guards/exit/kit.ts";
import { LevelJournal, restoreStore, type Uuid } from "../core/index.ts";
import { connectL1 } from "../core/l1/index.ts";
import { ClusterStore } from "../core/lifecycle/cluster/cluster-store.ts";
import type { SharedJournal } from "../core/lifecycle/cluster/ports.ts";
import { encodeWrites } from "../core/lifecycle/cluster/write-set.ts";
import { receiptOf, verifyReceipt } from "../core/protocol/receipt.ts";
import { genesisOf } from "../core/store/genesis.ts";
import { encodeEntry } from "../core/store/journal.ts";
import { LevelStore } from "../core/store/level-store.ts";
import { FORMAT_KEY, journalKey, PREFIX } from "../core/store/store-keys.ts";
import { messageOf, signatureHeaders } from "../core/tenants/delivery/dispatcher.ts";
import { USERS } from "../scripts/sandbox/accounts.ts";
import { openTest, SETTLEMENT } from "./core/engine/fixture.ts";
import { seen } from "./core/engine/seen.ts";
import {
  breaks,
  exportedNames,
  GOLDEN,
  httpDocument,
  MESSAGES,
  textOf,
  valueFrom,
  WEBHOOK_SECRETS,
} from "./golden/golden.ts";
import { at, type Chain, createChain, passSeconds, rpc } from "./settlement/fixture.ts";
import { TRANSFERABLE } from "./settlement/transfers-fixture.ts";

// Each test holds a sentence of docs/stability.md to the files that 1.0 wrote. Not one of them may be written anew.

const KITS = readdirSync(join(GOLDEN, "kits"));
expect(KITS).toEqual(
  ["blobTransferred", "blobs", "calldata", "rest", "transferred", "validium"].map((kind) => `${kind}.json`),
);

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "mintmark-golden-"));
  // Opening a store changes its folder.
  await cp(GOLDEN, folder, { recursive: true });
});
afterAll(() => rm(folder, { recursive: true, force: true }));
const read = (name: string) => readFile(join(GOLDEN, name), "utf8");

describe("every later 1.x reads what 1.0 wrote", () => {
  test("a store opens, shows what it showed, and verifies", async () => {
    const { applicationId, seen: before } = valueFrom<{ applicationId: Uuid; seen: unknown }>(await read("seen.json"));
    await using engine = await openTest(join(folder, "store"), { createIfMissing: false });
    expect(valueFrom(textOf(await seen(engine, applicationId)))).toEqual(before);
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  test("a backup becomes a store that shows the same", async () => {
    const { applicationId, seen: before } = valueFrom<{ applicationId: Uuid; seen: unknown }>(await read("seen.json"));
    await using journal = await LevelJournal.open(join(folder, "backup"));
    expect(await restoreStore(journal, join(folder, "restored"))).toBeGreaterThan(0);
    await using engine = await openTest(join(folder, "restored"), { createIfMissing: false });
    expect(valueFrom(textOf(await seen(engine, applicationId)))).toEqual(before);
  });

  test("kits and receipts are good for ever", async () => {
    for (const name of KITS) requireWholeKit(parseExitKit(await read(`kits/${name}`)));
    const { settlement, signer, vaults, receipt } = valueFrom<GoldenReceipt>(await read("receipt.json"));
    for (const { vaultId } of vaults)
      expect(await verifyReceipt(settlement, signer, receiptOf({ vaults, receipt }, vaultId))).toBe(true);
  });
});

type GoldenReceipt = Parameters<typeof receiptOf>[0] & {
  settlement: Parameters<typeof verifyReceipt>[0];
  signer: Parameters<typeof verifyReceipt>[1];
};

describe("a store goes from one format to the next in one atomic step", () => {
  /** Of the made-up next version: what its run prints, or the signal that ended it. */
  async function next(store: string, moment: string, backup?: string): Promise<unknown> {
    const { applicationId } = valueFrom<{ applicationId: Uuid }>(await read("seen.json"));
    const args = [fileURLToPath(new URL("golden/next-version.ts", import.meta.url)), store, moment, applicationId];
    if (backup !== undefined) args.push(backup);
    else if (/restore|append/.test(moment)) args.push(join(folder, "backup"));
    return promisify(execFile)(process.execPath, args).then(
      ({ stdout }) => ({ applicationId, seen: valueFrom(stdout) }),
      ({ signal, stderr }) => signal ?? stderr,
    );
  }
  const filesOf = async (store: string) =>
    Promise.all((await readdir(store)).sort().map(async (name) => [name, await readFile(join(store, name), "hex")]));
  /** Of all users, the share for whom the step has written its record. */
  async function written(store: string): Promise<number> {
    await using level = new Level<Buffer, Buffer>(store, { keyEncoding: "buffer", valueEncoding: "buffer" });
    const count = async (prefix: number) =>
      (await level.keys({ gte: Buffer.from([prefix]), lt: Buffer.from([prefix + 1]) }).all()).length;
    return (await count(0xee)) / (await count(PREFIX.user));
  }

  test.each([
    ["while the next version prepares the step: nothing has changed", "step", 0],
    ["before the step is written: the next version goes on", "file", 0],
    ["after the step is written", "record", 1],
  ])("killed %s", async (_, moment, share) => {
    const before = valueFrom<{ applicationId: Uuid; seen: object }>(await read("seen.json"));
    const store = join(folder, moment);
    await cp(join(GOLDEN, "store"), store, { recursive: true });
    expect(await next(store, moment)).toBe("SIGKILL");
    const files = await filesOf(store);
    if (moment === "step") {
      await using engine = await openTest(store, { createIfMissing: false });
      expect(valueFrom(textOf(await seen(engine, before.applicationId)))).toEqual(before.seen);
    } else {
      const message = expect.stringMatching(/reads format .* Nothing was changed\. Use the version 1\.1\.0/);
      await expect(openTest(store)).rejects.toMatchObject({ code: "store_mismatch", message });
      expect(await filesOf(store)).toEqual(files);
    }
    expect(await written(store)).toBe(share);
    expect(await next(store, "end")).toEqual(before);
    expect(await written(store)).toBe(1);
    // It takes no step twice.
    expect(await next(store, "step")).toEqual(before);
  });

  test.each(["step", "file", "record"])("killed at its %s, with a backup that lags", async (moment) => {
    const [store, lagging] = [`lag-${moment}`, `backup-${moment}`].map((name) => join(folder, name)) as [
      string,
      string,
    ];
    await cp(join(GOLDEN, "store"), store, { recursive: true });
    await using whole = await LevelJournal.open(join(folder, "backup"));
    const entries = await Array.fromAsync(whole.read(0));
    const journal = await LevelJournal.open(lagging);
    await journal.append(0, entries.slice(0, -5));
    await journal.close();
    expect(await next(store, moment, lagging)).toBe("SIGKILL");
    // The older version opens both, or neither has changed since the file did.
    expect(await readFile(join(lagging, "FORMAT"), "utf8")).toBe(await read("backup/FORMAT"));
    await using again = await LevelJournal.open(lagging);
    expect(await again.length()).toBe(entries.length - 5);
    const open = openTest(store, { createIfMissing: false, journal: again });
    if (moment === "step") await (await open).close();
    else await expect(open).rejects.toMatchObject({ code: "store_mismatch" });
    await again.close();
    expect(await next(store, "end", lagging)).toEqual(valueFrom(await read("seen.json")));
    if (moment !== "step") expect(await readFile(join(lagging, "FORMAT"), "utf8")).toContain("by 1.1.0");
  });

  test("and a backup of the older one becomes a store of the newer one", async () => {
    const store = join(folder, "next-restored");
    expect(await next(store, "restore")).toEqual(valueFrom(await read("seen.json")));
    expect(await written(store)).toBe(0);
    const format = () => readFile(join(folder, "backup", "FORMAT"), "utf8");
    expect(await format()).toBe(await read("backup/FORMAT"));
    expect(await next(store, "append")).toEqual(valueFrom(await read("seen.json")));
    expect(await format()).toContain("by 1.1.0");
    await expect(LevelJournal.open(join(folder, "backup"))).rejects.toMatchObject({ code: "store_mismatch" });
  });

  test("and a server of a cluster does not follow a leader of a newer one", async () => {
    const value = Buffer.from("mintmark store 9 by 1.1.0\n");
    const genesis = { ...genesisOf({ settlement: SETTLEMENT, environment: "sandbox" }), formatVersion: 9 };
    for (const [name, first, advice] of [
      ["behind-step", { type: "put", key: FORMAT_KEY, value }, "Use the version 1.1.0"],
      [
        "behind-genesis",
        { type: "put", key: journalKey(0), value: encodeEntry(0, genesis) },
        "Use the version that wrote it",
      ],
    ] as const) {
      const entry = encodeWrites([{ type: "put", key: Buffer.from([PREFIX.user]), value: Buffer.alloc(1) }, first]);
      const message = expect.stringMatching(
        `format 9, .* reads format 8. Nothing of that format was written. ${advice}`,
      );
      const refused = { code: "store_mismatch", message };
      // It follows the entries, or it fills its empty folder from the snapshot.
      const journal = { read: () => [entry], status: () => ({ pruned: 0 }) } as unknown as SharedJournal;
      const server = await ClusterStore.open(join(folder, name), journal);
      await expect(server.follow(1, () => {})).rejects.toMatchObject(refused);
      expect([server.length, await Array.fromAsync(server.entries({}))]).toEqual([0, []]);
      await server.release();
      const pruned = { snapshot: () => [entry], status: () => ({ pruned: 7 }) } as unknown as SharedJournal;
      await expect(ClusterStore.open(join(folder, name), pruned)).rejects.toMatchObject(refused);
      const level = await LevelStore.open(join(folder, name), true, "process");
      expect(await Array.fromAsync(level.entries({}))).toEqual([]);
      await level.close();
    }
  });
});

describe("what was signed for 1.0 counts", () => {
  test("messages of owners, members, issuers and operators have the signatures that they had", async () => {
    const all = valueFrom<readonly Record<"name" | "settlement" | "message" | "signer" | "signature", never>[]>(
      await read("messages.json"),
    );
    expect(all.map(({ name }) => name)).toEqual(Object.keys(MESSAGES));
    for (const { name, settlement, message, signer, signature } of all) {
      const typed = MESSAGES[name as keyof typeof MESSAGES](settlement, message) as TypedDataDefinition;
      expect(await recoverTypedDataAddress({ ...typed, signature }), name).toBe(signer);
    }
  });

  test("deliveries of webhooks verify by each secret, and those of today have all of their fields", async () => {
    const { applicationId } = valueFrom<{ applicationId: Uuid }>(await read("seen.json"));
    await using engine = await openTest(join(folder, "store"), { createIfMissing: false });
    const events = await Array.fromAsync(engine.events.stream(applicationId));
    const deliveries = valueFrom<Delivery[]>(await read("deliveries.json"));
    expect(events.map(({ sequence }) => sequence)).toEqual(deliveries.map(({ sequence }) => sequence));
    for (const [i, { headers, body }] of deliveries.entries()) {
      const { "webhook-id": id, "webhook-timestamp": time, "webhook-signature": signature } = headers;
      const signed = WEBHOOK_SECRETS.map((secret) => {
        const key = Buffer.from(secret.replace("whsec_", ""), "base64");
        return `v1,${createHmac("sha256", key).update(`${id}.${time}.${body}`).digest("base64")}`;
      });
      expect(signature).toBe(signed.join(" "));
      const now = messageOf({ applicationId }, at(events, i), "delivery");
      expect(JSON.parse(now.body)).toMatchObject(JSON.parse(body));
      expect({ id: now.id, ...signatureHeaders(id, Number(time), body, WEBHOOK_SECRETS) }).toEqual({ id, ...headers });
    }
  });
});

interface Delivery {
  readonly sequence: number;
  readonly headers: Record<"webhook-id" | "webhook-timestamp" | "webhook-signature", string>;
  readonly body: string;
}

describe("the tracked contracts pay what 1.0 committed", () => {
  let chain: Chain;
  beforeAll(async () => {
    chain = await createChain({ transfers: true }, undefined, TRANSFERABLE);
    const { contract, storage } = valueFrom<{ contract: Hex; storage: Record<Hex, Hex> }>(await read("chain.json"));
    expect(chain.settlement.address.toLowerCase()).toBe(contract);
    for (const [slot, value] of Object.entries(storage))
      await rpc(chain, "hardhat_setStorageAt", [contract, toHex(BigInt(slot)), value]);
  });
  afterAll(() => chain.close());

  test.each(KITS)("to the owner of %s", async (name) => {
    const kit = parseExitKit(await read(`kits/${name}`));
    const { owner: account } = USERS.find(({ owner }) => owner.address.toLowerCase() === kit.tip.owner) ?? at(USERS, 2);
    // No test's clock is before the one that wrote the kit.
    const { timestamp } = await chain.client.getBlock();
    await passSeconds(chain, (kit.maturesAt ?? 0n) > timestamp ? (kit.maturesAt ?? 0n) - timestamp : 0n);
    const { transport: rpc, settlement } = chain;
    const l1 = await connectL1({ rpc, contract: settlement.address, account, pollingMs: 5 });
    const exit = () => exitWithKit({ kit, l1, account: kit.tip.owner, pollingMs: 5 });
    const { held, heldBefore, baseUnits } = await exit();
    expect(held - heldBefore).toBe(baseUnits);
    expect(baseUnits).toBe(kit.tip.amount * kit.token.quantum);
    await expect(exit()).rejects.toMatchObject({ code: "insufficient_balance" });
  });
});

describe("a program that was written for 1.0 works", () => {
  test("over HTTP: no route, no field and no value is gone, and none is required that was not", async () => {
    const before = JSON.parse(await read("openapi.json"));
    expect(breaks(before, httpDocument())).toEqual([]);
  });

  test.each([
    ["a route that is gone", '"/api/v1/vaults/{vaultId}":', '"/api/v1/vaults/{id}":'],
    ["a field that is gone", '"availableBalance":', '"balance":'],
    ["a parameter that is gone", '"name":"ownerAddress","in":"query"', '"name":"owner","in":"query"'],
    ["a value that is not taken", '["validium","zk-rollup"]', '["validium"]'],
  ])("and %s is told", async (_, old, changed) => {
    const before = await read("openapi.json");
    expect(before).toContain(old);
    expect(breaks(JSON.parse(before), JSON.parse(before.replaceAll(old, changed)))).not.toEqual([]);
  });

  test("over imports: no exported name is gone", async () => {
    const now = await exportedNames();
    const gone = Object.entries(valueFrom<Record<string, string[]>>(await read("exports.json"))).flatMap(
      ([path, names]) => names.filter((name) => !now[path]?.includes(name)).map((name) => `${path} ${name}`),
    );
    expect(gone).toEqual([]);
  });
});
