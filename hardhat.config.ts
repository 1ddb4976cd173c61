import { createRequire } from "node:module";
import hardhatToolbox from "@nomicfoundation/hardhat-toolbox";
import { defineConfig } from "hardhat/config";

// The compiler comes from npm (solc's own JavaScript build), so compiling needs no download.
const soljson = createRequire(import.meta.url).resolve("solc/soljson.js");

export default defineConfig({
  plugins: [hardhatToolbox],
  paths: {
    sources: "./contracts",
    // Solidity tests only: TypeScript tests belong to vitest, the one runner of this repository.
    tests: { solidity: "./test/solidity", nodejs: "./test/none" },
  },
  solidity: {
    compilers: [
      {
        version: "0.8.37",
        path: soljson,
        settings: { viaIR: true, optimizer: { enabled: true, runs: 200 }, evmVersion: "osaka" },
      },
    ],
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
