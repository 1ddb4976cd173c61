import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { claimTypedData } from "../../core/protocol/typed-data.ts";
import { createWorld, SETTLEMENT, type World } from "../server/fixture.ts";
import { mintmark } from "./cli.ts";

const OWNER = `0x${"7a".repeat(20)}` as const;

let world: World;
let folder: string;
let settings: Record<string, string>;
beforeAll(async () => {
  world = await createWorld();
  const url = await world.app.listen({ host: "127.0.0.1", port: 0 });
  folder = mkdtempSync(join(tmpdir(), "mintmark-claim-links-"));
  settings = { MINTMARK_URL: url, MINTMARK_API_KEY: world.key };
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

const run = (...args: string[]) =>
  mintmark(["claim-links", ...args, "--mode", "validium", "--json"], settings);
const linksOf = (file: string) =>
  readFileSync(file, "utf8")
    .trim()
    .split("\n")
    .slice(1)
    .map((line) => line.split(",") as [string, string, `0x${string}`]);

test("makes links with codes, again without a change, and each can be claimed", async () => {
  const [out, qr] = [join(folder, "seats.csv"), join(folder, "codes")];
  const args = ["--asset", world.erc721.assetId, "--count", "12", "--first-token", "100"];
  const all = [
    ...args,
    "--out",
    out,
    "--qr",
    qr,
    "--page",
    "https://event.example",
    "--expires",
    "2999-01-01T00:00:00Z",
  ];
  const first = await run(...all);
  expect([first.code, first.json()]).toEqual([0, { links: 12, out, qr }]);
  const links = linksOf(out);
  expect(statSync(out).mode & 0o777).toBe(0o600);
  expect(readdirSync(qr).sort()).toEqual(
    Array.from({ length: 12 }, (_, i) => `${String(i + 1).padStart(2, "0")}.svg`),
  );
  expect(readFileSync(join(qr, "12.svg"), "utf8")).toMatch(/^<svg [\s\S]*<\/svg>\s*$/);
  expect((await run(...all)).code).toBe(0);
  expect(linksOf(out)).toEqual(links);
  const { data } = await world.engine.claims.list(world.applicationId);
  expect(data.map(({ mint, status }) => [mint.tokenId, status])).toEqual(
    links.map((_, i) => [String(100 + i), "open"]),
  );
  const [, href = "", address = "0x"] = links[11] ?? [];
  const url = new URL(href);
  expect([url.origin, url.pathname]).toEqual(["https://event.example", "/claim"]);
  const key = privateKeyToAccount(
    `0x${Buffer.from(url.hash.slice(1), "base64url").toString("hex")}`,
  );
  expect(key.address).toBe(address);
  const signature = await key.signTypedData(
    claimTypedData(SETTLEMENT, { link: address, owner: OWNER }),
  );
  const { vaults } = await world.engine.claims.take(address, { ownerAddress: OWNER, signature });
  expect(vaults).toMatchObject([{ tokenId: 111n, ownerAddress: OWNER }]);
});

test("goes on where it was stopped: with the links that are on disk", async () => {
  const out = join(folder, "points.csv");
  const args = ["--asset", world.erc20.assetId, "--count", "3", "--amount", "2", "--out", out];
  // The server is away after the links are written.
  const away = await mintmark(["claim-links", ...args, "--url", "http://127.0.0.1:1"], settings);
  expect(away.code).not.toBe(0);
  const links = linksOf(out);
  expect((await run(...args)).code).toBe(0);
  expect(linksOf(out)).toEqual(links);
  for (const [, , address] of links)
    expect(await world.engine.claims.find(address)).toMatchObject({ status: "open", amount: "2" });
  const other = await run(...args.slice(0, 4), "--amount", "3", "--out", out);
  expect(other.stderr).toContain("claim_exists");
});

test("links that the server refuses leave no file, and one line says what is missing", async () => {
  const out = join(folder, "dead.csv");
  const args = [
    "claim-links",
    "--asset",
    world.erc721.assetId,
    "--count",
    "200",
    "--first-token",
    "9000",
    "--out",
    out,
  ];
  const { code, stderr } = await mintmark(args, settings);
  expect(code).not.toBe(0);
  expect(stderr.trim().split("\n")).toHaveLength(2);
  expect(stderr).toMatch(/ {2}--mode: .+ \(and 99 more like it\)$/m);
  expect(readdirSync(folder)).not.toContain("dead.csv");
});
