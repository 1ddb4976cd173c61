import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { Level } from "level";
import { bytesToHex, hexToBytes } from "viem";
import { decodeWrites, encodeWrites } from "../core/cluster/cluster-store.ts";
import { rowsOf, UnreadableRow } from "../core/drops/rows.ts";
import { parseExitKit, requireFittingParts } from "../core/exit/kit.ts";
import { offerText, parseOffer } from "../core/exit/trade.ts";
import { LevelJournal, MintmarkError } from "../core/index.ts";
import { BatchDataError, decodeBatch } from "../core/protocol/batch-data.ts";
import { decodeBlobBatch } from "../core/protocol/blob-batch.ts";
import { readMetadata } from "../core/protocol/metadata.ts";
import { receiptOf, verifyReceipt } from "../core/protocol/receipt.ts";
import { decodeTransferData, TransferDataError } from "../core/protocol/transfer-data.ts";
import { decodeEntry } from "../core/store/journal.ts";
import { decodeRecord } from "../core/store/layout.ts";
import { metadataRecord } from "../core/store/records.ts";
import { PREFIX } from "../core/store/store-keys.ts";
import { keyIn } from "../server/process/account.ts";
import { ConfigError, KeystoreError, readConfig } from "../server/process/settings/config.ts";
import { naiveDecode as naiveTransfers } from "./core/naive/naive-transfers.ts";
import { naiveRead, naiveSlots } from "./core/naive/naive-words.ts";
import { GOLDEN, valueFrom } from "./golden/golden.ts";

type Bytes = Uint8Array<ArrayBuffer>;
const BINARY = { keyEncoding: "buffer", valueEncoding: "buffer" } as const;

/** A decoder of what others made. */
interface Decoder {
  /** Bytes that it reads, or that it refuses rightly. */
  readonly seeds: readonly Bytes[];
  /** Throws what it refuses. Its answer is compared with the naive twin's, where there is one. */
  read(bytes: Bytes): unknown;
  /** Reads the same, where the decoder reads anything. */
  twin?(bytes: Bytes): unknown;
  /** Whether one reading takes milliseconds, so that fewer are tried. */
  readonly slow?: boolean;
  /**
   * CPU time that one reading may take, in ms, where it may take more than the others: for deriving
   * a key.
   */
  readonly mostMs?: number;
}

const text = (bytes: Bytes) => Buffer.from(bytes).toString();
const bytesOf = (content: string): Bytes => new Uint8Array(Buffer.from(content));
const vectors = (name: string, ...lists: string[]): Bytes[] => {
  const file = JSON.parse(readFileSync(new URL(`./vectors/${name}.json`, import.meta.url), "utf8"));
  return lists.flatMap((list) =>
    (file[list] as { data: `0x${string}` }[]).map(({ data }) => new Uint8Array(hexToBytes(data))),
  );
};
/** Untrusted JSON, which each caller parses by its own means. */
function jsonOf(bytes: Bytes): unknown {
  try {
    return JSON.parse(text(bytes));
  } catch {
    throw new MintmarkError("validation_failed", "no JSON");
  }
}

/** The file of an offer of a kit's vault. */
function offerOf(kitText: string): string {
  const kit = parseExitKit(kitText);
  const item = { token: kit.token.address, id: kit.token.tokenId ?? 0n, amount: 1n };
  const { vaultId, owner: taker } = kit.tip;
  const shares = [{ to: taker, amount: 1n }];
  const terms = { shares, taker, vaultId, withdrawnBefore: 0n, deadline: 1n };
  return offerText({ kit, order: { give: item, want: item, ...terms }, signature: "0x01" });
}

