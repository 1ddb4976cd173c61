import fc from "fast-check";
import { bytesToHex, type Hex } from "viem";
import { expect, it } from "vitest";
import { batchRoot, manifestLeaf, rootOfLeaves } from "../../core/protocol/manifest.ts";
import { type CommittedBatch, commit, entry } from "./fixture/batches.ts";
import { MATURITY, STANDARD, type TestAsset } from "./fixture/deployment.ts";
import { madeIn } from "./fixture/makings.ts";
import { renewalOf } from "./fixture/renewals.ts";
import { openTransferChain } from "./fixture/transfers.ts";
import { entryOf, request } from "./fixture/withdrawals.ts";

/** The naive twin knows this of a vault: nothing of words, trees, ids or storage. */
interface NaiveVault {
  readonly batch: CommittedBatch;
  readonly slot: number;
  readonly asset: TestAsset;
  readonly text: string;
  rest: bigint;
}

const { connection, fresh } = await openTransferChain();
const { time } = connection.networkHelpers;
const MOST_UNITS = 2n ** 63n - 1n;

const slot = fc.record({
  asset: fc.constantFrom("coin" as const, "item" as const, "card" as const),
  text: fc.constantFrom("1", "2", "one"),
  amount: fc.oneof(fc.bigInt(1n, 9n), fc.constant(MOST_UNITS - 4n)),
});
const batches = fc.array(
  fc.record({
    mode: fc.constantFrom("validium" as const, "zk-rollup" as const),
    slots: fc.array(slot, { minLength: 1, maxLength: 6 }),
  }),
  { minLength: 2, maxLength: 3 },
);
const rounds = fc.array(
  fc.array(fc.record({ which: fc.nat(), part: fc.integer({ min: 1, max: 4 }) }), {
    minLength: 1,
    maxLength: 7,
  }),
  { minLength: 3, maxLength: 4 },
);

/** A renewal makes these units, by asset and text; null when L1 has to refuse it. */
function naiveRenewal(takes: readonly { readonly vault: NaiveVault; readonly quantity: bigint }[]) {
  const sums = new Map<string, bigint>();
  for (const { vault, quantity } of takes) {
    const name = `${vault.asset.assetType} ${vault.text}`;
    if (vault.asset.standard === "erc721" && sums.has(name)) return null;
    const sum = (sums.get(name) ?? 0n) + quantity;
    if (sum > MOST_UNITS) return null;
    sums.set(name, sum);
  }
  return new Map([...sums].sort());
}

it("renewals make what a naive twin says, and no unit more or less", async () => {
  await fc.assert(
    fc.asyncProperty(batches, rounds, async (committed, renewals) => {
      const d = await fresh();
      const [ann] = d.keys as [(typeof d.keys)[number]];
      const vaults: NaiveVault[] = [];
      const know = (batch: CommittedBatch, assets: readonly TestAsset[]) => {
        for (const [slot, vault] of batch.vaults.entries()) {
          const asset = assets.find(({ assetType }) => assetType === vault?.assetType);
          if (vault === null || asset === undefined) continue;
          const text = Buffer.from(vault.mintingBlob.slice(2), "hex").toString();
          vaults.push({ batch, slot, asset, text, rest: vault.amount });
        }
      };
      const assets = Object.values(d.transferable);
      for (const { mode, slots } of committed) {
        const spelt = slots.map(({ asset, text, amount }) =>
          entry(
            d.transferable[asset],
            ann.address,
            asset === "coin" ? "" : text,
            asset === "card" ? 1n : amount,
          ),
        );
        know(await commit[mode](d, spelt), assets);
      }
      await time.increase(MATURITY);
      const total = () => vaults.reduce((sum, { rest }) => sum + rest, 0n);
      const minted = total();

      for (const picks of renewals) {
        const left = vaults.filter(({ rest }) => rest > 0n);
        if (left.length === 0) break;
        const chosen = [
          ...new Set(picks.map(({ which }) => left[which % left.length] as NaiveVault)),
        ];
        const takes = chosen.map((vault, i) => {
          const { part = 1 } = picks[i] ?? {};
          const quantity = vault.rest / BigInt(part);
          return { vault, quantity: quantity === 0n ? vault.rest : quantity };
        });
        const list = takes.map(({ vault: { batch, slot, rest }, quantity }) => {
          const asked = request(batch, slot, { quantity });
          return entryOf(asked, asked.vault.amount - rest);
        });
        const requests = takes.map(({ vault: { batch, slot }, quantity }) =>
          request(batch, slot, { quantity, recipient: ann.address }),
        );
        const expected = naiveRenewal(takes);
        const args = await renewalOf(d, ann, requests, { list });
        const sent = d.state.write.renew(args, d.by("relayer"));
        if (expected === null) {
          await expect(sent).rejects.toThrow(/VaultUnpayable|TokenTwice/);
        } else {
          const made = await madeIn(d, sent);
          const told = made.vaults.map(
            (vault) =>
              [
                `${vault?.assetType} ${Buffer.from(vault?.mintingBlob.slice(2) ?? "", "hex")}`,
                vault?.amount,
              ] as const,
          );
          expect(new Map(told.toSorted())).toEqual(expected);
          const content = bytesToHex(made.tree.root) as Hex;
          const manifest = rootOfLeaves(made.assets.map((asset) => manifestLeaf(asset)));
          expect(made.header.batchRoot).toBe(batchRoot("validium", manifest, content));
          for (const { vault, quantity } of takes) vault.rest -= quantity;
          know(made, assets);
        }
        expect(total()).toBe(minted);
        for (const { batch, slot, asset, rest } of vaults) {
          const { vaultId, amount } = request(batch, slot).vault;
          const withdrawn = await d.state.read.withdrawn([vaultId, STANDARD[asset.standard]]);
          expect([vaultId, amount - withdrawn]).toEqual([vaultId, rest]);
        }
      }
    }),
    { numRuns: 6 },
  );
});
