import { fromRlp, toRlp } from "viem";
import type { Hash, Hex } from "../model.ts";
import { BLOB_BYTES } from "../protocol/blob-batch.ts";
import { bytesToHex } from "../protocol/hex.ts";
import type { Kzg, ProofForm } from "../protocol/kzg/kzg-thread.ts";
import { INFINITY, versionedHash } from "../protocol/versioned-hash.ts";

/** EIP-7594: the version of the wrapper with cell proofs. */
const CELLS_VERSION = "0x01";
/** Cell proofs of a blob. */
const CELLS = 128;
/** Proves blobs of zeros, without native code. */
const zeroKzg: Pick<Kzg, "proofs"> = {
  proofs: async (_blob, _commitment, form) =>
    Array.from({ length: form === "cells" ? CELLS : 1 }, () => INFINITY),
};

/** The blobs of a transaction, which travel beside it in a wrapper and are no part of its hash. */
export class BlobSidecar {
  readonly versionedHashes: readonly Hash[];
  readonly #blobs: readonly Uint8Array[];
  readonly #commitments: readonly Hex[];
  readonly #kzg: Pick<Kzg, "proofs">;
  /** Made once for each form, however often the transaction is replaced. */
  readonly #proofs = new Map<ProofForm, Promise<readonly Hex[]>>();

  constructor(blobs: readonly Uint8Array[], commitments: readonly Hex[], kzg: Pick<Kzg, "proofs">) {
    this.versionedHashes = commitments.map(versionedHash);
    this.#blobs = blobs;
    this.#commitments = commitments;
    this.#kzg = kzg;
  }

  static async of(blobs: readonly Uint8Array[], kzg: Kzg): Promise<BlobSidecar> {
    return new BlobSidecar(
      blobs,
      await Promise.all(blobs.map((blob) => kzg.commitment(blob))),
      kzg,
    );
  }

  /** A blob of zeros, which uses up a nonce. */
  static empty(): BlobSidecar {
    return new BlobSidecar([new Uint8Array(BLOB_BYTES)], [INFINITY], zeroKzg);
  }

  /** A signed transaction with its blobs, as nodes take it. */
  async wrap(signed: Hex, form: ProofForm): Promise<Hex> {
    let proofs = this.#proofs.get(form);
    if (proofs === undefined) {
      proofs = this.#prove(form);
      this.#proofs.set(form, proofs);
      proofs.catch(() => this.#proofs.delete(form));
    }
    const body = fromRlp(`0x${signed.slice(4)}`, "hex");
    const version = form === "cells" ? [CELLS_VERSION as Hex] : [];
    const blobs = this.#blobs.map(bytesToHex);
    return `0x03${toRlp([body, ...version, blobs, [...this.#commitments], [...(await proofs)]]).slice(2)}`;
  }

  async #prove(form: ProofForm): Promise<readonly Hex[]> {
    const proofs = this.#blobs.map((blob, i) =>
      this.#kzg.proofs(blob, this.#commitments[i] as Hex, form),
    );
    return (await Promise.all(proofs)).flat();
  }
}
