import { Connection, type Target } from "./connection.ts";

/**
 * Sends each body once, over so many connections at once, each the next one when its last was answered.
 *
 * @returns requests a second, from the first request to the last answer
 */
export async function saturate(target: Target, bodies: readonly Buffer[], connections: number): Promise<number> {
  using open = new DisposableStack();
  const start = performance.now();
  const left = bodies.values();
  const send = async (connection: Connection) => {
    for (const body of left) await connection.post(body);
  };
  await Promise.all(Array.from({ length: connections }, () => send(open.use(new Connection(target)))));
  return (bodies.length / (performance.now() - start)) * 1000;
}
