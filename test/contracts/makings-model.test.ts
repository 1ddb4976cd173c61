import fc from "fast-check";
import type { Address } from "viem";
import { expect, it } from "vitest";
import type { ProvenHop } from "../../core/ports.ts";
import { type CommittedBatch, commit, entry } from "./fixture/batches.ts";
import { MATURITY } from "./fixture/deployment.ts";
import { madeIn } from "./fixture/makings.ts";
import { errorIn } from "./fixture/outcomes.ts";
import {
  commitTransfers,
  exitArgs,
  give,
  hopOf,
  openTransferChain,
  signedGroup,
} from "./fixture/transfers.ts";

/** The naive twin knows this of a vault: nothing of words, trees, ids or storage. */
interface NaiveVault {
  readonly token: number;
  readonly owner: number;
  /** The origin: a batch or a making, with its proof, and the records since. */
  readonly batch: CommittedBatch;
  readonly hops: readonly ProvenHop[];
  /** The number of the origin's making; 0 for a batch. */
  readonly making: number;
  readonly matureAt: number;
  spent: boolean;
  paid: boolean;
}

const { connection, fresh } = await openTransferChain();
const { time } = connection.networkHelpers;
const IDS = [7, 8];

const action = fc.record({
  kind: fc.constantFrom("mint", "mint", "enter", "enter", "give", "withdraw", "withdraw", "wait"),
  mode: fc.constantFrom("validium" as const, "zk-rollup" as const),
  token: fc.nat(1),
  owner: fc.nat(1),
  which: fc.nat(20),
});

it("a hostile history of mints, entries, transfers and withdrawals pays what a naive twin says", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(action, { minLength: 14, maxLength: 22 }), async (actions) => {
      const d = await fresh();
      const keys = d.keys.slice(0, 2) as [(typeof d.keys)[number], (typeof d.keys)[number]];
      const addresses = keys.map(({ address }) => address) as [Address, Address];
      const card = await d.mintable.erc721({ isTransferable: true });
      await card.write.lockMinter(d.by("admin"));
      const asset = await d.register("erc721", card.address);
      const vaults: NaiveVault[] = [];
      /** Who holds each token on L1, and its latest entry. */
      const holders: (number | null)[] = [null, null];
      const entries = [0, 0];
      let makings = 0;

      const pays = ({ token, matureAt, making, spent, paid }: NaiveVault, now: number) =>
        !spent &&
        !paid &&
        now >= matureAt &&
        holders[token] === null &&
        (entries[token] === 0 || making >= (entries[token] as number));
      const call = ({ batch, hops, owner }: NaiveVault) =>
        [
          exitArgs(batch, 0, { hops, recipient: addresses[owner] as Address }),
          { account: addresses[owner] as Address },
        ] as const;
      const compare = async () => {
        const now = Number(await time.latest()) + 1;
        for (const vault of vaults) {
          const refused = await d.state.simulate.withdrawTransferred(...call(vault)).then(
            () => null,
            (error: unknown) => errorIn(error).error,
          );
          expect([vault.token, refused === null, refused]).toEqual([
            vault.token,
            pays(vault, now),
            refused,
          ]);
        }
      };

      for (const { kind, mode, token, owner, which } of actions) {
        const vault = vaults[which % Math.max(vaults.length, 1)];
        const address = addresses[owner] as Address;
        if (kind === "mint") {
          const batch = await commit[mode](d, [entry(asset, address, String(IDS[token]))]);
          const matureAt = Number(batch.header.committedAt + MATURITY);
          const rest = { making: 0, matureAt, spent: false, paid: false };
          vaults.push({ token, owner, batch, hops: [], ...rest });
        } else if (kind === "enter" && holders[token] !== null) {
          const by = addresses[holders[token] as number] as Address;
          const id = BigInt(IDS[token] as number);
          const batch = await madeIn(d, card.write.enter([address, id], { account: by }));
          makings += 1;
          entries[token] = makings;
          holders[token] = null;
          const rest = { making: makings, matureAt: 0, spent: false, paid: false };
          vaults.push({ token, owner, batch, hops: [], ...rest });
        } else if (kind === "give" && vault && !vault.spent && vault.hops.length < 8) {
          const tip = vault.hops.at(-1)?.outId ?? (vault.batch.vaults[0]?.vaultId as bigint);
          const key = keys[vault.owner] as (typeof keys)[0];
          const moved = await commitTransfers(d, [await signedGroup(d, key, [give(tip, address)])]);
          // A record over a paid vault does not count, and its output pays nobody.
          vaults.push({ ...vault, owner, hops: [...vault.hops, hopOf(moved, 0)] });
          vault.spent = true;
        } else if (kind === "withdraw" && vault) {
          const now = Number(await time.latest()) + 1;
          if (!pays(vault, now)) continue;
          await d.state.write.withdrawTransferred(...call(vault));
          vault.paid = true;
          holders[vault.token] = vault.owner;
        } else if (kind === "wait") {
          await time.increase(MATURITY);
        }
        await compare();
      }
    }),
    { numRuns: 4 },
  );
});
