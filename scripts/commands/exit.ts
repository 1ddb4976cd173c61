import type { Command } from "commander";
import { privateKeyToAccount } from "viem/accounts";
import { CHECKSUM_WRONG, checksumHolds } from "../../core/internal.ts";
import { exitSettings } from "../../server/settings/process-settings.ts";
import { configured } from "../cli/command.ts";
import { UsageError } from "../cli/exit-codes.ts";
import { privateKey } from "../cli/secret.ts";
import { type DescribedPlan, describeExit, exitFromFile } from "../exit/exit.ts";

export function addExit(program: Command): void {
  configured(
    program,
    "exit <kit>",
    "withdraw a vault with only its exit kit, an RPC and the owner's key (MINTMARK_OWNER_KEY, or standard input)",
    ["exit sword.json --wait --rpc https://rpc.example < owner.key", "exit sword.json --dry-run"],
    exitSettings,
    async ({ MINTMARK_RPC_URL: rpcUrl }, { args: [kit = ""], options: given, progress, signal }) => {
      const quantity = given.quantity === undefined ? {} : { quantity: unitsOf(given.quantity) };
      const recipient = given.recipient === undefined ? {} : { recipient: addressOf(given.recipient) };
      const account = privateKeyToAccount(await privateKey("MINTMARK_OWNER_KEY"));
      const options = { kit, rpcUrl, account, signal, ...quantity, ...recipient };
      const isJson = given.json === true;
      const say = (line: string) => (isJson ? process.stderr : process.stdout).write(`${line}\n`);
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
  )
    .option("--wait", "wait until an ERC-721 has matured instead of failing")
    .option("--quantity <units>", "default all that are left")
    .option("--recipient <address>", "default the owner")
    .option("--dry-run", "check the kit against the chain and show the effects");
}

function sentenceOf({ vaultId, quantity, token, recipient, contract, chainId, baseUnits }: DescribedPlan): string {
  const what = token.tokenId === null ? `${token.standard}` : `${token.standard} id ${token.tokenId}`;
  return (
    `the kit is valid: withdrawing ${quantity} unit(s) of vault ${vaultId} from ${contract} on chain ${chainId}\n` +
    `  mints ${baseUnits} of ${token.address} (${what}) to ${recipient}`
  );
}

function unitsOf(text: unknown): bigint {
  if (typeof text !== "string" || !/^[1-9]\d{0,18}$/.test(text))
    throw new UsageError("--quantity: give a whole number of units");
  return BigInt(text);
}

function addressOf(text: unknown): `0x${string}` {
  if (typeof text !== "string" || !/^0x[0-9a-fA-F]{40}$/.test(text))
    throw new UsageError("--recipient: give an address");
  if (!checksumHolds(text)) throw new UsageError(`--recipient: ${CHECKSUM_WRONG}`);
  return text.toLowerCase() as `0x${string}`;
}
