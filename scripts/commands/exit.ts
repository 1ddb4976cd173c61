import { exitPageHtml } from "../../server/pages/exit.ts";
import { exitSettings } from "../../server/process/settings/process-settings.ts";
import { addressOf, processAccount, tokensOf, unitsOf } from "../cli/arguments.ts";
import { command } from "../cli/command.ts";
import { UsageError } from "../cli/errors.ts";
import { writeNamed } from "../cli/output.ts";
import { type DescribedPlan, describeExit, exitFromFile, exitFromFiles, unitsInKit } from "../exit/exit.ts";

export const exitPageCommand = command({
  usage: "exit-page <file>",
  description: "write the exit page: one HTML file to withdraw with a kit and a wallet, without a server",
  examples: ["exit-page mintmark-exit.html"],
  async work({ args: [file = ""] }) {
    const { html } = await exitPageHtml();
    await writeNamed(file, html);
    process.stderr.write(`${file}: open it in a browser that has the owner's wallet\n`);
  },
});

export const exitCommand = command({
  usage: "exit <kits...>",
  description:
    "withdraw vaults with only their exit kits, an RPC and the owner's key (MINTMARK_OWNER_KEY, or standard input)",
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
      "where to look first for a transfer that spends the vault; default the newest block, and back",
    "--dry-run": "check the kit against the chain and show the effects",
  },
  async work({ args: kits, options: given, progress, signal }, { MINTMARK_RPC_URL: rpcUrl }) {
    const isPart = given.amount !== undefined || given.units !== undefined;
    if (given.amount !== undefined && given.units !== undefined)
      throw new UsageError("give --amount or --units, not both");
    const recipient = given.recipient === undefined ? {} : { recipient: addressOf(given.recipient, "--recipient") };
    const search = given.fromBlock === undefined ? {} : { fromBlock: blockOf(given.fromBlock) };
    const { account } = await processAccount("OWNER");
    const isJson = given.json === true;
    const say = (line: string) => (isJson ? process.stderr : process.stdout).write(`${line}\n`);
    const [kit = ""] = kits;
    if (kits.length > 1) {
      if (isPart || given.wait === true || given.dryRun === true)
        throw new UsageError("--amount, --units, --wait and --dry-run are for one kit");
      const onSent = (txHash: string) => say(`sent transaction ${txHash}`);
      const exits = await exitFromFiles({ kits, rpcUrl, account, signal, onSent, ...recipient, ...search });
      for (const { vaultId, txHash, refusal } of exits) say(`vault ${vaultId}: ${refusal ?? `paid by ${txHash}`}`);
      const refused = exits.filter(({ refusal }) => refusal !== null).length;
      if (refused > 0) throw new Error(`${refused} of ${exits.length} vaults were not paid`);
      return isJson ? exits : undefined;
    }
    const quantity = isPart && {
      quantity:
        given.units === undefined
          ? tokensOf(given.amount, "--amount", await unitsInKit(kit, rpcUrl))
          : unitsOf(given.units, "--units"),
    };
    const options = { kit, rpcUrl, account, signal, ...quantity, ...recipient, ...search };
    if (given.dryRun === true) {
      const plan = await describeExit(options);
      say(sentenceOf(plan));
      return isJson ? plan : undefined;
    }
    const result = await exitFromFile({
      ...options,
      immature: given.wait === true ? "wait" : "refuse",
      onPlan: (plan) => say(sentenceOf(plan)),
      onWait: (seconds) => progress(`not mature yet: ${seconds} s of L1's clock to go`),
      onSent: (txHash) => say(`sent transaction ${txHash}`),
    });
    const { blockNumber, gasUsed, recipient: to, held, heldBefore } = result;
    say(`mined in block ${blockNumber} for ${gasUsed} gas`);
    say(`${to} now holds ${held} of the token on L1, ${heldBefore} before`);
    return isJson ? result : undefined;
  },
});

function sentenceOf({ vaultId, quantity, token, recipient, contract, chainId, baseUnits }: DescribedPlan): string {
  const what = token.tokenId === null ? `${token.standard}` : `${token.standard} id ${token.tokenId}`;
  return (
    `the kit is valid: withdrawing ${quantity} unit(s) of vault ${vaultId} from ${contract} on chain ${chainId}\n` +
    `  mints ${baseUnits} of ${token.address} (${what}) to ${recipient}`
  );
}

function blockOf(text: unknown): bigint {
  if (typeof text !== "string" || !/^\d{1,18}$/.test(text)) throw new UsageError("--from-block: give a block's number");
  return BigInt(text);
}
