import type { LocalAccount } from "viem";
import { Archive } from "../archive/archive.ts";
import { type BatchSummary, isBatch } from "../archive/derive.ts";
import type { Commit } from "../archive/keys.ts";
import * as keys from "../archive/keys.ts";
import type { AssetReader } from "../archive/vault-index.ts";
import { pause } from "../backoff.ts";
import { commitsIn } from "../blocks.ts";
import type { Address, Hash, Hex, Mode } from "../model.ts";
import type { HistoryPoint, L1Reader, L1State, ProposedBatch } from "../ports.ts";
import { nextHistory, stateLeaf } from "../protocol/commitment.ts";
import type { Kzg } from "../protocol/kzg/kzg-thread.ts";
import { isTransferData } from "../protocol/transfer-data.ts";
import type { Database } from "../store/ports.ts";
import { type AttestationTerms, attestationTypedData } from "./member-service.ts";
import { deriveProposed, MAX_AHEAD, Refusal, requireRegistered, requireValid } from "./proposed.ts";

/** Options of {@link CommitteeMember.open}. */
export interface MemberOptions {
  readonly account: LocalAccount;
  /** The member's own store, not shared. {@link CommitteeMember.close} closes it. */
  readonly store: Database;
  readonly l1: AssetReader & Pick<L1Reader, "state" | "blockNumber" | "block" | "events">;
  /** Checks blobs. Default: a thread of its own. */
  readonly kzg?: Kzg;
  /**
   * Milliseconds that the member waits for its node to catch up with the operator's; default 5,000.
   */
  readonly lagMs?: number;
}

const LAG_POLL_MS = 250; // Milliseconds between two requests to a node that is behind

/**
 * One member of the data availability committee. Before it signs a batch of transfers, it judges
 * every record as L1 does, from its own archive. Before it signs a validium batch, it stores all
 * data and derives from it everything that it signs. The batch must be the next one in its own
 * node's history, or after further batches that it has signed itself. L1 takes the signature after
 * that history only. A member never signs two roots for one batch number and one history, even
 * after a restart.
 *
 * When L1's history continues without a signed batch, another batch may take its number. Otherwise
 * the lost batch of one of two operators on copies of one store would block the number forever. The
 * first signature is then useless, because its history has passed. The member keeps the data of
 * both.
 *
 * Its store is an {@link Archive}. A `Watcher` that keeps it up to date with L1 lets the member
 * also check tokens and caps against rollup batches, and gives it the batches that it missed.
 *
 * @example
 * const member = await CommitteeMember.open({ account, store: new Level("./member"), l1 });
 */
export class CommitteeMember {
  readonly address: Address;
  readonly archive: Archive;
  readonly #account: LocalAccount;
  readonly #l1: MemberOptions["l1"];
  readonly #lagMs: number;
  /** A lower bound of {@link CommitteeMember.nextBatch}. */
  #next = 0;

  private constructor({ account, l1, lagMs = 5_000 }: MemberOptions, archive: Archive) {
    this.address = account.address.toLowerCase() as Address;
    this.archive = archive;
    this.#account = account;
    this.#l1 = l1;
    this.#lagMs = lagMs;
  }

  /** Opens the member's store; rejects with `store_mismatch` for another settlement contract. */
  static async open(options: MemberOptions): Promise<CommitteeMember> {
    return new CommitteeMember(options, await Archive.open(options));
  }

