import { keccak256, type LocalAccount, type TransactionReceipt } from "viem";
import {
  estimateFeesPerGas,
  getTransaction,
  getTransactionCount,
  sendRawTransaction,
} from "viem/actions";
import { orAborted } from "../abort.ts";
import { Turns } from "../at-once.ts";
import { type Backoff, backoffDelay, pause } from "../backoff.ts";
import { MintmarkError } from "../errors.ts";
import { TRANSFER_GAS } from "../gas.ts";
import type { Hash, Hex } from "../model.ts";
import type { L1SendOptions } from "../ports.ts";
import type { ProofForm } from "../protocol/kzg/kzg-thread.ts";
import type { Call, Sender } from "./account.ts";
import { blobBaseFee } from "./blob-fee.ts";
import { BlobSidecar } from "./blob-sidecar.ts";
import { minedReceipt } from "./chain.ts";
import { isBusy, isLimited, isRefusal, type L1Connection } from "./connection.ts";
import {
  type CallKind,
  cappedFees,
  capReached,
  capsOf,
  type FeeOptions,
  type Fees,
  higherFees,
} from "./fees.ts";
import { reasonOf } from "./reason.ts";

const REPLACE_AFTER_MS = 60_000;
/**
 * The price of blob gas can double in six blocks. Whatever is offered, the block's own price is
 * paid.
 */
const BLOB_FEE_MARGIN = 2n;
/**
 * Most transactions under way. Nodes keep at least 16 of an account, and count a large one for up
 * to four.
 */
const MOST_UNDER_WAY = 8;
/**
 * Retries to hand over a raw transaction after a lost answer. The hash is known, so a repeat is
 * harmless.
 */
const RESEND: Backoff = { firstMs: 200, maxMs: 2_000 };
const RESENDS = 4;

/** Nodes can count a block's transactions a moment before they have its receipts. */
const RECEIPT_GRACE_MS = 1_000;

/**
 * The fate of a raw transaction that a node was given. `outbid`: another one is pending at its
 * nonce and pays too much for this one.
 */
type Answer = "taken" | "nonceUsed" | "outbid" | "refused";

interface Verdict {
  readonly answer: Answer;
  /** The node's refusal, unless the transaction is there or its nonce is used. */
  readonly error?: unknown;
}

/** A transaction in the form that nodes take. */
interface SignedTransaction {
  readonly hash: Hash;
  readonly raw: Hex;
  readonly nonce: number;
}

/**
 * Hints at why a node refused a raw transaction, in the words of geth, Erigon, Nethermind, Besu and
 * Reth. Facts come first: see {@link TransactionSender}. `conflict` is a pending transaction of the
 * other kind.
 */
