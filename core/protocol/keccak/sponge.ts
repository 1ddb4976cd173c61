import { branchIf, call, i32, i64, i64x2, local, loop, sequence, when } from "./instructions.ts";
import { scalarLanes, vectorLanes } from "./lanes.ts";
import { LANES, PADDED, RATE, STATE } from "./memory.ts";
import { Permutation } from "./permutation.ts";
import { type WasmFunction, wasmFunction } from "./wasm-binary.ts";

const RATE_LANES = RATE / 8;
const DIGEST_OFFSETS = [0, 8, 16, 24];

/**
 * `(input: i32, length: i32, block: i32)`: copies the last `length` bytes of a message, 0 to 135,
 * to a block and pads it for keccak-256 (not SHA-3): 0x01 after the message, 0x80 in the last byte.
 * Reads up to 7 bytes past the message.
 */
export function padFunction(name: string): WasmFunction {
  return wasmFunction(name, ["i32", "i32", "i32"], (frame) => {
    const [input, length, block] = [0, 1, 2];
    const offset = frame.local("i32");
    const bits = frame.local("i64");
    const message = i64.load(i32.add(local.get(input), local.get(offset)));
    const copied = i64.store(i32.add(local.get(block), local.get(offset)), message);
    // The lane with the message's end: its bytes below `bits`, then 0x01.
    const one = i64.shl(i64.const(1n), local.get(bits));
    const end = i64.or(i64.and(message, i64.sub(one, i64.const(1n))), one);
    const next = local.tee(offset, i32.add(local.get(offset), i32.const(8)));
    return sequence(
      ...Array.from({ length: RATE_LANES }, (_, i) =>
        i64.store(local.get(block), i64.const(0n), 8 * i),
      ),
      when(
        i32.shrU(local.get(length), i32.const(3)),
        loop(copied, branchIf(0, i32.ltU(next, i32.and(local.get(length), i32.const(-8))))),
      ),
      local.set(
        bits,
        i64.shl(i64.extendI32U(i32.and(local.get(length), i32.const(7))), i64.const(3n)),
      ),
      i64.store(i32.add(local.get(block), local.get(offset)), end),
      i64.store(
        local.get(block),
        i64.xor(i64.load(local.get(block), RATE - 8), i64.const(1n << 63n)),
        RATE - 8,
      ),
    );
  });
}

/** `(input: i32, blocks: i32)`: absorbs one or more whole blocks into the resting scalar state. */
export function absorbFunction(name: string): WasmFunction {
  return wasmFunction(name, ["i32", "i32"], (frame) => {
    const [input, blocks] = [0, 1];
    const permutation = new Permutation(scalarLanes, frame);
    const state = permutation.state;
    const base = i32.const(0);
    return sequence(
      ...state.map((place, i) => place.set(i64.load(base, STATE + 8 * i))),
      loop(
        ...state
          .slice(0, RATE_LANES)
          .map((place, i) => place.set(i64.xor(place.get, i64.load(local.get(input), 8 * i)))),
        permutation.code(),
        local.set(input, i32.add(local.get(input), i32.const(RATE))),
        branchIf(0, local.tee(blocks, i32.sub(local.get(blocks), i32.const(1)))),
      ),
      ...state.map((place, i) => i64.store(base, place.get, STATE + 8 * i)),
    );
  });
}

/**
 * `(input: i32, length: i32, output: i32)`: absorbs the last `length` bytes of a message, 0 to 135,
 * writes its digest, and resets the resting state to zero.
 */
export function finishFunction(name: string, pad: number, absorb: number): WasmFunction {
  return wasmFunction(name, ["i32", "i32", "i32"], () => {
    const [input, length, output] = [0, 1, 2];
    const base = i32.const(0);
    return sequence(
      call(pad, local.get(input), local.get(length), i32.const(PADDED[0])),
      call(absorb, i32.const(PADDED[0]), i32.const(1)),
      ...DIGEST_OFFSETS.map((offset) =>
        i64.store(local.get(output), i64.load(base, STATE + offset), offset),
      ),
      ...Array.from({ length: LANES }, (_, i) => i64.store(base, i64.const(0n), STATE + 8 * i)),
    );
  });
}

/**
 * `(low: i32, high: i32, keepLow: i64, keepHigh: i64)`: absorbs one block into each half of the
 * twin state. `keep` is all ones to continue a message, 0 to begin one.
 */
export function absorbTwinFunction(name: string): WasmFunction {
  return wasmFunction(name, ["i32", "i32", "i64", "i64"], (frame) => {
    const [low, high, keepLow, keepHigh] = [0, 1, 2, 3];
    const kind = vectorLanes;
    const permutation = new Permutation(kind, frame);
    const keep = frame.local("v128");
    const blocks = [local.get(low), local.get(high)];
    return sequence(
      local.set(keep, i64x2.replaceHigh(i64x2.splat(local.get(keepLow)), local.get(keepHigh))),
      ...permutation.state.map((place, i) => {
        const kept = kind.and(place.get, local.get(keep));
        return place.set(i < RATE_LANES ? kind.xor(kept, kind.gather(blocks, 8 * i)) : kept);
      }),
      permutation.code(),
    );
  });
}
