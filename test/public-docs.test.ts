import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";

/** A declaration that an entry of the package exports. */
interface Exported {
  readonly file: string;
  readonly name: string;
  readonly kind: string;
  /** The doc comment right before it; empty when there is none. */
  readonly doc: string;
  /** The declaration to its end. */
  readonly text: string;
}

const DECLARATION =
  /^export (?:abstract )?(?:async )?(interface|class|type|function\*?|const) (\w+)/gm;
const FROM = /^export (?:type )?(\*|\{[^}]*\}) from "(\.[^"]+)";/gm;
// A linter comment can stand in between.
const DOC_BEFORE = /\/\*\*(?:(?!\*\/)[\s\S])*\*\/\s*(?:\/\/[^\n]*\n)?$/;

function declarationsOf(file: string): Exported[] {
  const source = readFileSync(file, "utf8");
  return [...source.matchAll(DECLARATION)].map(({ index, 1: kind = "", 2: name = "" }) => ({
    file,
    kind,
    name,
    doc: DOC_BEFORE.exec(source.slice(0, index))?.[0] ?? "",
    text: source.slice(index, source.indexOf("\n}\n", index)),
  }));
}

/** Everything that importing a file gives, followed to where it is declared. */
function exportsOf(file: string): Exported[] {
  const passedOn = [...readFileSync(file, "utf8").matchAll(FROM)].flatMap(
    ([, what = "", path = ""]) => {
      const all = exportsOf(join(dirname(file), path));
      if (what === "*") return all;
      return [...what.matchAll(/(?:type )?(\w+)\s*[,}]/g)].map(([, name]) => {
        const found = all.find((each) => each.name === name);
        if (found === undefined)
          throw new Error(`${file} passes on ${name}, which ${path} does not declare`);
        return found;
      });
    },
  );
  return [...declarationsOf(file), ...passedOn];
}

/**
 * The methods of an interface that no doc comment stands before. A class takes over those of its
 * interface.
 */
function bareMethods({ kind, text }: Exported): string[] {
  const methods = kind === "interface" ? text.matchAll(/(\*\/)?\n {2}(\w+)(?:<[^\n(]*>)?\(/g) : [];
  return [...methods].flatMap(([, doc, name = ""]) => (doc === undefined ? [name] : []));
}

function withoutDoc(exported: readonly Exported[]): string[] {
  return exported.flatMap((each) => {
    const { file, name, doc } = each;
    return [
      ...(doc === "" ? [name] : []),
      ...bareMethods(each).map((method) => `${name}.${method}`),
    ].map((bare) => `${file}: ${bare}`);
  });
}

function withoutExample(exported: readonly Exported[]): string[] {
  return exported
    .filter(({ doc }) => !/@example\n \* \S/.test(doc))
    .map(({ file, name }) => `${file}: ${name}`);
}

const { exports } = JSON.parse(readFileSync("package.json", "utf8")) as {
  exports: Record<string, string>;
};
/** Generated from the OpenAPI document. */
const GENERATED = "server/client/api.ts";

describe("what the package exports", () => {
  it.each(Object.entries(exports))(
    "from %s says what it is, each method of an interface too",
    (_, file) => {
      const exported = exportsOf(file).filter((each) => each.file !== GENERATED);
      expect(exported.length).toBeGreaterThan(4);
      expect(withoutDoc(exported)).toEqual([]);
    },
  );

  it.each(Object.entries(exports))(
    "from %s has an example of each function and class",
    (_, file) => {
      const called = exportsOf(file).filter(
        ({ kind }) => kind === "class" || kind.startsWith("function"),
      );
      expect(called.length).toBeGreaterThan(0);
      expect(withoutExample(called)).toEqual([]);
    },
  );

  it("as a noun of the engine has an example of its own", () => {
    const exported = exportsOf("core/index.ts");
    const engine = exported.filter(({ name }) => name === "Engine" || name === "SettlementPort");
    const nouns = [
      ...engine
        .map(({ text }) => text)
        .join("")
        .matchAll(/\n {2}readonly \w+: ([A-Z]\w+);/g),
    ]
      .flatMap(
        ([, type]) =>
          exported.find(({ name, kind }) => name === type && kind === "interface") ?? [],
      )
      .filter(({ text }) => /\n {2}\w+\(/.test(text));
    expect(nouns.length).toBeGreaterThan(10);
    expect(withoutExample(nouns)).toEqual([]);
  });

  it("is found bare when it is", () => {
    const bare: Exported = {
      file: "a.ts",
      name: "Bare",
      kind: "interface",
      doc: "",
      text: "{\n  /** Has one. */\n  a(): 1;\n  b(): 2;",
    };
    expect(withoutDoc([bare])).toEqual(["a.ts: Bare", "a.ts: Bare.b"]);
    expect(
      withoutExample([bare, { ...bare, doc: "/**\n * Has one.\n *\n * @example\n * a();\n */" }]),
    ).toEqual(["a.ts: Bare"]);
  });
});
