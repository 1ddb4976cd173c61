import { type Code, i32, i64, i64x2, type Local, local, v128 } from "./instructions.ts";
import { LANES, TWIN_EFFECT, TWIN_ODD, TWIN_STATE } from "./memory.ts";
import type { FunctionFrame } from "./wasm-binary.ts";

/**
 * The type of a lane of the keccak state: 64 bits of one state, or 64 bits each of two independent
 * states, permuted together. The generators in this folder use this interface for both.
 */
export interface LaneKind {
  readonly states: 1 | 2;
  /**
   * Lanes kept complemented between rounds. Without an and-not instruction, chi costs one
   * complement per lane; with these six, one per row (Keccak implementation overview 3.2, section
   * 2.2, "lane complementing").
   */
  readonly complemented: readonly number[];
  /**
   * Whether a round accumulates its output's column parities, or the next round reads it all again.
   * Measured.
   */
  readonly accumulatesParities: boolean;
  /** Allocates the places of a permutation in one function. */
  workspace(frame: FunctionFrame): Workspace;
  xor(left: Code, right: Code): Code;
  and(left: Code, right: Code): Code;
  or(left: Code, right: Code): Code;
  not(value: Code): Code;
  notAnd(left: Code, right: Code): Code;
  shl(value: Code, bits: number): Code;
  shrU(value: Code, bits: number): Code;
  /** Rotates towards the high bits, 0 to 63. */
  rotl(value: Code, bits: number, scratch: LanePlace): Code;
  /** Puts 64 bits into every state. */
  splat(value: Code): Code;
  /** {@link splat} of 8 bytes in memory. */
  splatFrom(address: Code, offset?: number): Code;
  /** 8 bytes from one address a state. */
  gather(addresses: readonly Code[], offset: number): Code;
  /** Writes 8 bytes to one address a state. */
  scatter(addresses: readonly Code[], value: Code, offset: number): Code;
}

/** One state, in 64-bit integers. */
export const scalarLanes: LaneKind = {
  states: 1,
  complemented: [1, 2, 8, 12, 17, 20],
  accumulatesParities: false,
  workspace: scalarWorkspace,
  xor: i64.xor,
  and: i64.and,
  or: i64.or,
  not: i64.not,
  notAnd: (left, right) => i64.and(i64.not(left), right),
  shl: (value, bits) => i64.shl(value, i64.const(BigInt(bits))),
  shrU: (value, bits) => i64.shrU(value, i64.const(BigInt(bits))),
  rotl: (value, bits) => (bits === 0 ? value : i64.rotl(value, i64.const(BigInt(bits)))),
  splat: (value) => value,
  splatFrom: i64.load,
  gather: ([address = []], offset) => i64.load(address, offset),
  scatter: ([address = []], value, offset) => i64.store(address, value, offset),
};

/**
 * Two states in the halves of 128-bit vectors. There is no vector rotation, so a rotation costs two
 * shifts.
 */
export const vectorLanes: LaneKind = {
  states: 2,
  complemented: [],
  accumulatesParities: true,
  workspace: vectorWorkspace,
  xor: v128.xor,
  and: v128.and,
  or: v128.or,
  not: (value) => v128.xor(value, i64x2.splat(i64.const(-1n))),
  notAnd: (left, right) => v128.andNot(right, left),
  shl: (value, bits) => i64x2.shl(value, i32.const(bits)),
  shrU: (value, bits) => i64x2.shrU(value, i32.const(bits)),
  rotl: (value, bits, scratch) =>
    bits === 0
      ? value
      : [
          scratch.set(value),
          v128.or(
            i64x2.shl(scratch.get, i32.const(bits)),
            i64x2.shrU(scratch.get, i32.const(64 - bits)),
          ),
        ],
  splat: i64x2.splat,
  splatFrom: v128.load64Splat,
  gather: ([low = [], high = []], offset) =>
    v128.load64High(high, v128.load64Zero(low, offset), offset),
  scatter: ([low = [], high = []], value, offset) => [
    v128.store64Half(0, low, value, offset),
    v128.store64Half(1, high, value, offset),
  ],
};

/** The place of a lane: a local, or a fixed address in memory. */
export interface LanePlace {
  readonly get: Code;
  set(value: Code): Code;
}

/**
 * The places of a permutation: two states, because a round reads one and writes the other, and
 * temporaries.
 */
export interface Workspace {
  readonly even: readonly LanePlace[];
  readonly odd: readonly LanePlace[];
  readonly parity: readonly LanePlace[];
  readonly effect: readonly LanePlace[];
  readonly row: readonly LanePlace[];
  readonly scratch: LanePlace;
  /** Byte offset of the next round constant. */
  readonly constant: Local;
}

/** Everything in locals. The compiler spills them to the stack as aligned words. */
function scalarWorkspace(frame: FunctionFrame): Workspace {
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
 * The states in memory, so that the rest fits 15 vector registers. With the states in locals, the
 * compiler spills them to the stack, which V8 aligns to 8 bytes only. A spilled vector can then
 * cross a page boundary, depending on the caller's stack depth, and the permutation takes half as
 * long again. Memory is always aligned.
 */
function vectorWorkspace(frame: FunctionFrame): Workspace {
  const places = (count: number) => frame.locals("v128", count).map(inLocal);
  const lanes = (address: number) =>
    Array.from({ length: LANES }, (_, i) => inMemory(address + 16 * i));
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

function inLocal(index: Local): LanePlace {
  return { get: local.get(index), set: (value) => local.set(index, value) };
}

function inMemory(address: number): LanePlace {
  const base = i32.const(0);
  return { get: v128.load(base, address), set: (value) => v128.store(base, value, address) };
}
