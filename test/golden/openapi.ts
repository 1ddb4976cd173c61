import { openApiDocument } from "../../server/routes/api/openapi.ts";
import { ENDPOINTS } from "../../server/routes/index.ts";

export type Json = { readonly [key: string]: Json } & readonly Json[];

/** The OpenAPI document of this version, without texts for people. */
export function httpDocument(): Json {
  const kept = (name: string, each: unknown) =>
    /^examples?$/.test(name) || (/^(description|summary)$/.test(name) && typeof each === "string")
      ? undefined
      : each;
  return JSON.parse(JSON.stringify(openApiDocument(ENDPOINTS, {}), kept));
}

/** `request`: what was accepted stays accepted. `answer`: nothing comes that was not promised. */
type Direction = "request" | "answer";

/** Keywords that bound a value from below, and from above. */
const LEAST = ["minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"];
const MOST = ["maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"];
/** Judged by their own rules. */
const JUDGED = [
  "type",
  "enum",
  "const",
  "properties",
  "required",
  "items",
  "additionalProperties",
  "anyOf",
  "oneOf",
];
/** Say nothing about values. */
const SILENT = ["$ref", "title", "deprecated", "readOnly", "$schema", "$defs"];
/**
 * Fields of answers whose values docs/stability.md lets grow: codes of errors, and types of events.
 */
const GROWS = /\/(code|type|types\[\]|events\[\])$/;

const has = (json: Json | undefined, name: string): boolean => json?.[name] !== undefined;
const same = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other);
const list = (json: unknown): readonly Json[] =>
  json === undefined ? [] : Array.isArray(json) ? json : [json as Json];
const entries = (json: Json | undefined) => Object.entries(json ?? {}) as [string, Json][];

/** Changes that a client of the document `before` would notice in `now`, each with its place. */
export function breaks(before: Json, now: Json): string[] {
  const found: string[] = [];
  for (const [path, methods] of entries(before.paths))
    for (const [method, old] of entries(methods))
      operation(`${method.toUpperCase()} ${path}`, old, now.paths?.[path]?.[method], "request");
  for (const [name, hook] of entries(before.webhooks))
    for (const [method, old] of entries(hook))
      operation(`webhook ${name}`, old, now.webhooks?.[name]?.[method], "answer");
  for (const [name, old] of entries(before.components?.securitySchemes))
    if (!same(old, now.components?.securitySchemes?.[name]))
      found.push(`credentials ${name} have changed`);
  return found;

  function operation(place: string, old: Json, its: Json | undefined, direction: Direction): void {
    if (its === undefined) return void found.push(`${place} is gone`);
    if (!same(old.operationId, its.operationId)) found.push(`${place} has another operationId`);
    for (const one of list(old.security))
      if (!list(its.security).some((each) => same(each, one)))
        found.push(
          `${place} does not take ${Object.keys(one).join(" and ") || "anonymous requests"} any more`,
        );
    if (!has(old, "security") && has(its, "security")) found.push(`${place} asks for credentials`);
    const named = (json: Json) =>
      new Map(list(json.parameters).map((each) => [`${each.in} ${each.name}`, each]));
    const [were, are] = [named(old), named(its)];
    for (const [name, parameter] of were) {
      const other = are.get(name);
      if (other === undefined) found.push(`${place} takes no ${name} any more`);
      else schemas(`${place} ${name}`, parameter.schema, other.schema, direction);
    }
    for (const [name, { required }] of are)
      if (direction === "request" && required && !were.get(name)?.required)
        found.push(`${place} requires ${name} now`);
    const [body, itsBody] = [old.requestBody, its.requestBody];
    if (itsBody?.required && !body?.required && direction === "request")
      found.push(`${place} requires a body now`);
    contents(`${place} body`, body, itsBody, direction);
    for (const [status, response] of entries(old.responses)) {
      const other = its.responses?.[status];
      if (other === undefined) found.push(`${place} answers no ${status} any more`);
      else {
        contents(`${place} ${status}`, response, other, "answer");
        for (const [name, { schema }] of entries(response.headers))
          if (!has(other.headers, name))
            found.push(`${place} ${status} has no header ${name} any more`);
          else
            schemas(`${place} ${status} ${name}`, schema, other.headers?.[name]?.schema, "answer");
      }
    }
    for (const status of Object.keys(its.responses ?? {}))
      if (/^[23]/.test(status) && !has(old.responses, status))
        found.push(`${place} answers ${status} now`);
  }

  function contents(
    place: string,
    old: Json | undefined,
    its: Json | undefined,
    direction: Direction,
  ): void {
    for (const [type, { schema }] of entries(old?.content)) {
      if (has(its?.content, type)) schemas(place, schema, its?.content?.[type]?.schema, direction);
      else found.push(`${place} is no ${type} any more`);
    }
  }

  function schemas(
    place: string,
    old: Json | undefined,
    its: Json | undefined,
    direction: Direction,
  ): void {
    found.push(...schemaBreaks({ before, now }, place, old, its, direction));
  }
}

/**
 * Changes that a client of the schema `before` would notice in `now`. References lead into
 * `documents`.
 */
