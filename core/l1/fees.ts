/** Fee bounds and resending of transactions. */
export interface FeeOptions {
  /**
   * Milliseconds without a receipt until a transaction is sent again at a higher fee; default 60
   * 000.
   */
  readonly replaceAfterMs?: number;
  /** Most wei per gas that is ever offered; default 64 times a transaction's first estimate. */
  readonly maxFeePerGas?: bigint;
  /** Most wei per unit of blob gas that is ever offered; default as for gas. */
  readonly maxFeePerBlobGas?: bigint;
}

/**
 * Whether a transaction carries blobs. Nodes hold pending transactions of one kind only for an
 * account.
 */
export type CallKind = "plain" | "blobs";

/** Wei per unit of gas that a transaction offers. */
export interface Fees {
  readonly maxFeePerGas: bigint;
  readonly maxPriorityFeePerGas: bigint;
  /** Wei per unit of blob gas; only in transactions with blobs. */
  readonly maxFeePerBlobGas?: bigint;
}

/**
 * Nodes take a replacement only at a tenth more, and one with blobs only at the double of each fee.
 */
const LEAST_BUMP_PERCENT = { plain: 110n, blobs: 200n } as const;
const BUMP_PERCENT = { plain: 125n, blobs: 200n } as const;

/**
 * Times its first estimate that a transaction offers at most, where no cap is set. Its tip is paid
 * whatever the block's price is, so a node that loses transactions would otherwise cost the whole
 * balance.
 */
const MOST_TIMES = 64n;

export function capsOf(
  { maxFeePerGas, maxFeePerBlobGas = 0n }: Fees,
  caps: FeeOptions,
): FeeOptions {
  return {
    maxFeePerGas: caps.maxFeePerGas ?? maxFeePerGas * MOST_TIMES,
    maxFeePerBlobGas: caps.maxFeePerBlobGas ?? maxFeePerBlobGas * MOST_TIMES,
  };
}

/** Fees that nodes take for a replacement; null when a cap is too low. */
export function higherFees(fees: Fees, kind: CallKind, caps: FeeOptions): Fees | null {
  const higher = cappedFees(raised(fees, BUMP_PERCENT[kind]), caps);
  const least = raised(fees, LEAST_BUMP_PERCENT[kind]);
  const names = ["maxFeePerGas", "maxPriorityFeePerGas", "maxFeePerBlobGas"] as const;
  return names.every((fee) => (higher[fee] ?? 0n) >= (least[fee] ?? 0n)) ? higher : null;
}

export function cappedFees(
  { maxFeePerGas, maxPriorityFeePerGas, maxFeePerBlobGas }: Fees,
  caps: FeeOptions,
): Fees {
  const fee = lower(maxFeePerGas, caps.maxFeePerGas);
  const blobFee = maxFeePerBlobGas !== undefined && {
    maxFeePerBlobGas: lower(maxFeePerBlobGas, caps.maxFeePerBlobGas),
  };
  return { maxFeePerGas: fee, maxPriorityFeePerGas: lower(maxPriorityFeePerGas, fee), ...blobFee };
}

export function capReached(kind: CallKind, { maxFeePerGas, maxFeePerBlobGas }: FeeOptions): string {
  const blobs =
    kind === "blobs" && maxFeePerBlobGas !== undefined
      ? `, or ${maxFeePerBlobGas} wei for blob gas,`
      : "";
  return `the fee cap of ${maxFeePerGas} wei${blobs} is reached`;
}

function raised(fees: Fees, percent: bigint): Fees {
  const higher = Object.entries(fees).map(
    ([name, value]) => [name, (value * percent) / 100n + 1n] as const,
  );
  return { ...fees, ...Object.fromEntries(higher) };
}

function lower(value: bigint, cap: bigint | undefined): bigint {
  return cap !== undefined && cap < value ? cap : value;
}
