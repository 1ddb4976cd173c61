import { mkdtempSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, expect, test } from "vitest";
import { SurveyThread } from "../../core/drops/survey-thread.ts";

const folder = mkdtempSync(join(tmpdir(), "mintmark-survey-"));
afterAll(() => rm(folder, { recursive: true, force: true }));

const ASSET = "00000000-0000-4000-8000-000000000001";
const LIMITS = { mintsPerRequest: 1_000, usersPerRequest: 100 };
const ROWS = `ownerAddress,tokenId\n0x${"70".repeat(20)},1\n`;

function task(name: string, text: string) {
  const path = join(folder, name);
  writeFileSync(path, text);
  const defaults = { assetId: ASSET, dataAvailabilityMode: "validium" };
  return { path, format: "csv", defaults, limits: LIMITS } as const;
}

test("a survey waits for bytes, and others go on meanwhile", async () => {
  await using thread = new SurveyThread();
  const waiting = thread.begin(task("waiting.csv", ROWS), () => {});
  waiting.grow(10);
  const other = thread.begin(task("other.csv", ROWS), () => {});
  other.grow(ROWS.length);
  other.complete();
  expect(await other.survey).toMatchObject({ rows: 1, errors: [] });
  waiting.grow(ROWS.length);
  waiting.complete();
  expect((await waiting.survey).digest).toBe((await other.survey).digest);
});

test("a file that cannot be read ends its own survey", async () => {
  await using thread = new SurveyThread();
  const lost = thread.begin({ ...task("x.csv", ROWS), path: join(folder, "none") }, () => {});
  await expect(lost.survey).rejects.toThrow("ENOENT");
  const next = thread.begin(task("next.csv", ROWS), () => {});
  next.grow(ROWS.length);
  next.complete();
  expect((await next.survey).rows).toBe(1);
});

test("a survey that is stopped rejects with its reason, and so do all at the end", async () => {
  const thread = new SurveyThread();
  const stopped = thread.begin(task("stopped.csv", ROWS), () => {});
  const reason = new Error("enough");
  stopped.stop(reason);
  await expect(stopped.survey).rejects.toBe(reason);
  const open = thread.begin(task("open.csv", ROWS), () => {});
  await thread[Symbol.asyncDispose]();
  await expect(open.survey).rejects.toThrow("closed");
});

test("a thread that dies takes its surveys along, and the next one starts another", async () => {
  const script = join(folder, "dying.mjs");
  const worker = new URL("../../core/drops/survey-worker.ts", import.meta.url);
  writeFileSync(
    script,
    `import { existsSync, writeFileSync } from "node:fs";
    const died = ${JSON.stringify(join(folder, "died"))};
    if (!existsSync(died)) { writeFileSync(died, ""); throw new Error("out of luck"); }
    await import(${JSON.stringify(worker)});`,
  );
  await using thread = new SurveyThread(pathToFileURL(script));
  const first = thread.begin(task("first.csv", ROWS), () => {});
  await expect(first.survey).rejects.toThrow("out of luck");
  const second = thread.begin(task("second.csv", ROWS), () => {});
  second.grow(ROWS.length);
  second.complete();
  expect((await second.survey).rows).toBe(1);
});