export function schemaBreaks(
  documents: { readonly before: Json; readonly now: Json },
  place: string,
  before: Json | undefined,
  now: Json | undefined,
  direction: Direction,
  depth = 0,
): string[] {
  if (depth > 16) return [];
  const found: string[] = [];
  const [old, its] = [resolved(documents.before, before), resolved(documents.now, now)];
  const within = (name: string, one: Json | undefined, other: Json | undefined) =>
    schemaBreaks(documents, `${place}${name}`, one, other, direction, depth + 1);
  const [olds, theirs] = [alternatives(old), alternatives(its)];
  if (olds.length > 1 || theirs.length > 1) {
    // Each alternative of the one that must be the smaller fits into one of the other.
    const fits = (one: Json, other: Json) =>
      (direction === "request" ? within("", one, other) : within("", other, one)).length === 0;
    const [small, large] = direction === "request" ? [olds, theirs] : [theirs, olds];
    for (const one of small) {
      if (large.some((other) => fits(one, other))) continue;
      // A null beside one schema is the usual union: its own differences tell more.
      const alike = large.filter((other) => same(other.type, one.type));
      const [only] = alike;
      const [was, is] = direction === "request" ? [one, only] : [only, one];
      if (alike.length === 1) found.push(...within("", was, is));
      else
        found.push(
          `${place} ${direction === "request" ? "does not take" : "can be"} ${textOf(one)} now`,
        );
    }
    return found;
  }
  const [narrow, wide] = direction === "request" ? [old, its] : [its, old];
  const types = (json: Json) => list(json.type).map(String);
  if (has(wide, "type")) {
    const allowed = types(wide);
    const isIn = (type: string) =>
      allowed.includes(type) || (type === "integer" && allowed.includes("number"));
    if (!has(narrow, "type") || !types(narrow).every(isIn))
      return [
        `${place} is ${types(its).join(" or ") || "anything"} now, not ${types(old).join(" or ") || "anything"}`,
      ];
  }
  const values = (json: Json): readonly (Json | undefined)[] | null =>
    json.const !== undefined ? [json.const] : json.enum !== undefined ? list(json.enum) : null;
  const [few, many] = [values(narrow), values(wide)];
  if (many !== null && !(direction === "answer" && GROWS.test(place))) {
    const added = few?.filter((value) => !many.some((each) => same(each, value))) ?? [
      "any value" as unknown as Json,
    ];
    for (const value of added)
      found.push(`${place} ${direction === "request" ? "does not take" : "can be"} ${value} now`);
  }
  for (const [names, isWithin] of [
    [LEAST, (one: number, other: number) => one >= other],
    [MOST, (one: number, other: number) => one <= other],
  ] as const)
    for (const name of names)
      if (
        has(wide, name) &&
        !(has(narrow, name) && isWithin(Number(narrow[name]), Number(wide[name])))
      )
        found.push(
          `${place} has ${name} ${its[name] ?? "no more"}, and had ${old[name] ?? "none"}`,
        );
  const plain = new Set([...Object.keys(old), ...Object.keys(its)]);
  for (const name of [...LEAST, ...MOST, ...JUDGED, ...SILENT]) plain.delete(name);
  for (const name of plain) {
    // Patterns and formats, and what has no rule here. Only to drop one of a request, or to add one
    // to an answer, is safe.
    const isSafe =
      direction === "request" ? !has(its, name) && name !== "default" : !has(old, name);
    if (!isSafe && !same(old[name], its[name])) found.push(`${place} has another ${name}`);
  }
  const required = (json: Json) => list(json.required).map(String);
  for (const [name, field] of entries(old.properties)) {
    if (has(its.properties, name)) found.push(...within(`/${name}`, field, its.properties?.[name]));
    else found.push(`${place}/${name} is gone`);
  }
  for (const name of required(wide)) {
    if (required(narrow).includes(name)) continue;
    found.push(
      `${place}/${name} is ${direction === "request" ? "required" : "not always there"} now`,
    );
  }
  const rest = (json: Json) => json.additionalProperties as unknown;
  if (
    direction === "request" &&
    rest(its) === false &&
    rest(old) !== false &&
    types(old).includes("object")
  )
    found.push(`${place} takes no other fields any more`);
  if (typeof rest(old) === "object")
    found.push(...within("/*", old.additionalProperties, its.additionalProperties));
  if (has(old, "items") || has(its, "items")) found.push(...within("[]", old.items, its.items));
  return found;
}

function resolved(document: Json, schema: Json | undefined): Json {
  const path = schema?.$ref === undefined ? null : String(schema.$ref).replace("#/", "").split("/");
  if (path === null) return (typeof schema === "object" ? schema : {}) as Json;
  return resolved(
    document,
    path.reduce<Json | undefined>((json, name) => json?.[name], document),
  );
}

/** The alternatives of a union; else the schema alone. */
function alternatives(schema: Json): readonly Json[] {
  const { anyOf, oneOf, ...rest } = schema as unknown as {
    anyOf?: readonly Json[];
    oneOf?: readonly Json[];
  };
  const union = anyOf ?? oneOf;
  return union === undefined ? [schema] : union.map((each) => ({ ...rest, ...each }) as Json);
}

const textOf = (schema: Json) => JSON.stringify(schema).slice(0, 160);
