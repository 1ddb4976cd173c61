import {
  createWalletClient,
  custom,
  encodeFunctionData,
  type LocalAccount,
  type TransactionReceipt,
  toHex,
  type WalletClient,
} from "viem";
import { pause } from "../backoff.ts";
import { MintmarkError } from "../errors.ts";
import type { Hash, Hex, Mode } from "../model.ts";
import type { L1Committer, L1Receipt, L1SendOptions, SealedBatch, WithdrawalCall } from "../ports.ts";
import { stateCommitmentAbi as abi } from "./abi.ts";
import type { FeeOptions, L1Connection } from "./connect.ts";
import { decodeEvents } from "./events.ts";
import { askL1, revertReason } from "./failure.ts";
import { ViemReader } from "./reader.ts";

/** Gas of one withdrawal in a batch that the contract sets aside, and what the batch itself takes; see `Withdrawals.sol`. */
const ITEM_GAS = 560_000n;
const BATCH_GAS = 100_000n;
/** Most withdrawals of one transaction: 20 × 560,000 stays below the 16,777,216 gas that one may use. */
const MAX_ITEMS = 20;
const REPLACE_AFTER_MS = 60_000;
/** A replacement must offer at least a tenth more; nodes ask for it. */
const BUMP_PERCENT = 125n;

type Call = { readonly to: Hex; readonly data: Hex; readonly gas: bigint };

/** {@link L1Committer} over a viem client and one account, whose transactions are sent one after the other. */
export class ViemCommitter extends ViemReader implements L1Committer {
  readonly #wallet: WalletClient;
  readonly #account: LocalAccount;
  readonly #fees: FeeOptions;
  #last: Promise<unknown> = Promise.resolve();

  constructor(connection: L1Connection, account: LocalAccount, fees: FeeOptions = {}) {
    super(connection);
    this.#account = account;
    this.#fees = fees;
    this.#wallet = createWalletClient({ account, transport: custom(connection.client) });
  }

  commitRollup(batch: SealedBatch, options?: L1SendOptions): Promise<L1Receipt> {
    requireMode(batch, "zk-rollup");
    const args = [BigInt(batch.batchNumber), toHex(batch.data)] as const;
    return this.#transact("commitRollupBatch", args, options);
  }

  commitValidium(batch: SealedBatch, attestation: Hex, options?: L1SendOptions): Promise<L1Receipt> {
    requireMode(batch, "validium");
    const { batchNumber, batchRoot, vaultCount, dataHash } = batch;
    const args = [BigInt(batchNumber), batchRoot, vaultCount, dataHash, attestation] as const;
    return this.#transact("commitValidiumBatch", args, options);
  }

  async checkWithdrawal(call: WithdrawalCall): Promise<string | null> {
    const { client } = this.connection;
    const { vault, header, siblings, quantity, recipient, authorization } = requestOf(call);
    return askL1(`trying the withdrawal of vault ${vault.vaultId}`, async () => {
      try {
        await client.simulateContract({
          abi,
          address: this.settlement.contract,
          functionName: "withdraw",
          args: [vault, header, siblings, quantity, recipient, authorization],
          account: this.#account,
        });
        return null;
      } catch (error) {
        const reason = revertReason(error);
        if (reason === null) throw error;
        return reason;
      }
    });
  }

  async withdraw(calls: readonly WithdrawalCall[], options?: L1SendOptions) {
    if (calls.length < 1 || calls.length > MAX_ITEMS)
      throw new RangeError(`1 to ${MAX_ITEMS} withdrawals a transaction`);
    const gas = BATCH_GAS + ITEM_GAS * BigInt(calls.length);
    const receipt = await this.#send("withdrawBatch", [calls.map(requestOf)], gas, options);
    // Told by the events of this very transaction: a failed item left one, in its order.
    const failed = decodeEvents(receipt.logs).filter(({ type }) => type === "withdrawalFailed");
    const failedIds = new Set(failed.map((event) => ("vaultId" in event ? event.vaultId : null)));
    return { ...toReceipt(receipt), succeeded: calls.map(({ vault }) => !failedIds.has(vault.vaultId)) };
  }

  async #transact(functionName: string, args: readonly unknown[], options?: L1SendOptions): Promise<L1Receipt> {
    return toReceipt(await this.#send(functionName, args, null, options));
  }

