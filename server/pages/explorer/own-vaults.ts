import type { Hash, Hex, VaultContent } from "../../../core/protocol/verifier.ts";
import { counted, sentenceOf } from "../shared/format.ts";
import { button, el, fill, notice } from "./dom.ts";
import { followGiven, type Given, giveAway, question } from "./give.ts";
import type { Registration } from "./l1.ts";
import { asOwner, type SignedIn } from "./session.ts";
import { l1, relayVaults, settlement } from "./source.ts";
import { tokenColumn } from "./tokens.ts";
import { OwnTransfers } from "./transfer-view.ts";
import { type Column, vaultTable } from "./vaults.ts";
import { byOwnTransaction, byRelay, type Change, type Withdrawal } from "./withdrawal-view.ts";

/** A vault on the page. */
interface Row {
  readonly vault: VaultContent;
  readonly box: HTMLInputElement;
  readonly state: HTMLElement;
}

const POLLING_MS = 2_000;
/** What the operator says of a withdrawal on its way. */
const ON_THE_WAY: Readonly<Record<string, string>> = {
  accepted: "accepted; waits for its batch and its turn",
  submitted: "sent to L1",
};

/** The owner's vaults as tables with a selection, and the panel that withdraws the selected ones. */
export function ownVaults(session: SignedIn) {
  const rows = new Map<bigint, Row>();
  const count = el("p", { role: "status" });
  const outcome = el("div", { "aria-live": "polite" });
  const selected = () => [...rows.values()].filter(({ box }) => box.checked).map(({ vault }) => vault);
  const all = button("Select all", () => {
    for (const { box } of rows.values()) box.checked = !box.disabled;
    tell();
  });
  const named = tokenColumn();
  const relayed = relayVaults();
  const transfers = new OwnTransfers(session.address);
  const isMade = (vaultId: bigint) => transfers.made(vaultId);
  const given: Given = new Map();
  const receiver = el("input", {
    ...{ type: "text", "aria-label": "Receiver's address", placeholder: "0x…" },
    ...{ autocomplete: "off", spellcheck: "false" },
  }) as HTMLInputElement;
  const giving =
    relayed === 0
      ? []
      : [button("Give to this address", () => ask(receiver.value.trim())), button("Redeem", () => ask(null))];
  const actions = [
    ...(relayed === 0 ? [] : [button("Withdraw by the operator", () => run((...by) => byRelay(...by, isMade)))]),
    button("Withdraw by my own transaction", () => run(byOwnTransaction)),
    ...giving,
  ] as HTMLButtonElement[];
  let busy = false;
  let following = false;
  tell();
  const panel = el(
    "section",
    { class: "withdraw", "aria-label": "Withdraw", hidden: "" },
    count,
    el("div", { class: "choices" }, all, ...actions.filter((action) => !giving.includes(action)), named.fetchImages),
    ...(giving.length === 0 ? [] : [el("div", { class: "choices" }, receiver, ...giving)]),
    el(
      "p",
      { class: "quiet" },
      relayed === 0
        ? "You pay the gas of your own transaction and depend on nobody. The tokens go to your own address."
        : `You sign once, and once for each vault that a transfer made. The operator sends the transaction and pays the gas of up to ${counted(relayed, "vault")} a day. By your own transaction you pay it and depend on nobody. The tokens go to your own address.`,
    ),
    outcome,
  );

  function tell(): void {
    const chosen = selected().length;
    count.textContent = chosen === 0 ? "No vault is selected." : `${counted(chosen, "vault")} selected.`;
    for (const action of actions) action.disabled = busy || chosen === 0;
  }

  /** Shows what the owner is about to sign. */
  function ask(to: string | null): void {
    const chosen = selected();
    if (to !== null && !/^0x(?!0{40}$)[0-9a-fA-F]{40}$/.test(to)) {
      outcome.replaceChildren(notice("Enter the receiver's address: 0x and 40 hex digits.", "problem"));
      return;
    }
    const sign = () => run((by, _, change) => giveAway(by, chosen, to as Hex | null, given, change));
    outcome.replaceChildren(question(chosen, to as Hex | null, sign, () => outcome.replaceChildren()));
  }

  async function run(withdraw: typeof byOwnTransaction): Promise<void> {
    busy = true;
    const chosen = selected();
    tell();
    outcome.replaceChildren(el("p", { class: "quiet" }, "Answer the request in your wallet…"));
    try {
      const change: Change = (vaultId, text, standing) => set(vaultId, text, standing);
      const notices = await withdraw(session, chosen, change);
      outcome.replaceChildren(...notices.map((text) => notice(text, "problem")));
    } catch (error) {
      outcome.replaceChildren(notice(sentenceOf(error), "problem"));
    } finally {
      busy = false;
      tell();
      // A later list may fail after an earlier one was accepted.
      void follow();
    }
  }

  /** Shows how a vault stands. A spent one, or one on its way, cannot be selected. */
  function set(vaultId: bigint, text: string, standing: Parameters<Change>[2]): void {
    const row = rows.get(vaultId);
    if (row === undefined) return;
    row.state.textContent = text;
    row.state.dataset.standing = standing;
    row.box.disabled = standing === "spent" || standing === "waiting";
    if (row.box.disabled) row.box.checked = false;
    row.box.closest("tr")?.classList.toggle("spent", standing === "spent");
    tell();
  }

  /** Asks L1 what has been paid, and the operator what is on its way. */
  async function look(vaults: readonly VaultContent[]): Promise<void> {
    const [paid, newest] = await Promise.all([
      paidOnL1(vaults).catch(() => new Map<bigint, bigint>()),
      newestOf(session, vaults).catch(() => new Map<bigint, Withdrawal>()),
    ]);
    for (const { vaultId, amount } of vaults) {
      const fate = transfers.fate(vaultId);
      if (fate !== null) given.delete(vaultId);
      if (fate !== null) set(vaultId, fate, "spent");
      if (fate !== null || given.has(vaultId)) continue;
      const withdrawal = newest.get(vaultId);
      const { status = "", quantity = "0", withdrawnBefore = "0", failure } = withdrawal ?? {};
      const settled = status === "settled" || status === "finalized";
      const told = settled ? BigInt(withdrawnBefore) + BigInt(quantity) : 0n;
      const withdrawn = paid.get(vaultId) ?? told;
      if (withdrawn >= amount) set(vaultId, "on L1", "spent");
      else if (status in ON_THE_WAY) set(vaultId, ON_THE_WAY[status] ?? "", "waiting");
      else if (status === "failed") set(vaultId, `failed: ${failure ?? "no reason given"}`, "ready");
      else set(vaultId, withdrawn === 0n ? "here" : `${withdrawn.toLocaleString()} units on L1`, "ready");
    }
  }

  /** Looks again until nothing is on its way, or the page shows something else. */
  async function follow(): Promise<void> {
    if (following) return;
    following = true;
    const waiting = () => [...rows.values()].filter(({ state }) => state.dataset.standing === "waiting");
    while (panel.isConnected && waiting().length > 0) {
      await new Promise((resolve) => setTimeout(resolve, POLLING_MS));
      const vaults = waiting().map(({ vault }) => vault);
      for (let first = 0; first < vaults.length; first += 100) await look(vaults.slice(first, first + 100));
      await followGiven(session, given, set).catch(() => undefined);
    }
    following = false;
  }

  const state: Column = { name: "State", cell: ({ vaultId }) => rows.get(vaultId)?.state ?? el("span") };
  const columns: readonly Column[] = [named.column, { name: "Exit kit", cell: (vault) => download(vault, session) }];
  const select: Column = {
    name: "Select",
    cell(vault) {
      const box = el("input", { type: "checkbox", "aria-label": `Select vault ${vault.vaultId}` }) as HTMLInputElement;
      box.addEventListener("change", tell);
      rows.set(vault.vaultId, { vault, box, state: el("span", { class: "standing" }, "…") });
      return box;
    },
  };
  return {
    panel,
    transfers,
    table: (vaults: readonly VaultContent[]): HTMLElement => {
      panel.hidden = false;
      const shown = (some: readonly VaultContent[]) => void look(some).then(follow);
      return vaultTable(vaults, { before: [select, state], after: columns, shown });
    },
  };
}

