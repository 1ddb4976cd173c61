import { once } from "node:events";
import { chmod, rm } from "node:fs/promises";
import { createConnection, createServer, type Socket } from "node:net";
import { relative, resolve } from "node:path";
import { createInterface } from "node:readline";
import { type Engine, type Issue, MintmarkError } from "../../../core/index.ts";
import { operate } from "./operations.ts";

/**
 * The operator's access to a running server: a Unix socket in the store's folder that only the
 * server's own user can open, so it needs no key and no port. A connection carries one operation: a
 * JSON line `{operation, input}`, answered by lines `{progress}` and one `{result}` or `{error:
 * {code, detail, issues}}`.
 */

interface Request {
  readonly operation: string;
  readonly input: unknown;
}
interface Failure {
  readonly code: MintmarkError["code"];
  readonly detail: string;
  readonly issues: readonly Issue[];
}
type Reply =
  | { readonly progress: string }
  | { readonly result: unknown }
  | { readonly error: Failure };

/** Longest line accepted; inputs are far smaller. */
const MAX_LINE = 64 * 1024;
/**
 * Bytes: below the limits of a socket's path, 104 on macOS and 108 on Linux with the final zero.
 */
const MAX_PATH = 100;

/** The path of a server's socket for its operator. Throws when it is too long. */
function operatorSocket(store: string): string {
  const absolute = resolve(store, "operator.sock");
  const path = [absolute, relative(process.cwd(), absolute)].find(
    (each) => Buffer.byteLength(each) <= MAX_PATH,
  );
  if (path !== undefined) return path;
  throw new Error(
    `the path of the store is too long for a socket in it (${absolute}); use a shorter one`,
  );
}

/**
 * Serves the operator of an engine until disposed. The caller holds the store, so an existing
 * socket is stale.
 */
export async function serveOperator(
  engine: Engine,
  store: string,
  originOf: () => string | undefined = () => undefined,
): Promise<AsyncDisposable> {
  const path = operatorSocket(store);
  await rm(path, { force: true });
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    open.add(socket);
    socket.on("close", () => open.delete(socket));
    void serveOne(engine, socket, originOf);
  });
  // This call creates the socket, closed to others at once. The mask is process-wide, so it is
  // restored here.
  const mask = process.umask(0o177);
  server.listen(path);
  process.umask(mask);
  await once(server, "listening");
  await chmod(path, 0o600);
  return {
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy();
      await new Promise((closed) => server.close(closed));
    },
  };
}

async function serveOne(
  engine: Engine,
  socket: Socket,
  originOf: () => string | undefined,
): Promise<void> {
  const gone = new AbortController();
  socket.on("error", () => {});
  socket.on("close", () => gone.abort());
  const send = (reply: Reply) => socket.writable && socket.write(`${JSON.stringify(reply)}\n`);
  try {
    const { operation, input } = await readRequest(socket);
    const progress = (where: string) => void send({ progress: where });
    const running = { signal: gone.signal, progress, origin: originOf() };
    send({ result: await operate(engine, operation, input, running) });
  } catch (error) {
    send({ error: failureOf(error) });
  }
  socket.end();
}

/** The first line. The connection stays open, so its end shows that nobody waits. */
function readRequest(socket: Socket): Promise<Request> {
  const malformed = () =>
    new MintmarkError("validation_failed", "Give one line of JSON: {operation, input}.");
  return new Promise((received, refused) => {
    let text = "";
    socket.setEncoding("utf8");
    socket.on("close", () => refused(malformed()));
    socket.on("data", function read(chunk: string) {
      text += chunk;
      const end = text.indexOf("\n");
      if (end < 0 && text.length <= MAX_LINE) return;
      // Ignores everything after the first line.
      socket.off("data", read).resume();
      try {
        const { operation, input } = JSON.parse(text.slice(0, Math.max(0, end))) as Record<
          string,
          unknown
        >;
        if (typeof operation !== "string") throw malformed();
        received({ operation, input });
      } catch {
        refused(malformed());
      }
    });
  });
}

function failureOf(error: unknown): Failure {
  if (error instanceof MintmarkError)
    return { code: error.code, detail: error.message, issues: error.issues };
  return {
    code: "store_failed",
    detail: error instanceof Error ? error.message : String(error),
    issues: [],
  };
}

/**
 * Runs an operation on the server of a store, and rejects as it does. Undefined when no server
 * listens there.
 */
export async function askServer(
  store: string,
  request: Request,
  { signal, progress }: { readonly signal: AbortSignal; progress(where: string): void },
): Promise<{ readonly result: unknown } | undefined> {
  const socket = await connect(operatorSocket(store));
  if (socket === undefined) return undefined;
  const stop = () => socket.destroy();
  signal.addEventListener("abort", stop, { once: true });
  try {
    socket.write(`${JSON.stringify(request)}\n`);
    for await (const line of createInterface({ input: socket })) {
      const reply = JSON.parse(line) as Reply;
      if ("progress" in reply) progress(reply.progress);
      else if ("result" in reply) return reply;
      else
        throw new MintmarkError(reply.error.code, reply.error.detail, {
          issues: reply.error.issues,
        });
    }
    signal.throwIfAborted();
    throw new MintmarkError("engine_closed", "The server ended without an answer; check its log.");
  } finally {
    signal.removeEventListener("abort", stop);
    socket.destroy();
  }
}

async function connect(path: string): Promise<Socket | undefined> {
  // A later error ends the lines, which tells enough.
  const socket = createConnection(path).on("error", () => {});
  try {
    await once(socket, "connect");
    return socket;
  } catch (error) {
    if (/^(?:ENOENT|ECONNREFUSED)$/.test((error as NodeJS.ErrnoException).code ?? ""))
      return undefined;
    throw error;
  }
}
