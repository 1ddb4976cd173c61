import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { exportExitKit } from "../../core/exit/index.ts";
import { readL1 } from "../../core/l1/index.ts";
import { exitKitText } from "../../scripts/commands/exit.ts";
import { until } from "../../scripts/demo/until.ts";
import { USERS } from "../../scripts/sandbox/accounts.ts";
import { type Sandbox, startSandbox } from "../../scripts/sandbox/sandbox.ts";
import { answer, createClient, type MintmarkClient, mint } from "../../server/client/index.ts";
import { exitPageHtml } from "../../server/pages/scripted.ts";
import { axeFaults, hasChromium, launchChromium, SHAPES, visit } from "./chromium.ts";
import { addWallets } from "./wallets.ts";

const [alice, bob, carol] = USERS;
const [PHONE] = SHAPES;
type Person = Pick<(typeof USERS)[number], "owner">;

describe.skipIf(!hasChromium)("my tokens, in Chromium", () => {
  let folder: string;
  let sandbox: Sandbox;
  let browser: Browser;
  let client: MintmarkClient;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "mintmark-tokens-"));
    [sandbox, browser] = await Promise.all([
      startSandbox({ folder, port: 0, chainPort: 0 }),
      launchChromium(),
    ]);
    const { api, apiKey } = sandbox.description;
    client = createClient({ baseUrl: api, apiKey });
    const fee = { basisPoints: 200, to: `0x${"fe".repeat(20)}` } as const;
    const terms = { listing: "owners" as const, fee, assets: [] };
    await answer(client.PUT("/api/v1/order-terms", { body: terms }));
    const dawn = { tokenId: "1", metadata: { name: "Sword of dawn" } };
    const swords = { path: { assetId: assetOf("erc721") } };
    const body = { tokens: [dawn] };
    await answer(client.POST("/api/v1/assets/{assetId}/metadata", { params: swords, body }));
    await give(alice, ["1", "2", "3", "4", "5", "6"], ["12.5"]);
    await give(bob, ["21"], ["400"]);
    await give(carol, [], ["30"]);
    // In a batch of its own, and so in a second vault.
    await give(alice, [], ["1237.5"]);
  });
  afterAll(async () => {
    await browser?.close();
    await sandbox?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  const assetOf = (kind: string) =>
    sandbox.description.assets.find(({ standard }) => standard === kind)?.assetId ?? "";

  /** Mints swords and amounts of points, and waits until L1 has them for good. */
  async function give(
    { userId }: (typeof USERS)[number],
    swords: readonly string[],
    points: readonly string[],
  ): Promise<readonly string[]> {
    const mode = { dataAvailabilityMode: "zk-rollup" as const };
    const mints = [
      ...swords.map((tokenId) => ({ assetId: assetOf("erc721"), tokenId, amount: "1", ...mode })),
      ...points.map((amountDecimal) => ({ assetId: assetOf("erc20"), amountDecimal, ...mode })),
    ];
    const { vaults } = await mint(client, { users: [{ userId, mints }] });
    const params = { path: { vaultId: vaults[0]?.vaultId ?? "" } };
    const read = () => answer(client.GET("/api/v1/vaults/{vaultId}", { params }));
    await until("the mint is final", read, ({ status }) => status === "finalized");
    return vaults.map(({ vaultId }) => vaultId);
  }

  async function open({ owner }: Person, address: string, shape: BrowserContextOptions = {}) {
    const context = await browser.newContext(shape);
    await addWallets(context, [{ name: "Foxy", account: owner, rpc: sandbox.description.rpcUrl }]);
    const visited = await visit(context);
    await visited.page.goto(address);
    return { ...visited, tab: visited.page };
  }
  async function signIn(person: Person, shape?: BrowserContextOptions) {
    const visited = await open(person, `${sandbox.description.api}/explorer#/owner`, shape);
    await press(visited.tab, "Sign in with Foxy");
    await visited.tab.getByText(/^\d+ tokens?/).waitFor();
    return visited;
  }
  const press = (tab: Page, name: string) =>
    tab.getByRole("button", { name, exact: true }).first().click();
  const cardOf = (tab: Page, title: string) =>
    tab
      .getByRole("list", { name: "My tokens" })
      .getByRole("listitem")
      .filter({ has: tab.getByRole("link", { name: title, exact: true }) });
  const show = async (tab: Page, text: string) => {
    await cardOf(tab, text).getByRole("link").click();
    await tab.getByRole("region", { name: "What you can do" }).waitFor();
  };
  const all = (tab: Page) => tab.getByRole("link", { name: "← My tokens" }).click();

  test("shows points as one total, names and drawn pictures, and a phone has the main action above the fold", async () => {
    for (const shape of SHAPES) {
      const { tab, problems } = await signIn(alice, shape);
      await cardOf(tab, "Loyalty Points").getByText("1,250 PTS").waitFor();
      await cardOf(tab, "Sword of dawn").getByText("Swords #1").waitFor();
      await tab.locator("li.token svg.picture rect").first().waitFor();
      expect(await axeFaults(tab)).toEqual([]);
      await show(tab, "Sword of dawn");
      const action = await tab.getByRole("button", { name: "Give away" }).boundingBox();
      const { height = 0 } = shape.viewport ?? {};
      expect((action?.y ?? height) + (action?.height ?? 0)).toBeLessThanOrEqual(height);
      expect(
        await tab.getByRole("region", { name: "What you can do" }).locator(".main").count(),
      ).toBe(1);
      expect(await tab.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
      expect(await axeFaults(tab)).toEqual([]);
      // It is still there for who has scrolled, and on a phone for whoever has not.
      await tab.setViewportSize({ width: 390, height: 400 });
      const low = await tab.getByRole("button", { name: "Give away" }).boundingBox();
      expect((low?.y ?? 400) + (low?.height ?? 0)).toBeLessThanOrEqual(400);
      expect(problems).toEqual([]);
    }
  });

  test("gives a part of the points, and a reload keeps the sign-in", async () => {
    const { tab, problems } = await signIn(alice, PHONE);
    await show(tab, "Loyalty Points");
    await press(tab, "Give away");
    await tab.getByLabel("Receiver's address").fill(carol.owner.address);
    await tab.getByLabel("Amount, of 1,250 PTS").fill("9999");
    await press(tab, "Continue");
    await tab.getByRole("alert").getByText("You can give 1,250 PTS at most now.").waitFor();
    await tab.getByLabel("Amount, of 1,250 PTS").fill("100.5");
    await press(tab, "Continue");
    await tab.getByText("You give 100.5 PTS to").waitFor();
    expect(await axeFaults(tab)).toEqual([]);
    await press(tab, "Sign in my wallet");
    await tab.locator(".figure").getByText("1,149.5 PTS").waitFor();
    await tab.reload();
    await tab.locator(".figure").getByText("1,149.5 PTS").waitFor();
    expect(problems).toEqual([]);
    const friend = await signIn(carol);
    await cardOf(friend.tab, "Loyalty Points").getByText("130.5 PTS").waitFor();
  });

  test("sells a sword to another owner, after both have read what they sign", async () => {
    const { tab, problems } = await signIn(alice, PHONE);
    await show(tab, "Swords #2");
    await tab.getByText("More", { exact: true }).click();
    await press(tab, "Sell");
    await tab.getByLabel("Price").fill("250");
    // A lying server would have the owner sell for less.
    const prepare = "**/owner/v1/orders/prepare";
    await tab.route(prepare, async (route) => {
      const response = await route.fetch();
      const lie = (await response.text()).replaceAll('"250000000000000000000"', '"250000000000"');
      await route.fulfill({ response, body: lie });
    });
    await press(tab, "Continue");
    await tab.getByText("The server prepared another order than the one you asked for.").waitFor();
    await tab.unroute(prepare);
    await press(tab, "Continue");
    await tab.getByText("You offer Swords #2 for 250 PTS. You get 245 PTS.").waitFor();
    expect(await axeFaults(tab)).toEqual([]);
    await press(tab, "Sign in my wallet");
    await tab.getByText(/^Offered for 250 PTS, until/).waitFor();

    const buyer = await signIn(bob, PHONE);
    await buyer.tab.getByRole("link", { name: "For sale" }).click();
    await press(buyer.tab, "Buy for 250 PTS");
    await buyer.tab.getByText("You give 250 PTS for Swords #2.").waitFor();
    expect(await axeFaults(buyer.tab)).toEqual([]);
    await press(buyer.tab, "Sign in my wallet");
    await buyer.tab.getByText("Somebody takes it. L1 is to settle it.").waitFor();
    await buyer.tab.getByRole("link", { name: "All" }).click();
    await cardOf(buyer.tab, "Swords #2").waitFor();
    await cardOf(buyer.tab, "Loyalty Points").getByText("150 PTS").waitFor();
    await tab.getByText("Traded for 250 PTS.").first().waitFor();
    await all(tab);
    await tab.getByRole("list", { name: "Gone" }).getByText("Swords #2").waitFor();
    expect([problems, buyer.problems]).toEqual([[], []]);
  });

  test("takes an offer back, and says what that does not do", async () => {
    const { tab } = await signIn(alice);
    await show(tab, "Swords #4");
    await tab.getByText("More", { exact: true }).click();
    await press(tab, "Sell");
    await tab.getByLabel("Price").fill("10");
    await press(tab, "Continue");
    await press(tab, "Sign in my wallet");
    await tab.getByText(/^Offered for 10 PTS/).waitFor();
    const asked: string[] = [];
    tab.on("dialog", (dialog) => {
      asked.push(dialog.message());
      void dialog.accept();
    });
    await press(tab, "Take the offer back");
    await tab.getByText("You can withdraw it or give it away.").waitFor();
    expect(asked[0]).toContain("can still settle it at this price until");
  });

  test("merges points into one vault, and brings a withdrawn sword back", async () => {
    const { tab, problems } = await signIn(alice, PHONE);
    await show(tab, "Loyalty Points");
    const total = await tab.locator(".figure").innerText();
    await tab.getByText("More", { exact: true }).click();
    await press(tab, "Merge into one vault");
    await press(tab, "Send my transaction");
    await tab.getByText("You renewed it into another vault.").first().waitFor();
    await tab.getByText("Made by L1").first().waitFor();
    await tab.locator(".figure").getByText(total, { exact: true }).waitFor();
    await all(tab);
    await cardOf(tab, "Swords #3").getByRole("checkbox").check();
    await press(tab, "Withdraw by my own transaction");
    const gone = tab.getByRole("list", { name: "Gone" }).getByRole("listitem");
    await gone.filter({ hasText: "Swords #3" }).getByRole("link").click();
    await tab.getByText("It is on L1, in your wallet.").waitFor();
    await press(tab, "Bring back from L1");
    expect(await axeFaults(tab)).toEqual([]);
    await press(tab, "Bring back");
    await tab.locator(".standing").getByText("You can withdraw it or give it away.").waitFor();
    expect(problems).toEqual([]);
  });

  test("draws its loading, empty and failed states, and tries again", async () => {
    const nobody = { owner: privateKeyToAccount(generatePrivateKey()) };
    const address = `${sandbox.description.api}/explorer#/owner`;
    const { tab, problems } = await open(nobody as unknown as Person, address, PHONE);
    let mode: "wait" | "fail" | "pass" = "wait";
    let release = () => {};
    const waiting = new Promise<void>((resolve) => {
      release = resolve;
    });
    await tab.route("**/owner/v1/vaults?*", async (route) => {
      if (mode === "wait") await waiting;
      if (mode === "pass") return route.continue();
      const json = { code: "internal", detail: "The store is full." };
      return route.fulfill({ status: 500, json });
    });
    await press(tab, "Sign in with Foxy");
    await tab.locator("li.ghost").first().waitFor();
    expect(await axeFaults(tab)).toEqual([]);
    mode = "fail";
    release();
    await tab.getByRole("alert").getByText("The store is full.").waitFor();
    await tab.locator(".nothing svg").waitFor();
    expect(await axeFaults(tab)).toEqual([]);
    mode = "pass";
    await press(tab, "Try again");
    await tab.getByText("No token is yours yet. A new one appears here by itself.").waitFor();
    await tab.locator(".nothing svg").waitFor();
    expect(await axeFaults(tab)).toEqual([]);
    // The console tells of the refused request.
    expect(problems.filter((text) => !text.includes("500"))).toEqual([]);
  });

  test("renews and trades on the exit page, which asks nobody but the wallet", async () => {
    const { rpcUrl, contract, assets } = sandbox.description;
    const saveKit = async (vaultId: string) => {
      const l1 = await readL1({ rpc: rpcUrl, contract });
      const kit = await exportExitKit(await sandbox.engine.proofs.exit(BigInt(vaultId)), l1);
      const file = join(folder, `${vaultId}.json`);
      await writeFile(file, exitKitText(kit));
      return file;
    };
    const page = join(folder, "mintmark-exit.html");
    await writeFile(page, (await exitPageHtml()).html);
    const connected = async (person: Person, files: readonly string[]) => {
      const visited = await open(person, `file://${page}`, PHONE);
      await visited.tab.getByLabel("The file, or several of them").setInputFiles([...files]);
      await press(visited.tab, "Connect Foxy");
      await visited.tab.getByText("The contract has checked").waitFor();
      return visited;
    };
    const [sword = "", other = ""] = await give(alice, ["31", "32"], []);
    const small = await give(carol, [], ["10"]);
    const [more = ""] = await give(carol, [], ["15"]);

    const renewal = await connected(carol, await Promise.all([...small, more].map(saveKit)));
    await renewal.tab.getByText("Renew instead").click();
    await press(renewal.tab, "Renew");
    await renewal.tab.getByText("Renewed. L1 has made vault").waitFor();
    expect(await axeFaults(renewal.tab)).toEqual([]);

    const maker = await connected(alice, [await saveKit(sword)]);
    await maker.tab.getByText("Offer it for something else").click();
    const points = assets.find(({ standard }) => standard === "erc20")?.contractAddress ?? "";
    await maker.tab.getByLabel("Contract of the token that you want").fill(points);
    await maker.tab.getByLabel("How much of it").fill("20");
    const saved = maker.tab.waitForEvent("download");
    await press(maker.tab, "Sign the offer");
    const offer = join(folder, "offer.json");
    await (await saved).saveAs(offer);
    expect(await axeFaults(maker.tab)).toEqual([]);

    const [purse = ""] = await give(bob, [], ["45"]);
    const taker = await connected(bob, [await saveKit(purse), offer]);
    await taker.tab
      .getByText("You give 20 PTS of Loyalty Points and get Swords, token 31")
      .waitFor();
    expect(await axeFaults(taker.tab)).toEqual([]);
    await press(taker.tab, "Trade");
    await taker.tab.getByText("Traded, by transaction").waitFor();
    // The offer counts once.
    const late = await connected(carol, [
      await saveKit((await give(carol, [], ["20"]))[0] ?? ""),
      offer,
    ]);
    await press(late.tab, "Trade");
    await late.tab.getByRole("alert").waitFor();
    for (const { problems, origins } of [renewal, maker, taker, late])
      expect([problems, [...origins]]).toEqual([[], []]);
    // The kit of another token does not fit, and says so before anything is sent.
    const wrong = await connected(alice, [await saveKit(other), offer]);
    await press(wrong.tab, "Trade");
    await wrong.tab.getByRole("alert").getByText("The offer wants token").waitFor();
    const mine = await signIn(bob);
    await cardOf(mine.tab, "Swords #31").waitFor();
  });

  test("is behind the first of two doors on the start page", async () => {
    for (const shape of SHAPES) {
      const { tab, problems } = await open(bob, sandbox.description.api, shape);
      for (const door of ["I own tokens", "I build"])
        await tab.getByRole("heading", { name: door }).waitFor();
      expect(await axeFaults(tab)).toEqual([]);
      await tab.getByRole("link", { name: "My tokens" }).click();
      await tab.getByRole("button", { name: "Sign in with Foxy" }).waitFor();
      expect(problems).toEqual([]);
    }
  });
});
