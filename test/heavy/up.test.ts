import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createPublicClient, http, keccak256 } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterEach, expect, test } from "vitest";
import { readRecord } from "../../scripts/deploy/record.ts";
import { freePort } from "../../scripts/sandbox/process.ts";
import { settingsIn } from "../../scripts/up/processes.ts";
import { answer, createClient, transfer } from "../../server/client/index.ts";
import { Npm } from "../npm.ts";
import { at } from "../settlement/fixture.ts";
import * as up from "../up-world.ts";

const FRIEND = "0x00000000000000000000000000000000000f81e4";

afterEach(up.endAll);

test("runs against `npx hardhat node`, whose accounts pay", async () => {
  const folder = await up.folderOf();
  const [chainPort, port] = [await freePort(0), up.portOf()];
  const node = new Npm(["exec", "--", "hardhat", "node", "--port", `${chainPort}`]);
  up.track(() => node[Symbol.asyncDispose]());
  await node.says(/Started HTTP/);
  const url = `http://127.0.0.1:${chainPort}`;
  const answers = await up.answersIn(folder, {
    members: 1,
    tokens: [up.TOKEN],
    maturitySeconds: 1,
    port,
  });
  const args = ["--folder", folder, "--answers", answers, "--poll-ms", "200", "--yes", "--start"];
  const running = up.mintmark("up", "--network", url, ...args);
  await running.says(/all processes are ready/);
  await up.mintAndWithdraw({ folder, port, chainId: up.HARDHAT, client: up.clientOf(url) });
});

test("is killed at each step and started again, and deploys everything once", async () => {
  const run = async (isKilled: boolean, steps: readonly string[]) => {
    const { url, client } = await up.chainOf(up.BASE);
    const folder = await up.folderOf();
    const answers = await up.answersIn(folder, { members: 1, tokens: [up.TOKEN] });
    const args = [
      "up",
      "--network",
      url,
      "--folder",
      folder,
      "--answers",
      answers,
      "--poll-ms",
      "200",
    ];
    const more = [...args, "--sourcify", up.AWAY, "--yes"];
    await up.funded(more, client);
    for (const step of isKilled ? steps : []) {
      const killed = up.mintmark(...more);
      // A later run need not come by each step.
      await killed.says(new RegExp(`${step}|apiKeyFile|API key`));
      await killed[Symbol.asyncDispose]();
    }
    const last = up.mintmark(...more);
    expect(await last.ended).toBe(0);
    const { settlement } = (await readRecord(join(folder, "deployments", `${up.BASE}.json`))) ?? {};
    const sent = await createPublicClient({ transport: http(url) }).getTransactionCount({
      address: settlement?.admin ?? "0x",
    });
    const record = JSON.parse(await readFile(join(folder, "up.json"), "utf8")) as {
      seeded: { assets: unknown[] };
    };
    expect(record.seeded.assets).toHaveLength(1);
    return { sent, steps: [...last.said.matchAll(/^… (\w+ \w+)/gm)].map(([, line = ""]) => line) };
  };
  const whole = await run(false, []);
  const killed = await run(true, whole.steps);
  expect(whole.steps.length).toBeGreaterThan(4);
  expect(killed.sent).toBe(whole.sent);
});

