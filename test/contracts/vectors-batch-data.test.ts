import { decodeErrorResult, type Hex } from "viem";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { vectors } from "../core/protocol/vectors.ts";
import { commitRollup, committedEvent, entry } from "./fixture/batches.ts";
import { type Deployment, openChain, STANDARD } from "./fixture/deployment.ts";

const { fresh } = await openChain();
const { assets, batchNumber, vectors: valid, refused, refusedByAsset } = vectors("batch-data");

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
    return decodeErrorResult({ abi: d.state.abi, data: fault.raw }).errorName;
  };

  it.each(valid)(
    "take $name for the same root",
    async ({ data, dataHash, vaultCount, batchRoot }) => {
      const { args } = await committedEvent(d, await commit(data));
      expect(args).toMatchObject({ batchRoot, dataHash, vaultCount: Number(vaultCount) });
    },
  );

  it.each([...refused, ...refusedByAsset])("refuse $name: $reason", async ({ reason, data }) => {
    const errors: Record<string, readonly string[]> = {
      asset_unregistered: ["AssetNotRegistered"],
      asset_order: ["ManifestInvalid"],
      // A table that is longer than the data is cut short first.
      too_many_assets: ["ManifestInvalid", "BatchDataInvalid"],
    };
    expect(errors[reason] ?? ["BatchDataInvalid"]).toContain(await refusal(data));
  });
});
