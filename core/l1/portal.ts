import type { Account, ContractFunctionArgs, ContractFunctionName, TransactionReceipt } from "viem";
import { encodeFunctionData, parseAbi, parseEventLogs, size } from "viem";
import {
  call as callContract,
  estimateContractGas,
  getBlock,
  getCode,
  readContract,
  simulateContract,
} from "viem/actions";
import { MintmarkError } from "../errors.ts";
import {
  GAS_AROUND_ITEM,
  GAS_AROUND_ITEMS,
  GAS_PER_BYTE,
  ITEM_GAS,
  TRANSACTION_GAS,
  TRANSFER_GAS,
  TRIAL_GAS,
  WAY_GAS,
} from "../gas.ts";
import type { Address, Hex } from "../model.ts";
import type {
  L1Enterer,
  L1Entry,
  L1Owner,
  L1Receipt,
  L1Renewer,
  L1SendOptions,
  WithdrawalAuthorization,
  WithdrawalCall,
} from "../ports.ts";
import type { L1Settler, Trade } from "../protocol/trade.ts";
import { isTransferred, sharesOf, tipIdOf, tipOwnerOf } from "../protocol/transfer-proof.ts";
import { cancellationId } from "../protocol/typed-data.ts";
import { packVaultId } from "../protocol/vault.ts";
import { stateCommitmentAbi as abi } from "./abi.ts";
import * as calldata from "./arguments.ts";
import type { BlobSidecar } from "./blob-sidecar.ts";
import { askL1, type L1Connection, reasonIn, revertData } from "./connection.ts";
import type { CallKind } from "./fees.ts";
import { ViemReader } from "./reader.ts";
import { revertReason } from "./reason.ts";
import { settlementArguments, tradeCalldata, tradeRefusal } from "./trades.ts";

/**
 * Most shares of one transaction, {@link sharesOf} and one for each signed list, so that its
 * calldata stays below the 128 KiB that nodes relay.
 */
const MAX_SHARES = 21;
/**
 * Calldata of a withdrawal with its group, of the records of a transferred vault, or of half of a
 * withdrawal and its list of 256 vaults.
 */
const MAX_SHARE_BYTES = 6_100;
/** Most calldata of a renewal: nodes relay transactions of 128 KiB. */
const MAX_RENEWAL_BYTES = 130_000;

/** For a node that cannot try a contract's code in the place of another. */
const REFUSED_TRADE =
  "L1 refuses the trade now: a vault is not mature or no longer as signed, or a signature does not count there.";
const NO_MAKINGS =
  "This deployment makes no vaults, so it settles no trades. Deploy the contracts with the code of makings.";

/** The entries of this project's tokens, and the errors by which they refuse. */
const ENTER = parseAbi([
  "function enter(address owner, uint256 amountOrTokenId) returns (uint64 vaultId)",
  "function enter(address owner, uint256 tokenId, uint256 amount) returns (uint64 vaultId)",
  "error MinterNotLocked()",
  "error CapForbidsEntry(uint256 cap)",
  "error ERC20InsufficientBalance(address sender, uint256 balance, uint256 needed)",
  "error ERC721NonexistentToken(uint256 tokenId)",
  "error ERC721IncorrectOwner(address sender, uint256 tokenId, address owner)",
  "error ERC1155InsufficientBalance(address sender, uint256 balance, uint256 needed, uint256 id)",
]);

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

/**
 * The functions of settlement contract and mirror that pay withdrawals, over a viem client and one
 * account.
 */
