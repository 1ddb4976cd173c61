import type { Batches } from "../batch-types.ts";
import {
  batchView,
  committedCount,
  findBatch,
  listBatches,
  openBatch,
  sealedBatch,
  sealedCount,
  stateOver,
  vaultContent,
} from "../batches/batches.ts";
import { batchProof, consistencyProof, vaultMultiproof, vaultProof, vaultStateProof } from "../batches/proofs.ts";
import { sealOpenBatch } from "../batches/seal.ts";
import { voidSlots } from "../batches/void-slots.ts";
import { listOf } from "../ledger/list.ts";
import { exitProof } from "../progress/exit-proof.ts";
import type { Proofs } from "../proof-types.ts";
import type { EngineContext } from "./context.ts";
import { requireMode } from "./requirements.ts";

export function batches(context: EngineContext): Batches & Proofs {
  return {
    seal: async (mode, wait) => sealOpenBatch(context.ledger, requireMode(mode), wait?.signal),
    voidSlots: async (mode, batchNumber, slots, wait) =>
      voidSlots(context.ledger, requireMode(mode), batchNumber, slots, wait?.signal),
    openBatch: (mode) => openBatch(context.ledger, requireMode(mode)),
    async batch(mode, batchNumber) {
      const open = openBatch(context.ledger, requireMode(mode));
      return open.batchNumber === batchNumber ? open : batchView(findBatch(context.ledger, mode, batchNumber));
    },
    batches: (filter = {}) => listOf(filter, async (at) => listBatches(context.ledger, context.cursors, at)),
    sealedBatch: async (mode, batchNumber) => sealedBatch(context.ledger, requireMode(mode), batchNumber),

    vaultContent: async (vaultId) => vaultContent(context.ledger, vaultId),
    vaultProof: async (vaultId) => vaultProof(context.ledger, vaultId),
    exitProof: async (vaultId) => exitProof(context.ledger, vaultId),
    vaultMultiproof: async (vaultIds) => vaultMultiproof(context.ledger, vaultIds),
    vaultStateProof: async (vaultId, at) => vaultStateProof(context.ledger, vaultId, at),
    batchProof: async (mode, batchNumber) => batchProof(context.ledger, requireMode(mode), batchNumber),
    consistencyProof: async (older, newer) => consistencyProof(context.ledger, older, newer),

    state() {
      const { ledger } = context;
      return stateOver(ledger, sealedCount(ledger, "validium"), sealedCount(ledger, "zk-rollup"));
    },
    history: () => context.ledger.commits.of(context.ledger),
    async committedState() {
      const { ledger } = context;
      return stateOver(ledger, committedCount(ledger, "validium"), committedCount(ledger, "zk-rollup"));
    },
  };
}
