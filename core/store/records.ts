import { BLOB_SCHEMES, MODES, type Mode, SCOPES, STANDARDS } from "../model.ts";
import {
  address,
  bigVarint,
  type Field,
  flag,
  grownLayout,
  hash,
  hexBytes,
  later,
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
 * The records that the engine derives from its journal, in the order of their bytes (core/store/layout.ts); under the keys of
 * core/store/store-keys.ts. Everything here can be made again from the journal.
 */

/** Fields that several records and journal entries have in this order. */
export const batchPlace = { mode: oneOf(MODES), batchNumber: varint } as const;
export const roots = { batchRoot: hash, dataHash: hash, stateRoot: hash } as const;
/** When the contract accepted a batch, and in which place. */
export const accepted = { committedAt: bigVarint, l1Sequence: bigVarint } as const;

export const applicationRecord = grownLayout(
  {
    applicationIndex: varint,
    applicationId: uuid,
    name: text,
    suspended: flag,
    createdAt: time,
    /** Sequence number of the application's next transaction. */
    nextSequence: varint,
    /** Events that the application has been told; the newest has this sequence number. */
    eventCount: varint,
  },
  /** Of its mints that name none, of assets that have none of their own. */
  { dataAvailabilityMode: later(nullable(oneOf(MODES)), null) },
);
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
});
export type KeyRecord = ValueOf<typeof keyRecord>;

export const assetRecord = grownLayout(
  {
    assetIndex: varint,
    assetId: uuid,
    standard: oneOf(STANDARDS),
    chainId: bigVarint,
    contractAddress: address,
    quantum: bigVarint,
    assetType: hash,
    name: text,
    symbol: text,
    decimals: varint,
    blobScheme: oneOf(BLOB_SCHEMES),
    supplyCap: nullable(bigVarint),
    /** Which alone can enable it; null: any can. */
    applicationIndex: nullable(varint),
    minted: bigVarint,
    whitelisted: flag,
    registered: flag,
    minterLocked: nullable(flag),
    /** Why L1 would refuse to mint of it. */
    fault: nullable(text),
    createdAt: time,
  },
  /** Whether its blobs may be any bytes. */
  {
    rawBlobs: later(flag, false),
    /** Of mints that name none. */
    dataAvailabilityMode: later(nullable(oneOf(MODES)), null),
    /** The id that the engine gives next; null where mints name their ids. */
    nextTokenId: later(nullable(bigVarint), null),
    /** Nobody finds it any more; the id belongs to a later record if the asset was changed. */
    removed: later(flag, false),
  },
);
export type AssetRecord = ValueOf<typeof assetRecord>;

export const userRecord = grownLayout(
  { userId: uuid, ownerAddress: address, createdAt: time },
  /** The application's own name for the user. */
  { reference: later(nullable(text), null) },
);
export type UserRecord = ValueOf<typeof userRecord>;

/** userId → index and owner: what a mint needs of a user. */
export const userIdRecord = layout({ userIndex: varint, ownerAddress: address });
export type UserIdRecord = ValueOf<typeof userIdRecord>;

/** owner → a user of it: what a mint to an address needs of a user. */
export const ownerRecord = layout({ userIndex: varint, userId: uuid });

export const webhookRecord = layout({
  webhookIndex: varint,
  webhookId: uuid,
  applicationIndex: varint,
  url: text,
  types: listOf(text),
  status: oneOf(["active", "disabled", "deleted"]),
  /** How often the secret was rotated: what tells it from the ones before. */
  rotations: varint,
  rotatedAt: nullable(time),
  /** Sequence of the last event that need not be delivered again. */
  delivered: varint,
  failingSince: nullable(time),
  failure: nullable(text),
  createdAt: time,
});
export type WebhookRecord = ValueOf<typeof webhookRecord>;

/** Under a rotation's id: which of the webhook's secrets it made. */
export const rotationRecord = layout({ webhookIndex: varint, rotations: varint });

/** An asset that L1 leaves out, by its place in the batch's manifest, and why: its vaults in the batch pay nobody. */
export const leftOutAsset = layout({ asset: varint, failure: text });
export type LeftOutAsset = ValueOf<typeof leftOutAsset>;

export const batchRecord = grownLayout(
  {
    ...batchPlace,
    status: oneOf(["open", "sealed", "submitted", "settled", "finalized"]),
    vaultCount: varint,
    mintCount: varint,
    batchRoot: nullable(hash),
    dataHash: nullable(hash),
    stateRoot: nullable(hash),
    l1TxHash: nullable(hash),
    l1BlockNumber: nullable(bigVarint),
    committedAt: nullable(bigVarint),
    l1Sequence: nullable(bigVarint),
    openedAt: time,
    sealedAt: nullable(time),
    submittedAt: nullable(time),
    settledAt: nullable(time),
    finalizedAt: nullable(time),
  },
  {
    /** Root of the vault tree. */
    content: later(nullable(hash), null),
    /** The batch's manifest; null while the batch is open. */
    assets: later(nullable(listOf(layout({ chainId: bigVarint, assetType: hash }))), null),
    /** The assets that L1 leaves out, or will once it takes the batch; null for none. */
    leftOut: later(nullable(listOf(leftOutAsset)), null),
  },
);
export type BatchRecord = ValueOf<typeof batchRecord>;

/** The applications that have vaults in a sealed batch, in ascending order. */
export const batchApplicationsRecord = listOf(varint);

/** Consecutive void slots of a sealed batch, and why L1 refuses them. */
export const voidRun = layout({ firstSlot: varint, count: varint, failure: text });
export type VoidRun = ValueOf<typeof voidRun>;

