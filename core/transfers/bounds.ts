import { MintmarkError } from "../errors.ts";
import type { Limits } from "../model.ts";
import { MAX_TRANSFER_SLOTS } from "../protocol/transfer-data.ts";
import type { Transfer } from "../protocol/transfers.ts";
import { slotCount } from "../vaults/transfer-lists.ts";

/** Bytes of a group before its records: form 1, deadline 5, length 2, signature 65. */
const GROUP_BYTES = 73;
const RECORD_BYTES = 28;
const AMOUNT_BYTES = 8;

/** Upper bounds of a commit's gas. A word of L1's spent vaults covers 256 neighbours, and is new at worst. */
const COMMIT_GAS = 300_000;
const GROUP_GAS = 8_000;
const SLOT_GAS = 1_600;
const WORD_GAS = 22_400;

/** What lists take of one commit. */
interface Load {
  readonly bytes: number;
  readonly slots: number;
  readonly gas: number;
}

/** Lists that one commit can carry. */
export class BatchLoad {
  readonly #limits: Limits;
  #load: Load = { bytes: 1, slots: 0, gas: COMMIT_GAS };

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  /** Takes a list if it still fits. */
  take(transfers: readonly Transfer[]): boolean {
    const more = loadOf(transfers);
    const load = {
      bytes: this.#load.bytes + more.bytes,
      slots: this.#load.slots + more.slots,
      gas: this.#load.gas + more.gas,
    };
    const { rollupBytes, rollupGas } = this.#limits;
    const fits = load.bytes <= rollupBytes && load.slots <= MAX_TRANSFER_SLOTS && load.gas <= rollupGas;
    if (fits) this.#load = load;
    return fits;
  }
}

/** Throws `batch_too_large` for a list that no commit can carry. */
export function requireCarried(limits: Limits, transfers: readonly Transfer[]): void {
  if (!new BatchLoad(limits).take(transfers))
    throw new MintmarkError("batch_too_large", "One commit cannot carry these transfers. Sign shorter lists.");
}

function loadOf(transfers: readonly Transfer[]): Load {
  const slots = slotCount(transfers);
  const perRecord = RECORD_BYTES + (slots > transfers.length ? AMOUNT_BYTES : 0);
  const words = new Set(transfers.map(({ vaultId }) => vaultId >> 8n)).size;
  return {
    bytes: GROUP_BYTES + perRecord * transfers.length,
    slots,
    gas: GROUP_GAS + SLOT_GAS * slots + WORD_GAS * words,
  };
}
