import packageJson from "../../package.json" with { type: "json" };
import { UsageError } from "../cli/exit.ts";
import { freePort } from "./process.ts";

export type LocalChain = Awaited<ReturnType<typeof startChain>>;

/** The second chain is for tokens that live elsewhere than the state. */
const CHAIN_IDS = { local: 31_337, other: 31_338 };

/**
 * Starts an in-memory chain, with HTTP on the loopback interface only. It mines each transaction at
 * once, and an empty block every second to move its clock.
 */
export async function startChain(network: keyof typeof CHAIN_IDS, wantedPort: number) {
  requireHardhat();
  const { createHardhatRuntimeEnvironment } = await import("hardhat/hre");
  const port = await freePort(wantedPort);
  const chain = { type: "edr-simulated", chainType: "l1", chainId: CHAIN_IDS[network] } as const;
  const mining = { auto: true, interval: 1_000 };
  // The project is this package, so the chain needs no configuration in the reader's folder and
  // reads none there.
  const project = import.meta.dirname;
  const { network: networks } = await createHardhatRuntimeEnvironment(
    { networks: { local: chain } },
    {},
    project,
  );
  const server = await networks.createServer(
    { network: "local", override: { mining } },
    "127.0.0.1",
    port,
  );
  await server.listen();
  return { rpcUrl: `http://127.0.0.1:${port}`, port, stop: () => server.close() };
}

/** The command that adds Hardhat, an optional part of the package; null where it is. */
export function missingHardhat(): string | null {
  try {
    import.meta.resolve("hardhat/hre");
    return null;
  } catch {
    return `npm install hardhat@${packageJson.peerDependencies.hardhat}`;
  }
}

export function requireHardhat(): void {
  const missing = missingHardhat();
  if (missing !== null) throw new UsageError(`a local chain needs Hardhat: \`${missing}\` adds it`);
}
