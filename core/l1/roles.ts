import { getAbiItem, keccak256, parseEventLogs, stringToHex, zeroHash } from "viem";
import { getBlockNumber } from "viem/actions";
import { MintmarkError } from "../errors.ts";
import type { Address } from "../model.ts";
import { stateCommitmentAbi as abi } from "./abi.ts";
import type { L1Client } from "./connection.ts";
import { askL1 } from "./failure.ts";
import { logReader } from "./logs.ts";

/** The contracts' roles. No other role permits anything. */
const ROLES = {
  admin: zeroHash,
  guardian: keccak256(stringToHex("GUARDIAN")),
  operator: keccak256(stringToHex("OPERATOR")),
} as const;
const EVENTS = [getAbiItem({ abi, name: "RoleGranted" }), getAbiItem({ abi, name: "RoleRevoked" })] as const;

/** All holders of each role, in lower case, ascending. */
export type RoleHolders = Readonly<Record<keyof typeof ROLES, readonly Address[]>>;

/**
 * Who holds each role now, by the events since the creation in `fromBlock`. They are complete only for a contract that
 * {@link requireOwnCreation} accepts. Rejects with `l1_failed`, also when the node keeps no events of the constructor,
 * so that a holder could be missing.
 */
export async function roleHolders(client: L1Client, contract: Address, fromBlock: bigint): Promise<RoleHolders> {
  const logs = await askL1(`reading who holds the roles of ${contract}`, async () =>
    logReader(client, contract, EVENTS)(fromBlock, await getBlockNumber(client, { cacheTime: 0 })),
  );
  const missing = `the node gives no event of block ${fromBlock} about the roles of ${contract}`;
  if (logs[0]?.blockNumber !== fromBlock)
    throw new MintmarkError("l1_failed", `${missing}. Ask a node that keeps old events.`);
  const changes = parseEventLogs({ abi: EVENTS, logs, strict: true });
  const holdersOf = (id: string) => {
    const holders = new Set<Address>();
    for (const { eventName, args } of changes) {
      if (args.role !== id) continue;
      const account = args.account.toLowerCase() as Address;
      if (eventName === "RoleGranted") holders.add(account);
      else holders.delete(account);
    }
    return [...holders].toSorted();
  };
  return { admin: holdersOf(ROLES.admin), guardian: holdersOf(ROLES.guardian), operator: holdersOf(ROLES.operator) };
}
