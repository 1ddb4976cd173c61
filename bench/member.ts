import { Level } from "level";
import { privateKeyToAccount } from "viem/accounts";
import { deriveBatch } from "../core/archive/derive.ts";
import { CommitteeMember, type MemberOptions } from "../core/committee/member.ts";
import type { Address, Hash, Standard } from "../core/model.ts";
import type { L1Registration, L1State, ProposedBatch } from "../core/ports.ts";
import { assetType } from "../core/protocol/asset.ts";
import { batchDataOf, type VaultEntry, wordBatch } from "../core/protocol/batch-data.ts";
import {
  emptyHistory,
  nextHistory,
  stateCommitment,
  stateLeaf,
} from "../core/protocol/commitment.ts";
import { bytesToHex } from "../core/protocol/hex.ts";
import { StateTree } from "../core/protocol/state-tree.ts";
import { SETTLEMENT } from "./engine-workload.ts";
import { costOf, inFolder, median, type Section } from "./harness.ts";
import type { Row } from "./report.ts";

export const BATCH = 65_536;
const BATCHES = 15; // A member takes at most 16 ahead of L1
const MEASURED = 5;
const OWNERS = 1_000;

const tokenOf = (standard: Standard): L1Registration => ({
  standard,
  token: `0x${standard === "erc20" ? "20" : standard === "erc721" ? "21" : "55"}${"00".repeat(19)}`,
  quantum: 1n,
  mintingBlobScheme: "mintmark",
  since: 0n,
});
const TOKENS = new Map(
  (["erc20", "erc721", "erc1155"] as const).map((standard) => {
    const token = tokenOf(standard);
    return [assetType(standard, token.token, token.quantum), token] as const;
  }),
);

/** The chain of an empty contract, in this process: its answers take no time. */
export function emptyChain(): MemberOptions["l1"] {
  const root = bytesToHex(new StateTree().root());
  const roots = { countValidium: 0, countRollup: 0, rootValidium: root, rootRollup: root };
  const state: L1State = {
    ...roots,
    commitment: stateCommitment(SETTLEMENT, roots),
    history: emptyHistory(SETTLEMENT),
  };
  return {
    settlement: SETTLEMENT,
    blockNumber: async () => 100n,
    finalizedBlockNumber: async () => 100n,
    block: async () => null,
    state: async () => state,
    events: async () => [],
    registrations: async (assets) => assets.map(({ assetType }) => TOKENS.get(assetType) ?? null),
    supplyCap: async () => null,
  };
}

/** 75 % ERC-721 of new ids, 15 % ERC-1155, 10 % ERC-20, for 1,000 owners. */
function vaultsOf(batch: number): VaultEntry[] {
  const [erc20, erc721, erc1155] = [...TOKENS.keys()] as [Hash, Hash, Hash];
  const mintingBlobOf = (id: number) => bytesToHex(Buffer.from(String(id)));
  return Array.from({ length: BATCH }, (_, i): VaultEntry => {
    const owner = `0x${(1 + (i % OWNERS)).toString(16).padStart(40, "0")}` as Address;
    const kind = i % 20;
    const vault = { chainId: SETTLEMENT.chainId, owner };
    if (kind < 15)
      return {
        ...vault,
        assetType: erc721,
        amount: 1n,
        mintingBlob: mintingBlobOf(batch * BATCH + i),
      };
    if (kind < 18)
      return { ...vault, assetType: erc1155, amount: 3n, mintingBlob: mintingBlobOf(i % 1_000) };
    return { ...vault, assetType: erc20, amount: BigInt(1 + i), mintingBlob: "0x" };
  });
}

export function proposed(batchNumber: number): ProposedBatch {
  const data = batchDataOf(wordBatch(vaultsOf(batchNumber)));
  const { batchRoot, dataHash, vaultCount } = deriveBatch("validium", batchNumber, data);
  return { mode: "validium", batchNumber, vaultCount, batchRoot, dataHash, data };
}

export const memberSection: Section = {
  name: "member",
  title: "A committee member",
  method:
    `Validium batches of ${BATCH.toLocaleString("en-US")} vaults: 75 % ERC-721 of new ids, 15 % ERC-1155, 10 % ` +
    `ERC-20, for ${OWNERS.toLocaleString("en-US")} owners. The member derives the batch from its data, compares ` +
    "every token with its index, writes data and index durably to LevelDB, and signs. The chain answers from " +
    `memory. Median of ${MEASURED} batches. The bytes on the way to the member are not counted.`,
  columns: [
    { key: "rate", label: "checked and signed", unit: "thousand vaults/s", better: "higher" },
    { key: "loop", label: "the event loop's CPU", unit: "µs a vault", better: "lower" },
    { key: "cpu", label: "all threads' CPU", unit: "µs a vault", better: "lower" },
  ],
  reference: null,
  rows: (progress) =>
    inFolder(async (folder) => {
      const member = await CommitteeMember.open({
        account: privateKeyToAccount(`0x${"11".repeat(32)}`),
        store: new Level<Uint8Array, Uint8Array>(folder, {
          keyEncoding: "view",
          valueEncoding: "view",
        }),
        l1: emptyChain(),
      });
      let history = emptyHistory(SETTLEMENT);
      const costs: Awaited<ReturnType<typeof costOf>>[] = [];
      for (let number = 0; number < BATCHES; number++) {
        progress(`member, batch ${number + 1} of ${BATCHES}`);
        const batch = proposed(number);
        const terms = { history, sequence: BigInt(number), epoch: 1n };
        costs.push(await costOf(() => member.sign(batch, terms)));
        history = nextHistory(history, "validium", stateLeaf(batch));
      }
      await member.close();
      const rowOf = (label: string, first: number): Row => {
        const some = costs.slice(first, first + MEASURED);
        const values = {
          rate: BATCH / median(some.map(({ ms }) => ms)),
          loop: median(some.map(({ loopUs }) => loopUs)) / BATCH,
          cpu: median(some.map(({ allUs }) => allUs)) / BATCH,
        };
        return { label, ours: true, values };
      };
      const before = ((BATCHES - MEASURED) * BATCH).toLocaleString("en-US");
      return [rowOf("an empty store", 0), rowOf(`${before} vaults before`, BATCHES - MEASURED)];
    }),
};
