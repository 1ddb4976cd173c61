import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startSandbox } from "../../scripts/sandbox/sandbox.ts";
import { expectPrinted, programs, shell, stepsOf } from "../guide.ts";

test("the guide collection mints its 10,000 pieces line by line, and no more when it is repeated", async () => {
  const folder = mkdtempSync(join(tmpdir(), "mintmark-collection-"));
  const options = {
    folder: join(folder, "sandbox"),
    port: 0,
    chainPort: 0,
    rollupData: "blobs",
  } as const;
  const sandbox = await startSandbox(options);
  const sword =
    sandbox.description.assets.find(({ standard }) => standard === "erc721")?.assetId ?? "";
  try {
    const { api, apiKey } = sandbox.description;
    const [start, access, drop, look, ...more] = stepsOf("collection");
    if (!start || !access || !drop || !look) throw new Error("the guide has lost commands");
    // The sandbox runs already, at another port.
    expect([start.commands, more]).toEqual(["npm start\n", []]);
    for (const own of [`MINTMARK_API_KEY=${apiKey}\n`, `ASSET=${sword}\n`])
      expect(access.commands).toContain(own);
    const env = access.commands.replace("http://127.0.0.1:3000", api);
    const PATH = programs(folder);
    const again = drop.commands.trim().split("\n").at(-1);
    for (const commands of [drop.commands, again]) {
      expectPrinted(await shell(`${env}${commands}`, folder, { PATH }), drop);
      expect(await pieces()).toBe(10_000);
    }
    expectPrinted(await shell(`${env}${look.commands}`, folder, { PATH }), look);
    // The sandbox takes such a file over HTTP too.
    const headers = { "x-api-key": apiKey, "content-type": "text/csv" };
    const url = `${api}/api/v1/drops?assetId=${sword}&dataAvailabilityMode=zk-rollup&dryRun=true`;
    const body = `tokenId,ownerAddress,name,image\n10001,0x${"c".repeat(40)},Piece,https://art.example/1.png`;
    const sent = await fetch(url, { method: "POST", headers, body });
    expect(await sent.json()).toMatchObject({ rows: 1, dryRun: true });
  } finally {
    await sandbox.stop();
    rmSync(folder, { recursive: true, force: true });
  }

  /** The collection's pieces that are minted. */
  async function pieces(): Promise<number> {
    let count = 0;
    const { applicationId } = sandbox.description;
    for await (const { assetId, tokenId } of sandbox.engine.vaults.list(applicationId))
      if (assetId === sword && (tokenId ?? 0n) < 10_000n) count++;
    return count;
  }
});
