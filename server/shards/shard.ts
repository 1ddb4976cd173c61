import { z } from "zod";
import type { Address } from "../../core/index.ts";
import { contractTag, pause } from "../../core/internal.ts";

/** Milliseconds between two checks of a server that did not respond. */
const LOOK_MS = 500;
/** Milliseconds that a server has for one answer at the router's start, and for its own start. */
const ANSWER_MS = 10_000;
const START_MS = 60_000;

/**
 * One engine behind the shared address: it has its own settlement contract, and one server or a cluster.
 *
 * @example
 * for (const { contract, url } of (await findShards(urls)).values()) console.log(contract, url);
 */
export class Shard {
  /** Origins of the shard's servers, such as `http://10.0.0.7:3000`. Each server of a cluster accepts every request. */
  readonly urls: readonly string[];
  readonly contract: Address;
  readonly #silent = new Set<string>();

  constructor(contract: Address, urls: readonly string[]) {
    this.contract = contract;
    this.urls = urls;
  }

  /** A server that probably responds; the first one when none does. */
  get url(): string {
    return this.urls.find((url) => !this.#silent.has(url)) ?? (this.urls[0] as string);
  }

  /** Skips a server until it responds again. */
  failed(url: string): void {
    if (this.urls.length === 1 || this.#silent.has(url)) return;
    this.#silent.add(url);
    const look = setInterval(async () => {
      const reply = await fetch(new URL("/healthz", url), { signal: AbortSignal.timeout(LOOK_MS) }).catch(() => null);
      await reply?.body?.cancel();
      if (reply?.ok !== true) return;
      this.#silent.delete(url);
      clearInterval(look);
    }, LOOK_MS).unref();
  }
}

/** By contract tag, the first digits of all the shard's key ids. */
export type Shards = ReadonlyMap<string, Shard>;

const stateReply = z.object({ contract: z.string().regex(/^0x[0-9a-f]{40}$/) });

/**
 * Asks each server for its contract; servers of one contract are a cluster. Waits up to a minute for a server that
 * starts. Rejects when a server does not respond, or when two contracts have the same tag.
 *
 * @param urls - origins of the shards' servers
 *
 * @example
 * const app = await buildRouter({ shards: await findShards(["http://10.0.0.7:3000", "http://10.0.0.8:3000"]) });
 */
export async function findShards(urls: readonly string[], signal?: AbortSignal): Promise<Shards> {
  const shards = new Map<string, Shard>();
  for (const url of urls) {
    const { contract, isClustered } = await askServer(url, signal);
    const tag = contractTag(contract);
    const other = shards.get(tag);
    if (other !== undefined && (other.contract !== contract || !isClustered)) {
      const detail = `${url} and ${other.urls[0]} cannot be told apart: their keys start with the same ${tag}.`;
      const advice =
        other.contract === contract ? "Make them one cluster (MINTMARK_JOURNAL)" : "Deploy one contract anew";
      throw new Error(`${detail} ${advice}.`);
    }
    shards.set(tag, new Shard(contract, [...(other?.urls ?? []), url]));
  }
  return shards;
}

/** A server's contract, and whether the server is in a cluster. A server that starts answers 503: this waits for it. */
async function askServer(url: string, signal?: AbortSignal) {
  const started = AbortSignal.any([AbortSignal.timeout(START_MS), ...(signal === undefined ? [] : [signal])]);
  for (;;) {
    try {
      const asked = AbortSignal.any([started, AbortSignal.timeout(ANSWER_MS)]);
      const reply = await fetch(new URL("/public/v1/state", url), { signal: asked });
      if (reply.status === 503) {
        await reply.body?.cancel();
        await pause(LOOK_MS, started);
        continue;
      }
      const { contract } = stateReply.parse(await reply.json());
      return { contract: contract as Address, isClustered: reply.headers.has("mintmark-position") };
    } catch (cause) {
      throw new Error(`${url} does not answer as a Mintmark server: start the shard first, and check the address.`, {
        cause,
      });
    }
  }
}
