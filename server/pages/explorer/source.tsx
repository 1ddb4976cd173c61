import { useReducer, useState } from "preact/hooks";
import {
  type ContractFunctionArgs,
  type ContractFunctionName,
  type ContractFunctionReturnType,
  decodeFunctionResult,
  encodeFunctionData,
  parseAbi,
} from "viem";
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

const ABI = parseAbi([
  "function asset(uint64 chainId, uint256 assetType) view returns (uint8 standard, address token, uint256 quantum, uint8 scheme, uint64 since)",
  "function batchCounts() view returns (uint64 validium, uint64 rollup)",
  "function batchHeaderHash(uint8 mode, uint64 batchNumber) view returns (bytes32)",
  "function isSpent(uint64 vaultId) view returns (bool)",
  "function stateCommitment() view returns (bytes32)",
  "function stateRoot(uint8 mode) view returns (bytes32)",
  "function withdrawn(uint64 vaultId, uint8 standard) view returns (uint64)",
]);
const MINT = parseAbi(["function mintFor(address to, uint256 quantity, bytes mintingBlob)"]);
type View = ContractFunctionName<typeof ABI, "view">;

/** The contract's values of `Mode` and `Standard`. */
const MODE: Readonly<Record<protocol.Mode, number>> = { validium: 0, "zk-rollup": 1 };
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
  /** Calls a view on the newest block. */
  const call = async <F extends View>(
    functionName: F,
    args: ContractFunctionArgs<typeof ABI, "view", F>,
  ): Promise<ContractFunctionReturnType<typeof ABI, "view", F>> => {
    rightChain ??= checkChain();
    await rightChain;
    const asked = { abi: ABI, functionName, args } as Parameters<typeof encodeFunctionData>[0];
    const data = await ask("eth_call", { to: contract, data: encodeFunctionData(asked) }, "latest");
    try {
      return decodeFunctionResult({ ...asked, data: data as protocol.Hex }) as never;
    } catch {
      throw new Error(`There is no settlement contract at ${contract} on this chain.`);
    }
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
      return call("batchHeaderHash", [MODE[mode], BigInt(batchNumber)]);
    },

    /** State roots and counts, in one block if the node answers from one. */
    async roots(): Promise<Roots> {
      const [[validium, rollup], rootValidium, rootRollup, commitment] = await Promise.all([
        call("batchCounts", []),
        call("stateRoot", [MODE.validium]),
        call("stateRoot", [MODE["zk-rollup"]]),
        call("stateCommitment", []),
      ]);
      return {
        countValidium: Number(validium),
        countRollup: Number(rollup),
        rootValidium,
        rootRollup,
        commitment,
      };
    },

    /** The registration of an asset type; null when there is none. */
    async registration(chainId: bigint, assetType: protocol.Hash): Promise<Registration | null> {
      const [kind, token, quantum] = await call("asset", [chainId, BigInt(assetType)]);
      const standard = STANDARDS[kind] ?? null;
      return standard && { standard, token: token.toLowerCase() as protocol.Hex, quantum };
    },

    /** Units of a vault that L1 has paid out. */
    async withdrawn(vaultId: bigint, standard: protocol.Standard): Promise<bigint> {
      return call("withdrawn", [vaultId, STANDARDS.indexOf(standard)]);
    },

    /** Whether a committed transfer names the vault. Only deployments with transfers answer. */
    async isSpent(vaultId: bigint): Promise<boolean> {
      return call("isSpent", [vaultId]);
    },

    /**
     * Why the token would refuse this contract a mint now; null when it would take it. Sends
     * nothing.
     */
    async refusal(
      token: protocol.Hex,
      recipient: protocol.Hex,
      quantity: bigint,
      mintingBlob: protocol.Hex,
    ) {
      const data = encodeFunctionData({ abi: MINT, args: [recipient, quantity, mintingBlob] });
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
