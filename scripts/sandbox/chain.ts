import hre from "hardhat";
import { freePort } from "./port.ts";

/** A local chain in this process, with HTTP on the loopback interface only. */
export interface LocalChain {
  readonly rpcUrl: string;
  readonly port: number;
  stop(): Promise<void>;
}

/** Starts an in-memory chain. It mines each transaction at once, and an empty block every second to move its clock. */
export async function startChain(network: "local" | "other", wantedPort: number): Promise<LocalChain> {
  const port = await freePort(wantedPort);
  const mining = { auto: true, interval: 1_000 };
  const server = await hre.network.createServer({ network, override: { mining } }, "127.0.0.1", port);
  await server.listen();
  return { rpcUrl: `http://127.0.0.1:${port}`, port, stop: () => server.close() };
}
