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
import { ClusterStore, encodeWrites } from "../core/cluster/cluster-store.ts";
import type { SharedJournal } from "../core/cluster/ports.ts";
import { parseExitKit } from "../core/exit/browser.ts";
import { exitWithKit } from "../core/exit/index.ts";
import { requireWholeKit } from "../core/exit/kit.ts";
import { LevelJournal, restoreStore, type Uuid } from "../core/index.ts";
import { connectL1 } from "../core/l1/index.ts";
import { knownContracts } from "../core/protocol/contract-code.ts";
import { receiptOf, verifyReceipt } from "../core/protocol/receipt.ts";
import { ENTRY_KINDS } from "../core/store/entries.ts";
import { EVENT_TYPES } from "../core/store/event-record.ts";
import { FORMAT_VERSION } from "../core/store/format.ts";
import { genesisOf } from "../core/store/genesis.ts";
import { decodeEntry, encodeEntry, readJournal } from "../core/store/journal.ts";
import { LevelStore } from "../core/store/level-store.ts";
import { FORMAT_KEY, keyOf, PREFIX } from "../core/store/store-keys.ts";
import { messageOf, signatureHeaders } from "../core/webhooks/dispatcher.ts";
import { USERS } from "../scripts/sandbox/accounts.ts";
import { openTest, SETTLEMENT } from "./core/engine/fixture.ts";
import { seen } from "./core/engine/seen.ts";
import {
  exportedNames,
  GOLDEN,
  MESSAGES,
  promise,
  textOf,
  valueFrom,
  WEBHOOK_SECRETS,
} from "./golden/golden.ts";
import { breaks, httpDocument, type Json, schemaBreaks } from "./golden/openapi.ts";
import { lost, type Surface, surface } from "./golden/surface.ts";
import { at, type Chain, createChain } from "./settlement/fixture.ts";

// Each test holds a sentence of docs/stability.md to the files that 1.0 wrote. Not one of them may
// be written anew.

