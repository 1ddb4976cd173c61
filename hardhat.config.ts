import { createRequire } from "node:module";
import hardhatToolbox from "@nomicfoundation/hardhat-toolbox";
import { defineConfig } from "hardhat/config";
import type { HardhatPlugin } from "hardhat/types/plugins";

// The compiler comes from npm (solc's own JavaScript build), so compiling needs no download.
const soljson = createRequire(import.meta.url).resolve("solc/soljson.js");

/** Contracts whose fallback runs another contract's code on their storage. Callers see one interface. */
const FACETS = [
  {
    of: ["contracts/StateCommitment.sol", "StateCommitment"],
    code: ["contracts/state/Administration.sol", "Administration"],
  },
] as const;

/** Gives the artifact of each contract with a facet both interfaces, as its callers see them. */
const wholeInterfaces: HardhatPlugin = {
  id: "whole-interfaces",
  hookHandlers: {
    solidity: async () => ({
      default: async () => ({
        invokeSolc: async (context, compiler, input, config, next) => {
          const output = await next(context, compiler, input, config);
          for (const { of, code } of FACETS) {
            const [whole, facet] = [of, code].map(([source, name]) => output.contracts?.[`project/${source}`]?.[name]);
            if (whole === undefined || facet === undefined) continue;
            const own = new Set((whole.abi ?? []).map((item: unknown) => JSON.stringify(item)));
            const lent = (facet.abi ?? []).filter(
              (item: { type: string }) => item.type !== "constructor" && !own.has(JSON.stringify(item)),
            );
            whole.abi = [...(whole.abi ?? []), ...lent];
          }
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
    // Most is paid here, and its size leaves room for more runs.
    overrides: { "contracts/StateCommitment.sol": compiler(1800) },
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
