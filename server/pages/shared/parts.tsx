import {
  type ComponentChild,
  type ComponentChildren,
  type ComponentProps,
  Fragment,
  render,
} from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { brief, sentenceOf } from "./format.ts";

/** A load has a value, a failure, or neither yet. */
type Loaded<T> = ReturnType<typeof useLoad<T>>;

/** A load that has run for longer may never end: its connection can be lost. */
const LOST_MS = 30_000;

/**
 * Loads at once, and when `key` changes. With `everyMs` it also loads again and again while the
 * page is visible, and as soon as the page becomes visible. It does not load again while it still
 * loads.
 */
export function useLoad<T>(load: () => Promise<T>, key: unknown, everyMs?: number) {
  const [state, set] = useState<{ value: T | undefined; error: Error | null }>({
    value: undefined,
    error: null,
  });
  const newest = useRef(load);
  newest.current = load;
  const turn = useRef(0);
  /** When the newest load began; 0 once it has ended. */
  const began = useRef(0);
  const reload = useCallback(async () => {
    const mine = ++turn.current;
    began.current = Date.now();
    try {
      const value = await newest.current();
      if (turn.current === mine) set({ value, error: null });
    } catch (error) {
      if (turn.current === mine) set(({ value }) => ({ value, error: error as Error }));
    }
    if (turn.current === mine) began.current = 0;
  }, []);
  useEffect(() => {
    void reload();
    if (everyMs === undefined) return undefined;
    const again = () => {
      if (document.visibilityState === "visible" && Date.now() - began.current > LOST_MS)
        void reload();
    };
    const timer = setInterval(again, everyMs);
    document.addEventListener("visibilitychange", again);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", again);
    };
  }, [reload, key, everyMs]);
  return { ...state, reload };
}

export function show(page: ComponentChild): void {
  const place = document.getElementById("app");
  place?.replaceChildren();
  if (place !== null) render(page, place);
}

/** The address after `#`, which names what the page shows. `moved` is called after each change. */
export function useHash(moved?: () => void): string {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const read = () => {
      setHash(location.hash);
      moved?.();
    };
    addEventListener("hashchange", read);
    return () => removeEventListener("hashchange", read);
  }, []);
  return hash.replace(/^#/, "");
}

/** Names the browser's tab by the page's heading, after each drawing. */
export function Titled({ children }: { children: ComponentChildren }) {
  useEffect(() => {
    document.title = `${document.querySelector("#main h1")?.textContent ?? "Mintmark"} · Mintmark explorer`;
  });
  return <>{children}</>;
}

function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

/** Header with a skip link. */
export function Top({ children }: { children: ComponentChildren }) {
  return (
    <>
      {/* biome-ignore lint/a11y/useValidAnchor: the address names what the page shows, so it stays. */}
      <a class="skip" href="#main" onClick={skip}>
        Skip to content
      </a>
      <header class="top">
        <a class="brand" href="#/">
          <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
            <use href="/explorer/icon.svg#mark" />
          </svg>
          <span>Mintmark</span>
        </a>
        {children}
      </header>
    </>
  );
}

interface FailureProps {
  error: unknown;
  retry?: (() => void) | undefined;
  /** Whether nothing else is on the page. */
  drawn?: boolean;
}

export function Failure({ error, retry, drawn = false }: FailureProps) {
  return (
    <div class={drawn ? "failure nothing" : "failure"}>
      {drawn && (
        <svg viewBox="0 0 96 64" aria-hidden="true">
          <path d="M6 32h30m24 0h30M36 22v20M42 26v12M60 22v20" />
          <path d="M46 14l4 8M50 50l-4-8" stroke-dasharray="3 3" />
        </svg>
      )}
      <Notice problem>{sentenceOf(error)}</Notice>
      {retry && <Button onClick={retry} text="Try again" />}
    </div>
  );
}

type ButtonProps = ComponentProps<"button"> & { text: string; main?: boolean; submit?: boolean };

/** A button; a `main` one is what its page is about. */
export function Button({ text, main = false, submit = false, ...rest }: ButtonProps) {
  return (
    <button type={submit ? "submit" : "button"} class={main ? "main" : undefined} {...rest}>
      {text}
    </button>
  );
}

/**
 * A hash, an address or other long text: complete, in a fixed width, wrapped at the screen's edge.
 */
export function code(text: string) {
  return <code>{text}</code>;
}

export function Notice({
  children,
  problem = false,
}: {
  children: ComponentChildren;
  problem?: boolean;
}) {
  return (
    <p class={problem ? "notice problem" : "notice"} role={problem ? "alert" : "status"}>
      {children}
    </p>
  );
}

export function Later({ load }: { load: () => Promise<ComponentChildren> }) {
  return <Shown of={useLoad(load, null)}>{(content) => content}</Shown>;
}

/** Shows a `Later` once a click on the button has asked for it. */
export function OnDemand({ text, load }: { text: string } & Parameters<typeof Later>[0]) {
  const [asked, setAsked] = useState(false);
  return asked ? <Later load={load} /> : <Button onClick={() => setAsked(true)} text={text} />;
}

export type Fact = readonly [name: string, value: ComponentChildren];

