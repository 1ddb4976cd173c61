/** Why a committee member does not sign. The reasons are stable. */
export type RefusalReason =
  | "mode"
  | "equivocation"
  | "gap"
  | "data_hash"
  | "malformed"
  | "root"
  | "duplicate"
  | "unregistered";

/** A committee member looked at a batch and will not sign it. */
export class CommitteeRefusal extends Error {
  override readonly name = "CommitteeRefusal";
  readonly reason: RefusalReason;

  constructor(reason: RefusalReason, detail: string) {
    super(detail);
    this.reason = reason;
  }
}
