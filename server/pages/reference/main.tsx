import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import {
  Button,
  code,
  Failure,
  onSent,
  Shown,
  show,
  useAction,
  useLoad,
} from "../shared/parts.tsx";

// biome-ignore lint/suspicious/noExplicitAny: a part of the OpenAPI document; test/server/openapi.test.ts holds its form.
type DocumentPart = Readonly<Record<string, any>>;
type Listed = readonly [method: string, path: string, operation: DocumentPart];

let schemas: DocumentPart = {};
/** An API key or a token. It stays in memory, and ends with the page. */
let credential = "";
const pretty = (value: unknown) =>
  typeof value === "string" ? value : JSON.stringify(value, null, 2);

/** The little Markdown that the document has: paragraphs, and code between backticks. */
function Text({ of = "" }: { of?: string | undefined }) {
  const marked = (text: string) =>
    text.split("`").map((part, i) => (i % 2 === 1 ? <code key={i}>{part}</code> : part));
  return <>{of !== "" && of.split("\n\n").map((text) => <p key={text}>{marked(text)}</p>)}</>;
}

/** Content that is drawn once it is opened: schemas can hold themselves. */
function Fold({
  id,
  title,
  children,
}: {
  id?: string;
  title: ComponentChildren;
  children: () => ComponentChildren;
}) {
  const [isOpen, setOpen] = useState(id !== undefined && location.hash === `#${id}`);
  return (
    <details id={id} open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{title}</summary>
      {isOpen && children()}
    </details>
  );
}

const nameIn = ({ $ref }: DocumentPart) => $ref?.slice($ref.lastIndexOf("/") + 1);
const resolved = (schema: DocumentPart): DocumentPart => schemas[nameIn(schema)] ?? schema;

function typeOf(schema: DocumentPart): string {
  const { type = "any", format, items, anyOf, oneOf, allOf, enum: values } = schema;
  if (schema.$ref !== undefined) return nameIn(schema);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (values !== undefined)
    return values.map((value: unknown) => JSON.stringify(value)).join(" | ");
  if (items !== undefined) return `${typeOf(items)}[]`;
  if (allOf !== undefined) return allOf.map(typeOf).join(" & ");
  if (anyOf ?? oneOf) return [...new Set((anyOf ?? oneOf).map(typeOf))].join(" | ");
  return [type].flat().join(" | ") + (format === undefined ? "" : ` (${format})`);
}

/** The objects that a schema holds, whose fields can be shown. */
function objectsIn(schema: DocumentPart): readonly DocumentPart[] {
  const { properties, items, anyOf, oneOf, allOf } = resolved(schema);
  if (properties !== undefined) return [resolved(schema)];
  return [...(items ? [items] : []), ...(anyOf ?? oneOf ?? allOf ?? [])].flatMap(objectsIn);
}

function Fields({ of }: { of: DocumentPart }) {
  const objects = objectsIn(of);
  if (objects.length === 0) return null;
  const fieldsOf = ({ properties, required = [] }: DocumentPart) =>
    Object.entries<DocumentPart>(properties).map(([name, schema]) => (
      <li key={name}>
        {code(name)} {typeOf(schema)} {required.includes(name) && <strong>required</strong>}
        <Text of={schema.description ?? resolved(schema).description} />
        <Fields of={schema} />
      </li>
    ));
  return (
    <Fold title={`Fields of ${typeOf(of)}`}>
      {() => objects.map((each, i) => <ul key={i}>{fieldsOf(each)}</ul>)}
    </Fold>
  );
}

function Media({ of = {} }: { of?: DocumentPart | undefined }) {
  return Object.entries<DocumentPart>(of).map(([type, { schema = {}, example }]) => (
    <div key={type}>
      <p>{`${type}: ${typeOf(schema)}`}</p>
      <Fields of={schema} />
      {example !== undefined && <Long text={pretty(example)} />}
    </div>
  ));
}

function Long({ text }: { text: string }) {
  // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling place must take the focus.
  return <pre tabIndex={0}>{code(text)}</pre>;
}

/** Sends what the form says, with the reader's credentials. Returns the status and the body. */
async function send([method, path, { parameters, security, requestBody }]: Listed, form: FormData) {
  const said = (name: string) => String(form.get(name) ?? "").trim();
  const given = (place: string) =>
    parameters.filter((one: DocumentPart) => one.in === place && said(one.name) !== "");
  const query = new URLSearchParams(
    given("query").map(({ name }: DocumentPart) => [name, said(name)]),
  );
  const headers = new Headers(given("header").map(({ name }: DocumentPart) => [name, said(name)]));
  if (security.some((one: DocumentPart) => "personSignIn" in one))
    headers.set("mintmark-console", "1");
  if (security.some((one: DocumentPart) => "ownerPage" in one)) headers.set("mintmark-owner", "1");
  if (security.length > 0 && credential.startsWith("eyJ"))
    headers.set("authorization", `Bearer ${credential}`);
  else if (security.length > 0 && credential !== "") headers.set("x-api-key", credential);
  const [media] = Object.keys(requestBody?.content ?? {});
  if (media !== undefined) headers.set("content-type", media);
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(said(name)));
  const body = media === undefined ? {} : { body: said("body") };
  const answer = await fetch(`${filled}${query.size > 0 ? `?${query}` : ""}`, {
    method,
    headers,
    ...body,
  });
  const text = await answer.text();
  const isJson = /\bjson\b/.test(answer.headers.get("content-type") ?? "") && text !== "";
  return {
    status: answer.status,
    text: isJson ? pretty(JSON.parse(text)) : text.slice(0, 100_000),
  };
}

