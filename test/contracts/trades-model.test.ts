import fc from "fast-check";
import { bytesToHex, type Hex, hexToString } from "viem";
import { expect, it } from "vitest";
import { batchRoot, manifestLeaf, rootOfLeaves } from "../../core/protocol/manifest.ts";
import { type CommittedBatch, commit, entry } from "./fixture/batches.ts";
import { MATURITY, STANDARD, type TestAsset } from "./fixture/deployment.ts";
import { madeIn } from "./fixture/makings.ts";
import { type Half, settleArgs, tradesIn } from "./fixture/trades.ts";
import { openTransferChain } from "./fixture/transfers.ts";
import { request } from "./fixture/withdrawals.ts";

/** The naive twin knows this of a vault: nothing of words, trees, ids, hashes or storage. */
interface NaiveVault {
  readonly batch: CommittedBatch;
  readonly slot: number;
  readonly asset: TestAsset;
  readonly text: string;
  readonly owner: number;
  readonly amount: bigint;
  rest: bigint;
}

/** One half of a trade, as its owner means it. */
interface NaiveHalf {
  readonly vault: NaiveVault;
  /** Who signs, which may be another than the owner. */
  readonly signer: number;
  readonly gives: bigint;
  /** The units that the order believes to be there. */
  readonly rest: bigint;
  readonly shares: readonly { readonly to: number; readonly units: bigint }[];
}

interface NaiveOutput {
  readonly owner: number;
  readonly name: string;
  readonly units: bigint;
}

const nameOf = ({ asset, text }: NaiveVault) => `${asset.assetType} ${text}`;

/**
 * A trade makes these vaults, in order; null when L1 has to refuse it. Changes the rests of its
 * vaults.
 */
function naiveTrade(halves: readonly [NaiveHalf, NaiveHalf]): readonly NaiveOutput[] | null {
  const before = halves.map(({ vault }) => vault.rest);
  const undo = () => {
    for (const [i, { vault }] of halves.entries()) vault.rest = before[i] as bigint;
    return null;
  };
  for (const { vault, signer, gives, rest } of halves) {
    if (signer !== vault.owner || rest !== vault.rest || gives < 1n || gives > vault.rest)
      return undo();
    vault.rest -= gives;
  }
  const outputs: NaiveOutput[] = [];
  for (const [i, { vault, shares }] of halves.entries()) {
    const other = halves[1 - i] as NaiveHalf;
    const name = nameOf(other.vault);
    let left = other.gives;
    for (const { to, units } of shares) {
      if (units > left) return undo();
      left -= units;
      outputs.push({ owner: to, name, units });
    }
    if (left > 0n) outputs.push({ owner: vault.owner, name, units: left });
  }
  return outputs;
}

const { connection, fresh } = await openTransferChain();
const { time } = connection.networkHelpers;

const anyOwner = fc.nat(3);
const slot = fc.record({
  owner: anyOwner,
  asset: fc.constantFrom("coin" as const, "item" as const, "card" as const),
  text: fc.constantFrom("1", "2", "one"),
  amount: fc.bigInt(1n, 30n),
});
const half = fc.record({
  which: fc.nat(),
  thief: fc.option(anyOwner, { freq: 5 }),
  part: fc.integer({ min: 0, max: 5 }),
  isStale: fc.boolean(),
  shares: fc.array(fc.record({ to: anyOwner, units: fc.bigInt(1n, 5n) }), { maxLength: 4 }),
});
const world = fc.record({
  batches: fc.array(
    fc.record({
      mode: fc.constantFrom("validium" as const, "zk-rollup" as const),
      slots: fc.array(slot, { minLength: 2, maxLength: 7 }),
    }),
    { minLength: 1, maxLength: 2 },
  ),
  calls: fc.array(fc.array(fc.tuple(half, half), { minLength: 1, maxLength: 6 }), {
    minLength: 3,
    maxLength: 4,
  }),
});

