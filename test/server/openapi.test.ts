import { readdirSync, readFileSync } from "node:fs";
import { afterAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { ERROR_CODES } from "../../core/index.ts";
import {
  type Code,
  meaningOf,
  SERVER_ERROR_CODES,
  STATUS_OF,
  statusOf,
  TOKEN_PATH,
} from "../../server/http/errors.ts";
import { errorsOf } from "../../server/routes/api/endpoint.ts";
import { eventType } from "../../server/routes/events.ts";
import { ENDPOINTS } from "../../server/routes/index.ts";
import { createWorld, OWNER } from "./fixture.ts";

interface Operation {
  readonly operationId: string;
  readonly deprecated?: boolean;
  readonly security: readonly object[];
  readonly parameters: readonly {
    readonly name: string;
    readonly in: string;
    readonly schema: object;
  }[];
  readonly requestBody?: {
    readonly content: Record<string, { readonly schema: object; readonly example?: unknown }>;
  };
  readonly responses: Record<
    string,
    { readonly content: Record<string, { readonly schema: object; readonly example?: unknown }> }
  >;
}

interface MintExample {
  readonly users: readonly {
    readonly userId: string;
    readonly mints: readonly { readonly assetId: string; readonly tokenId?: string }[];
  }[];
}

interface Document {
  readonly openapi: string;
  readonly paths: Record<string, Record<string, Operation>>;
  readonly components: { readonly schemas: Record<string, object> };
  readonly "x-limits": object;
}

const world = await createWorld();
const document: Document = (await world.send("GET", "/openapi.json", { key: null })).body;
afterAll(() => world[Symbol.asyncDispose]());

const operations = () =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      name: `${method.toUpperCase()} ${path}`,
      operation,
    })),
  );

/** Every `$ref` below a value. */
function references(value: unknown): string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, child]) =>
    key === "$ref" ? [String(child)] : references(child),
  );
}