/** Of each vault of the settlement's chain the units that L1 has paid; empty without a source of L1 data. */
async function paidOnL1(vaults: readonly VaultContent[]): Promise<ReadonlyMap<bigint, bigint>> {
  const [contract, { chainId }] = await Promise.all([l1(), settlement()]);
  if (contract === null) return new Map();
  const registrations = new Map<Hash, Promise<Registration | null>>();
  const here = vaults.filter((vault) => String(vault.chainId) === chainId);
  const paid = await Promise.all(
    here.map(async ({ vaultId, chainId, assetType }) => {
      const known = registrations.get(assetType) ?? contract.registration(chainId, assetType);
      registrations.set(assetType, known);
      const registered = await known;
      return [vaultId, registered === null ? 0n : await contract.withdrawn(vaultId, registered.standard)] as const;
    }),
  );
  return new Map(paid);
}

async function newestOf(session: SignedIn, vaults: readonly VaultContent[]): Promise<ReadonlyMap<bigint, Withdrawal>> {
  const query = vaults.map(({ vaultId }) => `vaultId=${vaultId}`).join("&");
  const answer = await (await asOwner(session, `/owner/v1/withdrawals?${query}`)).json();
  const named = answer.vaults as readonly { readonly vaultId: string; readonly withdrawal: Withdrawal | null }[];
  return new Map(
    named.flatMap(({ vaultId, withdrawal }) => (withdrawal === null ? [] : [[BigInt(vaultId), withdrawal] as const])),
  );
}

function download({ vaultId }: VaultContent, session: SignedIn): HTMLElement {
  const place = el("span", {});
  const name = `exit-kit-${vaultId}.json`;
  const save = () =>
    fill(place, async () => {
      const response = await asOwner(session, `/owner/v1/vaults/${vaultId}/exit-kit`);
      const address = URL.createObjectURL(await response.blob());
      el("a", { href: address, download: name }).click();
      URL.revokeObjectURL(address);
      return [start, el("span", { role: "status", class: "quiet" }, " saved")];
    });
  const start = button("Download", save);
  start.setAttribute("aria-label", `Download the exit kit of vault ${vaultId}`);
  place.append(start);
  return place;
}
