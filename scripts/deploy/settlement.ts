import { type Address, type Hex, zeroAddress } from "viem";
import { requireOwnCode } from "../../core/l1/code.ts";
import { committeeHash } from "../../core/protocol/attestation.ts";
import { readArtifact } from "./artifact.ts";
import { type Deployer, deployContract, lower } from "./deployer.ts";
import type { SettlementRecord } from "./record.ts";

/** Arguments of the constructor of `StateCommitment`; the contract documents the roles. */
export interface SettlementConfig {
  readonly admin: Address;
  readonly guardian: Address;
  /** A plain account. */
  readonly operator: Address;
  /** In any order; sorted ascending. */
  readonly committee: readonly Address[];
  readonly threshold: number;
  /** Seconds. */
  readonly changeDelay: bigint;
  /** Seconds. */
  readonly maturity: bigint;
  /** Deploys the code of transfers too, for ever a part of the contract; default without. */
  readonly transfers?: boolean;
}

/** Deploys the settlement contract. With an earlier record, verifies the recorded contract instead. */
export async function deploySettlement(
  by: Deployer,
  config: SettlementConfig,
  earlier?: SettlementRecord,
): Promise<SettlementRecord> {
  if (earlier !== undefined) {
    await verifySettlement(by, earlier);
    return earlier;
  }
  const { transfers = false, ...terms } = config;
  const code = transfers ? await deployContract(by, "Transfers", []) : undefined;
  const args = settlementArgs(terms, code?.address);
  const { address, blockNumber, gasUsed } = await deployContract(by, "StateCommitment", args);
  const record = {
    address,
    deployedAtBlock: blockNumber,
    gasUsed,
    ...terms,
    ...(code && { transfersCode: code.address }),
    admin: lower(config.admin),
    guardian: lower(config.guardian),
    operator: lower(config.operator),
    committee: ascending(config.committee),
  };
  await verifySettlement(by, record);
  return record;
}

/** The constructor's arguments. */
export function settlementArgs(config: SettlementConfig, transfersCode: Address = zeroAddress): readonly unknown[] {
  return [{ ...config, committee: ascending(config.committee), transfersCode }];
}

/** Members in lower case and in the contracts' order. */
export function ascending(members: readonly Address[]): Address[] {
  return members.map(lower).toSorted();
}

/** Verifies a settlement contract against its record. Rejects and names the first difference. */
export async function verifySettlement(by: Deployer, record: SettlementRecord): Promise<void> {
  const artifact = readArtifact("StateCommitment");
  const { address } = record;
  const { transfersCode } = record;
  await requireOwnCode(by.client, { chainId: BigInt(by.chainId), contract: address });
  const read = (functionName: string, args: readonly unknown[] = []) =>
    by.client.readContract({ abi: artifact.abi, address, functionName, args });
  const role = async (name: string, account: Address) => read("hasRole", [await read(name), account]);
  const [committee, epoch] = (await read("committee")) as [Hex, bigint];
  const checks: readonly (readonly [string, unknown, unknown])[] = [
    ["changeDelay", await read("changeDelay"), record.changeDelay],
    ["maturity", await read("maturity"), record.maturity],
    ["admin role", await role("DEFAULT_ADMIN_ROLE", record.admin), true],
    ["guardian role", await role("GUARDIAN_ROLE", record.guardian), true],
    ["operator role", await role("OPERATOR_ROLE", record.operator), true],
    ["transfersCode", lower((await read("transfersCode")) as Address), transfersCode ?? zeroAddress],
    ["committee", committee, committeeHash(epoch, { threshold: record.threshold, members: record.committee })],
  ];
  for (const [what, found, expected] of checks) {
    if (found !== expected)
      throw new Error(
        `${what} of ${address} is ${String(found)}, but ${String(expected)} in the record. If this change was intended, write it into the record.`,
      );
  }
}
