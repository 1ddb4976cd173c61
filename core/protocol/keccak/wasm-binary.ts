import { type Code, encoded, type Local, unsignedLeb } from "./instructions.ts";

/**
 * The WebAssembly binary format for one self-contained module: functions without results, one
 * memory, one data segment. Layout: WebAssembly core specification 2.0, chapter 5.5.
 */

type ValueType = "i32" | "i64" | "v128";

const VALUE_TYPES: Readonly<Record<ValueType, number>> = { i32: 0x7f, i64: 0x7e, v128: 0x7b };

const MAGIC_AND_VERSION: Code = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00];

/** Allocates the parameters and locals of a function under construction. */
export class FunctionFrame {
  readonly #parameters: readonly ValueType[];
  readonly #locals: ValueType[] = [];

  constructor(parameters: readonly ValueType[]) {
    this.#parameters = parameters;
  }

  local(type: ValueType): Local {
    return this.#parameters.length + this.#locals.push(type) - 1;
  }

  locals(type: ValueType, count: number): readonly Local[] {
    return Array.from({ length: count }, () => this.local(type));
  }

  type(): Code {
    return [0x60, vector(this.#parameters.map((type) => [VALUE_TYPES[type]])), 0];
  }

  /**
   * The function's entry in the code section: size, locals as runs of one type, instructions, end.
   */
  body(code: Code): Code {
    const runs: { type: ValueType; count: number }[] = [];
    for (const type of this.#locals) {
      const last = runs.at(-1);
      if (last?.type === type) last.count++;
      else runs.push({ type, count: 1 });
    }
    const locals = vector(runs.map(({ type, count }) => [unsignedLeb(count), VALUE_TYPES[type]]));
    return sized([locals, code, 0x0b]);
  }
}

/** A finished function. Calls name its index in {@link ModuleParts.functions}. */
export interface WasmFunction {
  readonly name: string;
  readonly type: Code;
  readonly body: Code;
}

/** Writes a function: `write` gets the frame and the parameters, and returns the instructions. */
export function wasmFunction(
  name: string,
  parameters: readonly ValueType[],
  write: (frame: FunctionFrame) => Code,
): WasmFunction {
  const frame = new FunctionFrame(parameters);
  const code = write(frame);
  return { name, type: frame.type(), body: frame.body(code) };
}

interface ModuleParts {
  /** All are exported by name. */
  readonly functions: readonly WasmFunction[];
  /** Pages of 64 KiB; the memory is exported as `memory` and cannot grow. */
  readonly memoryPages: number;
  /** Initial content of the memory, from address 0. */
  readonly data: Uint8Array;
}

/**
 * ```
 * module = magic version  type  function  memory  export  code  data
 *          (section = id size content; a type and a body for each function, in the same order)
 * ```
 */
export function encodeModule({
  functions,
  memoryPages,
  data,
}: ModuleParts): Uint8Array<ArrayBuffer> {
  const exported = functions.map(({ name }, index) => [text(name), 0x00, unsignedLeb(index)]);
  const sections = [
    section(1, vector(functions.map(({ type }) => type))),
    section(3, vector(functions.map((_, index) => unsignedLeb(index)))),
    section(5, vector([[0x01, unsignedLeb(memoryPages), unsignedLeb(memoryPages)]])),
    section(7, vector([...exported, [text("memory"), 0x02, 0]])),
    section(10, vector(functions.map(({ body }) => body))),
    section(11, vector([[0x00, 0x41, 0, 0x0b, sized([...data])]])),
  ];
  return Uint8Array.from(encoded([MAGIC_AND_VERSION, ...sections]));
}

function section(id: number, content: Code): Code {
  return [id, sized(content)];
}

function vector(items: readonly Code[]): Code {
  return [unsignedLeb(items.length), items];
}

function sized(content: Code): Code {
  const bytes = encoded(content);
  return [unsignedLeb(bytes.length), bytes];
}

function text(value: string): Code {
  return sized([...new TextEncoder().encode(value)]);
}
