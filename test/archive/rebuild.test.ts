import { MemoryLevel } from "memory-level";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Archive } from "../../core/archive/archive.ts";
import { type RebuildReport, rebuild } from "../../core/archive/follow.ts";
import { TEXT } from "../../core/archive/keys.ts";
import type { BatchSource } from "../../core/archive/sources.ts";
import type { L1Reader, Mode, VaultId } from "../../core/index.ts";
import { at, createWorld, type World } from "../settlement/fixture.ts";
import { chainOf, openArchive, sourceOf } from "./fixture.ts";

const MODES: readonly Mode[] = ["validium", "zk-rollup"];

describe("the public state, rebuilt", () => {
  let world: World;
  const vaults: VaultId[] = [];
  let withdrawn: VaultId;

  beforeAll(async () => {
    world = await createWorld();
    for (let round = 0; round < 3; round++) {
      for (const mode of MODES) {
        vaults.push(await world.mint("erc721", mode, `${mode}-${round}`));
        vaults.push(await world.mint("erc20", mode, "", 100 + round));
        vaults.push(await world.mint("erc1155", mode, "potion", 2));
      }
      await world.settler.round();
    }
    withdrawn = at(vaults, 1);
    await world.chain.passSeconds(200n);
    await world.requestWithdrawal(withdrawn, 40n);
    await world.settler.round();
  });
  afterAll(() => world.close());

  const withMember = async () => ({
    ...(await chainOf(world)),
    sources: [sourceOf(at(world.members, 0))],
  });

  /** Everything that an archive tells, against the engine that it never asked. */
  async function requireWhole(archive: Archive, report: RebuildReport) {
    expect(report.state).toEqual(await world.engine.batches.committedState());
    expect(report).toMatchObject({
      batches: { validium: 3, "zk-rollup": 3 },
      vaults: { validium: 9, "zk-rollup": 9 },
      withdrawnVaults: 1,
      missing: [],
    });
    for (const vaultId of vaults) {
      const proof = await archive.vaultProof(vaultId);
      expect(proof).toEqual(await world.engine.proofs.vault(vaultId));
      expect(await world.l1.verifyVault(proof)).toBe(vaultId === withdrawn ? 40n : 0n);
      expect(await archive.withdrawn(vaultId)).toBe(vaultId === withdrawn ? 40n : 0n);
    }
    const owned: VaultId[] = [];
    for await (const vaultId of archive.vaultsOf(at(world.users, 0).owner.address))
      owned.push(vaultId);
    expect(owned).toEqual(vaults.toSorted((a, b) => (a < b ? -1 : 1)));
  }

  test("from L1 and one member equals the engine's state, with proofs that L1 accepts", async () => {
    const archive = await openArchive(world);
    await requireWhole(archive, await rebuild({ archive, ...(await withMember()) }));
  });

  test("from L1 alone holds all rollup batches and the roots of validium; a member fills in the rest later", async () => {
    const archive = await openArchive(world);
    const report = await rebuild({ archive, ...(await chainOf(world)) });
    expect(report.missing).toEqual(["validium-0", "validium-1", "validium-2"]);
    expect(report.state).toEqual(await world.engine.batches.committedState());
    const [validiumVault, rollupVault] = [at(vaults, 0), at(vaults, 3)];
    expect(await archive.vaultProof(rollupVault)).toEqual(
      await world.engine.proofs.vault(rollupVault),
    );
    await expect(archive.vaultProof(validiumVault)).rejects.toMatchObject({
      code: "proof_not_ready",
    });
    await requireWhole(archive, await rebuild({ archive, ...(await withMember()) }));
  });

  test("resumes after an interruption at any write, with the same result", async () => {
    const complete = new MemoryLevel<Uint8Array, Uint8Array>();
    const first = await openArchive(world, complete);
    await rebuild({ archive: first, ...(await withMember()) });
    for (let writes = 0; writes < 14; writes++) {
      const store = new MemoryLevel<Uint8Array, Uint8Array>();
      const archive = await openArchive(world, store);
      failAfter(store, writes);
      await rebuild({ archive, ...(await withMember()) }).catch((error) =>
        expect(String(error)).toContain("killed"),
      );
      delete (store as { batch?: unknown }).batch;
      const again = await openArchive(world, store);
      await rebuild({ archive: again, ...(await withMember()) });
      expect(await contentOf(store)).toEqual(await contentOf(complete));
    }
  });

  test("checks everything from a source", async () => {
    const member = at(world.members, 1);
    const liars: BatchSource[] = [
      { name: "dead", batchData: () => Promise.reject(new Error("connection refused")) },
      { name: "empty", batchData: async () => null },
      { name: "garbage", batchData: async () => new TextEncoder().encode("<html>") },
      {
        name: "another batch",
        batchData: (_, number) => member.data("validium", (number + 1) % 3),
      },
    ];
    const faults: string[] = [];
    const archive = await openArchive(world);
    const report = await rebuild({
      archive,
      ...(await chainOf(world)),
      sources: [...liars, sourceOf(member)],
      onFault: ({ name }) => faults.push(name),
    });
    await requireWhole(archive, report);
    expect(new Set(faults)).toEqual(new Set(["dead", "garbage", "another batch"]));
  });

  test("skips a source that wasted its time, and asks the others for everything", async () => {
    const member = at(world.members, 1);
    let asked = 0;
    const slow: BatchSource = {
      name: "slow",
      batchData: (_mode, _number, signal) => {
        asked++;
        return new Promise((_, reject) =>
          signal?.addEventListener("abort", () => reject(signal.reason)),
        );
      },
    };
    const archive = await openArchive(world);
    const sources = [slow, sourceOf(member)];
    await requireWhole(
      archive,
      await rebuild({ archive, ...(await chainOf(world)), sources, wasteMs: 50 }),
    );
    expect(asked).toBe(1);
  });

  test("takes rollup data too from whoever has it, when the node has dropped the transactions, and from L1 when it has them again", async () => {
    const { engine, l1 } = world;
    const pruned = Object.assign(Object.create(l1) as typeof l1, { rollupData: async () => null });
    const operator: BatchSource = {
      name: "the operator's server",
      batchData: async (mode, number) => (await engine.batches.getSealed(mode, number)).data,
    };
    const archive = await openArchive(world);
    const chain = await chainOf(world);
    await requireWhole(
      archive,
      await rebuild({ archive, ...chain, l1: pruned, sources: [operator] }),
    );
    const later = await openArchive(world);
    const report = await rebuild({ archive: later, ...chain, l1: pruned });
    expect(report.missing).toEqual(
      MODES.flatMap((mode) => [0, 1, 2].map((number) => `${mode}-${number}`)),
    );
    await requireWhole(later, await rebuild({ archive: later, ...(await withMember()) }));
  });

  test("reports roots that differ from L1's", async () => {
    const state: L1Reader["state"] = async (block) => ({
      ...(await world.l1.state(block)),
      rootRollup: `0x${"09".repeat(32)}`,
    });
    const options = {
      ...(await chainOf(world)),
      l1: Object.assign(Object.create(world.l1), { state }),
    };
    const refused = rebuild({ archive: await openArchive(world), ...options });
    await expect(refused).rejects.toThrow(/the rebuilt rootRollup is 0x\w+, but 0x0909/);
  });

  test("refuses a store of another contract, of another kind, and a chain that was replaced under it", async () => {
    const store = new MemoryLevel<Uint8Array, Uint8Array>();
    const archive = await openArchive(world, store);
    await rebuild({ archive, ...(await chainOf(world)) });
    const settlement = { ...world.l1.settlement, contract: at(world.chain.tokens, 0).address };
    const other = Object.assign(Object.create(world.l1), { settlement });
    await expect(openArchive({ l1: other }, store)).rejects.toMatchObject({
      code: "store_mismatch",
    });

    await store.put<string, string>(
      "meta",
      '{"format":"mintmark-archive","version":7,"chainId":"1"}',
      TEXT,
    );
    const message = expect.stringMatching(
      /archive has version 7, .* reads version 8\. Nothing was changed/,
    );
    await expect(openArchive(world, store)).rejects.toMatchObject({
      code: "store_mismatch",
      message,
    });

    const used = new MemoryLevel<string, string>();
    await used.put("something", "else");
    await expect(openArchive(world, used)).rejects.toMatchObject({ code: "store_mismatch" });

    const block: L1Reader["block"] = async (number) => {
      const found = await world.l1.block(number);
      return found && { ...found, hash: `0x${"ab".repeat(32)}` };
    };
    const replaced = {
      ...(await chainOf(world)),
      l1: Object.assign(Object.create(world.l1), { block }),
    };
    await expect(rebuild({ archive, ...replaced })).rejects.toMatchObject({
      code: "store_mismatch",
    });
  });
});

/** Makes the store fail every write after so many, as a kill would. */
function failAfter(store: MemoryLevel<Uint8Array, Uint8Array>, writes: number): void {
  const original = store.batch.bind(store) as () => {
    write: (...args: unknown[]) => Promise<void>;
  };
  let done = 0;
  const failing = () => {
    const batch = original();
    const write = batch.write.bind(batch);
    batch.write = async (...args) => {
      if (done++ >= writes) throw new Error("killed");
      return write(...args);
    };
    return batch;
  };
  Object.defineProperty(store, "batch", { value: failing, configurable: true });
}

async function contentOf(
  store: MemoryLevel<Uint8Array, Uint8Array>,
): Promise<Record<string, string>> {
  return Object.fromEntries(
    await store.iterator<string, string>({ keyEncoding: "utf8", valueEncoding: "hex" }).all(),
  );
}
