import { concat, type Hex, pad, toHex } from "viem";
import { beforeEach, describe, expect, it } from "vitest";
import { type Deployment, openChain } from "./fixture/deployment.ts";

const { fresh } = await openChain();

/** `enum Fault` of the library BatchData. */
const FAULT = { truncated: 1, ownerIndex: 6, digits: 11, range: 12, record: 13 } as const;
const OWNER = "0x1111111111111111111111111111111111111111";
const u = (value: number, bytes: number) => toHex(value, { size: bytes });

/** Each way to read records has checks of its own: these are the faults that only one of them meets. */
describe("a rollup batch whose records are malformed", () => {
  let d: Deployment;
  beforeEach(async () => {
    d = await fresh();
  });

  /** One run over the card (0) or the item (1). */
  const data = (owners: readonly Hex[], asset: 0 | 1, form: number, length: number, ...rest: readonly Hex[]): Hex => {
    const { assetType } = asset === 0 ? d.assets.card : d.assets.item;
    const head = concat(["0x01", u(1, 2), u(31_337, 8), pad(assetType), u(owners.length, 2), ...owners]);
    return concat([head, u(0, 2), u(form, 1), u(length, 3), ...rest]);
  };
  const refused = async (batch: Hex, fault: number) => {
    const [number, history] = [(await d.state.read.batchCounts())[1], await d.state.read.history()];
    const commit = d.state.write.commitRollupBatch([history, "0x", number, batch], {
      account: d.actors.operator.account,
    });
    await d.viem.assertions.revertWithCustomErrorWithArgs(commit, d.state, "BatchDataInvalid", [
      fault,
      (offset: bigint) => offset <= BigInt(batch.length / 2 - 1),
    ]);
  };
  const taken = async (batch: Hex) => {
    const [number, history] = [(await d.state.read.batchCounts())[1], await d.state.read.history()];
    await d.state.write.commitRollupBatch([history, "0x", number, batch], { account: d.actors.operator.account });
    expect((await d.state.read.batchCounts())[1]).toBe(number + 1n);
  };

  it("one-byte owners and raw ids", async () => {
    const form = 0b0000_01_01;
    await taken(data([OWNER], 0, form, 1, "0x01", "0x00", "0x31"));
    await refused(data([OWNER], 0, form, 1, "0x01", "0x01", "0x31"), FAULT.ownerIndex);
    await refused(data([], 0, form, 1, "0x01", "0x00", "0x31"), FAULT.ownerIndex);
    await refused(data([OWNER], 0, form, 2, "0x01", "0x00", "0x31", "0x00"), FAULT.truncated);
  });

  it("owners in full and packed ids", async () => {
    const form = 0b0000_10_00;
    await taken(data([], 0, form, 1, "0x03", OWNER, "0x0123"));
    await refused(data([], 0, form, 1, "0x03", OWNER, "0x1123"), FAULT.record);
    await refused(data([], 0, form, 1, "0x03", OWNER, "0x01"), FAULT.truncated);
  });

  it("two-byte owners and packed ids", async () => {
    const form = 0b0000_10_10;
    await taken(data([OWNER], 0, form, 1, "0x02", "0x0000", "0x12"));
    await refused(data([OWNER], 0, form, 1, "0x02", "0x0001", "0x12"), FAULT.record);
    await refused(data([], 0, form, 1, "0x02", "0x0000", "0x12"), FAULT.ownerIndex);
    await refused(data([OWNER], 0, form, 2, "0x02", "0x0000", "0x12", "0x0000"), FAULT.truncated);
  });

  it("amounts and packed ids", async () => {
    const form = 0b0001_10_00;
    await taken(data([], 1, form, 1, "0x03", OWNER, "0x05", "0x0123"));
    await refused(data([], 1, form, 1, "0x03", OWNER, "0x05", "0x1123"), FAULT.digits);
    await refused(data([], 1, form, 1, "0x03", OWNER, "0x05", "0x01"), FAULT.truncated);
  });

  it("consecutive ids of several owners", async () => {
    const form = 0b0000_11_00;
    await taken(data([], 0, form, 2, "0x02", "0x98", OWNER, OWNER));
    await refused(data([], 0, form, 2, "0x02", "0x99", OWNER, OWNER), FAULT.range);
    await refused(data([], 0, form, 2, "0x02", "0x98", OWNER), FAULT.truncated);
  });
});
