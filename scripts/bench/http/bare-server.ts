import { v7 } from "uuid";
import { type Engine, type MintResult, openEngine, type Principal, type Vault } from "../../../core/index.ts";
import { buildServer } from "../../../server/app.ts";
import { stopSignal } from "../../../server/stop-signal.ts";
import { SETTLEMENT } from "../engine-workload.ts";
import { UNLIMITED } from "./server.ts";

/**
 * The server as server/main.ts runs it, over an engine that mints nothing and answers at once: what is left is the price of HTTP. For the
 * benchmark only.
 */

interface Body {
  readonly users: readonly {
    readonly userId: string;
    readonly mints: readonly { readonly mintingBlob: string; readonly assetId: string }[];
  }[];
}

/** An engine whose answers have the right form and size, and no truth. */
function instant(engine: Engine, principal: Principal): Engine {
  return new Proxy(engine, {
    get(target, name) {
      if (name === "authenticate") return async () => principal;
      if (name === "mint") return async (_: Principal, body: unknown) => answerTo(body as Body);
      const value = Reflect.get(target, name, target) as unknown;
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

function answerTo({ users }: Body): MintResult {
  const mintId = v7();
  const now = Date.now();
  const vaults: Vault[] = [];
  const transactions: MintResult["transactions"][number][] = [];
  for (const [userIndex, { userId, mints }] of users.entries()) {
    for (const [mintIndex, { mintingBlob, assetId }] of mints.entries()) {
      const vaultId = 1_000_000n + BigInt(vaults.length);
      transactions.push({
        transactionId: `${mintId}.${vaults.length}`,
        userIndex,
        mintIndex,
        vaultId,
        status: "accepted",
      });
      vaults.push({
        vaultId,
        userId,
        ownerAddress: "0x0000000000000000000000000000000000000001",
        assetId,
        assetType: "0x00000000000000000000000000000000000000000000000000000000000000aa",
        mintingBlob: mintingBlob as `0x${string}`,
        tokenId: 123_456_789_012n,
        dataAvailabilityMode: "validium",
        amount: 1n,
        availableBalance: 1n,
        withdrawnBalance: 0n,
        batchId: "validium-1",
        status: "accepted",
        createdAt: now,
        updatedAt: now,
      });
    }
  }
  return { mintId, vaults, transactions, replayed: false, receipt: async () => null };
}

const { MINTMARK_STORE: store = "", MINTMARK_PORT: port = "0", BENCH_KEY: apiKey = "" } = process.env;
await using engine = await openEngine({ store, environment: "sandbox", settlement: SETTLEMENT });
const app = await buildServer({
  engine: instant(engine, await engine.authenticate(apiKey)),
  log: { level: "info" },
  rateLimits: { key: { units: UNLIMITED, windowSeconds: 1 } },
});
await app.listen({ host: "127.0.0.1", port: Number(port) });
await stopSignal();
await app.close();
