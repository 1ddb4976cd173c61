import type { WaitOptions } from "./abort.ts";
import type { Address, Hash, Hex, MintingBlobScheme, Mode, Standard, VaultId } from "./model.ts";

/** Milliseconds since 1970. Tests pass their own. */
export type Clock = () => number;

/** The settlement contract a store belongs to; part of every signed message. */
export interface Settlement {
  readonly chainId: bigint;
  readonly contract: Address;
  /** ERC-721 from 4, ERC-20 and ERC-1155 from 5. */
  readonly engineVersion: number;
}

/**
 * A contract that pays withdrawals: the settlement contract or a mirror. The domain of owners'
 * signatures.
 */
export type PortalIdentity = Pick<Settlement, "chainId" | "contract">;

/** The content of a batch's header hash on L1; every vault proof needs it. */
export interface BatchHeader {
  readonly batchRoot: Hash;
  readonly vaultCount: number;
  readonly committedAt: bigint;
  readonly sequence: bigint;
}

/** A vault's content: the preimage of its leaf. */
export interface VaultContent {
  readonly vaultId: VaultId;
  readonly chainId: bigint;
  readonly owner: Address;
  readonly assetType: Hash;
  readonly amount: bigint;
  readonly mintingBlob: Hex;
}

/** An asset in registries. */
export type AssetId = Pick<VaultContent, "chainId" | "assetType">;

/** A registry entry of an asset. */
export interface L1Registration {
  readonly standard: Standard;
  readonly token: Address;
  readonly quantum: bigint;
  /**
   * The permanent rule for the token's minting blobs. A token of another chain has its rule in that
   * chain's mirror.
   */
  readonly mintingBlobScheme: MintingBlobScheme;
  /**
   * Sequence of the first batch whose vaults of the asset count; on a mirror, of the first step.
   */
  readonly since: bigint;
}

/** A token contract's own data. */
export interface L1Token {
  readonly name: string;
  readonly symbol: string;
  readonly decimals: number;
  /** null when the token does not state it. */
  readonly minterLocked: boolean | null;
}

/**
 * The state of a settlement contract: batches of each mode, their trees, and one hash over both.
 */
export interface L1State {
  readonly countValidium: number;
  readonly countRollup: number;
  readonly rootValidium: Hash;
  readonly rootRollup: Hash;
  readonly commitment: Hash;
  /** One hash over all commits of both modes, in order; docs/protocol.md 3. */
  readonly history: Hash;
}

/** A point of L1's history, which the next commit follows. */
export interface HistoryPoint {
  /** {@link L1State.history} */
  readonly history: Hash;
  /** Number of commits of both modes, which is the sequence number of the next. */
  readonly sequence: bigint;
}

/** A batch as the operator proposes it. Everything else follows from its data. */
export interface ProposedBatch {
  readonly mode: Mode;
  readonly batchNumber: number;
  readonly vaultCount: number;
  /** The root with the whole manifest, whatever L1 leaves out of it. */
  readonly batchRoot: Hash;
  readonly dataHash: Hash;
  /** Encoded batch data, docs/protocol.md 4. */
  readonly data: Uint8Array;
}

/** A batch ready for L1. */
export interface SealedBatch extends ProposedBatch {
  /** The batch's manifest: the assets of its vaults, ascending. */
  readonly assets: readonly AssetId[];
  /** Root of the vault tree, or the content of a batch in blobs. */
  readonly content: Hash;
}

/** A sealed batch of a store. */
export interface StoredBatch extends SealedBatch {
  /** The batch root that L1 has, or is expected to take: without the assets that it leaves out. */
  readonly rootOnL1: Hash;
}

/** Proves that a manifest names an asset. */
export interface AssetPath {
  /** Position in the manifest, 0 to 254. */
  readonly index: number;
  /** The path from the leaf upwards, at most eight hashes. */
  readonly siblings: readonly Hash[];
}

/**
 * A committed record of a transfer with its proof: the step from the vault that it spends to one
 * that it makes.
 */
