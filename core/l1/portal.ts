import type { Account, ContractFunctionArgs, ContractFunctionName, TransactionReceipt } from "viem";
import { encodeFunctionData, parseEventLogs, size } from "viem";
import { estimateContractGas, getBlock, readContract, simulateContract } from "viem/actions";
import { MintmarkError } from "../errors.ts";
import type { Address, Hex } from "../model.ts";
import type { L1Owner, L1Receipt, L1SendOptions, WithdrawalCall } from "../ports.ts";
import { isTransferred, tipIdOf } from "../protocol/transfer-proof.ts";
import { stateCommitmentAbi as abi } from "./abi.ts";
import * as calldata from "./arguments.ts";
import type { BlobSidecar } from "./blob-sidecar.ts";
import { askL1, type L1Connection, reasonIn, revertReason } from "./connection.ts";
import type { CallKind } from "./fees.ts";
import { GAS_PER_BYTE, ViemReader } from "./reader.ts";
import { TRANSACTION_GAS } from "./tokens.ts";

/**
 * Most withdrawals and signed lists of one transaction, so that its calldata stays below the 128
 * KiB that nodes relay.
 */
const MAX_SHARES = 21;
/**
 * Calldata of a withdrawal with its group, or of half of a withdrawal and its list of 256 vaults.
 */
const MAX_SHARE_BYTES = 6_100;
/**
 * The least gas that the contract gives each item of a batch, for proof, signature and token call
 * together.
 */
const ITEM_GAS = 500_000n;
/** Further gas of each item, and of the whole batch. */
const GAS_AROUND_ITEM = 30_000n;
const GAS_AROUND_ITEMS = 50_000n;
/** Upper bound of the check of one transfer, without its calldata. */
const HOP_GAS = 60_000n;
/**
 * Gas to try one withdrawal of a batch, with some around it. A node that allows more must not try
 * longer.
 */
const TRIAL_GAS = 1_000_000n;
/** The check of its list takes an item's gas too. */
const LIST_TRIAL_GAS = TRIAL_GAS + ITEM_GAS + GAS_AROUND_ITEM;

/** Gas of a plain transfer to an account. */
export const TRANSFER_GAS = 21_000n;

type Writes = ContractFunctionName<typeof abi, "nonpayable">;
type Arguments<F extends Writes> = ContractFunctionArgs<typeof abi, "nonpayable", F>;
/** A function of any interface of the contract, with its arguments. */
export type ContractCall = Parameters<typeof encodeFunctionData>[0] & {
  readonly functionName: string;
};

export interface Call {
  readonly to: Address;
  readonly data: Hex;
  readonly gas: bigint;
  readonly blobs?: BlobSidecar;
}

export interface Sender {
  /** Resolves with the receipt of the mined transaction, successful or reverted. */
  send(
    prepare: () => Promise<Call>,
    options?: L1SendOptions,
    kind?: CallKind,
  ): Promise<TransactionReceipt>;
}

/**
 * The functions of settlement contract and mirror that pay withdrawals, over a viem client and one
 * account.
 */
export class ViemPortal extends ViemReader implements L1Owner {
  protected readonly account: Account;
  readonly #sender: Sender;

  constructor(connection: L1Connection, account: Account, sender: Sender) {
    super(connection);
    this.account = account;
    this.#sender = sender;
  }

  transactionGas(): Promise<bigint> {
    return askL1("asking for the gas of a block", async () => {
      const { gasLimit } = await getBlock(this.client);
      return gasLimit < TRANSACTION_GAS ? gasLimit : TRANSACTION_GAS;
    });
  }

