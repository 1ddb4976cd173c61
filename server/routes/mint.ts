import type { FastifyReply } from "fastify";
import { z } from "zod";
import type { MintResult } from "../../core/index.ts";
import { type Call, type Endpoint, endpoint } from "../http/endpoint.ts";
import { idempotencyKeyOf } from "../http/idempotency.ts";
import { uuid } from "../schemas/common.ts";
import { dryRunReply, mintBody, mintQuery, mintReply } from "../schemas/mint.ts";
import { MANY, mintAnswer } from "../wire/mint-answer.ts";
import { mintToWire } from "../wire/wire.ts";

/** RFC 9745: the alias was deprecated from the start, 2026-01-01. */
const ALIAS_DEPRECATED_SINCE = "@1767225600";

const definition = {
  method: "POST",
  tag: "Mint",
  access: "mint",
  query: mintQuery,
  coreBody: mintBody,
  cost: countMints,
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
    description: "Minted, durably; or, with `dryRun`, found mintable.",
    schemas: [mintReply, dryRunReply],
  },
  errors: [
    "history_diverged",
    "l1_not_compared",
    "backpressure",
    "user_not_found",
    "asset_not_found",
    "token_already_minted",
    "token_id_conflict",
    "asset_not_enabled",
    "asset_not_whitelisted",
    "asset_not_registered",
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
  ],
} as const satisfies Partial<Endpoint>;

type MintCall = Call<"mint", undefined, z.output<typeof mintQuery>, unknown>;

async function mint({ service: { engine, buffers, turns }, principal, query, body, request, reply }: MintCall) {
  if (query.dryRun) return { dryRun: true, ...(await engine.mints.check(principal, body)) };
  const idempotencyKey = idempotencyKeyOf(request);
  const result = await engine.mint(principal, body, idempotencyKey === undefined ? {} : { idempotencyKey });
  if (result.replayed) reply.header("idempotency-replayed", "true");
  reply.type("application/json; charset=utf-8");
  if (countMints(body) >= MANY) await turns.turn(principal.keyId);
  const { body: answer, sent } = await mintAnswer(result, buffers);
  // Node says so when the kernel has the last byte; an answer that breaks off leaves its room to the garbage collector.
  if (sent !== null) reply.raw.once("finish", sent);
  return answer;
}

/** Entries of a stored mint that are made into text in one turn: a few milliseconds. */
const ENTRIES_AT_ONCE = 500;

/** `JSON.stringify(await mintToWire(result))`, made in pieces: a mint of 10,000 entries takes some 90 ms. */
export async function mintText(result: MintResult, turn: () => Promise<void>): Promise<string> {
  const { mintId, vaults, transactions } = result;
  const texts = { vaults: [] as string[], transactions: [] as string[] };
  for (let at = 0; at < transactions.length; at += ENTRIES_AT_ONCE) {
    if (at > 0) await turn();
    const end = at + ENTRIES_AT_ONCE;
    const part = {
      vaults: vaults.slice(at, end),
      transactions: transactions.slice(at, end),
      receipt: async () => null,
    };
    const wire = await mintToWire({ ...result, ...part });
    for (const list of ["vaults", "transactions"] as const) {
      if (wire[list].length > 0) texts[list].push(JSON.stringify(wire[list]).slice(1, -1));
    }
  }
  const { receipt } = await mintToWire({ ...result, vaults: [], transactions: [] });
  return `{"mintId":"${mintId}","vaults":[${texts.vaults}],"transactions":[${texts.transactions}],"receipt":${JSON.stringify(receipt)}}`;
}

/** Entries that the body asks for, as far as it is well-formed; the core refuses the rest. */
function countMints(body: unknown): number {
  const users = (body as { users?: unknown } | null)?.users;
  if (!Array.isArray(users)) return 1;
  return users.reduce((sum: number, user: { mints?: unknown } | null) => {
    return Array.isArray(user?.mints) ? sum + user.mints.length : sum;
  }, 0);
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
    async handle({ service: { engine, turns }, principal, params, reply }) {
      const turn = () => turns.turn(principal.keyId);
      await turn();
      const text = await mintText(await engine.mints.get(principal.applicationId, params.mintId), turn);
      reply.type("application/json; charset=utf-8");
      return text;
    },
  }),
];