export class ViemPortal extends ViemReader implements L1Enterer, L1Owner, L1Renewer, L1Settler {
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
      const { result } = await simulateContract(this.client, {
        ...this.#portal,
        functionName: "withdrawBatch",
        args: calldata.withdrawalBatchArguments([call], ITEM_GAS),
        gas: trialGas(call),
      });
      if (result === 0n) return null;
      const tooMuch = "it needs more gas than an item of a batch has; its owner can withdraw it";
      return (await this.#refusalOf(call, trialGas(call))) ?? tooMuch;
    });
  }

  checkOwnWithdrawal(call: WithdrawalCall): Promise<string | null> {
    return askL1(`trying the withdrawal of vault ${tipIdOf(call)}`, () => this.#refusalOf(call));
  }

  /** The contract's answer to `withdraw`, which gives a reason where `withdrawBatch` gives none. */
  async #refusalOf(call: WithdrawalCall, gas?: bigint): Promise<string | null> {
    const { authorization } = call;
    const limit = gas !== undefined && { gas };
    try {
      if (authorization !== null) {
        const refusal = await this.#listRefusal(call, authorization, limit);
        if (refusal !== null) return refusal;
      }
      // viem's types cannot follow a union of functions. A list decides, so the owner may be the
      // caller here.
      await simulateContract(this.client, {
        ...this.#portal,
        ...(authorization !== null && { account: tipOwnerOf(call) }),
        ...calldata.withdrawalCall(call),
        ...limit,
      } as never);
      return null;
    } catch (error) {
      const reason = revertReason(error);
      if (reason === null) throw error;
      return reason;
    }
  }

  /**
   * Why the list refuses the vault, whatever the vault is; null when it does not. Rejects when the
   * contract reverts.
   */
  async #listRefusal(
    call: WithdrawalCall,
    authorization: WithdrawalAuthorization,
    limit: false | { readonly gas: bigint },
  ): Promise<string | null> {
    const read = { abi, address: this.settlement.contract, ...limit } as const;
    await readContract(this.client, {
      ...read,
      functionName: "checkList",
      args: [calldata.packedList(call, authorization)],
    });
    const vaultId = tipIdOf(call);
    const id = cancellationId(vaultId);
    const cancelled = [tipOwnerOf(call), id] as const;
    if (await readContract(this.client, { ...read, functionName: "isCancelled", args: cancelled }))
      return `AuthorizationIsCancelled(${id})`;
    const listed = authorization.list.find((each) => each.vaultId === vaultId);
    // L1 keeps no amount of an ERC-721 vault, before which nothing was withdrawn.
    return (await this.withdrawn(vaultId, "erc1155")) === listed?.withdrawnBefore
      ? null
      : `NotListed(${vaultId})`;
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
    const args = calldata.withdrawalBatchArguments(calls, ITEM_GAS);
    const shares = calls.reduce((sum, call) => sum + sharesOf(call), args[1].length);
    if (calls.length < 1 || shares > MAX_SHARES)
      throw new RangeError(`1 to ${MAX_SHARES} shares a transaction, not ${shares}`);
    const call = { abi, functionName: "withdrawBatch", args } as const;
    const gas = (data: Hex) => relayGas(shares, size(data));
    const receipt = await this.mined(call, options, async () => this.withGas(call, gas));
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
      refusals: calls.map((call) => reasons.get(tipIdOf(call)) ?? null),
    };
  }

  async withdrawOwn(call: WithdrawalCall, options?: L1SendOptions): Promise<L1Receipt> {
    return this.send(calldata.withdrawalCall(call) as ContractCall, options);
  }

  async checkRenewal(calls: readonly WithdrawalCall[]): Promise<string | null> {
    const call = renewalCall(calls);
    const gas = await this.transactionGas();
    return askL1(call.functionName, async () => {
      try {
        await simulateContract(this.client, { ...this.#portal, ...call, gas });
        return null;
      } catch (error) {
        const reason = revertReason(error);
        if (reason === null) throw error;
        return reason;
      }
    });
  }

  async renew(calls: readonly WithdrawalCall[], options?: L1SendOptions) {
    const receipt = await this.mined(renewalCall(calls), options);
    const { transactionHash: txHash } = receipt;
    if (receipt.status === "reverted")
      throw new MintmarkError("l1_failed", `renew: transaction ${txHash} reverted`);
    const { making, vaults } = this.madeIn(receipt);
    const batchNumber = Number(making);
    return {
      ...toReceipt(receipt),
      vaults: vaults.map((vault, slot) => ({
        ...vault,
        vaultId: packVaultId({ mode: "made", batchNumber, slot }),
      })),
    };
  }

  checkTrade(trade: Trade): Promise<string | null> {
    const { maker, taker } = trade;
    const vaults = `vaults ${tipIdOf(maker)} and ${tipIdOf(taker)}`;
    return askL1(`trying the trade of ${vaults}`, async () => {
      if (!(await this.hasMakings())) return NO_MAKINGS;
      const { result } = await simulateContract(this.client, {
        ...this.#portal,
        functionName: "settle",
        args: settlementArguments([trade]),
      });
      return result[1] === 0n ? null : this.#tradeRefusal(trade);
    });
  }

  /**
   * Why L1 refuses a trade. `settle` tells it in an event, which a call does not return, so the
   * code of makings runs the trade in the place of the contract.
   */
  async #tradeRefusal(trade: Trade): Promise<string> {
    const [address, maturity] = await Promise.all([
      this.view("asking for the code of makings", "makingsCode", []),
      this.view("asking for the maturity", "maturity", []),
    ]);
    const code = await getCode(this.client, { address });
    try {
      await callContract(this.client, {
        account: this.account.address,
        to: this.settlement.contract,
        data: tradeCalldata(trade, maturity),
        stateOverride: [{ address: this.settlement.contract, code: code ?? "0x" }],
      });
      return REFUSED_TRADE;
    } catch (error) {
      const data = revertData(error);
      return data === null ? REFUSED_TRADE : tradeRefusal(reasonIn(abi, data));
    }
  }

  async settle(trades: readonly Trade[], options?: L1SendOptions) {
    const args = settlementArguments(trades);
    const receipt = await this.mined({ abi, functionName: "settle", args }, options);
    if (receipt.status === "reverted") return { ...toReceipt(receipt), refusals: null };
    const own = receipt.logs.filter(
      ({ address }) => address.toLowerCase() === this.settlement.contract,
    );
    const failed = parseEventLogs({ abi, logs: own, eventName: "TradeFailed", strict: true });
    const reasons = new Map(
      failed.map(({ args }) => [args.vaultId, tradeRefusal(reasonIn(abi, args.reason))]),
    );
    const refusals = trades.map(({ maker }) => reasons.get(tipIdOf(maker)) ?? null);
    return { ...toReceipt(receipt), refusals };
  }

  /**
   * Burns tokens that this account holds, of which L1 makes a vault. Rejects with `l1_failed`, with
   * the token's reason.
   */
  async enter(entry: L1Entry, options?: L1SendOptions): Promise<L1Receipt> {
    const { token: address, standard, owner, tokenId, amount } = entry;
    const id = tokenId === null ? [] : [tokenId];
    const args = [owner, ...id, ...(standard === "erc721" ? [] : [amount])];
    return this.send(
      { address, abi: [...ENTER, ...abi], functionName: "enter", args } as ContractCall,
      options,
    );
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
    const receipt = await this.mined(call, options, prepare, kind);
    if (receipt.status === "success") return toReceipt(receipt);
    throw new MintmarkError(
      "l1_failed",
      `${call.functionName}: transaction ${receipt.transactionHash} reverted`,
    );
  }

  /** Sends a call; resolves with the receipt of the transaction, successful or reverted. */
  protected mined(
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
      address: this.settlement.contract,
      ...call,
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
      to: call.address ?? this.settlement.contract,
      data,
      gas: gas < TRANSACTION_GAS ? gas : TRANSACTION_GAS,
    };
  }
}

/** Throws `validation_failed` when the vaults do not fit into one transaction. */
function renewalCall(calls: readonly WithdrawalCall[]) {
  const call = { abi, functionName: "renew", args: calldata.renewalArguments(calls) } as const;
  const bytes = size(encodeFunctionData(call));
  if (bytes <= MAX_RENEWAL_BYTES) return call;
  const detail = `The proofs of ${calls.length} vaults have ${bytes} bytes, and a renewal at most ${MAX_RENEWAL_BYTES}. Renew fewer at once.`;
  throw new MintmarkError("validation_failed", detail);
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

/** Gas to try a withdrawal: the check of its list and its records take gas of their own. */
function trialGas(call: WithdrawalCall): bigint {
  const list = call.authorization === null ? 0n : ITEM_GAS + GAS_AROUND_ITEM;
  return TRIAL_GAS + list + (isTransferred(call) ? WAY_GAS : 0n);
}

export function toReceipt({
  transactionHash,
  blockNumber,
  gasUsed,
}: TransactionReceipt): L1Receipt {
  return { txHash: transactionHash, blockNumber, gasUsed };
}
