import { bytesToHex, createWalletClient, encodeFunctionData, type Hex, toHex } from "viem";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { stateCommitmentAbi as abi } from "../../core/l1/abi.ts";
import { encodeBatchData } from "../../core/protocol/batch-data.ts";
import { OPERATOR } from "../../scripts/sandbox/accounts.ts";
import { type Chain, createChain } from "../settlement/fixture.ts";

/** Two void slots. Its length is no multiple of 32. */
const DATA = bytesToHex(encodeBatchData([null, null]));
/** Selector, batch number, offset of the data, its length, and then the data with its padding. */
const WORD = 64;

/**
 * An operator need not encode the call as everyone does; what L1 takes, whoever rebuilds must read.
 */
describe("a rollup batch's data is read from its transaction", () => {
  let chain: Chain;
  let l1: Awaited<ReturnType<Chain["connectOperator"]>>;
  beforeAll(async () => {
    chain = await createChain();
    l1 = await chain.connectOperator();
  });
  afterAll(() => chain.close());

  const forms: readonly (readonly [string, (head: Hex, tail: string) => string])[] = [
    ["as everyone encodes it", (head, tail) => behind(head, 0) + tail],
    ["with bytes behind it", (head, tail) => `${behind(head, 0)}${tail}${"5a".repeat(100)}`],
    ["with bytes in front of it", (head, tail) => behind(head, 0x35) + "5a".repeat(0x35) + tail],
    ["without padding", (head, tail) => behind(head, 0) + unpadded(tail)],
    [
      "with other padding than zeros",
      (head, tail) => behind(head, 0) + unpadded(tail).padEnd(tail.length, "5a"),
    ],
  ];
  test.each(forms)("%s", async (_, form) => {
    const { countRollup, history } = await l1.state();
    const call = encodeFunctionData({
      abi,
      functionName: "commitRollupBatch",
      args: [history, "0x", BigInt(countRollup), DATA],
    });
    const tailAt = 10 + 5 * WORD;
    const data = form(call.slice(0, 10 + 3 * WORD) as Hex, call.slice(tailAt)) as Hex;
    const wallet = createWalletClient({ account: OPERATOR, transport: chain.transport });
    const hash = await wallet.sendTransaction({ chain: null, to: chain.settlement.address, data });
    expect(await chain.client.waitForTransactionReceipt({ hash })).toMatchObject({
      status: "success",
    });
    expect(bytesToHex((await l1.rollupData(hash)) ?? new Uint8Array())).toBe(DATA);
  });
});

function offset(bytes: number): string {
  return toHex(bytes, { size: 32 }).slice(2);
}

/**
 * The offset of the data, which has so many bytes in front of it, behind the consents, of which
 * there are none.
 */
function behind(head: Hex, bytes: number): string {
  return head + offset(0xa0 + bytes) + offset(0);
}

/** The length, and as many bytes as it says. */
function unpadded(tail: string): string {
  return tail.slice(0, WORD + DATA.length - 2);
}