export interface ProvenHop {
  /** The vault that it makes. Its slot is the record's place in the batch. */
  readonly outId: VaultId;
  /** 0 for the receiver's vault, 1 for the change of a split. */
  readonly part: 0 | 1;
  /** Units of the receiver; 0 for the whole rest. */
  readonly amount: bigint;
  /** The receiver; the zero address redeems. */
  readonly to: Address;
  /** Seconds since 1970, as signed. */
  readonly deadline: bigint;
  /** EIP-712's hash of all transfers under the signature. */
  readonly list: Hash;
  /** 64 bytes; `0x` when the owner has approved the list on L1. */
  readonly signature: Hex;
  /** The transfer batch's header. Until L1 has committed it, time and sequence are 0. */
  readonly header: BatchHeader;
  /** The path in the batch's tree, from the leaf upwards. */
  readonly siblings: readonly Hash[];
}

/** Proves that a batch holds a vault, and that its manifest names the vault's asset. */
export interface VaultProof {
  readonly vault: VaultContent;
  /** Slots of the batch. Determines the number of siblings. */
  readonly vaultCount: number;
  /**
   * ceil(log2 vaultCount), from the leaf upwards. For a vault in blobs, the words that open its
   * elements.
   */
  readonly siblings: readonly Hash[];
  /** The path of the vault's asset in the batch's manifest. */
  readonly assetPath: AssetPath;
}

/**
 * A vault with the proof that L1 needs. After transfers it is the minted vault, with the records
 * since.
 */
export interface ProvenVault extends Omit<VaultProof, "vaultCount"> {
  readonly header: BatchHeader;
  /**
   * The transfers since the mint, at most 8; default none. The last one makes the vault that is
   * paid, the tip.
   */
  readonly hops?: readonly ProvenHop[];
  /** The record that spends the tip on L1 but does not count; default none. */
  readonly refutation?: ProvenHop;
}

/** The last vault of a chain of transfers, as L1 has it. */
export interface TransferredTip {
  /** The zero address when it is redeemed. */
  readonly owner: Address;
  /** Units that are not withdrawn. */
  readonly left: bigint;
}

/** A withdrawal call of the paying contract. */
export interface WithdrawalCall extends ProvenVault {
  readonly quantity: bigint;
  readonly recipient: Address;
  /** The owner's signed list; null when the owner itself sends. */
  readonly authorization: WithdrawalAuthorization | null;
}

/** One vault of a list that its owner signs once. */
export interface ListedVault {
  readonly vaultId: VaultId;
  /** The units already withdrawn from the vault. Makes the entry single-use. */
  readonly withdrawnBefore: bigint;
  readonly quantity: bigint;
}

/** A list that an owner has signed. */
export interface WithdrawalAuthorization {
  /** Seconds since 1970. */
  readonly deadline: bigint;
  readonly signature: Hex;
  /** The signed list. It names the withdrawal's vault once; its recipient is the withdrawal's. */
  readonly list: readonly ListedVault[];
}

/** A block of a chain. */
export interface L1Block {
  readonly number: bigint;
  readonly hash: Hash;
  /** Seconds since 1970. */
  readonly timestamp: bigint;
  /** The beacon chain's block before this one; missing on chains without a beacon chain. */
  readonly parentBeaconBlockRoot?: Hash;
}

/** The blobs of a commit. They hold the vaults only; the event names the assets. */
export interface CommittedBlobs {
  /** The batch's manifest. */
  readonly assets: readonly AssetId[];
  /** EIP-4844 hashes of the blobs, in order. */
  readonly versionedHashes: readonly Hash[];
}

/** A mined transaction. */
export interface L1Receipt {
  readonly txHash: Hash;
  readonly blockNumber: bigint;
  readonly gasUsed: bigint;
}

/** A vault as the event of its making tells of it. Its token is of the settlement chain. */
export type MadeVault = Pick<VaultContent, "owner" | "assetType" | "amount" | "mintingBlob">;

