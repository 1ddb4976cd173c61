import { readFile, writeFile } from "node:fs/promises";
import type { LocalAccount } from "viem";
import { createPublicClient, erc20Abi, http } from "viem";
import * as exits from "../../core/guards/exit/index.ts";
import { connectPortal } from "../../core/l1/index.ts";
import type { Units } from "../../core/protocol/quantized.ts";
import { jsonText } from "../files.ts";

/** The kit in a file, and a connection to its contract that sends from the owner's account. */
export async function openKit(path: string, rpcUrl: string, owner: LocalAccount) {
  const kit = await readExitKit(path);
  const l1 = await connectPortal({ rpc: rpcUrl, ...kit.settlement, account: owner });
  return { kit, l1, account: owner.address };
}

/** The units of a kit's token. The kit has no decimals, so the token tells them. */
export async function unitsInKit({ token }: exits.ExitKit, rpcUrl: string): Promise<Units> {
  const { standard, address, quantum } = token;
  const call = { address, abi: erc20Abi, functionName: "decimals" } as const;
  const node = createPublicClient({ transport: http(rpcUrl) });
  return { quantum, decimals: standard === "erc20" ? await node.readContract(call) : 0 };
}

/** A plan, or an exit's result, with its context, for people. */
export function described<Plan extends exits.ExitPlan>({ kit: { tip, token, settlement }, ...plan }: Plan) {
  const { address, standard, tokenId } = token;
  return { vaultId: tip.vaultId, token: { address, standard, tokenId }, ...settlement, ...plan };
}

export async function readExitKit(path: string): Promise<exits.ExitKit> {
  return exits.parseExitKit(await readFile(path, "utf8"));
}

export function exitKitText(kit: exits.ExitKit): string {
  return jsonText(exits.exitKitToJson(kit));
}

/** Never replaces a file, which may be the only copy of another kit. */
export function writeExitKit(path: string, kit: exits.ExitKit): Promise<void> {
  return writeFile(path, exitKitText(kit), { flag: "wx" });
}
