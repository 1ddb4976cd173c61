import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createWorld, type World } from "../server/fixture.ts";
import { axeFaults, hasChromium, launchChromium, SHAPES, visit } from "./chromium.ts";

describe.skipIf(!hasChromium)("the reference and the start page, in Chromium", () => {
  let world: World;
  let browser: Browser;
  let address: string;

  beforeAll(async () => {
    [world, browser] = await Promise.all([createWorld(), launchChromium()]);
    address = await world.app.listen({ host: "127.0.0.1", port: 0 });
  });

  afterAll(async () => {
    await browser?.close();
    await world?.[Symbol.asyncDispose]();
  });

  test.each(SHAPES)(
    "the reference is clean for axe and fits: $viewport.width $colorScheme",
    async (shape) => {
      const { page, problems } = await visit(await browser.newContext(shape));
      await page.goto(`${address}/docs#mint`);
      // The address opens one operation; its schemas and answers open on demand.
      await page.getByRole("form", { name: "Try mint" }).waitFor();
      for (const summary of ["Fields of MintRequest", "Answer 200", "Answer 409"]) {
        await page.locator("details#mint").getByText(summary, { exact: true }).first().click();
      }
      await page.getByText("token_already_minted").first().waitFor();
      expect(await axeFaults(page)).toEqual([]);
      expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
      expect(problems).toEqual([]);
    },
  );

  test("the reference finds an operation, sends it, and asks no other host for anything", async () => {
    const { page, problems, origins } = await visit(await browser.newContext());
    const scripts: string[] = [];
    page.on("request", (request) => {
      if (request.resourceType() === "script") scripts.push(new URL(request.url()).pathname);
    });
    await page.goto(`${address}/docs`);
    await page.getByLabel("API key or token").fill(world.key);
    await page.getByLabel("Filter").fill("getLimits");
    const one = page.locator("main section > details:visible");
    await one.locator("summary").first().click();
    expect(await one.count()).toBe(1);
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByRole("status").getByText("usersPerRequest").waitFor();
    await page.getByLabel("Filter").fill("getApiKeyOrVault");
    await one.waitFor({ state: "detached" });
    // Parameters go into the path and the query.
    await page.getByLabel("Filter").fill("/api/v1/vaults/{vaultId}");
    await page.locator("details#getVault > summary").click();
    await page.locator("details#getVault input[name=vaultId]").fill("7");
    const [response] = await Promise.all([
      page.waitForResponse((each) => each.url().endsWith("/api/v1/vaults/7")),
      page.locator("details#getVault").getByRole("button", { name: "Send" }).click(),
    ]);
    expect(response.status()).toBe(404);
    await page.getByText("vault_not_found").first().waitFor();
    expect([scripts, [...origins]]).toEqual([["/docs/reference.js"], [address]]);
    // A browser names each refused request; what the page itself does stays quiet.
    expect(problems.filter((text) => !text.includes("404"))).toEqual([]);
  });

  test("the address itself answers a page with links that all work, and JSON for clients", async () => {
    const { page, problems } = await visit(await browser.newContext(SHAPES[0]));
    await page.goto(address);
    await page.getByRole("heading", { name: "Mintmark" }).waitFor();
    const links = (await page.evaluate(
      `[...document.querySelectorAll("main a")].map((a) => a.href)`,
    )) as string[];
    const paths = links.map((link) => new URL(link).pathname);
    expect(paths).toEqual(expect.arrayContaining(["/console", "/explorer", "/guide/", "/docs"]));
    for (const link of links) expect((await fetch(link)).status, link).toBeLessThan(400);
    expect(await axeFaults(page)).toEqual([]);
    expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
    expect(problems).toEqual([]);
    const answer = await fetch(address, { headers: { accept: "application/json" } });
    expect(answer.headers.get("content-type")).toContain("application/json");
    expect(await answer.json()).toMatchObject({
      name: "Mintmark",
      links: { console: "/console", reference: "/docs", explorer: "/explorer", guide: "/guide/" },
    });
  });
});
