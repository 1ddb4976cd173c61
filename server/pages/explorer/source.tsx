import { useReducer, useState } from "preact/hooks";
import * as protocol from "../../../core/protocol/verifier.ts";
import { Button, Later, Notice, onSent } from "../shared/parts.tsx";
import { type Provider, useWallets, wallet } from "../shared/wallets.tsx";
import { type Roots, readState, type Settings, type State } from "./api.ts";

/**
 * The source of L1 data: the visitor's wallet, a node of the visitor's choice, or the operator's
 * node.
 */
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
  return settlementContract(provider, contract as protocol.Hex, BigInt(chainId));
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
  choice ??=
    ownAddress !== "" ? "own" : hasWallet ? "wallet" : settings.rpc !== null ? "operator" : null;
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
        <input
          id="rpc"
          name="rpc"
          type="url"
          placeholder="https://your.ethereum.node"
          defaultValue={ownAddress}
        />
        <Button submit aria-pressed={choice === "own"} text="Use my node" />
        {isWrong && (
          <Notice problem>Give an https:// address, or http://localhost with its port.</Notice>
        )}
      </form>
      <p class="quiet">{explain()}</p>
      <Later load={nameContract} />
    </section>
  );
}

/**
 * A browser can refuse storage. The page works without it: an address then holds until the page is
 * closed.
 */
export function stored<T>(use: (storage: Storage) => T): T | null {
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
  if (choice === null)
    return "To compare with L1, name an Ethereum node, or open this page with a wallet.";
  return `This page reads L1 through ${sourceName()}, independent of the operator.`;
}

async function nameContract() {
  const { contract, chainId } = await settlement();
  const text = `Settlement contract ${contract} on chain ${chainId}, according to this server. Compare it with the address that you know.`;
  return <p class="quiet">{text}</p>;
}

function node(address: string): Provider {
  return {
    async request({ method, params = [] }) {
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
      const headers = { "content-type": "application/json" };
      const response = await fetch(address, { method: "POST", headers, body }).catch(() => {
        throw new Error(`This page cannot reach the Ethereum node at ${address}.`);
      });
      const { result, error } = await response.json().catch(() => {
        throw new Error(
          `The Ethereum node at ${address} answered ${response.status}, but not in JSON.`,
        );
      });
      if (error)
        throw new Error(
          `The Ethereum node refused ${method}: ${error.message ?? "no reason given"}`,
        );
      return result;
    },
  };
}

/** The contract's values of `Mode` and `Standard`. */
const MODE: Readonly<Record<protocol.Mode, bigint>> = { validium: 0n, "zk-rollup": 1n };
const STANDARDS: readonly (protocol.Standard | null)[] = [null, "erc20", "erc721", "erc1155"];

export interface Registration {
  readonly standard: protocol.Standard;
  readonly token: protocol.Hex;
  readonly quantum: bigint;
}

/** The settlement contract through a provider, by `eth_call` on the newest block. */
export type SettlementContract = ReturnType<typeof settlementContract>;

