import { type AddressInfo, createServer } from "node:net";

/** The wanted port on 127.0.0.1 if free, else one of the next twenty. 0: any, which the system chooses. */
export async function freePort(wanted: number): Promise<number> {
  const last = wanted === 0 ? 0 : wanted + 20;
  for (let port = wanted; port <= last; port++) {
    const found = await probed(port);
    if (found !== null) return found;
  }
  throw new Error(`no free port from ${wanted} to ${last} on 127.0.0.1`);
}

/** The port on which a server has listened for a moment; null if it is taken. */
function probed(port: number): Promise<number | null> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(null));
    probe.listen({ port, host: "127.0.0.1" }, () => {
      const { port: found } = probe.address() as AddressInfo;
      probe.close(() => resolve(found));
    });
  });
}
