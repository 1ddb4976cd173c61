import { privateKeyToAccount } from "viem/accounts";
import { afterAll, describe, expect, test } from "vitest";
import { z } from "zod";
import type { Endpoint } from "../../server/routes/api/endpoint.ts";
import { ENDPOINTS } from "../../server/routes/index.ts";
import { type Answer, createWorld, type SendOptions, signedIn } from "./fixture.ts";
import { type Document, operationsOf, type Schema } from "./schema-values.ts";

// Each place of each request gets each of many values. The server refuses what the document
// refuses, and takes the form of what the document takes.

const rich = { units: 1e9, windowSeconds: 1 };
const world = await createWorld({
  rateLimits: { key: rich, failedAuthentication: rich, publicReads: rich },
});
afterAll(() => world[Symbol.asyncDispose]());
const { engine, applicationId } = world;
const CONTRACT = world.erc20.contractAddress;

const names = { name: "Own", symbol: "OWN", applicationId };
const { assetId } = await engine.assets.add({
  ...names,
  standard: "erc721",
  contractAddress: `0x${"ad".repeat(20)}`,
});

interface MintExample {
  readonly users: readonly {
    readonly userId: string;
    readonly mints: readonly { readonly assetId: string; readonly tokenId?: string }[];
  }[];
}
const example = ENDPOINTS.find(({ operationId }) => operationId === "mint")?.example as MintExample;
for (const { userId, mints } of example.users) {
  await engine.users.create(applicationId, { userId, ownerAddress: CONTRACT });
  for (const [i, { assetId, tokenId }] of mints.entries()) {
    const contractAddress = `0x${"e".repeat(39)}${i}` as const;
    const standard = tokenId === undefined ? "erc20" : "erc721";
    const decimals = standard === "erc20" ? 6 : 0;
    await engine.assets.add({ ...names, assetId, standard, contractAddress, decimals });
    await engine.operator.recordRegistered(assetId);
  }
}

const CONSOLE = { "mintmark-console": "1", host: "localhost" };
async function person(role: "operator" | "admin"): Promise<SendOptions> {
  const team = role === "operator" ? null : applicationId;
  const { link } = await engine.people.invite({ applicationId: team, role, name: role });
  const by = { key: null, headers: CONSOLE };
  const { headers } = await world.send("POST", "/console/v1/sign-in", { ...by, body: { link } });
  const [cookie = ""] = String(headers["set-cookie"]).split(";");
  return { key: null, headers: { ...CONSOLE, cookie } };
}
const owner = await signedIn(world, privateKeyToAccount(`0x${"17".repeat(32)}`));
const [operator, admin] = [await person("operator"), await person("admin")];

function callerOf({ access, path }: Endpoint): SendOptions {
  if (access === "public") return { key: null, headers: { host: "localhost:3000" } };
  if (access === "owner") return owner;
  if (access !== "person") return {};
  return path.includes("/applications") ? operator : admin;
}

const document: Document = (await world.send("GET", "/openapi.json", { key: null })).body;
const { schemas } = document.components;
const local = (value: object) =>
  JSON.parse(JSON.stringify(value).replaceAll("#/components/schemas/", "#/$defs/"));
const readerOf = (schema: Schema) => z.fromJSONSchema({ ...local(schema), $defs: local(schemas) });
const resolve = ({ $ref, ...schema }: Schema): Schema =>
  $ref === undefined ? schema : resolve(schemas[$ref.split("/").at(-1) ?? ""] ?? {});

/** Some field takes each of these, and others do not. */
const VALUES: readonly unknown[] = [
  ...[null, true, 0, -1, 1.5, 2 ** 53, [], [null], ["x"], {}, { placholder: 1 }],
  ...["", " ", "x", "é", "true", "0", "00", "007", "-1", "1.5", "1e3", "validium"],
  ...["9223372036854775807", "9223372036854775808", "18446744073709551616"],
  ...["1".repeat(78), "9".repeat(78), "1".repeat(79), "x".repeat(101), "x".repeat(9000)],
  ...["0x", "0x0", `0x${"0".repeat(40)}`, `0x${"A".repeat(40)}`, `0x${"aB".repeat(65)}`],
  ...["2026-11-21", "2026-11-21T07:56:56", "2099-11-21T07:56:56Z", "a\u0000b", "a\nb"],
  ...["ftp://a.example", "https://a.example/", applicationId],
];

interface Other {
  /** JSON pointer of the place that differs. */
  readonly at: string;
  readonly value: unknown;
}

/** A value with another one at each place, without each of its fields, and with one too many. */
function* others(schema: Schema, value: unknown): Generator<Other> {
  for (const other of VALUES) yield { at: "", value: other };
  const { anyOf, ...plain } = resolve(schema);
  for (const { items, properties } of anyOf?.map(resolve) ?? [plain]) {
    const first = Array.isArray(value) ? value[0] : undefined;
    if (items !== undefined && first !== undefined)
      for (const { at, value: other } of others(items, first))
        yield { at: `/0${at}`, value: [other, ...(value as unknown[]).slice(1)] };
    if (properties === undefined) continue;
    const fields: Record<string, unknown> = { ...(value as object) };
    for (const [name, field] of Object.entries(properties)) {
      const { [name]: present, ...rest } = fields;
      if (present !== undefined) yield { at: `/${name}`, value: rest };
      for (const { at, value: other } of others(field, present))
        yield { at: `/${name}${at}`, value: { ...fields, [name]: other } };
    }
    yield { at: "/placholder", value: { ...fields, placholder: null } };
  }
}

