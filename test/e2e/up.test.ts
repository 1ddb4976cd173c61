import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { createWalletClient, http, keccak256, parseAbi } from "viem";
import { afterEach, describe, expect, test } from "vitest";
import { readRecord } from "../../scripts/deploy/record.ts";
import { settingsIn } from "../../scripts/doctor/doctor.ts";
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
    const { url, client } = await chainOf(SEPOLIA);
    const folder = await folderOf();
    const port = portOf();
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
    await expect(fetch(`http://127.0.0.1:${port}/healthz`)).rejects.toThrow("fetch failed");
  });

  test("refuses a wrong chain, and deploys again what a reorganisation removed; sources are published", async () => {
    const { url, client } = await chainOf(BASE);
    const folder = await folderOf();
    const answers = await answersIn(folder, { members: 1, tokens: [TOKEN] });
    const wrong = mintmark("up", "--network", "sepolia", "--rpc", url, "--folder", folder, "--yes");
    expect(await wrong.ended).toBe(2);
    expect(wrong.said).toContain(`serves chain ${BASE}, and Sepolia is chain ${SEPOLIA}`);
    const { url: service, given } = await sourcify();
    const args = ["up", "--network", "base", "--rpc", url, "--folder", folder, "--answers", answers];
    const more = ["--poll-ms", "200", "--sourcify", service, "--yes"];
    await funded([...args, ...more], client);
    const before = await client.snapshot();
    const run = mintmark(...args, ...more, "--json");
    await run.says(/waiting for block/);
    await client.revert({ id: before });
    await run.says(/dropped the deployment in a reorganisation/);
    const { contract, assets } = await run.json();
    expect(await client.getCode({ address: contract })).not.toBe(undefined);
    expect(assets).toHaveLength(1);
    // The interface of the live network, not of a test network.
    expect(settingsIn(join(folder, "server", "settings.env")).MINTMARK_ENVIRONMENT).toBe("live");
    const { settlement, tokens } = (await readRecord(join(folder, "deployments", `${BASE}.json`))) ?? {};
    const published = [settlement?.address, settlement?.transfersCode, tokens?.[0]?.address];
    expect([...given.keys()]).toEqual(published);
    const names = [...given.values()].map(({ contractIdentifier }) => contractIdentifier.split(":").at(-1));
    expect(names).toEqual(["StateCommitment", "Transfers", "MintableERC721"]);
    type Input = { readonly sources: Readonly<Record<string, { readonly content: string }>> };
    const { stdJsonInput } = at([...given.values()], 0) as { readonly stdJsonInput: Input };
    const own = await readFile(new URL("../../contracts/StateCommitment.sol", import.meta.url), "utf8");
    expect(keccak256(Buffer.from(stdJsonInput.sources["contracts/StateCommitment.sol"]?.content ?? ""))).toBe(
      keccak256(Buffer.from(own)),
    );
    // A second run changes nothing, and spends nothing.
    const deployer = await client.getTransactionCount({ address: settlement?.admin ?? "0x" });
    await mintmark(...args, ...more, "--json").json();
    expect(await client.getTransactionCount({ address: settlement?.admin ?? "0x" })).toBe(deployer);
    expect(given.size).toBe(3);
  });
});
