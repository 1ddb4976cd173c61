import type { Address } from "../../model.ts";
import { hexToBytes } from "../../protocol/hex.ts";
import { type ClaimRecord, claimNumber, claimRecord } from "../../store/records.ts";
import * as keys from "../../store/store-keys.ts";
import { factsOf, type Handlers, Kept, Part } from "./reference-records.ts";

/** Most milliseconds between the check of a link and the time of its entry. */
const CHECKED_BEFORE_MS = 60_000;
const UNDECIDED = { status: "open", ownerAddress: null, signature: null, mintId: null, mintSequence: null } as const;

/** The part of the reference for claim links. It holds all of them, because an open one can still change. */
export class ReferenceClaims extends Part {
  readonly #claims = new Kept<Address, ClaimRecord>(this.out, "claim link", keys.claimKey, claimRecord);

  readonly on = {
    claimsCreated: ({ applicationIndex, keyIndex, claims }) => {
      for (const [i, { link, mint, expiresAt }] of claims.entries()) {
        if (this.#claims.has(link)) this.out.report(`claim link ${link} is created twice`);
        const number = claimNumber(this.out.sequence, i);
        const facts = { applicationIndex, keyIndex, number, mint, expiresAt };
        this.#claims.set(link, { ...facts, ...UNDECIDED, createdAt: this.out.time, decidedAt: null });
        const at = keys.applicationClaimKey(applicationIndex, number);
        this.out.bytes(at, hexToBytes(link), `the index of claim link ${link}`);
      }
    },
    claimCancelled: ({ link }) => this.#decide(link, { status: "cancelled" }),
    claimTaken: (entry) => {
      const { link, ...taken } = factsOf(entry);
      const expiresAt = this.#claims.get(link)?.expiresAt ?? null;
      if (expiresAt !== null && expiresAt + CHECKED_BEFORE_MS <= this.out.time)
        this.out.report(`the expired claim link ${link} is taken`);
      if (taken.mintSequence >= this.out.sequence)
        this.out.report(`the mint of claim link ${link} is in no earlier entry`);
      this.#decide(link, { status: "claimed", ...taken });
    },
  } satisfies Handlers;

  finish(): void {
    this.#claims.finish();
  }

  #decide(link: Address, change: Partial<ClaimRecord>): void {
    if ((this.#claims.get(link) ?? UNDECIDED).status !== "open") this.out.report(`claim link ${link} is decided twice`);
    this.#claims.change(link, { ...change, decidedAt: this.out.time });
  }
}
