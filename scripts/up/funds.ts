import { setTimeout as pause } from "node:timers/promises";
import { formatEther } from "viem";
import type { Address } from "../../core/index.ts";
import { askL1 } from "../../core/l1/failure.ts";
import type { Deployer } from "../deploy/deployer.ts";

/** An account, and the wei that it needs. */
export interface Need {
  readonly role: string;
  readonly address: Address;
  readonly wei: bigint;
}

/** Gas of a relay of 20 withdrawals at most, and of a hundred commits of validium batches. */
export const RELAY_GAS = 12_500_000n;
const COMMITS_GAS = 100n * 100_000n;
/** Gas with which a member or a watcher voids some duplicates. */
const VOIDING_GAS = 1_000_000n;

/** Gas that each role needs to begin with; `deployment` is what the deployer still has to do. */
export function gasOfRole(role: string, deployment: bigint): bigint {
  if (role === "deployer") return deployment;
  if (role === "operator") return RELAY_GAS + COMMITS_GAS;
  return role === "receipt" ? 0n : VOIDING_GAS;
}

/** Wei for gas at a price, with half more: prices move, and rollups add a fee for data on Ethereum. */
export function weiFor(gas: bigint, price: bigint): bigint {
  const wei = (gas * price * 3n) / 2n;
  // Rounded up, so that people can type it.
  const unit = 10n ** BigInt(Math.max(0, wei.toString().length - 3));
  return ((wei + unit - 1n) / unit) * unit;
}

/** The needs that the accounts' balances do not cover. */
export async function unmet({ client }: Deployer, needs: readonly Need[]): Promise<(Need & { has: bigint })[]> {
  const balances = await askL1("asking for balances", () =>
    Promise.all(needs.map(({ address }) => client.getBalance({ address }))),
  );
  return needs.map((need, at) => ({ ...need, has: balances[at] ?? 0n })).filter(({ has, wei }) => has < wei);
}

/** The lines that say what to send where. */
export function fundingLines(needs: readonly (Need & { has: bigint })[], symbol: string): string[] {
  return needs.map(({ role, address, wei, has }) => {
    const missing = formatEther(wei - has);
    return `  ${role.padEnd(10)} ${address}  ${missing} ${symbol}${has > 0n ? ` more (it has ${formatEther(has)})` : ""}`;
  });
}

/** Waits until every account has what it needs. Survives a node that does not answer. */
export async function waitForMoney(
  by: Deployer,
  needs: readonly Need[],
  {
    signal,
    intervalMs,
    onMissing,
  }: {
    readonly signal: AbortSignal;
    readonly intervalMs: number;
    readonly onMissing: (missing: readonly (Need & { has: bigint })[]) => void;
  },
): Promise<void> {
  for (;;) {
    const missing = await unmet(by, needs).catch(() => null);
    if (missing?.length === 0) return;
    if (missing !== null) onMissing(missing);
    await pause(intervalMs, undefined, { signal });
  }
}
