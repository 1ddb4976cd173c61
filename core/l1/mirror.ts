import { readContract } from "viem/actions";
import { MintmarkError } from "../errors.ts";
import type { MirrorIdentity } from "../guards/mirror/attester.ts";
import type { MirrorContract, MirrorReader, MirrorStep } from "../guards/mirror/contract.ts";
import type { Growth } from "../guards/mirror/history.ts";
import { type Address, type Hash, type Hex, MODES, type Mode } from "../model.ts";
import type { L1Receipt, L1SendOptions } from "../ports.ts";
import type { StateLeafContent, StateRoots } from "../protocol/commitment.ts";
import { stateMirrorAbi as abi } from "./abi.ts";
import { MODE_VALUE } from "./arguments.ts";
import { ViemCommitter } from "./committer.ts";
import { connectTo, type L1Options, type L1WriteOptions } from "./connect.ts";
import type { L1Connection } from "./connection.ts";
import { askL1 } from "./failure.ts";
import { ViemReader } from "./reader.ts";

/**
 * Connects to a `StateMirror` for reading, and for relaying and withdrawing with `account`. Rejects with `l1_failed`.
 *
 * @example
 * const mirror = await connectMirror({ rpc: "http://127.0.0.1:8546", contract, account: operator });
 */
export async function connectMirror(options: L1WriteOptions): Promise<ViemMirror> {
  const connection = await connectTo(options, "StateMirror");
  const { client, settlement } = connection;
  const read = { abi, address: settlement.contract } as const;
  const [sourceChainId, sourceContract] = await askL1(`reading the source of mirror ${settlement.contract}`, () =>
    Promise.all([
      readContract(client, { ...read, functionName: "sourceChainId" }),
      readContract(client, { ...read, functionName: "sourceContract" }),
    ]),
  );
  const source = { chainId: sourceChainId, contract: sourceContract.toLowerCase() as Address };
  return new ViemMirror(connection, source, options);
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
 * {@link MirrorContract} over a viem client and one account. A mirror has the settlement contract's withdrawal
 * functions, so the same code sends withdrawals to both.
 *
 * @example
 * const mirror: ViemMirror = await connectMirror({ rpc, contract, account: relayer });
 * await advanceMirror({ source, mirror, committee });
 */
export class ViemMirror extends ViemCommitter implements MirrorContract {
  readonly source: MirrorIdentity;
  readonly commitment: MirrorContract["commitment"];
  readonly stepCount: MirrorContract["stepCount"];
  readonly step: MirrorContract["step"];
  readonly isImported: MirrorContract["isImported"];

  constructor(connection: L1Connection, source: MirrorIdentity, options: L1WriteOptions) {
    super(connection, options.account, options);
    this.source = source;
    const { commitment, stepCount, step, isImported } = mirrorViews(connection);
    this.commitment = commitment;
    this.stepCount = stepCount;
    this.step = step;
    this.isImported = isImported;
  }

  async advance(from: StateRoots, growth: Growth, attestation: Hex, options?: L1SendOptions): Promise<L1Receipt> {
    const counts = { countValidium: BigInt(from.countValidium), countRollup: BigInt(from.countRollup) };
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
    const args = [BigInt(sequence), BigInt(batchNumber), { vaultCount, dataHash, batchRoot }, siblings] as const;
    return this.send({ abi, functionName: "importBatch", args }, options);
  }
}

/** What a mirror tells beside the settlement contract's functions. */
function mirrorViews({ client, settlement }: L1Connection) {
  const view = { abi, address: settlement.contract } as const;
  return {
    commitment: (): Promise<Hash> =>
      askL1("reading the mirrored commitment", () => readContract(client, { ...view, functionName: "commitment" })),
    async stepCount(): Promise<number> {
      const ask = () => readContract(client, { ...view, functionName: "stepCount" });
      return Number(await askL1("asking the mirror for its steps", ask));
    },
    async step(sequence: number): Promise<MirrorStep> {
      const ask = () => readContract(client, { ...view, functionName: "step", args: [BigInt(sequence)] });
      const step = await askL1(`reading step ${sequence} of the mirror`, ask);
      const mode = MODES[step.mode];
      if (mode === undefined) throw new MintmarkError("l1_failed", `the mirror reported the unknown mode ${step.mode}`);
      return { ...step, first: Number(step.first), count: Number(step.count), sequence, mode };
    },
    async isImported(mode: Mode, batchNumber: number): Promise<boolean> {
      const args = [MODE_VALUE[mode], BigInt(batchNumber)] as const;
      const ask = () => readContract(client, { ...view, functionName: "batchHeaderHash", args });
      return BigInt(await askL1(`asking the mirror for ${mode} batch ${batchNumber}`, ask)) !== 0n;
    },
  };
}
