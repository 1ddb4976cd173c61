/**
 * `npm run lint:contracts` and `npm run lint:openapi`: linters with a separate install. Warnings
 * fail too.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { openApiDocument } from "../../../server/routes/api/openapi.ts";
import { ENDPOINTS } from "../../../server/routes/index.ts";
import { installTools } from "../tools.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const HERE = join(ROOT, "scripts/build/lint");
const USAGE = `Usage: npm run lint:contracts
       npm run lint:openapi

Holds the contracts against solhint and their formatter, the OpenAPI document against
Redocly's linter and Spectral.
`;

function passes(name: string, args: readonly string[]): boolean {
  const { status, stdout, stderr } = spawnSync(join(HERE, "node_modules/.bin", name), args, {
    cwd: ROOT,
    encoding: "utf8",
    env: { ...process.env, REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" },
  });
  process.stdout.write(status === 0 ? `${name}: valid\n` : `${name}:\n${stdout}${stderr}`);
  return status === 0;
}

function lintContracts(): boolean {
  const sources = "contracts/**/*.sol";
  const solhint = ["--config", join(HERE, "solhint.json")];
  const plugin = join(HERE, "node_modules/prettier-plugin-solidity/dist/index.js");
  const style = ["--config", join(HERE, "prettier.solidity.json"), "--plugin", plugin];
  return [
    passes("solhint", ["--disc", "--noPoster", "--max-warnings", "0", ...solhint, sources]),
    passes("prettier", ["--check", ...style, sources]),
  ].every(Boolean);
}

function lintOpenApi(): boolean {
  const file = join(ROOT, "cache/openapi.json");
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, JSON.stringify(openApiDocument(ENDPOINTS, {}), null, 2));
  return [
    passes("redocly", [
      "lint",
      file,
      "--config",
      join(HERE, "redocly.yaml"),
      "--max-problems",
      "50",
    ]),
    passes("spectral", [
      "lint",
      file,
      "--ruleset",
      join(HERE, "spectral.yaml"),
      "--fail-severity",
      "warn",
    ]),
  ].every(Boolean);
}

const [what, ...others] = process.argv.slice(2);
if (others.length > 0 || (what !== "contracts" && what !== "openapi")) {
  process.stdout.write(USAGE);
  process.exit(others.includes("--help") ? 0 : 2);
}
installTools("lint");
if (!(what === "contracts" ? lintContracts() : lintOpenApi())) process.exitCode = 1;
