import type { FunctionFrame } from "./binary.ts";
import { branchIf, type Code, i32, type Local, local, loop, sequence } from "./instructions.ts";
import type { LaneKind } from "./lanes.ts";

/** Writes the permutation keccak-f[1600] (FIPS 202, section 3) as straight-line code over locals. Lane (x, y) has index x + 5y. */

export const LANES = 25;
const ROUNDS = 24;

/** Left rotation of each lane in rho (FIPS 202, table 2). */
const ROTATIONS = [
  0, 1, 62, 28, 27, 36, 44, 6, 55, 20, 3, 10, 43, 25, 39, 41, 45, 15, 21, 8, 18, 2, 61, 56, 14,
] as const;

const FIVE = [0, 1, 2, 3, 4] as const;

/** The constants of iota, 8 bytes each, little-endian, as the module's memory holds them (FIPS 202, algorithm 5). */
export function roundConstants(): Uint8Array {
  const bytes = new Uint8Array(8 * ROUNDS);
  let register = 1;
  for (let round = 0; round < ROUNDS; round++) {
    for (let j = 0; j <= 6; j++) {
      const bit = 2 ** j - 1;
      if (register & 1) bytes[8 * round + (bit >> 3)] = (bytes[8 * round + (bit >> 3)] ?? 0) | (1 << (bit & 7));
      register = (register << 1) ^ (register & 0x80 ? 0x171 : 0);
    }
  }
  return bytes;
}

/** A lane as the generator knows it: the local that holds it, and whether that holds the complement. */
export interface Lane {
  readonly local: Local;
  readonly complemented: boolean;
}

/** A state; `null` is a lane that is known to be zero, which costs nothing. */
export type State = readonly (Lane | null)[];

/** Locals for two states, since a round reads one and writes the other, and for what a round needs in between. */
interface Workspace {
  readonly even: readonly Local[];
  readonly odd: readonly Local[];
  readonly parity: readonly Local[];
  readonly effect: readonly Local[];
  readonly row: readonly Local[];
  readonly scratch: Local;
  /** Byte offset of the next round constant. */
  readonly constant: Local;
}

/** A permutation within one function. The caller fills {@link input}, places the code, and reads {@link input} again. */
export class Permutation {
  readonly #kind: LaneKind;
  readonly #space: Workspace;

  constructor(kind: LaneKind, frame: FunctionFrame) {
    this.#kind = kind;
    this.#space = {
      even: frame.locals(kind.type, LANES),
      odd: frame.locals(kind.type, LANES),
      parity: frame.locals(kind.type, 5),
      effect: frame.locals(kind.type, 5),
      row: frame.locals(kind.type, 5),
      scratch: frame.local(kind.type),
      constant: frame.local("i32"),
    };
  }

  /** The locals that hold the state before and after. */
  get input(): readonly Local[] {
    return this.#space.even;
  }

  /**
   * All 24 rounds: the first, which can skip lanes known to be zero; a loop of 11 times two, since a round reads the even locals and
   * writes the odd ones or the reverse; the last, which computes only the lanes asked for. Unrolling more than two rounds made it slower:
   * the code no longer fits where the processor keeps decoded instructions.
   *
   * @param zero - lanes of the input that are zero
   * @param outputs - lanes wanted, counted from lane 0; 1 to 5 or 25
   */
  code(zero: readonly number[] = [], outputs = LANES): Code {
    const { even, odd, constant } = this.#space;
    const plain = lanes(even, []);
    const between = this.#kind.complemented;
    const round = (from: State, to: State, offset: number, wanted = LANES) =>
      emitRound(this.#kind, this.#space, from, to, wanted, this.#kind.splatFrom(local.get(constant), offset));
    return sequence(
      local.set(constant, i32.const(0)),
      round(
        plain.map((lane, i) => (zero.includes(i) ? null : lane)),
        lanes(odd, between),
        0,
      ),
      loop(
        round(lanes(odd, between), lanes(even, between), 8),
        round(lanes(even, between), lanes(odd, between), 16),
        branchIf(
          0,
          i32.ltU(local.tee(constant, i32.add(local.get(constant), i32.const(16))), i32.const(8 * (ROUNDS - 2))),
        ),
      ),
      round(lanes(odd, between), plain, 8, outputs),
    );
  }
}

function lanes(locals: readonly Local[], complemented: readonly number[]): readonly Lane[] {
  return locals.map((index, i) => ({ local: index, complemented: complemented.includes(i) }));
}

