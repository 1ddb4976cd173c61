import { hash as nodeHash } from "node:crypto";
import { keccak_256 } from "@noble/hashes/sha3.js";
import { createKeccak as createHashWasm } from "hash-wasm";
import { createKeccak, type Keccak, type KeccakName } from "../core/protocol/keccak/index.ts";
import { measuredRows, type Section, type Subject, type Work } from "./harness.ts";

const PAIRS = 10_000;
const MESSAGES = 10_000;
const SINGLES = 1_000;
const REFERENCE = "Mintmark, WebAssembly, two states in vectors";

const COLUMNS = [
  { key: "pair", label: "a node: 64 bytes and a prefix, in bulk", unit: "ns", better: "lower" },
  { key: "leaf", label: "a vault leaf: 77 to 332 bytes, in bulk", unit: "ns", better: "lower" },
  { key: "single", label: "one message of 64 bytes", unit: "ns", better: "lower" },
] as const;

/** Preimages as in a batch: leaves of all lengths in turn, packed. */
function leafPreimages(): { bytes: Uint8Array; ends: Uint32Array; each: readonly Uint8Array[] } {
  let end = 0;
  const ends = Uint32Array.from({ length: MESSAGES }, (_, i) => (end += 77 + ((i * 97) % 256)));
  const bytes = new Uint8Array(end).map((_, i) => i % 251);
  return { bytes, ends, each: Array.from(ends, (to, i) => bytes.subarray(ends[i - 1] ?? 0, to)) };
}

function times(count: number, operation: (i: number) => void): Work {
  return {
    count,
    run: () => {
      for (let i = 0; i < count; i++) operation(i);
    },
  };
}

/**
 * A competitor that hashes one message after the other. The pairs' preimages are made beforehand.
 */
function messageByMessage(hash: (message: Uint8Array) => unknown) {
  const node = new Uint8Array(65).fill(1);
  const single = new Uint8Array(64).fill(7);
  const leaves = leafPreimages().each;
  const leaf = times(leaves.length, (i) => hash(leaves[i] as Uint8Array));
  const works = {
    pair: times(SINGLES, () => hash(node)),
    single: times(SINGLES, () => hash(single)),
    leaf,
  };
  return { ours: false, works };
}

function ours(name: KeccakName) {
  const keccak: Keccak = createKeccak(name);
  const pairs = new Uint8Array(64 * PAIRS).map((_, i) => i % 251);
  const parents = new Uint8Array(32 * PAIRS);
  const leaves = leafPreimages();
  const digests = new Uint8Array(32 * MESSAGES);
  const single = new Uint8Array(64).fill(7);
  const pair = { count: PAIRS, run: () => keccak.hashPairs(pairs, parents, PAIRS) };
  const leaf = {
    count: MESSAGES,
    run: () => keccak.hashMessages(leaves.bytes, leaves.ends, digests),
  };
  return {
    ours: true,
    works: { pair, leaf, single: times(SINGLES, () => keccak.keccak256(single)) },
  };
}

async function competitors(): Promise<readonly Subject[]> {
  const hashWasm = await createHashWasm(256);
  return [
    { label: REFERENCE, ...ours("wasm") },
    {
      label: "Mintmark, fallback on @noble/hashes",
      note: "where a runtime has no WebAssembly, or no vectors",
      ...ours("noble"),
    },
    { label: "@noble/hashes", ...messageByMessage(keccak_256) },
    {
      label: "hash-wasm",
      ...messageByMessage((message) => hashWasm.init().update(message).digest("binary")),
    },
    {
      label: "node:crypto sha3-256",
      note: "OpenSSL, native; the same permutation under another padding, as Node has no keccak-256",
      ...messageByMessage((message) => nodeHash("sha3-256", message, "buffer")),
    },
  ];
}

export const keccakSection: Section = {
  name: "keccak",
  title: "keccak-256",
  method:
    "Nanoseconds of user CPU time a hash, copying in and out included; ours also prepare the " +
    "inputs. A leaf is one to three blocks, two on average.",
  columns: COLUMNS,
  reference: REFERENCE,
  rows: async (progress) =>
    measuredRows(COLUMNS, await competitors(), (line) => progress(`keccak ${line}`)),
};
