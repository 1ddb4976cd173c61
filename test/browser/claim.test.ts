import type { Browser } from "playwright-core";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Uuid } from "../../core/index.ts";
import { createWorld, type World } from "../server/fixture.ts";
import { addWallet, axeFaults, hasChromium, launchChromium, visit } from "./chromium.ts";

const PIXEL =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const OWNER = `0x${"7a".repeat(20)}`;

describe.skipIf(!hasChromium)("the claim page, in Chromium", () => {
  let world: World;
  let browser: Browser;
  let api: string;
  let assetId: Uuid;
  beforeAll(async () => {
    [world, browser] = await Promise.all([createWorld(), launchChromium()]);
    api = await world.app.listen({ host: "127.0.0.1", port: 0 });
    const { engine, applicationId } = world;
    const contractAddress = `0x${"cc".repeat(20)}` as const;
    const names = { name: "Cups", symbol: "CUP" };
    ({ assetId } = await engine.assets.add({
      standard: "erc721",
      contractAddress,
      ...names,
      applicationId,
    }));
    await engine.assets.whitelist(assetId);
    await engine.operator.recordRegistered(assetId, { minterLocked: true });
    await engine.assets.enable(applicationId, assetId);
  });
  afterAll(async () => {
    await browser?.close();
    await world?.[Symbol.asyncDispose]();
  });

  /** A link to one token, and what stands in its address. */
  async function newLink(tokenId: string, expiresAt: string | null = null) {
    const key = generatePrivateKey();
    const { address } = privateKeyToAccount(key);
    const mint = { assetId, tokenId, dataAvailabilityMode: "validium" };
    const body = { claims: [{ linkAddress: address, mint, expiresAt }] };
    expect((await world.send("POST", "/api/v1/claims", { body })).status).toBe(200);
    return {
      address,
      href: `${api}/claim#${Buffer.from(key.slice(2), "hex").toString("base64url")}`,
    };
  }

  test("claims a link for an address, once, and tells no server the key", async () => {
    const { address, href } = await newLink("901");
    const context = await browser.newContext({ viewport: { width: 390, height: 844 } });
    const { page, problems, origins } = await visit(context);
    const metadata = {
      name: "Cup of the first day",
      description: "For whoever came.",
      image: PIXEL,
    };
    expect(
      (await world.send("PUT", `/api/v1/assets/${assetId}/tokens/901/metadata`, { body: metadata }))
        .status,
    ).toBe(200);
    const sent: string[] = [];
    page.on("request", (request) => sent.push(`${request.url()} ${request.postData() ?? ""}`));
    await page.goto(href);
    await page.getByRole("heading", { name: "Cup of the first day" }).waitFor();
    await page.getByText("For whoever came.").waitFor();
    await page.getByRole("img", { name: "Cup of the first day" }).waitFor();
    await page.getByText("Cups (CUP)").waitFor();
    expect(await axeFaults(page)).toEqual([]);
    expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
    await page.getByLabel("Your address").fill("0x12");
    await page.getByRole("button", { name: "Claim" }).click();
    await page.getByText("This is no address").waitFor();
    await page.getByLabel("Your address").fill(OWNER);
    await page.getByRole("button", { name: "Claim" }).click();
    await page.getByText("It is yours").waitFor();
    await page.getByRole("link", { name: "Token 901" }).waitFor();
    expect(await world.engine.claims.find(address)).toMatchObject({
      status: "claimed",
      ownerAddress: OWNER,
    });
    expect([...origins]).toEqual([api]);
    const fragment = href.slice(href.indexOf("#") + 1);
    const hex = Buffer.from(fragment, "base64url").toString("hex");
    const told = sent.map((each) => each.replace(`#${fragment}`, "")).join("\n");
    expect(told).toContain("signature");
    expect(told.includes(fragment) || told.includes(hex)).toBe(false);
    await page.reload();
    await page.getByText("This link has been used").waitFor();
    await page.getByText(OWNER).waitFor();
    expect(problems).toEqual([]);
  });

  test("takes the address of a wallet", async () => {
    const { address, href } = await newLink("902");
    const account = privateKeyToAccount(generatePrivateKey());
    const context = await browser.newContext();
    await addWallet(context, account, api);
    const { page, problems } = await visit(context);
    await page.goto(href);
    expect(await page.locator(".picture.none").innerText()).toBe("Cups");
    await page.getByRole("button", { name: "Use your wallet" }).click();
    await page.getByRole("button", { name: "Claim" }).click();
    await page.getByText("It is yours").waitFor();
    const { ownerAddress } = await world.engine.claims.find(address);
    expect(ownerAddress).toBe(account.address.toLowerCase());
    // A browser names each refused request, and this token has no metadata; what the page itself
    // does stays quiet.
    expect(problems.filter((text) => !text.includes("404"))).toEqual([]);
  });

  test("says what is wrong with a link", async () => {
    const { page } = await visit(await browser.newContext());
    const cancelled = await newLink("903");
    await world.send("DELETE", `/api/v1/claims/${cancelled.address}`);
    const key = Buffer.from(generatePrivateKey().slice(2), "hex").toString("base64url");
    for (const [href, text] of [
      [`${api}/claim`, "This link is incomplete"],
      [`${cancelled.href.slice(0, -4)}`, "This link is incomplete"],
      [`${api}/claim#${"A".repeat(43)}`, "This link is incomplete"],
      [`${api}/claim#${key}`, "No such claim link"],
      [cancelled.href, "The application has cancelled this link"],
    ] as const) {
      await page.goto("about:blank");
      await page.goto(href);
      await page.getByText(text).waitFor();
    }
  });

  test("shows the answer of the server when another device was faster", async () => {
    const { address, href } = await newLink("904");
    const { page } = await visit(await browser.newContext());
    await page.goto(href);
    await page.getByLabel("Your address").fill(OWNER);
    await world.send("DELETE", `/api/v1/claims/${address}`);
    await page.getByRole("button", { name: "Claim" }).click();
    await page.getByText("The application has cancelled this claim link").waitFor();
  });
});
