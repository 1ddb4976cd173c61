import fc from "fast-check";
import type { Hex } from "viem";
import {
  bytesToHex,
  concat,
  encodeFunctionData,
  hexToBytes,
  toFunctionSelector,
  toHex,
  zeroHash,
} from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { batchHeaderHash } from "../../core/protocol/commitment.ts";
import {
  type CommittedBatch,
  commitRollup,
  entry,
  proofOf,
  provenArgs,
  sealedRoot,
} from "./fixture/batches.ts";
import { attest } from "./fixture/committee.ts";
import { COIN_QUANTUM, type Deployment, openChain } from "./fixture/deployment.ts";
import { batchArgs, entryOf, listed, NEVER, request, signed } from "./fixture/withdrawals.ts";

const { fresh } = await openChain();
const RUNS = { numRuns: Number(process.env.MINTMARK_CHANGED_CALLS ?? 300) };
const KEY = privateKeyToAccount(generatePrivateKey());
const OTHER = privateKeyToAccount(generatePrivateKey());
const RECIPIENT = privateKeyToAccount(generatePrivateKey()).address;
/** An offset that points out of memory may burn all of it. */
const CALL_GAS = 3_000_000n;

/** One byte changed, the end cut off, or bytes put behind it. */
const anyChange = fc
  .tuple(fc.nat(3), fc.nat(), fc.integer({ min: 1, max: 255 }), fc.uint8Array({ maxLength: 40 }))
  .map(([manner, place, change, tail]) => (call: Hex): Hex => {
    const bytes = hexToBytes(call);
    const at = place % bytes.length;
    if (manner === 3) return concat([call, bytesToHex(tail)]);
    if (manner === 2) return bytesToHex(bytes.subarray(0, at));
    bytes[at] = (bytes[at] ?? 0) ^ change;
    return bytesToHex(bytes);
  });

