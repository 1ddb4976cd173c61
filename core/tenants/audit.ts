import { MintmarkError } from "../errors.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { type List, listOf, type PageEntries, type PageOptions, type PageStart } from "../ledger/list.ts";
import type { Uuid } from "../model.ts";
import { tokenIdOf } from "../protocol/blob.ts";
import { decimalAmount } from "../protocol/quantized.ts";
import type { Entry } from "../store/entries.ts";
import { readEntry } from "../store/journal.ts";
import type { MintEntry } from "../store/mint-entry.ts";
import { keyOf } from "../store/store-keys.ts";

/** One change, with the one who made it. */
export interface AuditEntry {
  /** Of the change in the journal. */
  readonly sequence: number;
  /** Milliseconds since 1970. */
  readonly time: number;
  /** null: the operator's command line. */
  readonly personId: Uuid | null;
  readonly personName: string | null;
  /** The kind of the change in the journal, such as `keyIssued`. */
  readonly action: string;
  /** How many such changes it made at once. */
  readonly count: number;
  /** The id of the changed thing: a key, an asset, a user, a webhook, a person, a mint, a withdrawal, a (first) link. */
  readonly subject: string | null;
  /** The subject's name, or what changed; null for none. */
  readonly detail: string | null;
}

export function auditLog(context: EngineContext, applicationId: Uuid | null, page: PageOptions): List<AuditEntry> {
  return listOf(context, "audit", applicationId ?? "operator", page, (start, ledger) => {
    const log = applicationId === null ? 0 : ledger.application(applicationId).applicationIndex + 1;
    return readAudit(ledger, log, start);
  });
}

/** Newest first. A position is the number of an entry in its log. */
async function readAudit(ledger: Ledger, log: number, { after, limit }: PageStart): Promise<PageEntries<AuditEntry>> {
  const count = ledger.auditCounts.get(log)?.count ?? 0;
  const newest = Math.min(after ?? count, count) - 1;
  const numbers = Array.from({ length: Math.min(limit, newest + 1) }, (_, i) => newest - i);
  const records = await ledger.store.getMany(numbers.map((number) => keyOf.audit(log, number)));
  const data: AuditEntry[] = [];
  for (const [i, record] of records.entries()) {
    if (record === undefined) throw new MintmarkError("store_corrupt", `Act ${numbers[i]} of an audit log is missing.`);
    data.push(await readAct(ledger, Number(record.readBigUInt64BE())));
  }
  const last = numbers.at(-1);
  return { data, next: last || null };
}

async function readAct(ledger: Ledger, sequence: number): Promise<AuditEntry> {
  const { entry: act } = await readEntry(ledger.store, sequence);
  if (act.kind !== "acted") throw new MintmarkError("store_corrupt", `Journal entry ${sequence} is no act.`);
  const { entry, time } = await readChange(ledger, sequence, act.count);
  const person = act.personIndex === null ? undefined : ledger.people.get(act.personIndex);
  return {
    sequence: sequence - 1,
    time,
    personId: person?.personId ?? null,
    personName: person?.name ?? null,
    action: entry.kind,
    count: countOf(entry, act.count),
    ...subjectOf(ledger, entry),
  };
}

/** What a mint made, such as `12.5 PTS` or `Swords #17, and 2 more`. */
function mintText(ledger: Ledger, { mints: [first, ...others] }: MintEntry): string | null {
  if (first === undefined) return null;
  const { standard, blobScheme, name, symbol, ...units } = ledger.assetAt(first.assetIndex);
  const token = first.blob === "0x" ? symbol : `${name} #${tokenIdOf(standard, blobScheme, first.blob)}`;
  const text = standard === "erc721" ? token : `${decimalAmount(first.amount, units)} ${token}`;
  return others.length === 0 ? text : `${text}, and ${others.length} more`;
}

/** Entries that can follow the one which names a change: an invitation's link, the metadata of a mint. */
const FOLLOWING: ReadonlySet<string> = new Set(["personLinked", "metadataSet"]);

/** The entry that names a change of several: the last one that is more than a follower. */
async function readChange(ledger: Ledger, sequence: number, count: number) {
  const last = await readEntry(ledger.store, sequence - 1);
  let named = last;
  for (let i = 2; FOLLOWING.has(named.entry.kind) && i <= count; i++)
    named = await readEntry(ledger.store, sequence - i);
  return FOLLOWING.has(named.entry.kind) ? last : named;
}

function countOf(entry: Entry | MintEntry, count: number): number {
  switch (entry.kind) {
    case "mint":
      return entry.mints.length;
    case "claimsCreated":
      return entry.claims.length;
    case "metadataSet":
      return entry.tokens.length;
    case "metadataFrozen":
      return entry.tokenIds.length;
    case "userCreated":
      return count;
    default:
      return 1;
  }
}

type Subject = Pick<AuditEntry, "subject" | "detail">;

function subjectOf(ledger: Ledger, entry: Entry | MintEntry): Subject {
  const named = (subject: string | undefined, detail: string | null = null) => ({ subject: subject ?? null, detail });
  if (entry.kind === "mint") return named(entry.mintId, mintText(ledger, entry));
  if (entry.kind === "claimsCreated") return named(entry.claims[0]?.link);
  if (entry.kind === "claimCancelled") return named(entry.link);
  if ("personIndex" in entry && entry.personIndex !== null) {
    const person = ledger.people.get(entry.personIndex);
    const role = "role" in entry ? `: ${entry.role}` : "";
    return named(person?.personId, `${person?.name ?? ""}${role}`);
  }
  if ("webhookIndex" in entry) {
    const webhook = ledger.webhooks.get(entry.webhookIndex);
    // Some receivers put a secret into the path.
    return named(webhook?.webhookId, webhook && new URL(webhook.url).origin);
  }
  if ("keyIndex" in entry && entry.keyIndex !== null) {
    const key = ledger.keys.get(entry.keyIndex);
    return named(key?.keyId, key?.name);
  }
  if ("assetId" in entry && !("assetIndex" in entry))
    return named(entry.assetId, ledger.assets.get(ledger.assetIndices.get(entry.assetId) ?? -1)?.name);
  if ("assetIndex" in entry) {
    const asset = ledger.assets.get(entry.assetIndex);
    return named(asset?.assetId, asset?.name);
  }
  if ("userId" in entry) return named(entry.userId, entry.reference);
  if ("withdrawalId" in entry) return named(entry.withdrawalId);
  if ("applicationIndex" in entry && entry.applicationIndex !== null) {
    const application = ledger.applications.get(entry.applicationIndex);
    return named(application?.applicationId, application?.name);
  }
  return named(undefined);
}
