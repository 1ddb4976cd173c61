import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { userInfo } from "node:os";
import { join } from "node:path";
import { createWalletClient, http, parseAbi } from "viem";
import { afterEach, describe, expect, test } from "vitest";
import { readRecord } from "../../scripts/deploy/record.ts";
import { eventually } from "../eventually.ts";
import * as up from "../up-world.ts";

afterEach(up.endAll);

describe("mintmark up on a public network", () => {
  test("brings a deployment to life without money at first; a token is minted, final and withdrawn", async () => {
    const { url, client, close } = await up.chainOf(up.SEPOLIA);
    const folder = await up.folderOf();
    const port = up.portOf();
    const begun = Date.now();
    const answers = await up.answersIn(folder, {
      members: 2,
      tokens: [up.TOKEN],
      maturitySeconds: 1,
      port,
    });
    const args = [
      "up",
      "--network",
      "sepolia",
      "--rpc",
      url,
      "--folder",
      folder,
      "--answers",
      answers,
    ];
    const more = ["--poll-ms", "200", "--sourcify", up.AWAY, "--yes"];
    await up.funded([...args, ...more], client);
    const busy = createServer().listen(port + 100, "127.0.0.1");
    const refused = up.mintmark(...args, ...more, "--start");
    expect(await refused.ended).toBe(1);
    expect(refused.said).toMatch(/error: the member-1 ended with 1; \S+member-1\.log says why/);
    await new Promise((done) => busy.close(done));
    const running = up.mintmark(...args, ...more, "--start", "--json");
    await running.says(/all processes are ready/);
    expect(refused.said).toMatch(/sources +not published: 127\.0\.0\.1:1 cannot be reached/);
    expect(refused.said).toMatch(/deployed +cost 0\.\d+ ETH/);

    await up.mintAndWithdraw({ folder, port, chainId: up.SEPOLIA, client });

    console.info(
      `withdrawn ${Math.round((Date.now() - begun) / 1000)} s after the start, for ${await gasOf(client)} gas`,
    );
    const compose = await readFile(join(folder, "compose.yaml"), "utf8");
    expect(compose.match(/user: "(.*)"/)?.[1]).toBe(`${userInfo().uid}:${userInfo().gid}`);

    // The backup may be under way.
    const findings = () => up.mintmark("doctor", "--folder", folder, "--json").json();
    await eventually(async () => {
      for (const { status } of await findings()) expect(status).not.toBe("fault");
    });
    const { settlement } =
      (await readRecord(join(folder, "deployments", `${up.SEPOLIA}.json`))) ?? {};
    const { operator = "0x", admin = "0x", address: contract = "0x" } = settlement ?? {};
    await client.impersonateAccount({ address: admin });
    const revoke = parseAbi(["function revokeOperator(address)"]);
    const { request } = await client.simulateContract({
      ...{
        abi: revoke,
        address: contract,
        functionName: "revokeOperator",
        args: [operator],
        account: admin,
      },
    });
    await createWalletClient({ transport: http(url) }).writeContract({ ...request, chain: null });
    await eventually(async () => {
      const doctor = up.mintmark("doctor", "--folder", folder);
      expect(await doctor.ended).toBe(1);
      expect(doctor.said).toMatch(/role +fault +0x\w+ does not hold the operator role/);
    });
    await running.interrupt();
    const again = up.mintmark(...args, ...more, "--start");
    expect(await again.ended).toBe(1);
    expect(again.said).toMatch(/operator role/);
    await expect(fetch(`http://127.0.0.1:${port}/healthz`)).rejects.toThrow("fetch failed");
    const log = await readFile(join(folder, "logs", "server.log"), "utf8");
    expect(log).toContain("shutting down");
    await close();
    const doctor = up.mintmark("doctor", "--folder", folder);
    expect(await doctor.ended).toBe(1);
    expect(doctor.said).toMatch(/^chain +fault +the node does not answer/m);
    expect(doctor.said).toMatch(/^server +fault +no server listens/m);
    expect(doctor.said).toMatch(/^committee +fault +0 of 2 members/m);
    const stopped = up.mintmark("doctor", "--folder", folder, "--stopped");
    expect(await stopped.ended).toBe(1);
    expect(stopped.said).toMatch(/^server +ok/m);
  });
});

/** Gas of all transactions that the chain has. */
async function gasOf(client: Awaited<ReturnType<typeof up.chainOf>>["client"]): Promise<bigint> {
  let gas = 0n;
  for (let block = await client.getBlockNumber(); block > 0n; block--)
    gas += (await client.getBlock({ blockNumber: block })).gasUsed;
  return gas;
}
