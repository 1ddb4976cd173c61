import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/**
 * Upper bounds, which only go down. Whoever raises one says why beside it, and lowers another. Bounds of lines are
 * rounded up to fifty, so that not every change meets them. The functions and files of a mint have their own test.
 */
const LINES: Readonly<Record<string, number>> = {
  // Raised for attacks in tiny pieces.
  bench: 3_550,
  contracts: 5_200,
  // Raised: the harness derives asset ids, which no contract needs.
  "contracts/test": 880,
  // Raised for the thread that two rooms have in common; `core/protocol` was lowered.
  core: 1_950,
  "core/batches": 1_000,
  "core/guards": 4_900,
  // Raised: tokens that the console creates, whose constructors moved here from scripts/deploy.
  "core/l1": 6_850,
  "core/ledger": 1_750,
  // Raised: a cluster goes to the next format, and refuses a newer one before it writes.
  "core/lifecycle": 4_400,
  // Raised: drops came from server/jobs, and strict JSON from server/http.
  "core/mint": 3_700,
  // Raised for the check of contracts by verifiers; contracts were lowered.
  "core/protocol": 6_950,
  "core/sealing": 650,
  // Raised for the steps from one format to the next.
  "core/store": 4_050,
  // Raised: the delivery of webhooks came from server/jobs, where embedders could not use it.
  "core/tenants": 3_050,
  "core/transfers": 1_250,
  "core/vaults": 1_750,
  // Raised for drops and webhooks without the server.
  examples: 400,
  // Raised for files that several rooms write; `scripts/up` was lowered.
  scripts: 50,
  // Raised: each release keeps the code of its contracts, and the package names its repository.
  "scripts/build": 700,
  "scripts/cli": 850,
  "scripts/cluster": 450,
  // Raised for what only the commands of members need, in place of a part of `scripts/cli`.
  "scripts/commands": 1_600,
  "scripts/demo": 300,
  // Raised for plans, signers and creations that are sent again.
  "scripts/deploy": 800,
  // Raised for the keys, accounts and versions of all processes.
  "scripts/doctor": 400,
  // Raised to say at once that Hardhat is missing.
  "scripts/sandbox": 450,
  "scripts/tokens": 350,
  // Raised to keep an operator's own settings, and for tokens that come later.
  "scripts/up": 1_050,
  server: 850,
  "server/client": 500,
  // Raised for the spellings of StarkExpress, and for connections that take turns.
  "server/http": 2_100,
  "server/jobs": 300,
  // Raised for examples in refusals, and for a history of all pages.
  "server/pages": 6_350,
  // Raised for the checks of a server that settles, which came from `jobs`.
  "server/process": 3_100,
  // Raised: the form of what endpoints take and answer lies beside them, in place of a room of its own.
  "server/routes": 4_700,
  // Raised: a mirror takes no older state, nobody opens a burned vault, no cursor is forged, and a contract's
  // input is printed whole.
  test: 51_993,
};
/** Of the core, the server, the scripts, the benches and the contracts together: the next feature takes as much away. */
const WHOLE = 75_000;
// Raised for Node 24 on three more platforms, of which a machine installs at most one.
const PACKAGES = 500;

/** Lines of the code in each room, generated code apart. */
function linesOfRooms(): Record<string, number> {
  const lines: Record<string, number> = {};
  for (const file of execFileSync("git", ["ls-files"], { cwd: ROOT, encoding: "utf8" }).split("\n")) {
    const room = roomOf(file);
    if (room === null) continue;
    lines[room] = (lines[room] ?? 0) + readFileSync(`${ROOT}${file}`, "utf8").split("\n").length - 1;
  }
  return lines;
}

/** `core/mint` and its like; `core` for the files beside the rooms; null for what is no code of ours. */
function roomOf(file: string): string | null {
  if (!/\.(ts|tsx|sol|mjs|js|html|css)$/.test(file) || /client\/api\.ts$|golden|^contracts\/compiled\//.test(file))
    return null;
  const [top = "", room = "", inside] = file.split("/");
  if (file.startsWith("contracts/test/")) return "contracts/test";
  if (["bench", "contracts", "examples", "test"].includes(top)) return top;
  if (top !== "core" && top !== "server" && top !== "scripts") return null;
  return inside === undefined ? top : `${top}/${room}`;
}

test("no room has more lines than its bound, and every room has one", () => {
  const lines = linesOfRooms();
  expect(Object.keys(lines).sort()).toEqual(Object.keys(LINES).sort());
  expect(Object.entries(lines).filter(([room, count]) => count > (LINES[room] ?? 0))).toEqual([]);
  const { test, examples, "contracts/test": harnesses, ...rooms } = lines;
  expect(Object.values(rooms).reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(WHOLE);
});

test("the lock file has no more packages than its bound", () => {
  const { packages } = JSON.parse(readFileSync(`${ROOT}package-lock.json`, "utf8")) as { packages: object };
  expect(Object.keys(packages).length - 1).toBeLessThanOrEqual(PACKAGES);
});
