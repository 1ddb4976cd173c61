import type { AddressInfo } from "node:net";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createWorld, type World } from "../server/fixture.ts";
import { hasChromium, launchChromium, visit } from "./chromium.ts";

describe.skipIf(!hasChromium)("the reference page, in Chromium", () => {
  let world: World;
  let browser: Browser;
  let address: string;

  beforeAll(async () => {
    [world, browser] = await Promise.all([createWorld(), launchChromium()]);
    await world.app.listen({ host: "127.0.0.1", port: 0 });
    address = `http://127.0.0.1:${(world.app.server.address() as AddressInfo).port}`;
  });

  afterAll(async () => {
    await browser?.close();
    await world[Symbol.asyncDispose]();
  });

  test("shows the document, sends a request that is tried, and asks no other host for anything", async () => {
    const { page, problems, origins } = await visit(await browser.newContext());
    await page.goto(`${address}/docs`);
    await page.getByText("Mint for many users at once, all or nothing").waitFor();
    await page.getByRole("button", { name: "Authorize" }).click();
    await page.getByLabel("auth-api-key").or(page.locator("#api_key_value")).first().fill(world.key);
    await page.getByRole("button", { name: "Apply credentials" }).first().click();
    await page.getByRole("button", { name: "Close", exact: true }).first().click();
    await page.locator("#operations-Service-get_limits .opblock-summary").click();
    await page.getByRole("button", { name: "Execute" }).click();
    await page.locator("#operations-Service-get_limits .live-responses-table").getByText("usersPerRequest").waitFor();
    expect([...origins]).toEqual([address]);
    expect(problems).toEqual([]);
  });
});
