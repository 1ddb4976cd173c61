import type { VaultContent } from "../../../core/protocol/verifier.ts";
import { blobText, brief } from "../shared/format.ts";
import { button, el, link, tableHead } from "./dom.ts";

const PAGE = 25;

/** A column besides vault, token and amount. */
export interface Column {
  readonly name: string;
  readonly cell: (vault: VaultContent) => Node;
}

const OWNER: Column = { name: "Owner", cell: ({ owner }) => el("code", { title: owner }, brief(owner)) };

interface TableOptions {
  /** Columns before and after those of every table. */
  readonly before?: readonly Column[];
  readonly after?: readonly Column[];
  /** Called with the vaults of each further part of the table. */
  readonly shown?: (vaults: readonly VaultContent[]) => void;
}

/** Vaults as a table that grows on demand. */
export function vaultTable(vaults: readonly VaultContent[], options: TableOptions = {}): HTMLElement {
  const { before = [], after = [OWNER], shown = () => {} } = options;
  const body = el("tbody", {});
  const names = (columns: readonly Column[]) => columns.map(({ name }) => name);
  const head = tableHead([...names(before), "Vault", "Token", "Amount", ...names(after)]);
  const more = el("p", {});
  let count = 0;
  const show = () => {
    const next = vaults.slice(count, count + PAGE);
    body.append(...next.map((vault) => row(vault, before, after)));
    count += next.length;
    const left = vaults.length - count;
    more.replaceChildren(...(left > 0 ? [button(`Show more (${left.toLocaleString()} left)`, show)] : []));
    shown(next);
  };
  show();
  return el("div", {}, el("div", { class: "table" }, el("table", {}, head, body)), more);
}

function row(vault: VaultContent, before: readonly Column[], after: readonly Column[]): HTMLElement {
  const cells = (columns: readonly Column[]) => columns.map(({ cell }) => el("td", {}, cell(vault)));
  return el(
    "tr",
    {},
    ...cells(before),
    el("td", {}, link(`#/vaults/${vault.vaultId}`, String(vault.vaultId))),
    el("td", {}, vault.blob === "0x" ? "fungible" : blobText(vault.blob)),
    el("td", { class: "number" }, vault.amount.toLocaleString()),
    ...cells(after),
  );
}
