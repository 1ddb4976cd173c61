import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import {
  Failure,
  Later,
  Search,
  Shown,
  show,
  Titled,
  Top,
  useHash,
  useLoad,
} from "../shared/parts.tsx";
import { Problem } from "../shared/request.ts";
import { readSettings } from "./api.ts";
import { batchesView, batchView, stateView } from "./batches.tsx";
import { Owner } from "./owner.tsx";
import { Source, startSource } from "./source.tsx";
import { vaultView } from "./vault.tsx";

type View = (argument: string) => Promise<ComponentChildren>;

const ROUTES: readonly (readonly [RegExp, View])[] = [
  [/^\/?$/, stateView],
  [/^\/batches$/, batchesView],
  [/^\/batches\/([a-z]+(?:-[a-z]+)?-\d+)$/, batchView],
  [/^\/vaults\/(\d+)$/, vaultView],
  [/^\/owner(?:\/|$)/, async () => <Owner />],
];
const SECTIONS = [
  ["#/", "State"],
  ["#/batches", "Batches"],
  ["#/owner", "My tokens"],
] as const;

/** Every view has a heading, also one that cannot be shown. */
async function viewOf(path: string, retry: () => void): Promise<ComponentChildren> {
  const [pattern, view] = ROUTES.find(([candidate]) => candidate.test(path)) ?? [];
  if (!view)
    return [
      <h1 key="title">Nothing here</h1>,
      <p key="hint">Give a vault's id, or a batch such as zk-rollup-0.</p>,
    ];
  try {
    return await view(pattern?.exec(path)?.[1] ?? "");
  } catch (error) {
    const isMissing = error instanceof Problem && error.code.endsWith("_not_found");
    return (
      <>
        <h1>{isMissing ? "Not found" : "This cannot be shown now"}</h1>
        <Failure error={error} retry={retry} />
      </>
    );
  }
}

/** A new page begins at its top, and screen readers read it. */
function begin(): void {
  document.getElementById("main")?.focus({ preventScroll: true });
  scrollTo(0, 0);
}

/** A vault's id is a number; everything else is a batch's name. */
const hashOf = (id: string) => (/^\d+$/.test(id) ? `#/vaults/${id}` : `#/batches/${id}`);

function App() {
  const path = useHash(begin);
  const [version, setVersion] = useState(0);
  // The owner's pages share what they have read.
  const page = path.startsWith("/owner") ? "/owner" : path || "/";
  const again = () => setVersion((earlier) => earlier + 1);
  const settings = useLoad(async () => startSource(await readSettings()), null);
  return (
    <>
      <Top>
        {settings.value && <span class="badge">{settings.value.environment}</span>}
        <nav aria-label="Sections">
          {SECTIONS.map(([href, name]) => (
            <a
              key={href}
              href={href}
              {...(href.slice(1) === page && { "aria-current": "page" as const })}
            >
              {name}
            </a>
          ))}
        </nav>
        {page !== "/owner" && (
          <Search
            hashOf={hashOf}
            label="Vault or batch"
            placeholder="Vault id, or a batch: zk-rollup-0"
          />
        )}
      </Top>
      <main id="main" tabIndex={-1}>
        {settings.error && <h1>The explorer cannot start now</h1>}
        <Shown of={settings}>
          {() => (
            <Later
              key={`${page} ${version}`}
              load={async () => <Titled>{await viewOf(path, again)}</Titled>}
            />
          )}
        </Shown>
      </main>
      <footer>
        {settings.value && <Source onChange={again} />}
        <p class="quiet">
          This page changes nothing without your wallet. It hashes, folds and compares in your
          browser, with the same code that the engine runs:{" "}
          <a href="/explorer/explorer.js">read it</a>. API: <a href="/docs">reference</a>,{" "}
          <a href="/openapi.json">OpenAPI</a>.
        </p>
      </footer>
    </>
  );
}

show(<App />);
