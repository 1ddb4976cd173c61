import fc from "fast-check";
import { afterAll, describe, expect } from "vitest";
import type { Mode, VaultId } from "../../../core/index.ts";
import { batchLeaves, readBatchData } from "../../../core/protocol/batch-data.ts";
import { stateCommitment, stateLeaf } from "../../../core/protocol/commitment.ts";
import { verifyBatchProof, verifyStateConsistency } from "../../../core/protocol/consistency.ts";
import { bytesToHex, hashAt, hexToBytes } from "../../../core/protocol/hex.ts";
import {
  verifyVaultInState,
  verifyVaultMultiproof,
  verifyVaultProof,
} from "../../../core/protocol/proof.ts";
import { packVaultId } from "../../../core/protocol/vault.ts";
import { PREFIX } from "../../../core/store/store-keys.ts";
import { naiveMultiproof, naiveRoot } from "../naive/naive-tree.ts";
import { fixture, mintOf, refusal, requestOf, SETTLEMENT } from "./fixture.ts";
import { it } from "./it.ts";

/** More than two pages of 256 leaves, and not a whole number of them. */
const VAULTS = 600;
const BATCHES: Readonly<Record<Mode, readonly number[]>> = {
  validium: [VAULTS, 1, 5, 2, 3],
  "zk-rollup": [7, 2, 1],
};
const VOID_SLOT = 300;

const world = await fixture();
const { engine, tenant, assets } = world;
let token = 0;
for (const mode of ["validium", "zk-rollup"] as const) {
  for (const count of BATCHES[mode]) {
    const mints = Array.from({ length: count }, () => mintOf(assets.erc721, ++token, 1, mode));
    await engine.mint(tenant.principal, requestOf(tenant.users[0], ...mints));
    await engine.operator.seal(mode);
  }
}
await engine.operator.voidSlots("validium", 0, [
  { firstSlot: VOID_SLOT, count: 1, failure: "L1 refuses it" },
]);
await engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc721, ++token)));
afterAll(() => world.engine.close());

const idOf = (mode: Mode, batchNumber: number, slot: number): VaultId =>
  packVaultId({ mode, batchNumber, slot });

/** The leaves of a sealed batch by what anyone can read of it. */
async function leavesOf(mode: Mode, batchNumber: number): Promise<Uint8Array[]> {
  const { data } = await world.engine.batches.getSealed(mode, batchNumber);
  const leaves = batchLeaves(readBatchData(data), mode, batchNumber);
  return Array.from({ length: leaves.length / 32 }, (_, slot) => hashAt(leaves, slot));
}

describe("a multiproof", () => {
  it("has the naive twin's siblings for any vaults of a batch of several pages, in any order", async () => {
    const leaves = await leavesOf("validium", 0);
    const { batchRoot } = await world.engine.batches.getSealed("validium", 0);
    const slots = [...leaves.keys()].filter((slot) => slot !== VOID_SLOT);
    await fc.assert(
      fc.asyncProperty(
        fc.shuffledSubarray(slots, { minLength: 1, maxLength: 40 }),
        async (some) => {
          const proof = await world.engine.proofs.vaults(
            some.map((slot) => idOf("validium", 0, slot)),
          );
          const ascending = some.toSorted((a, b) => a - b);
          expect(proof.vaults.map(({ vaultId }) => vaultId)).toEqual(
            ascending.map((slot) => idOf("validium", 0, slot)),
          );
          expect(proof.siblings).toEqual(naiveMultiproof(leaves, ascending).map(bytesToHex));
          expect(proof).toMatchObject({ batchRoot, vaultCount: VAULTS, header: null });
          expect(verifyVaultMultiproof(batchRoot, proof)).toBe(true);
        },
      ),
      { numRuns: 10 },
    );
  });

  it("of all vaults of a batch needs no sibling", async () => {
    const ids = [0, 1, 2, 3, 4, 5, 6].map((slot) => idOf("zk-rollup", 0, slot));
    // The empty place beside the seventh is a sibling too: a verifier need not know where the batch
    // ends.
    expect((await world.engine.proofs.vaults(ids)).siblings).toHaveLength(1);
  });

  it("is refused for no vault, for a repeated one, for two batches, and for unprovable ones", async () => {
    const { engine } = world;
    const code = async (...ids: VaultId[]) => (await refusal(engine.proofs.vaults(ids))).code;
    expect(await code()).toBe("validation_failed");
    expect(await code(idOf("validium", 0, 1), idOf("validium", 0, 1))).toBe("validation_failed");
    expect(await code(idOf("validium", 0, 1), idOf("validium", 2, 1))).toBe("validation_failed");
    expect(await code(idOf("validium", 0, 1), idOf("zk-rollup", 0, 1))).toBe("validation_failed");
    expect(await code(idOf("validium", 0, 1), idOf("validium", 0, VAULTS))).toBe("vault_not_found");
    expect(await code(idOf("validium", 0, 1), idOf("validium", 0, VOID_SLOT))).toBe("vault_void");
    expect(await code(idOf("validium", BATCHES.validium.length, 0))).toBe("proof_not_ready");
    expect(await code(-1n)).toBe("vault_not_found");
  });
});

