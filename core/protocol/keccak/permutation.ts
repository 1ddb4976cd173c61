import { branchIf, type Code, i32, local, loop, sequence } from "./instructions.ts";
import type { LaneKind, Place, Workspace } from "./lanes.ts";
import { LANES } from "./memory.ts";
import type { FunctionFrame } from "./wasm-binary.ts";

/** Generates keccak-f[1600] (FIPS 202, section 3) over places of one lane each. Lane (x, y) has index x + 5y. */

const ROUNDS = 24;

/** Left rotation of each lane in rho (FIPS 202, table 2). */
const ROTATIONS = [
  0, 1, 62, 28, 27, 36, 44, 6, 55, 20, 3, 10, 43, 25, 39, 41, 45, 15, 21, 8, 18, 2, 61, 56, 14,
] as const;

const FIVE = [0, 1, 2, 3, 4] as const;

/** The constants of iota, 8 bytes each, little-endian, as in the module's memory (FIPS 202, algorithm 5). */
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

/** A state. `null` is a lane known to be zero, which costs nothing. */
type State = readonly (Place | null)[];

/** A permutation in one function. The caller fills {@link Permutation.state}, inserts the code, and reads the state. */
export class Permutation {
  readonly #kind: LaneKind;
  readonly #space: Workspace;

  constructor(kind: LaneKind, frame: FunctionFrame) {
    this.#kind = kind;
    this.#space = kind.workspace(frame);
  }

  get state(): readonly Place[] {
    return this.#space.even;
  }

  /**
   * All 24 rounds: the first skips lanes known to be zero; then a loop of 11 times two, since rounds alternate between
   * the even and odd places; the last computes only the wanted lanes. Unrolling the vector code further made it slower,
   * because it no longer fits the processor's cache of decoded instructions.
   *
   * @param zero - lanes of the input that are zero
   * @param outputs - number of wanted lanes, from lane 0; 1 to 5 or 25
   */
  code(zero: readonly number[] = [], outputs = LANES): Code {
    const { even, odd, parity, constant } = this.#space;
    const input = even.map((place, i) => (zero.includes(i) ? null : place));
    const parities = parity.map((place, x) => {
      const column = FIVE.map((y) => input[x + 5 * y]).filter((lane) => lane != null);
      return place.set(column.map((lane) => lane.get).reduce(this.#kind.xor));
    });
    const next = i32.add(local.get(constant), i32.const(16));
    return sequence(
      local.set(constant, i32.const(0)),
      ...parities,
      this.#round(input, odd, 0),
      loop(
        this.#round(odd, even, 8),
        this.#round(even, odd, 16),
        branchIf(0, i32.ltU(local.tee(constant, next), i32.const(8 * (ROUNDS - 2)))),
      ),
      this.#round(odd, even.slice(0, outputs), 8, true),
    );
  }

  /**
   * One round, theta to iota, one row of the result at a time.
   *
   * @param offset - of the round constant, in bytes from the local that counts them
   */
  #round(from: State, to: readonly Place[], offset: number, isLast = false): Code {
    const kind = this.#kind;
    const { parity, effect, row, scratch, constant } = this.#space;
    const iota = kind.splatFrom(local.get(constant), offset);
    // Theta's effect on each column: D[x] = C[x-1] ^ (C[x+1] <<< 1).
    const theta = FIVE.map((x) => {
      const turned = kind.rotl(at(parity, (x + 1) % 5).get, 1, scratch);
      return at(effect, x).set(kind.xor(at(parity, (x + 4) % 5).get, turned));
    });
    const rows = FIVE.filter((y) => 5 * y < to.length).map((y) => {
      // Row y after rho and pi: its lane x is lane (x + 3y, x) of the input with theta's effect, rotated.
      const turned = FIVE.map((x) => {
        const column = (x + 3 * y) % 5;
        const added = at(effect, column).get;
        const source = from[column + 5 * x] ?? null;
        const sum = source === null ? added : kind.xor(source.get, added);
        return at(row, x).set(kind.rotl(sum, at(ROTATIONS, column + 5 * x), scratch));
      });
      // Chi: a ^ (~b & c).
      const results = to.slice(5 * y, 5 * y + 5).map((place, x) => {
        const product = kind.notAnd(at(row, (x + 1) % 5).get, at(row, (x + 2) % 5).get);
        const chi = kind.xor(at(row, x).get, product);
        const result = x === 0 && y === 0 ? kind.xor(chi, iota) : chi;
        if (isLast) return place.set(result);
        // Adds it to its column's parity for the next round while it is at hand.
        const sum = at(parity, x);
        const added = y === 0 ? scratch.get : kind.xor(sum.get, scratch.get);
        return sequence(scratch.set(result), place.set(scratch.get), sum.set(added));
      });
      return sequence(...turned, ...results);
    });
    return sequence(...theta, ...rows);
  }
}

function at<T>(items: readonly T[], index: number): T {
  const item = items[index];
  if (item === undefined) throw new RangeError(`no item ${index}`);
  return item;
}
