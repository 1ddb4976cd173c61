import { expect, test } from "vitest";
import type { SettlementPort } from "../../core/index.ts";
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
    blobScheme: "mintmark",
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
