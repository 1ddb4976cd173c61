import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { type Column, Failure, Field, Shown, Table, useAction, useLoad } from "../shared/parts.tsx";
import { call, type Listed } from "./api.ts";

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
