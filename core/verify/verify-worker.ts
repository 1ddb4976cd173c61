import { parentPort, workerData } from "node:worker_threads";
import { failureOf, giveWay } from "../thread.ts";
import type { Ended, Progressed, Task } from "./verify-thread.ts";

/** The thread of core/verify/verify-thread.ts: verifies or restores one store, and ends. */
const port = parentPort;
if (port !== null) {
  const { settlement } = workerData as Task;
  // Before the modules are compiled, which takes longer than a small store takes.
  if (settlement !== null) giveWay("long");
  const { RemoteStore } = await import("./remote-reader.ts");
  const store = new RemoteStore(port);
  const tell = (message: Progressed | Ended) => port.postMessage(message);
  const following = {
    onProgress: (entries: number) => tell({ entries }),
    onShare: (share: number) => tell({ share }),
  };
  const commit = (blob: Uint8Array) => store.commitment(blob);
  const work = async () => {
    if (settlement === null) {
      const { restoreRecords } = await import("./restore-records.ts");
      return restoreRecords(store, following, commit);
    }
    const { verifyReader } = await import("./verify.ts");
    return verifyReader(store, settlement, following, commit);
  };
  work()
    .then((result): Ended => ({ result, failure: null }))
    .catch((error: unknown): Ended => ({ result: null, failure: failureOf(error) }))
    .then((ended) => {
      tell(ended);
      port.close();
    });
}
