import { createClient, custom, encodeErrorResult, parseAbi } from "viem";
import { readContract } from "viem/actions";
import { describe, expect, test } from "vitest";
import { askL1, isUnreachable } from "../../core/l1/connection.ts";
import { revertReason } from "../../core/l1/reason.ts";

const abi = parseAbi(["function owner() view returns (address)", "error Held(uint256 id)"]);
const data = encodeErrorResult({ abi, errorName: "Held", args: [7n] });

/** The failure of a call that a node answers with this error. */
async function failureOf(answer: { code: number; message: string; data?: unknown }) {
  const request = async () => Promise.reject(Object.assign(new Error(answer.message), answer));
  const client = createClient({ transport: custom({ request }, { retryCount: 0 }) });
  const address = `0x${"11".repeat(20)}` as const;
  return askL1("asking", () => readContract(client, { abi, address, functionName: "owner" })).then(
    () => expect.unreachable(),
    (error: unknown) => error,
  );
}

describe("an answer with code -32603", () => {
  test.each([
    ["Hardhat", { message: "VM Exception while processing transaction: reverted with …", data }],
    ["Ganache", { message: "VM Exception while processing transaction: revert", data: { data } }],
    ["Erigon", { message: "execution reverted" }],
    ["a halted call", { message: "out of gas" }],
  ])("is the contract's refusal in the words of %s", async (_, answer) => {
    const failure = await failureOf({ code: -32603, ...answer });
    expect(revertReason(failure)).not.toBeNull();
    expect(isUnreachable(failure)).toBe(false);
  });

  test.each([
    { message: "Internal error" },
    { message: "Internal error", data: "The state of block 0x5e is missing" },
    { message: "header not found" },
  ])("is a fault of the node, which may answer later: $message, $data", async (answer) => {
    const failure = await failureOf({ code: -32603, ...answer });
    expect(revertReason(failure)).toBeNull();
    expect(isUnreachable(failure)).toBe(true);
  });
});

test("a node that limits its requests may answer later; one that refuses them will not", async () => {
  const limited = await failureOf({ code: -32005, message: "daily request count exceeded" });
  expect(isUnreachable(limited)).toBe(true);
  const refused = await failureOf({ code: -32601, message: "the method does not exist" });
  expect(isUnreachable(refused)).toBe(false);
});
