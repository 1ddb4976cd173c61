import { encodeFunctionData, type LocalAccount, size, toHex } from "viem";
import { getBalance, getBlock, getCode } from "viem/actions";
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
  type Asset,
  type BlobScheme,
  batchIdOf,
  type Hash,
  type Hex,
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
import type { SessionEndMessage, SessionMessage } from "../protocol/transfer.ts";
import { isTransferData } from "../protocol/transfer-data.ts";
import { cancellationId } from "../protocol/typed-data.ts";
import { stateCommitmentAbi as abi } from "./abi.ts";
import * as calldata from "./arguments.ts";
import { BlobSidecar } from "./blob-sidecar.ts";
import { askL1, type L1Connection } from "./connection.ts";
import type { FeeOptions } from "./fees.ts";
import { type Call, type ContractCall, toReceipt, ViemPortal } from "./portal.ts";
import { revertReason } from "./reason.ts";
import { TransactionSender } from "./sender.ts";

/**
 * Gas limit while another commit is pending, when L1 cannot estimate: a rollup batch's margin over
 * its estimate. Unused gas is not paid for.
 */
const BEHIND_MARGIN = 40_000n;

/** The contract's refusal of a commit whose transaction has no blobs. */
const NO_BLOBS = "BlobCountInvalid(0)";

/** A contract of each OP Stack chain. Blocks there have blob fields, but no blobs. */
const OP_STACK = "0x4200000000000000000000000000000000000015";

type RegistrableAsset = Pick<
  Asset,
  "standard" | "chainId" | "contractAddress" | "quantum" | "blobScheme"
>;

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
