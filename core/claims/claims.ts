import type { WaitOptions } from "../abort.ts";
import { argumentError, type Issue, MintmarkError } from "../errors.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { type List, listOf, type PageOptions, type PageStart } from "../ledger/list.ts";
import { type MintResult, replayedResult } from "../mint/mint-results.ts";
import type { Decision } from "../mint/mint-transition.ts";
import { checkMint, mint } from "../mint/mints.ts";
import type { Address, Asset, Hex, Principal, Uuid } from "../model.ts";
import { bytesToHex, hexToBytes } from "../protocol/hex.ts";
import { canonicalMintingBlob, tokenIdOf } from "../protocol/minting-blob.ts";
import { decimalAmount } from "../protocol/quantized.ts";
import { isSignedBy } from "../protocol/signature.ts";
import { claimDigest } from "../protocol/typed-data.ts";
import type { Group } from "../store/group.ts";
import { decodeRecord, emptyOf, encodeRecord, MAX_TIME } from "../store/layout.ts";
import {
  type ApplicationRecord,
  type ClaimRecord,
  claimNumber,
  claimRecord,
} from "../store/records.ts";
import { endOf, keyOf, prefixOf } from "../store/store-keys.ts";
import type { Transition } from "../store/writer.ts";
import { requireKey, requireScope } from "../tenants/api-keys.ts";
import { findAsset } from "../tenants/asset-view.ts";
import { refuse } from "../tenants/metadata.ts";
import { requireAddress } from "../validate.ts";

/** Most links of one call. */
export const MAX_NEW_CLAIMS = 1_000;
/** Most characters of a link's entry as JSON: the longest metadata, and all other fields. */
const MAX_MINT = 12_288;

const recordOf = (stored: Buffer | undefined): ClaimRecord | null =>
  stored === undefined ? null : decodeRecord(claimRecord, stored, "A claim link");

interface AskedClaim {
  readonly link: Address;
  readonly mint: string;
  readonly expiresAt: number | null;
}

async function createAll(
  context: EngineContext,
  principal: Principal,
  claims: readonly NewClaim[],
  signal?: AbortSignal,
): Promise<Claim[]> {
  const { ledger, writer } = context;
  requireScope(principal, "mint");
  // A link mints to an owner who may be new.
  requireScope(principal, "users");
  const asked = askedClaims(ledger, claims);
  const keys = asked.map(({ link }) => keyOf.claim(link));
  const stored = await ledger.store.getMany(keys);
  const unknown = [...asked.keys()].filter((i) => stored[i] === undefined);
  await checkEntries(context, principal, claims, unknown, signal);
  const records = await writer.run<ClaimRecord[]>(
    {
      weight: asked.length,
      keys: () => keys,
      apply(group, onDisk) {
        const { applicationIndex, keyIndex } = requireKey(ledger, group, principal);
        const known = keys.map((key, i) => recordOf(group.resolve(key, onDisk[i])));
        refuse(
          asked.flatMap(({ mint, expiresAt }, i): Issue[] => {
            const same = known[i];
            const isOther =
              !!same &&
              (same.applicationIndex !== applicationIndex ||
                same.mint !== mint ||
                same.expiresAt !== expiresAt);
            const detail = "a link of this address exists with other terms";
            return isOther
              ? [{ pointer: `/claims/${i}/linkAddress`, code: "claim_exists", detail }]
              : [];
          }),
        );
        const created = asked.filter((_, i) => known[i] === null);
        if (created.length === 0) return known as ClaimRecord[];
        const entry = {
          kind: "claimsCreated",
          applicationIndex,
          keyIndex,
          claims: created,
        } as const;
        const { sequence, time: createdAt } = ledger.journal.record(group, entry);
        let place = 0;
        return asked.map(({ link, mint, expiresAt }, i) => {
          const same = known[i];
          if (same) return same;
          const number = claimNumber(sequence, place++);
          const record: ClaimRecord = {
            ...emptyOf(claimRecord),
            applicationIndex,
            keyIndex,
            number,
            mint,
            expiresAt,
            createdAt,
          };
          putClaim(group, link, record);
          group.put(keyOf.applicationClaim(applicationIndex, number), hexToBytes(link));
          return record;
        });
      },
    },
    signal,
  );
  return records.map((record, i) => claimView(ledger, asked[i]!.link, record));
}

