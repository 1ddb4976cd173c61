import { MINTING_BLOB_SCHEMES, MODES, type Mode, ROLES, SCOPES, STANDARDS } from "../model.ts";
import { TRANSFER_FAULTS, type TransferFault } from "../protocol/transfer-rules.ts";
import {
  address,
  bigVarint,
  each,
  emptyOf,
  type Field,
  flag,
  hash,
  hexBytes,
  layout,
  listOf,
  nullable,
  oneOf,
  text,
  time,
  u64,
  uuid,
  type ValueOf,
  varint,
} from "./layout.ts";

/**
 * Derived from the journal alone, in byte order (core/store/layout.ts), with the keys of
 * core/store/store-keys.ts.
 */

/** Fields that several records and journal entries have in this order. */
export const batchPlace = { mode: oneOf(MODES), batchNumber: varint } as const;
export const roots = { batchRoot: hash, dataHash: hash, stateRoot: hash } as const;
/** Time and place of a batch in the contract's order. */
export const accepted = { committedAt: bigVarint, l1Sequence: bigVarint } as const;

export const applicationRecord = layout({
  applicationIndex: varint,
  applicationId: uuid,
  name: text,
  suspended: flag,
  createdAt: time,
  nextSequence: varint, // Sequence number of the application's next transaction
  eventCount: varint, // Number of the application's events; also the newest one's sequence number
  // Applies to mints without a mode, of assets without a default of their own
  dataAvailabilityMode: nullable(oneOf(MODES)),
});
export type ApplicationRecord = ValueOf<typeof applicationRecord>;

export const keyRecord = layout({
  keyIndex: varint,
  keyId: text,
  applicationIndex: varint,
  secretHash: hash,
  scopes: listOf(oneOf(SCOPES)),
  mintQuota: nullable(bigVarint),
  mintsUsed: bigVarint,
  createdAt: time,
  expiresAt: nullable(time),
  revokedAt: nullable(time),
  name: nullable(text),
  ofPerson: flag,
});
export type KeyRecord = ValueOf<typeof keyRecord>;

export const assetPlace = {
  assetIndex: varint,
  assetId: uuid,
  standard: oneOf(STANDARDS),
  chainId: bigVarint,
  contractAddress: address,
  quantum: bigVarint,
} as const;
export const assetForm = {
  name: text,
  symbol: text,
  decimals: varint,
  mintingBlobScheme: oneOf(MINTING_BLOB_SCHEMES),
  supplyCap: nullable(bigVarint),
  applicationIndex: nullable(varint), // The only application that can enable it; null: any can
} as const;
export const assetRecord = layout({
  ...assetPlace,
  assetType: hash,
  ...assetForm,
  minted: bigVarint,
  whitelisted: flag,
  registered: flag,
  minterLocked: nullable(flag),
  fault: nullable(text), // The reason why L1 would refuse mints of it
  createdAt: time,
  rawMintingBlobs: flag,
  dataAvailabilityMode: nullable(oneOf(MODES)),
  // The id that the engine gives next; null where mints name their ids
  nextTokenId: nullable(bigVarint),
  removed: flag, // No longer visible. If the asset was changed, its id belongs to a later record.
  transferable: nullable(flag), // Whether L1's registry has it as transferable; null: not asked
});
export type AssetRecord = ValueOf<typeof assetRecord>;
/** The part of an asset that never changes. */
export type AssetFacts = Pick<
  AssetRecord,
  keyof typeof assetPlace | "assetType" | keyof typeof assetForm | "createdAt"
>;

export const metadataRecord = layout({ metadata: text, frozen: flag, updatedAt: time });
export type MetadataRecord = ValueOf<typeof metadataRecord>;

export const collection = {
  assetId: uuid,
  // The contract's metadata (ERC-7572) as JSON; null for name and symbol only
  contractMetadata: nullable(text),
  // Shown as the metadata of every token, as JSON; null once the tokens show their own
  placeholder: nullable(text),
  frozen: flag, // Whether no token's metadata can change again
} as const;
export const collectionRecord = layout({ ...collection, updatedAt: time });
export type CollectionRecord = ValueOf<typeof collectionRecord>;

const CLAIM_STATUSES = ["open", "claimed", "cancelled"] as const;

