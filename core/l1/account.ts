import type { Account, ContractFunctionArgs, ContractFunctionName, TransactionReceipt } from "viem";
import { encodeFunctionData, parseEventLogs } from "viem";
import { estimateContractGas } from "viem/actions";
import { MintmarkError } from "../errors.ts";
import { TRANSACTION_GAS } from "../gas.ts";
import type { Address, Hex, VaultId } from "../model.ts";
import type { L1Receipt, L1SendOptions } from "../ports.ts";
import { stateCommitmentAbi as abi } from "./abi.ts";
import type { BlobSidecar } from "./blob-sidecar.ts";
import { askL1, type L1Connection, reasonIn } from "./connection.ts";
import type { CallKind } from "./fees.ts";
import { logsOf } from "./logs.ts";

type Writes = ContractFunctionName<typeof abi, "nonpayable">;
type Arguments<F extends Writes> = ContractFunctionArgs<typeof abi, "nonpayable", F>;
/** A function of any interface of the contract, with its arguments. */
export type ContractCall = Parameters<typeof encodeFunctionData>[0] & {
  readonly functionName: string;
  /** Default: the contract. */
  readonly address?: Address;
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

/** An account on a connection. Its parts send their calls in turn. */
export type L1Account = ReturnType<typeof accountOn>;

export function accountOn(connection: L1Connection, account: Account, sender: Sender) {
  const { client, settlement } = connection;

  function transact<F extends Writes>(
    functionName: F,
    args: Arguments<F>,
    options?: L1SendOptions,
  ): Promise<L1Receipt> {
    // viem's types cannot follow a union of functions; the signature above ties the arguments to
    // the function.
    return send({ abi, functionName, args } as ContractCall, options);
  }

  /** Sends a call to the contract, in turn with the account's other ones. */
  async function send(
    call: ContractCall,
    options?: L1SendOptions,
    prepare?: () => Promise<Call>,
    kind?: CallKind,
  ): Promise<L1Receipt> {
    const receipt = await mined(call, options, prepare, kind);
    if (receipt.status === "success") return toReceipt(receipt);
    throw new MintmarkError(
      "l1_failed",
      `${call.functionName}: transaction ${receipt.transactionHash} reverted`,
    );
  }

  /** Sends a call; resolves with the receipt of the transaction, successful or reverted. */
  function mined(
    call: ContractCall,
    options?: L1SendOptions,
    prepareCall = () => prepare(call),
    kind?: CallKind,
  ) {
    return askL1(call.functionName, () => sender.send(prepareCall, options, kind));
  }

  /**
   * Sends a call of several items. One that fails leaves an event of the contract with its reason;
   * `refusals` is null when L1 reverted the whole transaction.
   */
  async function sendMany(
    call: ContractCall,
    eventName: "WithdrawalFailed" | "TradeFailed",
    ids: readonly VaultId[],
    options?: L1SendOptions,
    prepare?: () => Promise<Call>,
  ) {
    const receipt = await mined(call, options, prepare);
    if (receipt.status === "reverted") return { ...toReceipt(receipt), refusals: null };
    const logs = logsOf(settlement.contract, receipt);
    const failed = parseEventLogs({ abi, logs, eventName, strict: true });
    const reasons = new Map(failed.map(({ args }) => [args.vaultId, reasonIn(abi, args.reason)]));
    return { ...toReceipt(receipt), refusals: ids.map((id) => reasons.get(id) ?? null) };
  }

  /** The estimate shows a refusal with the contract's own error, before anything is sent. */
  async function prepare(call: ContractCall, at?: bigint, blobs?: BlobSidecar): Promise<Call> {
    // On mined state: this account's pending transactions may be about to be replaced.
    const block = at === undefined ? { blockTag: "latest" } : { blockNumber: at };
    const estimate = await estimateContractGas(client, {
      address: settlement.contract,
      ...call,
      account,
      ...(blobs && { blobVersionedHashes: blobs.versionedHashes }),
      ...block,
    } as Parameters<typeof estimateContractGas>[1]);
    return withGas(call, () => estimate + estimate / 20n);
  }

  function withGas(call: ContractCall, gasOf: (data: Hex) => bigint): Call {
    const data = encodeFunctionData(call);
    const gas = gasOf(data);
    return {
      to: call.address ?? settlement.contract,
      data,
      gas: gas < TRANSACTION_GAS ? gas : TRANSACTION_GAS,
    };
  }

  return { ...connection, account, transact, send, sendMany, mined, prepare, withGas };
}

export function toReceipt({
  transactionHash,
  blockNumber,
  gasUsed,
}: TransactionReceipt): L1Receipt {
  return { txHash: transactionHash, blockNumber, gasUsed };
}
