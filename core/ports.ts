import type { Address, BlobScheme, Hash, Hex, Mode, Standard, VaultId } from "./model.ts";

/** Milliseconds since 1970. Tests pass their own. */
export type Clock = () => number;

/** The settlement contract a store belongs to; part of every signed message. */
export interface Settlement {
  readonly chainId: bigint;
  readonly contract: Address;
  /** ERC-721 from 4, ERC-20 and ERC-1155 from 5. */
  readonly engineVersion: number;
}

/** A contract that pays withdrawals of its own chain's tokens: the settlement contract, or a mirror of it. The domain of what owners sign for it. */
export type PortalIdentity = Pick<Settlement, "chainId" | "contract">;

/** What L1 keeps of a committed batch, as one hash; needed with every vault proof. */
export interface BatchHeader {
  readonly batchRoot: Hash;
  readonly vaultCount: number;
  readonly committedAt: bigint;
  readonly sequence: bigint;
}

/** A vault's whole content: the preimage of its leaf. */
export interface VaultContent {
  readonly vaultId: VaultId;
  readonly chainId: bigint;
  readonly owner: Address;
  readonly assetType: Hash;
  readonly amount: bigint;
  readonly blob: Hex;
}

/** An asset as registries know it. */
export type AssetId = Pick<VaultContent, "chainId" | "assetType">;

/** What the registry of a chain says of an asset. */
export interface L1Registration {
  readonly standard: Standard;
  readonly token: Address;
  readonly quantum: bigint;
  /** How L1 reads the token's blobs, for ever. Of another chain's token it says nothing: the mirror's registry there does. */
  readonly blobScheme: BlobScheme;
  /** Sequence of the first batch whose vaults of the asset count; on a mirror, of the first step. */
  readonly since: bigint;
}

/** What a token contract says of itself. */
export interface L1Token {
  readonly name: string;
  readonly symbol: string;
  readonly decimals: number;
  /** null when the token does not say. */
  readonly minterLocked: boolean | null;
}

/** The state that a settlement contract has: batches of each mode, their trees, and one hash over both. */
export interface L1State {
  readonly countValidium: number;
  readonly countRollup: number;
  readonly rootValidium: Hash;
  readonly rootRollup: Hash;
  readonly commitment: Hash;
  /** One hash over all commits of both modes, in their order; docs/protocol.md 3. */
  readonly history: Hash;
}

/** Where L1's history stands: what a commit follows. */
export interface HistoryPoint {
  /** {@link L1State.history} */
  readonly history: Hash;
  /** Commits of both modes in it, which is also the sequence number of the next one. */
  readonly sequence: bigint;
}

/** A batch as somebody claims it to be: everything else follows from its data. */
export interface ClaimedBatch {
  readonly mode: Mode;
  readonly batchNumber: number;
  readonly vaultCount: number;
  readonly batchRoot: Hash;
  readonly dataHash: Hash;
  /** Encoded batch data, docs/protocol.md 4. */
  readonly data: Uint8Array;
}

/** A batch ready for L1. */
export interface SealedBatch extends ClaimedBatch {
  /** The batch's manifest: the assets of its vaults, ascending. */
  readonly assets: readonly AssetId[];
  /** Root of the vault tree. */
  readonly content: Hash;
}

/** Shows that a manifest names an asset. */
export interface AssetPath {
  /** Position in the manifest, 0 to 254. */
  readonly index: number;
  /** From the leaf upwards, at most eight. */
  readonly siblings: readonly Hash[];
}

/** A vault with all that L1 asks for to believe in it. */
export interface ProvenVault {
  readonly vault: VaultContent;
  readonly header: BatchHeader;
  /** In the vault tree, from the leaf upwards. */
  readonly siblings: readonly Hash[];
  /** Of the vault's asset in the batch's manifest. */
  readonly assetPath: AssetPath;
}

/** A withdrawal as the contract that pays it is asked for it: units, recipient, and the owner's authorization. */
export interface WithdrawalCall extends ProvenVault {
  readonly quantity: bigint;
  readonly recipient: Address;
  readonly authorization: WithdrawalAuthorization;
}

/** One vault of a list that its owner signs once for all. */
export interface ListedVault {
  readonly vaultId: VaultId;
  /** What had been withdrawn of the vault; makes the entry single-use. */
  readonly withdrawnBefore: bigint;
  readonly quantity: bigint;
}

/** An owner's word for a withdrawal. */
export interface WithdrawalAuthorization {
  /** Seconds since 1970. */
  readonly deadline: bigint;
  /** Over one withdrawal, or over the whole list; `0x` when the owner itself sends. */
  readonly signature: Hex;
  /** The list that was signed. It names the withdrawal's vault once; its recipient is the withdrawal's. */
  readonly list?: readonly ListedVault[];
}