const KITS = readdirSync(join(GOLDEN, "kits"));
expect(KITS).toEqual(
  ["blobTransferred", "blobs", "calldata", "refuted", "rest", "transferred", "validium"].map(
    (kind) => `${kind}.json`,
  ),
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
  test.each([
    ["store", "seen.json"],
    ["adopted", "adopted.json"],
  ])("the folder %s opens, shows what it showed, and verifies", async (store, shown) => {
    const { applicationId, seen: before } = valueFrom<{ applicationId: Uuid; seen: unknown }>(
      await read(shown),
    );
    await using engine = await openTest(join(folder, store), { createIfMissing: false });
    expect(valueFrom(textOf(await seen(engine, applicationId)))).toEqual(before);
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  test("a backup becomes a store that shows the same", async () => {
    const { applicationId, seen: before } = valueFrom<{ applicationId: Uuid; seen: unknown }>(
      await read("seen.json"),
    );
    await using journal = await LevelJournal.open(join(folder, "backup"));
    expect(await restoreStore(journal, join(folder, "restored"))).toBeGreaterThan(0);
    await using engine = await openTest(join(folder, "restored"), { createIfMissing: false });
    expect(valueFrom(textOf(await seen(engine, applicationId)))).toEqual(before);
  });

  test("kits and receipts are good for ever", async () => {
    for (const name of KITS) requireWholeKit(parseExitKit(await read(`kits/${name}`)));
    const { settlement, signer, vaults, receipt } = valueFrom<GoldenReceipt>(
      await read("receipt.json"),
    );
    for (const { vaultId } of vaults)
      expect(await verifyReceipt(settlement, signer, receiptOf({ vaults, receipt }, vaultId))).toBe(
        true,
      );
  });
});

type GoldenReceipt = Parameters<typeof receiptOf>[0] & {
  settlement: Parameters<typeof verifyReceipt>[0];
  signer: Parameters<typeof verifyReceipt>[1];
};

describe("the golden stores", () => {
  test("have every kind of entry, every record and every event, but for those named here", async () => {
    await using journal = await LevelJournal.open(join(folder, "backup"));
    const entries = (await Array.fromAsync(journal.read(0))).map(
      (entry, i) => decodeEntry(i, entry).entry.kind,
    );
    const held = new Set<number | undefined>();
    for (const name of ["store", "adopted"]) {
      const copy = join(folder, `every-record-of-${name}`);
      await cp(join(GOLDEN, name), copy, { recursive: true });
      const store = await LevelStore.open(copy, false);
      for await (const [key] of store.entries({ gte: Buffer.alloc(1) })) held.add(key[0]);
      if (name === "adopted")
        for await (const { entry } of readJournal(store)) entries.push(entry.kind);
      await store.close();
    }
    const kinds = ["mint", ...Object.keys(ENTRY_KINDS.byName)];
    expect(kinds.filter((kind) => !new Set<string>(entries).has(kind))).toEqual([]);

    const missing = Object.entries(PREFIX).flatMap(([name, prefix]) =>
      held.has(prefix) ? [] : [name],
    );
    // Adoption removes the first. A cluster has the position, and a step the format.
    expect(missing).toEqual(["divergence", "position", "format"]);

    const deliveries = valueFrom<Delivery[]>(await read("deliveries.json"));
    const told = new Set(deliveries.map(({ body }) => JSON.parse(body).type));
    // The first needs a transfer to the contract that L1 takes. The others have the fields of those
    // that are there.
    const untold = ["transfer.redeemed", "order.expired", "batch.reverted"];
    for (const end of ["settled", "finalized", "reverted"]) untold.push(`withdrawal.${end}`);
    expect([...EVENT_TYPES].filter((type) => !told.has(type))).toEqual(untold);
  });
});

describe("a store goes from one format to the next in one atomic step", () => {
  /** Runs the made-up next version. Returns what it prints, or the signal that ended it. */
  async function next(store: string, moment: string, backup?: string): Promise<unknown> {
    const { applicationId } = valueFrom<{ applicationId: Uuid }>(await read("seen.json"));
    const args = [
      fileURLToPath(new URL("golden/next-version.ts", import.meta.url)),
      store,
      moment,
      applicationId,
    ];
    if (backup !== undefined) args.push(backup);
    else if (/restore|append/.test(moment)) args.push(join(folder, "backup"));
    return promisify(execFile)(process.execPath, args).then(
      ({ stdout }) => ({ applicationId, seen: valueFrom(stdout) }),
      ({ signal, stderr }) => signal ?? stderr,
    );
  }
  const filesOf = async (store: string) =>
    Promise.all(
      (await readdir(store))
        .sort()
        .map(async (name) => [name, await readFile(join(store, name), "hex")]),
    );
  /** The share of all users for whom the step has written its record. */
  async function written(store: string): Promise<number> {
    await using level = new Level<Buffer, Buffer>(store, {
      keyEncoding: "buffer",
      valueEncoding: "buffer",
    });
    const count = async (prefix: number) =>
      (await level.keys({ gte: Buffer.from([prefix]), lt: Buffer.from([prefix + 1]) }).all())
        .length;
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
      const message = expect.stringMatching(
        /reads format .* Nothing was changed\. Use the version 1\.1\.0/,
      );
      await expect(openTest(store)).rejects.toMatchObject({ code: "store_mismatch", message });
      expect(await filesOf(store)).toEqual(files);
    }
    expect(await written(store)).toBe(share);
    expect(await next(store, "end")).toEqual(before);
    expect(await written(store)).toBe(1);
    // It takes no step twice.
    expect(await next(store, "step")).toEqual(before);
  });

  test.each(["step", "file", "record"])(
    "killed at its %s, with a backup that lags",
    async (moment) => {
      const [store, lagging] = [`lag-${moment}`, `backup-${moment}`].map((name) =>
        join(folder, name),
      ) as [string, string];
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
      if (moment !== "step")
        expect(await readFile(join(lagging, "FORMAT"), "utf8")).toContain("by 1.1.0");
    },
  );

  test("and a backup of the older one becomes a store of the newer one", async () => {
    const store = join(folder, "next-restored");
    expect(await next(store, "restore")).toEqual(valueFrom(await read("seen.json")));
    expect(await written(store)).toBe(0);
    const format = () => readFile(join(folder, "backup", "FORMAT"), "utf8");
    expect(await format()).toBe(await read("backup/FORMAT"));
    expect(await next(store, "append")).toEqual(valueFrom(await read("seen.json")));
    expect(await format()).toContain("by 1.1.0");
    await expect(LevelJournal.open(join(folder, "backup"))).rejects.toMatchObject({
      code: "store_mismatch",
    });
  });

  test("and a server of a cluster does not follow a leader of a newer one", async () => {
    const newer = FORMAT_VERSION + 1;
    const value = Buffer.from(`mintmark store ${newer} by 1.1.0\n`);
    const genesis = {
      ...genesisOf({ settlement: SETTLEMENT, environment: "sandbox" }),
      formatVersion: newer,
    };
    for (const [name, first, advice] of [
      ["behind-step", { type: "put", key: FORMAT_KEY, value }, "Use the version 1.1.0"],
      [
        "behind-genesis",
        { type: "put", key: keyOf.journal(0), value: encodeEntry(0, genesis) },
        "Use the version that wrote it",
      ],
    ] as const) {
      const entry = encodeWrites([
        { type: "put", key: Buffer.from([PREFIX.user]), value: Buffer.alloc(1) },
        first,
      ]);
      const message = expect.stringMatching(
        `format ${newer}, .* reads format ${FORMAT_VERSION}. Nothing of that format was written. ${advice}`,
      );
      const refused = { code: "store_mismatch", message };
      // It follows the entries, or it fills its empty folder from the snapshot.
      const journal = {
        read: () => [entry],
        status: () => ({ pruned: 0 }),
      } as unknown as SharedJournal;
      const server = await ClusterStore.open(join(folder, name), journal);
      await expect(server.follow(1, () => {})).rejects.toMatchObject(refused);
      expect([server.length, await Array.fromAsync(server.entries({}))]).toEqual([0, []]);
      await server.release();
      const pruned = {
        snapshot: () => [entry],
        status: () => ({ pruned: 7 }),
      } as unknown as SharedJournal;
      await expect(ClusterStore.open(join(folder, name), pruned)).rejects.toMatchObject(refused);
      const level = await LevelStore.open(join(folder, name), true, "replica");
      expect(await Array.fromAsync(level.entries({}))).toEqual([]);
      await level.close();
    }
  });
});

