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
