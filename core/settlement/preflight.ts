import { severalAtOnce } from "../at-once.ts";
import { pause } from "../backoff.ts";
import { settledBlock } from "../blocks.ts";
import { MintmarkError, messageOf } from "../errors.ts";
import { type Asset, batchIdOf, type Hash, MODES, type Mode, type Uuid } from "../model.ts";
import type { SettlementPort } from "../operator.ts";
import { groupedInPieces, inPieces } from "../pieces.ts";
import type {
  Clock,
  L1Reader,
  L1Registration,
  L1Tokens,
  SealedBatch,
  TokenMint,
} from "../ports.ts";
import { MAX_REFUSAL } from "../progress/batch-progress.ts";
import { slotOf, type VaultEntry } from "../protocol/batch-data.ts";
import { wordsIn } from "../protocol/blob-batch.ts";
import { countOf } from "../protocol/commitment.ts";
import { MAX_FOREIGN_IDS, tokenIdOf, unpayable } from "../protocol/minting-blob.ts";
import { isTransferData } from "../protocol/transfer-data.ts";
import { packVaultId } from "../protocol/vault.ts";
import type { VoidSlots } from "../sealing/void-runs.ts";
import { SECOND_LOOK_MS } from "./follower.ts";
import { Attempts } from "./rounds.ts";

/** Prefix of every fault that this class sets, so that it clears no other. */
const FAULT = "L1 would refuse its mints: ";
/** Pause between two examinations of an asset in ms: of a mintable one, and of one that is not. */
const CHECK_AGAIN_MS = 600_000;
const FAULTY_AGAIN_MS = 60_000;
/**
 * Longest time in ms that a batch waits for an asset that the node cannot try. A token that stops
 * every answer must not hold up the mints of all others for ever.
 */
const LONGEST_UNTRIED_MS = 300_000;
/**
 * Most mints of one ERC-721 token and batch that are simulated. All ids are asked for their owner.
 */
const MOST_TRIALS = 256;
/** Batches whose examination is remembered, and more only while L1 lacks them. */
const EXAMINED = 256;
/** Most characters of a token's reason. */
const MOST_TEXT = 1_000;

/** The chain of the tokens, with the contract that mints them there. */
export type TokenChain = Pick<
  L1Reader,
  | "settlement"
  | "blockNumber"
  | "finalizedBlockNumber"
  | "registrations"
  | "supplyCap"
  | "withdrawn"
> &
  /** Mirrors have neither transfers nor makings. */
  Partial<Pick<L1Reader, "isTransferable" | "isMadeOnly">> &
  L1Tokens;

interface Placed extends VaultEntry {
  readonly slot: number;
}

/** The slots of a batch to make void before its first transaction. */
interface Examined {
  readonly mode: Mode;
  readonly batchNumber: number;
  readonly batchRoot: Hash;
  readonly voids: readonly VoidSlots[];
}

/** Slots of a final batch that their tokens refuse, and the time of their next examination. */
interface Unpayable {
  readonly mode: Mode;
  readonly batchNumber: number;
  readonly slots: ReadonlySet<number>;
  readonly due: number;
}

/**
 * Finds mints that could never be withdrawn soon after they are made, and not at the exit. Runs
 * between two rounds of settling, so no caller waits for L1, and reads a batch in pieces, so no
 * caller waits for the event loop.
 *
 * An asset is examined when it becomes available and regularly after: its minter role, its
 * registration, and a mint of it. A batch is examined once, before anybody signs or commits it: the
 * L1 owners of its ERC-721 ids, the total of each ERC-20 in it and over all mints (its cap), a mint
 * of each ERC-1155 id, and mints of ERC-721 tokens.
 *
 * A fault of the asset as a whole can be mended at the token, so it blocks further mints and goes
 * when L1 takes a mint. A token that L1 refuses by itself in final state never comes: its slot
 * becomes void, and its mint fails with the reason.
 */
export class Preflight {
  readonly #engine: SettlementPort;
  readonly #chain: TokenChain;
  readonly #clock: Clock;
  readonly #secondLookMs: number;
  /** The examined batches. Those that are on L1 are forgotten at times. */
  readonly #examined = new Map<string, Examined>();
  /**
   * The first batch of each mode that was not examined after it became final; empty before the
   * first examination.
   */
  readonly #final = new Map<Mode, number>();
  readonly #unpayable = new Map<string, Unpayable>();
  /** When each asset is examined next. */
  readonly #due = new Map<Uuid, number>();
  /** When the node failed to try each asset of a batch: the first time in a row, and the last. */
  readonly #untried = new Map<Uuid, { readonly since: number; readonly last: number }>();
  /** A refused mint of each asset. It decides whether the asset can be minted again. */
  readonly #refused = new Map<Uuid, TokenMint>();
  /** Assets for which L1 has said whether they are transferable. */
  readonly #transferable = new Set<Uuid>();

