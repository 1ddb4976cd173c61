import { execFileSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { all, knownAsset, mintOf, newTenant, openTest, refusal, requestOf } from "./fixture.ts";

const MINTS = 500;
const NOT_MOUNTED = "needs Linux and the right to mount a small file system";

interface Disk extends AsyncDisposable {
  readonly path: string;
  /** Makes writes fail while the store is open. */
  spoil(): void;
  mend(): void;
}

function call(command: string, ...args: string[]): void {
  execFileSync(command, args, { stdio: "ignore" });
}

/** A file system in memory of one megabyte, which fills up by itself. */
function memory(path: string): Omit<Disk, "path"> {
  const mount = (options: string) => call("mount", "-t", "tmpfs", "-o", options, "tmpfs", path);
  mount("size=1m");
  return {
    spoil: () => {},
    mend: () => mount("remount,size=64m"),
    [Symbol.asyncDispose]: async () => call("umount", path),
  };
}

/**
 * A file system in a file, which can be aborted: the kernel then makes it read-only, as after an
 * error of a real disk.
 */
function aborting(path: string): Omit<Disk, "path"> {
  const image = `${path}.img`;
  call("truncate", "-s", "64M", image);
  call("mkfs.ext4", "-q", image);
  const mount = () => call("mount", "-o", "loop", image, path);
  mount();
  return {
    spoil: () => call("mount", "-o", "remount,abort", path),
    mend: () => {
      call("umount", path);
      mount();
    },
    async [Symbol.asyncDispose]() {
      call("umount", path);
      await rm(image);
    },
  };
}

/** null where this process may not mount one. */
async function mounted(make: (path: string) => Omit<Disk, "path">): Promise<Disk | null> {
  const path = await mkdtemp(join(tmpdir(), "mintmark-disk-"));
  try {
    const disk = make(path);
    return {
      ...disk,
      path,
      async [Symbol.asyncDispose]() {
        await disk[Symbol.asyncDispose]();
        await rm(path, { recursive: true });
      },
    };
  } catch {
    await rm(path, { recursive: true });
    await rm(`${path}.img`, { force: true });
    return null;
  }
}

it.for([
  ["full", memory],
  ["read-only", aborting],
] as const)(
  "a disk that becomes %s acknowledges nothing more, and loses nothing that was acknowledged",
  async ([, make], { skip }) => {
    await using disk = await mounted(make);
    if (disk === null) return skip(NOT_MOUNTED);
    const store = join(disk.path, "store");
    const engine = await openTest(store);
    const assetId = await knownAsset(engine, "erc721");
    const { principal, applicationId, users } = await newTenant(engine, [assetId]);
    const mint = (first: number) =>
      engine.mint(
        principal,
        requestOf(users[0], ...Array.from({ length: MINTS }, (_, i) => mintOf(assetId, first + i))),
      );
    let acknowledged = 0;
    const failure = await refusal(
      (async () => {
        for (; acknowledged < 1_000_000; acknowledged += MINTS) {
          if (acknowledged === 5 * MINTS) disk.spoil();
          await mint(acknowledged);
        }
      })(),
    );
    expect(failure.code).toBe("store_failed");
    expect(acknowledged).toBeGreaterThan(0);
    expect((await refusal(mint(acknowledged))).code).toBe("store_failed");
    await engine.close();
    // On the bad disk it either opens whole, or says what is wrong and harms nothing.
    await openTest(store).then(
      (again) => again.close(),
      (error) => expect(error).toMatchObject({ code: "store_failed" }),
    );
    disk.mend();
    await using again = await openTest(store);
    const held = await all(again.vaults.balances(applicationId, users[0]?.userId ?? ""));
    const ids = held.map(({ tokenId }) => tokenId);
    // The write that failed may have reached the disk whole, but not in part.
    expect([acknowledged, acknowledged + MINTS]).toContain(ids.length);
    expect(ids).toEqual(Array.from(ids, (_, i) => BigInt(i)));
    expect((await again.operator.verify()).problems).toEqual([]);
    const next = requestOf(users[0], mintOf(assetId, 2_000_000));
    expect((await again.mint(principal, next)).transactions).toHaveLength(1);
  },
);
