import { z } from "zod";
import { DEFAULT_LIMITS, MAX_MEMBERS, ROLLUP_DATA } from "../../../core/basics.ts";
import { DEFAULT_FILLS_PER_DAY } from "../../http/access/fill-budget.ts";
import { DEFAULT_OWNER_RELAY_VAULTS } from "../../http/access/owner-relay.ts";
import { DEFAULT_MEMORY_BYTES } from "../../http/access/rate-account.ts";
import { DEFAULT_RATE_LIMITS } from "../../http/access/rate-limit.ts";
import { ISSUER } from "../../http/access/token-terms.ts";
import { ABOUT } from "./about.ts";
import {
  address,
  count,
  described,
  json,
  listOf,
  member,
  privateKey,
  text,
  url,
  whole,
} from "./fields.ts";

const LARGEST_REQUEST = DEFAULT_LIMITS.mintsPerRequest;
const MIB = 1024 * 1024;

const integer = (meaning: string, digits: number) =>
  z
    .union([z.string().regex(new RegExp(`^\\d{1,${digits}}$`)), z.int().min(0)], `Give ${meaning}.`)
    .transform(BigInt);

/** A mirror of the state on another chain, and the settings for that chain. */
const mirror = z.strictObject({
  chainId: integer("the chain's id", 19),
  contract: address("the address of the StateMirror contract"),
  rpcUrl: url("the address of the chain's RPC"),
  fromBlock: integer("the block of the mirror's deployment", 18).default(0n),
  confirmations: integer("a number of blocks", 6).optional(),
  maxFeePerGas: integer("an amount of wei", 30).optional(),
  /** The mirror's committee, unless it is the state's own. */
  members: z.array(member).max(MAX_MEMBERS).optional(),
  threshold: z.int().min(1).max(MAX_MEMBERS).optional(),
});

export type MirrorSetting = z.output<typeof mirror>;

/** JSON, because each has several settings. */
const mirrorSettings = json((text) => text, "Give a JSON array of mirrors.")
  .pipe(z.array(mirror, "Give a JSON array of mirrors.").max(64))
  .refine(
    (given) => new Set(given.map(({ chainId }) => chainId)).size === given.length,
    "Give one mirror per chain.",
  )
  .refine(
    (given) =>
      given.every(
        ({ members, threshold }) => (members === undefined) === (threshold === undefined),
      ),
    "Give members and threshold of a mirror together, or neither: then it has the state's committee.",
  );

