import { useReducer, useState } from "preact/hooks";
import type { Hex } from "../../../core/protocol/verifier.ts";
import { Button, Later, Notice, onSent } from "../shared/parts.tsx";
import { useWallets, wallet } from "../shared/wallets.tsx";
import { readState, type Settings, type State } from "./api.ts";
import { node, type SettlementContract, settlementContract } from "./l1.ts";

/** The source of L1 data: the visitor's wallet, a node of the visitor's choice, or the operator's node. */
type Choice = "wallet" | "own" | "operator";

const REMEMBERED = "mintmark.rpc";
const NODE_ADDRESS = /^https:\/\/|^http:\/\/(?:127\.0\.0\.1|localhost)(?::\d+)?(?:\/|$)/;

export let settings: Settings = { environment: "", rpc: null, relayVaults: 0 };
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
  const address = choice === "own" ? ownAddress : choice === "operator" ? settings.rpc : null;
  const provider = choice === "wallet" ? wallet() : address && node(address);
  if (!provider) return null;
  const { contract, chainId } = await settlement();
  return settlementContract(provider, contract as Hex, BigInt(chainId));
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

/** Takes the server's settings, and the source that the visitor chose before. */
export function startSource(given: Settings): Settings {
  settings = given;
  ownAddress = stored((storage) => storage.getItem(REMEMBERED)) ?? "";
  return given;
}

export function Source({ onChange }: { onChange: () => void }) {
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const [isWrong, setWrong] = useState(false);
  const hasWallet = useWallets().length > 0;
  choice ??= ownAddress !== "" ? "own" : hasWallet ? "wallet" : settings.rpc !== null ? "operator" : null;
  const choose = (next: Choice) => {
    choice = next;
    redraw(null);
    onChange();
  };
  const pick = (value: Choice, label: string) => (
    <Button aria-pressed={choice === value} onClick={() => choose(value)} text={label} />
  );
  const submit = onSent((fields) => {
    const address = String(fields.get("rpc")).trim();
    setWrong(!NODE_ADDRESS.test(address));
    if (!NODE_ADDRESS.test(address)) return;
    ownAddress = address;
    stored((storage) => storage.setItem(REMEMBERED, address));
    choose("own");
  });
  return (
    <section class="source" aria-labelledby="source-title">
      <h2 id="source-title">Source of L1 data</h2>
      <div class="choices">
        {hasWallet && pick("wallet", "My wallet")}
        {settings.rpc !== null && pick("operator", "The operator's node")}
      </div>
      <form class="address" autocomplete="off" onSubmit={submit} noValidate>
        <label for="rpc">My Ethereum node</label>
        <input id="rpc" name="rpc" type="url" placeholder="https://your.ethereum.node" defaultValue={ownAddress} />
        <Button submit aria-pressed={choice === "own"} text="Use my node" />
        {isWrong && <Notice problem>Give an https:// address, or http://localhost with its port.</Notice>}
      </form>
      <p class="quiet">{explain()}</p>
      <Later load={nameContract} />
    </section>
  );
}

/** A browser can refuse storage. The page works without it: an address then holds until the page is closed. */
function stored<T>(use: (storage: Storage) => T): T | null {
  try {
    return use(localStorage);
  } catch {
    return null;
  }
}

function explain(): string {
  if (choice === "operator") {
    return `This page reads L1 through the operator's own node (${settings.rpc}). A dishonest operator could run a dishonest node. To check the operator, use your wallet or a node that you trust.`;
  }
  if (choice === null) return "To compare with L1, name an Ethereum node, or open this page with a wallet.";
  return `This page reads L1 through ${sourceName()}, independent of the operator.`;
}

async function nameContract() {
  const { contract, chainId } = await settlement();
  const text = `Settlement contract ${contract} on chain ${chainId}, according to this server. Compare it with the address that you know.`;
  return <p class="quiet">{text}</p>;
}