const storedRun = layout({ firstSlot: varint, count: varint, failure: text, voidedAt: time });

/** A run that is void, since when. */
export interface VoidedRun extends VoidRun {
  readonly voidedAt: number;
  /** Whether the leaves stand in the tree all the same: L1 took the batch, and left the asset out of its manifest. */
  readonly leftOut: boolean;
}

const runsRecord = grownLayout(
  { ...batchPlace, runs: listOf(storedRun) },
  /** Places in the list of the runs that are left out. */
  { leftOut: later(nullable(listOf(varint)), null) },
);

export interface VoidsRecord {
  readonly mode: Mode;
  readonly batchNumber: number;
  readonly runs: readonly VoidedRun[];
}

/** All void slots of a sealed batch, ascending. */
export const voidsRecord: Field<VoidsRecord> = {
  write(to, { mode, batchNumber, runs }) {
    const leftOut = [...runs.keys()].filter((i) => runs[i]?.leftOut);
    runsRecord.write(to, { mode, batchNumber, runs, leftOut: leftOut.length === 0 ? null : leftOut });
  },
  read(from) {
    const { runs, leftOut, ...place } = runsRecord.read(from);
    return { ...place, runs: runs.map((run, i) => ({ ...run, leftOut: leftOut?.includes(i) ?? false })) };
  },
};

/** How L1's history differs from the store's, and since when. */
export const divergenceRecord = layout({ detail: text, since: time });
export type DivergenceRecord = ValueOf<typeof divergenceRecord>;

/** Consecutive slots of a batch that L1's replaced, of whose mints those are lost that made a vault hold more than `above`. */
export const lostRun = layout({ firstSlot: varint, count: varint, above: bigVarint });
export type LostRun = ValueOf<typeof lostRun>;

/** The mints of a batch that L1's history lacks: those that were journaled before `upTo`, the entry that adopted L1's. */
export const lostRecord = layout({
  ...batchPlace,
  upTo: varint,
  failure: text,
  since: time,
  runs: listOf(lostRun),
  /** What the lost vaults held of which a withdrawal was requested. */
  withdrawn: listOf(layout({ slot: varint, assetIndex: varint, blob: hexBytes })),
});
export type LostRecord = ValueOf<typeof lostRecord>;

/** Raised with each index that stores of before lack: opening such a store makes it, core/opening/upgrade.ts. */
export const INDEX_VERSION = 2;

export const headRecord = grownLayout(
  {
    /** Entries in the journal. */
    journalLength: varint,
    /** Time of the newest one. */
    time: time,
    userCount: varint,
    /** Journal sequence before which the mints' idempotency keys are forgotten. */
    keysForgotten: varint,
  },
  /** Which indexes the store has: {@link INDEX_VERSION}, or an earlier one until it is opened. */
  { indexVersion: later(varint, 0) },
);
export type HeadRecord = ValueOf<typeof headRecord>;

/** A contract that pays withdrawals, and how far the events of its chain are applied. The settlement contract's is the first. */
export const portalRecord = layout({
  chainId: bigVarint,
  contract: address,
  /** Last block whose events are applied. */
  observed: nullable(bigVarint),
  /** Last block that is known to be final. */
  finalized: nullable(bigVarint),
});
export type PortalRecord = ValueOf<typeof portalRecord>;

/** A block's hash when its events were applied. */
export const checkpointRecord = hash;

/** What a mirror's header of a batch has of its own. */
export const importRecord = layout(accepted);

/** What happened to one sealed vault since: the vault's own record never changes. */
export const activityRecord = layout({
  withdrawn: bigVarint,
  /** Sum over `pending`. */
  reserved: bigVarint,
  pending: listOf(uuid),
  updatedAt: time,
});
export type ActivityRecord = ValueOf<typeof activityRecord>;

/** The statuses of a withdrawal, by the numbers that stand for them. */
export const WITHDRAWAL_STATUSES = ["accepted", "submitted", "settled", "finalized", "failed"] as const;

export const withdrawalRecord = layout({
  withdrawalId: uuid,
  applicationIndex: varint,
  userIndex: varint,
  sequence: varint,
  /** Of the entry that requested it. */
  journalSequence: varint,
  chainId: bigVarint,
  vaultId: u64,
  quantity: bigVarint,
  recipient: address,
  withdrawnBefore: bigVarint,
  deadline: bigVarint,
  digest: hash,
  signature: hexBytes,
  status: oneOf(WITHDRAWAL_STATUSES),
  l1TxHash: nullable(hash),
  l1BlockNumber: nullable(bigVarint),
  failure: nullable(text),
  createdAt: time,
  submittedAt: nullable(time),
  settledAt: nullable(time),
  finalizedAt: nullable(time),
  failedAt: nullable(time),
  updatedAt: time,
});
export type WithdrawalRecord = ValueOf<typeof withdrawalRecord>;

const DISTANCES = listOf(varint);

/** What had been withdrawn of a vault at an L1 event. */
export const bigRecord = bigVarint;

/** Slots in ascending order: how far each lies behind the one before, the first behind -1. */
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

/** Under an idempotency key: SHA-256 of the request, and the journal sequence of the mint that answers it. */
export const idempotencyRecord = layout({ digest: hash, sequence: varint });

/** An index record that names a withdrawal. */
export const withdrawalIdRecord = uuid;

/** An L1 event that was applied: the vault that it touched, with the withdrawal whose fate it decided, or the batch that it brought to a mirror. */
export const l1EventRecord = layout({
  vaultId: nullable(u64),
  withdrawalId: nullable(uuid),
  imported: nullable(layout(batchPlace)),
});
