import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { answer, type Event, webhookEvent } from "../../server/client/index.ts";
import { clientOf, OVER_HTTP, textOf } from "../cli/arguments.ts";
import { type Given, subcommand } from "../cli/command.ts";
import { UsageError } from "../cli/exit.ts";

export const listenCommand = subcommand({
  usage: "listen",
  description: "show deliveries as they come, each signature checked, until Ctrl-C",
  examples: [
    "webhooks listen",
    "webhooks listen --types mint.accepted,batch.finalized",
    "webhooks listen --port 4001 --address https://tunnel.example/mintmark --json",
  ],
  options: {
    "--types <types>": "types of event, separated by commas; default all",
    "--port <port>": "the port of this machine to listen on; default any",
    "--address <url>": "what the server posts to, such as a tunnel to the port; default the port",
    ...OVER_HTTP,
  },
  isProcess: true,
  notes:
    "It makes a webhook for as long as it listens. A sandbox reaches this machine; any other server" +
    "\nneeds the public address of a tunnel. With --json, each event is a line.",
  work: listen,
});

/** An event has less than a thousandth of it. */
const MOST_CHARACTERS = 1_000_000;

/** A delivery whose signature is right. */
interface Told {
  readonly event: Event;
  readonly again: boolean;
}

async function listen({ options, signal }: Given): Promise<void> {
  const port = Number(options.port ?? 0);
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new UsageError("--port: give 0 to 65535");
  const { client } = await clientOf(options);
  const seen = new Set<number>();
  const secret = Promise.withResolvers<string>();
  const server = createServer((request, response) => {
    void receive(request, response, secret.promise, seen).then((told) =>
      show(told, options.json === true),
    );
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening", { signal });
  try {
    const here = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const url = textOf(options.address) ?? here;
    const types = (textOf(options.types) ?? "").split(",").flatMap((type) => type.trim() || []);
    const body = { url, types: types as Event["type"][] };
    const made = await answer(client.POST("/api/v1/webhooks", { body, signal }));
    secret.resolve(made.secret);
    process.stderr.write(`listening on ${here}; the server posts to ${url}; Ctrl-C ends it\n`);
    if (!signal.aborted) await once(signal, "abort");
    const path = { webhookId: made.webhookId };
    await answer(client.DELETE("/api/v1/webhooks/{webhookId}", { params: { path } }));
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

/** Answers a delivery, and tells its event, or why it is refused. */
async function receive(
  request: IncomingMessage,
  response: ServerResponse,
  secret: Promise<string>,
  seen: Set<number>,
): Promise<Told | Error> {
  try {
    const body = await bodyOf(request);
    const event = await webhookEvent(await secret, request.headers, body);
    response.writeHead(204).end();
    const again = seen.has(event.sequence);
    seen.add(event.sequence);
    return { event, again };
  } catch (error) {
    response.writeHead(400).end();
    return error instanceof Error ? error : new Error(String(error));
  }
}

/** Through a tunnel, anybody may post anything. */
async function bodyOf(request: IncomingMessage): Promise<string> {
  let body = "";
  for await (const chunk of request.setEncoding("utf8")) {
    body += chunk;
    if (body.length > MOST_CHARACTERS) throw new Error("the body is too long");
  }
  return body;
}

function show(told: Told | Error, asJson: boolean): void {
  if (told instanceof Error) {
    process.stderr.write(`refused: ${told.message}\n`);
    return;
  }
  const { event, again } = told;
  const { sequence, type, createdAt, data } = event;
  const line = asJson
    ? JSON.stringify(event)
    : `${createdAt}  ${sequence}  ${type}  ${JSON.stringify(data)}${again ? "  (again)" : ""}`;
  process.stdout.write(`${line}\n`);
}
