import type { FastifyReply } from "fastify";
import { z } from "zod";
import { MintmarkError } from "../../core/index.ts";
import { type Endpoint, endpoint, type PrivateCall } from "../endpoint.ts";
import { mintAnswer } from "../mint-answer.ts";
import { uuid } from "../schemas/common.ts";
import { dryRunReply, mintBody, mintQuery, mintReply } from "../schemas/mint.ts";
import { mintToWire } from "../wire.ts";

/** Longest Idempotency-Key, in characters. */
export const MAX_IDEMPOTENCY_KEY = 255;

/** RFC 9745: the alias was deprecated from the start, 2026-01-01. */
const ALIAS_DEPRECATED_SINCE = "@1767225600";

const definition = {
  method: "POST",
  tag: "Mint",
  access: "mint",
  query: mintQuery,
  coreBody: mintBody,
  cost: countMints,
  headers: {
    "Idempotency-Key":
      "At most 255 printable ASCII characters. The first answer is kept with the mint and given again to the same request.",
  },
  example: {
    users: [
      {
        userId: "6f1d3c1e-4f0a-4b7e-9a51-0c5d6f2b7a10",
        mints: [
          {
            mintingBlob: "",
            assetId: "0b9c5a52-6a39-4a0a-8c56-5f1f2f6f1a20",
            amount: "9007199254740993",
            dataAvailabilityMode: "validium",
          },
          {
            mintingBlob: "0x31303031",
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
    description: "Minted, durably; or, with `dryRun`, found mintable.",
    schemas: [mintReply, dryRunReply],
    headers: { "Idempotency-Replayed": "`true` when an earlier request of the same key gave this answer." },
  },
  errors: [
    "user_not_found",
    "asset_not_found",
    "token_already_minted",
    "token_id_conflict",
    "asset_not_enabled",
    "asset_not_whitelisted",
    "asset_not_registered",
    "idempotency_in_progress",
    "amount_out_of_range",
    "erc721_amount_not_one",
    "blob_invalid",
    "duplicate_mint",
    "duplicate_user",
    "batch_too_large",
    "standard_not_available",
    "supply_cap_exceeded",
    "quota_exceeded",
    "mint_unwithdrawable",
    "idempotency_key_reused",
  ],
} as const satisfies Partial<Endpoint>;

type MintCall = PrivateCall<undefined, z.output<typeof mintQuery>, unknown>;

async function mint({ service: { engine, rooms }, principal, query, body, request, reply }: MintCall) {
  if (query.dryRun) return { dryRun: true, ...(await engine.checkMint(principal, body)) };
  const result = await engine.mint(principal, body, idempotency(request.headers["idempotency-key"]));
  if (result.replayed) reply.header("idempotency-replayed", "true");
  reply.type("application/json; charset=utf-8");
  const { body: answer, sent } = await mintAnswer(result, rooms);
  // Node says so when the kernel has the last byte; an answer that breaks off leaves its room to the garbage collector.
  if (sent !== null) reply.raw.once("finish", sent);
  return answer;
}

/** Entries that the body asks for, as far as it is well-formed; the core refuses the rest. */
function countMints(body: unknown): number {
  const users = (body as { users?: unknown } | null)?.users;
  if (!Array.isArray(users)) return 1;
  return users.reduce((sum: number, user: { mints?: unknown } | null) => {
    return Array.isArray(user?.mints) ? sum + user.mints.length : sum;
  }, 0);
}

function idempotency(key: string | string[] | undefined): { idempotencyKey?: string } {
  if (key === undefined) return {};
  if (typeof key === "string" && key.length <= MAX_IDEMPOTENCY_KEY && /^[\x20-\x7e]+$/.test(key)) {
    return { idempotencyKey: key };
  }
  const detail = `Give 1 to ${MAX_IDEMPOTENCY_KEY} printable ASCII characters.`;
  const issue = { pointer: "/headers/idempotency-key", code: "validation_failed", detail } as const;
  throw new MintmarkError("validation_failed", undefined, { issues: [issue] });
}

function deprecate(reply: FastifyReply): void {
  reply.header("deprecation", ALIAS_DEPRECATED_SINCE);
  reply.header("link", '</api/v1/mint>; rel="successor-version"');
}

export const mintEndpoints: readonly Endpoint[] = [
  endpoint({
    ...definition,
    path: "/api/v1/mint",
    summary: "Mint for many users at once, all or nothing",
    handle: mint,
  }),
  endpoint({
    ...definition,
    path: "/api/mint",
    summary: "Alias of /api/v1/mint",
    deprecated: true,
    handle(call: MintCall) {
      deprecate(call.reply);
      return mint(call);
    },
  }),
  endpoint({
    method: "GET",
    path: "/api/v1/mints/{mintId}",
    tag: "Mint",
    access: "read",
    summary: "What a mint answered, with the vaults as they are now",
    params: z.strictObject({ mintId: uuid }),
    success: { status: 200, description: "The mint.", schemas: [mintReply] },
    errors: ["mint_not_found"],
    async handle({ service: { engine }, principal, params }) {
      return mintToWire(await engine.mintResult(principal.applicationId, params.mintId));
    },
  }),
];