describe("what was signed for 1.0 counts", () => {
  test("messages of owners, members, issuers and operators have the signatures that they had", async () => {
    const all = valueFrom<
      readonly Record<"name" | "settlement" | "message" | "signer" | "signature", never>[]
    >(await read("messages.json"));
    expect(all.map(({ name }) => name)).toEqual(Object.keys(MESSAGES));
    for (const { name, settlement, message, signer, signature } of all) {
      const typed = MESSAGES[name as keyof typeof MESSAGES](
        settlement,
        message,
      ) as TypedDataDefinition;
      expect(await recoverTypedDataAddress({ ...typed, signature }), name).toBe(signer);
    }
  });

  test("deliveries of webhooks verify by each secret, and those of today have all of their fields", async () => {
    const { applicationId } = valueFrom<{ applicationId: Uuid }>(await read("seen.json"));
    await using engine = await openTest(join(folder, "store"), { createIfMissing: false });
    const events = await Array.fromAsync(engine.events.stream(applicationId));
    const deliveries = valueFrom<Delivery[]>(await read("deliveries.json"));
    expect(events.map(({ sequence }) => sequence)).toEqual(
      deliveries.map(({ sequence }) => sequence),
    );
    for (const [i, { headers, body }] of deliveries.entries()) {
      const {
        "webhook-id": id,
        "webhook-timestamp": time,
        "webhook-signature": signature,
      } = headers;
      const signed = WEBHOOK_SECRETS.map((secret) => {
        const key = Buffer.from(secret.replace("whsec_", ""), "base64");
        return `v1,${createHmac("sha256", key).update(`${id}.${time}.${body}`).digest("base64")}`;
      });
      expect(signature).toBe(signed.join(" "));
      const now = messageOf({ applicationId }, at(events, i), "delivery");
      expect(JSON.parse(now.body)).toMatchObject(JSON.parse(body));
      expect({ id: now.id, ...signatureHeaders(id, Number(time), body, WEBHOOK_SECRETS) }).toEqual({
        id,
        ...headers,
      });
    }
  });
});

