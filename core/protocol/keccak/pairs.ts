import { branchIf, type Code, call, i32, i64, local, loop, sequence } from "./instructions.ts";
import { NODE_PREFIX } from "./kernel.ts";
import type { LaneKind } from "./lanes.ts";
import { PAIR } from "./memory.ts";
import { Permutation } from "./permutation.ts";
import { type WasmFunction, wasmFunction } from "./wasm-binary.ts";

/** Lanes of a 65-byte message's only block without message bytes or padding. */
const ZERO_LANES = [9, 10, 11, 12, 13, 14, 15, 17, 18, 19, 20, 21, 22, 23, 24];

/**
 * `(input: i32, output: i32, count: i32)`: hashes `0x01 ‖ pair(64)` for `count` pairs, a positive
 * multiple of `kind.states`. Digests may overwrite the pairs from the beginning: each is written
 * after its pair was read.
 *
 * The 65 bytes are one block, made from the pair without a copy. Lane i > 0 holds the pair's bytes
 * from 8i - 1:
 *
 * ```
 *   lane 0          lane 1           …   lane 8                lane 16
 *   01 p0 … p6      p7 p8 … p14          p63 01 00 … 00        00 … 00 80
 * ```
 */
export function pairsFunction(name: string, kind: LaneKind): WasmFunction {
  return wasmFunction(name, ["i32", "i32", "i32"], (frame) => {
    const [input, output, count] = [0, 1, 2];
    const permutation = new Permutation(kind, frame);
    const states = Array.from({ length: kind.states }, (_, i) => i);
    const pairs = (offset: number): Code =>
      kind.gather(
        states.map((i) =>
          i === 0 ? local.get(input) : i32.add(local.get(input), i32.const(64 * i)),
        ),
        offset,
      );
    const lane = (i: number): Code => {
      if (i === 0)
        return kind.or(kind.shl(pairs(0), 8), kind.splat(i64.const(BigInt(NODE_PREFIX))));
      if (i === 8) return kind.or(kind.shrU(pairs(56), 56), kind.splat(i64.const(0x0100n)));
      if (i === 16) return kind.splat(i64.const(1n << 63n));
      return pairs(8 * i - 1);
    };
    const digests = states.map((i) => i32.add(local.get(output), i32.const(32 * i)));
    return loop(
      ...permutation.state.map((place, i) => (ZERO_LANES.includes(i) ? [] : place.set(lane(i)))),
      permutation.code(ZERO_LANES, 4),
      ...permutation.state.slice(0, 4).map((place, i) => kind.scatter(digests, place.get, 8 * i)),
      local.set(input, i32.add(local.get(input), i32.const(64 * kind.states))),
      local.set(output, i32.add(local.get(output), i32.const(32 * kind.states))),
      branchIf(0, local.tee(count, i32.sub(local.get(count), i32.const(kind.states)))),
    );
  });
}

/**
 * `(input: i32, height: i32, position: i32)`: folds a path in place. `input` holds a leaf and then
 * `height` siblings, at least one, 32 bytes each, from the leaf upwards. The root replaces the
 * leaf.
 *
 * @param pairs - index of the scalar pairs function
 */
export function foldFunction(name: string, pairs: number): WasmFunction {
  return wasmFunction(name, ["i32", "i32", "i32"], (frame) => {
    const [input, height, position] = [0, 1, 2];
    const sibling = frame.local("i32");
    const place = frame.local("i32");
    const copy = (from: number, to: Code): readonly Code[] =>
      [0, 8, 16, 24].map((offset) =>
        i64.store(to, i64.load(local.get(from), offset), PAIR + offset),
      );
    return sequence(
      local.set(sibling, local.get(input)),
      loop(
        local.set(sibling, i32.add(local.get(sibling), i32.const(32))),
        // At a 0 bit the accumulator is the left half, at offset 0; at a 1 bit the right one, at
        // offset 32.
        local.set(place, i32.shl(i32.and(local.get(position), i32.const(1)), i32.const(5))),
        ...copy(input, local.get(place)),
        ...copy(sibling, i32.sub(i32.const(32), local.get(place))),
        call(pairs, i32.const(PAIR), local.get(input), i32.const(1)),
        local.set(position, i32.shrU(local.get(position), i32.const(1))),
        branchIf(0, local.tee(height, i32.sub(local.get(height), i32.const(1)))),
      ),
    );
  });
}
