import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..");
const CLIENT = "server/client";
const IMPORT = /(?:from|import)\s*\(?\s*["']([^"']+)["']/g;

/** The TypeScript files of a folder, as paths from the root. */
function filesOf(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => /\.[cm]?tsx?$/.test(name) && !name.includes("node_modules/"))
    .map((name) => join(folder, name));
}

/**
 * Every import in the TypeScript files of a folder, as `file → target`; relative targets as paths
 * from the root.
 */
function importsOf(folder: string): { readonly file: string; readonly target: string }[] {
  return filesOf(folder).flatMap((file) =>
    [...readFileSync(join(ROOT, file), "utf8").matchAll(IMPORT)].map(([, specifier = ""]) => ({
      file,
      target: specifier.startsWith(".")
        ? relative(ROOT, join(ROOT, dirname(file), specifier))
        : specifier,
    })),
  );
}

/** The files that are subpaths of the package, as package.json declares them. */
function declaredSubpaths(): readonly string[] {
  const { exports } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
    readonly exports: Readonly<Record<string, string>>;
  };
  return Object.values(exports).map((path) => path.slice("./".length));
}

/**
 * The rooms of `core`, and the files beside them, with those that each may import, as the two
 * lists of docs/architecture.md have them.
 */
function roomsOfCore(depth: 1 | 2): ReadonlyMap<string, ReadonlySet<string>> {
  const page = readFileSync(join(ROOT, "docs/architecture.md"), "utf8");
  const lists = page.split("\n## The rooms of `core/`")[1]?.split("\n## ")[0] ?? "";
  const rows = [...lists.matchAll(/^- `([a-z0-9/.-]+?)\/?`: [^(]*?(?:\(([^)]*)\))?$(?!\n {2})/gm)];
  return new Map(
    rows
      .filter(([, room = ""]) => room.split("/").length === depth)
      .map(([, room = "", imports = ""]) => [
        room,
        new Set([...imports.matchAll(/`([a-z0-9/.-]+)`/g)].map((m) => m[1] ?? "")),
      ]),
  );
}

/** The room of a file of the core, or the room inside it. A file beside the rooms is its own. */
function roomOf(file: string, depth: 1 | 2): string | null {
  const [core, ...path] = file.split("/");
  if (core !== "core") return null;
  return path.length === 1
    ? file.slice("core/".length)
    : path.slice(0, -1).slice(0, depth).join("/");
}

/** The imports between rooms; between rooms inside one room when `depth` is 2. */
function importsBetween(
  depth: 1 | 2,
): { from: string; to: string; file: string; target: string }[] {
  return importsOf("core").flatMap(({ file, target }) => {
    const [from, to] = [roomOf(file, depth), roomOf(target, depth)];
    if (from === null || to === null || from === to) return [];
    if (depth === 2 && (from.split("/")[0] !== to.split("/")[0] || !from.includes("/"))) return [];
    return [{ from, to, file, target }];
  });
}

/** A path of imports that comes back to where it began; null when there is none. */
function circleIn(arrows: ReadonlyMap<string, readonly string[]>): readonly string[] | null {
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): readonly string[] | null => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    if (done.has(file)) return null;
    for (const target of arrows.get(file) ?? []) {
      const circle = visit(target, [...path, file]);
      if (circle !== null) return circle;
    }
    done.add(file);
    return null;
  };
  for (const file of arrows.keys()) {
    const circle = visit(file, []);
    if (circle !== null) return circle;
  }
  return null;
}

