import type { Address, Hash, Hex } from "../../model.ts";
import { HelperThread } from "../../thread.ts";
import { transferSigner } from "../transfer-rules.ts";

/** The first signatures are found on the caller's thread: so few do not pay for another. */
const FIRST_HERE = 8;
/** Questions of one message. More would keep the first ones waiting. */
const MOST_AT_ONCE = 64;
const SIGNATURE = /^0x[0-9a-f]{128}$/;
/** Beside the source file, or beside its compiled form. */
const WORKER = new URL(
  `./signer-worker.${import.meta.url.endsWith(".ts") ? "ts" : "js"}`,
  import.meta.url,
);

/** 64 bytes `r ‖ vs`, and what they sign. */
export interface SignedDigest {
  readonly digest: Hash;
  readonly signature: Hex;
}

/** The account behind each signature; null for none. */
export type SignerAddresses = readonly (Address | null)[];

/**
 * Finds the accounts behind signatures on a thread: one takes half a millisecond. The thread starts
 * with the ninth.
 */
export class SignerThread extends HelperThread<readonly SignedDigest[], SignerAddresses> {
  #count = 0;
  /** The next message, which waits for the answer to the one before. */
  #next: { readonly list: SignedDigest[]; readonly signers: Promise<SignerAddresses> } | null =
    null;
  #last: Promise<unknown> = Promise.resolve();

  /** @param script - the thread's code; default this library's own */
  constructor(script: URL = WORKER) {
    super(script, "mintmark-signers", (list) =>
      Promise.all(list.map(({ digest, signature }) => transferSigner(digest, signature))),
    );
  }

  /** Runs `transferSigner` on the thread. Rejects with `engine_closed`. */
  async recover(digest: Hash, signature: Hex): Promise<Address | null> {
    this.requireOpen();
    if (!SIGNATURE.test(signature)) return null;
    if (++this.#count <= FIRST_HERE) return transferSigner(digest, signature);
    this.#next ??= this.#begun();
    const { list, signers } = this.#next;
    const place = list.push({ digest, signature }) - 1;
    if (list.length === MOST_AT_ONCE) this.#next = null;
    return (await signers)[place] ?? null;
  }

  #begun() {
    const list: SignedDigest[] = [];
    const signers = this.#last.then(() => {
      if (this.#next?.list === list) this.#next = null;
      return this.ask(list);
    });
    this.#last = signers.catch(() => {});
    return { list, signers };
  }
}
