import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { Webhook } from "standardwebhooks";
import { eventually } from "../eventually.ts";

export interface Received {
  readonly id: string;
  readonly headers: Record<string, string>;
  readonly body: string;
  // biome-ignore lint/suspicious/noExplicitAny: parsed JSON, of which each test looks at what concerns it.
  readonly event: any;
}

/** A webhook's endpoint that answers as it is told to. */
export class Receiver implements AsyncDisposable {
  readonly received: Received[] = [];
  /** Answers a delivery; default 204. */
  answer: (response: ServerResponse, received: Received) => void = (response) =>
    void response.writeHead(204).end();
  readonly #server = createServer((request, response) => void this.#take(request, response));

  async listen(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return this;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/hook`;
  }

  /** Waits until so many deliveries have come. */
  async has(count: number): Promise<readonly Received[]> {
    await eventually(() => {
      if (this.received.length < count)
        throw new Error(`${this.received.length} of ${count} deliveries`);
    });
    return this.received;
  }

  /**
   * Checks a delivery by the Standard Webhooks library; throws when its signature or time is wrong.
   */
  static verify(secret: string, { headers, body }: Received): unknown {
    return new Webhook(secret).verify(body, headers);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request);
    const headers = request.headers as Record<string, string>;
    const received = { id: headers["webhook-id"] ?? "", headers, body, event: JSON.parse(body) };
    this.received.push(received);
    this.answer(response, received);
  }
}
