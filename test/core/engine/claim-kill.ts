import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { privateKeyToAccount } from "viem/accounts";
import { type Address, type Engine, openEngine } from "../../../core/index.ts";
import { claimTypedData } from "../../../core/protocol/typed-data.ts";
import { knownAsset, mintOf, newTenant, OWNERS, openTest, SETTLEMENT } from "./fixture.ts";

const SELF = fileURLToPath(import.meta.url);
const linkOf = (index: number) =>
  privateKeyToAccount(`0x${(0xabc000 + index).toString(16).padStart(64, "0")}`);

/** Claims a link for two owners at a time; one of them gets it. */
async function race(engine: Engine, index: number): Promise<Address> {
  const link = linkOf(index);
  const tries = OWNERS.slice(0, 2).map(async ({ address: owner }) => {
    const signature = await link.signTypedData(
      claimTypedData(SETTLEMENT, { link: link.address, owner }),
    );
    await engine.claims.take(link.address, { ownerAddress: owner, signature });
    return owner;
  });
  return Promise.any(tries);
}

/**
 * Kills a process again and again while it takes links, and looks each time whether what it told is
 * so. Then takes all links once more. Throws when a link has another owner than was told.
 */
export async function claimKillRounds(rounds: number, links: number, maxMs: number) {
  const folder = await mkdtemp(join(tmpdir(), "mintmark-claims-"));
  try {
    const path = join(folder, "store");
    const setup = await openTest(path);
    const assetId = await knownAsset(setup, "erc20");
    const { principal, applicationId } = await newTenant(setup, [assetId]);
    const mint = mintOf(assetId, "", 1);
    const claims = Array.from({ length: links }, (_, i) => ({
      linkAddress: linkOf(i).address,
      mint,
    }));
    await setup.claims.createAll(principal, claims);
    await setup.close();
    const told = new Map<number, string>();
    for (let round = 0; round < rounds; round++) {
      for (const [index, owner] of await killedRun([path, String(links)], Math.random() * maxMs))
        told.set(index, owner);
      await using engine = await openTest(path);
      const { problems } = await engine.operator.verify();
      if (problems.length > 0) throw new Error(problems.join("; "));
      for (const [index, owner] of told) {
        const { ownerAddress } = await engine.claims.find(linkOf(index).address);
        if (ownerAddress !== owner)
          throw new Error(`link ${index} was told to be ${owner}'s, and is ${ownerAddress}'s`);
      }
    }
    await using engine = await openTest(path);
    for (let index = 0; index < links; index++) await race(engine, index);
    const { minted } = await engine.assets.get(applicationId, assetId);
    return { links, minted, acknowledged: told.size };
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function killedRun(args: readonly string[], delay: number): Promise<[number, string][]> {
  const child = spawn(process.execPath, [SELF, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  const first = Promise.withResolvers<void>();
  let output = "";
  child.stdout.on("data", (chunk) => {
    output += chunk;
    if (output.includes("\n")) first.resolve();
  });
  const closed = new Promise<void>((resolve) => child.on("close", () => resolve()));
  await Promise.race([first.promise, closed]);
  await setTimeout(delay);
  child.kill("SIGKILL");
  await closed;
  const lines = output.split("\n").slice(0, -1);
  return lines.map((line) => [Number(line.split(" ")[0]), line.split(" ")[1] ?? ""]);
}

if (process.argv[1] === SELF) {
  const [path = "", links = "0"] = process.argv.slice(2);
  const engine = await openEngine({ store: path, settlement: SETTLEMENT, environment: "sandbox" });
  const order = Array.from({ length: Number(links) }, (_, i) => i).sort(() => Math.random() - 0.5);
  await Promise.all(
    [0, 1, 2].map(async (caller) => {
      for (const index of order.filter((_, i) => i % 3 === caller)) {
        const owner = await race(engine, index);
        process.stdout.write(`${index} ${owner.toLowerCase()}\n`);
      }
    }),
  );
  // It waits for its end.
  setInterval(() => {}, 1_000);
}
