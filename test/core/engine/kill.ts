import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Engine, Vault } from "../../../core/index.ts";
import { ordersOf } from "../../../core/orders/index.ts";
import { packVaultId } from "../../../core/protocol/index.ts";
import { KzgThread } from "../../../core/protocol/kzg/kzg-thread.ts";
import { all, knownAsset, newTenant, openTest, type TestTenant } from "./fixture.ts";

const CHILD = fileURLToPath(new URL("./killed-child.ts", import.meta.url));
/**
 * Batches of validium are sealed on the thread, those in calldata on the spot, and those in blobs
 * by KZG.
 */
export const LIMITS = { batchVaults: { validium: 1_200, "zk-rollup": 200 }, blobElements: 1_000 };
/** The end of a text that no minting blob holds. */
export const LONG = "x".repeat(70);

interface Acknowledged {
  /** `<round>.<request>`. */
  readonly id: string;
  readonly tokens: number;
  readonly vaultIds: readonly bigint[];
}

const STEPS = ["entered", "listed", "filled", "settled"] as const;

/** A step that the child has told of: of a making, or of an order. */
interface Traded {
  readonly step: (typeof STEPS)[number];
  readonly id: string;
}

/** The result of the rounds of killing. */
export interface KillReport {
  readonly rounds: number;
  readonly acknowledged: number;
  /** Lists of transfers that were taken. */
  readonly given: number;
  /** Orders that were listed, and fills that the engine has settled. */
  readonly listed: number;
  readonly settled: number;
  /** Requests that were on disk although nobody had been told. */
  readonly unacknowledged: number;
  readonly batches: number;
  /** Sealed batches in blobs. */
  readonly inBlobs: number;
}

/**
 * Kills a minting process again and again at random moments, and looks each time whether the store
 * holds what it must. Throws if not.
 */
export async function killRounds(rounds: number, maxMs: number): Promise<KillReport> {
  const folder = await mkdtemp(join(tmpdir(), "mintmark-kill-"));
  const kzg = new KzgThread();
  try {
    const path = join(folder, "store");
    const setup = await openTest(path, { limits: LIMITS, kzg });
    const erc721 = await knownAsset(setup, "erc721");
    const erc20 = await knownAsset(setup, "erc20");
    const erc1155 = await knownAsset(setup, "erc1155");
    await setup.operator.recordRegistered(erc1155, { transferable: true });
    const tenant = await newTenant(setup, [erc721, erc20, erc1155]);
    const terms = { listing: "application", fee: null, assets: [] } as const;
    await ordersOf(setup).setTerms(tenant.applicationId, terms);
    await setup.close();
    const acknowledged: Acknowledged[] = [];
    const given: string[] = [];
    const traded: Traded[] = [];
    let settled = 0;
    let found = { requests: 0, batches: 0, inBlobs: 0 };
    for (let round = 0; round < rounds; round++) {
      const userId = tenant.users[round % tenant.users.length]?.userId ?? "";
      const delay = Math.random() * maxMs;
      const said = await killedRun(
        [path, tenant.token, String(round), userId, erc721, erc20, erc1155],
        // The last one has acknowledged something, however slow the machine is.
        round < rounds - 1 ? /^open\n/ : /^ack .*\n/m,
        delay,
      );
      acknowledged.push(...said.acknowledged);
      given.push(...said.given);
      traded.push(...said.traded);
      const engine = await openTest(path, { limits: LIMITS, kzg });
      // A busy child is killed before KZG's thread has begun, so the next ones find these batches.
      if (round % 5 === 0) {
        engine.operator.placeInBlobs(engine.settlement.chainId, true);
        await engine.operator.seal("zk-rollup");
      }
      found = await requireWhole(engine, tenant, erc721, acknowledged);
      for (const transferId of given) {
        const { status } = await engine.transfers.get(tenant.applicationId, transferId);
        if (status === "failed")
          throw new Error(`the transfers ${transferId}, which were taken, have failed`);
      }
      settled = await requireTrades(engine, tenant, traded);
      await engine.close();
    }
    const unacknowledged = found.requests - acknowledged.length;
    return {
      rounds,
      acknowledged: acknowledged.length,
      given: given.length,
      listed: traded.filter(({ step }) => step === "listed").length,
      settled,
      unacknowledged,
      ...found,
    };
  } finally {
    await kzg.close();
    await rm(folder, { recursive: true });
  }
}

/**
 * Runs the child, kills it `delay` ms after it has printed this, and returns what it had
 * acknowledged.
 */
