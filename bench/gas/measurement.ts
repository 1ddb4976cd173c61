/** One measured figure: a transaction, and its number of mints, withdrawals or batches. */
export interface Measurement {
  readonly label: string;
  /** Gas of the whole transaction: intrinsic gas, calldata and execution. */
  readonly transactionGas: number;
  /** The divisor of the transaction's gas. */
  readonly count: number;
  /** `transactionGas / count`. */
  readonly each: number;
  /** The target for `each`; null for figures that only serve comparison. */
  readonly aim: number | null;
}

/** Figures of one table. */
export interface Section {
  readonly title: string;
  /** The method, in full sentences: batches, their numbers, new storage slots. */
  readonly method: string;
  /** The unit of the figures. */
  readonly unit: "mint" | "withdrawal" | "batch" | "transaction" | "deployment";
  readonly measurements: readonly Measurement[];
}

export function measurement(label: string, transactionGas: number, count = 1, aim: number | null = null): Measurement {
  return { label, transactionGas: Math.round(transactionGas), count, each: transactionGas / count, aim };
}