const shape = {
  MINTMARK_STORE: z.string("Give the folder of the store.").min(1, "Give the folder of the store."),
  MINTMARK_JOURNAL: z
    .url({
      protocol: /^postgres(?:ql)?$/,
      error: "Give an address such as postgres://mintmark@db.example/mintmark.",
    })
    .optional(),
  MINTMARK_JOURNAL_KEYS: listOf(
    z
      .string()
      .regex(/^[0-9a-fA-F]{64}$/, "Give keys of 32 random bytes in hex, separated by commas.")
      .transform((key) => new Uint8Array(Buffer.from(key, "hex"))),
  ),
  MINTMARK_JOURNAL_COPIES: count(1, 2).default(2),
  MINTMARK_JOURNAL_MIB: count(1, 1_000_000).default(1_024),
  MINTMARK_SERVER_NAME: z
    .string()
    .regex(/^[\w.-]{1,100}$/, "Give a name of letters, digits, dots and hyphens.")
    .optional(),
  MINTMARK_SERVER_URL: url("an origin such as http://10.0.0.7:3000").optional(),
  MINTMARK_LEASE_SECONDS: count(1, 60).default(3),
  MINTMARK_ENVIRONMENT: z.enum(["sandbox", "live"], "Give sandbox or live."),
  MINTMARK_CHAIN_ID: whole(/^[1-9]\d{0,18}$/, "Give the settlement chain's id."),
  MINTMARK_CONTRACT: address("the address of the StateCommitment contract"),
  MINTMARK_RPC_URL: url("the address of the chain's RPC").optional(),
  MINTMARK_OPERATOR_KEY: privateKey("Give the operator's private key").optional(),
  MINTMARK_OPERATOR_KEYSTORE: text.optional(),
  MINTMARK_OPERATOR_PASSWORD_FILE: text.optional(),
  MINTMARK_OPERATOR_SIGNER: member.optional(),
  MINTMARK_RECEIPT_KEY: privateKey("Give the private key that signs receipts").optional(),
  MINTMARK_RECEIPT_KEYSTORE: text.optional(),
  MINTMARK_RECEIPT_PASSWORD_FILE: text.optional(),
  MINTMARK_RECEIPT_SIGNER: member.optional(),
  MINTMARK_FROM_BLOCK: whole(/^\d{1,18}$/, "Give the deployment block of the contract.").default(
    0n,
  ),
  MINTMARK_CONFIRMATIONS: count(0, 100_000).optional(),
  MINTMARK_MEMBERS: listOf(member, MAX_MEMBERS),
  MINTMARK_THRESHOLD: count(0, MAX_MEMBERS).default(0),
  MINTMARK_OWN_MEMBER: z.enum(["yes", "no"], "Give yes or no.").default("no"),
  MINTMARK_ISSUERS: listOf(member, MAX_MEMBERS),
  MINTMARK_CONSENT_SECONDS: count(1, 86_400).default(30),
  MINTMARK_MIRRORS: mirrorSettings.default([]),
  MINTMARK_SEAL_SECONDS: count(1, 86_400).default(60),
  MINTMARK_SEAL_SECONDS_ROLLUP: count(1, 86_400).optional(),
  MINTMARK_SEAL_VAULTS: count(1, 1 << 20).default(65_536),
  MINTMARK_SEAL_VAULTS_ROLLUP: count(1, 1 << 15).default(4_096),
  MINTMARK_SEAL_BYTES_ROLLUP: count(1_024, 130_048).default(126_976),
  MINTMARK_MAX_FEE_PER_GAS: whole(/^[1-9]\d{0,29}$/, "Give an amount of wei.").optional(),
  MINTMARK_MAX_FEE_PER_BLOB_GAS: whole(/^[1-9]\d{0,29}$/, "Give an amount of wei.").optional(),
  MINTMARK_ROLLUP_DATA: z.enum(ROLLUP_DATA).default("auto"),
  MINTMARK_REPLACE_SECONDS: count(1, 86_400).default(60),
  MINTMARK_SETTLE_SECONDS: count(1, 3_600).default(2),
  MINTMARK_MOST_UNCOMMITTED: count(LARGEST_REQUEST, 999_999_999).default(4_000_000),
  MINTMARK_LEAST_BALANCE: whole(/^\d{1,30}$/, "Give an amount of wei.").default(10n ** 16n),
  MINTMARK_MOST_LAG: count(1, 1_000_000).default(50),
  MINTMARK_ENGINE_VERSION: count(1, 1000).default(5),
  MINTMARK_HOST: text.default("127.0.0.1"),
  MINTMARK_PORT: count(0, 65_535).default(3000),
  MINTMARK_ORIGIN: url("an origin such as https://mint.example")
    .transform((text) => new URL(text))
    .refine(({ href, origin }) => href === `${origin}/`, "Give scheme, host and port only.")
    .optional(),
  MINTMARK_HOSTS: listOf(
    z
      .string()
      .regex(/^(?:\*|[A-Za-z0-9.-]+)$/, "Give names without ports, separated by commas, or *."),
  ),
  MINTMARK_EXPLORER_RPC: url("the address of an RPC").optional(),
  MINTMARK_NEW_TOKENS: z.enum(["admins", "operator"], "Give admins or operator.").optional(),
  MINTMARK_OWNER_RELAY_VAULTS: count(0, 999_999_999).default(DEFAULT_OWNER_RELAY_VAULTS),
  MINTMARK_FILLS_PER_DAY: count(1, 999_999_999).default(DEFAULT_FILLS_PER_DAY),
  MINTMARK_WEBHOOK_REACH: z.enum(["public", "public-and-loopback"]).default("public"),
  MINTMARK_METRICS_PORT: count(0, 65_535).optional(),
  MINTMARK_METRICS_HOST: text.default("127.0.0.1"),
  MINTMARK_LOG_LEVEL: z
    .enum(["trace", "debug", "info", "warn", "error", "fatal", "silent"])
    .default("info"),
  MINTMARK_TOKEN_SECRET: z
    .string()
    .regex(/^(?:[0-9a-fA-F]{2}){32,}$/, "Give at least 32 random bytes in hex.")
    .transform((text) => new Uint8Array(Buffer.from(text, "hex")))
    .optional(),
  MINTMARK_JWKS: text
    .refine(
      (place) => !place.startsWith("http:"),
      "Give an https address: whoever can change the keys can be anyone.",
    )
    .optional(),
  MINTMARK_JWT_ISSUER: text
    .refine(
      (name) => name !== ISSUER,
      `Give the identity provider's name: ${ISSUER} is this server's own.`,
    )
    .optional(),
  MINTMARK_JWT_AUDIENCE: text.optional(),
  MINTMARK_TRUSTED_PROXIES: listOf(
    z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()], "Give addresses, separated by commas."),
  ),
  MINTMARK_RATE_UNITS: count(LARGEST_REQUEST, 999_999_999).default(DEFAULT_RATE_LIMITS.key.units),
  MINTMARK_RATE_WINDOW_SECONDS: count(1, 86_400).default(DEFAULT_RATE_LIMITS.key.windowSeconds),
  MINTMARK_MEMORY_MIB: count(64, 65_536).default(DEFAULT_MEMORY_BYTES / MIB),
  MINTMARK_CLOCK_AHEAD_HOURS: count(1, 87_600).default(12),
  MINTMARK_IDEMPOTENCY_HOURS: count(24, 87_600).default(24),
  MINTMARK_REQUEST_TIMEOUT_SECONDS: count(1, 600).default(30),
  MINTMARK_DRAIN_SECONDS: count(0, 600).default(0),
  MINTMARK_SHUTDOWN_SECONDS: count(1, 600).default(10),
};

