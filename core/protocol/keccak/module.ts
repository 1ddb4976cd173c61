import { encodeModule, type WasmFunction } from "./binary.ts";
import { scalarLanes, vectorLanes } from "./lanes.ts";
import { CONSTANTS, MEMORY_PAGES } from "./layout.ts";
import { messagesFunction, twinMessagesFunction } from "./messages.ts";
import { foldFunction, pairsFunction } from "./pairs.ts";
import { roundConstants } from "./permutation.ts";
import { absorbFunction, absorbTwinFunction, finishFunction, padFunction } from "./sponge.ts";

/** The form of the module: one state at a time in integers, or also two in vectors. */
export type ModuleForm = "scalar" | "simd";

/** The module's exports. Arguments are addresses in its memory, or counts; see the files of the functions. */
export interface KeccakExports {
  readonly memory: { readonly buffer: ArrayBuffer };
  readonly pairs: (input: number, output: number, count: number, prefix: number) => void;
  readonly fold: (input: number, height: number, position: number, prefix: number) => void;
  readonly absorb: (input: number, blocks: number) => void;
  readonly finish: (input: number, length: number, output: number) => void;
  readonly messages: (ends: number, count: number, start: number, delta: number, output: number) => void;
  /** Only in the simd form: `count` is even. */
  readonly twinPairs?: (input: number, output: number, count: number, prefix: number) => void;
  readonly twinMessages?: (ends: number, count: number, start: number, delta: number, output: number) => void;
}

/** Generates the module: about 7 KB; with vector functions about 20 KB. */
export function keccakModule(form: ModuleForm): Uint8Array<ArrayBuffer> {
  const functions: WasmFunction[] = [];
  // A call names a function's index, so callees come first.
  const define = (written: WasmFunction): number => functions.push(written) - 1;
  const pairs = define(pairsFunction("pairs", scalarLanes));
  define(foldFunction("fold", pairs));
  const pad = define(padFunction("pad"));
  const absorb = define(absorbFunction("absorb"));
  const finish = define(finishFunction("finish", pad, absorb));
  define(messagesFunction("messages", absorb, finish));
  if (form === "simd") {
    define(pairsFunction("twinPairs", vectorLanes));
    const absorbTwin = define(absorbTwinFunction("absorbTwin"));
    define(twinMessagesFunction("twinMessages", pad, absorbTwin));
  }
  const data = new Uint8Array(CONSTANTS + roundConstants().length);
  data.set(roundConstants(), CONSTANTS);
  return encodeModule({ functions, memoryPages: MEMORY_PAGES, data });
}
