import { formatEther, type LocalAccount } from "viem";
import {
  type Collector,
  collectAttestations,
  type MemberClient,
  type MemberStanding,
} from "../../core/committee/index.ts";
import { type Address, type Engine, type L1Reader, MintmarkError } from "../../core/index.ts";
import { repeat } from "../../core/internal.ts";
import { type connectL1, connectMirror, type FeeOptions } from "../../core/l1/index.ts";
import { RemoteAttester, SourceHistory } from "../../core/mirror/index.ts";
import { FillSender } from "../../core/orders/index.ts";
import {
  type ConsentStanding,
  MirrorSettler,
  Settler,
  type SettlerOptions,
  type SettlerWork,
} from "../../core/settlement/index.ts";
import { chainOf, finalityOf } from "../jobs/chain.ts";
import { NotReady, type ReadinessCheck, shown, unless, within } from "../jobs/readiness.ts";
import { ConfigError } from "./settings/config.ts";
import { isLocalChain, type MirrorSetting } from "./settings/settings.ts";

/** Options of a settler whose validium batches need the signatures of any `threshold` members. */
interface SettledBy extends Omit<SettlerOptions, "committee"> {
  readonly engine: Engine;
  readonly members: readonly MemberClient[];
  readonly threshold: number;
  /** Called when a member of the committee has not signed, with the reason. */
  readonly onMemberFailure?: (member: Address, error: unknown) => void;
}

interface SettlingOptions extends Omit<SettledBy, "mirrors"> {
  readonly l1: Awaited<ReturnType<typeof connectL1>>;
  readonly operator: Address;
  /** Deployment block of the settlement contract. */
  readonly fromBlock: bigint;
  readonly intervalMs: number;
  /** Blocks behind L1 above which the server is not ready. */
  readonly mostLag: bigint;
  /** The operator's wei below which the server is not ready. */
  readonly leastBalance: bigint;
  /** The contracts that pay withdrawals of other chains' tokens. */
  readonly mirrors?: readonly MirrorChain[];
  readonly onMirrorError?: (chainId: bigint, error: unknown) => void;
}

export function settlerOver(options: SettledBy) {
  const { engine, l1, members, threshold, onMemberFailure: onFailure } = options;
  const earlierBatch = (batchNumber: number) => engine.batches.getSealed("validium", batchNumber);
  const committee = collectAttestations({
    members,
    threshold,
    l1,
    earlierBatch,
    ...(onFailure && { onFailure }),
  });
  return { committee, settler: new Settler({ ...options, committee }) };
}

export type MirrorChain = ReturnType<typeof mirrorChainOf>;

/**
 * A mirror's chain, and the committee that signs the state for mirrors through its members'
 * services.
 *
 * @param account - pays on that chain; needs no role there
 */
export function mirrorChainOf(
  setting: MirrorSetting,
  account: LocalAccount,
  fees: Pick<FeeOptions, "replaceAfterMs">,
) {
  const { chainId, contract, rpcUrl: rpc, fromBlock, confirmations, maxFeePerGas } = setting;
  const chain = chainOf({ chainId, contract }, () =>
    connectMirror({
      rpc,
      contract,
      chainId,
      account,
      ...fees,
      finality: finalityOf(confirmations),
      maxFeePerGas,
    }),
  );
  const { members = [], threshold = 0 } = setting;
  const committee = { members: members.map((member) => new RemoteAttester(member)), threshold };
  return { ...chain, fromBlock, committee };
}

type Checks = Readonly<Record<string, ReadinessCheck>>;

/**
 * The engine's connection to L1, and to mirrors: seals, commits, follows and withdraws until
 * disposed.
 */
export type Settling = Awaited<ReturnType<typeof startSettling>>;

/**
 * The caller has reserved the settling of the engine ({@link reserveSettling}). Rejects with
 * `validation_failed` when another committee is in force, and with a `ConfigError` when the key
 * does not have the operator role.
 */
