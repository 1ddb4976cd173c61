import type { MirrorContract, MirrorReader, MirrorStep } from "../mirror/relay.ts";
import type { Address, Mode } from "../model.ts";
import { stateMirrorAbi as abi } from "./abi.ts";
import type { L1Account } from "./account.ts";
import { MODE_VALUE } from "./arguments.ts";
import { connectTo, type L1Options, type L1WriteOptions } from "./connect.ts";
import { type L1Connection, viewsOf } from "./connection.ts";
import { modeOf } from "./logs.ts";
import { type OperatorPortal, operatorOn } from "./operator.ts";
import { readsOf } from "./reader.ts";

/**
 * Connects to a `StateMirror` for reading, and for relaying and withdrawing with `account`. Rejects
 * with `l1_failed`.
 *
 * @example
 * const mirror = await connectMirror({ rpc: "http://127.0.0.1:8546", contract, account: operator
 * });
 */
export async function connectMirror(options: L1WriteOptions): Promise<ViemMirror> {
  const connection = await connectTo(options, "StateMirror");
  const doing = `reading the source of mirror ${connection.settlement.contract}`;
  const view = viewsOf(connection, abi);
  const chainId = await view(doing, "sourceChainId", []);
  const contract = (await view(doing, "sourceContract", [])).toLowerCase() as Address;
  const { by, operator } = operatorOn(connection, options.account, options);
  const source = { chainId, contract };
  return { ...operator, ...mirrorReads(connection), ...stepsOf(by), source };
}

/**
 * Connects to a `StateMirror` for reading what an exit kit needs. Rejects with `l1_failed`.
 *
 * @example
 * const mirror = await readMirror({ rpc: "http://127.0.0.1:8546", contract });
 * const kit = await exportExitKit(await proofOnMirror(proof, mirror), mirror);
 */
export async function readMirror(options: L1Options): Promise<MirrorReader> {
  const connection = await connectTo(options, "StateMirror");
  return { ...readsOf(connection), ...mirrorReads(connection) };
}

/**
 * {@link MirrorContract} over a viem client and one account. A mirror has the settlement contract's
 * withdrawal functions, so the same code sends withdrawals to both.
 *
 * @example
 * const mirror: ViemMirror = await connectMirror({ rpc, contract, account: relayer });
 * await advanceMirror({ source, mirror, committee });
 */
export type ViemMirror = OperatorPortal & MirrorContract;

/** The steps of the mirrored state. */
function stepsOf(by: L1Account): Pick<MirrorContract, "advance" | "importBatch"> {
  return {
    async advance(from, growth, attestation, options) {
      const counts = {
        countValidium: BigInt(from.countValidium),
        countRollup: BigInt(from.countRollup),
      };
      const grown = { ...growth, mode: MODE_VALUE[growth.mode], count: BigInt(growth.count) };
      const args = [{ ...from, ...counts }, grown, attestation] as const;
      return by.send({ abi, functionName: "advance", args }, options);
    },

    async importBatch(sequence, batch, options) {
      const { batchNumber, vaultCount, dataHash, batchRoot, siblings } = batch;
      const args = [
        BigInt(sequence),
        BigInt(batchNumber),
        { vaultCount, dataHash, batchRoot },
        siblings,
      ] as const;
      return by.send({ abi, functionName: "importBatch", args }, options);
    },
  };
}

/** The mirror's views that the settlement contract lacks. */
function mirrorReads(connection: L1Connection) {
  const view = viewsOf(connection, abi);
  return {
    commitment: () => view("reading the mirrored commitment", "commitment", []),
    stepCount: async () => Number(await view("asking the mirror for its steps", "stepCount", [])),
    async step(sequence: number): Promise<MirrorStep> {
      const step = await view(`reading step ${sequence} of the mirror`, "step", [BigInt(sequence)]);
      return {
        ...step,
        first: Number(step.first),
        count: Number(step.count),
        sequence,
        mode: modeOf(step.mode),
      };
    },
    async isImported(mode: Mode, batchNumber: number): Promise<boolean> {
      const args = [MODE_VALUE[mode], BigInt(batchNumber)] as const;
      return (
        BigInt(
          await view(`asking the mirror for ${mode} batch ${batchNumber}`, "batchHeaderHash", args),
        ) !== 0n
      );
    },
  };
}
