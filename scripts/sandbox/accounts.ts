import { type HDAccount, mnemonicToAccount } from "viem/accounts";

/**
 * The published test mnemonic of local chains. Everybody knows these keys, so never use them
 * elsewhere.
 */
const TEST_MNEMONIC = "test test test test test test test test test test test junk";

const account = (addressIndex: number): HDAccount =>
  mnemonicToAccount(TEST_MNEMONIC, { addressIndex });

export const OPERATOR = account(0);
export const ADMIN = account(1);
export const GUARDIAN = account(2);
/** Five members; a validium batch needs three signatures. */
export const COMMITTEE = [3, 4, 5, 6, 7].map(account);
export const THRESHOLD = 3;

/** The demo application's users by name, with the owners of their tokens. */
export const USERS = [
  { name: "alice", userId: "a11ce000-0000-4000-8000-000000000001", owner: account(8) },
  { name: "bob", userId: "b0b00000-0000-4000-8000-000000000002", owner: account(9) },
  { name: "carol", userId: "ca201000-0000-4000-8000-000000000003", owner: account(10) },
] as const;

/**
 * The demo application, its key and its assets are the same at each start, so that what somebody
 * exported yesterday works today. Like the accounts, the key is public: it opens only sandboxes.
 */
export const APPLICATION_ID = "de300000-0000-4000-8000-000000000001";
export const API_KEY =
  "mm_test_00005a4db0c5a4db_5a4db0c55a4db0c55a4db0c55a4db0c55a4db0c55a4db0c55a4db0c55a4db0c5c4ce8bb0";
export const ASSET_IDS = {
  erc20: "e2000000-0000-4000-8000-000000000001",
  erc721: "e7210000-0000-4000-8000-000000000002",
  erc1155: "e1155000-0000-4000-8000-000000000003",
} as const;
