import { type VoidingPortal, type VoidOptions, voidDuplicates } from "../archive/duplicates.ts";
import { collectSignatures, committeeOf, type SigningMembers } from "../committee/collector.ts";
import { MintmarkError } from "../errors.ts";
import type { Hash, Hex, Mode } from "../model.ts";
import type * as ports from "../ports.ts";
import { committeeHash } from "../protocol/attestation.ts";
import { countOf, type StateLeafContent, type StateRoots } from "../protocol/commitment.ts";
import type { BatchVaultProof } from "../protocol/proof.ts";
import { unpackBatchVaultId } from "../protocol/vault.ts";
import type { AttesterClient, Growth, MirrorIdentity, SourceHistory } from "./history.ts";
import { stateTypedData } from "./history.ts";

/** One accepted step of the mirrored state. */
export interface MirrorStep {
  /** Position among the steps. Orders duplicates on the mirror's chain. */
  readonly sequence: number;
  readonly mode: Mode;
  /** Number of the first batch of the step. */
  readonly first: number;
  /** Batches of the mode after the step. */
  readonly count: number;
  readonly root: Hash;
  /** Seconds since 1970, by the mirror's chain. */
  readonly acceptedAt: bigint;
}

/** The reads of a mirror that an exit kit needs. No account. */
export type MirrorReader = Pick<
  MirrorContract,
  "stepCount" | "step" | "isImported" | "settlement" | "maturity"
> &
  Pick<MirrorContract, "registration" | "token" | "verifyVault"> &
  Pick<
    ports.L1Reader,
    | "verifyTransferred"
    | "withdrawn"
    | "block"
    | "blockNumber"
    | "finalizedBlockNumber"
    | "events"
    | "rollupData"
  >;

/**
 * The `StateMirror` contract. Every method rejects with `l1_failed` when its chain is unreachable
 * or refuses.
 */
export interface MirrorContract
  extends ports.Portal,
    ports.L1Owner,
    ports.L1Voider,
    Pick<
      ports.L1Reader,
      | "committee"
      | "opensBlobs"
      | "registration"
      | "registrations"
      | "token"
      | "supplyCap"
      | "verifyVault"
    > {
  readonly source: MirrorIdentity;
  /** The newest accepted state commitment of the source. */
  commitment(): Promise<Hash>;
  /** Number of accepted steps. */
  stepCount(): Promise<number>;
  /** The step with this sequence. */
  step(sequence: number): Promise<MirrorStep>;
  /** Whether vaults of the batch can be withdrawn here. */
  isImported(mode: Mode, batchNumber: number): Promise<boolean>;
  /** Advances the mirror by one run of batches of one mode. Resolves when mined. */
  advance(
    from: StateRoots,
    growth: Growth,
    attestation: Hex,
    options?: ports.L1SendOptions,
  ): Promise<ports.L1Receipt>;
  /** Imports the header of a batch of an accepted step. Resolves when mined. */
  importBatch(
    sequence: number,
    batch: StateLeafContent & { readonly siblings: readonly Hash[] },
    options?: ports.L1SendOptions,
  ): Promise<ports.L1Receipt>;
}

/**
 * The step that brought a batch to the mirror; null before. Searches from the newest, since most
 * requests are recent.
 */
export async function stepOf(
  mirror: Pick<MirrorContract, "stepCount" | "step">,
  mode: Mode,
  batchNumber: number,
): Promise<MirrorStep | null> {
  for (let sequence = (await mirror.stepCount()) - 1; sequence >= 0; sequence--) {
    const step = await mirror.step(sequence);
    if (step.mode !== mode || step.first > batchNumber) continue;
    return batchNumber < step.count ? step : null;
  }
  return null;
}

/** The committee that signs a source's states. */
export type AttesterCommittee = SigningMembers<AttesterClient>;

/** Options of {@link advanceMirror}. */
export interface RelayOptions {
  readonly source: SourceHistory;
  readonly mirror: MirrorContract;
  readonly committee: AttesterCommittee;
  /** Called after each mined step. */
  readonly onStep?: (step: {
    readonly mode: Mode;
    readonly first: number;
    readonly count: number;
  }) => void;
  readonly signal?: AbortSignal;
}

