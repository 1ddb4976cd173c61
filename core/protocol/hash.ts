/**
 * The one hash of the protocol, keccak-256, in the shapes that the core asks for: a message, many messages in one buffer, a level
 * of a tree, a path. The rest of the core imports it from here, so that what hashes stays one module's business.
 */
export { foldPath, hashMessages, hashPairs, keccak256 } from "../keccak/index.ts";
