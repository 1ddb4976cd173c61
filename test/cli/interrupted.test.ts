import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { MAIN } from "../../scripts/sandbox/process.ts";
import { cleanEnvironment, settingsOf } from "./cli.ts";

test.each([
  [[], "error: interrupted\n"],
  [["--json"], { error: { code: "interrupted", detail: "interrupted", errors: [] } }],
])("an interrupted command says one word and exits with 130 %j", async (options, told) => {
  const silent = createServer().listen(0, "127.0.0.1");
  await once(silent, "listening");
  const { port } = silent.address() as AddressInfo;
  const command = [MAIN, "drop", import.meta.filename, "--format", "csv", ...options];
  const env = cleanEnvironment({
    MINTMARK_URL: `http://127.0.0.1:${port}`,
    MINTMARK_API_KEY: "mm_test_x",
  });
  const child = spawn(process.execPath, command, { env, stdio: ["ignore", "pipe", "pipe"] });
  const [said] = await Promise.all([
    text(child.stderr),
    once(silent, "request").then(() => child.kill("SIGINT")),
  ]);
  if (child.exitCode === null) await once(child, "exit");
  expect(child.exitCode).toBe(130);
  expect(typeof told === "string" ? said : JSON.parse(said)).toEqual(told);
  silent.closeAllConnections();
  silent.close();
});

const CONTRACT = `0x${"5e".repeat(20)}` as const;
const KEY = `0x${"11".repeat(32)}`;
const COMMITTEE = ["--committee", CONTRACT, "--threshold", "1"];

test.each([
  ["deploy", COMMITTEE],
  ["check-contract", ["--contract", CONTRACT, "--from-block", "0"]],
  ["assets inspect", [CONTRACT, "--contract", CONTRACT]],
  ["exit-kit", ["7", "--contract", CONTRACT, "--from-block", "0"]],
  ["doctor", []],
  ["rebuild", [join(tmpdir(), "never-rebuilt"), "--contract", CONTRACT, "--from-block", "0"]],
])("`mintmark %s` ends at Ctrl-C while its node is silent", async (name, options) => {
  const silent = createServer().listen(0, "127.0.0.1");
  await once(silent, "listening");
  const { port } = silent.address() as AddressInfo;
  const rpc = `http://127.0.0.1:${port}`;
  const server = settingsOf("missing", { chainId: 1n, contract: CONTRACT });
  const isOfServer = name === "doctor";
  const env = cleanEnvironment({
    ...(isOfServer ? server : { MINTMARK_DEPLOYER_KEY: KEY }),
    MINTMARK_RPC_URL: rpc,
  });
  const child = spawn(process.execPath, [MAIN, ...name.split(" "), ...options], {
    env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const said = text(child.stderr);
  await once(silent, "request");
  child.kill("SIGINT");
  // A command that gives a silent node up by itself takes two minutes.
  const [code] = await once(child, "exit", { signal: AbortSignal.timeout(60_000) });
  expect([code, await said]).toEqual([130, "error: interrupted\n"]);
  silent.closeAllConnections();
  silent.close();
});
