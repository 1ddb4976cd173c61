import * as viem from "viem";
import { call, getBlock, getBlockNumber } from "viem/actions";
import { MintmarkError } from "../errors.ts";
import type { Address } from "../model.ts";
import { committeeHash } from "../protocol/attestation.ts";
import type { PayingContract } from "../protocol/own-code.ts";
import { stateCommitmentAbi as abi } from "./abi.ts";
import { askL1, type L1Client } from "./connection.ts";
import { logReader } from "./logs.ts";

/** The contracts' roles. No other role permits anything. */
const ROLES = {
  admin: viem.zeroHash,
  guardian: viem.keccak256(viem.stringToHex("GUARDIAN")),
  operator: viem.keccak256(viem.stringToHex("OPERATOR")),
} as const;

const EVENTS = [
  viem.getAbiItem({ abi, name: "RoleGranted" }),
  viem.getAbiItem({ abi, name: "RoleRevoked" }),
  viem.getAbiItem({ abi, name: "CommitteeChanged" }),
  viem.getAbiItem({ abi, name: "CommitteeScheduled" }),
  viem.getAbiItem({ abi, name: "OperatorScheduled" }),
  viem.getAbiItem({ abi, name: "CommitsPaused" }),
  viem.getAbiItem({ abi, name: "IssuerChanged" }),
  viem.getAbiItem({ abi, name: "IssuerSuspended" }),
  viem.getAbiItem({ abi, name: "IssuerScheduled" }),
] as const;
/** An announced issuer can come into force for so long, in seconds: the contracts' `MAX_DELAY`. */
const ISSUER_SECONDS = 30n * 86_400n;

/** All holders of each role, in lower case, ascending. */
export type RoleHolders = Readonly<Record<keyof typeof ROLES, readonly Address[]>>;

/** A change that was announced and is not in force. Accounts are in lower case. */
export interface Announcement {
  readonly power: "operator" | "committee" | "issuer";
  readonly accounts: readonly Address[];
  /** Signatures that an announced committee needs; null for other powers. */
  readonly threshold: number | null;
  /** The token that an announced issuer would speak for; null for other powers. */
  readonly token: Address | null;
  /** Seconds since 1970. */
  readonly activeFrom: bigint;
  /**
   * Whether a transaction can put it in force now: anybody's, or for an issuer its token's admin's.
   */
  readonly isDue: boolean;
}

/** Who can do what with a contract now, and who will be able to. Accounts are in lower case. */
export interface Powers {
  readonly holders: RoleHolders;
  /** The committee in force. */
  readonly committee: {
    readonly epoch: bigint;
    readonly threshold: number;
    readonly members: readonly Address[];
  };
  /** Whether the guardian has paused commits; false for a mirror, which takes none. */
  readonly isPaused: boolean;
  readonly issuers: readonly {
    readonly token: Address;
    readonly issuer: Address;
    readonly epoch: bigint;
    readonly isSuspended: boolean;
  }[];
  readonly announced: readonly Announcement[];
}

/**
 * Who holds each role now, by the events since the creation in `fromBlock`. They are complete only
 * for a contract that `requireOwnCreation` accepts. Rejects with `l1_failed`, also when the node
 * keeps no events of the constructor, so that a holder could be missing.
 */
export async function roleHolders(
  client: L1Client,
  contract: Address,
  fromBlock: bigint,
): Promise<RoleHolders> {
  return holdersIn(await eventsOf(client, contract, fromBlock));
}

/**
 * Every power over a contract, by its events and its present state. Like {@link roleHolders}, it is
 * complete only for a contract that `requireOwnCreation` accepts. Rejects with `l1_failed`, also
 * when the events do not give the committee that the contract states.
 */
export async function powersOf(
  client: L1Client,
  contract: Address,
  fromBlock: bigint,
  name: PayingContract,
): Promise<Powers> {
  const events = await eventsOf(client, contract, fromBlock);
  const { timestamp } = await askL1("reading the newest block", () => getBlock(client));
  const committee = await committeeIn(client, contract, events);
  const operators =
    name === "StateMirror" ? [] : await announcedOperators(client, contract, events, timestamp);
  return {
    holders: holdersIn(events),
    committee,
    isPaused: events.findLast(isOf("CommitsPaused"))?.args.paused ?? false,
    issuers: issuersIn(events),
    announced: [
      ...operators,
      ...announcedCommittee(events, timestamp),
      ...announcedIssuers(events, timestamp),
    ],
  };
}

async function eventsOf(client: L1Client, contract: Address, fromBlock: bigint) {
  const logs = await askL1(`reading who holds the roles of ${contract}`, async () =>
    logReader(client, contract, EVENTS)(fromBlock, await getBlockNumber(client, { cacheTime: 0 })),
  );
  const missing = `the node gives no event of block ${fromBlock} about the roles of ${contract}`;
  const events = viem.parseEventLogs({ abi: EVENTS, logs, strict: true });
  const created = events.filter(({ blockNumber }) => blockNumber === fromBlock);
  if (!created.some(({ eventName }) => eventName === "RoleGranted"))
    throw new MintmarkError("l1_failed", `${missing}. Ask a node that keeps old events.`);
  return events;
}

type PowerEvent = Awaited<ReturnType<typeof eventsOf>>[number];

