import { keccak256, type LocalAccount, type TransactionReceipt, TransactionReceiptNotFoundError } from "viem";
import { orAborted } from "../abort.ts";
import { type Backoff, backoffDelay, pause } from "../backoff.ts";
import { MintmarkError } from "../errors.ts";
import type { Address, Hash, Hex } from "../model.ts";
import type { L1SendOptions } from "../ports.ts";
import type { FeeOptions, L1Connection } from "./connection.ts";

/** A call that is ready to be signed. */
export interface Call {
  readonly to: Address;
  readonly data: Hex;
  readonly gas: bigint;
}

interface Fees {
  readonly maxFeePerGas: bigint;
  readonly maxPriorityFeePerGas: bigint;
}

const REPLACE_AFTER_MS = 60_000;
/** Nodes take a replacement only for at least a tenth more. */
const LEAST_BUMP_PERCENT = 110n;
const BUMP_PERCENT = 125n;
/**
 * Transactions of one account that may be under way. Nodes keep at least 16 of an account, and count a large one for up to four of them.
 */
const MOST_UNDER_WAY = 8;
/** What a transaction without data to a plain account takes. */
export const TRANSFER_GAS = 21_000n;
/** How a raw transaction is handed over again when the answer was lost; the hash is known, so repeating does no harm. */
const RESEND: Backoff = { firstMs: 200, maxMs: 2_000 };
const RESENDS = 4;

/** What nodes say, in their various words, when they refuse a raw transaction. */
const KNOWN = /already known|known transaction|already imported|already exists/i;
const UNDERPRICED = /underpriced|fee too low|gas price too low/i;
const BROKE = /insufficient funds|enough funds/i;
const NONCE_USED = /nonce (?:is )?too low|nonce too low/i;

/** A transaction that a node has taken, under a nonce of its own. */
interface Flight {
  readonly nonce: number;
  /** Whether its nonce is used on L1; false when it was given up. Never rejects. */
  readonly ended: Promise<boolean>;
}

/** A call with its nonce, and what was offered for it. */
interface Offer {
  readonly call: Call;
  readonly nonce: number;
  readonly sent: Hash[];
  fees: Fees;
  /** Whether another transaction of the nonce pays more than the newest offer. */
  outbid: boolean;
}

/** Another transaction took the nonce. Those behind it can still be mined. */
class NonceTaken extends MintmarkError {}

/**
 * Sends the transactions of one account, a few under way at once, in the order of the calls: each has a nonce of its own. Only the first one
 * is watched, and replaced when it is not mined, since L1 mines them in order. When it is given up, so are those behind it: the next
 * call begins again at the account's lowest free nonce.
 *
 * What was given up may be mined all the same. So each call must be one that L1 takes once only, whatever nonce it has: a commit names the
 * history that it follows, and a withdrawal what was withdrawn before it.
 */
export class TransactionSender {
  readonly #connection: L1Connection;
  readonly #account: LocalAccount;
  readonly #fees: FeeOptions;
  /** Under way, by ascending nonce without a gap. */
  #flights: readonly Flight[] = [];
  /** The first nonce that nothing was ever sent under here. */
  #unused = 0;
  #last: Promise<unknown> = Promise.resolve();

  constructor(connection: L1Connection, account: LocalAccount, fees: FeeOptions) {
    this.#connection = connection;
    this.#account = account;
    this.#fees = fees;
  }

  /**
   * Resolves with the receipt of a mined transaction, whether it succeeded or reverted. Rejects with `l1_failed` when it, or one before it, is not
   * mined at the highest fee that may be offered; it stays where it was sent, and whoever sends next waits for it or replaces it.
   *
   * @param prepare - makes the call from L1's newest state; what it throws is passed on and nothing is sent
   */
  async send(prepare: () => Promise<Call>, options: L1SendOptions = {}): Promise<TransactionReceipt> {
    const turn = this.#last.then(() => this.#takeOff(prepare, options));
    this.#last = turn.catch(() => {});
    // In an object: the turn is over when the transaction is handed over.
    const { mined } = await turn;
    return mined;
  }