export async function startSettling(options: SettlingOptions) {
  const { engine, l1, fromBlock, intervalMs, mirrors = [] } = options;
  // A local chain has one node, which leaves nothing out.
  const reads = isLocalChain(engine.settlement.chainId) ? { rereadMs: 0 } : {};
  const missing = await missingRole(options);
  if (missing !== null) throw new ConfigError(`MINTMARK_OPERATOR_KEY: ${missing}`);
  const source = new SourceHistory(l1, fromBlock);
  const far = mirrors.map(
    ({ settlement: { chainId, contract }, connect, committee, fromBlock }) => {
      const known = engine.operator.portals().find((portal) => portal.chainId === chainId);
      // A store keeps the first mirror of a chain.
      if (known !== undefined && known.contract !== contract)
        throw new MintmarkError(
          "store_mismatch",
          `On chain ${chainId} this store's withdrawals are paid by ${known.contract}, not ${contract}.`,
        );
      const onError = (error: unknown) => options.onMirrorError?.(chainId, error);
      return new MirrorSettler({
        engine,
        source,
        committee,
        connect,
        fromBlock,
        intervalMs,
        onError,
        ...reads,
      });
    },
  );
  const { committee, settler } = settlerOver({ ...reads, ...options, mirrors: far });
  await committee.requireInForce();
  await settler.chooseRollupData();
  const served = new Set([engine, ...mirrors].map(({ settlement }) => settlement.chainId));
  const unserved = engine.operator.portals().filter(({ chainId }) => !served.has(chainId));
  const stopping = new AbortController();
  const fills = new FillSender({ engine, l1 });
  let fillError: unknown = null;
  const filling = repeat(
    (signal) => fills.send(signal),
    {
      intervalMs,
      backoff: { firstMs: 1_000, maxMs: 60_000 },
      onRound(error) {
        if (error !== null && fillError === null) options.onError?.(error);
        fillError = error;
      },
    },
    stopping.signal,
  );
  const settling = [filling, ...[settler, ...far].map((each) => each.run(stopping.signal))];
  return {
    /**
     * Checks of `/readyz`: the errors in each kind of work, and causes that would keep batches from
     * L1.
     */
    checks: {
      settlement: async () => {
        engine.operator.requirePromising();
        return "up to date with L1";
      },
      ...Object.fromEntries(
        Object.keys(settler.lastErrors).map((work) => [
          work,
          async () => describeWork(settler, work as SettlerWork),
        ]),
      ),
      fills: async () => {
        if (fillError !== null) throw fillError;
        return "goes well";
      },
      ...settlementChecks(options, committee),
      issuers: async () => describeConsents(settler.consents.standings()),
      ...Object.fromEntries(
        mirrors.map((mirror, i) => {
          const describe = mirrorCheck(mirror, options);
          const check = async () => describe(far[i]?.lastError ?? null);
          return [`mirror-${mirror.settlement.chainId}`, check] as const;
        }),
      ),
      ...Object.fromEntries(
        unserved.map(({ chainId }) => [`mirror-${chainId}`, async () => UNSERVED]),
      ),
    },
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await Promise.all(settling);
    },
  };
}

const ETHER = new Intl.NumberFormat("en", { maximumSignificantDigits: 7 });

/** Wei as people read them: `9,999.999 ETH`. */
function etherText(wei: bigint): string {
  return `${ETHER.format(Number(formatEther(wei)))} ETH`;
}

/** Shorter than a check's timeout, so one silent member does not hide the others. */
const MEMBER_MS = 3_000;
/**
 * Most seconds that this clock may be behind a block. Deadlines of withdrawals and ages of batches
 * depend on it.
 */
const MOST_BEHIND = 60;

/** A good answer of L1 counts for so many ms: proxies probe more often than L1 has blocks. */
const GOOD_MS = 10_000;

