import { type Provider, wallet } from "../shared/wallets.ts";
import { readState, type Settings, type State } from "./api.ts";
import { el, fill, notice } from "./dom.ts";
import { node, SettlementContract } from "./l1.ts";

/** The source of L1 data: the visitor's wallet, a node of the visitor's choice, or the operator's node. */
type Choice = "wallet" | "own" | "operator";

const REMEMBERED = "mintmark.rpc";
const NODE_ADDRESS = /^https:\/\/|^http:\/\/(?:127\.0\.0\.1|localhost)(?::\d+)?(?:\/|$)/;

let settings: Settings = { environment: "", rpc: null, relayVaults: 0 };
let choice: Choice | null = null;
let ownAddress = "";
let operatorState: Promise<State> | undefined;

/** The settlement according to the operator; asked until known. */
export function settlement(): Promise<State> {
  operatorState ??= readState().catch((error: unknown) => {
    operatorState = undefined;
    throw error;
  });
  return operatorState;
}

/** The settlement contract through the chosen source; null before the visitor's choice. */
export async function l1(): Promise<SettlementContract | null> {
  const provider = chosenProvider();
  if (provider === null) return null;
  const { contract, chainId } = await settlement();
  return new SettlementContract(provider, contract, BigInt(chainId));
}

function chosenProvider(): Provider | null {
  if (choice === "wallet") return wallet();
  if (choice === "own") return node(ownAddress);
  return choice === "operator" && settings.rpc !== null ? node(settings.rpc) : null;
}

/** Vaults of an owner that the operator withdraws at its cost a day; 0 when it pays for none. */
export function relayVaults(): number {
  return settings.relayVaults;
}

/** The source of L1 data, worded so that a visitor can judge it. */
export function sourceName(): string {
  if (choice === "wallet") return "your wallet's Ethereum node";
  if (choice === "own") return `the Ethereum node that you named (${ownAddress})`;
  return "the operator's own Ethereum node";
}

/** A finding on L1, with a caveat when the source is the operator's node. */
export function accordingToL1(finding: string): string {
  const doubt = " The check used the operator's node; connect your own to be independent of it.";
  return `${finding}.${choice === "operator" ? doubt : ""}`;
}

/** Shows the choice; calls `onChange` after each choice. */
export function showSource(place: HTMLElement, given: Settings, onChange: () => void): void {
  settings = given;
  ownAddress = remembered();
  choice ??= ownAddress !== "" ? "own" : wallet() !== null ? "wallet" : given.rpc !== null ? "operator" : null;
  const choose = (next: Choice) => {
    choice = next;
    showSource(place, given, onChange);
    onChange();
  };
  place.replaceChildren(
    el("h2", { id: "source-title" }, "Source of L1 data"),
    el(
      "div",
      { class: "choices", role: "group", "aria-labelledby": "source-title" },
      ...(wallet() === null ? [] : [pick("wallet", "My wallet", choose)]),
      ...(given.rpc === null ? [] : [pick("operator", "The operator's node", choose)]),
    ),
    addressForm(choose),
    el("p", { class: "quiet" }, explain(given)),
  );
  const named = el("div", { class: "contract" });
  place.append(named);
  void fill(named, nameContract);
}

/** A browser can refuse storage. The page works without it. */
function remembered(): string {
  try {
    return localStorage.getItem(REMEMBERED) ?? "";
  } catch {
    return "";
  }
}

function remember(address: string): void {
  try {
    localStorage.setItem(REMEMBERED, address);
  } catch {
    // The address then holds until the page is closed.
  }
}

function pick(value: Choice, label: string, choose: (next: Choice) => void): HTMLElement {
  const option = el("button", { type: "button", "aria-pressed": String(choice === value) }, label);
  option.addEventListener("click", () => choose(value));
  return option;
}

function addressForm(choose: (next: Choice) => void): HTMLElement {
  const input = el("input", {
    id: "rpc",
    type: "url",
    placeholder: "https://your.ethereum.node",
    value: ownAddress,
    spellcheck: "false",
    autocomplete: "off",
  }) as HTMLInputElement;
  const submit = el("button", { type: "submit", "aria-pressed": String(choice === "own") }, "Use my node");
  const form = el("form", { class: "address" }, el("label", { for: "rpc" }, "My Ethereum node"), input, submit);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const address = input.value.trim();
    if (!NODE_ADDRESS.test(address)) {
      form.querySelector(".notice")?.remove();
      form.append(notice("Give an https:// address, or http://localhost with its port.", "problem"));
      return;
    }
    ownAddress = address;
    remember(address);
    choose("own");
  });
  return form;
}

function explain({ rpc }: Settings): string {
  if (choice === "operator") {
    return `This page reads L1 through the operator's own node (${rpc}). A dishonest operator could run a dishonest node. To check the operator, use your wallet or a node that you trust.`;
  }
  if (choice === null) return "To compare with L1, name an Ethereum node, or open this page with a wallet.";
  return `This page reads L1 through ${sourceName()}, independent of the operator.`;
}

async function nameContract(): Promise<Node> {
  const { contract, chainId } = await settlement();
  const text = `Settlement contract ${contract} on chain ${chainId}, according to this server. Compare it with the address that you know.`;
  return el("p", { class: "quiet" }, text);
}
