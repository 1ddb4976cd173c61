import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Browser, BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Role } from "../../core/index.ts";
import { until } from "../../scripts/demo/until.ts";
import { USERS } from "../../scripts/sandbox/accounts.ts";
import { type Sandbox, startSandbox } from "../../scripts/sandbox/sandbox.ts";
import { answer, createClient, mint, transfer } from "../../server/client/index.ts";
import { addWallet, axeFaults, hasChromium, launchChromium, visit } from "./chromium.ts";
import { addWallets } from "./wallets.ts";

const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true };
const HOSTILE = `<img src=x onerror="alert(1)"><script>alert(2)</script>`;

describe.skipIf(!hasChromium)("the console, in Chromium", () => {
  let folder: string;
  let sandbox: Sandbox;
  let browser: Browser;
  /**
   * Swords of the first user, minted early so that they are final by the time that a test transfers
   * them.
   */
  let swords: readonly string[];

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "mintmark-console-"));
    [sandbox, browser] = await Promise.all([
      startSandbox({ folder, port: 0, chainPort: 0 }),
      launchChromium(),
    ]);
    const assetId =
      sandbox.description.assets.find(({ symbol }) => symbol === "SWRD")?.assetId ?? "";
    const one = { assetId, amount: "1", dataAvailabilityMode: "zk-rollup" } as const;
    const mints = Array.from({ length: 12 }, (_, i) => ({ ...one, tokenId: String(700_001 + i) }));
    const { vaults } = await mint(ownClient(), { users: [{ userId: USERS[0].userId, mints }] });
    swords = vaults.map(({ vaultId }) => vaultId);
  });

  function ownClient() {
    const { api, apiKey } = sandbox.description;
    return createClient({ baseUrl: api, apiKey });
  }

  afterAll(async () => {
    await browser?.close();
    await sandbox?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  /** A signed-in tab. `problems` are errors in its console and breaches of its policy. */
  async function signedIn(role: Role, options: BrowserContextOptions = {}) {
    const { api, applicationId } = sandbox.description;
    const person = {
      applicationId: role === "operator" ? null : applicationId,
      role,
      name: `The ${role}`,
    };
    const { link } = await sandbox.engine.people.invite(person);
    const context = await browser.newContext(options);
    const visited = await visit(context);
    await visited.page.goto(`${api}/console#link=${link}`);
    await visited.page.getByRole("button", { name: "Sign in with this link" }).click();
    await visited.page.getByRole("button", { name: "Sign out" }).waitFor();
    return { ...visited, context };
  }

  async function open(page: Page, name: string) {
    await page.getByRole("navigation").getByRole("link", { name, exact: true }).click();
    await page.getByRole("heading", { level: 1, name }).waitFor();
    // The loaded parts of the page are looked at, too.
    await page.getByText("Loading…").first().waitFor({ state: "detached" });
  }

  /** Parts that are wider than their place: the page itself, or tables. */
  function cutParts(page: Page): Promise<string[]> {
    const wide = "each => each.scrollWidth > each.clientWidth";
    const places = 'document.querySelectorAll("html, .table")';
    return page.evaluate<string[]>(
      `[...${places}].filter(${wide}).map((each) => each.ariaLabel ?? "page")`,
    );
  }

  async function search(page: Page, text: string) {
    await page.getByLabel("Find anything").fill(text);
    await page.locator("search").getByRole("button", { name: "Find" }).click();
  }

  test("the link that the sandbox prints signs a newcomer in, once, and leaves no secret in the address", async () => {
    const { page, problems, origins } = await visit(await browser.newContext());
    await page.goto(sandbox.description.consoleLinks.team);
    // Opening it uses nothing: programs that look into mails open links too.
    const signIn = page.getByRole("button", { name: "Sign in with this link" });
    await signIn.waitFor();
    expect(page.url()).not.toContain("link=");
    await page.goto("about:blank");
    await page.goto(sandbox.description.consoleLinks.team);
    await signIn.click();
    await page.getByRole("button", { name: "Sign out" }).waitFor();
    expect(page.url()).not.toContain("link=");
    // A link that is opened over the console does not take the place of its sign-in by itself.
    await page.goto(sandbox.description.consoleLinks.operator);
    await signIn.waitFor();
    expect(page.url()).not.toContain("link=");
    await page.reload();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in to the console" }).waitFor();
    expect(problems).toEqual([]);
    expect([...origins]).toEqual([sandbox.description.api]);
    await page.goto("about:blank");
    await page.goto(sandbox.description.consoleLinks.team);
    await signIn.click();
    const { data } = await sandbox.engine.people.list(sandbox.description.applicationId);
    const you = data.find(({ name }) => name === "You")?.personId;
    expect(await page.getByRole("alert").innerText()).toContain(
      `npx mintmark people link ${you} --store`,
    );
    expect(await signIn.count()).toBe(0);
  });

  test("a developer creates a key, which works, rotates it and revokes it", async () => {
    const { page, problems } = await signedIn("developer");
    await open(page, "API keys");
    await page.getByLabel("Name").fill(HOSTILE);
    await page.getByRole("button", { name: "Create key" }).click();
    const secret = await page.locator(".secret code").innerText();
    const asked = async (key: string) => {
      const { api } = sandbox.description;
      return (await fetch(`${api}/api/v1/application`, { headers: { "x-api-key": key } })).status;
    };
    expect(await asked(secret)).toBe(200);
    await page.getByRole("button", { name: "I have stored it" }).click();
    const row = page.getByRole("row").filter({ hasText: HOSTILE });
    await row.getByRole("button", { name: "Rotate" }).click();
    await page.locator(".secret code").waitFor();
    expect(await asked(await page.locator(".secret code").innerText())).toBe(200);
    page.on("dialog", (dialog) => void dialog.accept());
    // The newest is first, and the old one stays in its row when the new one comes.
    await row.nth(1).waitFor();
    await row.last().getByRole("button", { name: "Revoke" }).click();
    await row.last().locator(".gone").waitFor();
    expect(await asked(secret)).toBe(401);
    await open(page, "Audit log");
    await page.getByRole("cell", { name: "revoked the key" }).waitFor();
    // The name is text wherever it is shown: nothing was parsed, and nothing ran.
    expect(await page.locator("main img, main script").count()).toBe(0);
    expect(problems).toEqual([]);
  });

  test("an admin creates a token with the browser's wallet, reloads half-way, and can mint it", async () => {
    const { page, context, problems } = await signedIn("admin", PHONE);
    const wallet = {
      name: "Test wallet",
      account: USERS[1].owner,
      rpc: sandbox.description.rpcUrl,
    };
    const asked: string[] = [];
    const declines = new Set<string>();
    // Its user declines the second of the three transactions.
    declines.has = (method) =>
      method === "eth_sendTransaction" && asked.filter((each) => each === method).length === 2;
    await addWallets(context, [{ ...wallet, asked, declines }]);
    await page.reload();
    await open(page, "Assets");
    await page.getByLabel("Standard").selectOption("erc1155");
    await page.getByLabel("Name").fill(HOSTILE);
    await page.getByLabel("Symbol").fill("POTN");
    await page.getByLabel("Royalty of each sale, percent").fill("2.5");
    await page.getByLabel("Who gets it").fill("0x12");
    await page.getByRole("button", { name: "Create token" }).click();
    await page.getByText("receiver: Give an address").waitFor();
    expect(await axeFaults(page)).toEqual([]);
    await page.getByLabel("Who gets it").fill("");
    await page.getByRole("button", { name: "Create token" }).click();
    await page.getByText("You declined the request in your wallet.").waitFor();
    await page.reload();
    await page.getByRole("button", { name: "Go on with the token" }).click();
    await page.getByText("is here, registered and enabled").waitFor();
    const row = page.getByRole("row").filter({ hasText: "(POTN)" });
    await row.getByRole("button", { name: "Disable" }).waitFor();
    const [asset] = (
      await sandbox.engine.assets.list(sandbox.description.applicationId, { symbol: "POTN" })
    ).data;
    expect(asset).toMatchObject({ mintingAvailable: true, minterLocked: true, registered: true });
    expect(await page.locator("main img, main script").count()).toBe(0);
    expect(await cutParts(page)).toEqual([]);
    expect(problems.filter((text) => !text.includes("400"))).toEqual([]);
  });

  test("charts are drawn in the page's own colours, light and dark", async () => {
    for (const colorScheme of ["light", "dark"] as const) {
      const { page } = await signedIn("viewer", { colorScheme });
      await page.locator(".chart canvas").first().waitFor();
      const painted = `[...document.querySelectorAll(".chart canvas")].map((canvas) => {
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        const solid = [];
        for (let i = 0; i < data.length; i += 4)
          if (data[i + 3] > 200) solid.push(Math.max(data[i], data[i + 1], data[i + 2]));
        return { solid: solid.length > 0, black: solid.filter((most) => most < 40).length };
      })`;
      for (const chart of await page.evaluate<object[]>(painted))
        expect(chart).toEqual({ solid: true, black: 0 });
    }
  });

  test("an admin invites, a viewer sees no button to change anything, and removing signs the viewer out", async () => {
    const { page: admin } = await signedIn("admin");
    await open(admin, "Team");
    await admin.getByLabel("Name").fill("Vera");
    await admin.getByRole("button", { name: "Invite" }).click();
    const link = await admin.locator(".secret code").innerText();
    const { page: viewer } = await visit(await browser.newContext());
    await viewer.goto(link);
    await viewer.getByRole("button", { name: "Sign in with this link" }).click();
    await open(viewer, "API keys");
    for (const name of ["Create key", "Rotate", "Revoke"]) {
      expect(await viewer.getByRole("button", { name }).count()).toBe(0);
    }
    admin.on("dialog", (dialog) => void dialog.accept());
    const row = admin.getByRole("row").filter({ hasText: "Vera" });
    await row.getByRole("button", { name: "Remove" }).click();
    await row.locator(".gone").waitFor();
    await viewer.getByRole("link", { name: "Team" }).click();
    await viewer.getByRole("heading", { name: "Sign in to the console" }).waitFor();
  });

  test("a wallet signs in after its owner has set it, and its refusal is a sentence", async () => {
    const account = privateKeyToAccount(`0x${"2b".repeat(32)}`);
    const context = await browser.newContext();
    await addWallet(context, account, sandbox.description.rpcUrl);
    const { engine, description } = sandbox;
    const { applicationId } = description;
    await engine.people.invite({
      applicationId,
      role: "viewer",
      name: "Wally",
      address: account.address,
    });
    const { page } = await visit(context);
    await page.goto(`${description.api}/console`);
    await page.getByRole("button", { name: /Sign in with/ }).click();
    await page.getByText("Wally").waitFor();
    // Another team invites the same wallet: it goes there only when its owner chooses to.
    await page.getByRole("button", { name: "Sign out" }).click();
    const other = await engine.applications.create({ name: HOSTILE });
    await engine.people.invite({
      ...other,
      role: "admin",
      name: "Mallory's",
      address: account.address,
    });
    await page.getByRole("button", { name: /Sign in with/ }).click();
    await page.getByRole("button", { name: `${HOSTILE}, as Mallory's (admin)` }).waitFor();
    await page.getByRole("button", { name: /as Wally/ }).click();
    await page.getByText("Wally").waitFor();
    const stranger = await browser.newContext();
    await addWallet(stranger, privateKeyToAccount(`0x${"2c".repeat(32)}`), description.rpcUrl);
    const { page: refused } = await visit(stranger);
    await refused.goto(`${description.api}/console`);
    await refused.getByRole("button", { name: /Sign in with/ }).click();
    await refused
      .getByText("No person signs in with this wallet. Ask for an invitation.")
      .waitFor();
  });

  test("a developer's day: a mint by hand, a drop from a file, a webhook that fails and is delivered again", async () => {
    const { page, problems, context } = await signedIn("developer");
    const { users, api } = sandbox.description;
    const owner = users[0]?.ownerAddress ?? "";
    await open(page, "Mint by hand");
    await page.getByLabel("Asset").selectOption({ label: "Swords (erc721)" });
    await page.getByLabel("Owner's address").fill(owner);
    await page.getByLabel("Token id").fill("424242");
    await page.getByLabel("Data").selectOption("zk-rollup");
    await page.getByLabel("Reference").fill(HOSTILE);
    await page.getByText("Everybody can exit from L1 alone").waitFor();
    await page.getByRole("button", { name: "Mint", exact: true }).click();
    await page.getByText("Minted: vault").waitFor();
    await page.getByRole("cell", { name: HOSTILE }).first().waitFor();
    await page.getByRole("cell", { name: "mint Swords #424242" }).first().waitFor();
    // A second mint of the token is refused in a sentence.
    await page.getByLabel("Owner's address").fill(owner);
    await page.getByLabel("Token id").fill("424242");
    await page.getByRole("button", { name: "Mint", exact: true }).click();
    await page.getByRole("alert").waitFor();
    expect(await page.getByRole("alert").allInnerTexts()).toEqual([
      "tokenId: this token has been minted before",
    ]);

    await open(page, "Drops");
    const rows = Array.from({ length: 500 }, (_, i) => `${owner},${500_000 + i}`);
    const buffer = Buffer.from(`ownerAddress,tokenId\n${rows.join("\n")}\n`);
    const upload = async () => {
      await page
        .getByLabel("File")
        .setInputFiles({ name: "swords.csv", mimeType: "text/csv", buffer });
      await page.getByLabel("Asset").selectOption({ label: "Swords (erc721)" });
      await page.getByRole("button", { name: "Upload and mint" }).click();
    };
    await upload();
    await page.getByText("500 of 500 rows").waitFor();
    await page.getByText("done", { exact: true }).waitFor();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Result" }).click(),
    ]);
    expect((await readFile(await download.path(), "utf8")).trim().split("\n")).toHaveLength(500);
    // A repeated file is no second drop.
    await upload();
    await expect.poll(() => page.getByRole("row").count()).toBe(2);

    let works = false;
    const received: string[] = [];
    const receiver = createServer((request, response) => {
      received.push(String(request.headers["webhook-id"]));
      response.writeHead(works ? 204 : 500).end();
    });
    await new Promise<void>((listening) => receiver.listen(0, "127.0.0.1", listening));
    const { port } = receiver.address() as AddressInfo;
    await open(page, "Webhooks");
    await page.getByLabel("Address").fill(`http://127.0.0.1:${port}/`);
    await page.getByRole("button", { name: "Add webhook" }).click();
    await page.getByRole("button", { name: "I have stored it" }).click();
    await page.getByRole("button", { name: "Test" }).click();
    await page.getByRole("button", { name: "Deliveries" }).click();
    await page.getByRole("region", { name: "Deliveries" }).getByText("500").first().waitFor();
    works = true;
    const swords =
      sandbox.description.assets.find(({ symbol }) => symbol === "SWRD")?.assetId ?? "";
    const mint = {
      assetId: swords,
      tokenId: "424243",
      amount: 1,
      dataAvailabilityMode: "validium",
    } as const;
    const principal = await sandbox.engine.keys.authenticate(sandbox.description.apiKey);
    await sandbox.engine.mint(principal, {
      users: [{ ownerAddress: owner, mints: [mint] }],
    } as unknown);
    await page.getByRole("button", { name: "Deliver now" }).click();
    const again = page.getByRole("button", { name: "Deliver again" }).first();
    await again.waitFor();
    const before = received.length;
    await again.click();
    await expect.poll(() => received.length).toBeGreaterThan(before);
    receiver.close();
    for (const [name, text] of [
      ["Overview", "Transactions a day"],
      ["Vaults", "424243"],
      ["Audit log", "Swords #424242"],
    ] as const) {
      await open(page, name);
      await page.getByText(text).first().waitFor();
    }
    expect(await page.locator("main img, main script").count()).toBe(0);
    // A browser names each refused request in its console; the pages themselves stay quiet.
    expect(problems.filter((text) => !text.includes("409"))).toEqual([]);
    expect(api).toContain("127.0.0.1");
    await context.close();
  });

  test("a viewer sees names and images of tokens on demand, and nothing of them runs", async () => {
    const { engine, description } = sandbox;
    const { applicationId, apiKey } = description;
    const ownerAddress = `0x${"ad".repeat(20)}` as const;
    const { assetId } = await engine.assets.add({
      ...{
        standard: "erc721",
        contractAddress: ownerAddress,
        name: `${HOSTILE} faces`,
        symbol: "ART",
        applicationId,
      },
    });
    await engine.operator.recordRegistered(assetId, { minterLocked: true });
    const pixel =
      "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
    const metadata = { name: HOSTILE, image: `data:image/png;base64,${pixel}` };
    const mint = { assetId, amount: 1, dataAvailabilityMode: "validium" } as const;
    const mints = [
      { ...mint, tokenId: "1", metadata },
      { ...mint, tokenId: "2" },
    ];
    await engine.mint(await engine.keys.authenticate(apiKey), { users: [{ ownerAddress, mints }] });
    const { page, problems } = await signedIn("viewer");
    await open(page, "Vaults");
    const filters = page.getByRole("form", { name: "Find vaults" });
    await filters.getByLabel("Owner").fill(ownerAddress);
    await filters.getByRole("button", { name: "Find" }).click();
    const rows = page.getByRole("row").filter({ hasText: "faces" });
    await expect.poll(() => rows.count()).toBe(2);
    expect(await page.locator("main img").count()).toBe(0);
    await filters.getByLabel("Names and images").selectOption("shown");
    await rows.getByRole("img", { name: HOSTILE, exact: true }).waitFor();
    await rows.filter({ hasText: "Token 2" }).locator(".picture.none").waitFor();
    // Typed text stays, also in the address.
    await page.reload();
    await rows.first().waitFor();
    expect(await filters.getByLabel("Owner").inputValue()).toBe(ownerAddress);
    await expect.poll(() => rows.count()).toBe(2);
    expect(await page.locator("main script, main [onerror]").count()).toBe(0);
    // A browser names the token without metadata in its console.
    expect(problems.filter((text) => !text.includes("404"))).toEqual([]);
  });

  test("a viewer sees which tickets are redeemed, who gets a vault, and which assets are transferable", async () => {
    const [{ owner: signer }, { owner: friend }] = USERS;
    const client = ownClient();
    const [ticket = "", gift = "", ...more] = swords;
    const read = () =>
      answer(client.GET("/api/v1/vaults/{vaultId}", { params: { path: { vaultId: gift } } }));
    await until("the mints are final", read, ({ status }) => status === "finalized");
    await transfer(client, {
      transfers: [
        { vaultId: ticket, redeem: true },
        ...[gift, ...more].map((vaultId) => ({ vaultId, to: friend.address })),
      ],
      signer,
    });
    const { page, problems } = await signedIn("viewer");
    await open(page, "Transfers");
    const row = (vaultId: string) =>
      page.getByRole("row").filter({ has: page.getByTitle(vaultId) });
    await row(ticket)
      .filter({ hasText: "Swords #700001" })
      .getByText("redeemed", { exact: true })
      .waitFor();
    for (const owner of [signer, friend])
      await row(gift).getByTitle(owner.address.toLowerCase()).waitFor();
    expect(await row(more.at(-1) ?? "").count()).toBe(0);
    await page.getByRole("button", { name: "Show 2 more" }).click();
    await row(more.at(-1) ?? "").waitFor();
    expect(await axeFaults(page)).toEqual([]);
    await page.getByLabel("Status").selectOption("failed");
    await page.getByText("Nothing matches.").waitFor();
    await open(page, "Assets");
    await page.getByRole("columnheader", { name: "Transferable" }).waitFor();
    const sword = page.getByRole("row").filter({ hasText: "SWRD" }).getByRole("cell");
    await expect.poll(() => sword.nth(4).innerText()).toBe("yes");
    expect(problems).toEqual([]);
  });

  test("the search leads to what an id, an address or a reference names, in the own application only", async () => {
    const { engine, description } = sandbox;
    const { applicationId, api, apiKey, assets } = description;
    const ownerAddress = `0x${"5e".repeat(20)}` as const;
    const { userId } = await engine.users.create(applicationId, {
      ownerAddress,
      reference: "Ada, player 7",
    });
    const [swords, points] = ["SWRD", "PTS"].map(
      (each) => assets.find(({ symbol }) => symbol === each)?.assetId ?? "",
    );
    const mode = { dataAvailabilityMode: "validium" } as const;
    const { mintId, vaults } = await mint(createClient({ baseUrl: api, apiKey }), {
      users: [
        {
          userId,
          mints: [
            {
              ...mode,
              assetId: swords ?? "",
              tokenId: "770077",
              amount: "1",
              reference: "=order 7",
            },
            { ...mode, assetId: points ?? "", amountDecimal: "1234.5" },
          ],
        },
      ],
    });
    const [{ vaultId = "", batchId = "" } = {}] = vaults;
    const { page, problems } = await signedIn("viewer");
    const heading = (name: string) => page.getByRole("heading", { level: 1, name, exact: true });
    for (const [text, title] of [
      [vaultId, `Vault ${vaultId}`],
      ["770077", "Swords #770077"],
      [`${mintId}.1`, "Transaction"],
      [batchId, `Batch ${batchId}`],
      [ownerAddress, "Owner"],
      // No checksum has this form.
      [ownerAddress.toUpperCase().replaceAll("E", "e"), "Owner"],
      [userId, "User"],
      ["Ada, player 7", "User"],
      ["=order 7", "Transactions"],
      [mintId, "Transactions"],
    ] as const) {
      await search(page, text);
      await heading(title).waitFor();
      await page.getByText("Loading…").first().waitFor({ state: "detached" });
      expect(await cutParts(page), text).toEqual([]);
    }
    await page.getByRole("cell", { name: "1,234.5 PTS" }).waitFor();
    await search(page, "770077");
    await page.getByRole("row", { name: /minted Swords #770077/ }).waitFor();
    await page
      .getByRole("definition")
      .filter({ hasText: "holds it" })
      .getByTitle(ownerAddress)
      .waitFor();
    // A redeemed sword has a past, and no holder.
    await search(page, "700001");
    await page.getByText("It was redeemed.").waitFor();
    await page.getByRole("row", { name: /redeemed/ }).waitFor();
    // Another application's team finds none of these.
    const other = await engine.applications.create({ name: "Elsewhere" });
    const { link } = await engine.people.invite({ ...other, role: "admin", name: "Stranger" });
    const { page: stranger } = await visit(await browser.newContext());
    await stranger.goto(`${api}/console#link=${link}`);
    await stranger.getByRole("button", { name: "Sign in with this link" }).click();
    for (const text of [
      vaultId,
      "770077",
      `${mintId}.1`,
      ownerAddress,
      userId,
      "Ada, player 7",
      "=order 7",
      mintId,
    ]) {
      await search(stranger, text);
      await stranger.getByRole("heading", { name: `Found for ${text}` }).waitFor();
      await stranger.getByText("Nothing of your application.").waitFor();
    }
    // A browser names each id that does not exist in its console.
    expect(problems.filter((text) => !text.includes("404"))).toEqual([]);
  });

  test("transactions are filtered by date, and exported as a table for spreadsheets", async () => {
    const { page, problems } = await signedIn("viewer");
    await open(page, "Transactions");
    const filters = page.getByRole("form", { name: "Find transactions" });
    const find = filters.getByRole("button", { name: "Find" });
    const day = (days: number) =>
      new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);
    await filters.getByLabel("From").fill(day(2));
    await find.click();
    await page.getByText("Nothing matches.").waitFor();
    const address = page.url();
    await page.getByRole("link", { name: "Skip to content" }).press("Enter");
    expect(await page.locator("main:focus").count()).toBe(1);
    expect(page.url()).toBe(address);
    await filters.getByLabel("To").fill(day(-2));
    await find.click();
    await page
      .getByRole("alert")
      .filter({ hasText: `is after To, ${day(-2)}. Swap them.` })
      .waitFor();
    await filters.getByLabel("From").fill(day(-2));
    await filters.getByLabel("To").fill(day(2));
    await filters.getByLabel("Reference").fill("=order 7");
    await find.click();
    await page.getByRole("cell", { name: "=order 7" }).waitFor();
    expect(await page.getByRole("row").count()).toBe(2);
    const [file] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Export as CSV" }).click(),
    ]);
    const [header, row, ...more] = (await readFile(await file.path(), "utf8")).trim().split("\r\n");
    expect(header).toContain(
      "accepted,type,status,asset,symbol,tokenId,amount,userId,vaultId,batchId,reference",
    );
    expect(row).toMatch(/^20\d\d-[^,]*Z,mint,[a-z]+,Swords,SWRD,770077,1,/);
    // A spreadsheet must not run it as a formula.
    expect(row).toContain(",'=order 7,");
    expect(more).toEqual([]);
    // The whole list has more pages than one.
    await page.goto(`${sandbox.description.api}/console#/transactions?type=mint`);
    const [whole] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Export as CSV" }).click(),
    ]);
    const { mints } = await sandbox.engine.transactions.usage(sandbox.description.applicationId);
    const lines = (await readFile(await whole.path(), "utf8")).trim().split("\r\n");
    expect(BigInt(lines.length - 1)).toBe(mints);
    expect(problems).toEqual([]);
  });

  test("the operator sees the way to L1 and its gas, and looks into an application that it creates and suspends", async () => {
    const { page, problems } = await signedIn("operator");
    await open(page, "Operations");
    await page.getByRole("heading", { name: "Ready", exact: true }).waitFor();
    await page
      .getByRole("row", { name: /Committee members/ })
      .getByText("can sign")
      .waitFor();
    await page.getByRole("img", { name: /Gas of a mint in its batch: \d+ values/ }).waitFor();
    await open(page, "Applications");
    await page.getByLabel("Name").fill("Second game");
    await page.getByRole("button", { name: "Create application" }).click();
    const row = page.getByRole("row").filter({ hasText: "Second game" });
    page.on("dialog", (dialog) => void dialog.accept());
    await row.getByRole("button", { name: "Suspend" }).click();
    await row.getByText("suspended").waitFor();
    await row.getByRole("button", { name: "Resume" }).click();
    await row.getByText("active").waitFor();
    await row.getByRole("button", { name: "Look into" }).click();
    await open(page, "Team");
    await page.getByLabel("Name").fill("Their first admin");
    await page.getByLabel("Role").selectOption("admin");
    await page.getByRole("button", { name: "Invite" }).click();
    await page.locator(".secret code").waitFor();
    expect(await page.getByRole("link", { name: "Mint by hand" }).count()).toBe(0);
    await page.getByRole("button", { name: "Back to all" }).click();
    await page.getByRole("heading", { level: 1, name: "Applications" }).waitFor();
    expect(problems).toEqual([]);
  });

  test.runIf(process.env.MINTMARK_SCREENSHOTS)("the screenshots of the guide", async () => {
    const folder = new URL("../../docs/images/", import.meta.url).pathname;
    const shots = [
      ["admin", "Overview", "console-overview.png", { viewport: { width: 1200, height: 800 } }],
      [
        "operator",
        "Operations",
        "console-operations.png",
        { viewport: { width: 1200, height: 900 } },
      ],
      ["admin", "API keys", "console-phone.png", { ...PHONE, colorScheme: "dark" }],
    ] as const;
    for (const [role, name, file, shape] of shots) {
      const { page, context } = await signedIn(role, shape);
      await open(page, name);
      await page.waitForTimeout(500);
      await page.screenshot({ path: `${folder}${file}` });
      await context.close();
    }
  });

  test.each([
    ["admin", "dark"],
    ["operator", "light"],
  ] as const)(
    "no page of the %s has a fault for axe or is cut on a phone, a tablet or a desk, %s",
    async (role, colorScheme) => {
      const { page, problems, context } = await signedIn(role, { ...PHONE, colorScheme });
      for (const name of await page.getByRole("navigation").getByRole("link").allInnerTexts()) {
        await open(page, name);
        expect(await axeFaults(page), name).toEqual([]);
        for (const width of [390, 1024, 1440]) {
          await page.setViewportSize({ width, height: 844 });
          expect(await cutParts(page), `${name}, ${width} px`).toEqual([]);
        }
        await page.setViewportSize(PHONE.viewport);
      }
      expect(problems).toEqual([]);
      await context.close();
    },
  );

  test("is one script of less than 200 KB compressed", async () => {
    const context: BrowserContext = await browser.newContext();
    const { page } = await visit(context);
    const scripts: string[] = [];
    page.on("request", (request) => {
      if (request.resourceType() === "script") scripts.push(request.url());
    });
    const { api } = sandbox.description;
    await page.goto(`${api}/console`);
    await page.getByRole("heading", { level: 1 }).waitFor();
    expect(scripts).toEqual([`${api}/console/console.js`]);
    const script = Buffer.from(await (await fetch(scripts[0] ?? "")).arrayBuffer());
    expect(gzipSync(script).length).toBeLessThan(200 * 1024);
  });
});