  /**
   * Stores and checks a batch, then signs it: 65 bytes, `r ‖ s ‖ v`.
   *
   * @throws Refusal with the reason, when the batch is not as the operator says, or the member has
   *   signed another one
   */
  async sign(batch: ProposedBatch, terms: AttestationTerms): Promise<Hex> {
    const areTransfers = isTransferData(batch.mode, batch.data);
    if (batch.mode !== "validium" && !areTransfers)
      throw new Refusal(
        "mode",
        "the committee signs validium batches and batches of transfers only",
      );
    // Values out of bounds are refused here, before anything is stored.
    const message = attestationTypedData(this.archive.settlement, batch, terms);
    const deadline = performance.now() + this.#lagMs;
    for (;;) {
      try {
        if (areTransfers) await this.#checkTransfers(batch, terms);
        else await this.archive.inTurn(() => this.#take(batch, terms));
        return await this.#account.signTypedData(message);
      } catch (error) {
        const isBehind = error instanceof Refusal && error.reason === "behind";
        if (!isBehind || performance.now() >= deadline) throw error;
        await pause(LAG_POLL_MS);
      }
    }
  }

  /**
   * Checks every record as L1 will judge it. Nothing is stored, because L1 gets the data itself.
   */
  async #checkTransfers(batch: ProposedBatch, asked: HistoryPoint): Promise<void> {
    const onL1 = await this.#l1.state();
    if (asked.history !== onL1.history) throw disagreed(asked, onL1);
    const { countRollup } = onL1;
    if (batch.batchNumber !== countRollup)
      throw new Refusal(
        "ahead",
        `L1 has ${countRollup} rollup batches, so the next is not ${batch.batchNumber}`,
      );
    const { transfers } = await deriveProposed(batch, this.archive);
    await requireValid(transfers ?? [], { ...batch, ...asked }, this.archive, this.#l1);
  }

  /** The stored data of a batch; null when this member has not seen it. */
  async data(mode: Mode, batchNumber: number): Promise<Uint8Array | null> {
    const committed = await this.archive.data(mode, batchNumber);
    if (committed !== null || mode !== "validium") return committed;
    const signed = await this.#signed(batchNumber);
    return signed === null ? null : this.archive.dataOf(signed.dataHash);
  }

  /** The number of the first batch that this member has not stored. */
  async nextBatch(): Promise<number> {
    const newest = { ...keys.within("signed/"), reverse: true, limit: 1 };
    for await (const key of this.archive.store.keys<string>(newest))
      this.#next = Math.max(this.#next, keys.batchNumberOf(key) + 1);
    // Batches that others signed, with data from L1's history.
    while (await this.archive.holds("validium", this.#next)) this.#next++;
    return this.#next;
  }

  close(): Promise<void> {
    return this.archive.close();
  }

  /** Checks everything, then writes data, record and index at once; durable when it resolves. */
  async #take(batch: ProposedBatch, asked: HistoryPoint): Promise<void> {
    const { batchNumber, batchRoot, vaultCount, dataHash } = batch;
    const { history } = asked;
    const onL1 = await this.#l1.state();
    const next = await this.#nextAfter(asked, onL1);
    if (batchNumber > next)
      throw new Refusal(
        "ahead",
        `the history that it follows has ${next} validium batches, not ${batchNumber}`,
      );
    const signed = await this.#signed(batchNumber);
    const committed = await this.archive.commit("validium", batchNumber);
    const isNext = batchNumber === next;
    const isLost = signed !== null && isNext && signed.history !== history && committed === null;
    if (signed !== null && isBatch(signed, batch) && !isLost) return;
    if (!isLost && (signed !== null || (committed !== null && !isCommitted(committed, batch))))
      throw new Refusal("equivocation", `validium batch ${batchNumber} has another root`);
    if (batchNumber > (await this.nextBatch()))
      throw new Refusal("gap", `this member has not seen validium batch ${this.#next}`);
    if (isNext) await this.#requireHeld(onL1);
    if (isLost) await this.#forget(batchNumber);
    const entries = await this.#check(batch);
    entries.set(
      keys.signedKey(batchNumber),
      JSON.stringify({ batchRoot, vaultCount, dataHash, history }),
    );
    await this.archive.write(entries, batch, keys.DURABLE);
  }

  /**
   * The number of validium batches in a history: L1's, with those signed since. The index holds the
   * same batches.
   */
  async #nextAfter(asked: HistoryPoint, onL1: L1State): Promise<number> {
    let { history, countValidium: next } = onL1;
    for (; history !== asked.history && next < onL1.countValidium + MAX_AHEAD - 1; next++) {
      const signed = await this.#signed(next);
      if (signed?.history !== history) break;
      history = nextHistory(history, "validium", leafOf(next, signed));
    }
    if (history !== asked.history) throw disagreed(asked, onL1);
    return next;
  }

  /**
   * Checks that L1 has the validium batches of the index here, so the next batch is checked against
   * them. Where L1 took others, the member forgets the signed ones, and a later request brings
   * L1's.
   */
  async #requireHeld({ countValidium, rootValidium }: L1State): Promise<void> {
    const final = this.archive.state().countValidium;
    const isHeld = async () => {
      const leaves: Hash[] = [];
      for (let batchNumber = final; batchNumber < countValidium; batchNumber++) {
        const signed = await this.#signed(batchNumber);
        if (signed !== null) leaves.push(leafOf(batchNumber, signed));
      }
      return this.archive.rootWith("validium", leaves) === rootValidium;
    };
    if ((await isHeld()) || ((await this.#learnRoots(final)) && (await isHeld()))) return;
    await this.#forget(final);
    throw new Refusal(
      "gap",
      `L1 has other validium batches from ${final} on than this member: ask again`,
    );
  }

  /**
   * Notes the roots that L1's newest events have of signed batches: L1 may have left assets out.
   * Returns whether there was one to note.
   */
  async #learnRoots(from: number): Promise<boolean> {
    let learned = false;
    const newest = await this.#l1.blockNumber();
    for await (const event of commitsIn(this.#l1, this.archive.position?.block ?? 0n, newest)) {
      if (event.mode !== "validium" || event.batchNumber < from) continue;
      const { batchNumber, dataHash, batchRoot: rootOnL1, leftOut = [] } = event;
      const signed = await this.#signed(batchNumber);
      if (signed?.dataHash !== dataHash || (signed.rootOnL1 ?? signed.batchRoot) === rootOnL1)
        continue;
      const data = await this.archive.dataOf(dataHash);
      if (data === null) continue;
      const options = { leftOut };
      if (
        !isBatch(await this.archive.deriving.derive("validium", batchNumber, data, options), event)
      )
        continue;
      await this.archive.store.put(
        keys.signedKey(batchNumber),
        JSON.stringify({ ...signed, rootOnL1 }),
        keys.TEXT,
      );
      learned = true;
    }
    return learned;
  }

  /**
   * Removes batches from a number on, which L1 did not take, from the index and the signatures.
   * Keeps their data.
   */
  async #forget(from: number): Promise<void> {
    const signed = { ...keys.within("signed/"), gte: keys.signedKey(from), reverse: true };
    for await (const key of this.archive.store.keys<string>(signed)) {
      const batchNumber = keys.batchNumberOf(key);
      if ((await this.archive.commit("validium", batchNumber)) === null)
        await this.archive.unindex(batchNumber, key);
    }
    this.#next = Math.min(this.#next, from);
  }

  /**
   * Checks the batch and returns its index entries. Refuses tokens that exist already, and amounts
   * above a cap.
   */
  async #check(batch: ProposedBatch): Promise<Map<string, string>> {
    const derived = await deriveProposed(batch, this.archive);
    await requireRegistered(derived, this.archive.assets);
    const taken = await this.archive.commit("validium", batch.batchNumber);
    const { puts, repeats } = await this.archive.indexing(
      "validium",
      batch.batchNumber,
      derived,
      taken,
    );
    // For a token of another chain, a second reading is recorded for watchers there and refuses
    // nothing here.
    const repeat = repeats.find(({ asset, scheme }) => scheme === asset.mintingBlobScheme);
    if (repeat !== undefined)
      throw new Refusal(
        "duplicate",
        `vault ${repeat.vault.vaultId} repeats a token of ${repeat.holder}`,
      );
    for (const { chainId, assetType } of derived.assets) {
      const asset = this.archive.assets.known(chainId, assetType);
      const cap = asset && (await this.archive.assets.cap(chainId, asset));
      if (asset === null || cap === null) continue;
      const minted = BigInt(puts.get(keys.mintedKey(chainId, asset.token)) ?? "0");
      if (minted > cap)
        throw new Refusal(
          "cap",
          `this would mint ${minted} base units of ${asset.token}, above its cap ${cap}`,
        );
    }
    return puts;
  }

  async #signed(batchNumber: number): Promise<SignedBatch | null> {
    return keys.fromText(await this.archive.text(keys.signedKey(batchNumber)));
  }
}

