/** The protocol's formats and proofs as pure functions, for verifiers without an engine; see docs/protocol.md. */
export { assetType, MAX_QUANTUM, mintableAssetId } from "./asset.ts";
export {
  type Attestation,
  type CommitteeMembers,
  committeeHash,
  encodeAttestation,
  type MemberSignature,
} from "./attestation.ts";
export { BATCH_DATA_REASONS, BatchDataError, type BatchDataReason, type VaultEntry } from "./batch-data.ts";
export { type DecodedBatch, type DecodeOptions, decodeBatch, decodeBatchData, placeVaults } from "./batch-decoder.ts";
export { encodeBatchData } from "./batch-encoder.ts";
export { BatchTree, PAGE_HEIGHT, PagedBatchTree } from "./batch-tree.ts";
export { canonicalBlob, MAX_BLOB_BYTES, tokenIdOf } from "./blob.ts";
export {
  type BlobBatch,
  blobBatchData,
  blobContent,
  decodeBlobBatch,
  encodeBlobBatch,
  manifestHash,
  readBlobBatchData,
} from "./blob-batch.ts";
export { batchHeaderHash, emptyHistory, nextHistory, stateCommitment, stateLeaf } from "./commitment.ts";
export * from "./consent.ts";
export * from "./consistency.ts";
export { keccak256 } from "./hash.ts";
export { bytesToHex, hexToBytes } from "./hex.ts";
export { type BlobProof, type Opening, verifyBlob, verifyOpening, versionedHash } from "./kzg.ts";
export * from "./manifest.ts";
export * from "./multiproof.ts";
export { elementPlaces, type OpenableBatch, type OpenedVault, openedProof } from "./opening.ts";
export * from "./proof.ts";
export * from "./quantized.ts";
export * from "./receipt.ts";
export { isSignedBy } from "./signature.ts";
export { StateHistory, StateTree } from "./state-tree.ts";
export * from "./typed-data.ts";
export { packVaultId, unpackVaultId, vaultLeaf, vaultLeaves } from "./vault.ts";
