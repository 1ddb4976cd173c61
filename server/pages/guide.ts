import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { constants, setPriority } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { documentOf, type Page, pageFile } from "./files.ts";
import { contentPolicy, hashSource } from "./policy.ts";

/** The site that `npm run docs` builds from `docs/`. The package brings it built. */
const FOLDER = fileURLToPath(new URL("../../docs/.vitepress/dist/", import.meta.url));

let building: Promise<void> | undefined;

/**
 * Builds the guide of a clone at low priority, unless it is newer than its pages. Requests wait for
 * it.
 */
export function buildGuide(): Promise<void> {
  building ??= build();
  return building;
}

async function build(): Promise<void> {
  if (import.meta.url.endsWith(".js")) return;
  const script = fileURLToPath(new URL("../../scripts/build/guide.ts", import.meta.url));
  const child = spawn(process.execPath, [script], { stdio: "ignore" });
  if (child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_LOW);
  const [code] = await once(child, "exit");
  if (code !== 0) throw new Error("The guide could not be built. `npm run docs` says why.");
}

const UNBUILT = `<h1>The guide is not built here</h1>
<p>Run <code>npm run docs</code> in the repository, then start the server again. The package brings it built.</p>`;

/** The guide. It asks this server alone, and searches in the browser. */
export const guidePage: Page = {
  address: "/guide",
  isFolder: true,
  policy: contentPolicy(),
  async load() {
    await building?.catch(() => {});
    const entries = await readdir(FOLDER, { recursive: true, withFileTypes: true }).catch(() => []);
    const paths = entries
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => join(parentPath, name));
    if (paths.length === 0) return [pageFile("", documentOf("Guide", "", UNBUILT), "index.html")];
    return Promise.all(
      paths.map(async (path) => {
        const body = await readFile(path);
        const name = path.slice(FOLDER.length).replaceAll("\\", "/");
        const file = pageFile(name.replace(/(?:^index)?\.html$/, ""), body, name);
        return name.endsWith(".html") ? { ...file, policy: policyOf(body.toString()) } : file;
      }),
    );
  },
};

/**
 * The generator writes short scripts into each page, so the policy names them by their hashes. Vue
 * has a policy.
 */
function policyOf(html: string): string {
  const inline = [...html.matchAll(/<script(?![^>]*\ssrc=)[^>]*>([\s\S]*?)<\/script>/g)];
  const hashes = inline.map(([, text = ""]) => hashSource(text));
  return contentPolicy({
    "script-src": ["'self'", ...new Set(hashes)].join(" "),
    // The theme's own icons.
    "img-src": "'self' data:",
    "trusted-types": "vue",
  });
}
