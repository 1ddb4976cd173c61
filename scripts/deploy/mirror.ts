import type { Address, Hex } from "viem";
import { committeeHash } from "../../core/protocol/attestation.ts";
import { isCodeOf, readArtifact } from "./artifact.ts";
import { type Deployed, type Deployer, deployContract, lower } from "./deployer.ts";

/** Constructor of `StateMirror`; see the contract for what each may do. */
export interface MirrorConfig {
  readonly admin: Address;
  readonly sourceChainId: bigint;
  /** The settlement contract on that chain. */
  readonly sourceContract: Address;
  /** In any order; kept ascending. */
  readonly committee: readonly Address[];
  readonly threshold: number;
  /** Seconds. */
  readonly changeDelay: bigint;
  /** Seconds. */
  readonly maturity: bigint;
}

/** Deploys a mirror on this chain and reads back that it is what was asked for. */
export async function deployMirror(by: Deployer, config: MirrorConfig): Promise<Deployed> {
  const committee = config.committee.map(lower).toSorted();
  const deployed = await deployContract(by, "StateMirror", [{ ...config, committee }]);
  await verifyMirror(by, deployed.address, { ...config, committee });
  return deployed;
}

/** Rejects and names the first thing in which a mirror differs from its configuration. */
export async function verifyMirror(by: Deployer, address: Address, config: MirrorConfig): Promise<void> {
  const artifact = await readArtifact("StateMirror");
  if (!isCodeOf(artifact, await by.client.getCode({ address }))) {
    throw new Error(`${address} on chain ${by.chainId} does not hold this version's StateMirror; deploy one first`);
  }
  const read = (functionName: string, args: readonly unknown[] = []) =>
    by.client.readContract({ abi: artifact.abi, address, functionName, args });
  const [committee, epoch] = (await read("committee")) as [Hex, bigint];
  const members = config.committee.map(lower).toSorted();
  const checks: readonly (readonly [string, unknown, unknown])[] = [
    ["sourceChainId", await read("sourceChainId"), config.sourceChainId],
    ["sourceContract", lower((await read("sourceContract")) as Address), lower(config.sourceContract)],
    ["changeDelay", await read("changeDelay"), config.changeDelay],
    ["maturity", await read("maturity"), config.maturity],
    ["admin role", await read("hasRole", [await read("DEFAULT_ADMIN_ROLE"), config.admin]), true],
    ["committee", committee, committeeHash(epoch, { threshold: config.threshold, members })],
  ];
  for (const [what, found, expected] of checks) {
    if (found !== expected)
      throw new Error(`${what} of mirror ${address} is ${String(found)}, not ${String(expected)}`);
  }
}
