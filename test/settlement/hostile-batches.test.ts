import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { MemoryLevel } from "memory-level";
import { BaseError, ContractFunctionRevertedError, stringify, toHex } from "viem";
import { afterAll, expect, test } from "vitest";
import type { Archive } from "../../core/archive/archive.ts";
import { chainProof, type DerivedBatch, deriveBatch } from "../../core/archive/derive.ts";
import { follow } from "../../core/archive/follow.ts";
import { type Hex, type Mode, openEngine, restoreStore, type VaultId } from "../../core/index.ts";
import { stateCommitmentAbi as abi } from "../../core/l1/abi.ts";
import { withdrawalArguments } from "../../core/l1/arguments.ts";
import type { SealedBatch } from "../../core/ports.ts";
import { assetType } from "../../core/protocol/asset.ts";
import type { VaultEntry } from "../../core/protocol/batch-data.ts";
import { encodeBatchData } from "../../core/protocol/batch-data.ts";
import { blobBatchData, blobsIn, encodeBlobBatch } from "../../core/protocol/blob-batch.ts";
import { KzgThread } from "../../core/protocol/kzg/kzg-thread.ts";
import { verifyVaultProof } from "../../core/protocol/proof.ts";
import { packVaultId } from "../../core/protocol/vault.ts";
import { versionedHash } from "../../core/protocol/versioned-hash.ts";
import { LevelJournal } from "../../core/store/level-store.ts";
import { deployToken } from "../../scripts/deploy/token.ts";
import { ADMIN, COMMITTEE, USERS } from "../../scripts/sandbox/accounts.ts";
import { SETTLEMENT_OPERATIONS } from "../../server/process/operator/settlement.ts";
import { openArchive } from "../archive/fixture.ts";
import { at, commitUnseen, createWorld, MATURITY, pointOn } from "./fixture.ts";

const NOBODY = `0x${"00".repeat(20)}` as const;
const FAR = {
  standard: "erc20",
  chainId: 5n,
  contractAddress: `0x${"fa".repeat(20)}`,
  quantum: 1n,
} as const;
/** It comes last in a list of assets, so that the words of the others name L1's manifest. */
const GHOST = { chainId: 31_337n, assetType: `0x${"ff".repeat(32)}` } as const;
const SLOTS = 10;

const kzg = new KzgThread();
const world = await createWorld({ fees: { kzg } });
afterAll(async () => {
  await world.close();
  await kzg.close();
});

let seed = Date.now() % 1_000_000;
const started = seed;
function below(bound: number): number {
  seed = (seed * 48_271 + 11) % 2_147_483_647;
  return seed % bound;
}
const oneOf = <T>(values: readonly T[]): T => at(values, below(values.length));

type Kind = "validium" | "calldata" | "blobs";
type Asset = Pick<VaultEntry, "chainId" | "assetType"> & { readonly standard: string };
interface Hostile extends SealedBatch {
  readonly derived: DerivedBatch;
  readonly entries: readonly (VaultEntry | null)[];
}

let tokenId = 100;
function entryOf(assets: readonly Asset[], kind: Kind): VaultEntry | null {
  if (below(10) === 0) return null;
  const { standard, ...asset } = oneOf(assets);
  const owner = below(4) === 0 ? NOBODY : (at(USERS, below(2)).owner.address.toLowerCase() as Hex);
  const free = {
    amount: oneOf([1n, 1n, 5n]),
    mintingBlob: oneOf<Hex>(["0x", toHex(`${tokenId++}`), toHex(`text ${tokenId++}`)]),
  };
  // The contract itself refuses other forms of calldata.
  const mintingBlob = standard === "erc20" ? "0x" : toHex(`${tokenId++}`);
  const lawful = { amount: standard === "erc721" ? 1n : free.amount, mintingBlob } as const;
  return { ...asset, owner, ...(kind === "calldata" || below(2) === 0 ? lawful : free) };
}

