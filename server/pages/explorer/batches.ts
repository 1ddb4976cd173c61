import { brief } from "../shared/format.ts";
import { type Batch, readBatches } from "./api.ts";
import { button, el, fill, link, tableHead } from "./dom.ts";

/** All batches, newest first, page by page. */
export async function batchesView(): Promise<Node[]> {
  return [el("h1", {}, "Batches"), ...(await pageFrom(null))];
}

/** One page, and below it the place for the next one. */
async function pageFrom(cursor: string | null): Promise<Node[]> {
  const { data, next } = await readBatches(cursor);
  if (data.length === 0) return [el("p", { class: "quiet" }, "No batch yet.")];
  const place = el("div", { class: "next" });
  if (next !== null) place.append(button("Older batches", () => fill(place, () => pageFrom(next))));
  return [batchTable(data), place];
}

/** Batches as a table. */
export function batchTable(batches: readonly Batch[]): HTMLElement {
  return el(
    "div",
    { class: "table" },
    el("table", {}, tableHead(["Batch", "Vaults", "Status", "Root"]), el("tbody", {}, ...batches.map(row))),
  );
}

function row({ batchId, vaultCount, status, batchRoot }: Batch): HTMLElement {
  return el(
    "tr",
    {},
    el("td", {}, link(`#/batches/${batchId}`, batchId)),
    el("td", { class: "number" }, vaultCount.toLocaleString()),
    el("td", {}, el("span", { class: `status ${status}` }, status)),
    el("td", {}, batchRoot === null ? "–" : el("code", { title: batchRoot }, brief(batchRoot))),
  );
}
