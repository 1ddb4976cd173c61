import { randomInt } from "node:crypto";
import { mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { afterAll, describe, expect } from "vitest";
import type { Database } from "../../../core/index.ts";
import { ordersOf } from "../../../core/orders/index.ts";
import type { Transfer } from "../../../core/protocol/transfer.ts";
import { orderTypedData, withdrawalListTypedData } from "../../../core/protocol/typed-data.ts";
import { packVaultId } from "../../../core/protocol/vault.ts";
import { PREFIX } from "../../../core/store/store-keys.ts";
import { listOfOne, withdrawOne } from "../../one-withdrawal.ts";
import {
  fixture,
  hashOf,
  knownAsset,
  memory,
  mintOf,
  newTenant,
  OWNERS,
  openTest,
  refusal,
  requestOf,
  SETTLEMENT,
} from "./fixture.ts";
import { it } from "./it.ts";
import {
  committed,
  HOME,
  hear,
  imported,
  MIRROR,
  made,
  ownerAddress,
  signedList,
  withdrawn,
} from "./l1-fixture.ts";
import { signedOrder } from "./orders-fixture.ts";
import { signedTransfers } from "./transfers-fixture.ts";

const BINARY = { keyEncoding: "buffer", valueEncoding: "buffer" } as const;

const [owner] = OWNERS;

const folder = await mkdtemp(join(tmpdir(), "mintmark-store-"));
afterAll(() => rm(folder, { recursive: true }));

describe("a store", () => {
  it("keeps everything over a restart, in a folder as in memory", async () => {
    const path = join(folder, "kept");
    const engine = await openTest(path);
    const asset = await engine.assets.add({
      standard: "erc721",
      contractAddress: SETTLEMENT.contract,
      name: "a",
      symbol: "A",
    });
    await engine.assets.whitelist(asset.assetId);
    await engine.operator.recordRegistered(asset.assetId);
    const tenant = await newTenant(engine, [asset.assetId]);
    const mint = (id: number) => mintOf(asset.assetId, id);
    const { mintId } = await engine.mint(
      tenant.principal,
      requestOf(tenant.users[0], mint(1), mint(2)),
    );
    await engine.operator.seal("validium");
    await engine.mint(tenant.principal, requestOf(tenant.users[1], mint(3)));
    const before = [
      engine.batches.state(),
      engine.batches.getOpen("validium"),
      { ...(await engine.mints.get(tenant.applicationId, mintId)), receipt: expect.any(Function) },
    ];
    await engine.close();
    await using again = await openTest(path);
    expect([
      again.batches.state(),
      again.batches.getOpen("validium"),
      await again.mints.get(tenant.applicationId, mintId),
    ]).toEqual(before);
    expect(await again.keys.authenticate(tenant.token)).toEqual(tenant.principal);
    expect(
      (await refusal(again.mint(tenant.principal, requestOf(tenant.users[0], mint(3))))).code,
    ).toBe("token_already_minted");
    expect((await again.operator.verify()).problems).toEqual([]);
  });

  it("has one engine at a time", async () => {
    const path = join(folder, "locked");
    await using engine = await openTest(path);
    await symlink(path, join(folder, "linked"));
    for (const name of [
      path,
      `${path}/`,
      `${folder}/./locked`,
      relative(process.cwd(), path),
      join(folder, "linked"),
    ]) {
      expect((await refusal(openTest(name))).code, name).toBe("store_locked");
    }
    expect(engine.environment).toBe("sandbox");
    const database = memory();
    const first = await openTest(database);
    expect((await refusal(openTest(database))).code).toBe("store_locked");
    await first.close();
    await (await openTest(database)).close();
  });

  it.each([
    ["chain", { settlement: { ...SETTLEMENT, chainId: 1n } }],
    ["contract", { settlement: { ...SETTLEMENT, contract: `0x${"bb".repeat(20)}` as const } }],
    ["engine version", { settlement: { ...SETTLEMENT, engineVersion: 4 } }],
    ["environment", { environment: "live" as const }],
  ])("belongs to one %s", async (_, options) => {
    const database = memory();
    await (await openTest(database)).close();
    expect((await refusal(openTest(database, options))).code).toBe("store_mismatch");
    await (await openTest(database)).close();
  });

  it("is left alone when it holds something else", async () => {
    const database = memory();
    await database.put("somebody", "else's");
    expect((await refusal(openTest(database))).code).toBe("store_corrupt");
  });

  it("refuses every call once closed", async () => {
    const { engine, tenant, assets } = await fixture();
    const mint = engine.mint(
      tenant.principal,
      requestOf(tenant.users[0], mintOf(assets.erc20, "", 1)),
    );
    await Promise.all([engine.close(), engine.close()]);
    expect((await mint).transactions).toHaveLength(1);
    expect((await refusal(engine.mint(tenant.principal, {} as unknown))).code).toBe(
      "engine_closed",
    );
    expect((await refusal(engine.vaults.get(tenant.applicationId, 0n))).code).toBe("engine_closed");
    expect((await refusal(engine.proofs.content(0n))).code).toBe("engine_closed");
    expect(() => engine.batches.state()).toThrow(
      expect.objectContaining({ code: "engine_closed" }),
    );
  });
});

/** Makes the next writes of a database fail. */
function failWrites(database: Database): void {
  Object.assign(database, {
    batch: () => {
      throw Object.assign(new Error("No space left on device"), { code: "LEVEL_IO_ERROR" });
    },
  });
}

describe("a failing write", () => {
  it("is never acknowledged, stops the engine, and leaves the store unchanged", async () => {
    const { engine, tenant, assets, database, clock } = await fixture();
    const mint = (id: number) =>
      engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc721, id)));
    await mint(1);
    const state = engine.batches.getOpen("validium");
    const batch = database.batch;
    failWrites(database);
    const heard: unknown[] = [];
    engine.events.on("mint.accepted", (event) => heard.push(event));
    const outcomes = await Promise.allSettled([
      mint(2),
      mint(3),
      engine.users.create(tenant.applicationId, { ownerAddress: SETTLEMENT.contract }),
    ]);
    expect(
      outcomes.map((outcome) =>
        outcome.status === "rejected" ? outcome.reason.code : "fulfilled",
      ),
    ).toEqual(Array(3).fill("store_failed"));
    Object.assign(database, { batch });
    expect((await refusal(mint(4))).code).toBe("store_failed");
    expect((await refusal(engine.vaults.get(tenant.applicationId, 0n))).code).toBe("store_failed");
    expect(heard).toEqual([]);
    await engine.close();
    await using again = await openTest(database, { clock: clock.read });
    expect(again.batches.getOpen("validium")).toEqual(state);
    expect((await again.operator.verify()).problems).toEqual([]);
    await again.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc721, 2)));
  });

  it("of a read is not mistaken for a missing record", async ({
    engine,
    tenant,
    assets,
    database,
  }) => {
    Object.assign(database, {
      getMany: async () =>
        Promise.reject(Object.assign(new Error("I/O"), { code: "LEVEL_IO_ERROR" })),
    });
    const mint = engine.mint(
      tenant.principal,
      requestOf(tenant.users[0], mintOf(assets.erc1155, 1)),
    );
    expect((await refusal(mint)).code).toBe("store_failed");
  });
});

