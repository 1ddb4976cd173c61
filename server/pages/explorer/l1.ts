import * as protocol from "../../../core/protocol/verifier.ts";
import type { Provider } from "../shared/wallets.tsx";
import type { Roots } from "./api.ts";

/** An Ethereum node at an address. */
export function node(address: string): Provider {
  return {
    async request({ method, params = [] }) {
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
      const headers = { "content-type": "application/json" };
      const response = await fetch(address, { method: "POST", headers, body }).catch(() => {
        throw new Error(`This page cannot reach the Ethereum node at ${address}.`);
      });
      const { result, error } = await response.json().catch(() => {
        throw new Error(`The Ethereum node at ${address} answered ${response.status}, but not in JSON.`);
      });
      if (error) throw new Error(`The Ethereum node refused ${method}: ${error.message ?? "no reason given"}`);
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
export class SettlementContract {
  readonly #provider: Provider;
  readonly #address: protocol.Hex;
  readonly #chainId: bigint;
  #rightChain: Promise<void> | undefined;

  constructor(provider: Provider, address: protocol.Hex, chainId: bigint) {
    this.#provider = provider;
    this.#address = address;
    this.#chainId = chainId;
  }

  /** Rejects with a `MintmarkError` unless all code of the contract is that of this page's version. */
  async requireOwnCode(): Promise<void> {
    await this.#checkChain();
    const codeOf = (address: protocol.Hex) => this.#ask("eth_getCode", address, "latest");
    await protocol.requireOwnCode(codeOf, { chainId: this.#chainId, contract: this.#address }, "StateCommitment");
  }

  /** The hash of a committed batch's header; 32 zero bytes when L1 has no such batch. */
  async batchHeaderHash(mode: protocol.Mode, batchNumber: number): Promise<protocol.Hash> {
    const [hash] = await this.#call("batchHeaderHash(uint8,uint64)", 1, MODE[mode], BigInt(batchNumber));
    return word(hash);
  }

  /** State roots and counts, in one block if the node answers from one. */
  async roots(): Promise<Roots> {
    const [[validium, rollup], [rootValidium], [rootRollup], [commitment]] = await Promise.all([
      this.#call("batchCounts()", 2),
      this.#call("stateRoot(uint8)", 1, MODE.validium),
      this.#call("stateRoot(uint8)", 1, MODE["zk-rollup"]),
      this.#call("stateCommitment()", 1),
    ]);
    return {
      countValidium: Number(validium),
      countRollup: Number(rollup),
      rootValidium: word(rootValidium),
      rootRollup: word(rootRollup),
      commitment: word(commitment),
    };
  }

  /** The registration of an asset type; null when there is none. */
  async registration(chainId: bigint, assetType: protocol.Hash): Promise<Registration | null> {
    const [kind = 0n, token = 0n, quantum = 0n] = await this.#call("asset(uint64,uint256)", 5, chainId, assetType);
    const standard = STANDARDS[Number(kind)] ?? null;
    return standard && { standard, token: `0x${token.toString(16).padStart(40, "0")}`, quantum };
  }

  /** Units of a vault that L1 has paid out. */
  async withdrawn(vaultId: bigint, standard: protocol.Standard): Promise<bigint> {
    const [amount = 0n] = await this.#call("withdrawn(uint64,uint8)", 1, vaultId, BigInt(STANDARDS.indexOf(standard)));
    return amount;
  }

  /** Whether a committed transfer names the vault. Only deployments with transfers answer. */
  async isSpent(vaultId: bigint): Promise<boolean> {
    const [spent] = await this.#call("isSpent(uint64)", 1, vaultId);
    return spent === 1n;
  }

  /** Why the token would refuse this contract a mint now; null when it would take it. Sends nothing. */
  async refusal(
    token: protocol.Hex,
    recipient: protocol.Hex,
    quantity: bigint,
    blob: protocol.Hex,
  ): Promise<string | null> {
    const bytes = (blob.length - 2) / 2;
    const words = [recipient, quantity, 96n, BigInt(bytes)].map(digits);
    const data = `0x19ee6e3f${words.join("")}${blob.slice(2).padEnd(64 * Math.ceil(bytes / 32), "0")}`;
    try {
      await this.#ask("eth_call", { from: this.#address, to: token, data }, "latest");
      return null;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String((error as { message?: unknown })?.message);
      // Anything else is a node that does not answer.
      if (!/revert|opcode|out of gas/i.test(reason)) throw error;
      return reason;
    }
  }

  /** Calls a view with word arguments and results, by the contract ABI: selector, then 32 bytes each. */
  async #call(signature: string, results: number, ...args: readonly Word[]): Promise<readonly bigint[]> {
    this.#rightChain ??= this.#checkChain();
    await this.#rightChain;
    const selector = protocol.bytesToHex(protocol.keccak256(new TextEncoder().encode(signature))).slice(0, 10);
    const data = selector + args.map(digits).join("");
    const answer = await this.#ask("eth_call", { to: this.#address, data }, "latest");
    if (typeof answer !== "string" || !/^0x(?:[0-9a-f]{64})+$/i.test(answer) || answer.length !== 2 + 64 * results) {
      throw new Error(`There is no settlement contract at ${this.#address} on this chain.`);
    }
    return Array.from({ length: results }, (_, i) => BigInt(`0x${answer.slice(2 + 64 * i, 66 + 64 * i)}`));
  }

  #ask(method: string, ...params: readonly unknown[]): Promise<unknown> {
    return this.#provider.request({ method, params });
  }

  async #checkChain(): Promise<void> {
    const chainId = BigInt(String(await this.#ask("eth_chainId")));
    if (chainId === this.#chainId) return;
    throw new Error(`This Ethereum node serves chain ${chainId}; the vaults are settled on chain ${this.#chainId}.`);
  }
}

type Word = bigint | protocol.Hex;

/** A word of 32 bytes in hex, without a prefix. */
function digits(value: Word): string {
  return BigInt(value).toString(16).padStart(64, "0");
}

function word(value = 0n): protocol.Hash {
  return `0x${digits(value)}`;
}
