import type { AddressInfo } from "node:net";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasChromium, launchChromium, type Visit, visit } from "../browser/chromium.ts";
import { createWorld, type World } from "../server/fixture.ts";

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

  // One visit for all: the page takes seconds to draw.
  describe("once it is drawn", () => {
    const scripts: string[] = [];
    let visited: Visit;
    beforeAll(async () => {
      visited = await visit(await browser.newContext({ colorScheme: "light" }));
      const { page } = visited;
      page.on("request", (request) => {
        if (request.resourceType() === "script") scripts.push(new URL(request.url()).pathname);
      });
      await page.goto(`${address}/docs`);
      await page.getByText("Mint for many users at once, all or nothing").waitFor();
    });

    test.each(["light", "dark"] as const)("follows the %s colours of the visitor's system", async (colorScheme) => {
      const { page, problems } = visited;
      await page.emulateMedia({ colorScheme });
      for (const viewport of [
        { width: 390, height: 844 },
        { width: 1280, height: 900 },
      ]) {
        await page.setViewportSize(viewport);
        const [paper, ink] = (await page.evaluate(`[
          [document.body, "backgroundColor"], [document.querySelector(".info .title"), "color"],
        ].map(([element, name]) => Math.max(...getComputedStyle(element)[name].match(/\\d+/g).slice(0, 3).map(Number)))`)) as [
          number,
          number,
        ];
        expect([paper < 128, ink > 128]).toEqual(colorScheme === "dark" ? [true, true] : [false, false]);
      }
      expect([scripts, problems]).toEqual([["/docs/reference.js"], []]);
    });

    test("sends a request that is tried, and asks no other host for anything", async () => {
      const { page, problems, origins } = visited;
      await page.getByRole("button", { name: "Authorize" }).click();
      await page.getByLabel("auth-api-key").or(page.locator("#api_key_value")).first().fill(world.key);
      await page.getByRole("button", { name: "Apply credentials" }).first().click();
      await page.getByRole("button", { name: "Close", exact: true }).first().click();
      await page.locator("#operations-Service-getLimits .opblock-summary").click();
      await page.getByRole("button", { name: "Execute" }).click();
      await page.locator("#operations-Service-getLimits .live-responses-table").getByText("usersPerRequest").waitFor();
      expect([...origins]).toEqual([address]);
      expect(problems).toEqual([]);
    });
  });

  test("the address itself answers a page with links that all work, and JSON for clients", async () => {
    for (const colorScheme of ["light", "dark"] as const) {
      const viewport = { width: 390, height: 844 };
      const { page, problems } = await visit(await browser.newContext({ colorScheme, viewport }));
      await page.goto(address);
      await page.getByRole("heading", { name: "Mintmark" }).waitFor();
      const links = (await page.evaluate(`[...document.querySelectorAll("main a")].map((a) => a.href)`)) as string[];
      expect(links.length).toBeGreaterThanOrEqual(5);
      for (const link of links) expect((await fetch(link)).status, link).toBeLessThan(400);
      expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
      expect(problems).toEqual([]);
    }
    const answer = await fetch(address, { headers: { accept: "application/json" } });
    expect(answer.headers.get("content-type")).toContain("application/json");
    expect(await answer.json()).toMatchObject({
      name: "Mintmark",
      links: { reference: "/docs", explorer: "/explorer" },
    });
  });
});
