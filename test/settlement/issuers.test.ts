import { MemoryLevel } from "memory-level";
import { toHex } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "vitest";
import { Archive, Watcher } from "../../core/guards/archive/index.ts";
import { proveFromL1 } from "../../core/guards/exit/index.ts";
import { Issuer, type IssuerClient, LocalMintRecord } from "../../core/guards/issuer/index.ts";
import type { MODES, Uuid, VaultId } from "../../core/index.ts";
import type { RollupData } from "../../core/l1/settlement/index.ts";
import { KzgThread } from "../../core/protocol/kzg/kzg.ts";
import { send } from "../../scripts/deploy/deployer.ts";
import { deployToken } from "../../scripts/deploy/token.ts";
import { ADMIN } from "../../scripts/sandbox/accounts.ts";
import { at, createWorld, mine, mint, newSettler, readyAsset, transactionStatus, type World } from "./fixture.ts";

const kzg = new KzgThread();
afterAll(() => kzg.close());
let world: World;
let issuer: Issuer;
let record: LocalMintRecord;
/** The token with an issuer. */
let crown: { readonly address: `0x${string}`; readonly assetId: Uuid };
beforeEach(async () => {
  world = await createWorld({ kzg, fees: { kzg } });
  const { chain, l1 } = world;
  const key = privateKeyToAccount(generatePrivateKey());
  const config = {
    standard: "erc721",
    name: "Crowns",
    symbol: "CRWN",
    admin: ADMIN.address,
    issuer: key.address,
  } as const;
  const { address } = await deployToken(chain.by, chain.settlement.address, config);
  await mine(chain, 20);
  const { standard, name, symbol } = config;
  crown = { address, assetId: await readyAsset(world, { standard, contractAddress: address, name, symbol }) };
  const store = new MemoryLevel();
  record = new LocalMintRecord(store);
  issuer = await Issuer.open({ account: key, store, l1, record, kzg });
});
afterEach(async () => {
  await issuer.close();
  await world.close();
});

/** Mints a crown, and a sword of nobody's issuer in the same batch. */
async function mintBoth(mode: (typeof MODES)[number], id: string) {
  const assets = new Map([...world.assets, ["erc721", crown.assetId] as const]);
  return { crown: await mint({ ...world, assets }, "erc721", mode, id), sword: await mint(world, "erc721", mode, id) };
}

/** What the application does before it asks for a crown. */
const recordCrown = (id: string) =>
  record.record([{ id, token: crown.address, owner: at(world.users, 0).owner.address, amount: 1n, blob: toHex(id) }]);

const client = (): IssuerClient => ({ address: issuer.address, consent: (batch) => issuer.consent(batch) });

function settling(issuers: readonly IssuerClient[], rollupData: RollupData = "calldata", consentMs = 400) {
  const { engine, l1, committee, chain } = world;
  return newSettler({ engine, l1, committee, issuers, consentMs, rollupData }, chain);
}

/** A round that may have to begin anew, since L1 left out what nobody expected. */
async function settle(settler: ReturnType<typeof settling>) {
  for (let tries = 0; tries < 4; tries++) {
    const done = await settler.round().then(
      () => true,
      () => false,
    );
    const { countValidium, countRollup } = await world.l1.state();
    const sealed = world.engine.batches.state();
    if (done && countValidium === sealed.countValidium && countRollup === sealed.countRollup) return;
  }
  throw new Error("a batch does not get to L1");
}

/** Everything that reads L1 agrees with the engine, and L1 pays the one vault and not the other. */
async function requireAgreed(paid: VaultId, unpaid: VaultId) {
  const { chain, l1, engine, members } = world;
  expect(await l1.state()).toEqual({ ...engine.batches.state(), history: engine.operator.history() });
  const fromBlock = chain.settlement.deployedAtBlock;
  const sources = members.map((member, i) => ({
    name: `${i}`,
    batchData: (mode: (typeof MODES)[number], n: number) => member.data(mode, n),
  }));
  // Members have no blobs: no beacon node gave them any.
  sources.push({ name: "server", batchData: async (mode, n) => (await engine.batches.getSealed(mode, n)).data });
  const archive = await Archive.open({ store: new MemoryLevel(), l1, kzg });
  await new Watcher({ archive, l1, fromBlock, sources, work: async () => 0 }).round();
  for (const proof of [
    await engine.proofs.vault(paid),
    await archive.vaultProof(paid),
    await proveFromL1(paid, { l1, fromBlock, sources, kzg }),
  ]) {
    const { header } = proof;
    if (header === undefined || header === null) throw new Error("the batch is on L1");
    expect(await l1.verifyVault({ ...proof, header })).toBe(0n);
  }
  await expect(engine.proofs.vault(unpaid)).rejects.toMatchObject({ code: "vault_void" });
  await expect(archive.vaultProof(unpaid)).rejects.toMatchObject({ code: "vault_not_found" });
  await expect(proveFromL1(unpaid, { l1, fromBlock, sources, kzg })).rejects.toMatchObject({ code: "vault_not_found" });
  await archive.close();
  expect((await engine.operator.verify()).problems).toEqual([]);
}

