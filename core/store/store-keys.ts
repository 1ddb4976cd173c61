import { type Address, type Hash, MODES, type Mode, type Uuid, type VaultId } from "../model.ts";
import { putUuid } from "./binary.ts";

/** First byte of each kind of key. Integers in keys are big-endian, so byte order is their order. */
export const PREFIX = {
  /** `head`: the end of the journal and the open batches. */
  head: 0x01,
  /** `secret`: this store's own random key for cursors. The journal does not determine it. */
  secret: 0x02,
  /** `seed`: this store's own random key for the hashes of tokens. */
  seed: 0x04,
  /** `divergence`, present while L1's history differs from the store's. */
  divergence: 0x05,
  /** `position`: in a cluster, the number of writes of the shared journal that this server's store holds. */
  position: 0x06,
  /** `format` → as the folder's file of that name, once a step brought the records to another format than the genesis's. */
  format: 0x07,
  /** sequence(8) → journal entry. */
  journal: 0x03,
  /** applicationIndex(4) → application. */
  application: 0x10,
  /** keyIndex(4) → API key. */
  key: 0x11,
  /** assetIndex(4) → asset. */
  asset: 0x12,
  /** applicationIndex(4) ‖ assetIndex(4), present when enabled. */
  enablement: 0x13,
  /** applicationIndex(4) ‖ userIndex(4) → user. */
  user: 0x14,
  /** applicationIndex(4) ‖ userId(16) → userIndex(4) ‖ owner(20). */
  userId: 0x15,
  /** webhookIndex(4) → webhook. */
  webhook: 0x16,
  /** applicationIndex(4) ‖ rotationId(16) → the rotation of a webhook's secret. */
  rotation: 0x17,
  /** applicationIndex(4) ‖ owner(20) → the owner's first user; with userIndex(4) at the end → each of its others. */
  owner: 0x18,
  /** applicationIndex(4) ‖ reference ‖ 0(1) ‖ userIndex(4), present for a user with this reference. */
  userReference: 0x19,
  /** personIndex(4) → person. */
  person: 0x70,
  /** log(4) → the number of its entries so far; log: 0 the operator's, else applicationIndex + 1. */
  auditCount: 0x71,
  /** log(4) ‖ number(8) → journal sequence of an `acted` entry; the newest ones of each log. */
  audit: 0x72,
  /** mode(1) ‖ batchNumber(4) → batch. */
  batch: 0x20,
  /** mode(1) ‖ batchNumber(4) ‖ chunk(2) → 64 vaults. */
  chunk: 0x21,
  /** mode(1) ‖ batchNumber(4) → batch data. */
  batchData: 0x22,
  /** mode(1) ‖ batchNumber(4) → page roots. */
  pageRoots: 0x23,
  /** mode(1) ‖ batchNumber(4) → hashes of the ERC-721 tokens of a sealed batch. */
  batchTokens: 0x24,
  /** mode(1) ‖ batchNumber(4) → the applications with vaults in a sealed batch. */
  batchApplications: 0x25,
  /** mode(1) ‖ batchNumber(4) → the void slots of a sealed batch, if any. */
  voids: 0x26,
  /** mode(1) ‖ batchNumber(4) ‖ journal sequence(8) → the mints lost when L1's history was adopted. */
  lost: 0x27,
  /**
   * assetIndex(4) ‖ token id (8 or 32) ‖ mode(1) ‖ batchNumber(4) → the slots of a sealed batch with an ERC-1155 id.
   */
  item: 0x28,
  /** assetIndex(4) ‖ token id (8 or 32) → the blob bound to an ERC-1155 id. */
  binding: 0x30,
  /** assetId(16) ‖ token id (8 or 32) → the metadata of a token. */
  metadata: 0x32,
  /** assetId(16) → the metadata of an asset. */
  collection: 0x33,
  /** link(20) → the claim link of a key with this address. */
  claim: 0x34,
  /** applicationIndex(4) ‖ number(8) → link(20): the application's claim links. */
  applicationClaim: 0x35,
  /** applicationIndex(4) ‖ first sequence(8) → journal sequence: the application's transactions. */
  transaction: 0x40,
  /** applicationIndex(4) ‖ userIndex(4) ‖ first sequence(8) → journal sequence: the user's transactions. */
  userTransaction: 0x41,
  /** mintId(16) → journal sequence. */
  mint: 0x42,
  /** applicationIndex(4) ‖ SHA-256 of the idempotency key(32) → digest(32) ‖ journal sequence. */
  idempotency: 0x43,
  /** applicationIndex(4) ‖ sequence(8) → event. */
  applicationEvent: 0x44,
  /** applicationIndex(4) ‖ sequence(8) → journal sequence: the application's withdrawals. */
  applicationWithdrawal: 0x45,
  /** applicationIndex(4) ‖ reference ‖ 0(1) ‖ first sequence(8) → journal sequence: the mints with the reference. */
  mintReference: 0x46,
  /**
   * applicationIndex(4) ‖ kind(1) ‖ value ‖ block(8), present when a request that begins in the block has the value:
   * for kind 1 the mode(1), for kind 2 the assetIndex(4).
   */
  mark: 0x47,
  /**
   * applicationIndex(4) ‖ kind(1) ‖ value ‖ sequence(8) → journal sequence: withdrawals of a
   * user(4), asset(4), vault(8) or status(1).
   */
  withdrawalBy: 0x48,
  /** vaultId(8) → the withdrawn and reserved amounts of a vault. */
  activity: 0x50,
  /** withdrawalId(16) → withdrawal. */
  withdrawal: 0x51,
  /** chainId(8) ‖ journal sequence(8) → withdrawalId: neither settled nor failed. */
  pendingWithdrawal: 0x52,
  /** digest(32) → withdrawalId. */
  authorization: 0x53,
  /** digest(32) → a list of vaults with one signature. */
  withdrawalList: 0x54,
  /** transferId(16) → transfers with one signature. */
  transferList: 0x55,
  /** digest(32) → transferId of these signed transfers; none once they have failed. */
  transferDigest: 0x56,
  /** journal sequence(8) → transferId: transfers that wait for a batch. */
  waitingTransfers: 0x57,
  /** batchNumber(4) ‖ first slot(4) → transferId: the lists of a rollup batch of transfers. */
  batchTransfers: 0x58,
  /**
   * applicationIndex(4) ‖ kind(1) ‖ value ‖ sequence(8) → journal sequence: lists of transfers, all for kind 1 and no
   * value, and for kind 2 those that spend a vault(8).
   */
  transferBy: 0x59,
  /** owner(20) ‖ key(20) → the key's session: it transfers for the owner. */
  transferSession: 0x5a,
  /** owner(20) ‖ digest(32) → the approval of a list of transfers on L1. */
  transferApproval: 0x5b,
  /** chainId(8) ‖ blockNumber(8) ‖ logIndex(4) → an applied L1 event. */
  l1Event: 0x60,
  /** vaultId(8) ‖ blockNumber(8) ‖ logIndex(4) → total withdrawn then; blocks of the chain of the vault's token. */
  vaultEvent: 0x61,
  /** chainId(8) → the contract that pays withdrawals there. */
  portal: 0x62,
  /** chainId(8) ‖ mode(1) ‖ batchNumber(4) → header of a batch that a mirror has imported. */
  import: 0x63,
  /** chainId(8) ‖ blockNumber(8) → hash of a block with applied events. */
  checkpoint: 0x64,
} as const;

