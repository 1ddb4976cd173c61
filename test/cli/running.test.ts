import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import {
  createTestClient,
  encodeFunctionData,
  type Hex,
  http,
  publicActions,
  toHex,
  walletActions,
} from "viem";
import type { HDAccount, LocalAccount } from "viem/accounts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { offerText, prepareOffer } from "../../core/exit/index.ts";
import { readArtifact } from "../../core/l1/artifact.ts";
import { connectL1 } from "../../core/l1/index.ts";
import { contractCode } from "../../core/protocol/contract-code.ts";
import { orderTypedData } from "../../core/protocol/index.ts";
import { readExitKit } from "../../scripts/commands/exit.ts";
import { deployMirror } from "../../scripts/deploy/mirror.ts";
import { deploySettlement } from "../../scripts/deploy/settlement.ts";
import { deployToken } from "../../scripts/deploy/token.ts";
import { ADMIN, OPERATOR, USERS } from "../../scripts/sandbox/accounts.ts";
import { type LocalChain, startChain } from "../../scripts/sandbox/chain.ts";
import { createClient, mint } from "../../server/client/index.ts";
import { FaultyNode, type NodeFaults } from "../faulty-node.ts";
import { adminOver, TERMS } from "../settlement/fixture.ts";
import { cleanEnvironment, mintmark, SERVER, settingsOf } from "./cli.ts";

const ROOT = new URL("../../", import.meta.url).pathname;

/** A server as operators run it, and the line of its log that names its address. */
async function startServer(settings: Record<string, string>) {
  const child: ChildProcess = spawn(process.execPath, SERVER, {
    cwd: ROOT,
    env: cleanEnvironment({ ...settings, MINTMARK_PORT: "0" }),
    stdio: ["ignore", "pipe", "inherit"],
  });
  const { stdout } = child;
  if (stdout === null) throw new Error("no standard output");
  const log: string[] = [];
  const url = await new Promise<string>((listening, failed) => {
    child.once("exit", () => failed(new Error(`the server ended: ${log.join("\n")}`)));
    createInterface({ input: stdout }).on("line", (line) => {
      log.push(line);
      const [address] = /http:\/\/127\.0\.0\.1:\d+/.exec(line) ?? [];
      if (address !== undefined) listening(address);
    });
  });
  return { child, url, log };
}

