import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { closeOpenBatch } from "../../../core/batches/seal.ts";
import type { Hex } from "../../../core/index.ts";
import { Ledger } from "../../../core/ledger/ledger.ts";
import { readLimits } from "../../../core/ledger/options.ts";
import { hexToBytes } from "../../../core/protocol/hex.ts";
import { tokenIdOf } from "../../../core/protocol/minting-blob.ts";
import { Group } from "../../../core/store/group.ts";
import type { Store } from "../../../core/store/ports.ts";
import { fastTokenIdOf, TokenHasher } from "../../../core/store/token-id.ts";
import { TokenIndex } from "../../../core/store/token-index.ts";
import { Output } from "../../../core/verify/reference-records.ts";
import { ReferenceTenants } from "../../../core/verify/reference-tenants.ts";
import { ReferenceTokens } from "../../../core/verify/reference-vaults.ts";
import { mintingBlobOf, SETTLEMENT } from "./fixture.ts";

/** Few shards and few places, so that tokens collide and wrap around. */
const hash = fc
  .tuple(fc.constantFrom(0, 1, 0xffff00, 0xfffffe, 0xffffff), fc.constantFrom(0, 255))
  .map(([high, low]) => ((high << 8) | low) >>> 0);
const step = fc.record({
  action: fc.constantFrom("insert", "insert", "move", "remove"),
  hash,
  pick: fc.nat(),
});

describe("the index of tokens", () => {
  it("finds the same as a plain list after any inserts, moves and removals", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const index = new TokenIndex();
        const plain: { hash: number; ref: number }[] = [];
        let ref = 1;
        for (const { action, hash, pick } of steps) {
          const chosen = plain[pick % Math.max(1, plain.length)];
          if (action === "insert" || chosen === undefined) {
            index.insert(hash, ref);
            plain.push({ hash, ref: ref++ });
          } else if (action === "move") {
            index.move(chosen.hash, chosen.ref, ref);
            chosen.ref = ref++;
          } else {
            index.remove(chosen.hash, chosen.ref);
            plain.splice(plain.indexOf(chosen), 1);
          }
        }
        for (const one of new Set(steps.map(({ hash }) => hash))) {
          const expected = plain.filter(({ hash }) => hash === one).map(({ ref }) => ref);
          expect((index.candidates(one) ?? []).sort((a, b) => a - b)).toEqual(
            expected.sort((a, b) => a - b),
          );
          // A free place is enough to know that there is none; a taken one may be another token's.
          if (index.refsAtHome(Uint32Array.of(one))[0] === 0) expect(expected).toEqual([]);
        }
      }),
    );
  });
});

describe("the places of tokens", () => {
  it("are used up by vaults alone, whatever kinds of batches follow each other", () => {
    const ledger = new Ledger(
      {} as Store,
      { store: "", settlement: SETTLEMENT, environment: "sandbox" },
      readLimits(),
      () => {},
      new Uint8Array(32),
    );
    const holder = { applicationIndex: 0, userIndex: 0, owner: new Uint8Array(20) };
    const mintingBlobs = hexToBytes(mintingBlobOf("x".repeat(200)));
    const group = new Group();
    ledger.batches.open("zk-rollup", 0, 0, 1);
    const periods = 1_000;
    for (let period = 0; period < periods; period++) {
      ledger.batches.blobs.place(SETTLEMENT.chainId, period % 2 === 0);
      for (const end of [6, mintingBlobs.length]) {
        const vault = { assetIndex: 0, amountHigh: 0, amountLow: 1, mintingBlobs, start: 0, end };
        ledger.batches.unsealed.open(group, "zk-rollup").add(holder, vault, "erc721", 1, 7);
      }
      closeOpenBatch(ledger, group, "zk-rollup");
    }
    const { batchNumber, firstOrdinal } = ledger.batches.unsealed.open(group, "zk-rollup");
    expect({ batchNumber, firstOrdinal }).toEqual({
      batchNumber: periods,
      firstOrdinal: 2 * periods,
    });
  });
});

