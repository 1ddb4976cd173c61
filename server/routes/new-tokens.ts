import type { z } from "zod";
import type { OwnToken } from "../../core/internal.ts";
import { invalid } from "../http/errors.ts";
import { newTokenBody, tokenCreation, tokenProgress } from "../schemas/new-tokens.ts";
import { type Endpoint, endpoint, json } from "./api/endpoint.ts";
import { applicationOf } from "./console.ts";
import { originOf } from "./owner.ts";

const PATH = "/console/v1/tokens";
/** ERC-20 tokens have 18 decimals, of which amounts here keep nine. */
const [UNIT, QUANTUM] = [10n ** 18n, 10n ** 9n];

export const newTokenEndpoints: readonly Endpoint[] = [
  endpoint("Console", "person", `POST ${PATH}`, "prepareToken", {
    right: "assets",
    summary: "The transaction by which an admin's wallet creates a token for the application",
    body: newTokenBody,
    example: {
      standard: "erc721",
      name: "Shields",
      symbol: "SHLD",
      admin: "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
    },
    success: json(200, "The transaction. Nothing changes until the wallet sends it.", tokenCreation),
    errors: ["new_tokens_off"],
    handle({ service, signedIn, body, request }) {
      const { newTokens, engine } = service;
      const { origin } = originOf(request, service);
      const template = body.standard === "erc1155" ? "{id}" : "";
      const uriOf = (assetId: string) => `${origin}/public/v1/metadata/${assetId}/${template}`;
      return newTokens.creation(engine, applicationOf(signedIn), tokenOf(body), uriOf);
    },
  }),
  endpoint("Console", "person", `PUT ${PATH}/{txHash}`, "addToken", {
    right: "assets",
    summary: "How far the token of a transaction is; adds its asset once the registration is final",
    success: json(200, "The progress, and the transactions that are missing.", tokenProgress),
    errors: ["new_tokens_off", "asset_exists", "l1_failed"],
    handle: async ({ engine, service: { newTokens }, signedIn, params: { txHash } }) =>
      newTokens.progress(engine, applicationOf(signedIn), txHash),
  }),
];

/** What the form asks for, in base units. */
function tokenOf({ cap, royalty, ...asked }: z.output<typeof newTokenBody>): OwnToken {
  const { standard } = asked;
  const misplaced = standard === "erc20" ? { uri: asked.uri, royalty } : { cap };
  for (const [name, value] of Object.entries(misplaced)) {
    if (value === undefined) continue;
    const detail = `An ${standard} has no ${name}.`;
    throw invalid(`/${name}`, detail, detail);
  }
  return {
    ...asked,
    ...(standard === "erc20" && { quantum: QUANTUM }),
    ...(cap !== undefined && { cap: decimalOf(cap, UNIT) }),
    ...(royalty && { royalty: { receiver: royalty.receiver, fraction: decimalOf(royalty.percent, 100n) } }),
  };
}

/** A decimal text times a power of ten that makes it whole. */
function decimalOf(text: string, unit: bigint): bigint {
  const [whole = "", part = ""] = text.split(".");
  return BigInt(whole) * unit + (BigInt(part || 0) * unit) / 10n ** BigInt(part.length);
}
