import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildServer } from "../../server/app.ts";
import { buildGuide } from "../../server/pages/guide.ts";
import { memory, openTest } from "../core/engine/fixture.ts";
import { axeFaults, hasChromium, launchChromium, SHAPES, visit } from "./chromium.ts";

describe.skipIf(!hasChromium)("the guide, built and served", () => {
  let browser: Browser;
  let guide: string;
  const stack = new AsyncDisposableStack();

  beforeAll(async () => {
    // `npm start` builds the guide and serves it in this way.
    await buildGuide();
    const engine = await openTest(memory());
    stack.defer(() => engine.close());
    const app = await buildServer({ engine });
    stack.defer(() => app.close());
    guide = `${await app.listen({ port: 0 })}/guide`;
    browser = await launchChromium();
    stack.defer(() => browser.close());
  });
  afterAll(() => stack.disposeAsync());

  test("has every page in its navigation, and each of their links leads somewhere", async () => {
    const { page, problems, origins } = await visit(await browser.newContext());
    await page.goto(guide);
    await page.getByRole("heading", { name: "Quick starts" }).first().waitFor();
    const linksOf = (place: string) =>
      page.evaluate(
        `[...document.querySelectorAll(${JSON.stringify(place)})].map((a) => a.href)`,
      ) as Promise<string[]>;
    const pages = await linksOf(".VPSidebar a");
    expect(pages.length).toBeGreaterThan(25);
    await page.getByRole("heading", { name: "Contribute" }).first().waitFor();
    expect(pages.at(-1)).toBe(`${guide}/bench-http`);
    expect(pages.slice(0, 4).map((url) => url.slice(guide.length))).toEqual(
      ["collection", "loyalty", "tickets", "embed"].map((name) => `/${name}`),
    );
    for (const url of pages) {
      const answer = await fetch(url);
      expect(answer.status, url).toBe(200);
      const html = await answer.text();
      const anchors = [...html.matchAll(/href="(\/guide\/[^"#]*)(#[^"]+)"/g)];
      for (const [, path = "", anchor = ""] of anchors) {
        const target = await (await fetch(new URL(path, guide))).text();
        expect(target, `${url} to ${path}${anchor}`).toContain(
          ` id="${decodeURIComponent(anchor.slice(1))}"`,
        );
      }
    }
    expect([problems, [...origins]]).toEqual([[], [new URL(guide).origin]]);
  });

  test("searches without any other server", async () => {
    const { page, problems, origins } = await visit(await browser.newContext());
    await page.goto(`${guide}/collection`);
    await page.getByRole("button", { name: "Search" }).first().click();
    for (const [word, found] of [
      ["vault", "How it works"],
      ["testnet", "Go to a public network"],
      ["gas", "Gas"],
    ] as const) {
      await page.getByRole("searchbox").fill(word);
      await page.locator(".VPLocalSearchBox .result", { hasText: found }).first().waitFor();
    }
    await page.getByRole("searchbox").fill("sell tickets");
    await page.locator(".VPLocalSearchBox .result", { hasText: "Sell tickets" }).first().click();
    await page.getByRole("heading", { level: 1, name: "Sell tickets" }).waitFor();
    expect([problems, [...origins]]).toEqual([[], [new URL(guide).origin]]);
  });

  test.each(SHAPES)("is clean for axe: $viewport.width $colorScheme", async (shape) => {
    for (const path of ["/", "/concepts", "/collection", "/api"]) {
      const { page, problems } = await visit(await browser.newContext(shape));
      await page.goto(`${guide}${path}`);
      await page.getByRole("heading", { level: 1 }).waitFor();
      expect(await axeFaults(page), path).toEqual([]);
      expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path).toBe(
        true,
      );
      expect(problems, path).toEqual([]);
    }
  });
});
