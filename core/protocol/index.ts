/**
 * The protocol's formats and proofs as pure functions, for verifiers without an engine; see
 * docs/protocol.md.
 */
export type { VaultProof } from "../ports.ts";
export { assetType, MAX_QUANTUM } from "./asset.ts";
export type { Attestation, CommitteeMembers, MemberSignature } from "./attestation.ts";
export { committeeHash, encodeAttestation, MAX_MEMBERS } from "./attestation.ts";
export {
  BATCH_DATA_REASONS,
  BatchDataError,
  type BatchDataReason,
  batchLeaves,
  type DecodedBatch,
  decodeBatch,
  encodeBatchData,
  placeVaults,
  type VaultEntry,
  type WordBatch,
  wordBatch,
} from "./batch-data.ts";
export { BatchTree } from "./batch-tree.ts";
export {
  type BlobBatch,
  blobBatchData,
  blobContent,
  decodeBlobBatch,
  elementPlaces,
  encodeBlobBatch,
  manifestHash,
  readBlobBatchData,
} from "./blob-batch.ts";
export {
  batchHeaderHash,
  emptyHistory,
  nextHistory,
  stateCommitment,
  stateLeaf,
} from "./commitment.ts";
export { assetsHash, consentTypedData, type IssuerConsent } from "./consent.ts";
export * from "./consistency.ts";
export { bytesToHex, hexToBytes, keccak256 } from "./hex.ts";
export { verifyBlob, verifyOpening } from "./kzg.ts";
export { batchRoot, compareAssets, kindOf, manifestPath, manifestRoot } from "./manifest.ts";
export { canonicalMintingBlob, MAX_MINTING_BLOB_BYTES, tokenIdOf } from "./minting-blob.ts";
export { type OpenableBatch, type OpenedVault, openedProof } from "./opening.ts";
export * from "./proof.ts";
export * from "./quantized.ts";
export type {
  MintReceipt,
  MintReply,
  ReceiptMessage,
  ReceiptSigner,
  ReceiptVault,
  VaultReceipt,
} from "./receipt.ts";
export { receiptOf, receiptTypedData, verifyReceipt } from "./receipt.ts";
export { ecdsaForm, isSignedBy, isUndeployed, UNDEPLOYED_REFUSED } from "./signature.ts";
export { StateTree } from "./state-tree.ts";
export type { SessionMessage, Transfer, TransfersMessage } from "./transfer.ts";
export {
  isRedemption,
  MAX_GROUP_TRANSFERS,
  MAX_TRANSFER_HOPS,
  SESSION_END_TYPES,
  SESSION_TYPES,
  sessionEndTypedData,
  sessionTypedData,
  TRANSFERS_TYPES,
  transfersDigest,
  transfersTypedData,
} from "./transfer.ts";
export type {
  CancellationMessage,
  ClaimMessage,
  MirroredStateMessage,
  OrderItem,
  OrderMessage,
  OrderShare,
  ValidiumBatchMessage,
  WithdrawalListMessage,
} from "./typed-data.ts";
export {
  cancellationTypedData,
  claimDigest,
  claimTypedData,
  MAX_LISTED_VAULTS,
  MAX_ORDER_SHARES,
  mirroredStateTypedData,
  orderDigest,
  orderTypedData,
  renewalListTypedData,
  TYPED_DATA_TYPES,
  validiumBatchTypedData,
  withdrawalListDigest,
  withdrawalListTypedData,
} from "./typed-data.ts";
export {
  isMadeVaultId,
  packMadeVaultId,
  packVaultId,
  unpackMadeVaultId,
  unpackVaultId,
} from "./vault.ts";
export { type BlobProof, type Opening, versionedHash } from "./versioned-hash.ts";
export { readWords, type VaultWords, vaultLeaf, Words, type WordVault, wordsOf } from "./words.ts";
