import type { FastifyReply } from "fastify";
import { z } from "zod";
import { countMints, type FieldForm, MINT_FORM, USER_FORM } from "../../core/internal.ts";
import type { Code } from "../http/errors.ts";
import { idempotencyKeyOf } from "../http/idempotency-key.ts";
import { type Call, type Endpoint, endpoint, json } from "./api/endpoint.ts";
import * as s from "./api/fields.ts";
import { metadataJson } from "./metadata.ts";
import { mintAnswer, mintReply } from "./mint-answer.ts";

/** The schema of a field, from the form by which the core reads it. */
function schemaOf({ text, least, kind, fault, about }: FieldForm): z.ZodType {
  const texts = text === undefined ? [] : [z.string().regex(text, said(fault))];
  const numbers = least === undefined ? [] : [z.int().min(least)];
  const schema = kind === undefined ? oneOf([...numbers, ...texts], said(fault)) : KINDS[kind];
  return about === undefined ? schema.optional() : schema.optional().meta({ description: about });
}

const KINDS: Readonly<Record<NonNullable<FieldForm["kind"]>, z.ZodType>> = {
  uuid: z.guid(),
  reference: s.reference,
  metadata: metadataJson,
  mode: s.mode,
};

function oneOf(schemas: readonly z.ZodType[], fault: string): z.ZodType {
  const [only] = schemas;
  return only !== undefined && schemas.length === 1 ? only : z.union(schemas, fault);
}

function said(fault: string): string {
  return `${fault.charAt(0).toUpperCase()}${fault.slice(1)}.`;
}

function schemasOf<F extends Readonly<Record<string, FieldForm>>>(
  form: F,
): { readonly [K in keyof F]: z.ZodType } {
  const schemas = Object.entries(form).map(([name, field]) => [name, schemaOf(field)] as const);
  return Object.fromEntries(schemas) as { [K in keyof F]: z.ZodType };
}

export const mintEntry = s.requestComponent("MintEntry", {
  ...schemasOf(MINT_FORM),
  assetId: z.guid(),
});

const mintUser = schemasOf(USER_FORM);

/**
 * The body of a mint, for the documentation. The core itself reads it, and reports every bad entry
 * at once.
 */
export const mintBody = s.requestComponent("MintRequest", {
  users: z.array(z.strictObject({ ...mintUser, mints: z.array(mintEntry).min(1) })).min(1),
});

const mintQuery = z.strictObject({
  dryRun: s.flag.optional().describe("`true` checks everything and mints nothing."),
});

const dryRunReply = s.responseComponent("DryRunReply", {
  dryRun: z.literal(true),
  users: z.int().describe("Users in the request."),
  mints: z.int().describe("Entries that would have been minted."),
});

/** RFC 9745: the alias was deprecated from the start, 2026-01-01. */
const ALIAS_DEPRECATED_SINCE = "@1767225600";

export const mintErrors = [
  "history_diverged",
  "l1_not_compared",
  "backpressure",
  "scope_missing",
  "user_not_found",
  "asset_not_found",
  "token_already_minted",
  "token_id_conflict",
  "asset_not_enabled",
  "asset_not_whitelisted",
  "asset_not_registered",
  "amount_out_of_range",
  "erc721_amount_not_one",
  "minting_blob_invalid",
  "duplicate_mint",
  "duplicate_user",
  "batch_too_large",
  "standard_not_available",
  "rollup_not_available",
  "supply_cap_exceeded",
  "quota_exceeded",
  "places_exhausted",
  "mint_unwithdrawable",
  "metadata_frozen",
  "asset_shared",
] as const satisfies readonly Code[];

const definition = {
  query: mintQuery,
  coreBody: mintBody,
  cost: countMints,
  keysInStore: true,
  example: {
    users: [
      {
        userId: "6f1d3c1e-4f0a-4b7e-9a51-0c5d6f2b7a10",
        mints: [
          {
            assetId: "0b9c5a52-6a39-4a0a-8c56-5f1f2f6f1a20",
            amountDecimal: "12.5",
            dataAvailabilityMode: "validium",
          },
          {
            tokenId: "1001",
            assetId: "0b9c5a52-6a39-4a0a-8c56-5f1f2f6f1a21",
            amount: 1,
            dataAvailabilityMode: "zk-rollup",
          },
        ],
      },
    ],
  },
  success: {
    status: 200,
    description: "The mint, durable; with `dryRun`, the result of the check.",
    schemas: [mintReply, dryRunReply],
  },
  errors: mintErrors,
} as const satisfies Partial<Endpoint>;

type MintCall = Call<"mint", unknown, z.output<typeof mintQuery>, unknown>;

async function mint({
  service: { engine, buffers, turns },
  principal,
  query,
  body,
  request,
  reply,
}: MintCall) {
  const count = countMints(body);
  const turn = () => turns.turn(principal.applicationId);
  // The body was just parsed, which took a turn's time.
  if (count >= LONG) await turn();
  if (query.dryRun)
    return { dryRun: true as const, ...(await engine.mints.check(principal, body)) };
  const idempotencyKey = idempotencyKeyOf(request);
  const minted = engine.mint(
    principal,
    body,
    idempotencyKey === undefined ? {} : { idempotencyKey },
  );
  // Drops the parsed body, which would otherwise live until the response is sent.
  request.body = undefined;
  const result = await minted;
  if (result.replayed) reply.header("idempotency-replayed", "true");
  if (count >= MANY) await turn();
  return send(reply, await mintAnswer(result, buffers, turn));
}

function send(
  reply: FastifyReply,
  { body, sent }: Awaited<ReturnType<typeof mintAnswer>>,
): string | Buffer {
  reply.type("application/json; charset=utf-8");
  // Node emits this when the kernel has the last byte. After a broken response, the garbage
  // collector frees the buffer.
  if (sent !== null) reply.raw.once("finish", sent);
  return body;
}

/** Entries whose answer takes a turn of its own. */
const MANY = 16;
/** Entries whose check takes a turn of its own: some ten milliseconds. */
const LONG = 2_000;

/**
 * Memory for an entry of a stored mint while its response is made: as objects, in pieces and as a
 * whole.
 */
const MINT_BYTES = 2 * 1024;

export const mintEndpoints: readonly Endpoint[] = [
  endpoint("Mint", "mint", "POST /api/v1/mint", "mint", {
    ...definition,
    summary: "Mint for many users at once, all or nothing",
    handle: mint,
  }),
  endpoint("Mint", "mint", "POST /api/mint", "mintByAlias", {
    ...definition,
    summary: "Alias of /api/v1/mint",
    deprecated: true,
    handle(call: MintCall) {
      call.reply.header("deprecation", ALIAS_DEPRECATED_SINCE);
      call.reply.header("link", '</api/v1/mint>; rel="successor-version"');
      return mint(call);
    },
  }),
  endpoint("Mint", "read", "GET /api/v1/mints/{mintId}", "getMint", {
    oneByOne: true,
    summary: "The result of a mint, with its vaults as they are now",
    success: json(200, "The mint.", mintReply),
    async handle({ engine, service: { buffers, turns }, applicationId, params, request, reply }) {
      const turn = () => turns.turn(applicationId, reply.raw);
      request.account?.expect(engine.limits.mintsPerRequest * MINT_BYTES);
      await turn();
      return send(
        reply,
        await mintAnswer(await engine.mints.get(applicationId, params.mintId), buffers, turn),
      );
    },
  }),
];
