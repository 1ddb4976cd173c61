import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { MAIN } from "../../scripts/sandbox/process.ts";
import { cleanEnvironment } from "./cli.ts";

test.each([
  [[], "error: interrupted\n"],
  [["--json"], { error: { code: "interrupted", detail: "interrupted", errors: [] } }],
])(
  "an interrupted command says one word and exits with 130 %j",
  async (options, told) => {
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
  },
  60_000,
);
