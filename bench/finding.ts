import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { step } from "./engine.ts";
import type { Row, Section } from "./section.ts";

/** Approximate number of vaults in the store. */
const SIZES = { usual: [1_000_000], full: [1_000_000, 10_000_000] } as const;

/** Milliseconds of a page, by filter. */
export type FindingFigures = Readonly<Record<string, number>>;

/** The lists of an application on LevelDB, by filter. */
export const findingSection: Section = {
  name: "finding",
  async run(progress, extent) {
    const sizes = SIZES[extent];
    const figures: FindingFigures[] = [];
    for (const mints of sizes) {
      const folder = await mkdtemp(join(tmpdir(), "mintmark-bench-"));
      try {
        await step("fill", folder, mints, progress);
        figures.push(JSON.parse(await step("find", folder, mints, progress)));
      } finally {
        await rm(folder, { recursive: true, force: true });
      }
    }
    const keyOf = (mints: number) => `of${mints}`;
    const rows = Object.keys(figures[0] ?? {}).map((label): Row => {
      const values = sizes.map((mints, i) => [keyOf(mints), figures[i]?.[label] ?? null] as const);
      return { label, ours: true, values: Object.fromEntries(values) };
    });
    return {
      name: "finding",
      title: "Finding vaults, transactions and users",
      method:
        "A page of 50 by each filter, of an application that minted all that the store holds: as in the section on " +
        "mints, for 1,000 users, in requests of 1,000. Median of 20 pages, wall-clock, the store just opened; the " +
        "first page of each is not counted.",
      columns: sizes.map((mints) => ({
        key: keyOf(mints),
        label: `${mints.toLocaleString("en-US")} mints before`,
        unit: "ms",
        better: "lower",
      })),
      rows,
      reference: null,
    };
  },
};