const variables = z.object(described(shape, ABOUT));

/** Whether the id is that of a local test chain, where nothing has value. */
export function isLocalChain(chainId: bigint): boolean {
  return chainId === 1337n || chainId === 31_337n;
}

/** Where a party's signatures come from, of which at most one is given. */
const sourcesOf = <P extends "OPERATOR" | "RECEIPT">(party: P) =>
  [`MINTMARK_${party}_KEY`, `MINTMARK_${party}_KEYSTORE`, `MINTMARK_${party}_SIGNER`] as const;

/** All settings, and their dependencies. */
export const settings = variables.superRefine(
  (given, context) => {
    const demand = (name: keyof typeof given, message: string) =>
      context.addIssue({ code: "custom", path: [name], message });
    for (const party of ["OPERATOR", "RECEIPT"] as const) {
      const [first, second] = sourcesOf(party).filter((name) => given[name] !== undefined);
      if (second !== undefined) demand(second, `Give this or ${first}, not both.`);
      const keystore = `MINTMARK_${party}_KEYSTORE` as const;
      if (given[`MINTMARK_${party}_PASSWORD_FILE`] !== undefined && given[keystore] === undefined)
        demand(keystore, "Give the keystore that the password opens.");
    }
    const sources = sourcesOf("OPERATOR").filter((name) => given[name] !== undefined);
    if (given.MINTMARK_RPC_URL === undefined) {
      if (sources.length > 0) {
        demand(
          "MINTMARK_RPC_URL",
          "Give the address of the chain's RPC: the operator's key is useless without it.",
        );
      } else if (given.MINTMARK_ENVIRONMENT === "live") {
        demand(
          "MINTMARK_RPC_URL",
          "Give the address of the chain's RPC: a live server checks chain and contract at start.",
        );
      }
    }
    if (given.MINTMARK_JOURNAL !== undefined && (given.MINTMARK_JOURNAL_KEYS ?? []).length === 0)
      demand(
        "MINTMARK_JOURNAL_KEYS",
        "Give the keys that encrypt the journal, the same on every server.",
      );
    if (given.MINTMARK_OWN_MEMBER === "yes") {
      if (sources.length === 0)
        demand(
          "MINTMARK_OPERATOR_KEY",
          "Give the operator's private key: the server's own member signs with it.",
        );
      if ((given.MINTMARK_MEMBERS ?? []).length > 0)
        demand(
          "MINTMARK_OWN_MEMBER",
          "Give this or MINTMARK_MEMBERS, not both: it is the committee's only member.",
        );
      if (given.MINTMARK_JOURNAL !== undefined)
        demand(
          "MINTMARK_OWN_MEMBER",
          "Give no: the servers of a cluster need members that run beside them.",
        );
      if ([given.MINTMARK_MIRRORS].flat().some((mirror) => mirror && mirror.members === undefined))
        demand(
          "MINTMARK_MIRRORS",
          "Give each mirror its members: the server's own member signs for none.",
        );
    }
    if (given.MINTMARK_ENVIRONMENT === "live" && isLocalChain(given.MINTMARK_CHAIN_ID))
      demand(
        "MINTMARK_CHAIN_ID",
        "Give a public chain: this is a local test chain's id, for sandbox.",
      );
    // Invalid values are still as given here, and reported already.
    const mirrored = [given.MINTMARK_MIRRORS].flat().map((mirror) => mirror?.chainId);
    if (mirrored.length > 0 && sources.length === 0)
      demand(
        "MINTMARK_OPERATOR_KEY",
        "Give the operator's private key: withdrawals are sent to mirrors with it.",
      );
    if (mirrored.includes(given.MINTMARK_CHAIN_ID))
      demand(
        "MINTMARK_MIRRORS",
        "Give mirrors on other chains: on its own chain the settlement contract pays.",
      );
    if (given.MINTMARK_ENVIRONMENT === "live" && mirrored.some(isLocalChain))
      demand(
        "MINTMARK_MIRRORS",
        "Give mirrors on public chains: one has a local test chain's id, for sandbox.",
      );
    if (given.MINTMARK_ENVIRONMENT === "live" && given.MINTMARK_WEBHOOK_REACH !== "public")
      demand(
        "MINTMARK_WEBHOOK_REACH",
        "Give public: a live server does not call into its own machine.",
      );
    for (const name of ["MINTMARK_JWT_ISSUER", "MINTMARK_JWT_AUDIENCE"] as const) {
      if (given.MINTMARK_JWKS !== undefined && given[name] === undefined)
        demand(
          name,
          "Give the required audience of the identity provider's tokens: keys alone do not show for whom they are.",
        );
      if (given.MINTMARK_JWKS === undefined && given[name] !== undefined)
        demand(
          "MINTMARK_JWKS",
          `Give the identity provider's keys: ${name} is useless without them.`,
        );
    }
  },
  { when: ({ value }) => typeof value === "object" },
);

/** The operator's commands open a store with these. */
export const storeSettings = variables.pick({
  MINTMARK_STORE: true,
  MINTMARK_ENVIRONMENT: true,
  MINTMARK_CHAIN_ID: true,
  MINTMARK_CONTRACT: true,
  MINTMARK_ENGINE_VERSION: true,
  MINTMARK_JOURNAL: true,
  MINTMARK_JOURNAL_KEYS: true,
  MINTMARK_JOURNAL_COPIES: true,
});

/** The settings one by one; also the source of docs/configuration.md. */
export const SETTINGS = variables.shape;

/**
 * Only the environment or standard input may hold these: files are copied, and other users can read
 * arguments.
 */
export function isSecret(name: string): boolean {
  return /_(?:KEYS?|SECRET|JOURNAL)$/.test(name);
}

export type Config = z.output<typeof settings>;
