/** Holds the OpenAPI document against two independent linters, Redocly's and Spectral: `npm run lint:openapi`. Warnings fail too. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import packageJson from "../package.json" with { type: "json" };
import { openApiDocument } from "../server/openapi.ts";
import { ENDPOINTS } from "../server/routes/index.ts";
import { answerHelp } from "./command.ts";

const ROOT = fileURLToPath(new URL("../", import.meta.url));

/** Runs one linter of node_modules; whether it found nothing. */
function passes(name: string, args: readonly string[]): boolean {
  const { status, stdout, stderr } = spawnSync(join(ROOT, "node_modules/.bin", name), args, {
    cwd: ROOT,
    encoding: "utf8",
    env: { ...process.env, REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" },
  });
  process.stdout.write(status === 0 ? `${name}: valid\n` : `${name}:\n${stdout}${stderr}`);
  return status === 0;
}

answerHelp("Usage: npm run lint:openapi\n\nHolds the OpenAPI document against two linters. Warnings fail too.\n");
const folder = mkdtempSync(join(tmpdir(), "mintmark-openapi-"));
try {
  const file = join(folder, "openapi.json");
  writeFileSync(file, JSON.stringify(openApiDocument(ENDPOINTS, packageJson.version, {}), null, 2));
  const results = [
    passes("redocly", ["lint", file, "--config", "redocly.yaml", "--max-problems", "50"]),
    passes("spectral", ["lint", file, "--ruleset", ".spectral.yaml", "--fail-severity", "warn"]),
  ];
  if (results.includes(false)) process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
