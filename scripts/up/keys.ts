import { randomBytes } from "node:crypto";
import { access, mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Keystore } from "ox";
import { generatePrivateKey, privateKeyToAddress } from "viem/accounts";
import type { Address } from "../../core/index.ts";

/** A role's encrypted key. */
export interface RoleKey {
  readonly role: string;
  readonly address: Address;
  readonly keystore: string;
}

/** Makes the encrypted keys that a folder lacks, and the file of their password. Only their user can read them. */
export async function makeKeys(folder: string, roles: readonly string[]): Promise<ReadonlyMap<string, RoleKey>> {
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

/** The file with the password of a folder's keys. */
export function passwordFile(folder: string): string {
  return join(folder, "password");
}

async function passwordIn(folder: string): Promise<string> {
  const path = passwordFile(folder);
  if (!(await exists(path))) await writeWhole(path, `${randomBytes(24).toString("base64url")}\n`);
  return (await readFile(path, "utf8")).trimEnd();
}

async function makeKey(path: string, password: string): Promise<Address> {
  const key = generatePrivateKey();
  const address = privateKeyToAddress(key).toLowerCase() as Address;
  const [derived, options] = await Keystore.scryptAsync({ password });
  const keystore = await Keystore.encrypt(key, derived, options);
  await writeWhole(path, `${JSON.stringify({ ...keystore, address: address.slice(2) })}\n`);
  return address;
}

async function addressIn(path: string): Promise<Address | null> {
  if (!(await exists(path))) return null;
  const { address } = JSON.parse(await readFile(path, "utf8")) as { address?: unknown };
  if (typeof address === "string" && /^[0-9a-f]{40}$/.test(address)) return `0x${address}`;
  throw new Error(`${path} names no address; give the keystore that mintmark made, or remove it to make another`);
}

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );

/** A killed process leaves no half of a key. */
async function writeWhole(path: string, text: string): Promise<void> {
  await writeFile(`${path}.new`, text, { mode: 0o600 });
  await rename(`${path}.new`, path);
}
