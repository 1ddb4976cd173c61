import { type Address, type Hash, MODES, type Mode, type Uuid, type VaultId } from "../model.ts";
import { putUuid } from "./binary.ts";

/** First byte of each kind of key. Integers in keys are big-endian, so byte order is their order. */
export const PREFIX = {
  head: 0x01, // `head`: the end of the journal and the open batches
  secret: 0x02, // `secret`: this store's own random key for cursors. The journal does not determine it.
  seed: 0x04, // `seed`: this store's own random key for the hashes of tokens
  divergence: 0x05, // `divergence`, present while L1's history differs from the store's
  position: 0x06, // `position`: in a cluster, the number of writes of the shared journal that this server's store holds
  /** `format` → as the folder's file of that name, once a step brought the records to another format than the genesis's. */
  format: 0x07,
  journal: 0x03, // sequence(8) → journal entry
  application: 0x10, // application(4) → application
  key: 0x11, // keyIndex(4) → API key
  asset: 0x12, // asset(4) → asset
  enablement: 0x13, // application(4) ‖ asset(4), present when enabled
  user: 0x14, // application(4) ‖ user(4) → user
  userId: 0x15, // application(4) ‖ userId(16) → user(4) ‖ owner(20)
  webhook: 0x16, // webhookIndex(4) → webhook
  rotation: 0x17, // application(4) ‖ rotationId(16) → the rotation of a webhook's secret
  owner: 0x18, // application(4) ‖ owner(20) → the owner's first user; with user(4) at the end → each of its others
  userReference: 0x19, // application(4) ‖ reference ‖ 0(1) ‖ user(4), present for such a user
  person: 0x70, // personIndex(4) → person
  auditCount: 0x71, // log(4) → the number of its entries so far; log: 0 the operator's, else applicationIndex + 1
  audit: 0x72, // log(4) ‖ number(8) → journal sequence of an `acted` entry; the newest ones of each log
  batch: 0x20, // mode(1) ‖ batchNumber(4) → batch
  chunk: 0x21, // mode(1) ‖ batchNumber(4) ‖ chunk(2) → 64 vaults
  batchData: 0x22, // mode(1) ‖ batchNumber(4) → batch data
  pageRoots: 0x23, // mode(1) ‖ batchNumber(4) → page roots
  batchTokens: 0x24, // mode(1) ‖ batchNumber(4) → hashes of the ERC-721 tokens of a sealed batch
  batchApplications: 0x25, // mode(1) ‖ batchNumber(4) → the applications with vaults in a sealed batch
  voids: 0x26, // mode(1) ‖ batchNumber(4) → the void slots of a sealed batch, if any
  lost: 0x27, // mode(1) ‖ batchNumber(4) ‖ journal sequence(8) → the mints lost when L1's history was adopted
  item: 0x28, // asset(4) ‖ token id (8 or 32) ‖ mode(1) ‖ batchNumber(4) → slots of a sealed batch with an ERC-1155 id
  binding: 0x30, // asset(4) ‖ token id (8 or 32) → the blob bound to an ERC-1155 id
  metadata: 0x32, // assetId(16) ‖ token id (8 or 32) → the metadata of a token
  collection: 0x33, // assetId(16) → the metadata of an asset
  claim: 0x34, // link(20) → the claim link of a key with this address
  applicationClaim: 0x35, // application(4) ‖ number(8) → link(20): the application's claim links
  transaction: 0x40, // application(4) ‖ first sequence(8) → journal sequence: the application's transactions
  userTransaction: 0x41, // application(4) ‖ user(4) ‖ first sequence(8) → journal sequence: the user's transactions
  mint: 0x42, // mintId(16) → journal sequence
  idempotency: 0x43, // application(4) ‖ SHA-256 of the idempotency key(32) → digest(32) ‖ journal sequence
  applicationEvent: 0x44, // application(4) ‖ sequence(8) → event
  applicationWithdrawal: 0x45, // application(4) ‖ sequence(8) → journal sequence: the application's withdrawals
  /** application(4) ‖ reference ‖ 0(1) ‖ first sequence(8) → journal sequence: the mints with the reference. */
  mintReference: 0x46,
  mark: 0x47, // application(4) ‖ kind(1) ‖ value ‖ block(8): a request begins there with mode(1) (kind 1) or asset(4) (2)
  // application(4) ‖ kind(1) ‖ value ‖ sequence(8) → journal sequence: of a user(4), asset(4), vault(8) or status(1)
  withdrawalBy: 0x48,
  activity: 0x50, // vaultId(8) → the withdrawn and reserved amounts of a vault
  withdrawal: 0x51, // withdrawalId(16) → withdrawal
  pendingWithdrawal: 0x52, // chainId(8) ‖ journal sequence(8) → withdrawalId: neither settled nor failed
  authorization: 0x53, // digest(32) → withdrawalId
  withdrawalList: 0x54, // digest(32) → a list of vaults with one signature
  transferList: 0x55, // transferId(16) → transfers with one signature
  transferDigest: 0x56, // digest(32) → transferId of these signed transfers; none once they have failed
  waitingTransfers: 0x57, // journal sequence(8) → transferId: transfers that wait for a batch
  batchTransfers: 0x58, // batchNumber(4) ‖ first slot(4) → transferId: the lists of a rollup batch of transfers
  // application(4) ‖ kind(1) ‖ value ‖ sequence(8) → journal sequence: all (kind 1), or by spent vault(8) (2)
  transferBy: 0x59,
  transferSession: 0x5a, // owner(20) ‖ key(20) → the key's session: it transfers for the owner
  transferApproval: 0x5b, // owner(20) ‖ digest(32) → the approval of a list of transfers on L1
  l1Event: 0x60, // chainId(8) ‖ blockNumber(8) ‖ logIndex(4) → an applied L1 event
  /** vaultId(8) ‖ blockNumber(8) ‖ logIndex(4) → total withdrawn then; blocks of the chain of the vault's token. */
  vaultEvent: 0x61,
  portal: 0x62, // chainId(8) → the contract that pays withdrawals there
  import: 0x63, // chainId(8) ‖ mode(1) ‖ batchNumber(4) → header of a batch that a mirror has imported
  checkpoint: 0x64, // chainId(8) ‖ blockNumber(8) → hash of a block with applied events
} as const;

