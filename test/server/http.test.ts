import { afterAll, describe, expect, test } from "vitest";
import { MintmarkError } from "../../core/index.ts";
import { NotReady, recentFindings } from "../../server/jobs/readiness.ts";
import { createWorld, entries, refusal } from "./fixture.ts";

const UUIDV7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

const world = await createWorld({ limits: { mintsPerRequest: 100, usersPerRequest: 10 } });
afterAll(() => world[Symbol.asyncDispose]());

test("/healthz needs no key and says a default message", async () => {
  const { status, body } = await world.send("GET", "/healthz", { key: null });
  expect(status).toBe(200);
  expect(body).toEqual({ status: "Healthy", version: expect.stringMatching(/^\d+\.\d+\.\d+/) });
});

describe("readiness", () => {
  test("reports its findings", async () => {
    const { body } = await world.send("GET", "/readyz", { key: null });
    expect(body).toEqual({
      status: "Ready",
      checks: {
        store: expect.any(String),
        clock: "fits the journal",
        kzg: "no batch waits for it",
        threads: "run when needed",
        memory: "requests and responses hold 0 of 512 MiB",
        openBatches: "validium: empty, zk-rollup: empty",
      },
    });
  });

  test("is 503 while the clock is behind the journal", async () => {
    let now = Date.now();
    await using own = await createWorld({ clock: () => now });
    now -= 3_600_000;
    const { status, body } = await own.send("GET", "/readyz", { key: null });
    const detail = "the clock is 60 minutes behind the journal's newest entry: set it right";
    expect([status, body.errors]).toEqual([
      503,
      [{ pointer: "/checks/clock", code: "not_ready", detail }],
    ]);
  });

  test("is 503 while a check fails, while draining, and without a store", async () => {
    let failure: Error | null = null;
    let [asked, clock] = [0, 0];
    const l1 = async () => {
      asked += 1;
      if (failure) throw failure;
      return "in step";
    };
    await using own = await createWorld({ checks: () => ({ l1 }), now: () => clock });
    const ready = () => own.send("GET", "/readyz", { key: null });
    const fails = (error: Error) => {
      failure = error;
      clock += 1000;
      return ready();
    };
    expect((await ready()).body.checks.l1).toBe("in step");
    const late = await fails(new NotReady("40 blocks behind"));
    expect(late.body.errors).toEqual([
      { pointer: "/checks/l1", code: "not_ready", detail: "40 blocks behind" },
    ]);
    const secret = await fails(new Error("fetch https://rpc.example/v2/secret failed"));
    expect(secret.body.errors[0].detail).toBe("failed; the log has the reason");
    const member = await fails(
      new MintmarkError("l1_failed", "member at https://member.example did not answer"),
    );
    expect(member.body.errors[0].detail).toBe("L1 refused or did not answer.");
    const told =
      "the committee does not sign; 0x12: cannot be reached at https://member.example (refused)";
    const committee = await fails(new MintmarkError("l1_failed", told));
    expect(committee.body.errors[0].detail).toBe("the committee does not sign; the log has more");
    await Promise.all([ready(), ready(), ready()]);
    expect(asked).toBe(5);
    own.app.drain();
    expect(refusal(await ready())).toMatchObject({ status: 503, code: "shutting_down" });
    expect(refusal(await own.send("GET", "/api/v1/state"))).toMatchObject({
      status: 503,
      code: "shutting_down",
    });
    expect((await own.send("GET", "/healthz")).status).toBe(200);
  });

  test("does not wait for a check that hangs", async () => {
    const findings = recentFindings(
      () => ({ l1: () => new Promise(() => {}), store: async () => "fine" }),
      () => 0,
      20,
    );
    expect(await findings()).toMatchObject([
      { name: "l1", detail: "no answer within 0.02 s", error: expect.any(NotReady) },
      { name: "store", detail: "fine" },
    ]);
  });

  test("a closed engine is 503 everywhere but /healthz", async () => {
    await using own = await createWorld();
    await own.engine.close();
    expect(refusal(await own.send("GET", "/readyz"))).toMatchObject({
      status: 503,
      code: "not_ready",
    });
    expect(refusal(await own.send("GET", "/api/v1/assets"))).toMatchObject({
      status: 503,
      code: "engine_closed",
    });
    expect((await own.send("GET", "/healthz")).status).toBe(200);
  });
});

describe("a request id", () => {
  test.each(["abc-123_X.y", "1"])("%j is taken over", async (id) => {
    expect(
      (await world.send("GET", "/healthz", { headers: { "x-request-id": id } })).headers[
        "x-request-id"
      ],
    ).toBe(id);
  });

  test.each(["", "a b", "-a", 'x"y', "a".repeat(65)])("%j is replaced", async (id) => {
    const { headers } = await world.send("GET", "/healthz", { headers: { "x-request-id": id } });
    expect(headers["x-request-id"]).toMatch(UUIDV7);
  });

  test("is also in the problem document", async () => {
    const { body } = await world.send("GET", "/nowhere", { headers: { "x-request-id": "mine" } });
    expect(body.requestId).toBe("mine");
  });
});

