import { type Backoff, backoffDelay } from "../backoff.ts";
import type { Hash, Uuid } from "../model.ts";
import type { SettlementPort } from "../operator.ts";
import type { Clock, Portal, WithdrawalCall } from "../ports.ts";
import type { PendingWithdrawal } from "../progress/pending-withdrawals.ts";
import type { Moment, PendingQueue } from "./pending-queue.ts";

/** Transactions of one pass, after which the chain is looked at again. */
const PER_PASS = 10;
/** Of them, under way at once: the account has room for as many commits beside them. */
const UNDER_WAY = 3;
/** When one that L1 would refuse is tried again. */
const RETRY: Backoff = { firstMs: 5_000, maxMs: 600_000 };
/** When one is sent again that L1 refused in a transaction: that costs gas, and no token must live on it. */
const RESEND: Backoff = { firstMs: 600_000, maxMs: 86_400_000 };

/** With all that the contract asks for. */
type Sendable = PendingWithdrawal & { readonly call: WithdrawalCall };

/** Of what a node says. */
const MOST_TEXT = 1_000;

interface Refused {
  readonly times: number;
  /** By the clock. */
  readonly notBefore: number;
}

const NEVER: Refused = { times: 0, notBefore: 0 };

/** Sends the owners' withdrawals of one chain's tokens to the contract that pays them there, the ready ones together. One per engine and chain. */
export class WithdrawalSender {
  readonly #engine: SettlementPort;
  readonly #portal: Portal;
  readonly #queue: PendingQueue;
  readonly #clock: Clock;
  /** Those that the contract refused last time. Lost with the process: then each is tried at once, which does no harm. */
  readonly #refused = new Map<Uuid, Refused>();
  /**
   * Those that the contract refused in transactions, by owner and asset. One of them caused it, so that a newly signed withdrawal of the two waits
   * as well.
   */
  readonly #refusedSent = new Map<string, Refused>();

  constructor(engine: SettlementPort, portal: Portal, queue: PendingQueue, clock: Clock) {
    this.#engine = engine;
    this.#portal = portal;
    this.#queue = queue;
    this.#clock = clock;
  }

