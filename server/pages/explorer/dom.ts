import { sentenceOf } from "../shared/format.ts";

export type Child = Node | string;

/** An element with attributes and children. Fetched text is never parsed as HTML. */
export function el(name: string, attributes: Readonly<Record<string, string>> = {}, ...children: readonly Child[]) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** Names and their values. */
export function facts(entries: readonly (readonly [string, Child])[]): HTMLElement {
  return el("dl", { class: "facts" }, ...entries.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

/** A hash, an address or other long text: complete, in a fixed width, wrapped at the screen's edge. */
export function code(text: string): HTMLElement {
  return el("code", {}, text);
}

export function link(href: string, text: string): HTMLElement {
  return el("a", { href }, text);
}

export function button(text: string, onClick: () => unknown): HTMLElement {
  const element = el("button", { type: "button" }, text);
  element.addEventListener("click", () => onClick());
  return element;
}

/** The first row of a table. `NUMBERS` names the numeric columns. Boxes to select need no visible name. */
export function tableHead(names: readonly string[]): HTMLElement {
  const cells = names.map((name) => {
    const shown = name === "Select" ? el("span", { class: "unseen" }, name) : name;
    return el("th", { scope: "col", ...(NUMBERS.has(name) && { class: "number" }) }, shown);
  });
  return el("thead", {}, el("tr", {}, ...cells));
}

const NUMBERS: ReadonlySet<string> = new Set(["Amount", "Vaults"]);

/** A notice that screen readers announce; `problem` for errors. */
export function notice(text: string, kind: "plain" | "problem" = "plain"): HTMLElement {
  return el("p", { class: `notice ${kind}`, role: kind === "problem" ? "alert" : "status" }, text);
}

/** An error, with a button to try again. */
export function failure(error: unknown, retry: () => unknown): HTMLElement {
  return el("div", { class: "failure" }, notice(sentenceOf(error), "problem"), button("Try again", retry));
}

/** Shows the result of `load` in a place, or its error with a button to try again. */
export async function fill(place: HTMLElement, load: () => Promise<Node | readonly Node[]>): Promise<void> {
  place.setAttribute("aria-busy", "true");
  try {
    const content = await load();
    place.replaceChildren(...(content instanceof Node ? [content] : content));
  } catch (error) {
    place.replaceChildren(failure(error, () => fill(place, load)));
  } finally {
    place.removeAttribute("aria-busy");
  }
}
