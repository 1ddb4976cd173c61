import { resolve } from "node:path";
import { type Command, Option } from "commander";
import { z } from "zod";
import type { Operation } from "../../server/process/operator/operation.ts";
import { OPERATIONS, requireInput } from "../../server/process/operator/operations.ts";
import { requiredSecret, secret, textOf } from "./arguments.ts";
import { command, meaningOf } from "./command.ts";
import { operateOn, storeOf } from "./engine.ts";
import { writeNamed } from "./output.ts";

/** Option names that differ from their field without `Id`, `Address` or `At`. */
const NAMES: Readonly<Record<string, string>> = {
  dataAvailabilityMode: "mode",
  mintQuota: "quota",
  mintingBlobScheme: "scheme",
  firstTokenId: "first-id",
  supplyCap: "cap",
};

/**
 * Completes a command that is an operation, or a group of them. Arguments, options and help derive
 * from the operation's schema.
 */
export function operationsOf(added: Command): void {
  const single = OPERATIONS[added.name()];
  if (single !== undefined) completeOperation(added, added.name(), single);
  for (const [name, operation] of Object.entries(OPERATIONS)) {
    const [group = "", own] = name.split(".");
    if (group !== added.name() || own === undefined) continue;
    const places = (operation.args ?? []).map((arg) => {
      const schema = operation.input.shape[arg] as z.ZodType;
      return `<${fieldOf(group, arg, schema).flag}>`;
    });
    const child = added.command([own, ...places].join(" "));
    completeOperation(child.description(operation.summary ?? ""), name, operation);
  }
}

function completeOperation(added: Command, path: string, operation: Operation): void {
  const { args = [], columns, file } = operation;
  const words = path.split(".");
  const fields = Object.entries(operation.input.shape).map(([name, schema]) =>
    fieldOf(words[0] ?? "", name, schema),
  );
  // Replaces field names in a description by their options.
  const spoken = (text: string) =>
    text.replaceAll(/`(\w+)`/g, (all, name) => {
      const other = fields.find((field) => field.name === name);
      return other === undefined ? all : `--${other.flag}`;
    });
  const options = fields.filter(({ name }) => !args.includes(name));
  const secrets = options.filter(({ secret }) => secret !== undefined);
  command({
    examples: operation.examples.map((rest) => `${words.join(" ")} ${rest}`.trim()),
    flags: Object.fromEntries(
      fields.map(({ name, flag, secret }) => [
        name,
        args.includes(name) ? `<${flag}>` : (secret ?? `--${flag}`),
      ]),
    ),
    columns,
    failed: operation.failed ?? (() => null),
    async work({ options: given, args: places, ...running }) {
      const store = storeOf(textOf(given.store));
      const input: Record<string, unknown> = {};
      for (const field of fields) {
        const place = args.indexOf(field.name);
        const text = place < 0 ? given[optionOf(field).attributeName()] : places[place];
        if (text !== undefined)
          input[field.name] = typeof text === "string" ? inputOf(field, text) : text;
      }
      const names = secrets.map(({ name }) => name);
      requireInput(operation, input, names);
      for (const { name, isRequired, secret: variable = "" } of secrets)
        input[name] = await (isRequired ? requiredSecret : secret)(
          variable,
          given.keyStdin === true,
        );
      const answer = await operateOn(store, path, input, running);
      return file === undefined ? answer : written(answer, file, String(given.output));
    },
  })(added);
  for (const field of options)
    added.addOption(optionOf({ ...field, description: meaningOf(spoken(field.description)) }));
  if (file !== undefined) added.requiredOption("--output <file>", "the file to write");
  added.option("--store <folder>", "the store's folder (MINTMARK_STORE)");
}

type Field = ReturnType<typeof fieldOf>;

function fieldOf(group: string, name: string, schema: z.core.$ZodType) {
  const layers = layersOf(schema as z.ZodType);
  const [inner] = layers;
  const {
    description: about = "",
    ...said
  }: { description?: string; env?: string; secret?: string; isPath?: boolean } = Object.assign(
    {},
    ...layers.map((layer) => layer.meta()),
  );
  const kinds = layers.map(({ def }) => def.type);
  const isRequired = !(schema as z.ZodType).safeParse(undefined).success;
  // Where an application is created, its id is `--id`.
  const flag = name === `${group.replace(/s$/, "")}Id` && !isRequired ? "id" : flagOf(name);
  const choices = inner instanceof z.ZodEnum ? ` (${inner.options.join(", ")})` : "";
  return {
    ...{
      ...said,
      name,
      flag,
      kind: inner.def.type,
      isRequired,
      isNullable: kinds.includes("nullable"),
    },
    description: `${about}${choices}`.trim(),
    /** The placeholder of its value in the help. */
    value: inner instanceof z.ZodGUID ? "uuid" : "value",
    /** Whether its default is false, rather than unchanged. */
    isSwitch: kinds.includes("default") && inner.def.type === "boolean",
  };
}

/** A schema and those inside of it, the innermost first. */
function layersOf(schema: z.ZodType): [inner: z.ZodType, ...z.ZodType[]] {
  const { innerType, in: from } = schema.def as { innerType?: z.ZodType; in?: z.ZodType };
  const inner = innerType ?? from;
  return inner === undefined ? [schema] : [...layersOf(inner), schema];
}

function flagOf(name: string): string {
  const plain = NAMES[name] ?? name.replace(/(?:Id|Address|At)$/, "");
  return plain.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

function optionOf({ flag, value, description, isRequired, isSwitch, env, secret }: Field): Option {
  if (secret !== undefined)
    return new Option("--key-stdin", `read ${description} from standard input (else ${secret})`);
  if (isSwitch) return new Option(`--${flag}`, description);
  const option = new Option(`--${flag} <${value}>`, description).makeOptionMandatory(isRequired);
  return env === undefined ? option : option.env(env);
}

/** The text as the schema's input. Invalid text stays text, and the schema reports it. */
function inputOf({ kind, isNullable, isPath }: Field, text: string): unknown {
  if (isNullable && text === "none") return null;
  if (isPath === true) return resolve(text);
  if (kind === "array") return text.split(",").flatMap((one) => one.trim() || []);
  if (kind === "number") return Number(text);
  if (kind === "boolean") return text === "true" || (text === "false" ? false : text);
  return text;
}

async function written(answer: unknown, field: string, file: string): Promise<unknown> {
  const { [field]: hex, ...rest } = answer as Record<string, unknown>;
  const bytes = Buffer.from(String(hex), "hex");
  await writeNamed(file, bytes);
  return { ...rest, bytes: bytes.length, file };
}
