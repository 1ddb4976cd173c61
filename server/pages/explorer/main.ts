import { onWallet } from "../shared/wallets.ts";
import { Problem, readSettings, type Settings } from "./api.ts";
import { batchView } from "./batch.ts";
import { batchesView } from "./batches.ts";
import { el, failure, fill } from "./dom.ts";
import { ownerView } from "./owner.ts";
import { showSource } from "./source.ts";
import { stateView } from "./state.ts";
import { vaultView } from "./vault.ts";

type View = (argument: string) => Promise<Node[]>;

/** The views, by the text after the address's `#`. */
const ROUTES: readonly (readonly [RegExp, View])[] = [
  [/^\/?$/, stateView],
  [/^\/batches$/, batchesView],
  [/^\/batches\/([a-z]+(?:-[a-z]+)?-\d+)$/, batchView],
  [/^\/vaults\/(\d+)$/, vaultView],
  [/^\/owner$/, ownerView],
];

const main = document.getElementById("main") as HTMLElement;
let drawing = 0;

/** Draws the view of the address. Drops an earlier one that is not finished. */
async function draw(): Promise<void> {
  const turn = ++drawing;
  const path = location.hash.replace(/^#/, "");
  const [pattern, view] = ROUTES.find(([candidate]) => candidate.test(path)) ?? [null, notFound];
  const place = el("div", { class: "view" });
  await fillView(place, () => view(pattern?.exec(path)?.[1] ?? ""));
  if (turn !== drawing) return;
  main.replaceChildren(place);
  for (const item of document.querySelectorAll("nav a")) {
    const here = item.getAttribute("href") === location.hash || (path === "" && item.getAttribute("href") === "#/");
    if (here) item.setAttribute("aria-current", "page");
    else item.removeAttribute("aria-current");
  }
  document.title = `${place.querySelector("h1")?.textContent ?? "Mintmark"} · Mintmark explorer`;
}

/** Like {@link fill}, for a whole view. An error gets a heading, since nothing else is shown. */
async function fillView(place: HTMLElement, load: () => Promise<Node[]>): Promise<void> {
  await fill(place, async () => {
    try {
      return await load();
    } catch (error) {
      const missing = error instanceof Problem && error.code.endsWith("_not_found");
      return [el("h1", {}, missing ? "Not found" : "This cannot be shown now"), failure(error, () => void draw())];
    }
  });
}

async function notFound(): Promise<Node[]> {
  return [el("h1", {}, "Nothing here"), el("p", {}, "Give a vault's id, or a batch such as zk-rollup-0.")];
}

/** A vault's id is a number; everything else is a batch's name. */
function find(event: Event): void {
  event.preventDefault();
  const query = (document.getElementById("query") as HTMLInputElement).value.trim();
  if (query !== "") location.hash = /^\d+$/.test(query) ? `#/vaults/${query}` : `#/batches/${query}`;
}

document.getElementById("search")?.addEventListener("submit", find);
addEventListener("hashchange", () => {
  if (!location.hash.startsWith("#/") && location.hash !== "") return;
  void draw().then(() => {
    main.focus({ preventScroll: true });
    scrollTo(0, 0);
  });
});

/** Reads the server's settings, then draws. */
async function start(): Promise<void> {
  let settings: Settings;
  try {
    settings = await readSettings();
  } catch (error) {
    main.replaceChildren(el("h1", {}, "The explorer cannot start now"), failure(error, start));
    return;
  }
  const environment = document.getElementById("environment") as HTMLElement;
  environment.textContent = settings.environment;
  environment.hidden = false;
  const source = () => showSource(document.getElementById("source") as HTMLElement, settings, () => void draw());
  source();
  onWallet(source);
  await draw();
}

await start();
