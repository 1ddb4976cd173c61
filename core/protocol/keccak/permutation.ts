import { branchIf, type Code, i32, local, loop, sequence } from "./instructions.ts";
import type { LaneKind, LanePlace, Workspace } from "./lanes.ts";
import { LANES } from "./memory.ts";
import type { FunctionFrame } from "./wasm-binary.ts";

/**
 * Generates keccak-f[1600] (FIPS 202, section 3) over places of one lane each. Lane (x, y) has
 * index x + 5y.
 */

const ROUNDS = 24;

/** Left rotation of each lane in rho (FIPS 202, table 2). */
const ROTATIONS = [
  0, 1, 62, 28, 27, 36, 44, 6, 55, 20, 3, 10, 43, 25, 39, 41, 45, 15, 21, 8, 18, 2, 61, 56, 14,
] as const;

const FIVE = [0, 1, 2, 3, 4] as const;

/**
 * The constants of iota, 8 bytes each, little-endian, as in the module's memory (FIPS 202,
 * algorithm 5).
 */
export function roundConstants(): Uint8Array {
  const bytes = new Uint8Array(8 * ROUNDS);
  let register = 1;
  for (let round = 0; round < ROUNDS; round++) {
    for (let j = 0; j <= 6; j++) {
      const bit = 2 ** j - 1;
      if (register & 1)
        bytes[8 * round + (bit >> 3)] = (bytes[8 * round + (bit >> 3)] ?? 0) | (1 << (bit & 7));
      register = (register << 1) ^ (register & 0x80 ? 0x171 : 0);
    }
  }
  return bytes;
}

/** A lane in the generator: its place, and whether the place holds its complement. */
export interface Lane {
  readonly place: LanePlace;
  readonly complemented: boolean;
}

/** A state. `null` is a lane known to be zero, which costs nothing. */
export type State = readonly (Lane | null)[];

/**
 * A permutation in one function. The caller fills {@link Permutation.state}, inserts the code, and
 * reads the state.
 */
export class Permutation {
  readonly kind: LaneKind;
  readonly space: Workspace;

  constructor(kind: LaneKind, frame: FunctionFrame) {
    this.kind = kind;
    this.space = kind.workspace(frame);
  }

  get state(): readonly LanePlace[] {
    return this.space.even;
  }

  /**
   * All 24 rounds: the first skips lanes known to be zero; then a loop of 11 times two, since
   * rounds alternate between the even and odd places; the last computes only the wanted lanes.
   * Unrolling the vector code further made it slower, because it no longer fits the processor's
   * cache of decoded instructions.
   *
   * @param zero - lanes of the input that are zero
   * @param outputs - number of wanted lanes, from lane 0; 1 to 5 or 25
   */
  code(zero: readonly number[] = [], outputs = LANES): Code {
    const { even, odd, constant } = this.space;
    const plain = lanes(even, []);
    const [evenBetween, oddBetween] = [
      lanes(even, this.kind.complemented),
      lanes(odd, this.kind.complemented),
    ];
    const input = plain.map((lane, i) => (zero.includes(i) ? null : lane));
    const next = i32.add(local.get(constant), i32.const(16));
    return sequence(
      local.set(constant, i32.const(0)),
      emitRound(this, input, oddBetween, "first", 0),
      loop(
        emitRound(this, oddBetween, evenBetween, "between", 8),
        emitRound(this, evenBetween, oddBetween, "between", 16),
        branchIf(0, i32.ltU(local.tee(constant, next), i32.const(8 * (ROUNDS - 2)))),
      ),
      emitRound(this, oddBetween, plain.slice(0, outputs), "last", 8),
    );
  }
}

function lanes(places: readonly LanePlace[], complemented: readonly number[]): readonly Lane[] {
  return places.map((place, i) => ({ place, complemented: complemented.includes(i) }));
}

type RoundPosition = "first" | "between" | "last";

/** Instructions, and the lanes that they set. */
interface Emitted {
  readonly code: Code;
  readonly lanes: readonly Lane[];
}

/**
 * One round, theta to iota, one row of the result at a time.
 *
 * @param offset - of the round constant, in bytes from the local that counts them
 */
