import * as protocol from "../../../core/protocol/verifier.ts";
import type { Provider } from "../shared/wallets.tsx";
import type { Roots } from "./api.ts";

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
export type SettlementContract = ReturnType<typeof settlementContract>;

export function settlementContract(provider: Provider, contract: protocol.Hex, chainId: bigint) {
  const ask = (method: string, ...params: readonly unknown[]) => provider.request({ method, params });
  const checkChain = async () => {
    const served = BigInt(String(await ask("eth_chainId")));
    if (served === chainId) return;
    throw new Error(`This Ethereum node serves chain ${served}; the vaults are settled on chain ${chainId}.`);
  };
  let rightChain: Promise<void> | undefined;
  /** Calls a view with word arguments and results, by the contract ABI: selector, then 32 bytes each. */
  const call = async (signature: string, results: number, ...args: readonly Word[]): Promise<readonly bigint[]> => {
    rightChain ??= checkChain();
    await rightChain;
    const selector = protocol.bytesToHex(protocol.keccak256(new TextEncoder().encode(signature))).slice(0, 10);
    const answer = await ask("eth_call", { to: contract, data: selector + args.map(digits).join("") }, "latest");
    if (typeof answer !== "string" || !/^0x(?:[0-9a-f]{64})+$/i.test(answer) || answer.length !== 2 + 64 * results)
      throw new Error(`There is no settlement contract at ${contract} on this chain.`);
    return Array.from({ length: results }, (_, i) => BigInt(`0x${answer.slice(2 + 64 * i, 66 + 64 * i)}`));
  };
  return {
    /** Rejects with a `MintmarkError` unless all code of the contract is that of this page's version. */
    async requireOwnCode(): Promise<void> {
      await checkChain();
      const codeOf = (address: protocol.Hex) => ask("eth_getCode", address, "latest");
      await protocol.requireOwnCode(codeOf, { chainId, contract }, "StateCommitment");
    },

    /** The hash of a committed batch's header; 32 zero bytes when L1 has no such batch. */
    async batchHeaderHash(mode: protocol.Mode, batchNumber: number): Promise<protocol.Hash> {
      const [hash] = await call("batchHeaderHash(uint8,uint64)", 1, MODE[mode], BigInt(batchNumber));
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
      const [kind = 0n, token = 0n, quantum = 0n] = await call("asset(uint64,uint256)", 5, chainId, assetType);
      const standard = STANDARDS[Number(kind)] ?? null;
      return standard && { standard, token: `0x${token.toString(16).padStart(40, "0")}`, quantum };
    },

    /** Units of a vault that L1 has paid out. */
    async withdrawn(vaultId: bigint, standard: protocol.Standard): Promise<bigint> {
      const [amount = 0n] = await call("withdrawn(uint64,uint8)", 1, vaultId, BigInt(STANDARDS.indexOf(standard)));
      return amount;
    },

    /** Whether a committed transfer names the vault. Only deployments with transfers answer. */
    async isSpent(vaultId: bigint): Promise<boolean> {
      const [spent] = await call("isSpent(uint64)", 1, vaultId);
      return spent === 1n;
    },

    /** Why the token would refuse this contract a mint now; null when it would take it. Sends nothing. */
    async refusal(token: protocol.Hex, recipient: protocol.Hex, quantity: bigint, blob: protocol.Hex) {
      const bytes = (blob.length - 2) / 2;
      const words = [recipient, quantity, 96n, BigInt(bytes)].map(digits);
      const data = `0x19ee6e3f${words.join("")}${blob.slice(2).padEnd(64 * Math.ceil(bytes / 32), "0")}`;
      try {
        await ask("eth_call", { from: contract, to: token, data }, "latest");
        return null;
      } catch (error) {
        const reason = error instanceof Error ? error.message : String((error as { message?: unknown })?.message);
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
