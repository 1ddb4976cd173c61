import { type Address, type Hex, zeroAddress } from "viem";
import { readArtifact } from "../../core/l1/artifact.ts";
import { requireOwnCreation } from "../../core/l1/creation.ts";
import { committeeHash } from "../../core/protocol/attestation.ts";
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
    ...terms,
    address,
    deployedAtBlock: blockNumber,
    gasUsed,
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

/**
 * Verifies a settlement contract against its record: all code, the transaction that created it, and who holds its roles.
 * Rejects and names the first difference.
 */
export async function verifySettlement(by: Deployer, record: SettlementRecord): Promise<void> {
  const artifact = readArtifact("StateCommitment");
  const { address } = record;
  const { transfersCode } = record;
  const contract = { chainId: BigInt(by.chainId), contract: address };
  const created = await requireOwnCreation(by.client, contract, record.deployedAtBlock);
  const read = (functionName: string, args: readonly unknown[] = []) =>
    by.client.readContract({ abi: artifact.abi, address, functionName, args });
  const role = async (name: string, account: Address) => read("hasRole", [await read(name), account]);
  const stillHas = async (name: string, first: Address | undefined, recorded: Address) =>
    first !== undefined && lower(first) !== recorded && (await role(name, first));
  const [committee, epoch] = (await read("committee")) as [Hex, bigint];
  requireRecorded(address, [
    ["changeDelay", await read("changeDelay"), record.changeDelay],
    ["maturity", await read("maturity"), record.maturity],
    ["admin role", await role("DEFAULT_ADMIN_ROLE", record.admin), true],
    ["guardian role", await role("GUARDIAN_ROLE", record.guardian), true],
    ["operator role", await role("OPERATOR_ROLE", record.operator), true],
    ["first admin's role", await stillHas("DEFAULT_ADMIN_ROLE", created.admin, record.admin), false],
    ["first guardian's role", await stillHas("GUARDIAN_ROLE", created.guardian, record.guardian), false],
    ["first operator's role", await stillHas("OPERATOR_ROLE", created.operator, record.operator), false],
    ["transfersCode", lower((await read("transfersCode")) as Address), transfersCode ?? zeroAddress],
    ["committee", committee, committeeHash(epoch, { threshold: record.threshold, members: record.committee })],
  ]);
}

/** Rejects the first value that a contract and its record do not share. */
export function requireRecorded(what: string, checks: readonly (readonly [string, unknown, unknown])[]): void {
  const differs = checks.find(([, found, expected]) => found !== expected);
  if (differs === undefined) return;
  const [name, found, expected] = differs;
  throw new Error(
    `${name} of ${what} is ${found}, but ${expected} in the record. If this change was intended, write it into the record.`,
  );
}
