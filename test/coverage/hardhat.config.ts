import { defineConfig } from "hardhat/config";
import base from "../../hardhat.config.ts";

/** The repository's settings for code that Hardhat instruments, apart from deployed code. */
export default defineConfig({
  ...base,
  plugins: [
    ...(base.plugins ?? []),
    {
      id: "memory-safe-coverage",
      hookHandlers: {
        solidity: async () => ({
          default: async () => ({
            preprocessSolcInputBeforeBuilding: async (context, input, next) => {
              const preprocessed = await next(context, input);
              for (const [name, source] of Object.entries(preprocessed.sources)) {
                if (!name.startsWith("__NomicFoundationCoverage")) continue;
                // One unmarked block of assembly keeps the compiler from moving any variable from
                // the stack to memory.
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