/** A block of a chain. */
export interface L1Block {
  readonly number: bigint;
  readonly hash: Hash;
  /** Seconds since 1970. */
  readonly timestamp: bigint;
}

/** A mined transaction. */
export interface L1Receipt {
  readonly txHash: Hash;
  readonly blockNumber: bigint;
  readonly gasUsed: bigint;
}

/** An event of the settlement contract or of a mirror, with its place in the chain. */
export type L1Event = { readonly txHash: Hash; readonly blockNumber: bigint; readonly logIndex: number } & (
  | ({
      readonly type: "batchCommitted";
      readonly mode: Mode;
      readonly batchNumber: number;
      readonly dataHash: Hash;
      /** Places in the batch's manifest of the assets that L1 has left out, for want of a consent; default none. Ascending. */
      readonly leftOut?: readonly number[];
    } & BatchHeader)
  /** A batch of the state has become known to a mirror, under a header of its own. */
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
  | { readonly type: "authorizationCancelled"; readonly signer: Address; readonly digest: Hash }
  | { readonly type: "duplicateVoided"; readonly earlierVaultId: VaultId; readonly laterVaultId: VaultId }
);

/** Reads the settlement chain. Every method rejects with `l1_failed` when the chain cannot be asked; it never answers "no" for "unknown". */
export interface L1Reader {
  readonly settlement: Settlement;
  /** Newest block. */
  blockNumber(): Promise<bigint>;
  /** Newest block that cannot be reorganised away. */
  finalizedBlockNumber(): Promise<bigint>;
  /** The block of this number on the chain as it is now, or the newest; null when the chain has no block of this number. */
  block(at: bigint | "latest"): Promise<L1Block | null>;
  /** As of a block, by default the newest. */
  state(at?: bigint): Promise<L1State>;
  /** The batch data that a rollup commit's transaction carried; null when the node does not have that: not yet, or not any more. */
  rollupData(txHash: Hash): Promise<Uint8Array | null>;
  /** What was withdrawn of a vault, after the contract itself has checked its proof. Rejects with the contract's reason. */
  verifyVault(proven: ProvenVault): Promise<bigint>;
  /** Whether the account may commit batches now. */
  isOperator(account: Address): Promise<boolean>;
  /** As of a block, by default the newest. Rejects when the node does not have that block yet. */
  registration(chainId: bigint, assetType: Hash, at?: bigint): Promise<L1Registration | null>;
  /** Of many at once, in order. */
  registrations(assets: readonly AssetId[], at?: bigint): Promise<readonly (L1Registration | null)[]>;
  /** Asks the token's contract. */
  token(contract: Address, standard: Standard): Promise<L1Token>;
  /** Most base units of an ERC-20 that can ever exist; null when the token states no bound. */
  supplyCap(contract: Address): Promise<bigint | null>;
  /** Base units that an account holds of a token; of an ERC-721, 1 when it is the token's owner. */
  holding(contract: Address, standard: Standard, account: Address, tokenId: bigint | null): Promise<bigint>;
  /** Units that were withdrawn of a vault, from the contract alone. */
  withdrawn(vaultId: VaultId, standard: Standard): Promise<bigint>;
  /** Seconds an ERC-721 vault waits after its batch's commit. */
  maturity(): Promise<bigint>;
  /** Hash of the committee in force and its epoch, docs/protocol.md 5. */
  committee(): Promise<{ readonly committeeHash: Hash; readonly epoch: bigint }>;
  /** EIP-712 digest signed by `signer`: ECDSA, or ERC-1271 when it is a contract. */
  verifySignature(signer: Address, digest: Hash, signature: Hex): Promise<boolean>;
  /** The contract's events of these blocks, both included, in their order. */
  events(fromBlock: bigint, toBlock: bigint): Promise<readonly L1Event[]>;
}

/** A mint as a token's contract is asked for it. */
export interface TokenMint {
  /** Base units; 1 for an ERC-721. */
  readonly quantity: bigint;
  readonly blob: Hex;
}

/** What tokens beside the settlement contract would do. Sends nothing; rejects with `l1_failed` when the chain cannot be asked. */
export interface L1Tokens {
  /** Why the token would refuse this mint by the settlement contract as of a block; null when it would take it. */
  tryMint(token: Address, mint: TokenMint, at: bigint): Promise<string | null>;
  /** Whether the settlement contract holds the token's minter role; null when the token has no such role. */
  isMinter(token: Address): Promise<boolean | null>;
  /** Owners of ERC-721 tokens as of a block, in order; null for one that there is not. */
  tokenOwners(token: Address, tokenIds: readonly bigint[], at: bigint): Promise<readonly (Address | null)[]>;
}

