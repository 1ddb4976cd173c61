import type { Address } from "../../model.ts";
import { hexToBytes } from "../../protocol/hex.ts";
import type { Entry } from "../../store/entries.ts";
import { encodeRecord } from "../../store/layout.ts";
import { type ClaimRecord, claimNumber, claimRecord } from "../../store/records.ts";
import * as keys from "../../store/store-keys.ts";
import { type Expected, expectedRecord } from "./reference-records.ts";

/** Most milliseconds between the check of a link and the time of its entry. */
const CHECKED_BEFORE_MS = 60_000;
const UNDECIDED = { status: "open", ownerAddress: null, signature: null, mintId: null, mintSequence: null } as const;

/** The part of the reference for claim links. It holds all of them, because an open one can still change. */
export class ReferenceClaims {
  readonly #report: (problem: string) => void;
  readonly #claims = new Map<Address, ClaimRecord>();

  constructor(report: (problem: string) => void) {
    this.#report = report;
  }

  /** Applies an entry of this part; false for any other. */
  apply(entry: Entry, sequence: number, time: number): boolean {
    switch (entry.kind) {
      case "claimsCreated": {
        const { applicationIndex, keyIndex, claims } = entry;
        for (const [i, { link, mint, expiresAt }] of claims.entries()) {
          if (this.#claims.has(link)) this.#report(`claim link ${link} is created twice`);
          const facts = { applicationIndex, keyIndex, number: claimNumber(sequence, i), mint, expiresAt };
          this.#claims.set(link, { ...facts, ...UNDECIDED, createdAt: time, decidedAt: null });
        }
        return true;
      }
      case "claimCancelled":
        this.#decide(entry.link, { status: "cancelled" }, time);
        return true;
      case "claimTaken": {
        const { kind: _, link, ...taken } = entry;
        const expiresAt = this.#claims.get(link)?.expiresAt ?? null;
        if (expiresAt !== null && expiresAt + CHECKED_BEFORE_MS <= time)
          this.#report(`the expired claim link ${link} is taken`);
        if (taken.mintSequence >= sequence) this.#report(`the mint of claim link ${link} is in no earlier entry`);
        this.#decide(link, { status: "claimed", ...taken }, time);
        return true;
      }
      default:
        return false;
    }
  }

  finish(): Expected[] {
    return [...this.#claims].flatMap(([link, record]) => {
      const { applicationIndex, number } = record;
      const at = keys.applicationClaimKey(applicationIndex, number);
      return [
        expectedRecord(keys.claimKey(link), encodeRecord(claimRecord, record), `claim link ${link}`),
        expectedRecord(at, Buffer.from(hexToBytes(link)), `the index of claim link ${link}`),
      ];
    });
  }

  #decide(link: Address, change: Partial<ClaimRecord>, time: number): void {
    const record = this.#claims.get(link);
    if (record?.status !== "open") this.#report(`claim link ${link} is decided twice, or was never created`);
    if (record !== undefined) this.#claims.set(link, { ...record, ...change, decidedAt: time });
  }
}