describe("while the server runs, and with a chain", () => {
  let folder: string;
  let chain: LocalChain;
  let settings: Record<string, string>;
  let token: string;
  let imxToken: string;
  let fromBlock: string;
  let server: Awaited<ReturnType<typeof startServer>>;
  let apiKey = "";
  let mintSword: (id: number) => ReturnType<typeof mint>;
  const socket = () => join(settings.MINTMARK_STORE ?? "", "operator.sock");
  const run = async (...args: string[]) => {
    const ended = await mintmark([...args, "--json"], settings);
    if (ended.code !== 0) throw new Error(ended.stderr);
    return ended.json();
  };

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "mintmark-running-"));
    chain = await startChain("local", 0);
    const by = await adminOver(http(chain.rpcUrl));
    const { address, deployedAtBlock } = await deploySettlement(by, {
      ...TERMS,
      maturity: 1n,
      transfers: true,
    });
    token = (
      await deployToken(by, address, {
        standard: "erc721",
        name: "Swords",
        symbol: "SWRD",
        admin: ADMIN.address,
      })
    ).address;
    const shields = {
      standard: "erc721",
      name: "Shields",
      symbol: "SHLD",
      admin: ADMIN.address,
      mintingBlobScheme: "imx",
    } as const;
    imxToken = (await deployToken(by, address, shields)).address;
    fromBlock = `${deployedAtBlock}`;
    settings = settingsOf(join(folder, "store"), {
      chainId: BigInt(by.chainId),
      contract: address,
    });
    expect((await mintmark(["init"], settings)).code).toBe(0);
    server = await startServer(settings);
  });
  afterAll(async () => {
    server.child.kill("SIGKILL");
    await chain.stop();
    await rm(folder, { recursive: true, force: true });
  });

  test("only the server's own user can open the operator's socket, and invalid input does no harm", async () => {
    expect((await stat(socket())).mode & 0o777).toBe(0o600);
    for (const line of [
      "{}\n",
      "not JSON\n",
      '{"operation":"__proto__","input":{}}\n',
      `${"x".repeat(100_000)}\n`,
    ]) {
      const wire = connect(socket());
      wire.on("error", () => {}).write(line);
      expect(await text(wire)).toContain("validation_failed");
    }
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
  });

  test("keys are issued and revoked, and assets whitelisted, without a stop", async () => {
    const { applicationId } = await run("applications", "create", "Game");
    const issued = await run("keys", "issue", "--application", applicationId);
    apiKey = issued.apiKey;
    const owner = `0x${"70".repeat(20)}`;
    const { userId } = await run("users", "create", owner, "--application", applicationId);
    const { assetId } = await run(
      "assets",
      "add",
      token,
      "--standard",
      "erc721",
      "--name",
      "Swords",
      "--symbol",
      "SWRD",
    );
    await run("assets", "whitelist", assetId);
    expect(await run("assets", "register", assetId, "--rpc", chain.rpcUrl)).toMatchObject({
      registered: true,
    });
    await run("assets", "enable", assetId, "--application", applicationId);
    const client = createClient({ baseUrl: server.url, apiKey });
    mintSword = (id) => {
      const entry = {
        mintingBlob: toHex(`${id}`),
        assetId,
        amount: 1,
        dataAvailabilityMode: "zk-rollup",
      } as const;
      return mint(client, { users: [{ userId, mints: [entry] }] });
    };
    expect((await mintSword(1)).vaults).toHaveLength(1);
    const { stdout } = await mintmark(
      ["users", "show", userId, "--application", applicationId],
      settings,
    );
    expect(stdout).toMatch(
      /^balances:\nassetId +name +symbol +tokenId +mintingBlob +amount +available +withdrawn$/m,
    );
    expect(stdout).toMatch(new RegExp(`^${assetId} +Swords +SWRD +1 +0x31 +1 +1 +0$`, "m"));
    const [seen] = await run("assets", "list", "--application", applicationId);
    expect(seen).toMatchObject({
      assetId,
      enabled: true,
      mintingAvailable: true,
      unavailableReason: null,
    });
    expect((await run("assets", "list"))[0]).not.toHaveProperty("enabled");

    // A team's own terminal mints with the key, and sees where the mint is.
    const withKey = { ...settings, MINTMARK_API_KEY: apiKey };
    const asked = [
      "--user",
      userId,
      "--asset",
      assetId,
      "--token",
      "2",
      "--mode",
      "zk-rollup",
      "--reference",
      "order 7",
    ];
    const tried = (await mintmark(["mint", ...asked, "--dry-run", "--json"], withKey)).json();
    expect(tried).toEqual({ dryRun: true, users: 1, mints: 1 });
    const keyed = ["mint", ...asked, "--idempotency-key", "order-7", "--json"];
    const minted = (await mintmark(keyed, withKey)).json();
    expect(minted.vaults).toMatchObject([{ tokenId: "2", userId, assetId }]);
    const [{ vaultId }] = minted.vaults;
    expect((await mintmark(keyed, withKey)).json().mintId).toBe(minted.mintId);
    const again = await mintmark(["mint", ...asked], withKey);
    expect([again.code, again.stderr]).toEqual([
      1,
      expect.stringContaining("(token_already_minted)"),
    ]);
    const ofApplication = ["--application", applicationId];
    const found = await run("vaults", "list", ...ofApplication, "--reference", "order 7");
    expect(found.data).toMatchObject([{ vaultId, tokenId: "2" }]);
    expect(await run("vaults", "show", vaultId, ...ofApplication)).toMatchObject({
      vaultId,
      ownerAddress: owner,
    });
    const { data: transactions } = await run(
      "transactions",
      "list",
      ...ofApplication,
      "--type",
      "mint",
      "--order",
      "asc",
    );
    expect(transactions).toMatchObject([{ reference: null }, { vaultId, reference: "order 7" }]);
    const [, { transactionId }] = transactions;
    expect((await run("transactions", "show", transactionId, ...ofApplication)).status).toBe(
      "accepted",
    );
    const signed = [
      "--amount",
      "1",
      "--deadline",
      "1893456000",
      "--signature",
      `0x${"00".repeat(65)}`,
    ];
    const unsigned = await mintmark(["withdraw", vaultId, ...signed], withKey);
    expect([unsigned.code, unsigned.stderr]).toEqual([
      1,
      expect.stringContaining("(deadline_invalid)"),
    ]);
    expect((await mintmark(["mint", ...asked], settings)).stderr).toContain("MINTMARK_API_KEY");
    expect((await run("withdrawals", "list", ...ofApplication)).data).toEqual([]);

    const { link, url } = await run("people", "invite", "Ada", "--role", "operator");
    expect(url).toBe(`${server.url}/console#link=${link}`);
    const other = await run("keys", "issue", "--application", applicationId);
    await run("keys", "revoke", other.keyId);
    const refused = await createClient({ baseUrl: server.url, apiKey: other.apiKey }).GET(
      "/api/v1/assets",
    );
    expect(refused.error?.code).toBe("credentials_invalid");
  });

  test("a token that was added in another minting blob scheme than L1 reads is never minted", async () => {
    const { assetId } = await run(
      "assets",
      "add",
      imxToken,
      "--standard",
      "erc721",
      "--name",
      "Shields",
      "--symbol",
      "SHLD",
    );
    const refused = await mintmark(
      ["assets", "register", assetId, "--rpc", chain.rpcUrl],
      settings,
    );
    expect(refused.stderr).toContain(
      "L1 reads this token's minting blobs as imx; the asset here has mintmark",
    );
  });

  test("a token of another chain is registered on L1 with a key from standard input, which is shown nowhere", async () => {
    const foreign = [
      "assets",
      "add",
      `0x${"f0".repeat(20)}`,
      "--standard",
      "erc721",
      "--chain",
      "5",
    ];
    const { assetId } = await run(...foreign, "--name", "Far", "--symbol", "FAR");
    const privateKey = toHex(ADMIN.getHdKey().privateKey ?? new Uint8Array());
    const register = ["assets", "register", assetId, "--rpc", chain.rpcUrl, "--json"];
    expect((await mintmark(register, settings)).stderr).toContain("asset_not_registered");
    const ended = await mintmark([...register, "--key-stdin"], settings, `${privateKey}\n`);
    expect(ended.json()).toMatchObject({ registered: true });
    expect(ended.stdout + ended.stderr + server.log.join("\n")).not.toContain(privateKey.slice(2));
  });

  test("a batch is sealed and committed, the next one by blobs, and the rollup rebuilt from L1 and the server", async () => {
    const [sealed] = await run("batches", "seal");
    expect(sealed).toMatchObject({ batchId: "zk-rollup-0", status: "sealed" });
    const file = join(folder, "batch.bin");
    const { bytes } = await run("export", "batch", "zk-rollup-0", "--output", file);
    expect((await readFile(file)).length).toBe(bytes);
    const key = toHex(OPERATOR.getHdKey().privateKey ?? new Uint8Array());
    const commit = [
      "batches",
      "commit",
      "--rpc",
      chain.rpcUrl,
      "--from-block",
      fromBlock,
      "--confirmations",
      "0",
    ];
    const ended = await mintmark([...commit, "--json"], {
      ...settings,
      MINTMARK_OPERATOR_KEY: key,
    });
    expect([ended.code, ended.json()]).toEqual([0, expect.objectContaining({ committed: 1 })]);
    // The command puts what comes next into blobs, and its next round commits them.
    await mintSword(3);
    await run("batches", "seal");
    const again = await mintmark([...commit, "--json"], {
      ...settings,
      MINTMARK_OPERATOR_KEY: key,
    });
    expect([again.code, again.json()]).toEqual([0, expect.objectContaining({ committed: 1 })]);
    const { data } = await run("batches", "status", "--mode", "zk-rollup", "--limit", "2");
    const kinds = data.map(({ kind }: { readonly kind: string }) => kind);
    expect([kinds, data[0].status]).toEqual([
      ["blobs", "calldata"],
      expect.stringMatching(/settled|finalized/),
    ]);

    const rebuilt = join(folder, "rebuilt");
    const report = await run(
      "rebuild",
      rebuilt,
      "--rpc",
      chain.rpcUrl,
      "--from-block",
      fromBlock,
      "--confirmations",
      "0",
      "--peers",
      server.url,
    );
    expect(report).toMatchObject({ batches: { "zk-rollup": 2 }, missing: [] });
    expect(server.log.join("\n")).not.toContain(key.slice(2));
  });

  test("events that a node left out are read again by one command, once", async () => {
    const key = toHex(OPERATOR.getHdKey().privateKey ?? new Uint8Array());
    const places = ["--from-block", fromBlock, "--confirmations", "0"];
    await mintSword(4);
    await run("batches", "seal");
    const commit = ["batches", "commit", "--rpc", chain.rpcUrl, ...places, "--json"];
    const committed = await mintmark(commit, { ...settings, MINTMARK_OPERATOR_KEY: key });
    expect(committed.json()).toMatchObject({ committed: 1 });
    const status = async () => {
      const { data } = await run("batches", "status", "--mode", "zk-rollup", "--limit", "1");
      return data[0].status;
    };
    // A node that answered nothing has left it like this.
    await run("rescan", "--rpc", chain.rpcUrl, ...places, "--take-back");
    expect(await status()).toBe("settled");
    const again = await run("rescan", "--rpc", chain.rpcUrl, ...places);
    expect(again).toMatchObject({ added: 0 });
    expect((await run("verify")).problems).toEqual([]);
  });

  test("a token comes back from L1 by one command, and the server credits it", async () => {
    const [, { owner: alice }] = USERS;
    const key = toHex(alice.getHdKey().privateKey ?? new Uint8Array());
    const owners = { ...settings, MINTMARK_OWNER_KEY: key, MINTMARK_RPC_URL: chain.rpcUrl };
    const by = await adminOver(http(chain.rpcUrl));
    const contract = settings.MINTMARK_CONTRACT as Hex;
    const points = { standard: "erc20", name: "P", symbol: "P", admin: ADMIN.address } as const;
    const deployed = async (more: object) =>
      (await deployToken(by, contract, { ...points, ...more })).address;
    const plain = await deployed({ quantum: 10n ** 15n });
    // Alice has withdrawn these.
    const node = createTestClient({ mode: "hardhat", transport: http(chain.rpcUrl) })
      .extend(publicActions)
      .extend(walletActions);
    await node.impersonateAccount({ address: contract });
    await node.setBalance({ address: contract, value: 10n ** 18n });
    const { abi } = readArtifact("MintableERC721");
    const paid = async (to: string, quantity: bigint, mintingBlob: Hex) => {
      const args = [alice.address, quantity, mintingBlob];
      const data = encodeFunctionData({ abi, functionName: "mintFor", args });
      const call = { account: contract, chain: null, to: to as Hex, data };
      await node.waitForTransactionReceipt({ hash: await node.sendTransaction(call) });
    };
    await paid(token, 1n, toHex("70"));
    await paid(plain, 20n * 10n ** 18n, "0x");

    const refusals = [
      [token, "--token-id", "71", "not 1: sign with the account that holds them"],
      [token, "--amount", "1", "--token-id: give the token's id"],
      [plain, "--amount", "20.5", "sign with the account that holds them"],
      [plain, "--token-id", "1", "give --amount"],
      [
        await deployed({ lockMinter: false }),
        "--amount",
        "1",
        "ask its admin to call lockMinter()",
      ],
      [await deployed({ cap: 9n }), "--units", "1", "has a cap of 9 base units"],
      [alice.address, "--units", "1", "look at --rpc and --contract"],
    ];
    for (const [of = "", option = "", value = "", sentence] of refusals) {
      const refused = await mintmark(["enter", of, option, value], owners);
      expect([of, refused.code, refused.stderr]).toEqual([
        of,
        expect.toBeOneOf([1, 2]),
        expect.stringContaining(sentence ?? ""),
      ]);
    }

    const { address: without } = await deploySettlement(by, TERMS);
    const elsewhere = await mintmark(["enter", token, "--contract", without], owners);
    expect(elsewhere.stderr).toContain("deployed without transfers: its tokens stay on L1");

    const [{ applicationId }] = await run("applications", "list");
    const { assetId } = (await run("assets", "list", "--application", applicationId)).find(
      ({ contractAddress }: { readonly contractAddress: string }) => contractAddress === token,
    );
    const { userId } = await run("users", "create", alice.address, "--application", applicationId);
    const asked = ["--token-id", "70", "--wait", "--confirmations", "0", "--json"];
    const asApplication = { ...owners, MINTMARK_API_KEY: apiKey, MINTMARK_URL: server.url };
    const ended = await mintmark(["enter", assetId, ...asked], asApplication);
    expect([ended.code, ended.stderr]).toEqual([0, expect.not.stringContaining(key.slice(2))]);
    const { vaultId, txHash, next } = ended.json();
    expect(next).toContain(`mintmark transfer ${vaultId}`);
    const soon = ["enter", plain, "--amount", "12.5", "--confirmations", "5", "--json"];
    expect((await mintmark(soon, owners)).json()).toMatchObject({
      ownerAddress: alice.address.toLowerCase(),
      amount: "12500",
      next: expect.stringMatching(/about [1-5] more blocks/),
    });

    const places = ["--rpc", chain.rpcUrl, "--from-block", fromBlock, "--confirmations", "0"];
    // The engine reads a block twice before it is final.
    await run("rescan", ...places);
    await run("rescan", ...places);
    const client = createClient({ baseUrl: server.url, apiKey });
    expect((await client.GET("/api/v1/deposits")).data?.data).toMatchObject([
      { vaultId, userId, assetId, tokenId: "70", l1TxHash: txHash },
    ]);
  });

  test("an owner's small vaults become one by one command, with exit kits alone", async () => {
    const [{ owner: bob }, { owner: alice }] = USERS;
    const keyOf = (owner: HDAccount) => toHex(owner.getHdKey().privateKey ?? new Uint8Array());
    const ownerKey = keyOf(alice);
    const owners = {
      ...settings,
      MINTMARK_OWNER_KEY: ownerKey,
      MINTMARK_RPC_URL: chain.rpcUrl,
    };
    const contract = settings.MINTMARK_CONTRACT as Hex;
    const by = await adminOver(http(chain.rpcUrl));
    const { address: points } = await deployToken(by, contract, {
      ...{ standard: "erc20", name: "Points", symbol: "PTS", admin: ADMIN.address },
      transferable: true,
    });
    const [{ applicationId }] = await run("applications", "list");
    const named = ["--standard", "erc20", "--name", "Points", "--symbol", "PTS"];
    const { assetId } = await run(
      "assets",
      "add",
      points,
      ...named,
      "--application",
      applicationId,
    );
    await run("assets", "register", assetId, "--rpc", chain.rpcUrl);
    const { data: users } = await run("users", "list", "--application", applicationId);
    const { userId } = users.find(
      ({ ownerAddress }: { readonly ownerAddress: string }) =>
        ownerAddress === alice.address.toLowerCase(),
    );
    const client = createClient({ baseUrl: server.url, apiKey });
    const minted: string[] = [];
    const { userId: bobs } = await run(
      "users",
      "create",
      bob.address,
      "--application",
      applicationId,
    );
    for (const [of, amount] of [
      [userId, "5"],
      [userId, "6"],
      [userId, "7"],
      [bobs, "9"],
    ] as const) {
      const mints = [{ assetId, amount, dataAvailabilityMode: "zk-rollup" as const }];
      const users = [{ userId: of, mints }];
      minted.push((await mint(client, { users })).vaults[0]?.vaultId ?? "");
      await run("batches", "seal");
    }
    const operatorKey = toHex(OPERATOR.getHdKey().privateKey ?? new Uint8Array());
    const places = ["--from-block", fromBlock, "--confirmations", "0"];
    const commit = ["batches", "commit", "--rpc", chain.rpcUrl, ...places, "--json"];
    await mintmark(commit, { ...settings, MINTMARK_OPERATOR_KEY: operatorKey });
    const rescan = async () => {
      for (let i = 0; i < 2; i++) await run("rescan", "--rpc", chain.rpcUrl, ...places);
    };
    await rescan();

    const kitOf = async (vaultId: string) => {
      const asked = ["exit-kit", vaultId, "--from-block", fromBlock, "--peers", server.url];
      const kit = await mintmark(asked, { ...settings, MINTMARK_RPC_URL: chain.rpcUrl });
      if (kit.code !== 0) throw new Error(kit.stderr);
      const file = join(folder, `${vaultId}.json`);
      await writeFile(file, kit.stdout);
      return file;
    };
    const [first = "", second = "", third = "", theirs = ""] = await Promise.all(minted.map(kitOf));
    for (const [args, sentence] of [
      [[], "give the ids of vaults, the files of their exit kits, or --token"],
      [[first, "--token", points], "give the ids of vaults"],
      [[first, first], "Give each vault once"],
      [["1"], "the server's address: --url"],
    ] as const) {
      const refused = await mintmark(["renew", ...args], owners);
      expect([refused.code, refused.stderr]).toEqual([
        expect.toBeOneOf([1, 2]),
        expect.stringContaining(sentence),
      ]);
    }
    const how = ["--wait", "--confirmations", "0", "--json"];
    const two = await mintmark(["renew", first, second, ...how], owners);
    expect([two.code, two.stderr]).toEqual([0, expect.not.stringContaining(ownerKey.slice(2))]);
    expect(two.json()).toMatchObject([{ token: points, tokenId: null, amount: "11" }]);
    const made = await kitOf(two.json()[0].vaultId);
    const [{ vaultId }] = (await mintmark(["renew", made, third, ...how], owners)).json();
    await rescan();
    expect(await run("vaults", "show", vaultId, "--application", applicationId)).toMatchObject({
      amount: "18",
      availableBalance: "18",
    });
    const again = await mintmark(["renew", third, ...how], owners);
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining("All of this vault")]);

    // The owner offers that vault for 2 of another one's 9 units, and that one takes it.
    const connect = (account: LocalAccount) =>
      connectL1({ rpc: chain.rpcUrl, contract, account, finality: { confirmations: 0n } });
    const kit = await readExitKit(await kitOf(vaultId));
    const want = { token: points, id: 0n, amount: 2n * kit.token.quantum };
    const account = alice.address;
    const order = await prepareOffer({ kit, l1: await connect(alice), account, want });
    const signature = await alice.signTypedData(orderTypedData(kit.settlement, order));
    const offer = join(folder, "offer.json");
    await writeFile(offer, offerText({ kit, order, signature }));
    const buyer = { ...owners, MINTMARK_OWNER_KEY: keyOf(bob) };
    const refused = await mintmark(["settle", offer, first, ...how], buyer);
    expect([refused.code, refused.stderr]).toEqual([
      2,
      expect.stringContaining(`the vault's owner is ${alice.address.toLowerCase()}`),
    ]);
    const traded = await mintmark(["settle", offer, theirs, ...how], buyer);
    expect([traded.code, traded.json()]).toMatchObject([
      0,
      [
        { ownerAddress: alice.address.toLowerCase(), amount: "2" },
        { ownerAddress: bob.address.toLowerCase(), amount: "18" },
      ],
    ]);
  });

  test("the doctor says what a node lacks of the past", async () => {
    const node = new FaultyNode(
      createTestClient({ mode: "hardhat", transport: http(chain.rpcUrl) }),
    );
    const rpc = await node.listen();
    const history = async (faults: NodeFaults) => {
      node.faults = faults;
      const environment = { ...settings, MINTMARK_RPC_URL: rpc, MINTMARK_FROM_BLOCK: fromBlock };
      const { stdout } = await mintmark(["doctor", "--json"], environment);
      const findings: { readonly check: string }[] = JSON.parse(stdout);
      return findings.find(({ check }) => check === "history");
    };
    expect(await history({})).toMatchObject({ status: "ok", todo: null });
    for (const client of ["geth", "erigon", "nethermind", "unheard"] as const)
      expect(await history({ pruned: 1, client })).toMatchObject({
        status: "fault",
        found: expect.stringMatching(
          /^the node does not give the state of block \d+, \d+ blocks ago$/,
        ),
        todo: expect.stringContaining("full node"),
      });
    expect(await history({ emptyLogs: true })).toMatchObject({
      status: "warning",
      found: `the node gives no event of block ${fromBlock}, in which the contract was deployed`,
    });
    await node.close();
  });

  test("an event that a webhook's endpoint can never take is skipped, and its types changed", async () => {
    const [{ applicationId }] = await run("applications", "list");
    const ofApplication = ["--application", applicationId];
    const client = createClient({ baseUrl: server.url, apiKey });
    const url = "https://example.com/hook";
    const { webhookId = "" } =
      (await client.POST("/api/v1/webhooks", { body: { url } })).data ?? {};
    const [{ delivered }] = await run("webhooks", "list", ...ofApplication);
    for (const id of [5, 6]) await mintSword(id);
    const skip = ["webhooks", "skip", webhookId];
    const early = await mintmark([...skip, `${delivered + 2}`, ...ofApplication], settings);
    expect(early.stderr).toContain(`sequence>: must be ${delivered + 1},`);
    const none = await mintmark([...skip, `${delivered + 9}`, ...ofApplication], settings);
    expect(none.stderr).toMatch(/sequence>: cannot be skipped: the newest event is \d+/);
    expect(await run(...skip, `${delivered + 1}`, ...ofApplication)).toMatchObject({
      delivered: delivered + 1,
    });
    const types = ["--types", "mint.accepted,batch.settled"];
    expect(await run("webhooks", "change", webhookId, ...types, ...ofApplication)).toMatchObject({
      types: ["mint.accepted", "batch.settled"],
    });
    const unknown = await mintmark(
      ["webhooks", "change", webhookId, "--types", "mint", ...ofApplication],
      settings,
    );
    expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining("mint.accepted")]);
    expect(await run("webhooks", "change", webhookId, ...ofApplication)).toMatchObject({
      types: [],
    });
  });

  test("owners and guards take the genuine contract, and none with a hidden upgrade key", async () => {
    const { MINTMARK_CONTRACT: contract = "" } = settings;
    const env = {
      MINTMARK_RPC_URL: chain.rpcUrl,
      MINTMARK_CONTRACT: contract,
      MINTMARK_FROM_BLOCK: fromBlock,
    };
    const places = ["--rpc", chain.rpcUrl, "--contract", contract, "--from-block", fromBlock];
    const checked = await mintmark(["check-contract", ...places, "--json"]);
    expect([checked.code, checked.json().created.operator]).toEqual([0, OPERATOR.address]);
    expect(checked.json()).toMatchObject({
      name: "StateCommitment",
      holders: { operator: [OPERATOR.address.toLowerCase()] },
      committee: { epoch: "0", threshold: TERMS.threshold },
      isPaused: false,
      announced: [],
    });
    const late = await mintmark(["check-contract"], {
      ...env,
      MINTMARK_FROM_BLOCK: `${Number(fromBlock) + 1}`,
    });
    expect([late.code, late.stderr]).toEqual([
      3,
      expect.stringContaining("Give the block of its creation"),
    ]);
    const client = createTestClient({ mode: "hardhat", transport: http(chain.rpcUrl) }).extend(
      publicActions,
    );
    const address = contract as Hex;
    const genuine = (await client.getCode({ address })) ?? "0x";
    const [place] = contractCode.StateCommitment.immutables.administrationCode;
    const administration = genuine.slice(2 + 2 * (place + 12), 2 + 2 * (place + 32));
    await client.setCode({
      address,
      bytecode: genuine.replaceAll(administration, "ab".repeat(20)) as Hex,
    });
    try {
      for (const guard of ["check-contract", "issuer", "member", "watch"]) {
        const name = guard.toUpperCase();
        const own = {
          [`MINTMARK_${name}_STORE`]: join(folder, guard),
          MINTMARK_WATCHER_KEY: toHex(7n, { size: 32 }),
        };
        const secret = guard === "issuer" && { MINTMARK_RECORD_SECRET: "s".repeat(32) };
        const key = {
          [`MINTMARK_${name}_KEY`]: toHex(7n, { size: 32 }),
          MINTMARK_STORE: join(folder, guard),
        };
        const ended = await mintmark([guard], { ...env, ...own, ...key, ...secret });
        expect([guard, ended.code, ended.stderr]).toEqual([
          ...[guard, 3],
          expect.stringContaining("is not this version's Administration"),
        ]);
      }
    } finally {
      await client.setCode({ address, bytecode: genuine });
    }
  });

  test("a genuine mirror is taken too, with its creation and its powers", async () => {
    const by = await adminOver(http(chain.rpcUrl));
    const { address, deployedAtBlock } = await deployMirror(by, {
      admin: ADMIN.address,
      sourceChainId: 1n,
      sourceContract: OPERATOR.address,
      committee: [OPERATOR.address],
      threshold: 1,
      changeDelay: 60n,
      maturity: 60n,
    });
    const places = ["--rpc", chain.rpcUrl, "--contract", address];
    const check = (block: bigint) =>
      mintmark(["check-contract", ...places, "--from-block", `${block}`, "--json"]);
    const { code, json } = await check(deployedAtBlock);
    const admin = ADMIN.address.toLowerCase();
    const members = [OPERATOR.address.toLowerCase()];
    expect([code, json()]).toMatchObject([
      0,
      {
        name: "StateMirror",
        created: { sourceChainId: "1", sourceContract: OPERATOR.address },
        holders: { admin: [admin], guardian: [], operator: [] },
        committee: { epoch: "0", threshold: 1, members },
        announced: [],
      },
    ]);
    const late = await check(deployedAtBlock + 1n);
    expect([late.code, late.stderr]).toEqual([
      3,
      expect.stringContaining("Give the block of its creation"),
    ]);
  });

  test("changes of the running server persist after its stop, and the socket's file does no harm", async () => {
    const exited = once(server.child, "exit");
    server.child.kill("SIGKILL");
    await exited;
    expect(await run("applications", "list")).toHaveLength(1);
    expect((await run("verify")).problems).toEqual([]);
    expect(server.log.join("\n")).not.toContain(apiKey);
  });

  test("a store that another process holds without listening is left alone", async () => {
    const holder = `import { openEngine } from "./core/index.ts";
      await openEngine(${JSON.stringify({ store: settings.MINTMARK_STORE, environment: "sandbox", createIfMissing: true }).slice(0, -1)},
        settlement: { chainId: ${settings.MINTMARK_CHAIN_ID}n, contract: "${settings.MINTMARK_CONTRACT}", engineVersion: 5 } });
      console.log("open");
      setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", holder], {
      cwd: ROOT,
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(child.stdout, "data");
    const refused = await mintmark(["applications", "list"], settings);
    expect([refused.code, refused.stderr]).toEqual([3, expect.stringContaining("store_locked")]);
    child.kill("SIGKILL");
    await once(child, "exit");
  });
});
