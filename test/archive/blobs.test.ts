import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MemoryLevel } from "memory-level";
import { type Hex, http, keccak256, toHex } from "viem";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { Archive } from "../../core/archive/archive.ts";
import { voidDuplicates } from "../../core/archive/duplicates.ts";
import { type RebuildOptions, rebuild } from "../../core/archive/follow.ts";
import { BeaconNode, BlobFolder, type BlobSource } from "../../core/archive/sources.ts";
import { exportExitKit, proveFromL1 } from "../../core/exit/export.ts";
import type { ViemCommitter } from "../../core/l1/connect.ts";
import { connectL1 } from "../../core/l1/connect.ts";
import type { Address, VaultId } from "../../core/model.ts";
import type { SealedBatch } from "../../core/ports.ts";
import { assetType } from "../../core/protocol/asset.ts";
import type { VaultEntry } from "../../core/protocol/batch-data.ts";
import * as blobBatch from "../../core/protocol/blob-batch.ts";
import { KzgThread } from "../../core/protocol/kzg/kzg-thread.ts";
import { batchRoot, manifestRoot } from "../../core/protocol/manifest.ts";
import { verifyVaultProof } from "../../core/protocol/proof.ts";
import { packVaultId } from "../../core/protocol/vault.ts";
import { versionedHash } from "../../core/protocol/versioned-hash.ts";
import { deploySettlement } from "../../scripts/deploy/settlement.ts";
import { deployToken } from "../../scripts/deploy/token.ts";
import { ADMIN, OPERATOR, USERS } from "../../scripts/sandbox/accounts.ts";
import { type Anvil, startAnvil } from "../anvil.ts";
import { adminOver, TERMS } from "../settlement/fixture.ts";

const OWNER = USERS[0].owner.address.toLowerCase() as Address;
const vaultOf = (batchNumber: number, slot: number): VaultId =>
  packVaultId({ mode: "zk-rollup", batchNumber, slot });

