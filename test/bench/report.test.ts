import { expect, it } from "vitest";
import { againstText } from "../../bench/against.ts";
import { LINE, markdownTable, notes, ratio, type SectionResult, sectionText } from "../../bench/report.ts";

const result: SectionResult = {
  name: "demo",
  title: "Demo",
  method: "By hand.",
  columns: [
    { key: "time", label: "time", unit: "ns", better: "lower" },
    { key: "rate", label: "rate", unit: "thousand/s", better: "higher" },
  ],
  rows: [
    { label: "ours", ours: true, values: { time: 160, rate: 4000 } },
    { label: "peer <1>", ours: false, note: "older", values: { time: 3120, rate: 1000 } },
    { label: "builder", ours: false, values: { time: null, rate: 8000 } },
  ],
  reference: "ours",
};

it("says how many times as good the reference is, whichever way is better", () => {
  const [time, rate] = result.columns;
  const of = (label: string) => {
    const row = result.rows.find((candidate) => candidate.label === label);
    return row && time && rate ? [ratio(result, row, time), ratio(result, row, rate)] : [];
  };
  expect(of("ours")).toEqual([1, 1]);
  expect(of("peer <1>")).toEqual([19.5, 4]);
  expect(of("builder")).toEqual([null, 0.5]);
});

it("prints a table whose columns line up, with a dash for what was not measured", () => {
  expect(markdownTable(result)).toBe(
    [
      "|          |      time, ns | rate, thousand/s |",
      "| -------- | ------------: | ---------------: |",
      "| **ours** |   160 (1.00×) |    4,000 (1.00×) |",
      "| peer <1> | 3,120 (19.5×) |    1,000 (4.00×) |",
      "| builder  |             – |    8,000 (0.50×) |",
    ].join("\n"),
  );
  expect(notes(result)).toBe("- peer <1>: older.");
});

const longest = (text: string) => Math.max(...text.split("\n").map(({ length }) => length));
const wide = (columns: number, rows: number): SectionResult => ({
  ...result,
  method: "a long word and another one, ".repeat(20),
  columns: Array.from({ length: columns }, (_, i) => ({
    ...(result.columns[0] as SectionResult["columns"][number]),
    key: `${i}`,
    label: `a column with a long name, number ${i}`,
  })),
  rows: Array.from({ length: rows }, (_, i) => ({
    label: `subject ${i} of a long name`,
    tick: `${i}K`,
    ours: false,
    note: "a note that goes on and on ".repeat(8).trim(),
    values: Object.fromEntries(Array.from({ length: columns }, (_, at) => [`${at}`, 1_000 * i + at])),
  })),
  reference: null,
});

it("turns a wide table of few rows, so that no line is too long", () => {
  const text = sectionText(wide(8, 4));
  expect(longest(text)).toBeLessThanOrEqual(LINE);
  expect(text).toMatch(/^\|\s+\| +0K \| +1K \| +2K \| +3K \|$/m);
  expect(text).toMatch(/^\| a column with a long name, number 7, ns \| +7\.00 \| +1,007 \| +2,007 \| +3,007 \|$/m);
});

it("names the columns of a wide table of many rows in a list", () => {
  const text = sectionText(wide(5, 30));
  expect(longest(text)).toBeLessThanOrEqual(LINE);
  expect(text).toContain("- E: a column with a long name, number 4, ns\n");
  expect(text).toMatch(/^\| subject 29 of a long name \| +29,000 \| .* 29,004 \|$/m);
});
it("compares the best turn of two revisions, with the spread of the turns", () => {
  const figures = (us: number) => ({
    ...{ bulk: 100 / us, bulkLoop: us, bulkCpu: 2 * us, singles: 10 / us, singlesLoop: 9 * us },
    ...{ singlesCpu: 20 * us, steady: 500 },
  });
  const turns = [
    { there: figures(2), here: figures(1) },
    { there: figures(1.6), here: figures(1.2) },
    { there: figures(4), here: figures(4) },
  ];
  const lines = againstText("v1", turns).split("\n");
  const cells = (start: string) =>
    lines
      .find((line) => line.startsWith(start))
      ?.split("|")
      .slice(2, -1)
      .map((cell) => cell.trim());
  expect(cells("| bulk: event loop's CPU")).toEqual(["1.60", "1.00", "0.63", "0.50", "0.75", "1.00"]);
  // More is better for a rate, so the best is the greatest.
  expect(cells("| bulk: thousand")).toEqual(["62.5", "100", "1.60", "1.00", "1.33", "2.00"]);
});
