import { execFileSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { all, knownAsset, mintOf, newTenant, openTest, refusal, requestOf } from "./fixture.ts";

const MINTS = 500;
const NOT_MOUNTED = "needs Linux and the right to mount a small file system";

/** A file system in memory of that many megabytes; null where this process may not mount one. */
async function mountSmall(megabytes: number) {
  const path = await mkdtemp(join(tmpdir(), "mintmark-full-"));
  const mount = (options: string) =>
    execFileSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", path], { stdio: "ignore" });
  try {
    mount(`size=${megabytes}m`);
  } catch {
    await rm(path, { recursive: true });
    return null;
  }
  return {
    path,
    grow: (size: number) => mount(`remount,size=${size}m`),
    async [Symbol.asyncDispose]() {
      execFileSync("umount", [path]);
      await rm(path, { recursive: true });
    },
  };
}

it("a full disk acknowledges nothing more, and loses nothing that was acknowledged", async ({ skip }) => {
  await using disk = await mountSmall(1);
  if (disk === null) return skip(NOT_MOUNTED);
  const store = join(disk.path, "store");
  const engine = await openTest(store);
  const assetId = await knownAsset(engine, "erc721");
  const { principal, applicationId, users } = await newTenant(engine, [assetId]);
  const mint = (first: number) =>
    engine.mint(principal, requestOf(users[0], ...Array.from({ length: MINTS }, (_, i) => mintOf(assetId, first + i))));
  let acknowledged = 0;
  const failure = await refusal(
    (async () => {
      for (; acknowledged < 1_000_000; acknowledged += MINTS) await mint(acknowledged);
    })(),
  );
  expect(failure.code).toBe("store_failed");
  expect(acknowledged).toBeGreaterThan(0);
  expect((await refusal(mint(acknowledged))).code).toBe("store_failed");
  await engine.close();
  disk.grow(64);
  await using again = await openTest(store);
  const held = await all(again.vaults.balances(applicationId, users[0]?.userId ?? ""));
  const ids = held.map(({ tokenId }) => tokenId);
  // The write that failed may have reached the disk whole, but not in part.
  expect([acknowledged, acknowledged + MINTS]).toContain(ids.length);
  expect(ids).toEqual(Array.from(ids, (_, i) => BigInt(i)));
  expect((await again.operator.verify()).problems).toEqual([]);
  const next = requestOf(users[0], mintOf(assetId, 2_000_000));
  expect((await again.mint(principal, next)).transactions).toHaveLength(1);
});
