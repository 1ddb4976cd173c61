/** Why a committee member or an issuer does not sign. The reasons are stable. */
export const REFUSAL_REASONS = [
  "mode",
  "behind",
  "diverged",
  "equivocation",
  "gap",
  "ahead",
  "data_hash",
  "malformed",
  "root",
  "duplicate",
  "unregistered",
  "cap",
  "committed",
  "not_issuer",
  "not_allowed",
] as const;
/** Why a signature was refused. */
export type RefusalReason = (typeof REFUSAL_REASONS)[number];

/** A committee member or an issuer looked at a batch and does not sign it. */
export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly reason: RefusalReason;

  constructor(reason: RefusalReason, detail: string) {
    super(detail);
    this.reason = reason;
  }
}