describe("credentials", () => {
  const path = "/api/v1/limits";
  const asked = async (headers: Record<string, string>) =>
    world.send("GET", path, { key: null, headers });

  test("work with a header name of any case", async () => {
    for (const name of ["x-api-key", "X-Api-Key", "X-API-KEY"]) {
      expect((await asked({ [name]: world.key })).status).toBe(200);
    }
  });

  test("missing", async () => {
    const answer = await asked({});
    expect(refusal(answer)).toMatchObject({ status: 401, code: "credentials_missing" });
    expect(answer.headers["www-authenticate"]).toContain("ApiKey");
  });

  test("of the other environment, unknown, cut, revoked, expired or of a suspended application", async () => {
    const own = await createWorld();
    await using _ = own;
    const last = own.key.at(-1) === "0" ? "1" : "0";
    const wrong = [
      own.key.replace("mm_test_", "mm_live_"),
      own.key.slice(0, -1) + last,
      own.key.slice(0, -8),
      `${own.key} `.repeat(2),
      "mm_test_",
      "",
      " ",
      "x".repeat(5000),
      world.key,
    ];
    for (const key of wrong) {
      expect(refusal(await own.send("GET", path, { key }))).toMatchObject({
        status: 401,
        code: "credentials_invalid",
      });
    }
    const expired = await own.newKey(["read"], { expiresAt: 1 });
    expect(refusal(await own.send("GET", path, { key: expired }))).toMatchObject({
      code: "credentials_expired",
    });
    await own.engine.keys.revoke(own.keyId);
    expect(refusal(await own.send("GET", path))).toMatchObject({
      status: 401,
      code: "credentials_invalid",
    });
    const fresh = await own.newKey();
    await own.engine.applications.suspend(own.applicationId);
    expect(refusal(await own.send("GET", path, { key: fresh }))).toMatchObject({
      status: 403,
      code: "application_suspended",
    });
  });

  test("are checked before the body", async () => {
    const answer = await world.send("POST", "/api/v1/mint", {
      key: "wrong",
      raw: "{".repeat(100_000),
    });
    expect(refusal(answer)).toMatchObject({ status: 401, code: "credentials_invalid" });
  });

  test("carry scopes", async () => {
    const key = await world.newKey(["read"]);
    const body = { users: [{ userId: world.users[0], mints: entries(world, 1) }] };
    const id = world.erc20.assetId;
    expect((await world.send("GET", "/api/v1/assets", { key })).status).toBe(200);
    expect((await world.send("GET", "/api/v1/limits", { key })).status).toBe(200);
    for (const answer of [
      await world.send("POST", "/api/v1/mint", { key, body }),
      await world.send("POST", "/api/v1/mint?dryRun=true", { key, body }),
      await world.send("POST", "/api/v1/users", { key, body: {} }),
      await world.send("PUT", `/api/v1/assets/${id}/enablement`, { key }),
      await world.send("DELETE", `/api/v1/assets/${id}/enablement`, { key }),
      await world.send("POST", "/api/v1/withdrawals", { key, body: {} }),
      await world.send("GET", "/api/v1/users", { key: await world.newKey(["mint"]) }),
    ]) {
      expect(refusal(answer)).toMatchObject({ status: 403, code: "scope_missing" });
    }
  });
});

describe("routes", () => {
  test("/ is a page with links for browsers, and their JSON for others", async () => {
    const asked = (accept: string) => world.app.inject({ url: "/", headers: { accept } });
    const page = await asked("text/html,application/xhtml+xml,*/*;q=0.8");
    expect([page.statusCode, page.headers["content-type"]]).toEqual([
      200,
      "text/html; charset=utf-8",
    ]);
    expect(page.headers["content-security-policy"]).toContain("default-src 'none'");
    const answer = await asked("*/*");
    const { links } = answer.json();
    expect(answer.json()).toMatchObject({ name: "Mintmark", environment: "sandbox" });
    for (const link of Object.values<string>(links)) {
      expect(page.body).toContain(`href="${link}"`);
      expect((await world.app.inject({ url: link })).statusCode, link).toBe(200);
    }
  });

  test.each(["/nothing", "/explorer/nothing"])(
    "%s is a page with links for browsers",
    async (url) => {
      const page = await world.app.inject({
        url,
        headers: { accept: "text/html,application/xhtml+xml,*/*;q=0.8" },
      });
      expect([page.statusCode, page.headers["content-type"]]).toEqual([
        404,
        "text/html; charset=utf-8",
      ]);
      expect([page.headers.vary, page.headers["content-security-policy"]]).toEqual([
        "accept",
        expect.stringContaining("default-src 'none'"),
      ]);
      expect(page.body).toContain("<h1>No such page</h1>");
      expect(page.body).toContain('href="/docs"');
      const { headers, ...problem } = await world.app.inject({ url });
      expect([headers["content-type"], problem.json().code]).toEqual([
        "application/problem+json",
        "route_not_found",
      ]);
    },
  );

  test.each([
    ["GET", "/api/v1/mint", "POST"],
    ["DELETE", "/api/v1/assets", "GET"],
    ["POST", "/api/v1/assets/a/enablement", "PUT, DELETE"],
    ["PATCH", "/api/v1/users", "POST, GET"],
  ] as const)("%s %s is not allowed", async (method, path, allow) => {
    const answer = await world.send(method, path, {});
    expect(refusal(answer)).toMatchObject({ status: 405, code: "method_not_allowed" });
    expect(answer.headers.allow).toBe(allow);
  });

  test("HEAD answers as GET without a body", async () => {
    const response = await world.app.inject({ method: "HEAD", url: "/healthz" });
    expect([response.statusCode, response.body]).toEqual([200, ""]);
  });
});

