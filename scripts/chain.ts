/** `npm run chain`; see the help below. */

import { stopSignal } from "../server/stop-signal.ts";
import { answerHelp } from "./command.ts";
import { portOf } from "./port.ts";
import { startChain } from "./sandbox/chain.ts";

answerHelp(`Usage: npm run chain

A bare local chain in memory, chain id 31337, until Ctrl-C. By the environment:

  MINTMARK_CHAIN_PORT  the chain's port, 8545
`);
const chain = await startChain("local", portOf("MINTMARK_CHAIN_PORT", 8545));
process.stdout.write(`local chain ${chain.rpcUrl} (chain id 31337, in memory); Ctrl-C stops it\n`);
await stopSignal();
await chain.stop();
