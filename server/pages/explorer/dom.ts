export type Child = Node | string;

/** An element with attributes and children. Text only ever becomes text: nothing that was fetched is parsed as HTML. */
export function el(name: string, attributes: Readonly<Record<string, string>> = {}, ...children: readonly Child[]) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** Names and what they stand for. */
export function facts(entries: readonly (readonly [string, Child])[]): HTMLElement {
  return el("dl", { class: "facts" }, ...entries.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

/** A hash, an address or other long text: whole, in a fixed width, broken where the screen ends. */
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

/** The first row of a table; columns of numbers are named in `NUMBERS`. */
export function tableHead(names: readonly string[]): HTMLElement {
  const cells = names.map((name) => el("th", { scope: "col", ...(NUMBERS.has(name) && { class: "number" }) }, name));
  return el("thead", {}, el("tr", {}, ...cells));
}

const NUMBERS: ReadonlySet<string> = new Set(["Amount", "Vaults"]);

/** A notice that screen readers read out; `problem` for what went wrong. */
export function notice(text: string, kind: "plain" | "problem" = "plain"): HTMLElement {
  return el("p", { class: `notice ${kind}`, role: kind === "problem" ? "alert" : "status" }, text);
}

/** Shows what `load` makes of a place, or what went wrong; what is there meanwhile says that it waits. */
export async function fill(place: HTMLElement, load: () => Promise<Node | readonly Node[]>): Promise<void> {
  place.setAttribute("aria-busy", "true");
  try {
    const content = await load();
    place.replaceChildren(...(content instanceof Node ? [content] : content));
  } catch (error) {
    place.replaceChildren(notice(error instanceof Error ? error.message : String(error), "problem"));
  } finally {
    place.removeAttribute("aria-busy");
  }
}
