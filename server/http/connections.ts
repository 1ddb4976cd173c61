import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** Most unanswered requests of one connection. Hardly any client sends a second one before the first answer. */
const MOST_UNANSWERED = 32;

const unanswered = new WeakMap<Socket, number>();

/**
 * Watches a request's connection. Closes one with too many unanswered requests, whose answers would wait here. After
 * `stalledMs` without traffic, closes one whose peer does not read its answer or does not send the rest of its body.
 * While the server works, the peer owes nothing. Returns false for a closed connection.
 */
export function watchConnection(request: IncomingMessage, response: ServerResponse, stalledMs: number): boolean {
  const { socket } = request;
  const count = (unanswered.get(socket) ?? 0) + 1;
  // Node's parser goes on to the end of what it has read.
  if (socket.destroyed) return false;
  if (count > MOST_UNANSWERED) {
    socket.destroy();
    return false;
  }
  unanswered.set(socket, count);
  response.once("close", () => unanswered.set(socket, (unanswered.get(socket) ?? 1) - 1));
  // Not all at the same time: thousands that open their connections again would delay everybody.
  // A request in memory has no such socket.
  socket.setTimeout?.(stalledMs * (1 + Math.random()));
  response.on("timeout", () => {
    if (socket.writableLength > 0 || (request.complete === false && request.readableLength === 0)) socket.destroy();
  });
  return true;
}