function settlementContract(provider: Provider, contract: protocol.Hex, chainId: bigint) {
  const ask = (method: string, ...params: readonly unknown[]) =>
    provider.request({ method, params });
  const checkChain = async () => {
    const served = BigInt(String(await ask("eth_chainId")));
    if (served === chainId) return;
    throw new Error(
      `This Ethereum node serves chain ${served}; the vaults are settled on chain ${chainId}.`,
    );
  };
  let rightChain: Promise<void> | undefined;
  /**
   * Calls a view with word arguments and results, by the contract ABI: selector, then 32 bytes
   * each.
   */
  const call = async (
    signature: string,
    results: number,
    ...args: readonly Word[]
  ): Promise<readonly bigint[]> => {
    rightChain ??= checkChain();
    await rightChain;
    const selector = protocol
      .bytesToHex(protocol.keccak256(new TextEncoder().encode(signature)))
      .slice(0, 10);
    const answer = await ask(
      "eth_call",
      { to: contract, data: selector + args.map(digits).join("") },
      "latest",
    );
    if (
      typeof answer !== "string" ||
      !/^0x(?:[0-9a-f]{64})+$/i.test(answer) ||
      answer.length !== 2 + 64 * results
    )
      throw new Error(`There is no settlement contract at ${contract} on this chain.`);
    return Array.from({ length: results }, (_, i) =>
      BigInt(`0x${answer.slice(2 + 64 * i, 66 + 64 * i)}`),
    );
  };
  return {
    /**
     * Rejects with a `MintmarkError` unless all code of the contract is that of this page's
     * version.
     */
    async requireOwnCode(): Promise<void> {
      await checkChain();
      const codeOf = (address: protocol.Hex) => ask("eth_getCode", address, "latest");
      await protocol.requireOwnCode(codeOf, { chainId, contract }, "StateCommitment");
    },

    /** The hash of a committed batch's header; 32 zero bytes when L1 has no such batch. */
    async batchHeaderHash(mode: protocol.Mode, batchNumber: number): Promise<protocol.Hash> {
      const [hash] = await call(
        "batchHeaderHash(uint8,uint64)",
        1,
        MODE[mode],
        BigInt(batchNumber),
      );
      return word(hash);
    },

    /** State roots and counts, in one block if the node answers from one. */
    async roots(): Promise<Roots> {
      const [[validium, rollup], [rootValidium], [rootRollup], [commitment]] = await Promise.all([
        call("batchCounts()", 2),
        call("stateRoot(uint8)", 1, MODE.validium),
        call("stateRoot(uint8)", 1, MODE["zk-rollup"]),
        call("stateCommitment()", 1),
      ]);
      return {
        countValidium: Number(validium),
        countRollup: Number(rollup),
        rootValidium: word(rootValidium),
        rootRollup: word(rootRollup),
        commitment: word(commitment),
      };
    },

    /** The registration of an asset type; null when there is none. */
    async registration(chainId: bigint, assetType: protocol.Hash): Promise<Registration | null> {
      const [kind = 0n, token = 0n, quantum = 0n] = await call(
        "asset(uint64,uint256)",
        5,
        chainId,
        assetType,
      );
      const standard = STANDARDS[Number(kind)] ?? null;
      return standard && { standard, token: `0x${token.toString(16).padStart(40, "0")}`, quantum };
    },

    /** Units of a vault that L1 has paid out. */
    async withdrawn(vaultId: bigint, standard: protocol.Standard): Promise<bigint> {
      const [amount = 0n] = await call(
        "withdrawn(uint64,uint8)",
        1,
        vaultId,
        BigInt(STANDARDS.indexOf(standard)),
      );
      return amount;
    },

    /** Whether a committed transfer names the vault. Only deployments with transfers answer. */
    async isSpent(vaultId: bigint): Promise<boolean> {
      const [spent] = await call("isSpent(uint64)", 1, vaultId);
      return spent === 1n;
    },

    /**
     * Why the token would refuse this contract a mint now; null when it would take it. Sends
     * nothing.
     */
    async refusal(
      token: protocol.Hex,
      recipient: protocol.Hex,
      quantity: bigint,
      blob: protocol.Hex,
    ) {
      const bytes = (blob.length - 2) / 2;
      const words = [recipient, quantity, 96n, BigInt(bytes)].map(digits);
      const data = `0x19ee6e3f${words.join("")}${blob.slice(2).padEnd(64 * Math.ceil(bytes / 32), "0")}`;
      try {
        await ask("eth_call", { from: contract, to: token, data }, "latest");
        return null;
      } catch (error) {
        const reason =
          error instanceof Error
            ? error.message
            : String((error as { message?: unknown })?.message);
        // Anything else is a node that does not answer.
        if (!/revert|opcode|out of gas/i.test(reason)) throw error;
        return reason;
      }
    },
  };
}

type Word = bigint | protocol.Hex;

/** A word of 32 bytes in hex, without a prefix. */
function digits(value: Word): string {
  return BigInt(value).toString(16).padStart(64, "0");
}

function word(value = 0n): protocol.Hash {
  return `0x${digits(value)}`;
}
