import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { FastifyInstance } from "fastify";

/** Lets a server listen on a port that the system chooses. */
export async function listen(app: FastifyInstance): Promise<number> {
  await app.listen({ host: "127.0.0.1", port: 0 });
  const address = app.server.address();
  if (address === null || typeof address === "string") throw new Error("not listening on a port");
  return address.port;
}

/** One raw connection. `answer` resolves with the next whole answer. */
export class Connection {
  readonly socket: Socket;
  #received = "";

  constructor(port: number, localAddress = "127.0.0.1") {
    this.socket = connect({ port, host: "127.0.0.1", localAddress });
    this.socket.setEncoding("latin1").on("data", (chunk) => {
      this.#received += chunk;
    });
    this.socket.on("error", () => {});
  }

  write(bytes: string | Uint8Array): this {
    this.socket.write(bytes);
    return this;
  }

  /** Rejects when the server closes the connection without a whole answer. */
  async answer(): Promise<{ status: number; head: string; body: string }> {
    for (;;) {
      const end = this.#received.indexOf("\r\n\r\n");
      const head = this.#received.slice(0, end);
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
      if (end !== -1 && this.#received.length >= end + 4 + length) {
        const body = this.#received.slice(end + 4, end + 4 + length);
        this.#received = this.#received.slice(end + 4 + length);
        return { status: Number(head.split(" ")[1]), head, body };
      }
      if (this.socket.closed) throw new Error(`closed after ${JSON.stringify(this.#received)}`);
      const over = new AbortController();
      const { signal } = over;
      await Promise.race([
        once(this.socket, "data", { signal }),
        once(this.socket, "close", { signal }),
      ]);
      over.abort();
    }
  }
}
