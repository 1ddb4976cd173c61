import { MemoryLevel } from "memory-level";
import { afterAll, describe, expect, test } from "vitest";
import { MODES } from "../../core/index.ts";
import { codeOf, copyOf, createStage, expectOneHistory, type Store, seed } from "./fixture.ts";

const stage = await createStage();
const { store, engine: winner, settler } = await stage.operate(new MemoryLevel());
const seeded = await seed(winner, stage.chain);
const kept = await { ...seeded, engine: winner }.mint("erc20", "validium", "", 9);
await settler.round();
/** The store of the operator whose batches L1 does not have. */
const diverged = await copyOf(store);
for (const [index, mode] of MODES.entries()) {
  const users = seeded.users.slice(index);
  await { ...seeded, users, engine: winner }.mint("erc721", mode, `${index}`);
  await { ...seeded, users, engine: winner }.mint("erc1155", mode, "a hero");
}
await settler.round();
const { engine: loser, settler: lost } = await stage.operate(diverged);
for (const mode of MODES) {
  await { ...seeded, engine: loser }.mint("erc1155", mode, "a knight");
  const vaultId = await { ...seeded, engine: loser }.mint("erc20", mode, "", 5);
  await loser.operator.seal(mode);
  await { ...seeded, engine: loser }.requestWithdrawal(vaultId, 2n);
}
await { ...seeded, engine: loser }.requestWithdrawal(kept, 4n);
expect(await codeOf(lost.round())).toBe("history_diverged");
await loser.close();
await stage.chain.mine(30);
afterAll(() => stage.close());

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
        const { store, engine } = await stage.operate(await copyOf(diverged));
        failFrom(store, n, when);
        const ended = await codeOf(stage.adopt(engine));
        expect(["done", "store_failed"]).toContain(ended);
        isInterrupted = ended !== "done";
        await engine.close();
        const { engine: again, settler } = await stage.operate(await copyOf(store));
        expect((await again.operator.verify()).problems).toEqual([]);
        if (again.operator.divergence() !== null) await stage.adopt(again);
        expect((await again.operator.verify()).problems).toEqual([]);
        for (let round = 0; round < 2; round++) await settler.round();
        await expectOneHistory({ engine: again, l1: stage.l1 });
        await again.close();
      }
      // An application, two users and the history itself; the last run is not interrupted.
      expect(n).toBe(5);
    },
  );
});
