import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { appendFileSync, chmodSync, mkdirSync, rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ClusterNode, PostgresJournal } from "../../../core/cluster/index.ts";
import { PostgresServer } from "../../../scripts/cluster/postgres.ts";
import {
  all,
  knownAsset,
  mintOf,
  newTenant,
  requestOf,
  SETTLEMENT,
} from "../../core/engine/fixture.ts";

const isRoot = process.getuid?.() === 0;
if (!isRoot) console.log("Not run: only root can mount a small disk.");
/** Room for an empty database and its log. */
const DISK = "160m";

test.skipIf(!isRoot)(
  "a cluster whose PostgreSQL has a full disk loses nothing, and goes on with more room",
  async () => {
    await using stack = new AsyncDisposableStack();
    const folder = await mkdtemp(join(tmpdir(), "mintmark-full-"));
    stack.defer(() => rm(folder, { recursive: true, force: true }));
    chmodSync(folder, 0o755);
    const disk = join(folder, "disk");
    mkdirSync(disk);
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${DISK},mode=755`, "tmpfs", disk]);
    stack.defer(() => void execFileSync("umount", ["-l", disk]));
    const primary = stack.use(await PostgresServer.primary(join(disk, "primary")));
    stack.use(await primary.standby(join(folder, "standby"), "one"));
    const key = randomBytes(32);
    const joinAs = async (name: string) =>
      ClusterNode.join({
        store: join(folder, name),
        journal: await PostgresJournal.open({ url: primary.url, shard: "full", keys: [key] }),
        server: { name, url: `http://${name}.test` },
        settlement: SETTLEMENT,
        environment: "sandbox",
        createIfMissing: true,
        leaseMs: 2_000,
      });
    const one = stack.use(await joinAs("one"));
    const { engine } = one;
    const asset = await knownAsset(engine, "erc721");
    const tenant = await newTenant(engine, [asset]);
    const acknowledged: bigint[] = [];
    let tokens = 0;
    const mint = async (on = engine) => {
      const mints = Array.from({ length: 200 }, () => mintOf(asset, tokens++));
      const { vaults } = await on.mint(tenant.principal, requestOf(tenant.users[0], ...mints));
      acknowledged.push(...vaults.map(({ vaultId }) => vaultId));
    };
    await mint();
    const ballast = join(disk, "ballast");
    const fill = () => {
      try {
        for (;;) appendFileSync(ballast, Buffer.alloc(1 << 16));
      } catch (error) {
        expect((error as NodeJS.ErrnoException).code).toBe("ENOSPC");
      }
    };
    fill();
    let failure: unknown = null;
    const minting = (async () => {
      for (let i = 0; i < 5_000 && failure === null; i++) {
        await mint().catch((error) => {
          failure = error;
        });
      }
    })();
    try {
      await expect.poll(() => one.fault).not.toBeNull();
    } catch (error) {
      // The node cannot close while the database takes nothing.
      rmSync(ballast);
      throw error;
    }
    const before = acknowledged.length;
    await expect(engine.applications.create({ name: "refused" })).rejects.toMatchObject({
      code: "journal_unavailable",
    });
    expect(acknowledged.length).toBe(before);
    rmSync(ballast);
    // Without room for its log, PostgreSQL ends; somebody starts it again.
    await primary.query("select 1").catch(() => primary.start());
    await expect.poll(() => one.fault).toBeNull();
    expect(one.engine).toBe(engine);
    await minting;
    if (failure !== null) expect(failure).toMatchObject({ code: "journal_unavailable" });
    await mint();
    const two = stack.use(await joinAs("two"));
    await expect.poll(() => two.position).toBe(one.position);
    for (const node of [one, two]) {
      const held = new Set(
        (await all(node.engine.vaults.list(tenant.applicationId))).map(({ vaultId }) => vaultId),
      );
      expect(acknowledged.filter((vaultId) => !held.has(vaultId))).toEqual([]);
      expect((await node.engine.operator.verify()).problems).toEqual([]);
    }
    expect(two.engine.batches.state()).toEqual(one.engine.batches.state());
  },
  300_000,
);
