import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** Where a new connection goes, as a port of 127.0.0.1; null while there is no such place. */
export type Target = () => Promise<number | null>;

/**
 * A network path between two programs, which a test can cut as a switch or a firewall does:
 * silently, both ways.
 */
export class Link implements AsyncDisposable {
  readonly #server: Server;
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  readonly #waiting = new Set<Socket>();
  #isCut = false;

  private constructor(server: Server, target: Target) {
    this.#server = server;
    server.on("connection", (socket) => void this.#join(socket, target));
  }

  static async to(target: Target): Promise<Link> {
    const server = createServer({ pauseOnConnect: true });
    const link = new Link(server, target);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return link;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Holds back every byte, or lets them go on. Nobody is told. */
  cut(isCut: boolean): void {
    this.#isCut = isCut;
    for (const [one, other] of this.#pairs) {
      for (const socket of [one, other]) isCut ? socket.pause() : socket.resume();
    }
  }

  /** Ends what is connected now. */
  reset(): void {
    for (const pair of this.#pairs) for (const socket of pair) socket.resetAndDestroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.reset();
    for (const socket of this.#waiting) socket.destroy();
  }

  async #join(socket: Socket, target: Target): Promise<void> {
    socket.on("error", () => {});
    this.#waiting.add(socket);
    socket.once("close", () => this.#waiting.delete(socket));
    while (this.#isCut && !socket.destroyed) await new Promise((done) => setTimeout(done, 20));
    const port = await target();
    if (port === null || socket.destroyed) return void socket.destroy();
    const other = connect({ port, host: "127.0.0.1", noDelay: true });
    socket.setNoDelay(true);
    other.on("error", () => {});
    const pair = [socket, other] as const;
    this.#pairs.add(pair);
    for (const [from, to] of [pair, [other, socket] as const]) {
      from.on("data", (bytes) => void to.write(bytes));
      from.once("close", () => {
        this.#pairs.delete(pair);
        to.destroy();
      });
    }
    if (this.#isCut) this.cut(true);
    else socket.resume();
  }
}
