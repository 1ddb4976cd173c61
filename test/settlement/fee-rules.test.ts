import { expect, test } from "vitest";
import { blobFeeIn } from "../../core/l1/blob-fee.ts";

const MAINNET = 1n;
const BPO2 = 1_767_747_671n;
const header = { timestamp: 0n, requestsHash: "0x" };

test("the price of blob gas follows from the header, by the rule of its fork", () => {
  // e to the power of 5, of 10 and of 20, in wei.
  const cancun = { timestamp: 0n, excessBlobGas: 5n * 3_338_477n };
  expect(blobFeeIn(31_337n, cancun)).toBe(148n);
  expect(blobFeeIn(31_337n, { ...header, excessBlobGas: 10n * 5_007_716n })).toBe(22_026n);
  const newest = { ...header, timestamp: BPO2, excessBlobGas: 20n * 11_684_671n };
  expect(blobFeeIn(MAINNET, newest)).toBe(485_165_195n);
  // The block before the fork has the fork's predecessor's rule.
  const before = { ...newest, timestamp: BPO2 - 1n, excessBlobGas: 20n * 8_346_193n };
  expect(blobFeeIn(MAINNET, before)).toBe(485_165_195n);
  expect(blobFeeIn(MAINNET, { ...newest, excessBlobGas: 0n })).toBe(1n);
  expect(blobFeeIn(MAINNET, { timestamp: BPO2, excessBlobGas: null })).toBeNull();
});
