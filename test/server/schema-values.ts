import fc from "fast-check";
import { hostileNumber, hostileText } from "./hostile-values.ts";

/** A JSON schema as far as the OpenAPI document uses it. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly format?: string;
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly items?: Schema;
  readonly minItems?: number;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
}

/** One operation of the document. */
export interface Operation {
  readonly method: string;
  readonly path: string;
  readonly parameters: readonly {
    readonly name: string;
    readonly in: string;
    readonly required: boolean;
    readonly schema: Schema;
  }[];
  readonly body: { readonly type: string; readonly schema: Schema } | null;
}

/** The fuzzer reads this of an OpenAPI document. */
export interface Document {
  readonly paths: Readonly<
    Record<
      string,
      Readonly<
        Record<
          string,
          {
            readonly parameters: Operation["parameters"];
            readonly requestBody?: {
              readonly content: Readonly<Record<string, { readonly schema: Schema }>>;
            };
          }
        >
      >
    >
  >;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

export function operationsOf({ paths }: Document): Operation[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { parameters, requestBody }]) => {
      const [body] = Object.entries(requestBody?.content ?? {});
      return {
        method: method.toUpperCase(),
        path,
        parameters,
        body: body ? { type: body[0], schema: body[1].schema } : null,
      };
    }),
  );
}

/** One of so many values at one place is something else than the schema says. */
const ONE_IN = 16;
const LONGEST_LIST = 4;

/**
 * Values of a document's schemas: valid, nearly valid, and hostile, field by field.
 *
 * @param known - values that mean something to the server under test, by the name of their field;
 *   taken half of the time
 */
export class SchemaValues {
  readonly #schemas: Document["components"]["schemas"];
  readonly #known: Readonly<Record<string, fc.Arbitrary<unknown>>>;

  constructor({ components }: Document, known: Readonly<Record<string, fc.Arbitrary<unknown>>>) {
    this.#schemas = components.schemas;
    this.#known = known;
  }

  /** A value for a place of this name, which mostly is what the schema says. */
  of(schema: Schema, name = ""): fc.Arbitrary<unknown> {
    const known = this.#known[name];
    const right = known === undefined ? this.#right(schema) : fc.oneof(known, this.#right(schema));
    return fc.oneof(
      { weight: ONE_IN - 1, arbitrary: right },
      { weight: 1, arbitrary: fc.oneof(hostileText, hostileNumber, fc.jsonValue({ maxDepth: 3 })) },
    );
  }

  #right(schema: Schema): fc.Arbitrary<unknown> {
    const { $ref, anyOf, oneOf, enum: values, type, items = {}, minItems = 0 } = schema;
    if ($ref !== undefined) return this.#right(this.#schemas[$ref.split("/").at(-1) ?? ""] ?? {});
    const choices = anyOf ?? oneOf;
    if (choices !== undefined) return fc.oneof(...choices.map((choice) => this.#right(choice)));
    if ("const" in schema) return fc.constant(schema.const);
    if (values !== undefined) return fc.constantFrom(...values);
    if (type === "string") return textOf(schema);
    if (type === "boolean") return fc.boolean();
    if (type === "integer" || type === "number") {
      return fc.integer({
        min: Math.max(schema.minimum ?? 0, -(2 ** 31)),
        max: Math.min(schema.maximum ?? 1000, 2 ** 31 - 1),
      });
    }
    if (type === "array")
      return fc.array(this.of(items), { minLength: minItems, maxLength: minItems + LONGEST_LIST });
    if (type === "object") return this.#object(schema);
    return fc.jsonValue({ maxDepth: 3 });
  }

  #object({ properties = {}, required = [] }: Schema): fc.Arbitrary<unknown> {
    const fields = Object.fromEntries(
      Object.entries(properties).map(([name, field]) => [name, this.of(field, name)]),
    );
    const right = fc.record(fields, { requiredKeys: [...required] });
    const strange = fc.record({
      fields: right,
      name: hostileText,
      value: fc.jsonValue({ maxDepth: 2 }),
      missing: fc.boolean(),
    });
    return fc.oneof(
      { weight: ONE_IN - 1, arbitrary: right },
      {
        weight: 1,
        arbitrary: strange.map(({ fields: { ...rest }, name, value, missing }) => {
          if (missing) delete rest[Object.keys(rest)[0] ?? ""];
          return { ...rest, [name]: value };
        }),
      },
    );
  }
}

function textOf({ format, pattern, minLength = 0, maxLength = 40 }: Schema): fc.Arbitrary<string> {
  if (format === "uuid" || format === "guid") return fc.uuid();
  if (format === "date-time")
    return fc.date({ noInvalidDate: true }).map((date) => date.toISOString());
  // The generator of texts for patterns knows no look-ahead; without it a text is at worst nearly
  // right.
  if (pattern !== undefined)
    return fc.stringMatching(new RegExp(pattern.replaceAll(/\(\?[=!][^)]*\)/g, "")));
  return fc.string({ minLength, maxLength: Math.max(minLength, Math.min(maxLength, 60)) });
}