/** A claim link, by the address of its key. */
export const claimRecord = layout({
  applicationIndex: varint,
  keyIndex: varint, // The key that created it, and that mints
  number: varint, // Order of creation, see claimNumber
  mint: text, // The entry of the mint, as JSON
  expiresAt: nullable(time),
  status: oneOf(CLAIM_STATUSES),
  ownerAddress: nullable(address),
  signature: nullable(hexBytes),
  mintId: nullable(uuid),
  mintSequence: nullable(varint),
  createdAt: time,
  decidedAt: nullable(time),
});
export type ClaimRecord = ValueOf<typeof claimRecord>;

/** The order of a claim link: by the journal sequence of its creation, and by its place there. */
export const claimNumber = (sequence: number, place: number): number => sequence * 1_024 + place;

export const userRecord = layout({
  userId: uuid,
  ownerAddress: address,
  createdAt: time,
  reference: nullable(text),
});

/** userId → index and owner, for a mint to a user. */
export const userIdRecord = layout({ userIndex: varint, ownerAddress: address });

/** owner → one of its users, for a mint to an address. */
export const ownerRecord = layout({ userIndex: varint, userId: uuid });

/** A signed-in browser, by SHA-256 of its secret. */
const personSignIn = layout({ tokenHash: hash, openedAt: time, expiresAt: time });

export const personFacts = {
  personIndex: varint,
  personId: uuid,
  applicationIndex: nullable(varint), // null: of the operator
  role: oneOf(ROLES),
  name: text,
  address: nullable(address), // The wallet that signs in
  /** The key under which the person's mints and withdrawals are recorded; nobody has its secret. */
  keyIndex: nullable(varint),
} as const;

/** A person who works for an application, or for the operator. */
export const personRecord = layout({
  ...personFacts,
  link: nullable(layout({ linkHash: hash, expiresAt: time })),
  signIns: listOf(personSignIn), // Oldest first, at most MAX_SIGN_INS
  createdAt: time,
  signedInAt: nullable(time),
  removedAt: nullable(time),
});
export type PersonRecord = ValueOf<typeof personRecord>;

export const MAX_SIGN_INS = 10; // A further sign-in of a person ends the oldest
export const auditCountRecord = layout({ log: varint, count: varint });

export const webhookRecord = layout({
  webhookIndex: varint,
  webhookId: uuid,
  applicationIndex: varint,
  url: text,
  types: listOf(text),
  status: oneOf(["active", "disabled", "deleted"]),
  rotations: varint, // Number of rotations of the secret, which identifies the current one
  rotatedAt: nullable(time),
  delivered: varint, // Sequence of the last event that is delivered, or need not be
  failingSince: nullable(time),
  failure: nullable(text),
  createdAt: time,
});
export type WebhookRecord = ValueOf<typeof webhookRecord>;

/** The webhook's secret that a rotation created, by the rotation's id. */
export const rotationRecord = layout({ webhookIndex: varint, rotations: varint });

/**
 * An asset that L1 leaves out, by its place in the batch's manifest, with the reason. Its vaults
 * here pay nobody.
 */
export const leftOutAsset = layout({ asset: varint, failure: text });
export type LeftOutAsset = ValueOf<typeof leftOutAsset>;

export const batchRecord = layout({
  ...batchPlace,
  status: oneOf(["open", "sealed", "submitted", "settled", "finalized"]),
  vaultCount: varint,
  mintCount: varint,
  ...each(nullable(hash), "batchRoot", "dataHash", "stateRoot", "l1TxHash"),
  ...each(nullable(bigVarint), "l1BlockNumber", "committedAt", "l1Sequence"),
  openedAt: time,
  ...each(nullable(time), "sealedAt", "submittedAt", "settledAt", "finalizedAt"),
  content: nullable(hash), // Root of the vault tree, or the content of a batch in blobs
  /** The batch's manifest; null while the batch is open. */
  assets: nullable(listOf(layout({ chainId: bigVarint, assetType: hash }))),
  /** The assets that L1 leaves out, or will when it takes the batch; null for none. */
  leftOut: nullable(listOf(leftOutAsset)),
  inBlobs: flag,
  transfers: flag,
  // Foreign batch that our encoder would not reproduce; its stored data decides
  given: flag,
});
export type BatchRecord = ValueOf<typeof batchRecord>;

