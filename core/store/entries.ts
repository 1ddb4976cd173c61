import { ENVIRONMENTS, MODES, ROLES, SCOPES } from "../model.ts";
import {
  address,
  bigVarint,
  type ContentOf,
  flag,
  hash,
  hexBytes,
  type KindFields,
  Kinds,
  kind,
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
import * as records from "./records.ts";

/** The block's hash at the time of reading. */
const observed = { chainId: bigVarint, blockNumber: bigVarint, blockHash: nullable(hash) } as const;
const logPlace = { blockNumber: bigVarint, logIndex: varint } as const;
/** Applies to mints without a mode; null: they need one. */
const defaultMode = { dataAvailabilityMode: nullable(oneOf(MODES)) } as const;

/**
 * The kinds of entry, in byte order, without `mint`. Indices count applications, keys, assets,
 * users from 0 on.
 */
const KINDS = {
  /** Always sequence 0: identifies the journal. */
  genesis: kind(0, {
    formatVersion: varint,
    environment: oneOf(ENVIRONMENTS),
    chainId: bigVarint,
    contract: address,
    engineVersion: varint,
  }),
  applicationCreated: kind(1, {
    applicationIndex: varint,
    applicationId: uuid,
    name: text,
    ...defaultMode,
  }),
  applicationSuspended: kind(2, { applicationIndex: varint, suspended: flag }),
  keyIssued: kind(3, {
    keyIndex: varint,
    keyId: text,
    applicationIndex: varint,
    secretHash: hash, // SHA-256 of the secret
    scopes: listOf(oneOf(SCOPES)),
    expiresAt: nullable(time),
    mintQuota: nullable(bigVarint),
    name: nullable(text),
    ofPerson: flag, // Whether it is a person's or the engine's own, which no program can use
  }),
  keyRevoked: kind(4, { keyIndex: varint }),
  assetAdded: kind(5, {
    ...records.assetPlace,
    ...records.assetForm,
    rawMintingBlobs: flag,
    ...defaultMode,
    // The first id that the engine gives; null: mints name their ids
    nextTokenId: nullable(bigVarint),
  }),
  assetWhitelisted: kind(6, { assetIndex: varint, whitelisted: flag }),
  assetRegistered: kind(7, {
    assetIndex: varint,
    minterLocked: nullable(flag),
    transferable: nullable(flag), // Whether L1's registry has it as transferable; null: not asked
  }),
  assetEnabled: kind(8, { applicationIndex: varint, assetIndex: varint, enabled: flag }),
  userCreated: kind(9, {
    applicationIndex: varint,
    userIndex: varint,
    userId: uuid,
    ownerAddress: address,
    reference: nullable(text),
  }),
  // 10 is `mint`, core/store/mint-entry.ts.
  batchSealed: kind(11, {
    ...records.batchPlace,
    vaultCount: varint,
    mintCount: varint,
    inBlobs: flag,
    ...records.roots,
  }),
  batchSubmitted: kind(12, { ...records.batchPlace, txHash: hash }),
  batchCommitted: kind(13, {
    ...records.batchPlace,
    txHash: hash,
    blockNumber: bigVarint,
    ...records.accepted,
  }),
  /**
   * An event of a vault on its token's chain. `total` sums all withdrawals, with units that a void
   * exhausted.
   */
  vaultWithdrawn: kind(14, {
    chainId: bigVarint,
    vaultId: u64,
    ...logPlace,
    txHash: hash,
    quantity: bigVarint,
    total: bigVarint,
    recipient: nullable(address),
  }),
  /** `id` is a list's digest, or a vault's id. */
  authorizationCancelled: kind(15, {
    chainId: bigVarint,
    signer: address,
    id: hash,
    ...logPlace,
  }),
  l1Observed: kind(16, observed), // Events of a chain up to this block are applied
  l1Finalized: kind(17, observed),
  /** Blocks of a chain from this one on were replaced. */
  l1Reorganised: kind(18, { chainId: bigVarint, blockNumber: bigVarint }),
  withdrawalRequested: kind(19, {
    withdrawalId: uuid,
    applicationIndex: varint,
    userIndex: varint,
    sequence: varint, // The application's sequence of transactions
    ...records.withdrawalFacts,
  }),
  withdrawalSubmitted: kind(20, { withdrawalId: uuid, txHash: hash }),
  withdrawalAttempted: kind(21, { withdrawalId: uuid, failure: text }),
  withdrawalFailed: kind(22, { withdrawalId: uuid, failure: text }),
  /** The reason why L1 would refuse mints of the asset; null when it would not. */
  assetFault: kind(24, { assetIndex: varint, fault: nullable(text) }),
  /** Slots of a sealed batch that L1 refuses become void; the roots are the batch's new ones. */
  slotsVoided: kind(23, {
    ...records.batchPlace,
    voids: listOf(records.voidRun),
    ...records.roots,
  }),
  /** A request that was done under an idempotency key: SHA-256 of both. Mints have their own. */
  requestKept: kind(110, { applicationIndex: varint, key: hash, digest: hash }),
  /** The idempotency keys of entries before this journal sequence are deleted. */
  idempotencyForgotten: kind(25, { upTo: varint }),
  /** The contract that pays withdrawals on a chain other than the settlement contract's. */
  mirrorAdded: kind(26, { chainId: bigVarint, contract: address }),
  batchImported: kind(27, {
    chainId: bigVarint,
    ...records.batchPlace,
    ...logPlace,
    ...records.accepted,
  }),
  historyDiverged: kind(28, { detail: text }), // L1's history differs from this store's
  /** L1's batches replace this store's, from one batch on in each mode. */
  historyAdopted: kind(29, {
    firsts: listOf(layout(records.batchPlace)),
    failure: text,
    batches: listOf(
      layout({
        ...records.batchPlace,
        inBlobs: flag,
        // The vaults, as in core/store/vault-columns.ts; those of void slots are placeholders
        chunks: listOf(hexBytes),
        voids: listOf(records.voidRun),
        /** Data and manifest, if this engine would make others of these vaults. */
        given: nullable(
          layout({
            data: hexBytes,
            assets: listOf(layout({ chainId: bigVarint, assetType: hash })),
          }),
        ),
        ...records.roots,
      }),
    ),
    lost: listOf(
      layout({
        ...records.batchPlace,
        runs: listOf(records.lostRun),
        withdrawn: listOf(layout({ slot: varint, assetIndex: varint, mintingBlob: hexBytes })),
      }),
    ),
    /** The batches of transfers, by their place in `batches`; null for none. */
    transfers: nullable(listOf(layout({ place: varint, lists: listOf(records.adoptedList) }))),
  }),
  webhookCreated: kind(30, {
    webhookIndex: varint,
    webhookId: uuid,
    applicationIndex: varint,
    url: text,
    types: listOf(text), // Types of event; all if empty
    delivered: varint, // Events up to this one are not delivered
  }),
  webhookDeleted: kind(31, { webhookIndex: varint }),
  webhookSecretRotated: kind(32, { webhookIndex: varint }),
  webhookEnabled: kind(33, { webhookIndex: varint }),
  webhookDelivered: kind(34, { webhookIndex: varint, sequence: varint }),
  webhookChanged: kind(108, { webhookIndex: varint, types: listOf(text) }),
  webhookEventSkipped: kind(109, { webhookIndex: varint, sequence: varint }),
  webhookFailing: kind(35, { webhookIndex: varint, failure: text }),
  webhookDisabled: kind(36, { webhookIndex: varint, failure: text }),
  /** L1 leaves out exactly these assets of a sealed batch; the roots are the batch's new ones. */
  assetsLeftOut: kind(38, {
    ...records.batchPlace,
    assets: listOf(records.leftOutAsset),
    ...records.roots,
  }),
  /** The final history leaves these slots out: they become void, and their leaves stay. */
  slotsLeftOut: kind(39, { ...records.batchPlace, voids: listOf(records.voidRun) }),
  /** The application's id of the rotation, so a repetition changes nothing. */
  webhookSecretRotatedOnce: kind(37, { webhookIndex: varint, rotationId: uuid }),
  applicationChanged: kind(40, {
    applicationIndex: varint,
    dataAvailabilityMode: nullable(oneOf(MODES)),
  }),
  /** Fields that can change even after the first mint. */
  assetChanged: kind(41, {
    assetIndex: varint,
    rawMintingBlobs: flag,
    dataAvailabilityMode: nullable(oneOf(MODES)),
  }),
  /**
   * The asset had no mints. If the next entry adds an asset under its id, that is the same asset,
   * changed.
   */
  assetRemoved: kind(42, { assetIndex: varint }),
  /** A signed list of vaults. Its withdrawals follow and name its digest. */
  withdrawalListSigned: kind(43, {
    digest: hash,
    signature: hexBytes,
    vaults: listOf(records.listedVault),
  }),
  /** Tokens changed their answer to the mints of committed vaults. */
  vaultsRefused: kind(44, {
    ...records.batchPlace,
    refusals: listOf(layout({ slot: varint, refusal: nullable(text) })),
  }),
  metadataSet: kind(60, {
    assetId: uuid,
    tokens: listOf(layout({ tokenId: bigVarint, metadata: text })),
  }),
  // Metadata of these tokens never changes again
  metadataFrozen: kind(61, { assetId: uuid, tokenIds: listOf(bigVarint) }),
  // Metadata of a whole asset, see collectionRecord
  collectionChanged: kind(62, records.collection),
  /** Links whose holders can each claim a mint, given as JSON of a request's entry. */
  claimsCreated: kind(63, {
    applicationIndex: varint,
    keyIndex: varint,
    claims: listOf(layout({ link: address, mint: text, expiresAt: nullable(time) })),
  }),
  claimCancelled: kind(64, { link: address }),
  /**
   * The mint of a link, for the owner that its holder has signed. `mintSequence` is the mint's
   * journal sequence.
   */
  claimTaken: kind(65, {
    link: address,
    ownerAddress: address,
    signature: hexBytes,
    mintId: uuid,
    mintSequence: varint,
  }),
  /** Transfers with one signature. Each takes one transaction, and a split takes two. */
  transfersRequested: kind(70, {
    transferId: uuid,
    applicationIndex: varint,
    firstSequence: varint,
    ...records.signedList,
    transfers: listOf(records.signedTransfer),
  }),
  /**
   * These lists are the content of the next rollup batch, in this order. Their outputs are its
   * vaults.
   */
  transfersBatched: kind(71, { batchNumber: varint, transferIds: listOf(uuid) }),
  /**
   * L1 does not take the batch. Its slots become void, its lists wait again; the roots are the
   * batch's new ones.
   */
  transfersTakenBack: kind(72, { batchNumber: varint, failure: text, ...records.roots }),
  transfersFailed: kind(73, { transferId: uuid, failure: text }),
  /** L1 lets a key transfer for an owner. Times are seconds, of the contract. */
  transferSessionAuthorized: kind(74, {
    owner: address,
    key: address,
    until: u64,
    limit: u64,
    assetType: hash,
    authorizedAt: u64,
    ...logPlace,
  }),
  transferSessionRevoked: kind(75, { owner: address, key: address, revokedAt: u64, ...logPlace }),
  /** An owner has approved a list's digest on L1. */
  transfersApproved: kind(76, { owner: address, digest: hash, approvedAt: u64, ...logPlace }),
  /** A signer has cancelled a list's digest on L1. */
  transfersCancelled: kind(77, { owner: address, digest: hash, cancelledAt: u64, ...logPlace }),
  /** L1 has made these vaults by itself, and the block is final. */
  vaultsMade: kind(78, { making: varint, ...records.making, logIndex: varint }),
  /** A made vault becomes a user's. `sequence` is the application's of transactions. */
  deposited: kind(79, {
    making: varint,
    slot: varint,
    applicationIndex: varint,
    userIndex: varint,
    sequence: varint,
    assetIndex: varint,
  }),
  orderTermsSet: kind(90, { applicationIndex: varint, ...records.orderTerms }),
  orderPlaced: kind(91, { orderId: uuid, ...records.orderFacts }),
  orderEnded: kind(92, {
    orderId: uuid,
    status: oneOf(records.ORDER_STATUSES),
    failure: nullable(text),
  }),
  /** Two open orders become a fill, which the operator brings to L1. */
  orderFilled: kind(93, { orderId: uuid, counterId: uuid }),
  // Fills are named by the order that took the other one.
  fillSubmitted: kind(94, { orderId: uuid, txHash: hash }),
  fillRefused: kind(95, { orderId: uuid, failure: text }),
  fillSettled: kind(96, { orderId: uuid }),
  /** The order that was taken is open again. */
  fillFailed: kind(97, { orderId: uuid, failure: text }),
  personInvited: kind(100, records.personFacts),
  personChanged: kind(101, { personIndex: varint, role: oneOf(ROLES), keyIndex: nullable(varint) }),
  personRemoved: kind(102, { personIndex: varint }),
  /** A link that signs the person in once, by SHA-256 of its secret. It replaces an earlier one. */
  personLinked: kind(103, { personIndex: varint, linkHash: hash, expiresAt: time }),
  personAddressed: kind(104, { personIndex: varint, address }),
  personSignedIn: kind(105, {
    personIndex: varint,
    tokenHash: hash,
    byLink: flag,
    expiresAt: time,
  }),
  personSignedOut: kind(106, { personIndex: varint, tokenHash: hash }),
  /**
   * A person, or for null the operator's command line, made the `count` entries before this one.
   */
  acted: kind(107, {
    personIndex: nullable(varint),
    applicationIndex: nullable(varint),
    count: varint,
  }),
} as const satisfies KindFields;

export const MINT_KIND = 10;

type EntryKinds = typeof KINDS;
export type EntryKind = keyof EntryKinds;
export type EntryOf<K extends EntryKind> = { readonly kind: K } & ContentOf<EntryKinds, K>;
/** Any entry but a mint. */
export type Entry = { [K in EntryKind]: EntryOf<K> }[EntryKind];

export const ENTRY_KINDS = new Kinds(KINDS); // The layouts of entries, without `mint`
