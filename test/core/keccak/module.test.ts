import { afterEach, describe, expect, it, vi } from "vitest";
import { keccakModule } from "../../../core/protocol/keccak/module.ts";
import { roundConstants } from "../../../core/protocol/keccak/permutation.ts";

/** @types/node describes no WebAssembly without the DOM library. */
const { WebAssembly: engine } = globalThis as unknown as {
  WebAssembly: {
    validate(bytes: Uint8Array): boolean;
    Module: new (bytes: Uint8Array) => object;
    Instance: new (
      module: object,
    ) => { exports: Record<string, (...values: unknown[]) => unknown> };
  };
};

describe("the keccak module", () => {
  it("derives the round constants of FIPS 202", () => {
    const view = new DataView(roundConstants().buffer);
    const constants = Array.from({ length: 24 }, (_, round) => view.getBigUint64(8 * round, true));
    expect(constants.slice(0, 4)).toEqual([1n, 0x8082n, 0x800000000000808an, 0x8000000080008000n]);
    expect(constants.slice(-3)).toEqual([0x8000000000008080n, 0x80000001n, 0x8000000080008008n]);
  });

  it("is valid, small, and the same each time", () => {
    const bytes = keccakModule();
    expect(engine.validate(bytes)).toBe(true);
    expect(bytes.length).toBeLessThan(24_000);
    expect(keccakModule()).toEqual(bytes);
  });
});

describe("the choice of an implementation", () => {
  afterEach(() => {
    vi.unstubAllGlobals();
    vi.resetModules();
  });

  /** The module as a fresh process would load it. */
  async function load(
    WebAssembly: unknown,
  ): Promise<typeof import("../../../core/protocol/keccak/index.ts")> {
    vi.stubGlobal("WebAssembly", WebAssembly);
    vi.resetModules();
    return await import("../../../core/protocol/keccak/index.ts");
  }

  it("is noble where vectors are not supported", async () => {
    const { createKeccak } = await load({ ...engine, validate: () => false });
    expect(createKeccak().name).toBe("noble");
    expect(() => createKeccak("wasm")).toThrow(/cannot run the WebAssembly/);
  });

  it("is noble where there is no WebAssembly", async () => {
    const { createKeccak } = await load(undefined);
    expect(createKeccak().name).toBe("noble");
    expect(Buffer.from(createKeccak().keccak256(new Uint8Array())).toString("hex")).toMatch(
      /^c5d24601/,
    );
  });

  it("is noble where a policy forbids to compile", async () => {
    const { createKeccak } = await load({
      validate: () => true,
      Module: class {
        constructor() {
          throw new Error("code generation disallowed by embedder");
        }
      },
    });
    expect(createKeccak().name).toBe("noble");
  });
});
