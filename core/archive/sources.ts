import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { backoffDelay, pause, retryAfterMs } from "../backoff.ts";
import { invalid, MintmarkError } from "../errors.ts";
import { batchIdOf, type Hash, type Mode } from "../model.ts";
import { BLOB_BYTES } from "../protocol/blob-batch.ts";
import { hexToBytes } from "../protocol/hex.ts";

/** A source of batch data, such as a committee member or the operator. All data is checked. */
export interface BatchSource {
  /** Error messages name the source by this. */
  readonly name: string;
  /** null when it does not have the batch. */
  batchData(mode: Mode, batchNumber: number, signal?: AbortSignal): Promise<Uint8Array | null>;
}

/**
 * More than 2^20 vaults with the longest blobs, and more than one transaction of a rollup carries.
 */
const MAX_DATA_BYTES: Readonly<Record<Mode, number>> = {
  validium: 512 * 1024 * 1024,
  "zk-rollup": 4 * 1024 * 1024,
};

/** Limits of requests to a source over HTTP. */
interface HttpBatchSourceOptions {
  /** Timeout of one response, in milliseconds. Default 60,000. */
  readonly timeoutMs?: number;
  /** Most retries after responses 429 and 503. Default 10. */
  readonly retries?: number;
  /** Longest wait that a service may ask for before a retry, in milliseconds. Default 60,000. */
  readonly maxWaitMs?: number;
}

// The wait before a retry when the service does not state one
const BACKOFF = { firstMs: 500, maxMs: 10_000 };

/**
 * A member's service or an engine's server. Both serve batch data to anyone under the same path,
 * and limit the rate.
 *
 * @example
 * const sources = [new HttpBatchSource("https://member.example")];
 * const kit = await exportExitKit(await proveFromL1(vaultId, { l1, fromBlock, sources }), l1);
 */
export class HttpBatchSource implements BatchSource {
  readonly name: string;
  readonly #options: Required<HttpBatchSourceOptions>;

  constructor(
    url: string,
    { timeoutMs = 60_000, retries = 10, maxWaitMs = 60_000 }: HttpBatchSourceOptions = {},
  ) {
    this.name = url.replace(/\/+$/, "");
    this.#options = { timeoutMs, retries, maxWaitMs };
  }

  async batchData(
    mode: Mode,
    batchNumber: number,
    signal?: AbortSignal,
  ): Promise<Uint8Array | null> {
    const { timeoutMs, retries, maxWaitMs } = this.#options;
    const url = `${this.name}/public/v1/batches/${batchIdOf(mode, batchNumber)}/data`;
    for (let attempt = 1; ; attempt++) {
      const late = AbortSignal.timeout(timeoutMs);
      const response = await fetch(url, {
        redirect: "error",
        signal: signal ? AbortSignal.any([late, signal]) : late,
      });
      if (response.ok) return readBody(response, MAX_DATA_BYTES[mode]);
      await response.body?.cancel();
      if (response.status === 404) return null;
      const wait =
        retryAfterMs(response.headers.get("retry-after")) ?? backoffDelay(BACKOFF, attempt);
      const later = response.status === 429 || response.status === 503;
      if (!later || attempt > retries || wait > maxWaitMs)
        throw new MintmarkError("proof_not_ready", `${this.name} answered ${response.status}`);
      await pause(wait, signal);
    }
  }
}