describe("calls whose bytes were changed anywhere, cut off or extended do what was signed, or nothing:", () => {
  let d: Deployment;
  let batch: CommittedBatch;
  let restore: () => Promise<void>;
  /** Two coin vaults and two of one card of the key, and a coin vault of another. */
  beforeAll(async () => {
    d = await fresh();
    const coins = [KEY, KEY, OTHER].map(({ address }) => entry(d.assets.coin, address, "", 7n));
    const cards = ["5", "5"].map((text) => entry(d.assets.card, KEY.address, text));
    batch = await commitRollup(d, [...coins, ...cards]);
    ({ restore } = await d.connection.networkHelpers.takeSnapshot());
  });
  beforeEach(() => restore());

  const part = (slot: number) =>
    request(batch, slot, { quantity: BigInt(slot) + 3n, recipient: RECIPIENT });
  const bytesOf = (
    functionName: "withdraw" | "withdrawBatch" | "voidDuplicate" | "commitValidiumBatch",
    args: unknown,
  ) => encodeFunctionData({ abi: d.state.abi, functionName, args } as never) as Hex;
  const send = (data: Hex, from: keyof Deployment["actors"] = "relayer") =>
    d.actors[from].sendTransaction({ to: d.state.address, data, gas: CALL_GAS }).then(
      () => true,
      () => false,
    );
  const withdrawnOf = (slot: number) => {
    const { vaultId } = proofOf(batch, slot).vault;
    return d.state.read.withdrawn([vaultId, slot < 3 ? 1 : 2]);
  };
  /**
   * Each of the key's coin vaults has paid what the key has signed, to whom it has named, or
   * nothing.
   */
  async function checkPaid(): Promise<bigint> {
    const out = await Promise.all([0, 1, 2].map(withdrawnOf));
    expect([0n, 3n]).toContain(out[0]);
    expect([0n, 4n]).toContain(out[1]);
    expect(out[2]).toBe(0n);
    const total = out.reduce((sum, one) => sum + one, 0n);
    expect(await d.tokens.coin.read.balanceOf([RECIPIENT])).toBe(total * COIN_QUANTUM);
    expect(await d.tokens.coin.read.totalSupply()).toBe(total * COIN_QUANTUM);
    return total;
  }
  /** The honest call pays all, and no change of it anything else. */
  async function paysWhatWasSigned(call: Hex, all: bigint): Promise<void> {
    expect(await send(call)).toBe(true);
    expect(await checkPaid()).toBe(all);
    const property = fc.asyncProperty(anyChange, async (change) => {
      await restore();
      await send(change(call));
      await checkPaid();
    });
    await fc.assert(property, RUNS);
  }

  it("a batch of withdrawals", async () => {
    const asked = await Promise.all([0, 1].map((slot) => signed(d, KEY, part(slot))));
    await paysWhatWasSigned(bytesOf("withdrawBatch", batchArgs(asked)), 7n);
  });

  it("a list of withdrawals", async () => {
    await paysWhatWasSigned(
      bytesOf("withdrawBatch", batchArgs(await listed(d, KEY, [part(0), part(1)]))),
      7n,
    );
  });

  it("the voiding of a duplicate", async () => {
    const call = bytesOf("voidDuplicate", [
      ...provenArgs(proofOf(batch, 3)),
      ...provenArgs(proofOf(batch, 4)),
    ]);
    const property = fc.asyncProperty(fc.option(anyChange), async (change) => {
      await restore();
      const done = await send(change === null ? call : change(call));
      if (change === null) expect(done).toBe(true);
      expect([await withdrawnOf(3), await withdrawnOf(4)]).toEqual([0n, done ? 1n : 0n]);
    });
    await fc.assert(property, RUNS);
  });

  const content = toHex(1, { size: 32 });
  const committed = { batchRoot: sealedRoot("validium", [], content), vaultCount: 9 };
  const attestation = async () =>
    attest(d, {
      ...committed,
      history: await d.state.read.history(),
      batchNumber: 0,
      dataHash: zeroHash,
      epoch: 0n,
    });
  const commitArgs = async (signatures: Hex) =>
    [
      await d.state.read.history(),
      0n,
      content,
      committed.vaultCount,
      zeroHash,
      "0x",
      signatures,
      "0x",
    ] as const;

  it("the commit of a batch", async () => {
    const call = bytesOf("commitValidiumBatch", await commitArgs(await attestation()));
    const property = fc.asyncProperty(fc.option(anyChange), async (change) => {
      await restore();
      const done = await send(change === null ? call : change(call), "operator");
      if (change === null) expect(done).toBe(true);
      const committedAt = BigInt(await d.time.latest());
      const header = batchHeaderHash({ ...committed, committedAt, sequence: 1n });
      expect(await d.state.read.batchHeaderHash([0, 0n])).toBe(done ? header : zeroHash);
      expect(await d.state.read.batchCounts()).toEqual([done ? 1n : 0n, 1n]);
    });
    await fc.assert(property, RUNS);
  });

  it("an attestation, which is refused by name", async () => {
    const honest = await attestation();
    const account = d.actors.operator.account.address;
    const property = fc.asyncProperty(anyChange, async (change) => {
      const changed = change(honest);
      if (changed === honest) return;
      const call = d.state.simulate.commitValidiumBatch(await commitArgs(changed), { account });
      await expect(call).rejects.toThrow(/AttestationMalformed|CommitteeMismatch/);
    });
    await fc.assert(property, RUNS);
  });

  it("any bytes, which change nothing", async () => {
    const names = [
      "commitRollupBatch",
      "commitValidiumBatch",
      "withdraw",
      "withdrawBatch",
      "withdrawItem",
      "voidDuplicate",
    ];
    const selectors = d.state.abi.flatMap((item) =>
      item.type === "function" && names.includes(item.name) ? [toFunctionSelector(item)] : [],
    );
    const before = await d.state.read.stateCommitment();
    const bytes = fc.uint8Array({ maxLength: 600 }).map((array) => bytesToHex(array));
    const from = fc.constantFrom(
      "relayer" as const,
      "operator" as const,
      "admin" as const,
      "guardian" as const,
    );
    const property = fc.asyncProperty(
      fc.constantFrom("0x", ...selectors),
      bytes,
      from,
      async (selector, data, by) => {
        await send(concat([selector as Hex, data]), by);
        expect(await d.state.read.stateCommitment()).toBe(before);
        expect(await checkPaid()).toBe(0n);
      },
    );
    await fc.assert(property, RUNS);
  });

  it("random bytes in the place of a signature, which are nobody's", async () => {
    const signature = fc.oneof(
      fc.uint8Array({ maxLength: 80 }),
      fc.uint8Array({ minLength: 64, maxLength: 65 }),
    );
    const property = fc.asyncProperty(
      signature,
      fc.bigInt({ min: 1n, max: NEVER }),
      async (bytes, deadline) => {
        const list = [entryOf(part(0))];
        const authorization = { deadline, signature: bytesToHex(bytes), list };
        const [, [packed]] = batchArgs([{ ...part(0), authorization }]);
        const call = d.state.read.checkList([packed as Hex]);
        await expect(call).rejects.toThrow(/SignatureInvalid|AuthorizationExpired/);
      },
    );
    await fc.assert(property, RUNS);
  });

  it("a list used in any order and twice, which pays each of its signer's vaults once", async () => {
    const list = [0, 1, 2].map((slot) => ({ ...part(slot), vault: proofOf(batch, slot).vault }));
    const asked = await listed(d, KEY, list);
    const property = fc.asyncProperty(fc.array(fc.nat(2), { maxLength: 7 }), async (order) => {
      await restore();
      for (const slot of order) {
        const one = asked[slot];
        if (one !== undefined) await send(bytesOf("withdrawBatch", batchArgs([one])));
      }
      const expected = [3n, 4n].reduce(
        (sum, units, slot) => (order.includes(slot) ? sum + units : sum),
        0n,
      );
      expect(await checkPaid()).toBe(expected);
    });
    await fc.assert(property, { numRuns: Math.ceil(RUNS.numRuns / 4) });
  });
});