/** The event of a making. */
export type MadeEvent = L1Event & { readonly type: "made" };

/** The event of a batch that the settlement contract took. */
export type CommitEvent = L1Event & { readonly type: "batchCommitted" };

/** An event of the settlement contract or of a mirror, with its position on the chain. */
export type L1Event = {
  readonly txHash: Hash;
  readonly blockNumber: bigint;
  /** Hash of the block that held it, where the reader knows it. */
  readonly blockHash?: Hash;
  readonly logIndex: number;
} & (
  | ({
      readonly type: "batchCommitted";
      readonly mode: Mode;
      readonly batchNumber: number;
      readonly dataHash: Hash;
      /**
       * Positions in the batch's manifest of the assets left out for lack of a consent, ascending;
       * default none.
       */
      readonly leftOut?: readonly number[];
      /** The blobs of a batch whose data is in blobs; its `dataHash` is its content. */
      readonly blobs?: CommittedBlobs;
      /** True for a batch that holds transfers; its data is in calldata. */
      readonly transfers?: true;
    } & BatchHeader)
  /** A mirror has imported a batch, with its own header. */
  | ({
      readonly type: "batchImported";
      readonly mode: Mode;
      readonly batchNumber: number;
      readonly dataHash: Hash;
    } & BatchHeader)
  | {
      readonly type: "withdrawn";
      readonly vaultId: VaultId;
      readonly recipient: Address;
      readonly quantity: bigint;
      readonly withdrawnTotal: bigint;
    }
  | { readonly type: "authorizationCancelled"; readonly signer: Address; readonly id: Hash }
  | {
      readonly type: "duplicateVoided";
      readonly earlierVaultId: VaultId;
      readonly laterVaultId: VaultId;
    }
  /** L1 has made vaults by itself, docs/protocol.md 11. */
  | {
      readonly type: "made";
      /** 1, 2, 3 … on L1; a reorganisation can give the number to another making. */
      readonly making: bigint;
      readonly batchRoot: Hash;
      /** The number of commits before it. */
      readonly sequence: bigint;
      /** The ERC-721 id that came back from L1; null for none. */
      readonly entered: bigint | null;
      /** In the order of slots. */
      readonly vaults: readonly MadeVault[];
    }
  /** Vaults of the asset can be transferred; told once, at the registration. */
  | ({ readonly type: "assetTransferable" } & AssetId)
  /** A key may transfer for an owner. Times are seconds. */
  | {
      readonly type: "sessionAuthorized";
      readonly owner: Address;
      readonly key: Address;
      readonly until: bigint;
      /** Most units of one transfer. */
      readonly limit: bigint;
      /** The only asset; zero for every asset. */
      readonly assetType: Hash;
      readonly authorizedAt: bigint;
    }
  | {
      readonly type: "sessionRevoked";
      readonly owner: Address;
      readonly key: Address;
      readonly revokedAt: bigint;
    }
  /** An owner has approved the digest of a list of transfers. */
  | {
      readonly type: "transfersApproved";
      readonly owner: Address;
      readonly digest: Hash;
      readonly approvedAt: bigint;
    }
  /** An account has cancelled the digest of a list of transfers. */
  | {
      readonly type: "transfersCancelled";
      readonly owner: Address;
      readonly digest: Hash;
      readonly cancelledAt: bigint;
    }
);

/**
 * Reads the settlement chain. Rejects with `l1_failed` when it is unreachable; "unknown" is never a
 * "no".
 */