  /**
   * Sends pending withdrawals that would succeed now, of a few transactions, and returns how many. Each is tried by simulation first: one that
   * would fail is left out with its reason on record and tried again later and later, so that a token that always refuses costs
   * nobody else anything. Immature ERC-721 vaults simply wait.
   */
  async sendReady(signal?: AbortSignal): Promise<number> {
    const [moment, most] = await Promise.all([this.#now(), this.#portal.mostWithdrawals()]);
    const isHeld = (withdrawalId: Uuid) => this.#refusalsOf(withdrawalId).notBefore > this.#clock();
    const ready: PendingWithdrawal[] = [];
    for await (const pending of this.#queue.ready(moment, isHeld)) {
      signal?.throwIfAborted();
      if (!(await this.#isGivenUp(pending, moment))) ready.push(pending);
      if (ready.length === PER_PASS * most) break;
    }
    const groups = groupsOf(ready, most);
    let sent = 0;
    const sending = Array.from({ length: UNDER_WAY }, async () => {
      for (const group of groups) {
        signal?.throwIfAborted();
        const count = await this.#send(group, signal);
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

  /** Releases the reservation once the authorization can never be used again: its deadline lies before a final block. */
  async #isGivenUp({ withdrawal }: PendingWithdrawal, { finalTime }: Moment): Promise<boolean> {
    if (finalTime <= withdrawal.deadline) return false;
    const reason = withdrawal.failure ?? "The authorization expired before L1 could take it.";
    await this.#engine.operator.recordWithdrawalFailed(withdrawal.withdrawalId, reason, finalTime);
    this.#refused.delete(withdrawal.withdrawalId);
    return true;
  }

  async #send(group: readonly PendingWithdrawal[], signal?: AbortSignal): Promise<number> {
    const sendable: Sendable[] = [];
    for (const pending of group) {
      const call = await this.#callOf(pending);
      if (call === null) continue;
      const { notBefore } = this.#refusedSent.get(causeOf(call)) ?? NEVER;
      if (notBefore > this.#clock()) this.#hold(pending, notBefore);
      else sendable.push({ ...pending, call });
    }
    const refusals = await Promise.all(sendable.map((pending) => this.#refusalOf(pending)));
    const ready: Sendable[] = [];
    for (const [index, pending] of sendable.entries()) {
      const reason = refusals[index] ?? null;
      if (reason === null) ready.push(pending);
      else await this.#refuse(pending, reason);
    }
    if (ready.length === 0) return 0;
    return this.#relay(ready, signal);
  }

  /**
   * Sends a group in one transaction. When L1 reverts that as a whole, each half of the group goes by itself, and so on: whoever caused the
   * revert costs the others a few transactions, and then backs off alone. Returns how many were sent.
   */
  async #relay(ready: readonly Sendable[], signal?: AbortSignal): Promise<number> {
    const { refusals, txHash } = await this.#portal.withdraw(
      ready.map(({ call }) => call),
      {
        ...(signal && { signal }),
        onSent: async (txHash) => {
          for (const { withdrawal } of ready) {
            await this.#engine.operator.recordWithdrawalSubmitted(withdrawal.withdrawalId, txHash);
          }
        },
      },
    );
    if (refusals === null && ready.length > 1) {
      const half = Math.ceil(ready.length / 2);
      return (await this.#relay(ready.slice(0, half), signal)) + (await this.#relay(ready.slice(half), signal));
    }
    for (const [index, pending] of ready.entries()) {
      const refusal = refusals === null ? `transaction ${txHash} reverted` : refusals[index];
      if (refusal == null) this.#refused.delete(pending.withdrawal.withdrawalId);
      else await this.#refuseSent(pending, refusal);
    }
    return ready.length;
  }

  /** null when the contract does not know the batch any more. */
  async #callOf({ withdrawal, authorization }: PendingWithdrawal): Promise<WithdrawalCall | null> {
    const { vaultId, quantity, recipient } = withdrawal;
    const { vault, header, siblings, assetPath } = await this.#engine.proofs.exit(vaultId);
    return header && { vault, header, siblings, assetPath, quantity, recipient, authorization };
  }

  /** Why L1 would refuse it now; null when it would not. Rejects only when L1 cannot be asked anything. */
  async #refusalOf({ call }: Sendable): Promise<string | null> {
    try {
      return await this.#portal.checkWithdrawal(call);
    } catch (error) {
      // What a node cannot try, for a reason of its own, is one owner's matter as long as the node answers.
      await this.#portal.blockNumber();
      return `It could not be tried: ${error instanceof Error ? error.message : String(error)}`.slice(0, MOST_TEXT);
    }
  }

  async #refuse({ withdrawal: { withdrawalId } }: PendingWithdrawal, reason: string): Promise<void> {
    const times = this.#refusalsOf(withdrawalId).times + 1;
    this.#refused.set(withdrawalId, { times, notBefore: this.#clock() + backoffDelay(RETRY, times) });
    await this.#engine.operator.recordWithdrawalAttempt(withdrawalId, reason);
  }

  /** A token or a recipient can behave otherwise in a simulation than on L1. */
  async #refuseSent(pending: Sendable, refusal: string): Promise<void> {
    const cause = causeOf(pending.call);
    const times = (this.#refusedSent.get(cause)?.times ?? 0) + 1;
    const notBefore = this.#clock() + backoffDelay(RESEND, times);
    this.#refusedSent.set(cause, { times, notBefore });
    this.#hold(pending, notBefore);
    const failure = `L1 took the transaction but refused this withdrawal in it: ${refusal}`;
    await this.#engine.operator.recordWithdrawalAttempt(pending.withdrawal.withdrawalId, failure.slice(0, MOST_TEXT));
  }

  #hold({ withdrawal: { withdrawalId } }: PendingWithdrawal, notBefore: number): void {
    this.#refused.set(withdrawalId, { ...this.#refusalsOf(withdrawalId), notBefore });
  }

  #refusalsOf(withdrawalId: Uuid): Refused {
    return this.#refused.get(withdrawalId) ?? NEVER;
  }
}

/** Who may have made L1 refuse it: its owner's wallet, or its token. */
function causeOf({ vault }: WithdrawalCall): string {
  return `${vault.owner} ${vault.assetType}`.toLowerCase();
}

/** Groups of one transaction each: of so many withdrawals, and each signed list counts as one more. */
function* groupsOf(ready: readonly PendingWithdrawal[], most: number): Generator<readonly PendingWithdrawal[]> {
  let group: PendingWithdrawal[] = [];
  let lists = new Set<Hash>();
  for (const pending of ready) {
    const isListed = pending.authorization.list !== undefined;
    if (group.length + lists.size + (isListed && !lists.has(pending.digest) ? 2 : 1) > most) {
      yield group;
      group = [];
      lists = new Set();
    }
    group.push(pending);
    if (isListed) lists.add(pending.digest);
  }
  if (group.length > 0) yield group;
}
