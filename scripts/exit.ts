/**
 * Withdraws a vault with its exit kit, an RPC and the owner's key, and nothing else: `node scripts/exit.ts <kit.json>`. Works with
 * engine, server and operator gone.
 */
import { parseArgs } from "node:util";
import { privateKeyToAccount } from "viem/accounts";
import { z } from "zod";
import { progressLine, runCommand } from "./command.ts";
import { readEnvironment, readPrivateKey } from "./environment.ts";
import { type DescribedPlan, describeExit, exitFromFile } from "./exit/exit.ts";
import { jsonText } from "./json.ts";

const USAGE = `usage: node scripts/exit.ts <kit.json> [options]

  --wait             wait until an ERC-721 has matured instead of saying so
  --quantity <n>     units; default all that is left
  --recipient <0x…>  default: the owner
  --dry-run          check the kit against the chain and show what would be done
  --json             the result for machines

  MINTMARK_RPC_URL   an RPC of the kit's chain
  MINTMARK_OWNER_KEY the owner's private key; or give it on standard input

for example: node scripts/exit.ts sword.json --wait < key.txt
`;

await runCommand(async () => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      wait: { type: "boolean", default: false },
      quantity: { type: "string" },
      recipient: { type: "string" },
      "dry-run": { type: "boolean", default: false },
      json: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  const [kit] = positionals;
  if (values.help) return void process.stdout.write(USAGE);
  if (kit === undefined || positionals.length > 1) throw new Error(`name one exit kit\n\n${USAGE}`);
  const { MINTMARK_RPC_URL: rpcUrl } = readEnvironment(z.object({ MINTMARK_RPC_URL: z.url() }), USAGE);
  const quantity = values.quantity === undefined ? {} : { quantity: integerOf("--quantity", values.quantity) };
  const recipient = values.recipient === undefined ? {} : { recipient: addressOf("--recipient", values.recipient) };
  const account = privateKeyToAccount(await readPrivateKey("MINTMARK_OWNER_KEY"));
  const options = { kit, rpcUrl, account, ...quantity, ...recipient };
  const say = (line: string) => (values.json ? process.stderr : process.stdout).write(`${line}\n`);
  if (values["dry-run"]) {
    const plan = await describeExit(options);
    say(sentenceOf(plan));
    if (values.json) process.stdout.write(jsonText(plan));
    return;
  }
  const waiting = progressLine();
  const result = await exitFromFile({
    ...options,
    immature: values.wait ? "wait" : "refuse",
    onPlan: (plan) => say(sentenceOf(plan)),
    onWait: (seconds) => waiting.show(`not mature yet: ${seconds} s of L1's clock to go`),
    onSent: (txHash) => {
      waiting.end();
      say(`sent transaction ${txHash}`);
    },
  });
  const { blockNumber, gasUsed, recipient: to, held, heldBefore } = result;
  say(`mined in block ${blockNumber} for ${gasUsed} gas`);
  say(`${to} holds ${held} of the token on L1 now, ${heldBefore} before`);
  if (values.json) process.stdout.write(jsonText(result));
});

function sentenceOf({ vaultId, quantity, token, recipient, contract, chainId, baseUnits }: DescribedPlan): string {
  const what = token.tokenId === null ? `${token.standard}` : `${token.standard} id ${token.tokenId}`;
  return (
    `the kit is good: withdrawing ${quantity} unit(s) of vault ${vaultId} from ${contract} on chain ${chainId}\n` +
    `  mints ${baseUnits} of ${token.address} (${what}) to ${recipient}`
  );
}

function integerOf(name: string, text: string): bigint {
  if (!/^[1-9]\d{0,18}$/.test(text)) throw new Error(`${name} must be a whole number of units, not "${text}"`);
  return BigInt(text);
}

function addressOf(name: string, text: string): `0x${string}` {
  if (!/^0x[0-9a-fA-F]{40}$/.test(text)) throw new Error(`${name} must be an address, not "${text}"`);
  return text.toLowerCase() as `0x${string}`;
}
