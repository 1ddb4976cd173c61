import { getAbiItem, type Log, numberToHex, parseEventLogs } from "viem";
import { least, MOST_BLOCKS } from "../blocks.ts";
import { MintmarkError } from "../errors.ts";
import { type Address, type Hash, MODES } from "../model.ts";
import type { CommitEvent, L1Event } from "../ports.ts";
import { stateCommitmentAbi, stateMirrorAbi } from "./abi.ts";
import { unpackedAssets } from "./arguments.ts";
import type { L1Client } from "./client.ts";
import { isRefusal } from "./failure.ts";

/**
 * Reads a contract's logs in ranges that the node accepts. Nodes limit the blocks of a question or the logs of an
 * answer, each in its own way. So a refused range is halved, down to a single block, and grows again with each accepted
 * one.
 */
export class LogReader {
  readonly #client: L1Client;
  readonly #address: Address;
  #blocks = MOST_BLOCKS;

  constructor(client: L1Client, address: Address) {
    this.#client = client;
    this.#address = address;
  }

  /** In chain order. Rejects with the node's words about a single block. */
  async read(fromBlock: bigint, toBlock: bigint): Promise<Log[]> {
    const logs: Log[] = [];
    for (let from = fromBlock; from <= toBlock; ) {
      const blocks = this.#blocks;
      const to = least(from + blocks - 1n, toBlock);
      try {
        logs.push(...(await this.#client.getLogs({ address: this.#address, fromBlock: from, toBlock: to })));
      } catch (error) {
        if (from === to || !isRefusal(error)) throw error;
        this.#blocks = (to - from + 1n) / 2n;
        continue;
      }
      from = to + 1n;
      this.#blocks = least(blocks * 2n, MOST_BLOCKS);
    }
    return logs;
  }
}

/** Events of the settlement contract, and those of mirrors only. */
const abi = [...stateCommitmentAbi, getAbiItem({ abi: stateMirrorAbi, name: "BatchImported" })] as const;

/** The events that the engine follows, in chain order. Leaves out the contract's other events. */
export function decodeEvents(logs: readonly Log[]): L1Event[] {
  const decoded = parseEventLogs({ abi, logs: [...logs], strict: true });
  const events = decoded.map((log, i) => toEvent(log, decoded.slice(Math.max(0, i - 2), i))).filter((e) => e !== null);
  return events.sort((a, b) => Number(a.blockNumber - b.blockNumber) || a.logIndex - b.logIndex);
}

type DecodedLog = ReturnType<typeof parseEventLogs<typeof abi, true>>[number];

/** @param before - the one or two events before it */
function toEvent(log: DecodedLog, before: readonly DecodedLog[]): L1Event | null {
  const place = placeOf(log);
  switch (log.eventName) {
    case "BatchCommitted":
    case "BatchImported": {
      const type = log.eventName === "BatchCommitted" ? "batchCommitted" : "batchImported";
      const batch = { mode: modeOf(log.args.mode), batchNumber: Number(log.args.batchNumber) };
      if (type === "batchImported") return { type, ...place, ...log.args, ...batch };
      return { type, ...place, ...log.args, ...batch, ...besideCommit(before) };
    }
    case "Withdrawn":
      return { type: "withdrawn", ...place, ...log.args, recipient: lowerCase(log.args.recipient) };
    case "AuthorizationCancelled":
      return { type: "authorizationCancelled", ...place, ...log.args, signer: lowerCase(log.args.signer) };
    case "DuplicateVoided":
      return { type: "duplicateVoided", ...place, ...log.args };
    case "AssetTransferable":
      return { type: "assetTransferable", ...place, ...log.args, assetType: assetTypeOf(log.args.assetType) };
    case "SessionAuthorized": {
      const { owner, key, assetType, ...terms } = log.args;
      const parties = { owner: lowerCase(owner), key: lowerCase(key) };
      return { type: "sessionAuthorized", ...place, ...terms, ...parties, assetType: assetTypeOf(assetType) };
    }
    case "SessionRevoked": {
      const { owner, key, revokedAt } = log.args;
      return { type: "sessionRevoked", ...place, owner: lowerCase(owner), key: lowerCase(key), revokedAt };
    }
    case "TransfersApproved":
      return { type: "transfersApproved", ...place, ...log.args, owner: lowerCase(log.args.owner) };
    case "TransfersCancelled":
      return { type: "transfersCancelled", ...place, ...log.args, owner: lowerCase(log.args.owner) };
    default:
      return null;
  }
}

/** What the contract tells of a commit in the one or two events directly before it. */
function besideCommit(before: readonly DecodedLog[]): Pick<CommitEvent, "leftOut" | "blobs" | "transfers"> {
  const last = before.at(-1);
  if (last?.eventName === "TransfersCommitted") return { transfers: true };
  const leftOut = last?.eventName === "AssetsLeftOut" ? last.args.assets : null;
  const blobs = leftOut === null ? last : before.at(-2);
  return {
    ...(leftOut !== null && { leftOut: placesIn(leftOut) }),
    ...(blobs?.eventName === "BlobsCommitted" && {
      blobs: { assets: unpackedAssets(blobs.args.assets), versionedHashes: blobs.args.versionedHashes },
    }),
  };
}

function placesIn(bits: bigint): number[] {
  return [...bits.toString(2)].reverse().flatMap((bit, place) => (bit === "1" ? [place] : []));
}

function placeOf(log: DecodedLog): { txHash: Hash; blockNumber: bigint; logIndex: number } {
  const { transactionHash, blockNumber, logIndex } = log as Log;
  if (transactionHash === null || blockNumber === null || logIndex === null) {
    throw new MintmarkError("l1_failed", "the node returned a log of a block that is not mined");
  }
  return { txHash: transactionHash, blockNumber, logIndex };
}

function modeOf(value: number) {
  const mode = MODES[value];
  if (mode === undefined) throw new MintmarkError("l1_failed", `the contract reported the unknown mode ${value}`);
  return mode;
}

function assetTypeOf(value: bigint): Hash {
  return numberToHex(value, { size: 32 });
}

function lowerCase(address: Address): Address {
  return address.toLowerCase() as Address;
}
