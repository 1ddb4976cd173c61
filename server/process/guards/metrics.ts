import { type Counter, Registry } from "prom-client";
import type { Archive } from "../../../core/guards/archive/index.ts";
import { metricsIn } from "../metrics.ts";

/** Prometheus metrics of a committee member or an issuer; docs/operating.md lists them. */
export class GuardMetrics {
  readonly registry = new Registry();
  readonly #answers: Counter;

  constructor(archive: Archive) {
    const { counter, gauge } = metricsIn(this.registry);
    const asked = "Batches that an operator asked to have signed: `signed`, or the reason of the refusal.";
    this.#answers = counter("mintmark_signing_requests_total", asked, "answer");
    gauge("mintmark_archive_block", "The newest block of L1 that the archive holds.", [], function () {
      this.set(Number(archive.position?.block ?? 0n));
    });
    gauge("mintmark_archive_missing_batches", "Committed batches without data.", [], async function () {
      this.set((await archive.missing()).length);
    });
  }

  answered(answer: string): void {
    this.#answers.inc({ answer });
  }

  close(): void {
    this.registry.clear();
  }
}