export const HEAD_KEY = Buffer.from([PREFIX.head]);
export const DIVERGENCE_KEY = Buffer.from([PREFIX.divergence]);
export const SECRET_KEY = Buffer.from([PREFIX.secret]);
export const POSITION_KEY = Buffer.from([PREFIX.position]);
export const SEED_KEY = Buffer.from([PREFIX.seed]);
export const FORMAT_KEY = Buffer.from([PREFIX.format]);

/** A key of a prefix and up to two u32 parts, with space for `more` bytes. */
function startOf(prefix: number, more: number, first?: number, second?: number): Buffer {
  const length = first === undefined ? 1 : second === undefined ? 5 : 9;
  const key = Buffer.allocUnsafe(length + more);
  key[0] = prefix;
  if (first !== undefined) key.writeUInt32BE(first, 1);
  if (second !== undefined) key.writeUInt32BE(second, 5);
  return key;
}

/** Ends `key` with a whole number below 2^53 as u64. */
function endedByU64(key: Buffer, value: number): Buffer {
  key.writeUInt32BE(Math.floor(value / 2 ** 32), key.length - 8);
  key.writeUInt32BE(value % 2 ** 32, key.length - 4);
  return key;
}

/** Keys of one u32 part. */
const byIndex =
  (prefix: number) =>
  (index: number): Buffer =>
    startOf(prefix, 0, index);
/** Keys of two u32 parts. */
const byIndices =
  (prefix: number) =>
  (first: number, second: number): Buffer =>
    startOf(prefix, 0, first, second);
/** Keys of one u32 part and a sequence. */
const bySequence =
  (prefix: number) =>
  (index: number, sequence: number): Buffer =>
    endedByU64(startOf(prefix, 8, index), sequence);