/** Asks again after {@link GOOD_MS}, and after a failure at once. */
function askedSeldom<T>(ask: () => Promise<T>): () => Promise<T> {
  let good: { readonly until: number; readonly answer: T } | null = null;
  return async () => {
    if (good !== null && performance.now() < good.until) return good.answer;
    good = null;
    const answer = await ask();
    good = { until: performance.now() + GOOD_MS, answer };
    return answer;
  };
}

/** Checks for `/readyz`. Each names one cause that would keep batches from L1. */
function settlementChecks(options: SettlingOptions, committee: Collector): Checks {
  const { engine, l1, operator, fromBlock, mostLag, leastBalance } = options;
  const requireInForce = askedSeldom(() => committee.requireInForce());
  return {
    operator: askedSeldom(async () =>
      unless(await missingRole(options), `${operator} holds the operator role`),
    ),
    operatorBalance: askedSeldom(async () => {
      const balance = await l1.operatorBalance();
      const lack =
        balance < leastBalance ? `${operator} has ${etherText(balance)}: send it more` : null;
      return unless(lack, etherText(balance));
    }),
    l1Lag: askedSeldom(async () => {
      const lag =
        (await l1.blockNumber()) -
        (engine.operator.portal(engine.settlement.chainId).observed ?? fromBlock);
      const fault = lag > mostLag ? `${lag} blocks behind L1, more than ${mostLag}` : null;
      return unless(fault, lag === 1n ? "1 block" : `${lag} blocks`);
    }),
    l1Clock: askedSeldom(async () => {
      const block = await l1.block("latest");
      const age = Math.round(Date.now() / 1000) - Number(block?.timestamp ?? 0n);
      if (age < -MOST_BEHIND)
        throw new NotReady(`this clock is ${-age} s behind L1's newest block: set it`);
      return `L1's newest block is ${Math.max(age, 0)} s old`;
    }),
    committee: () => committeeCheck(options, committee, requireInForce),
  };
}

/** Why an account may not commit, and how to get the role; null when it has the role. */
async function missingRole({ l1, operator }: SettlingOptions): Promise<string | null> {
  if (await l1.isOperator(operator)) return null;
  const { contract } = l1.settlement;
  return (
    `${operator} does not hold the operator role of ${contract}. The contract's administrator calls ` +
    `scheduleOperator(${operator}), and anyone calls activateOperator(${operator}) after the change delay.`
  );
}

/** Checks for `/readyz` of a server without a key: another process must commit sealed batches. */
export function unsettledChecks(engine: Engine): Checks {
  return {
    settlement: async () => {
      const [sealed, committed] = [engine.batches.state(), await engine.batches.committedState()];
      const waiting =
        sealed.countValidium + sealed.countRollup - committed.countValidium - committed.countRollup;
      if (waiting === 0) return "no operator key, and no sealed batch waiting";
      throw new NotReady(
        `${waiting} sealed ${waiting === 1 ? "batch waits" : "batches wait"} for L1, and this server has no operator ` +
          "key: set MINTMARK_RPC_URL and MINTMARK_OPERATOR_KEY, or run `mintmark batches commit`",
      );
    },
  };
}

/**
 * Asks each member for a response. Fails when fewer than the threshold can sign, or another
 * committee is in force on L1. The members' addresses and responses are only for the log, because
 * this result is public.
 */
async function committeeCheck(
  { engine, members, threshold }: SettlingOptions,
  committee: Collector,
  requireInForce: () => Promise<unknown>,
): Promise<string> {
  await requireInForce().catch((error: unknown) => {
    if (!(error instanceof MintmarkError) || error.code !== "validation_failed") throw error;
    throw new NotReady(error.message);
  });
  const { countValidium: committed } = await engine.batches.committedState();
  const standings = new Map(committee.standings().map((standing) => [standing.address, standing]));
  const found = await Promise.all(
    members.map(async (member) => {
      const state = (await answers(member))
        ? stateOf(standings.get(member.address), committed)
        : "does not answer";
      return {
        able: state !== "does not answer" && !state.startsWith("refuses"),
        told: `${member.address} ${state}`,
      };
    }),
  );
  const able = found.filter(({ able }) => able).length;
  const told = `${able} of ${found.length} can sign, ${threshold} must; ${found.map(({ told }) => told).join("; ")}`;
  return unless(able < threshold ? told : null, told);
}