function emitRound(
  on: Permutation,
  from: State,
  to: readonly Lane[],
  position: RoundPosition,
  offset: number,
): Code {
  const { kind, space } = on;
  const parities = columnParities(space, from);
  const effects = emitTheta(on, parities);
  const accumulates = kind.accumulatesParities && position !== "last";
  const constant = kind.splatFrom(local.get(space.constant), offset);
  const rows = FIVE.filter((y) => 5 * y < to.length).map((y) => {
    const row = emitRhoPi(on, from, effects.lanes, y);
    const results = to.slice(5 * y, 5 * y + 5).map((lane, x) => {
      const value = emitChi(kind, row.lanes, x, lane.complemented);
      const result = x === 0 && y === 0 ? kind.xor(value, constant) : value;
      return accumulates ? emitResult(on, lane.place, result, x, y) : lane.place.set(result);
    });
    return sequence(row.code, ...results);
  });
  // The previous round has accumulated the parities of its output.
  const known = kind.accumulatesParities && position !== "first";
  return sequence(known ? [] : emitParities(kind, parities, from), effects.code, ...rows);
}

/**
 * Writes a lane of a round's result. Adds it to its column's parity for the next round while it is
 * at hand.
 */
function emitResult(
  { kind, space }: Permutation,
  to: LanePlace,
  value: Code,
  x: number,
  y: number,
): Code {
  const parity = at(space.parity, x);
  const fresh = space.scratch;
  return sequence(
    fresh.set(value),
    to.set(fresh.get),
    parity.set(y === 0 ? fresh.get : kind.xor(parity.get, fresh.get)),
  );
}

/** C[x], the parities of the columns, for theta. */
function columnParities(space: Workspace, from: State): readonly Lane[] {
  return FIVE.map((x) => {
    const complements = FIVE.filter((y) => from[x + 5 * y]?.complemented);
    return { place: at(space.parity, x), complemented: complements.length % 2 === 1 };
  });
}

function emitParities(kind: LaneKind, parities: readonly Lane[], from: State): Code {
  return parities.map(({ place }, x) => {
    const column = FIVE.map((y) => from[x + 5 * y]).filter((lane) => lane != null);
    return place.set(column.map((lane) => lane.place.get).reduce(kind.xor));
  });
}

/** Theta's effect on each column: D[x] = C[x-1] ^ (C[x+1] <<< 1). */
function emitTheta({ kind, space }: Permutation, parities: readonly Lane[]): Emitted {
  const effects = FIVE.map((x) => {
    const left = at(parities, (x + 4) % 5);
    const right = at(parities, (x + 1) % 5);
    const place = at(space.effect, x);
    const value = kind.xor(left.place.get, kind.rotl(right.place.get, 1, space.scratch));
    return {
      place,
      complemented: left.complemented !== right.complemented,
      code: place.set(value),
    };
  });
  return { code: effects.map(({ code }) => code), lanes: effects };
}

/**
 * Row y after rho and pi: its lane x is lane (x + 3y, x) of the round's input with theta's effect,
 * rotated.
 */
function emitRhoPi(
  { kind, space }: Permutation,
  from: State,
  effects: readonly Lane[],
  y: number,
): Emitted {
  const row = FIVE.map((x) => {
    const column = (x + 3 * y) % 5;
    const source = from[column + 5 * x] ?? null;
    const effect = at(effects, column);
    const place = at(space.row, x);
    const sum = source === null ? effect.place.get : kind.xor(source.place.get, effect.place.get);
    const value = kind.rotl(sum, at(ROTATIONS, column + 5 * x), space.scratch);
    const complemented = effect.complemented !== (source?.complemented ?? false);
    return { place, complemented, code: place.set(value) };
  });
  return { code: row.map(({ code }) => code), lanes: row };
}

/**
 * Chi for one lane, an expression: a ^ (~b & c), or its complement. The cost depends on which
 * operands are complemented: with b' for ~b, ~b & c is b' & c, and ~b & ~c' is ~(b | c'), the
 * complement of one instruction.
 */
function emitChi(kind: LaneKind, row: readonly Lane[], x: number, complement: boolean): Code {
  const a = at(row, x);
  const b = at(row, (x + 1) % 5);
  const c = at(row, (x + 2) % 5);
  const [valueB, valueC] = [b.place.get, c.place.get];
  const wanted = complement !== a.complemented;
  // If both or neither of b and c are complemented, one must be inverted; the result is possible
  // either way.
  const [product, complemented] =
    b.complemented === c.complemented
      ? wanted
        ? [
            b.complemented ? kind.or(kind.not(valueB), valueC) : kind.or(valueB, kind.not(valueC)),
            true,
          ]
        : [b.complemented ? kind.notAnd(valueC, valueB) : kind.notAnd(valueB, valueC), false]
      : b.complemented
        ? [kind.and(valueB, valueC), false]
        : [kind.or(valueB, valueC), true];
  return kind.xor(a.place.get, complemented === wanted ? product : kind.not(product));
}

function at<T>(items: readonly T[], index: number): T {
  const item = items[index];
  if (item === undefined) throw new RangeError(`no item ${index}`);
  return item;
}
