/** The reasons of a committee member or an issuer for refusing a signature. They are stable. */
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
  "transfer",
  "committed",
  "not_issuer",
  "not_allowed",
] as const;
/** Why a signature was refused. */
export type RefusalReason = (typeof REFUSAL_REASONS)[number];

/**
 * A committee member or an issuer refuses to sign a batch.
 *
 * @example
 * if (error instanceof Refusal) reply.code(422).send({ reason: error.reason, detail: error.message });
 */
export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly reason: RefusalReason;

  constructor(reason: RefusalReason, detail: string) {
    super(detail);
    this.reason = reason;
  }
}
