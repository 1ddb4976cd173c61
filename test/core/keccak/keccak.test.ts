import { keccak_256 } from "@noble/hashes/sha3.js";
import fc from "fast-check";
import { keccak as hashWasmKeccak } from "hash-wasm";
import { describe, expect, it } from "vitest";
import { createKeccak, type Keccak } from "../../../core/protocol/keccak/index.ts";

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

/** Bytes that differ by place and by seed. */
function bytes(length: number, seed = 0): Uint8Array<ArrayBuffer> {
  return new Uint8Array(length).map((_, i) => Math.imul(i + 1, 0x9e3779b1 + 2 * seed) >>> 23);
}

const naive = {
  pairs: (input: Uint8Array, count: number) =>
    Array.from({ length: count }, (_, i) =>
      hex(keccak_256(Uint8Array.of(1, ...input.subarray(64 * i, 64 * i + 64)))),
    ).join(""),
  messages: (messages: readonly Uint8Array[]) =>
    messages.map((message) => hex(keccak_256(message))).join(""),
  path: (leaf: Uint8Array, position: number, siblings: readonly Uint8Array[]) =>
    siblings.reduce((node, sibling, level) => {
      const left = Math.floor(position / 2 ** level) % 2 === 0;
      return keccak_256(Uint8Array.of(1, ...(left ? node : sibling), ...(left ? sibling : node)));
    }, leaf),
};

function pack(messages: readonly Uint8Array[]): {
  input: Uint8Array<ArrayBuffer>;
  ends: Uint32Array;
} {
  let end = 0;
  const ends = Uint32Array.from(messages, (message) => (end += message.length));
  return { input: Uint8Array.from(Buffer.concat(messages)), ends };
}

it("is the fastest implementation", () => {
  expect(createKeccak().name).toBe("wasm");
});

