import { setTimeout as sleep } from "node:timers/promises";
import { type Engine, MODES, openEngine } from "../../core/index.ts";
import { buildServer } from "../../server/app.ts";
import { HeldBytes } from "../../server/http/access/rate-account.ts";
import { BACKLOG } from "../../server/http/connections.ts";
import { stopSignal } from "../../server/process/shutdown.ts";
import { SETTLEMENT } from "../engine-workload.ts";
import { UNLIMITED } from "./server.ts";
import { type Watched, watch } from "./watch.ts";

/**
 * The server of server/main.ts as if L1 took blobs. From `/bench/begin` until `/bench/end` it
 * watches its event loop, with `?closely` each of its pieces, seals both modes again and again, and
 * verifies its store. Benchmark only.
 */

const SEAL_MS = 1_000;

/** The answer of `/bench/end`. */
export interface Ended extends Watched {
  readonly seals: number;
  readonly verifies: number;
}

/** Seals and verifies until the returned function is called, which gives how often. */
function occupy(engine: Engine) {
  const over = new AbortController();
  const { signal } = over;
  const until = async (work: () => Promise<unknown>) => {
    let times = 0;
    for (; !signal.aborted; times++) await work().catch((error) => requireOver(signal, error));
    return times;
  };
  const sealing = until(async () => {
    await Promise.all(MODES.map((mode) => engine.operator.seal(mode)));
    await sleep(SEAL_MS, undefined, { signal });
  });
  const verifying = until(async () => {
    const { problems } = await engine.operator.verify({ signal });
    if (problems.length > 0) throw new Error(`verify found ${problems[0]}`);
  });
  return async () => {
    over.abort();
    const [seals, verifies] = await Promise.all([sealing, verifying]);
    return { seals, verifies };
  };
}

function requireOver(signal: AbortSignal, error: unknown): void {
  if (!signal.aborted) throw error;
}

const { MINTMARK_STORE: store = "", MINTMARK_PORT: port = "0" } = process.env;
await using engine = await openEngine({ store, environment: "sandbox", settlement: SETTLEMENT });
engine.operator.placeInBlobs(SETTLEMENT.chainId, true);
let end = async (): Promise<object> => ({});
const app = await buildServer({
  engine,
  log: { level: "info" },
  rateLimits: { key: { units: UNLIMITED, windowSeconds: 1 } },
  memory: new HeldBytes(2 ** 34),
  drops: `${store}-drops`,
  extend: async (app) => {
    app.get("/bench/begin", async ({ query }) => {
      const watched = await watch("closely" in (query as object));
      const unoccupied = occupy(engine);
      end = async () => ({ ...(await watched()), ...(await unoccupied()) });
      return {};
    });
    app.get("/bench/end", () => end());
  },
});
await app.listen({ host: "127.0.0.1", port: Number(port), backlog: BACKLOG });
await stopSignal();
await app.close();
