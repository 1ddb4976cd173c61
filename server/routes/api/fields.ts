import { z } from "zod";
import {
  CHECKSUM_WRONG,
  checksumHolds,
  type Hex,
  isVisible,
  MAX_AMOUNT,
  MAX_REFERENCE,
  MODES,
  NOT_HIDDEN,
  readSpelling,
  SERIES,
  STANDARDS,
} from "../../../core/basics.ts";

/** Named schemas of the OpenAPI document: of requests and of responses. */
export const requestComponents = z.registry<{ id: string }>();
export const responseComponents = z.registry<{ id: string }>();

/** A schema as it was given, or the strict object of the fields that were given. */
type Component<S> = S extends z.ZodRawShape ? z.ZodObject<S, z.core.$strict> : S;

function naming(registry: typeof responseComponents) {
  return <S extends z.ZodType | z.ZodRawShape>(id: string, given: S) => {
    const schema = given instanceof z.ZodType ? given : z.strictObject(given);
    registry.add(schema, { id });
    return schema as Component<S>;
  };
}

export const requestComponent = naming(requestComponents);
export const responseComponent = naming(responseComponents);

// ---- values, in both directions

const HEX = /^0x[0-9a-fA-F]*$/;
const MAX_VAULT_ID = (1n << 64n) - 1n;
const MAX_TOKEN_ID = (1n << 256n) - 1n;

/** UUID of any version, in any case; converted to lower case. */
export const uuid = z.guid().transform((text) => text.toLowerCase());

/**
 * A `0x` address in any case, not zero; converted to lower case. Mixed case must match the EIP-55
 * checksum.
 */
export const address = z
  .string()
  .regex(/^0x(?!0{40}$)[0-9a-fA-F]{40}$/, "Give an address: 0x and 40 hex digits, not all zero.")
  .refine(checksumHolds, CHECKSUM_WRONG)
  .transform((text) => text.toLowerCase() as Hex);

/** `0x` and whole bytes of hex, 1 to `maxBytes`. */
export function hexUpTo(maxBytes: number) {
  return z
    .string()
    .max(2 + 2 * maxBytes)
    .regex(/^0x(?:[0-9a-fA-F]{2})+$/, "Give 0x and whole bytes in hex, at least one.")
    .transform((text) => text.toLowerCase() as Hex);
}

/**
 * An owner's signature: one of ECDSA has 64 or 65 bytes. That of a wallet contract can be long, or
 * nothing, when the wallet was told on chain.
 */
export const signature = z
  .string()
  .max(2 + 2 * 4096)
  .regex(/^0x(?:[0-9a-fA-F]{2})*$/, "Give 0x and whole bytes in hex.")
  .transform((text) => text.toLowerCase() as Hex);

/** A whole number of at most `max` in decimal digits; converted to bigint. */
export function decimal(max: bigint) {
  const tooBig = `Give at most ${max}.`;
  return z
    .string()
    .max(String(max).length, tooBig)
    .regex(/^(?:0|[1-9]\d*)$/, "Give a whole number in decimal digits, without leading zeros.")
    .transform(BigInt)
    .refine((value) => value <= max, tooBig);
}

/** A token's id: a u256 in decimal digits. */
export const tokenId = decimal(MAX_TOKEN_ID);

/** A vault's id: a u64 in decimal digits. */
export const vaultId = decimal(MAX_VAULT_ID);

/** A quantized amount in decimal digits. The core checks its bounds. */
export const amount = decimal(MAX_AMOUNT);

const fromOne = (field: typeof amount) =>
  field.refine((units) => units > 0n, "Give at least 1.").meta({ pattern: "^[1-9]\\d*$" });

/** A quantized amount that is not 0. */
export const positive = fromOne(amount);

/** An amount in base units that is not 0: a u256. */
export const baseUnits = fromOne(tokenId);

/** Seconds since 1970. */
export const seconds = decimal(MAX_VAULT_ID);

/**
 * Only ranges that all readers of JSON Schema support, so without the hidden characters of Unicode.
 */
const VISIBLE = "^[ -~\\u00a0-\\uffff]*$";

/** Text that people can see, of at most `most` characters. */
export function textUpTo(most: number) {
  return z
    .string()
    .min(1, "Give at least one character.")
    .max(most, `Give at most ${most} characters.`)
    .refine((text) => isVisible(text), `Give text ${NOT_HIDDEN}.`)
    .meta({ pattern: VISIBLE });
}

/** The caller's own name for an object. */
export const reference = textUpTo(MAX_REFERENCE);

/** `validium-12`, `zk-rollup-3`. */
export const batchId = z
  .string()
  .regex(/^(?:validium|zk-rollup)-(?:0|[1-9]\d{0,9})$/, "Give <mode>-<number>.");
/** A batch, or a making of L1, such as `made-5`. */
export const vaultsBatchId = z
  .string()
  .regex(/^(?:validium|zk-rollup|made)-(?:0|[1-9]\d{0,9})$/, "Give <mode>-<number>.");

/**
 * One of some values, in our spelling or the original SDKs' `MintableErc721` and `MINTABLE_ERC721`.
 */
