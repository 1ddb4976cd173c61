import { type Address, bytesToHex, type Hex, hexToBytes, size, toHex } from "viem";
import { beforeAll, describe, expect, it } from "vitest";
import { MAX_AMOUNT } from "../../core/model.ts";
import { encodeBatchData, type VaultEntry } from "../../core/protocol/batch-data.ts";
import { NAIVE_VOID, naiveData } from "../core/naive/naive-words.ts";
import { entry } from "./fixture/batches.ts";
import { type Deployment, openChain } from "./fixture/deployment.ts";

/** Bytes of the largest batch that the engine puts into calldata. */
const MOST_BYTES = 126_976;
/** Osaka's limit of a transaction's gas. */
const MOST_GAS = 16_777_216n;
const { fresh } = await openChain();

describe("a batch of as many bytes as the engine puts into calldata", () => {
  let d: Deployment;
  beforeAll(async () => {
    d = await fresh();
  });
  const owner = (i: number): Address => toHex(BigInt(i + 1) ** 11n % 2n ** 160n, { size: 20 });
  const commit = async (data: Hex) => {
    expect(size(data)).toBeLessThanOrEqual(MOST_BYTES);
    expect(size(data)).toBeGreaterThan(MOST_BYTES - 600);
    const [, count] = await d.state.read.batchCounts();
    const args = [await d.state.read.history(), "0x", count, data] as const;
    const hash = await d.state.write.commitRollupBatch(args, d.by("operator"));
    const { gasUsed } = await d.publicClient.getTransactionReceipt({ hash });
    expect(gasUsed).toBeLessThan(MOST_GAS);
  };
  /** The data of as many slots as fit. */
  const full = (dataOf: (count: number) => Uint8Array): Hex => {
    const [some, more] = [dataOf(300).length, dataOf(400).length];
    const count = 300 + Math.floor(((MOST_BYTES - some) * 100) / (more - some));
    return bytesToHex(dataOf(count));
  };

  it.each<readonly [string, (i: number) => VaultEntry]>([
    ["ids of one owner", (i) => entry(d.assets.card, owner(0), String(100_000 + i))],
    ["ids, another owner each", (i) => entry(d.assets.card, owner(i), String(100_000 + i))],
    ["amounts", (i) => entry(d.assets.coin, owner(i), "", MAX_AMOUNT - BigInt(i))],
    ["texts of 255 bytes", (i) => entry(d.assets.card, owner(i), `${i}`.padStart(255, "x"))],
    ["texts of one byte", (i) => entry(d.assets.item, owner(i), "x", 2n ** 60n + BigInt(i))],
  ])("fits a transaction: %s", async (_, slot) => {
    await commit(
      full((count) => encodeBatchData(Array.from({ length: count }, (_, i) => slot(i)))),
    );
  });

  it("fits a transaction: the narrowest records that there are", async () => {
    await commit(full((count) => hexToBytes(naiveData([], Array(count).fill(NAIVE_VOID), true))));
  });
});