export const HEAD_KEY = Buffer.from([PREFIX.head]);
export const DIVERGENCE_KEY = Buffer.from([PREFIX.divergence]);
export const SECRET_KEY = Buffer.from([PREFIX.secret]);
export const POSITION_KEY = Buffer.from([PREFIX.position]);
export const SEED_KEY = Buffer.from([PREFIX.seed]);
export const FORMAT_KEY = Buffer.from([PREFIX.format]);

/** Bytes of each kind of part. A u64 is a bigint or a number below 2^53. */
const BYTES = { u8: 1, u16: 2, u32: 4, u64: 8, mode: 1, uuid: 16, address: 20, hash: 32 } as const;

interface Values {
  readonly u8: number;
  readonly u16: number;
  readonly u32: number;
  readonly u64: number | bigint;
  readonly mode: Mode;
  readonly uuid: Uuid;
  readonly address: Address;
  readonly hash: Hash | string;
}

type Kind = keyof Values;
type ValuesOf<Parts extends readonly Kind[]> = { readonly [I in keyof Parts]: Values[Parts[I]] };

/** The keys of a prefix and such parts. With fewer parts, the prefix of all keys that begin with them. */
function keyOf<const Parts extends readonly Kind[]>(
  prefix: number,
  ...parts: Parts
): (...values: ValuesOf<Parts>) => Buffer {
  const length = parts.reduce((sum, part) => sum + BYTES[part], 1);
  return (...values) => {
    const key = Buffer.allocUnsafe(length);
    key[0] = prefix;
    let at = 1;
    for (let i = 0; i < parts.length; i++) at = putPart(key, at, parts[i] as Kind, values[i]);
    return key;
  };
}

/** Returns the end of the part. */
function putPart(key: Buffer, at: number, kind: Kind, value: unknown): number {
  if (kind === "u32") return key.writeUInt32BE(value as number, at);
  if (kind === "u64") {
    if (typeof value === "bigint") return key.writeBigUInt64BE(value, at);
    key.writeUInt32BE(Math.floor((value as number) / 2 ** 32), at);
    return key.writeUInt32BE((value as number) % 2 ** 32, at + 4);
  }
  if (kind === "mode") return key.writeUInt8(MODES.indexOf(value as Mode), at);
  if (kind === "uuid") putUuid(key, at, value as Uuid);
  else if (kind === "address" || kind === "hash") {
    const written = key.write((value as string).slice(2), at, BYTES[kind], "hex");
    if (written !== BYTES[kind]) throw new Error(`no ${kind}: ${value}`);
  } else key.writeUIntBE(value as number, at, BYTES[kind]);
  return at + BYTES[kind];
}

/** A key, and a whole number below 2^53 behind it as u64. */
export function requestByKey(of: Buffer, sequence: number): Buffer {
  const key = Buffer.concat([of, Buffer.alloc(8)]);
  putPart(key, of.length, "u64", sequence);
  return key;
}

/** A key, and a text behind it. No text holds a zero, so none is a prefix of another. */
const withText = (key: Buffer, text: string): Buffer => Buffer.concat([key, Buffer.from(`${text}\0`)]);

