import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { sentenceOf } from "../explorer/dom.ts";
import { call, type Listed } from "./api.ts";

/** What loads: its value, its failure, or neither yet. */
export interface Loaded<T> {
  readonly value: T | undefined;
  readonly error: Error | null;
  reload(): Promise<void>;
}

/** Loads at once, when `key` changes, and while the page is visible every `everyMs`. */
export function useLoad<T>(load: () => Promise<T>, key: unknown, everyMs?: number): Loaded<T> {
  const [state, set] = useState<{ value: T | undefined; error: Error | null }>({ value: undefined, error: null });
  const newest = useRef(load);
  newest.current = load;
  const reload = useCallback(async () => {
    const mine = newest.current;
    try {
      const value = await mine();
      if (newest.current === mine) set({ value, error: null });
    } catch (error) {
      if (newest.current === mine) set(({ value }) => ({ value, error: error as Error }));
    }
  }, []);
  useEffect(() => {
    void reload();
    if (everyMs === undefined) return undefined;
    const timer = setInterval(() => document.visibilityState === "visible" && void reload(), everyMs);
    return () => clearInterval(timer);
  }, [reload, key, everyMs]);
  return { ...state, reload };
}

export function Failure({ error, retry }: { error: Error; retry?: (() => void) | undefined }) {
  return (
    <div class="failure">
      <p class="notice problem" role="alert">
        {error.message}
      </p>
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** Shows what has loaded, or its failure with a button to try again. */
export function Shown<T>({ of, children }: { of: Loaded<T>; children: (value: T) => ComponentChildren }) {
  if (of.error !== null) return <Failure error={of.error} retry={() => void of.reload()} />;
  if (of.value === undefined) return <p class="quiet">Loading…</p>;
  return <>{children(of.value)}</>;
}

/** A title that takes the focus when the page changes, so that a screen reader reads it. */
export function Title({ children, lead }: { children: string; lead?: ComponentChildren }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${children} · Mintmark console`;
    heading.current?.focus();
  }, [children]);
  return (
    <>
      <h1 ref={heading} tabIndex={-1}>
        {children}
      </h1>
      {lead && <p class="lead">{lead}</p>}
    </>
  );
}

export function Field({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noLabelWithoutControl: the control is the child.
    <label class="field">
      {label}
      {children}
    </label>
  );
}

/** A form whose sending shows its failure. `send` gets the texts of the fields; empty ones are left out. */
export function Form({
  label,
  children,
  action,
  send,
}: {
  label: string;
  children: ComponentChildren;
  action: string;
  send: (fields: FormData) => Promise<unknown>;
}) {
  const { busy, error, run } = useAction();
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    void run(async () => {
      await send(new FormData(form));
      // Choices stay, because the next entry mostly has the same.
      for (const input of form.querySelectorAll<HTMLInputElement>("input:not([type=checkbox])")) input.value = "";
    });
  };
  return (
    <>
      <form class="fields" aria-label={label} onSubmit={submit}>
        {children}
        <button class="main" type="submit" disabled={busy}>
          {action}
        </button>
      </form>
      {error && <Failure error={error} />}
    </>
  );
}

/** The text of a form's field; undefined when empty. */
export function textOf(fields: FormData, name: string): string | undefined {
  const value = fields.get(name);
  return typeof value === "string" && value.trim() !== "" ? value.trim() : undefined;
}

/** One action at a time, with its failure. */
export function useAction() {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  const run = async (work: () => Promise<unknown>): Promise<void> => {
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

/** A button for one action. One that cannot be undone asks first. */
export function Action({ children, ask, work }: { children: string; ask?: string; work: () => Promise<unknown> }) {
  const { busy, error, run } = useAction();
  const click = () => {
    if (ask === undefined || confirm(ask)) void run(work);
  };
  return (
    <>
      <button type="button" disabled={busy} onClick={click}>
        {children}
      </button>
      {error && <span role="alert">{error.message}</span>}
    </>
  );
}

/** A secret that is shown once, with a button to copy it. */
export function Secret({ title, secret, onDone }: { title: string; secret: string; onDone: () => void }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(secret);
    setCopied(true);
  };
  return (
    <div class="secret" role="status">
      <p>
        <strong>{title}</strong> It is shown this once: copy it now.
      </p>
      <code>{secret}</code>
      <div class="actions">
        <button type="button" onClick={() => void copy()}>
          {copied ? "Copied" : "Copy"}
        </button>
        <button type="button" onClick={onDone}>
          I have stored it
        </button>
      </div>
    </div>
  );
}

/** A column of a table: its title, and a cell's content. */
export type Column<T> = readonly [title: string, cell: (entry: T) => ComponentChildren, kind?: "number"];

export function Table<T>({
  label,
  columns,
  entries,
  empty = "None yet.",
}: {
  label: string;
  columns: readonly Column<T>[];
  entries: readonly T[];
  empty?: string;
}) {
  return (
    // A table that is wider than a phone scrolls, also by keyboard.
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
              <tr key={i}>
                {columns.map(([title, cell, kind]) => (
                  <td key={title} class={kind}>
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

/** A list of the API as a table that grows by pages. Its first page is looked at again every few seconds. */
export function List<T, R = T>({
  label,
  path,
  columns,
  empty = "None yet.",
  version = 0,
  rowsOf = (entries) => entries as readonly unknown[] as readonly R[],
}: {
  label: string;
  path: string;
  columns: readonly Column<R>[];
  empty?: string;
  /** Changed when the list must be read anew. */
  version?: number;
  /** Default: a row for each entry. */
  rowsOf?: (entries: readonly T[]) => readonly R[];
}) {
  const [pages, setPages] = useState(1);
  const load = async () => {
    const data: T[] = [];
    let cursor: string | null = null;
    for (let page = 0; page < pages; page++) {
      const query: string =
        cursor === null ? "" : `${path.includes("?") ? "&" : "?"}cursor=${encodeURIComponent(cursor)}`;
      const listed: Listed<T> = await call("GET", path + query);
      data.push(...listed.data);
      cursor = listed.pagination?.nextCursor ?? null;
      if (cursor === null) break;
    }
    return { data, more: cursor !== null };
  };
  const loaded = useLoad(load, `${path} ${pages} ${version}`, 5_000);
  return (
    <Shown of={loaded}>
      {({ data, more }) => (
        <>
          <Table
            label={label}
            columns={columns}
            entries={rowsOf(data)}
            // A page can be empty although more follow: the work for one is bounded.
            empty={more ? "None among the newest. Show more looks further back." : empty}
          />
          {more && (
            <p>
              <button type="button" onClick={() => setPages(pages + 1)}>
                Show more
              </button>
            </p>
          )}
        </>
      )}
    </Shown>
  );
}

export function When({ at }: { at: string | null }) {
  if (at === null) return <>–</>;
  return <time dateTime={at}>{new Date(at).toLocaleString([], { dateStyle: "medium", timeStyle: "short" })}</time>;
}

/** The beginning and the end of a long id, whole on hovering. */
export function Id({ of }: { of: string | null }) {
  if (of === null) return <>–</>;
  return <code title={of}>{of.length > 18 ? `${of.slice(0, 8)}…${of.slice(-6)}` : of}</code>;
}

const STATUSES = ["accepted", "batched", "submitted", "settled", "finalized", "failed"];

/** Filters a list by a status; empty for all. */
export function StatusChoice({ value, onChoose }: { value: string; onChoose: (value: string) => void }) {
  return (
    <form class="fields">
      <Field label="Status">
        <select value={value} onChange={(event) => onChoose(event.currentTarget.value)}>
          <option value="">all</option>
          {STATUSES.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      </Field>
    </form>
  );
}

export function Status({ of }: { of: string }) {
  return <span class={`status ${of}`}>{of}</span>;
}
