import { pause, repeat } from "../backoff.ts";
import type { LeftOut } from "../batches/void-slots.ts";
import { messageOf } from "../errors.ts";
import type { IssuerClient, IssuerConsent } from "../issuer/index.ts";
import { type Address, batchIdOf, type Hash, MODES, type Mode } from "../model.ts";
import type { SettlementPort } from "../operator.ts";
import type { Consent, ConsentAsset, IssuerReader, L1Reader, SealedBatch } from "../ports.ts";
import { manifestHash } from "../protocol/blob-batch.ts";
import { countOf } from "../protocol/commitment.ts";
import { assetsHash, consentDigest } from "../protocol/consent.ts";
import { ecdsaForm } from "../protocol/signature.ts";

/** An issuer's answer about a batch that L1 lacks. */
export interface ConsentStanding {
  readonly issuer: Address;
  readonly batchId: string;
  readonly assets: readonly ConsentAsset[];
  /** `refused` also when only some of the assets have a consent. */
  readonly state: "asked" | "given" | "refused";
  /** Why there is no consent yet. */
  readonly failure: string | null;
}

/** Some of the options of the settler, which explains them. */
interface ConsentsOptions {
  readonly engine: SettlementPort;
  readonly l1: Pick<L1Reader, "settlement"> & IssuerReader;
  readonly issuers?: readonly IssuerClient[];
  readonly consentMs?: number;
  readonly onIssuerRefusal?: (issuer: Address, batchId: string, error: unknown) => void;
}

const WAIT_MS = 30_000;
/** Least wait for a consent that a new content or epoch requires late. */
const LATE_MS = 5_000;
/**
 * Wait for an issuer that let an earlier batch's wait end without an answer, until it consents
 * again.
 */
const TARDY_MS = 1_000;
/** Time limit of a client's single request: enough for a large batch on a slow line. */
const QUESTION_MS = 60_000;
/** An issuer takes no batch further ahead of L1 than this. */
const MAX_AHEAD = 16;
/** Most characters of a reason that an application reads. */
const MAX_FAILURE = 1_000;
const BACKOFF = { firstMs: 500, maxMs: 10_000 };

interface Waiting {
  readonly mode: Mode;
  readonly batchNumber: number;
  /** The content whose issuers were last looked up. */
  readonly content: Hash;
  /** End of the wait by `performance.now()`, in ms; null while nobody was asked. */
  readonly end: number | null;
}

interface Asking {
  standing: ConsentStanding;
  /** The newest consent; null before the first one. It may lack assets. */
  given: Consent | null;
  /** Reasons for assets that it lacks, by asset type. */
  reasons: ReadonlyMap<Hash, string>;
  /** Ends with the first consent, or when nobody asks any more. */
  readonly done: Promise<void>;
  /** Why the issuer is not asked; null when it is. */
  readonly fault: string | null;
  readonly stop: AbortController;
}

/**
 * Asks the issuers of the sealed batches' assets for their consents: all batches and issuers at
 * once, each again and again until L1 has the batch. So a silent issuer delays a batch by the wait
 * at most, and the waits of batches overlap.
 */
export class Consents {
  readonly #options: ConsentsOptions;
  readonly #clients: ReadonlyMap<Address, IssuerClient>;
  /**
   * Keyed by the digest of a consent to all assets, which covers batch, content, assets and epochs.
   */
  readonly #asked = new Map<Hash, Asking>();
  /** Batches whose issuers were looked up, by batch id. */
  readonly #batches = new Map<string, Waiting>();
  /** Issuers that a batch waited for without an answer. Later batches wait for them less. */
  readonly #tardy = new Set<Address>();

