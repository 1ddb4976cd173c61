import { crc32 } from "node:zlib";
import fc from "fast-check";
import { expect, test } from "vitest";
import { MODES, type Mode } from "../../../core/model.ts";
import { decodeEntry } from "../../../core/store/journal.ts";
import { keyOf, keyString } from "../../../core/store/store-keys.ts";
import { decodeBatchTokens, encodeBatchTokens, SHARDS } from "../../../core/store/token-index.ts";
import { CHUNK_VAULTS, decodeChunk } from "../../../core/store/vault-columns.ts";
import { equalHashes, type TokenBatch } from "../../../core/verify/equal-hashes.ts";
import { Reference } from "../../../core/verify/reference.ts";
import { batchName } from "../../../core/verify/reference-vaults.ts";
import { NaiveJournal } from "../naive/naive-store.ts";
import { type Fixture, fixture, mintOf, requestOf } from "./fixture.ts";

const [TOKEN, OTHER] = [7_654_321, 7_654_322];

function mint({ engine, tenant, assets }: Fixture, tokenId: number, mode: Mode) {
  const entry = mintOf(assets.erc721, tokenId, 1, mode);
  return engine.mint(tenant.principal, requestOf(tenant.users[0], entry));
}

async function journalOf({ engine }: Fixture): Promise<readonly Uint8Array[]> {
  const journal = new NaiveJournal();
  await engine.operator.backup(journal);
  await engine.close();
  return journal.list;
}

/** The entry with the one token's id in place of the other's. */
function forged(entry: Uint8Array): Buffer {
  const bytes = Buffer.from(entry);
  const at = bytes.indexOf(`${OTHER}`);
  if (at < 0) return bytes;
  bytes.write(`${TOKEN}`, at);
  bytes.writeUInt32BE(crc32(bytes.subarray(0, -4)), bytes.length - 4);
  return bytes;
}

/** The tokens that the reference finds twice in a journal, whose records it keeps for itself. */
async function twiceIn(journal: readonly Uint8Array[], voidings: ReadonlyMap<string, number>) {
  const problems: string[] = [];
  const records = new Map<string, Buffer>();
  const reference = new Reference((problem) => problems.push(problem), {
    seed: new Uint8Array(32),
    foreseen: { voidings, adoptions: [], keysForgotten: 0 },
    commit: () => Promise.reject(),
    async vaultAt({ mode, batchNumber, slot }) {
      const chunk = keyOf.chunk(mode, batchNumber, Math.floor(slot / CHUNK_VAULTS));
      const record = records.get(keyString(chunk));
      return record && decodeChunk(record)[slot % CHUNK_VAULTS];
    },
    tokensAt: async ({ mode, batchNumber }) =>
      records.get(keyString(keyOf.batchTokens(mode, batchNumber))) as Buffer,
  });
  for (const [sequence, entry] of journal.entries())
    for (const { key, value } of await reference.apply(decodeEntry(sequence, entry)))
      records.set(keyString(key), Buffer.from(value));
  await reference.finish();
  return problems.filter((problem) => problem.includes("was minted twice"));
}

const TWICE = [`token ${TOKEN} of asset 1 was minted twice`];

for (const [where, sealed] of [
  ["two sealed batches", 2],
  ["a sealed and an open batch", 1],
  ["one open batch", 0],
] as const) {
  test(`finds a token that the journal mints twice, in ${where}`, async () => {
    const made = await fixture();
    await mint(made, TOKEN, "validium");
    if (sealed > 0) await made.engine.operator.seal("validium");
    await mint(made, OTHER, "validium");
    if (sealed > 1) await made.engine.operator.seal("validium");
    const journal = await journalOf(made);
    expect(await twiceIn(journal, new Map())).toEqual([]);
    expect(await twiceIn(journal.map(forged), new Map())).toEqual(TWICE);
  });
}

for (const first of MODES) {
  test(`finds a token minted twice, first in ${first}, though a vault became void later`, async () => {
    const made = await fixture();
    const second = first === "validium" ? "zk-rollup" : "validium";
    await mint(made, TOKEN, first);
    made.clock.now += 1_000;
    await mint(made, OTHER, second);
    await made.engine.operator.seal("validium");
    await made.engine.operator.seal("zk-rollup");
    made.clock.now += 1_000;
    const run = { firstSlot: 0, count: 1, failure: "refused" };
    await made.engine.operator.voidSlots("zk-rollup", 0, [run]);
    const voidings = new Map([[batchName({ mode: "zk-rollup", batchNumber: 0 }), 1]]);
    const journal = await journalOf(made);
    expect(await twiceIn(journal, voidings)).toEqual([]);
    expect(await twiceIn(journal.map(forged), voidings)).toEqual(TWICE);
  });
}

test("takes a token that became free for the first of its kind", async () => {
  const made = await fixture();
  await mint(made, TOKEN, "zk-rollup");
  await made.engine.operator.seal("zk-rollup");
  const run = { firstSlot: 0, count: 1, failure: "refused" };
  await made.engine.operator.voidSlots("zk-rollup", 0, [run]);
  await mint(made, TOKEN, "validium");
  const voidings = new Map([[batchName({ mode: "zk-rollup", batchNumber: 0 }), 1]]);
  expect(await twiceIn(await journalOf(made), voidings)).toEqual([]);
});

test("finds equal hashes in parts as a map finds them at once", async () => {
  const hash = fc.integer({ min: 1, max: 2 ** 32 - 1 });
  const few = fc.constantFrom(7, 7 + SHARDS, 2 ** 31, 2 ** 32 - 1);
  const batches = fc.array(fc.array(fc.oneof(hash, few), { maxLength: 40 }), { maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(batches, fc.integer({ min: 1, max: 300 }), async (lists, atOnce) => {
      const byHash = new Map<number, string[]>();
      const read = lists.map((hashes, batchNumber): TokenBatch => {
        const slots = Uint32Array.from(hashes, (_, i) => 3 * i);
        for (const [i, each] of hashes.entries())
          byHash.set(each, [...(byHash.get(each) ?? []), `${batchNumber} ${3 * i}`]);
        const record = encodeBatchTokens({ hashes: Uint32Array.from(hashes), slots });
        const tokens = async () => decodeBatchTokens(record, "a batch");
        return { mode: "validium", batchNumber, vaultCount: 3 * hashes.length, tokens };
      });
      const alone = new Set([7]);
      const expected = [...byHash].filter(([each, at]) => at.length > 1 || alone.has(each));
      const size = lists.flat().length;
      const found = new Map<number, string[]>();
      for await (const { hash: each, places } of equalHashes(read, size, alone, atOnce)) {
        expect(found.has(each)).toBe(false);
        found.set(
          each,
          places.map(({ batchNumber, slot }) => `${batchNumber} ${slot}`),
        );
      }
      expect(found).toEqual(new Map(expected));
    }),
    { numRuns: 300 },
  );
});
