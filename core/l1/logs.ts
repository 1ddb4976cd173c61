import {
  type AbiEvent,
  BaseError,
  getAbiItem,
  HttpRequestError,
  type Log,
  numberToHex,
  parseEventLogs,
  type TransactionReceipt,
} from "viem";
import { getBlockNumber, getLogs } from "viem/actions";
import { least, MOST_BLOCKS } from "../blocks.ts";
import { MintmarkError } from "../errors.ts";
import { type Address, MODES, type Mode } from "../model.ts";
import type { CommitEvent, L1Event, MadeEvent, MadeVault } from "../ports.ts";
import { unpackMadeVaultId } from "../protocol/vault.ts";
import { stateCommitmentAbi, stateMirrorAbi } from "./abi.ts";
import { unpackedAssets } from "./arguments.ts";
import { isBusy, isRefusal, isTooMuch, type L1Client } from "./connection.ts";

/**
 * Answers in a row after which more blocks are asked for again. A question that is too wide can
 * take long.
 */
const ANSWERS_TO_GROW = 10;

/**
 * Reads a contract's logs in chain order. Nodes limit the blocks of a question, the logs of an
 * answer, or the time that they take, and say so in many ways: a gateway in front of them answers
 * 502 or 520, or cuts the connection. So a range that is refused or not answered is halved, down to
 * a single block, and grows again. It stays as it is while the node answers nothing else either.
 * Rejects with the node's words about a single block.
 */
export function logReader(
  client: L1Client,
  address: Address,
  events?: readonly AbiEvent[],
): (fromBlock: bigint, toBlock: bigint) => Promise<Log[]> {
  let blocks = MOST_BLOCKS;
  let answers = 0;
  return async (fromBlock, toBlock) => {
    const logs: Log[] = [];
    for (let from = fromBlock; from <= toBlock; ) {
      const to = least(from + blocks - 1n, toBlock);
      const found = await askForLogs(client, { address, events, fromBlock: from, toBlock: to });
      if (found === null) {
        blocks = (to - from + 1n) / 2n;
        answers = 0;
        continue;
      }
      logs.push(...found);
      from = to + 1n;
      if (++answers % ANSWERS_TO_GROW === 0) blocks = least(blocks * 2n, MOST_BLOCKS);
    }
    return eachOnce(logs);
  };
}

interface LogQuestion {
  readonly address: Address;
  readonly events: readonly AbiEvent[] | undefined;
  readonly fromBlock: bigint;
  readonly toBlock: bigint;
}

/** The logs; null when the node may answer a question for fewer blocks. */
async function askForLogs(client: L1Client, question: LogQuestion): Promise<Log[] | null> {
  const isWide = question.fromBlock < question.toBlock;
  try {
    // The transport would repeat a question that is too wide.
    return await getLogs(repeating(client, 0), question);
  } catch (error) {
    if (isWide && isTooMuch(error)) return null;
    if (isRefusal(error) && !isBusy(error)) throw error;
    if (!isWide || isRateLimit(error)) return getLogs(client, question);
  }
  try {
    return await getLogs(repeating(client, 1), question);
  } catch (error) {
    if (await answersAnything(client)) return null;
    throw error;
  }
}

/** The client, which repeats a failed request this often. */
function repeating(client: L1Client, retryCount: number): L1Client {
  const request = (asked: never) => client.request(asked, { retryCount });
  return { ...client, request: request as never };
}

function isRateLimit(error: unknown): boolean {
  const answer =
    error instanceof BaseError && error.walk((inner) => inner instanceof HttpRequestError);
  return answer instanceof HttpRequestError && answer.status === 429;
}

function answersAnything(client: L1Client): Promise<boolean> {
  return getBlockNumber(client, { cacheTime: 0 }).then(
    () => true,
    () => false,
  );
}

/** The logs in chain order. Some nodes give them in another one, or the same log twice. */
function eachOnce(logs: readonly Log[]): Log[] {
  const byPlace = new Map(logs.map((log) => [`${log.blockHash} ${log.logIndex}`, log]));
  return [...byPlace.values()].sort(
    (a, b) =>
      Number((a.blockNumber ?? 0n) - (b.blockNumber ?? 0n)) ||
      (a.logIndex ?? 0) - (b.logIndex ?? 0),
  );
}

/** Events of the settlement contract, and those of mirrors only. */
const abi = [
  ...stateCommitmentAbi,
  getAbiItem({ abi: stateMirrorAbi, name: "BatchImported" }),
] as const;

/** The engine's names of the events that it follows. */
const TYPES: Readonly<Record<string, L1Event["type"]>> = {
  BatchCommitted: "batchCommitted",
  BatchImported: "batchImported",
  Withdrawn: "withdrawn",
  AuthorizationCancelled: "authorizationCancelled",
  DuplicateVoided: "duplicateVoided",
  AssetTransferable: "assetTransferable",
  SessionAuthorized: "sessionAuthorized",
  SessionRevoked: "sessionRevoked",
  TransfersApproved: "transfersApproved",
  TransfersCancelled: "transfersCancelled",
  Made: "made",
};