  constructor(options: ConsentsOptions) {
    this.#options = options;
    const { issuers = [] } = options;
    this.#clients = new Map(
      issuers.map((client) => [client.address.toLowerCase() as Address, client]),
    );
  }

  /**
   * Starts asking for every sealed batch that L1 lacks, without waiting for an issuer. Returns
   * their number.
   */
  async gather(signal?: AbortSignal): Promise<number> {
    const { engine } = this.#options;
    const committed = await engine.batches.committedState();
    this.#forget(({ mode, batchNumber }) => batchNumber < countOf(mode, committed));
    let begun = 0;
    for (const mode of MODES) {
      const first = countOf(mode, committed);
      const end = Math.min(countOf(mode, engine.batches.state()), first + MAX_AHEAD);
      for (let batchNumber = first; batchNumber < end; batchNumber++) {
        signal?.throwIfAborted();
        const { content } = await engine.batches.get(mode, batchNumber);
        if (this.#batches.get(batchIdOf(mode, batchNumber))?.content === content) continue;
        await this.#ask(await engine.batches.getSealed(mode, batchNumber));
        begun++;
      }
    }
    return begun;
  }

  /**
   * The consents to a batch in ascending order of issuers, and the assets without one: as soon as
   * all issuers in force have consented, or when the batch's wait ends. Nobody waits for an asset
   * that an issuer left out of its consent: anyone can register a token that names it.
   */
  async of(
    batch: SealedBatch,
    signal?: AbortSignal,
  ): Promise<{ consents: Consent[]; leftOut: LeftOut[] }> {
    const asked = await this.#ask(batch);
    const end = this.#batches.get(batchIdOf(batch.mode, batch.batchNumber))?.end ?? 0;
    const over = new AbortController();
    const limit = signal ? AbortSignal.any([signal, over.signal]) : over.signal;
    const late = pause(Math.max(0, end - performance.now()), limit).catch(() => {});
    await Promise.race([Promise.all(asked.map(({ done }) => done)), late]);
    over.abort();
    signal?.throwIfAborted();
    const consents = asked
      .flatMap(({ given }) => given ?? [])
      .sort((a, b) => (a.issuer < b.issuer ? -1 : 1));
    const leftOut = asked.flatMap(({ given, standing, reasons, fault }) => {
      if (given === null && fault === null) this.#tardy.add(standing.issuer);
      const without = standing.assets.filter((asset) => !given?.assets.includes(asset));
      return without.map((asset) => ({
        ...asset,
        failure: failureOf(standing, reasons.get(asset.assetType)),
      }));
    });
    return { consents, leftOut };
  }

  /** The issuers' answers about batches that L1 lacks. */
  standings(): readonly ConsentStanding[] {
    return [...this.#asked.values()].map(({ standing }) => standing);
  }

  stop(): void {
    this.#forget(() => true);
  }

  /** Returns all asked issuers; asks those that were not asked for this content yet. */
  async #ask(batch: SealedBatch): Promise<readonly Asking[]> {
    const { l1 } = this.#options;
    const { mode, batchNumber, content, assets } = batch;
    const batchId = batchIdOf(mode, batchNumber);
    const here = assets.filter(({ chainId }) => chainId === l1.settlement.chainId);
    const issuers = here.length === 0 ? [] : await l1.issuers(here);
    const named = here.flatMap((asset, i) => {
      const found = issuers[i] ?? null;
      if (found === null) return [];
      const { issuer, epoch, suspended } = found;
      return {
        issuer: issuer.toLowerCase() as Address,
        suspended,
        asset: { ...asset, issuerEpoch: epoch },
      };
    });
    // A suspended token must not cost the issuer's other tokens their consent.
    const groups = Map.groupBy(named, ({ issuer, suspended }) => `${issuer} ${suspended}`);
    let end = this.#batches.get(batchId)?.end ?? null;
    const asked = [...groups.values()].map((group) => {
      const { issuer, suspended } = group[0] as (typeof named)[number];
      const own = group.map(({ asset }) => asset);
      const digest = consentDigest(l1.settlement, consentOf(batch, own));
      const known = this.#asked.get(digest);
      if (known !== undefined) return known;
      const { consentMs = WAIT_MS } = this.#options;
      const patience = this.#tardy.has(issuer) ? TARDY_MS : end === null ? consentMs : LATE_MS;
      end = Math.max(end ?? 0, performance.now() + Math.min(consentMs, patience));
      const asking = this.#begin(batch, issuer, own, suspended);
      this.#asked.set(digest, asking);
      return asking;
    });
    this.#batches.set(batchId, { mode, batchNumber, content, end });
    return asked;
  }

  #begin(
    batch: SealedBatch,
    issuer: Address,
    assets: readonly ConsentAsset[],
    suspended: boolean,
  ): Asking {
    const { onIssuerRefusal = () => {} } = this.#options;
    const batchId = batchIdOf(batch.mode, batch.batchNumber);
    const client = this.#clients.get(issuer);
    const unasked = client === undefined ? "no address of its service is configured" : null;
    const fault = suspended ? "the token's administrator has suspended it" : unasked;
    const stop = new AbortController();
    const { promise: done, resolve: consented } = Promise.withResolvers<void>();
    const standing: ConsentStanding = { issuer, batchId, assets, state: "asked", failure: null };
    const asking: Asking = { standing, given: null, reasons: new Map(), done, fault, stop };
    const refused = (error: unknown) => {
      const failure = messageOf(error);
      if (asking.standing.failure !== failure) onIssuerRefusal(issuer, batchId, error);
      asking.standing = { ...standing, state: "refused", failure };
    };
    if (client === undefined || fault !== null) {
      refused(fault);
      consented();
      return asking;
    }
    const ask = async (signal: AbortSignal): Promise<void> => {
      const answer = await client.consent(
        batch,
        AbortSignal.any([signal, AbortSignal.timeout(QUESTION_MS)]),
      );
      asking.given = await this.#checked(batch, issuer, assets, answer);
      this.#tardy.delete(issuer);
      consented();
      asking.reasons = new Map(answer.refused.map(({ assetType, reason }) => [assetType, reason]));
      if (asking.given.assets.length < assets.length)
        throw new Error(answer.refused[0]?.reason ?? "it consents to some of its assets only");
      asking.standing = { ...standing, state: "given" };
      stop.abort();
    };
    const onRound = (error: unknown) => (error === null ? undefined : refused(error));
    void repeat(ask, { intervalMs: 0, backoff: BACKOFF, onRound }, stop.signal).then(consented);
    return asking;
  }

  /** The consent in an issuer's answer. Throws unless L1 takes its signature. */
  async #checked(
    batch: SealedBatch,
    issuer: Address,
    named: readonly ConsentAsset[],
    { assets: types, signature }: IssuerConsent,
  ): Promise<Consent> {
    const { l1 } = this.#options;
    const assets = named.filter(({ assetType }) => types.includes(assetType));
    if (assets.length === 0) throw new Error("it consents to none of its assets");
    const hash = consentDigest(l1.settlement, consentOf(batch, assets));
    const form = await ecdsaForm(issuer, hash, signature);
    if (form === null && !(await l1.walletTakes(issuer, hash, signature)))
      throw new Error("the signature is not the issuer's");
    return { issuer, assets, signature: form ?? signature, byWallet: form === null };
  }

  #forget(isOver: (batch: Waiting) => boolean): void {
    for (const [batchId, batch] of this.#batches) if (isOver(batch)) this.#batches.delete(batchId);
    for (const [digest, { stop, standing }] of this.#asked) {
      if (this.#batches.has(standing.batchId)) continue;
      stop.abort();
      this.#asked.delete(digest);
    }
  }
}

/** The message of a consent to some assets of a batch. */
function consentOf(
  { mode, batchNumber, vaultCount, content, assets }: SealedBatch,
  own: readonly ConsentAsset[],
) {
  const manifest = manifestHash(assets);
  return { mode, batchNumber, vaultCount, content, manifest, assetsHash: assetsHash(own) };
}

function failureOf({ issuer, failure }: ConsentStanding, reason = failure): string {
  return `its issuer ${issuer} did not consent: ${reason ?? "no answer"}`.slice(0, MAX_FAILURE);
}
