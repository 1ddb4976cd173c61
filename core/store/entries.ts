import { BLOB_SCHEMES, ENVIRONMENTS, MODES, SCOPES, STANDARDS } from "../model.ts";
import { type ContentOf, type KindFields, Kinds } from "./kinds.ts";
import {
  address,
  bigVarint,
  flag,
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
  varint,
} from "./layout.ts";
import { accepted, batchPlace, leftOutAsset, lostRun, roots, voidRun } from "./records.ts";

/** Of mints that name none; null: they must. */
/** What the block was when it was read. */
const blockHash = { blockHash: later(nullable(hash), null) } as const;
const defaultMode = { dataAvailabilityMode: later(nullable(oneOf(MODES)), null) } as const;

/**
 * The kinds of journal entry but `mint`, which has its own module, by their number. The fields lie in this order, as core/store/layout.ts
 * writes each. Numbers and fields are never changed, only added to: the journal is the store's truth for ever. Fields that a kind got later
 * come third; entries that were written before them lack them.
 *
 * Applications, keys, assets and users are named by the order in which they were journaled, counting each kind from 0.
 */
const KINDS = {
  /** Always sequence 0: what this journal is of. */
  genesis: [
    0,
    {
      formatVersion: varint,
      environment: oneOf(ENVIRONMENTS),
      chainId: bigVarint,
      contract: address,
      engineVersion: varint,
    },
  ],
  applicationCreated: [1, { applicationIndex: varint, applicationId: uuid, name: text }, defaultMode],
  applicationSuspended: [2, { applicationIndex: varint, suspended: flag }],
  keyIssued: [
    3,
    {
      keyIndex: varint,
      keyId: text,
      applicationIndex: varint,
      /** SHA-256 of the secret. */
      secretHash: hash,
      scopes: listOf(oneOf(SCOPES)),
      expiresAt: nullable(time),
      mintQuota: nullable(bigVarint),
    },
  ],
  keyRevoked: [4, { keyIndex: varint }],
  assetAdded: [
    5,
    {
      assetIndex: varint,
      assetId: uuid,
      standard: oneOf(STANDARDS),
      chainId: bigVarint,
      contractAddress: address,
      quantum: bigVarint,
      name: text,
      symbol: text,
      decimals: varint,
      blobScheme: oneOf(BLOB_SCHEMES),
      supplyCap: nullable(bigVarint),
      /** Which alone can enable it; null: any can. */
      applicationIndex: nullable(varint),
    },
    /** Whether its blobs may be any bytes. */
    {
      rawBlobs: later(flag, false),
      ...defaultMode,
      /** The first id that the engine gives; null: mints name their ids. */
      nextTokenId: later(nullable(bigVarint), null),
    },
  ],
  assetWhitelisted: [6, { assetIndex: varint, whitelisted: flag }],
  assetRegistered: [7, { assetIndex: varint, minterLocked: nullable(flag) }],
  assetEnabled: [8, { applicationIndex: varint, assetIndex: varint, enabled: flag }],
  userCreated: [
    9,
    { applicationIndex: varint, userIndex: varint, userId: uuid, ownerAddress: address },
    { reference: later(nullable(text), null) },
  ],
  // 10 is `mint`, core/store/mint-entry.ts.
  batchSealed: [11, { ...batchPlace, vaultCount: varint, mintCount: varint, ...roots }],
  batchSubmitted: [12, { ...batchPlace, txHash: hash }],
  batchCommitted: [13, { ...batchPlace, txHash: hash, blockNumber: bigVarint, ...accepted }],
  /** Something happened to a vault on its token's chain. `total` is what has been withdrawn of it, exhausted by a void included. */
  vaultWithdrawn: [
    14,
    {
      chainId: bigVarint,
      vaultId: u64,
      blockNumber: bigVarint,
      logIndex: varint,
      txHash: hash,
      quantity: bigVarint,
      total: bigVarint,
      recipient: nullable(address),
    },
  ],
  authorizationCancelled: [
    15,
    { chainId: bigVarint, signer: address, digest: hash, blockNumber: bigVarint, logIndex: varint },
  ],
  /** Events of a chain up to this block are applied. */
  l1Observed: [16, { chainId: bigVarint, blockNumber: bigVarint }, blockHash],
  l1Finalized: [17, { chainId: bigVarint, blockNumber: bigVarint }, blockHash],
  /** Blocks of a chain from this one on are gone. */
  l1Reorganised: [18, { chainId: bigVarint, blockNumber: bigVarint }],
  withdrawalRequested: [
    19,
    {
      withdrawalId: uuid,
      applicationIndex: varint,
      userIndex: varint,
      /** The application's sequence of transactions. */
      sequence: varint,
      /** Of the vault's token. */
      chainId: bigVarint,
      vaultId: u64,
      quantity: bigVarint,
      recipient: address,
      withdrawnBefore: bigVarint,
      deadline: bigVarint,
      digest: hash,
      signature: hexBytes,
    },
  ],
  withdrawalSubmitted: [20, { withdrawalId: uuid, txHash: hash }],
  withdrawalAttempted: [21, { withdrawalId: uuid, failure: text }],
  withdrawalFailed: [22, { withdrawalId: uuid, failure: text }],
  /** Why L1 would refuse to mint of the asset; null when it would not, or no longer. */
  assetFault: [24, { assetIndex: varint, fault: nullable(text) }],
  /** Slots of a sealed batch that L1 refuses are void from here on; the roots are those that the batch then has. */
  slotsVoided: [23, { ...batchPlace, voids: listOf(voidRun), ...roots }],
  /** The idempotency keys of mints before this journal sequence are forgotten. */
  idempotencyForgotten: [25, { upTo: varint }],
  /** The contract that pays withdrawals on another chain than the settlement contract's. */
  mirrorAdded: [26, { chainId: bigVarint, contract: address }],
  /** A mirror knows a batch of the state from here on. */
  batchImported: [27, { chainId: bigVarint, ...batchPlace, blockNumber: bigVarint, logIndex: varint, ...accepted }],
  /** L1 holds another history than this store. */
  historyDiverged: [28, { detail: text }],
  /** L1's batches took the place of this store's, of each mode from one on. */
  historyAdopted: [
    29,
    {
      firsts: listOf(layout(batchPlace)),
      failure: text,
      batches: listOf(
        layout({
          ...batchPlace,
          /** The vaults as core/store/vault-chunk.ts writes them; those of void slots stand for nothing. */
          chunks: listOf(hexBytes),
          voids: listOf(voidRun),
          ...roots,
        }),
      ),
      lost: listOf(
        layout({
          ...batchPlace,
          runs: listOf(lostRun),
          withdrawn: listOf(layout({ slot: varint, assetIndex: varint, blob: hexBytes })),
        }),
      ),
    },
  ],
  webhookCreated: [
    30,
    {
      webhookIndex: varint,
      webhookId: uuid,
      applicationIndex: varint,
      url: text,
      /** Types of event; none for all. */
      types: listOf(text),
      /** Events up to this one are not delivered. */
      delivered: varint,
    },
  ],
  webhookDeleted: [31, { webhookIndex: varint }],
  webhookSecretRotated: [32, { webhookIndex: varint }],
  webhookEnabled: [33, { webhookIndex: varint }],
  webhookDelivered: [34, { webhookIndex: varint, sequence: varint }],
  webhookFailing: [35, { webhookIndex: varint, failure: text }],
  webhookDisabled: [36, { webhookIndex: varint, failure: text }],
  /** A rotation that the application named, so that its repetition is none. */
  /** L1 leaves these assets of a sealed batch out, none others; the roots are those that the batch then has. */
  assetsLeftOut: [38, { ...batchPlace, assets: listOf(leftOutAsset), ...roots }],
  /** The final history leaves these slots out: they are void from here on, and their leaves stand. */
  slotsLeftOut: [39, { ...batchPlace, voids: listOf(voidRun) }],
  webhookSecretRotatedOnce: [37, { webhookIndex: varint, rotationId: uuid }],
  applicationChanged: [40, { applicationIndex: varint, dataAvailabilityMode: nullable(oneOf(MODES)) }],
  /** What may change of an asset that was minted, too. */
  assetChanged: [41, { assetIndex: varint, rawBlobs: flag, dataAvailabilityMode: nullable(oneOf(MODES)) }],
  /** Nothing had been minted of it. One that is added under its id by the next entry is the same asset, changed. */
  assetRemoved: [42, { assetIndex: varint }],
} as const satisfies KindFields;

/** The number of the `mint` kind. */
export const MINT_KIND = 10;

type EntryKinds = typeof KINDS;
export type EntryKind = keyof EntryKinds;
/** The content of an entry, by its kind. */
export type EntryOf<K extends EntryKind> = { readonly kind: K } & ContentOf<EntryKinds, K>;
/** Any entry but a mint. */
export type Entry = { [K in EntryKind]: EntryOf<K> }[EntryKind];

/** How entries lie in the journal; `mint` is none of these. */
export const ENTRY_KINDS = new Kinds(KINDS);
