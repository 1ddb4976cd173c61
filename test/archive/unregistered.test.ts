import { MemoryLevel } from "memory-level";
import { custom, pad, toHex } from "viem";
import { afterAll, expect, test } from "vitest";
import { Archive } from "../../core/archive/archive.ts";
import { deriveBatch } from "../../core/archive/derive.ts";
import { readL1 } from "../../core/l1/connect.ts";
import { assetType } from "../../core/protocol/asset.ts";
import { encodeBatchData } from "../../core/protocol/batch-data.ts";
import { lower } from "../../scripts/deploy/deployer.ts";
import { USERS } from "../../scripts/sandbox/accounts.ts";
import { at, createChain, type Request } from "../settlement/fixture.ts";

const chain = await createChain();
afterAll(() => chain.close());

test("a batch of 254 unregistered assets costs few queries, and hides no token among them", async () => {
  let questions = 0;
  const request = (async (call: Parameters<Request>[0]) => {
    questions++;
    return chain.request(call);
  }) as Request;
  const l1 = await readL1({ rpc: custom({ request }), contract: chain.settlement.address });
  const archive = await Archive.open({ store: new MemoryLevel(), l1 });
  const owner = lower(at(USERS, 0).owner.address);
  const entry = (type: `0x${string}`) => ({
    chainId: 31_337n,
    owner,
    assetType: type,
    amount: 1n,
    mintingBlob: toHex("1"),
  });
  const sword = entry(assetType("erc721", at(chain.tokens, 1).address, 1n));
  const decoys = Array.from({ length: 254 }, (_, i) => entry(pad(toHex(i + 1))));
  const batch = deriveBatch("validium", 0, encodeBatchData([sword, ...decoys, sword]));
  questions = 0;
  const { repeats } = await archive.indexing("validium", 0, batch, null);
  expect(repeats.map(({ vault, holder }) => [vault.vaultId, holder])).toEqual([[255n, "0"]]);
  expect(questions).toBeLessThanOrEqual(13);
  await archive.close();
});
