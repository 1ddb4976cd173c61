import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { userInfo } from "node:os";
import { join } from "node:path";
import { createWalletClient, http, keccak256, parseAbi } from "viem";
import { afterEach, describe, expect, test } from "vitest";
import { readRecord } from "../../scripts/deploy/record.ts";
import { settingsIn } from "../../scripts/up/processes.ts";
import { eventually } from "../eventually.ts";
import { at } from "../settlement/fixture.ts";
import {
  AWAY,
  answersIn,
  BASE,
  chainOf,
  endAll,
  folderOf,
  funded,
  mintAndWithdraw,
  mintmark,
  portOf,
  SEPOLIA,
  sourcify,
  TOKEN,
} from "../up-world.ts";

afterEach(endAll);

describe("mintmark up on a public network", () => {
  test("brings a deployment to life without money at first; a token is minted, final and withdrawn", async () => {
    const { url, client, close } = await chainOf(SEPOLIA);
    const folder = await folderOf();
    const port = portOf();
    const begun = Date.now();
    const answers = await answersIn(folder, { members: 2, tokens: [TOKEN], maturitySeconds: 1, port });
    const args = ["up", "--network", "sepolia", "--rpc", url, "--folder", folder, "--answers", answers];
    const more = ["--poll-ms", "200", "--sourcify", AWAY, "--yes"];
    await funded([...args, ...more], client);
    const busy = createServer().listen(port + 100, "127.0.0.1");
    const refused = mintmark(...args, ...more, "--start");
    expect(await refused.ended).toBe(1);
    expect(refused.said).toMatch(/error: the member-1 ended with 1; \S+member-1\.log says why/);
    await new Promise((done) => busy.close(done));
    const running = mintmark(...args, ...more, "--start", "--json");
    await running.says(/all processes are ready/);
    expect(refused.said).toMatch(/sources +not published: 127\.0\.0\.1:1 cannot be reached/);
    expect(refused.said).toMatch(/deployed +cost 0\.\d+ ETH/);

    await mintAndWithdraw({ folder, port, chainId: SEPOLIA, client });

    console.info(
      `withdrawn ${Math.round((Date.now() - begun) / 1000)} s after the start, for ${await gasOf(client)} gas`,
    );
    const compose = await readFile(join(folder, "compose.yaml"), "utf8");
    expect(compose.match(/user: "(.*)"/)?.[1]).toBe(`${userInfo().uid}:${userInfo().gid}`);

    // The backup may be under way.
    const findings = () => mintmark("doctor", "--folder", folder, "--json").json();
    await eventually(async () => {
      for (const { status } of await findings()) expect(status).not.toBe("fault");
    });
    const { settlement } = (await readRecord(join(folder, "deployments", `${SEPOLIA}.json`))) ?? {};
    const { operator = "0x", admin = "0x", address: contract = "0x" } = settlement ?? {};
    await client.impersonateAccount({ address: admin });
    const revoke = parseAbi(["function revokeOperator(address)"]);
    const { request } = await client.simulateContract({
      ...{ abi: revoke, address: contract, functionName: "revokeOperator", args: [operator], account: admin },
    });
    await createWalletClient({ transport: http(url) }).writeContract({ ...request, chain: null });
    await eventually(async () => {
      const doctor = mintmark("doctor", "--folder", folder);
      expect(await doctor.ended).toBe(1);
      expect(doctor.said).toMatch(/role +fault +0x\w+ does not hold the operator role/);
    });
    await running.interrupt();
    const again = mintmark(...args, ...more, "--start");
    expect(await again.ended).toBe(1);
    expect(again.said).toMatch(/operator role/);
    await expect(fetch(`http://127.0.0.1:${port}/healthz`)).rejects.toThrow("fetch failed");
    const log = await readFile(join(folder, "logs", "server.log"), "utf8");
    expect(log).toContain("shutting down");
    await close();
    const doctor = mintmark("doctor", "--folder", folder);
    expect(await doctor.ended).toBe(1);
    expect(doctor.said).toMatch(/^chain +fault +the node does not answer/m);
    expect(doctor.said).toMatch(/^server +fault +no server listens/m);
    expect(doctor.said).toMatch(/^committee +fault +0 of 2 members/m);
    const stopped = mintmark("doctor", "--folder", folder, "--stopped");
    expect(await stopped.ended).toBe(1);
    expect(stopped.said).toMatch(/^server +ok/m);
  });

  test("refuses a wrong chain, and deploys again what a reorganisation removed; sources are published", async () => {
    const { url, client } = await chainOf(BASE);
    const base = await folderOf();
    const folder = join(base, "50% up");
    const multisig = `0x${"5e".repeat(20)}` as const;
    await client.setCode({ address: multisig, bytecode: "0x00" });
    const terms = { members: 1, multisig, tokens: [TOKEN] };
    const wrong = mintmark("up", "--network", "sepolia", "--rpc", url, "--folder", folder, "--yes");
    expect(await wrong.ended).toBe(2);
    expect(wrong.said).toContain(`serves chain ${BASE}, and Sepolia is chain ${SEPOLIA}`);
    const { url: service, given } = await sourcify();
    const answers = await answersIn(base, { ...terms, threshold: 3 });
    const args = ["up", "--network", "base", "--rpc", url, "--folder", folder, "--answers", answers];
    const more = ["--poll-ms", "200", "--sourcify", service, "--yes"];
    const tooMany = mintmark(...args, ...more);
    expect(await tooMany.ended).toBe(1);
    expect(tooMany.said).toContain("has 1 members, so the threshold is 1 to 1, not 3");
    await answersIn(base, terms);
    await funded([...args, ...more], client);
    const before = await client.snapshot();
    const run = mintmark(...args, ...more, "--json");
    await run.says(/waiting for block/);
    await client.revert({ id: before });
    await run.says(/dropped the deployment in a reorganisation/);
    const { contract, assets, explorer } = await run.json();
    expect(explorer).toBe(`https://basescan.org/address/${contract}`);
    expect(await client.getCode({ address: contract })).not.toBe(undefined);
    expect(assets).toHaveLength(1);
    // The interface of the live network, not of a test network.
    expect(settingsIn(join(folder, "server", "settings.env")).MINTMARK_ENVIRONMENT).toBe("live");
    const { settlement, tokens } = (await readRecord(join(folder, "deployments", `${BASE}.json`))) ?? {};
    const published = [settlement?.address, settlement?.transfersCode, settlement?.admin, tokens?.[0]?.address];
    expect([...given.keys()]).toEqual(published);
    const names = [...given.values()].map(({ contractIdentifier }) => contractIdentifier.split(":").at(-1));
    expect(names).toEqual(["StateCommitment", "Transfers", "AdminTimeLock", "MintableERC721"]);
    type Input = { readonly sources: Readonly<Record<string, { readonly content: string }>> };
    const { stdJsonInput } = at([...given.values()], 0) as { readonly stdJsonInput: Input };
    const own = await readFile(new URL("../../contracts/StateCommitment.sol", import.meta.url), "utf8");
    expect(keccak256(Buffer.from(stdJsonInput.sources["contracts/StateCommitment.sol"]?.content ?? ""))).toBe(
      keccak256(Buffer.from(own)),
    );
    // A second run changes nothing, and spends nothing. It keeps an operator's own settings.
    const file = join(folder, "server", "settings.env");
    const written = await readFile(file, "utf8");
    await writeFile(file, `MINTMARK_LOG_LEVEL=warn\n${written}MINTMARK_PORT=4000\n`);
    const { address = "" } = JSON.parse(await readFile(join(folder, "keys", "deployer.json"), "utf8"));
    const sent = () => client.getTransactionCount({ address: `0x${address}` });
    const deployer = await sent();
    await mintmark(...args, ...more, "--json").json();
    expect(await sent()).toBe(deployer);
    expect(given.size).toBe(4);
    const yours = /below this line.*\nMINTMARK_LOG_LEVEL=warn\nMINTMARK_PORT=4000\n$/;
    expect(await readFile(file, "utf8")).toMatch(yours);
    expect(settingsIn(file)).toMatchObject({ MINTMARK_LOG_LEVEL: "warn", MINTMARK_PORT: "4000" });
    const unit = await readFile(join(folder, "systemd", "mintmark-server.service"), "utf8");
    expect(unit).toContain("/50%% up/server/settings.env\n");
    const target = await readFile(join(folder, "systemd", "mintmark.target"), "utf8");
    expect(target).toContain("mintmark-server.service mintmark-member-1.service mintmark-watcher.service");
    expect(target).toContain("mintmark-backup.timer");

    // A token that the answers name later is added.
    await answersIn(base, { ...terms, members: 2, tokens: [TOKEN, { ...TOKEN, name: "Shields", symbol: "SHLD" }] });
    const more2 = mintmark(...args, ...more, "--json");
    expect((await more2.json()).assets).toMatchObject([{ symbol: "SWRD" }, { symbol: "SHLD" }]);
    expect(more2.said).toContain("only new tokens count");
    expect(given.size).toBe(5);

    // A node that is behind is no reason to deploy a second contract.
    const known = await readRecord(join(folder, "deployments", `${BASE}.json`));
    await client.setCode({ address: contract, bytecode: "0x" });
    const behind = mintmark(...args, ...more);
    expect(await behind.ended).toBe(1);
    expect(behind.said).toContain(`the node has no code at ${contract}`);
    expect(await readRecord(join(folder, "deployments", `${BASE}.json`))).toEqual(known);
  });
});

/** Gas of all transactions that the chain has. */
async function gasOf(client: Awaited<ReturnType<typeof chainOf>>["client"]): Promise<bigint> {
  let gas = 0n;
  for (let block = await client.getBlockNumber(); block > 0n; block--)
    gas += (await client.getBlock({ blockNumber: block })).gasUsed;
  return gas;
}
