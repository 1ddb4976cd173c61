import { Counter, collectDefaultMetrics, Gauge, Registry } from "prom-client";
import type { Archive } from "../../../core/guards/archive/index.ts";

/** Prometheus metrics of a committee member or an issuer; docs/operating.md lists them. */
export class SignerMetrics {
  readonly registry = new Registry();
  readonly #answers: Counter;

  constructor(archive: Archive) {
    const registers = [this.registry];
    collectDefaultMetrics({ register: this.registry });
    this.#answers = new Counter({
      name: "mintmark_signing_requests_total",
      help: "Batches that an operator asked to have signed: `signed`, or the reason of the refusal.",
      labelNames: ["answer"],
      registers,
    });
    new Gauge({
      name: "mintmark_archive_block",
      help: "The newest block of L1 that the archive holds.",
      registers,
      collect() {
        this.set(Number(archive.position?.block ?? 0n));
      },
    });
    new Gauge({
      name: "mintmark_archive_missing_batches",
      help: "Committed batches without data.",
      registers,
      async collect() {
        this.set((await archive.missing()).length);
      },
    });
  }

  answered(answer: string): void {
    this.#answers.inc({ answer });
  }

  close(): void {
    this.registry.clear();
  }
}
