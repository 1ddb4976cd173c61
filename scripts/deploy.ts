/**
 * Deploys Mintmark to a chain: `node scripts/deploy.ts [--json]`, everything by environment (see ENVIRONMENT). Run it again to verify
 * what is there, or to add a token.
 */
import { createPublicClient, http, isAddress, isHex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { z } from "zod";
import { deploy, pendingOf } from "./deploy/deploy.ts";
import { type Deployer, deployContract, lower } from "./deploy/deployer.ts";
import { readRecord, recordPath } from "./deploy/record.ts";
import type { TokenConfig } from "./deploy/token.ts";
import { readEnvironment } from "./environment.ts";

const ENVIRONMENT = `
  MINTMARK_RPC_URL         the chain's RPC
  MINTMARK_DEPLOYER_KEY    private key that pays for the deployment
  MINTMARK_ADMIN           schedules operators and committees; default: the time lock if there is one, else the deployer
  MINTMARK_MULTISIG        deploys a time lock that this address proposes to and executes, and makes it the administrator
  MINTMARK_GUARDIAN        pauses committing, revokes operators; default: the deployer
  MINTMARK_OPERATOR        commits batches; a plain account; default: the deployer
  MINTMARK_COMMITTEE       the committee's addresses, separated by commas
  MINTMARK_THRESHOLD       signatures that a validium batch needs
  MINTMARK_CHANGE_DELAY    seconds before a new operator or committee is active; default 604800 (7 days)
  MINTMARK_MATURITY        seconds that ERC-721 vaults wait after their commit; default 86400 (a day)
  MINTMARK_DEPLOYMENTS     folder of the deployment records; default .mintmark/deployments
  MINTMARK_TOKEN           JSON of one token to deploy and register, for example
                           {"standard":"erc721","name":"Swords","symbol":"SWRD"}. Optional: "uri", "admin", "lockMinter",
                           "cap" and "quantum" (erc20, decimal strings), "blobScheme" ("mintmark" or "imx"),
                           "royalty" (erc721): {"receiver":"0x…","fraction":"250"}, in ten-thousandths of the price`;

const address = z
  .string()
  .refine((text) => isAddress(text, { strict: false }), "not an address")
  .transform((text) => lower(text as `0x${string}`));
const seconds = z.string().regex(/^\d+$/, "not a number of seconds").transform(BigInt);
const token = z.strictObject({
  standard: z.enum(["erc20", "erc721", "erc1155"]),
  name: z.string().min(1),
  symbol: z.string().min(1),
  cap: z.string().regex(/^\d+$/).transform(BigInt).optional(),
  quantum: z.string().regex(/^\d+$/).transform(BigInt).optional(),
  uri: z.string().optional(),
  royalty: z
    .strictObject({
      receiver: address,
      fraction: z
        .string()
        .regex(/^\d{1,5}$/)
        .transform(BigInt),
    })
    .optional(),
  blobScheme: z.enum(["mintmark", "imx"]).optional(),
  admin: address.optional(),
  lockMinter: z.boolean().optional(),
});
const environment = z.object({
  MINTMARK_RPC_URL: z.url(),
  MINTMARK_DEPLOYER_KEY: z
    .string()
    .refine((text) => isHex(text) && text.length === 66, "not a private key")
    .transform((text) => text as `0x${string}`),
  MINTMARK_ADMIN: address.optional(),
  MINTMARK_MULTISIG: address.optional(),
  MINTMARK_GUARDIAN: address.optional(),
  MINTMARK_OPERATOR: address.optional(),
  MINTMARK_COMMITTEE: z
    .string()
    .transform((text) => text.split(","))
    .pipe(z.array(address).min(1).max(255)),
  MINTMARK_THRESHOLD: z
    .string()
    .regex(/^[1-9]\d*$/)
    .transform(Number),
  MINTMARK_CHANGE_DELAY: seconds.default(604_800n),
  MINTMARK_MATURITY: seconds.default(86_400n),
  MINTMARK_DEPLOYMENTS: z.string().default(".mintmark/deployments"),
  MINTMARK_TOKEN: z
    .string()
    .transform((text, context) => {
      try {
        return JSON.parse(text) as unknown;
      } catch {
        context.addIssue({ code: "custom", message: "not JSON" });
        return z.NEVER;
      }
    })
    .pipe(token)
    .optional(),
});

async function main(): Promise<void> {
  if (process.argv.includes("--help")) {
    process.stdout.write(`usage: node scripts/deploy.ts [--json]\n${ENVIRONMENT}\n`);
    return;
  }
  const env = readEnvironment(environment, ENVIRONMENT);
  const transport = http(env.MINTMARK_RPC_URL, { retryCount: 5 });
  const client = createPublicClient({ transport });
  const account = privateKeyToAccount(env.MINTMARK_DEPLOYER_KEY);
  const chainId = await client.getChainId();
  const record = recordPath(env.MINTMARK_DEPLOYMENTS, chainId);
  const by: Deployer = { account, client, transport, chainId, pending: pendingOf(record) };
  const log = (line: string) => process.stderr.write(`${line}\n`);
  const deployer = lower(account.address);
  const earlier = await readRecord(record);
  const admin = earlier?.settlement.admin ?? env.MINTMARK_ADMIN ?? (await newAdmin());
  async function newAdmin() {
    return env.MINTMARK_MULTISIG ? timeLock(by, env.MINTMARK_MULTISIG, env.MINTMARK_CHANGE_DELAY, log) : deployer;
  }
  const tokens: TokenConfig[] = env.MINTMARK_TOKEN
    ? [{ ...env.MINTMARK_TOKEN, admin: env.MINTMARK_TOKEN.admin ?? deployer }]
    : [];
  const deployment = await deploy(by, {
    record,
    tokens,
    settlement: {
      admin,
      guardian: env.MINTMARK_GUARDIAN ?? deployer,
      operator: env.MINTMARK_OPERATOR ?? deployer,
      committee: env.MINTMARK_COMMITTEE,
      threshold: env.MINTMARK_THRESHOLD,
      changeDelay: env.MINTMARK_CHANGE_DELAY,
      maturity: env.MINTMARK_MATURITY,
    },
    onProgress: log,
  });
  log(`written and verified: ${record}`);
  const text = JSON.stringify(
    deployment,
    (_, value: unknown) => (typeof value === "bigint" ? value.toString() : value),
    2,
  );
  process.stdout.write(
    process.argv.includes("--json")
      ? `${text}\n`
      : `StateCommitment ${deployment.settlement.address} on chain ${by.chainId}\n`,
  );
}

async function timeLock(by: Deployer, multisig: `0x${string}`, delay: bigint, log: (line: string) => void) {
  log("deploying the administrator's time lock");
  const { address: lock } = await deployContract(by, "AdminTimeLock", [delay, [multisig], [multisig]]);
  return lock;
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
