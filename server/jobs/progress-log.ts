import type { FastifyBaseLogger } from "fastify";
import {
  type Batch,
  type Engine,
  type EngineEvents,
  type Hash,
  WITHDRAWAL_EVENTS,
} from "../../core/index.ts";
import { unpackVaultId } from "../../core/protocol/index.ts";
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

  const withdrawn = ({ event }: EngineEvents[(typeof WITHDRAWAL_EVENTS)[number]]) => {
    const { type, data } = event;
    const { withdrawalId, chainId, vaultId, quantity, l1TxHash: txHash, failure: reason } = data;
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

  const stepped = ({ type, batch }: EngineEvents["batch"]) => {
    const { l1TxHash: txHash, l1BlockNumber } = batch;
    const fields = fieldsOf(batch);
    if (type === "batch.sealed") put("info", fields, "batch sealed");
    else if (type === "batch.settled") {
      const gas = gasUsed("commit", engine.settlement.chainId, txHash);
      put("info", { ...fields, txHash, block: l1BlockNumber?.toString() }, "batch committed", gas);
    } else if (type === "batch.finalized") put("info", fields, "batch final");
    else if (type === "batch.reverted")
      put("warn", fields, "batch taken back by a reorganisation of L1; it is committed again");
  };

  const unsubscribe = [
    engine.events.on("batch", stepped),
    engine.events.on("mint.failed", ({ event: { data } }) => {
      const { mode, batchNumber } = unpackVaultId(data.firstVaultId);
      const fields = { mode, batchNumber, vaults: data.vaults, reason: data.failure };
      put("warn", fields, "mints refused by L1");
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