async function answers(member: MemberClient): Promise<boolean> {
  try {
    await member.nextBatch?.(AbortSignal.timeout(MEMBER_MS));
    return true;
  } catch {
    return false;
  }
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

function describeWork({ lastErrors }: Settler, work: SettlerWork): string {
  if (lastErrors[work] !== null) throw lastErrors[work];
  return "goes well";
}

/**
 * The issuers' answers about the batches that wait. Never rejects: an issuer keeps nobody else's
 * batches from L1.
 */
function describeConsents(standings: readonly ConsentStanding[]): string {
  const told = standings.map(({ issuer, batchId, state, failure }) => {
    if (state === "refused") return `${issuer} does not consent to ${batchId}: ${failure}`;
    return `${issuer} ${state === "given" ? "has consented" : "is asked to consent"} to ${batchId}`;
  });
  return told.length === 0 ? "no batch waits for a consent" : told.join("; ");
}

const UNSERVED = "not followed: missing in MINTMARK_MIRRORS, so withdrawals there wait";

/** Shorter than a check's timeout, so this one is never late. */
const MIRROR_MS = 3_000;

/**
 * The status of a mirror with the last error of its work. Never rejects: a fault at one chain does
 * not affect the others, so the server stays ready.
 */
export function mirrorCheck(
  {
    settlement: { chainId },
    connect,
    fromBlock,
  }: Pick<MirrorChain, "settlement" | "fromBlock"> & {
    connect(): Promise<Pick<L1Reader, "blockNumber"> & { operatorBalance(): Promise<bigint> }>;
  },
  {
    engine,
    leastBalance,
    mostLag,
  }: Pick<SettlingOptions, "leastBalance" | "mostLag"> & {
    readonly engine: { readonly operator: Pick<Engine["operator"], "portal"> };
  },
): (lastError: unknown) => Promise<string> {
  const ask = askedSeldom(async () => {
    const l1 = await connect();
    return Promise.all([l1.blockNumber(), l1.operatorBalance()]);
  });
  return async (lastError) => {
    try {
      if (lastError !== null) throw lastError;
      const [newest, balance] = await within(MIRROR_MS, ask(), () => new NotReady("no answer"));
      const lag = newest - (engine.operator.portal(chainId).observed ?? fromBlock);
      const state = lag > mostLag ? "not up to date" : "in step";
      return `${state}: ${lag} blocks behind, ${etherText(balance)}${balance < leastBalance ? ": send it more" : ""}`;
    } catch (error) {
      return `not up to date: ${shown(error)}`;
    }
  };
}

const reserved = new WeakMap<AbortSignal, SettlerRefusal>();

/** The error for others while an engine has a settler. */
export interface SettlerRefusal {
  readonly code: MintmarkError["code"];
  readonly detail: string;
}

/**
 * Makes the caller an engine's only settler until disposed, because two would use the same nonces.
 */
export function reserveSettling(engine: Engine, refusal: SettlerRefusal): Disposable {
  const other = reserved.get(engine.ended);
  if (other !== undefined) throw new MintmarkError(other.code, other.detail);
  reserved.set(engine.ended, refusal);
  return { [Symbol.dispose]: () => void reserved.delete(engine.ended) };
}

/** The refusal of an engine that a process settles as long as it runs. */
export const SETTLES_BY_ITSELF: SettlerRefusal = {
  code: "validation_failed",
  detail:
    "The server settles by itself and will soon commit all sealed batches; `mintmark batches status` shows their progress.",
};
