import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { tooManySlots, vectors } from "../core/protocol/vectors.ts";
import { commitAs, commitRollup, committedEvent, entry } from "./fixture/batches.ts";
import { type Deployment, openChain } from "./fixture/deployment.ts";
import { transferBatchArgs } from "./fixture/transfers.ts";

const { fresh } = await openChain();
const { batchNumber, vectors: valid, refused } = vectors("transfers");

describe("L1 and the vectors of transfer data", () => {
  let d: Deployment;
  let restore: () => Promise<void>;
  beforeAll(async () => {
    d = await fresh();
    for (let n = 0; n < Number(batchNumber); n++) {
      await commitRollup(d, [entry(d.assets.coin, d.actors.owner.account.address)]);
      await commitAs.validium(d, [entry(d.assets.coin, d.actors.owner.account.address)]);
    }
  });
  beforeEach(async () => {
    const snapshot = await d.connection.networkHelpers.takeSnapshot();
    restore = () => snapshot.restore();
  });
  afterEach(() => restore());

  it.each(valid)("$name has the root of the core", async ({ data, dataHash, slots, batchRoot }) => {
    const args = await transferBatchArgs(d, data);
    const hash = await d.state.write.commitTransferBatch(args, d.by("operator"));
    expect((await committedEvent(d, hash)).args).toMatchObject({ batchRoot, vaultCount: Number(slots), dataHash });
  });

  it.each(refused)("$name is refused", async ({ reason, data }) => {
    const name = { spent_twice: "Spent(", vault_id: "BatchUnknown(" }[reason] ?? "TransferDataInvalid(";
    const [history, number] = [await d.state.read.history(), BigInt(batchNumber)];
    await expect(
      d.state.simulate.commitTransferBatch([history, number, data, "0x"], {
        account: d.actors.operator.account.address,
      }),
    ).rejects.toThrow(name);
  });

  it.each(["", "0000000000000001"])("too many slots, with amount '%s', are refused", async (amount) => {
    const args = [await d.state.read.history(), BigInt(batchNumber), tooManySlots(amount), "0x"] as const;
    await expect(
      d.state.simulate.commitTransferBatch(args, { account: d.actors.operator.account.address }),
    ).rejects.toThrow("TransferDataInvalid(");
  });
});
