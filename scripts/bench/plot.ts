import { curves } from "./plot-curve.ts";
import { type Column, ratio, type SectionResult } from "./section.ts";
import { figure } from "./table.ts";

const WIDTH = 960;
const LABEL_WIDTH = 360;
const VALUE_WIDTH = 130;
const BAR_SPACE = WIDTH - LABEL_WIDTH - VALUE_WIDTH;
const BAR_HEIGHT = 16;
const ROW_HEIGHT = 22;
const PANEL_GAP = 52;

/** Readable on light and dark pages. */
const STYLE = `
  svg { font: 13px system-ui, sans-serif; }
  text { fill: #24292f; } .title { font-weight: 600; font-size: 15px; } .strong { font-weight: 600; }
  .background { fill: #ffffff; } .ours { fill: #0f766e; } .peer { fill: #a3b3c2; }
  .curve { fill: none; stroke: #0f766e; stroke-width: 2; } .axis { stroke: #a3b3c2; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .background { fill: #0d1117; } .ours { fill: #2dd4bf; } .peer { fill: #566573; }
    .curve { stroke: #2dd4bf; }
  }
`;

/** One panel a column: a bar a row, logarithmic, the best first if there is a reference. Curves for curve sections. */
export function plot(results: readonly SectionResult[]): string {
  let top = 34;
  const panels: string[] = [];
  for (const result of results) {
    if (result.rows.every(({ tick }) => tick !== undefined)) {
      panels.push(`<text x="12" y="${top}" class="title">${escaped(result.title)}, by mints before</text>`);
      const { svg, height } = curves(result, top + 24);
      panels.push(svg);
      top += 24 + height + PANEL_GAP;
      continue;
    }
    for (const column of result.columns) {
      const { svg, height } = panel(result, column, top);
      panels.push(svg);
      top += height + PANEL_GAP;
    }
  }
  const height = top - PANEL_GAP + 24;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="Benchmark results">`,
    `<style>${STYLE}</style>`,
    `<rect class="background" width="${WIDTH}" height="${height}"/>`,
    ...panels,
    "</svg>",
    "",
  ].join("\n");
}

function panel(result: SectionResult, column: Column, top: number): { svg: string; height: number } {
  const bars = result.rows
    .map((row) => ({ row, value: row.values[column.key] ?? null, times: ratio(result, row, column) }))
    .filter((bar): bar is typeof bar & { value: number } => bar.value !== null)
    .sort((a, b) =>
      result.reference === null ? 0 : column.better === "lower" ? a.value - b.value : b.value - a.value,
    );
  const logs = bars.map(({ value }) => Math.log10(value));
  // The scale begins at a power of ten below the smallest value, so its bar is visible.
  const floor = Math.floor(Math.min(...logs) - 0.2);
  const span = Math.max(...logs) - floor;
  const lines = bars.map(({ row, value, times }, i) => {
    const y = top + 12 + i * ROW_HEIGHT;
    const width = ((Math.log10(value) - floor) / span) * BAR_SPACE;
    const text = `${figure(value)}${times === null || row.label === result.reference ? "" : ` (${figure(times)}×)`}`;
    const strong = row.ours ? ` class="strong"` : "";
    const fill = row.ours ? "ours" : "peer";
    return [
      `<text x="${LABEL_WIDTH - 8}" y="${y + 13}" text-anchor="end"${strong}>${escaped(row.label)}</text>`,
      `<rect x="${LABEL_WIDTH}" y="${y}" width="${width.toFixed(1)}" height="${BAR_HEIGHT}" rx="2" class="${fill}"/>`,
      `<text x="${(LABEL_WIDTH + width + 6).toFixed(1)}" y="${y + 13}"${strong}>${text}</text>`,
    ].join("");
  });
  const title = `${result.title}: ${column.label}, ${column.unit} (${column.better} is better; logarithmic)`;
  return {
    svg: [`<text x="12" y="${top}" class="title">${escaped(title)}</text>`, ...lines].join("\n"),
    height: bars.length * ROW_HEIGHT,
  };
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}
