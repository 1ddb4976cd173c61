import type { ComponentChildren, ComponentProps } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import * as shared from "../shared/parts.tsx";
import { call, changes, readPages, withQuery } from "./api.ts";

export * from "../shared/parts.tsx";

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

interface FormProps {
  label: string;
  children: ComponentChildren;
  action: string;
  send: (texts: Texts, fields: FormData) => Promise<unknown>;
}

/** The texts of a form's fields by their names; empty ones are left out. */
export type Texts = Readonly<Record<string, string | undefined>>;

export function Form({ label, children, action, send }: FormProps) {
  const { busy, error, run } = shared.useAction();
  const submit = shared.onSent((fields, form) =>
    run(async () => {
      const typed = [...fields].filter(
        (entry): entry is [string, string] => typeof entry[1] === "string",
      );
      const trimmed = typed
        .map(([name, text]) => [name, text.trim()])
        .filter(([, text]) => text !== "");
      await send(Object.fromEntries(trimmed), fields);
      // Choices stay, because the next entry mostly has the same.
      for (const input of form.querySelectorAll<HTMLInputElement>("input:not([type=checkbox])"))
        input.value = "";
    }),
  );
  return (
    <>
      <form class="fields" autocomplete="off" aria-label={label} onSubmit={submit}>
        {children}
        <shared.Button main submit disabled={busy} text={action} />
      </form>
      {error && <shared.Failure error={error} />}
    </>
  );
}

/**
 * Fields of forms. The browser shows the title, with its example, when it refuses what was typed.
 */
export const ADDRESS = {
  placeholder: "0x…",
  pattern: "0x[0-9a-fA-F]{40}",
  title: "0x and 40 hex digits, such as 0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
} as const;
export const WHOLE = { inputMode: "numeric", title: "Digits only, such as 1001" } as const;

export function Input({
  label,
  ...input
}: ComponentProps<"input"> & { label: string; name: string }) {
  return (
    <label class="field">
      {label}
      <input {...input} />
    </label>
  );
}

/** @param options - the text of each value */
export function Select({
  label,
  options,
  ...select
}: ComponentProps<"select"> & {
  label: string;
  name: string;
  options: Readonly<Record<string, string>>;
}) {
  return (
    <label class="field">
      {label}
      <select {...select}>
        {Object.entries(options).map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

export function Secret({
  title,
  secret,
  onDone,
}: {
  title: string;
  secret: string;
  onDone: () => void;
}) {
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
        <shared.Button onClick={() => void copy()} text={copied ? "Copied" : "Copy"} />
        <shared.Button onClick={onDone} text="I have stored it" />
      </div>
    </div>
  );
}

/**
 * The parameters of a page, which its address keeps behind a question mark: so they outlive a
 * reload and a visit.
 */
export function useFilters(): Readonly<Record<string, string>> {
  return Object.fromEntries(new URLSearchParams(location.hash.split("?")[1]));
}

/** A form that filters the page. It keeps what was typed, and puts it into the address. */
export function Filters({ label, children }: { label: string; children: ComponentChildren }) {
  const form = useRef<HTMLFormElement>(null);
  const filters = useFilters();
  const named = () => [...(form.current?.querySelectorAll<HTMLInputElement>("[name]") ?? [])];
  // The layout phase comes before anybody can type: a later effect would undo what was typed.
  useLayoutEffect(() => {
    for (const input of named()) input.value = filters[input.name] ?? "";
  }, [JSON.stringify(filters)]);
  const apply = () => {
    const typed = named().map(({ name, value }) => [name, value.trim()] as const);
    location.hash = withQuery(`${location.hash.split("?")[0]}`, {
      ...filters,
      ...Object.fromEntries(typed),
    });
  };
  const others = Object.entries(filters).filter(([name]) =>
    named().every((input) => input.name !== name),
  );
  return (
    <>
      <form
        ref={form}
        class="fields"
        autocomplete="off"
        aria-label={label}
        onChange={(event) => event.target instanceof HTMLSelectElement && apply()}
        onSubmit={shared.onSent(apply)}
      >
        {children}
        <shared.Button submit text="Find" />
      </form>
      {form.current !== null && others.length > 0 && (
        <p class="quiet">
          Only with {others.map((each) => each.join(" ")).join(", ")}.{" "}
          <a href={location.hash.split("?")[0]}>Show all</a>
        </p>
      )}
    </>
  );
}

export function Choice({
  values,
  ...select
}: {
  label: string;
  name: string;
  values: readonly string[];
}) {
  return (
    <Select
      options={{ "": "all", ...Object.fromEntries(values.map((each) => [each, each])) }}
      {...select}
    />
  );
}

export const STATUSES = [
  "accepted",
  "batched",
  "submitted",
  "settled",
  "finalized",
  "failed",
] as const;

/** Shows the answer of a path of the API, and reads it again every few seconds. */
export function Live<T>({
  path,
  children,
}: {
  path: string;
  children: (value: T) => ComponentChildren;
}) {
  return (
    <shared.Shown of={shared.useLoad(() => call<T>("GET", path), path, 5_000)}>
      {children}
    </shared.Shown>
  );
}

type ListProps<T, R> = Omit<shared.TableProps<R>, "entries"> & {
  path: string;
  /** Default: a row for each entry. */
  rowsOf?: (entries: readonly T[]) => readonly R[];
};

/**
 * A list of the API as a table that grows by pages. It is read again every few seconds, and after
 * each change.
 */
export function List<T, R = T>({
  path,
  empty = Object.keys(useFilters()).length === 0 ? "None yet." : "Nothing matches.",
  rowsOf = (entries) => entries as readonly unknown[] as readonly R[],
  ...table
}: ListProps<T, R>) {
  const [pages, setPages] = useState(1);
  const loaded = shared.useLoad(() => readPages<T>(path, pages), `${path} ${pages}`, 5_000);
  useEffect(() => {
    changes.addEventListener("change", loaded.reload);
    return () => changes.removeEventListener("change", loaded.reload);
  }, [loaded.reload]);
  return (
    <shared.Shown of={loaded}>
      {({ data, more }) => (
        <>
          <shared.Table
            {...table}
            entries={rowsOf(data)}
            // A page can be empty although more follow: the work for one is bounded.
            empty={more ? "None among the newest. Show more looks further back." : empty}
          />
          {more && <shared.More show={() => setPages(pages + 1)} />}
        </>
      )}
    </shared.Shown>
  );
}

type Deed = readonly [text: string, work: () => unknown, ask?: string];

/** The column of buttons for what can be done with an entry. */
export function actions<T>(of: (entry: T) => readonly Deed[] | false): shared.Column<T> {
  const cell = (entry: T) => {
    const deeds = of(entry) || [];
    const buttons = deeds.map(([text, work, ask]) => (
      <shared.Action key={text} text={text} ask={ask} work={work} />
    ));
    return buttons.length > 0 && <span class="actions">{buttons}</span>;
  };
  return ["Actions", cell];
}

export function To({ page, id }: { page: string; id: string | null }) {
  const shown = <shared.Id of={id} />;
  return id === null ? shown : <a href={`#/${page}/${encodeURIComponent(id)}`}>{shown}</a>;
}