/** A store with everything in it, closed. */
async function furnished() {
  const { engine, database, tenant, assets, clock } = await fixture();
  const mint = (...mints: Parameters<typeof requestOf>[1][]) =>
    engine.mint(tenant.principal, requestOf(tenant.users[0], ...mints), {
      idempotencyKey: `key ${mints.length}`,
    });
  await mint(
    mintOf(assets.erc721, 1),
    mintOf(assets.erc1155, "a", 5),
    mintOf(assets.erc20, "", 7, "zk-rollup"),
    mintOf(assets.erc1155, "a", 2, "zk-rollup"),
  );
  const traded = [
    requestOf(
      tenant.users[0],
      mintOf(assets.erc1155, 10, 4, "zk-rollup"),
      mintOf(assets.erc1155, 12, 3, "zk-rollup"),
    ),
    requestOf(tenant.users[1], mintOf(assets.erc1155, 11, 9, "zk-rollup")),
  ];
  await engine.mint(tenant.principal, { users: traded.flatMap(({ users }) => users) });
  await engine.operator.seal("validium");
  await engine.operator.seal("zk-rollup");
  await engine.operator.voidSlots("validium", 0, [
    { firstSlot: 1, count: 1, failure: "L1 refuses it" },
  ]);
  const deadline = BigInt(clock.now / 1000 + 3600);
  const message = {
    vaultId: 0n,
    withdrawnBefore: 0n,
    quantity: 1n,
    recipient: owner.address,
    deadline,
  };
  const signature = await owner.signTypedData(
    withdrawalListTypedData(SETTLEMENT, listOfOne(message)),
  );
  await withdrawOne(engine, tenant.principal, { ...listOfOne(message), signature });
  const ownVault = packVaultId({ mode: "zk-rollup", batchNumber: 0, slot: 0 });
  await engine.withdrawals.request(
    tenant.principal,
    await signedList({ engine, clock }, [ownVault]),
  );
  clock.now += 1;
  expect(await engine.operator.forgetIdempotencyKeys(clock.now)).toBe(1);
  await mint({ ...mintOf(assets.erc721, 2), reference: "order" }, mintOf(assets.erc20, "", 9));
  await engine.operator.recordSubmitted("validium", 0, `0x${"11".repeat(32)}`);
  const ownWithdrawal = withdrawn(ownVault, 3n, 3n, ownerAddress, 11n);
  await engine.operator.recordEvents(
    HOME,
    [await committed(engine, "zk-rollup", 0, 10n), ownWithdrawal],
    12n,
    {
      blockHash: `0x${"12".repeat(32)}`,
    },
  );
  await engine.operator.addMirror(MIRROR);
  await engine.operator.recordEvents(
    MIRROR.chainId,
    [await imported(engine, "zk-rollup", 0, 5n)],
    6n,
  );
  await engine.operator.recordFinalized(HOME, 12n);
  for (const assetId of [assets.erc20, assets.erc1155])
    await engine.operator.recordRegistered(assetId, { transferable: true });
  const orders = ordersOf(engine);
  await orders.setTerms(tenant.applicationId, { listing: "application", fee: null, assets: [] });
  const offer = async (vaultId: bigint) => {
    const want = { assetId: assets.erc1155, tokenId: 11n, amount: 2n };
    const order = await signedOrder({ engine, tenant }, { vaultId, want });
    return orders.create(tenant.principal, order);
  };
  const { orderId } = await offer(ownVault + 2n);
  const taken = await orders.prepareFill(tenant.principal, orderId, {
    vaultId: ownVault + 4n,
    deadline: deadline + 3600n,
  });
  await orders.fill(tenant.principal, orderId, {
    ...taken.order,
    signature: await OWNERS[1].signTypedData(orderTypedData(SETTLEMENT, taken.order)),
  });
  await offer(ownVault + 3n);
  const to = OWNERS[1].address;
  const give = async (transfers: readonly Transfer[]) =>
    engine.transfers.request(tenant.principal, await signedTransfers({ engine, clock }, transfers));
  await give([{ vaultId: ownVault, amount: 1n, to }]);
  await engine.operator.sealTransfers();
  const power = { owner: ownerAddress, blockNumber: 13n, txHash: hashOf(13) } as const;
  const session = {
    key: ownerAddress,
    until: 9n,
    limit: 9n,
    assetType: hashOf(0),
    authorizedAt: 1n,
  };
  const { assetType } = await engine.assets.get(tenant.applicationId, assets.erc721);
  const sword = { assetType, amount: 1n, mintingBlob: "0x393030" } as const;
  const entries = [ownerAddress, `0x${"d5".repeat(20)}` as const].map((one, i) => ({
    ...made(i + 1, [{ ...sword, owner: one }], 13n, 900n),
    logIndex: 3 + i,
  }));
  await engine.operator.recordEvents(
    HOME,
    [
      { type: "sessionAuthorized", ...session, ...power, logIndex: 0 },
      { type: "transfersApproved", digest: hashOf(3), approvedAt: 1n, ...power, logIndex: 1 },
      {
        type: "authorizationCancelled",
        id: hashOf(4),
        signer: ownerAddress,
        ...{ txHash: hashOf(13), blockNumber: 13n, logIndex: 2 },
      },
      ...entries,
    ],
    13n,
    { finalized: 13n },
  );
  await give([{ vaultId: ownVault + 1n, amount: 0n, to }]);
  await engine.users.create(tenant.applicationId, { ownerAddress, reference: "customer" });
  const own = await knownAsset(engine, "erc1155", { applicationId: tenant.applicationId });
  await engine.metadata.set(tenant.applicationId, own, { tokenId: 1n, metadata: { name: "One" } });
  await engine.metadata.changeCollection(tenant.applicationId, own, { placeholder: { name: "?" } });
  await engine.claims.createAll(tenant.principal, [
    { linkAddress: ownerAddress, mint: mintOf(own, 1), expiresAt: null },
  ]);
  await engine.people.invite({
    applicationId: tenant.applicationId,
    role: "developer",
    name: "Dev",
  });
  const [person] = (await engine.people.list(tenant.applicationId)).data;
  await engine.people.setAddress(person?.personId ?? "", ownerAddress);
  const { token } = await engine.people.signIn({ address: ownerAddress });
  const acting = await engine.actingAs(await engine.people.signedIn(token), "users");
  await acting.users.create(tenant.applicationId, { ownerAddress: `0x${"5e".repeat(20)}` });
  const { webhook } = await engine.webhooks.create(tenant.applicationId, {
    url: "https://example.com/",
  });
  const rotationId = "01890000-0000-7000-8000-000000000001";
  await engine.webhooks.rotateSecret(tenant.applicationId, webhook.webhookId, { rotationId });
  await engine.operator.webhooks.recordDelivered(webhook.webhookId, 4);
  await engine.operator.webhooks.recordDisabled(webhook.webhookId, "down");
  const foreign = {
    ...(await committed(engine, "validium", 0, 14n)),
    batchRoot: `0x${"11".repeat(32)}`,
  } as const;
  const diverge = async () =>
    expect((await refusal(hear(engine, foreign))).code).toBe("history_diverged");
  await diverge();
  const { batchNumber: first } = engine.batches.getOpen("validium");
  expect(await engine.operator.adopt([{ mode: "validium", first, batches: [] }])).toMatchObject({
    batches: 0,
  });
  await mint(mintOf(assets.erc721, 2));
  await diverge();
  await engine.close();
  return { database, clock };
}