/**
 * Brings a mirror to the newest final state of its source. Returns the number of steps: one for
 * each run of commits of one mode. Reads the mirror's position each time, so anyone may relay, and
 * a restarted relayer repeats nothing.
 *
 * @throws MintmarkError `l1_failed` when too few members sign, or the mirror has another committee
 *   in force
 *
 * @example
 * const mirror = await connectMirror({ rpc, contract, account: relayer });
 * await advanceMirror({ source: new SourceHistory(l1, fromBlock), mirror, committee });
 */
export async function advanceMirror({
  source,
  mirror,
  committee,
  onStep,
  signal,
}: RelayOptions): Promise<number> {
  requireMirrorOf(mirror, source);
  await source.follow();
  let counts = source.countsAt(await mirror.commitment());
  let steps = 0;
  for (
    let growth = source.nextGrowth(counts);
    growth !== null;
    growth = source.nextGrowth(counts)
  ) {
    signal?.throwIfAborted();
    const { mode, count } = growth;
    const first = countOf(mode, counts);
    const to =
      mode === "validium" ? { ...counts, countValidium: count } : { ...counts, countRollup: count };
    const { epoch, committeeHash: inForce } = await mirror.committee();
    if (committeeHash(epoch, committeeOf(committee)) !== inForce) {
      const detail = `mirror ${mirror.settlement.contract} has another committee in force (epoch ${epoch})`;
      throw new MintmarkError("l1_failed", detail);
    }
    const attestation = await collectSignatures(committee, {
      typedData: stateTypedData(source, mirror.settlement, to, epoch),
      ask: (member, limit) => member.attest(mirror.settlement, to, epoch, limit),
      signal,
    });
    await mirror.advance(source.stateAt(counts), growth, attestation, { signal });
    onStep?.({ mode, first, count });
    counts = to;
    steps++;
  }
  return steps;
}

/**
 * Imports a batch's header into the mirror, unless it is there. Vaults are withdrawn there with the
 * returned header.
 *
 * @throws MintmarkError `proof_not_ready` while the mirror has not been advanced to the batch
 *
 * @example
 * const header = await importBatch({ source, mirror }, "validium", 12);
 */
export async function importBatch(
  { source, mirror }: Pick<RelayOptions, "source" | "mirror">,
  mode: Mode,
  batchNumber: number,
  signal?: AbortSignal,
): Promise<ports.BatchHeader> {
  requireMirrorOf(mirror, source);
  const step = await stepOf(mirror, mode, batchNumber);
  if (step === null)
    throw new MintmarkError(
      "proof_not_ready",
      `the mirror does not have ${mode} batch ${batchNumber} yet`,
    );
  await source.follow();
  const batch = source.batch(mode, batchNumber, step.count);
  if (!(await mirror.isImported(mode, batchNumber)))
    await mirror.importBatch(step.sequence, batch, { signal });
  return mirrorHeader(step, batch);
}

/** The progress of {@link importBatches}. */
export interface ImportProgress {
  /** Steps from the first on whose batches are all imported. */
  steps: number;
}

/**
 * Imports every batch that the mirror has accepted, so owners need only withdraw. Returns the
 * batches that it imported.
 *
 * @param progress - begins with no steps; each call moves it on
 *
 * @example
 * const progress = { steps: 0 };
 * const imported = await importBatches({ source, mirror }, progress); // ["validium-12"]
 */
export async function importBatches(
  options: Pick<RelayOptions, "source" | "mirror">,
  progress: ImportProgress,
  signal?: AbortSignal,
): Promise<string[]> {
  const imported: string[] = [];
  const { mirror } = options;
  for (const steps = await mirror.stepCount(); progress.steps < steps; progress.steps++) {
    const { mode, first, count } = await mirror.step(progress.steps);
    for (let batchNumber = first; batchNumber < count; batchNumber++) {
      signal?.throwIfAborted();
      if (await mirror.isImported(mode, batchNumber)) continue;
      await importBatch(options, mode, batchNumber, signal);
      imported.push(`${mode}-${batchNumber}`);
    }
  }
  return imported;
}

