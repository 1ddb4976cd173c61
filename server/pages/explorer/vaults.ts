import type { VaultContent } from "../../../core/protocol/verifier.ts";
import { button, el, link, tableHead } from "./dom.ts";
import { blobText, brief } from "./format.ts";

const PAGE = 25;

/** The last column of the table. */
export interface LastColumn {
  readonly name: string;
  readonly cell: (vault: VaultContent) => Node;
}

const OWNER: LastColumn = { name: "Owner", cell: ({ owner }) => el("code", { title: owner }, brief(owner)) };

/** Vaults as a table that grows on demand. */
export function vaultTable(vaults: readonly VaultContent[], last: LastColumn = OWNER): HTMLElement {
  const body = el("tbody", {});
  const head = tableHead(["Vault", "Token", "Amount", last.name]);
  const more = el("p", {});
  let shown = 0;
  const show = () => {
    const next = vaults.slice(shown, shown + PAGE);
    body.append(...next.map((vault) => row(vault, last.cell)));
    shown += next.length;
    const left = vaults.length - shown;
    more.replaceChildren(...(left > 0 ? [button(`Show more (${left.toLocaleString()} left)`, show)] : []));
  };
  show();
  return el("div", {}, el("div", { class: "table" }, el("table", {}, head, body)), more);
}

function row(vault: VaultContent, cell: LastColumn["cell"]): HTMLElement {
  return el(
    "tr",
    {},
    el("td", {}, link(`#/vaults/${vault.vaultId}`, String(vault.vaultId))),
    el("td", {}, vault.blob === "0x" ? "fungible" : blobText(vault.blob)),
    el("td", { class: "number" }, vault.amount.toLocaleString()),
    el("td", {}, cell(vault)),
  );
}