test("refuses a wrong chain, and deploys again what a reorganisation removed; sources are published", async () => {
  const { url, client } = await up.chainOf(up.BASE);
  const base = await up.folderOf();
  const folder = join(base, "50% up");
  const multisig = `0x${"5e".repeat(20)}` as const;
  await client.setCode({ address: multisig, bytecode: "0x00" });
  const terms = { members: 1, multisig, tokens: [up.TOKEN] };
  const wrong = up.mintmark(
    "up",
    "--network",
    "sepolia",
    "--rpc",
    url,
    "--folder",
    folder,
    "--yes",
  );
  expect(await wrong.ended).toBe(2);
  expect(wrong.said).toContain(`serves chain ${up.BASE}, and Sepolia is chain ${up.SEPOLIA}`);
  const { url: service, given } = await up.sourcify();
  const answers = await up.answersIn(base, { ...terms, threshold: 3 });
  const args = ["up", "--network", "base", "--rpc", url, "--folder", folder, "--answers", answers];
  const more = ["--poll-ms", "200", "--sourcify", service, "--yes"];
  const tooMany = up.mintmark(...args, ...more);
  expect(await tooMany.ended).toBe(1);
  expect(tooMany.said).toContain("has 1 members, so the threshold is 1 to 1, not 3");
  await up.answersIn(base, terms);
  await up.funded([...args, ...more], client);
  const before = await client.snapshot();
  const run = up.mintmark(...args, ...more, "--json");
  await run.says(/waiting for block/);
  await client.revert({ id: before });
  await run.says(/dropped the deployment in a reorganisation/);
  const { contract, assets, explorer } = await run.json();
  expect(explorer).toBe(`https://basescan.org/address/${contract}`);
  expect(await client.getCode({ address: contract })).not.toBe(undefined);
  expect(assets).toHaveLength(1);
  // The interface of the live network, not of a test network.
  expect(settingsIn(join(folder, "server", "settings.env")).MINTMARK_ENVIRONMENT).toBe("live");
  const { settlement, tokens } =
    (await readRecord(join(folder, "deployments", `${up.BASE}.json`))) ?? {};
  const published = [
    settlement?.address,
    settlement?.transfersCode,
    settlement?.makingsCode,
    settlement?.admin,
    tokens?.[0]?.address,
  ];
  expect([...given.keys()]).toEqual(published);
  const names = [...given.values()].map(({ contractIdentifier }) =>
    contractIdentifier.split(":").at(-1),
  );
  expect(names).toEqual([
    "StateCommitment",
    "Transfers",
    "Makings",
    "AdminTimeLock",
    "MintableERC721",
  ]);
  type Input = { readonly sources: Readonly<Record<string, { readonly content: string }>> };
  const { stdJsonInput } = at([...given.values()], 0) as { readonly stdJsonInput: Input };
  const own = await readFile(
    new URL("../../contracts/StateCommitment.sol", import.meta.url),
    "utf8",
  );
  expect(
    keccak256(Buffer.from(stdJsonInput.sources["contracts/StateCommitment.sol"]?.content ?? "")),
  ).toBe(keccak256(Buffer.from(own)));
  // A second run changes nothing, and spends nothing. It keeps an operator's own settings.
  const file = join(folder, "server", "settings.env");
  const written = await readFile(file, "utf8");
  await writeFile(file, `MINTMARK_LOG_LEVEL=warn\n${written}MINTMARK_PORT=4000\n`);
  const { address = "" } = JSON.parse(
    await readFile(join(folder, "keys", "deployer.json"), "utf8"),
  );
  const sent = () => client.getTransactionCount({ address: `0x${address}` });
  const deployer = await sent();
  await up.mintmark(...args, ...more, "--json").json();
  expect(await sent()).toBe(deployer);
  expect(given.size).toBe(5);
  const yours = /below this line.*\nMINTMARK_LOG_LEVEL=warn\nMINTMARK_PORT=4000\n$/;
  expect(await readFile(file, "utf8")).toMatch(yours);
  expect(settingsIn(file)).toMatchObject({ MINTMARK_LOG_LEVEL: "warn", MINTMARK_PORT: "4000" });
  const unit = await readFile(join(folder, "systemd", "mintmark-server.service"), "utf8");
  expect(unit).toContain("/50%% up/server/settings.env\n");
  const target = await readFile(join(folder, "systemd", "mintmark.target"), "utf8");
  expect(target).toContain(
    "mintmark-server.service mintmark-member-1.service mintmark-watcher.service",
  );
  expect(target).toContain("mintmark-backup.timer");

  // A token that the answers name later is added.
  await up.answersIn(base, {
    ...terms,
    members: 2,
    tokens: [up.TOKEN, { ...up.TOKEN, name: "Shields", symbol: "SHLD" }],
  });
  const more2 = up.mintmark(...args, ...more, "--json");
  expect((await more2.json()).assets).toMatchObject([{ symbol: "SWRD" }, { symbol: "SHLD" }]);
  expect(more2.said).toContain("only new tokens count");
  expect(given.size).toBe(6);

  // A node that is behind is no reason to deploy a second contract.
  const known = await readRecord(join(folder, "deployments", `${up.BASE}.json`));
  await client.setCode({ address: contract, bytecode: "0x" });
  const behind = up.mintmark(...args, ...more);
  expect(await behind.ended).toBe(1);
  expect(behind.said).toContain(`the node has no code at ${contract}`);
  expect(await readRecord(join(folder, "deployments", `${up.BASE}.json`))).toEqual(known);
});

