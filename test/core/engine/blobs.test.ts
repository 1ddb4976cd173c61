import { afterAll, describe, expect, it } from "vitest";
import {
  type Database,
  type Engine,
  type EngineOptions,
  LevelJournal,
  restoreStore,
  type Uuid,
} from "../../../core/index.ts";
import { KzgThread } from "../../../core/kzg/kzg.ts";
import { decodeBlobBatch } from "../../../core/protocol/blob-batch.ts";
import { verifyVaultInState, verifyVaultProof } from "../../../core/protocol/proof.ts";
import { packVaultId, unpackVaultId } from "../../../core/protocol/vault.ts";
import { fixture, knownAsset, memory, mintOf, openTest, refusal, requestOf, SETTLEMENT } from "./fixture.ts";

const kzg = new KzgThread();
afterAll(() => kzg.close());

const MODE = "zk-rollup";

async function blobFixture(options: Partial<EngineOptions> = {}) {
  const made = await fixture({ kzg, ...options });
  const { engine, tenant, clock, database } = made;
  const drawn = await knownAsset(engine, "erc721", { blobScheme: "imx" });
  await engine.assets.enable(tenant.applicationId, drawn);
  engine.operator.placeInBlobs(SETTLEMENT.chainId, true);
  const user = tenant.users[0];
  const mint = (...mints: ReturnType<typeof mintOf>[]) => engine.mint(tenant.principal, requestOf(user, ...mints));
  const again = (store: Database) => openTest(store, { kzg, clock: clock.read, ...options });
  return { ...made, drawn, mint, again, reopen: () => again(database), user };
}

/** A vault that one field element holds. */
const short = (asset: Uuid, id: number) => mintOf(asset, id, 1, MODE);
/** A vault that no blob holds: its minting blob is long and no number. */
const long = (asset: Uuid, id: number) => mintOf(asset, `{${id}}:{${"x".repeat(80)}}`, 1, MODE);

function placesOf({ vaults }: { readonly vaults: readonly { readonly vaultId: bigint }[] }): string[] {
  return vaults.map(({ vaultId }) => {
    const { batchNumber, slot } = unpackVaultId(vaultId);
    return `${batchNumber}/${slot}`;
  });
}

async function requireSound(engine: Engine): Promise<void> {
  expect((await engine.operator.verify()).problems).toEqual([]);
}

describe("rollup batches in blobs", () => {
  it("take what fits, while a calldata batch beside them takes the rest", async () => {
    const { engine, mint, assets, drawn, reopen } = await blobFixture();
    const placed: string[] = [];
    for (let id = 1; id <= 4; id++) {
      placed.push(...placesOf(await mint(short(assets.erc721, id), long(drawn, id))));
    }
    expect(placed).toEqual(["0/0", "1/0", "0/1", "1/1", "0/2", "1/2", "0/3", "1/3"]);
    expect(engine.batches.getOpen(MODE)).toMatchObject({ batchNumber: 0, kind: "blobs", vaultCount: 4 });
    expect(await engine.batches.get(MODE, 1)).toMatchObject({ status: "open", kind: "calldata", vaultCount: 4 });
    expect(engine.batches.uncommittedVaults()).toBe(8);
    await requireSound(engine);
    await engine.close();

    // Both go on after a restart, and know their tokens.
    await using opened = await reopen();
    const { users, principal } = { users: (await blobFixture()).tenant.users, principal: null };
    expect([users.length, principal]).toEqual([4, null]);
    opened.operator.placeInBlobs(SETTLEMENT.chainId, true);
    expect(opened.batches.uncommittedVaults()).toBe(8);
    await requireSound(opened);
    const newest = await opened.operator.seal(MODE);
    expect(newest).toMatchObject({ batchNumber: 1, kind: "calldata", status: "sealed", vaultCount: 4 });
    expect(await opened.batches.get(MODE, 0)).toMatchObject({ kind: "blobs", status: "sealed" });
    const { data, content, dataHash } = await opened.batches.getSealed(MODE, 0);
    expect(decodeBlobBatch(data).slots).toHaveLength(4);
    expect(content).toBe(dataHash);
    await requireSound(opened);
  });
});

void [LevelJournal, restoreStore, memory, refusal, verifyVaultInState, verifyVaultProof, packVaultId];