const lowerCase = (address: unknown) => (address as Address).toLowerCase();
/** How the engine's events hold these arguments; the others stay as viem decodes them. */
const FIELDS: Readonly<Record<string, (value: unknown) => unknown>> = {
  mode: modeOf,
  batchNumber: Number,
  assetType: (value) => numberToHex(value as bigint, { size: 32 }),
  owner: lowerCase,
  key: lowerCase,
  signer: lowerCase,
  recipient: lowerCase,
};

/** The events that the engine follows, in chain order. Leaves out the contract's other events. */
export function decodeEvents(logs: readonly Log[]): L1Event[] {
  const decoded = parseEventLogs({ abi, logs: [...logs], strict: true });
  const events = decoded.flatMap((log, i) => {
    const place = placeOf(log);
    const type = TYPES[log.eventName];
    if (type === undefined) return [];
    const values = Object.entries(log.args).map(
      ([name, value]) => [name, FIELDS[name]?.(value) ?? value] as const,
    );
    const beside =
      type === "batchCommitted"
        ? besideCommit(decoded.slice(Math.max(0, i - 2), i))
        : log.eventName === "Made"
          ? besideMade(log.args, decoded.slice(Math.max(0, i - MOST_BESIDE), i))
          : {};
    return [{ type, ...place, ...Object.fromEntries(values), ...beside } as L1Event];
  });
  return events.sort((a, b) => Number(a.blockNumber - b.blockNumber) || a.logIndex - b.logIndex);
}

/** Most events of one making before its own: a vault's each, and an entry's. */
const MOST_BESIDE = 257;

type DecodedLog = ReturnType<typeof parseEventLogs<typeof abi, true>>[number];

/**
 * Reads the vaults of a making from the events before it. Throws `l1_failed` when the node leaves
 * some out.
 */
function besideMade(
  { making, vaultCount }: { readonly making: bigint; readonly vaultCount: number },
  before: readonly DecodedLog[],
): Pick<L1Event & { type: "made" }, "vaults" | "entered"> {
  const vaults: MadeVault[] = [];
  let entered: bigint | null = null;
  for (const log of before.toReversed()) {
    if (log.eventName === "TokenEntered") entered = log.args.tokenId;
    else if (log.eventName !== "VaultMade") break;
    else {
      const place = unpackMadeVaultId(log.args.vaultId);
      if (place.making !== making || place.slot !== vaultCount - 1 - vaults.length) break;
      const { amount, mintingBlob } = log.args;
      const assetType = numberToHex(log.args.assetType, { size: 32 });
      vaults.push({ owner: lowerCase(log.args.owner) as Address, assetType, amount, mintingBlob });
    }
  }
  if (vaults.length === vaultCount) return { vaults: vaults.reverse(), entered };
  throw new MintmarkError("l1_failed", `the node leaves out vaults of making ${making}`);
}

/** Reads what the contract tells of a commit in the one or two events directly before it. */
function besideCommit(
  before: readonly DecodedLog[],
): Pick<CommitEvent, "leftOut" | "blobs" | "transfers"> {
  const last = before.at(-1);
  if (last?.eventName === "TransfersCommitted") return { transfers: true };
  const leftOut = last?.eventName === "AssetsLeftOut" ? last.args.assets : null;
  const blobs = leftOut === null ? last : before.at(-2);
  return {
    ...(leftOut !== null && { leftOut: placesIn(leftOut) }),
    ...(blobs?.eventName === "BlobsCommitted" && {
      blobs: {
        assets: unpackedAssets(blobs.args.assets),
        versionedHashes: blobs.args.versionedHashes,
      },
    }),
  };
}

function placesIn(bits: bigint): number[] {
  return [...bits.toString(2)].reverse().flatMap((bit, place) => (bit === "1" ? [place] : []));
}

function placeOf(log: DecodedLog) {
  const { transactionHash: txHash, blockNumber, blockHash, logIndex } = log as Log;
  if (txHash === null || blockNumber === null || blockHash === null || logIndex === null)
    throw new MintmarkError("l1_failed", "the node returned a log of a block that is not mined");
  return { txHash, blockNumber, blockHash, logIndex };
}

/** The making in a transaction. Throws `l1_failed` when L1 made nothing in it. */
export function madeIn(contract: Address, receipt: TransactionReceipt): MadeEvent {
  const made = decodeEvents(logsOf(contract, receipt)).find((event) => event.type === "made");
  if (made !== undefined) return made;
  throw new MintmarkError("l1_failed", `transaction ${receipt.transactionHash} made no vault`);
}

/** A contract's logs in a transaction. A token can emit events that look like those of L1. */
export function logsOf(contract: Address, { logs }: TransactionReceipt): Log[] {
  return logs.filter(({ address }) => address.toLowerCase() === contract);
}

export function modeOf(value: unknown): Mode {
  const mode = MODES[value as number];
  if (mode === undefined)
    throw new MintmarkError("l1_failed", `the contract reported the unknown mode ${value}`);
  return mode;
}