async function problemsOf(database: Database): Promise<readonly string[]> {
  try {
    const engine = await openTest(database);
    try {
      return (await engine.operator.verify()).problems;
    } finally {
      await engine.close();
    }
  } catch (error) {
    // Damage that already keeps the store from opening is found too.
    return [(await refusal(Promise.reject(error))).code];
  }
}

describe("damage", () => {
  it("of any record of every kind is found: a flipped bit anywhere, or a missing record", async () => {
    const { database } = await furnished();
    await database.open();
    const records = await database.iterator<Buffer, Buffer>(BINARY).all();
    // The secret is random: nothing can tell it from another.
    const damageable = records.filter(([key]) => key[0] !== PREFIX.secret);
    // Only a store in a cluster has a position, and only one of an earlier version a record of its
    // format.
    const { secret: _, position: __, format: ___, ...expected } = PREFIX;
    expect(new Set(damageable.map(([key]) => key[0]))).toEqual(new Set(Object.values(expected)));
    const damage = async (
      change: () => Promise<void>,
      undo: () => Promise<void>,
    ): Promise<string | undefined> => {
      await database.open();
      await change();
      const problems = await problemsOf(database);
      await database.open();
      await undo();
      return problems[0];
    };
    for (const [key, value] of damageable) {
      const restore = () => database.put(key, value, BINARY);
      const anywhere = randomInt(value.length);
      for (const at of new Set([0, value.length >> 1, value.length - 1, anywhere])) {
        const flipped = Buffer.from(value);
        flipped[at] = (flipped[at] ?? 0) ^ (1 << randomInt(8));
        const found = await damage(() => database.put(key, flipped, BINARY), restore);
        expect(found, `byte ${at} of ${key.toString("hex")}`).toBeDefined();
      }
      expect(
        await damage(() => database.del(key, BINARY), restore),
        `${key.toString("hex")} deleted`,
      ).toBeDefined();
    }
    expect(await problemsOf(database)).toEqual([]);
  });

  it("of a vault is an error for its reader, and the vault is not served", async () => {
    const { database } = await furnished();
    await database.open();
    const [[key, value] = []] = await database
      .iterator<Buffer, Buffer>({ gte: Buffer.from([PREFIX.chunk, 0, 0, 0, 0, 1]), ...BINARY })
      .all();
    if (key === undefined || value === undefined) throw new Error("no chunk");
    const engine = await openTest(database);
    const flipped = Buffer.from(value);
    flipped[20] = (flipped[20] ?? 0) ^ 1;
    await database.put(key, flipped, BINARY);
    expect((await refusal(engine.vaults.content(1n << 20n))).code).toBe("store_corrupt");
    await engine.close();
  });
});