describe("a token's issuer", () => {
  test.each(["calldata", "blobs"] as const)(
    "has its own recorded mints paid, and costs an unrecorded one only its own slot, in both modes: %s",
    async (rollupData) => {
      const settler = settling([client()], rollupData);
      await settler.chooseRollupData();
      await recordCrown("1");
      await recordCrown("2");
      const [validium, rollup] = [await mintBoth("validium", "1"), await mintBoth("zk-rollup", "2")];
      expect(await settler.round()).toMatchObject({ sealed: 2, committed: 2 });
      expect(await world.engine.batches.get("zk-rollup", 0)).toMatchObject({ kind: rollupData, leftOut: null });
      for (const vaultId of [validium.crown, rollup.crown])
        expect(await transactionStatus(world, vaultId)).toBe("settled");

      const unasked = [await mintBoth("validium", "3"), await mintBoth("zk-rollup", "4")];
      expect(await settler.round()).toMatchObject({ sealed: 2, committed: 2 });
      // Members sign the next batch before the one with the gap is final.
      await recordCrown("5");
      await mintBoth("validium", "5");
      await settle(settler);
      expect(world.engine.batches.state().countValidium).toBe(3);

      await mine(world.chain, 30);
      await settler.round();
      for (const { crown: vaultId, sword } of unasked) {
        expect(await transactionStatus(world, vaultId)).toBe("failed");
        expect(await transactionStatus(world, sword)).toBe("finalized");
      }
      await requireAgreed(at(unasked, 0).sword, at(unasked, 0).crown);
      await requireAgreed(at(unasked, 1).sword, at(unasked, 1).crown);

      // The issuer counts what L1 pays, and nothing that it has left out.
      const { l1, chain } = world;
      const fromBlock = chain.settlement.deployedAtBlock;
      await new Watcher({ archive: issuer.archive, l1, fromBlock, work: (signal) => issuer.settle(signal) }).round();
      await issuer.settle();
      await record.record([
        { id: "late", token: crown.address, owner: at(world.users, 0).owner.address, amount: 1n, blob: toHex("3") },
      ]);
      await record.cancel("late");
    },
  );

  test("that is suspended after it has signed stops nobody: L1 leaves its token out, and everything goes on", async () => {
    const { chain, engine } = world;
    const suspending: IssuerClient = {
      ...client(),
      async consent(batch) {
        const signature = await issuer.consent(batch);
        await send(chain.by, "StateCommitment", chain.settlement.address, "suspendIssuer", [crown.address]);
        return signature;
      },
    };
    await recordCrown("1");
    const first = await mintBoth("validium", "1");
    const settler = settling([suspending]);
    // The consent is gathered before the suspension is seen.
    await settle(settler);
    expect((await engine.batches.get("validium", 0)).leftOut).toMatchObject([{ failure: expect.any(String) }]);
    await recordCrown("2");
    const second = await mintBoth("zk-rollup", "2");
    await settle(settler);
    expect((await engine.batches.get("zk-rollup", 0)).leftOut).toMatchObject([
      { failure: expect.stringContaining("suspended") },
    ]);
    await mine(chain, 30);
    await settler.round();
    await requireAgreed(first.sword, first.crown);
    await requireAgreed(second.sword, second.crown);
  });

  test("that is silent holds up a batch for the setting, and the next ones hardly", async () => {
    const silent: IssuerClient = {
      address: issuer.address,
      consent: (_, signal) =>
        new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
    };
    const settler = settling([silent], "calldata", 1_500);
    await mintBoth("validium", "1");
    await settler.round();
    await mintBoth("validium", "2");
    await mintBoth("zk-rollup", "3");
    await settle(settler);
    settler.consents.stop();
    for (const [mode, batchNumber] of [
      ["validium", 0],
      ["validium", 1],
      ["zk-rollup", 0],
    ] as const) {
      const [left] = (await world.engine.batches.get(mode, batchNumber)).leftOut ?? [];
      expect(left?.failure).toContain("no answer");
    }
  });
});
