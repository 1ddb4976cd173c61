/** One measured figure: a transaction, and how many mints, withdrawals or batches it stands for. */
export interface Measurement {
  readonly label: string;
  /** Gas of the whole transaction: intrinsic gas, calldata and execution. */
  readonly transactionGas: number;
  /** What the transaction is divided by. */
  readonly count: number;
  /** `transactionGas / count`. */
  readonly each: number;
  /** Most gas each that is aimed at; null for figures that are only there to compare. */
  readonly aim: number | null;
}

/** Figures that belong in one table. */
export interface Section {
  readonly title: string;
  /** What was done, in full sentences: batches, their numbers, which storage slots were new. */
  readonly method: string;
  /** What the figures are counted in. */
  readonly unit: "mint" | "withdrawal" | "batch" | "transaction" | "deployment";
  readonly measurements: readonly Measurement[];
}

export function measurement(label: string, transactionGas: number, count = 1, aim: number | null = null): Measurement {
  return { label, transactionGas: Math.round(transactionGas), count, each: transactionGas / count, aim };
}
