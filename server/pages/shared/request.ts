/** An answer that is a problem document, as a sentence. */
export class Problem extends Error {
  readonly code: string;
  /** Until the server takes it again; 0 when it names no time. */
  readonly seconds: number;

  constructor(code: string, detail: string, seconds = 0) {
    super(seconds === 0 ? detail : `${detail} Try again in ${seconds} s.`);
    this.code = code;
    this.seconds = seconds;
  }
}

interface Sent {
  /** Default: GET, or POST with a body. */
  readonly method?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** The body's media type; default JSON. */
  readonly type?: string;
}

/** Asks this server. Rejects with a {@link Problem}. */
export async function request(
  path: string,
  { method, body, headers, type }: Sent = {},
): Promise<Response> {
  const posted = body !== undefined && {
    method: "POST",
    headers: { ...headers, "content-type": type ?? "application/json" },
    body: body instanceof Blob ? body : JSON.stringify(body),
  };
  const response = await fetch(path, { headers, ...posted, ...(method && { method }) }).catch(
    () => {
      const hint = "Check your connection. Owners can withdraw without it: see the exit kit.";
      throw new Problem("unreachable", `The server cannot be reached. ${hint}`);
    },
  );
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  const {
    code = "internal",
    detail = `The server answered ${response.status}.`,
    errors: [first] = [],
  } = problem;
  const said = code === "rate_limited" ? "This server accepts no more requests for now." : detail;
  const name = first?.pointer.split("/").at(-1);
  const seconds = Number(response.headers.get("retry-after"));
  throw new Problem(code, first ? `${name && `${name}: `}${first.detail}` : said, seconds);
}

/** Resolves with null when the answer is that the thing does not exist, or that the id is none. */
export async function orNull<T>(asked: Promise<T>): Promise<T | null> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof Problem && /_not_found$|^validation_failed$/.test(error.code)) return null;
    throw error;
  }
}

export const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
