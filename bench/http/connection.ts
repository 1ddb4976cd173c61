import { connect, type Socket } from "node:net";
import { fromCallers } from "../harness.ts";

export interface Target {
  readonly port: number;
  readonly apiKey: string;
}

/** Buffer of all responses. Garbage collection in the load would take a core, and measure its own pauses. */
const READ = Buffer.allocUnsafe(1 << 20);
const HEAD_END = "\r\n\r\n";

export class Connection implements Disposable {
  readonly #apiKey: string;
  readonly #socket: Socket;
  #head = "";
  /** Remaining bytes of the response's body; null before its head is complete. */
  #left: number | null = null;
  #answered: (() => void) | null = null;
  #failed: ((error: Error) => void) | null = null;

  constructor({ port, apiKey }: Target) {
    this.#apiKey = apiKey;
    const callback = (bytes: number): boolean => {
      this.#take(bytes);
      return true;
    };
    this.#socket = connect({ port, host: "127.0.0.1", noDelay: true, onread: { buffer: READ, callback } });
    this.#socket.on("error", (error) => this.#failed?.(error));
    this.#socket.on("close", () => this.#failed?.(new Error("the server closed the connection")));
  }

  /** Resolves with the response's last byte. Rejects unless it is 200, because a rate of errors is meaningless. */
  post(body: Buffer): Promise<void> {
    this.#socket.cork();
    this.#socket.write(
      `POST /api/v1/mint HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: ${this.#apiKey}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${body.length}${HEAD_END}`,
      "latin1",
    );
    this.#socket.write(body);
    this.#socket.uncork();
    return new Promise((answered, failed) => {
      this.#answered = answered;
      this.#failed = failed;
    });
  }

  [Symbol.dispose](): void {
    this.#failed = null;
    this.#socket.destroy();
  }

  #take(bytes: number): void {
    if (this.#left === null) {
      this.#head += READ.toString("latin1", 0, Math.min(bytes, 4096));
      const end = this.#head.indexOf(HEAD_END);
      if (end < 0) return;
      const status = this.#head.slice("HTTP/1.1 ".length, "HTTP/1.1 200".length);
      const length = /content-length: (\d+)/i.exec(this.#head)?.[1];
      if (status !== "200" || length === undefined) {
        this.#failed?.(new Error(`a mint was answered with ${status}: ${this.#head}`));
        return;
      }
      // The head's bytes are followed by the first part of the body.
      const before = this.#head.length - Math.min(bytes, 4096);
      this.#left = Number(length) - (bytes - (end + HEAD_END.length - before));
      this.#head = "";
    } else this.#left -= bytes;
    if (this.#left > 0) return;
    this.#left = null;
    this.#answered?.();
  }
}

/** Posts over connections to a target; opens one where each is busy. */
export function poster(target: Target, open: DisposableStack): (body: Buffer) => Promise<void> {
  const idle: Connection[] = [];
  return async (body) => {
    const connection = idle.pop() ?? open.use(new Connection(target));
    await connection.post(body);
    idle.push(connection);
  };
}

/**
 * Sends each body once over `connections` connections; each sends the next one after its last response.
 *
 * @returns requests a second, from the first request to the last response
 */
export async function saturate(target: Target, bodies: readonly Buffer[], connections: number): Promise<number> {
  using open = new DisposableStack();
  const start = performance.now();
  await fromCallers(connections, bodies, poster(target, open));
  return (bodies.length / (performance.now() - start)) * 1000;
}
