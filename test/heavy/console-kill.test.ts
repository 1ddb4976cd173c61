import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openEngine } from "../../core/index.ts";
import { claimTypedData } from "../../core/protocol/typed-data.ts";
import { addressOf, cleanEnvironment, SERVER, settingsOf } from "../cli/cli.ts";
import { knownAsset, newTenant, SETTLEMENT } from "../core/engine/fixture.ts";

// A member's drop and visitors' claims, over HTTP as the pages send them, while the server's
// process is killed.

const CONSOLE = { "mintmark-console": "1" };
const ROWS = 10_000;
/**
 * With their links, all claims of one server's life stay within the rate limit of visitors at one
 * address.
 */
const KILLS = 5;
const FIRST = 1_000_000;
/** Links that one round of visitors opens, each by two owners at once. */
const LINKS = 50;

let folder: string;
let child: ChildProcess;
let address: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "mintmark-console-kill-"));
});
afterAll(async () => {
  child?.kill("SIGKILL");
  await rm(folder, { recursive: true, force: true });
});

const store = () =>
  ({ store: join(folder, "store"), settlement: SETTLEMENT, environment: "sandbox" }) as const;

async function start(): Promise<void> {
  child = spawn(process.execPath, SERVER, {
    cwd: new URL("../../", import.meta.url).pathname,
    env: cleanEnvironment({ ...settingsOf(store().store, SETTLEMENT), MINTMARK_PORT: "0" }),
    stdio: ["ignore", "pipe", "inherit"],
  });
  address = await addressOf(child);
}

async function kill(): Promise<void> {
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
}

const linkOf = (index: number) =>
  privateKeyToAccount(`0x${(0xabc000 + index).toString(16).padStart(64, "0")}`);
const ownerOf = (index: number, rival: number) =>
  `0x${(0x77000000 + 2 * index + rival).toString(16).padStart(40, "0")}` as const;

/**
 * Has two owners claim each link at once. Returns what the server told them before it was killed.
 *
 * @param onTold - called with the number of answers so far
 */
async function claimAll(
  first: number,
  count: number,
  onTold: (answers: number) => void = () => {},
) {
  const told = new Map<number, string[]>();
  let answers = 0;
  const signed = async (index: number, rival: number) => {
    const link = linkOf(index);
    const owner = ownerOf(index, rival);
    const signature = await link.signTypedData(
      claimTypedData(SETTLEMENT, { link: link.address, owner }),
    );
    return { index, link, owner, signature };
  };
  const claim = async ({ index, link, owner, signature }: Awaited<ReturnType<typeof signed>>) => {
    const answer = await fetch(`${address}/public/v1/claims/${link.address}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ ownerAddress: owner, signature }),
    }).catch(() => null);
    if (answer === null) return;
    if (answer.status === 200) told.set(index, [...(told.get(index) ?? []), owner]);
    onTold(++answers);
    if (answer.status === 200) return;
    const refused = (await answer.json().catch(() => null)) as { readonly code: string } | null;
    // The kill can cut an answer.
    if (refused !== null) expect(refused.code).toBe("claim_taken");
  };
  const all = Array.from({ length: count }, (_, i) => [
    signed(first + i, 0),
    signed(first + i, 1),
  ]).flat();
  await Promise.all((await Promise.all(all)).map(claim));
  return told;
}

test("a drop of the console and claims a hundred at a time survive a killed server: no double, no gap", async () => {
  let link: string | null;
  let assets: { swords: string; points: string };
  let applicationId: string;
  const links = KILLS * LINKS;
  {
    await using engine = await openEngine({ ...store(), createIfMissing: true });
    assets = {
      swords: await knownAsset(engine, "erc721"),
      points: await knownAsset(engine, "erc20"),
    };
    const tenant = await newTenant(engine, Object.values(assets));
    ({ applicationId } = tenant);
    ({ link } = await engine.people.invite({ applicationId, role: "developer", name: "Ada" }));
    const mint = { assetId: assets.points, amount: "1", dataAvailabilityMode: "validium" };
    const claims = Array.from({ length: links }, (_, i) => ({
      linkAddress: linkOf(i).address,
      mint,
    }));
    await engine.claims.createAll(tenant.principal, claims);
  }
  await start();
  const opened = await fetch(`${address}/console/v1/sign-in`, {
    method: "POST",
    headers: { ...CONSOLE, "content-type": "application/json" },
    body: JSON.stringify({ link }),
  });
  const cookie = String(opened.headers.get("set-cookie")).split(";")[0] ?? "";
  const rows = Array.from({ length: ROWS }, (_, i) => `${ownerOf(i % 5_000, 0)},${FIRST + i}`);
  const query = `assetId=${assets.swords}&dataAvailabilityMode=validium`;
  // The console tells its user to send the file again; the drop also goes on by itself.
  const upload = () =>
    fetch(`${address}/api/v1/drops?${query}`, {
      method: "POST",
      headers: { ...CONSOLE, cookie, "content-type": "text/csv" },
      body: `ownerAddress,tokenId\n${rows.join("\n")}\n`,
    }).catch(() => null);
  const told = new Map<number, string[]>();
  for (let round = 0; round < KILLS; round++) {
    const uploading = round % 2 === 0 ? upload() : Promise.resolve(null);
    const { promise: reached, resolve: reach } = Promise.withResolvers<void>();
    const last = Math.ceil(Math.random() * 2 * LINKS * 0.8);
    const claims = claimAll(round * LINKS, LINKS, (answers) => answers === last && reach());
    await reached;
    await kill();
    await uploading;
    for (const [index, owners] of await claims) told.set(index, owners);
    await start();
  }
  const answer = await upload();
  if (answer === null) throw new Error("nobody killed the server");
  expect([200, 202]).toContain(answer.status);
  const { dropId } = (await answer.json()) as { readonly dropId: string };
  const look = async () => {
    const found = await fetch(`${address}/api/v1/drops/${dropId}`, {
      headers: { ...CONSOLE, cookie },
    });
    return (await found.json()) as { readonly status: string };
  };
  await expect.poll(async () => (await look()).status, { interval: 250 }).toMatch(/done|failed/);
  expect(await look()).toMatchObject({
    status: "done",
    rows: ROWS,
    minted: ROWS,
    refused: 0,
    unknown: 0,
  });
  for (const [index, owners] of told) expect(owners, `link ${index}`).toHaveLength(1);
  for (let first = 0; first < links; first += LINKS) await claimAll(first, LINKS);
  await kill();

  await using engine = await openEngine(store());
  expect((await engine.operator.verify()).problems).toEqual([]);
  const seen = new Set<bigint>();
  for await (const { tokenId, assetId } of engine.vaults.list(applicationId)) {
    if (assetId !== assets.swords) continue;
    expect(seen.has(tokenId ?? 0n)).toBe(false);
    seen.add(tokenId ?? 0n);
  }
  expect(seen.size).toBe(ROWS);
  expect((await engine.assets.get(applicationId, assets.points)).minted).toBe(BigInt(links));
  for (const [index, [owner]] of told) {
    expect((await engine.claims.find(linkOf(index).address)).ownerAddress).toBe(owner);
  }
  expect(told.size).toBeGreaterThanOrEqual(KILLS);
});
