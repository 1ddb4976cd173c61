import type { FunctionFrame } from "./binary.ts";
import { type Code, i32, i64, i64x2, v128 } from "./instructions.ts";
import { type Place, scalarWorkspace, vectorWorkspace, type Workspace } from "./workspace.ts";

/**
 * What one lane of the keccak state is held in: 64 bits of one state, or 64 bits each of two independent states that are permuted
 * together. The generators in this folder are written once, over this interface.
 */
export interface LaneKind {
  /** States that are permuted at once. */
  readonly states: 1 | 2;
  /**
   * Lanes that are kept complemented between rounds. Without an and-not instruction, chi costs a complement a lane; with these
   * six lanes complemented, one a row (Keccak implementation overview 3.2, section 2.2, "lane complementing").
   */
  readonly complemented: readonly number[];
  /** Whether a round adds up the column parities of what it writes, or the next one reads it all again; whichever is faster. */
  readonly accumulatesParities: boolean;
  /** The places that a permutation works in, within one function. */
  workspace(frame: FunctionFrame): Workspace;
  xor(left: Code, right: Code): Code;
  and(left: Code, right: Code): Code;
  or(left: Code, right: Code): Code;
  not(value: Code): Code;
  /** `~left & right`. */
  notAnd(left: Code, right: Code): Code;
  shl(value: Code, bits: number): Code;
  shrU(value: Code, bits: number): Code;
  /** Rotates towards the high bits, 0 to 63. */
  rotl(value: Code, bits: number, scratch: Place): Code;
  /** The same 64 bits in every state. */
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

/** Two states, in the halves of 128-bit vectors. There is no vector rotation, so that one costs two shifts. */
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
          v128.or(i64x2.shl(scratch.get, i32.const(bits)), i64x2.shrU(scratch.get, i32.const(64 - bits))),
        ],
  splat: i64x2.splat,
  splatFrom: v128.load64Splat,
  gather: ([low = [], high = []], offset) => v128.load64High(high, v128.load64Zero(low, offset), offset),
  scatter: ([low = [], high = []], value, offset) => [
    v128.store64Half(0, low, value, offset),
    v128.store64Half(1, high, value, offset),
  ],
};
