import { collectAttestations, type MemberClient } from "../../core/guards/committee/index.ts";
import { SourceHistory } from "../../core/guards/mirror/index.ts";
import { type Address, type Engine, MintmarkError } from "../../core/index.ts";
import { Stack } from "../../core/internal.ts";
import type { connectL1 } from "../../core/l1/index.ts";
import {
  type ConsentStanding,
  MirrorSettler,
  Settler,
  type SettlerOptions,
  type SettlerWork,
} from "../../core/l1/settlement/index.ts";
import { NotReady, type ReadinessCheck, shown, within } from "../jobs/readiness.ts";
import { etherText, missingRole, settlementChecks } from "../jobs/settlement-checks.ts";
import type { MirrorChain } from "./mirror-chain.ts";
import { ConfigError } from "./settings/config.ts";

/** Of a settler whose validium batches need the signatures of any `threshold` members. */
interface SettledBy extends Omit<SettlerOptions, "committee"> {
  readonly engine: Engine;
  readonly members: readonly MemberClient[];
  readonly threshold: number;
  /** Called when a member of the committee has not signed, with the reason. */
  readonly onMemberFailure?: (member: Address, error: unknown) => void;
}

interface SettlingOptions extends Omit<SettledBy, "mirrors"> {
  readonly l1: Awaited<ReturnType<typeof connectL1>>;
  /** Holds the contract's operator role. */
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
  /** Called with an error at a mirror. */
  readonly onMirrorError?: (chainId: bigint, error: unknown) => void;
}

/** A settler and its committee. */
export function settlerOver(options: SettledBy) {
  const { engine, l1, members, threshold, onMemberFailure: onFailure } = options;
  const earlierBatch = (batchNumber: number) => engine.batches.getSealed("validium", batchNumber);
  const committee = collectAttestations({ members, threshold, l1, earlierBatch, ...(onFailure && { onFailure }) });
  return { committee, settler: new Settler({ ...options, committee }) };
}

/** The engine's connection to L1, and to mirrors: seals, commits, follows and withdraws until disposed. */
export interface Settling extends AsyncDisposable {
  /** For `/readyz`: the errors in each kind of work, and causes that would keep batches from L1. */
  readonly checks: Readonly<Record<string, ReadinessCheck>>;
}

/**
 * The caller has reserved the settling of the engine ({@link reserveSettling}). Rejects with `validation_failed` when
 * another committee is in force, and with a `ConfigError` when the key does not have the operator role.
 */
export async function startSettling(options: SettlingOptions): Promise<Settling> {
  const { engine, l1, operator, fromBlock, intervalMs, mirrors = [] } = options;
  await using stack = new Stack();
  const missing = await missingRole(l1, operator);
  if (missing !== null) throw new ConfigError(`MINTMARK_OPERATOR_KEY: ${missing}`);
  const far: MirrorSettler[] = [];
  const source = new SourceHistory(l1, fromBlock);
  for (const mirror of mirrors) {
    const { chainId } = mirror.settlement;
    requireSameMirror(engine, mirror);
    const parts = { engine, source, committee: mirror.committee };
    const told = { intervalMs, onError: (error: unknown) => options.onMirrorError?.(chainId, error) };
    far.push(new MirrorSettler({ ...parts, ...told, connect: mirror.connect, fromBlock: mirror.fromBlock }));
  }
  const { committee, settler } = settlerOver({ ...options, mirrors: far });
  await committee.requireInForce();
  await settler.chooseRollupData();
  const stopping = new AbortController();
  const settling = [settler, ...far].map((each) => each.run(stopping.signal));
  stack.defer(async () => {
    stopping.abort();
    await Promise.all(settling);
  });
  const served = new Set(
    [engine.settlement, ...mirrors.map(({ settlement }) => settlement)].map(({ chainId }) => chainId),
  );
  const unserved = engine.operator.portals().filter(({ chainId }) => !served.has(chainId));
  const running = stack.move();
  return {
    checks: {
      settlement: async () => {
        engine.operator.requirePromising();
        return "up to date with L1";
      },
      ...Object.fromEntries(
        Object.keys(settler.lastErrors).map((work) => [work, async () => describeWork(settler, work as SettlerWork)]),
      ),
      ...settlementChecks({ ...options, committee }),
      issuers: async () => describeConsents(settler.consents.standings()),
      ...Object.fromEntries(
        mirrors.map((mirror, i) => {
          const check = async () => describeMirror(engine, mirror, far[i]?.lastError ?? null, options);
          return [`mirror-${mirror.settlement.chainId}`, check] as const;
        }),
      ),
      ...Object.fromEntries(unserved.map(({ chainId }) => [`mirror-${chainId}`, async () => UNSERVED])),
    },
    [Symbol.asyncDispose]: () => running[Symbol.asyncDispose](),
  };
}

