import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Level } from "level";
import { privateKeyToAccount } from "viem/accounts";
import { expect, it } from "vitest";
import { SETTLEMENT } from "../../bench/engine-workload.ts";
import { machineMs } from "../../bench/http/connection.ts";
import { watch } from "../../bench/http/watch.ts";
import { BATCH, emptyChain, proposed } from "../../bench/member.ts";
import { CommitteeMember } from "../../core/committee/member.ts";
import { emptyHistory, nextHistory, stateLeaf } from "../../core/protocol/commitment.ts";
import { slownessUntil } from "../slowness.ts";

/** The most CPU time of one synchronous piece. */
const MOST_MS = 20;
const WARM_UP = 2;
const MEASURED = 3;

it("no synchronous work of a member takes over 20 ms while it checks and signs a large batch", async () => {
  const folder = await mkdtemp(join(tmpdir(), "mintmark-member-"));
  const member = await CommitteeMember.open({
    account: privateKeyToAccount(`0x${"11".repeat(32)}`),
    store: new Level<Uint8Array, Uint8Array>(folder, {
      keyEncoding: "view",
      valueEncoding: "view",
    }),
    l1: emptyChain(),
  });
  try {
    let history = emptyHistory(SETTLEMENT);
    for (let number = 0; number < WARM_UP + MEASURED; number++) {
      const batch = proposed(number);
      expect(batch.vaultCount).toBe(BATCH);
      const terms = { history, sequence: BigInt(number), epoch: 1n };
      const over = new AbortController();
      const slowness = slownessUntil(over.signal);
      const end = await watch();
      // The making of the batch is no piece of the member's.
      await sleep(100);
      const from = machineMs();
      await member.sign(batch, terms);
      const { pieces } = await end();
      over.abort();
      const most = MOST_MS * (await slowness);
      const long = pieces.filter(({ at, cpuMs }) => at >= from && cpuMs > most);
      if (number >= WARM_UP) expect(long).toEqual([]);
      history = nextHistory(history, "validium", stateLeaf(batch));
    }
  } finally {
    await member.close();
    await rm(folder, { recursive: true, force: true });
  }
});
