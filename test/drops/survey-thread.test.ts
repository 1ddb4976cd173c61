import { appendFileSync, existsSync, mkdtempSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { afterAll, expect, test } from "vitest";
import { SurveyThread } from "../../core/drops/survey-thread.ts";

const folder = mkdtempSync(join(tmpdir(), "mintmark-survey-"));
afterAll(() => rm(folder, { recursive: true, force: true }));

const ASSET = "00000000-0000-4000-8000-000000000001";
const LIMITS = { mintsPerRequest: 1_000, usersPerRequest: 100 };
const ROWS = `ownerAddress,tokenId\n0x${"70".repeat(20)},1\n`;

function task(name: string, text: string, applicationId = "one") {
  const path = join(folder, name);
  writeFileSync(path, text);
  const defaults = { assetId: ASSET, dataAvailabilityMode: "validium" };
  return { path, applicationId, format: "csv", defaults, limits: LIMITS } as const;
}

/** A survey of a file that is whole. */
function whole(thread: SurveyThread, name: string, text: string, applicationId?: string) {
  const surveying = thread.begin(task(name, text, applicationId), () => {});
  surveying.grow(Buffer.byteLength(text));
  surveying.complete();
  return surveying;
}

const many = (rows: number) =>
  `ownerAddress,tokenId\n${Array.from({ length: rows }, (_, i) => `0x${"70".repeat(20)},${i}\n`).join("")}`;

test("a survey waits for bytes, and others go on meanwhile", async () => {
  await using thread = new SurveyThread();
  const first = task("waiting.csv", ROWS.slice(0, 10));
  const waiting = thread.begin(first, () => {});
  waiting.grow(10);
  const other = whole(thread, "other.csv", ROWS);
  expect(await other.survey).toMatchObject({ rows: 1, errors: [] });
  appendFileSync(first.path, ROWS.slice(10));
  const early = Promise.race([waiting.survey, setTimeout(100, "it waits")]);
  expect(await early).toBe("it waits");
  waiting.grow(ROWS.length);
  waiting.complete();
  expect((await waiting.survey).digest).toBe((await other.survey).digest);
});

test("a header of more columns than a thousand is refused at its line", async () => {
  await using thread = new SurveyThread();
  const wide = (columns: number) =>
    `ownerAddress,tokenId${",".repeat(columns - 2)}\n0x${"70".repeat(20)},1${",".repeat(columns - 2)}\n`;
  expect((await whole(thread, "wide.csv", wide(1_000)).survey).errors).toEqual([]);
  const { errors } = await whole(thread, "wider.csv", wide(1_001)).survey;
  expect(errors).toMatchObject([{ row: 1, detail: expect.stringContaining("leave out") }]);
});

test("a file that cannot be read ends its own survey, with its code", async () => {
  await using thread = new SurveyThread();
  const lost = thread.begin({ ...task("x.csv", ROWS), path: join(folder, "none") }, () => {});
  await expect(lost.survey).rejects.toMatchObject({ code: "ENOENT" });
  expect((await whole(thread, "next.csv", ROWS).survey).rows).toBe(1);
});

test("a survey that is stopped, or refused by its caller, reads no further", async () => {
  await using thread = new SurveyThread();
  const reason = new Error("enough");
  const stopped = whole(thread, "stopped.csv", many(50_000));
  stopped.stop(reason);
  stopped.complete();
  await expect(stopped.survey).rejects.toBe(reason);
  let told = 0;
  const text = many(100_000);
  const refused = thread.begin(task("refused.csv", text), () => {
    told += 1;
    throw reason;
  });
  refused.grow(text.length);
  refused.complete();
  await expect(refused.survey).rejects.toBe(reason);
  expect(told).toBe(1);
});

test("surveys in progress end with the thread, and no other begins", async () => {
  const thread = new SurveyThread();
  const open = thread.begin(task("open.csv", ROWS), () => {});
  await thread[Symbol.asyncDispose]();
  await expect(open.survey).rejects.toMatchObject({ code: "engine_closed" });
  expect(() => whole(thread, "late.csv", ROWS)).toThrow(
    expect.objectContaining({ code: "engine_closed" }),
  );
});

test("many surveys of one application hold up those of no other", async () => {
  await using thread = new SurveyThread();
  const ends: string[] = [];
  const ending = (name: string, { survey }: { readonly survey: Promise<unknown> }) =>
    survey.then(() => ends.push(name));
  const text = many(20_000);
  const large = Array.from({ length: 8 }, (_, i) =>
    ending("large", whole(thread, `large${i}.csv`, text, "large")),
  );
  const small = ending("small", whole(thread, "small.csv", many(10_000), "small"));
  await Promise.all([...large, small]);
  expect(ends[0]).toBe("small");
});

test("a survey whose thread dies begins again on another", async () => {
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
  const waiting = thread.begin(task("first.csv", ROWS), () => {});
  waiting.grow(ROWS.length);
  while (!existsSync(join(folder, "died"))) await setTimeout(10);
  waiting.complete();
  expect((await waiting.survey).rows).toBe(1);
  expect((await whole(thread, "second.csv", ROWS).survey).rows).toBe(1);
});

test("a thread that dies again and again fails its surveys", async () => {
  const script = join(folder, "dead.mjs");
  writeFileSync(script, 'throw new Error("out of luck");');
  await using thread = new SurveyThread(pathToFileURL(script));
  const survey = whole(thread, "dead.csv", ROWS);
  await expect(survey.survey).rejects.toThrow("out of luck");
});