interface Delivery {
  readonly sequence: number;
  readonly headers: Record<"webhook-id" | "webhook-timestamp" | "webhook-signature", string>;
  readonly body: string;
}

interface GoldenChain {
  readonly contract: Hex;
  readonly accounts: Record<Hex, { readonly code: Hex; readonly storage: Record<Hex, Hex> }>;
}

describe("the contracts of 1.0 pay what 1.0 committed", () => {
  let chain: Chain;
  let contract: Hex;
  beforeAll(async () => {
    const kept = JSON.parse(await read("chain.json")) as GoldenChain;
    ({ contract } = kept);
    chain = await createChain();
    // The contracts and tokens of 1.0, byte by byte: no later version changes what is deployed.
    for (const [address, { code, storage }] of Object.entries(kept.accounts)) {
      await chain.rpc("hardhat_setCode", [address, code]);
      for (const [slot, value] of Object.entries(storage))
        await chain.rpc("hardhat_setStorageAt", [address, toHex(BigInt(slot)), value]);
    }
  });
  afterAll(() => chain.close());

  test("and every later version knows their code", async () => {
    const { code } = JSON.parse(await read("contracts.json"));
    expect(
      knownContracts.map((one) => JSON.stringify(one)),
      promise("exit kit"),
    ).toContain(JSON.stringify(code));
  });

  test.each(KITS)("to the owner of %s", async (name) => {
    const kit = parseExitKit(await read(`kits/${name}`));
    const { owner: account } =
      USERS.find(({ owner }) => owner.address.toLowerCase() === kit.tip.owner) ?? at(USERS, 2);
    // No test's clock is before the one that wrote the kit.
    const { timestamp } = await chain.client.getBlock();
    await chain.passSeconds(
      (kit.maturesAt ?? 0n) > timestamp ? (kit.maturesAt ?? 0n) - timestamp : 0n,
    );
    const l1 = await connectL1({ rpc: chain.transport, contract, account, pollingMs: 5 });
    const exit = () => exitWithKit({ kit, l1, account: kit.tip.owner, pollingMs: 5 });
    const { held, heldBefore, baseUnits } = await exit();
    expect(held - heldBefore).toBe(baseUnits);
    expect(baseUnits).toBe(kit.tip.amount * kit.token.quantum);
    await expect(exit()).rejects.toMatchObject({ code: "insufficient_balance" });
  });
});

