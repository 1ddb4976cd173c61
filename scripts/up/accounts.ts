import { randomBytes } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { Keystore } from "ox";
import { generatePrivateKey, privateKeyToAddress } from "viem/accounts";
import type { Address } from "../../core/index.ts";
import { accountOf } from "../../server/process/account.ts";
import { textIn, writeWhole } from "../files.ts";
import type { Answers } from "./terms.ts";

/** Where a process's signatures come from: a keystore, or a signing service. */
export interface Signing {
  readonly address: Address;
  readonly keystore?: string;
  readonly url?: string;
}

interface RoleKey extends Signing {
  readonly role: string;
  readonly keystore: string;
}

export type Accounts = Awaited<ReturnType<typeof accountsOf>>;

/** Makes the keys that the folder lacks, and opens the deployer's. */
export async function accountsOf(folder: string, terms: Answers, progress: (line: string) => void) {
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
  const members = memberRoles.map((role) => keys.get(role) as RoleKey);
  const paying = (["deployer", "operator", "watcher"] as const).map((role) => ({ ...signing(role), role }));
  // Every account that pays, by role.
  const payers = [...paying, ...members];
  const signers = { operator: signing("operator"), receipt: signing("receipt"), watcher: signing("watcher") };
  return { deployer, members, signers, payers };
}

/** Makes the encrypted keys that a folder lacks, and the file of their password. Only their user can read them. */
async function makeKeys(folder: string, roles: readonly string[]): Promise<ReadonlyMap<string, RoleKey>> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const password = await passwordIn(folder);
  const keys = new Map<string, RoleKey>();
  for (const role of roles) {
    const keystore = join(folder, `${role}.json`);
    const address = (await addressIn(keystore)) ?? (await makeKey(keystore, password));
    keys.set(role, { role, address, keystore });
  }
  return keys;
}

export function passwordFile(folder: string): string {
  return join(folder, "password");
}

async function passwordIn(folder: string): Promise<string> {
  const path = passwordFile(folder);
  const known = await textIn(path);
  const password = known?.trimEnd() ?? randomBytes(24).toString("base64url");
  if (known === undefined) await writeWhole(path, `${password}\n`, 0o600);
  return password;
}

async function makeKey(path: string, password: string): Promise<Address> {
  const key = generatePrivateKey();
  const address = privateKeyToAddress(key).toLowerCase() as Address;
  const [derived, options] = await Keystore.scryptAsync({ password });
  const keystore = await Keystore.encrypt(key, derived, options);
  await writeWhole(path, `${JSON.stringify({ ...keystore, address: address.slice(2) })}\n`, 0o600);
  return address;
}

async function addressIn(path: string): Promise<Address | null> {
  const text = await textIn(path);
  if (text === undefined) return null;
  const { address } = JSON.parse(text) as { address?: unknown };
  if (typeof address === "string" && /^[0-9a-f]{40}$/.test(address)) return `0x${address}`;
  throw new Error(`${path} names no address; give the keystore that mintmark made, or remove it to make another`);
}
