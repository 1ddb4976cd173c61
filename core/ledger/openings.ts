import { MintmarkError } from "../errors.ts";
import type { Hash, Hex } from "../model.ts";
import type { VaultContent, VaultProof } from "../ports.ts";
import {
  BLOB_ELEMENTS,
  blobsIn,
  elementPlaces,
  readBlobBatchData,
} from "../protocol/blob-batch.ts";
import type { Kzg } from "../protocol/kzg/kzg-thread.ts";
import { openedProof, openedRoot } from "../protocol/opening.ts";
import { unpackBatchVaultId } from "../protocol/vault.ts";
import { type BlobProof, type Opening, versionedHash } from "../protocol/versioned-hash.ts";
import { Recent } from "../recent.ts";
import { pointsIn } from "../sealing/contents.ts";

const KEPT = 10_000; // Openings kept in memory, 0.5 KB each
/**
 * Openings of metered calls that may wait. Each takes a core for some 40 ms, and its batch's data,
 * at most 0.8 MB.
 */
const MAX_WAITING = 64;

/** Told how many proofs the native code must make, before it makes them. A throw ends the call. */
export type OnKzgProofs = (proofs: number) => void;

export interface BlobRecords {
  readonly data: Uint8Array;
  readonly commitments: Uint8Array; // The commitments of its blobs, concatenated
  readonly leftOut: readonly number[];
}

/**
 * Opens elements of batches in blobs one at a time, so that nobody waits for all of another's.
 * Metered calls, which strangers cause, wait behind the engine's own. A commitment binds its blob,
 * so what is kept stays right.
 */
export class Openings {
  readonly #kzg: Kzg;
  readonly #kept = new Recent<Hex, number, Opening>(KEPT); // Keyed by commitment, place
  readonly #blobs = new Recent<Hex, "blob", BlobProof>(KEPT); // Proofs of whole blobs, by commitment
  // Proofs to be made: the engine's own, and those of metered calls
  readonly #own: (() => Promise<void>)[] = [];
  readonly #metered: (() => Promise<void>)[] = [];
  #isBusy = false;

  constructor(kzg: Kzg) {
    this.#kzg = kzg;
  }

  /**
   * The proof of a vault, up to `batchRoot`. Rejects with `backpressure`; `store_corrupt` for other
   * records.
   */
  async prove(
    { data, commitments, leftOut }: BlobRecords,
    vault: VaultContent,
    batchRoot: Hash,
    onKzgProofs?: OnKzgProofs,
  ): Promise<VaultProof> {
    const batch = readBlobBatchData(data);
    const blobs = blobsIn(batch);
    const points = pointsIn(commitments);
    const places = elementPlaces(batch, unpackBatchVaultId(vault.vaultId).slot).map((place) => {
      const blob = Math.floor(place / BLOB_ELEMENTS);
      return {
        blob: blobs[blob] as Uint8Array,
        point: points[blob] as Hex,
        index: place % BLOB_ELEMENTS,
      };
    });
    tell(
      onKzgProofs,
      places.filter(({ point, index }) => this.#kept.get(point, index) === undefined).length,
    );
    const openings: Opening[] = [];
    for (const { blob, point, index } of places) {
      const open = async () => (await this.#kzg.openings(blob, point, [index]))[0] as Opening;
      openings.push(await this.#inTurn(this.#kept, point, index, open, onKzgProofs !== undefined));
    }
    const proof = openedProof(
      { ...batch, versionedHashes: points.map(versionedHash), leftOut },
      vault,
      openings,
    );
    // The pairing would take 0.1 s of the event loop. The native code has made the proof for these
    // elements.
    const { root, elements } = openedRoot(proof);
    const isVault = elements.every((element, i) => element === openings[i]?.element);
    if (root !== batchRoot || !isVault)
      throw new MintmarkError("store_corrupt", `vault ${vault.vaultId} is not in its blobs`);
    return proof;
  }

  /** The proof of each blob of a batch. Rejects with `backpressure` when too many wait. */
  async proveBlobs(
    { data, commitments }: Pick<BlobRecords, "data" | "commitments">,
    onKzgProofs?: OnKzgProofs,
  ) {
    const proofs: BlobProof[] = [];
    const points = pointsIn(commitments);
    tell(
      onKzgProofs,
      points.filter((point) => this.#blobs.get(point, "blob") === undefined).length,
    );
    for (const [i, blob] of blobsIn(readBlobBatchData(data)).entries()) {
      const commitment = points[i] as Hex;
      const prove = async () => ({
        commitment,
        proof: (await this.#kzg.proofs(blob, commitment, "blob"))[0] as Hex,
      });
      proofs.push(
        await this.#inTurn(this.#blobs, commitment, "blob", prove, onKzgProofs !== undefined),
      );
    }
    return proofs;
  }

  async #inTurn<K, T>(
    kept: Recent<Hex, K, T>,
    commitment: Hex,
    key: K,
    prove: () => Promise<T>,
    isMetered: boolean,
  ): Promise<T> {
    const known = kept.get(commitment, key);
    if (known !== undefined) return known;
    if (isMetered && this.#metered.length >= MAX_WAITING)
      throw new MintmarkError("backpressure", "Too many vaults in blobs are being proven.");
    return new Promise((resolve, reject) => {
      const work = async () => {
        const proof = kept.get(commitment, key) ?? (await prove());
        kept.set(commitment, key, proof);
        resolve(proof);
      };
      (isMetered ? this.#metered : this.#own).push(() => work().catch(reject));
      if (!this.#isBusy) void this.#workOff();
    });
  }

  async #workOff(): Promise<void> {
    this.#isBusy = true;
    for (;;) {
      const next = this.#own.shift() ?? this.#metered.shift();
      if (next === undefined) break;
      await next();
    }
    this.#isBusy = false;
  }
}

function tell(onKzgProofs: OnKzgProofs | undefined, proofs: number): void {
  if (proofs > 0) onKzgProofs?.(proofs);
}
