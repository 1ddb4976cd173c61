import type { IncomingHttpHeaders } from "node:http";
import { decodeJwt } from "jose";
import { MintmarkError } from "../../core/index.ts";
import type { Shard, Shards } from "./shard.ts";

const KEY = /^mm_(?:test|live)_([0-9a-f]{16})_/;
const TAG_DIGITS = 4;

/**
 * The shard that must decide about these credentials. Nothing is checked here: a forged key or token leads to a shard that refuses it.
 * Throws `credentials_missing` without any, `credentials_invalid` when they lead nowhere or to two shards.
 */
export function shardOf(headers: IncomingHttpHeaders, shards: Shards): Shard {
  const key = headers["x-api-key"];
  const { authorization } = headers;
  if (key === undefined && authorization === undefined) throw new MintmarkError("credentials_missing");
  const byKey = key === undefined ? null : shardOfKeyId(KEY.exec(String(key))?.[1], shards);
  const byToken = authorization === undefined ? null : shardOfKeyId(clientOf(authorization), shards);
  if (byKey !== null && byToken !== null && byKey !== byToken) {
    throw new MintmarkError("credentials_invalid", "X-Api-Key and Authorization name different applications.");
  }
  return (byKey ?? byToken) as Shard;
}

/** Throws `credentials_invalid` when no shard issued such a key. */
export function shardOfKeyId(keyId: string | undefined, shards: Shards): Shard {
  const shard = shards.get(keyId?.slice(0, TAG_DIGITS) ?? "");
  if (shard === undefined) throw new MintmarkError("credentials_invalid");
  return shard;
}

/** The key id that a bearer token or HTTP Basic credentials claim. */
function clientOf(authorization: string): string | undefined {
  const [, scheme = "", credentials = ""] = /^(Bearer|Basic) +(\S+)$/i.exec(authorization) ?? [];
  if (scheme.toLowerCase() === "basic") return Buffer.from(credentials, "base64").toString("latin1").split(":", 1)[0];
  try {
    const { client_id: clientId } = decodeJwt(credentials);
    return typeof clientId === "string" ? clientId : undefined;
  } catch {
    return undefined;
  }
}