function askedClaims(ledger: Ledger, claims: readonly NewClaim[]): AskedClaim[] {
  if (!Array.isArray(claims) || claims.length === 0 || claims.length > MAX_NEW_CLAIMS)
    throw argumentError("claims", `must be a list of 1 to ${MAX_NEW_CLAIMS} links`);
  const now = ledger.journal.clock.now();
  const asked = claims.map(({ linkAddress, mint, expiresAt = null }): AskedClaim => {
    const text = jsonOf(mint);
    if (expiresAt !== null && (!Number.isInteger(expiresAt) || expiresAt > MAX_TIME))
      throw argumentError("expiresAt", "must be milliseconds since 1970, or null");
    return { link: requireAddress("linkAddress", linkAddress), mint: text, expiresAt };
  });
  if (new Set(asked.map(({ link }) => link)).size < asked.length)
    throw argumentError("claims", "must have a new key for each link; two have the same address");
  refuse(
    asked.flatMap(({ expiresAt }, i): Issue[] => {
      const isPast = expiresAt !== null && expiresAt <= now;
      return isPast
        ? [{ pointer: `/claims/${i}/expiresAt`, code: "claim_expired", detail: "has passed" }]
        : [];
    }),
  );
  return asked;
}

function jsonOf(mint: unknown): string {
  const rule = `must be an entry of a mint, at most ${MAX_MINT} characters as JSON`;
  try {
    const text: unknown = JSON.stringify(mint);
    if (typeof text === "string" && text.length <= MAX_MINT) return text;
  } catch (cause) {
    throw argumentError("mint", rule, cause);
  }
  throw argumentError("mint", rule);
}

/**
 * Runs every check of a mint on the entries of new links, as if one owner claimed all of them now.
 *
 * @param newIndexes - where the new links are in the claims
 */
async function checkEntries(
  context: EngineContext,
  principal: Principal,
  claims: readonly NewClaim[],
  newIndexes: readonly number[],
  signal?: AbortSignal,
): Promise<void> {
  const [first] = newIndexes;
  if (first === undefined) return;
  const mints = newIndexes.map((i) => claims[i]?.mint);
  try {
    await checkMint(
      context,
      principal,
      { users: [{ ownerAddress: claims[first]?.linkAddress, mints }] },
      signal,
    );
  } catch (error) {
    if (!(error instanceof MintmarkError) || error.issues.length === 0) throw error;
    const issues = error.issues.map((issue): Issue => {
      const [, entry, rest = ""] = /^\/users\/0\/mints\/(\d+)(.*)$/.exec(issue.pointer) ?? [];
      if (entry === undefined) return issue;
      return { ...issue, pointer: `/claims/${newIndexes[Number(entry)]}/mint${rest}` };
    });
    const { code, moreIssues } = error;
    throw new MintmarkError(code, `${issues[0]?.pointer}: ${issues[0]?.detail}`, {
      issues,
      moreIssues,
    });
  }
}

/**
 * A mint has one of these codes when the key that created a link is revoked or has expired, or its
 * application is suspended.
 */
const BY_KEY: ReadonlySet<string> = new Set([
  "credentials_invalid",
  "credentials_expired",
  "application_suspended",
]);

/**
 * The journal sequence of the mint that has taken a link; null while it is open. Throws for another
 * owner's.
 */
