import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { createRequire } from "node:module";
import toolbox from "@nomicfoundation/hardhat-toolbox";
import { defineConfig, overrideTask } from "hardhat/config";
import type { HardhatPlugin } from "hardhat/types/plugins";
import type { CompilerOutput } from "hardhat/types/solidity";
import { CONTRACT_NAMES, readArtifact } from "./core/l1/artifact.ts";
import { LENT, settingsFor, staleContracts, wholeInterface } from "./scripts/build/contracts.ts";

// The compiler comes from npm (solc's own JavaScript build), so compiling needs no download.
const solc = { version: "0.8.37", path: createRequire(import.meta.url).resolve("solc/soljson.js") };

const INTERFACE = ["abi", "evm.methodIdentifiers"];
const CODE = ["evm.bytecode", "evm.deployedBytecode"].flatMap((code) => [
  `${code}.object`,
  `${code}.linkReferences`,
]);

const NO_CODE = { object: "", opcodes: "", sourceMap: "", linkReferences: {} };

/**
 * Gives the tests what is tracked in contracts/compiled/, and compiles only what the tests add. A
 * coverage run compiles everything, since its sources differ.
 */
const trackedCode: HardhatPlugin = {
  id: "tracked-code",
  hookHandlers: {
    solidity: async () => ({
      default: async () => ({
        invokeSolc: async (context, compiler, input, config, next) => {
          if (context.globalOptions.coverage)
            return withWholeInterface(await next(context, compiler, input, config));
          const stale = staleContracts();
          if (stale.length > 0) {
            throw new Error(
              `${stale.join(", ")} changed: run \`npm run build:contracts\`, which compiles what changed`,
            );
          }
          const count = Object.keys(input.sources).length;
          process.stderr.write(`compiling ${count} Solidity files for tests\n`);
          // The compiler makes code for every contract that is asked for at all when code is asked
          // for one of them.
          const select = (outputSelection: typeof input.settings.outputSelection) =>
            next(
              context,
              compiler,
              { ...input, settings: { ...input.settings, outputSelection } },
              config,
            );
          const output = await select({ "*": { "*": INTERFACE } });
          const tests = Object.keys(input.sources).filter((source) =>
            /^project\/(?:contracts\/)?test\//.test(source),
          );
          const withCode =
            tests.length === 0
              ? undefined
              : await select(Object.fromEntries(tests.map((name) => [name, { "*": CODE }])));
          for (const [source, contracts] of Object.entries(output.contracts ?? {})) {
            for (const [name, compiled] of Object.entries(contracts)) {
              const { methodIdentifiers = {} } = compiled.evm ?? {};
              const code =
                withCode?.contracts?.[source]?.[name]?.evm ?? trackedCodeOf(source, name);
              const bytecode = { ...NO_CODE, ...code?.bytecode };
              const deployedBytecode = {
                ...NO_CODE,
                immutableReferences: {},
                ...code?.deployedBytecode,
              };
              compiled.evm = { methodIdentifiers, bytecode, deployedBytecode };
            }
          }
          // Hardhat would trace calls by the sources' syntax trees, and reads megabytes of them
          // before each chain starts.
          return { ...withWholeInterface(output), sources: {} };
        },
        // Nobody here can act on a warning about a dependency.
        getCompilationJobErrors: async (context, job, output, next) =>
          (await next(context, job, output)).filter(
            ({ severity, formattedMessage }) =>
              severity === "error" || !formattedMessage?.includes("node_modules/"),
          ),
      }),
    }),
    config: async () => ({
      default: async () => ({
        // Hardhat runs the compiler once for each object of settings, and makes an object for each
        // override.
        resolveUserConfig: async (userConfig, resolve, next) => {
          const resolved = await next(userConfig, resolve);
          for (const { overrides } of Object.values(resolved.solidity.profiles)) {
            const [shared] = Object.values(overrides);
            for (const source of Object.keys(overrides)) if (shared) overrides[source] = shared;
          }
          return resolved;
        },
      }),
    }),
  },
};

/** The settlement contract's fallback runs other code too. Its callers see one interface. */
function withWholeInterface(output: CompilerOutput): CompilerOutput {
  const contractIn = (source: string, name: string) =>
    output.contracts?.[`project/${source}`]?.[name];
  const whole = contractIn("contracts/StateCommitment.sol", "StateCommitment");
  const lent = LENT.flatMap(([source, name]) => contractIn(source, name)?.abi ?? []);
  if (whole) whole.abi = [...wholeInterface(whole.abi, lent)];
  return output;
}

/** The tracked code of a contract in the compiler's form. */
function trackedCodeOf(source: string, name: string) {
  const known = CONTRACT_NAMES.find((contract) => contract === name);
  const artifact = known && readArtifact(known);
  if (artifact === undefined || source !== `project/${artifact.sourceName}`) return undefined;
  const { bytecode, deployedBytecode, immutableReferences } = artifact;
  return {
    bytecode: { object: bytecode.slice(2) },
    deployedBytecode: { object: deployedBytecode.slice(2), immutableReferences },
  };
}

/**
 * `npx hardhat test` runs the contracts' tests, or the named files, by Vitest: all tests are its.
 */
const vitestTests = overrideTask("test")
  .setInlineAction(({ testFiles, grep }) => {
    const files: string[] = testFiles.length > 0 ? testFiles : ["test/contracts"];
    const name = grep === undefined ? [] : ["--testNamePattern", grep];
    const run = ["node_modules/vitest/vitest.mjs", "run", ...files, ...name];
    const { status } = spawnSync(process.execPath, run, {
      cwd: import.meta.dirname,
      stdio: "inherit",
    });
    process.exitCode = status ?? 1;
  })
  .build();

/**
 * Contracts of the tests that need no optimizer. The harness of the proofs is too deep for that.
 */
const UNOPTIMIZED = { ...solc, settings: { evmVersion: "osaka" } };
const QUICK = readdirSync(new URL("contracts/test", import.meta.url))
  .filter((name) => name.endsWith(".sol") && name !== "ProofHarness.sol")
  .map((name) => [`contracts/test/${name}`, UNOPTIMIZED]);

export default defineConfig({
  plugins: [toolbox, trackedCode],
  tasks: [vitestTests],
  paths: {
    sources: "./contracts",
    // Tests belong to vitest, the one runner of this repository: none is in Solidity.
    tests: { solidity: "./test/contracts" },
  },
  solidity: {
    compilers: [{ ...solc, settings: settingsFor(200) }],
    overrides: Object.fromEntries(QUICK),
  },
  networks: {
    local: { type: "edr-simulated", chainType: "l1", chainId: 31_337 },
    // A second chain, for tokens that live elsewhere than the state.
    other: { type: "edr-simulated", chainType: "l1", chainId: 31_338 },
  },
});
