import { describe, expect, test } from "vitest";
import type { Engine, Role, Uuid } from "../../../core/index.ts";
import type { Right } from "../../../core/tenants/api-keys.ts";
import {
  all,
  fixture,
  knownAsset,
  mintOf,
  newTenant,
  OWNERS,
  openTest,
  refusal,
  requestOf,
} from "./fixture.ts";
import { it } from "./it.ts";

const HOUR = 3_600_000;
const [{ address: wallet }, { address: other }] = OWNERS;

async function signedIn(
  engine: Engine,
  applicationId: Uuid | null,
  role: Role,
  name: string = role,
) {
  const { person, link } = await engine.people.invite({ applicationId, role, name });
  const opened = await engine.people.signIn({ link: link ?? "" });
  return { person, token: opened.token, signIn: await engine.people.signedIn(opened.token) };
}

describe("people", () => {
  it("a link signs in once, within a week; a newer link replaces it", async ({
    engine,
    clock,
    tenant,
  }) => {
    const invited = await engine.people.invite({
      applicationId: tenant.applicationId,
      role: "viewer",
      name: "Ada",
    });
    const first = invited.link ?? "";
    const second = (await engine.people.link(invited.person.personId)).link ?? "";
    expect(await refusal(engine.people.signIn({ link: first }))).toMatchObject({
      code: "credentials_invalid",
    });
    const races = await Promise.allSettled(
      [1, 2, 3].map(() => engine.people.signIn({ link: second })),
    );
    expect(races.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    const third = (await engine.people.link(invited.person.personId)).link ?? "";
    clock.now += 7 * 24 * HOUR + 1;
    expect(await refusal(engine.people.signIn({ link: third }))).toMatchObject({
      code: "credentials_expired",
    });
  });

  it("a wallet signs in to the application that is named, and a removed person's does not", async ({
    engine,
    tenant,
  }) => {
    const elsewhere = await newTenant(engine, []);
    const here = {
      applicationId: tenant.applicationId,
      role: "viewer",
      name: "Ada",
      address: wallet,
    } as const;
    const { person, link } = await engine.people.invite(here);
    expect(link).toBeNull();
    await engine.people.invite({ ...here, applicationId: elsewhere.applicationId, role: "admin" });
    expect(await refusal(engine.people.invite(here))).toMatchObject({ code: "validation_failed" });
    const opened = await engine.people.signIn({
      address: wallet,
      applicationId: elsewhere.applicationId,
    });
    expect(opened.person).toMatchObject({ role: "admin", applicationId: elsewhere.applicationId });
    const named = { address: wallet, applicationId: tenant.applicationId };
    const { token } = await engine.people.signIn(named);
    await engine.people.remove(person.personId);
    expect(await refusal(engine.people.signedIn(token))).toMatchObject({
      code: "credentials_invalid",
    });
    expect(await refusal(engine.people.signIn(named))).toMatchObject({
      code: "credentials_invalid",
    });
    expect(await refusal(engine.people.signIn({ address: other }))).toMatchObject({
      code: "credentials_invalid",
    });
  });

  it("a wallet of several teams signs in where it was last, whoever invites it, and where it asks to", async ({
    engine,
    tenant,
  }) => {
    const [hostile, own] = [await newTenant(engine, []), tenant];
    const named = { name: "Ada", role: "developer", address: wallet } as const;
    // The stranger's invitation comes first, and names an address that has proven nothing.
    const trap = await engine.people.invite({ ...named, applicationId: hostile.applicationId });
    const { person } = await engine.people.invite({ ...named, applicationId: own.applicationId });
    await engine.people.invite({ ...named, role: "operator", applicationId: null });
    const chosen = await engine.people.signIn({
      address: wallet,
      applicationId: own.applicationId,
    });
    expect(chosen).toMatchObject({ person: { personId: person.personId }, others: [] });
    const again = await engine.people.signIn({ address: wallet });
    expect(again.person).toMatchObject({ personId: person.personId, applicationName: "tenant" });
    expect(again.others.map(({ applicationId }) => applicationId)).toEqual([
      hostile.applicationId,
      null,
    ]);
    const operating = await engine.people.signIn({ address: wallet, applicationId: null });
    expect(operating.person.role).toBe("operator");
    // The link of a person that a stranger invited by this wallet tells nothing of its other teams.
    const { link } = await engine.people.link(trap.person.personId);
    expect((await engine.people.signIn({ link: link ?? "" })).others).toEqual([]);
    await engine.applications.suspend(own.applicationId);
    await engine.people.remove(operating.person.personId);
    expect((await engine.people.signIn({ address: wallet })).person.applicationId).toBe(
      hostile.applicationId,
    );
    await engine.applications.suspend(hostile.applicationId);
    expect(await refusal(engine.people.signIn({ address: wallet }))).toMatchObject({
      code: "application_suspended",
    });
  });

  it("a person of a full team can still set a wallet", async ({ engine, tenant }) => {
    const { applicationId } = tenant;
    const invite = (i: number) =>
      engine.people.invite({ applicationId, role: "viewer", name: `person ${i}` });
    const team = await Promise.all(Array.from({ length: 100 }, (_, i) => invite(i)));
    expect(await refusal(invite(100))).toMatchObject({ code: "too_many_people" });
    const [ada, bob] = team.map(({ person }) => person.personId);
    expect((await engine.people.setAddress(ada ?? "", wallet)).address).toBe(wallet.toLowerCase());
    expect(await refusal(engine.people.setAddress(bob ?? "", wallet))).toMatchObject({
      code: "validation_failed",
    });
  });

  it("a sign-in ends by time, by signing out, and with its application; the eleventh ends the first", async ({
    engine,
    clock,
    tenant,
  }) => {
    await engine.people.invite({
      applicationId: tenant.applicationId,
      role: "viewer",
      name: "Ada",
      address: wallet,
    });
    const tokens: string[] = [];
    for (let i = 0; i < 11; i++)
      tokens.push((await engine.people.signIn({ address: wallet })).token);
    const [first = "", second = "", third = "", fourth = ""] = tokens;
    expect(await refusal(engine.people.signedIn(first))).toMatchObject({
      code: "credentials_invalid",
    });
    await engine.people.signOut(second);
    expect(await refusal(engine.people.signedIn(second))).toMatchObject({
      code: "credentials_invalid",
    });
    expect((await engine.people.signedIn(third)).person.name).toBe("Ada");
    for (const forged of [
      "",
      third.slice(0, -1),
      `${third.slice(0, 32)}${fourth.slice(32)}0`,
      third.toUpperCase(),
      7,
    ]) {
      expect(await refusal(engine.people.signedIn(forged as string))).toMatchObject({
        code: "credentials_invalid",
      });
    }
    await engine.applications.suspend(tenant.applicationId);
    expect(await refusal(engine.people.signedIn(third))).toMatchObject({
      code: "application_suspended",
    });
    await engine.applications.resume(tenant.applicationId);
    clock.now += 12 * HOUR;
    expect(await refusal(engine.people.signedIn(third))).toMatchObject({
      code: "credentials_expired",
    });
  });

  test("a sign-in is in the store, and a restart ends none", async () => {
    const { engine, database, tenant, clock } = await fixture();
    const { token } = await signedIn(engine, tenant.applicationId, "developer");
    await engine.close();
    const again = await openTest(database, { clock: clock.read });
    expect((await again.people.signedIn(token)).person.role).toBe("developer");
    expect((await again.operator.verify()).problems).toEqual([]);
  });
});

describe("roles", () => {
  it("each role gives its principal these scopes, and no role another application", async ({
    engine,
    tenant,
    assets,
  }) => {
    const elsewhere = await newTenant(engine, [assets.erc20]);
    const scopes = {
      viewer: ["read"],
      developer: ["mint", "read", "users", "withdraw", "webhooks", "transfer"],
      admin: ["mint", "read", "users", "assets", "withdraw", "webhooks", "transfer"],
    };
    for (const [role, expected] of Object.entries(scopes)) {
      const { signIn } = await signedIn(engine, tenant.applicationId, role as Role);
      expect((await engine.people.principal(signIn)).scopes).toEqual(expected);
      expect(await refusal(engine.people.principal(signIn, elsewhere.applicationId))).toMatchObject(
        {
          code: "role_missing",
        },
      );
    }
    const { signIn } = await signedIn(engine, null, "operator");
    expect(await refusal(engine.people.principal(signIn))).toMatchObject({ code: "role_missing" });
    const principal = await engine.people.principal(signIn, elsewhere.applicationId);
    expect(principal).toMatchObject({ applicationId: elsewhere.applicationId, scopes: ["read"] });
    const forged = { ...principal, scopes: ["mint"] } as const;
    const request = requestOf(elsewhere.users[0], mintOf(assets.erc20, "", 1));
    expect(await refusal(engine.mint(forged, request))).toMatchObject({
      code: "credentials_invalid",
    });
  });

  it("a viewer who was a developer can no longer mint, not even by work that has begun", async ({
    engine,
    tenant,
    assets,
  }) => {
    const { signIn, person } = await signedIn(engine, tenant.applicationId, "developer");
    const principal = await engine.people.principal(signIn);
    const mint = (by: Engine, id: number) =>
      by.mint(principal, requestOf(tenant.users[0], mintOf(assets.erc721, id)));
    const acting = await engine.actingAs(signIn, "mint");
    await mint(acting, 1);
    await engine.people.changeRole(person.personId, "viewer");
    expect(await refusal(mint(engine, 2))).toMatchObject({ code: "credentials_invalid" });
    expect(await refusal(mint(acting, 3))).toMatchObject({ code: "role_missing" });
    expect(await refusal(engine.actingAs(signIn, "mint"))).toMatchObject({ code: "role_missing" });
  });

  it("a change that waits for the writer is refused when its person loses the right meanwhile", async ({
    engine,
    tenant,
  }) => {
    const { signIn, person } = await signedIn(engine, tenant.applicationId, "admin");
    const acting = await engine.actingAs(signIn, "assets");
    const demoted = engine.actingAsOperator().people.changeRole(person.personId, "viewer");
    const changed = acting.applications.change(tenant.applicationId, {
      dataAvailabilityMode: "validium",
    });
    expect(await refusal(Promise.all([demoted, changed]))).toMatchObject({ code: "role_missing" });
    expect((await engine.applications.get(tenant.applicationId)).dataAvailabilityMode).toBeNull();
  });

  it("keys are issued and revoked within the role, and people' own keys belong to nobody else", async ({
    engine,
    tenant,
  }) => {
    const elsewhere = await newTenant(engine, []);
    const { signIn, person } = await signedIn(engine, tenant.applicationId, "developer");
    const acting = await engine.actingAs(signIn, "keys");
    const { key } = await acting.keys.issue(tenant.applicationId, {
      name: "shop",
      scopes: ["mint"],
    });
    expect(key).toMatchObject({ name: "shop", scopes: ["mint"] });
    const tries: (() => Promise<unknown>)[] = [
      () => acting.keys.issue(tenant.applicationId, { scopes: ["assets"] }),
      () => acting.keys.issue(elsewhere.applicationId, { scopes: ["read"] }),
      () => acting.keys.rotate(tenant.principal.keyId, { expiresAt: -1 }),
      () => acting.keys.revoke(tenant.principal.keyId),
      () =>
        acting.people.invite({ applicationId: tenant.applicationId, role: "admin", name: "Me" }),
      () => acting.people.changeRole(person.personId, "admin"),
    ];
    for (const each of tries) expect(await refusal(each())).toMatchObject({ code: "role_missing" });
    await acting.keys.revoke(key.keyId);
    await engine.people.changeRole(person.personId, "viewer");
    expect((await all(engine.keys.list(tenant.applicationId))).map(({ name }) => name)).toEqual([
      null,
      "shop",
    ]);
    expect(await refusal(engine.keys.revoke(person.keyId ?? ""))).toMatchObject({
      code: "key_not_found",
    });
  });

  it("an application has 100 keys in force, and a revoked or expired one makes room", async ({
    engine,
    tenant,
    clock,
  }) => {
    const { applicationId } = tenant;
    const expiresAt = clock.read() + 1_000;
    const issue = (options = {}) => engine.keys.issue(applicationId, options);
    await issue({ expiresAt });
    for (let i = 2; i < 100; i++) await issue();
    for (const more of [issue, () => engine.keys.rotate(tenant.principal.keyId)])
      expect(await refusal(more())).toMatchObject({ code: "too_many_keys" });
    await engine.people.invite({ applicationId, role: "viewer", name: "Ada" });
    await engine.keys.revoke(tenant.principal.keyId);
    await issue();
    expect(await refusal(issue())).toMatchObject({ code: "too_many_keys" });
    clock.now += 2_000;
    await issue();
  });

  it("an admin changes its own team alone, and makes nobody an operator", async ({
    engine,
    tenant,
  }) => {
    const elsewhere = await newTenant(engine, []);
    const { person: operator } = await signedIn(engine, null, "operator");
    const { signIn } = await signedIn(engine, tenant.applicationId, "admin");
    const acting = await engine.actingAs(signIn, "people");
    const { person } = await acting.people.invite({
      applicationId: tenant.applicationId,
      role: "viewer",
      name: "New",
    });
    const tries: [string, () => Promise<unknown>][] = [
      [
        "role_missing",
        () => acting.people.invite({ applicationId: null, role: "operator", name: "Me" }),
      ],
      [
        "role_missing",
        () =>
          acting.people.invite({
            applicationId: elsewhere.applicationId,
            role: "viewer",
            name: "Me",
          }),
      ],
      ["validation_failed", () => acting.people.changeRole(person.personId, "operator")],
      ["role_missing", () => acting.people.link(operator.personId)],
      ["role_missing", () => acting.people.remove(operator.personId)],
    ];
    for (const [code, each] of tries) expect(await refusal(each())).toMatchObject({ code });
    await acting.people.remove(person.personId);
    expect(await refusal(engine.people.remove(person.personId))).toMatchObject({
      code: "person_not_found",
    });
  });
});

describe("the audit log", () => {
  it("names who made each change, in the change's own write, without secrets", async ({
    engine,
    tenant,
    assets,
  }) => {
    const { signIn } = await signedIn(engine, tenant.applicationId, "admin", "Ada");
    const { applicationId } = tenant;
    const inName = (right: Right) => engine.actingAs(signIn, right);
    const { secret, key } = await (await inName("keys")).keys.issue(applicationId, {
      name: "shop",
    });
    const principal = await engine.people.principal(signIn);
    const twice = requestOf(tenant.users[0], mintOf(assets.erc721, 1), mintOf(assets.erc721, 2));
    await (await inName("mint")).mint(principal, twice);
    const url = "https://example.com/services/its-secret?token=another";
    await (await inName("webhooks")).webhooks.create(applicationId, { url });
    await (await inName("people")).people.invite({ applicationId, role: "viewer", name: "Bob" });
    // A program's acts with its key are none of the log, nor are failures.
    await engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc721, 3)));
    await refusal((await inName("mint")).mint(principal, twice));
    const log = await all(engine.people.audit(applicationId, { limit: 2 }));
    expect(
      log.map(({ action, personName, count, detail }) => [action, personName, count, detail]),
    ).toEqual([
      ["personInvited", "Ada", 1, "Bob: viewer"],
      ["webhookCreated", "Ada", 1, "https://example.com"],
      ["mint", "Ada", 2, "erc721 #1, and 1 more"],
      ["keyIssued", "Ada", 1, "shop"],
      ["personSignedIn", "Ada", 1, "Ada"],
    ]);
    expect(log[3]?.subject).toBe(key.keyId);
    for (const hidden of [secret.slice(-64), "its-secret", "another"])
      expect(JSON.stringify(log)).not.toContain(hidden);
    expect(await all(engine.people.audit(null))).toEqual([]);
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  it("says of each act on claim links and metadata to what it was", async ({ engine, tenant }) => {
    const { applicationId, users } = tenant;
    const { signIn } = await signedIn(engine, applicationId, "admin", "Ada");
    const assetId = await knownAsset(engine, "erc1155", { applicationId });
    const principal = await engine.people.principal(signIn);
    const mint = { ...mintOf(assetId, 2), metadata: { name: "Two" } };
    const acting = await engine.actingAs(signIn, "mint");
    await acting.metadata.set(applicationId, assetId, { tokenId: 1n, metadata: { name: "One" } });
    await acting.metadata.freezeTokens(applicationId, assetId, [1n]);
    await acting.metadata.changeCollection(applicationId, assetId, {
      placeholder: { name: "Closed" },
    });
    await acting.claims.createAll(principal, [{ linkAddress: wallet, mint: mintOf(assetId, 3) }]);
    await acting.claims.cancel(applicationId, wallet);
    await acting.mint(principal, requestOf(users[0], mint, mintOf(assetId, 3)));
    const { data } = await engine.people.audit(applicationId, { limit: 6 });
    expect(data.map(({ action, subject, count }) => [action, subject, count])).toEqual([
      ["mint", expect.stringMatching(/^[0-9a-f-]{36}$/), 2],
      ["claimCancelled", wallet.toLowerCase(), 1],
      ["claimsCreated", wallet.toLowerCase(), 1],
      ["collectionChanged", assetId, 1],
      ["metadataFrozen", assetId, 1],
      ["metadataSet", assetId, 1],
    ]);
  });

  it("shows the first act after 10,003 more", async ({ engine, tenant }) => {
    const act = () => engine.actingAsOperator().keys.issue(tenant.applicationId);
    await act();
    const first = (await engine.people.audit(null)).data[0];
    const addresses = Array.from(
      { length: 10_003 },
      (_, i) => `0x${(i + 1).toString(16).padStart(40, "0")}` as const,
    );
    const acting = engine.actingAsOperator();
    const create = (ownerAddress: `0x${string}`) =>
      acting.users.create(tenant.applicationId, { ownerAddress });
    await Promise.all(addresses.map(create));
    const log = await all(engine.people.audit(null, { limit: 100 }));
    expect(log).toHaveLength(10_004);
    expect(log.at(-1)).toEqual(first);
    expect((await engine.operator.verify()).problems).toEqual([]);
  });
});
