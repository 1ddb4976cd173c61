import type { FastifyBaseLogger } from "fastify";
import {
  type Batch,
  type Engine,
  type EngineEvents,
  type Hash,
  WITHDRAWAL_EVENTS,
} from "../../core/index.ts";
import type { GasOf } from "./chain.ts";

type Work = "commit" | "withdrawal";

/** Called once for each mined transaction with known gas. */
type OnGas = (chainId: bigint, work: Work, gas: bigint) => void;

/**
 * Logs one line for each durable step of a batch and of a withdrawal. Disposing it waits until all
 * are written.
 */
export function logProgress(
  engine: Engine,
  log: FastifyBaseLogger,
  gasOf: GasOf,
  onGas: OnGas = () => {},
): AsyncDisposable {
  let last: Promise<void> = Promise.resolve();
  /** Withdrawals share transactions. */
  let mined: { readonly txHash: Hash; readonly gas: Promise<bigint | null> } | null = null;

  /** Keeps the order of the steps, even if a line waits for its gas. */
  const put = (
    level: "info" | "warn",
    fields: object,
    message: string,
    gas?: Promise<bigint | null>,
  ) => {
    last = last.then(async () => {
      const used = await gas;
      log[level]({ ...fields, ...(typeof used === "bigint" && { gas: `${used}` }) }, message);
    });
  };

  const gasUsed = (work: Work, chainId: bigint, txHash: Hash | null): Promise<bigint | null> => {
    if (txHash === null) return Promise.resolve(null);
    if (mined?.txHash !== txHash) {
      const gas = gasOf(chainId, txHash);
      mined = { txHash, gas };
      void gas.then((gas) => gas !== null && onGas(chainId, work, gas));
    }
    return mined.gas;
  };

  const withdrawn = ({ type, withdrawal }: EngineEvents[(typeof WITHDRAWAL_EVENTS)[number]]) => {
    const {
      withdrawalId,
      chainId,
      vaultId,
      quantity,
      l1TxHash: txHash,
      failure: reason,
    } = withdrawal;
    const fields = {
      withdrawalId,
      chainId: `${chainId}`,
      vaultId: `${vaultId}`,
      quantity: `${quantity}`,
    };
    if (type === "withdrawal.settled")
      put("info", { ...fields, txHash }, "withdrawal paid", gasUsed("withdrawal", chainId, txHash));
    else if (type === "withdrawal.attempt_refused")
      put("warn", { ...fields, reason }, "withdrawal refused by L1; trying again");
    else if (type === "withdrawal.failed")
      put("warn", { ...fields, reason }, "withdrawal given up");
    else if (type === "withdrawal.reverted")
      put("warn", fields, "withdrawal taken back by a reorganisation of L1; it is paid again");
  };

  const unsubscribe = [
    engine.events.on("batch.sealed", (batch) => put("info", fieldsOf(batch), "batch sealed")),
    engine.events.on("batch.settled", (batch) => {
      const fields = {
        ...fieldsOf(batch),
        txHash: batch.l1TxHash,
        block: batch.l1BlockNumber?.toString(),
      };
      put(
        "info",
        fields,
        "batch committed",
        gasUsed("commit", engine.settlement.chainId, batch.l1TxHash),
      );
    }),
    engine.events.on("batch.finalized", (batch) => put("info", fieldsOf(batch), "batch final")),
    engine.events.on("batch.reverted", (batch) =>
      put(
        "warn",
        fieldsOf(batch),
        "batch taken back by a reorganisation of L1; it is committed again",
      ),
    ),
    engine.events.on("mint.failed", ({ batch, slots }) => {
      for (const { count, failure } of slots)
        put("warn", { ...fieldsOf(batch), vaults: count, reason: failure }, "mints refused by L1");
    }),
    engine.events.on(WITHDRAWAL_EVENTS, withdrawn),
  ];
  return {
    async [Symbol.asyncDispose]() {
      for (const stop of unsubscribe) stop();
      await last;
    },
  };
}

function fieldsOf({ mode, batchNumber, vaultCount }: Batch) {
  return { mode, batchNumber, vaults: vaultCount };
}
