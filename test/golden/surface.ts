import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import { toJSONSchema } from "zod";
import { CONTRACT_NAMES, readArtifact } from "../../core/l1/artifact.ts";
import { EVENT_TYPES } from "../../core/store/event-record.ts";
import packageJson from "../../package.json" with { type: "json" };
import { programOf } from "../../scripts/commands/program.ts";
import { STATUS_OF } from "../../server/http/errors.ts";
import * as processes from "../../server/process/settings/process-settings.ts";
import { settings } from "../../server/process/settings/settings.ts";

/** Programs, scripts and operators rely on this: each list by name, each thing with what it is. */
export interface Surface {
  /** Code of each error → its HTTP status. */
  readonly errors: Readonly<Record<string, string>>;
  readonly events: Readonly<Record<string, string>>;
  /** Command, or command and option → how it is given. */
  readonly commands: Readonly<Record<string, string>>;
  /** `contract: item` → what it takes, gives and may change. */
  readonly abi: Readonly<Record<string, string>>;
  /** Schemas of the settings of each process. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** `subpath name` → the lines of its declaration. */
  readonly types: Readonly<Record<string, readonly string[]>>;
}

export async function surface(): Promise<Surface> {
  const named = (names: Iterable<string>) =>
    Object.fromEntries([...names].map((name) => [name, "exists"]));
  return {
    errors: Object.fromEntries(
      Object.entries(STATUS_OF).map(([code, status]) => [code, `${status}`]),
    ),
    events: named(EVENT_TYPES),
    commands: Object.fromEntries(commands(await programOf(), "mintmark")),
    abi: Object.fromEntries(CONTRACT_NAMES.flatMap(abi)),
    settings: settingsSchemas(),
    types: declarations(),
  };
}

/** The names of `before` that are gone or have changed. */
export function lost(
  before: Readonly<Record<string, unknown>>,
  now: Readonly<Record<string, unknown>>,
): string[] {
  return Object.entries(before).flatMap(([name, was]) => {
    const is = now[name];
    if (is === undefined) return [`${name} is gone`];
    if (!Array.isArray(was)) return is === was ? [] : [`${name} is ${is} now, not ${was}`];
    return changedLines(name, was as string[], is as string[]);
  });
}

