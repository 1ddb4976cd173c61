import type { FunctionFrame } from "./binary.ts";
import { type Code, i32, type Local, local, v128 } from "./instructions.ts";
import { LANES, TWIN_EFFECT, TWIN_ODD, TWIN_STATE } from "./layout.ts";

/** Where a lane is held: a local, or a fixed address in memory. */
export interface Place {
  readonly get: Code;
  set(value: Code): Code;
}

/** The places of a permutation: two states, since a round reads one and writes the other, and what a round needs in between. */
export interface Workspace {
  readonly even: readonly Place[];
  readonly odd: readonly Place[];
  readonly parity: readonly Place[];
  readonly effect: readonly Place[];
  readonly row: readonly Place[];
  readonly scratch: Place;
  /** Byte offset of the next round constant. */
  readonly constant: Local;
}

/** Everything in locals, for the compiler to place; what it spills to the stack are aligned words. */
export function scalarWorkspace(frame: FunctionFrame): Workspace {
  const places = (count: number) => frame.locals("i64", count).map(inLocal);
  return {
    even: places(LANES),
    odd: places(LANES),
    parity: places(5),
    effect: places(5),
    row: places(5),
    scratch: inLocal(frame.local("i64")),
    constant: frame.local("i32"),
  };
}

/**
 * The states in memory, and so much else that 15 vector registers hold the rest. With the states in locals the compiler spills
 * them to the stack, which V8 aligns to 8 bytes only: when a spilled vector happens to lie across a page boundary, which depends on
 * how deep the caller is in its own calls, the whole permutation takes half as long again. Memory is always aligned.
 */
export function vectorWorkspace(frame: FunctionFrame): Workspace {
  const places = (count: number) => frame.locals("v128", count).map(inLocal);
  const lanes = (address: number) => Array.from({ length: LANES }, (_, i) => inMemory(address + 16 * i));
  return {
    even: lanes(TWIN_STATE),
    odd: lanes(TWIN_ODD),
    parity: places(5),
    effect: [inMemory(TWIN_EFFECT), inMemory(TWIN_EFFECT + 16), ...places(3)],
    row: places(5),
    scratch: inLocal(frame.local("v128")),
    constant: frame.local("i32"),
  };
}

function inLocal(index: Local): Place {
  return { get: local.get(index), set: (value) => local.set(index, value) };
}

function inMemory(address: number): Place {
  const base = i32.const(0);
  return { get: v128.load(base, address), set: (value) => v128.store(base, value, address) };
}