export interface L1Reader {
  readonly settlement: Settlement;
  /** Newest block. */
  blockNumber(): Promise<bigint>;
  /** Newest final block. */
  finalizedBlockNumber(): Promise<bigint>;
  /**
   * Whether contracts of this chain can open elements of blobs: it has the precompile 0x0a
   * (EIP-4844).
   */
  opensBlobs(): Promise<boolean>;
  /** The current block of this number, or the newest; null when the chain has none. */
  block(at: bigint | "latest"): Promise<L1Block | null>;
  /** The state as of a block, by default the newest. */
  state(at?: bigint): Promise<L1State>;
  /**
   * The batch data of a rollup commit's transaction; null when the node does not have it yet, or no
   * longer, or when the data is in blobs.
   */
  rollupData(txHash: Hash): Promise<Uint8Array | null>;
  /**
   * The units withdrawn from a vault, after the contract has checked its proof. Rejects with the
   * contract's reason.
   */
  verifyVault(proven: ProvenVault): Promise<bigint>;
  /**
   * The end of a chain of transfers, after the contract has checked it. Rejects with the contract's
   * reason: with `VaultSpent` when a record that counts spends the tip, or one that nothing
   * refutes.
   */
  verifyTransferred(proven: ProvenVault): Promise<TransferredTip>;
  /** Whether the account may commit batches now. */
  isOperator(account: Address): Promise<boolean>;
  /**
   * The asset's registration as of a block, by default the newest. Rejects when the node does not
   * have the block yet.
   */
  registration(chainId: bigint, assetType: Hash, at?: bigint): Promise<L1Registration | null>;
  /** The registrations of many assets, in order. */
  registrations(
    assets: readonly AssetId[],
    at?: bigint,
  ): Promise<readonly (L1Registration | null)[]>;
  /**
   * Whether vaults of an asset can be transferred, as of a block; false where the contract has no
   * transfers.
   */
  isTransferable(asset: AssetId, at?: bigint): Promise<boolean>;
  /** Whether no minted vault of an asset counts, as of a block; false without makings. */
  isMadeOnly(asset: AssetId, at?: bigint): Promise<boolean>;
  /** Reads the token's contract. */
  token(contract: Address, standard: Standard): Promise<L1Token>;
  /** Most base units of an ERC-20 that can ever exist; null when the token states no bound. */
  supplyCap(contract: Address): Promise<bigint | null>;
  /** An account's balance of a token in base units; for an ERC-721, 1 for its owner. */
  holding(
    contract: Address,
    standard: Standard,
    account: Address,
    tokenId: bigint | null,
  ): Promise<bigint>;
  /** Units withdrawn from a vault, by the contract alone. */
  withdrawn(vaultId: VaultId, standard: Standard): Promise<bigint>;
  /** Seconds that an ERC-721 vault waits after its batch's commit. */
  maturity(): Promise<bigint>;
  /** Hash of the committee in force and its epoch, docs/protocol.md 5. */
  committee(): Promise<{ readonly committeeHash: Hash; readonly epoch: bigint }>;
  /**
   * Whether the wallet contract `signer` accepts a signature of a digest (ERC-1271), with bounded
   * gas. Asks no key.
   */
  verifySignature(signer: Address, digest: Hash, signature: Hex): Promise<boolean>;
  /** The contract's events of these blocks, both included, in order. */
  events(fromBlock: bigint, toBlock: bigint): Promise<readonly L1Event[]>;
}

/** Who must consent to a batch's vaults of an asset. */
export interface AssetIssuer {
  /** A key's account, or a wallet contract. */
  readonly issuer: Address;
  /** How often the registry has changed the asset's issuer. */
  readonly epoch: bigint;
  /** Whether no consent of the issuer counts. */
  readonly suspended: boolean;
}

/** Reads issuers on L1. */
export interface IssuerReader {
  /** The assets' issuers as of the newest block, in order; null for an asset without one. */
  issuers(assets: readonly AssetId[]): Promise<readonly (AssetIssuer | null)[]>;
  /**
   * Whether a wallet contract accepts a signature with the gas that it has at a commit; false
   * without a contract.
   */
  walletTakes(wallet: Address, digest: Hash, signature: Hex): Promise<boolean>;
}

/** An asset as its issuer's consent names it. */
export interface ConsentAsset extends AssetId {
  /**
   * How often the registry has changed the asset's issuer: a consent of an earlier one counts for
   * nothing.
   */
  readonly issuerEpoch: bigint;
}