/** A declaration may get lines; but a new field of what the caller gives is optional. */
function changedLines(name: string, was: readonly string[], is: readonly string[]): string[] {
  const left = [...is];
  const missing = was.filter((line) => {
    const at = left.indexOf(line);
    if (at >= 0) left.splice(at, 1);
    return at < 0;
  });
  const required = /(Options|Request|Config|Settings|Upload)$/.test(name)
    ? left.filter((line) => /^ {4}(readonly )?\w+[:(]/.test(line))
    : [];
  return [
    ...missing.map((line) => `${name}: ${line}`),
    ...required.map((line) => `${name} requires ${line}`),
  ];
}

function commands(command: Command, path: string): [string, string][] {
  const taken = command.registeredArguments.map(
    (each) => `${each.required}${each.variadic} ${each.name()}`,
  );
  const needed = command.options
    .filter(({ mandatory }) => mandatory)
    .map(({ flags }) => `requires ${flags}`);
  const own = command.options.map(({ flags, defaultValue, argChoices }): [string, string] => [
    `${path} ${/--[\w-]+/.exec(flags)?.[0] ?? flags}`,
    `${flags} ${JSON.stringify([defaultValue, argChoices])}`,
  ]);
  const under = command.commands.flatMap((each) => commands(each, `${path} ${each.name()}`));
  return [[path, [...taken, ...needed].join(", ")], ...own, ...under];
}

interface Parameter {
  readonly type: string;
  readonly name?: string;
  readonly indexed?: boolean;
  readonly components?: readonly Parameter[];
}

function abi(contract: (typeof CONTRACT_NAMES)[number]): [string, string][] {
  const typeOf = ({ type, components }: Parameter): string =>
    components === undefined
      ? type
      : `(${components.map(typeOf).join()})${type.slice("tuple".length)}`;
  return readArtifact(contract).abi.map((item) => {
    const {
      type,
      name = "",
      inputs = [],
      outputs = [],
      stateMutability = "",
      anonymous,
    } = item as unknown as { [field: string]: never } & {
      inputs?: readonly Parameter[];
      outputs?: readonly Parameter[];
    };
    const indexed = inputs.map((each) => (each.indexed ? "indexed" : ""));
    const rest = [
      stateMutability,
      anonymous ?? "",
      outputs.map(typeOf),
      indexed,
      inputs.map((each) => each.name),
    ];
    return [`${contract} ${type} ${name}(${inputs.map(typeOf).join()})`, JSON.stringify(rest)];
  });
}

function settingsSchemas(): Record<string, unknown> {
  const all = Object.entries({ settings, ...processes }).filter(
    ([, each]) => typeof each === "object" && "_zod" in each,
  );
  return Object.fromEntries(
    all.map(([name, schema]) => {
      const json = toJSONSchema(schema as never, { io: "input", unrepresentable: "any" });
      return [
        name,
        JSON.parse(JSON.stringify(json, (key, each) => (key === "description" ? undefined : each))),
      ];
    }),
  );
}

/** The declarations of all that can be imported from the package, without comments. */
function declarations(): Record<string, string[]> {
  const root = fileURLToPath(new URL("../../", import.meta.url));
  const folder = mkdtempSync(join(tmpdir(), "mintmark-types-"));
  try {
    const emit = [
      "--noCheck",
      "--declaration",
      "--emitDeclarationOnly",
      "--sourceMap",
      "false",
      "--outDir",
      folder,
    ];
    const args = [
      `${root}node_modules/typescript/bin/tsc`,
      "-p",
      `${root}tsconfig.build.json`,
      ...emit,
    ];
    // Names outside of core and server that it lacks are no matter here; a file that is missing
    // ends this anyway.
    spawnSync(process.execPath, args, { cwd: root, stdio: ["ignore", 2, 2] });
    return Object.fromEntries(
      Object.entries(packageJson.exports).flatMap(([path, source]) =>
        [...exportsOf(join(folder, source.replace(/ts$/, "d.ts")))]
          // The contracts' interfaces have a list of their own.
          .filter(([name]) => !name.endsWith("Abi"))
          .map(([name, lines]) => [`${path} ${name}`, lines]),
      ),
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const DECLARES =
  /^(?:export )?(?:default )?(?:declare )?(?:abstract )?(?:interface|type|const|let|function|class|enum|namespace) (\w+)/;

/** The exports of a declaration file: name → the lines of its declaration. */
function exportsOf(
  file: string,
  known = new Map<string, Map<string, string[]>>(),
): Map<string, string[]> {
  const found = known.get(file) ?? new Map<string, string[]>();
  if (known.has(file)) return found;
  known.set(file, found);
  const text = readFileSync(file, "utf8").replaceAll(/\/\*[\s\S]*?\*\//g, "");
  const statements = text.split(/\n(?=\S)(?![})\]])/).map((each) => each.trimEnd());
  const from = (specifier: string) =>
    specifier.startsWith(".")
      ? exportsOf(join(dirname(file), specifier.replace(/\.ts$/, ".d.ts")), known)
      : null;
  const local = new Map<string, string[]>();
  const lent = new Map<string, readonly [source: string, name: string]>();
  const names = (braces: string) =>
    [...braces.matchAll(/(?:type )?(\w+)(?: as (\w+))?/g)].map(
      ([, name = "", as = name]) => [name, as] as const,
    );
  for (const statement of statements) {
    const [, imported, source = ""] =
      /^import (?:type )?\{([^}]*)\} from "([^"]+)"/.exec(statement) ?? [];
    for (const [name, as] of names(imported?.replaceAll("type ", "") ?? ""))
      lent.set(as, [source, name]);
    const [, name] = DECLARES.exec(statement) ?? [];
    if (name === undefined) continue;
    const lines = statement.split("\n").filter((line) => line.trim() !== "");
    const all = [...(local.get(name) ?? []), ...lines];
    local.set(name, all);
    if (statement.startsWith("export ")) found.set(name, all);
  }
  for (const statement of statements) {
    const [, star] = /^export (?:type )?\* from "([^"]+)"/.exec(statement) ?? [];
    if (star !== undefined)
      for (const [name, lines] of from(star) ?? [[star, ["external"]]]) found.set(name, lines);
    const [, braces, source] =
      /^export (?:type )?\{([^}]*)\}(?: from "([^"]+)")?/.exec(statement) ?? [];
    if (braces === undefined) continue;
    for (const [one, as] of names(braces.replaceAll("type ", ""))) {
      const [origin, name] = source === undefined ? (lent.get(one) ?? [null, one]) : [source, one];
      const its = origin === null ? local : from(origin);
      found.set(as, its === null ? [`of ${origin}`] : (its.get(name) ?? ["unknown"]));
    }
  }
  return found;
}
