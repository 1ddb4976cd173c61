import { MintmarkError } from "../errors.ts";
import type { Limits } from "../model.ts";
import { MAX_TRANSFER_SLOTS } from "../protocol/transfer-data.ts";
import type { Transfer } from "../protocol/transfers.ts";
import { slotCount } from "../vaults/transfer-lists.ts";

/** Bytes of a group before its records: form 1, deadline 5, length 2, signature 65. */
const GROUP_BYTES = 73;
const RECORD_BYTES = 28;
const AMOUNT_BYTES = 8;

/**
 * Upper bounds of a commit's gas, which test/contracts/transfer-gas.test.ts compares with L1. A word of L1's spent vaults
 * covers 256 neighbours; its first vault pays for it, as if it were new.
 */
const COMMIT_GAS = 300_000;
const GROUP_GAS = 4_000;
const SLOT_GAS = 1_600;
const WORD_GAS = 22_400;

/** Lists that one commit can carry. */
export class BatchLoad {
  readonly #limits: Limits;
  #bytes = 1;
  #slots = 0;
  #gas = COMMIT_GAS;
  readonly #words = new Set<bigint>();

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  /** Upper bound of the commit's gas. */
  get gas(): number {
    return this.#gas;
  }

  /** Takes a list if it still fits. */
  take(transfers: readonly Transfer[]): boolean {
    const taken = slotCount(transfers);
    const perRecord = RECORD_BYTES + (taken > transfers.length ? AMOUNT_BYTES : 0);
    const words = new Set(transfers.map(({ vaultId }) => vaultId >> 8n).filter((word) => !this.#words.has(word)));
    const bytes = this.#bytes + GROUP_BYTES + perRecord * transfers.length;
    const slots = this.#slots + taken;
    const gas = this.#gas + GROUP_GAS + SLOT_GAS * taken + WORD_GAS * words.size;
    const { rollupBytes, rollupGas } = this.#limits;
    if (bytes > rollupBytes || slots > MAX_TRANSFER_SLOTS || gas > rollupGas) return false;
    [this.#bytes, this.#slots, this.#gas] = [bytes, slots, gas];
    for (const word of words) this.#words.add(word);
    return true;
  }
}

/** Throws `batch_too_large` for a list that no commit can carry. */
export function requireCarried(limits: Limits, transfers: readonly Transfer[]): void {
  if (!new BatchLoad(limits).take(transfers))
    throw new MintmarkError("batch_too_large", "One commit cannot carry these transfers. Sign shorter lists.");
}