/** One issuer's signature over its assets in a batch. */
export interface Consent {
  readonly issuer: Address;
  /** Ascending, as in the batch's manifest. */
  readonly assets: readonly ConsentAsset[];
  /**
   * `IssuerConsent`, docs/protocol.md 5: 64 or 65 bytes, or whatever the issuer's wallet contract
   * takes.
   */
  readonly signature: Hex;
  /** Whether a wallet contract takes it, which L1 asks at the commit. */
  readonly byWallet: boolean;
}

/** The arguments of a mint call of a token's contract. */
export interface TokenMint {
  /** Base units; 1 for an ERC-721. */
  readonly quantity: bigint;
  readonly mintingBlob: Hex;
}

/**
 * Simulates calls of tokens. Sends nothing; rejects with `l1_failed` when the chain is unreachable.
 */
export interface L1Tokens {
  /**
   * Why the token would refuse this mint by the settlement contract as of a block; null if it would
   * not.
   */
  tryMint(token: Address, mint: TokenMint, at: bigint): Promise<string | null>;
  /** Tries many mints of one token, in order, in few calls. */
  tryMints(
    token: Address,
    mints: readonly TokenMint[],
    at: bigint,
  ): Promise<readonly (string | null)[]>;
  /**
   * Whether the settlement contract holds the token's minter role; null when the token has no such
   * role.
   */
  isMinter(token: Address): Promise<boolean | null>;
  /** Owners of ERC-721 tokens as of a block, in order; null for missing tokens. */
  tokenOwners(
    token: Address,
    tokenIds: readonly bigint[],
    at: bigint,
  ): Promise<readonly (Address | null)[]>;
}

/** How a caller watches a transaction, or cancels its wait. */
export interface L1SendOptions extends WaitOptions {
  /**
   * Called with the transaction's hash once a node has taken it and before it is mined; again for
   * each replacement.
   */
  readonly onSent?: (txHash: Hash) => void | Promise<void>;
}

/** Further options of a commit. */
export interface L1CommitOptions extends L1SendOptions {
  /**
   * Consents of the issuers of the batch's assets; default none. L1 leaves out assets without a
   * valid one.
   */
  readonly consents?: readonly Consent[];
  /**
   * The previous commit may still be in progress. This one is sent after it, and L1 need not be
   * ready for it.
   */
  readonly isBehind?: boolean;
}

/**
 * Writes to the settlement chain with the operator's account: several transactions at once, in the
 * order of the calls. Resolves when mined; rejects with `l1_failed` and the reason.
 */
export interface L1Committer {
  /**
   * Commits a batch in calldata, or in blobs when its data is that of a blob batch.
   *
   * @param history - the {@link L1State.history} before the batch; L1 refuses the batch after any
   *   other
   * @param attestation - the committee's signatures of a validium batch or of transfers; `0x` of
   *   any other
   */
  commit(
    batch: SealedBatch,
    history: Hash,
    attestation: Hex,
    options?: L1CommitOptions,
  ): Promise<L1Receipt>;
  /**
   * Whether this account can commit batches in blobs: the chain has blob fees and 0x0a, and native
   * code runs here.
   */
  takesBlobs(): Promise<boolean>;
  /** Most gas of one transaction on this chain now. */
  transactionGas(): Promise<bigint>;
  /**
   * Waits for unwatched transactions: of the account's earlier process, or cancelled ones. Resolves
   * when they are mined, or so late that they must be replaced. Returns whether there were any.
   */
  earlierMined(signal?: AbortSignal): Promise<boolean>;
  /**
   * Sends empty transactions to itself with all nonces that may be in use. Once the receipt's block
   * is final, none of the account's earlier transactions can be mined.
   */
  useUpNonces(options?: L1SendOptions): Promise<L1Receipt>;
  /**
   * The reason why {@link L1Committer.withdraw} would fail for this one now; null when it would
   * succeed. Sends nothing.
   */
  checkWithdrawal(call: WithdrawalCall): Promise<string | null>;
  /**
   * Most withdrawals of one transaction: 21, fewer where blocks are small, at least 2. A signed
   * list adds one.
   */
  mostWithdrawals(): Promise<number>;
  /**
   * Pays one or up to {@link L1Committer.mostWithdrawals} withdrawals in one transaction.
   * `refusals` are in order: null when paid, else the contract's reason. A failure on L1 does not
   * undo the others. `refusals` is null when L1 reverted the whole transaction.
   */
  withdraw(
    calls: readonly WithdrawalCall[],
    options?: L1SendOptions,
  ): Promise<L1Receipt & { readonly refusals: readonly (string | null)[] | null }>;
}