/** The applications with vaults in a sealed batch, ascending. */
export const batchApplicationsRecord = listOf(varint);

/** Consecutive void slots of a sealed batch, with L1's reason. */
export const voidRun = layout({ firstSlot: varint, count: varint, failure: text });
export type VoidRun = ValueOf<typeof voidRun>;

const storedRun = layout({ firstSlot: varint, count: varint, failure: text, voidedAt: time });

export interface VoidedRun extends VoidRun {
  readonly voidedAt: number;
  /**
   * Whether the leaves stay in the tree: L1 took the batch, but left the asset out of its manifest.
   */
  readonly leftOut: boolean;
}

const runsRecord = layout({
  ...batchPlace,
  runs: listOf(storedRun),
  leftOut: nullable(listOf(varint)),
});

interface VoidsRecord {
  readonly mode: Mode;
  readonly batchNumber: number;
  readonly runs: readonly VoidedRun[];
}

/** All void slots of a sealed batch, ascending. */
export const voidsRecord: Field<VoidsRecord> = {
  write(to, { mode, batchNumber, runs }) {
    const leftOut = [...runs.keys()].filter((i) => runs[i]?.leftOut);
    runsRecord.write(to, {
      mode,
      batchNumber,
      runs,
      leftOut: leftOut.length === 0 ? null : leftOut,
    });
  },
  read(from) {
    const { runs, leftOut, ...place } = runsRecord.read(from);
    return {
      ...place,
      runs: runs.map((run, i) => ({ ...run, leftOut: leftOut?.includes(i) ?? false })),
    };
  },
};

/** The difference between L1's history and the store's, with its time. */
export const divergenceRecord = layout({ detail: text, since: time });
export type DivergenceRecord = ValueOf<typeof divergenceRecord>;

/** Consecutive slots of a replaced batch. Their mints above the amount `above` are lost. */
export const lostRun = layout({ firstSlot: varint, count: varint, above: bigVarint });
export type LostRun = ValueOf<typeof lostRun>;

/**
 * The mints of a batch that L1's history lacks, journaled before `upTo`, the entry that adopted
 * L1's.
 */
export const lostRecord = layout({
  ...batchPlace,
  upTo: varint,
  failure: text,
  since: time,
  runs: listOf(lostRun),
  /** The content of lost vaults with a requested withdrawal. */
  withdrawn: listOf(layout({ slot: varint, assetIndex: varint, mintingBlob: hexBytes })),
});
export type LostRecord = ValueOf<typeof lostRecord>;

export const headRecord = layout({
  journalLength: varint,
  time: time,
  userCount: varint,
  keysForgotten: varint, // The idempotency keys of entries before this journal sequence are deleted
});

/**
 * A contract that pays withdrawals, with the progress of reading its chain. The settlement contract
 * is the first.
 */
export const portalRecord = layout({
  chainId: bigVarint,
  contract: address,
  observed: nullable(bigVarint), // Last block whose events are applied
  finalized: nullable(bigVarint), // Last block known to be final
});
export type PortalRecord = ValueOf<typeof portalRecord>;

/** A block's hash at the time when its events were applied. */
export const checkpointRecord = hash;

/** The mirror's own part of a batch header. */
export const importRecord = layout(accepted);

/** The later history of one sealed vault, whose own record never changes. */
export const activityRecord = layout({
  withdrawn: bigVarint,
  reserved: bigVarint, // Sum over `pending`
  pending: listOf(uuid),
  updatedAt: time,
  // Why its token refuses the committed vault; null while nothing is known against it
  refusal: nullable(text),
  spentBy: nullable(uuid), // The list of transfers that takes the vault; null for none
  // Units that its transfer has put into other vaults; 0 while the list waits
  transferred: bigVarint,
});
export type ActivityRecord = ValueOf<typeof activityRecord>;
export const UNTOUCHED = emptyOf(activityRecord);

export const WITHDRAWAL_STATUSES = [
  "accepted",
  "submitted",
  "settled",
  "finalized",
  "failed",
] as const;

