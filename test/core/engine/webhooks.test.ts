import { describe, expect } from "vitest";
import {
  all,
  fixture,
  mintOf,
  newTenant,
  openTest,
  refusal,
  requestOf,
  TestClock,
} from "./fixture.ts";
import { it } from "./it.ts";

const URL = "https://example.com/hook";

describe("webhooks", () => {
  it("keep their progress, failures and secrets over restarts", async () => {
    const { engine, tenant, assets, database, clock } = await fixture();
    const { applicationId } = tenant;
    const { webhook, secret } = await engine.webhooks.create(applicationId, {
      url: URL,
      types: ["mint.accepted"],
    });
    const { webhookId } = webhook;
    expect(webhook).toMatchObject({
      url: URL,
      types: ["mint.accepted"],
      status: "active",
      delivered: 3,
    });
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    await engine.assets.disable(applicationId, assets.erc20);
    await engine.operator.webhooks.recordDelivered(webhookId, 2);
    expect((await engine.webhooks.get(applicationId, webhookId)).delivered).toBe(3);
    await engine.operator.webhooks.recordDelivered(webhookId, 4);
    clock.now += 1000;
    await engine.operator.webhooks.recordFailing(webhookId, "down");
    clock.now += 1000;
    await engine.operator.webhooks.recordFailing(webhookId, "still down");
    const failing = { delivered: 4, failingSince: clock.now - 1000, failure: "still down" };
    await engine.close();
    await using again = await openTest(database, { clock: clock.read });
    expect(await again.webhooks.get(applicationId, webhookId)).toMatchObject(failing);
    expect(again.operator.webhooks.secrets(webhookId)).toEqual([secret]);
    await again.operator.webhooks.recordDisabled(webhookId, "given up");
    expect(again.operator.webhooks.deliverable(applicationId)).toEqual([]);
    const told = await all(again.events.stream(applicationId, { after: 3 }));
    expect(told.at(-1)).toMatchObject({
      type: "webhook.disabled",
      data: { webhookId, failure: "given up" },
    });
    // A delivery that was on its way when it was disabled no longer counts.
    await again.operator.webhooks.recordDelivered(webhookId, 5);
    expect(await again.webhooks.enable(applicationId, webhookId)).toMatchObject({
      status: "active",
      delivered: 4,
    });
    expect((await again.operator.verify()).problems).toEqual([]);
  });

  it("keep a skipped event and changed types over restarts", async () => {
    const { engine, tenant, assets, database, clock } = await fixture();
    const { applicationId } = tenant;
    const made = await engine.webhooks.create(applicationId, {
      url: URL,
      types: ["asset.disabled"],
    });
    const { webhookId, delivered } = made.webhook;
    await engine.assets.disable(applicationId, assets.erc20);
    await engine.assets.enable(applicationId, assets.erc20);
    await engine.assets.disable(applicationId, assets.erc20);
    const skip = (sequence: number) => engine.webhooks.skip(applicationId, webhookId, sequence);
    await skip(delivered + 1);
    // The one between is of another type.
    expect(await refusal(skip(delivered + 2))).toMatchObject({ code: "validation_failed" });
    await engine.operator.webhooks.recordDisabled(webhookId, "gone");
    expect(await skip(delivered + 3)).toMatchObject({
      status: "disabled",
      delivered: delivered + 3,
    });
    await engine.webhooks.change(applicationId, webhookId, { types: ["mint.accepted"] });
    await engine.close();
    await using again = await openTest(database, { clock: clock.read });
    expect(await again.webhooks.get(applicationId, webhookId)).toMatchObject({
      types: ["mint.accepted"],
      delivered: delivered + 3,
    });
    expect((await again.operator.verify()).problems).toEqual([]);
  });

  it("look for an earlier event page by page, and only before one that can be skipped", async () => {
    const { engine, tenant, assets, database } = await fixture();
    const { applicationId } = tenant;
    const made = await engine.webhooks.create(applicationId, {
      url: URL,
      types: ["asset.disabled"],
    });
    const { webhookId, delivered } = made.webhook;
    await engine.operator.webhooks.recordDisabled(webhookId, "gone");
    const mint = () =>
      engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc1155, 7)));
    await Promise.all(Array.from({ length: 300 }, mint));
    await engine.assets.disable(applicationId, assets.erc20);
    const [newest] = (await Array.fromAsync(engine.events.stream(applicationId))).slice(-1);
    const eventCount = newest?.sequence ?? 0;
    expect(eventCount).toBe(delivered + 302);
    const pages: number[] = [];
    const onPage = async (page: number) => void pages.push(page);
    const skip = (sequence: number) =>
      engine.webhooks.skip(applicationId, webhookId, sequence, { onPage });
    for (const sequence of [delivered + 2, eventCount + 1, delivered + 1.5, Number.NaN])
      expect(await refusal(skip(sequence))).toMatchObject({ code: "validation_failed" });
    expect(pages).toEqual([]);
    const refused = engine.webhooks.skip(applicationId, webhookId, eventCount, {
      onPage: () => Promise.reject(new Error("no more units")),
    });
    await expect(refused).rejects.toThrow("no more units");
    expect(await skip(eventCount)).toMatchObject({ delivered: eventCount });
    expect(pages).toEqual([1, 2, 3]);
    // A repetition reads no event, however many wait.
    await Promise.all(Array.from({ length: 10 }, mint));
    const { getMany } = database;
    database.getMany = () => Promise.reject(new Error("an event is read"));
    expect(await skip(eventCount)).toMatchObject({ delivered: eventCount });
    Object.assign(database, { getMany });
    expect(pages).toEqual([1, 2, 3]);

    for (let i = 0; i < 13; i++) await Promise.all(Array.from({ length: 1_000 }, mint));
    await engine.assets.disable(applicationId, assets.erc721);
    await expect(skip(eventCount + 13_011)).rejects.toThrow(
      "more than 12800 others before it. Enable the webhook",
    );
    expect(pages.length).toBe(103);
  });

  it("also sign with the old secret for a day after a rotation", async ({ make }) => {
    const clock = new TestClock();
    const { engine, tenant } = await make({ clock: clock.read });
    const { webhook, secret } = await engine.webhooks.create(tenant.applicationId, { url: URL });
    const rotated = await engine.webhooks.rotateSecret(tenant.applicationId, webhook.webhookId);
    expect(rotated.secret).not.toBe(secret);
    expect(engine.operator.webhooks.secrets(webhook.webhookId)).toEqual([rotated.secret, secret]);
    clock.now += 86_400_000;
    expect(engine.operator.webhooks.secrets(webhook.webhookId)).toEqual([rotated.secret]);
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  it("belong to one application, are limited, and pause while it is suspended", async ({
    engine,
    tenant,
  }) => {
    const other = await newTenant(engine, []);
    const { webhook } = await engine.webhooks.create(tenant.applicationId, { url: URL });
    const { webhookId } = webhook;
    const theirs = other.applicationId;
    for (const call of [
      () => engine.webhooks.get(theirs, webhookId),
      () => engine.webhooks.delete(theirs, webhookId),
      () => engine.webhooks.rotateSecret(theirs, webhookId),
      () => engine.webhooks.enable(theirs, webhookId),
      () => engine.webhooks.get(tenant.applicationId, theirs),
    ]) {
      expect((await refusal(call())).code).toBe("webhook_not_found");
    }
    expect((await engine.webhooks.list(theirs)).data).toEqual([]);
    for (let i = 1; i < 10; i++) await engine.webhooks.create(tenant.applicationId, { url: URL });
    expect((await refusal(engine.webhooks.create(tenant.applicationId, { url: URL }))).code).toBe(
      "too_many_webhooks",
    );
    await engine.webhooks.delete(tenant.applicationId, webhookId);
    expect((await refusal(engine.webhooks.get(tenant.applicationId, webhookId))).code).toBe(
      "webhook_not_found",
    );
    await engine.webhooks.create(tenant.applicationId, { url: URL });
    expect(engine.operator.webhooks.deliverable(tenant.applicationId)).toHaveLength(10);
    await engine.applications.suspend(tenant.applicationId);
    expect(engine.operator.webhooks.deliverable(tenant.applicationId)).toEqual([]);
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  it.for([
    ["live", "http://example.com/"],
    ["sandbox", "ftp://example.com/"],
    ["sandbox", "https://user:password@example.com/"],
    ["sandbox", "https://example.com/#part"],
    ["sandbox", "example.com"],
    ["sandbox", `https://example.com/${"x".repeat(2000)}`],
  ] as const)(
    "of the %s environment refuse the address %.40s",
    async ([environment, url], { make }) => {
      const { engine, tenant } = await make({ environment });
      const made = engine.webhooks.create(tenant.applicationId, { url });
      expect(await refusal(made)).toEqual({
        code: "validation_failed",
        issues: { "/url": "validation_failed" },
      });
    },
  );

  it("refuse unknown types", async ({ engine, tenant }) => {
    const made = engine.webhooks.create(tenant.applicationId, {
      url: URL,
      types: ["mint.accepted", "x" as never],
    });
    expect(await refusal(made)).toEqual({
      code: "validation_failed",
      issues: { "/types/1": "validation_failed" },
    });
  });
});