/** One round, theta to iota. Every lane of `from` is read once after its column's parity, every lane of `to` written once. */
function emitRound(kind: LaneKind, space: Workspace, from: State, to: State, outputs: number, constant: Code): Code {
  const effects = emitTheta(kind, space, from);
  const rows = FIVE.filter((y) => 5 * y < outputs).map((y) => {
    const row = emitRhoPi(kind, space, from, effects.lanes, y);
    const wanted = to.slice(5 * y, Math.min(5 * y + 5, outputs));
    return sequence(
      row.code,
      ...wanted.map((lane, x) => emitChi(kind, row.lanes, x, lane, y === 0 && x === 0 ? constant : null)),
    );
  });
  return sequence(effects.code, ...rows);
}

/** Theta's effect on each column: D[x] = C[x-1] ^ (C[x+1] <<< 1), C[x] being the parity of column x. */
function emitTheta(kind: LaneKind, space: Workspace, from: State): { code: Code; lanes: readonly Lane[] } {
  const parities = FIVE.map((x) => {
    const column = FIVE.map((y) => from[x + 5 * y]).filter((lane) => lane != null);
    const sum = column.map((lane) => local.get(lane.local)).reduce(kind.xor);
    const complemented = column.filter((lane) => lane.complemented).length % 2 === 1;
    return { local: at(space.parity, x), complemented, code: local.set(at(space.parity, x), sum) };
  });
  const effects = FIVE.map((x) => {
    const left = at(parities, (x + 4) % 5);
    const right = at(parities, (x + 1) % 5);
    const value = kind.xor(local.get(left.local), kind.rotl(local.get(right.local), 1, space.scratch));
    const complemented = left.complemented !== right.complemented;
    return { local: at(space.effect, x), complemented, code: local.set(at(space.effect, x), value) };
  });
  return { code: [...parities, ...effects].map(({ code }) => code), lanes: effects };
}

/** Row y after rho and pi: its lane x is lane (x + 3y, x) of the round's input, with theta's effect, rotated. */
function emitRhoPi(
  kind: LaneKind,
  space: Workspace,
  from: State,
  effects: readonly Lane[],
  y: number,
): { code: Code; lanes: readonly Lane[] } {
  const row = FIVE.map((x) => {
    const column = (x + 3 * y) % 5;
    const source = from[column + 5 * x] ?? null;
    const effect = at(effects, column);
    const sum = source === null ? local.get(effect.local) : kind.xor(local.get(source.local), local.get(effect.local));
    const value = kind.rotl(sum, at(ROTATIONS, column + 5 * x), space.scratch);
    const complemented = effect.complemented !== (source?.complemented ?? false);
    return { local: at(space.row, x), complemented, code: local.set(at(space.row, x), value) };
  });
  return { code: row.map(({ code }) => code), lanes: row };
}

/**
 * Chi and iota for one lane: a ^ (~b & c) ^ constant. Which of the operands are held as complements decides what it costs: writing
 * b' for ~b, ~b & c is b' & c, and ~b & ~c' is ~(b | c'), the complement of one instruction.
 */
function emitChi(kind: LaneKind, row: readonly Lane[], x: number, to: Lane | null, constant: Code | null): Code {
  if (to === null) return [];
  const a = at(row, x);
  const b = at(row, (x + 1) % 5);
  const c = at(row, (x + 2) % 5);
  const [valueB, valueC] = [local.get(b.local), local.get(c.local)];
  const wanted = to.complemented !== a.complemented;
  // Where b and c are held alike, one of them has to be complemented, and the result can be had either way.
  const [product, complemented] =
    b.complemented === c.complemented
      ? wanted
        ? [b.complemented ? kind.or(kind.not(valueB), valueC) : kind.or(valueB, kind.not(valueC)), true]
        : [b.complemented ? kind.notAnd(valueC, valueB) : kind.notAnd(valueB, valueC), false]
      : b.complemented
        ? [kind.and(valueB, valueC), false]
        : [kind.or(valueB, valueC), true];
  const sum = kind.xor(local.get(a.local), complemented === wanted ? product : kind.not(product));
  return local.set(to.local, constant === null ? sum : kind.xor(sum, constant));
}

function at<T>(items: readonly T[], index: number): T {
  const item = items[index];
  if (item === undefined) throw new RangeError(`no item ${index}`);
  return item;
}
