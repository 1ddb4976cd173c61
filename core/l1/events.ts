import { getAbiItem, type Log, parseEventLogs } from "viem";
import { MintmarkError } from "../errors.ts";
import { type Address, type Hash, MODES } from "../model.ts";
import type { L1Event } from "../ports.ts";
import { stateCommitmentAbi, stateMirrorAbi } from "./abi.ts";

/** What the settlement contract tells, and what only mirrors do. */
const abi = [...stateCommitmentAbi, getAbiItem({ abi: stateMirrorAbi, name: "BatchImported" })] as const;

/** The events that the engine follows, out of a contract's logs, in chain order. Other events of the contract are left out. */
export function decodeEvents(logs: readonly Log[]): L1Event[] {
  const decoded = parseEventLogs({ abi, logs: [...logs], strict: true });
  const events = decoded.map(toEvent).filter((event) => event !== null);
  return events.sort((a, b) => Number(a.blockNumber - b.blockNumber) || a.logIndex - b.logIndex);
}

type DecodedLog = ReturnType<typeof parseEventLogs<typeof abi, true>>[number];

function toEvent(log: DecodedLog): L1Event | null {
  const place = placeOf(log);
  switch (log.eventName) {
    case "BatchCommitted":
    case "BatchImported": {
      const type = log.eventName === "BatchCommitted" ? "batchCommitted" : "batchImported";
      return { type, ...place, ...log.args, mode: modeOf(log.args.mode), batchNumber: Number(log.args.batchNumber) };
    }
    case "Withdrawn":
      return { type: "withdrawn", ...place, ...log.args, recipient: lowerCase(log.args.recipient) };
    case "AuthorizationCancelled":
      return { type: "authorizationCancelled", ...place, ...log.args, signer: lowerCase(log.args.signer) };
    case "DuplicateVoided":
      return { type: "duplicateVoided", ...place, ...log.args };
    default:
      return null;
  }
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

function lowerCase(address: Address): Address {
  return address.toLowerCase() as Address;
}
