import { open } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fromCallers } from "../harness.ts";

export interface Target {
  readonly port: number;
  readonly apiKey: string;
  /** Default: a mint's. */
  readonly path?: string;
  /** The status of a good answer; default 200. */
  readonly status?: string;
}

/**
 * Buffer of all responses. Garbage collection in the load would take a core, and measure its own
 * pauses.
 */
const READ = Buffer.allocUnsafe(1 << 20);
const HEAD_END = "\r\n\r\n";

function connection({ port, apiKey, path = "/api/v1/mint", status = "200" }: Target) {
  let good = status;
  let head = "";
  /** Remaining bytes of the response's body; null before its head is complete. */
  let left: number | null = null;
  let answer: PromiseWithResolvers<void> | null = null;
  let isOpen = true;
  const take = (bytes: number) => {
    if (left === null) {
      head += READ.toString("latin1", 0, Math.min(bytes, 4096));
      const end = head.indexOf(HEAD_END);
      if (end < 0) return;
      const found = head.slice("HTTP/1.1 ".length, "HTTP/1.1 200".length);
      const length = /content-length: (\d+)/i.exec(head)?.[1];
      if (found !== good || length === undefined)
        return answer?.reject(new Error(`a request was answered with ${found}: ${head}`));
      // The head's bytes are followed by the first part of the body.
      const before = head.length - Math.min(bytes, 4096);
      left = Number(length) - (bytes - (end + HEAD_END.length - before));
      head = "";
    } else left -= bytes;
    if (left > 0) return;
    left = null;
    answer?.resolve();
  };
  const callback = (bytes: number) => {
    take(bytes);
    return true;
  };
  const socket = connect({
    port,
    host: "127.0.0.1",
    noDelay: true,
    onread: { buffer: READ, callback },
  });
  const closed = (error: Error) => {
    isOpen = false;
    answer?.reject(error);
  };
  socket.on("error", closed);
  socket.on("end", () => closed(new Error("the server closed the connection")));
  socket.on("close", () => closed(new Error("the connection is closed")));
  return {
    /** False once either side has closed it: servers close what was idle for some seconds. */
    get isOpen() {
      return isOpen;
    },
    /** Resolves when the server has taken the connection, and answered a first request. */
    async taken(): Promise<void> {
      const given = good;
      good = "200";
      answer = Promise.withResolvers();
      socket.write(`GET /healthz HTTP/1.1\r\nHost: localhost${HEAD_END}`);
      await answer.promise;
      good = given;
    },
    /**
     * Resolves with the response's last byte. Rejects for another status, because a rate of errors
     * is meaningless.
     */
    post(body: Buffer): Promise<void> {
      socket.cork();
      socket.write(
        `POST ${path} HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: ${apiKey}\r\n` +
          `Content-Type: application/json\r\nContent-Length: ${body.length}${HEAD_END}`,
        "latin1",
      );
      socket.write(body);
      socket.uncork();
      answer = Promise.withResolvers();
      return answer.promise;
    },
    [Symbol.dispose]() {
      answer = null;
      socket.destroy();
    },
  };
}

/**
 * The most connections that a client's pool keeps open. Node takes one in each pass of its event
 * loop, however many wait, so they open before the clock starts.
 */
const POOL = 1_024;

/** Posts over a pool of connections, by the one that is free first. */
async function pooled(
  target: Target,
  size: number,
  open: DisposableStack,
): Promise<(body: Buffer) => Promise<void>> {
  const idle: ReturnType<typeof connection>[] = [];
  const waiting: ((one: ReturnType<typeof connection>) => void)[] = [];
  for (let i = 0; i < size; i++) {
    const one = open.use(connection(target));
    await one.taken();
    idle.push(one);
  }
  return async (body) => {
    let one = idle.pop() ?? (await new Promise<(typeof idle)[0]>((go) => waiting.push(go)));
    if (!one.isOpen) one = open.use(connection(target));
    await one.post(body);
    const next = waiting.shift();
    if (next === undefined) idle.push(one);
    else next(one);
  };
}