/** The operator and this member's node see different histories. */
function disagreed({ sequence }: HistoryPoint, { countValidium, countRollup }: L1State): Refusal {
  const commits = BigInt(countValidium + countRollup);
  if (commits < sequence) {
    const detail = `this member's node shows ${commits} commits, and the batch follows ${sequence}`;
    return new Refusal("behind", `${detail}: ask again; if that does not help, check the node`);
  }
  const detail = `this member's node shows another history of ${commits} commits than the batch follows`;
  return new Refusal(
    "diverged",
    `${detail}: ask again; if that does not help, compare the operator's store with L1`,
  );
}

/** A batch that the member has signed. */
interface SignedBatch extends BatchSummary {
  readonly history?: Hash;
  // The root that L1 has of it, when that is another one than it was signed with
  readonly rootOnL1?: Hash;
}

function leafOf(
  batchNumber: number,
  { batchRoot, rootOnL1 = batchRoot, ...signed }: SignedBatch,
): Hash {
  return stateLeaf({ batchNumber, ...signed, batchRoot: rootOnL1 });
}

/** Assets that L1 leaves out change a batch's root, and not its data. */
function isCommitted(commit: Commit, batch: BatchSummary): boolean {
  if (commit.leftOut.length === 0) return isBatch(commit, batch);
  return commit.dataHash === batch.dataHash && commit.vaultCount === batch.vaultCount;
}
