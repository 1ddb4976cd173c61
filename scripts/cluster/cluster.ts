import { orAborted } from "../../core/abort.ts";
import { leaderOf, minterOf, settled, startWorld, stateOf, vaultsOf, type World } from "./world.ts";

const MINTS = 100;

type ClusterReport = Awaited<ReturnType<typeof runCluster>>;

/**
 * Mints in a cluster on this machine, kills the leader, and reports the outcome of each mint. After
 * an abort it ends the cluster's processes.
 */
export async function runCluster(
  folder: string,
  seconds: number,
  onProgress: (step: string) => void,
  signal: AbortSignal,
) {
  await using world = await startWorld(folder, (step) => {
    signal.throwIfAborted();
    onProgress(step);
  });
  return await orAborted(measured(world, seconds, onProgress), signal);
}

async function measured(world: World, seconds: number, onProgress: (step: string) => void) {
  const { members, facts } = world;
  const minter = minterOf(world, MINTS);
  onProgress("minting");
  await minter.mintFor(seconds * 1_000);
  const leader = await leaderOf(members);
  onProgress(
    `killing the leader, ${leader.name}, after ${minter.acknowledged.length} acknowledged mints`,
  );
  const killedAt = performance.now();
  await leader.kill();
  await minter.mint();
  const gapSeconds = (performance.now() - killedAt) / 1_000;
  onProgress(`the next mint was acknowledged ${gapSeconds.toFixed(1)} s later; minting on`);
  await minter.mintFor(seconds * 1_000);

  onProgress("looking for each acknowledged mint, and comparing the servers");
  const living = members.filter((member) => member !== leader);
  const url = living[0]?.url ?? "";
  const held = await vaultsOf(url, facts.apiKey, facts.users[0]?.userId ?? "");
  const commitments = await settled(living);
  const { committed } = await stateOf(url);
  return {
    servers: members.length,
    killed: leader.name,
    leader: (await leaderOf(living)).name,
    gapSeconds,
    acknowledged: minter.acknowledged.length,
    // Acknowledged vaults in the new leader's store, and all vaults of the application.
    found: minter.acknowledged.filter((vaultId) => held.has(vaultId)).length,
    vaults: held.size,
    // All running servers have everything by then.
    commitments,
    batchesOnL1: committed.countRollup,
  };
}

export function clusterScreen(report: ClusterReport): string {
  const {
    servers,
    killed,
    leader,
    gapSeconds,
    acknowledged,
    found,
    vaults,
    commitments,
    batchesOnL1,
  } = report;
  const isSame = new Set(commitments).size === 1;
  return [
    "",
    `  ${servers} servers, PostgreSQL with a synchronous standby; SIGKILL to the leader, ${killed}`,
    `  ${leader} took over     ${gapSeconds.toFixed(1)} s from the kill to the next acknowledged mint`,
    `  acknowledged      ${acknowledged} mints`,
    `  found             ${found} of them, and ${vaults - found} others`,
    `  state             ${isSame ? "equal on all servers" : "DIFFERENT"}: ${commitments.join(" ")}`,
    `  on L1             ${batchesOnL1} batches`,
    "",
    isWhole(report) ? "Nothing was lost, nothing was minted twice." : "SOMETHING WENT WRONG.",
    "",
  ].join("\n");
}

export function isWhole({
  acknowledged,
  found,
  vaults,
  commitments,
  batchesOnL1,
}: ClusterReport): boolean {
  return (
    found === acknowledged && vaults === found && new Set(commitments).size === 1 && batchesOnL1 > 0
  );
}
