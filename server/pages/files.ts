import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { ServerError } from "../http/errors.ts";
import { sendTag, tagOf } from "../http/etag.ts";

/** A file of a page, in memory: pages are small, and no caller can name a path to read. */
export interface PageFile {
  /** Relative to the page's address; empty for the page itself. */
  readonly path: string;
  readonly type: string;
  readonly body: Buffer;
  /** Content-Security-Policy of this file, in the place of the page's. */
  readonly policy?: string;
}

export interface Page {
  /** The page's path, such as `/explorer`. */
  readonly address: string;
  /** Content-Security-Policy of all its files. */
  readonly policy: string;
  /** Whether the address gets a slash at its end, for relative links. */
  readonly isFolder?: true;
  /** Called once, at the page's first request. */
  readonly load: () => Promise<readonly PageFile[]>;
}

/** An HTML document. `head` goes behind what each of them has there. */
export function documentOf(title: string, head: string, body: string): string {
  return `<!doctype html>
<html lang="en" spellcheck="false">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>${title}</title>
    ${head}
  </head>
  <body>
    ${body}
  </body>
</html>
`;
}

/** The part of a head for a page of this server, with the style at an address. */
export function styledBy(address: string): string {
  return `<link rel="icon" type="image/svg+xml" href="/explorer/icon.svg">
    <link rel="stylesheet" href="${address}/style.css">`;
}

const TYPES: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  css: "text/css; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  svg: "image/svg+xml",
  png: "image/png",
  json: "application/json; charset=utf-8",
};

/**
 * A file of the type that its source's name shows; bytes of any other, which no browser runs as a
 * script or style.
 */
export function pageFile(path: string, body: string | Buffer, name: string = path): PageFile {
  const type = TYPES[name.slice(name.lastIndexOf(".") + 1)] ?? "application/octet-stream";
  return { path, type, body: Buffer.from(body) };
}

/** The bytes of a file as they travel, in one content coding. */
interface Representation {
  readonly coding: "br" | "gzip" | "identity";
  readonly body: Buffer;
  readonly tag: string;
}

/** A file with its representations, smallest first; the last one is the file itself. */
type Served = PageFile & { readonly representations: readonly Representation[] };

/** The quality of the file itself, when the client does not name it. */
const LEAST_QUALITY = 0.0001;
/** Files below this size, and images, gain nothing. */
const MIN_COMPRESSED_BYTES = 1_024;
const IS_TEXT = /^text\/|json|svg/;

/**
 * Serves a page's files, and nothing else below its address. Browsers cache and revalidate them. No
 * rate limit counts them: they are in memory, and many users behind one address reload them often.
 */
export function mountPage(app: FastifyInstance, page: Page): void {
  let loading: Promise<ReadonlyMap<string, Served>> | undefined;
  const answer = async (request: FastifyRequest, reply: FastifyReply, path: string) => {
    loading ??= page.load().then(async (files) => new Map(await Promise.all(files.map(toServe))));
    // After a failure, the next request loads the page again.
    loading.catch(() => {
      loading = undefined;
    });
    const file = (await loading).get(path);
    if (file === undefined) throw new ServerError("route_not_found");
    reply.headers({
      "content-security-policy": file.policy ?? page.policy,
      "cache-control": "no-cache",
      "referrer-policy": "no-referrer",
      "cross-origin-opener-policy": "same-origin",
    });
    const { coding, body, tag } = accepted(file, request.headers["accept-encoding"]);
    reply.header("vary", "accept-encoding");
    if (sendTag(request, reply, tag)) return reply.send();
    if (coding !== "identity") reply.header("content-encoding", coding);
    return reply.type(file.type).send(body);
  };
  app.get(page.address, (request, reply) =>
    page.isFolder ? reply.redirect(`${page.address}/`, 308) : answer(request, reply, ""),
  );
  app.get(`${page.address}/*`, (request, reply) =>
    answer(request, reply, (request.params as { "*": string })["*"]),
  );
}

/** Compressed once, off the loop. Pages hold nothing secret, so their sizes tell nothing. */
async function toServe(file: PageFile): Promise<readonly [path: string, Served]> {
  const { path, type, body } = file;
  const identity = { coding: "identity", body, tag: tagOf(body) } as const;
  if (body.length < MIN_COMPRESSED_BYTES || !IS_TEXT.test(type))
    return [path, { ...file, representations: [identity] }];
  const quality = { [constants.BROTLI_PARAM_QUALITY]: 9 };
  const [br, gz] = await Promise.all([
    promisify(brotliCompress)(body, { params: quality }),
    promisify(gzip)(body, { level: 9 }),
  ]);
  const brotli = { coding: "br", body: br, tag: tagOf(br) } as const;
  const gzipped = { coding: "gzip", body: gz, tag: tagOf(gz) } as const;
  return [path, { ...file, representations: [brotli, gzipped, identity] }];
}

/** RFC 9110, 12.4.2. A coding with any other weight is not accepted. */
const QVALUE = /^q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/;

/**
 * The representation with the highest quality in Accept-Encoding (RFC 9110, 12.5.3); of equal ones
 * the smallest.
 */
function accepted({ representations }: Served, header = ""): Representation {
  const qualities = new Map(
    header.split(",").map((part) => {
      const [coding = "", ...parameters] = part.toLowerCase().split(";");
      const weight = parameters.map((each) => each.trim()).find((each) => each.startsWith("q="));
      return [
        coding.trim(),
        weight === undefined ? 1 : Number(QVALUE.exec(weight)?.[1] ?? 0),
      ] as const;
    }),
  );
  const qualityOf = ({ coding }: Representation) =>
    qualities.get(coding) ?? qualities.get("*") ?? (coding === "identity" ? LEAST_QUALITY : 0);
  // A client that refuses every coding gets the file itself.
  const best = Math.max(LEAST_QUALITY, ...representations.map(qualityOf));
  const found = representations.find((each) => qualityOf(each) >= best) ?? representations.at(-1);
  if (found === undefined) throw new TypeError("a file has no representation");
  return found;
}
