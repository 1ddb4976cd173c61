import { parentPort, workerData } from "node:worker_threads";
import type { Settlement } from "../ports.ts";
import { giveWay } from "../thread.ts";
import type { Ended, Progressed } from "./verify-thread.ts";

/** The thread of core/verify/verify-thread.ts: verifies one store, and ends. */
const port = parentPort;
if (port !== null) {
  // Before the modules are compiled, which takes longer than a small store takes.
  giveWay();
  const { failureOf, RemoteReader } = await import("./remote-reader.ts");
  const { verifyReader } = await import("./verify.ts");
  const reader = new RemoteReader(port);
  const tell = (message: Progressed | Ended) => port.postMessage(message);
  const following = {
    onProgress: (entries: number) => tell({ entries }),
    onShare: (share: number) => tell({ share }),
  };
  const settlement = workerData as Settlement;
  verifyReader(reader, settlement, following, (blob) => reader.commitment(blob))
    .then((report): Ended => ({ report, failure: null }))
    .catch((error: unknown): Ended => ({ report: null, failure: failureOf(error) }))
    .then((ended) => {
      tell(ended);
      port.close();
    });
}
