import { join } from "node:path";
import { zeroAddress } from "viem";
import type { Address } from "../core/index.ts";
import { ordersOf } from "../core/orders/index.ts";
import type { OrderMessage } from "../core/protocol/index.ts";
import { orderDigest } from "../core/protocol/index.ts";
import { open, SETTLEMENT, SINGLE_CALLERS } from "./engine-workload.ts";
import { cpuOf, inFolder, median, type Progress, type Section } from "./harness.ts";
import { ascending, quantile, saturate, sendPaced } from "./http/connection.ts";
import { startServer } from "./http/server.ts";
import { mint, signatureOf, worldIn } from "./transfers.ts";

/** Orders a second whose answer times are measured, and for how long. */
const RATE = 1_000;
const PACED = 10_240;
const WARM_UP = 2_048;
const ROUNDS = 3;
const PER_ROUND = 4_096;
const ORDERS = WARM_UP + ROUNDS * PER_ROUND + PACED;

/** A store with settled items, and signed orders of all of them as bodies of requests. */
async function prepared(folder: string) {
  await using engine = await open(folder);
  const world = await worldIn(engine);
  const { principal, apiKey, assetId, owners } = world;
  await ordersOf(engine).setTerms(principal.applicationId, {
    listing: "application",
    fee: null,
    assets: [],
  });
  const vaults = await mint(world, 0, ORDERS);
  const { contractAddress: token } = await engine.assets.get(principal.applicationId, assetId);
  const deadline = BigInt(Math.floor(Date.now() / 1_000)) + 86_400n;
  const bodies = [...vaults].flatMap(([{ key }, ids], i) =>
    ids.map((vaultId, j) => {
      const id = BigInt((i * ORDERS) / owners.length + j);
      const order: OrderMessage = {
        give: { token, id, amount: 2n },
        want: { token, id: 7n, amount: 5n },
        shares: [],
        taker: zeroAddress as Address,
        vaultId,
        withdrawnBefore: 0n,
        deadline,
      };
      const signature = signatureOf(key, orderDigest(SETTLEMENT, order));
      const text = (_: string, value: unknown) => (typeof value === "bigint" ? `${value}` : value);
      return Buffer.from(JSON.stringify({ ...order, signature }, text));
    }),
  );
  return { world, apiKey, bodies };
}

async function measured(progress: Progress) {
  return inFolder(async (folder) => {
    const store = join(folder, "store");
    progress("orders: making them");
    const { apiKey, bodies } = await prepared(store);
    await using server = await startServer("engine", store, { apiKey });
    const target = { port: server.port, apiKey, path: "/api/v1/orders", status: "201" };
    const next = (count: number) => bodies.splice(0, count);
    progress("orders: warming up");
    await saturate(target, next(WARM_UP), SINGLE_CALLERS);
    const rates: number[] = [];
    const cpus: number[] = [];
    for (let i = 0; i < ROUNDS; i++) {
      progress(`orders: round ${i + 1} of ${ROUNDS}`);
      const before = await cpuOf(server.pid);
      rates.push(await saturate(target, next(PER_ROUND), SINGLE_CALLERS));
      cpus.push(((await cpuOf(server.pid)) - before) / PER_ROUND);
    }
    progress(`orders: ${RATE} a second`);
    const times = ascending(await sendPaced(target, RATE, next(PACED)));
    return {
      rate: median(rates),
      cpu: median(cpus),
      p50: quantile(times, 0.5),
      p99: quantile(times, 0.99),
    };
  });
}

export const ordersSection: Section = {
  name: "orders",
  title: "Signed orders over HTTP",
  method:
    "The server as `npm run server` starts it; every order of another vault, signed by its owner's plain key, and " +
    "answered when it is verified and on disk. The load is a second process on the same cores: the median of " +
    `${ROUNDS} rounds of ${PER_ROUND.toLocaleString("en-US")} orders over ${SINGLE_CALLERS} connections, then ` +
    `${RATE.toLocaleString("en-US")} orders a second, each timed from the moment when it was due.`,
  columns: [
    { key: "rate", label: "orders", unit: "a second", better: "higher" },
    { key: "cpu", label: "the server's CPU", unit: "µs an order", better: "lower" },
    {
      key: "p50",
      label: `p50 at ${RATE.toLocaleString("en-US")} a second`,
      unit: "ms",
      better: "lower",
    },
    { key: "p99", label: "p99", unit: "ms", better: "lower" },
  ],
  reference: null,
  async rows(progress) {
    const values = await measured(progress);
    return [
      { label: "the server", ours: true, values },
      { label: "aim", ours: false, values: { rate: RATE, p99: 100 } },
    ];
  },
};
