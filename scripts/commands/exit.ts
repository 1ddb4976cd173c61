import { readFile } from "node:fs/promises";
import type * as exits from "../../core/exit/index.ts";
import { exitKitToJson, parseExitKit } from "../../core/exit/kit.ts";
import type { Hash } from "../../core/index.ts";
import { exitSettings, renewSettings } from "../../server/process/settings/process-settings.ts";
import { addressOf, partOf, processAccount } from "../cli/arguments.ts";
import { command } from "../cli/command.ts";
import { UsageError } from "../cli/exit.ts";
import { chainOf, ifFunded, madeIn, unfunded } from "../cli/l1.ts";
import { writeNamed } from "../cli/output.ts";
import { jsonText } from "../files.ts";

export const exitPageCommand = command({
  examples: ["exit-page mintmark-exit.html"],
  async work({ args: [file = ""] }) {
    const { exitPageHtml } = await import("../../server/pages/scripted.ts");
    const { html } = await exitPageHtml();
    await writeNamed(file, html);
    process.stderr.write(`${file}: open it in a browser that has the owner's wallet\n`);
  },
});

export const exitCommand = command({
  examples: [
    "exit sword.json --wait --rpc https://rpc.example < owner.key",
    "exit sword.json --dry-run",
    "exit kits/*.json",
  ],
  settings: exitSettings,
  options: {
    "--wait": "wait until an ERC-721 has matured, instead of failing",
    "--amount <tokens>": "whole tokens, such as 12.5; default all that is left",
    "--units <number>": "in the place of --amount: units, as the API counts them",
    "--recipient <address>": "default the owner",
    "--from-block <number>":
      "where to look for a transfer that spends the vault; default the vault's commit",
    "--dry-run": "check the kit against the chain and show the effects",
  },
  async work({ args: files, options: given, progress, signal }, { MINTMARK_RPC_URL: rpcUrl }) {
    const [file = "", ...others] = files;
    const ofOne = [given.amount, given.units, given.wait, given.dryRun];
    if (others.length > 0 && ofOne.some((option) => option !== undefined))
      throw new UsageError("--amount, --units, --wait and --dry-run are for one kit");
    const recipient =
      given.recipient === undefined ? {} : { recipient: addressOf(given.recipient, "--recipient") };
    const search = given.fromBlock === undefined ? {} : { fromBlock: blockOf(given.fromBlock) };
    const { account } = await processAccount("OWNER");
    const [exits, { connectPortal }] = await Promise.all([
      import("../../core/exit/index.ts"),
      import("../../core/l1/index.ts"),
    ]);
    const kit = await readExitKit(file);
    const l1 = await connectPortal({ rpc: rpcUrl, ...kit.settlement, account });
    const exit = { kit, l1, account: account.address, signal, ...recipient, ...search };
    const isJson = given.json === true;
    const say = (line: string) => (isJson ? process.stderr : process.stdout).write(`${line}\n`);
    const onSent = (txHash: Hash) => say(`sent transaction ${txHash}`);
    if (others.length > 0) {
      const all = { ...exit, kits: [kit, ...(await Promise.all(others.map(readExitKit)))], onSent };
      const ended = await exits.exitWithKits(all);
      for (const { vaultId, txHash, refusal } of ended)
        say(`vault ${vaultId}: ${refusal ?? `paid by ${txHash}`}`);
      const refused = ended.filter(({ refusal }) => refusal !== null).length;
      if (refused > 0) throw new Error(`${refused} of ${ended.length} vaults were not paid`);
      return isJson ? ended : undefined;
    }
    const quantity = await partOf(given, () => unitsInKit(kit, rpcUrl));
    const one = { ...exit, ...(quantity !== undefined && { quantity }) };
    const onPlan = (plan: exits.ExitPlan) => say(sentenceOf(plan));
    if (given.dryRun === true) {
      const plan = await exits.planExit(one);
      onPlan(plan);
      return isJson ? described(plan) : undefined;
    }
    const result = await exits.exitWithKit({
      ...one,
      onPlan,
      onSent,
      immature: given.wait === true ? "wait" : "refuse",
      onWait: (seconds) => progress(`not mature yet: ${seconds} s of L1's clock to go`),
    });
    const { blockNumber, gasUsed, recipient: to, held, heldBefore } = result;
    say(`mined in block ${blockNumber} for ${gasUsed} gas`);
    say(`${to} now holds ${held} of the token on L1, ${heldBefore} before`);
    return isJson ? described(result) : undefined;
  },
});

