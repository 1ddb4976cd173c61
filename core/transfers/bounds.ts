import { MintmarkError } from "../errors.ts";
import type { Limits } from "../model.ts";
import type { Transfer } from "../protocol/transfer.ts";
import { MAX_TRANSFER_SLOTS } from "../protocol/transfer-data.ts";
import { slotCount } from "../vaults/transfer-lists.ts";

/** Most bytes of a group before its records: form 1, deadline 4, base 8, signature 64; and 2 for a length. */
const GROUP_BYTES = 77;
const LENGTH_BYTES = 2;
const RECORD_BYTES = 23;
const WHOLE_ID_BYTES = 5; // The further bytes of a whole vault id, which vaults far apart need
const AMOUNT_BYTES = 8;

const NEAR = 1n << 23n; // Ids that are all nearer to the first one need no whole ids

/** Upper bounds, compared with L1 by test/contracts/transfer-gas.test.ts. A word covers 256 neighbouring vaults. */
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

  get gas(): number {
    return this.#gas;
  }

  take(transfers: readonly Transfer[]): boolean {
    const taken = slotCount(transfers);
    const ids = transfers.map(({ vaultId }) => vaultId);
    const isFar = ids.some((id) => id - (ids[0] as bigint) >= NEAR || (ids[0] as bigint) - id >= NEAR);
    const perRecord = RECORD_BYTES + (isFar ? WHOLE_ID_BYTES : 0) + (taken > transfers.length ? AMOUNT_BYTES : 0);
    const words = new Set(transfers.map(({ vaultId }) => vaultId >> 8n).filter((word) => !this.#words.has(word)));
    const head = GROUP_BYTES + (transfers.length > 1 ? LENGTH_BYTES : 0);
    const bytes = this.#bytes + head + perRecord * transfers.length;
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