/** A service on a loopback port that answers a beacon node's question as told, or begins to. */
async function serve(
  answer: (path: string) => { status?: number; body: string | Uint8Array; isStalled?: boolean },
) {
  const asked: string[] = [];
  const server: Server = createServer((request, response) => {
    asked.push(request.url ?? "");
    const { status = 200, body, isStalled = false } = answer(request.url ?? "");
    response.writeHead(status).write(body);
    if (!isStalled) response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { url, asked, close };
}

/** The calls of a rebuild as an object, of which a test can replace one. */
function parts(l1: RebuildOptions["l1"]): RebuildOptions["l1"] {
  return {
    block: (at) => l1.block(at),
    blockNumber: () => l1.blockNumber(),
    events: (from, to) => l1.events(from, to),
    finalizedBlockNumber: () => l1.finalizedBlockNumber(),
    state: (at) => l1.state(at),
    registrations: (assets, at) => l1.registrations(assets, at),
    rollupData: (txHash) => l1.rollupData(txHash),
  };
}

describe("batches in blobs, on anvil", () => {
  let anvil: Anvil;
  let l1: ViemCommitter;
  const kzg = new KzgThread();
  let fromBlock: bigint;
  let sword: { readonly chainId: bigint; readonly assetType: Hex };
  const blobs: Uint8Array[] = [];
  const data: Uint8Array[] = [];

  const entry = (id: number): VaultEntry => ({
    ...sword,
    owner: OWNER,
    amount: 1n,
    mintingBlob: toHex(`${id}`),
  });

  async function sealed(batchNumber: number, slots: readonly VaultEntry[]): Promise<SealedBatch> {
    const batch = blobBatch.encodeBlobBatch(slots);
    const hashes = await Promise.all(
      blobBatch.blobsIn(batch).map(async (blob) => versionedHash(await kzg.commitment(blob))),
    );
    const content = blobBatch.blobContent(
      batch.vaultCount,
      blobBatch.manifestHash(batch.assets),
      hashes,
    );
    const root = batchRoot("blobs", manifestRoot(batch.assets), content);
    const { vaultCount, assets } = batch;
    const place = { mode: "zk-rollup", batchNumber } as const;
    return {
      ...place,
      vaultCount,
      assets,
      content,
      dataHash: content,
      batchRoot: root,
      data: blobBatch.blobBatchData(batch),
    };
  }

  beforeAll(async () => {
    anvil = await startAnvil();
    const by = await adminOver(http(anvil.url));
    const settlement = await deploySettlement(by, { ...TERMS, maturity: 1n });
    const token = {
      standard: "erc721",
      name: "Swords",
      symbol: "SWRD",
      admin: ADMIN.address,
    } as const;
    const { address } = await deployToken(by, settlement.address, token);
    fromBlock = settlement.deployedAtBlock;
    sword = { chainId: 31_337n, assetType: assetType("erc721", address, 1n) };
    const fees = { finality: { confirmations: 1n }, pollingMs: 5, kzg } as const;
    l1 = await connectL1({
      rpc: anvil.url,
      contract: settlement.address,
      account: OPERATOR,
      ...fees,
    });
    const batches = [Array.from({ length: 4_100 }, (_, i) => entry(i)), [entry(7), entry(9_000)]];
    for (const [batchNumber, slots] of batches.entries()) {
      const batch = await sealed(batchNumber, slots);
      const receipt = await l1.commit(batch, (await l1.state()).history, "0x");
      // The first batch ever fills storage slots that the next ones use again.
      expect(receipt.gasUsed).toBeLessThan(batchNumber === 0 ? 120_000n : 100_000n);
      data.push(batch.data);
      blobs.push(
        ...blobBatch.blobsIn({
          elements: batch.data.subarray(batch.data.length % blobBatch.BLOB_BYTES),
        }),
      );
    }
    for (let block = 0; block < 2; block++)
      await by.client.request({ method: "evm_mine" as never });
  });
  afterAll(async () => {
    await kzg.close();
    await anvil.close();
  });
  const opened: { close(): Promise<unknown> }[] = [];
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((each) => each.close()));
  });

  async function openArchive(): Promise<Archive> {
    const archive = await Archive.open({ store: new MemoryLevel(), l1, kzg });
    opened.push(archive);
    return archive;
  }
  const rebuilt = (archive: Archive, options: Partial<RebuildOptions>) =>
    rebuild({ archive, l1, fromBlock, ...options });
  async function serving(answer: Parameters<typeof serve>[0]) {
    const service = await serve(answer);
    opened.push(service);
    return service;
  }

  test("are rebuilt from a beacon node after others failed, with proofs that L1 and JavaScript take", async () => {
    const down = await serving(() => ({ status: 503, body: "busy" }));
    const pruned = await serving(() => ({ status: 404, body: "{}" }));
    const bad = [
      await serving(() => ({ body: "no JSON" })),
      await serving(() => ({ body: JSON.stringify({ data: [toHex(new Uint8Array(5))] }) })),
      await serving(() => ({
        body: JSON.stringify({ data: [toHex(blobs[2]?.slice().fill(3, 1, 9) as Uint8Array)] }),
      })),
      await serving(() => ({ body: new Uint8Array(40_000_000) })),
    ];
    const slow = await serving(() => ({ body: '{"data":[', isStalled: true }));
    const nodes = [down, pruned, ...bad].map(({ url }) => new BeaconNode(`${url}/key`));
    nodes.push(new BeaconNode(slow.url, { timeoutMs: 300 }));
    const faults: string[] = [];
    const archive = await openArchive();
    const report = await rebuilt(archive, {
      blobs: [...nodes, new BeaconNode(anvil.url)],
      onFault: ({ name }, batchId) => faults.push(`${batchId}: ${name}`),
    });
    expect(report).toMatchObject({
      batches: { "zk-rollup": 2 },
      vaults: { "zk-rollup": 4_102 },
      missing: [],
    });
    expect(faults).toHaveLength(2 * 5);
    expect(faults.join()).not.toContain("key");
    expect(down.asked[0]).toMatch(
      /^\/key\/eth\/v1\/beacon\/blobs\/0x[0-9a-f]{64}\?versioned_hashes=0x01/,
    );
    expect(keccak256((await archive.data("zk-rollup", 0)) ?? "0x")).toBe(
      keccak256(data[0] ?? "0x"),
    );
    for (const vaultId of [vaultOf(0, 0), vaultOf(0, 4_099), vaultOf(1, 1)]) {
      const proof = await archive.vaultProof(vaultId);
      expect(await l1.verifyVault(proof)).toBe(0n);
      expect(verifyVaultProof(proof.batchRoot, proof)).toBe(true);
      const other = { ...proof.vault, owner: ADMIN.address.toLowerCase() as Address };
      expect(verifyVaultProof(proof.batchRoot, { ...proof, vault: other })).toBe(false);
    }
  });

  test("are rebuilt from peers alone after pruning, and by a kit without any store", async () => {
    const whole = await openArchive();
    await rebuilt(whole, { blobs: [new BeaconNode(anvil.url)] });
    const peer = {
      name: "peer",
      batchData: async (mode: "validium" | "zk-rollup", n: number) => whole.data(mode, n),
    };
    const liar = {
      name: "liar",
      batchData: async () => (data[1] as Uint8Array).slice().fill(1, -64),
    };
    const archive = await openArchive();
    const faults: string[] = [];
    // A contract may commit blobs too. Then the transaction's calldata is the contract's own.
    const rollupData = () => Promise.reject(new Error("no calldata of the settlement contract"));
    const report = await rebuilt(archive, {
      l1: { ...parts(l1), rollupData },
      sources: [liar, peer],
      onFault: ({ name }) => faults.push(name),
    });
    expect(report.missing).toEqual([]);
    expect(faults).toEqual(["liar", "liar"]);
    expect(keccak256((await archive.data("zk-rollup", 1)) ?? "0x")).toBe(
      keccak256(data[1] ?? "0x"),
    );
    const kit = await exportExitKit(
      await proveFromL1(vaultOf(1, 1), { l1, fromBlock, sources: [liar, peer], kzg }),
      l1,
    );
    expect(kit.vault).toMatchObject({ owner: OWNER, mintingBlob: toHex("9000") });
  });

  test("are rebuilt from a folder and a beacon node that have one blob each", async () => {
    const folder = await mkdtemp(join(tmpdir(), "mintmark-blobs-"));
    try {
      const hashes = await Promise.all(
        blobs.map(async (blob) => versionedHash(await kzg.commitment(blob))),
      );
      await writeFile(join(folder, `${hashes[0]}.blob`), blobs[0] as Uint8Array);
      await writeFile(join(folder, `${hashes[2]}.blob`), "too short");
      const second = await serving(() => ({
        body: JSON.stringify({ data: [toHex(blobs[1] as Uint8Array)] }),
      }));
      const archive = await openArchive();
      const sources: BlobSource[] = [new BlobFolder(folder), new BeaconNode(second.url)];
      const faults: string[] = [];
      const report = await rebuilt(archive, {
        blobs: sources,
        onFault: (_, batchId) => faults.push(batchId),
      });
      expect(report.missing).toEqual(["zk-rollup-1"]);
      expect(faults).toEqual(["zk-rollup-1"]);
      const asked = second.asked.filter((path) => path.includes(`${hashes[1]}`));
      expect(asked).toHaveLength(1);
      expect(asked[0]).not.toContain(hashes[0]);
      await expect(archive.vaultProof(vaultOf(1, 0))).rejects.toMatchObject({
        code: "proof_not_ready",
      });
      await writeFile(join(folder, `${hashes[2]}.blob`), blobs[2] as Uint8Array);
      expect((await rebuilt(archive, { blobs: [new BlobFolder(folder)] })).missing).toEqual([]);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test("let anyone void the later of two vaults of one token", async () => {
    const archive = await openArchive();
    await rebuilt(archive, { blobs: [new BeaconNode(anvil.url)] });
    expect(await voidDuplicates({ archive, portal: l1 })).toBe(1);
    expect(await l1.withdrawn(vaultOf(1, 0), "erc721")).toBe(1n);
  });
});
