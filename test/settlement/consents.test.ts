import { privateKeyToAccount } from "viem/accounts";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Address, Hash, Hex, SealedBatch } from "../../core/index.ts";
import type { IssuerClient } from "../../core/issuer/index.ts";
import type { ConsentAsset } from "../../core/ports.ts";
import { assetsHash, consentTypedData } from "../../core/protocol/consent.ts";
import { Consents, type ConsentsOptions } from "../../core/settlement/consents.ts";
import { describeConsents } from "../../server/operations/settling.ts";
import { type Fixture, fixture, mintOf, requestOf } from "../core/engine/fixture.ts";
import { committed, hear } from "../core/engine/l1-fixture.ts";
import { at } from "./fixture.ts";

const [ALICE, BOB] = [1, 2].map((n) => privateKeyToAccount(`0x${n.toString().padStart(64, "0")}`)) as [Key, Key];
type Key = ReturnType<typeof privateKeyToAccount>;
const WAIT_MS = 300;

let made: Fixture;
/** Issuers of asset types, with their epochs. */
let named: Record<Hash, { issuer: Address; epoch: bigint; suspended: boolean }>;
/** What a wallet contract takes. */
let walletTakes: Hex | null;
const stopping: (() => void)[] = [];
beforeEach(async () => {
  made = await fixture();
  walletTakes = null;
  named = {};
  const typeOf = async (id: string) => (await made.engine.assets.get(made.tenant.applicationId, id)).assetType;
  named[await typeOf(made.assets.erc721)] = { issuer: ALICE.address, epoch: 0n, suspended: false };
  named[await typeOf(made.assets.erc20)] = { issuer: BOB.address, epoch: 3n, suspended: false };
});
afterEach(async () => {
  for (const stop of stopping.splice(0)) stop();
  await made.engine.close();
});

function gathering(issuers: readonly IssuerClient[], options: Partial<ConsentsOptions> = {}): Consents {
  const { engine } = made;
  const l1 = {
    settlement: engine.settlement,
    issuers: async (assets: readonly { assetType: Hash }[]) => assets.map(({ assetType }) => named[assetType] ?? null),
    walletTakes: async (_: Address, __: Hash, signature: Hex) => signature === walletTakes,
  };
  const consents = new Consents({ engine, l1, issuers, waitMs: WAIT_MS, ...options });
  stopping.push(() => consents.stop());
  return consents;
}

/** An issuer that signs whatever it is asked for, as its tokens stand in L1's registry now. */
function issuer(
  key: Key,
  { before = async () => {}, signer = key, unknown = (): readonly Hash[] => [] } = {},
): IssuerClient & { asked: string[] } {
  const asked: string[] = [];
  return {
    address: key.address,
    asked,
    async consent(batch: SealedBatch, signal) {
      asked.push(`${batch.mode}-${batch.batchNumber}`);
      await before();
      signal.throwIfAborted();
      const mine = batch.assets.flatMap((asset): ConsentAsset[] => {
        const { issuer: address, epoch, suspended } = named[asset.assetType] ?? {};
        return address === key.address && epoch !== undefined && !suspended ? [{ ...asset, issuerEpoch: epoch }] : [];
      });
      const own = mine.filter(({ assetType }) => !unknown().includes(assetType));
      const message = { ...batch, assetsHash: assetsHash(own) };
      return {
        signature: await signer.signTypedData(consentTypedData(made.engine.settlement, message)),
        assets: own.map(({ assetType }) => assetType),
        refused: unknown().map((assetType) => ({ assetType, reason: "it is unknown" })),
      };
    },
  };
}

/** Names an issuer of the ERC-1155, too. Returns its asset type. */
async function nameAlso({ address }: Key, suspended = false): Promise<Hash> {
  const { assetType } = await made.engine.assets.get(made.tenant.applicationId, made.assets.erc1155);
  named[assetType] = { issuer: address, epoch: 0n, suspended };
  return assetType;
}

const silent = (key: Key): IssuerClient => ({ address: key.address, consent: () => new Promise(() => {}) });

/** A sealed batch with a vault of each standard; the ERC-1155 has no issuer. */
async function sealed(text: string): Promise<SealedBatch> {
  const { engine, tenant, assets } = made;
  const mints = [mintOf(assets.erc721, text), mintOf(assets.erc20, "", 5), mintOf(assets.erc1155, "9", 1)];
  await engine.mint(tenant.principal, requestOf(tenant.users[0], ...mints));
  const batch = await engine.operator.seal("validium");
  return engine.batches.getSealed("validium", batch?.batchNumber ?? 0);
}

