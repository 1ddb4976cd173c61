import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { PostgresJournal } from "../../../core/cluster/index.ts";
import {
  type Minter,
  minterOf,
  type Servers,
  settled,
  vaultsOf,
} from "../../../scripts/cluster/world.ts";

const MAIN = fileURLToPath(new URL("../../../scripts/mintmark.js", import.meta.url));
/** Longest time after a fault until a mint is acknowledged again. */
const PATIENCE_MS = 180_000;

/**
 * Strikes, waits, and leaves everything running. A fault without a length of its own lasts `ms`.
 */
export type Strike = (ms: number) => Promise<void>;

export interface CampaignOptions {
  readonly world: Servers;
  readonly folder: string;
  readonly strikes: Readonly<Record<string, Strike>>;
  readonly faults: number;
  /** The primary's address at the end. */
  readonly url: () => Promise<string>;
  /** Resolves once the database is whole again. */
  readonly mended?: () => Promise<void>;
}

/**
 * A client that looks up what was acknowledged, on any server, and notes everything that it is
 * shown.
 */
class Reader {
  readonly seen = new Set<string>();
  readonly violations: string[] = [];
  reads = 0;
  readonly #world: Servers;
  readonly #minter: Minter;

  constructor(world: Servers, minter: Minter) {
    this.#world = world;
    this.#minter = minter;
  }

  async read(): Promise<void> {
    const { members, facts } = this.#world;
    const member = members[
      Math.floor(Math.random() * members.length)
    ] as Servers["members"][number];
    const { position } = this.#minter;
    const vaultId = this.#minter.acknowledged.at(-1);
    if (vaultId === undefined) return void (await pause(50));
    const ask = async (path: string, headers: Record<string, string>) => {
      const signal = AbortSignal.timeout(8_000);
      const all = { "x-api-key": facts.apiKey, ...headers };
      const reply = await fetch(`${member.url}${path}`, { headers: all, signal }).catch(() => null);
      const text = await reply?.text().catch(() => null);
      return reply === null || typeof text !== "string" ? null : { status: reply.status, text };
    };
    const own = await ask(`/api/v1/vaults/${vaultId}`, { "mintmark-position": position });
    if (own !== null && own.status !== 200 && own.status !== 503) {
      this.violations.push(
        `${member.name} answers ${own.status} for ${vaultId} at ${position}: ${own.text}`,
      );
    }
    const newest = await ask(
      `/api/v1/vaults?userId=${facts.users[0]?.userId}&limit=100&order=desc`,
      {},
    );
    if (newest?.status === 200) {
      const { data } = JSON.parse(newest.text) as { data: { vaultId: string }[] };
      for (const { vaultId } of data) this.seen.add(vaultId);
    }
    this.reads++;
    await pause(50);
  }
}

/**
 * Strikes as often as asked while clients mint and read, and checks the whole history afterwards.
 */
