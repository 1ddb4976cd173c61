import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { join, relative } from "node:path";
import { build } from "esbuild";

const NODE_MODULES = new URL("../../node_modules/", import.meta.url).pathname;
const IMPORT = /(\bfrom |\bimport\()"([^".][^"]*)"/g;
/** Builds the pages' scripts in the repository. The package has them built. */
const REPOSITORY_ONLY = "esbuild";
/** CommonJS libraries expect these names in a module. */
const COMMON_JS = `import { createRequire } from "node:module";
const require = createRequire(import.meta.url), { filename: __filename, dirname: __dirname } = import.meta;`;

/**
 * Puts each library that the compiled files import, and that nobody installs with the package, into
 * `libraries/`: one file each, with the licences of what it holds. So an embedder of the core does
 * not install what only the server needs.
 */
export async function bundleLibraries(dist: string, installed: readonly string[]): Promise<void> {
  const found = new Set<string>();
  const isInstalled = (name: string) =>
    installed.some((own) => name === own || name.startsWith(`${own}/`));
  for (const file of compiledFiles(dist)) {
    const code = readFileSync(file, "utf8");
    const bundled = code.replace(IMPORT, (whole: string, before: string, name: string) => {
      if (name === REPOSITORY_ONLY || isBuiltin(name) || isInstalled(name)) return whole;
      found.add(name);
      const path = relative(join(file, ".."), `${dist}/libraries/${name}.js`);
      return `${before}"${path.startsWith(".") ? path : `./${path}`}"`;
    });
    if (bundled !== code) writeFileSync(file, bundled);
  }
  mkdirSync(`${dist}/libraries`);
  for (const name of found) await bundleLibrary(name, `${dist}/libraries`, installed);
}

/** Leaves out the pages' scripts, which have their libraries inside. */
function compiledFiles(dist: string): string[] {
  const files = readdirSync(dist, { recursive: true, encoding: "utf8" });
  const compiled = files.filter((file) => file.endsWith(".js") && !/pages\/[^/]+\/./.test(file));
  return compiled.map((file) => join(dist, file));
}

async function bundleLibrary(
  name: string,
  folder: string,
  installed: readonly string[],
): Promise<void> {
  // Named one by one, because a CommonJS library has no names that a bundler could see.
  const names = Object.keys((await import(name)) as object).filter(
    (exported) => exported !== "module.exports",
  );
  const { metafile } = await build({
    stdin: {
      contents: `export { ${names.join(", ")} } from "${name}";`,
      resolveDir: NODE_MODULES,
      sourcefile: "../all.mjs",
    },
    outfile: `${folder}/${name}.js`,
    bundle: true,
    metafile: true,
    format: "esm",
    platform: "node",
    target: "node24",
    minify: true,
    keepNames: true,
    banner: { js: COMMON_JS },
    // Parts that these libraries load only where somebody has installed them.
    external: ["pg-native", "pino-pretty", ...installed],
    logLevel: "warning",
  });
  const isPackage = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/;
  const packages = new Set(
    Object.keys(metafile.inputs).flatMap((input) => isPackage.exec(input) ?? []),
  );
  const licences = Array.from(
    packages,
    (at) => `${at.replace(/^.*node_modules\//, "")}\n\n${licenceOf(at)}`,
  );
  writeFileSync(`${folder}/${name}.LICENCES.txt`, licences.join("\n\n"));
}

function licenceOf(folder: string): string {
  const file = existsSync(folder)
    ? readdirSync(folder).find((name) => /^licen[cs]e/i.test(name))
    : undefined;
  if (file !== undefined) return readFileSync(join(folder, file), "utf8");
  const { license, author } = JSON.parse(
    readFileSync(join(folder, "package.json"), "utf8"),
  ) as Record<string, unknown>;
  return `${String(license)}, ${JSON.stringify(author)}`;
}