export const settleCommand = command({
  examples: [
    "settle offer-9223372036854775808.json coins.json --rpc https://rpc.example < owner.key",
  ],
  settings: renewSettings,
  options: { "--wait": "wait until the new vaults are final, so that their ids stay" },
  notes:
    "The account that has the kit's vault sends and pays: MINTMARK_OWNER_KEY, or standard input." +
    "\nNothing is sent unless L1 would settle both sides.",
  columns: ["vaultId", "ownerAddress", "assetType", "amount", "txHash"],
  async work({ args: [offerFile = "", kitFile = ""], options, ...running }, settings) {
    const { signal, progress } = running;
    const { account } = await processAccount("OWNER");
    const [{ parseOffer, settleWithKits }, { connectL1 }] = await Promise.all([
      import("../../core/exit/index.ts"),
      import("../../core/l1/index.ts"),
    ]);
    const offer = parseOffer(await readFile(offerFile, "utf8"));
    const kit = await readExitKit(kitFile);
    const { chainId, contract } = kit.settlement;
    const place = chainOf({ MINTMARK_CONTRACT: contract, ...settings });
    const l1 = await connectL1({ ...place, chainId, account });
    const onSent = (sent: Hash) => progress(`sent transaction ${sent}`);
    const settling = settleWithKits({ offer, kit, l1, account: account.address, signal, onSent });
    const { txHash } = await ifFunded(l1, settling, unfunded(account.address));
    return madeIn(l1, txHash, options.wait === true, running);
  },
});

function sentenceOf({ kit, quantity, recipient, baseUnits }: exits.ExitPlan): string {
  const { token, settlement } = kit;
  const what =
    token.tokenId === null ? `${token.standard}` : `${token.standard} id ${token.tokenId}`;
  const from = `vault ${kit.tip.vaultId} from ${settlement.contract} on chain ${settlement.chainId}`;
  return (
    `the kit is valid: withdrawing ${quantity} unit(s) of ${from}\n` +
    `  mints ${baseUnits} of ${token.address} (${what}) to ${recipient}`
  );
}

function blockOf(text: unknown): bigint {
  if (typeof text !== "string" || !/^\d{1,18}$/.test(text))
    throw new UsageError("--from-block: give a block's number");
  return BigInt(text);
}

/** The units of a kit's token. The kit has no decimals, so the token tells them. */
async function unitsInKit({ token }: exits.ExitKit, rpcUrl: string) {
  const { standard, address, quantum } = token;
  const { createPublicClient, erc20Abi, http } = await import("viem");
  const call = { address, abi: erc20Abi, functionName: "decimals" } as const;
  const node = createPublicClient({ transport: http(rpcUrl) });
  return { quantum, decimals: standard === "erc20" ? await node.readContract(call) : 0 };
}

/** A plan, or an exit's result, with its context, for people. */
function described<Plan extends exits.ExitPlan>({
  kit: { tip, token, settlement },
  ...plan
}: Plan) {
  const { address, standard, tokenId } = token;
  return { vaultId: tip.vaultId, token: { address, standard, tokenId }, ...settlement, ...plan };
}

export async function readExitKit(path: string): Promise<exits.ExitKit> {
  return parseExitKit(await readFile(path, "utf8"));
}

export function exitKitText(kit: exits.ExitKit): string {
  return jsonText(exitKitToJson(kit));
}