describe("bodies", () => {
  const post = (raw: string | Buffer, headers: Record<string, string> = {}) =>
    world.send("POST", "/api/v1/mint", { raw, headers });

  test("past the limit are refused, and the limit fits the largest mint", async () => {
    const { body: limits } = await world.send("GET", "/api/v1/limits");
    expect(refusal(await post(" ".repeat(limits.bodyBytes + 1)))).toMatchObject({
      status: 413,
      code: "body_too_large",
    });
    const mints = Array.from({ length: limits.mintsPerRequest }, (_, n) => ({
      mintingBlob: `0x${Buffer.from(String(n).padStart(255, "a")).toString("hex")}`,
      assetId: world.erc1155.assetId,
      amount: "9007199254740993",
      dataAvailabilityMode: "zk-rollup",
    }));
    const largest = JSON.stringify({ users: [{ userId: world.users[0], mints }] }, null, 4);
    expect((await post(largest)).status).toBe(200);
    const users = await world.send("POST", "/api/v1/users", { raw: " ".repeat(70_000) });
    expect(refusal(users)).toMatchObject({ status: 413, code: "body_too_large" });
  });
});

describe("rate limits", () => {
  test("a key pays one unit a mint entry, and gets the time to retry", async () => {
    let now = 0;
    await using own = await createWorld({
      now: () => now,
      rateLimits: { key: { units: 10, windowSeconds: 10 } },
    });
    const body = { users: [{ userId: own.users[0], mints: Array(9).fill(entries(own, 1)[0]) }] };
    const first = await own.send("POST", "/api/v1/mint", { body });
    expect(first.status).toBe(200);
    expect(first.headers).toMatchObject({
      "ratelimit-policy": '"key";q=10;w=10',
      ratelimit: '"key";r=1;t=9',
    });
    const before = await own.snapshot();
    const second = await own.send("POST", "/api/v1/mint", { body });
    expect(refusal(second)).toMatchObject({ status: 429, code: "rate_limited" });
    expect(second.headers["retry-after"]).toBe("8");
    expect(await own.snapshot()).toEqual(before);
    expect((await own.send("GET", "/api/v1/limits", { key: await own.newKey() })).status).toBe(200);
    expect(refusal(await own.send("GET", "/api/v1/limits"))).toMatchObject({
      code: "rate_limited",
    });
    expect((await own.send("GET", "/healthz")).headers.ratelimit).toBeUndefined();
    now = 10_000;
    expect((await own.send("POST", "/api/v1/mint", { body })).status).toBe(200);
  });

  test("no request costs more than its key can ever pay", async () => {
    await using own = await createWorld({
      now: () => 0,
      rateLimits: { key: { units: 5, windowSeconds: 10 } },
    });
    const [mint] = entries(own, 1);
    const body = { users: [{ userId: own.users[0], mints: Array(9).fill(mint) }] };
    expect((await own.send("POST", "/api/v1/mint", { body })).status).toBe(200);
    const huge = { users: [{ userId: own.users[0], mints: Array(20_000).fill(0) }] };
    const answer = await own.send("POST", "/api/v1/mint", { body: huge, key: await own.newKey() });
    expect(refusal(answer)).toMatchObject({ status: 422, code: "batch_too_large" });
  });

  test("an address pays for failures, but right credentials always pass", async () => {
    await using own = await createWorld({
      now: () => 0,
      rateLimits: { failedAuthentication: { units: 2, windowSeconds: 60 } },
    });
    const wrong = async () =>
      refusal(await own.send("GET", "/api/v1/limits", { key: "wrong" })).status;
    expect([await wrong(), await wrong(), await wrong()]).toEqual([401, 401, 429]);
    expect((await own.send("GET", "/api/v1/limits")).status).toBe(200);
  });

  test("public reads count by address", async () => {
    await using own = await createWorld({
      now: () => 0,
      rateLimits: { publicReads: { units: 1, windowSeconds: 60 } },
    });
    expect((await own.send("GET", "/public/v1/state")).status).toBe(200);
    expect(refusal(await own.send("GET", "/public/v1/state"))).toMatchObject({
      status: 429,
      code: "rate_limited",
    });
  });
});
