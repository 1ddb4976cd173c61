import {
  Archive,
  HttpBatchSource,
  type RebuildOptions,
  type RebuildReport,
  rebuild,
} from "../../core/archive/index.ts";
import { readL1 } from "../../core/l1/index.ts";
import { finalityOf } from "../finality.ts";
import { openLevel } from "../store.ts";

export interface RebuildStoreOptions extends Pick<RebuildOptions, "onProgress" | "onFault" | "signal"> {
  /** Folder of the archive: an empty one, or one that an earlier run has begun. */
  readonly store: string;
  readonly rpcUrl: string;
  readonly contract: `0x${string}`;
  /** Block of the contract's deployment; default 0, which is right but slower. */
  readonly fromBlock?: bigint;
  /** Blocks above one that make it final; default: the chain's own finality. */
  readonly confirmations?: bigint;
  /** Members' services and engines' servers that may have the data of validium batches. */
  readonly peers?: readonly string[];
}

/** Makes the public state in a folder from L1 and the peers, compares its roots with L1's, and says what it is. Throws as `rebuild` does. */
export async function rebuildStore(options: RebuildStoreOptions): Promise<RebuildReport> {
  const { store, rpcUrl, contract, fromBlock = 0n, confirmations, peers = [], ...told } = options;
  const l1 = await readL1({ rpc: rpcUrl, contract, ...finalityOf(confirmations) });
  const archive = await Archive.open({ store: await openLevel(store), l1 });
  try {
    const sources = peers.map((url) => new HttpBatchSource(url));
    return await rebuild({ archive, l1, fromBlock, sources, ...told });
  } finally {
    await archive.close();
  }
}