/** Keys of a batch. */
const byBatch =
  (prefix: number) =>
  (mode: Mode, batchNumber: number): Buffer => {
    const key = startOf(prefix, 5);
    key[1] = MODES.indexOf(mode);
    key.writeUInt32BE(batchNumber, 2);
    return key;
  };

export const journalKey = (sequence: number): Buffer => endedByU64(startOf(PREFIX.journal, 8), sequence);
export const applicationKey = byIndex(PREFIX.application);
export const apiKeyKey = byIndex(PREFIX.key);
export const assetKey = byIndex(PREFIX.asset);
export const webhookKey = byIndex(PREFIX.webhook);
export const personKey = byIndex(PREFIX.person);
export const auditCountKey = byIndex(PREFIX.auditCount);
export const auditKey = bySequence(PREFIX.audit);
export const enablementKey = byIndices(PREFIX.enablement);
export const userKey = byIndices(PREFIX.user);
export const usersOf = byIndex(PREFIX.user);

export const userIdKey = (application: number, userId: Uuid): Buffer =>
  putUuid(startOf(PREFIX.userId, 16, application), 5, userId);
export const rotationKey = (application: number, rotationId: Uuid): Buffer =>
  putUuid(startOf(PREFIX.rotation, 16, application), 5, rotationId);

export const ownerKey = (application: number, owner: Address): Buffer =>
  Buffer.concat([startOf(PREFIX.owner, 0, application), Buffer.from(owner.slice(2), "hex")]);
export const ownerUserKey = (application: number, owner: Address, user: number): Buffer =>
  Buffer.concat([ownerKey(application, owner), u32(user)]);
/** No reference holds a zero, so none is a prefix of another. */
export const userReferencesOf = (application: number, reference: string): Buffer =>
  Buffer.concat([startOf(PREFIX.userReference, 0, application), Buffer.from(`${reference}\0`)]);
export const userReferenceKey = (application: number, reference: string, user: number): Buffer =>
  Buffer.concat([userReferencesOf(application, reference), u32(user)]);

export const batchKey = byBatch(PREFIX.batch);
export const batchDataKey = byBatch(PREFIX.batchData);
export const pageRootsKey = byBatch(PREFIX.pageRoots);
export const batchTokensKey = byBatch(PREFIX.batchTokens);
export const batchApplicationsKey = byBatch(PREFIX.batchApplications);
export const voidsKey = byBatch(PREFIX.voids);
export const lostKey = (mode: Mode, batchNumber: number, upTo: number): Buffer =>
  requestByKey(byBatch(PREFIX.lost)(mode, batchNumber), upTo);
export const chunksOf = byBatch(PREFIX.chunk);

export function chunkKey(mode: Mode, batchNumber: number, chunk: number): Buffer {
  const key = Buffer.allocUnsafe(8);
  chunksOf(mode, batchNumber).copy(key);
  key.writeUInt16BE(chunk, 6);
  return key;
}

/**
 * The key of an ERC-1155 id's binding. The asset stands for its chain and contract, of which it is the only one. Ids
 * below 2^64 take 8 bytes, so usual keys are short and neighbours adjacent; other ids take 32.
 */
export function bindingKey(assetIndex: number, tokenId: bigint): Buffer {
  return ofToken(PREFIX.binding, assetIndex, tokenId);
}

/** The prefix of the keys of sealed vaults of an ERC-1155 id in a mode. */
export const itemsOf = (assetIndex: number, tokenId: bigint, mode: Mode): Buffer =>
  Buffer.concat([ofToken(PREFIX.item, assetIndex, tokenId), Buffer.from([MODES.indexOf(mode)])]);
export const itemKey = (assetIndex: number, tokenId: bigint, mode: Mode, batchNumber: number): Buffer =>
  Buffer.concat([itemsOf(assetIndex, tokenId, mode), u32(batchNumber)]);

function ofToken(prefix: number, assetIndex: number, tokenId: bigint): Buffer {
  return endedByTokenId(startOf(prefix, tokenIdBytes(tokenId), assetIndex), tokenId);
}

const tokenIdBytes = (tokenId: bigint): number => (tokenId < 1n << 64n ? 8 : 32);

function endedByTokenId(key: Buffer, tokenId: bigint): Buffer {
  if (tokenIdBytes(tokenId) === 8) key.writeBigUInt64BE(tokenId, key.length - 8);
  else key.write(tokenId.toString(16).padStart(64, "0"), key.length - 32, 32, "hex");
  return key;
}

