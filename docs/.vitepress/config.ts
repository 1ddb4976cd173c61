import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { type DefaultTheme, defineConfig } from "vitepress";

// The site of `npm run docs`, which the server serves at /guide. The pages are those that the
// repository shows.

const DOCS = join(import.meta.dirname, "..");
const ROOT = dirname(DOCS);
const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));

/**
 * The order of the pages is that of index.md: a heading for each group, and a link for each page.
 */
function sidebar(): DefaultTheme.SidebarItem[] {
  const [, ...groups] = readFileSync(join(DOCS, "index.md"), "utf8").split(/^## /m);
  return groups.map((group) => ({
    text: group.slice(0, group.indexOf("\n")),
    items: [...group.matchAll(/^- \[([^\]]+)\]\(([^)]+)\)/gm)].map(([, text = "", page = ""]) => ({
      text,
      link: addressOf(page),
    })),
  }));
}

/**
 * Where a page of `docs/` is in the site: without its ending, and the guides beside the other
 * pages.
 */
function addressOf(page: string): string {
  return `/${page.replace(/^guides\//, "").replace(/\.md$/, "")}`;
}

/** The path of the repository's file that a relative link on a page names; null for other links. */
function pathOf(href: string, page: string): string | null {
  if (/^(?:[a-z]+:|#|\/)/.test(href)) return null;
  const path = relative(ROOT, join(dirname(page), href.replace(/#.*$/, "")));
  if (path.startsWith("..") || !existsSync(join(ROOT, path)))
    throw new Error(`${page} links to ${href}: no such file`);
  return path;
}

export default defineConfig({
  title: "Mintmark",
  description: "Mints tokens on layer 2 and settles them on Ethereum",
  base: "/guide/",
  cleanUrls: true,
  rewrites: { "guides/:page": ":page" },
  head: [["link", { rel: "icon", type: "image/svg+xml", href: "/explorer/icon.svg" }]],
  // A dead link ends the build.
  ignoreDeadLinks: false,
  // No inline script that changes with each build.
  metaChunk: true,
  themeConfig: {
    // Which version the pages are for.
    siteTitle: `Mintmark ${version}`,
    sidebar: sidebar(),
    search: { provider: "local" },
    outline: [2, 3],
  },
  // The server's policy refuses styles in attributes; style.css has what these do.
  transformHtml: (html) => html.replaceAll(/(<div[^>]*?) style="[^"]*"/g, "$1"),
  // Without the inline style that would stop transitions.
  appearance: { disableTransition: false },
  markdown: {
    // Colours would be inline styles, which the server's policy refuses.
    highlight: (text, lang) =>
      `<pre tabindex="0"><code class="language-${lang}">${escaped(text)}</code></pre>`,
    config(md) {
      // Long lines scroll, by keyboard too.
      const codeBlock = md.renderer.rules.code_block;
      md.renderer.rules.code_block = (...args) =>
        codeBlock?.(...args).replace("<pre", '<pre tabindex="0"') ?? "";
      md.core.ruler.push("served", ({ tokens, env }) => {
        for (const token of tokens) {
          const style = token.attrGet("style");
          if (style !== null) {
            token.attrs = (token.attrs ?? []).filter(([name]) => name !== "style");
            token.attrJoin("class", style.replace("text-align:", "align-"));
          }
          // The site has only these pages. A link to another file of the repository names it
          // instead.
          let isSource = false;
          const { realPath, path: page } = env as {
            readonly path: string;
            readonly realPath?: string;
          };
          for (const child of token.children ?? []) {
            if (child.type === "link_open") {
              const link = child.attrGet("href") ?? "";
              const path = pathOf(link, realPath ?? page);
              isSource = path !== null && !path.startsWith("docs/");
              if (path !== null && !isSource) {
                child.attrSet(
                  "href",
                  addressOf(path.slice("docs/".length)) + link.replace(/^[^#]*/, ""),
                );
              }
              if (!isSource) continue;
              child.tag = "span";
              child.attrs = [["title", `${path}, in the repository`]];
            } else if (child.type === "link_close" && isSource) {
              child.tag = "span";
              isSource = false;
            }
          }
        }
      });
    },
  },
});

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll("{{", "&#123;&#123;");
}
