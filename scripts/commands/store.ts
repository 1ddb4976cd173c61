import { entriesShown } from "../../server/process/operator/time-left.ts";
import { textOf } from "../cli/arguments.ts";
import { command } from "../cli/command.ts";
import { beginCluster, openStore, restoreFromCluster, storeOf } from "../cli/engine.ts";
import { UsageError } from "../cli/exit.ts";

const STORE = { "--store <folder>": "the store's folder (MINTMARK_STORE)" };

// `backup` and `verify`, which a server can run, are in server/process/operator/store.ts.
export const init = command({
  examples: ["init --store ./data", "init --from ./restored"],
  options: {
    ...STORE,
    "--from <folder>": "begin the cluster's empty journal (MINTMARK_JOURNAL) with this store",
  },
  async work({ options }) {
    const from = textOf(options.from);
    if (from !== undefined) return { from, entries: await beginCluster(from) };
    const store = storeOf(textOf(options.store));
    await using engine = await openStore(store, true);
    const { settlement, environment } = engine;
    return {
      store,
      environment,
      chainId: settlement.chainId.toString(),
      contract: settlement.contract,
    };
  },
});

export const restore = command({
  examples: ["restore /backups/mintmark --store ./restored", "restore --store ./restored"],
  options: STORE,
  async work({ options, args: [folder], signal, progress }) {
    const store = storeOf(textOf(options.store));
    if (folder === undefined) {
      const onEntries = (entries: number) => progress(`${entries} journal entries`);
      return { store, entries: await restoreFromCluster(store, signal, onEntries) };
    }
    const [{ LevelJournal, restoreStore }, { holdsStore }] = await Promise.all([
      import("../../core/index.ts"),
      import("../../core/store/level-folder.ts"),
    ]);
    if (!(await holdsStore(folder))) throw new UsageError(`there is no backup in ${folder}`);
    await using journal = await LevelJournal.open(folder);
    return {
      store,
      entries: await restoreStore(journal, store, { signal, ...entriesShown(progress) }),
    };
  },
});