  /**
   * Tries the very call that `withdraw` makes, because a token's behaviour can depend on its gas.
   */
  checkWithdrawal(call: WithdrawalCall): Promise<string | null> {
    return askL1(`trying the withdrawal of vault ${tipIdOf(call)}`, async () => {
      if (isTransferred(call)) return this.#refusalOf(call, transferredGas(call));
      const { result } = await simulateContract(this.client, {
        ...this.#portal,
        functionName: "withdrawBatch",
        args: calldata.withdrawalBatchArguments([call], ITEM_GAS),
        gas: call.authorization.list === undefined ? TRIAL_GAS : LIST_TRIAL_GAS,
      });
      if (result === 0n) return null;
      const tooMuch = "it needs more gas than an item of a batch has; its owner can withdraw it";
      return (await this.#refusalOf(call, TRIAL_GAS)) ?? tooMuch;
    });
  }

  checkOwnWithdrawal(call: WithdrawalCall): Promise<string | null> {
    return askL1(`trying the withdrawal of vault ${tipIdOf(call)}`, () => this.#refusalOf(call));
  }

  /** The contract's answer to `withdraw`, which gives a reason where `withdrawBatch` gives none. */
  async #refusalOf(call: WithdrawalCall, gas?: bigint): Promise<string | null> {
    const { list, deadline } = call.authorization;
    const limit = gas !== undefined && { gas };
    try {
      if (list === undefined) {
        // viem's types cannot follow a union of functions.
        await simulateContract(this.client, {
          ...this.#portal,
          ...calldata.withdrawalCall(call),
          ...limit,
        } as never);
        return null;
      }
      const { vaultId, owner } = call.vault;
      const args = [calldata.packedList(call, list)] as const;
      await readContract(this.client, {
        ...this.#portal,
        functionName: "checkList",
        args,
        ...limit,
      });
      const listed = list.find((each) => each.vaultId === vaultId);
      if ((await this.verifyVault(call)) !== listed?.withdrawnBefore)
        return `NotListed(${vaultId})`;
      // The list decides, so the owner may be the caller here.
      await simulateContract(this.client, {
        ...this.#portal,
        account: owner as Address,
        functionName: "withdraw",
        args: calldata.withdrawalArguments({
          ...call,
          authorization: { deadline, signature: "0x" },
        }),
        ...limit,
      });
      return null;
    } catch (error) {
      const reason = revertReason(error);
      if (reason === null) throw error;
      return reason;
    }
  }

  get #portal() {
    return { abi, address: this.settlement.contract, account: this.account } as const;
  }

  async mostWithdrawals(): Promise<number> {
    const left = (await this.transactionGas()) - relayGas(0, 0);
    const most = Number(left / (relayGas(1, MAX_SHARE_BYTES) - relayGas(0, 0)));
    return Math.max(2, Math.min(most, MAX_SHARES));
  }

  async withdraw(calls: readonly WithdrawalCall[], options?: L1SendOptions) {
    const [first] = calls;
    if (calls.length === 1 && first !== undefined && isTransferred(first))
      return this.#withdrawTransferred(first, options);
    const args = calldata.withdrawalBatchArguments(calls, ITEM_GAS);
    const shares = calls.length + args[1].length;
    if (calls.length < 1 || shares > MAX_SHARES)
      throw new RangeError(`1 to ${MAX_SHARES} withdrawals and lists a transaction, not ${shares}`);
    const call = { abi, functionName: "withdrawBatch", args } as const;
    const gas = (data: Hex) => relayGas(shares, size(data));
    const receipt = await this.#mined(call, options, async () => this.withGas(call, gas));
    if (receipt.status === "reverted") return { ...toReceipt(receipt), refusals: null };
    // A failed item leaves an event of the contract in this transaction. A token may add others
    // that look like it.
    const own = receipt.logs.filter(
      ({ address }) => address.toLowerCase() === this.settlement.contract,
    );
    const failed = parseEventLogs({ abi, logs: own, eventName: "WithdrawalFailed", strict: true });
    const reasons = new Map(failed.map(({ args }) => [args.vaultId, reasonIn(abi, args.reason)]));
    return {
      ...toReceipt(receipt),
      refusals: calls.map(({ vault }) => reasons.get(vault.vaultId) ?? null),
    };
  }

