import { type Address, bytesToHex, type Hex, size, toHex } from "viem";
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
    expect(gasUsed).toBeLessThan(MOST_GAS / 2n);
  };

  it.each<readonly [string, number, (i: number) => VaultEntry]>([
    ["ids of one owner", 18_130, (i) => entry(d.assets.card, owner(0), String(100_000 + i))],
    ["ids, another owner each", 5_070, (i) => entry(d.assets.card, owner(i), String(100_000 + i))],
    ["amounts", 4_200, (i) => entry(d.assets.coin, owner(i), "", MAX_AMOUNT - BigInt(i))],
    ["texts of 255 bytes", 424, (i) => entry(d.assets.card, owner(i), `${i}`.padStart(255, "x"))],
    ["texts of one byte", 2_080, (i) => entry(d.assets.item, owner(i), "x", BigInt(i + 2))],
  ])("fits a transaction twice: %s", async (_, count, slot) => {
    const slots = Array.from({ length: count }, (_, i) => slot(i));
    await commit(bytesToHex(encodeBatchData(slots)));
  });

  it("fits a transaction twice: the narrowest records that there are", async () => {
    const most = Number(await d.state.read.MAX_ROLLUP_VAULTS());
    // Four bytes each: more of them than L1 takes would not fill the data.
    const data = naiveData([], Array(most).fill(NAIVE_VOID), true);
    expect(size(data)).toBeGreaterThan(MOST_BYTES);
    const fitting = Math.floor((MOST_BYTES - (size(data) - 4 * most)) / 4);
    await commit(naiveData([], Array(fitting).fill(NAIVE_VOID), true));
  });
});