async function killedRun(args: readonly string[], printed: RegExp, delay: number) {
  const child = spawn(process.execPath, [CHILD, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  let errors = "";
  const begun = Promise.withResolvers<void>();
  child.stdout.on("data", (chunk) => {
    output += chunk;
    if (printed.test(output)) begun.resolve();
  });
  child.stderr.on("data", (chunk) => {
    errors += chunk;
  });
  const closed = new Promise<void>((resolve) => child.on("close", () => resolve()));
  await Promise.race([begun.promise, closed]);
  await setTimeout(delay);
  if (child.exitCode !== null) throw new Error(`the minting process ended by itself: ${errors}`);
  child.kill("SIGKILL");
  await closed;
  // The last line may have been cut off by the kill: then nobody was told.
  const lines = output.split("\n").slice(0, -1);
  const acknowledged = lines
    .filter((line) => line.startsWith("ack "))
    .map((line): Acknowledged => {
      const [, id = "", tokens = "0", vaultIds = ""] = line.split(" ");
      return { id, tokens: Number(tokens), vaultIds: vaultIds.split(",").map(BigInt) };
    });
  return {
    acknowledged,
    given: lines.flatMap((line) => (line.startsWith("gave ") ? line.slice(5) : [])),
    traded: lines.flatMap((line): Traded[] => {
      const [step, id = ""] = line.split(" ");
      return STEPS.includes(step as Traded["step"]) ? [{ step: step as Traded["step"], id }] : [];
    }),
  };
}

/**
 * Every acknowledged request is there, once and where it was told to be; every other one wholly or
 * not at all.
 */
async function requireWhole(
  engine: Engine,
  tenant: TestTenant,
  erc721: string,
  acknowledged: readonly Acknowledged[],
) {
  const { problems, batches } = await engine.operator.verify();
  if (problems.length > 0)
    throw new Error(`the store does not follow from its journal: ${problems.join("; ")}`);
  const vaults = new Map<string, Vault>();
  const tokensOf = new Map<string, number>();
  const items = new Set<string>();
  for await (const vault of allVaults(engine, tenant)) {
    if (vault.dataAvailabilityMode === "made") continue;
    if (vault.tokenId !== null && vault.assetId !== erc721) items.add(vault.mintingBlob);
    if (vault.assetId !== erc721) continue;
    const text = Buffer.from(vault.mintingBlob.slice(2), "hex").toString().replace(LONG, "");
    if (vaults.has(text)) throw new Error(`token ${text} is there twice`);
    vaults.set(text, vault);
    const request = text.split("-").slice(0, 2).join(".");
    tokensOf.set(request, (tokensOf.get(request) ?? 0) + 1);
  }
  for (const { id, tokens, vaultIds } of acknowledged) {
    for (let i = 0; i < tokens; i++) {
      const vault = vaults.get(`${id.replace(".", "-")}-${i}`);
      if (vault?.vaultId !== vaultIds[i])
        throw new Error(`token ${i} of request ${id} is not in its vault`);
    }
  }
  // Requests hold 1, 7 or 40 tokens, so half a request would show in its number.
  for (const [request, tokens] of tokensOf) {
    if (![1, 7, 40].includes(tokens))
      throw new Error(`request ${request} is there by half: ${tokens} tokens`);
  }
  await requireToldOnce(engine, tenant, tokensOf.size + items.size);
  const inBlobs = (await all(engine.batches.list())).filter(
    ({ kind, status }) => kind === "blobs" && status !== "open",
  );
  return { requests: tokensOf.size, batches, inBlobs: inBlobs.length };
}

/**
 * Every entry that was told is a deposit, once; every order and fill is at least as far as was
 * told, with both of its sides. Returns the number of settled fills.
 */
async function requireTrades(
  engine: Engine,
  { applicationId }: TestTenant,
  told: readonly Traded[],
) {
  const orders = ordersOf(engine);
  const found = await all(orders.list(applicationId));
  const byId = new Map(found.map((order) => [order.orderId, order]));
  if (new Set(found.map(({ digest }) => digest)).size !== found.length)
    throw new Error("an order is there twice");
  for (const { orderId, counterOrderId, status } of found) {
    if (status !== "filled" && status !== "settled") continue;
    const other = byId.get(counterOrderId ?? "");
    if (other?.counterOrderId !== orderId || other.status !== status)
      throw new Error(`the fill of order ${orderId} is there by half`);
  }
  const reached = { listed: /./, filled: /^(?:filled|settled)$/, settled: /^settled$/ };
  const deposits = await all(engine.deposits.list(applicationId));
  const credited = new Set(deposits.map(({ vaultId }) => vaultId));
  if (credited.size !== deposits.length) throw new Error("a deposit is there twice");
  for (const { step, id } of told) {
    if (step !== "entered") {
      if (!reached[step].test(byId.get(id)?.status ?? ""))
        throw new Error(`order ${id} was ${step}, and is ${byId.get(id)?.status}`);
      continue;
    }
    for (const slot of [0, 1])
      if (!credited.has(packVaultId({ mode: "made", batchNumber: Number(id), slot })))
        throw new Error(`entry ${id} is lost`);
  }
  // L1 takes both vaults of a making by one trade, or none.
  const taken = new Map<bigint, bigint[]>();
  for (const { vaultId } of deposits) {
    const { withdrawnBalance } = await engine.vaults.get(applicationId, vaultId);
    const making = vaultId >> 20n;
    taken.set(making, [...(taken.get(making) ?? []), withdrawnBalance]);
  }
  for (const [making, sides] of taken)
    if (sides.length !== 2 || (sides[0] === 0n) !== (sides[1] === 0n))
      throw new Error(`making ${making} was traded by half: ${sides.join(", ")}`);
  return found.filter(({ status }) => status === "settled").length / 2;
}

/** The application was told of every request that is on disk, once, and its events have no gap. */
async function requireToldOnce(
  engine: Engine,
  { applicationId }: TestTenant,
  requests: number,
): Promise<void> {
  let sequence = 0;
  const mints = new Set<string>();
  for await (const event of engine.events.stream(applicationId)) {
    if (event.sequence !== ++sequence) throw new Error(`event ${sequence} is missing`);
    if (event.type === "mint.accepted") mints.add(event.data.mintId);
  }
  if (mints.size !== requests) throw new Error(`of ${requests} requests ${mints.size} were told`);
}

async function* allVaults(engine: Engine, { applicationId }: TestTenant): AsyncGenerator<Vault> {
  let cursor: string | null = null;
  do {
    const page = await engine.vaults.list(applicationId, {
      limit: 100,
      ...(cursor !== null && { cursor }),
    });
    yield* page.data;
    cursor = page.nextCursor;
  } while (cursor !== null);
}
