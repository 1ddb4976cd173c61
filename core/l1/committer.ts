import {
  type ContractFunctionArgs,
  encodeFunctionData,
  type LocalAccount,
  parseEventLogs,
  size,
  type TransactionReceipt,
  toHex,
} from "viem";
import { MintmarkError } from "../errors.ts";
import type { Address, Asset, BlobScheme, Hash, Hex, Mode } from "../model.ts";
import type {
  Consent,
  L1CommitOptions,
  L1Committer,
  L1Owner,
  L1Receipt,
  L1SendOptions,
  L1Voider,
  ProvenVault,
  SealedBatch,
  WithdrawalCall,
} from "../ports.ts";
import { stateCommitmentAbi as abi } from "./abi.ts";
import {
  packedAssets,
  packedConsents,
  packedList,
  provenVaultArguments,
  SCHEME_VALUE,
  withdrawalArguments,
  withdrawalBatchArguments,
} from "./arguments.ts";
import type { FeeOptions, L1Connection } from "./connection.ts";
import { askL1, reasonIn, revertReason } from "./failure.ts";
import { CONSENT_GAS, STANDARD_VALUE, ViemReader } from "./reader.ts";
import { type Call, TRANSFER_GAS, TransactionSender } from "./transactions.ts";

/**
 * Most withdrawals and signed lists of one transaction: 20 vaults of one list. With the longest signatures, lists and
 * proofs, its calldata stays below the 128 KiB that nodes relay.
 */
const MAX_SHARES = 21;
/** Calldata of a withdrawal with its group, or of half of a withdrawal and its list of 256 vaults. */
const MAX_SHARE_BYTES = 6_100;
/** The most gas of one transaction (EIP-7825). */
const TRANSACTION_GAS = 16_777_216n;
/** The least gas that the contract gives each item of a batch, for proof, signature and token call together. */
const ITEM_GAS = 500_000n;
/** Further gas of each item, and of the whole batch. */
const GAS_AROUND_ITEM = 30_000n;
const GAS_AROUND_ITEMS = 50_000n;
/** Price of a byte of calldata that is not zero. */
const GAS_PER_BYTE = 16n;

/** Gas to try one withdrawal of a batch, with some around it. A node that allows more must not try longer. */
const TRIAL_GAS = 1_000_000n;
/** The check of its list takes an item's gas too. */
const LIST_TRIAL_GAS = TRIAL_GAS + ITEM_GAS + GAS_AROUND_ITEM;

/**
 * For a commit behind one that is under way, which L1 cannot estimate: what a new storage slot and other calldata can
 * add to the estimate of a rollup batch, and upper bounds of a validium commit by its calldata. Unused gas is not paid
 * for.
 */
const BEHIND_MARGIN = 40_000n;
const VALIDIUM_GAS = 250_000n;
const VALIDIUM_GAS_PER_BYTE = 200n;

/** Gas of a consent, and of each asset that it names, without its signature's bytes and its wallet contract. */
const GAS_PER_CONSENT = 6_000n;

type Writes = "commitRollupBatch" | "commitValidiumBatch" | "withdraw" | "voidDuplicate" | "registerAsset";
type Arguments<F extends Writes> = ContractFunctionArgs<typeof abi, "nonpayable", F>;
/** A function of any interface of the contract, with its arguments. */
type ContractCall = Parameters<typeof encodeFunctionData>[0] & { readonly functionName: string };

export type RegistrableAsset = Pick<Asset, "standard" | "chainId" | "contractAddress" | "quantum" | "blobScheme">;

/** Sends an account's transactions to the settlement contract, over a viem client. */
export class ViemCommitter extends ViemReader implements L1Committer, L1Owner, L1Voider {
  readonly #account: LocalAccount;
  readonly #sender: TransactionSender;

  constructor(connection: L1Connection, account: LocalAccount, fees: FeeOptions = {}) {
    super(connection);
    this.#account = account;
    this.#sender = new TransactionSender(connection, account, fees);
  }

  /** Balance of the sending account, in wei. */
  operatorBalance(): Promise<bigint> {
    const { address } = this.#account;
    return askL1(`asking for the balance of ${address}`, () => this.connection.client.getBalance({ address }));
  }

