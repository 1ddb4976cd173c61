import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { BASE_FLOOR, priceTable, yearOfMinutes } from "../../bench/gas/prices.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const README = readFileSync(`${ROOT}README.md`, "utf8");
const GAS_PAGE = readFileSync(`${ROOT}docs/gas.md`, "utf8");
const PRICES = { l1: 0.2, blob: 0.2 / 16, ether: 2_000, base: BASE_FLOOR };

const run = (...args: string[]) =>
  spawnSync(process.execPath, [`${ROOT}bench/gas.ts`, ...args], { encoding: "utf8" });
const costOf = (table: string, choice: string) =>
  table
    .split("\n")
    .find((line) => line.includes(choice))
    ?.split("|")[2]
    ?.trim();

test("README's table of costs has the figures of docs/gas.md at the prices that it names", () => {
  expect(README).toContain(`\n${priceTable(GAS_PAGE, PRICES)}\n`);
  for (const said of ["$2,000 an ether", "0.2 gwei on L1", "floor of 0.005 gwei", "sixteenth"])
    expect(README.replaceAll("\n", " ")).toContain(said);
});

test("README's sentences have the table's figures", () => {
  const { blobs, validium, calldata } = yearOfMinutes(GAS_PAGE, PRICES);
  const text = README.replaceAll("\n", " ");
  expect(text).toContain(
    `costs ${blobs} a year in blobs, ${validium} as validium on Base, and ${calldata} in calldata on Base (batches of 64 mints)`,
  );
  const direct = costOf(README, "ERC-721 minted on Base, 100 a transaction") ?? "";
  expect(direct).toMatch(/^\$47\d$/);
  expect(text).toContain("a million direct mints to new owners cost some $470 (");
  const many = ["ERC-1155 minted on Base, 100 ids at once", "ERC721A on Base"].map((choice) =>
    costOf(README, choice),
  );
  expect(text).toContain(`${many[1]} to ${many[0]} when one owner gets many at once`);
  const spike = priceTable(GAS_PAGE, { ...PRICES, l1: 27, blob: 27 / 16 });
  const inBlobs = costOf(spike, "Mintmark on L1, in blobs");
  expect(README).toContain(`costs ${inBlobs} a million`);
});

test("`npm run gas -- --prices` prints the table at the reader's prices, and refuses others", () => {
  const { stdout, status } = run("--prices", "1", "0.5", "4000", "0.01");
  expect(status).toBe(0);
  const theirs = { l1: 1, blob: 0.5, ether: 4_000, base: 0.01 };
  expect(stdout).toContain(`${priceTable(GAS_PAGE, theirs)}\n`);
  expect(stdout).toContain(`costs ${yearOfMinutes(GAS_PAGE, theirs).blobs} a year in blobs`);
  expect(costOf(stdout, "ERC-721 minted on Base")).toBe("$1,892");
  const refused = run("--prices", "1", "cheap", "2000");
  expect(refused.status).toBe(2);
  expect(refused.stderr).toContain("--prices <gwei> <blob gwei> <dollars an ether>");
});
