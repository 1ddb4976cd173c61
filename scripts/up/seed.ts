import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type Asset, type Engine, openEngine, type Uuid } from "../../core/index.ts";
import { operate } from "../../server/process/operator/operations.ts";
import type { Deployment } from "../deploy/record.ts";
import { type UpOptions, type UpRecord, writeUp } from "./record.ts";
import type { Answers } from "./terms.ts";

/**
 * Makes the store with the application, its key and its assets, as far as an earlier run did not.
 */
export async function seedStore(
  { folder, rpc }: Pick<UpOptions, "folder" | "rpc">,
  record: UpRecord,
  deployment: Deployment,
  terms: Answers,
  isTest: boolean,
) {
  const apiKeyFile = join(folder, "keys", "api-key");
  // A running server has the store open.
  if (record.seeded?.assets.length === deployment.tokens.length)
    return { ...record.seeded, apiKeyFile };
  const settlement = {
    chainId: BigInt(deployment.chainId),
    contract: deployment.settlement.address,
    engineVersion: 5,
  };
  const environment = isTest ? "sandbox" : "live";
  const store = join(folder, "server", "store");
  await mkdir(dirname(store), { recursive: true, mode: 0o700 });
  await using engine = await openEngine({ store, createIfMissing: true, environment, settlement });
  const applicationId = await applicationIn(engine, terms);
  if (!existsSync(apiKeyFile)) {
    const { secret } = await engine.keys.issue(applicationId);
    await writeFile(apiKeyFile, `${secret}\n`, { mode: 0o600 });
  }
  const assets = [];
  for (const token of deployment.tokens)
    assets.push({
      symbol: token.symbol,
      assetId: await assetIn(engine, applicationId, token, rpc),
    });
  record.seeded = { applicationId, assets };
  await writeUp(folder, record);
  return { ...record.seeded, apiKeyFile };
}

async function applicationIn(engine: Engine, { application: name, profile }: Answers) {
  for await (const application of engine.applications.list())
    if (application.name === name) return application.applicationId;
  const mode = profile === "solo" ? ({ dataAvailabilityMode: "zk-rollup" } as const) : {};
  return (await engine.applications.create({ name, ...mode })).applicationId;
}

/**
 * Adds a token, whitelisted and enabled for its application, and notes that L1 has it registered.
 */
async function assetIn(
  engine: Engine,
  applicationId: Uuid,
  token: Deployment["tokens"][number],
  rpc: string,
) {
  const { standard, address: contractAddress, name, symbol, quantum, mintingBlobScheme } = token;
  const { chainId } = engine.settlement;
  let asset: Asset | undefined;
  for await (const each of engine.operator.assets())
    if (each.contractAddress === contractAddress) asset = each;
  const decimals = standard === "erc20" ? 18 : 0;
  const added = {
    standard,
    chainId,
    contractAddress,
    quantum,
    name,
    symbol,
    decimals,
    mintingBlobScheme,
    applicationId,
  };
  asset ??= await engine.assets.add(added);
  const { assetId } = asset;
  const running = { signal: AbortSignal.timeout(120_000), progress: () => {} };
  if (!asset.registered) await operate(engine, "assets.register", { assetId, rpc }, running);
  return assetId;
}