/** The whole body of a response. Rejects as soon as it exceeds `most` bytes. */
export async function readBody(response: Response, most: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response.body ?? []) {
    length += chunk.length;
    if (length > most) throw new RangeError(`the response is longer than ${most} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, length);
}

/** Which blobs a commit has, and where the beacon chain keeps them. */
export interface BlobPlace {
  /**
   * Root of the beacon block; on a chain without a beacon chain, the hash of the commit's block.
   */
  readonly beaconBlock: Hash;
  /** EIP-4844 hashes of the blobs. */
  readonly versionedHashes: readonly Hash[];
}

/** A source of blobs. All of them are checked. */
export interface BlobSource {
  /** Error messages name the source by this. It holds no secret part of an address. */
  readonly name: string;
  /**
   * Blobs of 131,072 bytes, in any order; those that nobody asked for are ignored. Empty when it
   * has none.
   */
  blobs(place: BlobPlace, signal?: AbortSignal): Promise<readonly Uint8Array[]>;
}

// More blobs than one block has. Nodes may answer with all of a block's blobs.
const MAX_BLOBS = 128;
// Two characters a byte, and quotes
const MAX_ANSWER_BYTES = MAX_BLOBS * (2 * BLOB_BYTES + 16) + 4_096;

/**
 * A beacon node: `GET /eth/v1/beacon/blobs/{block_id}`. Nodes drop blobs after about 18 days; one
 * that custodies all columns, or half of them (a supernode or a semi-supernode), has the whole
 * blobs until then.
 *
 * @example
 * await rebuild({ archive, l1, fromBlock, blobs: [new BeaconNode("https://beacon.example")],
 * sources });
 */
export class BeaconNode implements BlobSource {
  readonly name: string;
  readonly #url: string;
  readonly #timeoutMs: number;

  /** @param timeoutMs - of one answer; default 20,000 */
  constructor(url: string, { timeoutMs = 20_000 }: { readonly timeoutMs?: number } = {}) {
    // Providers put keys into paths and queries.
    this.name = `the beacon node ${new URL(url).host}`;
    this.#url = url;
    this.#timeoutMs = timeoutMs;
  }

  async blobs(
    { beaconBlock, versionedHashes }: BlobPlace,
    signal?: AbortSignal,
  ): Promise<readonly Uint8Array[]> {
    const blobs: Uint8Array[] = [];
    for (const hash of versionedHashes) {
      const found = await this.#ask(beaconBlock, hash, signal);
      blobs.push(...found);
      // None: the node lacks the block. Several: it gives all of the block's blobs, whatever it is
      // asked.
      if (found.length !== 1) break;
    }
    return blobs;
  }

  /** One hash a question: nodes read a list of them in different ways. */
  async #ask(
    beaconBlock: Hash,
    hash: Hash,
    signal: AbortSignal | undefined,
  ): Promise<readonly Uint8Array[]> {
    const url = new URL(this.#url);
    url.pathname = `${url.pathname.replace(/\/+$/, "")}/eth/v1/beacon/blobs/${beaconBlock}`;
    url.searchParams.append("versioned_hashes", hash);
    const late = AbortSignal.timeout(this.#timeoutMs);
    const response = await fetch(url, {
      headers: { accept: "application/json" },
      redirect: "error",
      signal: signal ? AbortSignal.any([late, signal]) : late,
    });
    if (!response.ok) {
      await response.body?.cancel();
      if (response.status === 404) return [];
      throw new MintmarkError("proof_not_ready", `${this.name} answered ${response.status}`);
    }
    return blobsOf(
      JSON.parse(new TextDecoder().decode(await readBody(response, MAX_ANSWER_BYTES))),
    );
  }
}

/** The blobs of a beacon node's answer. Throws `validation_failed` for any other form. */
function blobsOf(answer: { readonly data?: unknown } | null): Uint8Array[] {
  const blobs = answer?.data;
  if (!Array.isArray(blobs) || blobs.length > MAX_BLOBS)
    throw invalid("the answer is not a list of blobs");
  return blobs.map((blob) => hexToBytes(String(blob), BLOB_BYTES));
}

/**
 * A folder with a file of 131,072 bytes for each blob, named by its versioned hash: `0x01….blob`.
 *
 * @example
 * await rebuild({ archive, l1, fromBlock, blobs: [new BlobFolder("./blobs")], sources });
 */
export class BlobFolder implements BlobSource {
  readonly name: string;
  readonly #folder: string;

  constructor(folder: string) {
    this.name = `the folder ${folder}`;
    this.#folder = folder;
  }

  async blobs({ versionedHashes }: BlobPlace): Promise<readonly Uint8Array[]> {
    const found = await Promise.all([...new Set(versionedHashes)].map((hash) => this.#read(hash)));
    return found.filter((blob) => blob !== null);
  }

  async #read(hash: Hash): Promise<Uint8Array | null> {
    const path = join(this.#folder, `${hash}.blob`);
    const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return null;
      throw error;
    });
    if (found === null) return null;
    if (found.size === BLOB_BYTES) return readFile(path);
    throw invalid(`${hash}.blob has ${found.size} bytes, not ${BLOB_BYTES}`);
  }
}
