import { afterAll, describe, expect, it } from "vitest";
import {
  type Engine,
  type EngineOptions,
  LevelJournal,
  restoreStore,
  type Uuid,
} from "../../../core/index.ts";
import { slotsOf } from "../../../core/protocol/batch-data.ts";
import * as blobBatch from "../../../core/protocol/blob-batch.ts";
import { type Kzg, KzgThread } from "../../../core/protocol/kzg/kzg-thread.ts";
import { verifyBlob } from "../../../core/protocol/kzg.ts";
import { verifyVaultInState, verifyVaultProof } from "../../../core/protocol/proof.ts";
import { packVaultId, unpackVaultId } from "../../../core/protocol/vault.ts";
import { versionedHash } from "../../../core/protocol/versioned-hash.ts";
import {
  fixture,
  knownAsset,
  memory,
  mintOf,
  openTest,
  refusal,
  requestOf,
  SETTLEMENT,
} from "./fixture.ts";

const kzg = new KzgThread();
afterAll(() => kzg.close());

const MODE = "zk-rollup";
const FIELD = "/users/0/mints/0/dataAvailabilityMode";

async function blobFixture(options: Partial<EngineOptions> = {}) {
  const made = await fixture({ kzg, ...options });
  const { engine, tenant, clock, database } = made;
  const drawn = await knownAsset(engine, "erc721", { mintingBlobScheme: "imx" });
  await engine.assets.enable(tenant.applicationId, drawn);
  engine.operator.placeInBlobs(SETTLEMENT.chainId, true);
  const user = tenant.users[0];
  const mint = (...mints: ReturnType<typeof mintOf>[]) =>
    engine.mint(tenant.principal, requestOf(user, ...mints));
  return {
    ...made,
    drawn,
    mint,
    reopen: () => openTest(database, { kzg, clock: clock.read, ...options }),
  };
}

/** A vault that one field element holds. */
const short = (asset: Uuid, id: number) => mintOf(asset, id, 1, MODE);
/** A vault of four field elements: its minting blob is long and no number. */
const long = (asset: Uuid, id: number) => mintOf(asset, `{${id}}:{${"x".repeat(80)}}`, 1, MODE);

function placesOf({
  vaults,
}: {
  readonly vaults: readonly { readonly vaultId: bigint }[];
}): string[] {
  return vaults.map(({ vaultId }) => {
    const { batchNumber, slot } = unpackVaultId(vaultId);
    return `${batchNumber}/${slot}`;
  });
}

/** Mints as the application that the store has. */
async function minterOn(engine: Engine) {
  const [application] = (await engine.applications.list()).data;
  const applicationId = application?.applicationId as Uuid;
  const principal = await engine.keys.authenticate((await engine.keys.issue(applicationId)).secret);
  const [user] = (await engine.users.list(applicationId)).data;
  return (...mints: ReturnType<typeof mintOf>[]) =>
    engine.mint(principal, requestOf(user, ...mints));
}

async function requireSound(engine: Engine): Promise<void> {
  expect((await engine.operator.verify()).problems).toEqual([]);
}

