import { encodeFunctionData, type LocalAccount, parseAbi, parseEventLogs, size, toHex } from "viem";
import { call, getBalance, getBlock, getCode, simulateContract } from "viem/actions";
import { MintmarkError } from "../errors.ts";
import {
  BLOB_COMMIT_GAS,
  BLOB_COMMIT_GAS_PER_ASSET,
  CONSENT_GAS,
  GAS_PER_BYTE,
  GAS_PER_CONSENT,
  VALIDIUM_GAS,
  VALIDIUM_GAS_PER_BYTE,
} from "../gas.ts";
import {
  type Address,
  type Asset,
  type BlobScheme,
  batchIdOf,
  type Hash,
  type Hex,
  type Standard,
  type VaultId,
} from "../model.ts";
import type * as ports from "../ports.ts";
import {
  blobContent,
  blobsIn,
  isBlobBatchData,
  manifestHash,
  readBlobBatchData,
} from "../protocol/blob-batch.ts";
import type { Kzg } from "../protocol/kzg/kzg-thread.ts";
import type { Trade } from "../protocol/trade.ts";
import type { SessionEndMessage, SessionMessage } from "../protocol/transfer.ts";
import { isTransferData } from "../protocol/transfer-data.ts";
import { tipIdOf } from "../protocol/transfer-proof.ts";
import { cancellationId } from "../protocol/typed-data.ts";
import { stateCommitmentAbi as abi } from "./abi.ts";
import * as calldata from "./arguments.ts";
import { BlobSidecar } from "./blob-sidecar.ts";
import { askL1, type L1Connection, reasonIn, revertData } from "./connection.ts";
import type { FeeOptions } from "./fees.ts";
import { type Call, type ContractCall, toReceipt, ViemPortal } from "./portal.ts";
import { revertReason } from "./reason.ts";
import { TransactionSender } from "./sender.ts";
import { settlementArguments, tradeCalldata, tradeRefusal } from "./trades.ts";

/**
 * Gas limit while another commit is pending, when L1 cannot estimate: a rollup batch's margin over
 * its estimate. Unused gas is not paid for.
 */
const BEHIND_MARGIN = 40_000n;

/** The contract's refusal of a commit whose transaction has no blobs. */
const NO_BLOBS = "BlobCountInvalid(0)";

/** For a node that cannot try a contract's code in the place of another. */
const REFUSED_TRADE =
  "L1 refuses the trade now: a vault is not mature or no longer as signed, or a signature does not count there.";
const NO_MAKINGS =
  "This deployment makes no vaults, so it settles no trades. Deploy the contracts with the code of makings.";

/** A contract of each OP Stack chain. Blocks there have blob fields, but no blobs. */
const OP_STACK = "0x4200000000000000000000000000000000000015";

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

type RegistrableAsset = Pick<
  Asset,
  "standard" | "chainId" | "contractAddress" | "quantum" | "blobScheme"
>;

/** A token, or units of it, on the way back from L1. */
export interface Entry {
  /** A token of this project. */
  readonly token: Address;
  readonly standard: Standard;
  /** Who gets the vault. */
  readonly owner: Address;
  /** null for ERC-20. */
  readonly tokenId: bigint | null;
  /** Base units; 1 for an ERC-721. */
  readonly amount: bigint;
}

/** Fee bounds of a committer, and what proves its blobs. */
export interface CommitterOptions extends FeeOptions {
  /** Proves blobs. Default none: batches in blobs then reject with `kzg_unavailable`. */
  readonly kzg?: Kzg;
}

/** {@link L1Committer} over a viem client. */
export class ViemCommitter extends ViemPortal implements ports.L1Committer, ports.L1Voider {
  readonly #sender: TransactionSender;
  readonly #kzg: Kzg | undefined;

  constructor(
    connection: L1Connection,
    account: LocalAccount,
    { kzg, ...fees }: CommitterOptions = {},
  ) {
    const sender = new TransactionSender(connection, account, fees);
    super(connection, account, sender);
    this.#sender = sender;
    this.#kzg = kzg;
  }

  checkTrade(trade: Trade): Promise<string | null> {
    const { maker, taker } = trade;
    const vaults = `vaults ${tipIdOf(maker)} and ${tipIdOf(taker)}`;
    return askL1(`trying the trade of ${vaults}`, async () => {
      if (!(await this.hasMakings())) return NO_MAKINGS;
      const { result } = await simulateContract(this.client, {
        abi,
        address: this.settlement.contract,
        account: this.account,
        functionName: "settle",
        args: settlementArguments([trade]),
      });
      return result[1] === 0n ? null : this.#tradeRefusal(trade);
    });
  }

