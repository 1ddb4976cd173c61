import { expect, it } from "vitest";
import { plot } from "../../scripts/bench/plot.ts";
import { sectionText } from "../../scripts/bench/report.ts";
import { ratio, type SectionResult } from "../../scripts/bench/section.ts";
import { LINE, markdownTable, notes } from "../../scripts/bench/table.ts";

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

it("draws a bar for every figure, the best of each panel first", () => {
  const svg = plot([result]);
  expect(svg.match(/class="(ours|peer)"/g)).toHaveLength(5);
  expect(svg.indexOf("builder")).toBeLessThan(svg.lastIndexOf("ours</text>"));
  expect(svg).toContain("peer &lt;1>");
  expect(svg).not.toContain("NaN");
});

it("draws a curve a column where rows are its points, without those that were not measured", () => {
  const rows = result.rows.map((row, i) => ({ ...row, tick: `${i}K` }));
  const svg = plot([{ ...result, rows, reference: null }]);
  expect(svg.match(/<polyline/g)).toHaveLength(2);
  expect(svg.match(/<circle/g)).toHaveLength(5);
  expect(svg).toContain(">2K</text>");
  expect(svg).not.toContain("NaN");
});
