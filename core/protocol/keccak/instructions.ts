/**
 * The WebAssembly instructions of the keccak module, as functions from operands to bytes.
 * `i64.xor(local.get(a), i64.const(1n))` gives `local.get a; i64.const 1; i64.xor`.
 *
 * Opcodes: WebAssembly core specification 2.0, chapter 5.4
 * (https://webassembly.github.io/spec/core/binary/instructions.html).
 */

/**
 * Encoded instructions as nested bytes, so composing copies nothing; {@link encoded} flattens them.
 * An expression leaves one value on the stack, a statement none.
 */
export type Code = readonly (number | Code)[];

/** Index of a parameter or local of a function. */
export type Local = number;

export function sequence(...parts: readonly Code[]): Code {
  return parts;
}

export function encoded(code: Code): number[] {
  const bytes: number[] = [];
  const append = (part: Code): void => {
    for (const item of part) {
      if (typeof item === "number") bytes.push(item);
      else append(item);
    }
  };
  append(code);
  return bytes;
}

/** Unsigned LEB128: seven bits a byte, lowest first, the high bit set on all but the last. */
export function unsignedLeb(value: number): Code {
  const bytes: number[] = [];
  for (let rest = value; ; rest >>>= 7) {
    if (rest < 0x80) return [...bytes, rest];
    bytes.push((rest & 0x7f) | 0x80);
  }
}

/** Signed LEB128: as unsigned, but bit 6 of the last byte is the sign. */
function signedLeb(value: bigint): Code {
  const bytes: number[] = [];
  for (let rest = value; ; rest >>= 7n) {
    const low = Number(rest & 0x7fn);
    const ends = rest >> 6n === 0n || rest >> 6n === -1n;
    bytes.push(ends ? low : low | 0x80);
    if (ends) return bytes;
  }
}

export const local = {
  get: (index: Local): Code => [0x20, unsignedLeb(index)],
  set: (index: Local, value: Code): Code => [value, 0x21, unsignedLeb(index)],
  /** Sets and leaves the value on the stack. */
  tee: (index: Local, value: Code): Code => [value, 0x22, unsignedLeb(index)],
};

/**
 * A load or store. The alignment hint is always 0, since nothing depends on it; the offset is added
 * to the address.
 */
function access(opcode: Code, operands: Code, offset: number): Code {
  return [operands, opcode, 0, unsignedLeb(offset)];
}

function binary(opcode: number): (left: Code, right: Code) => Code {
  return (left, right) => [left, right, opcode];
}

export const i32 = {
  const: (value: number): Code => [0x41, signedLeb(BigInt(value | 0))],
  load: (address: Code, offset = 0): Code => access([0x28], address, offset),
  ltU: binary(0x49),
  leS: binary(0x4c),
  geS: binary(0x4e),
  add: binary(0x6a),
  sub: binary(0x6b),
  and: binary(0x71),
  shl: binary(0x74),
  shrU: binary(0x76),
};

export const i64 = {
  const: (value: bigint): Code => [0x42, signedLeb(BigInt.asIntN(64, value))],
  load: (address: Code, offset = 0): Code => access([0x29], address, offset),
  store: (address: Code, value: Code, offset = 0): Code => access([0x37], [address, value], offset),
  extendI32U: (value: Code): Code => [value, 0xad],
  sub: binary(0x7d),
  and: binary(0x83),
  or: binary(0x84),
  xor: binary(0x85),
  shl: binary(0x86),
  shrU: binary(0x88),
  rotl: binary(0x89),
  not: (value: Code): Code => i64.xor(value, i64.const(-1n)),
};

function simd(opcode: number): Code {
  return [0xfd, unsignedLeb(opcode)];
}

function vectorBinary(opcode: number): (left: Code, right: Code) => Code {
  return (left, right) => [left, right, simd(opcode)];
}

export const v128 = {
  load: (address: Code, offset = 0): Code => access(simd(0x00), address, offset),
  store: (address: Code, value: Code, offset = 0): Code =>
    access(simd(0x0b), [address, value], offset),
  /** Both halves from the same eight bytes. */
  load64Splat: (address: Code, offset = 0): Code => access(simd(0x0a), address, offset),
  /** The low half from memory; the high half is zero. */
  load64Zero: (address: Code, offset = 0): Code => access(simd(0x5d), address, offset),
  /** `vector` with its high half replaced from memory. */
  load64High: (address: Code, vector: Code, offset = 0): Code => [
    access(simd(0x57), [address, vector], offset),
    1,
  ],
  /** Writes one half; 0 is the low one. */
  store64Half: (half: 0 | 1, address: Code, vector: Code, offset = 0): Code => [
    access(simd(0x5b), [address, vector], offset),
    half,
  ],
  andNot: vectorBinary(0x4f),
  and: vectorBinary(0x4e),
  or: vectorBinary(0x50),
  xor: vectorBinary(0x51),
};

/** The two 64-bit halves of a vector. */
export const i64x2 = {
  splat: (value: Code): Code => [value, simd(0x12)],
  replaceHigh: (vector: Code, value: Code): Code => [vector, value, simd(0x1e), 1],
  /** Shifts both halves by the same number of bits, an i32. */
  shl: vectorBinary(0xcb),
  shrU: vectorBinary(0xcd),
};

/** Runs the body once. `branchIf(0, …)` inside restarts it. */
export function loop(...body: readonly Code[]): Code {
  return [0x03, 0x40, ...body, 0x0b];
}

export function either(condition: Code, then: Code, otherwise: Code): Code {
  return [condition, 0x04, 0x40, then, 0x05, otherwise, 0x0b];
}

export function when(condition: Code, ...then: readonly Code[]): Code {
  return [condition, 0x04, 0x40, then, 0x0b];
}

/**
 * If the condition is not zero, branches to the label `depth` levels out; for a loop, to its start.
 */
export function branchIf(depth: number, condition: Code): Code {
  return [condition, 0x0d, unsignedLeb(depth)];
}

/** Calls a function of the module by index, with the operands as arguments. */
export function call(index: number, ...operands: readonly Code[]): Code {
  return [operands, 0x10, unsignedLeb(index)];
}
