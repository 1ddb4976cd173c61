import { isAbsolute } from "node:path";
import { z } from "zod";
import { LevelJournal } from "../../../core/index.ts";
import { operation } from "./operation.ts";
import { entriesShown } from "./time-left.ts";

// `init` and `restore`, which make a store, are in scripts/commands/store.ts.
export const STORE_OPERATIONS = {
  backup: operation({
    examples: ["/backups/mintmark --store ./data"],
    input: z.strictObject({
      folder: z.string().refine(isAbsolute, "Give the folder's whole path.").meta({ isPath: true }),
    }),
    args: ["folder"],
    async run(engine, input, { signal, progress }) {
      await using journal = await LevelJournal.open(input.folder);
      return {
        folder: input.folder,
        ...(await engine.operator.backup(journal, { signal, ...entriesShown(progress) })),
      };
    },
  }),
  verify: operation({
    examples: ["", "--json"],
    input: z.strictObject({}),
    failed(report) {
      const { problems } = report as { problems: readonly string[] };
      if (problems.length === 0) return null;
      return "the store differs from its journal: restore it from a copy, or rebuild it";
    },
    async run(engine, _, { signal, progress }) {
      const { state, ...report } = await engine.operator.verify({
        signal,
        ...entriesShown(progress),
      });
      const { countValidium, countRollup, ...roots } = state;
      return {
        ...report,
        state: { ...roots, countValidium: `${countValidium}`, countRollup: `${countRollup}` },
      };
    },
  }),
};
