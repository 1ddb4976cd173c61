import { readFile, writeFile } from "node:fs/promises";
import type { LocalAccount } from "viem";
import { createPublicClient, erc20Abi, http } from "viem";
import type { ExitKit, ExitOptions, ExitPlan } from "../../core/guards/exit/index.ts";
import * as exits from "../../core/guards/exit/index.ts";
import { connectPortal } from "../../core/l1/index.ts";
import type { Units } from "../../core/protocol/quantized.ts";
import { jsonText } from "../files.ts";

/** In place of a connection: an RPC of the kits' chain, and the account of the vaults' owner. */
interface Owner {
  readonly rpcUrl: string;
  readonly account: LocalAccount;
  readonly pollingMs?: number;
}

type ExitFromFileOptions = Omit<ExitOptions, "kit" | "l1" | "account" | "onPlan"> &
  Owner & { readonly kit: string; readonly onPlan?: (plan: DescribedPlan) => void };

/** All kits are of one contract. */
type ExitFromFilesOptions = Omit<exits.ExitAllOptions, "kits" | "l1" | "account"> &
  Owner & { readonly kits: readonly string[] };

/** A plan with its context, for people. */
export interface DescribedPlan extends Omit<ExitPlan, "kit"> {
  readonly vaultId: bigint;
  readonly token: { readonly address: `0x${string}`; readonly standard: string; readonly tokenId: bigint | null };
  readonly contract: `0x${string}`;
  readonly chainId: bigint;
}

/** The units of a kit's token. The kit has no decimals, so the token tells them. */
export async function unitsInKit(path: string, rpcUrl: string): Promise<Units> {
  const { standard, address, quantum } = (await readExitKit(path)).token;
  const call = { address, abi: erc20Abi, functionName: "decimals" } as const;
  const node = createPublicClient({ transport: http(rpcUrl) });
  return { quantum, decimals: standard === "erc20" ? await node.readContract(call) : 0 };
}

/** Checks a kit's file against the chain and describes the withdrawal. Sends nothing. */
export async function describeExit(options: ExitFromFileOptions): Promise<DescribedPlan> {
  const { kit, ...rest } = await connect(options);
  return describe(kit, await exits.planExit({ kit, ...rest }));
}

/** An exit with only a kit's file, an RPC and the owner's account. Throws as `exitWithKit` does. */
export async function exitFromFile(options: ExitFromFileOptions) {
  const { onPlan, ...rest } = options;
  const exit = await connect(rest);
  const { kit, ...result } = await exits.exitWithKit({ ...exit, onPlan: (plan) => onPlan?.(describe(plan.kit, plan)) });
  return { ...describe(kit, { kit, ...result }), ...result };
}

/** The exit of many vaults with their kits' files. Throws as `exitWithKits` does. */
export async function exitFromFiles({ kits: paths, ...rest }: ExitFromFilesOptions): Promise<exits.VaultExit[]> {
  const { kit: _, ...exit } = await connect({ kit: paths[0] ?? "", ...rest });
  return exits.exitWithKits({ ...exit, kits: await Promise.all(paths.map(readExitKit)) });
}

async function connect({ kit: path, rpcUrl, account, ...rest }: Omit<ExitFromFileOptions, "onPlan">) {
  const kit = await readExitKit(path);
  const polling = rest.pollingMs === undefined ? {} : { pollingMs: rest.pollingMs };
  const l1 = await connectPortal({ rpc: rpcUrl, ...kit.settlement, account, ...polling });
  return { ...rest, kit, l1, account: account.address };
}

function describe({ tip, token, settlement }: ExitKit, { kit: _, ...plan }: ExitPlan): DescribedPlan {
  const { address, standard, tokenId } = token;
  return { vaultId: tip.vaultId, token: { address, standard, tokenId }, ...settlement, ...plan };
}

export async function readExitKit(path: string): Promise<ExitKit> {
  return exits.parseExitKit(await readFile(path, "utf8"));
}

export function exitKitText(kit: ExitKit): string {
  return jsonText(exits.exitKitToJson(kit));
}

/** Never replaces a file, which may be the only copy of another kit. */
export function writeExitKit(path: string, kit: ExitKit): Promise<void> {
  return writeFile(path, exitKitText(kit), { flag: "wx" });
}