/** By the asset's id, which outlives a change of the asset before its first mint. */
export function metadataKey(assetId: Uuid, tokenId: bigint): Buffer {
  return endedByTokenId(putUuid(startOf(PREFIX.metadata, 16 + tokenIdBytes(tokenId)), 1, assetId), tokenId);
}

export const collectionKey = (assetId: Uuid): Buffer => putUuid(startOf(PREFIX.collection, 16), 1, assetId);

export const claimKey = (link: Address): Buffer =>
  Buffer.concat([Buffer.from([PREFIX.claim]), Buffer.from(link.slice(2), "hex")]);
export const claimsOfApplication = byIndex(PREFIX.applicationClaim);
export const applicationClaimKey = bySequence(PREFIX.applicationClaim);

export const transactionKey = bySequence(PREFIX.transaction);
export const userTransactionKey = (application: number, user: number, sequence: number): Buffer =>
  endedByU64(startOf(PREFIX.userTransaction, 8, application, user), sequence);
export const applicationWithdrawalKey = bySequence(PREFIX.applicationWithdrawal);
export const applicationEventKey = bySequence(PREFIX.applicationEvent);
export const mintKey = (mintId: Uuid): Buffer => putUuid(startOf(PREFIX.mint, 16), 1, mintId);

/** Sequences of an application that share marks: few enough to scan. */
const BLOCK = 64;
export const blockOf = (sequence: number): number => Math.floor(sequence / BLOCK);
export const firstOfBlock = (block: number): number => block * BLOCK;
const markOf = (application: number, ...value: number[]): Buffer =>
  Buffer.concat([startOf(PREFIX.mark, 0, application), Buffer.from(value)]);
export const modeMark = (application: number, mode: Mode): Buffer => markOf(application, 1, MODES.indexOf(mode));
export const assetMark = (application: number, asset: number): Buffer => markOf(application, 2, ...u32(asset));
export const markKey = (mark: Buffer, block: number): Buffer => requestByKey(mark, block);

function requestsBy(prefix: number, application: number, kind: number, value: Buffer): Buffer {
  return Buffer.concat([startOf(prefix, 0, application), Buffer.from([kind]), value]);
}
const withdrawalsBy = (application: number, kind: number, value: Buffer): Buffer =>
  requestsBy(PREFIX.withdrawalBy, application, kind, value);
export const withdrawalsOf = byIndex(PREFIX.applicationWithdrawal);
export const transfersOf = (application: number): Buffer =>
  requestsBy(PREFIX.transferBy, application, 1, Buffer.alloc(0));
export const transfersOfVault = (application: number, vaultId: VaultId): Buffer =>
  requestsBy(PREFIX.transferBy, application, 2, ofU64(0, vaultId).subarray(1));
/** The indexes that hold a list of transfers. */
export const transferIndexes = (application: number, spent: readonly { readonly vaultId: VaultId }[]): Buffer[] => [
  transfersOf(application),
  ...spent.map(({ vaultId }) => transfersOfVault(application, vaultId)),
];
export const requestsOfUser = (application: number, user: number): Buffer =>
  userTransactionKey(application, user, 0).subarray(0, -8);
export const withdrawalsOfUser = (application: number, user: number): Buffer =>
  withdrawalsBy(application, 1, u32(user));
export const withdrawalsOfAsset = (application: number, asset: number): Buffer =>
  withdrawalsBy(application, 2, u32(asset));
export const withdrawalsOfVault = (application: number, vaultId: VaultId): Buffer =>
  withdrawalsBy(application, 3, ofU64(0, vaultId).subarray(1));
/** @param status - its number in a withdrawal's record */
export const withdrawalsOfStatus = (application: number, status: number): Buffer =>
  withdrawalsBy(application, 4, Buffer.from([status]));
/** @param of - a prefix from one of the functions above */
export const requestByKey = (of: Buffer, sequence: number): Buffer =>
  endedByU64(Buffer.concat([of, Buffer.alloc(8)]), sequence);

export const mintReferenceKey = (application: number, reference: string, sequence: number): Buffer =>
  requestByKey(Buffer.concat([startOf(PREFIX.mintReference, 0, application), Buffer.from(`${reference}\0`)]), sequence);

export function idempotencyKeyKey(application: number, keyHash: Buffer): Buffer {
  return Buffer.concat([startOf(PREFIX.idempotency, 0, application), keyHash]);
}

export function activityKey(vaultId: VaultId): Buffer {
  return ofU64(PREFIX.activity, vaultId);
}