  /**
   * Waits for what nobody here waits for: an earlier process of this account has sent it, or it was given up. It may be the very call that is
   * to be sent next. Resolves when it is mined, or when it is so late that it must be replaced.
   *
   * @returns whether there was any
   */
  async earlierMined(signal?: AbortSignal): Promise<boolean> {
    const deadline = performance.now() + this.#patience;
    for (let waited = false; ; waited = true) {
      if (this.#flights.length > 0 || !(await this.#isPending()) || performance.now() >= deadline) return waited;
      await pause(this.#connection.pollingMs, signal);
    }
  }

  /**
   * Uses up every nonce that this account can have something under way with, whichever of its processes sent it. Once the block of the
   * receipt is final, nothing that was sent before can be mined any more.
   */
  async useUpNonces(options: L1SendOptions): Promise<TransactionReceipt> {
    const call: Call = { to: this.#account.address, data: "0x", gas: TRANSFER_GAS };
    const count = Math.max(MOST_UNDER_WAY, this.#unused - (await this.#nonce("latest")));
    const receipts = Array.from({ length: count }, () => this.send(async () => call, options));
    await Promise.allSettled(receipts);
    return (await Promise.all(receipts)).at(-1) as TransactionReceipt;
  }

  async #takeOff(
    prepare: () => Promise<Call>,
    options: L1SendOptions,
  ): Promise<{ readonly mined: Promise<TransactionReceipt> }> {
    const { signal } = options;
    signal?.throwIfAborted();
    const [first] = this.#flights;
    if (first !== undefined && this.#flights.length >= MOST_UNDER_WAY) await orAborted(first.ended, signal);
    await this.earlierMined(signal);
    const call = await prepare();
    const fees = this.#capped(await this.#connection.client.estimateFeesPerGas());
    const before = this.#flights.at(-1) ?? null;
    const nonce = before === null ? await this.#nonce("latest") : before.nonce + 1;
    this.#unused = Math.max(this.#unused, nonce + 1);
    const offer: Offer = { call, nonce, fees, sent: [], outbid: false };
    try {
      await this.#make(offer, options);
    } catch (error) {
      // Nodes bound what one account has under way, by number or by balance: alone it may be taken.
      if (before === null || offer.sent.length > 0 || !(await orAborted(before.ended, signal))) throw error;
      await this.#make(offer, options);
    }
    const mined = this.#mined(offer, before, options);
    const ended = mined.then(
      () => true,
      (error) => error instanceof NonceTaken,
    );
    const flight = { nonce, ended };
    this.#flights = [...this.#flights, flight];
    void ended.then(() => {
      this.#flights = this.#flights.filter((each) => each !== flight);
    });
    return { mined };
  }

  /** The receipt of an offer, which is raised until it is mined. */
  async #mined(offer: Offer, before: Flight | null, options: L1SendOptions): Promise<TransactionReceipt> {
    const { nonce, sent } = offer;
    const isNext = before === null || (await before.ended);
    for (;;) {
      options.signal?.throwIfAborted();
      if (!isNext) throw this.#stuck(nonce, "neither is one before it");
      const higher = this.#higher(offer.fees);
      if (offer.outbid && sent.length === 0 && higher === null) throw this.#stuck(nonce);
      const receipt = offer.outbid && sent.length === 0 ? null : await this.#received(sent, nonce, options.signal);
      if (receipt) return receipt;
      // At the cap there is nothing to offer but patience, which is the caller's: it has other things to do meanwhile.
      if (higher === null) throw this.#stuck(nonce);
      offer.fees = higher;
      await this.#make(offer, options);
    }
  }

  #stuck(nonce: number, why = `the fee cap of ${this.#fees.maxFeePerGas} wei is reached`): MintmarkError {
    const what = `what ${this.#account.address} has sent under nonce ${nonce}`;
    return new MintmarkError("l1_failed", `${what} is not mined, and ${why}`);
  }

  /** Signs and hands over the offer as it is now, unless this very transaction is there already. */
  async #make(offer: Offer, options: L1SendOptions): Promise<void> {
    const { call, nonce, fees, sent } = offer;
    const chainId = Number(this.#connection.settlement.chainId);
    const raw = await this.#account.signTransaction({ type: "eip1559", chainId, nonce, ...call, ...fees });
    const hash = keccak256(raw);
    offer.outbid = false;
    if (sent.includes(hash)) return;
    const answer = await this.#handOver(raw, options.signal);
    offer.outbid = answer === "outbid";
    if (offer.outbid) return;
    sent.push(hash);
    // If the nonce is used, this may be the transaction that used it, or not: the receipts will tell.
    if (answer === "taken") await options.onSent?.(hash);
  }

  async #handOver(raw: Hex, signal?: AbortSignal): Promise<"taken" | "outbid" | "nonceUsed"> {
    for (let attempt = 1; ; attempt++) {
      try {
        await this.#connection.client.sendRawTransaction({ serializedTransaction: raw });
        return "taken";
      } catch (error) {
        const text = error instanceof Error ? error.message : String(error);
        if (KNOWN.test(text)) return "taken";
        if (NONCE_USED.test(text)) return "nonceUsed";
        if (UNDERPRICED.test(text)) return "outbid";
        if (BROKE.test(text) || attempt > RESENDS) throw error;
        await pause(backoffDelay(RESEND, attempt), signal);
      }
    }
  }

  /** The receipt of whichever of the account's offers was mined; null when none was for so long that a higher fee is due. */
  async #received(sent: readonly Hash[], nonce: number, signal?: AbortSignal): Promise<TransactionReceipt | null> {
    const deadline = performance.now() + this.#patience;
    let lowestFree: number;
    do {
      // Asked before the receipts: a nonce that was used by then must show in one of them, or it was not ours.
      lowestFree = await this.#nonce("latest");
      for (const hash of sent) {
        const receipt = await this.#receipt(hash);
        if (receipt !== null) return receipt;
      }
      if (lowestFree > nonce)
        throw new NonceTaken("l1_failed", `another transaction of ${this.#account.address} took nonce ${nonce}`);
      await pause(this.#connection.pollingMs, signal);
    } while (performance.now() < deadline);
    // A reorganisation took back what was mined before it: no fee helps.
    if (lowestFree < nonce) throw this.#stuck(nonce, `nonce ${lowestFree} is free again`);
    return null;
  }

  async #receipt(hash: Hash): Promise<TransactionReceipt | null> {
    try {
      return await this.#connection.client.getTransactionReceipt({ hash });
    } catch (error) {
      if (error instanceof TransactionReceiptNotFoundError) return null;
      throw error;
    }
  }

