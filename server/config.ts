import { z } from "zod";
import type { Hex } from "../core/index.ts";
import { DEFAULT_RATE_LIMITS } from "./rate-limit.ts";

const count = (least: number, most: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/, "Give a whole number.")
    .transform(Number)
    .refine((value) => value >= least && value <= most, `Give a number from ${least} to ${most}.`);

/** `0x…=http://…`: a committee member's address and its service. */
const member = z
  .string()
  .regex(
    /^0x[0-9a-fA-F]{40}=https?:\/\/\S+$/,
    "Give each member as <address>=<url of its service>, with commas between.",
  )
  .transform((text) => ({ address: text.slice(0, 42).toLowerCase() as Hex, url: text.slice(43) }));

const variables = z.object({
  MINTMARK_STORE: z.string().min(1, "Give the folder of the store."),
  MINTMARK_ENVIRONMENT: z.enum(["sandbox", "live"], "Give sandbox or live."),
  MINTMARK_CHAIN_ID: z
    .string()
    .regex(/^[1-9]\d{0,18}$/, "Give the settlement chain's id.")
    .transform(BigInt),
  MINTMARK_CONTRACT: z
    .string()
    .regex(/^0x[0-9a-fA-F]{40}$/, "Give the address of the StateCommitment contract.")
    .transform((text) => text.toLowerCase() as Hex),
  MINTMARK_RPC_URL: z.url({ protocol: /^https?$/, error: "Give the address of the chain's RPC." }).optional(),
  MINTMARK_OPERATOR_KEY: z
    .string()
    .regex(/^0x[0-9a-fA-F]{64}$/, "Give the operator's private key: 0x and 64 hex digits.")
    .transform((text) => text as Hex)
    .optional(),
  MINTMARK_FROM_BLOCK: z
    .string()
    .regex(/^\d{1,18}$/, "Give the block of the contract's deployment.")
    .transform(BigInt)
    .default(0n),
  MINTMARK_CONFIRMATIONS: count(0, 100_000).optional(),
  MINTMARK_MEMBERS: z
    .string()
    .transform((text) => text.split(",").map((part) => part.trim()))
    .pipe(z.array(member).max(255))
    .default([]),
  MINTMARK_THRESHOLD: count(0, 255).default(0),
  MINTMARK_SEAL_SECONDS: count(1, 86_400).default(60),
  MINTMARK_SETTLE_SECONDS: count(1, 3_600).default(2),
  MINTMARK_LEAST_BALANCE: z
    .string()
    .regex(/^\d{1,30}$/, "Give an amount of wei.")
    .transform(BigInt)
    .default(10n ** 16n),
  MINTMARK_ENGINE_VERSION: count(1, 1000).default(5),
  MINTMARK_HOST: z.string().min(1).default("127.0.0.1"),
  MINTMARK_PORT: count(0, 65_535).default(3000),
  MINTMARK_LOG_LEVEL: z.enum(["trace", "debug", "info", "warn", "error", "fatal", "silent"]).default("info"),
  MINTMARK_TOKEN_SECRET: z
    .string()
    .regex(/^(?:[0-9a-fA-F]{2}){32,}$/, "Give at least 32 random bytes in hex.")
    .transform((text) => new Uint8Array(Buffer.from(text, "hex")))
    .optional(),
  MINTMARK_TRUSTED_PROXIES: z
    .string()
    .transform((text) => text.split(",").map((part) => part.trim()))
    .pipe(z.array(z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()], "Give addresses with commas between.")))
    .default([]),
  MINTMARK_RATE_UNITS: count(1, 999_999_999).default(DEFAULT_RATE_LIMITS.key.units),
  MINTMARK_RATE_WINDOW_SECONDS: count(1, 86_400).default(DEFAULT_RATE_LIMITS.key.windowSeconds),
  MINTMARK_REQUEST_TIMEOUT_SECONDS: count(1, 600).default(30),
  MINTMARK_DRAIN_SECONDS: count(0, 600).default(0),
  MINTMARK_SHUTDOWN_SECONDS: count(1, 600).default(10),
});

const settings = variables.refine(
  ({ MINTMARK_OPERATOR_KEY: key, MINTMARK_RPC_URL: rpc }) => key === undefined || rpc !== undefined,
  {
    path: ["MINTMARK_RPC_URL"],
    error: "Give the address of the chain's RPC: the operator's key is of no use without.",
    when: () => true,
  },
);

export type Config = z.output<typeof settings>;

/** Every variable that is missing or wrong, by name. Values are not shown: one of them is a secret. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

/** Reads the process's settings; throws `ConfigError`, also for a MINTMARK_ variable that nobody reads, which is likely a typing error. */
export function readConfig(environment: Readonly<Record<string, string | undefined>>): Config {
  const names = Object.keys(environment).filter((name) => name.startsWith("MINTMARK_"));
  const unknown = names.filter((name) => !(name in variables.shape)).map((name) => `${name}: no such setting`);
  const result = settings.safeParse(environment);
  const wrong = result.success
    ? []
    : result.error.issues.map(({ path: [name], message }) => {
        return `${String(name)}: ${environment[String(name)] === undefined ? "missing. " : ""}${message}`;
      });
  if (!result.success || unknown.length > 0) throw new ConfigError([...wrong, ...unknown].join("\n"));
  return result.data;
}