  /** Estimating first shows a refusal with the contract's own error, before anything is sent. */
  #send(functionName: string, args: readonly unknown[], gas: bigint | null, options?: L1SendOptions) {
    const turn = this.#last
      .catch(() => {})
      .then(() =>
        askL1(functionName, async () => {
          const call = await this.#prepare(functionName, args, gas);
          return this.#sendAndWait(functionName, call, options);
        }),
      );
    this.#last = turn;
    return turn;
  }

  async #prepare(functionName: string, args: readonly unknown[], gas: bigint | null): Promise<Call> {
    const { client } = this.connection;
    const request = { abi, address: this.settlement.contract, functionName, args, account: this.#account };
    const estimate =
      gas ?? (await client.estimateContractGas(request as Parameters<typeof client.estimateContractGas>[0]));
    const data = encodeFunctionData({ abi, functionName, args } as Parameters<typeof encodeFunctionData>[0]);
    return { to: this.settlement.contract, data, gas: gas ?? estimate + estimate / 20n };
  }

  /** Sends under the account's next nonce; while no receipt comes, again under the same nonce at a higher fee, up to the cap. */
  async #sendAndWait(what: string, call: Call, options: L1SendOptions = {}): Promise<TransactionReceipt> {
    const { client } = this.connection;
    const { replaceAfterMs = REPLACE_AFTER_MS, maxFeePerGas: cap } = this.#fees;
    const nonce = await client.getTransactionCount({ address: this.#account.address, blockTag: "latest" });
    let fees = await client.estimateFeesPerGas();
    const sent: Hash[] = [];
    for (;;) {
      options.signal?.throwIfAborted();
      const maxFeePerGas = least(fees.maxFeePerGas, cap);
      const maxPriorityFeePerGas = least(fees.maxPriorityFeePerGas, maxFeePerGas);
      const fee = { maxFeePerGas, maxPriorityFeePerGas };
      const hash = await this.#wallet.sendTransaction({ ...call, ...fee, nonce, account: this.#account, chain: null });
      if (!sent.includes(hash)) {
        sent.push(hash);
        await options.onSent?.(hash);
      }
      const receipt = await this.#receiptOfAny(sent, replaceAfterMs, options.signal);
      if (receipt?.status === "success") return receipt;
      if (receipt) throw new MintmarkError("l1_failed", `${what}: transaction ${receipt.transactionHash} reverted`);
      const bump = (value: bigint) => (value * BUMP_PERCENT) / 100n;
      fees = { ...fees, maxFeePerGas: bump(fees.maxFeePerGas), maxPriorityFeePerGas: bump(fees.maxPriorityFeePerGas) };
    }
  }

  /** The receipt of whichever of the transactions was mined; null after `ms` without one. */
  async #receiptOfAny(hashes: readonly Hash[], ms: number, signal?: AbortSignal): Promise<TransactionReceipt | null> {
    const { client, pollingMs } = this.connection;
    const deadline = Date.now() + ms;
    do {
      for (const hash of hashes) {
        const receipt = await client.getTransactionReceipt({ hash }).catch((error: unknown) => {
          if (error instanceof Error && error.name === "TransactionReceiptNotFoundError") return null;
          throw error;
        });
        if (receipt !== null) return receipt;
      }
      await pause(Math.min(pollingMs, 250), signal);
    } while (Date.now() < deadline);
    return null;
  }
}

function least(value: bigint, cap: bigint | undefined): bigint {
  if (cap === undefined) return value;
  return value <= cap ? value : cap;
}

function requireMode(batch: SealedBatch, mode: Mode): void {
  if (batch.mode !== mode) throw new RangeError(`a ${batch.mode} batch cannot be committed as ${mode}`);
}

/** The contract's `WithdrawalRequest`. */
function requestOf({ vault, siblings, ...rest }: WithdrawalCall) {
  return { ...rest, siblings: [...siblings], vault: { ...vault, assetType: BigInt(vault.assetType) } };
}

function toReceipt({ transactionHash, blockNumber, gasUsed }: TransactionReceipt): L1Receipt {
  return { txHash: transactionHash, blockNumber, gasUsed };
}
