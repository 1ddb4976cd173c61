import { readFile } from "node:fs/promises";
import { defineConfig } from "hardhat/config";
import base from "../../hardhat.config.ts";
import { instrumentConditions } from "./conditions.ts";

/** Hardhat counts statements; this adds branches. Instrumented code is separate from deployed code. */
export default defineConfig({
  ...base,
  plugins: [
    ...(base.plugins ?? []),
    {
      id: "condition-coverage",
      hookHandlers: {
        solidity: async () => ({
          default: async () => ({
            preprocessProjectFileBeforeBuilding: async (context, name, path, content, version, next) => {
              const instrumented = await next(context, name, path, content, version);
              const source = name.replace("project/", "");
              if (!source.startsWith("contracts/") || source.startsWith("contracts/test/")) return instrumented;
              return instrumentConditions(source, instrumented, await readFile(path, "utf8"));
            },
            preprocessSolcInputBeforeBuilding: async (context, input, next) => {
              const preprocessed = await next(context, input);
              for (const [name, source] of Object.entries(preprocessed.sources)) {
                if (!name.startsWith("__NomicFoundationCoverage")) continue;
                // One unmarked block of assembly keeps the compiler from moving any variable from the stack to memory.
                preprocessed.sources[name] = {
                  content: source.content.replaceAll(
                    /(?<!memory-safe-assembly\s+)assembly \{/g,
                    'assembly ("memory-safe") {',
                  ),
                };
              }
              return preprocessed;
            },
          }),
        }),
      },
    },
  ],
  paths: { ...base.paths, artifacts: "./coverage/artifacts", cache: "./coverage/cache" },
  coverage: { skipFiles: ["contracts/test/**"] },
});
