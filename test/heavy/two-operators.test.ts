import { MemoryLevel } from "memory-level";
import { expect, test } from "vitest";
import { collectAttestations } from "../../core/committee/index.ts";
import { type Engine, MintmarkError, MODES, type Mode, openEngine } from "../../core/index.ts";
import { decodeBatchData } from "../../core/protocol/batch-decoder.ts";
import { adoptFromL1 } from "../../core/settlement/index.ts";
import { THRESHOLD } from "../../scripts/sandbox/accounts.ts";
import { at, connectOperator, createWorld, mine, mint, newSettler, rpc, type World } from "../settlement/fixture.ts";

const BLOCK_MS = 3_000;
const MINTING_MS = 30_000;
const BYTES = { keyEncoding: "view", valueEncoding: "view" } as const;

/** Modes that each of the two operators mints in. */
const RUNS: readonly (readonly [readonly Mode[], readonly Mode[]])[] = [
  [MODES, MODES],
  [MODES, MODES],
  [["validium"], ["zk-rollup"]],
  [["zk-rollup"], ["validium"]],
  [["validium"], ["validium"]],
  [["zk-rollup"], ["zk-rollup"]],
];

async function openCopy(world: World): Promise<Engine> {
  const store = new MemoryLevel<Uint8Array, Uint8Array>(BYTES);
  for await (const [key, value] of world.engineStore.iterator<Uint8Array, Uint8Array>(BYTES)) {
    await store.put(key, value, BYTES);
  }
  return openEngine({ store, settlement: world.l1.settlement, environment: "sandbox" });
}

/** Mints the same tokens as everyone else, and brings them to L1, until it is told to stop. Returns how many were acknowledged. */
async function operate(world: World, engine: Engine, modes: readonly Mode[], signal: AbortSignal): Promise<number> {
  const { chain, members } = world;
  const l1 = await connectOperator(chain);
  const committee = collectAttestations({ members, threshold: THRESHOLD, l1, timeoutMs: 8_000 });
  const settler = newSettler({ engine, l1, committee }, chain);
  const settling = settler.run(signal);
  let minted = 0;
  for (let token = 0; !signal.aborted; token++) {
    const mode = at(modes, token % modes.length);
    await mint({ ...world, engine }, "erc721", mode, `${token}`).then(
      () => minted++,
      (error) => {
        if (!(error instanceof MintmarkError) || error.code !== "history_diverged") throw error;
      },
    );
    await new Promise((resolve) => setTimeout(resolve, 20 + 30 * Math.random()));
  }
  await settling;
  return minted;
}

async function commitsOn({ l1, chain }: World) {
  const events = await l1.events(chain.settlement.deployedAtBlock, await l1.blockNumber());
  return events.filter((event) => event.type === "batchCommitted");
}

async function isOwn(engine: Engine, mode: Mode, batchNumber: number, dataHash: string): Promise<boolean> {
  return (await engine.batches.get(mode, batchNumber).catch(() => null))?.dataHash === dataHash;
}

test.each(RUNS.map((modes, run) => [run, modes] as const))(
  "two operators on copies of one store, with blocks of 3 s, never mix: run %i, %j",
  async (_, modes) => {
    const world = await createWorld();
    const { chain, l1, members } = world;
    const operators = [await openCopy(world), await openCopy(world)];
    await rpc(chain, "evm_setAutomine", [false]);
    await rpc(chain, "evm_setIntervalMining", [BLOCK_MS]);
    const signal = AbortSignal.timeout(MINTING_MS);
    const minted = await Promise.all(operators.map((engine, i) => operate(world, engine, at(modes, i), signal)));
    await rpc(chain, "evm_setIntervalMining", [0]);
    await rpc(chain, "evm_setAutomine", [true]);
    await mine(chain, 40);

    const commits = await commitsOn(world);
    const tokens: string[] = [];
    /** Who has each commit's very batch. Both do while their histories are still the same. */
    const owners: boolean[][] = [];
    for (const { mode, batchNumber, dataHash, txHash } of commits) {
      owners.push(await Promise.all(operators.map((engine) => isOwn(engine, mode, batchNumber, dataHash))));
      const data = mode === "validium" ? await at(members, 0).data(mode, batchNumber) : await l1.rollupData(txHash);
      if (data !== null) tokens.push(...decodeBatchData(data).map((vault) => `${vault?.assetType} ${vault?.blob}`));
    }
    const winner = operators.findIndex((_, i) => owners.every((own) => own[i] === true));
    console.log({ minted, commits: commits.length, tokens: tokens.length, winner });
    expect(commits.length).toBeGreaterThan(2);
    expect(owners).toEqual(owners.map((own) => (own[0] && own[1] ? own : [winner === 0, winner === 1])));
    expect(new Set(tokens).size).toBe(tokens.length);

    for (const [i, engine] of operators.entries()) {
      const committee = collectAttestations({ members, threshold: THRESHOLD, l1, timeoutMs: 8_000 });
      const settler = newSettler({ engine, l1, committee }, chain);
      await settler.round().catch(() => {});
      expect(engine.operator.divergence() === null).toBe(i === winner);
      await mine(chain, 40);
      if (i !== winner) {
        const sources = members.map((member) => ({
          name: member.address,
          batchData: (mode: Mode, batchNumber: number) => member.data(mode, batchNumber),
        }));
        await adoptFromL1({ engine, l1, fromBlock: chain.settlement.deployedAtBlock, sources });
      }
      expect((await engine.operator.verify()).problems).toEqual([]);
      await engine.close();
    }
    await world.close();
  },
);