export function spelling<const V extends string>(values: readonly V[]) {
  return z
    .string()
    .refine((text) => readSpelling(values, text) !== null, `Give one of ${values.join(", ")}.`)
    .meta({ enum: [...values] })
    .transform((text) => readSpelling(values, text) as V);
}

export const askedMode = spelling(MODES);
export const askedSeries = spelling(SERIES);
export const mode = z.enum(MODES, `Give one of ${MODES.join(", ")}.`);
export const series = z
  .enum(SERIES)
  .describe("`made` for a vault that L1 made by itself, when a token came back.");
export const standard = z.enum(STANDARDS, `Give one of ${STANDARDS.join(", ")}.`);

/** An RFC 3339 time with zone; converted to milliseconds since 1970. */
export const instant = z.iso
  .datetime({ offset: true, error: 'Give a time with its zone, such as "2026-11-21T07:56:56Z".' })
  .transform((text) => Date.parse(text));

export const future = instant.refine((time) => time > Date.now(), "Give a time in the future.");

export const mintQuota = z
  .string()
  .regex(/^\d{1,19}$/, "Give a whole number of mints.")
  .transform(BigInt);

export const createdBetween = {
  createdAfter: instant.optional().describe("Exclusive; RFC 3339 with zone."),
  createdBefore: instant.optional().describe("Exclusive; RFC 3339 with zone."),
};

/** `true` or `false` in a query string. */
export const flag = z
  .enum(["true", "false"])
  .meta({ type: "boolean" })
  .transform((text) => text === "true");

// ---- values in responses

export const outUuid = z.guid();
export const outHex = z.string().regex(HEX).describe("0x and lower-case hex.");
export const outHash = z.string().regex(/^0x[0-9a-f]{64}$/);
export const outAddress = z.string().regex(/^0x[0-9a-f]{40}$/);
export const outDecimal = z.string().regex(/^\d+$/).describe("A whole number in decimal digits.");
/** The asset's names and units, next to every amount. */
export const outToken = {
  name: z.string(),
  symbol: z.string(),
  quantum: outDecimal.describe("Base units of the token in one unit of every amount here."),
  decimals: z
    .int()
    .describe("Decimals of the token: `amount` is `amount * quantum / 10^decimals` of it."),
};
export const outAmountDecimal = z
  .string()
  .describe('`amount` in whole tokens, such as "12.5", as a mint gives it.');
export const outTime = z.iso.datetime();

// ---- paths

/** The sequence of an event; 0 is before the first. */
export const eventSequence = z
  .string()
  .regex(/^(?:0|[1-9]\d{0,14})$/, "Give the sequence of an event, or 0.")
  .transform(Number);

export const PATH = {
  applicationId: uuid,
  assetId: uuid,
  batchId,
  dropId: uuid,
  keyAddress: address,
  keyId: z.string().regex(/^[0-9a-f]{16}$/, "Give a key's id."),
  linkAddress: address,
  mintId: uuid,
  orderId: uuid,
  ownerAddress: address,
  personId: uuid,
  sequence: eventSequence,
  tokenId,
  transactionId: z.string().min(1).max(80),
  transferId: z
    .string()
    .regex(
      /^(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|0x[0-9a-f]{64})$/i,
      "Give a UUID, or a digest: 0x and 64 hex digits.",
    )
    .transform((text) => text.toLowerCase())
    .describe("The transfer's id, or the digest that was signed."),
  txHash: z
    .string()
    .regex(/^0x[0-9a-fA-F]{64}$/, "Give a transaction's hash: 0x and 64 hex digits.")
    .transform((given) => given.toLowerCase() as Hex),
  userId: uuid,
  vaultId,
  webhookId: uuid,
  withdrawalId: uuid,
} as const;

type NamesIn<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? Name | NamesIn<Rest>
  : never;

export type ParamsOf<Path extends string> = z.ZodObject<
  Pick<typeof PATH, NamesIn<Path> & keyof typeof PATH>,
  z.core.$strict
>;

/** The schema of the parameters in braces of a path; undefined for a path without any. */
export function paramsOf(path: string): z.ZodType | undefined {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as keyof typeof PATH);
  if (names.length === 0) return undefined;
  return z.strictObject(Object.fromEntries(names.map((name) => [name, PATH[name]])));
}

// ---- pages

export const page = {
  limit: z
    .string()
    .regex(/^(?:[1-9]\d?|100)$/, "Give a whole number from 1 to 100.")
    .meta({ type: "integer", minimum: 1, maximum: 100 })
    .transform(Number)
    .optional()
    .describe("Most entries of the page, 1 to 100; default 50."),
  cursor: z
    .string()
    .min(1)
    .max(1024)
    .optional()
    .describe("`pagination.nextCursor` of the previous page, with the same filters."),
};

export const orderedPage = {
  order: z
    .enum(["asc", "desc"])
    .optional()
    .describe("The order is that of age: `desc` has the newest first."),
  ...page,
};

export const pagination = z.strictObject({
  nextCursor: z.string().nullable(),
  hasMore: z.boolean(),
  limit: z.number().int(),
});

export function pageOf<S extends z.ZodType>(schema: S) {
  return z.strictObject({ data: z.array(schema), pagination });
}
