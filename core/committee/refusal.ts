/** Why a committee member does not sign. The reasons are stable. */
export const REFUSAL_REASONS = [
  "mode",
  "equivocation",
  "gap",
  "ahead",
  "data_hash",
  "malformed",
  "root",
  "duplicate",
  "unregistered",
  "cap",
] as const;
export type RefusalReason = (typeof REFUSAL_REASONS)[number];

/** A committee member looked at a batch and will not sign it. */
export class CommitteeRefusal extends Error {
  override readonly name = "CommitteeRefusal";
  readonly reason: RefusalReason;

  constructor(reason: RefusalReason, detail: string) {
    super(detail);
    this.reason = reason;
  }
}
