import { MemoryLevel } from "memory-level";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { collectAttestations } from "../../core/guards/committee/index.ts";
import { type Engine, MODES, type Mode, openEngine } from "../../core/index.ts";
import { adoptFromL1 } from "../../core/l1/settlement/index.ts";
import { THRESHOLD } from "../../scripts/sandbox/accounts.ts";
import {
  type Chain,
  connectOperator,
  createChain,
  mine,
  mint,
  newSettler,
  openMembers,
  requestWithdrawal,
  seed,
  type World,
} from "./fixture.ts";

type Store = MemoryLevel<Uint8Array, Uint8Array>;
const BYTES = { keyEncoding: "view", valueEncoding: "view" } as const;

let chain: Chain;
let l1: World["l1"];
let members: World["members"];
/** Of the operator whose batches L1 does not have. */
let diverged: Store;

const open = (store: Store) => openEngine({ store, settlement: l1.settlement, environment: "sandbox" });

async function copyOf(store: Store): Promise<Store> {
  await store.open();
  const copy: Store = new MemoryLevel(BYTES);
  for await (const [key, value] of store.iterator<Uint8Array, Uint8Array>(BYTES)) await copy.put(key, value, BYTES);
  return copy;
}

function settlerOf(engine: Engine) {
  const committee = collectAttestations({ members, threshold: THRESHOLD, l1, timeoutMs: 20_000 });
  return newSettler({ engine, l1, committee }, chain);
}

beforeAll(async () => {
  chain = await createChain();
  l1 = await connectOperator(chain);
  members = await openMembers(l1);
  const store: Store = new MemoryLevel(BYTES);
  const winner = await openEngine({ store, settlement: l1.settlement, environment: "sandbox", createIfMissing: true });
  const seeded = await seed(winner, chain);
  const kept = await mint({ ...seeded, engine: winner }, "erc20", "validium", "", 9);
  await settlerOf(winner).round();
  diverged = await copyOf(store);

  for (const [index, mode] of MODES.entries()) {
    const users = seeded.users.slice(index);
    await mint({ ...seeded, users, engine: winner }, "erc721", mode, `${index}`);
    await mint({ ...seeded, users, engine: winner }, "erc1155", mode, "a hero");
  }
  await settlerOf(winner).round();
  await winner.close();

  const loser = await open(diverged);
  for (const mode of MODES) {
    await mint({ ...seeded, engine: loser }, "erc1155", mode, "a knight");
    const lost = await mint({ ...seeded, engine: loser }, "erc20", mode, "", 5);
    await loser.operator.seal(mode);
    await requestWithdrawal({ ...seeded, engine: loser }, lost, 2n);
  }
  await requestWithdrawal({ ...seeded, engine: loser }, kept, 4n);
  await expect(settlerOf(loser).round()).rejects.toMatchObject({ code: "history_diverged" });
  await loser.close();
  await mine(chain, 30);
});
afterAll(async () => {
  for (const member of members) await member.close();
  await chain.close();
});

function adopt(engine: Engine) {
  const sources = members.map((member) => ({
    name: member.address,
    batchData: (mode: Mode, batchNumber: number) => member.data(mode, batchNumber),
  }));
  return adoptFromL1({ engine, l1, fromBlock: chain.settlement.deployedAtBlock, sources });
}

type When = "before" | "after";

/** Makes a store's writes fail from the n-th on, before or after they are done. */
function failFrom(store: Store, n: number, when: When): void {
  let writes = 0;
  const batch = store.batch.bind(store) as () => { write: (...all: unknown[]) => Promise<void> };
  const faultyBatch = () => {
    const own = batch();
    const write = own.write.bind(own);
    own.write = async (...all) => {
      const fails = writes++ >= n;
      if (fails && when === "before") throw new Error("the disk is gone");
      await write(...all);
      if (fails) throw new Error("the disk is gone");
    };
    return own;
  };
  Object.defineProperty(store, "batch", { value: faultyBatch });
}

describe("adopting L1's history, interrupted at", () => {
  test.each<When>(["before", "after"])(
    "any of its writes, %s it is done, goes on when it is asked again",
    async (when) => {
      let n = 0;
      for (let isInterrupted = true; isInterrupted; n++) {
        const store = await copyOf(diverged);
        const engine = await open(store);
        failFrom(store, n, when);
        isInterrupted = await adopt(engine).then(
          () => false,
          (error) => {
            expect(error).toMatchObject({ code: "store_failed" });
            return true;
          },
        );
        await engine.close();

        const again = await open(await copyOf(store));
        expect((await again.operator.verify()).problems).toEqual([]);
        if (again.operator.divergence() !== null) await adopt(again);
        expect((await again.operator.verify()).problems).toEqual([]);
        const settler = settlerOf(again);
        for (let round = 0; round < 2; round++) await settler.round();
        expect({ ...again.batches.state(), history: again.operator.history() }).toEqual(await l1.state());
        await again.close();
      }
      // An application, two users and the history itself; the last run is not interrupted.
      expect(n).toBe(5);
    },
  );
});
