import { afterEach, describe, expect, it, vi } from "vitest";
import { encodeModule, wasmFunction } from "../../../core/keccak/binary.ts";
import { encoded, i64, local, signedLeb, unsignedLeb } from "../../../core/keccak/instructions.ts";
import { keccakModule } from "../../../core/keccak/module.ts";
import { roundConstants } from "../../../core/keccak/permutation.ts";

/** @types/node describes no WebAssembly without the DOM library. */
const { WebAssembly: engine } = globalThis as unknown as {
  WebAssembly: {
    validate(bytes: Uint8Array): boolean;
    Module: new (bytes: Uint8Array) => object;
    Instance: new (module: object) => { exports: Record<string, (...values: unknown[]) => unknown> };
  };
};

describe("the assembler", () => {
  it("encodes integers as the WebAssembly specification shows them", () => {
    expect([0, 1, 127, 128, 624_485].map((value) => encoded(unsignedLeb(value)))).toEqual([
      [0],
      [1],
      [0x7f],
      [0x80, 0x01],
      [0xe5, 0x8e, 0x26],
    ]);
    expect([0n, 63n, 64n, -1n, -64n, -65n, -123_456n].map((value) => encoded(signedLeb(value)))).toEqual([
      [0],
      [0x3f],
      [0xc0, 0x00],
      [0x7f],
      [0x40],
      [0xbf, 0x7f],
      [0xc0, 0xbb, 0x78],
    ]);
    expect(encoded(signedLeb(-(1n << 63n)))).toHaveLength(10);
  });

  it("writes a module that runs", () => {
    const add = wasmFunction("negate", ["i32", "i64"], (frame) => {
      const value = frame.local("i64");
      return [local.set(value, i64.not(local.get(1))), i64.store(local.get(0), local.get(value), 8)];
    });
    const bytes = encodeModule({ functions: [add], memoryPages: 1, data: Uint8Array.of(7) });
    const { negate, memory } = new engine.Instance(new engine.Module(bytes)).exports as unknown as {
      negate: (address: number, value: bigint) => void;
      memory: { buffer: ArrayBuffer };
    };
    negate(8, 5n);
    expect(new DataView(memory.buffer).getBigInt64(16, true)).toBe(-6n);
    expect(new Uint8Array(memory.buffer)[0]).toBe(7);
    expect(memory.buffer.byteLength).toBe(65_536);
  });
});

describe("the keccak module", () => {
  it("derives the round constants of FIPS 202", () => {
    const view = new DataView(roundConstants().buffer);
    const constants = Array.from({ length: 24 }, (_, round) => view.getBigUint64(8 * round, true));
    expect(constants.slice(0, 4)).toEqual([1n, 0x8082n, 0x800000000000808an, 0x8000000080008000n]);
    expect(constants.slice(-3)).toEqual([0x8000000000008080n, 0x80000001n, 0x8000000080008008n]);
  });

  it("is valid in both forms, small, and the same each time", () => {
    for (const form of ["scalar", "simd"] as const) {
      const bytes = keccakModule(form);
      expect(engine.validate(bytes)).toBe(true);
      expect(bytes.length).toBeLessThan(24_000);
      expect(keccakModule(form)).toEqual(bytes);
    }
  });
});

describe("the choice of an implementation", () => {
  afterEach(() => {
    vi.unstubAllGlobals();
    vi.resetModules();
  });

  /** The module as a fresh process would load it. */
  async function load(WebAssembly: unknown): Promise<typeof import("../../../core/keccak/index.ts")> {
    vi.stubGlobal("WebAssembly", WebAssembly);
    vi.resetModules();
    return await import("../../../core/keccak/index.ts");
  }

  it("is scalar where vectors are not supported", async () => {
    const longest = keccakModule("scalar").length;
    const { keccak, createKeccak, supportedKeccaks } = await load({
      Module: engine.Module,
      Instance: engine.Instance,
      validate: (bytes: Uint8Array) => bytes.length <= longest,
    });
    expect(supportedKeccaks()).toEqual(["scalar", "noble"]);
    expect(keccak().name).toBe("scalar");
    expect(() => createKeccak("simd")).toThrow(/does not support the simd form/);
  });

  it("is noble where there is no WebAssembly", async () => {
    const { keccak, keccak256 } = await load(undefined);
    expect(keccak().name).toBe("noble");
    expect(Buffer.from(keccak256(new Uint8Array())).toString("hex")).toMatch(/^c5d24601/);
  });

  it("is noble where a policy forbids to compile", async () => {
    const { keccak } = await load({
      validate: () => true,
      Module: class {
        constructor() {
          throw new Error("code generation disallowed by embedder");
        }
      },
    });
    expect(keccak().name).toBe("noble");
  });
});