/** A batch that no Mintmark engine makes. */
async function hostile(
  kind: Kind,
  batchNumber: number,
  assets: readonly Asset[],
): Promise<Hostile> {
  const mode = kind === "validium" ? "validium" : "zk-rollup";
  const unregistered = kind === "validium" ? [{ ...GHOST, standard: "erc721" }] : [];
  const entries = Array.from({ length: SLOTS }, () => entryOf([...assets, ...unregistered], kind));
  entries.push({
    ...at(assets, 0),
    owner: at(USERS, 0).owner.address,
    amount: 7n,
    mintingBlob: "0x",
  } as VaultEntry);
  if (kind !== "blobs") {
    const data = encodeBatchData(entries);
    const listed = deriveBatch(mode, batchNumber, data).assets;
    const unnamed = [...listed.keys()].filter(
      (place) => listed[place]?.assetType === GHOST.assetType,
    );
    const derived = deriveBatch(mode, batchNumber, data, { unnamed });
    return { mode, batchNumber, data, entries, derived, ...derived };
  }
  const batch = encodeBlobBatch(entries);
  // An element that is no vault's.
  batch.elements.fill(0x11, 0, 32);
  const data = blobBatchData(batch);
  const commitments = await Promise.all(blobsIn(batch).map((blob) => kzg.commitment(blob)));
  const derived = deriveBatch(mode, batchNumber, data, {
    versionedHashes: commitments.map(versionedHash),
  });
  return { mode, batchNumber, data, entries: [null, ...entries.slice(1)], derived, ...derived };
}

async function commit(batch: Hostile): Promise<void> {
  const { l1 } = world;
  if (batch.mode === "validium") await commitUnseen(l1, batch);
  else await l1.commit(batch, (await pointOn(l1)).history, "0x");
}

/** Whether the contract pays a vault to its owner, who has waited. */
async function isPaidByL1(
  { derived, mode, batchNumber }: Hostile,
  vaultId: VaultId,
  archive: Archive,
): Promise<boolean> {
  const header = await archive.commit(mode, batchNumber);
  if (header === null) throw new Error("L1 has no such batch");
  try {
    const noMade = () => Promise.reject(new Error("no vault of a batch is made"));
    const read = async () => ({ commit: header, batch: derived });
    const proof = await chainProof(vaultId, kzg, noMade, read);
    const { owner, amount } = proof.vault;
    if (owner === NOBODY) return false;
    await world.chain.client.simulateContract({
      abi,
      address: world.chain.settlement.address,
      account: owner,
      functionName: "withdraw",
      args: withdrawalArguments({
        ...proof,
        quantity: amount,
        recipient: at(USERS, 2).owner.address,
        authorization: null,
      }),
    });
    return true;
  } catch (error) {
    const isRevert =
      error instanceof BaseError &&
      error.walk((each) => each instanceof ContractFunctionRevertedError);
    if (!isRevert && (error as { code?: string }).code !== "vault_not_found") throw error;
    return false;
  }
}