export const withdrawalKey = (withdrawalId: Uuid): Buffer => putUuid(startOf(PREFIX.withdrawal, 16), 1, withdrawalId);
export const pendingWithdrawalsOf = (chainId: bigint): Buffer => ofU64(PREFIX.pendingWithdrawal, chainId);
export const pendingWithdrawalKey = (chainId: bigint, sequence: number): Buffer =>
  ofU64(PREFIX.pendingWithdrawal, chainId, BigInt(sequence));
const ofHex = (prefix: number, hex: string): Buffer =>
  Buffer.concat([Buffer.from([prefix]), Buffer.from(hex.slice(2), "hex")]);
export const authorizationKey = (digest: string): Buffer => ofHex(PREFIX.authorization, digest);
export const withdrawalListKey = (digest: string): Buffer => ofHex(PREFIX.withdrawalList, digest);

export const transferListKey = (transferId: Uuid): Buffer => putUuid(startOf(PREFIX.transferList, 16), 1, transferId);
export const transferDigestKey = (digest: string): Buffer => ofHex(PREFIX.transferDigest, digest);
/** In the order of their requests. The lists of one adopted history have one sequence. */
export const waitingTransfersKey = ({
  journalSequence,
  transferId,
}: {
  readonly journalSequence: number;
  readonly transferId: Uuid;
}): Buffer => {
  const key = putUuid(startOf(PREFIX.waitingTransfers, 24), 9, transferId);
  key.writeBigUInt64BE(BigInt(journalSequence), 1);
  return key;
};
export const batchTransfersOf = byIndex(PREFIX.batchTransfers);
export const batchTransfersKey = byIndices(PREFIX.batchTransfers);

export const transferSessionKey = (owner: Address, key: Address): Buffer =>
  Buffer.concat([ofHex(PREFIX.transferSession, owner), Buffer.from(key.slice(2), "hex")]);
export const transferApprovalKey = (owner: Address, digest: Hash): Buffer =>
  Buffer.concat([ofHex(PREFIX.transferApproval, owner), Buffer.from(digest.slice(2), "hex")]);

export const l1EventsOf = (chainId: bigint): Buffer => ofU64(PREFIX.l1Event, chainId);
export const l1EventsFrom = (chainId: bigint, blockNumber: bigint): Buffer =>
  ofU64(PREFIX.l1Event, chainId, blockNumber);
export const l1EventKey = (chainId: bigint, blockNumber: bigint, logIndex: number): Buffer =>
  Buffer.concat([l1EventsFrom(chainId, blockNumber), u32(logIndex)]);
/** The inverse of {@link l1EventKey}, without the chain. */
export const placeOfL1Event = (key: Buffer): { readonly blockNumber: bigint; readonly logIndex: number } => ({
  blockNumber: key.readBigUInt64BE(9),
  logIndex: key.readUInt32BE(17),
});
export const vaultEventsOf = (vaultId: VaultId): Buffer => ofU64(PREFIX.vaultEvent, vaultId);
export const vaultEventKey = (vaultId: VaultId, blockNumber: bigint, logIndex: number): Buffer =>
  Buffer.concat([ofU64(PREFIX.vaultEvent, vaultId, blockNumber), u32(logIndex)]);

export const portalKey = (chainId: bigint): Buffer => ofU64(PREFIX.portal, chainId);
export const checkpointsOf = (chainId: bigint): Buffer => ofU64(PREFIX.checkpoint, chainId);
export const checkpointKey = (chainId: bigint, blockNumber: bigint): Buffer =>
  ofU64(PREFIX.checkpoint, chainId, blockNumber);
/** The inverse of {@link checkpointKey}, without the chain. */
export const blockOfCheckpoint = (key: Buffer): bigint => key.readBigUInt64BE(9);
export const importKey = (chainId: bigint, mode: Mode, batchNumber: number): Buffer =>
  Buffer.concat([ofU64(PREFIX.import, chainId), byBatch(0)(mode, batchNumber).subarray(1)]);

function ofU64(prefix: number, ...parts: bigint[]): Buffer {
  const key = Buffer.allocUnsafe(1 + 8 * parts.length);
  key[0] = prefix;
  for (const [i, part] of parts.entries()) key.writeBigUInt64BE(part, 1 + 8 * i);
  return key;
}

function u32(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** A key as the key of a Map. */
export function keyString(key: Buffer): string {
  return key.toString("latin1");
}

/** The first key after all keys that start with `prefix`. */
export function endOf(prefix: Buffer): Buffer {
  const end = Buffer.from(prefix);
  let last = end.length - 1;
  while (end[last] === 0xff) last--;
  end[last] = (end[last] ?? 0) + 1;
  return end.subarray(0, last + 1);
}
