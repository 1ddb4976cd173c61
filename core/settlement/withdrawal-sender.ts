import { backoffDelay } from "../backoff.ts";
import { batchIdOf, type Hash, type Hex, type Uuid, type VaultId } from "../model.ts";
import type { SettlementPort } from "../operator.ts";
import type { Clock, Portal, WithdrawalCall } from "../ports.ts";
import { sharesOf, tipOwnerOf } from "../protocol/transfer-proof.ts";
import { type BatchVaultPlace, unpackBatchVaultId, unpackVaultId } from "../protocol/vault.ts";
import { RESEND, RETRY, Refusals, refusalNow, refusedInside, sentTogether } from "../refusals.ts";
import type { PendingWithdrawal } from "../withdrawals/pending.ts";
import { type Follower, SECOND_LOOK_MS } from "./follower.ts";

/** Transactions of one pass, after which the chain is read again. */
const PER_PASS = 10;
/** Transactions under way at once. The account has room for as many commits beside them. */
const UNDER_WAY = 3;
/** A withdrawal with everything that the contract needs. */
type Sendable = PendingWithdrawal & { readonly call: WithdrawalCall };

/** A withdrawal that the contract refused, as it was signed then. */
interface Refused {
  readonly times: number;
  /** The time of the clock before which it is not sent. */
  readonly notBefore: number;
  readonly signature: Hex;
}

export interface SenderOptions {
  readonly engine: SettlementPort;
  readonly portal: Portal;
  readonly follower: Follower;
  /** Monotonic milliseconds. */
  readonly clock: Clock;
  /** Block of the portal's deployment. */
  readonly fromBlock: bigint;
  /** Least time between two looks before a withdrawal fails for good, in ms; default 15 000. */
  readonly secondLookMs?: number | undefined;
}

/**
 * Sends owners' withdrawals of one chain's tokens to the contract that pays there, ready ones
 * together. One per engine and chain.
 */
export class WithdrawalSender {
  readonly #engine: SettlementPort;
  readonly #portal: Portal;
  readonly #follower: Follower;
  readonly #fromBlock: bigint;
  readonly #secondLookMs: number;
  /** When each withdrawal was first seen to have expired, with its deadline. */
  readonly #expired = new Map<Uuid, { readonly at: number; readonly deadline: bigint }>();
  readonly queue: ReturnType<typeof pendingQueue>;
  readonly #clock: Clock;
  /**
   * Withdrawals that the contract refused last time. A new process tries each at once, which is
   * harmless.
   */
  readonly #refused = new Map<Uuid, Refused>();
  /** Number of better signatures at the last pass. */
  #betterSignatures = 0;
  /**
   * Withdrawals refused in transactions, by owner and asset. Owner or asset caused it, so newly
   * signed ones of both wait too.
   */
  readonly #refusedSent: Refusals<string>;

  constructor(options: SenderOptions) {
    const { engine, portal, follower, clock, fromBlock, secondLookMs = SECOND_LOOK_MS } = options;
    this.#secondLookMs = secondLookMs;
    this.#engine = engine;
    this.#portal = portal;
    this.#follower = follower;
    this.#fromBlock = fromBlock;
    this.queue = pendingQueue(engine, portal.settlement.chainId);
    this.#clock = clock;
    this.#refusedSent = new Refusals(clock);
  }