/** Posts over connections to a target; opens one where each is busy. */
function poster(target: Target, open: DisposableStack): (body: Buffer) => Promise<void> {
  const idle: ReturnType<typeof connection>[] = [];
  return async (body) => {
    let one = idle.pop();
    while (one?.isOpen === false) one = idle.pop();
    one ??= open.use(connection(target));
    await one.post(body);
    idle.push(one);
  };
}

/**
 * Sends each body once over `connections` connections; each sends the next one after its last
 * response.
 *
 * @returns requests a second, from the first request to the last response
 */
export async function saturate(
  target: Target,
  bodies: readonly Buffer[],
  connections: number,
): Promise<number> {
  using open = new DisposableStack();
  const start = performance.now();
  await fromCallers(connections, bodies, poster(target, open));
  return (bodies.length / (performance.now() - start)) * 1000;
}

/** The line by which a process of the load says that it waits for the others. */
export const READY = "ready";

/** A request of {@link sendPaced}. */
export interface Paced {
  /** When it was due, in milliseconds of the machine's monotonic clock. */
  readonly due: number;
  /** Milliseconds from then until its answer. */
  readonly ms: number;
}

/** Milliseconds of the machine's monotonic clock, which all processes share. */
export function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/**
 * Sends requests evenly at a rate, without waiting for earlier responses, and measures each from
 * the time when it was due. So a stall of the server counts for all waiting requests. Has a
 * connection for each request of a second, at most {@link POOL}.
 *
 * @param rate - requests a second
 * @param begin - resolves when the clock starts, once the connections are open
 */
export async function sendPaced(
  target: Target,
  rate: number,
  bodies: Iterable<Buffer>,
  begin: () => Promise<unknown> = async () => {},
): Promise<readonly Paced[]> {
  using connections = new DisposableStack();
  const post = await pooled(target, Math.min(POOL, Math.ceil(rate)), connections);
  await begin();
  const pending: Promise<Paced>[] = [];
  const start = machineMs();
  for (const body of bodies) {
    const due = start + (pending.length / rate) * 1000;
    while (machineMs() < due) await sleep(1);
    const timed = post(body).then(() => ({ due, ms: machineMs() - due }));
    // A failure is the result of the whole, which has a server to stop.
    timed.catch(() => {});
    pending.push(timed);
  }
  const requests = await Promise.all(pending);
  return requests;
}

/** The milliseconds of requests, ascending. */
export function ascending(requests: readonly Paced[]): number[] {
  return requests.map(({ ms }) => ms).sort((a, b) => a - b);
}

/**
 * Appends evenly to a file, and has all that is due on disk before it goes on, as the store does
 * with requests.
 *
 * @param rate - appends a second
 * @param bytes - of one append
 * @returns milliseconds from the time when an append was due until it was on disk, ascending
 */
export async function appendPaced(
  folder: string,
  rate: number,
  seconds: number,
  bytes: number,
): Promise<number[]> {
  await using file = await open(join(folder, "appended"), "wx");
  const times: number[] = [];
  const count = Math.ceil(rate * seconds);
  const start = performance.now();
  while (times.length < count) {
    const due =
      Math.min(count, Math.floor(((performance.now() - start) / 1000) * rate) + 1) - times.length;
    if (due === 0) await sleep(1);
    else {
      await file.appendFile(Buffer.alloc(due * bytes, 0xa5));
      await file.datasync();
      const now = performance.now() - start;
      for (let i = 0; i < due; i++) times.push(now - (times.length / rate) * 1000);
    }
  }
  return times.sort((a, b) => a - b);
}

/** A quantile of ascending values. */
export function quantile(ascending: readonly number[], share: number): number {
  return (
    ascending[Math.min(ascending.length - 1, Math.floor(ascending.length * share))] ?? Number.NaN
  );
}
