import { readFile } from "node:fs/promises";
import { stripTypeScriptTypes } from "node:module";
import { fileURLToPath } from "node:url";

/** The folder that holds `core` and `server`: the repository, or the compiled package. */
const ROOT = new URL("../../", import.meta.url);

/** Static imports and re-exports as tools write them: at the start of a line. Examples in comments are not. */
const SPECIFIER = /^((?:import|export)\s(?:[\w$*{},\s]*\sfrom\s)?\s*["'])([^"']+)(["'])/gm;

/** One ES module as a browser takes it. */
export interface BrowserModule {
  /** Address relative to the folder that the modules are served from, such as `core/protocol/proof.ts`. */
  readonly path: string;
  readonly source: string;
}

/**
 * A module and all that it imports, ready for browsers: without a bundler, types stripped where the sources are TypeScript, and the
 * names of packages replaced by addresses. Comments and line numbers stay, so that visitors read what was written.
 *
 * @param entry - path below the root, with the extension of this very file, `.ts` in the repository and `.js` in the package
 */
export async function browserModules(entry: string): Promise<readonly BrowserModule[]> {
  const found = new Map<string, string>();
  const waiting = [new URL(entry, ROOT).href];
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (found.has(file)) continue;
    const text = await readFile(fileURLToPath(file), "utf8");
    const script = file.endsWith(".ts") ? stripTypeScriptTypes(text) : text;
    const importer = file;
    const source = script.replaceAll(SPECIFIER, (_, before: string, specifier: string, after: string) => {
      const target = specifier.startsWith(".") ? new URL(specifier, importer).href : import.meta.resolve(specifier);
      waiting.push(target);
      return before + addressFrom(pathOf(importer), pathOf(target)) + after;
    });
    found.set(file, source);
  }
  return [...found].map(([file, source]) => ({ path: pathOf(file), source }));
}

/** Where a file is served: packages by their name, wherever they are installed. */
function pathOf(file: string): string {
  const own = file.startsWith(ROOT.href) ? file.slice(ROOT.href.length) : undefined;
  return own?.startsWith("node_modules/") === false ? own : file.slice(file.lastIndexOf("/node_modules/") + 1);
}

/** The relative address that leads from one served file to another. */
function addressFrom(importer: string, target: string): string {
  return "../"
    .repeat(importer.split("/").length - 1)
    .concat(target)
    .replace(/^(?!\.)/, "./");
}