it("trades make what a naive twin says, and no unit more or less", async () => {
  await fc.assert(
    fc.asyncProperty(world, async ({ batches, calls }) => {
      const d = await fresh();
      const vaults: NaiveVault[] = [];
      const ownerOf = (address: string) =>
        d.keys.findIndex((key) => key.address.toLowerCase() === address.toLowerCase());
      const know = (batch: CommittedBatch) => {
        for (const [slot, vault] of batch.vaults.entries()) {
          const asset = Object.values(d.transferable).find(
            ({ assetType }) => assetType === vault?.assetType,
          );
          if (vault === null || asset === undefined) continue;
          const [text, owner] = [hexToString(vault.mintingBlob), ownerOf(vault.owner)];
          vaults.push({
            batch,
            slot,
            asset,
            text,
            owner,
            amount: vault.amount,
            rest: vault.amount,
          });
        }
      };
      for (const { mode, slots } of batches) {
        const spelt = slots.map(({ owner, asset, text, amount }) =>
          entry(
            d.transferable[asset],
            d.keys[owner]?.address as Hex,
            asset === "coin" ? "" : text,
            asset === "card" ? 1n : amount,
          ),
        );
        know(await commit[mode](d, spelt));
      }
      await time.increase(MATURITY);
      const total = () => vaults.reduce((sum, { rest }) => sum + rest, 0n);
      const minted = total();

      for (const call of calls) {
        const pick = ({ which, thief, part, isStale, shares }: (typeof call)[number][number]) => {
          const vault = vaults[which % vaults.length] as NaiveVault;
          const gives = (vault.rest * BigInt(part)) / 4n || 1n;
          // A trade earlier in the call may take of the vault, and then the order is stale.
          const rest = isStale ? vault.amount : vault.rest;
          return { vault, signer: thief ?? vault.owner, gives, rest, shares };
        };
        const picked = call.map(([a, b]): readonly [NaiveHalf, NaiveHalf] => [pick(a), pick(b)]);
        const signed = picked.map(([a, b]) => [halfOf(a, b.vault), halfOf(b, a.vault)] as const);
        const expected = picked.map(naiveTrade);
        const args = await settleArgs(d, signed);
        const sent = await d.state.write.settle(args, d.by("relayer"));
        const { traded, failed } = await tradesIn(d, sent);
        expect([traded.length, failed.length]).toEqual([
          expected.filter((one) => one !== null).length,
          expected.filter((one) => one === null).length,
        ]);
        const outputs = expected.flatMap((one) => one ?? []);
        if (outputs.length > 0) {
          const made = await madeIn(d, sent);
          const told = made.vaults.map((vault) => ({
            owner: ownerOf(vault?.owner ?? ""),
            name: `${vault?.assetType} ${hexToString(vault?.mintingBlob ?? "0x")}`,
            units: vault?.amount,
          }));
          expect(told).toEqual(outputs);
          const manifest = rootOfLeaves(made.assets.map((asset) => manifestLeaf(asset)));
          const content = bytesToHex(made.tree.root) as Hex;
          expect(made.header.batchRoot).toBe(batchRoot("validium", manifest, content));
          know(made);
        }
        expect(total()).toBe(minted);
        for (const { batch, slot, asset, rest } of vaults) {
          const { vaultId, amount } = request(batch, slot).vault;
          const withdrawn = await d.state.read.withdrawn([vaultId, STANDARD[asset.standard]]);
          expect([vaultId, amount - withdrawn]).toEqual([vaultId, rest]);
        }
      }

      function halfOf({ vault, signer, gives, rest, shares }: NaiveHalf, other: NaiveVault): Half {
        const { batch, slot, asset } = vault;
        return {
          by: d.keys[signer] as (typeof d.keys)[number],
          batch,
          slot,
          asset,
          gives,
          order: {
            withdrawnBefore: vault.amount - rest,
            shares: shares.map(({ to, units }) => ({
              to: d.keys[to]?.address as Hex,
              amount: units,
            })),
            taker: (d.keys[other.owner]?.address as Hex) ?? "0x",
          },
        };
      }
    }),
    { numRuns: 15 },
  );
});