const lower = (key: Key) => key.address.toLowerCase();

async function timed<T>(work: Promise<T>): Promise<readonly [T, number]> {
  const start = performance.now();
  return [await work, performance.now() - start];
}

test("asks every issuer for every sealed batch at once, and returns their consents in order", async () => {
  const [first, second] = [await sealed("1"), await sealed("2")];
  const [alice, bob] = [issuer(ALICE), issuer(BOB)];
  const consents = gathering([bob, alice]);
  expect(await consents.gather()).toBe(2);
  expect(await consents.gather()).toBe(0);
  for (const batch of [first, second]) {
    const { consents: given, leftOut } = await consents.of(batch);
    expect(given.map(({ issuer: address }) => address)).toEqual([lower(ALICE), lower(BOB)].toSorted());
    const epochs = new Map(given.map(({ issuer: address, assets }) => [address, at(assets, 0).issuerEpoch]));
    expect(epochs.get(lower(BOB) as Address)).toBe(3n);
    expect(leftOut).toEqual([]);
  }
  expect([alice.asked, bob.asked]).toEqual(Array(2).fill(["validium-0", "validium-1"]));
  expect(consents.standings().map(({ state }) => state)).toEqual(Array(4).fill("given"));
});

test("waits for a silent issuer once for all batches, and leaves out only its assets", async () => {
  const [first, second] = [await sealed("1"), await sealed("2")];
  const consents = gathering([issuer(ALICE), silent(BOB)]);
  await consents.gather();
  const [{ consents: given, leftOut }, waited] = await timed(consents.of(first));
  expect(given.map(({ issuer: address }) => address)).toEqual([lower(ALICE)]);
  expect(leftOut).toMatchObject([{ failure: expect.stringContaining("no answer") }]);
  expect(named[at(leftOut, 0).assetType]?.issuer).toBe(BOB.address);
  expect(waited).toBeGreaterThan(WAIT_MS / 2);
  const [, again] = await timed(consents.of(second));
  expect(again).toBeLessThan(WAIT_MS / 2);
});

test("tells readiness each issuer's answer about each batch that waits, with the reason of a refusal", async () => {
  const consents = gathering([issuer(ALICE), silent(BOB)]);
  expect(describeConsents(consents.standings())).toBe("no batch waits for a consent");
  await sealed("1");
  await consents.gather();
  const given = `${lower(ALICE)} has consented to validium-0`;
  const told = () => describeConsents(consents.standings()).split("; ").toSorted();
  await expect.poll(told).toEqual([given, `${lower(BOB)} is asked to consent to validium-0`].toSorted());
  const refusing = gathering([{ ...silent(BOB), consent: async () => Promise.reject(new Error("no such order")) }]);
  await refusing.gather();
  const [alice, bob] = [
    `${lower(ALICE)} does not consent to validium-0: no address of its service is configured`,
    `${lower(BOB)} does not consent to validium-0: no such order`,
  ];
  await expect
    .poll(() => describeConsents(refusing.standings()).split("; ").toSorted())
    .toEqual([alice, bob].toSorted());
});

test("asks a refusing issuer again, reports each reason once, and accepts a late consent", async () => {
  const batch = await sealed("1");
  let refuses = true;
  const told: string[] = [];
  const before = async () => {
    if (refuses) throw new Error("refused (not_allowed): unrecorded");
  };
  const alice = issuer(ALICE, { before });
  const consents = gathering([alice, issuer(BOB)], {
    waitMs: 5_000,
    onRefusal: (address, batchId, error) => told.push(`${address} ${batchId} ${error}`),
  });
  await consents.gather();
  await expect.poll(() => alice.asked.length, { timeout: 4_000 }).toBeGreaterThan(2);
  expect(told).toEqual([`${lower(ALICE)} validium-0 Error: refused (not_allowed): unrecorded`]);
  const refusing = consents.standings().find(({ state }) => state === "refused");
  expect(refusing).toMatchObject({ issuer: lower(ALICE), failure: "refused (not_allowed): unrecorded" });
  refuses = false;
  expect((await consents.of(batch)).consents).toHaveLength(2);
});

