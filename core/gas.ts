/**
 * Gas that the engine, its transactions and its commands reckon with. `npm run gas` measures what
 * calls really take (docs/gas.md).
 */

/** The most gas of one transaction (EIP-7825). A mint that needs more is impossible. */
export const TRANSACTION_GAS = 16_777_216n;
/** Gas of a plain transfer to an account. */
export const TRANSFER_GAS = 21_000n;
/** Gas of each byte of calldata that is not zero. */
export const GAS_PER_BYTE = 16n;
/** Gas of a single call off-chain: the transaction, and the ABI encoding around a signature. */
export const CALL_GAS = 25_000n;

/** Gas that the contract gives an issuer's wallet contract at a commit. */
export const CONSENT_GAS = 100_000n;
/**
 * Gas of a consent, and of each asset that it names, without its signature's bytes and its wallet
 * contract.
 */
export const GAS_PER_CONSENT = 6_000n;
/**
 * Most gas of a wallet contract that is asked off-chain about a signature. A passkey without a
 * precompile takes 330,000.
 */
export const SIGNATURE_GAS = 1_000_000n;

/** Upper bounds of a validium commit, and of each byte of its call. */
export const VALIDIUM_GAS = 250_000n;
export const VALIDIUM_GAS_PER_BYTE = 200n;
/** Upper bounds of a commit by blobs, and of each asset of its manifest. */
export const BLOB_COMMIT_GAS = 160_000n;
export const BLOB_COMMIT_GAS_PER_ASSET = 6_000n;
/**
 * Upper bounds of a commit of transfers: of the call, each group, each slot, and each word of 256
 * neighbouring vaults. test/contracts/transfer-gas.test.ts compares them with L1.
 */
export const TRANSFERS_GAS = 300_000;
export const GAS_PER_GROUP = 4_000;
export const GAS_PER_SLOT = 1_600;
export const GAS_PER_WORD = 22_400;

/**
 * The least gas that the contract gives each item of a batch, for proof, signature and token call
 * together.
 */
export const ITEM_GAS = 650_000n;
/** Further gas of each item, and of the whole batch. */
export const GAS_AROUND_ITEM = 30_000n;
export const GAS_AROUND_ITEMS = 50_000n;
/** The contract gives an item of a transferred vault this gas besides. */
export const WAY_GAS = 300_000n;
/** The least gas that the contract gives each trade: two proofs, and both owners' wallets. */
export const TRADE_GAS = 2_000_000n;
/**
 * Gas to try one withdrawal of a batch, with some around it. A node that allows more must not try
 * longer.
 */
export const TRIAL_GAS = 1_000_000n;
/** Gas of a mint in a bundle: what a relay gives it. */
export const BUNDLED_GAS = 500_000;

/** Gas of each blob (EIP-4844). */
export const GAS_PER_BLOB = 131_072n;

/**
 * Gas after a token's creation: registering it, locking its minter, transferring its
 * administration.
 */
export const GAS_AFTER_TOKEN = 400_000n;
/**
 * Gas with which the operator begins: a relay of 20 withdrawals, and a hundred validium batches.
 */
export const RELAY_GAS = 12_500_000n;
export const COMMITS_GAS = 100n * 100_000n;
/** Gas with which a member or a watcher voids some duplicates. */
export const VOIDING_GAS = 1_000_000n;
