import { randomBytes } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import * as Keystore from "ox/Keystore";
import { generatePrivateKey, privateKeyToAddress } from "viem/accounts";
import type { Address } from "../../core/index.ts";
import { accountOf, scryptKey } from "../../server/process/account.ts";
import { textIn, writeWhole } from "../files.ts";
import type { Answers } from "./terms.ts";

/** Where a process's signatures come from: a keystore, or a signing service. */
export interface Signing {
  readonly address: Address;
  readonly keystore?: string;
  readonly url?: string;
}

export type Accounts = Awaited<ReturnType<typeof accountsOf>>;

/**
 * Makes the encrypted keys that the folder lacks, and their password, for this user alone. Opens
 * the deployer's.
 */
export async function accountsOf(folder: string, terms: Answers, progress: (line: string) => void) {
  const keys = join(folder, "keys");
  await mkdir(keys, { recursive: true, mode: 0o700 });
  const password = await passwordIn(keys);
  const made = async (role: string) => {
    const keystore = join(keys, `${role}.json`);
    return {
      role,
      address: (await addressIn(keystore)) ?? (await makeKey(keystore, password)),
      keystore,
    };
  };
  const signing = async (
    role: keyof Answers["signers"],
  ): Promise<Signing & { readonly role: string }> => {
    const service = terms.signers[role];
    return service === undefined ? made(role) : { ...service, role };
  };
  const deploying = await signing("deployer");
  const signers = {
    operator: await signing("operator"),
    receipt: await signing("receipt"),
    watcher: await signing("watcher"),
  };
  const members: Awaited<ReturnType<typeof made>>[] = [];
  for (let number = 1; number <= terms.members; number++)
    members.push(await made(`member-${number}`));
  progress("opening the deployer's key");
  const { keystore, url, address } = deploying;
  const signer = url === undefined ? undefined : { address, url };
  const deployer = await accountOf({ keystore, passwordFile: passwordFile(keys), signer });
  if (deployer === undefined) throw new Error("there is no deployer's key");
  // Every account that pays, by role.
  const guards = terms.profile === "solo" ? [] : [signers.watcher, ...members];
  const payers = [deploying, signers.operator, ...guards];
  return { deployer, members, signers, payers };
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

/**
 * 64 MiB and a fifth of a second for each key, because a process opens several at its start. The
 * password is random, so a higher cost would protect nothing more.
 */
const COST = { n: 65_536, r: 8, p: 1 };

async function makeKey(path: string, password: string): Promise<Address> {
  const key = generatePrivateKey();
  const address = privateKeyToAddress(key).toLowerCase() as Address;
  const salt = randomBytes(32);
  const derived = await scryptKey(password, salt, COST);
  const keystore = Keystore.encrypt(key, `0x${derived}`, {
    iv: randomBytes(16),
    kdf: "scrypt",
    kdfparams: { ...COST, dklen: 32, salt: salt.toString("hex") },
  });
  await writeWhole(path, `${JSON.stringify({ ...keystore, address: address.slice(2) })}\n`, 0o600);
  return address;
}

async function addressIn(path: string): Promise<Address | null> {
  const text = await textIn(path);
  if (text === undefined) return null;
  const { address } = JSON.parse(text) as { address?: unknown };
  if (typeof address === "string" && /^[0-9a-f]{40}$/.test(address)) return `0x${address}`;
  throw new Error(
    `${path} names no address; give the keystore that mintmark made, or remove it to make another`,
  );
}