function earlierTaking(
  { status, ownerAddress, mintSequence, expiresAt }: ClaimRecord,
  owner: Address,
  now: number,
): number | null {
  if (status === "claimed" && ownerAddress === owner) return mintSequence;
  if (status === "claimed") throw new MintmarkError("claim_taken");
  if (status === "cancelled") throw new MintmarkError("claim_cancelled");
  if (expiresAt !== null && expiresAt <= now) throw new MintmarkError("claim_expired");
  return null;
}

/** The caller that a link mints for: the key that created it. */
function principalOf(ledger: Ledger, { applicationIndex, keyIndex }: ClaimRecord): Principal {
  const application = ledger.tenants.applications.durable.get(applicationIndex);
  const key = ledger.tenants.keys.durable.get(keyIndex);
  if (application === undefined || key === undefined) throw new MintmarkError("store_corrupt");
  return { applicationId: application.applicationId, keyId: key.keyId, scopes: key.scopes };
}

function putClaim(group: Group, link: Address, record: ClaimRecord): void {
  group.stage(keyOf.claim(link), encodeRecord(claimRecord, record));
}

/** A claim link, of this application if one is given. Throws `claim_not_found`. */
async function storedClaim(
  ledger: Ledger,
  link: Address,
  application?: ApplicationRecord,
): Promise<ClaimRecord> {
  return ownClaim(await ledger.store.get(keyOf.claim(link)), application);
}

function ownClaim(stored: Buffer | undefined, application?: ApplicationRecord): ClaimRecord {
  const claim = recordOf(stored);
  const isOthers =
    application !== undefined && claim?.applicationIndex !== application.applicationIndex;
  if (claim === null || isOthers) throw new MintmarkError("claim_not_found");
  return claim;
}

async function claimPage(ledger: Ledger, applicationIndex: number, { after, limit }: PageStart) {
  const prefix = prefixOf.applicationClaim(applicationIndex);
  const start =
    after === null ? { gte: prefix } : { gt: keyOf.applicationClaim(applicationIndex, after) };
  const links: Address[] = [];
  for await (const [, link] of ledger.store.entries({
    ...start,
    lt: endOf(prefix),
    limit: limit + 1,
  }))
    links.push(bytesToHex(link));
  const page = links.slice(0, limit);
  const stored = await ledger.store.getMany(page.map(keyOf.claim));
  const records = stored.map((found) => {
    const record = recordOf(found);
    if (record === null)
      throw new MintmarkError("store_corrupt", "A claim link that an index names is missing.");
    return record;
  });
  const data = records.map((record, i) => claimView(ledger, page[i] as Address, record));
  return { data, next: links.length > limit ? (records.at(-1)?.number ?? null) : null };
}

function claimView(ledger: Ledger, linkAddress: Address, record: ClaimRecord): Claim {
  const { mint, expiresAt, ownerAddress, signature, mintId, createdAt, decidedAt } = record;
  const hasExpired =
    record.status === "open" && expiresAt !== null && expiresAt <= ledger.journal.clock.now();
  const status = hasExpired ? "expired" : record.status;
  const entry = JSON.parse(mint) as Claim["mint"];
  return {
    linkAddress,
    status,
    mint: entry,
    expiresAt,
    ownerAddress,
    signature,
    mintId,
    createdAt,
    decidedAt,
  };
}

/** A link without what is its issuer's alone. */
function foundClaim(
  ledger: Ledger,
  { linkAddress, status, mint, expiresAt, ownerAddress }: Claim,
): FoundClaim {
  const { tokenId, amount = 1, amountDecimal, quantity = 1 } = mint;
  const asset = findAsset(ledger, String(mint.assetId), null);
  const { assetId, standard, name, symbol, mintingBlobScheme, nextTokenId } = asset;
  const mintingBlob = canonicalMintingBlob(String(mint.mintingBlob ?? ""));
  const named = tokenId === undefined ? null : BigInt(String(tokenId));
  return {
    ...{ linkAddress, status, expiresAt, ownerAddress, asset: { assetId, standard, name, symbol } },
    tokenId:
      named ?? (mintingBlob === "0x" ? null : tokenIdOf(standard, mintingBlobScheme, mintingBlob)),
    amount:
      standard === "erc721"
        ? null
        : String(amountDecimal ?? decimalAmount(BigInt(String(amount)), asset)),
    quantity: nextTokenId === null ? null : Number(quantity),
  };
}

