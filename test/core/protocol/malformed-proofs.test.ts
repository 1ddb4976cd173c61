import { afterAll, expect, it } from "vitest";
import * as protocol from "../../../core/protocol/index.ts";
import { fixture, mintOf, requestOf, SETTLEMENT } from "../engine/fixture.ts";

/** JSON or a careless caller can put these in the place of any part of a proof. */
const OTHERS = [
  undefined,
  null,
  true,
  -1,
  0.5,
  Number.NaN,
  2 ** 60,
  -1n,
  1n << 70n,
  "",
  "0x",
  "0xzz",
  "__proto__",
  {},
  [],
];

const made = await fixture();
const { engine, tenant, assets } = made;
for (const first of [0, 10]) {
  const mints = Array.from({ length: 7 }, (_, i) => mintOf(assets.erc721, first + i));
  // Two assets give a path in the manifest a sibling.
  await engine.mint(
    tenant.principal,
    requestOf(tenant.users[0], ...mints, mintOf(assets.erc20, "", 5)),
  );
  await engine.operator.seal("validium");
}
afterAll(() => made.engine.close());

/** Every place in a value, the whole of it included. */
function places(value: unknown, before: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== "object" || value === null) return [before];
  return [
    before,
    ...Object.entries(value).flatMap(([key, part]) => places(part, [...before, key])),
  ];
}

/** The value with another one in a place. */
function changed(value: unknown, [key, ...rest]: readonly string[], other: unknown): unknown {
  if (key === undefined) return other;
  const copy: Record<string, unknown> = Array.isArray(value)
    ? ([...value] as never)
    : { ...(value as object) };
  copy[key] = changed(copy[key], rest, other);
  return copy;
}

// biome-ignore lint/suspicious/noExplicitAny: what the types refuse is what is tried.
type Check = readonly [proof: unknown, holds: (proof: any) => boolean];

const CHECKS: Readonly<Record<string, () => Promise<Check>>> = {
  vault: async () => {
    const { vault, vaultCount, siblings, assetPath, batchRoot } =
      await made.engine.proofs.vault(3n);
    return [
      { vault, vaultCount, siblings, assetPath },
      (proof) => protocol.verifyVaultProof(batchRoot, proof),
    ];
  },
  "many vaults": async () => {
    const { vaults, vaultCount, siblings, manifest, batchRoot } = await made.engine.proofs.vaults([
      1n,
      4n,
    ]);
    return [
      { vaults, vaultCount, siblings, manifest },
      (proof) => protocol.verifyVaultMultiproof(batchRoot, proof),
    ];
  },
  "a vault in the state": async () => {
    const { proof, path, commitment } = await made.engine.proofs.vaultState(3n);
    const { vault, vaultCount, siblings, assetPath } = proof;
    const both = { proof: { vault, vaultCount, siblings, assetPath }, path };
    return [both, (of) => protocol.verifyVaultInState(SETTLEMENT, commitment, of?.proof, of?.path)];
  },
  "a batch": async () => {
    const { oldRoot, newRoot, proof } = await made.engine.proofs.batch("validium", 1);
    return [proof, (of) => protocol.verifyBatchProof(oldRoot, newRoot, of)];
  },
  "an extension": async () => {
    const { older, newer, proof } = await made.engine.proofs.consistency({
      countValidium: 1,
      countRollup: 0,
    });
    const [from, to] = [older, newer].map((state) => ({ commitment: state.commitment, state }));
    if (from === undefined || to === undefined) throw new Error("there are two");
    return [proof, (of) => protocol.verifyStateConsistency(SETTLEMENT, from, to, of)];
  },
};

it.each(Object.keys(CHECKS))(
  "a proof of %s with any change in any place is false, and nothing is thrown",
  async (name) => {
    const [proof, holds] = (await CHECKS[name]?.()) ?? [];
    expect(holds?.(proof)).toBe(true);
    let tried = 0;
    for (const place of places(proof)) {
      for (const other of OTHERS) {
        const wrong = changed(proof, place, other);
        // An extension of a mode in which nothing was sealed has no proof: null is the right one
        // there.
        if (other === null && place.at(-1) === "rollup") continue;
        expect(holds?.(wrong), `${place.join(".")} is ${String(other)}`).toBe(false);
        tried++;
      }
    }
    expect(tried).toBeGreaterThan(50);
  },
);