  async withdrawOwn(call: WithdrawalCall, options?: L1SendOptions): Promise<L1Receipt> {
    return this.send(calldata.withdrawalCall(call) as ContractCall, options);
  }

  /**
   * The contract has no batch of them. With the gas of its trial, for the reasons of {@link
   * relayGas}.
   */
  async #withdrawTransferred(call: WithdrawalCall, options?: L1SendOptions) {
    const one = calldata.withdrawalCall(call) as ContractCall;
    const receipt = await this.#mined(one, options, async () =>
      this.withGas(one, () => transferredGas(call)),
    );
    return { ...toReceipt(receipt), refusals: receipt.status === "reverted" ? null : [null] };
  }

  protected transact<F extends Writes>(
    functionName: F,
    args: Arguments<F>,
    options?: L1SendOptions,
  ) {
    // viem's types cannot follow a union of functions; the signature above ties the arguments to
    // the function.
    return this.send({ abi, functionName, args } as ContractCall, options);
  }

  /** Sends a call to the contract, in turn with the account's other ones. */
  protected async send(
    call: ContractCall,
    options?: L1SendOptions,
    prepare?: () => Promise<Call>,
    kind?: CallKind,
  ) {
    const receipt = await this.#mined(call, options, prepare, kind);
    if (receipt.status === "success") return toReceipt(receipt);
    throw new MintmarkError(
      "l1_failed",
      `${call.functionName}: transaction ${receipt.transactionHash} reverted`,
    );
  }

  #mined(
    call: ContractCall,
    options?: L1SendOptions,
    prepare = () => this.prepare(call),
    kind?: CallKind,
  ) {
    return askL1(call.functionName, () => this.#sender.send(prepare, options, kind));
  }

  /** The estimate shows a refusal with the contract's own error, before anything is sent. */
  protected async prepare(call: ContractCall, at?: bigint, blobs?: BlobSidecar): Promise<Call> {
    // On mined state: this account's pending transactions may be about to be replaced.
    const block = at === undefined ? { blockTag: "latest" } : { blockNumber: at };
    const estimate = await estimateContractGas(this.client, {
      ...call,
      address: this.settlement.contract,
      account: this.account,
      ...(blobs && { blobVersionedHashes: blobs.versionedHashes }),
      ...block,
    } as Parameters<typeof estimateContractGas>[1]);
    return this.withGas(call, () => estimate + estimate / 20n);
  }

  protected withGas(call: ContractCall, gasOf: (data: Hex) => bigint): Call {
    const data = encodeFunctionData(call);
    const gas = gasOf(data);
    return {
      to: this.settlement.contract,
      data,
      gas: gas < TRANSACTION_GAS ? gas : TRANSACTION_GAS,
    };
  }
}

/**
 * The most gas of a relay. It is not estimated: a token or a wallet can turn expensive before the
 * transaction is mined, and the contract reverts as a whole when an item has less than its gas
 * left. Some tokens could also take so long together that a node gives up.
 */
function relayGas(shares: number, bytes: number): bigint {
  return (
    TRANSFER_GAS +
    BigInt(bytes) * GAS_PER_BYTE +
    BigInt(shares) * (ITEM_GAS + GAS_AROUND_ITEM) +
    GAS_AROUND_ITEMS
  );
}

/** The most gas of the withdrawal of a transferred vault: that of an item, and of each transfer. */
function transferredGas(call: WithdrawalCall): bigint {
  const hops = BigInt((call.hops?.length ?? 0) + 1);
  return relayGas(1, size(calldata.withdrawCalldata(call))) + hops * HOP_GAS;
}

export function toReceipt({
  transactionHash,
  blockNumber,
  gasUsed,
}: TransactionReceipt): L1Receipt {
  return { txHash: transactionHash, blockNumber, gasUsed };
}
