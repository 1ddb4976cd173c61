import { bytesToHex, hexToBytes, zeroHash } from "viem";
import { beforeEach, describe, expect, it } from "vitest";
import { stateLeaf } from "../../core/protocol/commitment.ts";
import { unpackHashes } from "../../core/protocol/hex.ts";
import { StateTree } from "../../core/protocol/state-tree.ts";
import {
  type CommittedBatch,
  commitRollup,
  commitValidium,
  entry,
  pathOf,
  proofOf,
} from "./fixture/batches.ts";
import { type Deployment, openChain } from "./fixture/deployment.ts";

const { fresh } = await openChain();

describe("a vault is proven to the commitment that L1 states", () => {
  let d: Deployment;
  let batches: Record<CommittedBatch["mode"], CommittedBatch[]>;
  beforeEach(async () => {
    d = await fresh();
    const owner = d.actors.owner.account.address;
    const slots = (from: number) =>
      [0, 1, 2].map((i) => entry(d.assets.card, owner, String(from + i)));
    batches = {
      validium: [await commitValidium(d, slots(0)), await commitValidium(d, slots(10))],
      "zk-rollup": [
        await commitRollup(d, slots(20)),
        await commitRollup(d, slots(30)),
        await commitRollup(d, slots(40)),
      ],
    };
  });

  it.each([
    ["validium", "zk-rollup"],
    ["zk-rollup", "validium"],
  ] as const)("in %s mode", async (mode, other) => {
    const harness = await d.viem.deployContract("ProofHarness");
    const history = historyOf(batches[mode]);
    const commitment = await d.state.read.stateCommitment();
    const counts = {
      countValidium: BigInt(batches.validium.length),
      countRollup: BigInt(batches["zk-rollup"].length),
    };
    for (const batch of batches[mode]) {
      const path = {
        dataHash: batch.dataHash,
        siblings: unpackHashes(history.siblings(batch.batchNumber)),
        otherRoot: bytesToHex(historyOf(batches[other]).root()),
        ...counts,
      };
      const proof = proofOf(batch, 2);
      const { vault, header } = proof;
      const verify = (
        given: Partial<typeof path>,
        vaultCount = header.vaultCount,
        to = commitment,
      ) =>
        harness.read.verifyVaultInState([
          vault,
          vaultCount,
          pathOf(proof),
          { ...path, ...given },
          31_337n,
          d.state.address,
          to,
        ]);
      expect(await verify({})).toBe(true);
      expect(await verify({ otherRoot: zeroHash })).toBe(false);
      expect(await verify({ countRollup: counts.countRollup + 1n })).toBe(false);
      expect(await verify({}, 2 ** 20 + 1)).toBe(false);
      expect(await verify({}, undefined, batch.dataHash)).toBe(false);
    }
  });
});

/** The mode's state tree, from what the batches' events say. */
function historyOf(batches: readonly CommittedBatch[]): StateTree {
  const history = new StateTree();
  for (const { batchNumber, dataHash, header } of batches) {
    history.append(hexToBytes(stateLeaf({ ...header, batchNumber, dataHash })));
  }
  return history;
}