test("takes a signature of the issuer's key, or one that its wallet contract takes, and no other", async () => {
  const batch = await sealed("1");
  const forged = gathering([issuer(ALICE, { signer: BOB }), issuer(BOB)]);
  const { leftOut } = await forged.of(batch);
  expect(leftOut).toMatchObject([{ failure: expect.stringContaining("the signature is not the issuer's") }]);
  const { consents } = await gathering([issuer(ALICE), issuer(BOB)]).of(batch);
  const { signature, assets } = at(
    consents.filter(({ issuer: address }) => address === lower(ALICE)),
    0,
  );
  walletTakes = signature;
  const answer = { signature, assets: assets.map(({ assetType }) => assetType), refused: [] };
  const wallet: IssuerClient = { address: ALICE.address, consent: async () => answer };
  const taken = await gathering([wallet, issuer(BOB)]).of(batch);
  expect(taken.leftOut).toEqual([]);
});

test("commits an issuer's other tokens when it does not know one that names it, and asks again for that one", async () => {
  const batch = await sealed("1");
  const foreign = await nameAlso(ALICE);
  let unknown: readonly Hash[] = [foreign];
  const alice = issuer(ALICE, { unknown: () => unknown });
  const consents = gathering([alice, issuer(BOB)], { waitMs: 60_000 });
  // Nobody waits for that token.
  const [{ consents: given, leftOut }, waited] = await timed(consents.of(batch));
  expect(waited).toBeLessThan(5_000);
  expect(given).toHaveLength(2);
  expect(given.flatMap(({ assets }) => assets)).toHaveLength(2);
  expect(leftOut).toMatchObject([{ assetType: foreign, failure: expect.stringContaining("it is unknown") }]);
  expect(consents.standings()).toContainEqual(expect.objectContaining({ issuer: lower(ALICE), state: "refused" }));
  unknown = [];
  await expect.poll(async () => (await consents.of(batch)).leftOut, { timeout: 4_000 }).toEqual([]);
});

test("leaves out a suspended token, and none of its issuer's other ones", async () => {
  const batch = await sealed("1");
  const suspended = await nameAlso(ALICE, true);
  const { consents: given, leftOut } = await gathering([issuer(ALICE), issuer(BOB)]).of(batch);
  expect(given.map(({ issuer: address }) => address)).toEqual([lower(ALICE), lower(BOB)].toSorted());
  expect(leftOut).toMatchObject([{ assetType: suspended, failure: expect.stringContaining("suspended it") }]);
});

test("asks again when the content or an epoch changes, and waits a little for it", async () => {
  const batch = await sealed("1");
  const [alice, bob] = [issuer(ALICE), issuer(BOB)];
  const consents = gathering([alice, bob]);
  await consents.of(batch);
  for (const asset of Object.values(named)) if (asset.issuer === ALICE.address) asset.epoch = 1n;
  const rotated = await consents.of(batch);
  expect(rotated.consents.flatMap(({ assets }) => assets.map(({ issuerEpoch }) => issuerEpoch)).toSorted()).toEqual([
    1n,
    3n,
  ]);
  expect([alice.asked.length, bob.asked.length]).toEqual([2, 1]);
  await made.engine.operator.voidSlots("validium", 0, [{ firstSlot: 2, count: 1, failure: "void" }]);
  const changed = await made.engine.batches.getSealed("validium", 0);
  expect((await consents.of(changed)).consents).toHaveLength(2);
  expect([alice.asked.length, bob.asked.length]).toEqual([3, 2]);
});

test("waits for no issuer whose service is not configured", async () => {
  const batch = await sealed("1");
  const [{ leftOut }, waited] = await timed(gathering([issuer(ALICE)], { waitMs: 60_000 }).of(batch));
  expect(leftOut).toMatchObject([{ failure: expect.stringContaining("no address of its service is configured") }]);
  expect(waited).toBeLessThan(5_000);
});

test("asks no issuer for a batch that L1 has", async () => {
  await sealed("1");
  let asked = 0;
  const refusing: IssuerClient = {
    address: ALICE.address,
    consent: async () => {
      asked++;
      throw new Error("no");
    },
  };
  const consents = gathering([refusing, issuer(BOB)]);
  await consents.gather();
  await hear(made.engine, await committed(made.engine, "validium", 0, 7n));
  expect(await consents.gather()).toBe(0);
  expect(consents.standings()).toEqual([]);
  const before = asked;
  await new Promise((resolve) => setTimeout(resolve, 700));
  expect(asked).toBe(before);
});
