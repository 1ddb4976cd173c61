import { pbkdf2, type ScryptOptions, scrypt } from "node:crypto";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { scryptAsync } from "@noble/hashes/scrypt";
import * as Keystore from "ox/Keystore";
import type { LocalAccount } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { z } from "zod";
import type { Hex } from "../../core/index.ts";
import { httpSigner, signerAccount } from "../../core/l1/index.ts";
import { KeystoreError } from "./settings/config.ts";
import { json } from "./settings/fields.ts";

/**
 * Where an account's signatures come from: a private key, an encrypted file of it, or a signing
 * service.
 */
interface KeySource {
  readonly key?: Hex | undefined;
  /** A Web3 Secret Storage file, version 3. */
  readonly keystore?: string | undefined;
  /** The file with the keystore's password; `-` is standard input. */
  readonly passwordFile?: string | undefined;
  readonly signer?: { readonly address: Hex; readonly url: string } | undefined;
}

/** The account of a key source; undefined for an empty one. Rejects with {@link KeystoreError}. */
export async function accountOf({
  key,
  keystore,
  passwordFile,
  signer,
}: KeySource): Promise<LocalAccount | undefined> {
  if (signer !== undefined) return signerAccount(httpSigner(signer.address, signer.url));
  if (keystore !== undefined) return privateKeyToAccount(await keyIn(keystore, passwordFile));
  return key === undefined ? undefined : privateKeyToAccount(key);
}

const hex = (bytes?: number) =>
  z.string().regex(new RegExp(`^[0-9a-f]${bytes === undefined ? "+" : `{${2 * bytes}}`}$`, "i"));
/** Bounds keep a hostile file from taking all memory or time. */
const file = z.object({
  version: z.literal(3),
  id: z.string().default(""),
  crypto: z.intersection(
    z.object({
      cipher: z.literal("aes-128-ctr"),
      ciphertext: hex(32),
      cipherparams: z.object({ iv: hex(16) }),
      mac: hex(32),
    }),
    z.discriminatedUnion("kdf", [
      z.object({
        kdf: z.literal("scrypt"),
        kdfparams: z
          .object({
            dklen: z.literal(32),
            n: z.int().min(2).max(1_048_576),
            p: z.int().min(1).max(16),
            r: z.int().min(1).max(16),
            salt: hex(),
          })
          // Four times what geth writes: 1 GiB, and some seconds.
          .refine(({ n, p, r }) => (n & (n - 1)) === 0 && n * p * r <= 1 << 23),
      }),
      z.object({
        kdf: z.literal("pbkdf2"),
        kdfparams: z.object({
          c: z.int().min(1).max(10_000_000),
          dklen: z.literal(32),
          prf: z.literal("hmac-sha256"),
          salt: hex(),
        }),
      }),
    ]),
  ),
});

/** The private key in a keystore. Rejects with {@link KeystoreError}. */
export async function keyIn(path: string, passwordFile = "-"): Promise<Hex> {
  const text = await readFile(path, "utf8").catch(() => {
    throw new KeystoreError(
      `The keystore ${path} cannot be read. Check the path and who may read it.`,
    );
  });
  const parsed = json((given) => given, "")
    .pipe(file)
    .safeParse(text);
  if (!parsed.success) {
    const place = parsed.error.issues[0]?.path.join(".") || "the file";
    throw new KeystoreError(
      `${path} is no keystore of version 3 (Web3 Secret Storage): ${place} is wrong.`,
    );
  }
  const keystore = parsed.data;
  const password = await passwordOf(passwordFile, path);
  try {
    const derived = await derivedKey(keystore.crypto, password);
    return Keystore.decrypt(keystore as unknown as Keystore.Keystore, `0x${derived}`) as Hex;
  } catch {
    throw new KeystoreError(
      `The password does not open the keystore ${path}. Give the password it was made with.`,
    );
  }
}

const scrypted = promisify<string, Buffer, number, ScryptOptions, Buffer>(scrypt);
const pbkdf2ed = promisify(pbkdf2);

/** A keystore's own key, in hex. Node derives it on a thread, ten times as fast as JavaScript. */
async function derivedKey(
  crypto: z.output<typeof file>["crypto"],
  password: string,
): Promise<string> {
  const salt = Buffer.from(crypto.kdfparams.salt, "hex");
  if (crypto.kdf === "pbkdf2")
    return (await pbkdf2ed(password, salt, crypto.kdfparams.c, 32, "sha256")).toString("hex");
  return scryptKey(password, salt, crypto.kdfparams);
}

/** The cost of scrypt, as a keystore has it; geth writes n = 2^18, r = 8 and p = 1. */
export type ScryptCost = Readonly<Record<"n" | "r" | "p", number>>;

/** 32 bytes by scrypt (RFC 7914), in hex. */
export async function scryptKey(
  password: string,
  salt: Buffer,
  { n: N, r, p }: ScryptCost,
): Promise<string> {
  // OpenSSL refuses an n that RFC 7914 does not allow for its r. Some keystores have one.
  if (Math.log2(N) >= 16 * r)
    return Buffer.from(await scryptAsync(password, salt, { N, r, p, dkLen: 32 })).toString("hex");
  // Without a limit of ours Node takes 32 MiB at most. scrypt needs 128 r bytes for each n and p.
  const maxmem = 256 * r * (N + p);
  return (await scrypted(password, salt, 32, { N, r, p, maxmem })).toString("hex");
}

/** Standard input is read once; its password opens every keystore of the process. */
let standardInput: Promise<string> | undefined;

async function passwordOf(passwordFile: string, keystore: string): Promise<string> {
  standardInput ??= passwordFile === "-" ? readStandardInput() : undefined;
  const reading = passwordFile === "-" ? standardInput : readFile(passwordFile, "utf8");
  const text = await reading?.catch(() => {
    throw new KeystoreError(`The password file ${passwordFile} of ${keystore} cannot be read.`);
  });
  const password = (text ?? "").replace(/\r?\n$/, "");
  if (password === "")
    throw new KeystoreError(
      `There is no password for the keystore ${keystore}. Give its file, or standard input.`,
    );
  return password;
}

async function readStandardInput(): Promise<string> {
  if (process.stdin.isTTY)
    throw new KeystoreError("A terminal shows what you type: give the password's file, or a pipe.");
  let text = "";
  for await (const chunk of process.stdin.setEncoding("utf8")) {
    text += chunk;
    if (text.length > 1_024)
      throw new KeystoreError("Standard input contains more than a password.");
  }
  return text;
}
