import * as viem from "viem";
import { getBlock, getBlockNumber } from "viem/actions";
import { MintmarkError } from "../errors.ts";
import type { Address } from "../model.ts";
import { foreignCode, type PayingContract, releaseOf } from "../protocol/own-code.ts";
import { stateCommitmentAbi as abi, stateCommitmentAbi, stateMirrorAbi } from "./abi.ts";
import { askL1, codeOn, type L1Client } from "./connection.ts";
import { logReader } from "./logs.ts";

const CONSTRUCTORS = {
  StateCommitment: stateCommitmentAbi[0],
  StateMirror: stateMirrorAbi[0],
} as const;

/** The constructor's arguments, as the contract documents them. */
export interface Creation {
  readonly admin: Address;
  readonly guardian?: Address;
  readonly operator?: Address;
  readonly committee: readonly Address[];
  readonly threshold: number;
}

/**
 * Checks a contract's code, and that the input of the transaction that created it is the creation
 * code of the same release. So the storage holds only what that release's code wrote: no forged
 * header, no role that no event told of. Rejects with `l1_failed`, also for a contract that another
 * contract created. Returns the constructor's arguments. `blockNumber` is the block of the
 * creation.
 */
export async function requireOwnCreation(
  client: L1Client,
  settlement: { readonly chainId: bigint; readonly contract: Address },
  blockNumber: bigint,
  name: PayingContract = "StateCommitment",
): Promise<Creation> {
  const release = await releaseOf(codeOn(client), settlement, name);
  const { contract, chainId } = settlement;
  const { transactions } = await askL1(`reading block ${blockNumber} of chain ${chainId}`, () =>
    getBlock(client, { blockNumber, includeTransactions: true }),
  );
  const creates = ({ to, from, nonce }: (typeof transactions)[number]) =>
    to === null &&
    viem.isAddressEqual(viem.getContractAddress({ from, nonce: BigInt(nonce) }), contract);
  const input: viem.Hex | undefined = transactions.find(creates)?.input;
  const remedy =
    "Give the block of its creation. Do not use a contract that another contract created.";
  if (input === undefined)
    throw new MintmarkError(
      "l1_failed",
      `no transaction of block ${blockNumber} created ${contract}. ${remedy}`,
    );
  const { bytes, hash } = release[name].creation;
  if (viem.size(input) <= bytes || viem.keccak256(viem.slice(input, 0, bytes)) !== hash)
    throw foreignCode(`${name}: another constructor wrote its storage`, settlement);
  const [config] = viem.decodeAbiParameters(CONSTRUCTORS[name].inputs, viem.slice(input, bytes));
  return config as Creation;
}

/** The contracts' roles. No other role permits anything. */
const ROLES = {
  admin: viem.zeroHash,
  guardian: viem.keccak256(viem.stringToHex("GUARDIAN")),
  operator: viem.keccak256(viem.stringToHex("OPERATOR")),
} as const;
const EVENTS = [
  viem.getAbiItem({ abi, name: "RoleGranted" }),
  viem.getAbiItem({ abi, name: "RoleRevoked" }),
] as const;

/** All holders of each role, in lower case, ascending. */
export type RoleHolders = Readonly<Record<keyof typeof ROLES, readonly Address[]>>;

/**
 * Who holds each role now, by the events since the creation in `fromBlock`. They are complete only
 * for a contract that {@link requireOwnCreation} accepts. Rejects with `l1_failed`, also when the
 * node keeps no events of the constructor, so that a holder could be missing.
 */
export async function roleHolders(
  client: L1Client,
  contract: Address,
  fromBlock: bigint,
): Promise<RoleHolders> {
  const logs = await askL1(`reading who holds the roles of ${contract}`, async () =>
    logReader(client, contract, EVENTS)(fromBlock, await getBlockNumber(client, { cacheTime: 0 })),
  );
  const missing = `the node gives no event of block ${fromBlock} about the roles of ${contract}`;
  if (logs[0]?.blockNumber !== fromBlock)
    throw new MintmarkError("l1_failed", `${missing}. Ask a node that keeps old events.`);
  const changes = viem.parseEventLogs({ abi: EVENTS, logs, strict: true });
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
  return {
    admin: holdersOf(ROLES.admin),
    guardian: holdersOf(ROLES.guardian),
    operator: holdersOf(ROLES.operator),
  };
}
