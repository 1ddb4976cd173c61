import { createServer } from "node:net";

/** The wanted port on 127.0.0.1 if free, else one of the next twenty. 0 stays 0: the system chooses. */
export async function freePort(wanted: number): Promise<number> {
  if (wanted === 0) return anyPort();
  for (let port = wanted; port <= wanted + 20; port++) {
    if (await isFree(port)) return port;
  }
  throw new Error(`no free port from ${wanted} to ${wanted + 20} on 127.0.0.1`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen({ port, host: "127.0.0.1" }, () => probe.close(() => resolve(true)));
  });
}

function anyPort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen({ port: 0, host: "127.0.0.1" }, () => {
      const address = probe.address();
      probe.close(() =>
        address !== null && typeof address === "object" ? resolve(address.port) : reject(new Error("no port")),
      );
    });
  });
}