/** Every decoder, by what it reads. @param folder - for those that read files */
async function decoders(folder: string): Promise<Record<string, Decoder>> {
  await using journal = await LevelJournal.open(join(folder, "backup"));
  const entries = await Array.fromAsync(journal.read(0), (entry): Bytes => new Uint8Array(entry));
  const kits = readdirSync(join(GOLDEN, "kits")).map((name) =>
    readFileSync(join(GOLDEN, "kits", name), "utf8"),
  );
  const receipt = readFileSync(join(GOLDEN, "receipt.json"), "utf8");
  const minted = valueFrom<GoldenReceipt>(receipt);
  await using level = new Level<Buffer, Buffer>(join(folder, "store"), BINARY);
  const records = await level.iterator().all();
  const stored = (prefix: number): Bytes[] =>
    records.filter(([key]) => key[0] === prefix).map(([, value]) => new Uint8Array(value));
  const path = join(folder, "file");
  const inFile = <T>(bytes: Bytes, read: () => T): T => {
    writeFileSync(path, bytes);
    return read();
  };
  return {
    "an exit kit": {
      seeds: kits.map(bytesOf),
      read: (bytes) => requireFittingParts(parseExitKit(text(bytes))),
    },
    "an offer": {
      seeds: kits.map((kit) => bytesOf(offerOf(kit))),
      read: (bytes) => parseOffer(text(bytes)),
    },
    "a receipt": {
      seeds: [bytesOf(receipt)],
      read: (bytes) => {
        const reply = valueFrom<GoldenReceipt>(JSON.stringify(jsonOf(bytes)));
        return verifyReceipt(
          minted.settlement,
          minted.signer,
          receiptOf(reply, minted.vaults[0]?.vaultId ?? 0n),
        );
      },
    },
    "a journal entry": { seeds: entries, read: (bytes) => decodeEntry(0, bytes) },
    "batch data": {
      seeds: [...stored(PREFIX.batchData), ...vectors("batch-data", "vectors", "refused")],
      read: (bytes) => decodeBatch(bytes).slots,
      twin: (bytes) => {
        const { assets, words } = naiveRead(bytesToHex(bytes));
        return naiveSlots(assets, words);
      },
    },
    "transfer data": {
      seeds: vectors("transfers", "vectors", "refused"),
      read: (bytes) => decodeTransferData(bytes),
      twin: (bytes) => naiveTransfers(bytesToHex(bytes)),
    },
    "data of a blob batch": {
      seeds: [blobBatch()],
      read: (bytes) => decodeBlobBatch(bytes),
    },
    metadata: {
      seeds: [
        ...stored(PREFIX.metadata).map((each) =>
          bytesOf(decodeRecord(metadataRecord, each, "metadata").metadata),
        ),
        bytesOf(
          '{"name":"Sword","image":"ipfs://a","attributes":[{"trait_type":"level","value":7}],"x":{"y":[null]}}',
        ),
      ],
      read: (bytes) => readMetadata(jsonOf(bytes)),
    },
    "a keystore": {
      seeds: [bytesOf(JSON.stringify(KEYSTORE))],
      read: (bytes) => inFile(bytes, () => keyIn(path, join(folder, "backup", "CURRENT"))),
      slow: true,
      // Its file says how hard the key is to derive, up to bounds that common wallets use.
      mostMs: 3_000,
    },
    "a drop's CSV": {
      seeds: [
        bytesOf(
          'tokenId,ownerAddress,name,image\n1,0x70997970C51812dc3A010C7d01b50e0d17dc79C8,"A ""b"", c",ipfs://a\n',
        ),
      ],
      read: (bytes) => Array.fromAsync(rowsOf(streamOf(bytes), "csv")),
    },
    "a drop's NDJSON": {
      seeds: [
        bytesOf(
          '{"tokenId":"1","ownerAddress":"0x70997970C51812dc3A010C7d01b50e0d17dc79C8","metadata":{"name":"a"}}\n',
        ),
      ],
      read: (bytes) => Array.fromAsync(rowsOf(streamOf(bytes), "ndjson")),
    },
    "a file of settings": {
      seeds: [bytesOf(JSON.stringify(SETTINGS))],
      read: (bytes) => inFile(bytes, () => readConfig({ MINTMARK_CONFIG: path })),
    },
    "an entry of a cluster's journal": {
      seeds: [
        encodeWrites([
          { type: "put", key: Buffer.from("key"), value: Buffer.from("value") },
          { type: "del", key: Buffer.from("k") },
        ]),
      ].map((each): Bytes => new Uint8Array(each)),
      read: (bytes) => decodeWrites(Buffer.from(bytes)),
    },
  };
}

type GoldenReceipt = Parameters<typeof receiptOf>[0] & {
  settlement: Parameters<typeof verifyReceipt>[0];
  signer: Parameters<typeof verifyReceipt>[1];
};

/** Web3 Secret Storage, with few rounds, so that a try is short. */
const KEYSTORE = {
  version: 3,
  id: "",
  crypto: {
    cipher: "aes-128-ctr",
    ciphertext: "ab".repeat(32),
    cipherparams: { iv: "cd".repeat(16) },
    mac: "ef".repeat(32),
    kdf: "pbkdf2",
    kdfparams: { c: 1, dklen: 32, prf: "hmac-sha256", salt: "01".repeat(32) },
  },
};

const ADDRESS = `0x${"5e".repeat(20)}`;
const SETTINGS = {
  store: "s",
  environment: "sandbox",
  chainId: 31337,
  contract: ADDRESS,
  members: [`${ADDRESS}=http://a`],
};

/**
 * Two tokens of one asset, as the product stores the blobs of a batch: the first half of a blob of
 * zeroes.
 */
function blobBatch(): Bytes {
  const head = Buffer.alloc(7 + 40);
  head[0] = 0x02;
  head.writeUInt32BE(2, 1);
  head.writeUInt16BE(1, 5);
  head.writeBigUInt64BE(31_337n, 7);
  head.fill(0x11, 15);
  return new Uint8Array(Buffer.concat([head, Buffer.alloc(131_072)]));
}

async function* streamOf(bytes: Bytes): AsyncGenerator<Bytes> {
  // Pieces, because a character or a line can be cut anywhere.
  for (let at = 0; at < bytes.length; at += 7) yield bytes.slice(at, at + 7);
}

