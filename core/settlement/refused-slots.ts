import { assetName } from "../adoption/incoming.ts";
import { pause } from "../backoff.ts";
import { requireBlock } from "../blocks.ts";
import { MintmarkError } from "../errors.ts";
import { batchIdOf, type Hash, type Mode, type Standard } from "../model.ts";
import type { SettlementPort } from "../operator.ts";
import type { Clock, L1Committer, L1Reader, SealedBatch } from "../ports.ts";
import { slotsOf, type VaultEntry } from "../protocol/batch-data.ts";
import { wordsIn } from "../protocol/blob-batch.ts";
import { countOf, type StateCounts } from "../protocol/commitment.ts";
import { isTransferData } from "../protocol/transfer-data.ts";
import { SECOND_LOOK_MS } from "./follower.ts";

const SIGNING_MS = 600_000;

/**
 * Makes slots void that L1 or the committee refuses, or takes refused transfers back, so that a
 * refused batch does not block those behind it. A void slot stays void, so two things come first.
 * The refusal must still stand in a block after the first one is final. No earlier transaction may
 * still commit the old batch: the account uses up its nonces, and the block that did so must be
 * final. The same holds for a batch without a recorded transaction, because a process can end, or
 * an answer be lost, before the record. One per engine.
 */
export class RefusedSlots {
  readonly #engine: SettlementPort;
  readonly #l1: L1Reader & L1Committer;
  readonly #clock: Clock;
  readonly #signingMs: number;
  readonly #secondLookMs: number;
  /**
   * The block that must be final, by batch and last transaction. A new process starts the wait
   * anew.
   */
  readonly #waiting = new Map<string, bigint>();
  /** An earlier process may have sent the batches before these without a record of it. */
  readonly #firstUnsent: StateCounts;
  /** The batch of transfers that members do not sign, and since when on the clock. */
  #unsigned: { readonly root: Hash; readonly since: number } | null = null;

  /** @param signingMs - how long rollup batches wait for members to sign transfers before them */
  constructor(
    engine: SettlementPort,
    l1: L1Reader & L1Committer,
    clock: Clock,
    signingMs = SIGNING_MS,
    secondLookMs = SECOND_LOOK_MS,
  ) {
    this.#secondLookMs = secondLookMs;
    this.#engine = engine;
    this.#l1 = l1;
    this.#clock = clock;
    this.#signingMs = signingMs;
    this.#firstUnsent = engine.batches.state();
  }

