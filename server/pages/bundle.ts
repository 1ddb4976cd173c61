import { readdir, readFile } from "node:fs/promises";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import type { BuildOptions, Plugin } from "esbuild";

/** The folder that holds `core` and `server`. */
const ROOT = new URL("../../", import.meta.url);

export const SCRIPTS = ["claim", "console", "exit", "explorer", "reference"] as const;

/** The page's scripts by the names of their files. */
export type Scripts = ReadonlyMap<string, Buffer>;

const JSX = { jsx: "automatic", jsxImportSource: "preact" } as const;

/**
 * Makes libraries, pages and the sending of transactions small, in scripts that keep the rest of
 * the core readable, because they check proofs with it.
 */
const minifyOthers: Plugin = {
  name: "minify-others",
  setup({ onLoad, esbuild }) {
    const filter =
      /node_modules\/.*\.m?js$|\/(?:server\/(?:client|pages)|core\/(?:exit|l1))\/.*\.tsx?$/;
    onLoad({ filter }, async ({ path }) => {
      const options = {
        minify: true,
        format: "esm",
        loader: path.endsWith("s") ? "ts" : "tsx",
        ...JSX,
      } as const;
      const { code } = await esbuild.transform(await readFile(path, "utf8"), options);
      return { contents: code, loader: "js" };
    });
  },
};

/** viem's code for contracts that nobody has deployed. The pages call deployed ones only. */
const noUndeployed: Plugin = {
  name: "no-undeployed",
  setup({ onLoad }) {
    onLoad({ filter: /viem\/_esm\/constants\/contracts\.js$/ }, async ({ path }) => {
      return {
        contents: (await readFile(path, "utf8")).replaceAll(/0x[0-9a-f]{200,}/g, "0x"),
        loader: "js",
      };
    });
  },
};

/**
 * The build of a page's scripts, with the same bytes for the same sources; readable where it checks
 * proofs. The explorer loads `withdraw.js` when an owner sends a transaction, and both share the
 * other files.
 */
function bundleOptions(page: (typeof SCRIPTS)[number]): BuildOptions & { readonly write: false } {
  // Visitors read the explorer's script as it is served; the others are mostly libraries.
  const isMinified = page !== "explorer";
  const entries = page === "explorer" ? [page, "withdraw"] : [page];
  return {
    absWorkingDir: fileURLToPath(ROOT),
    entryPoints: Object.fromEntries(entries.map((name) => [name, `server/pages/${name}/main.tsx`])),
    outdir: "scripts",
    splitting: page === "explorer",
    chunkNames: "[name]-[hash]",
    ...JSX,
    bundle: true,
    // Fetched by the browser, when it is needed.
    external: ["/explorer/withdraw.js"],
    write: false,
    minify: isMinified,
    plugins: [noUndeployed, ...(isMinified ? [] : [minifyOthers])],
    format: "esm",
    platform: "browser",
    target: "es2022",
    charset: "utf8",
    logLevel: "silent",
  };
}

export const chartStyle = import.meta.url.endsWith(".js")
  ? new URL("console/uPlot.css", import.meta.url)
  : new URL("./uPlot.min.css", import.meta.resolve("uplot"));

/**
 * A page's scripts with all their imports. The package contains them; in the repository they are
 * built at first use.
 */
export async function pageScripts(page: (typeof SCRIPTS)[number]): Promise<Scripts> {
  if (import.meta.url.endsWith(".js")) {
    const folder = new URL(`${page}/scripts/`, import.meta.url);
    const names = await readdir(folder);
    return new Map(
      await Promise.all(
        names.map(async (name) => [name, await readFile(new URL(name, folder))] as const),
      ),
    );
  }
  const { build } = await import("esbuild");
  const { outputFiles } = await build(bundleOptions(page));
  return new Map(outputFiles.map(({ path, contents }) => [basename(path), Buffer.from(contents)]));
}
