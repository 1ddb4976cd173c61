import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { exitWithKit, parseExitKit } from "../../core/exit/index.ts";
import { connectPortal } from "../../core/l1/index.ts";
import { until } from "../../scripts/demo/until.ts";
import { USERS } from "../../scripts/sandbox/accounts.ts";
import { type Sandbox, startSandbox } from "../../scripts/sandbox/sandbox.ts";
import { addWallet, hasChromium, launchChromium, visit } from "./chromium.ts";

interface Listed {
  readonly data: readonly {
    readonly vaultId: string;
    readonly batchId: string;
    readonly status: string;
  }[];
}

const PHONE = { viewport: { width: 390, height: 844 } };

const openToken = (tab: Page) => tab.locator("li.token").getByRole("link").first().click();

/** The button that saves a vault's exit kit, on the page of its token. */
async function kitButton(tab: Page) {
  await tab.getByText("Proof and details, for auditors").click();
  return tab.getByRole("button", { name: "Save the exit kit" }).first();
}

describe.skipIf(!hasChromium)("the explorer, in Chromium", () => {
  let folder: string;
  let sandbox: Sandbox;
  let browser: Browser;
  let page: string;
  let vaults: Listed["data"];

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "mintmark-explorer-"));
    [sandbox, browser] = await Promise.all([
      startSandbox({ folder, port: 0, chainPort: 0 }),
      launchChromium(),
    ]);
    const { api, apiKey, users, assets } = sandbox.description;
    page = `${api}/explorer`;
    const assetId = assets.find(({ standard }) => standard === "erc721")?.assetId;
    const mintsOf = (first: number) =>
      Array.from({ length: 3 }, (_, i) => {
        const mintingBlob = Buffer.from(String(first + i)).toString("hex");
        return { mintingBlob, assetId, amount: 1, dataAvailabilityMode: "zk-rollup" };
      });
    const body = { users: users.map(({ userId }, i) => ({ userId, mints: mintsOf(10 * i + 1) })) };
    const headers = { "x-api-key": apiKey, "content-type": "application/json" };
    await fetch(`${api}/api/v1/mint`, { method: "POST", headers, body: JSON.stringify(body) });
    const list = async () =>
      (await fetch(`${api}/api/v1/vaults`, { headers })).json() as Promise<Listed>;
    const settled = ({ data }: Listed) =>
      data.every(({ status }) => status === "settled" || status === "finalized");
    vaults = (await until("the mints on L1", list, settled)).data;
  });

  afterAll(async () => {
    await browser?.close();
    await sandbox?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  test("a vault's proof is checked in the browser against what L1 says", async () => {
    const { page: tab, problems, origins } = await visit(await browser.newContext());
    await tab.goto(`${page}#/vaults/${vaults[4]?.vaultId}`);
    await tab.getByText("This vault is on L1").waitFor();
    expect(await tab.locator(".checks li.holds").count()).toBe(3);
    // Whose word this is must be plain, because here it is the operator's own.
    expect(await tab.locator(".verdict").innerText()).toContain(
      "The check used the operator's node",
    );
    // L1 is asked about the token after the verdict.
    await tab.getByText("0 of 1").waitFor();
    expect(problems).toEqual([]);
    expect([...origins].toSorted()).toEqual(
      [sandbox.description.api, sandbox.description.rpcUrl].toSorted(),
    );
  });

  test("a committed vault that its token refuses is shown as such", async () => {
    const { page: tab } = await visit(await browser.newContext());
    await tab.goto(`${page}#/vaults/${vaults[4]?.vaultId}`);
    await tab.getByText("yes, its token takes it").waitFor();
    const ask = async (method: string, params: readonly unknown[]) => {
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
      const headers = { "content-type": "application/json" };
      const answer = await fetch(sandbox.description.rpcUrl, { method: "POST", headers, body });
      return ((await answer.json()) as { readonly result: unknown }).result;
    };
    const token = sandbox.description.assets.find(
      ({ standard }) => standard === "erc721",
    )?.contractAddress;
    const code = await ask("eth_getCode", [token, "latest"]);
    await ask("hardhat_setCode", [token, "0x5f5ffd"]);
    await tab.reload();
    await tab.getByText("refused by its token").waitFor();
    await ask("hardhat_setCode", [token, code]);
  });

  test("a server that lies about a vault, a batch or the state is found out", async () => {
    const context = await browser.newContext();
    await context.route("**/public/v1/vaults/*/proof", async (route) => {
      const answer = await (await route.fetch()).json();
      await route.fulfill({
        json: { ...answer, vault: { ...answer.vault, owner: `0x${"66".repeat(20)}` } },
      });
    });
    await context.route("**/public/v1/state", async (route) => {
      const answer = await (await route.fetch()).json();
      await route.fulfill({
        json: { ...answer, committed: { ...answer.committed, rootRollup: `0x${"66".repeat(32)}` } },
      });
    });
    await context.route("**/public/v1/batches/zk-rollup-0", async (route) => {
      const answer = await (await route.fetch()).json();
      await route.fulfill({ json: { ...answer, batchRoot: `0x${"66".repeat(32)}` } });
    });
    const { page: tab } = await visit(context);
    await tab.goto(`${page}#/vaults/${vaults[0]?.vaultId}`);
    await tab.getByText("This proof is wrong").waitFor();
    await tab.goto(`${page}#/`);
    await tab.getByText("L1 does not hold the state that this server shows.").waitFor();
    await tab.goto(`${page}#/batches/zk-rollup-0`);
    await tab.getByText("This batch does not match its record.").waitFor();
  });

  test("a contract that runs other code is found out", async () => {
    const context = await browser.newContext();
    await context.route(`${sandbox.description.rpcUrl}/**`, async (route) => {
      const asked = route.request().postDataJSON();
      const answer = await (await route.fetch()).json();
      // One byte of the code that lends its functions.
      const isLent =
        asked?.method === "eth_getCode" && asked.params[0] !== sandbox.description.contract;
      await route.fulfill({
        json: isLent ? { ...answer, result: `${answer.result.slice(0, -2)}00` } : answer,
      });
    });
    const { page: tab } = await visit(context);
    await tab.goto(page);
    await tab.getByText("is not this version's Administration").waitFor();
    await tab.getByText("See the failed check").waitFor();
  });

  test("state and batches are recomputed, and found by name from the keyboard", async () => {
    const { page: tab, problems } = await visit(await browser.newContext());
    await tab.goto(page);
    await tab.getByText("L1 holds exactly the state that this server shows").waitFor();
    expect(
      await tab.locator(".checks li.holds", { hasText: "this version's in every byte" }).count(),
    ).toBe(1);
    await tab.getByLabel("Vault or batch").fill(vaults[0]?.batchId ?? "");
    await tab.keyboard.press("Enter");
    await tab.getByText("This batch matches L1, down to each vault").waitFor();
    // The sandbox's rollup goes into blobs.
    expect(
      await tab.locator(".checks li.holds", { hasText: "Each blob has its KZG proof" }).count(),
    ).toBe(1);
    expect(await tab.locator("tbody tr").count()).toBe(9);
    expect(await tab.title()).toBe("Batch zk-rollup-0 · Mintmark explorer");
    await tab.getByLabel("Vault or batch").fill("99999999");
    await tab.keyboard.press("Enter");
    await tab.getByRole("alert").waitFor();
    // A browser names each refused request; what the page itself does stays quiet.
    expect(problems.filter((text) => !text.includes("404"))).toEqual([]);
  });

  test("an owner signs in with its wallet, and withdraws by the downloaded kit alone", async () => {
    const { owner, name } = USERS[1];
    const context = await browser.newContext();
    const { rpcUrl, contract } = sandbox.description;
    await addWallet(context, owner, rpcUrl);
    const { page: tab, problems } = await visit(context);
    await tab.goto(`${page}#/owner`);
    await tab.getByRole("button", { name: "Sign in with your wallet" }).click();
    await tab.getByText(/^3 tokens/).waitFor();
    expect(await tab.locator("li.token").count(), `${name}'s tokens`).toBe(3);
    await openToken(tab);
    const save = await kitButton(tab);
    const [download] = await Promise.all([tab.waitForEvent("download"), save.click()]);
    expect(problems).toEqual([]);
    const file = await download.path();
    const text = await readFile(file, "utf8");
    const [kit, parsed] = [JSON.parse(text), parseExitKit(text)];
    expect(kit).toMatchObject({
      format: "mintmark-exit-kit",
      contract,
      vault: { owner: owner.address.toLowerCase() },
    });
    const l1 = await connectPortal({ rpc: rpcUrl, ...parsed.settlement, account: owner });
    await exitWithKit({
      kit: parsed,
      l1,
      account: owner.address,
      immature: "wait",
      pollingMs: 200,
    });
    await tab.goto(`${page}#/vaults/${kit.vault.vaultId}`);
    await tab.getByText("1 of 1").waitFor();
    // With a wallet at hand, L1 is read through it.
    expect(await tab.locator(".checks").innerText()).toContain("your wallet's Ethereum node");
  });

  test("an owner whose sign-in has ended signs in again", async () => {
    const context = await browser.newContext();
    await addWallet(context, USERS[1].owner, sandbox.description.rpcUrl);
    const json = { code: "credentials_expired", detail: "The sign-in has expired." };
    await context.route("**/owner/v1/vaults/**", (route) => route.fulfill({ status: 401, json }));
    const { page: tab } = await visit(context);
    await tab.goto(`${page}#/owner`);
    const start = tab.getByRole("button", { name: "Sign in with your wallet" });
    await start.click();
    await openToken(tab);
    await (await kitButton(tab)).click();
    await tab.getByText("Your sign-in has ended. Sign in again.").waitFor();
    expect(await tab.getByRole("button", { name: "Try again" }).count()).toBe(0);
    await context.unroute("**/owner/v1/vaults/**");
    await start.click();
    const save = await kitButton(tab);
    await Promise.all([tab.waitForEvent("download"), save.click()]);
  });

  test("is one script, and reloading it is not metered", async () => {
    const context = await browser.newContext();
    const { page: tab } = await visit(context);
    const scripts: string[] = [];
    tab.on("request", (request) => {
      if (request.resourceType() === "script") scripts.push(new URL(request.url()).pathname);
    });
    await tab.goto(page);
    await tab.locator("#main h1").waitFor();
    expect(scripts[0]).toBe("/explorer/explorer.js");
    expect(scripts.filter((path) => !path.startsWith("/explorer/"))).toEqual([]);
    expect(scripts).not.toContain("/explorer/withdraw.js");
    const statuses = new Set<number>();
    for (let i = 0; i < 400; i++)
      statuses.add((await fetch(`${page}/explorer.js`, { method: "HEAD" })).status);
    expect(statuses).toEqual(new Set([200]));
  });

  test("a refusal for too many requests is a sentence under a heading, and trying again works", async () => {
    const context = await browser.newContext();
    let refusing = true;
    const json = {
      code: "rate_limited",
      detail: "Too many requests; repeat after Retry-After seconds.",
    };
    for (const path of ["**/explorer/settings.json", "**/public/v1/**"]) {
      await context.route(path, async (route) => {
        if (refusing) await route.fulfill({ status: 429, headers: { "retry-after": "7" }, json });
        else await route.continue();
      });
    }
    const { page: tab } = await visit(context);
    await tab.goto(page);
    await tab.getByRole("heading", { name: "The explorer cannot start now" }).waitFor();
    expect(await tab.getByRole("alert").innerText()).toContain("Try again in 7 s.");
    expect(await tab.locator("body").innerText()).not.toContain("Loading…");
    refusing = false;
    await tab.getByRole("button", { name: "Try again" }).click();
    await tab.getByRole("heading", { name: "State" }).waitFor();
    refusing = true;
    await tab.goto(`${page}#/batches`);
    await tab.getByRole("heading", { name: "This cannot be shown now" }).waitFor();
    refusing = false;
    await tab.getByRole("button", { name: "Try again" }).click();
    await tab.getByRole("heading", { name: "Batches" }).waitFor();
  });

  test("a vault that does not exist has a page with a heading", async () => {
    const { page: tab } = await visit(await browser.newContext(PHONE));
    await tab.goto(`${page}#/vaults/99999999`);
    await tab.getByRole("heading", { name: "Not found" }).waitFor();
    expect(await tab.title()).toBe("Not found · Mintmark explorer");
  });

  test("is legible on a phone: nothing is wider than the screen, and text is large enough", async () => {
    const { page: tab } = await visit(await browser.newContext({ ...PHONE, colorScheme: "dark" }));
    for (const view of [
      "#/",
      `#/vaults/${vaults[0]?.vaultId}`,
      "#/batches/zk-rollup-0",
      "#/owner",
    ]) {
      await tab.goto(`${page}${view}`);
      await tab.locator("#main h1").waitFor();
      const [inside, smallest] = (await tab.evaluate(`[
        document.documentElement.scrollWidth <= innerWidth,
        Math.min(...[...document.querySelectorAll("p, td, th, dd, dt, a, code, button")].map((e) => parseFloat(getComputedStyle(e).fontSize))),
      ]`)) as [boolean, number];
      expect(inside, `${view} fits`).toBe(true);
      expect(smallest, view).toBeGreaterThanOrEqual(12);
    }
  });
});
