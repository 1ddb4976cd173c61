import type { Limits } from "../engine-types.ts";
import { MAX_BATCH_VAULTS } from "../model.ts";
import { requireInteger } from "../protocol/bounds.ts";

/** EIP-7825: the most gas of one transaction. */
const MAX_TRANSACTION_GAS = 16_777_216;
/** Nodes refuse transactions above this many bytes. */
const MAX_TRANSACTION_BYTES = 131_072;
/** Most vaults of a rollup batch that the settlement contract takes, whatever their gas. */
const MAX_ROLLUP_VAULTS = 1 << 15;
/** Signature, fees and calldata around a batch's data. */
const TRANSACTION_OVERHEAD = 1_024;

export const DEFAULT_LIMITS: Limits = {
  usersPerRequest: 100,
  mintsPerRequest: 10_000,
  batchVaults: { validium: 65_536, "zk-rollup": 4_096 },
  validiumBytes: 64 * 1024 * 1024,
  rollupBytes: 126_976,
  rollupGas: 16_000_000,
};

/** The limits with the defaults for those not given. Throws `validation_failed` for one that L1 could not carry. */
export function readLimits(limits: Partial<Limits> = {}): Limits {
  const read = { ...DEFAULT_LIMITS, ...limits };
  requireInteger("usersPerRequest", read.usersPerRequest, 1, 1_000_000);
  requireInteger("mintsPerRequest", read.mintsPerRequest, 1, MAX_BATCH_VAULTS);
  requireInteger("batchVaults.validium", read.batchVaults.validium, 1, MAX_BATCH_VAULTS);
  requireInteger("batchVaults.zk-rollup", read.batchVaults["zk-rollup"], 1, MAX_ROLLUP_VAULTS);
  requireInteger("validiumBytes", read.validiumBytes, 1_024, 512 * 1024 * 1024);
  requireInteger("rollupBytes", read.rollupBytes, 1_024, MAX_TRANSACTION_BYTES - TRANSACTION_OVERHEAD);
  requireInteger("rollupGas", read.rollupGas, 500_000, MAX_TRANSACTION_GAS);
  return read;
}
