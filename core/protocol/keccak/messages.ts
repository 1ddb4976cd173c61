import type { Code, Local } from "./instructions.ts";
import { branchIf, call, either, i32, i64, local, loop, sequence, when } from "./instructions.ts";
import { PADDED, RATE, TWIN_STATE } from "./memory.ts";
import { type FunctionFrame, type WasmFunction, wasmFunction } from "./wasm-binary.ts";

const [ENDS, COUNT, START, DELTA, OUTPUT] = [0, 1, 2, 3, 4];

/** Moves to the next message: its address goes to `message`, its length to `length`. */
function takeNext(message: Local, length: Local): Code {
  return sequence(
    local.set(message, local.get(START)),
    local.set(START, i32.add(i32.load(local.get(ENDS)), local.get(DELTA))),
    local.set(length, i32.sub(local.get(START), local.get(message))),
    local.set(ENDS, i32.add(local.get(ENDS), i32.const(4))),
    local.set(COUNT, i32.sub(local.get(COUNT), i32.const(1))),
  );
}

/**
 * `(ends: i32, count: i32, start: i32, delta: i32, output: i32)`: hashes `count` messages, at least
 * one, packed from `start`. End offsets are at `ends`; `delta` turns one into an address. Two
 * messages are hashed at a time. Each half of the twin state hashes its own message and takes the
 * next one when done, so messages of different lengths keep both halves busy:
 *
 * ```
 *   low half    m0 m0 m2 m3 m3 m3
 *   high half   m1 m1 m1 m1 m4 –      one column is one permutation
 * ```
 */
export function messagesFunction(name: string, pad: number, absorbTwin: number): WasmFunction {
  return wasmFunction(name, ["i32", "i32", "i32", "i32", "i32"], (frame) => {
    const [low, high] = [new Half(frame, 0), new Half(frame, 1)];
    return sequence(
      low.take(),
      high.take(),
      loop(
        low.nextBlock(pad),
        high.nextBlock(pad),
        call(
          absorbTwin,
          local.get(low.block),
          local.get(high.block),
          local.get(low.keep),
          local.get(high.keep),
        ),
        low.finish(),
        high.finish(),
        // An idle half has length -1, any other one at least 0.
        branchIf(0, i32.geS(i32.and(local.get(low.length), local.get(high.length)), i32.const(0))),
      ),
    );
  });
}

/** The locals of one half of the twin state, and its code around a permutation. */
class Half {
  readonly #half: 0 | 1;
  /** The rest of the message; length -1 when there was none to take. */
  readonly #message: Local;
  readonly length: Local;
  readonly #digest: Local;
  readonly #last: Local;
  /** Address of the block to absorb next. */
  readonly block: Local;
  /** All ones if the block continues a message, 0 if it begins one. */
  readonly keep: Local;

  constructor(frame: FunctionFrame, half: 0 | 1) {
    this.#half = half;
    this.#message = frame.local("i32");
    this.length = frame.local("i32");
    this.#digest = frame.local("i32");
    this.#last = frame.local("i32");
    this.block = frame.local("i32");
    this.keep = frame.local("i64");
  }

  take(): Code {
    return either(
      local.get(COUNT),
      sequence(
        takeNext(this.#message, this.length),
        local.set(this.#digest, local.get(OUTPUT)),
        local.set(OUTPUT, i32.add(local.get(OUTPUT), i32.const(32))),
      ),
      local.set(this.length, i32.const(-1)),
    );
  }

  /**
   * Points `block` at the message's next block, or at a padded copy of the last one; for an idle
   * half, at any block.
   */
  nextBlock(pad: number): Code {
    const length = local.get(this.length);
    const padded = i32.const(PADDED[this.#half]);
    return sequence(
      local.set(this.#last, i32.leS(length, i32.const(RATE - 1))),
      either(
        local.get(this.#last),
        sequence(
          when(i32.geS(length, i32.const(0)), call(pad, local.get(this.#message), length, padded)),
          local.set(this.block, padded),
        ),
        sequence(
          local.set(this.block, local.get(this.#message)),
          local.set(this.#message, i32.add(local.get(this.#message), i32.const(RATE))),
          local.set(this.length, i32.sub(length, i32.const(RATE))),
        ),
      ),
    );
  }

  /** Writes the digest after the message's last block, and takes the next message. */
  finish(): Code {
    const copied = [0, 1, 2, 3].map((i) =>
      i64.store(
        local.get(this.#digest),
        i64.load(i32.const(0), TWIN_STATE + 16 * i + 8 * this.#half),
        8 * i,
      ),
    );
    const ends = i32.and(local.get(this.#last), i32.geS(local.get(this.length), i32.const(0)));
    return sequence(
      local.set(this.keep, i64.sub(i64.extendI32U(local.get(this.#last)), i64.const(1n))),
      when(ends, ...copied, this.take()),
    );
  }
}