describe("the OpenAPI document", () => {
  test("shows every route that the server has, and no other", () => {
    const served = world.app
      .printRoutes({ commonPrefix: false })
      .matchAll(/(\S+) \(([A-Z, ]+)\)/g)
      .flatMap(([, path = "", methods = ""]) =>
        methods.split(", ").map((method) => `${method} ${path}`),
      )
      // Pages for people are not of the API; the router prints the children of /docs and /explorer
      // as `/*` or `*`.
      .filter(
        (route) =>
          !route.startsWith("HEAD ") &&
          !/^GET (?:\/|\/?docs|\/?exit|\/?claim|\/?guide|\/?explorer|\/?console|\/?\*)$/.test(
            route,
          ),
      );
    // The router prints a tree: only the last part of a nested path is on its line, so full paths
    // are asked for one by one.
    expect([...served].length).toBe(operations().length);
    for (const { name } of operations()) {
      const [method = "", path = ""] = name.split(" ");
      expect(
        world.app.hasRoute({ method: method as "GET", url: path.replaceAll(/\{(\w+)\}/g, ":$1") }),
        name,
      ).toBe(true);
    }
    expect(
      operations()
        .map(({ name }) => name)
        .toSorted(),
    ).toEqual(ENDPOINTS.map(({ method, path }) => `${method} ${path}`).toSorted());
  });

  test("shows every status and code of every route", () => {
    for (const { name, operation } of operations()) {
      const endpoint = ENDPOINTS.find(({ method, path }) => `${method} ${path}` === name);
      if (endpoint === undefined) throw new Error(`${name} is not an endpoint`);
      const shown = Object.entries(operation.responses).flatMap(([status, { content }]) => {
        const text = Number(status) < 400 ? "" : JSON.stringify(content);
        const codes: Code[] = JSON.parse(/"enum":(\[[^\]]+\])/.exec(text)?.[1] ?? "[]");
        for (const code of codes)
          expect(statusOf(code, endpoint.path), `${name} ${code}`).toBe(Number(status));
        return codes;
      });
      expect(shown.toSorted(), name).toEqual(errorsOf(endpoint).toSorted());
      expect(operation.responses, name).toHaveProperty([String(endpoint.success.status)]);
    }
  });

  test("shows every error code of the core and the server on some route, but for those that no route can answer with", () => {
    // Operators meet these on opening a store, in library calls and on the command line;
    // `routeless` ones are said where there is no route.
    const never: Code[] = [
      "asset_minted",
      "store_missing",
      "store_locked",
      "batch_committed",
      "mint_consented",
      "signer_failed",
      "store_mismatch",
    ];
    const routeless: Code[] = ["route_not_found", "method_not_allowed"];
    const shown = new Set(ENDPOINTS.flatMap(errorsOf));
    const all = [...Object.keys(ERROR_CODES), ...Object.keys(SERVER_ERROR_CODES)] as Code[];
    expect(all.filter((code) => !shown.has(code)).toSorted()).toEqual(
      [...never, ...routeless].toSorted(),
    );
    expect(Object.keys(STATUS_OF).toSorted()).toEqual(all.toSorted());
  });

  test("is whole: references resolve, names are unique, path parameters are declared", () => {
    expect(document.openapi).toMatch(/^3\.1\./);
    for (const reference of references(document)) {
      expect(document.components.schemas).toHaveProperty([
        reference.replace("#/components/schemas/", ""),
      ]);
    }
    const used = new Set(references(document));
    for (const name of Object.keys(document.components.schemas))
      expect(used).toContain(`#/components/schemas/${name}`);
    const ids = operations().map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { name, operation } of operations()) {
      const inPath = operation.parameters
        .filter((parameter) => parameter.in === "path")
        .map((parameter) => parameter.name);
      expect(inPath, name).toEqual(
        [...name.matchAll(/\{(\w+)\}/g)].map(([, parameter]) => parameter),
      );
    }
  });

  test("leaves answers open, keeps requests closed, and describes each event that webhooks get", () => {
    const { schemas } = document.components as unknown as { schemas: Record<string, unknown> };
    const closed = (name: string) =>
      JSON.stringify(schemas[name]).includes('"additionalProperties":false');
    for (const name of ["User", "MintReply", "Event", "Problem", "Webhook"])
      expect(closed(name), name).toBe(false);
    for (const name of ["NewUser", "MintRequest", "NewWithdrawals"])
      expect(closed(name), name).toBe(true);
    const { webhooks } = document as unknown as { webhooks: Record<string, unknown> };
    expect(Object.keys(webhooks).toSorted()).toEqual([...eventType.options].toSorted());
  });

  test("takes an event of a type that is not known yet", () => {
    const { anyOf } = document.components.schemas.Event as {
      anyOf: { properties: { type: object } }[];
    };
    const types = anyOf.map(({ properties: { type } }) => type);
    const known = eventType.options.map((type) => ({ type: "string", const: type }));
    expect(types).toEqual([...known, { type: "string", not: { enum: eventType.options } }]);
    expect(document.components.schemas.Webhook).toMatchObject({
      properties: { types: { items: { type: "string" } } },
    });
    expect(JSON.stringify(document.components.schemas.Webhook)).not.toContain("mint.accepted");
  });

  test("names operations in words, and gives each JSON answer an example that fits its schema", () => {
    const ids = operations().map(({ operation }) => operation.operationId);
    expect(ids).toEqual(
      expect.arrayContaining(["mint", "listUsers", "createUser", "getUser", "listUserVaults"]),
    );
    expect(ids).toEqual(
      expect.arrayContaining([
        "listBatches",
        "getBatchData",
        "listPublicBatches",
        "listWithdrawals",
      ]),
    );
    for (const id of ids) expect(id).toMatch(/^[a-z][A-Za-z]+$/);
    for (const { method, path, success } of ENDPOINTS) {
      const content =
        document.paths[path]?.[method.toLowerCase()]?.responses[success.status]?.content ?? {};
      const { example } = content["application/json"] ?? {};
      if (success.schemas === undefined) expect(example).toBeUndefined();
      // The schemas of the code are closed, so an example has no field too many.
      else
        expect(
          z.union(success.schemas).safeParse(example).error,
          `${method} ${path}`,
        ).toBeUndefined();
      expect(JSON.stringify(example) ?? "", `${method} ${path}`).not.toContain('"…"');
    }
  });

  test("tells what needs credentials, what is deprecated, and the limits", async () => {
    for (const { name, operation } of operations()) {
      expect(operation.security.length > 0, name).toBe(!PUBLIC.test(name));
      expect(operation.deprecated ?? false, name).toBe(name === "POST /api/mint");
    }
    expect(document["x-limits"]).toEqual((await world.send("GET", "/api/v1/limits")).body);
  });

  test("has an example for every JSON body, which a server that knows its ids answers as documented", async () => {
    await using fresh = await createWorld();
    const { engine, applicationId } = fresh;
    const mint = operations().find(({ name }) => name === "POST /api/v1/mint");
    const example = mint?.operation.requestBody?.content["application/json"]?.example;
    const { users } = example as MintExample;
    for (const { userId, mints } of users) {
      await engine.users.create(applicationId, { userId, ownerAddress: OWNER });
      for (const [i, { assetId, tokenId }] of mints.entries()) {
        const contractAddress = `0x${"e".repeat(39)}${i}` as const;
        const standard = tokenId === undefined ? "erc20" : "erc721";
        const decimals = standard === "erc20" ? 6 : 0;
        const names = { name: "Example", symbol: "EX", decimals, applicationId };
        await engine.assets.add({ assetId, standard, contractAddress, ...names });
        await engine.operator.recordRegistered(assetId);
      }
    }
    const hook = { url: "https://example.com/hook" };
    const { webhook } = await engine.webhooks.create(applicationId, hook);
    const cards =
      users.flatMap(({ mints }) => mints).find(({ tokenId }) => tokenId !== undefined)?.assetId ??
      "";
    // The others carry times and signatures, which no document can give for a vault or a challenge
    // that is not there yet.
    const codes: Record<string, string> = {
      "POST /api/mint": "token_already_minted",
      "POST /api/v1/withdrawals": "deadline_invalid",
      "POST /api/v1/withdrawals/prepare": "proof_not_ready",
      "POST /api/v1/transfers": "signature_invalid",
      "POST /api/v1/transfers/prepare": "asset_not_transferable",
      "POST /api/v1/orders": "vault_not_found",
      "POST /api/v1/orders/prepare": "asset_not_found",
      "POST /api/v1/orders/{orderId}/fills": "order_not_found",
      "POST /api/v1/orders/{orderId}/fills/prepare": "order_not_found",
      "POST /api/v1/settlements": "vault_not_found",
      "POST /owner/v1/orders/{orderId}/fills": "credentials_missing",
      "POST /owner/v1/orders/{orderId}/fills/prepare": "credentials_missing",
      "POST /owner/v1/orders": "credentials_missing",
      "POST /owner/v1/orders/prepare": "credentials_missing",
      "POST /owner/v1/transfers": "credentials_missing",
      "POST /owner/v1/transfers/prepare": "credentials_missing",
      "POST /owner/v1/withdrawals/prepare": "credentials_missing",
      "POST /owner/v1/withdrawals": "credentials_missing",
      "POST /public/v1/claims/{linkAddress}": "signature_invalid",
      "POST /owner/v1/sign-in": "credentials_invalid",
      "POST /console/v1/sign-in": "credentials_missing",
      "POST /oauth/token": "credentials_invalid",
    };
    for (const { name, operation } of operations()) {
      const json = operation.requestBody?.content["application/json"];
      if (json === undefined) continue;
      const [method, path = ""] = name.split(" ");
      const url = path
        .replace("{assetId}", cards)
        .replace("{tokenId}", "7")
        .replace("{orderId}", webhook.webhookId)
        .replace("{webhookId}", webhook.webhookId)
        .replace("{linkAddress}", `0x${"1c".repeat(20)}`);
      const { body } = await fresh.send(method as "POST", url, { body: json.example });
      // A person's sign-in is in a cookie, not in the key that this test sends.
      const isOfMember = name.includes(" /console/") && operation.security.length > 0;
      expect(body.code, name).toBe(isOfMember ? "credentials_missing" : codes[name]);
    }
  });
});

