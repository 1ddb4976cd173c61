/** Fixed addresses in the module's memory: 256 KiB in all, so a chunk stays in a core's cache. */

export const MEMORY_PAGES = 4;

/** 64-bit words of the keccak state. */
export const LANES = 25;
/** Bytes that one permutation absorbs: 1600 bits minus twice 256. */
export const RATE = 136;

/** 24 round constants of 8 bytes; rounds count offsets from here. */
export const CONSTANTS = 0;
/** The resting state of the scalar sponge: 25 lanes of 8 bytes, all zero between messages. */
export const STATE = 0x100;
/**
 * The states of two messages hashed together: 25 lanes of 16 bytes, and again for every other
 * round.
 */
export const TWIN_STATE = 0x200;
export const TWIN_ODD = 0x400;
/** Two vectors of theta's effect. */
export const TWIN_EFFECT = 0x600;
/**
 * The padded last block of a message, one per half of the twin state. The scalar sponge uses the
 * first.
 */
export const PADDED = [0x700, 0x800] as const;
/** The two nodes hashed while folding a path. */
export const PAIR = 0x900;

/** End offsets of packed messages, 4 bytes each. */
export const ENDS = 0x1000;
export const MAX_MESSAGES = 2048;

/** The input. A message's last lane is read whole, so there is memory after it. */
export const INPUT = 0x3000;
export const INPUT_BYTES = 0x2_0000;

/** Digests of packed messages, 32 bytes each. Digests of pairs overwrite the pairs. */
export const OUTPUT = INPUT + INPUT_BYTES + 0x100;
