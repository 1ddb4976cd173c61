import { setTimeout as pause } from "node:timers/promises";
import { createWalletClient, formatEther } from "viem";
import { COMMITS_GAS, RELAY_GAS, VOIDING_GAS } from "../../core/gas.ts";
import { askL1 } from "../../core/l1/connection.ts";
import { isLocalChain } from "../../server/process/settings/settings.ts";
import { type DeploymentPlan, gasHere, priceOf } from "../deploy/check.ts";
import type { Deployer } from "../deploy/deployer.ts";
import { readRecord } from "../deploy/record.ts";
import type { Accounts } from "./accounts.ts";
import { deploymentIn, type UpOptions } from "./record.ts";

type Need = Accounts["payers"][number] & { readonly wei: bigint };
type Missing = Need & { readonly has: bigint };

export interface Deploying {
  readonly options: Pick<UpOptions, "folder" | "allow" | "say" | "progress" | "signal" | "pollMs">;
  readonly plan: DeploymentPlan;
  /**
   * How many recorded tokens an earlier run has settled; null while the contract is not settled.
   */
  readonly settled: number | null;
  readonly payers: Accounts["payers"];
  /** The currency that pays for gas. */
  readonly symbol: string;
}

/** Gas that each role needs to begin with; `deployment` is what the deployer still has to do. */
export function gasOfRole(role: string, deployment: bigint): bigint {
  if (role === "deployer") return deployment;
  if (role === "operator") return RELAY_GAS + COMMITS_GAS;
  return role === "receipt" ? 0n : VOIDING_GAS;
}

/**
 * Wei for gas at a price, with half more: prices move, and rollups add a fee for data on Ethereum.
 */
export function weiFor(gas: bigint, price: bigint): bigint {
  const wei = (gas * price * 3n) / 2n;
  // Rounded up, so that people can type it.
  const unit = 10n ** BigInt(Math.max(0, wei.toString().length - 3));
  return ((wei + unit - 1n) / unit) * unit;
}

async function unmet({ client }: Deployer, needs: readonly Need[]): Promise<Missing[]> {
  const balances = await askL1("asking for balances", () =>
    Promise.all(needs.map(({ address }) => client.getBalance({ address }))),
  );
  return needs
    .map((need, at) => ({ ...need, has: balances[at] ?? 0n }))
    .filter(({ has, wei }) => has < wei);
}

/** Shows what to send where, and waits for it. */
export async function fund(
  by: Deployer,
  { options, plan, payers, symbol }: Deploying,
): Promise<void> {
  // An interrupted run has paid for a part already.
  const isBegun = (await by.pending?.isEmpty()) === false;
  const gas = isBegun
    ? 0n
    : await gasHere(by, plan, await readRecord(deploymentIn(options.folder, by.chainId)));
  const price = await priceOf(by);
  const needs = payers.map((payer) => ({
    ...payer,
    wei: weiFor(gasOfRole(payer.role, gas), price),
  }));
  let missing: readonly Missing[] | null = await unmet(by, needs);
  if (missing.length > 0 && isLocalChain(BigInt(by.chainId))) return give(by, missing);
  const lines = missing.map(({ role, address, wei, has }) => {
    const more = has > 0n ? ` more (it has ${formatEther(has)})` : "";
    return `\n  ${role.padEnd(10)} ${address}  ${formatEther(wei - has)} ${symbol}${more}`;
  });
  if (missing.length > 0) options.say(`Send ${symbol} to these accounts:${lines.join("")}`);
  while (missing?.length !== 0) {
    const roles = missing?.map(({ role }) => role).join(", ");
    if (roles) options.progress(`waiting for money: ${roles} (Ctrl-C; run again to go on)`);
    await pause(options.pollMs, undefined, { signal: options.signal });
    // A node that does not answer is asked again.
    missing = await unmet(by, needs).catch(() => null);
  }
}

/** A local chain's node has accounts of its own, with money that is worth nothing. */
async function give({ client, transport }: Deployer, needs: readonly Need[]): Promise<void> {
  const wallet = createWalletClient({ transport });
  const [account] = await askL1("asking for the node's accounts", () => wallet.getAddresses());
  if (account === undefined)
    throw new Error("the local chain's node has no accounts to take money from");
  for (const { address: to, wei: value } of needs) {
    const hash = await wallet.sendTransaction({ account, chain: null, to, value });
    await client.waitForTransactionReceipt({ hash });
  }
}
