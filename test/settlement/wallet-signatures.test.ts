import { type Hex, toHex } from "viem";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Chain, connectOperator, createChain, rpc } from "./fixture.ts";

const DIGEST: Hex = `0x${"11".repeat(32)}`;
const WALLET = toHex(0xf11b_1000, { size: 20 });

let chain: Chain;
beforeAll(async () => {
  chain = await createChain();
});
afterAll(() => chain.close());

test.each([
  // PUSH3 2,000,000 GAS LT: the answer is yes only to a caller that gives less.
  ["that wants less than 2,000,000 gas", "0x621e84805a10631626ba7e0260e01b5f5260205ff3", true],
  ["that never ends", "0x5b5f56", false],
  ["that says no", "0x60205ff3", false],
  ["without code", "0x", false],
] as const)("a wallet %s is asked with bounded gas", async (_name, code, taken) => {
  await rpc(chain, "hardhat_setCode", [WALLET, code]);
  const l1 = await connectOperator(chain);
  expect(await l1.verifySignature(WALLET, DIGEST, "0x1234")).toBe(taken);
});
