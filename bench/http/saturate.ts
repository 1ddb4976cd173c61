import { Connection, type Target } from "./connection.ts";

/**
 * Sends each body once over `connections` connections; each sends the next one after its last response.
 *
 * @returns requests a second, from the first request to the last response
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
