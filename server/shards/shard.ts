import { z } from "zod";
import type { Address } from "../../core/index.ts";
import { contractTag } from "../../core/internal.ts";

/** One engine behind the shared address: it has a store and a settlement contract of its own. */
export interface Shard {
  /** Origin of the shard's own server, e.g. `http://10.0.0.7:3000`. */
  readonly url: string;
  readonly contract: Address;
}

/** By contract tag, the first digits of every key id that the shard issued. */
export type Shards = ReadonlyMap<string, Shard>;

const stateReply = z.object({ contract: z.string().regex(/^0x[0-9a-f]{40}$/) });

/**
 * Asks each server for the contract it serves. Rejects when one does not answer, or when two cannot be told apart by their keys.
 *
 * @param urls - origins of the shards' servers
 */
export async function findShards(urls: readonly string[], signal?: AbortSignal): Promise<Shards> {
  const shards = new Map<string, Shard>();
  for (const url of urls) {
    const contract = await contractOf(url, signal);
    const tag = contractTag(contract);
    const other = shards.get(tag);
    if (other !== undefined) {
      throw new Error(
        `${url} and ${other.url} cannot be told apart: their keys start with the same ${tag}. Deploy one of the two contracts anew.`,
      );
    }
    shards.set(tag, { url, contract });
  }
  return shards;
}

async function contractOf(url: string, signal: AbortSignal = AbortSignal.timeout(10_000)): Promise<Address> {
  try {
    const reply = await fetch(new URL("/public/v1/state", url), { signal });
    return stateReply.parse(await reply.json()).contract as Address;
  } catch (cause) {
    throw new Error(`${url} does not answer as a Mintmark server: start the shard first, and check the address.`, {
      cause,
    });
  }
}
