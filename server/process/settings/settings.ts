import { z } from "zod";
import { DEFAULT_LIMITS } from "../../../core/index.ts";
import { ROLLUP_DATA } from "../../../core/l1/settlement/index.ts";
import { MAX_MEMBERS } from "../../../core/protocol/index.ts";
import { ISSUER } from "../../http/access/access-token.ts";
import { DEFAULT_MEMORY_BYTES } from "../../http/access/account.ts";
import { DEFAULT_OWNER_RELAY_VAULTS } from "../../http/access/owner-relay.ts";
import { DEFAULT_RATE_LIMITS } from "../../http/access/rate-limit.ts";
import { address, count, json, listOf, member, privateKey, text, url, whole } from "./fields.ts";

/** Units for the largest mint. */
const LARGEST_REQUEST = DEFAULT_LIMITS.mintsPerRequest;
const MIB = 1024 * 1024;

const integer = (meaning: string, digits: number) =>
  z.union([z.string().regex(new RegExp(`^\\d{1,${digits}}$`)), z.int().min(0)], `Give ${meaning}.`).transform(BigInt);

/** A mirror of the state on another chain, and the settings for that chain. */
const mirror = z.strictObject({
  chainId: integer("the chain's id", 19),
  contract: address("the address of the StateMirror contract"),
  rpcUrl: url("the address of the chain's RPC"),
  fromBlock: integer("the block of the mirror's deployment", 18).default(0n),
  confirmations: integer("a number of blocks", 6).optional(),
  maxFeePerGas: integer("an amount of wei", 30).optional(),
  /** Its committee, unless it is the state's own. */
  members: z.array(member).max(MAX_MEMBERS).optional(),
  threshold: z.int().min(1).max(MAX_MEMBERS).optional(),
});

export type MirrorSetting = z.output<typeof mirror>;

/** JSON, because each has several settings. */
const mirrorSettings = json((text) => text, "Give a JSON array of mirrors.")
  .pipe(z.array(mirror, "Give a JSON array of mirrors.").max(64))
  .refine((given) => new Set(given.map(({ chainId }) => chainId)).size === given.length, "Give one mirror per chain.")
  .refine(
    (given) => given.every(({ members, threshold }) => (members === undefined) === (threshold === undefined)),
    "Give members and threshold of a mirror together, or neither: then it has the state's committee.",
  );

