import { join } from "node:path";
import type { LocalAccount } from "viem";
import type { Address } from "../../core/index.ts";
import { accountOf } from "../../server/process/account.ts";
import { makeKeys, passwordFile } from "./keys.ts";
import type { Signing } from "./processes.ts";
import type { Answers } from "./terms.ts";

/** The accounts of a deployment. */
export interface Accounts {
  readonly deployer: LocalAccount;
  /** Of the members of this folder, with their keystores. */
  readonly members: readonly { readonly address: Address; readonly keystore: string }[];
  /** For settings: a keystore, or a signing service. */
  readonly signers: Readonly<Record<"operator" | "receipt" | "watcher", Signing>>;
  /** Every account that pays, by role. */
  readonly payers: readonly { readonly role: string; readonly address: Address }[];
}

/** Makes the keys that the folder lacks, and opens the deployer's. */
export async function accountsOf(folder: string, terms: Answers, progress: (line: string) => void): Promise<Accounts> {
  const services = terms.signers;
  const own = (["deployer", "operator", "receipt", "watcher"] as const).filter((role) => services[role] === undefined);
  const memberRoles = Array.from({ length: terms.members }, (_, at) => `member-${at + 1}`);
  const keys = await makeKeys(join(folder, "keys"), [...own, ...memberRoles]);
  const signing = (role: (typeof own)[number]): Signing => services[role] ?? (keys.get(role) as Signing);
  progress("opening the deployer's key");
  const { keystore, url, address } = signing("deployer");
  const password = passwordFile(join(folder, "keys"));
  const deployer = await accountOf({ keystore, passwordFile: password, ...(url && { signer: { address, url } }) });
  if (deployer === undefined) throw new Error("there is no deployer's key");
  const members = memberRoles.map((role) => keys.get(role) as { address: Address; keystore: string; role: string });
  const payers = [
    { role: "deployer", address },
    { role: "operator", address: signing("operator").address },
    { role: "watcher", address: signing("watcher").address },
    ...members,
  ];
  const signers = { operator: signing("operator"), receipt: signing("receipt"), watcher: signing("watcher") };
  return { deployer, members, signers, payers };
}
