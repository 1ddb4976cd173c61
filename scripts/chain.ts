/** A bare local chain until Ctrl-C: `npm run chain`. Port by MINTMARK_CHAIN_PORT, default 8545. */

import { stopSignal } from "../server/stop-signal.ts";
import { portOf } from "./port.ts";
import { startChain } from "./sandbox/chain.ts";

const chain = await startChain("local", portOf("MINTMARK_CHAIN_PORT", 8545));
process.stdout.write(`local chain ${chain.rpcUrl} (chain id 31337, in memory); Ctrl-C stops it\n`);
await stopSignal();
await chain.stop();
