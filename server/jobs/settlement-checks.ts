import { formatEther } from "viem";
import type { Collector, MemberClient, MemberStanding } from "../../core/guards/committee/index.ts";
import { type Address, type Engine, MintmarkError, type Settlement } from "../../core/index.ts";
import { NotReady, type ReadinessCheck, within } from "./readiness.ts";

/** The parts of the settlement chain that the checks use. */
interface CheckedL1 {
  readonly settlement: Settlement;
  blockNumber(): Promise<bigint>;
  block(at: "latest"): Promise<{ readonly timestamp: bigint } | null>;
  isOperator(account: Address): Promise<boolean>;
  operatorBalance(): Promise<bigint>;
}

interface SettlementChecks {
  readonly engine: Engine;
  readonly l1: CheckedL1;
  readonly operator: Address;
  readonly members: readonly MemberClient[];
  readonly committee: Pick<Collector, "standings" | "requireInForce">;
  /** Signatures that a validium batch needs. */
  readonly threshold: number;
  /** Deployment block of the settlement contract. */
  readonly fromBlock: bigint;
  /** Blocks behind L1 above which the server is not ready. */
  readonly mostLag: bigint;
  /** The operator's wei below which the server is not ready. */
  readonly leastBalance: bigint;
}

const ETHER = new Intl.NumberFormat("en", { maximumSignificantDigits: 7 });

/** Wei as people read them: `9,999.999 ETH`. */
export function etherText(wei: bigint): string {
  return `${ETHER.format(Number(formatEther(wei)))} ETH`;
}

/** Shorter than a check's timeout, so one silent member does not hide the others. */
const MEMBER_MS = 3_000;
/** Most seconds that this clock may be behind a block. Deadlines of withdrawals and ages of batches depend on it. */
const MOST_BEHIND = 60;

/** Checks for `/readyz` of a server that settles. Each names one cause that would keep batches from L1. */
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
      if (balance < leastBalance) throw new NotReady(`${operator} has ${etherText(balance)}: send it more`);
      return etherText(balance);
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

/** Why an account may not commit, and how to get the role; null when it has the role. */
export async function missingRole(l1: Pick<CheckedL1, "settlement" | "isOperator">, operator: Address) {
  if (await l1.isOperator(operator)) return null;
  const { contract } = l1.settlement;
  return (
    `${operator} does not hold the operator role of ${contract}. The contract's administrator calls ` +
    `scheduleOperator(${operator}), and anyone calls activateOperator(${operator}) after the change delay.`
  );
}

/** Checks for `/readyz` of a server without a key: another process must commit sealed batches. */
export function unsettledChecks(engine: Engine): Readonly<Record<string, ReadinessCheck>> {
  return {
    settlement: async () => {
      const [sealed, committed] = [engine.batches.state(), await engine.batches.committedState()];
      const waiting = sealed.countValidium + sealed.countRollup - committed.countValidium - committed.countRollup;
      if (waiting === 0) return "no operator key, and no sealed batch waiting";
      throw new NotReady(
        `${waiting} sealed ${waiting === 1 ? "batch waits" : "batches wait"} for L1, and this server has no operator ` +
          "key: set MINTMARK_RPC_URL and MINTMARK_OPERATOR_KEY, or run `mintmark batches commit`",
      );
    },
  };
}

/**
 * Asks each member for a response. Fails when fewer than the threshold can sign, or another committee is in force on
 * L1. The members' addresses and responses are only for the log, because this result is public.
 */
async function committeeCheck({ engine, members, committee, threshold }: SettlementChecks): Promise<string> {
  await committee.requireInForce().catch((error: unknown) => {
    if (!(error instanceof MintmarkError) || error.code !== "validation_failed") throw error;
    throw new NotReady(error.message);
  });
  const { countValidium: committed } = await engine.batches.committedState();
  const standings = new Map(committee.standings().map((standing) => [standing.address, standing]));
  const found = await Promise.all(
    members.map(async (member) => {
      const state = (await answers(member)) ? stateOf(standings.get(member.address), committed) : "does not answer";
      return { able: state !== "does not answer" && !state.startsWith("refuses"), told: `${member.address} ${state}` };
    }),
  );
  const able = found.filter(({ able }) => able).length;
  const told = `${able} of ${found.length} can sign, ${threshold} must; ${found.map(({ told }) => told).join("; ")}`;
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

/** A failure at a batch that is now on L1 says nothing about the next one. */
function stateOf(standing: MemberStanding | undefined, committed: number): string {
  if (standing === undefined || standing.batchNumber === null) return "answers";
  const { state, batchNumber } = standing;
  if (state !== "failed") return `${state} validium-${batchNumber}`;
  return batchNumber < committed
    ? `responds, but has not signed validium-${batchNumber}`
    : `refuses validium-${batchNumber}`;
}
