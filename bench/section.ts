import type { Progress } from "./harness.ts";
import type { Row, SectionResult } from "./report.ts";

/** The amount of work: `full` includes measurements of minutes and gigabytes. */
export type Extent = "usual" | "full";

/** A part of the benchmark, run by name. */
export interface Section extends Omit<SectionResult, "rows"> {
  rows(progress: Progress, extent: Extent): Promise<readonly Row[]>;
}

/** The result of a section, without the columns that nobody measured. */
export async function resultOf(section: Section, progress: Progress, extent: Extent): Promise<SectionResult> {
  const rows = await section.rows(progress, extent);
  const columns = section.columns.filter(({ key }) => rows.some(({ values }) => (values[key] ?? null) !== null));
  return { ...section, columns, rows };
}