export function claimsOf(context: EngineContext): Claims {
  const linkOf = (address: Address) => requireAddress("linkAddress", address);
  return {
    createAll: async (principal, claims, wait) =>
      createAll(context, principal, claims, wait?.signal),
    async get(applicationId, address) {
      const { ledger } = context;
      const link = linkOf(address);
      return claimView(
        ledger,
        link,
        await storedClaim(ledger, link, ledger.tenants.application(applicationId, null)),
      );
    },
    list: (applicationId, page = {}) =>
      listOf(context, "claims", applicationId, page, (start, ledger) =>
        claimPage(ledger, ledger.tenants.application(applicationId, null).applicationIndex, start),
      ),
    /** Shares a group's write with mints: whoever cancels much does not slow others down. */
    async cancel(applicationId, address, { signal } = {}) {
      const link = linkOf(address);
      const { ledger, writer } = context;
      const key = keyOf.claim(link);
      const keys = () => [key];
      const apply: Transition<ClaimRecord>["apply"] = (group, [stored]) => {
        const claim = ownClaim(
          group.resolve(key, stored),
          ledger.tenants.application(applicationId, group),
        );
        if (claim.status === "cancelled") return claim;
        if (claim.status === "claimed")
          throw new MintmarkError("claim_taken", "The link has been used already.");
        const { time: decidedAt } = ledger.journal.record(group, { kind: "claimCancelled", link });
        const cancelled = { ...claim, status: "cancelled", decidedAt } as const;
        putClaim(group, link, cancelled);
        return cancelled;
      };
      return claimView(ledger, link, await writer.run({ weight: 1, keys, apply }, signal));
    },
    async find(address) {
      const { ledger } = context;
      const link = linkOf(address);
      return foundClaim(ledger, claimView(ledger, link, await storedClaim(ledger, link)));
    },
    async take(address, claim, { signal } = {}) {
      const link = linkOf(address);
      const owner = requireAddress("ownerAddress", claim.ownerAddress);
      const { ledger } = context;
      const record = await storedClaim(ledger, link);
      const signature = String(claim.signature).toLowerCase() as Hex;
      if (
        !(await isSignedBy(
          link,
          claimDigest(ledger.services.settlement, { link, owner }),
          signature,
        ))
      )
        throw new MintmarkError(
          "signature_invalid",
          "The signature is not by the link's key over this owner.",
        );
      const earlier = earlierTaking(record, owner, ledger.journal.clock.now());
      if (earlier !== null) return replayedResult(ledger, earlier);
      const decision: Decision = {
        key: keyOf.claim(link),
        idempotency: null,
        earlier: (stored, group) =>
          earlierTaking(recordOf(stored) ?? record, owner, ledger.journal.now(group)),
        decide(group, { sequence: mintSequence, mintId }) {
          const taken = { ownerAddress: owner, signature, mintId, mintSequence };
          const { time: decidedAt } = ledger.journal.record(group, {
            kind: "claimTaken",
            link,
            ...taken,
          });
          putClaim(group, link, { ...record, status: "claimed", ...taken, decidedAt });
        },
      };
      const request = {
        users: [{ ownerAddress: owner, mints: [JSON.parse(record.mint) as unknown] }],
      };
      try {
        return await mint(context, principalOf(ledger, record), request, { decision, signal });
      } catch (error) {
        if (!(error instanceof MintmarkError) || !BY_KEY.has(error.code)) throw error;
        throw new MintmarkError(
          "claim_cancelled",
          "The issuer's key for this link is no longer valid. Ask for another.",
        );
      }
    },
  };
}

