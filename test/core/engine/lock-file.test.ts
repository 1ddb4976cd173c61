import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cp, mkdtemp, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Engine, Uuid } from "../../../core/index.ts";
import { eventually } from "../../eventually.ts";
import {
  all,
  knownAsset,
  mintOf,
  newTenant,
  openTest,
  requestOf,
  type TestTenant,
} from "./fixture.ts";

const CHILD = fileURLToPath(new URL("./lock-child.ts", import.meta.url));
const [NETWORK, ...NAMESPACE] = ["unshare", "--net"] as const;
const hasNamespaces = spawnSync(NETWORK, [...NAMESPACE, "true"]).status === 0;

let folder: string;
let whole: string;
let tenant: TestTenant;
let assetId: Uuid;
let copies = 0;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "mintmark-lock-"));
  whole = join(folder, "whole");
  await using engine = await openTest(whole);
  assetId = await knownAsset(engine, "erc721");
  tenant = await newTenant(engine, [assetId]);
});
afterAll(() => rm(folder, { recursive: true }));

async function copyOf(store: string): Promise<string> {
  const copy = join(folder, `copy-${copies++}`);
  await cp(store, copy, { recursive: true });
  return copy;
}

/** A process in a network namespace of its own, as in a container, or in this one. */
function minter(store: string, first: number, isApart: boolean) {
  const user = tenant.users[0]?.userId ?? "";
  const args = [process.execPath, CHILD, store, tenant.token, user, assetId, `${first}`];
  const [command = "", ...rest] = isApart ? [NETWORK, ...NAMESPACE, ...args] : args;
  const child = spawn(command, rest, { stdio: ["pipe", "pipe", "inherit"] });
  const lines: string[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
  const exit = once(child, "exit");
  return {
    lines,
    minted: () => lines.filter((line) => line.startsWith("ack ")).map((line) => line.slice(4)),
    async stop() {
      child.stdin.end();
      await exit;
    },
  };
}

function mint(engine: Engine, token: number) {
  return engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assetId, token)));
}

describe("a store whose LOCK file somebody removes", () => {
  it.skipIf(!hasNamespaces)(
    `loses no acknowledged mint to a process in another network namespace${hasNamespaces ? "" : " (needs the right to run unshare --net)"}`,
    async () => {
      const store = await copyOf(whole);
      const former = minter(store, 0, false);
      await eventually(() => expect(former.minted().length).toBeGreaterThan(20));
      await rm(join(store, "LOCK"));
      const later = minter(store, 1_000_000, true);
      await eventually(() => expect(later.minted().length).toBeGreaterThan(20));
      await eventually(() => expect(former.lines.at(-1)).toMatch(/^refused store_failed .*LOCK/));
      await Promise.all([former.stop(), later.stop()]);
      await using engine = await openTest(store, { createIfMissing: false });
      const vaults = await all(engine.vaults.list(tenant.applicationId));
      const held = vaults.map(({ mintingBlob }) => Buffer.from(mintingBlob.slice(2), "hex"));
      const acknowledged = [...former.minted(), ...later.minted()];
      expect(held.map(String)).toEqual(expect.arrayContaining(acknowledged));
      expect(new Set(held.map(String)).size).toBe(held.length);
      expect((await engine.operator.verify()).problems).toEqual([]);
    },
  );

  it("still opens when nobody has it open", async () => {
    const store = await copyOf(whole);
    await rm(join(store, "LOCK"));
    await using engine = await openTest(store, { createIfMissing: false });
    await mint(engine, 1);
  });
});

describe.skipIf(process.platform === "win32")("an engine whose folder is gone", () => {
  const changes = {
    removed: (store: string) => rm(store, { recursive: true }),
    renamed: (store: string) => rename(store, `${store}-before`),
    async "replaced by a copy"(store: string) {
      await rename(store, `${store}-before`);
      await cp(`${store}-before`, store, { recursive: true });
    },
  } as const;

  it.each(Object.entries(changes))("%s acknowledges nothing more", async (_, change) => {
    const store = await copyOf(whole);
    await using engine = await openTest(store);
    await mint(engine, 1);
    await change(store);
    const message = expect.stringContaining(store);
    await expect(mint(engine, 2)).rejects.toMatchObject({ code: "store_failed", message });
    expect(engine.ended.reason).toMatchObject({ code: "store_failed" });
  });

  it.each(Object.entries(changes))("%s ends without a write too", async (_, change) => {
    const store = await copyOf(whole);
    await using engine = await openTest(store);
    await change(store);
    await eventually(() => expect(engine.ended.reason).toMatchObject({ code: "store_failed" }));
  });
});