/** A withdrawal as its owner signed it. `chainId` is that of the vault's token. */
export const withdrawalFacts = {
  chainId: bigVarint,
  vaultId: u64,
  quantity: bigVarint,
  recipient: address,
  withdrawnBefore: bigVarint,
  deadline: bigVarint,
  digest: hash, // The list's digest; the list has the signature.
} as const;

export const withdrawalRecord = layout({
  withdrawalId: uuid,
  ...each(varint, "applicationIndex", "userIndex", "sequence"),
  journalSequence: varint, // The entry with the request
  ...withdrawalFacts,
  status: oneOf(WITHDRAWAL_STATUSES),
  l1TxHash: nullable(hash),
  l1BlockNumber: nullable(bigVarint),
  failure: nullable(text),
  createdAt: time,
  ...each(nullable(time), "submittedAt", "settledAt", "finalizedAt", "failedAt"),
  updatedAt: time,
});
export type WithdrawalRecord = ValueOf<typeof withdrawalRecord>;

const listed = { vaultId: u64, withdrawnBefore: bigVarint, quantity: bigVarint } as const;
export const listedVault = layout(listed);

/** A signed list, in its order, with the withdrawals requested so far. */
export const withdrawalListRecord = layout({
  signature: hexBytes,
  vaults: listOf(layout({ ...listed, withdrawalId: nullable(uuid) })),
});

const transferFacts = {
  vaultId: u64,
  amount: bigVarint, // 0 for the whole rest
  to: address,
  receiverIndex: nullable(varint), // The user of `to`; null for a redemption
} as const;
export const signedTransfer = layout(transferFacts);

export const signedList = {
  digest: hash,
  deadline: bigVarint,
  signature: hexBytes, // Empty when the owner has approved the digest on L1
  // The key that signed for the owner; null when no session's key did
  sessionKey: nullable(address),
} as const;

/** A list of transfers that L1's history holds, as the vaults before it say. */
export const adoptedList = layout({
  transferId: uuid,
  applicationIndex: varint,
  ...signedList,
  transfers: listOf(
    layout({ ...transferFacts, userIndex: varint, assetIndex: varint, hops: varint }),
  ),
});
export type AdoptedList = ValueOf<typeof adoptedList>;

/** Where a list of transfers is before its batch says the rest. */
const TRANSFER_STATUSES = ["waiting", "batched", "failed"] as const;

const FAULTS = Object.keys(TRANSFER_FAULTS) as TransferFault[]; // Index = number on disk

/** Transfers under one signature. L1 takes all of them together. */
export const transferListRecord = layout({
  transferId: uuid,
  applicationIndex: varint,
  firstSequence: varint,
  journalSequence: varint, // The entry with the request
  ...signedList,
  transfers: listOf(
    layout({
      ...transferFacts,
      userIndex: varint, // The vault's owner
      assetIndex: varint,
      hops: varint, // Transfers between the mint and the new vaults, this one included
      /** Why L1 does not count the committed transfer; null when it does, and before the commit. */
      fault: nullable(oneOf(FAULTS)),
    }),
  ),
  status: oneOf(TRANSFER_STATUSES),
  // The rollup batch and its slot of the first transfer; null unless batched
  batchNumber: nullable(varint),
  firstSlot: nullable(varint),
  failure: nullable(text),
  createdAt: time,
  updatedAt: time,
});
export type TransferListRecord = ValueOf<typeof transferListRecord>;

export const transferIdRecord = uuid;

const DISTANCES = listOf(varint);

/** The withdrawn total of a vault at an L1 event. */
export const bigRecord = bigVarint;

/** Ascending slots: each as the distance from the one before, the first from -1. */
export const itemSlotsRecord: Field<readonly number[]> = {
  write(to, slots) {
    DISTANCES.write(
      to,
      slots.map((slot, i) => slot - (slots[i - 1] ?? -1)),
    );
  },
  read(from) {
    let slot = -1;
    return DISTANCES.read(from).map((distance) => (slot += distance));
  },
};

/** SHA-256 of the request with an idempotency key, and the journal sequence of its entry. */
export const idempotencyRecord = layout({ digest: hash, sequence: varint });

export const withdrawalIdRecord = uuid;

