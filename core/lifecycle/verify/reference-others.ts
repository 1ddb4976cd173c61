import type { Address, Uuid } from "../../model.ts";
import { hexToBytes } from "../../protocol/hex.ts";
import * as records from "../../store/records.ts";
import { keyOf, keyString } from "../../store/store-keys.ts";
import { type Handlers, Part } from "./reference-records.ts";

const CHECKED_BEFORE_MS = 60_000; // Most milliseconds between the check of a link and the time of its entry
const UNDECIDED = { status: "open", ownerAddress: null, signature: null, mintId: null, mintSequence: null } as const;

/**
 * The part of the reference for what no other part asks about: claim links, metadata, people with their sign-ins and
 * audit logs, and webhooks. It holds all of it, because any of it can still change.
 */
export class ReferenceOthers extends Part {
  readonly #claims = this.kept<Address, records.ClaimRecord>("claim link", keyOf.claim, records.claimRecord);
  readonly #collections = this.kept("the metadata of asset", keyOf.collection, records.collectionRecord);
  readonly #people = this.kept("person", keyOf.person, records.personRecord);
  readonly #webhooks = this.kept("webhook", keyOf.webhook, records.webhookRecord);
  readonly #tokens = new Map<string, { readonly key: Buffer; readonly record: records.MetadataRecord }>();
  readonly #logs = new Map<number, number>(); // The number of acts of each audit log

