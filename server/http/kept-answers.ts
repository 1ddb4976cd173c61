import { createHash } from "node:crypto";
import type { FastifyReply, FastifyRequest } from "fastify";
import { type Engine, type Hash, MintmarkError, type Principal } from "../../core/index.ts";

/**
 * Most characters of all kept answers. Above it, the application that keeps the most loses its
 * oldest.
 */
const MOST_CHARACTERS = 64 * 1024 * 1024;
/** A kept answer counts as so many characters besides its own. */
const ANSWER_CHARACTERS = 4 * 1024;
const KEEP_MS = 24 * 3_600_000;

interface Kept {
  readonly digest: string;
  readonly at: number;
  /** null while the first request is in progress. */
  answer: {
    readonly status: number;
    readonly location: string | undefined;
    readonly text: string;
  } | null;
}

/** Where the digests of requests outlast a restart. */
type KeptRequests = Pick<Engine["operator"], "requireSameRequest" | "keepRequest">;

interface KeptOfTenant {
  readonly byKey: Map<string, Kept>;
  characters: number;
}

/**
 * Repeats the first answer, status and body, to a POST with the same Idempotency-Key. Answers stay
 * in memory for a day, and digests of their requests in the store. Refusals are not kept. Nobody
 * else's requests push an answer out. Mints keep their keys in the store instead.
 */
export class KeptAnswers {
  readonly #store: KeptRequests;
  readonly #tenants = new Map<string, KeptOfTenant>();
  #characters = 0;

  constructor(store: KeptRequests) {
    this.#store = store;
  }

  /** Number of applications with answers, kept or under way. */
  get applications(): number {
    return this.#tenants.size;
  }

  /**
   * Throws `idempotency_key_reused` for another request of the key, `idempotency_in_progress` while
   * the first runs.
   */
  async once(
    request: FastifyRequest,
    reply: FastifyReply,
    principal: Principal,
    key: string,
    run: () => unknown,
  ): Promise<string> {
    const tenant = this.#tenantOf(principal.applicationId);
    const { applicationId } = principal;
    const text = `${request.url} ${JSON.stringify(request.body)}`;
    const digest: Hash = `0x${createHash("sha256").update(text).digest("hex")}`;
    const keyed = { applicationId, callersKey: key, digest };
    const known = tenant.byKey.get(key);
    reply.type("application/json; charset=utf-8");
    if (known !== undefined) {
      if (known.digest !== digest) throw new MintmarkError("idempotency_key_reused");
      if (known.answer === null) throw new MintmarkError("idempotency_in_progress");
      const { status, location, text } = known.answer;
      reply.code(status).header("idempotency-replayed", "true");
      if (location !== undefined) reply.header("location", location);
      return text;
    }
    const fresh: Kept = { digest, at: performance.now(), answer: null };
    tenant.byKey.set(key, fresh);
    try {
      await this.#store.requireSameRequest(keyed);
      const text = JSON.stringify(await run());
      await this.#store.keepRequest(keyed);
      const location = reply.getHeader("location");
      fresh.answer = {
        status: reply.statusCode,
        location: location === undefined ? location : `${location}`,
        text,
      };
      this.#count(tenant, fresh, 1);
      while (this.#characters > MOST_CHARACTERS) this.#deleteOldest();
      return text;
    } catch (error) {
      this.#remove(applicationId, tenant, key);
      throw error;
    }
  }

  /** The kept answers of an application, without those that are too old. */
  #tenantOf(applicationId: string): KeptOfTenant {
    const tenant = this.#tenants.get(applicationId) ?? { byKey: new Map(), characters: 0 };
    const expired = performance.now() - KEEP_MS;
    for (const [key, kept] of tenant.byKey) {
      if (kept.at > expired) break;
      if (kept.answer !== null) this.#delete(applicationId, tenant, key, kept);
    }
    this.#tenants.set(applicationId, tenant);
    return tenant;
  }

  /** One pass over the applications that have answers now: at most one for each 4 KiB of all. */
  #deleteOldest(): void {
    let [id, most]: [string, KeptOfTenant | undefined] = ["", undefined];
    for (const [each, tenant] of this.#tenants)
      if (tenant.characters > (most?.characters ?? 0)) [id, most] = [each, tenant];
    for (const [key, kept] of most?.byKey ?? []) {
      if (most === undefined || kept.answer === null) continue;
      this.#delete(id, most, key, kept);
      return;
    }
  }

  #delete(applicationId: string, tenant: KeptOfTenant, key: string, kept: Kept): void {
    this.#remove(applicationId, tenant, key);
    this.#count(tenant, kept, -1);
  }

  #remove(applicationId: string, tenant: KeptOfTenant, key: string): void {
    tenant.byKey.delete(key);
    // An application whose keys are forgotten costs the others nothing.
    if (tenant.byKey.size === 0 && this.#tenants.get(applicationId) === tenant)
      this.#tenants.delete(applicationId);
  }

  #count(tenant: KeptOfTenant, { answer }: Kept, sign: 1 | -1): void {
    const characters = sign * (ANSWER_CHARACTERS + (answer?.text.length ?? 0));
    tenant.characters += characters;
    this.#characters += characters;
  }
}
