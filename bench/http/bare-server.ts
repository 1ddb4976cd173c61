import { randomUUID } from "node:crypto";
import {
  type AcceptedColumns,
  type Engine,
  type MintResult,
  openEngine,
  type Principal,
} from "../../core/index.ts";
import { buildServer } from "../../server/app.ts";
import { BACKLOG } from "../../server/http/connections.ts";
import { stopSignal } from "../../server/process/shutdown.ts";
import { SETTLEMENT } from "../engine-workload.ts";
import { UNLIMITED } from "./server.ts";

/**
 * The server of server/main.ts on an engine that answers at once, to measure the cost of HTTP.
 * Benchmark only.
 */

const OWNER = "0x0000000000000000000000000000000000000001";
const ASSET_TYPE = "0x00000000000000000000000000000000000000000000000000000000000000aa";

type Mints = readonly { readonly mintingBlob: string; readonly assetId: string }[];
interface Body {
  readonly users: readonly { readonly userId: string; readonly mints: Mints }[];
}

/** An engine whose results have the right form and size, but no meaning. */
function instant(engine: Engine, principal: Principal): Engine {
  return new Proxy(engine, {
    get(target, name) {
      if (name === "keys") return { ...target.keys, authenticate: async () => principal };
      if (name === "mint") return async (_: Principal, body: unknown) => answerTo(body as Body);
      const value = Reflect.get(target, name, target) as unknown;
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** Made once: an id costs a tenth of a request without the engine. */
const MINT_ID = randomUUID();

function answerTo({ users }: Body): MintResult {
  const columns = columnsOf(users);
  return {
    mintId: MINT_ID,
    vaults: [],
    transactions: [],
    columns,
    replayed: false,
    receipt: async () => null,
  };
}

function columnsOf(users: Body["users"]): AcceptedColumns {
  const mints = users.flatMap((user) => user.mints);
  const mintingBlobs = mints.map(({ mintingBlob }) => Buffer.from(mintingBlob.slice(2), "hex"));
  let end = 0;
  return {
    time: Date.now(),
    users: users.map(({ userId, mints }) => ({
      userId,
      ownerAddress: OWNER,
      entries: mints.length,
    })),
    assetIndex: Uint32Array.from(mints, ({ assetId }) => assetId.charCodeAt(0)),
    mode: new Uint8Array(mints.length),
    batchNumber: new Uint32Array(mints.length),
    slot: Uint32Array.from(mints, (_, i) => 1_000_000 + i),
    age: new Float64Array(mints.length),
    mintingBlobs: Buffer.concat(mintingBlobs),
    mintingBlobEnd: Uint32Array.from(mintingBlobs, ({ length }) => (end += length)),
    asset: (entry) => ({
      assetId: mints[entry]?.assetId ?? "",
      assetType: ASSET_TYPE,
      quantum: 1n,
      decimals: 0,
      name: "Token",
      symbol: "TKN",
    }),
    amountAfter: () => 1n,
    tokenId: () => null,
    spellsTokenId: (entry) => mints[entry]?.mintingBlob !== "",
    lastEntries: () => Uint32Array.from(mints, (_, i) => i),
  };
}

const {
  MINTMARK_STORE: store = "",
  MINTMARK_PORT: port = "0",
  BENCH_KEY: apiKey = "",
} = process.env;
await using engine = await openEngine({ store, environment: "sandbox", settlement: SETTLEMENT });
const app = await buildServer({
  engine: instant(engine, await engine.keys.authenticate(apiKey)),
  log: { level: "info" },
  rateLimits: { key: { units: UNLIMITED, windowSeconds: 1 } },
});
await app.listen({ host: "127.0.0.1", port: Number(port), backlog: BACKLOG });
await stopSignal();
await app.close();
