import { getContractAddress, toHex } from "viem";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Archive } from "../../core/archive/archive.ts";
import { deriveBatch } from "../../core/archive/derive.ts";
import { type VoidedDuplicate, Watcher } from "../../core/archive/index.ts";
import type { Address, VaultId } from "../../core/index.ts";
import { advanceMirror, importBatch, voidOnMirror } from "../../core/mirror/relay.ts";
import { assetType } from "../../core/protocol/asset.ts";
import { encodeBatchData } from "../../core/protocol/batch-data.ts";
import { packVaultId } from "../../core/protocol/vault.ts";
import { lower, send } from "../../scripts/deploy/deployer.ts";
import { deployToken } from "../../scripts/deploy/token.ts";
import { ADMIN, GUARDIAN, THRESHOLD, USERS } from "../../scripts/sandbox/accounts.ts";
import { openArchive } from "../archive/fixture.ts";
import { at, MATURITY } from "../settlement/fixture.ts";
import { CONFIRMATIONS, createMirrorWorld, type MirrorWorld } from "./fixture.ts";

const THIEF = at(USERS, 0).owner;

describe("ERC-721 tokens of another chain that a hostile operator mints twice", () => {
  let world: MirrorWorld;
  /** Made from the settlement chain alone; the watcher's. */
  let archive: Archive;
  let batches = 0;

  beforeAll(async () => {
    world = await createMirrorWorld();
    archive = await openArchive(world.near);
  });
  afterAll(async () => {
    await archive.close();
    await world.close();
  });

  /**
   * Commits one batch of these identifiers, whoever has them, makes it final, and brings it to the
   * archive.
   */
  async function commit(token: Address, texts: readonly string[]): Promise<VaultId[]> {
    const { near, far } = world;
    const entries = texts.map((text) => ({
      chainId: BigInt(far.by.chainId),
      owner: lower(THIEF.address),
      assetType: assetType("erc721", token, 1n),
      amount: 1n,
      mintingBlob: toHex(text),
    }));
    const data = encodeBatchData(entries);
    const batchNumber = batches++;
    const batch = {
      mode: "zk-rollup",
      ...deriveBatch("zk-rollup", batchNumber, data),
      batchNumber,
      data,
    } as const;
    await near.l1.commit(batch, (await near.l1.state()).history, "0x");
    await near.chain.mine(Number(CONFIRMATIONS));
    await new Watcher({
      archive,
      l1: near.l1,
      fromBlock: near.chain.settlement.deployedAtBlock,
    }).round();
    return texts.map((_, slot) => packVaultId({ mode: "zk-rollup", batchNumber, slot }));
  }

  const relay = () =>
    advanceMirror({
      ...world,
      committee: { members: world.attesters, threshold: THRESHOLD, timeoutMs: 20_000 },
    });

  async function watch(): Promise<(readonly [VaultId, VaultId])[]> {
    const voided: VoidedDuplicate[] = [];
    const mirror = await world.far.mirrorBy(GUARDIAN);
    await voidOnMirror({
      archive,
      source: world.source,
      mirror,
      onVoided: (each) => voided.push(each),
    });
    return voided.map(({ earlier, later }) => [earlier, later] as const);
  }

  /** The thief tries this when the vault is mature: its batch is imported only then. */
  async function steal(vaultId: VaultId): Promise<unknown> {
    const mirror = await world.far.mirrorBy(THIEF);
    const { vault, siblings, assetPath } = await archive.vaultProof(vaultId);
    const header = await importBatch(
      { source: world.source, mirror },
      "zk-rollup",
      Number((vaultId >> 20n) & 0xffffffffn),
    );
    return mirror.withdrawOwn({
      vault,
      header,
      siblings,
      assetPath,
      quantity: 1n,
      recipient: vault.owner,
      authorization: null,
    });
  }

  test("are voided on the mirror by anyone who watches, as soon as it has accepted them and before anyone imports their batches", async () => {
    const token = world.far.tokens.get("erc721") ?? "0x";
    const [first = 0n, other = 0n] = await commit(token, ["1", "2"]);
    const [second = 0n] = await commit(token, ["1"]);
    // Not accepted yet: nobody can withdraw there, and nothing is wrong.
    expect(await watch()).toEqual([]);
    await relay();
    expect(await world.mirror.isImported("zk-rollup", 1)).toBe(false);
    expect(await watch()).toEqual([[first, second]]);
    expect(await watch()).toEqual([]);
    await world.far.passSeconds(MATURITY);
    await expect(steal(second)).rejects.toThrow("VaultExhausted");
    await steal(other);
    await steal(first);
  });

  test("though the thief planted their ids before the token was there: those count for nothing", async () => {
    const { near, far } = world;
    const nonce = await far.client.getTransactionCount({ address: ADMIN.address });
    const token = lower(getContractAddress({ from: ADMIN.address, nonce: BigInt(nonce) }));
    // The source takes any token of another chain, also one that is not there yet.
    const registration = [2, BigInt(far.by.chainId), token, 1n, 0] as const;
    await send(
      near.chain.by,
      "StateCommitment",
      near.chain.settlement.address,
      "registerAsset",
      registration,
    );
    const [planted = 0n] = await commit(token, ["5"]);
    await relay();
    const config = {
      standard: "erc721",
      name: "Far late",
      symbol: "FLT",
      admin: ADMIN.address,
    } as const;
    expect((await deployToken(far.by, far.contract, config)).address).toBe(token);
    const [first = 0n] = await commit(token, ["5"]);
    const [second = 0n] = await commit(token, ["5"]);
    await relay();
    expect(await watch()).toEqual([[first, second]]);
    await world.far.passSeconds(MATURITY);
    await expect(steal(planted)).rejects.toThrow("BatchBeforeRegistration");
    await expect(steal(second)).rejects.toThrow("VaultExhausted");
    await steal(first);
  });

  test("under whatever spelling the registry there takes for the same token", async () => {
    const { near, far } = world;
    const config = {
      standard: "erc721",
      name: "Far cards",
      symbol: "FCRD",
      admin: ADMIN.address,
    } as const;
    const { address } = await deployToken(far.by, far.contract, {
      ...config,
      mintingBlobScheme: "imx",
    });
    const registration = [2, BigInt(far.by.chainId), address, 1n, 0] as const;
    await send(
      near.chain.by,
      "StateCommitment",
      near.chain.settlement.address,
      "registerAsset",
      registration,
    );
    const [first = 0n, second = 0n] = await commit(address, ["{7}:{a}", "{7}:{b}"]);
    await relay();
    expect(await watch()).toEqual([[first, second]]);
    // A token that reads minting blobs as names has two tokens of these.
    await commit(far.tokens.get("erc721") ?? "0x", ["{7}:{a}", "{7}:{b}"]);
    await relay();
    expect(await watch()).toEqual([]);
  });
});
