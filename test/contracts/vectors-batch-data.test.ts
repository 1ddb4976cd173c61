import { decodeErrorResult, type Hex } from "viem";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { vectors } from "../core/protocol/vectors.ts";
import { commitRollup, committedEvent, entry } from "./fixture/batches.ts";
import { type Deployment, openChain, STANDARD } from "./fixture/deployment.ts";

const { fresh } = await openChain();
const { assets, batchNumber, vectors: valid, refused, refusedByAsset } = vectors("batch-data");

/**
 * The `enum Fault` that the contract answers to each of the core's reasons; past the end it reads
 * zeros, so data that ends early may be refused for what these would mean. */
const FAULTS: Record<string, readonly string[]> = {
  version_unknown: ["Version"],
  run_empty: ["Empty"],
  too_many_slots: ["TooManyVaults"],
  asset_index: ["AssetIndex"],
  owner_index: ["OwnerIndex"],
  amount_form: ["AmountForm"],
  erc721_amount: ["AmountForm"],
  blob_form: ["BlobForm"],
  too_many_assets: ["ManifestInvalid", "Truncated"],
  asset_order: ["ManifestInvalid"],
  asset_unused: ["AssetUnused"],
};
const NAMES = [
  "Version",
  "Truncated",
  "Trailing",
  "Empty",
  "TooManyVaults",
  "AssetIndex",
  "OwnerIndex",
  "AmountForm",
  "Amount",
  "BlobForm",
  "BlobLength",
  "Digits",
  "Range",
  "AssetUnused",
] as const;

describe("L1 and the vectors of batch data", () => {
  let d: Deployment;
  let restore: () => Promise<void>;
  beforeAll(async () => {
    d = await fresh();
    for (const { standard, chainId, token, quantum } of assets) {
      await d.state.write.registerAsset([
        STANDARD[standard],
        BigInt(chainId),
        token,
        BigInt(quantum),
        0,
      ]);
    }
    for (let n = 0; n < Number(batchNumber); n++) {
      await commitRollup(d, [entry(d.assets.coin, d.actors.owner.account.address)]);
    }
  });
  beforeEach(async () => {
    const snapshot = await d.connection.networkHelpers.takeSnapshot();
    restore = () => snapshot.restore();
  });
  afterEach(() => restore());

  const commit = async (data: Hex) =>
    d.state.write.commitRollupBatch(
      [await d.state.read.history(), "0x", BigInt(batchNumber), data],
      d.by("operator"),
    );
  const refusal = async (data: Hex) => {
    const { operator } = d.actors;
    const fault = await d.publicClient
      .simulateContract({
        abi: d.state.abi,
        address: d.state.address,
        functionName: "commitRollupBatch",
        args: [await d.state.read.history(), "0x", BigInt(batchNumber), data],
        account: operator.account,
      })
      .then(() => null)
      .catch((error: { walk(test: (cause: unknown) => boolean): { raw?: Hex } | null }) =>
        error.walk((cause) => typeof cause === "object" && cause !== null && "raw" in cause),
      );
    if (!fault?.raw) return "accepted";
    const { errorName, args } = decodeErrorResult({ abi: d.state.abi, data: fault.raw });
    return errorName === "BatchDataInvalid" ? NAMES[Number(args?.[0])] : errorName;
  };

  it.each(valid)(
    "take $name for the same root",
    async ({ data, dataHash, vaultCount, batchRoot }) => {
      const { args } = await committedEvent(d, await commit(data));
      expect(args).toMatchObject({ batchRoot, dataHash, vaultCount: Number(vaultCount) });
    },
  );

  it.each(refused)("refuse $name: $reason", async ({ reason, data }) => {
    const fault = await refusal(data);
    expect([...NAMES, "ManifestInvalid"]).toContain(fault);
    const expected = FAULTS[reason];
    if (expected) expect(expected).toContain(fault);
  });

  it.each(refusedByAsset)("refuse $name: $reason", async ({ reason, data }) => {
    const fault = await refusal(data);
    if (reason === "asset_unregistered") expect(fault).toBe("AssetNotRegistered");
    else expect(FAULTS[reason]).toContain(fault);
  });
});
