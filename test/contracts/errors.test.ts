import { readdirSync, readFileSync } from "node:fs";
import hre from "hardhat";
import { pad } from "viem";
import { expect, it } from "vitest";
import { CHANGE_DELAY, openChain, SCHEME, STANDARD } from "./fixture/deployment.ts";
import { ITEM_GAS } from "./fixture/withdrawals.ts";

const { fresh } = await openChain();
const SOURCES = readdirSync(new URL(".", import.meta.url))
  .filter((name) => name.endsWith(".test.ts"))
  .map((name) => readFileSync(new URL(name, import.meta.url), "utf8"))
  .join("\n");
const { abi } = await hre.artifacts.readArtifact("IStateCommitment");
const ERRORS = abi.flatMap((item) => (item.type === "error" ? [item.name] : []));

it("the interface declares the contract's errors", () => {
  expect(ERRORS.length).toBeGreaterThan(50);
});

it.each(ERRORS)("a test of this folder meets %s", (name) => {
  expect(SOURCES).toMatch(new RegExp(`["\`]${name}\\b`));
});

it("a change that is due expires after 30 days", async () => {
  const d = await fresh();
  const admin = d.by("admin");
  const [first, second] = [`0x${"0f".repeat(20)}`, `0x${"05".repeat(20)}`] as const;
  const { address } = await d.viem.deployContract("IssuedToken", [pad(first), d.config.admin]);
  await d.state.write.registerAsset([STANDARD.erc721, 31_337n, address, 1n, SCHEME.imx], admin);
  await d.state.write.scheduleIssuer([address, second], admin);
  await d.time.increase(CHANGE_DELAY + 30n * 86_400n + 10n);
  await d.refuses(d.state.write.activateIssuer([address], admin), "ChangeExpired");
});

it("no batch gives its items less gas than the least", async () => {
  const d = await fresh();
  const relayer = d.by("relayer");
  await d.refuses(d.state.write.withdrawBatch([[], [], ITEM_GAS - 1n], relayer), "ItemGasTooLow");
});