function Try({ listed }: { listed: Listed }) {
  const { parameters, requestBody, operationId } = listed[2];
  const [sent, setSent] = useState<Awaited<ReturnType<typeof send>> | null>(null);
  const { busy, error, run } = useAction();
  const [media] = Object.values<DocumentPart>(requestBody?.content ?? {});
  const submit = onSent((fields) => run(async () => setSent(await send(listed, fields))));
  return (
    <form class="claim" autocomplete="off" aria-label={`Try ${operationId}`} onSubmit={submit}>
      {parameters.map(
        ({ name, in: place, required = false, description, schema }: DocumentPart) => (
          <label key={name}>
            {code(name)} {place}, {typeOf(schema)} {required && <strong>required</strong>}
            <Text of={description ?? schema.description} />
            <input name={name} required={required} />
          </label>
        ),
      )}
      {media && (
        <label>
          Body
          <textarea name="body" rows={10} defaultValue={pretty(media.example ?? {})} />
        </label>
      )}
      <Button submit main disabled={busy} text="Send" />
      {error && <Failure error={error} />}
      {sent && (
        <div role="status">
          <p>{`Answer ${sent.status}:`}</p>
          <Long text={sent.text} />
        </div>
      )}
    </form>
  );
}

function Entry({ listed }: { listed: Listed }) {
  const [method, path, { operationId, summary, description, requestBody, responses }] = listed;
  const title = (
    <>
      <strong>{method}</strong> {code(path)} <span class="quiet">{summary}</span>
    </>
  );
  const answers = Object.entries<DocumentPart>(responses).map(
    ([status, { description: meaning, content }]) => (
      <Fold key={status} title={`Answer ${status}`}>
        {() => [<Text key="meaning" of={meaning} />, <Media key="content" of={content} />]}
      </Fold>
    ),
  );
  return (
    <Fold id={operationId} title={title}>
      {() => [
        <Text key="text" of={description} />,
        <Try key="try" listed={listed} />,
        <Media key="body" of={requestBody?.content} />,
        answers,
      ]}
    </Fold>
  );
}

function Reference({ of: { info, tags, paths } }: { of: DocumentPart }) {
  const [filter, setFilter] = useState("");
  useEffect(() => document.getElementById(location.hash.slice(1))?.scrollIntoView(), []);
  const all = Object.entries<DocumentPart>(paths).flatMap(([path, methods]) =>
    Object.entries<DocumentPart>(methods).map(
      ([method, one]): Listed => [method.toUpperCase(), path, one],
    ),
  );
  const wanted = all.filter(([method, path, { summary, operationId }]) =>
    `${method} ${path} ${summary} ${operationId}`.toLowerCase().includes(filter),
  );
  const listedIn = (tag: string) => wanted.filter(([, , one]) => one.tags.includes(tag));
  const said = (text: string) => ({ "aria-label": text, placeholder: text, autocomplete: "off" });
  const keep = (event: { currentTarget: HTMLInputElement }) => {
    credential = event.currentTarget.value.trim();
  };
  return (
    <>
      <h1>{`${info.title} API ${info.version}`}</h1>
      <Text of={info.description} />
      <p>
        <a href="/">Start page</a>, <a href="/openapi.json">OpenAPI document</a>,{" "}
        <a href="/guide/api">rules of all requests</a>
      </p>
      <div class="choices">
        <input {...said("API key or token")} type="password" onInput={keep} />
        <input
          {...said("Filter: mint, /vaults, …")}
          type="search"
          onInput={(event) => setFilter(event.currentTarget.value.toLowerCase())}
        />
      </div>
      {tags.map(({ name, description }: DocumentPart) => (
        <section key={name} aria-label={name} hidden={listedIn(name).length === 0}>
          <h2>{name}</h2>
          <p class="quiet">{description}</p>
          {listedIn(name).map((one) => (
            <Entry key={one[2].operationId} listed={one} />
          ))}
        </section>
      ))}
    </>
  );
}

function App() {
  const read = async () => {
    const document: DocumentPart = await (await fetch("/openapi.json")).json();
    schemas = document.components.schemas;
    return document;
  };
  const loaded = useLoad(read, null);
  return (
    <main>
      <Shown of={loaded}>{(document) => <Reference of={document} />}</Shown>
    </main>
  );
}

show(<App />);