/** A key that an owner lets transfer for it, as L1 has it. Times are seconds; 0 for never. */
export const transferSessionRecord = layout({
  authorizedAt: u64,
  until: u64,
  limit: u64, // Most units of one transfer
  assetType: hash, // The only asset; zero for every asset
  revokedAt: u64,
  blockNumber: bigVarint, // The authorization's block
});
export type TransferSessionRecord = ValueOf<typeof transferSessionRecord>;
export const NO_SESSION = emptyOf(transferSessionRecord);

/** When an account approved and cancelled a list of transfers on L1, in seconds; 0 for never. */
export const transferApprovalRecord = layout({
  approvedAt: u64,
  cancelledAt: u64,
  blockNumber: bigVarint, // The approval's block
});
export type TransferApprovalRecord = ValueOf<typeof transferApprovalRecord>;
export const NO_APPROVAL = emptyOf(transferApprovalRecord);

/** A making, in the order of slots. */
export const making = {
  batchRoot: hash,
  l1Sequence: bigVarint,
  txHash: hash,
  blockNumber: bigVarint,
  /** The ERC-721 id that the making has brought back; null for none. */
  entered: nullable(bigVarint),
  vaults: listOf(
    layout({ owner: address, assetType: hash, amount: bigVarint, mintingBlob: hexBytes }),
  ),
} as const;
export const makingRecord = layout(making);
export type MakingRecord = ValueOf<typeof makingRecord>;

/** Who may list orders of an application. */
export const LISTINGS = ["nobody", "application", "owners"] as const;

const partTo = layout({ basisPoints: varint, to: address });

/** The rules of an application's orders. */
export const orderTerms = {
  listing: oneOf(LISTINGS),
  fee: nullable(partTo), // A part of what the signer of an order receives
  assets: listOf(
    layout({
      assetIndex: varint,
      royalty: nullable(partTo), // A part of what a seller of the asset receives
      minimum: nullable(bigVarint), // Least units of the asset in an order
    }),
  ),
} as const;
export const orderTermsRecord = layout({ ...orderTerms, updatedAt: time });
export type OrderTermsRecord = ValueOf<typeof orderTermsRecord>;

/** Units of an asset; the id is null for ERC-20. */
const orderItem = layout({
  assetIndex: varint,
  tokenId: nullable(bigVarint),
  amount: bigVarint,
});
export type OrderItemRecord = ValueOf<typeof orderItem>;

/** An order as its maker signed it, in units. */
export const orderFacts = {
  ...each(varint, "applicationIndex", "userIndex"),
  maker: address,
  digest: hash,
  signature: hexBytes,
  give: orderItem,
  want: orderItem,
  shares: listOf(layout({ to: address, amount: bigVarint })),
  taker: nullable(address), // The only owner who can take it; null for anybody
  vaultId: u64,
  withdrawnBefore: bigVarint,
  deadline: bigVarint,
} as const;

/** `open` until an entry says otherwise. An open order counts only while its vault is as signed. */
export const ORDER_STATUSES = [
  "open",
  "cancelled",
  "stale",
  "expired",
  "filled",
  "settled",
] as const;

export const orderRecord = layout({
  orderId: uuid,
  journalSequence: varint, // The entry with the order
  ...orderFacts,
  status: oneOf(ORDER_STATUSES),
  counterId: nullable(uuid), // The other order of a fill
  l1TxHash: nullable(hash), // The transaction that was sent for the fill last
  failure: nullable(text),
  createdAt: time,
  updatedAt: time,
});
export type OrderRecord = ValueOf<typeof orderRecord>;

export const orderIdRecord = uuid;

export const l1EventRecord = layout({
  vaultId: nullable(u64), // The vault that it withdrew or voided; null for another event
  withdrawalIds: listOf(uuid), // The withdrawals that the event decided
  imported: nullable(layout(batchPlace)), // The batch that it brought to a mirror
  /** The list that it cancelled, or the vault whose entries it cancelled in all lists. */
  cancelled: nullable(layout({ signer: address, id: hash })),
  /** The session that it authorized or revoked. */
  session: nullable(layout({ owner: address, key: address, isRevoked: flag })),
  /** The list that it approved or cancelled. */
  approval: nullable(layout({ owner: address, digest: hash, isCancelled: flag })),
});
export type L1EventRecord = ValueOf<typeof l1EventRecord>;
export const NO_EVENT = emptyOf(l1EventRecord);
