import { keccak256, type LocalAccount, type TransactionReceipt, TransactionReceiptNotFoundError } from "viem";
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
/** How a raw transaction is handed over again when the answer was lost; the hash is known, so repeating does no harm. */
const RESEND: Backoff = { firstMs: 200, maxMs: 2_000 };
const RESENDS = 4;

/** What nodes say, in their various words, when they refuse a raw transaction. */
const KNOWN = /already known|known transaction|already imported|already exists/i;
const UNDERPRICED = /underpriced|fee too low|gas price too low/i;
const BROKE = /insufficient funds|enough funds/i;
const NONCE_USED = /nonce (?:is )?too low|nonce too low/i;

/**
 * Sends the transactions of one account, one after the other: the next one is prepared when the last one is mined. So at most one is under way,
 * always under the account's lowest free nonce, and whatever is sent again replaces it; nothing can be mined twice.
 */
export class TransactionSender {
  readonly #connection: L1Connection;
  readonly #account: LocalAccount;
  readonly #fees: FeeOptions;
  #last: Promise<unknown> = Promise.resolve();

  constructor(connection: L1Connection, account: LocalAccount, fees: FeeOptions) {
    this.#connection = connection;
    this.#account = account;
    this.#fees = fees;
  }

  /**
   * Resolves with the receipt of a mined transaction, whether it succeeded or reverted. Rejects with `l1_failed` when it is not mined at the highest fee that
   * may be offered; it stays where it was sent, and whoever sends next waits for it or replaces it.
   *
   * @param prepare - makes the call from L1's newest state; what it throws is passed on and nothing is sent
   */
  send(prepare: () => Promise<Call>, options: L1SendOptions = {}): Promise<TransactionReceipt> {
    const turn = this.#last.catch(() => {}).then(() => this.#send(prepare, options));
    this.#last = turn;
    return turn;
  }

  async #send(prepare: () => Promise<Call>, options: L1SendOptions): Promise<TransactionReceipt> {
    options.signal?.throwIfAborted();
    // What an earlier process of this account has left under way may be the very same call: let it be mined first.
    await this.#pendingMined(options.signal);
    const call = await prepare();
    const nonce = await this.#nonce("latest");
    let fees = this.#capped(await this.#connection.client.estimateFeesPerGas());
    const sent: Hash[] = [];
    for (;;) {
      options.signal?.throwIfAborted();
      const outbid = await this.#isOutbid(call, nonce, fees, sent, options);
      const higher = this.#higher(fees);
      if (outbid && sent.length === 0 && higher === null) throw this.#stuck(nonce);
      const receipt = sent.length === 0 && outbid ? null : await this.#mined(sent, nonce, options.signal);
      if (receipt) return receipt;
      // At the cap there is nothing to offer but patience, which is the caller's: it has other things to do meanwhile.
      if (higher === null) throw this.#stuck(nonce);
      fees = higher;
    }
  }

  #stuck(nonce: number): MintmarkError {
    const { address } = this.#account;
    return new MintmarkError(
      "l1_failed",
      `what ${address} has sent under nonce ${nonce} is not mined, and the fee cap of ${this.#fees.maxFeePerGas} wei is reached`,
    );
  }

  /** Signs and hands over the call, unless this very transaction is there already. Whether another one of its nonce pays more. */
  async #isOutbid(call: Call, nonce: number, fees: Fees, sent: Hash[], options: L1SendOptions): Promise<boolean> {
    const chainId = Number(this.#connection.settlement.chainId);
    const raw = await this.#account.signTransaction({ type: "eip1559", chainId, nonce, ...call, ...fees });
    const hash = keccak256(raw);
    if (sent.includes(hash)) return false;
    const answer = await this.#handOver(raw, options.signal);
    if (answer === "outbid") return true;
    sent.push(hash);
    // If the nonce is used, this may be the transaction that used it, or not: the receipts will tell.
    if (answer === "taken") await options.onSent?.(hash);
    return false;
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
  async #mined(sent: readonly Hash[], nonce: number, signal?: AbortSignal): Promise<TransactionReceipt | null> {
    const deadline = Date.now() + this.#patience;
    do {
      // Asked before the receipts: a nonce that was used by then must show in one of them, or it was not ours.
      const used = (await this.#nonce("latest")) > nonce;
      for (const hash of sent) {
        const receipt = await this.#receipt(hash);
        if (receipt !== null) return receipt;
      }
      if (used)
        throw new MintmarkError("l1_failed", `another transaction of ${this.#account.address} took nonce ${nonce}`);
      await pause(this.#connection.pollingMs, signal);
    } while (Date.now() < deadline);
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

  /** Waits until nothing of the account is under way, or for so long that what is must be replaced. */
  async #pendingMined(signal?: AbortSignal): Promise<void> {
    const deadline = Date.now() + this.#patience;
    while ((await this.#nonce("pending")) > (await this.#nonce("latest"))) {
      if (Date.now() >= deadline) return;
      await pause(this.#connection.pollingMs, signal);
    }
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
