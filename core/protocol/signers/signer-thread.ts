import type { Worker } from "node:worker_threads";
import { MintmarkError } from "../../errors.ts";
import type { Address, Hash, Hex } from "../../model.ts";
import { brokenThread, helperThread } from "../../thread.ts";
import { bytesToHex, HASH_BYTES, hexToBytes } from "../hex.ts";
import { transferSigner } from "../transfer-rules.ts";
import { ANSWER_BYTES, QUESTION_BYTES } from "./signer-bytes.ts";

/** The first signatures are found on the caller's thread: so few do not pay for another. */
const FIRST_HERE = 8;
/** Questions of one message. More would keep the first ones waiting. */
const MOST_AT_ONCE = 64;
const NAME = "mintmark-signers";
const SIGNATURE = /^0x[0-9a-f]{128}$/;

interface Waiting {
  readonly digest: Hash;
  readonly signature: Hex;
  readonly resolve: (signer: Address | null) => void;
  readonly reject: (reason: unknown) => void;
}

/** Beside the source file, or beside its compiled form. */
const WORKER = new URL(`./signer-worker.${import.meta.url.endsWith(".ts") ? "ts" : "js"}`, import.meta.url);

/**
 * Finds the accounts behind signatures on a thread, so that the event loop goes on: one takes half a millisecond. The
 * thread starts with the ninth signature and never keeps the process alive when idle. Before that, and after it died, the
 * caller's thread finds them itself.
 */
export class SignerThread {
  readonly #script: URL;
  #worker: Worker | null = null;
  #fault: Error | null = null;
  #closed = false;
  /** Given to the thread, which answers in this order. */
  #asked: readonly Waiting[] = [];
  #waiting: Waiting[] = [];
  #count = 0;

  /** @param script - the thread's code; default this library's own */
  constructor(script: URL = WORKER) {
    this.#script = script;
  }

  /** Why the caller's thread finds all signatures; null while this thread runs, or can. */
  get fault(): Error | null {
    return this.#fault;
  }

  /** As `transferSigner`. Rejects with `engine_closed`. */
  recover(digest: Hash, signature: Hex): Promise<Address | null> {
    if (this.#closed) return Promise.reject(new MintmarkError("engine_closed"));
    if (!SIGNATURE.test(signature)) return Promise.resolve(null);
    const worker = ++this.#count <= FIRST_HERE ? null : this.#started();
    if (worker === null) return transferSigner(digest, signature);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ digest, signature, resolve, reject });
      if (this.#asked.length === 0) this.#ask(worker);
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const { reject } of this.#taken()) reject(new MintmarkError("engine_closed"));
    await this.#worker?.terminate();
  }

  #started(): Worker | null {
    if (this.#worker !== null || this.#fault !== null) return this.#worker;
    const answered = (worker: Worker, answers: Uint8Array) => this.#answered(worker, answers);
    this.#worker = helperThread(this.#script, NAME, answered, (cause) => this.#died(cause));
    return this.#worker;
  }

  #ask(worker: Worker): void {
    this.#asked = this.#waiting.splice(0, MOST_AT_ONCE);
    const questions = new Uint8Array(this.#asked.length * QUESTION_BYTES);
    for (const [i, { digest, signature }] of this.#asked.entries()) {
      questions.set(hexToBytes(digest), i * QUESTION_BYTES);
      questions.set(hexToBytes(signature), i * QUESTION_BYTES + HASH_BYTES);
    }
    worker.ref();
    worker.postMessage(questions, [questions.buffer]);
  }

  #answered(worker: Worker, answers: Uint8Array): void {
    // The end of a thread keeps the process alive, which `unref` would undo.
    if (this.#closed) return;
    const asked = this.#asked;
    this.#asked = [];
    if (this.#waiting.length > 0) this.#ask(worker);
    else worker.unref();
    for (const [i, { resolve }] of asked.entries()) {
      const answer = answers.subarray(i * ANSWER_BYTES, (i + 1) * ANSWER_BYTES);
      resolve(answer[0] === 1 ? (bytesToHex(answer.subarray(1)) as Address) : null);
    }
  }

  #died(cause?: unknown): void {
    this.#worker = null;
    if (!this.#closed) this.#fault ??= brokenThread(NAME, cause);
    for (const { digest, signature, resolve, reject } of this.#taken())
      transferSigner(digest, signature).then(resolve, reject);
  }

  #taken(): Waiting[] {
    const taken = [...this.#asked, ...this.#waiting];
    this.#asked = [];
    this.#waiting = [];
    return taken;
  }
}
