import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { BuildOptions, Plugin } from "esbuild";

/** The folder that holds `core` and `server`. */
const ROOT = new URL("../../", import.meta.url);

export const SCRIPTS = ["claim", "console", "exit", "explorer", "reference", "withdraw"] as const;

const JSX = { jsx: "automatic", jsxImportSource: "preact" } as const;

/**
 * Makes libraries and pages small in a script that has the core as it is read here, because it
 * checks proofs with it.
 */
const minifyOthers: Plugin = {
  name: "minify-others",
  setup({ onLoad, esbuild }) {
    onLoad({ filter: /node_modules\/.*\.m?js$|\/server\/pages\/.*\.tsx?$/ }, async ({ path }) => {
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

/** The core's modules that the explorer's script gives to the one that it loads later. */
const SHARED = ["errors", "protocol/kzg", "protocol/proof", "protocol/transfer-proof"] as const;

/** Leaves what the visitor has already out of the script that follows. */
const explorerHas: Plugin = {
  name: "explorer-has",
  setup({ onResolve }) {
    const filter = new RegExp(
      `/(?:${SHARED.map((path) => path.replace(/.*\//, "")).join("|")})\\.ts$`,
    );
    onResolve({ filter }, () => ({ path: "/explorer/explorer.js", external: true }));
  },
};

/** The explorer, which has exports. */
const explorerEntry = {
  stdin: {
    contents: [
      'import "./server/pages/explorer/main.tsx";',
      ...SHARED.map((path) => `export * from "./core/${path}.ts";`),
    ].join("\n"),
    resolveDir: fileURLToPath(ROOT),
  },
};

/**
 * The build of a page's script: one file with the same bytes for the same sources; readable where
 * it checks proofs.
 */
export function bundleOptions(
  page: (typeof SCRIPTS)[number],
): BuildOptions & { readonly write: false } {
  // Visitors read the explorer's script as it is served; the others are mostly libraries.
  const isMinified = page !== "explorer";
  return {
    absWorkingDir: fileURLToPath(ROOT),
    ...(page === "explorer" ? explorerEntry : { entryPoints: [`server/pages/${page}/main.tsx`] }),
    ...JSX,
    bundle: true,
    // Fetched by the browser, when it is needed.
    external: ["/explorer/withdraw.js"],
    write: false,
    minify: isMinified,
    plugins: [
      noUndeployed,
      ...(isMinified ? [] : [minifyOthers]),
      ...(page === "withdraw" ? [explorerHas] : []),
    ],
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
 * A page's script with all its imports. The package contains it; in the repository it is built at
 * first use.
 */
export async function pageScript(page: (typeof SCRIPTS)[number]): Promise<Buffer> {
  if (import.meta.url.endsWith(".js"))
    return readFile(new URL(`${page}/bundle.js`, import.meta.url));
  const { build } = await import("esbuild");
  const { outputFiles } = await build(bundleOptions(page));
  const [script] = outputFiles;
  if (script === undefined) throw new Error(`bundling ${page} gave no output`);
  return Buffer.from(script.contents);
}