  /**
   * Returns whether slots of a batch that could not be committed became void, so that a retry makes
   * sense.
   */
  async voidOf(batch: SealedBatch, signal?: AbortSignal): Promise<boolean> {
    const { mode, batchNumber } = batch;
    if (isTransferData(mode, batch.data)) {
      const fault = await this.#transferFault(batchNumber);
      const failure = fault ?? this.#unsignedFor(batch.batchRoot);
      if (failure === null) return false;
      if ((await this.mayBeSent(mode, batchNumber)) && !(await this.#isUnusable(batch, signal)))
        return false;
      await this.#engine.operator.takeBackTransfers(batchNumber, failure, {
        givesUp: fault === null,
      });
      return true;
    }
    const { slots, unregistered } = await this.#refused(batch);
    if (slots.length === 0 || !(await this.#isUnusable(batch, signal))) return false;
    const gone = new Set(unregistered.map(assetName));
    for await (const asset of this.#engine.operator.assets())
      if (gone.has(assetName(asset)))
        await this.#engine.operator.recordMintingFault(
          asset.assetId,
          "the asset is no longer registered on L1",
        );
    await this.#engine.operator.voidSlots(mode, batchNumber, slots);
    return true;
  }

  /**
   * Takes a batch of transfers back that holds records that would not count. Throws `l1_failed`
   * when it may have been sent: {@link voidOf} handles that.
   */
  async takeBackInvalid(batchNumber: number, signal?: AbortSignal): Promise<void> {
    if ((await this.#transferFault(batchNumber)) === null) return;
    // The node may have told the time of another chain.
    await pause(this.#secondLookMs, signal);
    const fault = await this.#transferFault(batchNumber);
    if (fault === null) return;
    const detail = `The batch of transfers is taken back when it can no longer be mined: ${fault}`;
    if (await this.mayBeSent("zk-rollup", batchNumber))
      throw new MintmarkError("l1_failed", detail);
    await this.#engine.operator.takeBackTransfers(batchNumber, fault);
  }

  /**
   * Throws `l1_failed` while an earlier transaction may still commit the batch, so that no slot of
   * it can become void. Begins to make it so.
   */
  async requireUnusable(batch: SealedBatch, signal?: AbortSignal): Promise<void> {
    if (await this.#isUnusable(batch, signal)) return;
    const detail = `Slots of ${batchIdOf(batch.mode, batch.batchNumber)} become void when no earlier transaction can commit it any more.`;
    throw new MintmarkError("l1_failed", detail);
  }

  /** Mints in rollup batches need no member, so they go on. */
  notSigned({ batchRoot: root }: SealedBatch): void {
    if (this.#unsigned?.root !== root) this.#unsigned = { root, since: this.#clock() };
  }

  /** Why the members have not signed a batch in time; null while they may still do so. */
  #unsignedFor(root: Hash): string | null {
    if (this.#unsigned?.root !== root || this.#clock() - this.#unsigned.since < this.#signingMs)
      return null;
    return "The committee has not signed the transfers in time. Submit the same signed transfers again later.";
  }

  /** Whether a transaction with the batch may be under way. */
  async mayBeSent(mode: Mode, batchNumber: number): Promise<boolean> {
    if (batchNumber < countOf(mode, this.#firstUnsent)) return true;
    return (await this.#engine.batches.get(mode, batchNumber)).l1TxHash !== null;
  }

  async #transferFault(batchNumber: number): Promise<string | null> {
    const { timestamp } = await requireBlock(this.#l1, "latest");
    return this.#engine.operator.transferFault(batchNumber, timestamp);
  }

  /** Whether no earlier transaction can commit the batch any more. Begins to make it so. */
  async #isUnusable(batch: SealedBatch, signal?: AbortSignal): Promise<boolean> {
    const { l1TxHash } = await this.#engine.batches.get(batch.mode, batch.batchNumber);
    const name = `${batch.batchRoot} ${l1TxHash}`;
    const since = this.#waiting.get(name);
    if (since === undefined) {
      const { blockNumber } = await this.#l1.useUpNonces({ signal });
      this.#waiting.set(name, blockNumber);
      return false;
    }
    if ((await this.#l1.finalizedBlockNumber()) < since) return false;
    this.#waiting.delete(name);
    return true;
  }

  /**
   * The slots that L1 refuses now, and the assets that it does not know, by those rules of
   * docs/protocol.md 4 and of the committee that depend on L1.
   */
  async #refused(batch: SealedBatch) {
    const { mode, data } = batch;
    const entries = slotsOf(wordsIn(data));
    const registrations = await this.#l1.registrations(batch.assets);
    const standards = new Map(
      batch.assets.map((asset, i) => [assetName(asset), registrations[i]?.standard ?? null]),
    );
    const failures =
      mode === "validium" ? await this.#beyondCaps(entries) : new Map<number, string>();
    for (const [slot, entry] of entries.entries()) {
      if (entry === null) continue;
      const standard = standards.get(assetName(entry)) ?? null;
      const failure =
        standard === null ? "L1 has no registration of the asset" : unlike(standard, entry);
      if (failure !== null) failures.set(slot, failure);
    }
    const unregistered = batch.assets.filter((_, i) => registrations[i] == null);
    const slots = [...failures].map(([firstSlot, failure]) => ({ firstSlot, count: 1, failure }));
    return { slots: slots.sort((a, b) => a.firstSlot - b.firstSlot), unregistered };
  }

  /**
   * The last slots of each ERC-20 whose mints exceed its cap, as many as exceed it: members sign no
   * batch with them. A token can lower its cap at any time, and must not stop the others.
   */
  async #beyondCaps(entries: readonly (VaultEntry | null)[]): Promise<Map<number, string>> {
    const failures = new Map<number, string>();
    const types = new Set(entries.map((entry) => entry?.assetType));
    for await (const asset of this.#engine.operator.assets()) {
      const { standard, chainId, assetType, contractAddress, quantum, minted } = asset;
      if (standard !== "erc20" || chainId !== this.#l1.settlement.chainId || !types.has(assetType))
        continue;
      const cap = await this.#l1.supplyCap(contractAddress);
      if (cap === null) continue;
      let excess = minted - cap / quantum;
      for (let slot = entries.length - 1; slot >= 0 && excess > 0n; slot--) {
        const entry = entries[slot] ?? null;
        if (entry === null || entry.assetType !== assetType || entry.chainId !== chainId) continue;
        failures.set(slot, `more was minted than the token's cap of ${cap} lets out`);
        excess -= entry.amount;
      }
    }
    return failures;
  }
}

/** Why a vault does not fit the standard under which L1 has the asset. */
function unlike(standard: Standard, { amount, mintingBlob }: VaultEntry): string | null {
  const isEmpty = mintingBlob === "0x";
  if (isEmpty !== (standard === "erc20"))
    return `L1 has the asset registered as ${standard}, which this minting blob does not fit`;
  return standard === "erc721" && amount !== 1n
    ? "L1 has the asset registered as erc721, whose amount is 1"
    : null;
}