  readonly on = {
    claimsCreated: ({ applicationIndex, keyIndex, claims }) => {
      for (const [i, { link, mint, expiresAt }] of claims.entries()) {
        if (this.#claims.has(link)) this.out.report(`claim link ${link} is created twice`);
        const number = records.claimNumber(this.out.sequence, i);
        const facts = { applicationIndex, keyIndex, number, mint, expiresAt };
        this.#claims.set(link, { ...facts, ...UNDECIDED, createdAt: this.out.time, decidedAt: null });
        const at = keyOf.applicationClaim(applicationIndex, number);
        this.out.bytes(at, hexToBytes(link), `the index of claim link ${link}`);
      }
    },
    claimCancelled: ({ link }) => this.#decide(link, { status: "cancelled" }),
    claimTaken: ({ kind: _, link, ...taken }) => {
      const expiresAt = this.#claims.get(link)?.expiresAt ?? null;
      if (expiresAt !== null && expiresAt + CHECKED_BEFORE_MS <= this.out.time)
        this.out.report(`the expired claim link ${link} is taken`);
      if (taken.mintSequence >= this.out.sequence)
        this.out.report(`the mint of claim link ${link} is in no earlier entry`);
      this.#decide(link, { status: "claimed", ...taken });
    },
    metadataSet: ({ assetId, tokens }) => {
      for (const { tokenId, metadata } of tokens) {
        const { key, name, record } = this.#token(assetId, tokenId);
        if (record?.frozen === true || this.#collections.get(assetId)?.frozen === true)
          this.out.report(`frozen metadata of token ${tokenId} changes`);
        this.#tokens.set(name, { key, record: { metadata, frozen: false, updatedAt: this.out.time } });
      }
    },
    metadataFrozen: ({ assetId, tokenIds }) => {
      for (const tokenId of tokenIds) {
        const { key, name, record } = this.#token(assetId, tokenId);
        if (record === undefined) this.out.report(`token ${tokenId} without metadata is frozen`);
        else this.#tokens.set(name, { key, record: { ...record, frozen: true } });
      }
    },
    collectionChanged: (entry) => {
      const { assetId, placeholder, frozen } = entry;
      const before = this.#collections.get(assetId);
      const isHidden = placeholder !== null && placeholder !== before?.placeholder;
      if (before?.frozen === true && (!frozen || isHidden))
        this.out.report(`the frozen metadata of asset ${assetId} changes`);
      this.#collections.set(assetId, { ...entry, updatedAt: this.out.time });
    },
    personInvited: (entry) => {
      const fresh = { link: null, signIns: [], createdAt: this.out.time, signedInAt: null, removedAt: null };
      this.#people.set(this.#people.size, { ...entry, ...fresh });
    },
    personChanged: ({ personIndex, role, keyIndex }) => this.#people.change(personIndex, { role, keyIndex }),
    personRemoved: ({ personIndex }) =>
      this.#people.change(personIndex, { link: null, signIns: [], removedAt: this.out.time }),
    personLinked: ({ personIndex, linkHash, expiresAt }) =>
      this.#people.change(personIndex, { link: { linkHash, expiresAt } }),
    personAddressed: ({ personIndex, address }) => this.#people.change(personIndex, { address }),
    personSignedIn: ({ personIndex, tokenHash, byLink, expiresAt }) => {
      const { signIns = [], link = null } = this.#people.get(personIndex) ?? {};
      const opened = [...signIns, { tokenHash, openedAt: this.out.time, expiresAt }].slice(-records.MAX_SIGN_INS);
      const change = { signIns: opened, link: byLink ? null : link, signedInAt: this.out.time };
      this.#people.change(personIndex, change);
    },
    personSignedOut: ({ personIndex, tokenHash: ended }) => {
      const { signIns = [] }: Partial<records.PersonRecord> = this.#people.get(personIndex) ?? {};
      this.#people.change(personIndex, { signIns: signIns.filter(({ tokenHash }) => tokenHash !== ended) });
    },
    acted: ({ applicationIndex, count }) => {
      const { sequence } = this.out;
      if (count < 1 || count >= sequence) this.out.report(`entry ${sequence} names changes that are not there`);
      const log = applicationIndex === null ? 0 : applicationIndex + 1;
      const acts = this.#logs.get(log) ?? 0;
      this.out.index(keyOf.audit(log, acts), `act ${acts} of audit log ${log}`);
      this.#logs.set(log, acts + 1);
    },
    webhookCreated: (entry) => {
      const fresh = { rotations: 0, rotatedAt: null, failingSince: null, failure: null } as const;
      const record = { ...entry, ...fresh, status: "active", createdAt: this.out.time } as const;
      this.#webhooks.set(this.#webhooks.size, record);
    },
    webhookDeleted: ({ webhookIndex }) => this.#webhooks.change(webhookIndex, { status: "deleted" }),
    webhookSecretRotated: ({ webhookIndex }) => this.#rotate(webhookIndex),
    webhookSecretRotatedOnce: ({ webhookIndex, rotationId }) => this.#rotate(webhookIndex, rotationId),
    webhookEnabled: ({ webhookIndex }) =>
      this.#webhooks.change(webhookIndex, { status: "active", failingSince: null, failure: null }),
    webhookDelivered: ({ webhookIndex, sequence: delivered }) =>
      this.#webhooks.change(webhookIndex, { delivered, failingSince: null, failure: null }),
    webhookFailing: ({ webhookIndex, failure }) =>
      this.#webhooks.change(webhookIndex, { failingSince: this.#failingSince(webhookIndex), failure }),
    webhookDisabled: ({ webhookIndex, failure }) => {
      const failingSince = this.#failingSince(webhookIndex);
      this.#webhooks.change(webhookIndex, { status: "disabled", failingSince, failure });
      const { applicationIndex = 0, webhookId = "" } = this.#webhooks.get(webhookIndex) ?? {};
      this.out.tell(applicationIndex, { type: "webhook.disabled", webhookId, failure });
    },
  } satisfies Handlers;

  override finish(): void {
    super.finish();
    for (const { key, record } of this.#tokens.values())
      this.out.put(key, records.metadataRecord, record, "the metadata of a token");
    for (const [log, count] of this.#logs)
      this.out.put(keyOf.auditCount(log), records.auditCountRecord, { log, count }, `the length of audit log ${log}`);
  }

  #decide(link: Address, change: Partial<records.ClaimRecord>): void {
    if ((this.#claims.get(link) ?? UNDECIDED).status !== "open") this.out.report(`claim link ${link} is decided twice`);
    this.#claims.change(link, { ...change, decidedAt: this.out.time });
  }

  #token(assetId: string, tokenId: bigint) {
    const key = keyOf.metadata(assetId, tokenId);
    const name = keyString(key);
    return { key, name, record: this.#tokens.get(name)?.record };
  }

  #rotate(webhookIndex: number, rotationId?: Uuid): void {
    const { applicationIndex = 0, rotations: before = 0 } = this.#webhooks.get(webhookIndex) ?? {};
    const rotations = before + 1;
    this.#webhooks.change(webhookIndex, { rotations, rotatedAt: this.out.time });
    if (rotationId === undefined) return;
    const key = keyOf.rotation(applicationIndex, rotationId);
    this.out.put(key, records.rotationRecord, { webhookIndex, rotations }, `rotation ${rotationId}`);
  }

  #failingSince(webhookIndex: number): number {
    return this.#webhooks.get(webhookIndex)?.failingSince ?? this.out.time;
  }
}