/** One server with the chain's RPC and the routes of a member that has all data. */
async function serve(batches: readonly Hostile[]) {
  const server = createServer(async (request, response) => {
    if (request.method === "GET") {
      const wanted = batches.find(({ mode, batchNumber }) =>
        request.url?.includes(`/${mode}-${batchNumber}/data`),
      );
      response.writeHead(wanted === undefined ? 404 : 200).end(wanted?.data);
      return;
    }
    const { id, method, params } = JSON.parse(await text(request));
    const answer = await world.chain.rpc(method, params).then(
      (result) => ({ result }),
      ({ code, message }) => ({ error: { code, message } }),
    );
    response.writeHead(200).end(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    close: () => new Promise((resolve) => server.close(resolve).closeAllConnections()),
  };
}

async function verdict(asked: Promise<unknown>): Promise<string> {
  return asked.then(
    () => "paid",
    (error) => error.code,
  );
}

test("a successor adopts any hostile history, and counts exactly what L1 pays", {
  timeout: 900_000,
}, async () => {
  const { chain, l1, engine, engineStore, settler, principal } = world;
  const own = await Promise.all(
    [...world.assets].map(async ([standard, assetId]): Promise<Asset> => {
      const { chainId, assetType } = await engine.assets.get(principal.applicationId, assetId);
      return { standard, chainId, assetType };
    }),
  );
  const late = await deployToken(chain.by, chain.settlement.address, {
    ...({ standard: "erc721", name: "Late", symbol: "LATE", admin: ADMIN.address } as const),
  });
  await l1.registerAsset({ ...FAR, mintingBlobScheme: "mintmark" });
  const strange: Asset[] = [
    { standard: "erc721", chainId: 31_337n, assetType: assetType("erc721", late.address, 1n) },
    {
      standard: "erc20",
      chainId: FAR.chainId,
      assetType: assetType(FAR.standard, FAR.contractAddress, FAR.quantum),
    },
  ];
  await world.mint("erc20", "validium", "", 3);
  await engine.operator.seal("validium");
  const batches: Hostile[] = [];
  for (const [kind, number] of [
    ["validium", 0],
    ["calldata", 0],
    ["blobs", 1],
    ["validium", 1],
    ["blobs", 2],
  ] as const) {
    const batch = await hostile(kind, number, [...own, ...strange]);
    await commit(batch);
    batches.push(batch);
  }
  await expect(settler.round()).rejects.toMatchObject({ code: "history_diverged" });
  await chain.mine(30);
  const batchData = async (mode: Mode, number: number) =>
    batches.find((batch) => batch.mode === mode && batch.batchNumber === number)?.data ?? null;
  const { deployedAtBlock: fromBlock } = chain.settlement;
  const sources = [{ name: "anybody", batchData }];
  const server = await serve(batches);
  const members = `${at(COMMITTEE, 0).address}=${server.url}`;
  const command = SETTLEMENT_OPERATIONS["batches.adopt"];
  const adopt = (options: object) => {
    const input = command.input.parse({
      rpc: server.url,
      fromBlock: `${fromBlock}`,
      confirmations: "20",
      ...options,
    });
    return command.run(engine, input, { signal: new AbortController().signal, progress: () => {} });
  };
  await expect(adopt({})).rejects.toMatchObject({
    code: "l1_failed",
    message: expect.stringContaining("--peers"),
  });
  expect(await adopt({ members })).toMatchObject({ batches: batches.length });
  await server.close();
  await settler.round();
  expect(engine.operator.history()).toBe((await l1.state()).history);
  expect((await engine.operator.verify()).problems).toEqual([]);
  await chain.passSeconds(MATURITY);

  const archive = await openArchive({ l1 });
  await follow({ archive, l1, fromBlock, sources });
  expect(await archive.missing()).toEqual([]);
  const journal = await LevelJournal.open(new MemoryLevel());
  await engine.operator.backup(journal);
  const copy = new MemoryLevel<Uint8Array, Uint8Array>();
  await restoreStore(journal, copy);
  const opened = { settlement: l1.settlement, environment: "sandbox", kzg } as const;
  await using restored = await openEngine({ store: copy, ...opened });
  let paid = 0;
  for (const batch of batches) {
    for (const [slot, entry] of batch.entries.entries()) {
      const vaultId = packVaultId({ ...batch, slot });
      const name = `seed ${started}, vault ${vaultId}: ${stringify(entry)}`;
      // Only a mirror of that chain could pay it.
      const isFar =
        entry?.chainId === FAR.chainId && entry.owner !== NOBODY && entry.mintingBlob === "0x";
      const isPaid = isFar || (entry !== null && (await isPaidByL1(batch, vaultId, archive)));
      paid += isPaid ? 1 : 0;
      const proof = restored.proofs.vault(vaultId);
      expect(await verdict(proof), name).toBe(isPaid ? "paid" : "vault_void");
      if (isPaid) expect(verifyVaultProof((await proof).batchRoot, await proof), name).toBe(true);
      const archived = await verdict(archive.vaultProof(vaultId));
      expect(isPaid ? archived : archived.startsWith("vault_"), name).toBe(isPaid ? "paid" : true);
    }
  }
  expect(paid).toBeGreaterThan(4);
  await archive.close();

  // The successor goes on, also after a restart.
  await world.mint("erc20", "zk-rollup", "", 3);
  await settler.round();
  expect(await l1.state()).toEqual({
    ...engine.batches.state(),
    history: engine.operator.history(),
  });
  expect((await engine.operator.verify()).problems).toEqual([]);
  await engine.close();
  await using again = await openEngine({ store: engineStore, ...opened });
  expect((await again.operator.verify()).problems).toEqual([]);
});