export const journalKey = keyOf(PREFIX.journal, "u64");
export const applicationKey = keyOf(PREFIX.application, "u32");
export const apiKeyKey = keyOf(PREFIX.key, "u32");
export const assetKey = keyOf(PREFIX.asset, "u32");
export const webhookKey = keyOf(PREFIX.webhook, "u32");
export const rotationKey = keyOf(PREFIX.rotation, "u32", "uuid");
export const personKey = keyOf(PREFIX.person, "u32");
export const auditCountKey = keyOf(PREFIX.auditCount, "u32");
export const auditKey = keyOf(PREFIX.audit, "u32", "u64");
export const enablementKey = keyOf(PREFIX.enablement, "u32", "u32");

export const usersOf = keyOf(PREFIX.user, "u32");
export const userKey = keyOf(PREFIX.user, "u32", "u32");
export const userIdKey = keyOf(PREFIX.userId, "u32", "uuid");
export const ownerKey = keyOf(PREFIX.owner, "u32", "address");
export const ownerUserKey = keyOf(PREFIX.owner, "u32", "address", "u32");
const userReferences = keyOf(PREFIX.userReference, "u32");
export const userReferencesOf = (application: number, reference: string) =>
  withText(userReferences(application), reference);
export const userReferenceKey = (application: number, reference: string, user: number) =>
  Buffer.concat([userReferencesOf(application, reference), u32(user)]);

export const batchKey = keyOf(PREFIX.batch, "mode", "u32");
export const chunksOf = keyOf(PREFIX.chunk, "mode", "u32");
export const chunkKey = keyOf(PREFIX.chunk, "mode", "u32", "u16");
export const batchDataKey = keyOf(PREFIX.batchData, "mode", "u32");
export const pageRootsKey = keyOf(PREFIX.pageRoots, "mode", "u32");
export const batchTokensKey = keyOf(PREFIX.batchTokens, "mode", "u32");
export const batchApplicationsKey = keyOf(PREFIX.batchApplications, "mode", "u32");
export const voidsKey = keyOf(PREFIX.voids, "mode", "u32");
export const lostKey = keyOf(PREFIX.lost, "mode", "u32", "u64");

/** Ids below 2^64 take 8 bytes, so usual keys are short and neighbours adjacent; other ids take 32. */
export const bindingKey = (assetIndex: number, tokenId: bigint): Buffer => withTokenId(bindings(assetIndex), tokenId);
const bindings = keyOf(PREFIX.binding, "u32");

/** The prefix of the keys of sealed vaults of an ERC-1155 id in a mode. */
export const itemsOf = (assetIndex: number, tokenId: bigint, mode: Mode) =>
  Buffer.concat([withTokenId(items(assetIndex), tokenId), Buffer.from([MODES.indexOf(mode)])]);
const items = keyOf(PREFIX.item, "u32");
export const itemKey = (assetIndex: number, tokenId: bigint, mode: Mode, batchNumber: number) =>
  Buffer.concat([itemsOf(assetIndex, tokenId, mode), u32(batchNumber)]);

/** By the asset's id, which outlives a change of the asset before its first mint. */
export const metadataKey = (assetId: Uuid, tokenId: bigint): Buffer => withTokenId(metadataOf(assetId), tokenId);
const metadataOf = keyOf(PREFIX.metadata, "uuid");
export const collectionKey = keyOf(PREFIX.collection, "uuid");

function withTokenId(key: Buffer, tokenId: bigint): Buffer {
  const digits = tokenId < 1n << 64n ? 16 : 64;
  return Buffer.concat([key, Buffer.from(tokenId.toString(16).padStart(digits, "0"), "hex")]);
}

export const claimKey = keyOf(PREFIX.claim, "address");
export const claimsOfApplication = keyOf(PREFIX.applicationClaim, "u32");
export const applicationClaimKey = keyOf(PREFIX.applicationClaim, "u32", "u64");

export const transactionKey = keyOf(PREFIX.transaction, "u32", "u64");
export const requestsOfUser = keyOf(PREFIX.userTransaction, "u32", "u32");
export const userTransactionKey = keyOf(PREFIX.userTransaction, "u32", "u32", "u64");
export const mintKey = keyOf(PREFIX.mint, "uuid");
const mintReferences = keyOf(PREFIX.mintReference, "u32");
export const mintReferenceKey = (application: number, reference: string, sequence: number) =>
  requestByKey(withText(mintReferences(application), reference), sequence);
const idempotencyKeys = keyOf(PREFIX.idempotency, "u32");
export const idempotencyKeyKey = (application: number, keyHash: Buffer) =>
  Buffer.concat([idempotencyKeys(application), keyHash]);
export const applicationEventKey = keyOf(PREFIX.applicationEvent, "u32", "u64");

