import type { Address } from "viem";
import { type Deployer, deployContract, lower } from "./deployer.ts";
import {
  type CreationFields,
  type Deployment,
  type MirrorRecord,
  pendingOf,
  readRecord,
  writeRecord,
} from "./record.ts";
import { ascending, requireRecorded, termsOf } from "./settlement.ts";
import { deployMissing, deployToken, registerToken, type TokenConfig } from "./token.ts";

/**
 * Arguments of the constructor of `StateMirror`, which documents the roles. Members are in any
 * order.
 */
export type MirrorConfig = Omit<MirrorRecord, keyof CreationFields | "chainId" | "tokens"> & {
  readonly sourceChainId: bigint;
  readonly sourceContract: Address;
};

/** The settings of a mirror that differ from the settlement contract's own deployment. */
export type MirrorTerms = Pick<MirrorConfig, "admin"> &
  Partial<Pick<MirrorConfig, "committee" | "threshold">>;

/** Deploys a mirror on this chain and verifies its configuration. */
export async function deployMirror(by: Deployer, config: MirrorConfig) {
  const deployed = await deployContract(by, "StateMirror", mirrorArgs(config));
  await verifyMirror(by, { ...config, ...deployed });
  return deployed;
}

export function mirrorArgs(config: MirrorConfig): readonly unknown[] {
  return [{ ...config, committee: ascending(config.committee) }];
}

/** Rejects and names the first difference of a mirror from its configuration. */
export async function verifyMirror(
  by: Deployer,
  {
    sourceChainId,
    sourceContract,
    ...config
  }: MirrorConfig & Pick<MirrorRecord, "address" | "deployedAtBlock">,
): Promise<void> {
  const { read, checks } = await termsOf(by, "StateMirror", config);
  requireRecorded(`mirror ${config.address}`, [
    ["sourceChainId", await read("sourceChainId"), sourceChainId],
    ["sourceContract", lower((await read("sourceContract")) as Address), lower(sourceContract)],
    ...checks,
  ]);
}

interface MirrorOptions {
  /** File of the settlement contract's deployment, which will name the mirror. */
  readonly record: string;
  readonly config: MirrorTerms;
  /**
   * Tokens on the mirror's chain. They are registered with the mirror, and with the settlement
   * contract for the engine.
   */
  readonly tokens?: readonly TokenConfig[];
  readonly onProgress?: (step: string) => void;
}

/**
 * Brings another chain to a mirror of a recorded settlement contract, with the requested tokens.
 * Verifies recorded contracts instead of deploying them again, so a repeated or interrupted run
 * ends in the same state.
 *
 * @param by - pays on the mirror's chain
 * @param source - pays for the registrations on the settlement contract's chain
 */
export async function deployMirrorOf(
  by: Deployer,
  source: Deployer,
  options: MirrorOptions,
): Promise<Deployment> {
  const { record: path, tokens = [], onProgress = () => {} } = options;
  const found = await readRecord(path);
  if (found?.chainId !== source.chainId)
    throw new Error(
      `${path} names no settlement contract on chain ${source.chainId}; deploy one first`,
    );
  let deployment: Deployment = found;
  const { settlement } = found;
  const pending = pendingOf(path, by.chainId);
  const there = { ...by, pending };
  const save = async (mirror: MirrorRecord) => {
    const others = deployment.mirrors.filter(({ chainId }) => chainId !== by.chainId);
    deployment = { ...deployment, mirrors: [...others, mirror] };
    await writeRecord(path, deployment);
    await pending.clear();
  };
  const sourceOf = { sourceChainId: BigInt(source.chainId), sourceContract: settlement.address };
  const earlier = deployment.mirrors.find(({ chainId }) => chainId === by.chainId);
  onProgress(
    earlier
      ? `verifying StateMirror at ${earlier.address}`
      : `deploying StateMirror on chain ${by.chainId}`,
  );
  let mirror = earlier;
  if (mirror === undefined) {
    const { committee, threshold, changeDelay, maturity } = settlement;
    const asked = { committee, threshold, changeDelay, maturity, ...options.config };
    const deployed = await deployMirror(there, { ...asked, ...sourceOf });
    const accounts = { admin: lower(asked.admin), committee: ascending(asked.committee) };
    mirror = { ...asked, ...accounts, ...deployed, tokens: [], chainId: by.chainId };
    await save(mirror);
  } else await verifyMirror(there, { ...mirror, ...sourceOf });
  const recorded = mirror;
  const create = async (config: TokenConfig) => {
    onProgress(`deploying ${config.standard} ${config.symbol} on chain ${by.chainId}`);
    const token = await deployToken(there, recorded.address, config);
    await registerToken(source, settlement.address, { ...token, chainId: BigInt(by.chainId) });
    return token;
  };
  await deployMissing(tokens, recorded.tokens, create, (all) => save({ ...recorded, tokens: all }));
  return deployment;
}
