import { cpus, loadavg } from "node:os";
import type { SectionResult } from "./section.ts";
import { markdownTable, notes, wrapped } from "./table.ts";

/** The machine of a measurement. */
export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly node: string;
  readonly platform: string;
  /** Threads of other programs that wanted a core in the minute before. Above 0, wall-clock figures suffer. */
  readonly load: number;
}

/** The results of a run; the output of `--json`. */
export interface Report {
  readonly machine: Machine;
  readonly sections: readonly SectionResult[];
}

/** This machine. */
export function machine(): Machine {
  const cores = cpus();
  return {
    cpu: cores[0]?.model.trim() ?? "an unknown processor",
    cores: cores.length,
    node: process.version,
    platform: `${process.platform} ${process.arch}`,
    load: loadavg()[0] ?? 0,
  };
}

/** A section as Markdown, without a heading. */
export function sectionText(result: SectionResult): string {
  const remarks = notes(result);
  return [wrapped(result.method), "", markdownTable(result), ...(remarks === "" ? [] : ["", remarks])].join("\n");
}

/** The page `docs/bench.md`. */
export function page({ machine: { cpu, cores, node, platform, load }, sections }: Report): string {
  return [
    "# Benchmarks",
    "",
    wrapped(`\`npm run bench -- --write\` wrote this page on ${cpu}, ${cores} cores, ${platform}, Node ${node}.`),
    "Figures are medians. In brackets: how many times as good the reference row is, in the same run; below 1 the row is",
    "better. Compare within a table only: all rows of a table were measured in turns.",
    "",
    `The load average when the run began was ${load.toFixed(1)}.`,
    "CPU times bear other programs on the same cores, wall-clock figures do not.",
    "",
    ...sections.flatMap((result) => ["", `## ${result.title}`, "", sectionText(result)]),
    "",
  ].join("\n");
}
