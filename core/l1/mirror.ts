import type { Growth } from "../mirror/history.ts";
import type { MirrorContract, MirrorReader, MirrorStep } from "../mirror/relay.ts";
import type { Address, Hash, Hex, Mode } from "../model.ts";
import type { L1Receipt, L1SendOptions } from "../ports.ts";
import type { StateLeafContent, StateRoots } from "../protocol/commitment.ts";
import { stateMirrorAbi as abi } from "./abi.ts";
import { MODE_VALUE } from "./arguments.ts";
import { ViemCommitter } from "./committer.ts";
import { connectTo, type L1Options, type L1WriteOptions } from "./connect.ts";
import type { L1Connection } from "./connection.ts";
import { modeOf } from "./logs.ts";
import { ViemReader, viewsOf } from "./reader.ts";

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
  const writer = new MirrorWriter(connection, options.account, options);
  return Object.assign(writer, mirrorViews(connection), { source: { chainId, contract } });
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
  return Object.assign(new ViemReader(connection), mirrorViews(connection));
}

/**
 * {@link MirrorContract} over a viem client and one account. A mirror has the settlement contract's
 * withdrawal functions, so the same code sends withdrawals to both.
 *
 * @example
 * const mirror: ViemMirror = await connectMirror({ rpc, contract, account: relayer });
 * await advanceMirror({ source, mirror, committee });
 */
export type ViemMirror = ViemCommitter & MirrorContract;

class MirrorWriter
  extends ViemCommitter
  implements Pick<MirrorContract, "advance" | "importBatch">
{
  async advance(
    from: StateRoots,
    growth: Growth,
    attestation: Hex,
    options?: L1SendOptions,
  ): Promise<L1Receipt> {
    const counts = {
      countValidium: BigInt(from.countValidium),
      countRollup: BigInt(from.countRollup),
    };
    const grown = { ...growth, mode: MODE_VALUE[growth.mode], count: BigInt(growth.count) };
    const args = [{ ...from, ...counts }, grown, attestation] as const;
    return this.send({ abi, functionName: "advance", args }, options);
  }

  async importBatch(
    sequence: number,
    batch: StateLeafContent & { readonly siblings: readonly Hash[] },
    options?: L1SendOptions,
  ): Promise<L1Receipt> {
    const { batchNumber, vaultCount, dataHash, batchRoot, siblings } = batch;
    const args = [
      BigInt(sequence),
      BigInt(batchNumber),
      { vaultCount, dataHash, batchRoot },
      siblings,
    ] as const;
    return this.send({ abi, functionName: "importBatch", args }, options);
  }
}

/** The mirror's views that the settlement contract lacks. */
function mirrorViews(connection: L1Connection) {
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
