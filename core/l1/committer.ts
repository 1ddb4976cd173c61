import { encodeFunctionData, size, toHex } from "viem";
import { getBlock, getCode } from "viem/actions";
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
import { batchIdOf, type Hash, type Hex } from "../model.ts";
import type * as ports from "../ports.ts";
import {
  blobContent,
  blobsIn,
  isBlobBatchData,
  manifestHash,
  readBlobBatchData,
} from "../protocol/blob-batch.ts";
import type { Kzg } from "../protocol/kzg/kzg-thread.ts";
import { isTransferData } from "../protocol/transfer-data.ts";
import { stateCommitmentAbi as abi } from "./abi.ts";
import type { Call, ContractCall, L1Account } from "./account.ts";
import * as calldata from "./arguments.ts";
import { BlobSidecar } from "./blob-sidecar.ts";
import { askL1 } from "./connection.ts";
import type { FeeOptions } from "./fees.ts";
import type { ViemReader } from "./reader.ts";
import { revertReason } from "./reason.ts";

/**
 * Gas limit while another commit is pending, when L1 cannot estimate: a rollup batch's margin over
 * its estimate. Unused gas is not paid for.
 */
const BEHIND_MARGIN = 40_000n;

/** The contract's refusal of a commit whose transaction has no blobs. */
const NO_BLOBS = "BlobCountInvalid(0)";

/** A contract of each OP Stack chain. Blocks there have blob fields, but no blobs. */
const OP_STACK = "0x4200000000000000000000000000000000000015";

/** Fee bounds of a committer, and what proves its blobs. */
export interface CommitterOptions extends FeeOptions {
  /** Proves blobs. Default none: batches in blobs then reject with `kzg_unavailable`. */
  readonly kzg?: Kzg;
}

/** Commits of an operator. */
export type Commits = Pick<ports.L1Committer, "commit" | "takesBlobs">;

export function commitsOf(by: L1Account, reads: ViemReader, kzg: Kzg | undefined): Commits {
  return {
    async commit(batch, history, attestation, options = {}) {
      const { mode, batchNumber, content, vaultCount, dataHash, data, assets } = batch;
      const place = [history, BigInt(batchNumber)] as const;
      if (isTransferData(mode, data))
        return by.transact("commitTransferBatch", [...place, toHex(data), attestation], options);
      if (mode === "zk-rollup" && !isBlobBatchData(data)) {
        const behind = async () => (await tryAsNext(data)).gas + BEHIND_MARGIN;
        return send(assets, (consents) => rollupCall(batch, history, consents), behind, options);
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
      return send(
        assets,
        call,
        async () => bound,
        options,
        isBlobs ? await blobsOf(batch, kzg) : undefined,
      );
    },

    async takesBlobs() {
      if (kzg === undefined || !(await reads.opensBlobs())) return false;
      const [block, rollup] = await askL1("asking for blob fees", () =>
        Promise.all([getBlock(by.client), getCode(by.client, { address: OP_STACK })]),
      );
      if (block.excessBlobGas === undefined || block.excessBlobGas === null || rollup !== undefined)
        return false;
      return kzg.isAvailable();
    },
  };

  /** @param behind - gas of a commit behind one that is under way, without consents */
  async function send(
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
        : ((await estimate(call("0x"), blobs)) ?? (await behind()));
      const fitting = fittingConsents(consents, (await reads.transactionGas()) - gas);
      const ready = by.withGas(
        call(calldata.packedConsents(assets, fitting)),
        () => gas + consentGas(fitting),
      );
      return { ...ready, ...(blobs && { blobs }) };
    };
    return by.send(call("0x"), options, prepare, blobs && "blobs");
  }

  /**
   * Gas of a commit as the next; null when the node does not tell because it knows no blobs of a
   * call.
   */
  async function estimate(
    call: ContractCall,
    blobs: BlobSidecar | undefined,
  ): Promise<bigint | null> {
    try {
      return (await by.prepare(call, undefined, blobs)).gas;
    } catch (error) {
      if (blobs !== undefined && revertReason(error) === NO_BLOBS) return null;
      throw error;
    }
  }

  /**
   * The commit of a rollup batch with this content as L1's next one, without consents. Throws L1's
   * refusal.
   */
  async function tryAsNext(data: Uint8Array): Promise<Call> {
    const at = await reads.blockNumber();
    const { history, countRollup } = await reads.state(at);
    return by.prepare(rollupCall({ batchNumber: countRollup, data }, history, "0x"), at);
  }
}

async function blobsOf(
  { batchNumber, vaultCount, assets, content, data }: ports.SealedBatch,
  kzg: Kzg | undefined,
): Promise<BlobSidecar> {
  if (kzg === undefined) throw new MintmarkError("kzg_unavailable");
  const blobs = await BlobSidecar.of(blobsIn(readBlobBatchData(data)), kzg);
  // L1 takes any blobs. Committed ones that are not the sealed ones would part its history from
  // the store's.
  if (blobContent(vaultCount, manifestHash(assets), blobs.versionedHashes) === content)
    return blobs;
  throw new MintmarkError(
    "store_corrupt",
    `${batchIdOf("zk-rollup", batchNumber)} is not in its blobs.`,
  );
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
