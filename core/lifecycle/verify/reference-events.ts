import type { Mode } from "../../model.ts";
import { packVaultId } from "../../protocol/vault.ts";
import type { EntryOf } from "../../store/entries.ts";
import { type BatchEventType, encodeEvent, type StoredEvent } from "../../store/event-record.ts";
import { encodeRecord } from "../../store/layout.ts";
import { type BatchRecord, batchApplicationsRecord } from "../../store/records.ts";
import * as keys from "../../store/store-keys.ts";
import type { StoredVault } from "../../store/vault-columns.ts";
import { type Expected, expectedRecord } from "./reference-records.ts";

/** The part of the reference for events of applications. */
export class ReferenceEvents {
  /** The number of events of each application. */
  readonly #counts: number[] = [];
  readonly #applications: Record<Mode, number[][]> = { validium: [], "zk-rollup": [] };

  /** Number of the application's events so far. */
  countOf(applicationIndex: number): number {
    return this.#counts[applicationIndex] ?? 0;
  }

  tell(applicationIndex: number, time: number, event: StoredEvent): Expected {
    const sequence = this.countOf(applicationIndex) + 1;
    this.#counts[applicationIndex] = sequence;
    const key = keys.applicationEventKey(applicationIndex, sequence);
    return expectedRecord(key, encodeEvent(time, event), `event ${sequence} of application ${applicationIndex}`);
  }

  /** A batch is sealed: the applications with vaults in it. */
  seal({ mode, batchNumber }: BatchRecord, vaults: readonly StoredVault[]): Expected {
    const applications = vaults.map(({ applicationIndex }) => applicationIndex).sort((a, b) => a - b);
    const distinct = applications.filter((index, i) => index !== applications[i - 1]);
    this.#applications[mode][batchNumber] = distinct;
    const name = `the applications of batch ${batchNumber} of ${mode}`;
    return expectedRecord(
      keys.batchApplicationsKey(mode, batchNumber),
      encodeRecord(batchApplicationsRecord, distinct),
      name,
    );
  }

  /** Vaults became void: one event for each range of one application's vaults. */
  failMints(
    { mode, batchNumber, voids }: Pick<EntryOf<"slotsVoided">, "mode" | "batchNumber" | "voids">,
    vaults: readonly StoredVault[],
    time: number,
  ): Expected[] {
    return voids.flatMap(({ firstSlot, count, failure }) => {
      const run = vaults.slice(firstSlot, firstSlot + count);
      const starts = [...run.keys()].filter((i) => run[i]?.applicationIndex !== run[i - 1]?.applicationIndex);
      return starts.map((start, i) => {
        const firstVaultId = packVaultId({ mode, batchNumber, slot: firstSlot + start });
        const event = {
          type: "mint.failed",
          firstVaultId,
          vaults: (starts[i + 1] ?? run.length) - start,
          failure,
        } as const;
        return this.tell(run[start]?.applicationIndex ?? 0, time, event);
      });
    });
  }

  /** A change of a batch: one event for each application in it. */
  batch(type: BatchEventType, batch: BatchRecord, time: number): Expected[] {
    const { mode, batchNumber, vaultCount, batchRoot, l1TxHash, l1BlockNumber } = batch;
    if (batchRoot === null) return [];
    const event = { type, mode, batchNumber, vaultCount, batchRoot, l1TxHash, l1BlockNumber } as const;
    return (this.#applications[mode][batchNumber] ?? []).map((application) => this.tell(application, time, event));
  }
}