  async #isPending(): Promise<boolean> {
    const [pending, latest] = await Promise.all([this.#nonce("pending"), this.#nonce("latest")]);
    return pending > latest;
  }

  #nonce(blockTag: "latest" | "pending"): Promise<number> {
    return this.#connection.client.getTransactionCount({ address: this.#account.address, blockTag });
  }

  get #patience(): number {
    return this.#fees.replaceAfterMs ?? REPLACE_AFTER_MS;
  }

  /** Fees that nodes take as a replacement; null when the cap leaves no room for them. */
  #higher(fees: Fees): Fees | null {
    const raised = (value: bigint, percent: bigint) => (value * percent) / 100n + 1n;
    const higher = this.#capped({
      maxFeePerGas: raised(fees.maxFeePerGas, BUMP_PERCENT),
      maxPriorityFeePerGas: raised(fees.maxPriorityFeePerGas, BUMP_PERCENT),
    });
    const suffices = (["maxFeePerGas", "maxPriorityFeePerGas"] as const).every(
      (fee) => higher[fee] >= raised(fees[fee], LEAST_BUMP_PERCENT),
    );
    return suffices ? higher : null;
  }

  #capped({ maxFeePerGas, maxPriorityFeePerGas }: Fees): Fees {
    const cap = this.#fees.maxFeePerGas;
    const fee = cap !== undefined && cap < maxFeePerGas ? cap : maxFeePerGas;
    return { maxFeePerGas: fee, maxPriorityFeePerGas: maxPriorityFeePerGas < fee ? maxPriorityFeePerGas : fee };
  }
}