  /**
   * Why L1 refuses a trade. `settle` tells it in an event alone, which a call does not return. So the
   * code of makings runs the trade in the place of the contract.
   */
  async #tradeRefusal(trade: Trade): Promise<string> {
    const [address, maturity] = await Promise.all([
      this.view("asking for the code of makings", "makingsCode", []),
      this.view("asking for the maturity", "maturity", []),
    ]);
    const code = await getCode(this.client, { address });
    try {
      await call(this.client, {
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

  async settle(trades: readonly Trade[], options?: ports.L1SendOptions) {
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

  /** Balance of the sending account, in wei. */
  operatorBalance(): Promise<bigint> {
    const { address } = this.account;
    return askL1(`asking for the balance of ${address}`, () =>
      getBalance(this.client, { address }),
    );
  }

  async commit(
    batch: ports.SealedBatch,
    history: Hash,
    attestation: Hex,
    options: ports.L1CommitOptions = {},
  ) {
    const { mode, batchNumber, content, vaultCount, dataHash, data, assets } = batch;
    const place = [history, BigInt(batchNumber)] as const;
    if (isTransferData(mode, data))
      return this.transact("commitTransferBatch", [...place, toHex(data), attestation], options);
    if (mode === "zk-rollup" && !isBlobBatchData(data)) {
      const behind = async () => (await this.#tryAsNext(data)).gas + BEHIND_MARGIN;
      return this.#commit(
        assets,
        (consents) => rollupCall(batch, history, consents),
        behind,
        options,
      );
    }
    const manifest = calldata.packedAssets(assets);
    const isBlobs = mode === "zk-rollup";
    const args = isBlobs
      ? [vaultCount, manifest]
      : [content, vaultCount, dataHash, manifest, attestation];
    const functionName = isBlobs ? "commitBlobBatch" : "commitValidiumBatch";
    const call = (consents: Hex): ContractCall => ({
      abi,
      functionName,
      args: [...place, ...args, consents],
    });
    const bound = isBlobs
      ? BLOB_COMMIT_GAS + BigInt(assets.length) * BLOB_COMMIT_GAS_PER_ASSET
      : VALIDIUM_GAS + BigInt(size(encodeFunctionData(call("0x")))) * VALIDIUM_GAS_PER_BYTE;
    return this.#commit(
      assets,
      call,
      async () => bound,
      options,
      isBlobs ? await this.#blobsOf(batch) : undefined,
    );
  }

  async #blobsOf({
    batchNumber,
    vaultCount,
    assets,
    content,
    data,
  }: ports.SealedBatch): Promise<BlobSidecar> {
    if (this.#kzg === undefined) throw new MintmarkError("kzg_unavailable");
    const blobs = await BlobSidecar.of(blobsIn(readBlobBatchData(data)), this.#kzg);
    // L1 takes any blobs. Committed ones that are not the sealed ones would part its history from
    // the store's.
    if (blobContent(vaultCount, manifestHash(assets), blobs.versionedHashes) === content)
      return blobs;
    throw new MintmarkError(
      "store_corrupt",
      `${batchIdOf("zk-rollup", batchNumber)} is not in its blobs.`,
    );
  }

  async takesBlobs(): Promise<boolean> {
    const kzg = this.#kzg;
    if (kzg === undefined || !(await this.opensBlobs())) return false;
    const [block, rollup] = await askL1("asking for blob fees", () =>
      Promise.all([getBlock(this.client), getCode(this.client, { address: OP_STACK })]),
    );
    if (block.excessBlobGas === undefined || block.excessBlobGas === null || rollup !== undefined)
      return false;
    return kzg.isAvailable();
  }

  /** @param behind - gas of a commit behind one that is under way, without consents */
  async #commit(
    assets: readonly ports.AssetId[],
    call: (consents: Hex) => ContractCall,
    behind: () => Promise<bigint>,
    { consents = [], isBehind = false, ...options }: ports.L1CommitOptions,
    blobs?: BlobSidecar,
  ): Promise<ports.L1Receipt> {
    const prepare = async () => {
      // Estimated without consents: with all wallet contracts it might not fit a transaction.
      const gas = isBehind
        ? await behind()
        : ((await this.#estimate(call("0x"), blobs)) ?? (await behind()));
      const fitting = fittingConsents(consents, (await this.transactionGas()) - gas);
      const ready = this.withGas(
        call(calldata.packedConsents(assets, fitting)),
        () => gas + consentGas(fitting),
      );
      return { ...ready, ...(blobs && { blobs }) };
    };
    return this.send(call("0x"), options, prepare, blobs && "blobs");
  }

  /**
   * Gas of a commit as the next; null when the node does not tell because it knows no blobs of a
   * call.
   */
  async #estimate(call: ContractCall, blobs: BlobSidecar | undefined): Promise<bigint | null> {
    try {
      return (await this.prepare(call, undefined, blobs)).gas;
    } catch (error) {
      if (blobs !== undefined && revertReason(error) === NO_BLOBS) return null;
      throw error;
    }
  }

  async useUpNonces(options: ports.L1SendOptions = {}): Promise<ports.L1Receipt> {
    return askL1("using up nonces", async () => toReceipt(await this.#sender.useUpNonces(options)));
  }

  earlierMined(signal?: AbortSignal): Promise<boolean> {
    return askL1("waiting for earlier transactions", () => this.#sender.earlierMined(signal));
  }

  async voidDuplicate(
    earlier: ports.ProvenVault,
    later: ports.ProvenVault,
    options?: ports.L1SendOptions,
  ) {
    const args = [
      ...calldata.provenVaultArguments(earlier),
      ...calldata.provenVaultArguments(later),
    ] as const;
    return this.transact("voidDuplicate", args, options);
  }

  /**
   * Lets a key transfer for an owner. With the owner's signature any account can send it, else only
   * the owner's.
   */
  async authorizeSession(
    session: SessionMessage,
    signature: Hex = "0x",
    options?: ports.L1SendOptions,
  ) {
    return this.transact(
      "authorizeSession",
      calldata.sessionArguments(session, signature),
      options,
    );
  }

  /**
   * Ends the session of an owner with a key, or makes sure that there never is one. As {@link
   * authorizeSession}.
   */
  async revokeSession(
    end: SessionEndMessage,
    signature: Hex = "0x",
    options?: ports.L1SendOptions,
  ) {
    return this.transact("revokeSession", [end.owner, end.key, signature], options);
  }

  /**
   * Cancels a list of transfers that this account has signed or approved, or that takes its vaults.
   */
  async cancelTransfers(digest: Hash, options?: ports.L1SendOptions): Promise<ports.L1Receipt> {
    return this.transact("cancelTransfers", [digest], options);
  }

  /**
   * Takes back on L1 what this account has signed: a list of withdrawals or an order by its digest,
   * or by a vault's id all that its lists and orders say of the vault.
   */
  async cancel(id: Hash | VaultId, options?: ports.L1SendOptions): Promise<ports.L1Receipt> {
    return this.transact("cancel", [this.account.address, cancellationId(id), "0x"], options);
  }

  /**
   * Burns tokens that this account holds, of which L1 makes a vault. Rejects with `l1_failed`, with
   * the token's reason.
   */
  async enter(entry: Entry, options?: ports.L1SendOptions): Promise<ports.L1Receipt> {
    const { token: address, standard, owner, tokenId, amount } = entry;
    const id = tokenId === null ? [] : [tokenId];
    const args = [owner, ...id, ...(standard === "erc721" ? [] : [amount])];
    return this.send(
      { address, abi: [...ENTER, ...abi], functionName: "enter", args } as ContractCall,
      options,
    );
  }

  /**
   * Enters a token into the registry. Anyone may, if the token states how it reads its blobs
   * (`blobScheme()`). Otherwise its owner or admin may, who says so here.
   */
  async registerAsset(asset: RegistrableAsset, options?: ports.L1SendOptions) {
    const { standard, chainId, contractAddress, quantum } = asset;
    const scheme = calldata.SCHEME_VALUE[await this.#schemeOf(asset)];
    const args = [
      calldata.STANDARD_VALUE[standard],
      chainId,
      contractAddress,
      quantum,
      scheme,
    ] as const;
    return this.transact("registerAsset", args, options);
  }

  /** An ERC-20 has no blobs. The registry does not know the scheme of another chain's token. */
  async #schemeOf({
    standard,
    chainId,
    contractAddress,
    blobScheme,
  }: RegistrableAsset): Promise<BlobScheme> {
    if (chainId !== this.settlement.chainId) return "imx";
    return standard === "erc20"
      ? ((await this.statedScheme(contractAddress)) ?? "imx")
      : blobScheme;
  }

  /**
   * The commit of a rollup batch with this content as L1's next one, without consents. Throws L1's
   * refusal.
   */
  async #tryAsNext(data: Uint8Array): Promise<Call> {
    const at = await this.blockNumber();
    const { history, countRollup } = await this.state(at);
    return this.prepare(rollupCall({ batchNumber: countRollup, data }, history, "0x"), at);
  }
}

/**
 * The consents that fit a transaction: no wallet contract may keep a commit from L1, whatever gas
 * it takes.
 */
function fittingConsents(
  consents: readonly ports.Consent[],
  room: bigint,
): readonly ports.Consent[] {
  let left = room - consentGas(consents.filter(({ byWallet }) => !byWallet));
  return consents.filter((consent) => {
    if (!consent.byWallet) return true;
    left -= consentGas([consent]);
    return left >= 0n;
  });
}

function consentGas(consents: readonly ports.Consent[]): bigint {
  return consents.reduce((sum, { assets, signature, byWallet }) => {
    const own =
      BigInt(1 + assets.length) * GAS_PER_CONSENT + BigInt(size(signature)) * GAS_PER_BYTE;
    return sum + own + (byWallet ? CONSENT_GAS + CONSENT_GAS / 63n + 1n : 0n);
  }, 0n);
}

type Numbered = Pick<ports.SealedBatch, "batchNumber" | "data">;

function rollupCall({ batchNumber, data }: Numbered, history: Hash, consents: Hex): ContractCall {
  return {
    abi,
    functionName: "commitRollupBatch",
    args: [history, consents, BigInt(batchNumber), toHex(data)],
  };
}
