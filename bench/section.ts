/** The result of one section: a table of subjects by figures. */

export interface Column {
  readonly key: string;
  readonly label: string;
  /** Unit of the column's values. */
  readonly unit: string;
  readonly better: "lower" | "higher";
}

export interface Row {
  readonly label: string;
  /** Short form of the label for a curve, in a section whose rows are its points. */
  readonly tick?: string;
  /** A note that readers need to compare this row. */
  readonly note?: string;
  /** Whether the subject is part of this project. */
  readonly ours: boolean;
  /** By column key; null where the subject cannot do it. */
  readonly values: Readonly<Record<string, number | null>>;
}

export interface SectionResult {
  readonly name: string;
  readonly title: string;
  /** The method; a paragraph of Markdown. */
  readonly method: string;
  readonly columns: readonly Column[];
  readonly rows: readonly Row[];
  /** Label of the reference row; null for a table without ratios. */
  readonly reference: string | null;
}

/** The amount of work: `full` includes measurements of minutes and gigabytes. */
export type Extent = "usual" | "full";

/** A part of the benchmark, run by name. `progress` takes one line for people. */
export interface Section {
  readonly name: string;
  run(progress: (line: string) => void, extent: Extent): Promise<SectionResult>;
}

/**
 * The ratio by which the reference row is better than a row in a column, 1 for itself; null where either has no value.
 */
export function ratio(result: SectionResult, row: Row, column: Column): number | null {
  const reference = result.rows.find(({ label }) => label === result.reference)?.values[column.key] ?? null;
  const value = row.values[column.key] ?? null;
  if (reference === null || value === null) return null;
  return column.better === "lower" ? value / reference : reference / value;
}
