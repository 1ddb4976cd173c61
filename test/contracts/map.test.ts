import { readdirSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { expect, it } from "vitest";
import { stateCommitmentAbi, stateMirrorAbi } from "../../core/l1/abi.ts";

const ROOT = new URL("../../", import.meta.url);
const PAGE = readFileSync(new URL("docs/contracts.md", ROOT), "utf8");
const NAMED = new Set([...PAGE.matchAll(/`([^`\n]+)`/g)].map(([, name = ""]) => basename(name)));

it.each([
  ["StateCommitment", stateCommitmentAbi],
  ["StateMirror", stateMirrorAbi],
])("docs/contracts.md names every function of %s that changes something", (_, abi) => {
  const names = abi.flatMap((entry) =>
    entry.type === "function" && entry.stateMutability === "nonpayable" ? [entry.name] : [],
  );
  expect(names.length).toBeGreaterThan(10);
  expect(names.filter((name) => !NAMED.has(name))).toEqual([]);
});

it("docs/contracts.md names every file of the contracts, and no other", () => {
  const files = readdirSync(new URL("contracts", ROOT), {
    recursive: true,
    encoding: "utf8",
  }).filter((file) => file.endsWith(".sol") && !/^(?:test|compiled)\//.test(file));
  expect(files.length).toBeGreaterThan(40);
  expect([...NAMED].filter((name) => name.endsWith(".sol")).sort()).toEqual(
    files.map((file) => basename(file)).sort(),
  );
});
