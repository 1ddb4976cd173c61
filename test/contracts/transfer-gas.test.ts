import { type Address, type Hex, keccak256, sliceHex, toHex } from "viem";
import { expect, it } from "vitest";
import { readLimits } from "../../core/ledger/options.ts";
import { packVaultId } from "../../core/protocol/vault.ts";
import { BatchLoad } from "../../core/transfers/transfer-batch.ts";
import { commitAs, entry } from "./fixture/batches.ts";
import { commitTransfers, LATER, openTransferChain } from "./fixture/transfers.ts";

const { fresh } = await openTransferChain();
const random = (i: number, what: string): Hex => keccak256(toHex(`${what} ${i}`));
const to = (i: number): Address => sliceHex(random(i, "to"), 12);
// L1 does not ask whether a signature is right.
const signature = (i: number): Hex => `${random(i, "r")}${random(i, "s").slice(2)}`;
/** A vault in a word of L1's spent vaults of its own. */
const apart = (i: number) =>
  packVaultId({
    mode: i & 1 ? "validium" : "zk-rollup",
    batchNumber: 0,
    slot: i * 1792 + (i & 0xff),
  });
const beside = (i: number) => packVaultId({ mode: "zk-rollup", batchNumber: 1, slot: i });
/** From one word to the other and back, so that L1 writes both again and again. */
const toAndFro = (i: number) => packVaultId({ mode: "zk-rollup", batchNumber: i & 1, slot: i });
const amount = (i: number) => BigInt(random(i, "amount")) >> 193n;

it.each([
  ["neighbours, each with a signature", 600, 1, beside, () => 0n],
  ["vaults far apart, each with a signature", 300, 1, apart, () => 0n],
  ["neighbours with one signature", 1_000, 1_000, beside, () => 0n],
  ["vaults far apart with one signature", 300, 300, apart, () => 0n],
  ["parts of neighbours, each with a signature", 500, 1, beside, amount],
  ["parts of neighbours with one signature", 1_000, 1_000, beside, amount],
  ["parts and wholes in turn", 1_000, 1_000, beside, (i: number) => (i & 1 ? amount(i) : 0n)],
  ["two words in turn, each with a signature", 600, 1, toAndFro, () => 0n],
  ["two words in turn with one signature", 1_000, 1_000, toAndFro, () => 0n],
  ["one vault", 1, 1, apart, amount],
] as const)(
  "the bound of a commit's gas holds for %s",
  async (_name, count, length, vaultId, amountOf) => {
    const d = await fresh();
    const card = [entry(d.assets.card, d.config.admin, "1")];
    for (const kind of ["calldata", "calldata", "validium"] as const) await commitAs[kind](d, card);
    const load = new BatchLoad(readLimits());
    const groups = Array.from({ length: count / length }, (_, group) => ({
      transfers: Array.from({ length }, (_, place) => {
        const i = group * length + place;
        return { vaultId: vaultId(i), amount: amountOf(i), to: to(i) };
      }),
      deadline: LATER - 1n,
      signature: signature(group),
    }));
    for (const { transfers } of groups) expect(load.take(transfers)).toBe(true);
    const { txHash } = await commitTransfers(d, groups);
    const { gasUsed } = await d.publicClient.getTransactionReceipt({ hash: txHash });
    expect(Number(gasUsed)).toBeLessThanOrEqual(load.gas);
  },
);