describe("a program that was written for 1.0 works", () => {
  test("over HTTP: what was accepted is accepted, and answers hold what was promised", async () => {
    const before = JSON.parse(await read("openapi.json"));
    expect(breaks(before, httpDocument()), promise("HTTP API")).toEqual([]);
  });

  type Change = (document: Record<string, never>) => void;
  const MINT = "/api/v1/mint";
  const schema = (document: Record<string, never>, name: string) =>
    (document as unknown as Record<string, Record<string, Record<string, Record<string, object>>>>)
      .components?.schemas?.[name];
  test.each<[string, Change | [string, string], RegExp]>([
    ["a route", ['"/api/v1/vaults/{vaultId}":', '"/api/v1/vaults/{id}":'], /vaultId} is gone/],
    ["a field of an answer", ['"availableBalance":', '"balance":'], /availableBalance is gone/],
    [
      "a parameter",
      ['"name":"ownerAddress","in":"query"', '"name":"owner","in":"query"'],
      /takes no query ownerAddress/,
    ],
    [
      "a value that is taken",
      ['["validium","zk-rollup"]', '["validium"]'],
      /does not take zk-rollup/,
    ],
    [
      "a type",
      [
        '"dryRun","in":"query","required":false,"schema":{"type":"boolean"}',
        '"dryRun","in":"query","required":false,"schema":{"type":"string"}',
      ],
      /dryRun is string now/,
    ],
    ["a pattern", ['"pattern":"', '"pattern":"^'], /has another pattern/],
    [
      "a bound from below",
      (d) => Object.assign(at(numbers(d), 0), { minimum: 1e9 }),
      /has minimum 1000000000/,
    ],
    [
      "a bound from above",
      (d) => Object.assign(at(numbers(d), 0), { maximum: 0 }),
      /has maximum 0/,
    ],
    [
      "a union",
      (d) => delete (d as never as Paths).paths[MINT]?.post?.responses["200"],
      /answers no 200/,
    ],
    ["credentials", ['"security":[{"apiKey":[]},', '"security":['], /does not take apiKey/],
    [
      "a header of an answer",
      ['"Idempotency-Replayed":', '"Repeated":'],
      /no header Idempotency-Replayed/,
    ],
    ["a webhook", ['"webhooks":{"', '"webhooks":{"x'], /webhook \S+ is gone/],
    ["an error's status", ['"429":', '"430":'], /answers no 429/],
    [
      "a required field of a request",
      (d) => Object.assign(schema(d, "MintRequest") ?? {}, { required: ["users", "more"] }),
      /more is required now/,
    ],
  ])("and a change of %s is told", async (_, change, told) => {
    const before = await read("openapi.json");
    let now = before;
    if (Array.isArray(change)) now = before.replaceAll(...change);
    else {
      const document = JSON.parse(before);
      change(document);
      now = JSON.stringify(document);
    }
    expect(now).not.toBe(before);
    expect(breaks(JSON.parse(before), JSON.parse(now)).join("\n")).toMatch(told);
  });

  test("over imports: no exported name is gone", async () => {
    const now = await exportedNames();
    const gone = Object.entries(
      valueFrom<Record<string, string[]>>(await read("exports.json")),
    ).flatMap(([path, names]) =>
      names.filter((name) => !now[path]?.includes(name)).map((name) => `${path} ${name}`),
    );
    expect(gone, promise("exports of the package")).toEqual([]);
  });

  test("by types, commands, options, settings, codes, events and the contracts' interfaces", async () => {
    const before: Surface = JSON.parse(await read("surface.json"));
    const now = await surface();
    for (const [list, row] of [
      ["types", "exports of the package"],
      ["commands", "commands, options, settings, `--json`"],
      ["errors", "codes of errors, exit codes"],
      ["events", "webhooks and events"],
      ["abi", "events and errors of the contracts"],
    ] as const)
      expect(lost(before[list], now[list]), promise(row)).toEqual([]);
    for (const [name, schema] of Object.entries(before.settings) as [string, Json][]) {
      const its = now.settings[name] as Json | undefined;
      const found = schemaBreaks(
        { before: schema, now: its ?? schema },
        name,
        schema,
        its,
        "request",
      );
      expect(found, promise("commands, options, settings, `--json`")).toEqual([]);
    }
    // A list that tells nothing would pass as well.
    expect(lost({ ...before.types, ". Engine": ["interface Engine {"] }, now.types)).toEqual([
      ". Engine: interface Engine {",
    ]);
    const lines = at(
      Object.entries(now.types).filter(([name]) => name === ". EngineOptions"),
      0,
    )[1];
    const fewer = { ". EngineOptions": lines.filter((line) => !line.includes("readonly store")) };
    expect(lost(fewer, now.types).join()).toContain(". EngineOptions requires     readonly store:");
  });
});

interface Paths {
  readonly paths: Record<string, Record<string, { responses: Record<string, object> }>>;
}

/** The schemas of numbers in query parameters. */
function numbers(document: object): object[] {
  const { paths } = document as unknown as {
    paths: Record<
      string,
      Record<string, { parameters: { in: string; schema: { type?: string; maximum?: number } }[] }>
    >;
  };
  const parameters = Object.values(paths).flatMap((methods) =>
    Object.values(methods).flatMap((one) => one.parameters ?? []),
  );
  return parameters
    .map((each) => each.schema)
    .filter(({ type, maximum }) => type === "integer" && maximum !== undefined);
}
