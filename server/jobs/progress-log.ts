import type { FastifyBaseLogger } from "fastify";
import type { Batch, Engine, EngineEvents, Hash } from "../../core/index.ts";
import type { GasOf } from "./chain.ts";

/** Called once for each mined transaction with known gas. */
type OnGas = (chainId: bigint, work: "commit" | "withdrawal", gas: bigint) => void;

/** One log line for each step of a batch and of a withdrawal, once durable. */
export class ProgressLog implements AsyncDisposable {
  readonly #engine: Engine;
  readonly #log: FastifyBaseLogger;
  readonly #gasOf: GasOf;
  readonly #onGas: OnGas;
  readonly #unsubscribe: readonly (() => void)[];
  #last: Promise<void> = Promise.resolve();
  /** Withdrawals share transactions. */
  #gas: { readonly txHash: Hash; readonly gas: Promise<bigint | null> } | null = null;

  constructor(engine: Engine, log: FastifyBaseLogger, gasOf: GasOf, onGas: OnGas = () => {}) {
    this.#engine = engine;
    this.#log = log;
    this.#gasOf = gasOf;
    this.#onGas = onGas;
    const info = (message: string) => (batch: Batch) => this.#put("info", fieldsOf(batch), message);
    this.#unsubscribe = [
      engine.events.on("batchSealed", info("batch sealed")),
      engine.events.on("batchCommitted", (batch) => this.#committed(batch)),
      engine.events.on("batchFinalized", info("batch final")),
      engine.events.on("batchReverted", (batch) =>
        this.#put("warn", fieldsOf(batch), "batch taken back by a reorganisation of L1; it is committed again"),
      ),
      engine.events.on("slotsVoided", ({ batch, slots }) => {
        for (const { count, failure } of slots) {
          this.#put("warn", { ...fieldsOf(batch), vaults: count, reason: failure }, "mints refused by L1");
        }
      }),
      engine.events.on("withdrawal", (event) => this.#withdrawal(event)),
    ];
  }

  /** Resolves when all steps are written. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const stop of this.#unsubscribe) stop();
    await this.#last;
  }

  #committed(batch: Batch): void {
    const { chainId } = this.#engine.settlement;
    const fields = { ...fieldsOf(batch), txHash: batch.l1TxHash, block: batch.l1BlockNumber?.toString() };
    this.#put("info", fields, "batch committed", this.#gasUsed("commit", chainId, batch.l1TxHash));
  }

  #withdrawal({ type, withdrawal }: EngineEvents["withdrawal"]): void {
    const { withdrawalId, chainId, vaultId, quantity, l1TxHash: txHash, failure: reason } = withdrawal;
    const fields = { withdrawalId, chainId: `${chainId}`, vaultId: `${vaultId}`, quantity: `${quantity}` };
    if (type === "withdrawal.settled") {
      this.#put("info", { ...fields, txHash }, "withdrawal paid", this.#gasUsed("withdrawal", chainId, txHash));
    } else if (type === "withdrawal.attempt_refused") {
      this.#put("warn", { ...fields, reason }, "withdrawal refused by L1; trying again");
    } else if (type === "withdrawal.failed") {
      this.#put("warn", { ...fields, reason }, "withdrawal given up");
    } else if (type === "withdrawal.reverted") {
      this.#put("warn", fields, "withdrawal taken back by a reorganisation of L1; it is paid again");
    }
  }

  /** Keeps the order of the steps, even if a line waits for its gas. */
  #put(level: "info" | "warn", fields: object, message: string, gas?: Promise<bigint | null>): void {
    this.#last = this.#last.then(async () => {
      const used = await gas;
      this.#log[level]({ ...fields, ...(typeof used === "bigint" && { gas: `${used}` }) }, message);
    });
  }

  #gasUsed(work: "commit" | "withdrawal", chainId: bigint, txHash: Hash | null): Promise<bigint | null> {
    if (txHash === null) return Promise.resolve(null);
    if (this.#gas?.txHash !== txHash) {
      this.#gas = { txHash, gas: this.#gasOf(chainId, txHash) };
      void this.#gas.gas.then((gas) => gas !== null && this.#onGas(chainId, work, gas));
    }
    return this.#gas.gas;
  }
}

function fieldsOf({ mode, batchNumber, vaultCount }: Batch) {
  return { mode, batchNumber, vaults: vaultCount };
}