/** Names and their values, without those that have none. */
export function Facts({ of }: { of: readonly Fact[] }) {
  const known = of.filter(([, value]) => value !== null && value !== undefined);
  return (
    <dl class="facts">
      {known.map(([name, value]) => (
        <Fragment key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </Fragment>
      ))}
    </dl>
  );
}

/** Shows what has loaded, or its failure with a button to try again. */
export function Shown<T>({
  of,
  children,
}: {
  of: Loaded<T>;
  children: (value: T) => ComponentChildren;
}) {
  if (of.error !== null) return <Failure error={of.error} retry={() => void of.reload()} />;
  if (of.value === undefined) return <p class="quiet">Loading…</p>;
  return <>{children(of.value)}</>;
}

/** Hands a sent form's fields to `send`; the page stays. */
export function onSent(send: (fields: FormData, form: HTMLFormElement) => unknown) {
  return (event: SubmitEvent) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    void send(new FormData(form), form);
  };
}

type SearchProps = { hashOf: (text: string) => string; label: string; placeholder: string };

/** Leads to the page that `hashOf` names for a text. */
export function Search({ hashOf, label, placeholder }: SearchProps) {
  const search = onSent((fields) => {
    const text = String(fields.get("q")).trim();
    if (text !== "") location.hash = hashOf(text);
  });
  return (
    <search>
      <form class="search" autocomplete="off" onSubmit={search}>
        <input
          name="q"
          type="search"
          aria-label={label}
          placeholder={placeholder}
          maxLength={80}
          required
        />
        <Button submit text="Find" />
      </form>
    </search>
  );
}

export function useAction() {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  const run = async (work: () => unknown): Promise<void> => {
    setBusy(true);
    setError(null);
    try {
      await work();
    } catch (failure) {
      // Wallets reject with plain objects.
      setError(failure instanceof Error ? failure : new Error(sentenceOf(failure)));
    }
    setBusy(false);
  };
  return { busy, error, run };
}

interface ActionProps {
  text: string;
  main?: boolean | undefined;
  ask?: string | undefined;
  work: () => unknown;
}

/** A button for one action. One that cannot be undone asks first. */
export function Action({ text, main = false, ask, work }: ActionProps) {
  const { busy, error, run } = useAction();
  const click = () => {
    if (ask === undefined || confirm(ask)) void run(work);
  };
  return (
    <>
      <Button main={main} disabled={busy} onClick={click} text={text} />
      {error && <span role="alert">{error.message}</span>}
    </>
  );
}

export type Column<T> = readonly [
  title: string,
  cell: (entry: T) => ComponentChildren,
  kind?: "number",
];

export interface TableProps<T> {
  label: string;
  columns: readonly Column<T>[];
  entries: readonly T[];
  /**
   * The field of an entry's id: a row stays the same row, with its buttons, when others come before
   * it.
   */
  idIn?: keyof T;
  empty?: string;
}

export function Table<T>({ label, columns, entries, idIn, empty = "None yet." }: TableProps<T>) {
  return (
    // Rows become cards where there is no room for columns. A table that is still too wide scrolls,
    // also by keyboard.
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling place must take the focus.
    <section class="table" tabIndex={0} aria-label={label}>
      {entries.length === 0 ? (
        <p class="quiet">{empty}</p>
      ) : (
        <table>
          <thead>
            <tr>
              {columns.map(([title, , kind]) => (
                <th key={title} scope="col" class={kind}>
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {entries.map((entry, i) => (
              <tr key={idIn === undefined ? i : String(entry[idIn])}>
                {columns.map(([title, cell, kind]) => (
                  // The title stands beside the content where rows are cards.
                  <td key={title} class={kind} data-title={title}>
                    {cell(entry)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

/** A time, which can lead to the page of what happened then. */
export function When({ at, page }: { at: string | null | undefined; page?: string }) {
  if (!at) return <>–</>;
  const text = new Date(at).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
  const time = <time dateTime={at}>{text}</time>;
  return page === undefined ? time : <a href={page}>{time}</a>;
}

export function Id({ of }: { of: string | null }) {
  if (of === null) return <>–</>;
  return <code title={of}>{brief(of)}</code>;
}

export function LongTable<T>({ entries, ...rest }: TableProps<T>) {
  const [shown, setShown] = useState(25);
  return (
    <>
      <Table entries={entries.slice(0, shown)} {...rest} />
      <More left={entries.length - shown} show={() => setShown(shown + 25)} />
    </>
  );
}

/** A button for what is not shown yet; `left` of it, where that is known. */
export function More({ left, show }: { left?: number; show: () => void }) {
  if (left !== undefined && left <= 0) return null;
  return (
    <p>
      <Button
        onClick={show}
        text={left === undefined ? "Show more" : `Show more (${left.toLocaleString()} left)`}
      />
    </p>
  );
}

export function Status({ of }: { of: string }) {
  return <span class={`status ${of}`}>{of}</span>;
}

export function download(name: string, file: Blob): void {
  const href = URL.createObjectURL(file);
  Object.assign(document.createElement("a"), { href, download: name }).click();
  URL.revokeObjectURL(href);
}