const DOCS = new URL("../../docs/", import.meta.url);
/** The pages, but for those that tell another product's routes. */
const PAGES = readdirSync(DOCS, { recursive: true, encoding: "utf8" }).filter((name) =>
  /^(?!\.|guides\/(?:starkexpress|keys)).*\.md$/.test(name),
);
/** A route, or the beginning of routes, in a page's text. */
const ROUTE =
  /`(?:(GET|POST|PUT|DELETE) )?(\/(?:api|public|owner|console|oauth)\/[\w{}/.-]*)[`?\s]/g;

const unnamed = (path: string) => path.replaceAll(/\{\w+\}/g, "{}");

/** Whether the server has a route; without a method, whether it has routes that begin so. */
function isServed(method: string | undefined, path: string): boolean {
  return ENDPOINTS.some((endpoint) =>
    method === undefined
      ? `${unnamed(endpoint.path)}/`.startsWith(unnamed(path).replace(/\/?$/, "/"))
      : endpoint.method === method && unnamed(endpoint.path) === unnamed(path),
  );
}

describe("docs/api.md", () => {
  const text = readFileSync(new URL("api.md", DOCS), "utf8");

  test("and OpenAPI show every code with its status and meaning, and no other", () => {
    // The token route answers in OAuth's own way.
    const shown = Object.entries(document.paths).flatMap(([path, methods]) =>
      path === TOKEN_PATH
        ? []
        : Object.values(methods).flatMap(({ responses }) => errorsIn(responses)),
    );
    const rows = [...text.matchAll(/^\| (\d{3}) \| `(\w+)` \| (.+?) \|$/gm)].map(([, ...cells]) =>
      cells.join(" "),
    );
    const known = Object.entries(STATUS_OF).map(
      ([code, status]) => `${status} ${code} ${meaningOf(code as Code)}`,
    );
    expect([...new Set([...shown, ...rows])].toSorted()).toEqual(known.toSorted());
    expect(rows.filter((row) => shown.includes(row))).toEqual([]);
  });

  test("lists every kind of access that routes have, and no other", () => {
    const [, list = ""] = text.split("Each route has one kind of access:\n\n");
    const [items = ""] = list.split("\n\n");
    const listed = [...items.matchAll(/^- `(\w+)`: /gm)].map(([, access]) => access);
    expect(listed.toSorted()).toEqual(
      [...new Set(ENDPOINTS.map(({ access }) => access))].toSorted(),
    );
  });

  test("and the other pages name only routes that the server has", () => {
    const unknown = PAGES.flatMap((page) => {
      const named = readFileSync(new URL(page, DOCS), "utf8").matchAll(ROUTE);
      return [...named]
        .filter(([, method, path = ""]) => !isServed(method, path))
        .map(([found]) => `${page}: ${found}`);
    });
    expect(unknown).toEqual([]);
  });

  test("its example requests get its example answers", async () => {
    const examples = [
      ...text.matchAll(/```http\n(?<request>[^`]+)```\n+```json\n(?<answer>[^`]+)```/g),
    ];
    expect(examples.length).toBeGreaterThan(1);
    const names: Record<string, string> = {
      USER: world.users[0],
      ERC20: world.erc20.assetId,
      ERC721: world.erc721.assetId,
      MINTMARK_API_KEY: world.key,
    };
    for (const { groups: { request = "", answer = "" } = {} } of examples) {
      const filled = request.replaceAll(/\$(\w+)/g, (_, name: string) => names[name] ?? "");
      const [head = "", body] = filled.split("\n\n");
      const [line = "", ...fields] = head.trim().split("\n");
      const [method, path = ""] = line.split(" ");
      const headers = Object.fromEntries(
        fields.map((field) => field.split(": ") as [string, string]),
      );
      const sent = { key: null, headers, ...(body?.trim() && { raw: body }) };
      const reply = await world.send(method as "GET", path, sent);
      expect(shape(reply.body), line).toEqual(shape(JSON.parse(answer)));
      const code = /"code": "(\w+)"/.exec(answer)?.[1];
      if (code !== undefined) expect(reply.body.code).toBe(code);
    }
  });
});

/** The codes of an operation's errors, each as `status code meaning`. */
function errorsIn(responses: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(responses).flatMap(([status, response]) => {
    const { description } = response as { description: string };
    return [...description.matchAll(/^`(\w+)`: (.+)$/gm)].map(
      ([, code, meaning]) => `${status} ${code} ${meaning}`,
    );
  });
}

const PUBLIC =
  / \/(?:public|oauth|healthz|readyz|openapi)|\/challenge$|^POST \/(?:owner|console)\/v1\/sign-in$/;

/**
 * A value with the kinds of its leaves: what an example shows that holds for every answer of its
 * sort.
 */
function shape(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shape);
  if (typeof value !== "object" || value === null) return value === null ? "null" : typeof value;
  return Object.fromEntries(Object.entries(value).map(([key, child]) => [key, shape(child)]));
}
