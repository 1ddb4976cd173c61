import { keccak256, toHex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import type { L1Event, Mode } from "../../core/index.ts";
import { MirrorAttester, SourceHistory } from "../../core/mirror/history.ts";

const CONTRACT = "0x00000000000000000000000000000000000000aa";

/** A chain with a commit in each 150th block. Chains of other names have other hashes. */
function chainOf(name: string, modes: readonly Mode[], blocks: bigint, first = 10n) {
  const hashOf = (what: unknown) => keccak256(toHex(`${name} ${what}`));
  const counts = { validium: 0, "zk-rollup": 0 };
  const events = modes.map((mode, sequence): L1Event => {
    const blockNumber = first + 150n * BigInt(sequence);
    const batchNumber = counts[mode]++;
    return {
      type: "batchCommitted",
      txHash: hashOf(`transaction ${sequence}`),
      blockNumber,
      blockHash: hashOf(blockNumber),
      logIndex: 0,
      mode,
      batchNumber,
      dataHash: hashOf(`data ${sequence}`),
      batchRoot: hashOf(`root ${sequence}`),
      vaultCount: 1,
      committedAt: 1n,
      sequence: BigInt(sequence),
    };
  });
  return {
    settlement: { chainId: 1n, contract: CONTRACT, engineVersion: 5 } as const,
    finalizedBlockNumber: async () => blocks,
    block: async (number: bigint | "latest") =>
      number === "latest" || number > blocks
        ? null
        : { number, hash: hashOf(number), timestamp: 1n },
    events: async (from: bigint, to: bigint) =>
      events.filter(({ blockNumber }) => blockNumber >= from && blockNumber <= to),
  };
}

type Chain = ReturnType<typeof chainOf>;

/** A node that speaks for the chain that it is told to. */
function nodeOf(chain: Chain) {
  const node = { chain };
  return Object.assign(node, {
    settlement: chain.settlement,
    finalizedBlockNumber: () => node.chain.finalizedBlockNumber(),
    block: (number: bigint | "latest") => node.chain.block(number),
    events: (from: bigint, to: bigint) => node.chain.events(from, to),
  });
}

const OURS = ["validium", "zk-rollup", "zk-rollup", "validium"] as const;
const rootsOf = async (chain: Chain) => {
  const history = new SourceHistory(chain, 1n);
  await history.follow();
  return history.stateAt(history.newest);
};
/** The newest state after another read, which may have failed. */
async function stateOf(history: SourceHistory) {
  await history.follow().catch(() => {});
  return history.stateAt(history.newest);
}

const CHAINS = [
  ["from its first commit on", chainOf("other", ["zk-rollup"], 400n)],
  ["of more commits", chainOf("other", [...OURS, ...OURS, ...OURS], 1_700n)],
  ["of more blocks", chainOf("other", OURS, 90_000n, 80_000n)],
  ["without a commit", chainOf("other", [], 90_000n)],
] as const;

test.each(CHAINS)(
  "a history that heard another chain %s reads its own again by itself",
  async (_, other) => {
    const ours = chainOf("ours", OURS, 500n);
    const node = nodeOf(ours);
    const history = new SourceHistory(node, 1n, 20);
    for (const [before, after] of [
      [chainOf("ours", [], 5n), ours],
      [ours, chainOf("ours", [...OURS, ...OURS], 1_200n)],
    ] as const) {
      node.chain = before;
      await history.follow();
      node.chain = other;
      await history.follow().catch(() => {});
      await history.follow().catch(() => {});
      node.chain = after;
      await expect.poll(() => stateOf(history)).toEqual(await rootsOf(after));
    }
  },
);

test("what was final is forgotten only at a second look", async () => {
  const ours = chainOf("ours", OURS, 500n);
  const node = nodeOf(ours);
  const history = new SourceHistory(node, 1n, 60_000);
  await history.follow();
  const before = history.stateAt(history.newest);
  node.chain = chainOf("other", OURS, 600n);
  for (let i = 0; i < 3; i++)
    await expect(history.follow()).rejects.toMatchObject({ code: "l1_failed" });
  node.chain = chainOf("ours", OURS, 700n);
  await history.follow();
  expect(history.stateAt(history.newest)).toEqual(before);
});

const LOOK_MS = 50;
/** A timer can fire a fraction of a millisecond early. */
const look = () => new Promise((resolve) => setTimeout(resolve, LOOK_MS + 10));

test.each([
  ["blocks of another chain", chainOf("other", OURS, 510n)],
  // The hash of each log's block is ours.
  [
    "logs of another chain",
    { ...chainOf("ours", OURS, 510n), events: chainOf("other", OURS, 510n).events },
  ],
])("two lies with the truth between them are no second look: %s", async (_, lie) => {
  const node = nodeOf(chainOf("ours", OURS, 500n));
  const history = new SourceHistory(node, 1n, LOOK_MS);
  await history.follow();
  node.chain = chainOf("ours", OURS, 505n);
  await history.follow();
  const before = history.stateAt(history.newest);
  const refused = async () => {
    await expect(history.follow()).rejects.toMatchObject({ code: "l1_failed" });
    expect(history.stateAt(history.newest)).toEqual(before);
  };
  node.chain = lie;
  await refused();
  // The node knows our blocks again, and its newest logs cannot be read.
  const ours = chainOf("ours", OURS, 9_000n);
  const events = async (from: bigint, to: bigint) => {
    if (to > 3_000n) throw new Error("no answer");
    return ours.events(from, to);
  };
  node.chain = { ...ours, events };
  await expect(history.follow()).rejects.toThrow("no answer");
  await look();
  node.chain = lie;
  await refused();
});

/** A block far behind the first commits of {@link OURS}: the next reads would not reach them. */
const FAR = 5_000n;

/**
 * Our blocks with logs of another chain. Some nodes tell no hash with a log, or the right one with
 * a wrong log.
 */
function falseLogs(blocks: bigint): Chain {
  const other = chainOf("other", OURS, blocks);
  const events = async (from: bigint, to: bigint) =>
    (await other.events(from, to)).map(({ blockHash: _, ...event }) => event as L1Event);
  return { ...chainOf("ours", OURS, blocks), events };
}

/** A history that has read a false commit far back, of a node that tells the truth from now on. */
async function misled() {
  const node = nodeOf(falseLogs(FAR));
  const history = new SourceHistory(node, 1n, LOOK_MS);
  await history.follow();
  node.chain = chainOf("ours", OURS, FAR + 1n);
  await expect(history.follow()).rejects.toMatchObject({ code: "l1_failed" });
  return { node, history };
}

test("a false commit far back is forgotten at a second look", async () => {
  const { node, history } = await misled();
  await look();
  node.chain = chainOf("ours", OURS, FAR + 2n);
  await expect(history.follow()).rejects.toMatchObject({ code: "l1_failed" });
  expect(await stateOf(history)).toEqual(await rootsOf(node.chain));
});

test("logs that leave a doubted commit out do not end the doubt", async () => {
  const { node, history } = await misled();
  await look();
  for (const blocks of [FAR + 2n, FAR + 200n]) {
    node.chain = { ...chainOf("ours", OURS, blocks), events: async () => [] };
    await history.follow();
  }
  node.chain = chainOf("ours", OURS, FAR + 400n);
  await expect(history.follow()).rejects.toMatchObject({ code: "l1_failed" });
  expect(await stateOf(history)).toEqual(await rootsOf(node.chain));
});

test("the truth about a commit far back ends the doubt", async () => {
  const node = nodeOf(chainOf("ours", OURS, FAR));
  const history = new SourceHistory(node, 1n, LOOK_MS);
  await history.follow();
  node.chain = falseLogs(FAR + 1n);
  await expect(history.follow()).rejects.toMatchObject({ code: "l1_failed" });
  node.chain = chainOf("ours", OURS, FAR + 2n);
  await history.follow();
  await look();
  node.chain = falseLogs(FAR + 3n);
  await history.follow();
  expect(history.stateAt(history.newest)).toEqual(await rootsOf(chainOf("ours", OURS, FAR)));
});

test("a second reading that fails at once is made up for", async () => {
  const without = { ...chainOf("ours", OURS, FAR), events: async () => [] };
  const node = nodeOf(without);
  const history = new SourceHistory(node, 1n, LOOK_MS);
  await history.follow();
  const ours = chainOf("ours", OURS, FAR + 1n);
  node.chain = { ...ours, events: () => Promise.reject(new Error("no answer")) };
  await expect(history.follow()).rejects.toThrow("no answer");
  node.chain = ours;
  expect(await stateOf(history)).toEqual(await rootsOf(ours));
});

test("a doubt ends when the node agrees, also when it has no newer block", async () => {
  const ours = chainOf("ours", OURS, 500n);
  const node = nodeOf(ours);
  const history = new SourceHistory(node, 1n, LOOK_MS);
  await history.follow();
  const before = history.stateAt(history.newest);
  for (let i = 0; i < 2; i++) {
    node.chain = chainOf("other", OURS, 600n);
    await expect(history.follow()).rejects.toMatchObject({ code: "l1_failed" });
    expect(history.stateAt(history.newest)).toEqual(before);
    node.chain = ours;
    await history.follow();
    await look();
  }
});

test("logs of another chain in our blocks are forgotten too", async () => {
  const node = nodeOf(falseLogs(500n));
  const history = new SourceHistory(node, 1n, 20);
  await history.follow();
  node.chain = chainOf("ours", OURS, 510n);
  await expect.poll(() => stateOf(history)).toEqual(await rootsOf(node.chain));
});

test("an attester whose node told of another chain does not sign for it once it is back", async () => {
  const other = chainOf("other", [...OURS, "zk-rollup"], 700n);
  const ours = chainOf("ours", OURS, 500n);
  const node = nodeOf(other);
  const history = new SourceHistory(node, 1n, 20);
  const attester = new MirrorAttester(privateKeyToAccount(`0x${"01".repeat(32)}`), history);
  const mirror = { chainId: 2n, contract: CONTRACT } as const;
  await attester.attest(mirror, { countValidium: 2, countRollup: 3 }, 0n);
  node.chain = ours;
  await expect
    .poll(() => attester.attest(mirror, { countValidium: 2, countRollup: 4 }, 0n).catch(String))
    .toContain("no final state");
  await expect(
    attester.attest(mirror, { countValidium: 2, countRollup: 3 }, 0n),
  ).rejects.toMatchObject({ code: "l1_failed" });
  expect(history.stateAt(history.newest)).toEqual(await rootsOf(ours));
});
