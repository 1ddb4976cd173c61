import { once } from "node:events";
import { pathToFileURL } from "node:url";
import fc from "fast-check";
import { privateKeyToAccount } from "viem/accounts";
import { describe, expect, it } from "vitest";
import type { Hash, Hex } from "../../../core/index.ts";
import { compactBytes } from "../../../core/protocol/signature.ts";
import { SignerThread } from "../../../core/protocol/signers/signer-thread.ts";
import { transferSigner } from "../../../core/protocol/transfer-rules.ts";
import { refusal } from "./fixture.ts";

const account = privateKeyToAccount(`0x${"5a".repeat(32)}`);
const bytes = (length: number) =>
  fc
    .uint8Array({ minLength: length, maxLength: length })
    .map((made): Hex => `0x${Buffer.from(made).toString("hex")}`);
const N = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
const word = (value: bigint) => value.toString(16).padStart(64, "0");

/** Signatures, and what differs from one at each bound. */
const forged = fc
  .record({
    digest: bytes(32) as fc.Arbitrary<Hash>,
    r: fc.constantFrom<bigint | null>(null, 0n, 1n, 5n, N - 1n, N, 2n ** 256n - 1n),
    s: fc.constantFrom<bigint | null>(
      null,
      0n,
      1n,
      N / 2n,
      N / 2n + 1n,
      N - 1n,
      N,
      (1n << 255n) + 1n,
      (1n << 255n) + N / 2n,
    ),
  })
  .map(async ({ digest, r, s }) => {
    const signed = compactBytes(await account.sign({ hash: digest }));
    const part = (value: bigint | null, from: number) =>
      value === null ? signed.slice(from, from + 64) : word(value);
    const signature: Hex = `0x${part(r, 2)}${part(s, 66)}`;
    return { digest, signature };
  });

describe("the thread of signers", () => {
  it("finds the accounts that the protocol finds, in any order and for any bytes", async () => {
    const thread = new SignerThread();
    try {
      // The first ones are found on this thread.
      for (let i = 0; i < 8; i++)
        expect(await thread.recover(`0x${"33".repeat(32)}`, `0x${"ff".repeat(64)}`)).toBeNull();
      await fc.assert(
        fc.asyncProperty(fc.array(forged, { maxLength: 80 }), async (list) => {
          const asked = await Promise.all(list);
          const found = await Promise.all(
            asked.map(({ digest, signature }) => thread.recover(digest, signature)),
          );
          expect(found).toEqual(
            await Promise.all(asked.map((one) => transferSigner(one.digest, one.signature))),
          );
        }),
        { numRuns: 12 },
      );
      const digest: Hash = `0x${"11".repeat(32)}`;
      const signature = compactBytes(await account.sign({ hash: digest }));
      expect(await thread.recover(digest, signature)).toBe(account.address.toLowerCase());
      for (const wrong of ["0x", "0x00", `${signature}00`, signature.toUpperCase()] as Hex[])
        expect(await thread.recover(digest, wrong)).toBeNull();
    } finally {
      await thread.close();
    }
  });

  it("that dies costs speed and no signature, and that is closed answers no more", async () => {
    const thread = new SignerThread(pathToFileURL("/no/such/file.ts"));
    const warned = once(process, "warning");
    const digest: Hash = `0x${"22".repeat(32)}`;
    const signature = compactBytes(await account.sign({ hash: digest }));
    const all = await Promise.all(
      Array.from({ length: 20 }, () => thread.recover(digest, signature)),
    );
    expect(all).toEqual(all.map(() => account.address.toLowerCase()));
    expect(thread.fault?.cause).toMatchObject({ code: "MODULE_NOT_FOUND" });
    const [{ message, detail }] = await warned;
    expect([message, detail]).toEqual([thread.fault?.message, `${thread.fault?.cause}`]);
    await thread.close();
    expect((await refusal(thread.recover(digest, signature))).code).toBe("engine_closed");
  });
});