  /** @param secondLookMs - the wait before a second look at what would make slots void */
  constructor(
    engine: SettlementPort,
    chain: TokenChain,
    clock: Clock,
    secondLookMs = SECOND_LOOK_MS,
  ) {
    this.#engine = engine;
    this.#chain = chain;
    this.#clock = clock;
    this.#secondLookMs = secondLookMs;
  }

  /** Examines what is due: assets, and final batches. Returns how many. */
  async check(signal?: AbortSignal): Promise<number> {
    return (await this.checkAssets(signal)) + (await this.#checkFinal(signal));
  }

  /** An asset that cannot be asked delays neither the others nor the next round. */
  async checkAssets(signal?: AbortSignal): Promise<number> {
    const due: Asset[] = [];
    for await (const asset of this.#engine.operator.assets()) {
      if (!asset.whitelisted || !asset.registered || !this.#isHere(asset)) continue;
      if ((this.#due.get(asset.assetId) ?? 0) > this.#clock()) continue;
      due.push(asset);
    }
    if (due.length === 0) return 0;
    const [newest, final] = await Promise.all([
      this.#chain.blockNumber(),
      settledBlock(this.#chain),
    ]);
    // Only vaults of batches after the registration count, and a registration that is not final may
    // move.
    const registrations = await this.#chain.registrations(due, final);
    // The node answers, so an asset that cannot be examined now need not hold up the others.
    for (const { assetId } of due) this.#due.set(assetId, this.#clock() + FAULTY_AGAIN_MS);
    const attempts = new Attempts(signal);
    const checked = await severalAtOnce(due, (asset, index) => {
      signal?.throwIfAborted();
      return attempts.of(async () => {
        if (registrations[index] != null) await this.#recordTransferable(asset, final);
        await this.#judge(
          asset,
          await this.#reasonAgainst(asset, registrations[index] ?? null, newest),
        );
        return 1;
      });
    });
    attempts.end();
    return checked.reduce((sum, count) => sum + count, 0);
  }

  /**
   * Examines batches that became final since this process began, and again those with refused
   * vaults, because a token can change after the commit. Records refused vaults with the reason.
   */
  async #checkFinal(signal?: AbortSignal): Promise<number> {
    let checked = 0;
    for (const mode of MODES) {
      const count = countOf(mode, this.#engine.batches.state());
      let next = this.#final.get(mode);
      if (next === undefined) {
        next = count;
        while (next > 0 && !(await this.#isFinal(mode, next - 1))) next--;
      }
      this.#final.set(mode, next);
      while (next < count && (await this.#isFinal(mode, next))) {
        signal?.throwIfAborted();
        await this.#checkAgain(mode, next, null);
        this.#final.set(mode, ++next);
        checked++;
      }
    }
    for (const { mode, batchNumber, slots, due } of [...this.#unpayable.values()]) {
      if (due > this.#clock()) continue;
      await this.#checkAgain(mode, batchNumber, slots);
      checked++;
    }
    return checked;
  }

  async #isFinal(mode: Mode, batchNumber: number): Promise<boolean> {
    return (await this.#engine.batches.get(mode, batchNumber)).status === "finalized";
  }

  /** @param slots - the earlier refused slots; null to examine the whole batch */
  async #checkAgain(
    mode: Mode,
    batchNumber: number,
    slots: ReadonlySet<number> | null,
  ): Promise<void> {
    const { data } = await this.#engine.batches.getSealed(mode, batchNumber);
    // Its vaults pay what the mints promised.
    if (isTransferData(mode, data)) return;
    const refusals = new Map<number, string | null>([...(slots ?? [])].map((slot) => [slot, null]));
    let final: bigint | undefined;
    for await (const [asset, entries] of this.#mintsIn(data, slots)) {
      if (asset.standard === "erc20") continue;
      final ??= await settledBlock(this.#chain);
      const tried = await this.#tryTokens(asset, entries, final, MAX_FOREIGN_IDS);
      await severalAtOnce(tried, async ({ entry: { slot, amount }, reason }) => {
        if (reason === null) return;
        const paid = await this.#chain.withdrawn(
          packVaultId({ mode, batchNumber, slot }),
          asset.standard,
        );
        if (paid < amount) refusals.set(slot, reason.slice(0, MAX_REFUSAL));
      });
    }
    const name = `${mode} ${batchNumber}`;
    this.#unpayable.delete(name);
    if (refusals.size === 0) return;
    const said = [...refusals].map(([slot, refusal]) => ({ slot, refusal }));
    await this.#engine.operator.recordRefusals(mode, batchNumber, said);
    const left = new Set(said.flatMap(({ slot, refusal }) => (refusal === null ? [] : [slot])));
    const due = this.#clock() + CHECK_AGAIN_MS;
    if (left.size > 0) this.#unpayable.set(name, { mode, batchNumber, slots: left, due });
  }

  /**
   * Examines a batch, once for each root. Returns the slots to make void, which it has looked at
   * twice, because a void slot stays void. Rejects while the node cannot be asked; five minutes
   * long, while it cannot be asked about one asset. Then that asset's mints pass, and a later call
   * examines them again.
   */
  async checkBatch(batch: SealedBatch, signal?: AbortSignal): Promise<readonly VoidSlots[]> {
    const { mode, batchNumber, batchRoot, data } = batch;
    const name = batchIdOf(mode, batchNumber);
    const known = this.#examined.get(name);
    if (known?.batchRoot === batchRoot) return known.voids;
    let { voids, isWhole } = await this.#unpayableIn(data);
    if (voids.length > 0) {
      await pause(this.#secondLookMs, signal);
      const again = await this.#unpayableIn(data);
      const stay = new Set(again.voids.map(({ firstSlot }) => firstSlot));
      voids = voids.filter(({ firstSlot }) => stay.has(firstSlot));
      isWhole &&= again.isWhole;
    }
    if (!isWhole) return voids;
    if (this.#examined.size >= EXAMINED) await this.#forgetCommitted();
    this.#examined.set(name, { mode, batchNumber, batchRoot, voids });
    return voids;
  }

  async #forgetCommitted(): Promise<void> {
    const onL1 = await this.#engine.batches.committedState();
    for (const [name, { mode, batchNumber }] of this.#examined)
      if (batchNumber < countOf(mode, onL1)) this.#examined.delete(name);
  }

  /** The slots to make void, and whether every asset could be tried. */
  async #unpayableIn(data: Uint8Array) {
    const voids: VoidSlots[] = [];
    let isWhole = true;
    let final: bigint | undefined;
    for await (const [asset, entries] of this.#mintsIn(data)) {
      final ??= await settledBlock(this.#chain);
      const at = final;
      const examine = () => this.#unpayableOf(asset, entries, at);
      try {
        // A spread has fewer arguments than a batch has slots.
        for (const run of await examine().catch(examine)) voids.push(run);
        this.#untried.delete(asset.assetId);
      } catch (error) {
        // A node that answers this has the state.
        await this.#chain.registrations([asset], at);
        await this.#judge(asset, `it could not be tried: ${messageOf(error)}`);
        const now = this.#clock();
        const known = this.#untried.get(asset.assetId);
        // A failure of long ago shortens no wait.
        const isInRow = known !== undefined && now <= known.last + LONGEST_UNTRIED_MS;
        const since = isInRow ? known.since : now;
        this.#untried.set(asset.assetId, { since, last: now });
        if (now < since + LONGEST_UNTRIED_MS)
          throw new MintmarkError(
            "l1_failed",
            `the node cannot try ${asset.symbol} at ${asset.contractAddress}, so the batch waits, for five minutes at most; look at the node's limits for calls. It says: ${messageOf(error)}`,
            { cause: error instanceof MintmarkError ? error.cause : error },
          );
        isWhole = false;
      }
    }
    return { voids, isWhole };
  }

  async #unpayableOf(
    asset: Asset,
    entries: readonly Placed[],
    final: bigint,
  ): Promise<VoidSlots[]> {
    const isFar = asset.chainId !== this.#engine.settlement.chainId;
    // A mirror would never pay vaults of a batch that is committed now. At home, L1 and the
    // committee prevent that.
    if (isFar && (await this.#chain.registrations([asset], final))[0] === null) {
      const failure = "the mirror that pays it has no final registration of its token";
      return entries.map((entry) => voidOf(entry, failure));
    }
    if (asset.standard !== "erc20") return this.#checkTokens(asset, entries, final);
    await this.#checkTotal(asset, entries);
    return [];
  }

  #isHere({ chainId }: Pick<Asset, "chainId">): boolean {
    return chainId === this.#chain.settlement.chainId;
  }

  /** The registry never changes it. */
  async #recordTransferable(asset: Asset, final: bigint): Promise<void> {
    const { assetId, chainId, minterLocked } = asset;
    if (chainId !== this.#engine.settlement.chainId || this.#transferable.has(assetId)) return;
    const transferable = await this.#chain.isTransferable?.(asset, final);
    if (transferable === undefined) return;
    await this.#engine.operator.recordRegistered(assetId, { minterLocked, transferable });
    this.#transferable.add(assetId);
  }

  /**
   * The mints of a batch, by asset of this chain.
   *
   * @param only - the slots to read; null for all
   */
  async *#mintsIn(
    data: Uint8Array,
    only: ReadonlySet<number> | null = null,
  ): AsyncGenerator<readonly [Asset, readonly Placed[]]> {
    const batch = wordsIn(data);
    const mints: Placed[] = [];
    await inPieces(batch.words.count, (slot) => {
      if (only?.has(slot) === false) return;
      const entry = slotOf(batch, slot);
      if (entry !== null && this.#isHere(entry)) mints.push({ ...entry, slot });
    });
    if (mints.length === 0) return;
    const byType = await groupedInPieces(mints, ({ assetType }) => assetType);
    for await (const asset of this.#engine.operator.assets()) {
      const ofType = this.#isHere(asset) ? (byType.get(asset.assetType) ?? []) : [];
      const entries: Placed[] = [];
      await inPieces(ofType.length, (i) => {
        const entry = ofType[i] as Placed;
        // L1 takes batches of another operator with vaults that it pays nobody.
        if (unpayable(entry, asset.standard, asset.mintingBlobScheme) === null) entries.push(entry);
      });
      if (entries.length > 0) yield [asset, entries];
    }
  }

  /** A batch's whole ERC-20 amount at once: the rest of the cap must be enough for all of it. */
  async #checkTotal(asset: Asset, entries: readonly Placed[]): Promise<void> {
    let units = 0n;
    await inPieces(entries.length, (i) => {
      units += (entries[i] as Placed).amount;
    });
    const total: TokenMint = { quantity: units * asset.quantum, mintingBlob: "0x" };
    const reason = await this.#chain.tryMint(
      asset.contractAddress,
      total,
      await this.#chain.blockNumber(),
    );
    if (reason !== null) this.#refused.set(asset.assetId, total);
    const found = reason ?? (await this.#beyondCap(asset));
    if (found !== null) await this.#judge(asset, found);
  }

  /**
   * Why a token's cap is too low for all mints of it here, the open batch included, withdrawn or
   * not, because withdrawn amounts are part of its supply. The committee's members refuse to sign
   * by the same rule.
   */
  async #beyondCap({ contractAddress, minted, quantum }: Asset): Promise<string | null> {
    const cap = await this.#chain.supplyCap(contractAddress);
    const units = minted * quantum;
    if (cap === null || units <= cap) return null;
    return `${units} base units have been minted in all batches, more than its cap of ${cap}`;
  }

  async #checkTokens(
    asset: Asset,
    entries: readonly Placed[],
    final: bigint,
  ): Promise<VoidSlots[]> {
    const owned = asset.standard === "erc721" ? await this.#owned(asset, entries, final) : [];
    const gone = new Set(owned.map(({ firstSlot }) => firstSlot));
    const left = entries.filter(({ slot }) => !gone.has(slot));
    const tried = await this.#tryTokens(asset, left, final, MOST_TRIALS);
    const refused = tried.flatMap(({ entry, reason }) =>
      reason === null ? [] : [{ entry, reason }],
    );
    const [one] = refused;
    if (one === undefined) return owned;
    if (
      refused.length < tried.length ||
      (await this.#chain.isMinter(asset.contractAddress)) === true
    ) {
      const voids = refused.map(({ entry, reason }) => {
        const id = tokenIdOf(asset.standard, asset.mintingBlobScheme, entry.mintingBlob);
        return voidOf(
          entry,
          `L1 would refuse token ${id} (scheme ${asset.mintingBlobScheme}): ${reason}`,
        );
      });
      return [...owned, ...voids];
    }
    this.#refused.set(asset.assetId, {
      quantity: one.entry.amount,
      mintingBlob: one.entry.mintingBlob,
    });
    await this.#judge(asset, one.reason);
    return owned;
  }

  /**
   * Tries the first mints of an ERC-721. For an ERC-1155, tries each id once, and all entries of a
   * refused id: a token may refuse an amount alone.
   */
  async #tryTokens(asset: Asset, entries: readonly Placed[], final: bigint, most: number) {
    if (asset.standard === "erc721") return this.#try(asset, entries.slice(0, most), final);
    const idOf = ({ mintingBlob }: Placed) =>
      tokenIdOf(asset.standard, asset.mintingBlobScheme, mintingBlob);
    const byId = await groupedInPieces(entries, idOf);
    const firsts = [...byId.values()].slice(0, MAX_FOREIGN_IDS).map(([first]) => first as Placed);
    const tried = await this.#try(asset, firsts, final);
    const others = tried.flatMap(({ entry, reason }) =>
      reason === null ? [] : (byId.get(idOf(entry))?.slice(1) ?? []),
    );
    return others.length === 0 ? tried : [...tried, ...(await this.#try(asset, others, final))];
  }

  async #try({ contractAddress }: Asset, entries: readonly Placed[], final: bigint) {
    const mints = entries.map(({ amount, mintingBlob }) => ({ quantity: amount, mintingBlob }));
    const reasons = await this.#chain.tryMints(contractAddress, mints, final);
    return entries.map((entry, i) => ({ entry, reason: reasons[i] ?? null }));
  }

  async #owned(asset: Asset, entries: readonly Placed[], final: bigint): Promise<VoidSlots[]> {
    const ids: bigint[] = [];
    await inPieces(entries.length, (i) => {
      const { mintingBlob } = entries[i] as Placed;
      ids.push(tokenIdOf(asset.standard, asset.mintingBlobScheme, mintingBlob) ?? 0n);
    });
    const owners = await this.#chain.tokenOwners(asset.contractAddress, ids, final);
    return entries.flatMap((entry, index) => {
      const owner = owners[index] ?? null;
      return owner === null
        ? []
        : [voidOf(entry, `token ${ids[index]} exists on L1 already, and belongs to ${owner}`)];
    });
  }

  /** Why nothing of the asset could be minted on L1 now; null when no reason is known. */
  async #reasonAgainst(
    asset: Asset,
    registration: L1Registration | null,
    newest: bigint,
  ): Promise<string | null> {
    const { assetId, contractAddress, standard, quantum } = asset;
    const payer = `${this.#chain.settlement.contract}, which pays its withdrawals,`;
    if ((await this.#chain.isMinter(contractAddress)) === false)
      return `${payer} does not hold the minter role of ${contractAddress}`;
    if (registration === null)
      return `${payer} has no final registration of it; anyone may register it`;
    if (standard !== "erc20" && registration.mintingBlobScheme !== asset.mintingBlobScheme)
      return `${payer} reads its minting blobs as ${registration.mintingBlobScheme}; it was added here as ${asset.mintingBlobScheme}`;
    const isHome = this.#chain.settlement.chainId === this.#engine.settlement.chainId;
    if (isHome && (await this.#chain.isMadeOnly?.(asset, newest)))
      return `${payer} pays only what came in by the token's own entries`;
    const unit =
      standard === "erc20" ? ({ quantity: quantum, mintingBlob: "0x" } as const) : undefined;
    const mint = this.#refused.get(assetId) ?? unit;
    if (mint === undefined) return null;
    const reason = await this.#chain.tryMint(contractAddress, mint, newest);
    return reason ?? (standard === "erc20" ? this.#beyondCap(asset) : null);
  }

  async #judge({ assetId, unavailableReason }: Asset, reason: string | null): Promise<void> {
    this.#due.set(assetId, this.#clock() + (reason === null ? CHECK_AGAIN_MS : FAULTY_AGAIN_MS));
    const fault = reason === null ? null : `${FAULT}${reason}`.slice(0, MOST_TEXT);
    if (fault === null) this.#refused.delete(assetId);
    if (fault !== null || unavailableReason?.startsWith(FAULT))
      await this.#engine.operator.recordMintingFault(assetId, fault);
  }
}

function voidOf({ slot }: Placed, failure: string): VoidSlots {
  return { firstSlot: slot, count: 1, failure: failure.slice(0, MOST_TEXT) };
}
