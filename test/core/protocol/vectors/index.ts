import { assetVectors, blobVectors, vaultVectors } from "./assets-and-vaults.ts";
import { batchDataVectors } from "./batch-data.ts";
import { batchTreeVectors } from "./batch-trees.ts";
import { blobElementVectors } from "./blob-elements.ts";
import { manifestVectors } from "./manifests.ts";
import { attestationVectors, typedDataVectors } from "./signatures.ts";
import { commitmentVectors, stateTreeVectors } from "./state-trees.ts";
import { transferVectors } from "./transfers.ts";
import { vaultProofVectors } from "./vault-proofs.ts";

/**
 * The text of every file of test/vectors that the core makes, by file name. Each file is one JSON object with a `description`; bytes are
 * `0x` hex in lower case, integers are decimal strings whatever their size, slots that hold no vault are null.
 * `test/core/protocol/write-vectors.ts` writes the files; a test holds them to this.
 */
export async function vectorFiles(): Promise<ReadonlyMap<string, string>> {
  const contents = {
    "assets.json": assetVectors(),
    "blobs.json": blobVectors(),
    "vaults.json": vaultVectors(),
    "batch-data.json": batchDataVectors(),
    "blob-elements.json": blobElementVectors(),
    "batch-trees.json": batchTreeVectors(),
    "vault-proofs.json": vaultProofVectors(),
    "state-trees.json": stateTreeVectors(),
    "commitments.json": commitmentVectors(),
    "typed-data.json": typedDataVectors(),
    "manifests.json": manifestVectors(),
    "attestations.json": await attestationVectors(),
    "transfers.json": await transferVectors(),
  };
  return new Map(Object.entries(contents).map(([name, content]) => [name, toJson(content)]));
}

function toJson(content: object): string {
  const integersAsText = (_: string, value: unknown) =>
    typeof value === "bigint" || typeof value === "number" ? value.toString() : value;
  return `${JSON.stringify(content, integersAsText, 1)}\n`;
}
