import type { DeploymentPlan } from "./check.ts";
import { type Deployer, deployContract } from "./deployer.ts";
import { type Deployment, pendingOf, readRecord, writeRecord } from "./record.ts";
import { deploySettlement, verifySettlement } from "./settlement.ts";
import { deployMissing, deployToken, type TokenConfig } from "./token.ts";

interface DeployOptions extends Pick<DeploymentPlan, "settlement" | "multisig"> {
  readonly tokens?: DeploymentPlan["tokens"];
  /** The deployment record's file; see {@link Deployment}. */
  readonly record: string;
  readonly onProgress?: (step: string) => void;
}

/**
 * Brings one chain to the requested deployment, and writes the record after every step. Verifies
 * recorded contracts instead of deploying them again, so a repeated or interrupted run ends in the
 * same state.
 */
export async function deploy(account: Deployer, options: DeployOptions): Promise<Deployment> {
  const { record: path, multisig, tokens = [], onProgress = () => {} } = options;
  const pending = pendingOf(path);
  const by = { ...account, pending };
  const earlier = await readRecord(path);
  if (earlier !== undefined && earlier.chainId !== by.chainId)
    throw new Error(`${path} is of chain ${earlier.chainId}; the RPC serves chain ${by.chainId}`);
  let { admin } = options.settlement;
  if (earlier === undefined && multisig !== undefined) {
    onProgress("deploying the administrator's time lock");
    const args = [options.settlement.changeDelay, [multisig], [multisig]];
    admin = (await deployContract(by, "AdminTimeLock", args)).address;
  }
  onProgress(
    earlier
      ? `verifying StateCommitment at ${earlier.settlement.address}`
      : "deploying StateCommitment",
  );
  const settlement =
    earlier?.settlement ?? (await deploySettlement(by, { ...options.settlement, admin }));
  if (earlier !== undefined) await verifySettlement(by, settlement);
  const { tokens: recorded = [], mirrors = [] } = earlier ?? {};
  let deployment: Deployment = {
    version: 1,
    chainId: by.chainId,
    settlement,
    tokens: recorded,
    mirrors,
  };
  await writeRecord(path, deployment);
  // After a recorded settlement contract, a pending creation is a token's.
  if (earlier === undefined) await pending.clear();
  const create = (token: TokenConfig) => {
    onProgress(`deploying ${token.standard} ${token.symbol}`);
    return deployToken(by, settlement.address, token);
  };
  await deployMissing(tokens, recorded, create, async (all) => {
    deployment = { ...deployment, tokens: all };
    await writeRecord(path, deployment);
    await pending.clear();
  });
  return deployment;
}