/** A new claim link. */
export interface NewClaim {
  /** The address of the link's key. Whoever holds the key can claim; this engine never sees it. */
  readonly linkAddress: Address;
  /** The mint that the link gives: an entry of {@link Engine.mint}, untrusted. */
  readonly mint: unknown;
  /** Milliseconds since 1970; null, the default: never. */
  readonly expiresAt?: number | null | undefined;
}

/** A claim link and what became of it. */
export interface Claim {
  readonly linkAddress: Address;
  readonly status: "open" | "claimed" | "cancelled" | "expired";
  readonly mint: Readonly<Record<string, unknown>>;
  /** Milliseconds since 1970; null for never. */
  readonly expiresAt: number | null;
  /**
   * Who has claimed it, and the signature of the link's key that names this owner; null until then.
   */
  readonly ownerAddress: Address | null;
  readonly signature: Hex | null;
  readonly mintId: Uuid | null;
  readonly createdAt: number;
  /** When it was claimed or cancelled. */
  readonly decidedAt: number | null;
}

/** A claim link for whoever holds it. */
export interface FoundClaim
  extends Pick<Claim, "linkAddress" | "status" | "expiresAt" | "ownerAddress"> {
  readonly asset: Pick<Asset, "assetId" | "standard" | "name" | "symbol">;
  /** null where the engine gives the id, and for ERC-20. */
  readonly tokenId: bigint | null;
  /** An ERC-20's or ERC-1155's amount: decimal text in whole tokens. */
  readonly amount: string | null;
  /** Tokens with ids that the engine gives. */
  readonly quantity: number | null;
}

/** The holder of a link sends this to claim. */
export interface TakenClaim {
  readonly ownerAddress: Address;
  /** The link key's signature over `claimTypedData` of the link and the owner. */
  readonly signature: Hex;
}

/**
 * Claim links. The issuer makes a key for each and gives it to somebody, who can then have one
 * mint, to any owner. The key signs the owner, so nobody who sees a claim can lead it elsewhere. A
 * link mints with the API key that created it, and ends with that key.
 *
 * @example
 * const link = privateKeyToAccount(generatePrivateKey()); await engine.claims.createAll(principal,
 * [{ linkAddress: link.address, mint: { assetId, tokenId: "7" } }]); const signature = await
 * link.signTypedData(claimTypedData(engine.settlement, { link: link.address, owner })); const {
 * vaults } = await engine.claims.take(link.address, { ownerAddress: owner, signature });
 */
export interface Claims {
  /**
   * Creates at most 1,000 links, all or none, after every check that `mint` would make. The same
   * links with the same terms again change nothing. A link does not keep its token from being
   * minted in another way. Needs the scopes `mint` and `users`. Rejects with `claim_exists`,
   * `claim_expired`, or as `mint` does.
   */
  createAll(
    principal: Principal,
    claims: readonly NewClaim[],
    wait?: WaitOptions,
  ): Promise<Claim[]>;
  /** Rejects with `claim_not_found`. */
  get(applicationId: Uuid, linkAddress: Address): Promise<Claim>;
  /** Oldest first. */
  list(applicationId: Uuid, page?: PageOptions): List<Claim>;
  /** Ends an open link; repeats change nothing. Rejects with `claim_taken`, `claim_not_found`. */
  cancel(applicationId: Uuid, linkAddress: Address, wait?: WaitOptions): Promise<Claim>;
  /** The link for whoever knows its address. Rejects with `claim_not_found`. */
  find(linkAddress: Address): Promise<FoundClaim>;
  /**
   * Mints to the owner that the link's key has signed, in one write with the link's end. The same
   * owner again gets the same mint. Rejects with `claim_taken` for another owner, `claim_expired`,
   * `claim_cancelled`, `signature_invalid`, `claim_not_found`, or as `mint` does.
   */
  take(linkAddress: Address, claim: TakenClaim, wait?: WaitOptions): Promise<MintResult>;
}
