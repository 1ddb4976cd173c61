import { scalarLanes, vectorLanes } from "./lanes.ts";
import { CONSTANTS, MEMORY_PAGES } from "./memory.ts";
import { messagesFunction } from "./messages.ts";
import { foldFunction, pairsFunction } from "./pairs.ts";
import { roundConstants } from "./permutation.ts";
import { absorbFunction, absorbTwinFunction, finishFunction, padFunction } from "./sponge.ts";
import { encodeModule, type WasmFunction } from "./wasm-binary.ts";

/**
 * The module's exports. Arguments are addresses in its memory, or counts; see the files of the
 * functions.
 */
export interface KeccakExports {
  readonly memory: { readonly buffer: ArrayBuffer };
  readonly pairs: (input: number, output: number, count: number) => void;
  readonly fold: (input: number, height: number, position: number) => void;
  readonly absorb: (input: number, blocks: number) => void;
  readonly finish: (input: number, length: number, output: number) => void;
  /** `count` is even. */
  readonly twinPairs: (input: number, output: number, count: number) => void;
  readonly messages: (
    ends: number,
    count: number,
    start: number,
    delta: number,
    output: number,
  ) => void;
}

/** Generates the module: about 20 KB. */
export function keccakModule(): Uint8Array<ArrayBuffer> {
  const functions: WasmFunction[] = [];
  // A call names a function's index, so callees come first.
  const define = (written: WasmFunction): number => functions.push(written) - 1;
  const pairs = define(pairsFunction("pairs", scalarLanes));
  define(foldFunction("fold", pairs));
  const pad = define(padFunction("pad"));
  const absorb = define(absorbFunction("absorb"));
  define(finishFunction("finish", pad, absorb));
  define(pairsFunction("twinPairs", vectorLanes));
  const absorbTwin = define(absorbTwinFunction("absorbTwin"));
  define(messagesFunction("messages", pad, absorbTwin));
  const data = new Uint8Array(CONSTANTS + roundConstants().length);
  data.set(roundConstants(), CONSTANTS);
  return encodeModule({ functions, memoryPages: MEMORY_PAGES, data });
}