describe("import edges", () => {
  it("make no circle", () => {
    const arrows = new Map<string, string[]>();
    for (const { file, target } of ["core", "server", "scripts", "bench"].flatMap(importsOf)) {
      if (/^(?:core|server|scripts|bench)\//.test(target))
        arrows.set(file, [...(arrows.get(file) ?? []), target]);
    }
    expect(arrows.size).toBeGreaterThan(300);
    expect(
      circleIn(
        new Map([
          ["a", ["b"]],
          ["b", ["c"]],
          ["c", ["b"]],
        ]),
      ),
    ).toEqual(["b", "c", "b"]);
    expect(circleIn(arrows)).toBeNull();
  });

  it.each(["server", "scripts"])(
    "between the rooms of %s make no circle, types counted too",
    (folder) => {
      // A file beside the rooms is a room of its own.
      const roomIn = (path: string) => path.split("/").slice(0, 2).join("/");
      const arrows = new Map<string, string[]>();
      for (const { file, target } of importsOf(folder)) {
        const [from, to] = [roomIn(file), roomIn(target)];
        if (target.startsWith(`${folder}/`) && from !== to)
          arrows.set(from, [...(arrows.get(from) ?? []), to]);
      }
      expect(arrows.size).toBeGreaterThan(5);
      expect(circleIn(arrows)).toBeNull();
    },
  );

  it.each([1, 2] as const)(
    "between the rooms of the core at depth %i are those of docs/architecture.md",
    (depth) => {
      const allowed = roomsOfCore(depth);
      const order = [...allowed.keys()];
      // Everybody may import the files above `store/`, so no row names them.
      const isEverybodys = (room: string) =>
        depth === 1 && room.endsWith(".ts") && order.indexOf(room) < order.indexOf("store");
      const found = importsBetween(depth).filter(({ to }) => !isEverybodys(to));
      expect(found.length).toBeGreaterThan(depth === 1 ? 100 : 5);
      const rooms = new Set(filesOf("core").flatMap((file) => roomOf(file, depth) ?? []));
      expect([...allowed.keys()].sort()).toEqual(
        [...rooms].filter((room) => room.split("/").length === depth).sort(),
      );
      expect(found.filter(({ from, to }) => !allowed.get(from)?.has(to))).toEqual([]);
      const used = new Set(found.map(({ from, to }) => `${from} ${to}`));
      const unused = [...allowed]
        .flatMap(([from, tos]) => [...tos].map((to) => `${from} ${to}`))
        .filter((arrow) => !used.has(arrow));
      expect(unused).toEqual([]);
    },
  );

  it("of the rooms lead down only: a room stands below those that it imports", () => {
    const order = [...roomsOfCore(1).keys()];
    const upward = importsBetween(1).filter(
      ({ from, to }) => order.indexOf(to) >= order.indexOf(from),
    );
    expect(upward).toEqual([]);
  });

  it.each(["server", "scripts"])(
    "of %s lead to rooms that stand above in docs/architecture.md",
    (folder) => {
      const page = readFileSync(join(ROOT, "docs/architecture.md"), "utf8");
      const table = page.split(`\n## The rooms of \`${folder}/\``)[1]?.split("\n## ")[0] ?? "";
      const order = [...table.matchAll(/^- `(\w+)\/`: /gm)].map(([, room = ""]) => room);
      const rooms = readdirSync(join(ROOT, folder), { withFileTypes: true }).filter((entry) =>
        entry.isDirectory(),
      );
      expect(order.toSorted()).toEqual(rooms.map(({ name }) => name).toSorted());
      const place = (path: string) =>
        path.startsWith(`${folder}/`) ? order.indexOf(path.split("/")[1] ?? "") : -1;
      const upward = importsOf(folder).filter(
        ({ file, target }) => place(file) >= 0 && place(target) > place(file),
      );
      expect(upward).toEqual([]);
    },
  );

  it("of the core lead neither to the server, the scripts nor the tests, and to no server framework or toolchain", () => {
    const forbidden =
      /^(?:server|scripts|test|contracts|artifacts)\/|^(?:hardhat|@nomicfoundation\/|fastify|@fastify\/|zod|vitest)/;
    const found = importsOf("core");
    expect(found.length).toBeGreaterThan(100);
    expect(found.filter(({ target }) => forbidden.test(target))).toEqual([]);
  });

  it("of verify lead to byte formats and the protocol only: it shares no computation with the ledger", () => {
    const found = importsOf("core/verify").filter(({ target }) =>
      /^(?!core\/verify\/)/.test(target),
    );
    expect(found.some(({ target }) => target === "core/store/layout.ts")).toBe(true);
    const allowed = /^core\/(?:store|protocol)\/|^core\/(?:errors|model|ports|thread)\.ts$|^node:/;
    expect(found.filter(({ target }) => !allowed.test(target))).toEqual([]);
  });

  it("of the settlement lead to the operator's port, and to no whole engine: its loops can neither mint nor see a tenant", () => {
    const targets = importsOf("core/settlement").map(({ target }) => target);
    expect(targets).toContain("core/operator.ts");
    expect(
      targets.filter((target) => /^core\/(?:engine|index|internal)\.ts$/.test(target)),
    ).toEqual([]);
  });

  it("of the protocol lead to no engine: verifiers use it alone", () => {
    const found = importsOf("core/protocol").filter(({ target }) => target.startsWith("core/"));
    expect(found.length).toBeGreaterThan(0);
    const allowed = /^core\/protocol\/|^core\/(?:errors|model|ports|thread)\.ts$/;
    expect(found.filter(({ target }) => !allowed.test(target))).toEqual([]);
  });

  it("of the server lead into the core by its public surface, and by files that are no entry of the package", () => {
    const found = importsOf("server").filter(
      ({ file, target }) => target.startsWith("core/") && !file.startsWith(CLIENT),
    );
    expect(found.length).toBeGreaterThan(0);
    // own-token.ts stays out of internal.ts, because it loads viem.
    const ours = ["core/basics.ts", "core/internal.ts", "core/l1/own-token.ts"];
    const allowed = new Set([...ours, ...declaredSubpaths()]);
    expect(declaredSubpaths().filter((path) => ours.includes(path))).toEqual([]);
    expect(found.filter(({ target }) => !allowed.has(target))).toEqual([]);
  });

  it("of the client lead to nothing that a browser lacks, nor to the engine", () => {
    const outside = importsOf(CLIENT).filter(({ target }) => !target.startsWith(`${CLIENT}/`));
    expect(new Set(outside.map(({ target }) => target))).toEqual(
      new Set(["core/backoff.ts", "openapi-fetch"]),
    );
    expect(importsOf("core").filter(({ file }) => file === "core/backoff.ts")).toEqual([]);
  });

  it("of the contracts, their tests aside, lead to contracts and OpenZeppelin only", () => {
    const sources = readdirSync(join(ROOT, "contracts"), {
      recursive: true,
      encoding: "utf8",
    }).filter((name) => name.endsWith(".sol") && !name.startsWith("test/"));
    expect(sources.length).toBeGreaterThan(0);
    const targets = sources.flatMap((name) =>
      [
        ...readFileSync(join(ROOT, "contracts", name), "utf8").matchAll(
          /^import[^"']*["']([^"']+)["']/gm,
        ),
      ].map(([, target = ""]) => target),
    );
    expect(
      targets.filter(
        (target) => !target.startsWith(".") && !target.startsWith("@openzeppelin/contracts/"),
      ),
    ).toEqual([]);
  });
});
