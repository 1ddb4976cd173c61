import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import {
  type Abi,
  createPublicClient,
  createWalletClient,
  erc20Abi,
  type Hex,
  http,
  parseAbi,
} from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { exportExitKit } from "../../core/exit/index.ts";
import { readL1 } from "../../core/l1/index.ts";
import { exitKitText } from "../../scripts/commands/exit.ts";
import { until } from "../../scripts/demo/until.ts";
import { ADMIN, USERS } from "../../scripts/sandbox/accounts.ts";
import { type Sandbox, startSandbox } from "../../scripts/sandbox/sandbox.ts";
import { answer, createClient, type MintmarkClient, mint } from "../../server/client/index.ts";
import { pageScripts } from "../../server/pages/bundle.ts";
import { exitPageHtml } from "../../server/pages/scripted.ts";
import { mintmark } from "../cli/cli.ts";
import { axeFaults, hasChromium, launchChromium, SHAPES, visit } from "./chromium.ts";
import { addWallets, type StubWallet } from "./wallets.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
const OWNER_OF = parseAbi(["function ownerOf(uint256) view returns (address)"]);
const [{ owner: alice, userId }, { owner: bob }] = USERS;

describe.skipIf(!hasChromium)("an owner with a wallet, in Chromium", () => {
  let folder: string;
  let sandbox: Sandbox;
  let browser: Browser;
  let client: MintmarkClient;
  /** Alice has the tokens 1 to 12, a wallet contract of her key 13 and 14. */
  let vaultIds: string[];
  let contract: Hex;
  /** Bob's vaults of the tokens 10 and 11, and Alice's kit of 11 from before. */
  let received: readonly string[];
  let givenKit: string;
  const asked: string[] = [];
  const vault = (tokenId: number) => vaultIds[tokenId - 1] ?? "";

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "mintmark-owner-"));
    [sandbox, browser] = await Promise.all([
      startSandbox({ folder, port: 0, chainPort: 0 }),
      launchChromium(),
    ]);
    const { api, apiKey, rpcUrl } = sandbox.description;
    client = createClient({ baseUrl: api, apiKey });
    const artifact = await readFile(
      join(ROOT, "artifacts/contracts/test/Wallet1271.sol/Wallet1271.json"),
      "utf8",
    );
    const { abi, bytecode } = JSON.parse(artifact) as { readonly abi: Abi; readonly bytecode: Hex };
    const admin = createWalletClient({ account: ADMIN, transport: http(rpcUrl) });
    const hash = await admin.deployContract({
      abi,
      bytecode,
      args: [alice.address, 0],
      chain: null,
    });
    const receipt = await createPublicClient({ transport: http(rpcUrl) }).waitForTransactionReceipt(
      { hash },
    );
    contract = receipt.contractAddress ?? "0x";
    const { userId: byContract } = await answer(
      client.POST("/api/v1/users", { body: { ownerAddress: contract.toLowerCase() as Hex } }),
    );
    const tokens = (from: number, count: number) =>
      Array.from({ length: count }, (_, i) => ({
        ...{ tokenId: String(from + i), assetId: sword().assetId, amount: "1" },
        ...{ dataAvailabilityMode: "zk-rollup" as const },
      }));
    const users = [
      { userId, mints: tokens(1, 12) },
      { userId: byContract, mints: tokens(13, 2) },
    ];
    vaultIds = (await mint(client, { users })).vaults.map(({ vaultId }) => vaultId);
    const read = () =>
      answer(client.GET("/api/v1/vaults/{vaultId}", { params: { path: { vaultId: vault(1) } } }));
    await until(
      "the mints on L1",
      read,
      ({ status }) => status === "settled" || status === "finalized",
    );
  });
  afterAll(async () => {
    await browser?.close();
    await sandbox?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  const sword = () => {
    const found = sandbox.description.assets.find(({ standard }) => standard === "erc721");
    if (found === undefined) throw new Error("the sandbox has no ERC-721");
    return found;
  };
  const ownerOf = (tokenId: number) => {
    const chain = createPublicClient({ transport: http(sandbox.description.rpcUrl) });
    const call = {
      abi: OWNER_OF,
      address: sword().contractAddress,
      functionName: "ownerOf",
    } as const;
    return chain.readContract({ ...call, args: [BigInt(tokenId)] });
  };
  const stub = (more: Partial<StubWallet> = {}): StubWallet => {
    return { name: "Foxy", account: alice, rpc: sandbox.description.rpcUrl, asked, ...more };
  };
  async function open(
    wallets: readonly StubWallet[],
    path: string,
    shape: BrowserContextOptions = {},
  ) {
    const context = await browser.newContext(shape);
    await addWallets(context, wallets);
    const visited = await visit(context);
    await visited.page.goto(path.startsWith("file:") ? path : `${sandbox.description.api}${path}`);
    return { ...visited, tab: visited.page };
  }
  async function signIn(wallets: readonly StubWallet[], shape?: BrowserContextOptions) {
    const visited = await open(wallets, "/explorer#/owner", shape);
    await visited.tab.getByRole("button", { name: "Sign in with Foxy" }).click();
    await visited.tab.getByText(/^\d+ tokens?/).waitFor();
    return visited;
  }
  const box = (tab: Page, tokenId: number) =>
    tab.getByRole("checkbox", { name: `Select Swords #${tokenId}`, exact: true });
  const rowOf = (tab: Page, tokenId: number) =>
    tab.locator("li.token").filter({ has: tab.getByText(`Swords #${tokenId}`, { exact: true }) });
  const spent = async (tab: Page, tokenId: number, how = "on L1") => {
    await rowOf(tab, tokenId).and(tab.locator(".spent")).getByText(how).waitFor();
    // The server's word moves it to those that are gone, where nothing can be selected.
    await box(tab, tokenId).waitFor({ state: "detached" });
  };
  const press = (tab: Page, name: string) => tab.getByRole("button", { name }).click();
  /** Saves the exit kit of a vault as it is now. */
  async function saveKit(vaultId: bigint, name: string): Promise<string> {
    const { rpcUrl, contract } = sandbox.description;
    const proof = await sandbox.engine.proofs.exit(vaultId);
    const file = join(folder, `${name}.json`);
    await writeFile(
      file,
      exitKitText(await exportExitKit(proof, await readL1({ rpc: rpcUrl, contract }))),
    );
    return file;
  }

  test("gives vaults to a friend after it has read what it signs, and the explorer shows who has them", async () => {
    const read = () =>
      answer(client.GET("/api/v1/vaults/{vaultId}", { params: { path: { vaultId: vault(10) } } }));
    await until("the mint is final", read, ({ status }) => status === "finalized");
    givenKit = await saveKit(BigInt(vault(11)), "given");
    const { tab, problems } = await signIn([stub()]);
    for (const tokenId of [10, 11]) await box(tab, tokenId).check();
    await tab.getByText("Give away or redeem").click();
    await tab.getByLabel("Receiver's address").fill("0x12");
    await press(tab, "Give to this address");
    await tab.getByText("Enter the receiver's address").waitFor();
    await tab.getByLabel("Receiver's address").fill(bob.address);
    await press(tab, "Give to this address");
    await tab.getByText("Until L1 has it, you can stop it only by a transaction").waitFor();
    expect(await axeFaults(tab)).toEqual([]);
    // A lying server would keep the signature usable for years, or use it in another contract.
    for (const [truth, lie] of [
      [/"deadline":"1/g, '"deadline":"91'],
      [/"verifyingContract":"0x../g, '"verifyingContract":"0xee'],
    ] as const) {
      const prepare = "**/owner/v1/transfers/prepare";
      await tab.route(prepare, async (route) => {
        const response = await route.fetch();
        await route.fulfill({ response, body: (await response.text()).replace(truth, lie) });
      });
      await press(tab, "Sign in my wallet");
      await tab
        .getByText("The server prepared another transfer than the one you asked for.")
        .waitFor();
      await tab.unroute(prepare);
      await press(tab, "Give to this address");
    }
    await press(tab, "Sign in my wallet");
    for (const tokenId of [10, 11]) await spent(tab, tokenId, "given to");
    await tab.goto(`${sandbox.description.api}/explorer#/vaults/${vault(10)}`);
    await tab.getByText("Taken").waitFor();
    const made = tab.locator("dd").filter({ hasText: "given to" }).getByRole("link");
    const newVault = await made.innerText();
    // The outputs of one list lie side by side.
    received = [newVault, String(BigInt(newVault) + 1n)];
    await tab.getByText("no, a transfer on L1 takes it").waitFor();
    await made.click();
    await tab.getByText("1 transfer since the mint, of 8 at most.").waitFor();
    await tab.getByText("This vault is on L1").waitFor();
    expect(await tab.locator(".checks li.holds").count()).toBe(5);
    expect(await tab.locator("dl.facts dd").first().innerText()).toBe(bob.address.toLowerCase());
    await tab.goto(
      `${sandbox.description.api}/explorer#/batches/zk-rollup-${(BigInt(newVault) >> 20n) & 0xffffffffn}`,
    );
    await tab.getByText("This batch matches L1").waitFor();
    expect(problems).toEqual([]);
    const friend = await open([stub({ account: bob })], "/explorer#/owner");
    await press(friend.tab, "Sign in with Foxy");
    await friend.tab.getByText("2 tokens.").waitFor();
    // The operator withdraws what the friend got, for a signature of its own.
    const own = box(friend.tab, 10);
    await own.check();
    asked.length = 0;
    await press(friend.tab, "Withdraw by the operator");
    await spent(friend.tab, 10);
    expect(asked.filter((method) => /^eth_(sign|send)/.test(method))).toEqual([
      "eth_signTypedData_v4",
    ]);
    expect((await ownerOf(10)).toLowerCase()).toBe(bob.address.toLowerCase());
    expect(friend.problems).toEqual([]);
  });

  test("sees a fresh token by itself, stays signed in over a reload, and signs out", async () => {
    const account = privateKeyToAccount(generatePrivateKey());
    const { userId: fresh } = await answer(
      client.POST("/api/v1/users", { body: { ownerAddress: account.address } }),
    );
    const give = (tokenId: string) => {
      const token = { tokenId, assetId: sword().assetId, amount: "1" };
      const mints = [{ ...token, dataAvailabilityMode: "validium" as const }];
      return mint(client, { users: [{ userId: fresh, mints }] });
    };
    const { tab, problems } = await open([stub({ account })], "/explorer#/owner");
    await press(tab, "Sign in with Foxy");
    await tab.getByText("No token is yours yet. A new one appears here by itself.").waitFor();
    await give("90");
    await rowOf(tab, 90).getByText("You can withdraw it").waitFor();
    // A page that becomes visible looks at once.
    await give("91");
    await tab.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
    await rowOf(tab, 91).getByText("On its way to you: its batch is not sealed yet.").waitFor();
    expect(await box(tab, 91).isDisabled()).toBe(true);
    // Its proof is checked in the browser, when the owner asks.
    await rowOf(tab, 90).getByRole("link").click();
    await tab.getByRole("heading", { name: "Swords #90", level: 1 }).waitFor();
    expect(await tab.title()).toContain("Swords #90");
    await tab.getByText("Proof and details, for auditors").click();
    await press(tab, "Check the proof");
    await tab.getByText("This vault is on L1").waitFor();
    await tab.getByRole("link", { name: "← My tokens" }).click();
    await tab.reload();
    await rowOf(tab, 90).waitFor();
    expect(await tab.evaluate("JSON.stringify([localStorage, document.cookie])")).not.toMatch(
      /eyJ|mintmark_owner/,
    );
    // The wallet is found again, and the sign-in still counts for an act.
    await box(tab, 90).check();
    await press(tab, "Withdraw by the operator");
    await spent(tab, 90);
    await tab.getByRole("heading", { name: "Gone" }).waitFor();
    await tab.setViewportSize({ width: 390, height: 844 });
    expect(await tab.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(390);
    // A hidden page asks for nothing.
    let reads = 0;
    tab.on("request", (request) => {
      if (request.url().includes("/owner/v1/vaults?")) reads++;
    });
    await tab.evaluate(
      "Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => 'hidden' })",
    );
    const before = reads;
    await new Promise((resolve) => setTimeout(resolve, 6_000));
    expect(reads - before).toBeLessThanOrEqual(1);
    await press(tab, "Sign out");
    await tab.getByRole("button", { name: "Sign in with Foxy" }).waitFor();
    await tab.reload();
    await tab.getByRole("button", { name: "Sign in with Foxy" }).waitFor();
    expect((await tab.context().cookies()).filter(({ name }) => name === "mintmark_owner")).toEqual(
      [],
    );
    expect(problems).toEqual([]);
  });

  test("redeems a ticket after it has read that this burns it, and the explorer shows that it is gone", async () => {
    const { tab, problems } = await signIn([stub()], SHAPES[0]);
    await box(tab, 12).check();
    await tab.getByText("Give away or redeem").click();
    await press(tab, "Redeem");
    await tab.getByText("The tokens are burnt for ever.").waitFor();
    await press(tab, "Cancel");
    await press(tab, "Redeem");
    expect(await axeFaults(tab)).toEqual([]);
    expect(await tab.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
    asked.length = 0;
    await press(tab, "Sign in my wallet");
    await spent(tab, 12, "redeemed");
    expect(asked.filter((method) => /^eth_(sign|send)/.test(method))).toEqual([
      "eth_signTypedData_v4",
    ]);
    await tab.goto(`${sandbox.description.api}/explorer#/vaults/${vault(12)}`);
    await tab.getByText("A transfer takes this vault: redeemed").waitFor();
    await tab.getByText("1 unit redeemed by").waitFor();
    await tab.getByText("no, a transfer on L1 takes it").waitFor();
    expect(problems).toEqual([]);
    await expect(ownerOf(12)).rejects.toThrow("revert");
  });

  test("chooses one of several wallets, and withdraws a vault by the operator with one signature", async () => {
    const other = stub({ name: "Other", account: bob });
    const { tab, problems } = await signIn([other, stub()]);
    expect(await tab.getByRole("button", { name: "Withdraw by the operator" }).count()).toBe(0);
    await box(tab, 1).check();
    // A lying server would use the signature in another contract, or on another chain.
    asked.length = 0;
    for (const [truth, lie] of [
      [/"verifyingContract":"0x../g, '"verifyingContract":"0xee'],
      [/"chainId":\d+/g, '"chainId":1'],
    ] as const) {
      const prepare = "**/owner/v1/withdrawals/prepare";
      await tab.route(prepare, async (route) => {
        const response = await route.fetch();
        await route.fulfill({ response, body: (await response.text()).replace(truth, lie) });
      });
      const prepared = tab.waitForResponse(prepare);
      await press(tab, "Withdraw by the operator");
      await prepared;
      await tab
        .getByText("The server prepared another withdrawal than the one you asked for.")
        .waitFor();
      await tab.unroute(prepare);
    }
    expect(asked).not.toContain("eth_signTypedData_v4");
    await press(tab, "Withdraw by the operator");
    await rowOf(tab, 1).getByText("Accepted.").waitFor();
    await spent(tab, 1);
    expect(await ownerOf(1)).toBe(alice.address);
    expect(asked).toContain("eth_signTypedData_v4");
    expect(asked).not.toContain("eth_sendTransaction");
    expect(problems).toEqual([]);
    // A new visit finds it spent.
    const { tab: again } = await signIn([stub()]);
    await spent(again, 1);
  });

  test("withdraws some vaults by one transaction of its own, and is told what its wallet declines", async () => {
    const declines = new Set(["eth_sendTransaction", "eth_signTypedData_v4"]);
    const { tab, problems } = await signIn([stub({ declines })]);
    for (const tokenId of [2, 3]) await box(tab, tokenId).check();
    const told = tab.getByRole("alert").getByText("You declined the request in your wallet.");
    for (const name of ["Withdraw by my own transaction", "Withdraw by the operator"]) {
      await press(tab, name);
      await told.waitFor();
    }
    declines.clear();
    asked.length = 0;
    await press(tab, "Withdraw by my own transaction");
    for (const tokenId of [2, 3]) await spent(tab, tokenId);
    expect(asked.filter((method) => method === "eth_sendTransaction")).toHaveLength(1);
    expect([await ownerOf(2), await ownerOf(3)]).toEqual([alice.address, alice.address]);
    expect(problems).toEqual([]);
  });

  test("follows the lists that were accepted when a later one is refused", async () => {
    const { tab } = await open([stub()], "/explorer");
    // One vault a list.
    await tab.route("**/explorer/settings.json", async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...(await response.json()), relayVaults: 1 } });
    });
    let lists = 0;
    await tab.route("**/owner/v1/withdrawals", (route) =>
      ++lists === 1
        ? route.continue()
        : route.fulfill({ status: 429, json: { code: "rate_limited", detail: "" } }),
    );
    // Then the server does not answer twice.
    let outages = 2;
    await tab.route("**/owner/v1/vaults?*", (route) =>
      lists > 0 && outages-- > 0 ? route.fulfill({ status: 503 }) : route.continue(),
    );
    await tab.goto(`${sandbox.description.api}/explorer#/owner`);
    await tab.reload();
    await tab.getByRole("button", { name: "Sign in with Foxy" }).click();
    for (const tokenId of [8, 9]) await box(tab, tokenId).check();
    await press(tab, "Withdraw by the operator");
    await tab.getByRole("alert").getByText("accepts no more requests").waitFor();
    await tab.locator("li.spent").getByText("on L1").nth(3).waitFor();
    expect(lists).toBe(2);
  });

  test("signs in and withdraws as a wallet contract, by the operator and by itself", async () => {
    const { tab } = await signIn([stub({ contract })]);
    await box(tab, 13).check();
    await press(tab, "Withdraw by the operator");
    await spent(tab, 13);
    await press(tab, "Select all");
    await press(tab, "Withdraw by my own transaction");
    await spent(tab, 14);
    expect((await ownerOf(13)).toLowerCase()).toBe(contract);
    expect((await ownerOf(14)).toLowerCase()).toBe(contract);
  });

  test("withdraws with the client and wagmi's own connector", async () => {
    const { tab } = await open([stub()], "/explorer");
    const { api, apiKey } = sandbox.description;
    const source = `
      import { connect, createConfig, http } from "@wagmi/core";
      import { defineChain } from "viem";
      import { createClient, withdraw } from "./server/client/index.ts";
      const local = { id: 31337, name: "Local", nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 } };
      const chain = defineChain({ ...local, rpcUrls: { default: { http: [] } } });
      const config = createConfig({ chains: [chain], transports: { [chain.id]: http() }, storage: null });
      const connector = config.connectors.find(({ name }) => name === "Foxy");
      globalThis.withdrawn = connect(config, { connector }).then(async () => {
        const client = createClient({ baseUrl: ${JSON.stringify(api)}, apiKey: ${JSON.stringify(apiKey)} });
        const signer = await connector.getProvider();
        return withdraw(client, { vaultIds: [${JSON.stringify(vault(4))}], signer, wait: true, pollingMs: 200 });
      });`;
    const options = {
      bundle: true,
      write: false,
      format: "iife",
      platform: "browser",
      logLevel: "silent",
    } as const;
    const { outputFiles } = await build({
      ...options,
      stdin: { contents: source, resolveDir: ROOT, loader: "ts" },
    });
    await tab.evaluate(outputFiles[0]?.text ?? "");
    const [one] = (await tab.evaluate("withdrawn")) as { withdrawal: { status: string } }[];
    expect(one?.withdrawal.status).toMatch(/settled|finalized/);
    expect(await ownerOf(4)).toBe(alice.address);
  });

  describe("with the exit page from a file", () => {
    const kits: string[] = [];
    let address: string;

    beforeAll(async () => {
      for (const tokenId of [5, 6, 7])
        kits.push(await saveKit(BigInt(vault(tokenId)), `${tokenId}`));
      const file = join(folder, "mintmark-exit.html");
      await writeFile(file, (await exitPageHtml()).html);
      address = `file://${file}`;
    });

    test("withdraws a vault, and asks nobody but the wallet", async () => {
      const { tab, problems, origins } = await open(
        [stub({ name: "Other", account: bob }), stub()],
        address,
      );
      await tab.getByLabel("The file, or several of them").setInputFiles(kits[0] ?? "");
      await tab.getByText("The proof in this file is whole.").waitFor();
      await press(tab, "Connect Other");
      await tab.getByRole("alert").getByText("Choose the owner's account in the wallet.").waitFor();
      await tab.getByLabel("The file, or several of them").setInputFiles([]);
      await tab.getByLabel("The file, or several of them").setInputFiles(kits[0] ?? "");
      await press(tab, "Connect Foxy");
      await tab.getByText("The contract has checked 1 proof.").waitFor();
      await press(tab, "Withdraw");
      await tab.getByText("Swords, token 5: paid.").waitFor();
      expect(await ownerOf(5)).toBe(alice.address);
      expect([problems, [...origins]]).toEqual([[], []]);
    });

    test("withdraws several by one transaction, and leaves a spent one out", async () => {
      const { tab } = await open([stub()], address);
      await tab.getByLabel("The file, or several of them").setInputFiles(kits);
      await press(tab, "Connect Foxy");
      await tab.getByRole("alert").getByText("All of this vault has been withdrawn").waitFor();
      asked.length = 0;
      await press(tab, "Withdraw");
      for (const tokenId of [6, 7])
        await tab.getByText(`Swords, token ${tokenId}: paid.`).waitFor();
      expect(asked.filter((method) => method === "eth_sendTransaction")).toHaveLength(1);
      expect([await ownerOf(6), await ownerOf(7)]).toEqual([alice.address, alice.address]);
    });

    test("pays the new owner of a transferred vault, and tells the former one where it went", async () => {
      const made = received[1] ?? "";
      const { tab: former } = await open([stub()], address, SHAPES[0]);
      await former.getByLabel("The file, or several of them").setInputFiles(givenKit);
      await press(former, "Connect Foxy");
      const gone = `This kit no longer pays. The owner gave vault ${vault(11)} to ${bob.address.toLowerCase()}`;
      await former
        .getByRole("alert")
        .getByText(gone)
        .getByText(`It is vault ${made} now.`)
        .waitFor();
      await former.getByText("Nothing is left to withdraw.").waitFor();
      const { tab, problems, origins } = await open([stub({ account: bob })], address, SHAPES[0]);
      await tab
        .getByLabel("The file, or several of them")
        .setInputFiles(await saveKit(BigInt(made), "received"));
      await tab.getByText("Details").click();
      await tab.getByText(`vault ${vault(11)}, 1 transfer ago`).waitFor();
      await press(tab, "Connect Foxy");
      await press(tab, "Withdraw");
      await tab.getByText("Swords, token 11: paid.").waitFor();
      expect((await ownerOf(11)).toLowerCase()).toBe(bob.address.toLowerCase());
      expect([problems, [...origins]]).toEqual([[], []]);
      for (const page of [former, tab]) {
        expect(await axeFaults(page)).toEqual([]);
        expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(
          true,
        );
      }
    });

    test("refuses a damaged kit in words, and says when there is no wallet", async () => {
      const { tab } = await open([], address);
      const kit = JSON.parse(await readFile(kits[0] ?? "", "utf8"));
      const file = (name: string, content: object) => {
        return { name, mimeType: "application/json", buffer: Buffer.from(JSON.stringify(content)) };
      };
      const field = tab.getByLabel("The file, or several of them");
      await field.setInputFiles(
        file("forged.json", { ...kit, vault: { ...kit.vault, amount: "2" } }),
      );
      await tab.getByRole("alert").getByText("forged.json: The exit kit is damaged").waitFor();
      await field.setInputFiles(file("other.json", { ...kit, chainId: 1 }));
      await tab
        .getByRole("alert")
        .getByText("other.json: This is not an exit kit: chainId")
        .waitFor();
      await field.setInputFiles(kits[0] ?? "");
      await tab.getByText("This browser shows no wallet to this page.").waitFor();
    });

    test("is the page that the server has, to use and to save, and the command writes", async () => {
      const { html } = await exitPageHtml();
      const written = join(folder, "written.html");
      expect(await mintmark(["exit-page", written])).toMatchObject({ code: 0, stdout: "" });
      expect(await readFile(written, "utf8")).toBe(html);
      for (const path of ["/exit", "/exit/mintmark-exit.html"]) {
        const served = await fetch(`${sandbox.description.api}${path}`);
        expect(await served.text(), path).toBe(html);
        expect(served.headers.get("content-security-policy")).toContain(
          "default-src 'none'; script-src 'sha256-",
        );
      }
    });

    test.each(SHAPES)(
      "is clean for axe, as are the owner's vaults: $viewport.width $colorScheme",
      async (shape) => {
        const { tab } = await open([stub()], address, shape);
        await tab.getByLabel("The file, or several of them").setInputFiles(kits);
        await press(tab, "Connect Foxy");
        await tab.getByText("The contract has checked 3 proofs.").waitFor();
        expect(await axeFaults(tab)).toEqual([]);
        const { tab: mine } = await signIn([stub()], shape);
        await spent(mine, 5);
        expect(await axeFaults(mine)).toEqual([]);
        for (const page of [tab, mine]) {
          expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(
            true,
          );
        }
      },
    );
  });

  test("a visit with a withdrawal loads less than 200 KB in all", async () => {
    const { tab } = await signIn([stub()]);
    await tab.evaluate("import('/explorer/withdraw.js')");
    const measured = `performance.getEntriesByType("resource")
      .filter(({ name }) => new URL(name).pathname.startsWith("/explorer"))
      .map(({ name, encodedBodySize, decodedBodySize }) => [new URL(name).pathname, encodedBodySize, decodedBodySize])`;
    const files = (await tab.evaluate(measured)) as [string, number, number][];
    const names = files.map(([name]) => name);
    expect(names).toEqual(
      expect.arrayContaining(["/explorer/explorer.js", "/explorer/withdraw.js"]),
    );
    const bytes = files.reduce((sum, [, encoded]) => sum + encoded, 0);
    expect(bytes).toBeLessThan(200_000);
    // A client without brotli gets gzip.
    const zippedOf = async (page: "explorer" | "exit") =>
      [...(await pageScripts(page)).values()].reduce((sum, each) => sum + gzipSync(each).length, 0);
    expect(await zippedOf("explorer")).toBeLessThan(200_000);
    expect(await zippedOf("exit")).toBeLessThan(200_000);
  });

  test("shows names and images of the owner's tokens, those of other hosts only when it is asked to", async () => {
    const { assetId } = sword();
    const pixel =
      "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    const tokens = [
      { tokenId: "1", metadata: { name: "Sword of dawn", image: pixel } },
      { tokenId: "2", metadata: { name: "Sword of dusk", image: "https://art.invalid/2.png" } },
    ];
    await answer(
      client.POST("/api/v1/assets/{assetId}/metadata", {
        params: { path: { assetId } },
        body: { tokens },
      }),
    );
    const { tab, problems } = await signIn([stub()]);
    const asked: string[] = [];
    await tab.route("https://art.invalid/**", (route) => {
      asked.push(route.request().url());
      return route.fulfill({
        contentType: "image/png",
        body: Buffer.from(pixel.split(",")[1] ?? "", "base64"),
      });
    });
    // Apart from what stands beside it, which its bidirectional characters could reorder.
    await rowOf(tab, 1).locator("bdi").getByText("Sword of dawn").waitFor();
    await rowOf(tab, 2).getByText("Sword of dusk").waitFor();
    await rowOf(tab, 1).locator("img").waitFor();
    expect([await rowOf(tab, 2).locator("img").count(), asked]).toEqual([0, []]);
    // Its picture is drawn from its id.
    await rowOf(tab, 2).locator("svg.picture rect").first().waitFor();
    await press(tab, "Show images from their hosts");
    await rowOf(tab, 2).locator("img").waitFor();
    await until(
      "the image",
      async () => asked,
      (urls) => urls.length === 1,
    );
    expect(await tab.locator("img").first().getAttribute("referrerpolicy")).toBe("no-referrer");
    expect(await axeFaults(tab)).toEqual([]);
    expect(problems).toEqual([]);
    // The page says how many tokens the units of an ERC-20 are.
    const gems =
      sandbox.description.assets.find(({ standard }) => standard === "erc20")?.assetId ?? "";
    const mints = [
      { assetId: gems, amountDecimal: "12.5", dataAvailabilityMode: "zk-rollup" as const },
    ];
    const { vaults } = await mint(client, { users: [{ userId, mints }] });
    const read = () =>
      answer(
        client.GET("/api/v1/vaults/{vaultId}", {
          params: { path: { vaultId: vaults[0]?.vaultId ?? "" } },
        }),
      );
    await until("the ERC-20 in a sealed batch", read, ({ status }) => status !== "accepted");
    const { tab: later } = await signIn([stub()], SHAPES[0]);
    const card = later.locator("li.token").filter({ hasText: "Loyalty Points" });
    await card.locator("bdi").getByText("12.5 PTS").waitFor();
    // Details that only experts read are folded away.
    await card.getByRole("link").click();
    await later.getByText("12.5 PTS").first().waitFor();
    expect(await later.getByText("12,500,000,000").isVisible()).toBe(false);
    await later.getByText("Proof and details, for auditors").click();
    await later.getByText("12,500,000,000").waitFor();
  });

  test("withdraws an ERC-20 with the saved exit page, while the server is stopped and the chain runs", async () => {
    const { api, assets } = sandbox.description;
    const { assetId = "", contractAddress = "0x" } =
      assets.find(({ standard }) => standard === "erc20") ?? {};
    const mints = [
      { assetId, amountDecimal: "1234.5", dataAvailabilityMode: "zk-rollup" as const },
    ];
    const [{ vaultId = "" } = {}] = (await mint(client, { users: [{ userId, mints }] })).vaults;
    const read = () =>
      answer(client.GET("/api/v1/vaults/{vaultId}", { params: { path: { vaultId } } }));
    await until(
      "the mint on L1",
      read,
      ({ status }) => status === "settled" || status === "finalized",
    );
    const kit = await saveKit(BigInt(vaultId), "points");
    const saved = join(folder, "saved.html");
    await writeFile(saved, await (await fetch(`${api}/exit/mintmark-exit.html`)).text());
    await sandbox.stopServer();
    await expect(fetch(api)).rejects.toThrow("fetch failed");
    const { tab, problems, origins } = await open([stub()], `file://${saved}`, SHAPES[0]);
    await tab.getByLabel("The file, or several of them").setInputFiles(kit);
    await press(tab, "Connect Foxy");
    // The token's own contract tells its name, symbol and decimals.
    await tab.getByRole("heading", { name: "Loyalty Points" }).waitFor();
    await press(tab, "Withdraw");
    await tab.getByText("1,234.5 PTS of Loyalty Points: paid.").waitFor();
    const chain = createPublicClient({ transport: http(sandbox.description.rpcUrl) });
    const call = { abi: erc20Abi, address: contractAddress, functionName: "balanceOf" } as const;
    expect(await chain.readContract({ ...call, args: [alice.address] })).toBe(
      1_234_500_000_000_000_000_000n,
    );
    expect([problems, [...origins]]).toEqual([[], []]);
  });
});
