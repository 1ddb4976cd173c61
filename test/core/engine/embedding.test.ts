import { describe, expect, expectTypeOf } from "vitest";
import { MintmarkError, type MintRequest, type Principal } from "../../../core/index.ts";
import type * as client from "../../../server/client/index.ts";
import { fixture, memory, openTest, refusal } from "./fixture.ts";
import { it } from "./it.ts";

const OWNER = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
const APPLICATION = "0198c3e0-5d2f-7c31-9a64-1f0b8e7d2a10";
const TOKEN = {
  assetId: "0198c3e0-5d2f-7c31-9a64-1f0b8e7d2a11",
  standard: "erc20",
  contractAddress: "0xbcf26943c0197d2ee0e5d05c716be60cc2761508",
  name: "Gold",
  symbol: "GLD",
} as const;

const error = async (call: Promise<unknown>) =>
  call.then(
    () => new Error("accepted"),
    (thrown: Error) => thrown,
  );

describe("a program that embeds the engine", () => {
  it("mints as an application without an API key, under one record for ever", async () => {
    const engine = await openTest(memory());
    const { applicationId } = await engine.applications.create({ name: "Game" });
    const { assetId } = await engine.assets.add({ ...TOKEN, applicationId });
    await engine.operator.recordRegistered(assetId);
    const principals = await Promise.all([engine.as(applicationId), engine.as(applicationId)]);
    const [principal] = principals;
    expect(principals).toEqual([principal, principal]);
    expect(await engine.as(applicationId)).toEqual(principal);
    const mint = { assetId, amount: 5, dataAvailabilityMode: "validium" } as const;
    const { vaults } = await engine.mint(principal, {
      users: [{ ownerAddress: OWNER, mints: [mint] }],
    });
    expect(vaults[0]?.amount).toBe(5n);
    expect((await engine.keys.list(applicationId)).data).toEqual([]);
    expect((await refusal(engine.keys.revoke(principal.keyId))).code).toBe("key_not_found");
    await engine.applications.suspend(applicationId);
    expect((await refusal(engine.as(applicationId))).code).toBe("application_suspended");
    await engine.close();
  });

  it("may repeat what creates, and is told what exists instead", async () => {
    const engine = await openTest(memory());
    const application = { applicationId: APPLICATION, name: "Game" };
    const created = await engine.applications.create(application);
    expect(await engine.applications.create(application)).toEqual(created);
    const other = await error(engine.applications.create({ ...application, name: "Shop" }));
    expect(other.message).toContain('is that of the application "Game"');

    const asset = { ...TOKEN, applicationId: APPLICATION };
    const added = await engine.assets.add(asset);
    expect(await engine.assets.add(asset)).toEqual(added);
    const { assetId: _, ...again } = asset;
    const known = await error(engine.assets.add(again));
    expect(known).toMatchObject({ code: "asset_exists" });
    expect(known.message).toContain(`${TOKEN.assetId} (GLD)`);
    // Another application does not learn whose the contract is.
    const { applicationId } = await engine.applications.create({ name: "Shop" });
    const hidden = await error(engine.assets.add({ ...again, applicationId }));
    expect(hidden.message).not.toContain(TOKEN.assetId);

    const { userId } = await engine.users.create(APPLICATION, { ownerAddress: OWNER });
    const thief = { userId, ownerAddress: TOKEN.contractAddress };
    const taken = await error(engine.users.create(APPLICATION, thief));
    expect(taken.message).toContain(OWNER);
    await engine.close();
  });

  it("has typed requests, and a MintmarkError for every wrong argument of a mint", async () => {
    expectTypeOf<MintRequest>().toExtend<{ users: readonly unknown[] }>();
    const request: client.MintRequest = { users: [] };
    const { engine, tenant } = await fixture();
    const refusedByTypes = async () => {
      // @ts-expect-error a request has users
      await engine.mint(tenant.principal, {});
      // @ts-expect-error users are a list
      await engine.mint(tenant.principal, { users: 5 });
      const mints = [{ assetId: "", dataAvailabilityMode: "zk" }];
      // @ts-expect-error no such mode
      await engine.mint(tenant.principal, { users: [{ userId: "", mints }] });
      // @ts-expect-error an entry names its asset
      await engine.mints.check(tenant.principal, { users: [{ userId: "", mints: [{}] }] });
      await engine.mint(tenant.principal, JSON.parse("{}"));
    };
    await expect(refusedByTypes()).rejects.toBeInstanceOf(MintmarkError);
    const wrong: unknown[] = [undefined, null, 5, "text", [], {}, { scopes: "mint" }];
    const calls = wrong.flatMap((value) => [
      engine.mint(value as Principal, request),
      engine.mints.check(value as Principal, request),
      engine.mint(tenant.principal, value),
      engine.mints.check(tenant.principal, value),
      engine.as(value as string),
      engine.mint(tenant.principal, request, value as object),
    ]);
    for (const outcome of await Promise.allSettled(calls))
      expect(outcome.status === "rejected" && outcome.reason).toBeInstanceOf(MintmarkError);
    await engine.close();
  });
});
