import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { runCommand } from "../scripts/cli/errors.ts";
import { progressLine } from "../scripts/cli/output.ts";
import { FLAG, run } from "./harness.ts";
import { LARGE_STORES, machine, type Row, sectionsText, writeSection } from "./report.ts";
import { type Figures, forget, keep, type Origin, originHere, resume } from "./scale-kept.ts";

/** `npm run bench:scale`: what a large store costs its operator. */

const USAGE = `Usage: npm run bench:scale -- [options]

  --vaults n,n     the sizes; default 1000000. 20,000,000 vaults take some 1.2 GB of disk
  --folder <path>  where the stores are made; default one below the system's temporary folder
  --write          write the table into docs/bench.md
  --help           print this

Each step runs in a process of its own, and its figures are kept until the end: an interrupted run
goes on, if commit, Node and processor are still the same.
`;

/** Each step with the figures that it gives; the last one puts the backup in place of the store. */
const STEPS = ["fill", "open", "find", "mint", "backup", "verify", "restore"] as const;

const FIGURES = [
  ["disk", "disk, bytes a vault"],
  ["open", "open, s"],
  ["openCpu", "open, CPU s"],
  ["openMb", "resident after the opening, MB"],
  ["openOwn", "of which its own, MB"],
  ["openPeak", "most while opening, MB"],
  ["mintCpu", "requests of 1,000: all threads' CPU, µs a mint"],
  ["mintRatio", "requests of 1,000: rate, of an empty store's in turns"],
  ["token", "vaults by token, median ms"],
  ["owner", "vaults by owner, median ms"],
  ["user", "vaults by user, median ms"],
  ["proof", "proof, median ms"],
  ["balances", "first page of a user's balances, event loop's CPU, ms"],
  ["p99", "single mints beside bulk: p99, ms"],
  ["slowest", "single mints beside bulk: slowest, ms"],
  ["backup", "first backup, compared, s"],
  ["backupMb", "most while backing up, MB"],
  ["backupOwn", "of which its own, MB"],
  ["verify", "verify, s"],
  ["verifyCpu", "verify, CPU s"],
  ["verifyMb", "most while verifying, MB"],
  ["verifyOwn", "of which its own, MB"],
  ["verifyMore", "of which more than the engine had, MB"],
  ["restore", "restore, s"],
  ["restoreCpu", "restore, CPU s"],
  ["restoreMb", "most while restoring, MB"],
  ["restoreOwn", "of which its own, MB"],
] as const;

const line = progressLine();

await runCommand(async () => {
  const { values } = parseArgs({
    options: {
      vaults: { type: "string", default: "1000000" },
      folder: { type: "string", default: join(tmpdir(), "mintmark-scale") },
      write: FLAG,
      help: FLAG,
    },
  });
  if (values.help) return void process.stdout.write(USAGE);
  const sizes = values.vaults.split(",").map(Number);
  if (!sizes.every((size) => Number.isSafeInteger(size) && size >= 100_000))
    throw new Error(`--vaults takes whole numbers from 100,000\n\n${USAGE}`);
  const where = machine();
  const origin = originHere(where);
  const folderOf = (size: number) => resolve(values.folder, String(size));
  const rows: Row[] = [];
  for (const size of sizes) {
    const figures = await measured(folderOf(size), size, origin);
    const tick = size.toLocaleString("en-US", { notation: "compact" });
    rows.push({
      label: `${size.toLocaleString("en-US")} vaults`,
      tick,
      ours: true,
      values: figures,
    });
  }
  line.clear();
  const section = {
    ...LARGE_STORES,
    columns: FIGURES.map(([key, label]) => {
      const [name = "", unit = ""] = [
        label.slice(0, label.lastIndexOf(", ")),
        label.slice(label.lastIndexOf(", ") + 2),
      ];
      return { key, label: name, unit, better: "lower" } as const;
    }),
    rows,
    reference: null,
  };
  process.stdout.write(`\n${sectionsText([section])}`);
  if (values.write) await writeSection("bench.md", section, where);
  for (const size of sizes) await forget(folderOf(size));
});

/** The figures of all steps. Those that an interrupted run has kept are not measured again. */
async function measured(folder: string, size: number, origin: Origin): Promise<Figures> {
  const figures = await resume(folder, origin, (text) => process.stderr.write(`${text}\n`));
  for (const step of STEPS) {
    if (figures[step] !== undefined) continue;
    const progress = (where: string) =>
      line.show(`${size.toLocaleString("en-US")} vaults: ${where}`);
    progress(step);
    const how = { options: ["--expose-gc", "--disable-warning=ExperimentalWarning"], progress };
    figures[step] = JSON.parse(await run("./scale-row.ts", [step, folder, String(size)], how));
    await keep(folder, origin, figures);
  }
  for (const name of ["store", "backup"])
    await rm(join(folder, name), { recursive: true, force: true });
  return Object.assign({}, ...Object.values(figures)) as Figures;
}