/** Throws the error of the last pass of one kind of work. */
function describeWork({ lastErrors }: Settler, work: SettlerWork): string {
  if (lastErrors[work] !== null) throw lastErrors[work];
  return "goes well";
}

/** The issuers' answers about the batches that wait. Never rejects: an issuer keeps nobody else's batches from L1. */
export function describeConsents(standings: readonly ConsentStanding[]): string {
  const told = standings.map(({ issuer, batchId, state, failure }) => {
    if (state === "refused") return `${issuer} does not consent to ${batchId}: ${failure}`;
    return `${issuer} ${state === "given" ? "has consented" : "is asked to consent"} to ${batchId}`;
  });
  return told.length === 0 ? "no batch waits for a consent" : told.join("; ");
}

/** A store keeps the first mirror of a chain. */
function requireSameMirror(engine: Engine, { settlement: { chainId, contract } }: MirrorChain): void {
  const known = engine.operator.portals().find((portal) => portal.chainId === chainId);
  if (known === undefined || known.contract === contract) return;
  const detail = `On chain ${chainId} this store's withdrawals are paid by ${known.contract}, not ${contract}.`;
  throw new MintmarkError("store_mismatch", detail);
}

const UNSERVED = "not followed: missing in MINTMARK_MIRRORS, so withdrawals there wait";

/** Shorter than a check's timeout, so this one is never late. */
const MIRROR_MS = 3_000;

/** A mirror's status. Never rejects: a fault at one chain does not affect the others, so the server stays ready. */
async function describeMirror(
  engine: Engine,
  mirror: MirrorChain,
  lastError: unknown,
  { leastBalance, mostLag }: Pick<SettlingOptions, "leastBalance" | "mostLag">,
): Promise<string> {
  try {
    if (lastError !== null) throw lastError;
    const asked = Promise.all([mirror.blockNumber(), mirror.operatorBalance()]);
    const [newest, balance] = await within(MIRROR_MS, asked, () => new NotReady("no answer"));
    const lag = newest - (engine.operator.portal(mirror.settlement.chainId).observed ?? mirror.fromBlock);
    const state = lag > mostLag ? "not up to date" : "in step";
    return `${state}: ${lag} blocks behind, ${etherText(balance)}${balance < leastBalance ? ": send it more" : ""}`;
  } catch (error) {
    return `not up to date: ${shown(error)}`;
  }
}

const reserved = new WeakMap<AbortSignal, Refusal>();

/** The error for others while an engine has a settler. */
export interface Refusal {
  readonly code: MintmarkError["code"];
  readonly detail: string;
}

/** Makes the caller an engine's only settler until disposed, because two would use the same nonces. */
export function reserveSettling(engine: Engine, refusal: Refusal): Disposable {
  const other = reserved.get(engine.ended);
  if (other !== undefined) throw new MintmarkError(other.code, other.detail);
  reserved.set(engine.ended, refusal);
  return { [Symbol.dispose]: () => void reserved.delete(engine.ended) };
}

/** For an engine that a process settles as long as it runs. */
export const SETTLES_BY_ITSELF: Refusal = {
  code: "validation_failed",
  detail:
    "The server settles by itself and will soon commit all sealed batches; `mintmark batches status` shows their progress.",
};