/** Values that parsers of text have failed at before. */
const HOSTILE = [
  "null",
  "-1",
  "1e999",
  "0x",
  '"\\ud800"',
  "[[[[[[",
  "{}",
  "18446744073709551616",
  '""',
  "\u202e",
  "__proto__",
  "\0",
];

/**
 * A seed with a few changes: bytes flipped, cut out, doubled or put in, or a hostile value in place
 * of some text.
 */
function mutated(seeds: readonly Bytes[], random: () => number): Bytes {
  const below = (most: number) => Math.floor(random() * most);
  let bytes = Buffer.from(seeds[below(seeds.length)] as Bytes);
  for (let changes = 1 + below(3); changes > 0; changes--) {
    const at = below(bytes.length + 1);
    const length = 1 + below(random() < 0.9 ? 8 : 300);
    const [before, after] = [bytes.subarray(0, at), bytes.subarray(at + length)];
    const kind = below(6);
    if (kind === 0 && at < bytes.length) bytes[at] = (bytes[at] as number) ^ (1 << below(8));
    else if (kind === 1 && at < bytes.length)
      bytes[at] = [0, 1, 0x7f, 0x80, 0xff][below(5)] as number;
    else if (kind === 2) bytes = Buffer.concat([before, after]);
    else if (kind === 3)
      bytes = Buffer.concat([before, bytes.subarray(at, at + length), bytes.subarray(at)]);
    else if (kind === 4) bytes = before;
    else bytes = Buffer.concat([before, Buffer.from(HOSTILE[below(HOSTILE.length)] ?? ""), after]);
  }
  return new Uint8Array(bytes);
}

/** Mulberry32, by Tommy Ettinger: the same numbers for the same seed. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const REFUSALS = [
  MintmarkError,
  BatchDataError,
  TransferDataError,
  UnreadableRow,
  KeystoreError,
  ConfigError,
] as const;
/** CPU time, which the machine's load does not change. */
const MOST_MS = 100;
const MOST_BYTES = 100e6;

/** Tries every decoder, and answers how many mutations each refused. */
export async function fuzzAll(mutations: number, seed: number): Promise<Record<string, Tried>> {
  const folder = await mkdtemp(join(tmpdir(), "mintmark-decoders-"));
  try {
    await cp(GOLDEN, folder, { recursive: true });
    const tried: Record<string, Tried> = {};
    for (const [name, decoder] of Object.entries(await decoders(folder))) {
      const since = Date.now();
      tried[name] = await fuzz(decoder, mutations, seed).catch((error: Error) => {
        throw new Error(`${name}: ${error.message}`, { cause: error.cause });
      });
      if (mutations > 100_000)
        console.log(`${name}: ${Math.round((Date.now() - since) / 1_000)} s`);
    }
    return tried;
  } finally {
    await rm(folder, { recursive: true });
  }
}

interface Tried {
  readonly runs: number;
  readonly refused: number;
}

/**
 * Reads many mutations. Throws for one that is not refused with a code, is read otherwise by the
 * twin, hangs or fills the memory.
 */
async function fuzz(decoder: Decoder, mutations: number, seed: number): Promise<Tried> {
  const { seeds, read, twin, slow = false, mostMs = MOST_MS } = decoder;
  const random = randomFrom(seed);
  let refused = 0;
  const runs = slow ? Math.ceil(mutations / 100) : mutations;
  const spent = () => (process.cpuUsage().user + process.cpuUsage().system) / 1_000;
  // The most that the process ever had, in bytes: what a reading frees again counts too.
  const peak = () => process.resourceUsage().maxRSS * 1_024;
  for (let i = 0; i < runs; i++) {
    const bytes = mutated(seeds, random);
    const told = () => `of ${Buffer.from(bytes.subarray(0, 3_000)).toString("base64")}`;
    const measured = async () => {
      const [start, before] = [spent(), peak()];
      const result = await Promise.resolve(bytes)
        .then(read)
        .then((value) => ({ value }))
        .catch((error: unknown) => ({ error }));
      return { result, took: spent() - start, grown: peak() - before };
    };
    let { result, took, grown } = await measured();
    // The collector and the compiler of another reading can fall into this one, but not into each
    // of three.
    for (let left = 2; took > mostMs && left > 0; left--)
      took = Math.min(took, (await measured()).took);
    if (took > mostMs || grown > MOST_BYTES)
      throw new Error(`it took ${took} ms and ${grown} bytes, ${told()}`);
    if ("error" in result) {
      refused++;
      if (REFUSALS.some((kind) => result.error instanceof kind)) continue;
      throw new Error(`a fault that has no code, ${told()}`, { cause: result.error });
    }
    if (twin !== undefined && !isDeepStrictEqual(result.value, twin(bytes)))
      throw new Error(`the twin reads it otherwise, ${told()}`);
  }
  return { runs, refused };
}
