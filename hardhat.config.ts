import { createRequire } from "node:module";
import hardhatToolbox from "@nomicfoundation/hardhat-toolbox";
import { defineConfig } from "hardhat/config";
import type { HardhatPlugin } from "hardhat/types/plugins";

// The compiler comes from npm (solc's own JavaScript build), so compiling needs no download.
const soljson = createRequire(import.meta.url).resolve("solc/soljson.js");

/** A contract whose fallback runs other code too, and the interfaces of that code. Callers see one interface. */
const SETTLEMENT = {
  of: ["contracts/StateCommitment.sol", "StateCommitment"],
  code: [
    ["contracts/state/Administration.sol", "Administration"],
    // Compiled apart. Its interface declares all that it has.
    ["contracts/interfaces/ITransfers.sol", "ITransfers"],
  ],
} as const;

/** Gives the artifact of the settlement contract its whole interface, as its callers see it. */
const wholeInterfaces: HardhatPlugin = {
  id: "whole-interfaces",
  hookHandlers: {
    solidity: async () => ({
      default: async () => ({
        invokeSolc: async (context, compiler, input, config, next) => {
          const output = await next(context, compiler, input, config);
          const compiled = ([source, name]: readonly [string, string]) =>
            output.contracts?.[`project/${source}`]?.[name];
          const whole = compiled(SETTLEMENT.of);
          const lent = SETTLEMENT.code.map(compiled).filter((found) => found !== undefined);
          if (whole === undefined || lent.length < SETTLEMENT.code.length) return output;
          const own = new Set((whole.abi ?? []).map((item: unknown) => JSON.stringify(item)));
          const items = new Map<string, { type: string }>(
            lent.flatMap(({ abi = [] }) => abi.map((item: { type: string }) => [JSON.stringify(item), item])),
          );
          const more = [...items].filter(([text, { type }]) => type !== "constructor" && !own.has(text));
          whole.abi = [...(whole.abi ?? []), ...more.map(([, item]) => item)];
          return output;
        },
      }),
    }),
  },
};

/** Compiles for this many runs of the code: more make it cheaper to run, and larger. */
function compiler(runs: number) {
  const settings = { viaIR: true, optimizer: { enabled: true, runs }, evmVersion: "osaka" };
  return { version: "0.8.37", path: soljson, settings };
}

export default defineConfig({
  plugins: [hardhatToolbox, wholeInterfaces],
  paths: {
    sources: "./contracts",
    // Solidity tests only: TypeScript tests belong to vitest, the one runner of this repository.
    tests: { solidity: "./test/solidity", nodejs: "./test/none" },
  },
  solidity: {
    compilers: [compiler(200)],
    overrides: {
      "contracts/StateCommitment.sol": compiler(1_800),
      "contracts/state/Transfers.sol": compiler(1_000_000),
    },
  },
  // The fuzz and invariant tests deploy the compiler's own artifacts, read from there: `npx hardhat test solidity` at Hardhat's depth,
  // `npm test` and `npm run test:heavy` at theirs.
  test: { solidity: { fsPermissions: { readDirectory: ["./artifacts"] } } },
  networks: {
    local: { type: "edr-simulated", chainType: "l1", chainId: 31_337 },
    // A second chain, for tokens that live elsewhere than the state.
    other: { type: "edr-simulated", chainType: "l1", chainId: 31_338 },
  },
});