function isOf<N extends PowerEvent["eventName"]>(...names: readonly N[]) {
  return (event: PowerEvent): event is Extract<PowerEvent, { eventName: N }> =>
    names.some((name) => name === event.eventName);
}

function lower(address: viem.Address): Address {
  return address.toLowerCase() as Address;
}

function holdersIn(events: readonly PowerEvent[]): RoleHolders {
  const holdersOf = (id: string) => {
    const holders = new Set<Address>();
    for (const { eventName, args } of events.filter(isOf("RoleGranted", "RoleRevoked"))) {
      if (args.role !== id) continue;
      if (eventName === "RoleGranted") holders.add(lower(args.account));
      else holders.delete(lower(args.account));
    }
    return [...holders].toSorted();
  };
  return {
    admin: holdersOf(ROLES.admin),
    guardian: holdersOf(ROLES.guardian),
    operator: holdersOf(ROLES.operator),
  };
}

/** The newest committee by the events, which the contract's own hash must confirm. */
async function committeeIn(
  client: L1Client,
  contract: Address,
  events: readonly PowerEvent[],
): Promise<Powers["committee"]> {
  const view = { abi, functionName: "committee" } as const;
  const data = viem.encodeFunctionData(view);
  const answer = await askL1(`reading the committee of ${contract}`, async () =>
    viem.decodeFunctionResult({
      ...view,
      data: (await call(client, { to: contract, data })).data ?? "0x",
    }),
  );
  const changed = events.findLast(isOf("CommitteeChanged"))?.args;
  const members = changed?.members.map(lower) ?? [];
  const threshold = changed?.threshold ?? 0;
  const [hash, epoch] = answer;
  if (hash !== committeeHash(epoch, { threshold, members }))
    throw new MintmarkError(
      "l1_failed",
      `the node's events do not give the committee of epoch ${epoch} that ${contract} states. Repeat it, or ask another node.`,
    );
  return { epoch, threshold, members };
}

/**
 * A revocation withdraws an announcement without an event. So the contract is asked whether anybody
 * could put the operator in force.
 */
async function announcedOperators(
  client: L1Client,
  contract: Address,
  events: readonly PowerEvent[],
  now: bigint,
): Promise<Announcement[]> {
  const named = new Set(
    events.filter(isOf("OperatorScheduled")).map(({ args }) => lower(args.operator)),
  );
  const found: Announcement[] = [];
  for (const operator of named) {
    const activate = { abi, functionName: "activateOperator", args: [operator] } as const;
    const activeFrom = await askL1(`asking about operator ${operator}`, () =>
      call(client, { to: contract, data: viem.encodeFunctionData(activate) }).then(
        () => lastOf(events, operator),
        notDue,
      ),
    );
    if (activeFrom > 0n) found.push(announcement("operator", [operator], activeFrom, now));
  }
  return found;
}

function lastOf(events: readonly PowerEvent[], operator: Address): bigint {
  const scheduled = events.filter(isOf("OperatorScheduled"));
  return scheduled.findLast(({ args }) => lower(args.operator) === operator)?.args.activeFrom ?? 0n;
}

/** The time in the contract's refusal `ChangeNotDue`; 0 without an announcement. */
function notDue(error: unknown): bigint {
  const data =
    error instanceof viem.BaseError
      ? (
          error.walk((inner) => typeof (inner as { data?: unknown }).data === "string") as {
            readonly data?: viem.Hex;
          } | null
        )?.data
      : undefined;
  if (data === undefined) throw error;
  const { errorName, args } = viem.decodeErrorResult({ abi, data });
  if (errorName !== "ChangeNotDue") throw error;
  return args[0];
}

function announcedCommittee(events: readonly PowerEvent[], now: bigint): Announcement[] {
  const last = events.findLast(isOf("CommitteeScheduled", "CommitteeChanged"));
  if (last?.eventName !== "CommitteeScheduled" || last.args.activeFrom === 0n) return [];
  const { members, threshold, activeFrom } = last.args;
  return [{ ...announcement("committee", members.map(lower), activeFrom, now), threshold }];
}

function announcedIssuers(events: readonly PowerEvent[], now: bigint): Announcement[] {
  const newest = new Map(
    events
      .filter(isOf("IssuerScheduled", "IssuerChanged"))
      .map((event) => [lower(event.args.token), event] as const),
  );
  return [...newest].flatMap(([token, event]) => {
    if (event.eventName !== "IssuerScheduled" || event.args.activeFrom === 0n) return [];
    const { issuer, activeFrom } = event.args;
    if (now > activeFrom + ISSUER_SECONDS) return [];
    return [{ ...announcement("issuer", [lower(issuer)], activeFrom, now), token }];
  });
}

function announcement(
  power: Announcement["power"],
  accounts: readonly Address[],
  activeFrom: bigint,
  now: bigint,
): Announcement {
  return { power, accounts, threshold: null, token: null, activeFrom, isDue: now >= activeFrom };
}

function issuersIn(events: readonly PowerEvent[]): Powers["issuers"] {
  const newest = new Map(
    events
      .filter(isOf("IssuerChanged", "IssuerSuspended"))
      .map((event) => [lower(event.args.token), event] as const),
  );
  return [...newest].flatMap(([token, { eventName, args }]) => {
    const issuer = lower(args.issuer);
    if (issuer === viem.zeroAddress) return [];
    return [{ token, issuer, epoch: args.epoch, isSuspended: eventName === "IssuerSuspended" }];
  });
}