/**
 * Voids the later of two vaults of one ERC-721 token, with proofs of both. Anyone may call and pay
 * for it.
 */
export interface L1Voider {
  /** Resolves when mined; rejects with `l1_failed` and the reason. */
  voidDuplicate(
    earlier: ProvenVault,
    later: ProvenVault,
    options?: L1SendOptions,
  ): Promise<L1Receipt>;
}

/** A withdrawal by the owner's own account, without a signature besides the transaction's. */
export interface L1Owner {
  /**
   * The reason why {@link L1Owner.withdrawOwn} would fail now; null when it would succeed. Sends
   * nothing.
   */
  checkOwnWithdrawal(call: WithdrawalCall): Promise<string | null>;
  /** Resolves when mined; rejects with `l1_failed` and the reason. */
  withdrawOwn(call: WithdrawalCall, options?: L1SendOptions): Promise<L1Receipt>;
}

/** A vault that L1 has made, with the id that a reorganisation can still give to another one. */
export type RenewedVault = MadeVault & { readonly vaultId: VaultId };

/** Renewals by the owner's own account. Mirrors make no vaults. */
export interface L1Renewer {
  /** Whether the contract was deployed with code that makes vaults. */
  hasMakings(): Promise<boolean>;
  /**
   * The reason why {@link L1Renewer.renew} would fail now; null when it would succeed. Sends
   * nothing. Rejects with `validation_failed` when the calls do not fit into one transaction.
   *
   * @param calls - every vault of one list once, with the list in each
   */
  checkRenewal(calls: readonly WithdrawalCall[]): Promise<string | null>;
  /** Resolves when mined; rejects with `l1_failed` and the reason. */
  renew(
    calls: readonly WithdrawalCall[],
    options?: L1SendOptions,
  ): Promise<L1Receipt & { readonly vaults: readonly RenewedVault[] }>;
}

/** A token, or units of it, on the way back from L1. */
export interface L1Entry {
  /** A token of this project. */
  readonly token: Address;
  readonly standard: Standard;
  /** Who gets the vault. */
  readonly owner: Address;
  /** null for ERC-20. */
  readonly tokenId: bigint | null;
  /** Base units; 1 for an ERC-721. */
  readonly amount: bigint;
}

/** Entries of tokens by the account that holds them. */
export interface L1Enterer {
  /**
   * Burns tokens that the account holds, of which L1 makes a vault. Rejects with `l1_failed`, with
   * the token's reason.
   */
  enter(entry: L1Entry, options?: L1SendOptions): Promise<L1Receipt>;
}

/**
 * The contract that pays withdrawals of one chain's tokens: the settlement contract, or a mirror on
 * another chain.
 */
export type Portal = Pick<
  L1Reader,
  "settlement" | "blockNumber" | "finalizedBlockNumber" | "block" | "events"
> &
  Pick<L1Reader, "maturity" | "withdrawn"> &
  Pick<L1Committer, "checkWithdrawal" | "mostWithdrawals" | "withdraw" | "earlierMined">;

/**
 * The data availability committee: stores and re-derives the batch, and returns an attestation
 * (docs/protocol.md 5).
 */
export interface Committee {
  /**
   * Resolves with the encoded attestation, valid only after `after` on L1. Rejects when too few
   * members sign.
   */
  attest(batch: ProposedBatch, after: HistoryPoint, options?: WaitOptions): Promise<Hex>;
}