export async function campaign({
  world,
  folder,
  strikes,
  faults,
  url,
  mended,
}: CampaignOptions): Promise<void> {
  const minters = [1, 10].map((perRequest, i) => minterOf(world, perRequest, i * 1_000_000));
  const reader = new Reader(world, minters[0] as Minter);
  let isOver = false;
  let failure: unknown = null;
  const failed = (error: unknown) => {
    failure ??= error;
  };
  const until = async (act: () => Promise<void>) => {
    while (!isOver && failure === null) await act();
  };
  const clients = [
    ...minters.map((minter) => until(() => minter.mint())),
    until(() => reader.read()),
  ];
  const running = Promise.all(clients).catch(failed);
  const acknowledged = () => minters.reduce((sum, minter) => sum + minter.acknowledged.length, 0);
  const struck: Record<string, number> = {};
  const gaps: Record<string, number> = {};
  try {
    let left: string[] = [];
    for (let fault = 0; fault < faults; fault++) {
      if (left.length === 0) left = shuffled(Object.keys(strikes));
      const name = left.pop() as string;
      const before = performance.now();
      await strikes[name]?.(200 + Math.floor(Math.random() * 1_500));
      const healed = performance.now();
      const count = acknowledged();
      while (acknowledged() === count) {
        if (failure !== null) throw failure;
        const ended = world.members.find(({ end }) => end !== null);
        if (ended !== undefined)
          throw new Error(`after ${name}, ${ended.name} ended: ${JSON.stringify(ended.end)}`);
        if (performance.now() - healed > PATIENCE_MS)
          throw new Error(`nothing is minted after ${name}`);
        await pause(20);
      }
      struck[name] = (struck[name] ?? 0) + 1;
      gaps[name] = Math.max(gaps[name] ?? 0, Math.round(performance.now() - healed));
      const seconds = ((performance.now() - before) / 1_000).toFixed(1);
      if (process.env.MINTMARK_TEST_FAULTS_LOG)
        console.log(`${fault + 1}. ${name}: ${seconds} s, ${count} acknowledged`);
      await mended?.();
      await pause(Math.floor(Math.random() * 500));
    }
  } finally {
    isOver = true;
    await running;
  }
  if (failure !== null) throw failure;

  const { apiKey, users } = world.facts;
  const commitments = await settled(world.members);
  const vaults = minters.flatMap((minter) => minter.acknowledged);
  expect(new Set(vaults).size).toBe(vaults.length);
  expect(reader.violations).toEqual([]);
  for (const { url } of world.members) {
    const held = await vaultsOf(url, apiKey, users[0]?.userId ?? "");
    expect(vaults.filter((vaultId) => !held.has(vaultId))).toEqual([]);
    expect(held.size).toBe(vaults.length);
    expect([...reader.seen].filter((vaultId) => !held.has(vaultId))).toEqual([]);
  }
  expect(new Set(commitments).size).toBe(1);
  const reverted = await revertedTransactions(world.rpcUrl);
  const entries = await journalEntries(await url(), world.journal);
  for (const { name } of world.members) verify(join(folder, name));
  console.log({
    struck,
    msToNextMint: gaps,
    acknowledged: vaults.length,
    reads: reader.reads,
    entries,
    reverted,
  });
  expect(reverted).toEqual([]);
}

/**
 * Entries of the whole journal. Reading it checks that each follows the one before, under a key of
 * the cluster's.
 */
async function journalEntries(url: string, { shard, key }: Servers["journal"]): Promise<number> {
  await using journal = await PostgresJournal.open({ url, shard, keys: [Buffer.from(key, "hex")] });
  const { confirmed } = await journal.status();
  let entries = 0;
  for await (const entry of journal.read(0)) entries += entry.length > 0 ? 1 : 0;
  expect(entries).toBeGreaterThanOrEqual(confirmed);
  return entries;
}

/** Has a server derive every record of its store again and compare it. */
export function verify(store: string): void {
  const args = [
    "--disable-warning=ExperimentalWarning",
    MAIN,
    "verify",
    "--store",
    store,
    "--json",
  ];
  const said = execFileSync(process.execPath, args, { encoding: "utf8" });
  expect(JSON.parse(said)).toMatchObject({ problems: [] });
}

/** Transactions that L1 took and that failed there: a second leader would have made some. */
async function revertedTransactions(rpcUrl: string): Promise<string[]> {
  const ask = async (method: string, params: unknown[]) => {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    const reply = await fetch(rpcUrl, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
    });
    return ((await reply.json()) as { result: unknown }).result;
  };
  const last = Number(await ask("eth_blockNumber", []));
  const reverted: string[] = [];
  for (let block = 0; block <= last; block++) {
    const { transactions } = (await ask("eth_getBlockByNumber", [
      `0x${block.toString(16)}`,
      false,
    ])) as {
      transactions: string[];
    };
    for (const hash of transactions) {
      const { status } = (await ask("eth_getTransactionReceipt", [hash])) as { status: string };
      if (status !== "0x1") reverted.push(hash);
    }
  }
  return reverted;
}

function shuffled(names: string[]): string[] {
  return names
    .map((name) => ({ name, at: Math.random() }))
    .sort((one, other) => one.at - other.at)
    .map(({ name }) => name);
}