/** Rules that a schema cannot say, in the words of the refusal. */
const BEYOND = [
  // A number that is too large, and has as many digits as the largest.
  /^Give at most \d+\.$/,
  /number below 2\^256/,
  // Fields that need or exclude each other.
  /^Give either |, not both$|^must be a UUID; or give |needs none$|leave this out$|^name the token by |neither asset nor |an ERC-20 asset has no tokens by id/,
  /^L1 settles whole orders/,
  /needs (?:assetId|wantAssetId)/,
  /hidden characters/,
  // The asset says this.
  /one unit is /,
  /^has \d+ bytes|cannot be read exactly/,
  /in the future|before until|session would be over/,
  /unused bits/,
];

let links = 0;
/** A claim link that is there already would hide what else is wrong. */
function withNewLink(json: string): string {
  const link = `0x${String(++links).padStart(40, "0")}`;
  return json.replace(`0x${"1c".repeat(20)}`, link);
}

interface Refusal {
  readonly code?: string;
  readonly errors?: readonly {
    readonly pointer: string;
    readonly code: string;
    readonly detail: string;
  }[];
}

/** Whether the server refuses the value at this place. */
function isRefused({ status, body }: Answer, at: string): boolean {
  const { errors = [] } = body as Refusal;
  return status === 400 || (status > 400 && errors.some(({ pointer }) => pointer.startsWith(at)));
}

function expectSame(answer: Answer, at: string, isRight: boolean, asked: string): void {
  const { code, errors = [] } = answer.body as Refusal;
  const said = `${asked} ${at}: ${JSON.stringify([answer.status, code, errors])}`;
  if (!isRight) expect(isRefused(answer, at), said).toBe(true);
  else {
    const ofForm = errors.filter((each) => each.code === "validation_failed");
    const words = ofForm.map(({ detail }) => detail);
    expect(
      words.filter((each) => !BEYOND.some((form) => form.test(each))),
      said,
    ).toEqual([]);
  }
  if (code === "validation_failed") expect(errors, said).not.toEqual([]);
}

const PLACES: Readonly<Record<string, string>> = {
  ...{ assetId, applicationId, tokenId: "1", userId: world.users[0], keyId: world.keyId },
  ...{ transactionId: `${applicationId}.0`, batchId: "validium-0", vaultId: "1", sequence: "1" },
  ...{ ownerAddress: CONTRACT, linkAddress: CONTRACT, keyAddress: CONTRACT },
  txHash: `0x${"ab".repeat(32)}`,
};
const filled = (path: string, places = PLACES) =>
  path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(places[name] ?? applicationId),
  );

const operations = operationsOf(document).flatMap((operation) => {
  const { method, path, body } = operation;
  const endpoint = ENDPOINTS.find((each) => each.method === method && each.path === path);
  if (endpoint === undefined) throw new Error(`${method} ${path} is no endpoint`);
  const isOther = endpoint.deprecated === true || body?.type === "text/csv";
  return isOther ? [] : [{ name: `${method} ${path}`, operation, endpoint }];
});

describe("the form of a request is as strict as its document", () => {
  test.each(operations.filter(({ operation }) => operation.body !== null))(
    "in the body of $name",
    async ({ name, operation: { method, path, body }, endpoint }) => {
      const { schema } = body ?? { schema: {} };
      const reader = readerOf(schema);
      for (const { at, value } of others(schema, endpoint.example)) {
        const asked = { ...callerOf(endpoint), raw: withNewLink(JSON.stringify(value)) };
        // A mint that is checked only can be repeated.
        const url = `${filled(path)}${path.endsWith("/mint") ? "?dryRun=true" : ""}`;
        const answer = await world.send(method as "POST", url, asked);
        const shown = `${name} ${JSON.stringify(value).slice(0, 300)}`;
        expectSame(answer, at, reader.safeParse(value).success, shown);
      }
    },
  );

  test.each(operations.filter(({ operation }) => operation.method === "GET"))(
    "in the parameters of $name",
    async ({ name, operation: { path, parameters }, endpoint }) => {
      const needed = parameters.filter(({ required, in: place }) => required && place === "query");
      const query = needed.map((each) => [each.name, PLACES[each.name] ?? "1"] as const);
      for (const { name: field, in: place, schema } of parameters) {
        if (place === "header") continue;
        const reader = readerOf(schema);
        for (const value of VALUES) {
          const text = typeof value === "string" ? value : JSON.stringify(value);
          // A path without its parameter is another path, and a long one is no path.
          if (place === "path" && (text === "" || text.length > 100)) continue;
          const search = new URLSearchParams({ ...Object.fromEntries(query), [field]: text });
          const url =
            place === "path"
              ? `${filled(path, { ...PLACES, [field]: text })}?${new URLSearchParams(Object.fromEntries(query))}`
              : `${filled(path)}?${search}`;
          const answer = await world.send("GET", url, callerOf(endpoint));
          const given = schema.type === "array" ? [text] : asJson(schema, text);
          expectSame(
            answer,
            `/${place}/${field}`,
            reader.safeParse(given).success,
            `${name} ${url}`,
          );
        }
      }
    },
  );
});

/** The value that a text of a URL has for a schema of numbers or booleans. */
function asJson({ type }: Schema, text: string): unknown {
  if (type === "string" || type === undefined) return text;
  return /^(?:true|false|-?(?:0|[1-9]\d*))$/.test(text) ? JSON.parse(text) : text;
}