describe("a vault's proof", () => {
  it("leads through its batch to the commitment over any number of batches that hold it", async () => {
    const { engine } = world;
    for (const [mode, batchNumber, slot] of [
      ["validium", 0, VAULTS - 1],
      ["validium", 1, 0],
      ["zk-rollup", 2, 0],
    ] as const) {
      const vaultId = idOf(mode, batchNumber, slot);
      const latest = await engine.proofs.vaultState(vaultId);
      expect(latest.commitment).toBe(engine.batches.state().commitment);
      for (const count of [3, batchNumber + 1]) {
        const at = { countValidium: count, countRollup: Math.min(count, 3) };
        const { proof, path, commitment } = await engine.proofs.vaultState(vaultId, at);
        expect(proof).toEqual(await engine.proofs.vault(vaultId));
        expect(path).toMatchObject(at);
        expect(verifyVaultProof(proof.batchRoot, proof)).toBe(true);
        expect(verifyVaultInState(SETTLEMENT, commitment, proof, path)).toBe(true);
        expect(verifyVaultInState(SETTLEMENT, latest.commitment, proof, path)).toBe(
          commitment === latest.commitment,
        );
      }
      expect(
        (await refusal(engine.proofs.vaultState(vaultId, { countValidium: 0, countRollup: 0 })))
          .code,
      ).toBe("proof_not_ready");
    }
    const tooMany = { countValidium: BATCHES.validium.length + 1, countRollup: 0 };
    expect((await refusal(engine.proofs.vaultState(0n, tooMany))).code).toBe("validation_failed");
  });

  it("is not returned when the store's page differs from the sealed one", async ({ made }) => {
    const { engine, database, tenant, assets } = made;
    await engine.mint(
      tenant.principal,
      requestOf(tenant.users[0], ...[1, 2].map((id) => mintOf(assets.erc721, id))),
    );
    await engine.operator.seal("validium");
    const binary = { keyEncoding: "buffer", valueEncoding: "buffer" } as const;
    for (const prefix of [PREFIX.chunk, PREFIX.pageRoots]) {
      const range = { gte: Buffer.from([prefix]), lt: Buffer.from([prefix + 1]), ...binary };
      const [[key, value] = []] = await database.iterator<Buffer, Buffer>(range).all();
      if (key === undefined || value === undefined) throw new Error("no such record");
      const flipped = Buffer.from(value);
      flipped[value.length >> 1] = (flipped[value.length >> 1] ?? 0) ^ 1;
      await database.put(key, flipped, binary);
      for (const proof of [
        engine.proofs.vault(0n),
        engine.proofs.vaults([0n, 1n]),
        engine.proofs.vaultState(1n),
      ]) {
        expect((await refusal(proof)).code).toBe("store_corrupt");
      }
      await database.put(key, value, binary);
    }
  });
});

describe("a batch's proof", () => {
  it("proves each step of both state trees, from the naive twin's root to the next", async () => {
    const { engine } = world;
    for (const mode of ["validium", "zk-rollup"] as const) {
      const leaves: Uint8Array[] = [];
      for (const batchNumber of BATCHES[mode].keys()) {
        const { oldRoot, newRoot, proof } = await engine.proofs.batch(mode, batchNumber);
        expect(oldRoot).toBe(bytesToHex(naiveRoot(leaves, 32)));
        leaves.push(hexToBytes(stateLeaf(await engine.batches.getSealed(mode, batchNumber))));
        expect(newRoot).toBe(bytesToHex(naiveRoot(leaves, 32)));
        expect(verifyBatchProof(oldRoot, newRoot, proof)).toBe(true);
        expect(verifyBatchProof(newRoot, oldRoot, proof)).toBe(false);
      }
    }
    expect((await refusal(engine.proofs.batch("validium", BATCHES.validium.length))).code).toBe(
      "proof_not_ready",
    );
    expect((await refusal(engine.proofs.batch("validium", 99))).code).toBe("batch_not_found");
  });
});

describe("a consistency proof", () => {
  it("joins any state to any later one, and no other two", async () => {
    const { engine } = world;
    const [validium, rollup] = [BATCHES.validium.length, BATCHES["zk-rollup"].length];
    const counts = fc.record({
      countValidium: fc.integer({ min: 0, max: validium }),
      countRollup: fc.integer({ min: 0, max: rollup }),
    });
    await fc.assert(
      fc.asyncProperty(counts, counts, async (a, b) => {
        const ordered = a.countValidium <= b.countValidium && a.countRollup <= b.countRollup;
        if (!ordered) {
          expect((await refusal(engine.proofs.consistency(a, b))).code).toBe("validation_failed");
          return;
        }
        const { older, newer, proof } = await engine.proofs.consistency(a, b);
        expect([older, newer]).toMatchObject([a, b]);
        expect(older.commitment).toBe(stateCommitment(SETTLEMENT, older));
        const [from, to] = [older, newer].map((state) => ({ commitment: state.commitment, state }));
        if (from === undefined || to === undefined) throw new Error("two states");
        expect(verifyStateConsistency(SETTLEMENT, from, to, proof)).toBe(true);
        expect(verifyStateConsistency(SETTLEMENT, to, from, proof)).toBe(
          older.commitment === newer.commitment,
        );
      }),
      { numRuns: 40 },
    );
    const { newer } = await engine.proofs.consistency({ countValidium: 0, countRollup: 0 });
    expect(newer).toEqual(engine.batches.state());
  });

  it("is refused for counts that no state has", async () => {
    const { engine } = world;
    for (const countValidium of [-1, 0.5, BATCHES.validium.length + 1, Number.NaN]) {
      const at = { countValidium, countRollup: 0 };
      expect((await refusal(engine.proofs.consistency(at))).code).toBe("validation_failed");
      expect(
        (await refusal(engine.proofs.consistency({ countValidium: 0, countRollup: 0 }, at))).code,
      ).toBe("validation_failed");
    }
  });
});
