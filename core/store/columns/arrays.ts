/**
 * Columns of one request, zeroed. A small typed array of its own takes three objects, most of what a single mint would
 * keep until it is durable. So small columns are views of a common buffer, which lives as long as the last of them.
 */

/** Larger columns have buffers of their own. */
const SMALL = 16;
const SLAB_BYTES = 1 << 15;
let slab = new ArrayBuffer(SLAB_BYTES);
let used = 0;

/** The offset of `bytes` in the slab, a multiple of 8. */
function take(bytes: number): number {
  if (used + bytes > SLAB_BYTES) {
    slab = new ArrayBuffer(SLAB_BYTES);
    used = 0;
  }
  const at = used;
  used += (bytes + 7) & ~7;
  return at;
}

export function uint32s(count: number): Uint32Array {
  if (count > SMALL) return new Uint32Array(count);
  const at = take(4 * count);
  return new Uint32Array(slab, at, count);
}

export function float64s(count: number): Float64Array {
  if (count > SMALL) return new Float64Array(count);
  const at = take(8 * count);
  return new Float64Array(slab, at, count);
}

export function bytesOf(count: number): Uint8Array {
  if (count > 64 * SMALL) return new Uint8Array(count);
  const at = take(count);
  return new Uint8Array(slab, at, count);
}

let zero32 = new Uint32Array(1_024);
let zero64 = new Float64Array(1_024);
let zero8 = new Uint8Array(1_024);

/** At least so many zeros, shared: a column that nobody has written to. */
export function noUint32s(count: number): Uint32Array {
  if (count > zero32.length) zero32 = new Uint32Array(2 * count);
  return zero32;
}

export function noFloat64s(count: number): Float64Array {
  if (count > zero64.length) zero64 = new Float64Array(2 * count);
  return zero64;
}

export function noBytes(count: number): Uint8Array {
  if (count > zero8.length) zero8 = new Uint8Array(2 * count);
  return zero8;
}