test("the command of the guide solo brings up one server on an L2, whose mints are given away", async () => {
  const page = await readFile(new URL("../../docs/guides/solo.md", import.meta.url), "utf8");
  const [, command = ""] = /```sh\nnpx mintmark (.+)\n```/.exec(page) ?? [];
  const [, answers = "{}"] = /```json\n([\s\S]+?)```/.exec(page) ?? [];
  const { url, client: chain } = await up.chainOf(up.BASE_SEPOLIA);
  const folder = await up.folderOf();
  const port = up.portOf();
  const file = await up.answersIn(folder, { ...JSON.parse(answers), maturitySeconds: 1, port });
  const words = command
    .replace("https://rpc.example", url)
    .replace("answers.json", file)
    .split(" ");
  const args = [...words, "--folder", folder, "--poll-ms", "200", "--sourcify", up.AWAY];
  await up.funded(args, chain);
  const running = up.mintmark(...args);
  await running.says(/all processes are ready/);
  const logs = async () => (await readdir(join(folder, "logs"))).toSorted();
  await expect.poll(logs).toEqual(["backup.log", "server.log"]);

  const baseUrl = `http://127.0.0.1:${port}`;
  const apiKey = (await readFile(join(folder, "keys", "api-key"), "utf8")).trim();
  const client = createClient({ baseUrl, apiKey });
  const owner = privateKeyToAccount(generatePrivateKey());
  const { userId } = await answer(
    client.POST("/api/v1/users", { body: { ownerAddress: owner.address } }),
  );
  const { data: assets } = await answer(client.GET("/api/v1/assets", {}));
  const mints = [{ assetId: at(assets, 0).assetId, tokenId: "77", amount: 1 }];
  const minted = await answer(
    client.POST("/api/v1/mint", { body: { users: [{ userId, mints }] } }),
  );
  if (!("mintId" in minted)) throw new Error("it was a dry run");
  const { vaultId, dataAvailabilityMode } = at(minted.vaults, 0);
  expect(dataAvailabilityMode).toBe("zk-rollup");
  const given = await transfer(client, {
    transfers: [{ vaultId, to: FRIEND }],
    signer: owner,
    wait: true,
  });
  expect(given.status).toBe("finalized");

  await up.mintAndWithdraw({ folder, port, chainId: up.BASE_SEPOLIA, client: chain });
  expect((await fetch(`${baseUrl}/readyz`)).status).toBe(200);
  const doctor = up.mintmark("doctor", "--folder", folder, "--json");
  const findings: { check: string; status: string }[] = await doctor.json();
  expect(findings.filter(({ status }) => status === "fault")).toEqual([]);
  expect(findings.filter(({ check }) => check === "committee")).toMatchObject([{ status: "ok" }]);
  expect(await readdir(join(folder, "backup"))).toContain("journal");
  const other = up.mintmark(...args.map((word) => (word === "solo" ? "committee" : word)));
  expect(await other.ended).toBe(2);
  expect(other.said).toMatch(/--profile: this deployment has begun as solo/);
});
