import { availableParallelism } from "node:os";
import { DasContextJs } from "@crate-crypto/node-eth-kzg";
import { keccak256, toHex } from "viem";
import type { Address } from "../core/model.ts";
import type { VaultEntry } from "../core/protocol/batch-data.ts";
import {
  blobContent,
  blobsIn,
  encodeBlobBatch,
  MAX_BLOB_VAULTS,
  manifestHash,
} from "../core/protocol/blob-batch.ts";
import { KzgThread } from "../core/protocol/kzg/kzg-thread.ts";
import { versionedHash } from "../core/protocol/versioned-hash.ts";
import { costOf, medians, type Section } from "./harness.ts";

/** Until KZG has its tables, and V8 its code. */
const WARM_UPS = 5;
const ROUNDS = 5;

const CORES = availableParallelism();
const SEALED = "Mintmark, from vaults to proofs";
const COLUMNS = [
  { key: "rate", label: "wall-clock", unit: "thousand mints/s", better: "higher" },
  { key: "cpu", label: "all threads' CPU", unit: "µs a mint", better: "lower" },
] as const;

function vaults(round: number): VaultEntry[] {
  return Array.from({ length: MAX_BLOB_VAULTS }, (_, i) => ({
    chainId: 1n,
    owner:
      `0x${(BigInt(i) * 0x9e3779b97f4a7c15n).toString(16).padStart(40, "0").slice(-40)}` as Address,
    assetType: keccak256("0x"),
    amount: 1n,
    mintingBlob: toHex(`${round * MAX_BLOB_VAULTS + i}`),
  }));
}

export const blobsSection: Section = {
  name: "blobs",
  title: "Sealing into blobs",
  method:
    `Batches of ${MAX_BLOB_VAULTS.toLocaleString("en")} ERC-721 vaults, each of another ` +
    "owner, in six blobs, with 128 cell proofs a blob, without the openings for exit kits. " +
    `Tables take 100 MB, and KZG's thread makes them after 24 blobs. Median of ${ROUNDS} ` +
    "batches.",
  columns: COLUMNS,
  reference: SEALED,
  async rows(progress) {
    const kzg = new KzgThread();
    const bare = DasContextJs.create({ usePrecomp: true });
    const plain = DasContextJs.create({ usePrecomp: false });
    let round = 0;
    const prepared = () => blobsIn(encodeBlobBatch(vaults(round++)));
    const subjects: readonly { label: string; note: string; prepare(): () => Promise<unknown> }[] =
      [
        {
          label: SEALED,
          note: "elements, commitments, content and cell proofs",
          prepare() {
            const slots = vaults(round++);
            return async () => {
              const batch = encodeBlobBatch(slots);
              const blobs = blobsIn(batch);
              const commitments = await Promise.all(blobs.map((blob) => kzg.commitment(blob)));
              blobContent(
                batch.vaultCount,
                manifestHash(batch.assets),
                commitments.map(versionedHash),
              );
              await Promise.all(
                blobs.map((blob, i) => kzg.proofs(blob, commitments[i] ?? "0x", "cells")),
              );
            };
          },
        },
        {
          label: `node-eth-kzg with tables, ${CORES} threads`,
          note: "commitments and cell proofs of blobs that lay ready",
          prepare() {
            const blobs = prepared();
            const sealed = async (blob: Uint8Array) => {
              await bare.asyncBlobToKzgCommitment(blob);
              await bare.asyncComputeCellsAndKzgProofs(blob);
            };
            return () => Promise.all(blobs.map(sealed));
          },
        },
        {
          label: "node-eth-kzg without tables, one thread",
          note: "commitments and cell proofs of blobs that lay ready",
          prepare() {
            const blobs = prepared();
            return async () => {
              for (const blob of blobs) {
                plain.blobToKzgCommitment(blob);
                plain.computeCellsAndKzgProofs(blob);
              }
            };
          },
        },
      ];
    const samples = new Map(
      subjects.map(({ label }) => [label, [] as { rate: number; cpu: number }[]]),
    );
    for (let i = -WARM_UPS; i < ROUNDS; i++) {
      for (const { label, prepare } of subjects) {
        if (i < -1 && label !== SEALED) continue;
        progress(i < 0 ? `warming up: ${label}` : `round ${i + 1} of ${ROUNDS}: ${label}`);
        const { ms, allUs } = await costOf(prepare());
        if (i >= 0)
          samples.get(label)?.push({ rate: MAX_BLOB_VAULTS / ms, cpu: allUs / MAX_BLOB_VAULTS });
      }
    }
    await kzg.close();
    const valuesOf = (label: string) => medians(samples.get(label) ?? []);
    return subjects.map(({ label, note }) => ({
      label,
      note,
      ours: label === SEALED,
      values: valuesOf(label),
    }));
  },
};