/** How a caller watches a transaction, and gives up waiting for it. */
export interface L1SendOptions {
  /** Called with the transaction's hash once a node has taken it and before it is mined; again when a replacement takes its place. */
  readonly onSent?: (txHash: Hash) => void | Promise<void>;
  readonly signal?: AbortSignal;
}

/** How a commit is sent besides. */
export interface L1CommitOptions extends L1SendOptions {
  /** The commit before it may still be under way. It is sent behind that one, and L1 need not be ready for it. */
  readonly isBehind?: boolean;
}

/**
 * Writes to the settlement chain with the operator's account, a few transactions under way at once, in the order of the calls. Resolves when
 * mined; rejects with `l1_failed` and the reason.
 */
export interface L1Committer {
  /** @param history - the {@link L1State.history} that the batch follows; L1 refuses the batch when it has another */
  commitRollup(batch: SealedBatch, history: Hash, options?: L1CommitOptions): Promise<L1Receipt>;
  /** As {@link L1Committer.commitRollup}, with the signatures of the committee in the place of the data. */
  commitValidium(batch: SealedBatch, history: Hash, attestation: Hex, options?: L1CommitOptions): Promise<L1Receipt>;
  /** Why {@link L1Committer.commitRollup} would fail if the batch were the next one; null when it would succeed. Sends nothing. */
  checkRollup(batch: Pick<SealedBatch, "data">): Promise<string | null>;
  /** Most gas that one transaction can have on this chain now. */
  transactionGas(): Promise<bigint>;
  /**
   * Waits for what nobody here waits for: what an earlier process of the account has sent, or what was given up. Resolves when it is mined, or
   * when it is so late that it must be replaced. Whether there was any.
   */
  earlierMined(signal?: AbortSignal): Promise<boolean>;
  /**
   * Sends nothing to nobody, under every nonce that the account may have something under way with. Once the receipt's block is final,
   * nothing that the account sent before can be mined any more.
   */
  useUpNonces(options?: L1SendOptions): Promise<L1Receipt>;
  /** Why {@link L1Committer.withdraw} would fail for this one if it were sent now; null when it would succeed. Sends nothing. */
  checkWithdrawal(call: WithdrawalCall): Promise<string | null>;
  /** How many withdrawals one transaction can have: 20, or fewer where blocks are small; at least 1. */
  mostWithdrawals(): Promise<number>;
  /**
   * One or up to {@link L1Committer.mostWithdrawals}, in one transaction. `refusals` are in order: null for one that is paid, else what the contract said. One that fails on L1 does
   * not undo the others. `refusals` is null when L1 reverted the transaction as a whole.
   */
  withdraw(
    calls: readonly WithdrawalCall[],
    options?: L1SendOptions,
  ): Promise<L1Receipt & { readonly refusals: readonly (string | null)[] | null }>;
}

/** Exhausts the later of two vaults of one ERC-721 token, with proofs of both. Anyone may; whoever does pays for the transaction. */
export interface L1Voider {
  /** Resolves when mined; rejects with `l1_failed` and the reason. */
  voidDuplicate(earlier: ProvenVault, later: ProvenVault, options?: L1SendOptions): Promise<L1Receipt>;
}

/** A withdrawal by the owner's own account, which needs no signature besides the transaction's. */
export interface L1Owner {
  /** Why {@link L1Owner.withdrawOwn} would fail if it were sent now; null when it would succeed. Sends nothing. */
  checkOwnWithdrawal(call: WithdrawalCall): Promise<string | null>;
  /** Resolves when mined; rejects with `l1_failed` and the reason. */
  withdrawOwn(call: WithdrawalCall, options?: L1SendOptions): Promise<L1Receipt>;
}

/** Where withdrawals of one chain's tokens are paid: the settlement contract, or a mirror of it on another chain. */
export type Portal = Pick<L1Reader, "settlement" | "blockNumber" | "finalizedBlockNumber" | "block" | "events"> &
  Pick<L1Reader, "maturity" | "withdrawn"> &
  Pick<L1Committer, "checkWithdrawal" | "mostWithdrawals" | "withdraw" | "earlierMined">;

/** The data availability committee: stores and re-derives the batch, and answers with an attestation (docs/protocol.md 5). */
export interface Committee {
  /** @param after - what the batch follows on L1; the signatures are good for nothing else */
  /** Resolves with the encoded attestation of at least the threshold; rejects when too few members sign. */
  attest(batch: ClaimedBatch, after: HistoryPoint, options?: { signal?: AbortSignal }): Promise<Hex>;
}