describe("the hash of a token", () => {
  it("is the same however its id is given, and another with another seed", () => {
    const one = new TokenHasher(new Uint8Array(32).fill(1));
    const other = new TokenHasher(new Uint8Array(32).fill(2));
    fc.assert(
      fc.property(fc.nat(), fc.maxSafeNat(), (asset, id) => {
        expect(one.ofId(asset, BigInt(id))).toBe(one.ofShortId(asset, id));
      }),
    );
    const ids = Array.from({ length: 1000 }, (_, i) => 1n << BigInt(i % 256));
    expect(ids.filter((id, i) => one.ofId(i, id) === other.ofId(i, id)).length).toBeLessThan(3);
  });
});

describe("the tokens of verify", () => {
  it("suspect exactly the tokens added and not removed, over many growths", () => {
    const out = new Output(() => {});
    const seed = new Uint8Array(8).fill(7);
    const tenants = new ReferenceTenants({ out });
    const tokens = new ReferenceTokens({ out, tenants, seed, changesLater: () => true });
    const placeOf = (id: number) => ({
      mode: id % 2 === 0 ? ("validium" as const) : ("zk-rollup" as const),
      batchNumber: 2 ** 32 - 1 - (id % 3),
      slot: id,
    });
    const COUNT = 50_000;
    for (let id = 0; id < COUNT; id++) tokens.add(placeOf(id), 5, BigInt(id));
    // Two ids of one hash are suspects too: 2^32 hashes make that rare.
    expect(tokens.suspects().length).toBeLessThan(10);
    const removed = (id: number) => id % 4 === 0;
    for (let id = 0; id < COUNT; id++) if (removed(id)) tokens.remove(placeOf(id), 5, BigInt(id));
    expect(tokens.size).toBe(COUNT - COUNT / 4);
    for (let id = 0; id < COUNT; id++)
      tokens.add({ ...placeOf(id), slot: COUNT + id }, 5, BigInt(id));
    const found = tokens
      .suspects()
      .map(
        ({ earlier, token }) => `${earlier.mode} ${earlier.batchNumber} ${earlier.slot} ${token}`,
      );
    for (let id = 0; id < COUNT; id++) {
      const { mode, batchNumber, slot } = placeOf(id);
      if (id % 997 < 4)
        expect(found.includes(`${mode} ${batchNumber} ${slot} ${id} of asset 5`)).toBe(
          !removed(id),
        );
    }
    expect(found.length).toBeGreaterThanOrEqual(COUNT - COUNT / 4);
    expect(found.length).toBeLessThan(COUNT - COUNT / 4 + 20);
  });
});

describe("the fast token id", () => {
  it("equals the plain one, with the same refusals", () => {
    const text = fc.oneof(
      fc.bigInt(0n, 10n ** 18n).map(String),
      fc.stringMatching(/^0[0-9]{0,4}$/),
      fc.stringMatching(/^[0-9]{13,17}$/),
      fc.stringMatching(/^\{[0-9]{1,16}\}:\{[a-z]{0,3}\}$/),
      fc.string({ maxLength: 17 }),
    );
    const mintingBlob: fc.Arbitrary<Hex> = fc.oneof(
      text.map(mintingBlobOf),
      fc.uint8Array({ maxLength: 17 }).map((b) => `0x${Buffer.from(b).toString("hex")}` as const),
    );
    const standard = fc.constantFrom("erc20", "erc721", "erc1155");
    fc.assert(
      fc.property(standard, fc.constantFrom("mintmark", "imx"), mintingBlob, (...parts) => {
        const outcome = (read: typeof tokenIdOf) => {
          try {
            return read(...parts);
          } catch (error) {
            return error instanceof Error && "code" in error ? error.code : error;
          }
        };
        expect(outcome(fastTokenIdOf)).toEqual(outcome(tokenIdOf));
      }),
      { numRuns: 2000 },
    );
  });
});