  /**
   * Sends pending withdrawals that would succeed now, in a few transactions, follows the results,
   * and returns how many. Simulates each one first. One that would fail is left out with its reason
   * on record, and tried again after growing pauses, so a token that always refuses costs nobody
   * else anything. Immature ERC-721 vaults wait.
   */
  async send(signal?: AbortSignal): Promise<number> {
    if ((await this.queue.listed()).size === 0) return 0;
    // An earlier transaction may have paid some of them.
    if (await this.#portal.earlierMined(signal)) await this.#follower.follow(signal);
    const sent = await this.#sendReady(signal);
    if (sent > 0) await this.#follower.follow(signal);
    return sent;
  }

  async #sendReady(signal?: AbortSignal): Promise<number> {
    const [moment, most] = await Promise.all([this.#now(), this.#portal.mostWithdrawals()]);
    await this.#releaseSignedAnew();
    // A node that told another time once must not be believed at once when it does so again.
    for (const [withdrawalId, { deadline }] of this.#expired)
      if (moment.finalTime <= deadline) this.#expired.delete(withdrawalId);
    const isHeld = (id: Uuid) => (this.#refused.get(id)?.notBefore ?? 0) > this.#clock();
    const ready: PendingWithdrawal[] = [];
    for await (const pending of this.queue.ready(moment, isHeld)) {
      signal?.throwIfAborted();
      if (moment.finalTime > pending.withdrawal.deadline)
        await this.#giveUp(pending, moment, signal);
      else ready.push(pending);
      if (ready.length === PER_PASS * most) break;
    }
    const groups = groupsOf(ready, most, () => 1);
    let sent = 0;
    const sending = Array.from({ length: UNDER_WAY }, async () => {
      for (const group of groups) {
        signal?.throwIfAborted();
        const count = await this.#sendGroup(group, most, signal);
        sent += count;
      }
    });
    await Promise.allSettled(sending);
    await Promise.all(sending);
    return sent;
  }

  async #now(): Promise<Moment> {
    const [maturity, newest, final] = await Promise.all([
      this.#portal.maturity(),
      this.#portal.block("latest"),
      this.#portal.finalizedBlockNumber().then((number) => this.#portal.block(number)),
    ]);
    return { maturity, time: newest?.timestamp ?? 0n, finalTime: final?.timestamp ?? 0n };
  }

  /** A better signature is tried at once. */
  async #releaseSignedAnew(): Promise<void> {
    const { operator } = this.#engine;
    const count = operator.betterSignatures();
    if (count === this.#betterSignatures) return;
    for (const [withdrawalId, { signature }] of this.#refused) {
      const pending = await operator.pendingWithdrawal(withdrawalId);
      if (pending?.authorization.signature !== signature) this.#refused.delete(withdrawalId);
    }
    this.#betterSignatures = count;
  }

  /**
   * Frees the reserve when the authorization can never be used again: its deadline is before a
   * final block.
   */
  async #giveUp(
    pending: PendingWithdrawal,
    { finalTime }: Moment,
    signal?: AbortSignal,
  ): Promise<void> {
    const { withdrawal } = pending;
    const { withdrawalId, deadline } = withdrawal;
    const first = this.#expired.get(withdrawalId) ?? { at: this.#clock(), deadline };
    this.#expired.set(withdrawalId, first);
    if (this.#clock() - first.at < this.#secondLookMs) return;
    if (await this.#isDecided(pending, signal)) return;
    const reason = withdrawal.failure ?? "The authorization expired before L1 could take it.";
    await this.#engine.operator.recordWithdrawalFailed(withdrawal.withdrawalId, reason, finalTime);
    this.#refused.delete(withdrawal.withdrawalId);
    this.#expired.delete(withdrawal.withdrawalId);
  }

  async #sendGroup(
    group: readonly PendingWithdrawal[],
    most: number,
    signal?: AbortSignal,
  ): Promise<number> {
    const sendable: Sendable[] = [];
    for (const pending of group) {
      const call = await this.#callOf(pending);
      if (call === null) continue;
      const cause = causeOf(call);
      if (this.#refusedSent.isHeld(cause)) this.#hold(pending, this.#refusedSent.heldUntil(cause));
      else sendable.push({ ...pending, call });
    }
    const refusals = await Promise.all(
      sendable.map(({ call }) =>
        refusalNow(() => this.#portal.checkWithdrawal(call), this.#portal),
      ),
    );
    const ready: Sendable[] = [];
    for (const [index, pending] of sendable.entries()) {
      const reason = refusals[index] ?? null;
      if (reason === null) ready.push(pending);
      else if (!(await this.#isDecided(pending, signal))) await this.#refuse(pending, reason);
    }
    let sent = 0;
    for (const calls of groupsOf(ready, most, ({ call }) => sharesOf(call)))
      sent += await this.#relay(calls, signal);
    return sent;
  }

  /** Sends a group in one transaction, or in several when L1 reverts it. Returns how many. */
  async #relay(ready: readonly Sendable[], signal?: AbortSignal): Promise<number> {
    const { operator } = this.#engine;
    const send = (some: readonly Sendable[]) => {
      const onSent = async (txHash: Hash) => {
        for (const { withdrawal } of some)
          await operator.recordWithdrawalSubmitted(withdrawal.withdrawalId, txHash);
      };
      const calls = some.map(({ call }) => call);
      return this.#portal.withdraw(calls, { signal, onSent });
    };
    for await (const [pending, refusal] of sentTogether(ready, send)) {
      if (refusal === null) this.#refused.delete(pending.withdrawal.withdrawalId);
      else await this.#refuseSent(pending, refusal);
    }
    return ready.length;
  }

  /** null when the contract no longer knows the batch. */
  async #callOf({ withdrawal, authorization }: PendingWithdrawal): Promise<WithdrawalCall | null> {
    const { vaultId, quantity, recipient } = withdrawal;
    const { header, ...proof } = await this.#engine.proofs.exit(vaultId);
    return header && { ...proof, header, quantity, recipient, authorization };
  }

  /**
   * Whether L1 has decided it: its contract has paid units of the vault since the owner signed.
   * Then the events are read again, because the node must have left them out.
   */
  async #isDecided(
    { withdrawal, standard }: PendingWithdrawal,
    signal?: AbortSignal,
  ): Promise<boolean> {
    const { withdrawalId, vaultId, withdrawnBefore } = withdrawal;
    if ((await this.#portal.withdrawn(vaultId, standard)) <= withdrawnBefore) return false;
    const { operator } = this.#engine;
    const isPending = async () => (await operator.pendingWithdrawal(withdrawalId)) !== null;
    await this.#follower.follow(signal);
    if (!(await isPending())) return true;
    await this.#follower.readAgain(await this.#firstBlockOf(vaultId), signal);
    return !(await isPending());
  }

  /** A block before which the chain tells of no withdrawal of the vault. */
  async #firstBlockOf(vaultId: VaultId): Promise<bigint> {
    const { mode, batchNumber } = unpackVaultId(vaultId);
    const isHome = this.#portal.settlement.chainId === this.#engine.settlement.chainId;
    if (!isHome || mode === "made") return this.#fromBlock;
    return (await this.#engine.batches.get(mode, batchNumber)).l1BlockNumber ?? this.#fromBlock;
  }

  async #refuse(pending: PendingWithdrawal, reason: string): Promise<void> {
    const { withdrawalId } = pending.withdrawal;
    const times = (this.#refused.get(withdrawalId)?.times ?? 0) + 1;
    this.#hold(pending, this.#clock() + backoffDelay(RETRY, times), times);
    await this.#engine.operator.recordWithdrawalAttempt(withdrawalId, reason);
  }

  /** A token or a recipient can behave differently in a simulation and on L1. */
  async #refuseSent(pending: Sendable, refusal: string): Promise<void> {
    this.#hold(pending, this.#refusedSent.hold(causeOf(pending.call), RESEND));
    const { withdrawalId } = pending.withdrawal;
    const told = refusedInside("withdrawal", refusal);
    await this.#engine.operator.recordWithdrawalAttempt(withdrawalId, told);
  }

  #hold(
    { withdrawal: { withdrawalId }, authorization: { signature } }: PendingWithdrawal,
    notBefore: number,
    times = this.#refused.get(withdrawalId)?.times ?? 0,
  ): void {
    this.#refused.set(withdrawalId, { times, notBefore, signature });
  }
}

/** The possible causes of a refusal: the owner's wallet, or the token. */
function causeOf(call: WithdrawalCall): string {
  return `${tipOwnerOf(call)} ${call.vault.assetType}`.toLowerCase();
}

/** Groups of one transaction each, of at most so many shares. A signed list is one more. */
function* groupsOf<P extends PendingWithdrawal>(
  ready: readonly P[],
  most: number,
  sharesOf: (pending: P) => number,
): Generator<readonly P[]> {
  let group: P[] = [];
  let lists = new Set<Hash>();
  let shares = 0;
  for (const pending of ready) {
    const ownShares = sharesOf(pending) + (lists.has(pending.digest) ? 0 : 1);
    if (shares + ownShares > most && group.length > 0) {
      yield group;
      group = [];
      lists = new Set();
      shares = 0;
    }
    shares += sharesOf(pending) + (lists.has(pending.digest) ? 0 : 1);
    lists.add(pending.digest);
    group.push(pending);
  }
  if (group.length > 0) yield group;
}

/** Facts of the chain, read once for a whole pass. */
export interface Moment {
  /** Seconds that an ERC-721 vault waits after its batch's commit. */
  readonly maturity: bigint;
  /** Seconds of the newest block. */
  readonly time: bigint;
  /** Seconds of the newest final block. */
  readonly finalTime: bigint;
}

interface Wait {
  readonly deadline: bigint;
  /** The batch that the chain's contract did not know at the last read; null when it knew it. */
  readonly batch: string | null;
  /** Time of the commit's block of an ERC-721 vault, in seconds; else 0. */
  readonly committedAt: bigint;
}

/**
 * The pending withdrawals of one chain. A pass lists only new ones, and reads only those that may
 * be ready: the first of those that wait for one batch, and no immature one. The memory is a
 * shortcut: each withdrawal is read again before it is sent.
 */
export function pendingQueue({ operator }: SettlementPort, chainId: bigint) {
  /** Oldest first. */
  const waits = new Map<Uuid, Wait>();
  /** The sequence of the newest listed one. */
  let newest = -1;
  /** Number of recorded reorganisations at the last pass. */
  let reorganisations = 0;
  const listed = async (): Promise<ReadonlyMap<Uuid, Wait>> => {
    // A reorganisation may have taken back batches, and payments of older withdrawals.
    if (operator.reorganisations() !== reorganisations) {
      waits.clear();
      newest = -1;
      reorganisations = operator.reorganisations();
    }
    for await (const pending of operator.pendingWithdrawals(chainId, { after: newest })) {
      waits.set(pending.withdrawal.withdrawalId, waitOf(pending));
      newest = pending.sequence;
    }
    return waits;
  };
  /**
   * One as it is now; null when it has settled or failed, and is forgotten.
   *
   * @param known - the batches examined in this pass, and whether the contract knows them
   */
  const read = async (id: Uuid, known: Map<string, boolean>): Promise<PendingWithdrawal | null> => {
    const pending = await operator.pendingWithdrawal(id);
    if (pending === null) {
      waits.delete(id);
      return null;
    }
    known.set(batchOf(pending.withdrawal.vaultId), pending.header !== null);
    waits.set(id, waitOf(pending));
    return pending;
  };
  return {
    /** All that are pending, and perhaps some that have settled since the last pass. */
    listed,
    /** Another word when what is pending, or the chain as far as it was followed, has changed. */
    async word(): Promise<string> {
      const { size } = await listed();
      const signed = operator.betterSignatures();
      return `${operator.portal(chainId).observed} ${reorganisations} ${newest} ${size} ${signed}`;
    },
    /**
     * Withdrawals that can be sent now or have expired for good, oldest first, without those that
     * `isHeld`.
     */
    async *ready({ maturity, time, finalTime }: Moment, isHeld: (withdrawalId: Uuid) => boolean) {
      const known = new Map<string, boolean>();
      const canWait = (id: Uuid, { deadline, batch, committedAt }: Wait) => {
        const isKnown = batch === null || known.get(batch);
        if (finalTime > deadline || isKnown === undefined) return false;
        return !isKnown || (committedAt > 0n && committedAt + maturity > time) || isHeld(id);
      };
      for (const [id, wait] of await listed()) {
        if (canWait(id, wait)) continue;
        const pending = await read(id, known);
        if (pending !== null && !canWait(id, waitOf(pending))) yield pending;
      }
    },
    /** Batches that withdrawals wait for and the chain's contract does not know yet, each once. */
    async awaitedBatches(): Promise<readonly BatchVaultPlace[]> {
      const known = new Map<string, boolean>();
      const places: BatchVaultPlace[] = [];
      for (const [id, { batch }] of await listed()) {
        if (batch === null || known.has(batch)) continue;
        const pending = await read(id, known);
        if (pending?.header === null) places.push(unpackBatchVaultId(pending.withdrawal.vaultId));
      }
      return places;
    },
  };
}

function waitOf({ withdrawal: { deadline, vaultId }, standard, header }: PendingWithdrawal): Wait {
  const committedAt = standard === "erc721" ? (header?.committedAt ?? 0n) : 0n;
  return { deadline, batch: header === null ? batchOf(vaultId) : null, committedAt };
}

function batchOf(vaultId: bigint): string {
  const { mode, batchNumber } = unpackVaultId(vaultId);
  return batchIdOf(mode, batchNumber);
}