describe.each(["wasm", "noble"] as const)("keccak-256 by %s", (name) => {
  const instance: Keccak = createKeccak(name);

  it("agrees with two other libraries for every length from 0 to 420, three blocks and more", async () => {
    for (let length = 0; length <= 420; length++) {
      const message = bytes(length, length);
      const digest = hex(instance.keccak256(message));
      expect(digest, `length ${length}`).toBe(hex(keccak_256(message)));
      expect(digest, `length ${length}`).toBe(await hashWasmKeccak(message, 256));
    }
  });

  it("hashes messages longer than its memory", () => {
    for (const length of [131_000, 131_072, 131_104, 131_105, 300_001]) {
      const message = bytes(length);
      expect(hex(instance.keccak256(message)), `length ${length}`).toBe(hex(keccak_256(message)));
    }
  });

  it("does not read beyond a message: earlier hashes leave no trace", () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 500 }),
        fc.uint8Array({ maxLength: 500 }),
        (before, message) => {
          instance.keccak256(before);
          expect(hex(instance.keccak256(message))).toBe(hex(keccak_256(message)));
        },
      ),
    );
  });

  describe("hashPairs", () => {
    it("hashes any number of pairs, also past a chunk, and leaves the input alone", () => {
      const counts = name === "noble" ? [1, 2, 3, 9] : [1, 2, 3, 9, 2047, 2048, 2049, 4099];
      for (const count of counts) {
        const input = bytes(64 * count, count);
        const before = hex(input);
        const output = new Uint8Array(32 * count);
        instance.hashPairs(input, output, count);
        expect(hex(output), `${count} pairs`).toBe(naive.pairs(input, count));
        expect(hex(input)).toBe(before);
      }
    });

    it("takes fewer pairs, and writes nothing else", () => {
      fc.assert(
        fc.property(
          fc.uint8Array({ minLength: 64 * 5, maxLength: 64 * 5 }),
          fc.nat(5),
          (input, count) => {
            const output = new Uint8Array(200).fill(0xee);
            instance.hashPairs(input, output, count);
            expect(hex(output)).toBe(naive.pairs(input, count) + "ee".repeat(200 - 32 * count));
          },
        ),
      );
    });

    it("refuses counts that do not fit", () => {
      const input = bytes(128);
      const output = new Uint8Array(64);
      expect(() => instance.hashPairs(input, output, 3)).toThrow(
        /count must be a whole number from 0 to 2, got 3/,
      );
      expect(() => instance.hashPairs(input, output.subarray(1), 2)).toThrow(RangeError);
      expect(() => instance.hashPairs(input, output, -1)).toThrow(RangeError);
      expect(() => instance.hashPairs(input, output, 1.5)).toThrow(RangeError);
      expect(() => instance.hashPairs(input, output, Number.NaN)).toThrow(RangeError);
      expect(output).toEqual(new Uint8Array(64));
    });
  });

  describe("hashMessages", () => {
    const boundary = [135, 136, 137, 271, 272, 273];

    function check(messages: readonly Uint8Array[]): void {
      const { input, ends } = pack(messages);
      const output = new Uint8Array(32 * messages.length);
      instance.hashMessages(input, ends, output);
      expect(hex(output)).toBe(naive.messages(messages));
    }

    it("hashes messages around the block boundaries, alone, in equal pairs and in unequal ones", () => {
      const lengths = [0, 1, 7, 8, 9, 127, 128, ...boundary];
      for (const a of lengths) {
        check([bytes(a, 1)]);
        for (const b of lengths) check([bytes(a, 1), bytes(b, 2)]);
      }
    });

    it("hashes more than a chunk holds, and a message that no chunk holds between short ones", () => {
      const many = Array.from({ length: name === "noble" ? 20 : 2500 }, (_, i) =>
        bytes(77 + ((i * 97) % 256), i),
      );
      check(many);
      check([
        ...many.slice(0, 3),
        bytes(200_000),
        ...many.slice(3, 8),
        bytes(131_073),
        bytes(131_072),
        bytes(0),
      ]);
    });

    it("refuses ends that descend or lie outside, and a short output", () => {
      const input = bytes(100);
      const output = new Uint8Array(64);
      const hash = (...ends: number[]) =>
        instance.hashMessages(input, Uint32Array.from(ends), output);
      expect(() => hash(50, 49)).toThrow(/message 1 ends at 49, before it begins at 50/);
      expect(() => hash(50, 101)).toThrow(/past the 100 bytes/);
      expect(() => hash(2 ** 32 - 1)).toThrow(RangeError);
      expect(() => hash(1, 2, 3)).toThrow(/number of messages/);
      expect(output).toEqual(new Uint8Array(64));
    });
  });

  describe("foldPath", () => {
    const node = fc.uint8Array({ minLength: 32, maxLength: 32 });

    it("folds as the naive twin does", () => {
      fc.assert(
        fc.property(
          node,
          fc.integer({ min: 0, max: 2 ** 32 - 1 }),
          fc.array(node, { maxLength: 32 }),
          (leaf, position, siblings) => {
            const root = instance.foldPath(
              leaf,
              position,
              Uint8Array.from(Buffer.concat(siblings)),
            );
            expect(hex(root)).toBe(hex(naive.path(leaf, position, siblings)));
          },
        ),
        { numRuns: name === "noble" ? 10 : 60 },
      );
    });

    it("refuses an invalid leaf, position or path", () => {
      const leaf = bytes(32);
      expect(() => instance.foldPath(bytes(31), 0, bytes(32))).toThrow(/leaf must be 32 bytes/);
      expect(() => instance.foldPath(leaf, -1, bytes(32))).toThrow(/position/);
      expect(() => instance.foldPath(leaf, 2 ** 32, bytes(32))).toThrow(/position/);
      expect(() => instance.foldPath(leaf, 0, bytes(33))).toThrow(/siblings/);
      expect(() => instance.foldPath(leaf, 0, bytes(33 * 32))).toThrow(/siblings/);
    });
  });
});
