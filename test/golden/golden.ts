import { fileURLToPath } from "node:url";
import { attestationRequestTypedData } from "../../core/guards/committee/request.ts";
import { consentRequestTypedData } from "../../core/guards/issuer/remote-issuer.ts";
import { consentTypedData } from "../../core/protocol/consent.ts";
import {
  sessionEndTypedData,
  sessionTypedData,
  transferBatchTypedData,
  transfersTypedData,
} from "../../core/protocol/transfer.ts";
import {
  claimTypedData,
  mirroredStateTypedData,
  validiumBatchTypedData,
  withdrawalListTypedData,
  withdrawalTypedData,
} from "../../core/protocol/typed-data.ts";
import packageJson from "../../package.json" with { type: "json" };
import { openApiDocument } from "../../server/routes/api/openapi.ts";
import { ENDPOINTS } from "../../server/routes/index.ts";

/** The files that 1.0 made. */
export const GOLDEN = fileURLToPath(new URL("./1.0/", import.meta.url));

/** What is signed with these names in `messages.json`. */
export const MESSAGES = {
  validiumBatch: validiumBatchTypedData,
  transferBatch: transferBatchTypedData,
  attestationRequest: attestationRequestTypedData,
  consent: consentTypedData,
  consentRequest: consentRequestTypedData,
  mirroredState: mirroredStateTypedData,
  withdrawal: withdrawalTypedData,
  withdrawalList: withdrawalListTypedData,
  claim: claimTypedData,
  transfers: transfersTypedData,
  session: sessionTypedData,
  sessionEnd: sessionEndTypedData,
};

/** Of the deliveries in `deliveries.json`: the new one and the old one of a rotation. */
export const WEBHOOK_SECRETS = ["new", "old"].map((word) => `whsec_${Buffer.from(word.repeat(8)).toString("base64")}`);

/** JSON in which a bigint is text such as "12n". */
export function textOf(value: unknown): string {
  const plain = (_: string, each: unknown) => (typeof each === "bigint" ? `${each}n` : each);
  return `${JSON.stringify(value, plain, 1)}\n`;
}

/** A value as {@link textOf} wrote it. */
export function valueFrom<T>(text: string): T {
  return JSON.parse(text, (_, each) =>
    typeof each === "string" && /^-?\d+n$/.test(each) ? BigInt(each.slice(0, -1)) : each,
  );
}

/** What can be imported from each subpath of the package, types apart. */
export async function exportedNames(): Promise<Record<string, string[]>> {
  const names: Record<string, string[]> = {};
  for (const [path, source] of Object.entries(packageJson.exports)) {
    names[path] = Object.keys(
      (await import(/* @vite-ignore */ new URL(`../../${source}`, import.meta.url).href)) as object,
    ).sort();
  }
  return names;
}

/** The OpenAPI document of this version, without errors and texts for people. */
export function httpDocument(): Json {
  const kept = (name: string, each: unknown) =>
    /^([45]\d\d|examples?)$/.test(name) || (/^(description|summary)$/.test(name) && typeof each === "string")
      ? undefined
      : each;
  return JSON.parse(JSON.stringify(openApiDocument(ENDPOINTS, packageJson.version, {}), kept));
}

const textsOf = (list: Json | undefined): readonly string[] => (list ?? []) as unknown as string[];

type Json = { readonly [key: string]: Json } & readonly Json[];

/**
 * What a client of the old OpenAPI document would notice: a route, a field of an answer or an accepted value that is
 * gone, and a request field that is required now.
 */
export function breaks(before: Json, now: Json): string[] {
  const found: string[] = [];
  const resolved = (document: Json, schema: Json | undefined): Json =>
    schema?.$ref === undefined
      ? (schema ?? ({} as Json))
      : resolved(document, document.components?.schemas?.[String(schema.$ref).split("/").at(-1) ?? ""]);
  const compare = (place: string, one: Json | undefined, other: Json | undefined, isAnswer: boolean, depth = 0) => {
    const [old, fresh] = [resolved(before, one), resolved(now, other)];
    if (depth > 12) return;
    for (const [name, field] of Object.entries(old.properties ?? {})) {
      const its = fresh.properties?.[name];
      if (its === undefined && fresh.anyOf === undefined && fresh.oneOf === undefined)
        found.push(`${place}/${name} is gone`);
      else compare(`${place}/${name}`, field as Json, its, isAnswer, depth + 1);
    }
    const [was, is] = [textsOf(old.required), textsOf(fresh.required)];
    const [least, most] = isAnswer ? [was, is] : [is, was];
    for (const name of least.filter((each) => !most.includes(each)))
      found.push(`${place}/${name} is ${isAnswer ? "not always there" : "required"} now`);
    if (!isAnswer && fresh.enum !== undefined)
      for (const value of textsOf(old.enum).filter((each) => !textsOf(fresh.enum).includes(each)))
        found.push(`${place} does not take ${value} any more`);
    if (old.items !== undefined) compare(`${place}[]`, old.items, fresh.items, isAnswer, depth + 1);
  };
  for (const [path, methods] of Object.entries(before.paths ?? {})) {
    for (const [method, one] of Object.entries(methods as Json)) {
      const other = now.paths?.[path]?.[method];
      const place = `${method.toUpperCase()} ${path}`;
      if (other === undefined) {
        found.push(`${place} is gone`);
        continue;
      }
      const [were, are] = [one, other].map(
        ({ parameters }: Json) => new Map((parameters ?? []).map((each) => [`${each.in} ${each.name}`, each])),
      );
      for (const [name, parameter] of were ?? []) {
        if (are?.has(name)) compare(`${place} ${name}`, parameter.schema, are.get(name)?.schema, false);
        else found.push(`${place} takes no ${name} any more`);
      }
      for (const [name, { required }] of are ?? [])
        if (required && !were?.get(name)?.required) found.push(`${place} requires ${name} now`);
      for (const [type, { schema }] of Object.entries((one.requestBody?.content ?? {}) as Json))
        compare(`${place} body`, schema, other.requestBody?.content?.[type]?.schema, false);
      for (const [status, response] of Object.entries((one.responses ?? {}) as Json)) {
        const its = other.responses?.[status];
        if (its === undefined && status.startsWith("2")) found.push(`${place} answers no ${status} any more`);
        for (const [type, { schema }] of Object.entries((response.content ?? {}) as Json))
          if (its !== undefined) compare(`${place} ${status}`, schema, its.content?.[type]?.schema, true);
      }
    }
  }
  return found;
}
