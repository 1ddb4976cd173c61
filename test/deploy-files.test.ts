import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { issuerSettings, memberSettings } from "../server/process/settings/process-settings.ts";
import { SETTINGS } from "../server/process/settings/settings.ts";

const ROOT = new URL("../", import.meta.url);
/** Read by the member's command, which has it from the environment or from standard input. */
const SECRETS = ["MINTMARK_MEMBER_KEY"];

test("each setting that the examples of deployment and proxies name exists", () => {
  const known = [SETTINGS, memberSettings.shape, issuerSettings.shape].flatMap(Object.keys);
  const files = globSync("examples/{deploy,proxy}/**/*", {
    cwd: ROOT.pathname,
    withFileTypes: true,
  });
  const texts = files
    .filter((file) => file.isFile())
    .map(({ parentPath, name }) => readFileSync(`${parentPath}/${name}`, "utf8"));
  const named = new Set(texts.flatMap((text) => text.match(/MINTMARK_[A-Z_]*[A-Z]/g) ?? []));
  expect(named.size).toBeGreaterThan(15);
  expect([...named].filter((name) => !known.includes(name) && !SECRETS.includes(name))).toEqual([]);
});
