import type { Column, Row, SectionResult } from "./section.ts";
import { figure } from "./table.ts";

const WIDTH = 960;
const CHARTS_A_LINE = 3;
const CHART_WIDTH = WIDTH / CHARTS_A_LINE;
const CHART_HEIGHT = 150;
const MARGIN = 28;
/** Space above and below the line: title and figures, ticks. */
const HEAD = 44;
const FOOT = 30;
const LINE_HEIGHT = HEAD + CHART_HEIGHT + FOOT;

/** A section's figures from row to row: one small chart a column, from zero up, one point a row. */
export function curves(result: SectionResult, top: number): { svg: string; height: number } {
  const charts = result.columns.map((column, i) =>
    chart(result.rows, column, (i % CHARTS_A_LINE) * CHART_WIDTH, top + Math.floor(i / CHARTS_A_LINE) * LINE_HEIGHT),
  );
  return { svg: charts.join("\n"), height: Math.ceil(result.columns.length / CHARTS_A_LINE) * LINE_HEIGHT };
}

function chart(rows: readonly Row[], { key, label, unit }: Column, left: number, top: number): string {
  const most = Math.max(...rows.map(({ values }) => values[key] ?? 0));
  const step = (CHART_WIDTH - 2 * MARGIN) / Math.max(1, rows.length - 1);
  const points = rows.flatMap(({ tick = "", values }, i) => {
    const value = values[key] ?? null;
    if (value === null) return [];
    const y = top + HEAD + CHART_HEIGHT * (most === 0 ? 1 : 1 - value / most);
    return [{ tick, value, x: left + MARGIN + i * step, y }];
  });
  const line = points.map(({ x, y }) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ");
  const base = top + HEAD + CHART_HEIGHT;
  return [
    `<text x="${left + 12}" y="${top + 6}" class="strong">${label}, ${unit}</text>`,
    `<line x1="${left + MARGIN}" y1="${base}" x2="${left + CHART_WIDTH - MARGIN}" y2="${base}" class="axis"/>`,
    `<polyline points="${line}" class="curve"/>`,
    ...points.map(({ tick, value, x, y }) =>
      [
        `<circle cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="3.5" class="ours"/>`,
        `<text x="${x.toFixed(1)}" y="${(y - 9).toFixed(1)}" text-anchor="middle">${figure(value)}</text>`,
        `<text x="${x.toFixed(1)}" y="${base + 18}" text-anchor="middle">${tick}</text>`,
      ].join(""),
    ),
  ].join("\n");
}
