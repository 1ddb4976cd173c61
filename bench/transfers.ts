import { signRecoverable } from "tiny-secp256k1";
import { type Address, type Hex, recoverAddress } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import type { Engine, Hash, TransferRequest, VaultId } from "../core/index.ts";
import { transfersDigest } from "../core/protocol/transfer.ts";
import { open, SETTLEMENT, SINGLE_CALLERS, settle } from "./engine-workload.ts";
import { costOf, fromCallers, inFolder, medians, type Progress, type Section } from "./harness.ts";
import type { Row } from "./report.ts";

/** Owners, each with a key of its own. */
const OWNERS = 64;
const LENGTHS = [1, 64] as const;
const ROUNDS = 3;
const PER_ROUND = 4_096;
const RECOVERIES = 500;
const REFERENCE = "engine, one signature each";

export type World = Awaited<ReturnType<typeof worldIn>>;
type Owner = World["owners"][number];

export async function worldIn(engine: Engine) {
  const { principal, apiKey, assets } = await settle(engine);
  await engine.operator.recordRegistered(assets.items, { transferable: true });
  const owners = Array.from({ length: OWNERS }, (_, i) => {
    const key = Buffer.alloc(32, i + 1);
    return {
      key,
      address: privateKeyToAccount(`0x${key.toString("hex")}`).address.toLowerCase() as Address,
    };
  });
  return { engine, principal, apiKey, assetId: assets.items, owners };
}

/** Mints a vault for each id, and lets L1 commit them. Returns each owner's vaults. */
export async function mint(
  { engine, principal, assetId, owners }: World,
  firstId: number,
  count: number,
) {
  const vaults = new Map<Owner, VaultId[]>();
  for (const [i, owner] of owners.entries()) {
    const mints = Array.from({ length: count / OWNERS }, (_, j) => ({
      assetId,
      mintingBlob: `0x${Buffer.from(String(firstId + i * (count / OWNERS) + j)).toString("hex")}`,
      amount: 2,
      dataAvailabilityMode: "validium" as const,
    }));
    const { transactions } = await engine.mint(principal, {
      users: [{ ownerAddress: owner.address, mints }],
    });
    const ids = Array.from(transactions, ({ vaultId }) => vaultId);
    vaults.set(owner, ids);
  }
  await engine.operator.seal("validium");
  for (let number = 0; number < engine.batches.state().countValidium; number++) {
    if ((await engine.batches.get("validium", number)).status !== "sealed") continue;
    const { batchRoot, dataHash, vaultCount } = await engine.batches.getSealed("validium", number);
    const blockNumber = BigInt(number + 1);
    const at = {
      txHash: batchRoot,
      blockNumber,
      logIndex: 0,
      committedAt: blockNumber,
      sequence: BigInt(number),
    };
    const header = { batchNumber: number, batchRoot, dataHash, vaultCount };
    const event = { type: "batchCommitted", mode: "validium", ...header, ...at } as const;
    await engine.operator.recordEvents(SETTLEMENT.chainId, [event], blockNumber);
    await engine.operator.recordFinalized(SETTLEMENT.chainId, blockNumber);
  }
  return vaults;
}

function signed(key: Uint8Array, message: Omit<TransferRequest, "signature">): TransferRequest {
  return { ...message, signature: signatureOf(key, transfersDigest(SETTLEMENT, message)) };
}

/** A key's signature over a digest. viem takes a millisecond for each. */
export function signatureOf(key: Uint8Array, digest: Hash): Hex {
  const { signature, recoveryId } = signRecoverable(Buffer.from(digest.slice(2), "hex"), key);
  return `0x${Buffer.from(signature).toString("hex")}${recoveryId === 0 ? "1b" : "1c"}`;
}

/** Lists of a length over all of these vaults, each to the next owner. */
function lists(
  { owners }: World,
  vaults: Map<Owner, VaultId[]>,
  length: number,
): TransferRequest[] {
  const deadline = BigInt(Math.floor(Date.now() / 1_000)) + 86_400n;
  return owners.flatMap((owner, i) => {
    const to = (owners[(i + 1) % OWNERS] as Owner).address;
    const ids = vaults.get(owner) ?? [];
    return Array.from({ length: ids.length / length }, (_, j) => {
      const transfers = ids
        .slice(j * length, (j + 1) * length)
        .map((vaultId) => ({ vaultId, amount: 0n, to }));
      return signed(owner.key, { transfers, deadline });
    });
  });
}

/** Medians of the rounds after the first one, which compiles the hot code. */
async function measured(
  transfers: number,
  prepare: (round: number) => Promise<() => Promise<unknown>>,
) {
  const rounds: Record<"rate" | "loop" | "cpu", number>[] = [];
  for (let i = 0; i <= ROUNDS; i++) {
    const { ms, loopUs, allUs } = await costOf(await prepare(i));
    rounds.push({
      rate: (transfers / ms) * 1_000,
      loop: loopUs / transfers,
      cpu: allUs / transfers,
    });
  }
  return medians(rounds.slice(1));
}

async function engineRow(length: number, progress: Progress): Promise<Row> {
  return inFolder(async (folder) => {
    await using engine = await open(folder);
    const world = await worldIn(engine);
    const send = (request: TransferRequest) => engine.transfers.request(world.principal, request);
    const values = await measured(PER_ROUND, async (i) => {
      progress(`transfers: ${length} for a signature, round ${i} of ${ROUNDS}`);
      const requests = lists(world, await mint(world, i * PER_ROUND, PER_ROUND), length);
      return () => fromCallers(SINGLE_CALLERS, requests, send);
    });
    return {
      label: length === 1 ? REFERENCE : `engine, one signature for ${length}`,
      ours: true,
      values,
    };
  });
}

/** Measures viem's recovery of signatures alone, for comparison with the engine's thread. */
async function viemRow(progress: Progress): Promise<Row> {
  progress("transfers: viem");
  const account = privateKeyToAccount(`0x${"7a".repeat(32)}`);
  const hash: Hex = `0x${"7b".repeat(32)}`;
  const signature = await account.sign({ hash });
  const values = await measured(RECOVERIES, async () => async () => {
    for (let j = 0; j < RECOVERIES; j++) await recoverAddress({ hash, signature });
  });
  return { label: "viem, signatures alone", ours: false, values: { ...values, loop: values.cpu } };
}

export const transfersSection: Section = {
  name: "transfers",
  title: "Signed transfers",
  method:
    "Through the public API over LevelDB, every check made, acknowledged when on disk. " +
    `${SINGLE_CALLERS} callers, ${OWNERS} owners, each gives whole vaults of ERC-1155 items ` +
    `to the next; wall-clock, the median of ${ROUNDS} rounds of ` +
    `${PER_ROUND.toLocaleString("en-US")} vaults. For comparison, viem's \`recoverAddress\` ` +
    "checks the signatures and nothing else.",
  columns: [
    { key: "rate", label: "transfers", unit: "a second", better: "higher" },
    { key: "loop", label: "the event loop's CPU", unit: "µs a transfer", better: "lower" },
    { key: "cpu", label: "all threads' CPU", unit: "µs a transfer", better: "lower" },
  ],
  reference: REFERENCE,
  async rows(progress) {
    const rows: Row[] = [];
    for (const length of LENGTHS) rows.push(await engineRow(length, progress));
    return [...rows, await viemRow(progress)];
  },
};
