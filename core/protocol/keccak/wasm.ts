import type { Keccak } from "./kernel.ts";
import { ENDS, INPUT, INPUT_BYTES, MAX_MESSAGES, OUTPUT, RATE } from "./memory.ts";
import { type KeccakExports, keccakModule } from "./module.ts";

/** The parts of the WebAssembly interface in use; absent where a runtime lacks or forbids it. */
interface WebAssemblyInterface {
  validate(bytes: Uint8Array<ArrayBuffer>): boolean;
  readonly Module: new (bytes: Uint8Array<ArrayBuffer>) => object;
  readonly Instance: new (module: object) => { readonly exports: unknown };
}

const CHUNK_PAIRS = INPUT_BYTES / 64;
const CHUNK_BLOCKS = Math.floor(INPUT_BYTES / RATE);

/**
 * An instance of the module; null when the runtime lacks an instruction or forbids WebAssembly. The
 * module itself is the probe. Each kernel owns one memory of 256 KiB; inputs of any size pass
 * through it in chunks.
 */
export function wasmKernel(): Keccak | null {
  compiled ??= { instantiate: compile() };
  return compiled.instantiate && new WasmKernel(compiled.instantiate());
}

let compiled: { readonly instantiate: (() => KeccakExports) | null } | undefined;

function compile(): (() => KeccakExports) | null {
  const engine = (globalThis as { readonly WebAssembly?: WebAssemblyInterface }).WebAssembly;
  const bytes = keccakModule();
  if (!engine?.validate(bytes)) return null;
  try {
    const module = new engine.Module(bytes);
    return () => new engine.Instance(module).exports as KeccakExports;
  } catch {
    return null;
  }
}

class WasmKernel implements Keccak {
  readonly name = "wasm";
  readonly #wasm: KeccakExports;
  readonly #memory: Uint8Array<ArrayBuffer>;
  readonly #ends: Uint32Array<ArrayBuffer>;

  constructor(wasm: KeccakExports) {
    this.#wasm = wasm;
    this.#memory = new Uint8Array(wasm.memory.buffer);
    this.#ends = new Uint32Array(wasm.memory.buffer, ENDS, MAX_MESSAGES);
  }

  keccak256(message: Uint8Array): Uint8Array<ArrayBuffer> {
    let rest = message;
    while (rest.length >= RATE) {
      const blocks = Math.min(CHUNK_BLOCKS, Math.floor(rest.length / RATE));
      this.#memory.set(rest.subarray(0, blocks * RATE), INPUT);
      this.#wasm.absorb(INPUT, blocks);
      rest = rest.subarray(blocks * RATE);
    }
    this.#memory.set(rest, INPUT);
    this.#wasm.finish(INPUT, rest.length, OUTPUT);
    return this.#memory.slice(OUTPUT, OUTPUT + 32);
  }

  hashPairs(input: Uint8Array, output: Uint8Array, count: number): void {
    for (let done = 0; done < count; done += CHUNK_PAIRS) {
      const chunk = Math.min(CHUNK_PAIRS, count - done);
      this.#memory.set(input.subarray(64 * done, 64 * (done + chunk)), INPUT);
      this.#pairsInPlace(chunk);
      output.set(this.#memory.subarray(INPUT, INPUT + 32 * chunk), 32 * done);
    }
  }

  /** Hashes pairs at INPUT in place: two at a time, an odd last one alone. */
  #pairsInPlace(count: number): void {
    const together = count & ~1;
    if (together > 0) this.#wasm.twinPairs(INPUT, INPUT, together);
    if (together < count)
      this.#wasm.pairs(INPUT + 64 * together, INPUT + 32 * together, count - together);
  }

  hashMessages(input: Uint8Array, ends: Uint32Array, output: Uint8Array): void {
    let start = 0;
    for (let done = 0; done < ends.length; ) {
      const count = messagesThatFit(ends, done, start);
      const last = done + count;
      if (count === 0) {
        const end = ends[done] ?? start;
        output.set(this.keccak256(input.subarray(start, end)), 32 * done);
        start = end;
        done++;
        continue;
      }
      const end = ends[last - 1] ?? start;
      this.#memory.set(input.subarray(start, end), INPUT);
      this.#ends.set(ends.subarray(done, last));
      this.#wasm.messages(ENDS, count, INPUT, INPUT - start, OUTPUT);
      output.set(this.#memory.subarray(OUTPUT, OUTPUT + 32 * count), 32 * done);
      start = end;
      done = last;
    }
  }

  foldPath(leaf: Uint8Array, position: number, siblings: Uint8Array): Uint8Array<ArrayBuffer> {
    this.#memory.set(leaf, INPUT);
    this.#memory.set(siblings, INPUT + 32);
    this.#wasm.fold(INPUT, siblings.length / 32, position);
    return this.#memory.slice(INPUT, INPUT + 32);
  }
}

/**
 * How many messages from `first` on fit a chunk, the first beginning at `start`; 0 when the first
 * is too long.
 */
function messagesThatFit(ends: Uint32Array, first: number, start: number): number {
  let low = 0;
  let high = Math.min(MAX_MESSAGES, ends.length - first);
  while (low < high) {
    const middle = (low + high + 1) >>> 1;
    if ((ends[first + middle - 1] ?? start) - start <= INPUT_BYTES) low = middle;
    else high = middle - 1;
  }
  return low;
}