/**
 * A vault's proof for a mirror: the source's siblings, with the mirror's header. `exportExitKit`
 * makes a kit of it.
 *
 * @throws MintmarkError `proof_not_ready` while the mirror has not imported the batch
 *
 * @example
 * const proof = await proofOnMirror(await engine.proofs.vault(vaultId), mirror);
 * const kit = await exportExitKit(proof, mirror);
 */
export async function proofOnMirror(
  proof: BatchVaultProof,
  mirror: Pick<MirrorContract, "stepCount" | "step" | "isImported">,
): Promise<BatchVaultProof> {
  const { mode, batchNumber } = unpackBatchVaultId(proof.vault.vaultId);
  const step = await stepOf(mirror, mode, batchNumber);
  if (proof.header === null || step === null || !(await mirror.isImported(mode, batchNumber))) {
    const detail = `The mirror has not imported ${mode}-${batchNumber} yet: relay it first.`;
    throw new MintmarkError("proof_not_ready", detail);
  }
  return { ...proof, header: mirrorHeader(step, proof.header) };
}

/** Options of {@link voidOnMirror}. */
export interface MirrorVoidOptions extends Omit<VoidOptions, "portal"> {
  /** The chain of the state, which the archive follows. */
  readonly source: SourceHistory;
  readonly mirror: MirrorContract;
}

/**
 * Voids on a mirror every vault of an ERC-721 token of its chain but the first, like
 * `voidDuplicates` on the settlement chain. A vault matures from the time when the mirror accepted
 * its batch, imported or not. Another's import could be too late, so this imports both batches.
 * Skips batches that the mirror has not accepted yet.
 *
 * @example
 * const voided = await voidOnMirror({ archive, source: new SourceHistory(l1, fromBlock), mirror });
 */
export function voidOnMirror({ source, mirror, ...options }: MirrorVoidOptions): Promise<number> {
  const asImported = async (
    proven: ports.ProvenVault,
    signal?: AbortSignal,
  ): Promise<ports.ProvenVault> => {
    const { mode, batchNumber } = unpackBatchVaultId(proven.vault.vaultId);
    return { ...proven, header: await importBatch({ source, mirror }, mode, batchNumber, signal) };
  };
  const portal: VoidingPortal = {
    settlement: mirror.settlement,
    withdrawn: (...vault) => mirror.withdrawn(...vault),
    registration: (...asset) => mirror.registration(...asset),
    async sequenceOf({ mode, batchNumber }) {
      const step = await stepOf(mirror, mode, batchNumber);
      return step && BigInt(step.sequence);
    },
    async voidDuplicate(earlier, later, sending) {
      const [first, second] = [
        await asImported(earlier, sending?.signal),
        await asImported(later, sending?.signal),
      ];
      return mirror.voidDuplicate(first, second, sending);
    },
  };
  return voidDuplicates({ ...options, portal });
}

/**
 * A batch's header on its mirror: maturity and order count from the time when the mirror accepted
 * it.
 */
function mirrorHeader(
  { acceptedAt, sequence }: MirrorStep,
  { batchRoot, vaultCount }: Pick<StateLeafContent, "batchRoot" | "vaultCount">,
): ports.BatchHeader {
  return { batchRoot, vaultCount, committedAt: acceptedAt, sequence: BigInt(sequence) };
}

/** Throws `l1_failed` for a mirror of another contract. */
export function requireMirrorOf(
  { settlement, source }: MirrorContract,
  { settlement: wanted }: SourceHistory,
): void {
  if (source.chainId === wanted.chainId && source.contract === wanted.contract) return;
  const name = ({ contract, chainId }: MirrorIdentity) => `${contract} on chain ${chainId}`;
  throw new MintmarkError(
    "l1_failed",
    `${name(settlement)} is no mirror of ${name(wanted)}, but of ${name(source)}`,
  );
}
