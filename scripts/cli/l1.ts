import { mkdir } from "node:fs/promises";
import type { Level } from "level";
import { BeaconNode, BlobFolder, HttpBatchSource } from "../../core/archive/sources.ts";
import { pause } from "../../core/backoff.ts";
import type { Address, Hash } from "../../core/index.ts";
import type { connectL1 } from "../../core/l1/index.ts";
import { packVaultId } from "../../core/protocol/vault.ts";
import type { Running } from "../../server/process/operator/operation.ts";
import type {
  SignerSettings,
  SourceSettings,
} from "../../server/process/settings/process-settings.ts";
import { EXIT, UsageError } from "./exit.ts";

const POLL_MS = 1_000;

type ChainSettings = Pick<SignerSettings, "MINTMARK_RPC_URL" | "MINTMARK_CONTRACT"> &
  Partial<Pick<SignerSettings, "MINTMARK_CONFIRMATIONS">>;

/** The settlement contract that settings name, on its chain. */
export function chainOf({
  MINTMARK_RPC_URL: rpc,
  MINTMARK_CONTRACT: contract,
  ...settings
}: ChainSettings) {
  const { MINTMARK_CONFIRMATIONS: confirmations } = settings;
  return {
    rpc,
    contract,
    ...(confirmations !== undefined && { finality: { confirmations: BigInt(confirmations) } }),
  };
}

export type Chain = Awaited<ReturnType<typeof connectL1>>;

/**
 * Waits for what the account sends. An account without ether is named as one, because nodes have
 * many words for it.
 */
export async function ifFunded<T>(l1: Chain, sending: Promise<T>, advice: string): Promise<T> {
  return sending.catch(async (error: unknown) => {
    if ((await l1.operatorBalance()) > 0n) throw error;
    throw new Error(advice);
  });
}

/**
 * The vaults that L1 made in a mined transaction. A reorganisation can bring it into another block.
 *
 * @param isAwaited - whether to wait until they are final
 */
export async function makingOf(
  l1: Chain,
  txHash: Hash,
  isAwaited: boolean,
  { signal, progress }: Running,
) {
  for (;;) {
    const made = await l1.making(txHash);
    const final = await l1.finalizedBlockNumber();
    if (made !== null) {
      const { blockNumber } = made;
      const blocksToFinal = blockNumber > final ? blockNumber - final : 0n;
      if (blocksToFinal === 0n || !isAwaited) return { ...made, blocksToFinal };
      progress(`the new vaults are final in about ${blocksToFinal} blocks`);
    }
    await pause(POLL_MS, signal);
  }
}

/** The new vaults of a mined renewal or trade, as their commands answer them. */
export async function madeIn(l1: Chain, txHash: Hash, isAwaited: boolean, running: Running) {
  const { making, vaults, blockNumber, blocksToFinal } = await makingOf(
    l1,
    txHash,
    isAwaited,
    running,
  );
  if (blocksToFinal > 0n)
    process.stderr.write(
      `final in about ${blocksToFinal} blocks; until then, a reorganisation can change the ids\n`,
    );
  return vaults.map(({ owner, assetType, amount, mintingBlob }, slot) => ({
    vaultId: packVaultId({ mode: "made", batchNumber: Number(making), slot }),
    ownerAddress: owner,
    assetType,
    mintingBlob,
    amount,
    txHash,
    blockNumber,
  }));
}

export function unfunded(account: Address): string {
  return `${account} has no ether to pay for gas: fund it`;
}

/**
 * Opens a LevelDB folder, created if missing. Rejects with a plain sentence when another process
 * has it, and ends this process when it no longer holds the folder.
 */
export async function openLevel(
  folder: string,
  taken = `another process has ${folder} open; stop it first`,
): Promise<Level<Uint8Array, Uint8Array>> {
  const [{ Level }, { LevelLock }, { MAX_OPEN_FILES }] = await Promise.all([
    import("level"),
    import("../../core/store/level-lock.ts"),
    import("../../core/store/level-store.ts"),
  ]);
  await mkdir(folder, { recursive: true });
  const lock = await LevelLock.take(folder);
  const store = new Level<Uint8Array, Uint8Array>(folder, {
    keyEncoding: "view",
    valueEncoding: "view",
    maxOpenFiles: MAX_OPEN_FILES,
  });
  try {
    await store.open();
  } catch (error) {
    const { code } = ((error as Error).cause ?? {}) as { readonly code?: string };
    throw code === "LEVEL_LOCKED" ? new UsageError(taken) : error;
  }
  lock.lost.addEventListener("abort", () => {
    process.stderr.write(`error: ${lock.lost.reason.message}\n`);
    process.exit(EXIT.unreachable);
  });
  store.hooks.prewrite.add(() => lock.requireHeld());
  store.once("closed", () => lock[Symbol.dispose]());
  return store;
}

/** The sources of batch data that the settings name: of blobs, and of whole batches. */
export function sourcesOf({
  MINTMARK_BEACONS,
  MINTMARK_BLOBS: folder,
  MINTMARK_PEERS,
}: SourceSettings) {
  return {
    blobs: [
      ...(folder === undefined ? [] : [new BlobFolder(folder)]),
      ...MINTMARK_BEACONS.map((url) => new BeaconNode(url)),
    ],
    sources: MINTMARK_PEERS.map((url) => new HttpBatchSource(url)),
  };
}