const BLOCK = 64; // Sequences of an application that share marks: few enough to scan
export const blockOf = (sequence: number): number => Math.floor(sequence / BLOCK);
export const firstOfBlock = (block: number): number => block * BLOCK;
const modeMarks = keyOf(PREFIX.mark, "u32", "u8", "mode");
const assetMarks = keyOf(PREFIX.mark, "u32", "u8", "u32");
export const modeMark = (application: number, mode: Mode): Buffer => modeMarks(application, 1, mode);
export const assetMark = (application: number, asset: number): Buffer => assetMarks(application, 2, asset);
export const markKey = requestByKey;

export const activityKey = keyOf(PREFIX.activity, "u64");
export const withdrawalKey = keyOf(PREFIX.withdrawal, "uuid");
export const pendingWithdrawalsOf = keyOf(PREFIX.pendingWithdrawal, "u64");
export const pendingWithdrawalKey = keyOf(PREFIX.pendingWithdrawal, "u64", "u64");
export const authorizationKey = keyOf(PREFIX.authorization, "hash");
export const withdrawalListKey = keyOf(PREFIX.withdrawalList, "hash");
export const withdrawalsOf = keyOf(PREFIX.applicationWithdrawal, "u32");
export const applicationWithdrawalKey = keyOf(PREFIX.applicationWithdrawal, "u32", "u64");
const withdrawalsByIndex = keyOf(PREFIX.withdrawalBy, "u32", "u8", "u32");
const withdrawalsByVault = keyOf(PREFIX.withdrawalBy, "u32", "u8", "u64");
const withdrawalsByStatus = keyOf(PREFIX.withdrawalBy, "u32", "u8", "u8");
export const withdrawalsOfUser = (application: number, user: number) => withdrawalsByIndex(application, 1, user);
export const withdrawalsOfAsset = (application: number, asset: number) => withdrawalsByIndex(application, 2, asset);
export const withdrawalsOfVault = (application: number, vaultId: VaultId) =>
  withdrawalsByVault(application, 3, vaultId);
/** @param status - its number in a withdrawal's record */
export const withdrawalsOfStatus = (application: number, status: number) => withdrawalsByStatus(application, 4, status);

export const transferListKey = keyOf(PREFIX.transferList, "uuid");
export const transferDigestKey = keyOf(PREFIX.transferDigest, "hash");
const waitingTransfers = keyOf(PREFIX.waitingTransfers, "u64", "uuid");
/** In the order of their requests. The lists of one adopted history have one sequence. */
export const waitingTransfersKey = (of: { readonly journalSequence: number; readonly transferId: Uuid }) =>
  waitingTransfers(of.journalSequence, of.transferId);
export const batchTransfersOf = keyOf(PREFIX.batchTransfers, "u32");
export const batchTransfersKey = keyOf(PREFIX.batchTransfers, "u32", "u32");
const transfersBy = keyOf(PREFIX.transferBy, "u32", "u8");
const transfersByVault = keyOf(PREFIX.transferBy, "u32", "u8", "u64");
export const transfersOf = (application: number): Buffer => transfersBy(application, 1);
export const transfersOfVault = (application: number, vaultId: VaultId) => transfersByVault(application, 2, vaultId);
/** The indexes that hold a list of transfers. */
export const transferIndexes = (application: number, spent: readonly { readonly vaultId: VaultId }[]): Buffer[] => [
  transfersOf(application),
  ...spent.map(({ vaultId }) => transfersOfVault(application, vaultId)),
];
export const transferSessionKey = keyOf(PREFIX.transferSession, "address", "address");
export const transferApprovalKey = keyOf(PREFIX.transferApproval, "address", "hash");

export const l1EventsOf = keyOf(PREFIX.l1Event, "u64");
export const l1EventsFrom = keyOf(PREFIX.l1Event, "u64", "u64");
export const l1EventKey = keyOf(PREFIX.l1Event, "u64", "u64", "u32");
/** The inverse of {@link l1EventKey}, without the chain. */
export const placeOfL1Event = (key: Buffer): { readonly blockNumber: bigint; readonly logIndex: number } => ({
  blockNumber: key.readBigUInt64BE(9),
  logIndex: key.readUInt32BE(17),
});
export const vaultEventsOf = keyOf(PREFIX.vaultEvent, "u64");
export const vaultEventKey = keyOf(PREFIX.vaultEvent, "u64", "u64", "u32");

export const portalKey = keyOf(PREFIX.portal, "u64");
export const checkpointsOf = keyOf(PREFIX.checkpoint, "u64");
export const checkpointKey = keyOf(PREFIX.checkpoint, "u64", "u64");
/** The inverse of {@link checkpointKey}, without the chain. */
export const blockOfCheckpoint = (key: Buffer): bigint => key.readBigUInt64BE(9);
export const importKey = keyOf(PREFIX.import, "u64", "mode", "u32");

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
