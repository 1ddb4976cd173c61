import { Level } from "level";
import type { LocalAccount } from "viem";
import { type BatchSource, Watcher } from "../../core/archive/index.ts";
import { CommitteeMember } from "../../core/committee/index.ts";
import type { Engine, Kzg } from "../../core/index.ts";
import type { connectL1 } from "../../core/l1/index.ts";

interface OwnMemberOptions {
  readonly engine: Engine;
  readonly l1: Awaited<ReturnType<typeof connectL1>>;
  /** The operator's account, which signs for the member too. */
  readonly account: LocalAccount;
  readonly kzg: Kzg;
  /** Folder of the member's store. The lock of the engine's store keeps other servers from it. */
  readonly folder: string;
  readonly fromBlock: bigint;
  /** Called with the error of a failed round of following L1. */
  readonly onError: (error: unknown) => void;
}

/**
 * The committee's only member, inside the server. It follows L1 until disposed. It voids no
 * duplicates, because its transactions would take the nonces of the operator's.
 */
export async function openOwnMember({ engine, folder, ...options }: OwnMemberOptions) {
  const { account, l1, kzg, fromBlock, onError } = options;
  const store = new Level<Uint8Array, Uint8Array>(folder, {
    keyEncoding: "view",
    valueEncoding: "view",
  });
  await store.open();
  const member = await CommitteeMember.open({ account, store, l1, kzg }).catch(async (error) => {
    await store.close();
    throw error;
  });
  const server: BatchSource = {
    name: "this server",
    batchData: async (mode, batchNumber) =>
      (await engine.batches.getSealed(mode, batchNumber)).data,
  };
  const stopping = new AbortController();
  const watcher = new Watcher({
    archive: member.archive,
    l1,
    fromBlock,
    sources: [server],
    work: async () => 0,
    onError,
  });
  const following = watcher.run(stopping.signal);
  return {
    member,
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await following;
      await member.close();
    },
  };
}