describe("rollup batches in blobs", () => {
  it("take every vault into the mode's one open batch, whose kind the seal chooses", async () => {
    const { engine, mint, assets, drawn, reopen, clock } = await blobFixture();
    const placed: string[] = [];
    for (let id = 1; id <= 4; id++)
      placed.push(...placesOf(await mint(short(assets.erc721, id), long(drawn, id))));
    expect(placed).toEqual(["0/0", "0/1", "0/2", "0/3", "0/4", "0/5", "0/6", "0/7"]);
    expect(engine.batches.getOpen(MODE)).toMatchObject({ batchNumber: 0, vaultCount: 8 });
    expect(engine.batches.uncommittedVaults()).toBe(8);
    await requireSound(engine);
    await using backup = await LevelJournal.open(memory());
    await engine.operator.backup(backup);
    await engine.close();

    // It goes on after a restart, and after a restore, and knows its tokens.
    const target = memory();
    await restoreStore(backup, target);
    for (const [open, kind] of [
      [reopen, "blobs"],
      [() => openTest(target, { kzg, clock: clock.read }), "calldata"],
    ] as const) {
      await using opened = await open();
      if (kind === "blobs") opened.operator.placeInBlobs(SETTLEMENT.chainId, true);
      const again = await minterOn(opened);
      expect(placesOf(await again(long(drawn, 5), short(assets.erc721, 5)))).toEqual([
        "0/8",
        "0/9",
      ]);
      for (const known of [short(assets.erc721, 4), long(drawn, 4), long(drawn, 5)])
        expect((await refusal(again(known))).code).toBe("token_already_minted");
      expect(opened.batches.uncommittedVaults()).toBe(10);
      const newest = await opened.operator.seal(MODE);
      expect(newest).toMatchObject({ batchNumber: 0, kind, status: "sealed", vaultCount: 10 });
      const { data, content, dataHash } = await opened.batches.getSealed(MODE, 0);
      expect(slotsOf(blobBatch.wordsIn(data))).toHaveLength(10);
      expect(content === dataHash).toBe(kind === "blobs");
      expect(placesOf(await again(long(drawn, 6), short(assets.erc721, 6)))).toEqual([
        "1/0",
        "1/1",
      ]);
      expect((await refusal(again(long(drawn, 5)))).code).toBe("token_already_minted");
      await requireSound(opened);
    }
  });

  it("hold every minting blob of 1 to 255 bytes", async () => {
    const { engine, mint, drawn } = await blobFixture();
    const text = (length: number) => `{${length}}:{`.padEnd(length - 1, "x").concat("}");
    const lengths = Array.from({ length: 248 }, (_, i) => i + 8);
    await mint(...lengths.map((length) => mintOf(drawn, text(length), 1, MODE)));
    expect(await engine.operator.seal(MODE)).toMatchObject({ kind: "blobs", vaultCount: 248 });
    const { slots } = blobBatch.decodeBlobBatch((await engine.batches.getSealed(MODE, 0)).data);
    expect(slots.map((slot) => ((slot?.mintingBlob.length ?? 0) - 2) / 2)).toEqual(lengths);
    const proof = await engine.proofs.vault(packVaultId({ mode: MODE, batchNumber: 0, slot: 247 }));
    expect(verifyVaultProof(proof.batchRoot, proof)).toBe(true);
    await requireSound(engine);
    await engine.close();
  });

  it("wait for blobs when they hold more than calldata, though L1 takes none any more", async () => {
    const { engine, mint, assets } = await blobFixture({ limits: { rollupBytes: 1_024 } });
    await mint(...Array.from({ length: 60 }, (_, id) => short(assets.erc721, id + 1)));
    engine.operator.placeInBlobs(SETTLEMENT.chainId, false);
    expect(await engine.operator.seal(MODE)).toMatchObject({ kind: "blobs", vaultCount: 60 });
    await mint(...Array.from({ length: 60 }, (_, id) => short(assets.erc721, id + 61)));
    await engine.operator.seal(MODE);
    const next = await engine.batches.get(MODE, 1);
    expect(next).toMatchObject({ kind: "calldata" });
    expect(next.vaultCount).toBeLessThan(60);
    await requireSound(engine);
    await engine.close();
  });

  it("close by their elements", async () => {
    const { engine, mint, assets } = await blobFixture({ limits: { blobElements: 6 } });
    // An id of 80 bits or more takes two elements.
    const wide = (id: number) => mintOf(assets.erc721, `${10 ** 14}${10 ** 14}${id}`, 1, MODE);
    expect(placesOf(await mint(...[1, 2, 3, 4].map(wide)))).toEqual(["0/0", "0/1", "0/2", "1/0"]);
    await expect.poll(async () => (await engine.batches.get(MODE, 0)).status).toBe("sealed");
    expect(await engine.batches.get(MODE, 0)).toMatchObject({ kind: "blobs", vaultCount: 3 });
    await requireSound(engine);
    await engine.close();
  });

  it("hold amounts that grow out of an element, or begin another vault", async () => {
    const { engine, mint, assets } = await blobFixture({ limits: { blobElements: 5 } });
    const grow = (amount: string) => mint(mintOf(assets.erc1155, 7, amount, MODE));
    expect(placesOf(await grow("5"))).toEqual(["0/0"]);
    // 2^40 units no longer fit one element; then the batch has two, later three of its five.
    expect(placesOf(await grow(String(2 ** 40)))).toEqual(["0/0"]);
    for (const id of [1, 2, 3]) await mint(short(assets.erc721, id));
    expect(placesOf(await grow("1"))).toEqual(["0/0"]);
    expect(placesOf(await mint(short(assets.erc721, 4)))).toEqual(["1/0"]);
    await engine.operator.seal(MODE);
    const { slots } = blobBatch.decodeBlobBatch((await engine.batches.getSealed(MODE, 0)).data);
    expect(slots[0]?.amount).toBe(BigInt(2 ** 40 + 6));
    await requireSound(engine);
    await engine.close();
  });

  it("are proven by openings of the vault's own elements, which stay right when a slot becomes void", async () => {
    const { engine, mint, assets } = await blobFixture();
    await mint(short(assets.erc721, 1), short(assets.erc721, 2), mintOf(assets.erc20, "", 9, MODE));
    await engine.operator.seal(MODE);
    const vaultId = packVaultId({ mode: MODE, batchNumber: 0, slot: 2 });
    const before = await engine.proofs.vaultState(vaultId);
    expect(verifyVaultInState(SETTLEMENT, before.commitment, before.proof, before.path)).toBe(true);
    const gone = { firstSlot: 0, count: 1, failure: "L1 refuses it" };
    const sealed = await engine.operator.voidSlots(MODE, 0, [gone]);
    expect(sealed).toMatchObject({ kind: "blobs", vaultCount: 3 });
    const after = await engine.proofs.vault(vaultId);
    expect(verifyVaultProof(after.batchRoot, after)).toBe(true);
    expect(verifyVaultProof(after.batchRoot, before.proof)).toBe(false);
    // The whole batch, in JavaScript alone.
    const { data, content } = await engine.batches.getSealed(MODE, 0);
    const batch = blobBatch.readBlobBatchData(data);
    const blobs = blobBatch.blobsIn(batch);
    const shown = await engine.proofs.blobs(MODE, 0);
    const hashes = shown.map(({ commitment }) => versionedHash(commitment));
    expect(
      shown.map((proof, i) => verifyBlob(hashes[i] ?? "0x", blobs[i] as Uint8Array, proof)),
    ).toEqual([true]);
    expect(
      blobBatch.blobContent(batch.vaultCount, blobBatch.manifestHash(batch.assets), hashes),
    ).toBe(content);
    await mint(mintOf(assets.erc20, "", 9, "validium"));
    await engine.operator.seal("validium");
    expect(await engine.proofs.blobs("validium", 0)).toEqual([]);
    await requireSound(engine);
    await engine.close();
  });

  it("are proven for the engine's own calls first, and for a bounded number of strangers' behind them", async () => {
    const gate = Promise.withResolvers<void>();
    const opened: number[] = [];
    const gated: Kzg = {
      isAvailable: () => kzg.isAvailable(),
      commitment: (blob) => kzg.commitment(blob),
      proofs: (...args) => kzg.proofs(...args),
      async openings(blob, commitment, indexes) {
        opened.push(...indexes);
        await gate.promise;
        if (opened.length > 2) throw new Error("enough is seen");
        return kzg.openings(blob, commitment, indexes);
      },
    };
    const { engine, mint, assets } = await blobFixture({ kzg: gated });
    const waiting = 64;
    await mint(...Array.from({ length: waiting + 3 }, (_, id) => short(assets.erc721, id + 1)));
    await engine.operator.seal(MODE);
    const vaultId = (slot: number) => packVaultId({ mode: MODE, batchNumber: 0, slot });
    let told = 0;
    const onKzgProofs = (proofs: number) => {
      told += proofs;
    };
    // One is being proven, the others wait.
    const slots = Array.from({ length: waiting + 1 }, (_, slot) => slot);
    const strangers = Promise.allSettled(
      slots.map((slot) => engine.proofs.vault(vaultId(slot), { onKzgProofs })),
    );
    await expect.poll(() => told).toBe(waiting + 1);
    const late = engine.proofs.vault(vaultId(waiting + 1), { onKzgProofs });
    expect((await refusal(late)).code).toBe("backpressure");
    const own = engine.proofs.vault(vaultId(waiting + 2));
    // Meanwhile the call reads what it needs of the store.
    for (let i = 0; i < 10; i++) await engine.proofs.content(vaultId(waiting + 2));
    gate.resolve();
    expect((await own).vault.vaultId).toBe(vaultId(waiting + 2));
    expect(opened[1]).toBe(waiting + 2);
    const done = (await strangers).filter(({ status }) => status === "fulfilled");
    expect(done).toHaveLength(1);
    await engine.close();
  });
});

describe("rollup mints of another chain's token", () => {
  it("are refused until its mirror is known to open blobs, and for ever where it cannot", async () => {
    const { engine, tenant, mint } = await blobFixture();
    const far = await knownAsset(engine, "erc721", { chainId: 77n });
    await engine.assets.enable(tenant.applicationId, far);
    const refused = () =>
      expect(mint(short(far, 1))).rejects.toMatchObject({
        issues: [
          { pointer: FIELD, code: "rollup_not_available", detail: expect.stringMatching(why) },
        ],
      });
    let why = /has not learnt yet/;
    for (const takesBlobs of [true, false]) {
      // A later seal can choose blobs, so it is the same while batches go into calldata.
      engine.operator.placeInBlobs(SETTLEMENT.chainId, takesBlobs);
      await refused();
    }
    engine.operator.placeInBlobs(77n, false);
    why = /lacks the precompile 0x0a/;
    await refused();
    expect(placesOf(await mint(mintOf(far, 1, 1, "validium")))).toEqual(["0/0"]);
    engine.operator.placeInBlobs(77n, true);
    expect(placesOf(await mint(short(far, 2)))).toEqual(["0/0"]);
    await engine.close();
  });
});
