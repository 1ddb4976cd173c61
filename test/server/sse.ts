import type { FastifyInstance } from "fastify";

export interface ServerSentEvent {
  readonly id: string;
  // biome-ignore lint/suspicious/noExplicitAny: parsed JSON, of which each test looks at what concerns it.
  readonly data: any;
}

export async function listen(app: FastifyInstance): Promise<string> {
  return app.listen({ host: "127.0.0.1", port: 0 });
}

/** A client of Server-Sent Events that reads only when asked to. */
export class EventStreamClient {
  readonly response: Response;
  /** Comments seen so far: signs of life. */
  comments = 0;
  readonly #stop: AbortController;
  readonly #events: AsyncGenerator<ServerSentEvent>;

  private constructor(response: Response, stop: AbortController) {
    this.response = response;
    this.#stop = stop;
    this.#events = this.#parse();
  }

  static async open(url: string, headers: Record<string, string>): Promise<EventStreamClient> {
    const stop = new AbortController();
    const response = await fetch(url, { headers, signal: stop.signal });
    return new EventStreamClient(response, stop);
  }

  async take(count: number): Promise<ServerSentEvent[]> {
    const taken: ServerSentEvent[] = [];
    while (taken.length < count) {
      const { value, done } = await this.#events.next();
      if (done) throw new Error(`the stream ended after ${taken.length} events`);
      taken.push(value);
    }
    return taken;
  }

  /** Reads to the end, which the server must come to by itself. */
  async rest(): Promise<ServerSentEvent[]> {
    const taken: ServerSentEvent[] = [];
    for await (const event of this.#events) taken.push(event);
    return taken;
  }

  hangUp(): void {
    this.#stop.abort();
  }

  async *#parse(): AsyncGenerator<ServerSentEvent> {
    if (this.response.body === null) return;
    let received = "";
    for await (const chunk of this.response.body.pipeThrough(new TextDecoderStream())) {
      const frames = (received + chunk).split("\n\n");
      received = frames.pop() ?? "";
      for (const frame of frames) {
        if (frame.startsWith(":")) this.comments++;
        const [, id, data] = /^id: (\d+)\ndata: (.*)$/.exec(frame) ?? [];
        if (id !== undefined && data !== undefined) yield { id, data: JSON.parse(data) };
      }
    }
    if (received !== "") throw new Error(`the stream was cut off in ${received}`);
  }
}
