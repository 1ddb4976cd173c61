import { type Address, bytesToHex, toHex } from "viem";
import type { VaultEntry } from "../../core/protocol/batch-data.ts";
import { placeVaults } from "../../core/protocol/batch-decoder.ts";
import { encodeBatchData } from "../../core/protocol/batch-encoder.ts";
import { BatchTree } from "../../core/protocol/batch-tree.ts";
import { vaultLeaves } from "../../core/protocol/vault.ts";
import { CHAIN_ID, type GasChain, openGasChain, owners } from "./chain.ts";
import { type Measurement, measurement, type Section } from "./measurement.ts";

interface Scenario {
  readonly label: string;
  readonly count: number;
  readonly aim: number;
  /** Whether the asset has an issuer, who consents by key. */
  readonly issued?: boolean;
  readonly slots: (type: VaultEntry["assetType"], batch: number) => VaultEntry[];
}

/** Batches 8 to 14: no new frontier slot; 0 to 2 completed subtrees, each as often as in the long run. */
const STEADY = { from: 8, to: 14 } as const;

const SCENARIOS: readonly Scenario[] = [
  scenario("1,024 mints, 64 owners, ids of 6 digits", 1_024, 64, 860, randomId),
  scenario("1,024 mints, each to another owner, ids of 6 digits", 1_024, 1_024, 1_100, randomId),
  scenario("1,024 mints, consecutive ids to one owner", 1_024, 1, 310, consecutiveId),
  { ...scenario("1,024 mints, 64 owners, with the consent of an issuer", 1_024, 64, 870, randomId), issued: true },
  scenario("64 mints, each to another owner, ids of 6 digits", 64, 64, 2_150, randomId),
];

/** The complete cost of a mint in a rollup batch. */
export async function rollupSection(): Promise<Section> {
  const measurements: Measurement[] = [];
  for (const wanted of SCENARIOS) {
    const gas = await commitBatches(await openGasChain(), wanted, STEADY.to + 1);
    const steady = gas.slice(STEADY.from);
    measurements.push(
      measurement(wanted.label, steady.reduce((a, b) => a + b, 0) / steady.length, wanted.count, wanted.aim),
    );
    const [first, second, , , , , , eighth] = gas;
    if (wanted.count !== 64 || first === undefined || second === undefined || eighth === undefined) continue;
    measurements.push(
      measurement("— the same, first batch ever", first, wanted.count),
      measurement("— the same, second batch (its frontier slot is new)", second, wanted.count),
      measurement("— the same, eighth batch (completes three subtrees, new slot)", eighth, wanted.count),
    );
  }
  return {
    title: "Rollup batches",
    method: `The table has ERC-721 mints, with the gas of the whole \`commitRollupBatch\` transaction. Each figure is the mean of
batches ${STEADY.from} to ${STEADY.to} of a fresh contract, counted from 0. There the header's slot is new each time, and the frontier slot is
rewritten. A frontier slot is new only in batches 2^k - 1, so at most 32 times ever. The smallest batch shows what that
costs, since it weighs most there.`,
    unit: "mint",
    measurements,
  };
}

async function commitBatches(
  { state, gasOf, types, consentTo }: GasChain,
  { slots, issued = false }: Scenario,
  batches: number,
): Promise<number[]> {
  const gas: number[] = [];
  for (let batch = 0; batch < batches; batch++) {
    const entries = slots(issued ? types.issued : types.erc721, batch);
    const data = bytesToHex(encodeBatchData(entries, "gas"));
    const { root } = new BatchTree(vaultLeaves(placeVaults(entries, "zk-rollup", batch)));
    const consents = issued ? await consentTo("zk-rollup", batch, bytesToHex(root)) : "0x";
    gas.push(await gasOf(state.write.commitRollupBatch([await state.read.history(), consents, BigInt(batch), data])));
  }
  return gas;
}

function scenario(
  label: string,
  count: number,
  ownerCount: number,
  aim: number,
  id: (slot: number, batch: number) => number,
): Scenario {
  return {
    label,
    count,
    aim,
    slots(type, batch) {
      const holders = owners(ownerCount, `batch ${batch} owner`);
      return Array.from({ length: count }, (_, slot) => ({
        chainId: CHAIN_ID,
        owner: holders[slot % ownerCount] as Address,
        assetType: type,
        amount: 1n,
        blob: toHex(String(id(slot, batch))),
      }));
    },
  };
}

/** Ids of 6 digits in no order. A prime stride visits none twice. */
function randomId(slot: number, batch: number): number {
  return 100_000 + (((batch * 1_024 + slot) * 611_953) % 900_000);
}

function consecutiveId(slot: number, batch: number): number {
  return 100_000 + batch * 1_024 + slot;
}
