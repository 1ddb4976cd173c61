/**
 * The protocol's only hash, keccak-256: of a message, of many messages in one buffer, of a tree level, of a path. The
 * rest of the core imports it from here, so one module decides the implementation.
 */
export { foldPath, hashMessages, hashPairs, keccak256 } from "./keccak/index.ts";
