/**
 * Everything a verifier needs to check vaults, proofs and whole batches against L1. Runs in a
 * browser; `@noble/hashes`, and `@noble/curves` by `ox`, are the only dependencies. {@link
 * "./index.ts"} has
 * all of the protocol.
 */
export { MintmarkError } from "../errors.ts";
export type { Hash, Hex, Mode, Standard } from "../model.ts";
export type { BatchHeader, ProvenHop, VaultContent, VaultProof } from "../ports.ts";
export { batchLeaves, decodeBatch, placeVaults } from "./batch-data.ts";
export { BatchTree } from "./batch-tree.ts";
export {
  blobContent,
  blobsIn,
  decodeBlobBatch,
  isBlobBatchData,
  manifestHash,
  readBlobBatchData,
} from "./blob-batch.ts";
export { batchHeaderHash, stateCommitment } from "./commitment.ts";
export { bytesToHex, hexToBytes, keccak256 } from "./hex.ts";
export { verifyBlob } from "./kzg.ts";
export { batchRoot, kindOf, manifestRoot } from "./manifest.ts";
export { requireOwnCode } from "./own-code.ts";
export { verifyTreeProof, verifyVaultProof } from "./proof.ts";
export { decimalAmount, quantizedAmount } from "./quantized.ts";
export { isRedemption, MAX_TRANSFER_HOPS, TransferPart, transferBatchRoot } from "./transfer.ts";
export { decodeTransferData, transferLeaves, transferOutputs } from "./transfer-data.ts";
export { tipIdOf, tipOwnerOf, verifyHop } from "./transfer-proof.ts";
export { packVaultId, unpackVaultId, type VaultPlace } from "./vault.ts";
export { type BlobProof, versionedHash } from "./versioned-hash.ts";
export { vaultLeaf } from "./words.ts";
