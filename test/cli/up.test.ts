import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { GivenAnswers } from "../../scripts/up/terms.ts";
import { up } from "../../scripts/up/up.ts";
import { mintmark } from "./cli.ts";

const CHAIN_ID = 31_337;

/** A node that knows its chain and nothing else. */
const node = createServer(async (request, response) => {
  const { id } = (await json(request)) as { id: number };
  response
    .writeHead(200, { "content-type": "application/json" })
    .end(JSON.stringify({ jsonrpc: "2.0", id, result: `0x${CHAIN_ID.toString(16)}` }));
});
let url: string;
let base: string;
beforeAll(async () => {
  base = await mkdtemp(join(tmpdir(), "mintmark-unattended-"));
  await new Promise<void>((done) => node.listen(0, "127.0.0.1", done));
  url = `http://127.0.0.1:${(node.address() as AddressInfo).port}`;
});
afterAll(async () => {
  node.close();
  await rm(base, { recursive: true, force: true });
});

async function answersIn(answers: GivenAnswers): Promise<string> {
  const file = join(base, "answers.json");
  await writeFile(file, JSON.stringify(answers));
  return file;
}

test("without a terminal and --yes it refuses before it writes or spends", async () => {
  const folder = join(base, "unattended");
  const given = ["--answers", await answersIn({ members: 1 })];
  for (const more of [[], ["--profile", "solo"], given]) {
    const args = ["up", "--network", url, "--folder", folder, ...more];
    const { code, stderr } = await mintmark(args, {}, "");
    expect(code).toBe(2);
    expect(stderr).toMatch(/nobody can answer here: give --yes .+ --answers/);
    expect(existsSync(folder)).toBe(false);
  }
});

test.each([
  [{}, undefined, false],
  [{ profile: "solo" }, undefined, true],
  [{ profile: "solo" }, "committee", false],
  [{}, "solo", true],
] as const)(
  "a record with the terms %j and --profile %s is asked for terms",
  async (answers, profile, isSolo) => {
    const folder = await mkdtemp(join(base, "record-"));
    const record = { version: 1, chainId: CHAIN_ID, answers, done: {}, begun: null };
    await writeFile(join(folder, "up.json"), JSON.stringify(record));
    const asked: boolean[] = [];
    const run = up({
      folder,
      rpc: url,
      expected: undefined,
      known: [],
      sourcify: url,
      given: undefined,
      ...(profile && { profile }),
      isAttended: true,
      ask: async (isAlone) => {
        asked.push(isAlone);
        throw new Error("asked");
      },
      allow: async () => false,
      say: () => {},
      progress: () => {},
      signal: new AbortController().signal,
      pollMs: 1,
    });
    await expect(run).rejects.toThrow("asked");
    expect(asked).toEqual([isSolo]);
  },
);