const variables = z.object({
  MINTMARK_STORE: z
    .string("Give the folder of the store.")
    .min(1, "Give the folder of the store.")
    .describe(
      "Folder of the store; one for each environment and contract. `mintmark init` creates it; the server never does.",
    ),
  MINTMARK_JOURNAL: z
    .url({ protocol: /^postgres(?:ql)?$/, error: "Give an address such as postgres://mintmark@db.example/mintmark." })
    .optional()
    .describe(
      "The journal that a cluster's servers share: PostgreSQL with a synchronous standby. Without it, one server works alone.",
    ),
  MINTMARK_JOURNAL_KEYS: listOf(
    z
      .string()
      .regex(/^[0-9a-fA-F]{64}$/, "Give keys of 32 random bytes in hex, separated by commas.")
      .transform((key) => new Uint8Array(Buffer.from(key, "hex"))),
  ).describe("Keys of 32 random bytes in hex that encrypt the journal: the first encrypts, all decrypt."),
  MINTMARK_JOURNAL_COPIES: count(1, 2)
    .default(2)
    .describe("1 accepts a journal without a synchronous standby: its disk is then the only copy."),
  MINTMARK_JOURNAL_MIB: count(1, 1_000_000)
    .default(1_024)
    .describe(
      "MiB of the journal after which the leader stores a snapshot there and deletes entries before the previous one.",
    ),
  MINTMARK_SERVER_NAME: z
    .string()
    .regex(/^[\w.-]{1,100}$/, "Give a name of letters, digits, dots and hyphens.")
    .optional()
    .describe("This server's name in its cluster; default the machine's name and the process's id."),
  MINTMARK_SERVER_URL: url("an origin such as http://10.0.0.7:3000")
    .optional()
    .describe("This server's address for the other servers of the cluster; default its own host and port."),
  MINTMARK_LEASE_SECONDS: count(1, 60)
    .default(3)
    .describe("After this silence, another server of the cluster replaces the leader."),
  MINTMARK_ENVIRONMENT: z
    .enum(["sandbox", "live"], "Give sandbox or live.")
    .describe(
      "`sandbox` or `live`. Each refuses keys, tokens and stores of the other; live needs a chain that is not a test chain.",
    ),
  MINTMARK_CHAIN_ID: whole(/^[1-9]\d{0,18}$/, "Give the settlement chain's id.").describe(
    "Id of the settlement chain.",
  ),
  MINTMARK_CONTRACT: address("the address of the StateCommitment contract").describe(
    "Address of the settlement contract, `StateCommitment`.",
  ),
  MINTMARK_RPC_URL: url("the address of the chain's RPC")
    .optional()
    .describe("The settlement chain; the server checks its id and contract at start. Live needs it."),
  MINTMARK_OPERATOR_KEY: privateKey("Give the operator's private key")
    .optional()
    .describe("The operator's private key, with which the server seals, commits and withdraws by itself."),
  MINTMARK_OPERATOR_KEYSTORE: text
    .optional()
    .describe("In place of the key: an encrypted file of it (Web3 Secret Storage, version 3)."),
  MINTMARK_OPERATOR_PASSWORD_FILE: text
    .optional()
    .describe("File of the keystore's password; `-`, the default, is standard input."),
  MINTMARK_OPERATOR_SIGNER: member
    .optional()
    .describe("In place of the key: `<address>=<url>` of a service that signs, such as a KMS; docs/guides/keys.md."),
  MINTMARK_RECEIPT_KEY: privateKey("Give the private key that signs receipts")
    .optional()
    .describe(
      "The private key that signs receipts of mints; publish its address. Without it, responses have no receipt.",
    ),
  MINTMARK_RECEIPT_KEYSTORE: text.optional().describe("In place of that key: an encrypted file of it."),
  MINTMARK_RECEIPT_PASSWORD_FILE: text
    .optional()
    .describe("File of that keystore's password; `-`, the default, is standard input."),
  MINTMARK_RECEIPT_SIGNER: member
    .optional()
    .describe(
      "In place of that key: `<address>=<url>` of a service that signs. Each mint with a receipt waits for it.",
    ),
  MINTMARK_FROM_BLOCK: whole(/^\d{1,18}$/, "Give the deployment block of the contract.")
    .default(0n)
    .describe("Deployment block of the contract."),
  MINTMARK_CONFIRMATIONS: count(0, 100_000)
    .optional()
    .describe("Blocks after which a block counts as final; default the chain's own finality."),
  MINTMARK_MEMBERS: listOf(member, MAX_MEMBERS).describe("The committee in force, each member as `<address>=<url>`."),
  MINTMARK_THRESHOLD: count(0, MAX_MEMBERS).default(0).describe("How many members must sign."),
  MINTMARK_ISSUERS: listOf(member, MAX_MEMBERS).describe(
    "The issuers of tokens, each as `<address>=<url>` of its service.",
  ),
  MINTMARK_CONSENT_SECONDS: count(1, 86_400)
    .default(30)
    .describe(
      "How long a batch waits for its issuers; then it is committed without the assets of those that did not consent.",
    ),
  MINTMARK_MIRRORS: mirrorSettings
    .default([])
    .describe(
      'Mirrors of the state on other chains, as JSON: `[{"chainId": "10", "contract": "0x…", "rpcUrl": "https://…", "fromBlock": "…"}]`; optional are `confirmations` and `maxFeePerGas` of its chain, and `members` and `threshold` unless its committee is that of the state. The operator\'s account pays there too, and needs no role.',
    ),
  MINTMARK_SEAL_SECONDS: count(1, 86_400)
    .default(60)
    .describe("Time from the first mint of an open batch to its seal."),
  MINTMARK_SEAL_SECONDS_ROLLUP: count(1, 86_400)
    .optional()
    .describe("The same for `zk-rollup`, whose commits cost by the byte; default as above."),
  MINTMARK_SEAL_VAULTS: count(1, 1 << 20)
    .default(65_536)
    .describe("Vaults at which a `validium` batch is sealed."),
  MINTMARK_SEAL_VAULTS_ROLLUP: count(1, 1 << 15)
    .default(4_096)
    .describe("Vaults at which a `zk-rollup` batch in calldata is sealed. One in blobs takes up to 24576 elements."),
  MINTMARK_SEAL_BYTES_ROLLUP: count(1_024, 130_048)
    .default(126_976)
    .describe(
      "Bytes of data at which a `zk-rollup` batch in calldata is sealed; nodes accept no transaction above 131072. It does not bound batches in blobs.",
    ),
  MINTMARK_MAX_FEE_PER_GAS: whole(/^[1-9]\d{0,29}$/, "Give an amount of wei.")
    .optional()
    .describe(
      "Most wei ever offered for a unit of gas; by default 64 times the estimate at a transaction's first offer. At this cap a transaction waits.",
    ),
  MINTMARK_MAX_FEE_PER_BLOB_GAS: whole(/^[1-9]\d{0,29}$/, "Give an amount of wei.")
    .optional()
    .describe(
      "The same for a unit of blob gas. While the blob fee is above this cap, a waiting commit by blobs holds up validium commits and relays too, because nodes accept pending transactions of only one kind from an account.",
    ),
  MINTMARK_ROLLUP_DATA: z
    .enum(ROLLUP_DATA)
    .default("auto")
    .describe(
      "Where vaults of `zk-rollup` go: `blobs`, `calldata` or `auto`. `auto` means blobs on chains that are known to take blob transactions (Ethereum, Sepolia, Hoodi, Gnosis, Chiado, and local chains 1337, 31337, 31338) if the precompile 0x0a works there, and calldata elsewhere. On any other chain with blobs set `blobs`: then the server ends if it cannot send them. Vaults that blobs cannot hold always go into calldata.",
    ),
  MINTMARK_REPLACE_SECONDS: count(1, 86_400)
    .default(60)
    .describe("Time after which an unmined transaction is sent again at a higher fee."),
  MINTMARK_SETTLE_SECONDS: count(1, 3_600).default(2).describe("Time between reads of L1."),
  MINTMARK_MOST_UNCOMMITTED: count(LARGEST_REQUEST, 999_999_999)
    .default(4_000_000)
    .describe(
      "Uncommitted vaults above which mints are 503 `backpressure`. Without an operator key there is no limit.",
    ),
  MINTMARK_LEAST_BALANCE: whole(/^\d{1,30}$/, "Give an amount of wei.")
    .default(10n ** 16n)
    .describe(
      "The operator's wei on the settlement chain below which `/readyz` is 503. A relay of 20 withdrawals needs up to 12.5 M gas at the highest fee.",
    ),
  MINTMARK_MOST_LAG: count(1, 1_000_000)
    .default(50)
    .describe("Blocks behind the settlement chain above which `/readyz` is 503."),
  MINTMARK_ENGINE_VERSION: count(1, 1000)
    .default(5)
    .describe("Of the settlement contract, if no RPC is given to read it, or none answers at start."),
  MINTMARK_HOST: text.default("127.0.0.1").describe("Address to listen on."),
  MINTMARK_PORT: count(0, 65_535).default(3000).describe("Port to listen on; 0 for any."),
  MINTMARK_ORIGIN: url("an origin such as https://mint.example")
    .transform((text) => new URL(text))
    .refine(({ href, origin }) => href === `${origin}/`, "Give scheme, host and port only.")
    .optional()
    .describe(
      "The server's address for browsers, such as `https://mint.example`. Without it owners sign in over localhost only.",
    ),
  MINTMARK_HOSTS: listOf(
    z.string().regex(/^(?:\*|[A-Za-z0-9.-]+)$/, "Give names without ports, separated by commas, or *."),
  ).describe(
    "Further names for requests to the server, or `*` for any. Always accepted: the origin's, `localhost`, addresses, names without a dot.",
  ),
  MINTMARK_EXPLORER_RPC: url("the address of an RPC")
    .optional()
    .describe("An RPC that the explorer offers to visitors; it must accept requests from any origin."),
  MINTMARK_NEW_TOKENS: z
    .enum(["admins", "operator"], "Give admins or operator.")
    .optional()
    .describe(
      "`admins`: admins of applications create tokens from the console, at their own cost. `operator`: they ask the operator. Default: admins in the sandbox, else the operator.",
    ),
  MINTMARK_OWNER_RELAY_VAULTS: count(0, 999_999_999)
    .default(DEFAULT_OWNER_RELAY_VAULTS)
    .describe(
      "Vaults a day that each owner who signs in to the explorer may withdraw at the operator's cost; 0 turns it off, and owners pay themselves. The count starts anew with the server, and API keys are not bound by it.",
    ),
  MINTMARK_WEBHOOK_REACH: z
    .enum(["public", "public-and-loopback"])
    .default("public")
    .describe("Addresses that webhooks may reach; this machine's own only in a sandbox, for trials."),
  MINTMARK_METRICS_PORT: count(0, 65_535).optional().describe("Port of `GET /metrics`; default none."),
  MINTMARK_METRICS_HOST: text.default("127.0.0.1").describe("Address of that port."),
  MINTMARK_LOG_LEVEL: z
    .enum(["trace", "debug", "info", "warn", "error", "fatal", "silent"])
    .default("info")
    .describe("pino's levels; secrets are never written."),
  MINTMARK_TOKEN_SECRET: z
    .string()
    .regex(/^(?:[0-9a-fA-F]{2}){32,}$/, "Give at least 32 random bytes in hex.")
    .transform((text) => new Uint8Array(Buffer.from(text, "hex")))
    .optional()
    .describe("At least 32 bytes in hex, random by default; servers behind one address share it."),
  MINTMARK_JWKS: z
    .string()
    .min(1)
    .refine((place) => !place.startsWith("http:"), "Give an https address: whoever can change the keys can be anyone.")
    .optional()
    .describe("Keys of the identity provider whose bearer tokens are accepted: an https address, or a file."),
  MINTMARK_JWT_ISSUER: z
    .string()
    .min(1)
    .refine((name) => name !== ISSUER, `Give the identity provider's name: ${ISSUER} is this server's own.`)
    .optional()
    .describe("The identity provider's name, as in `iss`."),
  MINTMARK_JWT_AUDIENCE: text.optional().describe("The required `aud` of its tokens."),
  MINTMARK_TRUSTED_PROXIES: listOf(
    z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()], "Give addresses, separated by commas."),
  ).describe("Addresses whose X-Forwarded-For is trusted."),
  MINTMARK_RATE_UNITS: count(LARGEST_REQUEST, 999_999_999)
    .default(DEFAULT_RATE_LIMITS.key.units)
    .describe("Units of a key in each window; at least those of the largest request. docs/api.md lists the costs."),
  MINTMARK_RATE_WINDOW_SECONDS: count(1, 86_400)
    .default(DEFAULT_RATE_LIMITS.key.windowSeconds)
    .describe("Length of the window."),
  MINTMARK_MEMORY_MIB: count(64, 65_536)
    .default(DEFAULT_MEMORY_BYTES / MIB)
    .describe(
      "MiB of request bodies and unread responses. An application may hold as much as is still free, so always a part of it is; all callers without a key count as one application.",
    ),
  MINTMARK_CLOCK_AHEAD_HOURS: count(1, 87_600)
    .default(12)
    .describe("Most time that the clock may be ahead of the journal. Raise it to start a store after a longer pause."),
  MINTMARK_IDEMPOTENCY_HOURS: count(24, 87_600)
    .default(24)
    .describe("Time for which an idempotency key returns its mint; then it is deleted."),
  MINTMARK_REQUEST_TIMEOUT_SECONDS: count(1, 600).default(30).describe("Timeout for receiving a whole request."),
  MINTMARK_DRAIN_SECONDS: count(0, 600).default(0).describe("Time of answering 503 before the socket closes."),
  MINTMARK_SHUTDOWN_SECONDS: count(1, 600).default(10).describe("Time after which busy connections are closed."),
});

