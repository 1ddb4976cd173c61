/** The messages between core/protocol/signers/signer-thread.ts and its thread. */

/** A digest of 32 bytes and a signature of 64, back to back for each question. */
export const QUESTION_BYTES = 96;
/** 1 and the account, or 21 zero bytes. */
export const ANSWER_BYTES = 21;