const HINTS: readonly (readonly [Answer | "conflict" | "broke", RegExp])[] = [
  ["taken", /already ?(?:known|imported|exists)|known transaction/i],
  ["nonceUsed", /nonce (?:is )?too low|oldnonce/i],
  ["conflict", /already reserved|conflict|can't replace blob/i],
  ["broke", /insufficient ?funds|enough funds|upfront cost/i],
  [
    "outbid",
    /underpriced|(?:fee|gas ?price) ?too ?low|could not replace|replacement ?not ?allowed/i,
  ],
];

/** A transaction that a node has taken, with its own nonce. */
interface Flight {
  readonly nonce: number;
  /** Whether L1 used its nonce; false when it was given up. Never rejects. */
  readonly ended: Promise<boolean>;
}

/** A call with its nonce and the fees offered so far. */
interface Offer {
  readonly call: Call;
  readonly nonce: number;
  readonly sent: Hash[];
  fees: Fees;
  readonly caps: FeeOptions;
}

/** Another transaction took the nonce. Those behind it can still be mined. */
class NonceTaken extends MintmarkError {}

/** The nodes hold pending transactions of the account of the other kind. */
class KindConflict extends MintmarkError {}

/** No higher fee may be offered. */
class CapReached extends MintmarkError {}

/**
 * Sends the transactions of one account in the order of the calls, a few under way at once, each
 * with its own nonce. Only the first one is watched and replaced when it is late, because L1 mines
 * them in order. When it is given up, so are those behind it. The next call starts again at the
 * account's lowest free nonce.
 *
 * Plain transactions and those with blobs take turns, because nodes refuse an account's transaction
 * of one kind while the other is pending. One account suffices then, and the chain keeps the order
 * of commits of both kinds. A turn costs about a block, and blob commits are minutes apart.
 * Transactions of the other kind that nobody here waits for, and that are late, are used up first.
 *
 * Clients word a refusal in many ways, so facts tell what it means: whether a node has this very
 * transaction, whether the nonce is used, and whether another transaction is pending at it. Words
 * are a hint where the facts of one node tell nothing, since another one may have refused.
 *
 * A transaction that was given up may still be mined. So L1 must take each call only once, whatever
 * its nonce: a commit names the history that it follows, and a withdrawal names what was withdrawn
 * before it.
 */
export class TransactionSender implements Sender {
  readonly #connection: L1Connection;
  readonly #account: LocalAccount;
  readonly #fees: FeeOptions;
  /** Under way, by ascending nonce without a gap. */
  #flights: readonly Flight[] = [];
  /** The kind of the transactions under way. */
  #kind: CallKind = "plain";
  /** The first nonce that was never used here. */
  #unused = 0;
  /** The wrapper that the chain's nodes took last. */
  #form: ProofForm = "cells";
  readonly #turns = new Turns();

  constructor(connection: L1Connection, account: LocalAccount, fees: FeeOptions) {
    this.#connection = connection;
    this.#account = account;
    this.#fees = fees;
  }

  /**
   * Rejects with `l1_failed` when it, or one before it, is not mined at the highest allowed fee. It
   * stays at the nodes, and the next send waits for it or replaces it. `prepare` makes the call
   * from L1's newest state; when it rejects, nothing is sent.
   */
  async send(prepare: () => Promise<Call>, options: L1SendOptions = {}, kind: CallKind = "plain") {
    // Wrapped in an object: the turn ends when the transaction is handed over.
    const { mined } = await this.#turns.run(() => this.#takeOff(prepare, options, kind));
    return mined;
  }

  /**
   * Waits for transactions of an earlier process, or given up; one may be the very call to be sent
   * next. Resolves when they are mined, or so late that they must be replaced. Returns whether
   * there were any.
   */
  async earlierMined(signal?: AbortSignal): Promise<boolean> {
    const deadline = performance.now() + this.#patience;
    for (let waited = false; ; waited = true) {
      if (this.#flights.length > 0 || !(await this.#isPending()) || performance.now() >= deadline)
        return waited;
      await pause(this.#connection.pollingMs, signal);
    }
  }

  /**
   * Once the block of the receipt is final, nothing that any process of this account sent before
   * can be mined.
   */
  async useUpNonces(options: L1SendOptions): Promise<TransactionReceipt> {
    const call = this.#emptyCall("plain");
    const count = Math.max(MOST_UNDER_WAY, this.#unused - (await this.#nonce("latest")));
    const receipts = Array.from({ length: count }, () => this.send(async () => call, options));
    await Promise.allSettled(receipts);
    return (await Promise.all(receipts)).at(-1) as TransactionReceipt;
  }

  async #takeOff(
    prepare: () => Promise<Call>,
    options: L1SendOptions,
    kind: CallKind,
  ): Promise<{ readonly mined: Promise<TransactionReceipt> }> {
    const { signal } = options;
    signal?.throwIfAborted();
    if (this.#kind !== kind)
      await orAborted(Promise.all(this.#flights.map(({ ended }) => ended)), signal);
    this.#kind = kind;
    const [first] = this.#flights;
    if (first !== undefined && this.#flights.length >= MOST_UNDER_WAY)
      await orAborted(first.ended, signal);
    await this.earlierMined(signal);
    const before = this.#flights.at(-1) ?? null;
    const offer = await this.#launch(prepare, before, options, kind);
    const mined = this.#mined(offer, before, options);
    const ended = mined.then(
      () => true,
      (error) => error instanceof NonceTaken,
    );
    const flight = { nonce: offer.nonce, ended };
    this.#flights = [...this.#flights, flight];
    void ended.then(() => {
      this.#flights = this.#flights.filter((each) => each !== flight);
    });
    return { mined };
  }

  async #launch(
    prepare: () => Promise<Call>,
    before: Flight | null,
    options: L1SendOptions,
    kind: CallKind,
    isRepeated = false,
  ): Promise<Offer> {
    const offer = await this.#offer(await prepare(), before);
    try {
      await this.#make(offer, options);
    } catch (error) {
      const isOutbid = error instanceof CapReached && offer.sent.length === 0;
      if ((error instanceof KindConflict || isOutbid) && before === null && !isRepeated) {
        if (isOutbid) await this.#makeWayUnheard(kind, options, error);
        else await this.#makeWay(kind, options);
        return this.#launch(prepare, before, options, kind, true);
      }
      // Nodes limit an account's transactions by number or balance. Alone, this one may be taken.
      if (
        before === null ||
        offer.sent.length > 0 ||
        !(await orAborted(before.ended, options.signal))
      )
        throw error;
      await this.#make(offer, options);
    }
    return offer;
  }

  async #offer(call: Call, before: Flight | null): Promise<Offer> {
    const { client } = this.#connection;
    const gasFees = await estimateFeesPerGas(client);
    const blobFee = call.blobs && {
      maxFeePerBlobGas: BLOB_FEE_MARGIN * (await blobBaseFee(this.#connection)),
    };
    const estimate: Fees = { ...gasFees, ...blobFee };
    const nonce = before === null ? await this.#nonce("latest") : before.nonce + 1;
    this.#unused = Math.max(this.#unused, nonce + 1);
    const caps = capsOf(estimate, this.#fees);
    return { call, nonce, fees: cappedFees(estimate, caps), caps, sent: [] };
  }

  /**
   * Uses up the pending nonces of transactions of the other kind, which an earlier process left or
   * this one gave up. Only their own kind can replace them.
   */
  async #makeWay(kind: CallKind, options: L1SendOptions): Promise<void> {
    const call = this.#emptyCall(kind === "plain" ? "blobs" : "plain");
    while (await this.#isPending()) {
      const offer = await this.#offer(call, null);
      await this.#make(offer, { ...options, onSent: () => {} });
      await this.#mined(offer, null, options).catch((error) => {
        // One of those that were to be replaced was mined, which is as good.
        if (!(error instanceof NonceTaken)) throw error;
      });
    }
  }

  /**
   * Makes way for an offer that was outbid up to its cap: by its own kind, or the nodes have
   * unheard words for a conflict of kinds. Rejects with `error` when there is no way.
   */
  async #makeWayUnheard(kind: CallKind, options: L1SendOptions, error: CapReached): Promise<void> {
    if (!(await this.#isPending())) throw error;
    await this.#makeWay(kind, options).catch((failure) => {
      throw failure instanceof MintmarkError ? error : failure;
    });
  }

  #emptyCall(kind: CallKind): Call {
    const call = { to: this.#account.address, data: "0x", gas: TRANSFER_GAS } as const;
    return kind === "plain" ? call : { ...call, blobs: BlobSidecar.empty() };
  }

  /** The offer is raised until it is mined. */
  async #mined(
    offer: Offer,
    before: Flight | null,
    options: L1SendOptions,
  ): Promise<TransactionReceipt> {
    const { nonce, sent } = offer;
    const isNext = before === null || (await before.ended);
    for (;;) {
      options.signal?.throwIfAborted();
      if (!isNext) throw this.#stuck(nonce, "neither is one before it");
      const receipt = await this.#received(sent, nonce, options.signal);
      if (receipt) return receipt;
      // At the cap one can only wait. The caller decides that, because it has other work meanwhile.
      this.#raise(offer);
      await this.#make(offer, options);
    }
  }

  /** Offers more. @param refusal - the node's words about the present offer */
  #raise(offer: Offer, refusal?: string): void {
    const kind = kindOf(offer.call);
    const higher = higherFees(offer.fees, kind, offer.caps);
    const said = refusal === undefined ? "" : `; the node said: ${refusal}`;
    if (higher === null)
      throw this.#stuck(offer.nonce, capReached(kind, offer.caps) + said, CapReached);
    offer.fees = higher;
  }

  #stuck(nonce: number, why: string, Failure = MintmarkError): MintmarkError {
    const what = `what ${this.#account.address} has sent under nonce ${nonce}`;
    return new Failure("l1_failed", `${what} is not mined, and ${why}`);
  }

  /**
   * Signs and hands over the current offer, unless this very transaction is there already. A first
   * offer is raised until it replaces what is pending at its nonce.
   */
  async #make(offer: Offer, options: L1SendOptions): Promise<void> {
    for (;;) {
      options.signal?.throwIfAborted();
      const signed = await this.#signed(offer);
      if (offer.sent.includes(signed.hash)) return;
      const { answer, error } = await this.#handOver(signed, offer.call.blobs, options.signal);
      if (answer === "refused") throw error;
      if (answer !== "outbid") {
        offer.sent.push(signed.hash);
        // If the nonce is used, this transaction or another one used it. The receipts will tell.
        if (answer === "taken") await options.onSent?.(signed.hash);
        return;
      }
      // Later offers are raised with time, because one of them may be mined.
      if (offer.sent.length > 0) return;
      this.#raise(offer, reasonOf(error));
    }
  }

  async #signed({ call, nonce, fees }: Offer): Promise<SignedTransaction> {
    const { blobs, ...plain } = call;
    const { maxFeePerBlobGas = 0n, ...gasFees } = fees;
    const chainId = Number(this.#connection.settlement.chainId);
    const tx = { chainId, nonce, ...plain, ...gasFees };
    const raw = await this.#account.signTransaction(
      blobs === undefined
        ? { ...tx, type: "eip1559" }
        : {
            ...tx,
            type: "eip4844",
            maxFeePerBlobGas,
            blobVersionedHashes: blobs.versionedHashes,
            sidecars: false,
          },
    );
    return { hash: keccak256(raw), raw, nonce };
  }

  /**
   * A chain takes one wrapper of blobs only, and nodes name the reason of a refusal in many ways.
   * So a refused transaction is offered in the other wrapper, and the taken one is kept.
   */
  async #handOver(
    signed: SignedTransaction,
    blobs: BlobSidecar | undefined,
    signal?: AbortSignal,
  ): Promise<Verdict> {
    if (blobs === undefined) return this.#submit(signed, signal);
    const submit = async (form: ProofForm) =>
      this.#submit({ ...signed, raw: await blobs.wrap(signed.raw, form) }, signal);
    const isRefused = ({ answer }: Verdict) => answer === "refused" || answer === "outbid";
    try {
      const verdict = await submit(this.#form);
      if (!isRefused(verdict)) return verdict;
      const other: ProofForm = this.#form === "cells" ? "blob" : "cells";
      const second = await submit(other);
      if (!isRefused(second)) this.#form = other;
      return isRefused(second) ? withoutRequest(verdict) : second;
    } catch (error) {
      if (error instanceof MintmarkError || signal?.aborted) throw error;
      throw withoutRequest({ answer: "refused", error }).error;
    }
  }

  async #submit(signed: SignedTransaction, signal?: AbortSignal): Promise<Verdict> {
    const { client } = this.#connection;
    for (let attempt = 1; ; attempt++) {
      try {
        await sendRawTransaction(client, { serializedTransaction: signed.raw });
        return { answer: "taken" };
      } catch (error) {
        const answer = await this.#found(signed, error);
        if (answer !== null) return { answer, error };
        if (attempt > RESENDS) {
          // Some nodes refuse with the code of their own faults. A limit says nothing about it.
          const isRefused = isRefusal(error) && !isLimited(error);
          if (isRefused && (await this.#isHeld(signed))) return { answer: "outbid", error };
          throw error;
        }
        await pause(backoffDelay(RESEND, attempt), signal);
      }
    }
  }

  /**
   * The fate of a failed attempt, by the chain and the node's words; null when it may be repeated.
   */
  async #found({ hash, nonce }: SignedTransaction, error: unknown): Promise<Answer | null> {
    const unknown = () => null;
    const known = await getTransaction(this.#connection.client, { hash }).catch(unknown);
    if (known !== null) return "taken";
    const used = await this.#nonce("latest").catch(unknown);
    if (used !== null && used > nonce) return "nonceUsed";
    const words = reasonOf(error);
    const hint = HINTS.find(([, some]) => some.test(words))?.[0];
    if (hint === "conflict") throw new KindConflict("l1_failed", words);
    if (hint === "broke") throw error;
    if (hint !== undefined) return hint;
    if (!isRefusal(error) || isBusy(error)) return null;
    return (await this.#isHeld({ nonce })) ? "outbid" : "refused";
  }

  /** Whether a transaction of the account is pending at this nonce, as far as a node tells. */
  async #isHeld({ nonce }: Pick<SignedTransaction, "nonce">): Promise<boolean> {
    const next = await this.#nonce("pending").catch(() => null);
    return next !== null && next > nonce;
  }

  /**
   * The receipt of the account's offer that was mined; null when none was for so long that a higher
   * fee is due.
   */
  async #received(
    sent: readonly Hash[],
    nonce: number,
    signal?: AbortSignal,
  ): Promise<TransactionReceipt | null> {
    const deadline = performance.now() + this.#patience;
    const grace = Math.min(RECEIPT_GRACE_MS, this.#patience / 2);
    let lowestFree = 0;
    let usedAt: number | null = null;
    do {
      const wasUsed = usedAt !== null && performance.now() >= usedAt + grace;
      // Asked before the receipts: a nonce that was used by then shows in one of them, or another
      // transaction used it.
      lowestFree = await this.#nonce("latest");
      if (lowestFree > nonce) usedAt ??= performance.now();
      for (const hash of sent) {
        const receipt = await minedReceipt(this.#connection, hash);
        if (receipt !== null) return receipt;
      }
      if (wasUsed)
        throw new NonceTaken(
          "l1_failed",
          `another transaction of ${this.#account.address} took nonce ${nonce}`,
        );
      await pause(this.#connection.pollingMs, signal);
    } while (performance.now() < deadline);
    // A reorganisation took back what was mined before it. No fee helps.
    if (lowestFree < nonce) throw this.#stuck(nonce, `nonce ${lowestFree} is free again`);
    return null;
  }

  async #isPending(): Promise<boolean> {
    const [pending, latest] = await Promise.all([this.#nonce("pending"), this.#nonce("latest")]);
    return pending > latest;
  }

  #nonce(blockTag: "latest" | "pending"): Promise<number> {
    return getTransactionCount(this.#connection.client, {
      address: this.#account.address,
      blockTag,
    });
  }

  get #patience(): number {
    return this.#fees.replaceAfterMs ?? REPLACE_AFTER_MS;
  }
}

/** viem's error holds the whole request: megabytes of hex, which nobody should find in a log. */
function withoutRequest({ answer, error }: Verdict): Verdict {
  return { answer, error: new MintmarkError("l1_failed", reasonOf(error)) };
}

function kindOf({ blobs }: Call): CallKind {
  return blobs === undefined ? "plain" : "blobs";
}
