import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { freePort } from "../../scripts/sandbox/process.ts";
import { listen } from "../server/connection.ts";
import { createWorld, entries, type World } from "../server/fixture.ts";

const EXAMPLE = new URL("../../examples/proxy/engines.cfg", import.meta.url);
const HAPROXY = "/usr/sbin/haproxy";
const CONTRACTS = [`0x${"5e".repeat(20)}`, `0x${"c0".repeat(20)}`] as const;
const isHere = existsSync(HAPROXY);
if (!isHere) console.log("Not run: HAProxy is not here (Debian: haproxy).");

describe.skipIf(!isHere)("two engines behind HAProxy, as the example configures it", () => {
  let folder: string;
  let worlds: World[];
  let proxy: ChildProcess;
  let port: number;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "mintmark-proxy-"));
    const hosts = ["a.mint.example", "b.mint.example", "mint.example"];
    const options = { hosts, trustedProxies: ["127.0.0.1"] };
    worlds = await Promise.all(CONTRACTS.map((contract) => createWorld({ ...options, contract })));
    port = await freePort(0);
    let text = readFileSync(EXAMPLE, "utf8").replace("127.0.0.1:8080", `127.0.0.1:${port}`);
    for (const [i, { app }] of worlds.entries())
      text = text.replaceAll(`10.0.0.${7 + i}:3000`, `127.0.0.1:${await listen(app)}`);
    expect(text).not.toContain("10.0.0.");
    await writeFile(join(folder, "engines.cfg"), text);
    proxy = spawn(HAPROXY, ["-f", join(folder, "engines.cfg")], {
      stdio: ["ignore", "inherit", "inherit"],
    });
    const isUp = async () => expect((await ask("mint.example", "/healthz")).status).toBe(200);
    await vi.waitFor(isUp, { timeout: 200_000 });
  });
  afterAll(async () => {
    const ended = once(proxy, "exit");
    proxy.kill("SIGTERM");
    await ended;
    for (const world of worlds) await world[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  });

  const ask = async (
    host: string,
    path: string,
    headers: Record<string, string> = {},
    body?: unknown,
  ) => {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const asked = request({
      port,
      path,
      method: text === undefined ? "GET" : "POST",
      headers: {
        host,
        ...headers,
        ...(text !== undefined && { "content-type": "application/json" }),
      },
    });
    asked.end(text);
    const [reply] = await once(asked, "response");
    // biome-ignore lint/suspicious/noExplicitAny: whatever the server answered.
    return { status: reply.statusCode as number, body: (await json(reply)) as any };
  };

  test("a key mints at its own engine, and so does a token of it", async () => {
    for (const [i, world] of worlds.entries()) {
      const body = {
        users: [{ userId: world.users[0], mints: entries(world, i + 1).slice(0, 1) }],
      };
      expect(
        (await ask("mint.example", "/api/v1/mint", { "x-api-key": world.key }, body)).status,
      ).toBe(200);
      const credentials = {
        grant_type: "client_credentials",
        client_id: world.keyId,
        client_secret: world.key,
      };
      const token = await ask(`${"ab"[i]}.mint.example`, "/oauth/token", {}, credentials);
      const authorization = `Bearer ${token.body.access_token}`;
      expect((await ask("mint.example", "/api/v1/state", { authorization })).body.contract).toBe(
        CONTRACTS[i],
      );
    }
  });

  test("a host name leads to its engine, without credentials too", async () => {
    for (const [i, contract] of CONTRACTS.entries())
      expect((await ask(`${"ab"[i]}.mint.example`, "/public/v1/state")).body.contract).toBe(
        contract,
      );
  });

  test("credentials that lead nowhere, or to two engines, are refused", async () => {
    const [one, other] = worlds as [World, World];
    const credentials = {
      grant_type: "client_credentials",
      client_id: other.keyId,
      client_secret: other.key,
    };
    const { body } = await ask("b.mint.example", "/oauth/token", {}, credentials);
    const cases: Record<string, string>[] = [
      {},
      { "x-api-key": "nonsense" },
      { "x-api-key": one.key.replace(one.keyId, other.keyId) },
      { authorization: "Bearer a.b.c" },
      { "x-api-key": one.key, authorization: `Bearer ${body.access_token}` },
    ];
    for (const headers of cases)
      expect((await ask("mint.example", "/api/v1/vaults", headers)).status).toBe(401);
  });

  test("an engine that is down takes no other along", async () => {
    const [one, other] = worlds as [World, World];
    await other.app.close();
    const down = () =>
      ask("mint.example", "/api/v1/limits", { "x-api-key": other.key }).catch(() => ({
        status: 503,
      }));
    await expect.poll(async () => (await down()).status).toBe(503);
    expect((await ask("mint.example", "/api/v1/limits", { "x-api-key": one.key })).status).toBe(
      200,
    );
  });
});
