import { MemoryLevel } from "memory-level";
import { expect, test } from "vitest";
import type { ArchiveReads } from "../../core/archive/archive-reads.ts";
import { deriveBatch } from "../../core/archive/derive.ts";
import { DerivingThread } from "../../core/archive/deriving-thread.ts";
import { archiveIndex, KnownAssets } from "../../core/archive/vault-index.ts";
import type { Kzg, SettlementPort } from "../../core/index.ts";
import { Preflight, type TokenChain } from "../../core/settlement/preflight.ts";
import { passesDuring } from "../passes.ts";
import { entry, OWNER, registry, sealed, TOKENS, TYPES } from "./signed-batches.ts";

const COUNT = 16_384;
const VOID = 7;

test("a preflight of a large batch gives the event loop passes, and finds the slots to make void", async () => {
  const named = Array.from({ length: COUNT }, (_, slot) => entry("erc721", String(slot)));
  const asset = {
    assetId: "swords",
    standard: "erc721",
    chainId: registry.settlement.chainId,
    contractAddress: TOKENS.erc721,
    assetType: TYPES.erc721,
    mintingBlobScheme: "mintmark",
    unavailableReason: null,
  };
  const asked: bigint[][] = [];
  const taken: bigint[] = [];
  const engine = {
    settlement: registry.settlement,
    operator: {
      async *assets() {
        yield asset;
      },
    },
  } as unknown as SettlementPort;
  const chain = {
    ...registry,
    tokenOwners: async (_token: unknown, ids: bigint[]) => {
      asked.push(ids);
      return ids.map((id) => (taken.includes(id) ? OWNER : null));
    },
    tryMints: async (_token: unknown, mints: readonly unknown[]) => mints.map(() => null),
  } as unknown as TokenChain;
  const preflight = new Preflight(engine, chain, Date.now, 0);
  const slots = [...named.slice(0, VOID), null, ...named.slice(VOID)];
  const { result, passes } = await passesDuring(() => preflight.checkBatch(sealed(0, slots)));
  expect(result).toEqual([]);
  // Nine pieces of the slots, and eight for their assets, for their faults and for their ids.
  expect(passes).toBeGreaterThan(25);
  taken.push(9n, 12_345n);
  const voids = await preflight.checkBatch(sealed(1, slots));
  expect(voids.map(({ firstSlot, count }) => [firstSlot, count])).toEqual([
    [10, 1],
    [12_346, 1],
  ]);
  const ids = named.map((_, id) => BigInt(id));
  expect(asked).toEqual([ids, ids, ids]);
});

test("the index of a large batch gives the event loop passes, and holds each vault", async () => {
  const entries = Array.from({ length: COUNT }, (_, slot) => entry("erc1155", `${slot}`, 2n));
  const store = new MemoryLevel<Uint8Array, Uint8Array>({
    keyEncoding: "view",
    valueEncoding: "view",
  });
  const reads = { text: async () => undefined } as unknown as ArchiveReads;
  const kzg = {} as Kzg;
  const { settlement } = registry;
  const ground = {
    store,
    settlement,
    kzg,
    assets: new KnownAssets(registry),
    deriving: new DerivingThread(),
  };
  const index = archiveIndex(ground, reads);
  const { data } = sealed(0, entries);
  const batch = deriveBatch("validium", 0, data);
  const { result, passes } = await passesDuring(async () => {
    const { puts, repeats } = await index.indexing("validium", 0, batch, null);
    await index.write(puts);
    return { puts, repeats };
  });
  expect(result.repeats).toEqual([]);
  // The owner, the token and its binding of each vault, and the record of the batch.
  expect(result.puts.size).toBe(3 * COUNT + 1);
  let stored = 0;
  for await (const _ of store.keys()) stored++;
  expect(stored).toBe(result.puts.size);
  // 16 chunks of the vaults, and 25 pieces of the write.
  expect(passes).toBeGreaterThan(30);
});
