import { type WasmFunction, wasmFunction } from "./binary.ts";
import { branchIf, type Code, call, i32, i64, local, loop, sequence } from "./instructions.ts";
import { PAIR } from "./layout.ts";

/**
 * `(input: i32, height: i32, position: i32, prefix: i32)`: folds a path in place. `input` holds a leaf and then `height` siblings,
 * at least one, 32 bytes each, from the leaf upwards; the root replaces the leaf.
 *
 * @param pairs - index of the scalar pairs function
 */
export function foldFunction(name: string, pairs: number): WasmFunction {
  return wasmFunction(name, ["i32", "i32", "i32", "i32"], (frame) => {
    const [input, height, position, prefix] = [0, 1, 2, 3];
    const sibling = frame.local("i32");
    const place = frame.local("i32");
    const copy = (from: number, to: Code): readonly Code[] =>
      [0, 8, 16, 24].map((offset) => i64.store(to, i64.load(local.get(from), offset), PAIR + offset));
    return sequence(
      local.set(sibling, local.get(input)),
      loop(
        local.set(sibling, i32.add(local.get(sibling), i32.const(32))),
        // A 0 bit makes the accumulator the left half, at place 0, a 1 bit the right one, at place 32.
        local.set(place, i32.shl(i32.and(local.get(position), i32.const(1)), i32.const(5))),
        ...copy(input, local.get(place)),
        ...copy(sibling, i32.sub(i32.const(32), local.get(place))),
        call(pairs, i32.const(PAIR), local.get(input), i32.const(1), local.get(prefix)),
        local.set(position, i32.shrU(local.get(position), i32.const(1))),
        branchIf(0, local.tee(height, i32.sub(local.get(height), i32.const(1)))),
      ),
    );
  });
}
