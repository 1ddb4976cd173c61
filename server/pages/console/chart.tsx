import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { type Column, Table } from "./parts.tsx";

interface Point {
  /** Seconds since 1970. */
  readonly at: number;
  readonly value: number;
}

/**
 * A colour of the page as a canvas reads it. A property alone would say `light-dark(…)`, which
 * paints black.
 */
function color(place: HTMLElement, name: string, opacity = 1): string {
  place.style.color = `var(${name})`;
  const { color: solid } = getComputedStyle(place);
  place.style.color = "";
  return solid.replace("rgb(", "rgba(").replace(")", `, ${opacity})`);
}

const COLUMNS: readonly Column<Point>[] = [
  [
    "Time",
    ({ at }) => new Date(at * 1000).toLocaleString([], { dateStyle: "medium", timeStyle: "short" }),
  ],
  ["Value", ({ value }) => value.toLocaleString(), "number"],
];

/** A line over time. The same numbers are in a table, for those who read instead of look. */
export function Chart({ label, points }: { label: string; points: readonly Point[] }) {
  const place = useRef<HTMLDivElement>(null);
  const drawn = JSON.stringify(points);
  useEffect(() => {
    const element = place.current;
    if (element === null || points.length === 0) return undefined;
    const paint = (name: string, opacity?: number) => () => color(element, name, opacity);
    const lines = { stroke: paint("--line") };
    const axis = { stroke: paint("--quiet"), grid: lines, ticks: lines };
    const size = () => ({ width: element.clientWidth, height: 220 });
    const chart = new uPlot(
      {
        ...size(),
        legend: { show: false },
        cursor: { show: false },
        scales: { y: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] } },
        axes: [axis, { ...axis, size: 70 }],
        series: [
          {},
          {
            stroke: paint("--accent"),
            width: 2,
            fill: paint("--accent", 0.13),
            points: { show: points.length < 40 },
          },
        ],
      },
      [points.map(({ at }) => at), points.map(({ value }) => value)],
      element,
    );
    const observer = new ResizeObserver(() => chart.setSize(size()));
    observer.observe(element);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const repaint = () => chart.redraw();
    dark.addEventListener("change", repaint);
    return () => {
      dark.removeEventListener("change", repaint);
      observer.disconnect();
      chart.destroy();
    };
  }, [drawn]);
  if (points.length === 0) return <p class="quiet">{label}: nothing to show yet.</p>;
  const newest = points.at(-1)?.value ?? 0;
  return (
    <figure class="chart">
      <figcaption>{label}</figcaption>
      <div
        ref={place}
        role="img"
        aria-label={`${label}: ${points.length} values, the newest ${newest.toLocaleString()}`}
      />
      <details>
        <summary>As a table</summary>
        <Table label={label} columns={COLUMNS} entries={[...points].reverse()} />
      </details>
    </figure>
  );
}
