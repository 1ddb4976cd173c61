import { type Keccak, type KeccakName, nobleKernel } from "./kernel.ts";
import { wasmKernel } from "./wasm.ts";

export type { Keccak, KeccakName } from "./kernel.ts";

const MAX_PATH = 32;

/**
 * A new instance of an implementation, by default the fastest that the runtime supports:
 * WebAssembly with two states in vectors, which the files of this folder generate, or
 * `@noble/hashes`. It throws a RangeError that names a bad argument.
 *
 * @throws Error when the runtime does not support it
 */
export function createKeccak(name?: KeccakName): Keccak {
  const wasm = name === "noble" ? null : wasmKernel();
  if (wasm === null && name === "wasm")
    throw new Error("this runtime cannot run the WebAssembly of keccak-256");
  return checking(wasm ?? nobleKernel());
}

function checking(kernel: Keccak): Keccak {
  return {
    name: kernel.name,
    keccak256: (message) => kernel.keccak256(message),

    hashPairs(input, output, count) {
      requireInteger(
        "count",
        count,
        Math.min(Math.floor(input.length / 64), Math.floor(output.length / 32)),
      );
      if (count > 0) kernel.hashPairs(input, output, count);
    },

    hashMessages(input, ends, output) {
      requireInteger("number of messages", ends.length, Math.floor(output.length / 32));
      let start = 0;
      for (let i = 0; i < ends.length; i++) {
        const end = ends[i] ?? 0;
        if (end < start)
          throw new RangeError(`message ${i} ends at ${end}, before it begins at ${start}`);
        start = end;
      }
      if (start > input.length)
        throw new RangeError(
          `the last message ends at ${start}, past the ${input.length} bytes of input`,
        );
      if (ends.length > 0) kernel.hashMessages(input, ends, output);
    },

    foldPath(leaf, position, siblings) {
      if (leaf.length !== 32) throw new RangeError(`leaf must be 32 bytes, got ${leaf.length}`);
      requireInteger("position", position, 2 ** 32 - 1);
      requireInteger("number of siblings", siblings.length / 32, MAX_PATH);
      return siblings.length === 0
        ? Uint8Array.from(leaf)
        : kernel.foldPath(leaf, position, siblings);
    },
  };
}

function requireInteger(name: string, value: number, max: number): void {
  if (!Number.isInteger(value) || value < 0 || value > max) {
    throw new RangeError(`${name} must be a whole number from 0 to ${max}, got ${value}`);
  }
}
