import { type Address, type Hex, zeroAddress } from "viem";
import { readArtifact } from "../../core/l1/artifact.ts";
import { requireOwnCreation } from "../../core/l1/creation.ts";
import { roleHolders } from "../../core/l1/powers.ts";
import { committeeHash } from "../../core/protocol/attestation.ts";
import { type Deployer, deployContract, lower } from "./deployer.ts";
import type { CreationFields, SettlementRecord, Terms } from "./record.ts";

/**
 * Arguments of the constructor of `StateCommitment`, which documents the roles. The operator is a
 * plain account; members are in any order.
 */
export type SettlementConfig = Omit<SettlementRecord, keyof CreationFields | LentCode> & {
  /**
   * Deploys the code of transfers and of made vaults too, for ever a part of the contract; default
   * without.
   */
  readonly transfers?: boolean;
};

type LentCode = "transfersCode" | "makingsCode";

/** Deploys the settlement contract, and verifies it. */
export async function deploySettlement(
  by: Deployer,
  config: SettlementConfig,
): Promise<SettlementRecord> {
  const { transfers = false, ...terms } = config;
  const lent = transfers ? await deployLent(by) : {};
  const args = settlementArgs(terms, lent);
  const record: SettlementRecord = {
    ...terms,
    ...(await deployContract(by, "StateCommitment", args)),
    ...lent,
    admin: lower(config.admin),
    guardian: lower(config.guardian),
    operator: lower(config.operator),
    committee: ascending(config.committee),
  };
  await verifySettlement(by, record);
  return record;
}

async function deployLent(by: Deployer): Promise<Record<LentCode, Address>> {
  const transfers = await deployContract(by, "Transfers", []);
  const makings = await deployContract(by, "Makings", []);
  return { transfersCode: transfers.address, makingsCode: makings.address };
}

export function settlementArgs(
  config: SettlementConfig,
  lent: Partial<Record<LentCode, Address>> = {},
): readonly unknown[] {
  const { transfersCode = zeroAddress, makingsCode = zeroAddress } = lent;
  return [{ ...config, committee: ascending(config.committee), transfersCode, makingsCode }];
}

/** Members in lower case and in the contracts' order. */
export function ascending(members: readonly Address[]): Address[] {
  return members.map(lower).toSorted();
}

/**
 * Verifies a settlement contract against its record: all code, the transaction that created it, and
 * that only the recorded accounts hold its roles. Rejects and names the first difference.
 */
export async function verifySettlement(by: Deployer, record: SettlementRecord): Promise<void> {
  const { address, transfersCode = zeroAddress, makingsCode = zeroAddress } = record;
  const { holders, read, role, checks } = await termsOf(by, "StateCommitment", record);
  requireRecorded(address, [
    ...checks,
    ["guardian role", await role("GUARDIAN_ROLE", record.guardian), true],
    ["operator role", await role("OPERATOR_ROLE", record.operator), true],
    ["list of guardians", holders.guardian.join(", "), record.guardian],
    ["list of operators", holders.operator.join(", "), record.operator],
    ["transfersCode", lower((await read("transfersCode")) as Address), transfersCode],
    ["makingsCode", lower((await read("makingsCode")) as Address), makingsCode],
  ]);
}

type Check = readonly [name: string, found: unknown, expected: unknown];

/**
 * Checks a contract's code and creation. Resolves with its reader, and what it and a mirror both
 * have.
 */
export async function termsOf(
  { client, chainId }: Deployer,
  name: "StateCommitment" | "StateMirror",
  terms: Pick<SettlementRecord, "address" | "deployedAtBlock" | "admin" | keyof Terms>,
) {
  const { address, admin, threshold } = terms;
  const { abi } = readArtifact(name);
  const contract = { chainId: BigInt(chainId), contract: address };
  await requireOwnCreation(client, contract, terms.deployedAtBlock, name);
  const holders = await roleHolders(client, address, terms.deployedAtBlock);
  const read = (functionName: string, args: readonly unknown[] = []) =>
    client.readContract({ abi, address, functionName, args });
  const role = async (which: string, account: Address) =>
    read("hasRole", [await read(which), account]);
  const [committee, epoch] = (await read("committee")) as [Hex, bigint];
  const checks: Check[] = [
    ["changeDelay", await read("changeDelay"), terms.changeDelay],
    ["maturity", await read("maturity"), terms.maturity],
    ["admin role", await role("DEFAULT_ADMIN_ROLE", admin), true],
    ["list of admins", holders.admin.join(", "), lower(admin)],
    [
      "committee",
      committee,
      committeeHash(epoch, { threshold, members: ascending(terms.committee) }),
    ],
  ];
  return { holders, read, role, checks };
}

/** Rejects the first value that a contract and its record do not share. */
export function requireRecorded(what: string, checks: readonly Check[]): void {
  const differs = checks.find(([, found, expected]) => found !== expected);
  if (differs === undefined) return;
  const [name, found, expected] = differs;
  throw new Error(
    `${name} of ${what} is ${found}, but ${expected} in the record. If this change was intended, write it into the record, which has one holder of each role. Otherwise undo it on L1.`,
  );
}
