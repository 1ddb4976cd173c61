import type { Adopted } from "../adoption/adopted-batches.ts";
import { type AdoptedBatch, type AdoptedBatches, assetName } from "../adoption/incoming.ts";
import { CommittedData, type DataSources } from "../archive/committed-data.ts";
import { askable, commitsIn } from "../blocks.ts";
import { invalid, MintmarkError } from "../errors.ts";
import { type Address, MODES, type Standard } from "../model.ts";
import type { SettlementPort } from "../operator.ts";
import type { AssetId, CommitEvent, L1Reader } from "../ports.ts";
import { isBlobBatchData } from "../protocol/blob-batch.ts";
import { countOf } from "../protocol/commitment.ts";
import { type Kzg, withKzg } from "../protocol/kzg/kzg-thread.ts";
import { batchRoot, kindOf, manifestRoot } from "../protocol/manifest.ts";
import { isTransferData } from "../protocol/transfer-data.ts";
import type { NewAsset } from "../tenants/assets.ts";
import { takeBackReorganised } from "./reorganised.ts";

/** Sources of L1's history. Data counts only if it makes L1's root. */
export interface AdoptOptions extends DataSources {
  readonly engine: SettlementPort;
  readonly l1: L1Reader;
  /** Block of the settlement contract's deployment. */
  readonly fromBlock: bigint;
  /** Checks blobs. Default: a thread of its own, which the first blob starts. */
  readonly kzg?: Kzg;
  readonly signal?: AbortSignal;
}

/**
 * Replaces what a diverged store holds by L1's history, and ends the divergence. Adopts a final
 * history only, because failed mints stay failed.
 *
 * @throws MintmarkError `l1_failed` while a commit is not final, or when nobody gives the data of a
 *   batch
 *
 * @example
 * const { batches, lostVaults } = await adoptFromL1({ engine, l1, fromBlock, sources });
 */
export function adoptFromL1(options: AdoptOptions): Promise<Adopted> {
  return withKzg(options.kzg, (kzg) =>
    adoptWith(options, new CommittedData(options.l1, kzg, options)),
  );
}

async function adoptWith(options: AdoptOptions, committed: CommittedData): Promise<Adopted> {
  const { engine, l1, signal } = options;
  if (engine.operator.divergence() === null) throw invalid("The store is not diverged from L1.");
  const finalized = await l1.finalizedBlockNumber();
  const newest = await l1.state();
  const commits = await Array.fromAsync(
    commitsIn(options.l1, options.fromBlock, finalized, options.signal),
  );
  const adopted: AdoptedBatches[] = [];
  let isOther = false;
  for (const mode of MODES) {
    const there = commits
      .filter((commit) => commit.mode === mode)
      .sort((a, b) => a.batchNumber - b.batchNumber);
    const early = `L1's newest batches of ${mode} are not final yet. Adopt again when they are.`;
    if (there.length < countOf(mode, newest)) throw new MintmarkError("l1_failed", early);
    let first = 0;
    while (first < there.length && (await isOurs(engine, there[first]!))) first++;
    const batches: AdoptedBatch[] = [];
    for (const commit of there.slice(first)) {
      signal?.throwIfAborted();
      const { data, batch } = await committed.batch(commit, "l1_failed", signal);
      const kind = kindOf(mode, commit.blobs !== undefined, batch.transfers !== null);
      // The store learns from L1's events which assets L1 left out.
      const whole = batchRoot(kind, manifestRoot(batch.assets), batch.content);
      batches.push({ ...commit, batchRoot: whole, data, assets: batch.assets });
    }
    isOther ||= batches.length > 0;
    adopted.push({ mode, first, batches });
  }
  const named = adopted.flatMap(({ batches }) => batches).flatMap(({ assets }) => assets ?? []);
  const assets = await unknownAssets(named, askable(finalized, await l1.blockNumber()), options);
  // Takes back what this store read of blocks that a reorganisation replaced, even if they were
  // final.
  await takeBackReorganised(engine, l1, options.fromBlock);
  // A reorganisation may have restored this store's history. Then nothing is replaced.
  return engine.operator.adopt(isOther ? adopted : [], { assets, signal });
}

/** The registered assets that the store lacks, as their tokens describe themselves. */
async function unknownAssets(
  named: readonly AssetId[],
  block: bigint,
  { engine, l1, signal }: AdoptOptions,
) {
  const wanted = new Map(named.map((asset) => [assetName(asset), asset]));
  for await (const asset of engine.operator.assets()) wanted.delete(assetName(asset));
  const asked = [...wanted.values()];
  const registrations = asked.length === 0 ? [] : await l1.registrations(asked, block);
  const found: NewAsset[] = [];
  for (const [i, { chainId }] of asked.entries()) {
    signal?.throwIfAborted();
    const registration = registrations[i] ?? null;
    if (registration === null) continue;
    const { standard, token: contractAddress, quantum, mintingBlobScheme } = registration;
    const isHere = chainId === l1.settlement.chainId;
    const names = await tokenNames(contractAddress, standard, isHere, l1);
    const asset = { standard, chainId, contractAddress, quantum, rawMintingBlobs: true, ...names };
    // Only the registry of a token's own chain knows how its minting blobs read.
    found.push(isHere ? { ...asset, mintingBlobScheme } : asset);
  }
  return found;
}

/** A hostile token may give no name, or a bad one. */
async function tokenNames(token: Address, standard: Standard, isHere: boolean, l1: L1Reader) {
  const none = { name: token, symbol: token.slice(0, 10) };
  if (!isHere) return none;
  const { name, symbol, decimals } = await l1.token(token, standard);
  const isGood = [name, symbol].every((text) => /^[\x20-\x7e]{1,50}$/.test(text));
  return isGood ? { name, symbol, decimals } : none;
}

async function isOurs(engine: SettlementPort, commit: CommitEvent): Promise<boolean> {
  const { mode, batchNumber, dataHash, leftOut = [] } = commit;
  try {
    const own = await engine.batches.getSealed(mode, batchNumber);
    if (leftOut.some((place) => place >= own.assets.length)) return false;
    const kind = kindOf(mode, isBlobBatchData(own.data), isTransferData(mode, own.data));
    const root = batchRoot(kind, manifestRoot(own.assets, leftOut), own.content);
    return root === commit.batchRoot.toLowerCase() && own.dataHash === dataHash.toLowerCase();
  } catch (error) {
    if (
      error instanceof MintmarkError &&
      ["batch_not_found", "proof_not_ready"].includes(error.code)
    )
      return false;
    throw error;
  }
}
