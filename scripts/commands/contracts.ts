import { existsSync } from "node:fs";
import { join } from "node:path";
import * as processes from "../../server/process/settings/process-settings.ts";
import { addressOf, processAccount } from "../cli/arguments.ts";
import { command, subcommand } from "../cli/command.ts";
import { UsageError } from "../cli/exit.ts";
import { chainOf } from "../cli/l1.ts";
import { isRecorded, pendingOf, readRecord, recordPath } from "../deploy/record.ts";

export const deployCommand = command({
  examples: [
    "deploy --rpc https://rpc.example --committee 0x…,0x… --threshold 2 --multisig 0x…",
    "deploy --json",
  ],
  settings: processes.deploySettings,
  async work({ options }, env) {
    const log = (line: string) => process.stderr.write(`${line}\n`);
    const { account } = await processAccount("DEPLOYER");
    const [{ checkPlan, neverTransferable }, { deploy }, { chainOn, lower }, { deployMirrorOf }] =
      await Promise.all([
        import("../deploy/check.ts"),
        import("../deploy/deploy.ts"),
        import("../deploy/deployer.ts"),
        import("../deploy/mirror.ts"),
      ]);
    const deployer = lower(account.address);
    const there = await chainOn(env.MINTMARK_RPC_URL);
    const record = recordPath(env.MINTMARK_DEPLOYMENTS, there.chainId);
    const by = { ...there, account, pending: pendingOf(record) };
    const earlier = await readRecord(record);
    const tokensOf = (asked: processes.TokenSetting | undefined) =>
      asked === undefined ? [] : [{ ...asked, admin: asked.admin ?? deployer }];
    const settlement = {
      admin: env.MINTMARK_ADMIN ?? deployer,
      guardian: env.MINTMARK_GUARDIAN ?? deployer,
      operator: env.MINTMARK_OPERATOR ?? deployer,
      committee: env.MINTMARK_COMMITTEE,
      threshold: env.MINTMARK_THRESHOLD,
      changeDelay: env.MINTMARK_CHANGE_DELAY,
      maturity: env.MINTMARK_MATURITY,
      transfers: env.MINTMARK_TRANSFERS === "yes",
    };
    const tokens = tokensOf(env.MINTMARK_TOKEN);
    const { MINTMARK_MULTISIG: multisig, MINTMARK_MIRROR_RPC_URL: mirrorRpc } = env;
    const { MINTMARK_MIRROR_COMMITTEE: members, MINTMARK_MIRROR_THRESHOLD: least } = env;
    const at = mirrorRpc === undefined ? undefined : await chainOn(mirrorRpc);
    const terms = { ...(members && { committee: members }), ...(least && { threshold: least }) };
    const mirror = at && {
      by: { ...at, account, pending: pendingOf(record, at.chainId) },
      config: { admin: env.MINTMARK_MIRROR_ADMIN ?? deployer, ...terms },
      tokens: tokensOf(env.MINTMARK_MIRROR_TOKEN),
    };
    const allowNoDelay = env.MINTMARK_ALLOW_NO_DELAY === "yes";
    const plan = { settlement, multisig, tokens, ...(mirror && { mirror }), allowNoDelay };
    const fresh = tokens.filter((token) => !isRecorded(earlier?.tokens, token));
    const never = settlement.transfers ? neverTransferable(fresh) : [];
    for (const warning of [...(await checkPlan(by, plan, earlier)), ...never])
      log(`warning: ${warning}`);
    let deployment = await deploy(by, { ...plan, record, onProgress: log });
    if (mirror !== undefined)
      deployment = await deployMirrorOf(mirror.by, by, { record, ...mirror, onProgress: log });
    log(`written and verified: ${record}`);
    if (options.json === true) return deployment;
    process.stdout.write(
      `StateCommitment ${deployment.settlement.address} on chain ${by.chainId}\n`,
    );
    for (const { symbol, address } of deployment.tokens)
      process.stdout.write(`${symbol} ${address}\n`);
    for (const { address, chainId } of deployment.mirrors)
      process.stdout.write(`StateMirror ${address} on chain ${chainId}\n`);
    return undefined;
  },
});

export const checkContractCommand = command({
  examples: ["check-contract --rpc https://rpc.example --contract 0x… --from-block 19000000"],
  settings: processes.rebuildSettings.pick({
    MINTMARK_RPC_URL: true,
    MINTMARK_CONTRACT: true,
    MINTMARK_FROM_BLOCK: true,
  }),
  async work(_, settings) {
    const [{ connectTo }, { requireOwnCreation }, { powersOf }] = await Promise.all([
      import("../../core/l1/connect.ts"),
      import("../../core/l1/creation.ts"),
      import("../../core/l1/powers.ts"),
    ]);
    const { client, settlement } = await connectTo(chainOf(settings));
    const { MINTMARK_FROM_BLOCK: fromBlock } = settings;
    const { contract, chainId } = settlement;
    const { name, created } = await requireOwnCreation(client, settlement, fromBlock);
    const { announced, ...powers } = await powersOf(client, contract, fromBlock, name);
    const dated = announced.map(({ activeFrom, isDue, ...change }) => ({
      ...change,
      activeFrom: new Date(Number(activeFrom) * 1000).toISOString(),
      isDue,
    }));
    return {
      code: "this version's",
      name,
      contract,
      chainId,
      created,
      ...powers,
      announced: dated,
    };
  },
});

export const inspectCommand = subcommand({
  usage: "inspect <token>",
  description:
    "look at a token contract: its standard, who may mint, which minting blob scheme fits, and a withdrawal on trial",
  examples: [
    "assets inspect 0x… --rpc https://rpc.example --contract 0x…",
    "assets inspect 0x… --rpc https://rpc.example --adapter ./adapter",
  ],
  settings: processes.inspectSettings,
  async work(
    { args: [token] },
    { MINTMARK_RPC_URL: rpc, MINTMARK_CONTRACT: contract, MINTMARK_ADAPTER: folder },
  ) {
    const address = addressOf(token, "token");
    const [{ createPublicClient, http }, { inspectToken }] = await Promise.all([
      import("viem"),
      import("../tokens/inspect.ts"),
    ]);
    const client = createPublicClient({ transport: http(rpc) });
    const inspection = await inspectToken(client, address, contract);
    if (folder === undefined) return inspection;
    if (inspection.standard === null) throw new UsageError(inspection.next);
    if (existsSync(join(folder, "MintAdapter.sol")))
      throw new UsageError(`${folder} has an adapter already`);
    const { writeAdapter } = await import("../tokens/adapter.ts");
    const files = await writeAdapter(folder, inspection.standard);
    return {
      ...inspection,
      files,
      next: "Deploy MintAdapter, let it mint, and register its address as the token.",
    };
  },
});