const LOCAL_CHAINS: ReadonlySet<bigint> = new Set([1337n, 31_337n]);

/** Whether the id is that of a local test chain, where nothing has value. */
export function isLocalChain(chainId: bigint): boolean {
  return LOCAL_CHAINS.has(chainId);
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
        demand("MINTMARK_RPC_URL", "Give the address of the chain's RPC: the operator's key is useless without it.");
      } else if (given.MINTMARK_ENVIRONMENT === "live") {
        demand(
          "MINTMARK_RPC_URL",
          "Give the address of the chain's RPC: a live server checks chain and contract at start.",
        );
      }
    }
    if (given.MINTMARK_JOURNAL !== undefined && (given.MINTMARK_JOURNAL_KEYS ?? []).length === 0) {
      demand("MINTMARK_JOURNAL_KEYS", "Give the keys that encrypt the journal, the same on every server.");
    }
    if (given.MINTMARK_ENVIRONMENT === "live" && isLocalChain(given.MINTMARK_CHAIN_ID)) {
      demand("MINTMARK_CHAIN_ID", "Give a public chain: this is a local test chain's id, for sandbox.");
    }
    // Invalid values are still as given here, and reported already.
    const mirrored = [given.MINTMARK_MIRRORS].flat().map((mirror) => mirror?.chainId);
    if (mirrored.length > 0 && sources.length === 0) {
      demand("MINTMARK_OPERATOR_KEY", "Give the operator's private key: withdrawals are sent to mirrors with it.");
    }
    if (mirrored.includes(given.MINTMARK_CHAIN_ID)) {
      demand("MINTMARK_MIRRORS", "Give mirrors on other chains: on its own chain the settlement contract pays.");
    }
    if (given.MINTMARK_ENVIRONMENT === "live" && mirrored.some((chainId) => LOCAL_CHAINS.has(chainId))) {
      demand("MINTMARK_MIRRORS", "Give mirrors on public chains: one has a local test chain's id, for sandbox.");
    }
    if (given.MINTMARK_ENVIRONMENT === "live" && given.MINTMARK_WEBHOOK_REACH !== "public") {
      demand("MINTMARK_WEBHOOK_REACH", "Give public: a live server does not call into its own machine.");
    }
    for (const name of ["MINTMARK_JWT_ISSUER", "MINTMARK_JWT_AUDIENCE"] as const) {
      if (given.MINTMARK_JWKS !== undefined && given[name] === undefined) {
        demand(
          name,
          "Give the required audience of the identity provider's tokens: keys alone do not show for whom they are.",
        );
      }
      if (given.MINTMARK_JWKS === undefined && given[name] !== undefined) {
        demand("MINTMARK_JWKS", `Give the identity provider's keys: ${name} is useless without them.`);
      }
    }
  },
  { when: ({ value }) => typeof value === "object" },
);

/** The settings that open a store. */
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

/** Only the environment or standard input may hold these: files are copied, and other users can read arguments. */
export function isSecret(name: string): boolean {
  return /_(?:KEYS?|SECRET|JOURNAL)$/.test(name);
}

export type Config = z.output<typeof settings>;