  async commitRollup(batch: SealedBatch, history: Hash, options: L1CommitOptions = {}): Promise<L1Receipt> {
    requireMode(batch, "zk-rollup");
    const call = (consents: Hex) => rollupCall(batch, history, consents);
    const behind = async () => (await this.#tryAsNext(batch.data)).gas + BEHIND_MARGIN;
    return this.#commit(batch, call, behind, options);
  }

  async checkRollup({ data }: Pick<SealedBatch, "data">): Promise<string | null> {
    const most = await this.transactionGas();
    try {
      const { gas } = await askL1("trying a rollup batch", () => this.#tryAsNext(data));
      return gas > most ? `it takes ${gas} gas, and a transaction can have ${most}` : null;
    } catch (error) {
      // An unreachable node has refused nothing.
      await this.blockNumber();
      return error instanceof Error ? error.message : String(error);
    }
  }

  transactionGas(): Promise<bigint> {
    return askL1("asking for the gas of a block", async () => {
      const { gasLimit } = await this.connection.client.getBlock();
      return gasLimit < TRANSACTION_GAS ? gasLimit : TRANSACTION_GAS;
    });
  }

  async commitValidium(
    batch: SealedBatch,
    history: Hash,
    attestation: Hex,
    options: L1CommitOptions = {},
  ): Promise<L1Receipt> {
    requireMode(batch, "validium");
    const { batchNumber, content, vaultCount, dataHash, assets } = batch;
    const place = [history, BigInt(batchNumber)] as const;
    const args = [...place, content, vaultCount, dataHash, packedAssets(assets), attestation] as const;
    const call = (consents: Hex): ContractCall => ({
      abi,
      functionName: "commitValidiumBatch",
      args: [...args, consents],
    });
    const behind = async () => validiumGas(encodeFunctionData(call("0x")));
    return this.#commit(batch, call, behind, options);
  }

  /** @param behind - gas of a commit behind one that is under way, without consents */
  async #commit(
    { assets }: SealedBatch,
    call: (consents: Hex) => ContractCall,
    behind: () => Promise<bigint>,
    { consents = [], isBehind = false, ...options }: L1CommitOptions,
  ): Promise<L1Receipt> {
    const prepare = async () => {
      const all = call(packedConsents(assets, consents));
      const gas = isBehind ? await behind() : (await this.#prepare(all)).gas;
      const fitting = fittingConsents(consents, (await this.transactionGas()) - gas);
      return this.#withGas(call(packedConsents(assets, fitting)), () => gas + consentGas(fitting));
    };
    return toReceipt(await this.send(call("0x"), options, prepare));
  }

  async useUpNonces(options: L1SendOptions = {}): Promise<L1Receipt> {
    return askL1("using up nonces", async () => toReceipt(await this.#sender.useUpNonces(options)));
  }

  earlierMined(signal?: AbortSignal): Promise<boolean> {
    return askL1("waiting for earlier transactions", () => this.#sender.earlierMined(signal));
  }

  /** Tries the very call that `withdraw` makes, because a token's behaviour can depend on its gas. */
  checkWithdrawal(call: WithdrawalCall): Promise<string | null> {
    return askL1(`trying the withdrawal of vault ${call.vault.vaultId}`, async () => {
      const { result } = await this.connection.client.simulateContract({
        ...this.#portal,
        functionName: "withdrawBatch",
        args: withdrawalBatchArguments([call], ITEM_GAS),
        gas: call.authorization.list === undefined ? TRIAL_GAS : LIST_TRIAL_GAS,
      });
      if (result === 0n) return null;
      return (
        (await this.#refusalOf(call, TRIAL_GAS)) ??
        "it needs more gas than an item of a batch has; its owner can withdraw it"
      );
    });
  }

  checkOwnWithdrawal(call: WithdrawalCall): Promise<string | null> {
    return askL1(`trying the withdrawal of vault ${call.vault.vaultId}`, () => this.#refusalOf(call));
  }

  /** The contract's answer to `withdraw`, which gives a reason where `withdrawBatch` gives none. */
  async #refusalOf(call: WithdrawalCall, gas?: bigint): Promise<string | null> {
    const { list, deadline } = call.authorization;
    const limit = gas !== undefined && { gas };
    try {
      if (list === undefined) {
        const args = withdrawalArguments(call);
        await this.connection.client.simulateContract({ ...this.#portal, functionName: "withdraw", args, ...limit });
        return null;
      }
      const { vaultId, owner } = call.vault;
      const args = [packedList(call, list)] as const;
      await this.connection.client.readContract({ ...this.#portal, functionName: "checkList", args, ...limit });
      const listed = list.find((each) => each.vaultId === vaultId);
      if ((await this.verifyVault(call)) !== listed?.withdrawnBefore) return `NotListed(${vaultId})`;
      // The list decides, so the owner may be the caller here.
      await this.connection.client.simulateContract({
        ...this.#portal,
        account: owner as Address,
        functionName: "withdraw",
        args: withdrawalArguments({ ...call, authorization: { deadline, signature: "0x" } }),
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
    return { abi, address: this.settlement.contract, account: this.#account } as const;
  }

  async mostWithdrawals(): Promise<number> {
    const left = (await this.transactionGas()) - relayGas(0, 0);
    const most = Number(left / (relayGas(1, MAX_SHARE_BYTES) - relayGas(0, 0)));
    return Math.max(2, Math.min(most, MAX_SHARES));
  }

  async withdraw(calls: readonly WithdrawalCall[], options?: L1SendOptions) {
    const args = withdrawalBatchArguments(calls, ITEM_GAS);
    const shares = calls.length + args[1].length;
    if (calls.length < 1 || shares > MAX_SHARES) {
      throw new RangeError(`1 to ${MAX_SHARES} withdrawals and lists a transaction, not ${shares}`);
    }
    const call = { abi, functionName: "withdrawBatch", args } as const;
    const gas = (data: Hex) => relayGas(shares, size(data));
    const receipt = await this.#mined(call, options, async () => this.#withGas(call, gas));
    if (receipt.status === "reverted") return { ...toReceipt(receipt), refusals: null };
    // A failed item leaves an event of the contract in this transaction. A token may add others that look like it.
    const own = receipt.logs.filter(({ address }) => address.toLowerCase() === this.settlement.contract);
    const failed = parseEventLogs({ abi, logs: own, eventName: "WithdrawalFailed", strict: true });
    const reasons = new Map(failed.map(({ args }) => [args.vaultId, reasonIn(abi, args.reason)]));
    return { ...toReceipt(receipt), refusals: calls.map(({ vault }) => reasons.get(vault.vaultId) ?? null) };
  }

  async withdrawOwn(call: WithdrawalCall, options?: L1SendOptions): Promise<L1Receipt> {
    return toReceipt(await this.#transact("withdraw", withdrawalArguments(call), options));
  }

  async voidDuplicate(earlier: ProvenVault, later: ProvenVault, options?: L1SendOptions): Promise<L1Receipt> {
    const args = [...provenVaultArguments(earlier), ...provenVaultArguments(later)] as const;
    return toReceipt(await this.#transact("voidDuplicate", args, options));
  }

  /**
   * Enters a token into the registry. Anyone may, if the token states how it reads its blobs (`blobScheme()`).
   * Otherwise its owner or admin may, who says so here.
   */
  async registerAsset(asset: RegistrableAsset, options?: L1SendOptions) {
    const { standard, chainId, contractAddress, quantum } = asset;
    const scheme = SCHEME_VALUE[await this.#schemeOf(asset)];
    const args = [STANDARD_VALUE[standard], chainId, contractAddress, quantum, scheme] as const;
    return toReceipt(await this.#transact("registerAsset", args, options));
  }

  /** An ERC-20 has no blobs. The registry does not know the scheme of another chain's token. */
  async #schemeOf({ standard, chainId, contractAddress, blobScheme }: RegistrableAsset): Promise<BlobScheme> {
    if (chainId !== this.settlement.chainId) return "imx";
    return standard === "erc20" ? ((await this.statedScheme(contractAddress)) ?? "imx") : blobScheme;
  }

  #transact<F extends Writes>(functionName: F, args: Arguments<F>, options?: L1SendOptions) {
    // viem's types cannot follow a union of functions; the signature above ties the arguments to the function.
    return this.send({ abi, functionName, args } as ContractCall, options);
  }

  /** Sends a call to the contract, in turn with the account's other ones. */
  protected async send(
    call: ContractCall,
    options?: L1SendOptions,
    prepare?: () => Promise<Call>,
  ): Promise<TransactionReceipt> {
    const receipt = await this.#mined(call, options, prepare);
    if (receipt.status === "success") return receipt;
    throw new MintmarkError("l1_failed", `${call.functionName}: transaction ${receipt.transactionHash} reverted`);
  }

  #mined(call: ContractCall, options?: L1SendOptions, prepare = () => this.#prepare(call)) {
    return askL1(call.functionName, () => this.#sender.send(prepare, options));
  }

  /** The estimate shows a refusal with the contract's own error, before anything is sent. */
  async #prepare(call: ContractCall, at?: bigint): Promise<Call> {
    const { client } = this.connection;
    // On mined state: this account's pending transactions may be about to be replaced.
    const block = at === undefined ? { blockTag: "latest" } : { blockNumber: at };
    const estimate = await client.estimateContractGas({
      ...call,
      address: this.settlement.contract,
      account: this.#account,
      ...block,
    } as Parameters<typeof client.estimateContractGas>[0]);
    return this.#withGas(call, () => estimate + estimate / 20n);
  }

  /** The commit of a rollup batch with this content as L1's next one, without consents. Throws L1's refusal. */
  async #tryAsNext(data: Uint8Array): Promise<Call> {
    const at = await this.blockNumber();
    const { history, countRollup } = await this.state(at);
    return this.#prepare(rollupCall({ batchNumber: countRollup, data }, history, "0x"), at);
  }

  #withGas(call: ContractCall, gasOf: (data: Hex) => bigint): Call {
    const data = encodeFunctionData(call);
    const gas = gasOf(data);
    return { to: this.settlement.contract, data, gas: gas < TRANSACTION_GAS ? gas : TRANSACTION_GAS };
  }
}

function validiumGas(data: Hex): bigint {
  return VALIDIUM_GAS + BigInt(size(data)) * VALIDIUM_GAS_PER_BYTE;
}

/**
 * The most gas of a relay. It is not estimated: a token or a wallet can turn expensive before the transaction is mined,
 * and the contract reverts as a whole when an item has less than its gas left. Some tokens could also take so long
 * together that a node gives up.
 */
function relayGas(shares: number, bytes: number): bigint {
  return TRANSFER_GAS + BigInt(bytes) * GAS_PER_BYTE + BigInt(shares) * (ITEM_GAS + GAS_AROUND_ITEM) + GAS_AROUND_ITEMS;
}

/** The consents that fit a transaction: no wallet contract may keep a commit from L1, whatever gas it takes. */
function fittingConsents(consents: readonly Consent[], room: bigint): readonly Consent[] {
  let left = room - consentGas(consents.filter(({ byWallet }) => !byWallet));
  return consents.filter((consent) => {
    if (!consent.byWallet) return true;
    left -= consentGas([consent]);
    return left >= 0n;
  });
}

/** Upper bound of the gas of consents. A commit succeeds without any of them, so an estimate may lack their gas. */
function consentGas(consents: readonly Consent[]): bigint {
  return consents.reduce((sum, { assets, signature, byWallet }) => {
    const own = BigInt(1 + assets.length) * GAS_PER_CONSENT + BigInt(size(signature)) * GAS_PER_BYTE;
    return sum + own + (byWallet ? CONSENT_GAS + CONSENT_GAS / 63n + 1n : 0n);
  }, 0n);
}

function rollupCall(
  { batchNumber, data }: Pick<SealedBatch, "batchNumber" | "data">,
  history: Hash,
  consents: Hex,
): ContractCall {
  return { abi, functionName: "commitRollupBatch", args: [history, consents, BigInt(batchNumber), toHex(data)] };
}

function requireMode(batch: SealedBatch, mode: Mode): void {
  if (batch.mode !== mode) throw new RangeError(`a ${batch.mode} batch cannot be committed as ${mode}`);
}

export function toReceipt({ transactionHash, blockNumber, gasUsed }: TransactionReceipt): L1Receipt {
  return { txHash: transactionHash, blockNumber, gasUsed };
}
