import type { Collector, MemberClient, MemberStanding } from "../../core/committee/index.ts";
import { type Address, type Engine, MintmarkError, type Settlement } from "../../core/index.ts";
import { within } from "./deadline.ts";
import { NotReady, type ReadinessCheck } from "./readiness.ts";

/** What the checks ask of the settlement chain. */
export interface CheckedL1 {
  readonly settlement: Settlement;
  blockNumber(): Promise<bigint>;
  block(at: "latest"): Promise<{ readonly timestamp: bigint } | null>;
  isOperator(account: Address): Promise<boolean>;
  operatorBalance(): Promise<bigint>;
}

export interface SettlementChecks {
  readonly engine: Engine;
  readonly l1: CheckedL1;
  readonly operator: Address;
  readonly members: readonly MemberClient[];
  readonly committee: Pick<Collector, "standings" | "requireInForce">;
  /** Signatures that a validium batch needs. */
  readonly threshold: number;
  /** Block of the settlement contract's deployment. */
  readonly fromBlock: bigint;
  /** Blocks behind L1 past which the server is not ready. */
  readonly mostLag: bigint;
  /** Wei below which the operator's account makes the server not ready. */
  readonly leastBalance: bigint;
}

/** Shorter than a check may take, so that one silent member does not hide how the others stand. */
const MEMBER_MS = 3_000;
/** Seconds that this clock may be behind a block. Deadlines of withdrawals and ages of batches are read from it. */
const MOST_BEHIND = 60;

/** For `/readyz` of a server that settles: each check names one cause that would keep batches from L1. */
export function settlementChecks(parts: SettlementChecks): Readonly<Record<string, ReadinessCheck>> {
  const { engine, l1, operator, fromBlock, mostLag, leastBalance } = parts;
  return {
    operator: async () => {
      const missing = await missingRole(l1, operator);
      if (missing !== null) throw new NotReady(missing);
      return `${operator} holds the operator role`;
    },
    operatorBalance: async () => {
      const balance = await l1.operatorBalance();
      if (balance < leastBalance) throw new NotReady(`${operator} has ${balance} wei: send it more`);
      return `${balance} wei`;
    },
    l1Lag: async () => {
      const lag = (await l1.blockNumber()) - (engine.operator.portal(engine.settlement.chainId).observed ?? fromBlock);
      if (lag > mostLag) throw new NotReady(`${lag} blocks behind L1, more than ${mostLag}`);
      return lag === 1n ? "1 block" : `${lag} blocks`;
    },
    l1Clock: async () => {
      const block = await l1.block("latest");
      const age = Math.round(Date.now() / 1000) - Number(block?.timestamp ?? 0n);
      if (age < -MOST_BEHIND) throw new NotReady(`this clock is ${-age} s behind L1's newest block: set it`);
      return `L1's newest block is ${Math.max(age, 0)} s old`;
    },
    committee: () => committeeCheck(parts),
  };
}

/** Why an account may not commit, with the way to the role; null when it holds the role. */
export async function missingRole(l1: Pick<CheckedL1, "settlement" | "isOperator">, operator: Address) {
  if (await l1.isOperator(operator)) return null;
  const { contract } = l1.settlement;
  return (
    `${operator} does not hold the operator role of ${contract}. The contract's administrator calls ` +
    `scheduleOperator(${operator}), and anyone calls activateOperator(${operator}) when the change delay has passed.`
  );
}

/** For `/readyz` of a server without a key: sealed batches wait for someone who has one. */
export function unsettledChecks(engine: Engine): Readonly<Record<string, ReadinessCheck>> {
  return {
    settlement: async () => {
      const [sealed, committed] = [engine.batches.state(), await engine.batches.committedState()];
      const waiting = sealed.countValidium + sealed.countRollup - committed.countValidium - committed.countRollup;
      if (waiting === 0) return "no operator key, and no sealed batch waits";
      throw new NotReady(
        `${waiting} sealed ${waiting === 1 ? "batch waits" : "batches wait"} for L1, and this server has no operator ` +
          "key: set MINTMARK_RPC_URL and MINTMARK_OPERATOR_KEY, or run `mintmark batches commit`",
      );
    },
  };
}

/**
 * Asks each member for a sign of life. Not ready when fewer than the threshold can sign, or L1 has another committee in
 * force. Where a member listens and what it said are for the log: anyone may read this.
 */
async function committeeCheck({ engine, members, committee, threshold }: SettlementChecks): Promise<string> {
  await committee.requireInForce().catch((error: unknown) => {
    if (!(error instanceof MintmarkError) || error.code !== "validation_failed") throw error;
    throw new NotReady(error.message);
  });
  const { countValidium: committed } = await engine.batches.committedState();
  const standings = new Map(committee.standings().map((standing) => [standing.address, standing]));
  const looks = await Promise.all(
    members.map(async (member) => {
      const state = (await answers(member)) ? stateOf(standings.get(member.address), committed) : "does not answer";
      return { able: state !== "does not answer" && !state.startsWith("refuses"), told: `${member.address} ${state}` };
    }),
  );
  const able = looks.filter((look) => look.able).length;
  const told = `${able} of ${looks.length} can sign, ${threshold} must; ${looks.map((look) => look.told).join("; ")}`;
  if (able < threshold) throw new NotReady(told);
  return told;
}

async function answers(member: MemberClient): Promise<boolean> {
  if (member.nextBatch === undefined) return true;
  const signal = AbortSignal.timeout(MEMBER_MS);
  const late = () => new NotReady("no answer");
  return within(MEMBER_MS, member.nextBatch(signal), late).then(
    () => true,
    () => false,
  );
}

/** A failure at a batch that L1 has by now says nothing of the next one. */
function stateOf(standing: MemberStanding | undefined, committed: number): string {
  if (standing === undefined || standing.batchNumber === null) return "answers";
  const { state, batchNumber } = standing;
  if (state !== "failed") return `${state} validium-${batchNumber}`;
  return batchNumber < committed
    ? `answers, and did not sign validium-${batchNumber}`
    : `refuses validium-${batchNumber}`;
}
