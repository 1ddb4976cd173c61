import type { MessagePort, Worker } from "node:worker_threads";
import type { Hex } from "../model.ts";
import type { KeyRange, StoreOperation, StoreReader } from "../store/ports.ts";
import { errorOf, type Failure } from "../thread.ts";
import type { CommitToBlob } from "./reference-derive.ts";
import type { Target } from "./restore-records.ts";

/**
 * A thread asks the thread of the store. Keys and values are packed, because a copy of a view would
 * be a copy of the whole memory behind it:
 *
 * ```
 * packed = *( length:4 bytes )      length 0xffffffff: none
 * ```
 */
export type StoreQuestion =
  | { readonly type: "getMany"; readonly keys: Uint8Array<ArrayBuffer> }
  | { readonly type: "open"; readonly range: KeyRange }
  | { readonly type: "next" | "close"; readonly scan: number }
  /** Keys and values in turn. */
  | { readonly type: "write"; readonly records: Uint8Array<ArrayBuffer> }
  | { readonly type: "commit"; readonly blob: Uint8Array };

export type StoreAnswer = Uint8Array<ArrayBuffer> | number | Hex | null;

/** A question as one thread posts it to the other. */
export interface QuestionMessage {
  readonly id: number;
  readonly question: StoreQuestion;
}

/** The answer to the question of the same id. */
export interface AnswerMessage {
  readonly id: number;
  readonly answer: StoreAnswer;
  readonly failure: Failure | null;
}

const NONE = 0xffff_ffff;
const SCAN_BYTES = 256 * 1024; // Bytes of a scan that an answer holds

function packed(all: readonly (Uint8Array | undefined)[]): Uint8Array<ArrayBuffer> {
  const bytes = all.reduce((sum, each) => sum + 4 + (each?.length ?? 0), 0);
  const result = new Uint8Array(bytes);
  const view = new DataView(result.buffer);
  let at = 0;
  for (const each of all) {
    view.setUint32(at, each?.length ?? NONE);
    at += 4;
    if (each === undefined) continue;
    result.set(each, at);
    at += each.length;
  }
  return result;
}

function unpacked(bytes: Uint8Array<ArrayBuffer>): (Buffer | undefined)[] {
  const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const found: (Buffer | undefined)[] = [];
  for (let at = 0; at < all.length; ) {
    const length = all.readUInt32BE(at);
    at += 4;
    found.push(length === NONE ? undefined : all.subarray(at, at + length));
    if (length !== NONE) at += length;
  }
  return found;
}

/** Answers questions about a store's snapshot, or writes into a store that is being restored. */
export class StoreAnswers {
  readonly #store: StoreReader | Target;
  readonly #commit: CommitToBlob;
  readonly #scans = new Map<number, AsyncIterator<[Buffer, Buffer]>>();
  #opened = 0;

  constructor(store: StoreReader | Target, commit: CommitToBlob) {
    this.#store = store;
    this.#commit = commit;
  }

  async answer(question: StoreQuestion): Promise<StoreAnswer> {
    if (question.type === "commit") return this.#commit(question.blob);
    if (question.type === "getMany") {
      const keys = unpacked(question.keys).flatMap((key) => key ?? []);
      return packed(await this.#store.getMany(keys));
    }
    if (question.type === "write") return this.#write(unpacked(question.records) as Buffer[]);
    if (question.type === "open") return this.#open(question.range);
    const scan = this.#scans.get(question.scan);
    if (question.type === "close") {
      await scan?.return?.();
      this.#scans.delete(question.scan);
      return null;
    }
    const found: Buffer[] = [];
    for (let bytes = 0; scan !== undefined && bytes < SCAN_BYTES; ) {
      const { value, done } = await scan.next();
      if (done === true) break;
      found.push(...value);
      bytes += value[0].length + value[1].length;
    }
    return packed(found);
  }

  async close(): Promise<void> {
    for (const scan of this.#scans.values()) await scan.return?.();
  }

  async #write(found: readonly Buffer[]): Promise<null> {
    if (!("write" in this.#store)) throw new Error("a snapshot takes no records");
    const operations: StoreOperation[] = [];
    for (let i = 0; i < found.length; i += 2)
      operations.push({ type: "put", key: found[i]!, value: found[i + 1]! });
    await this.#store.write(operations);
    return null;
  }

  #open(range: KeyRange): number {
    const bounds = Object.entries(range).map(([name, bound]) => [
      name,
      bound instanceof Uint8Array ? Buffer.from(bound) : bound,
    ]);
    this.#scans.set(
      ++this.#opened,
      this.#store.entries(Object.fromEntries(bounds))[Symbol.asyncIterator](),
    );
    return this.#opened;
  }
}

/** The store of another thread. It can be written to while it is restored. */
export class RemoteStore implements Target {
  readonly #port: MessagePort | Worker;
  readonly #asked = new Map<number, PromiseWithResolvers<StoreAnswer>>();
  #next = 0;

  constructor(port: MessagePort | Worker) {
    this.#port = port;
    port.on("message", ({ id, answer, failure }: AnswerMessage) => {
      const asked = this.#asked.get(id);
      this.#asked.delete(id);
      if (failure === null) asked?.resolve(answer);
      else asked?.reject(errorOf(failure));
    });
  }

  async get(key: Buffer): Promise<Buffer | undefined> {
    return (await this.getMany([key]))[0];
  }

  async getMany(keys: Buffer[]): Promise<(Buffer | undefined)[]> {
    if (keys.length === 0) return [];
    const answer = await this.#ask({ type: "getMany", keys: packed(keys) });
    return unpacked(answer as Uint8Array<ArrayBuffer>);
  }

  async *entries(range: KeyRange): AsyncGenerator<[Buffer, Buffer]> {
    const bounds = Object.entries(range).map(([name, bound]) => [
      name,
      bound instanceof Uint8Array ? new Uint8Array(bound) : bound,
    ]);
    const scan = Number(await this.#ask({ type: "open", range: Object.fromEntries(bounds) }));
    try {
      for (;;) {
        const found = unpacked(
          (await this.#ask({ type: "next", scan })) as Uint8Array<ArrayBuffer>,
        ) as Buffer[];
        if (found.length === 0) return;
        for (let i = 0; i < found.length; i += 2) yield [found[i]!, found[i + 1]!];
      }
    } finally {
      await this.#ask({ type: "close", scan });
    }
  }

  async write(operations: readonly StoreOperation[]): Promise<void> {
    const records = packed(
      operations.flatMap((one) => {
        if (one.type === "del") throw new Error("a restored store loses no record");
        return [one.key, one.value];
      }),
    );
    await this.#ask({ type: "write", records });
  }

  async commitment(blob: Uint8Array): Promise<Hex> {
    return (await this.#ask({ type: "commit", blob: new Uint8Array(blob) })) as Hex;
  }

  #ask(question: StoreQuestion): Promise<StoreAnswer> {
    const asked = Promise.withResolvers<StoreAnswer>();
    const id = this.#next++;
    this.#asked.set(id, asked);
    this.#port.postMessage({ id, question } satisfies QuestionMessage);
    return asked.promise;
  }
}
