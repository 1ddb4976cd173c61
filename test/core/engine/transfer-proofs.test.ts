import { zeroAddress } from "viem";
import { describe, expect, it } from "vitest";
import type { BatchVaultProof, Engine, Hex, VaultId } from "../../../core/index.ts";
import type { ProvenHop, ProvenVault } from "../../../core/ports.ts";
import { type Transfer, transfersDigest } from "../../../core/protocol/transfer.ts";
import {
  isTransferred,
  tipIdOf,
  tipOwnerOf,
  verifyHop,
  verifyHops,
} from "../../../core/protocol/transfer-proof.ts";
import type { TransferableVault } from "../../../core/protocol/transfer-rules.ts";
import {
  transferFault,
  transferredVault,
  transferSigner,
} from "../../../core/protocol/transfer-rules.ts";
import { withdrawalListTypedData } from "../../../core/protocol/typed-data.ts";
import { verifyVaultProof } from "../../../core/protocol/verifier.ts";
import { withdrawOne } from "../../one-withdrawal.ts";
import { mintOf, OWNERS, refusal, requestOf } from "./fixture.ts";
import { hear, committed as onL1, signed, withdrawn } from "./l1-fixture.ts";
import { commitAll, signedTransfers, transferable } from "./transfers-fixture.ts";

type World = Awaited<ReturnType<typeof transferable>>;
type Gift = Parameters<typeof signedTransfers>[1][number];

const [ann, bob, cat] = OWNERS.map(({ address }) => address.toLowerCase() as `0x${string}`) as [
  `0x${string}`,
  `0x${string}`,
  `0x${string}`,
];

/**
 * Transfers under one signature, sealed and committed, and the ids of the vaults that they make.
 */
async function moved(
  world: World,
  transfers: readonly Gift[],
  by = 0,
  commit = true,
): Promise<VaultId[]> {
  const { engine, tenant } = world;
  const signer = OWNERS[by] as (typeof OWNERS)[0];
  const request = await signedTransfers(world, transfers, { signer });
  const { transferId } = await engine.transfers.request(tenant.principal, request);
  const batch = await engine.operator.sealTransfers();
  if (commit) await commitAll(engine, "zk-rollup", batch?.batchNumber ?? 0);
  const list = await engine.transfers.get(tenant.applicationId, transferId);
  return list.transfers.map(({ newVaultId }) => newVaultId ?? 0n);
}

/**
 * The powers behind the signature of a list of one transfer, whose message can be made from the
 * hop.
 */
async function powersOf(
  { settlement }: Engine,
  transfer: Transfer,
  deadline: bigint,
  signature: Hex,
) {
  const digest = transfersDigest(settlement, { transfers: [transfer], deadline });
  const signer = await transferSigner(digest, signature);
  return { signer, session: null, approvedAt: 0n, cancelledAt: 0n, signerCancelledAt: 0n };
}

/**
 * The tip, and each record's fault, by the rules of L1 and with its facts. Nothing was withdrawn.
 */
async function followed({ engine }: World, { vault: minted, hops = [] }: BatchVaultProof) {
  let vault: TransferableVault = {
    ...minted,
    withdrawn: 0n,
    standard: "erc20",
    transferable: true,
    hops: 0,
  };
  const faults = [];
  for (const hop of hops) {
    const { amount, to, deadline, header, signature } = hop;
    const transfer = { vaultId: vault.vaultId, amount, to };
    const powers = await powersOf(engine, transfer, deadline, signature);
    const record = { transfer, deadline, committedAt: header.committedAt };
    faults.push(transferFault(vault, record, powers));
    vault = transferredVault(vault, record, hop);
  }
  return { vault, faults };
}

function committed(proof: BatchVaultProof): ProvenVault {
  if (proof.header === null) throw new Error("the proof is not committed");
  return { ...proof, header: proof.header };
}

describe("the proof of a transferred vault", () => {
  it("leads from the mint over each transfer to the vault, by the rules that L1 has", async () => {
    const world = await transferable();
    const { engine, units } = world;
    const [given] = await moved(world, [{ vaultId: units, amount: 30n, to: bob }]);
    const [, change] = await moved(world, [{ vaultId: given ?? 0n, amount: 10n, to: cat }], 1);
    const [last] = await moved(world, [{ vaultId: change ?? 0n, amount: 0n, to: ann }], 1);
    const proof = await engine.proofs.exit(last ?? 0n);
    expect(proof.vault.vaultId).toBe(units);
    expect(verifyVaultProof(proof.header?.batchRoot ?? "0x", proof)).toBe(true);
    expect(proof.hops?.map(({ part, amount }) => [part, amount])).toEqual([
      [0, 30n],
      [1, 10n],
      [0, 0n],
    ]);
    expect(verifyHops(committed(proof))).toBe(true);
    expect([tipIdOf(committed(proof)), tipOwnerOf(committed(proof))]).toEqual([last, ann]);
    const { vault, faults } = await followed(world, proof);
    expect(faults).toEqual([null, null, null]);
    expect(vault).toMatchObject({ owner: ann, amount: 20n });
    expect(await engine.proofs.content(last ?? 0n)).toEqual({
      ...proof.vault,
      vaultId: last,
      owner: ann,
      amount: 20n,
    });
    expect(await engine.proofs.vault(last ?? 0n)).toEqual(proof);
    const minted = await engine.proofs.exit(units);
    expect(isTransferred(committed(minted))).toBe(false);
  });

  it("holds no other field of a hop, and no other vault", async () => {
    const world = await transferable();
    const [given] = await moved(world, [{ vaultId: world.units, amount: 30n, to: bob }]);
    const { vault, hops = [] } = await world.engine.proofs.exit(given ?? 0n);
    const hop = hops[0] as ProvenHop;
    expect(verifyHop(vault.vaultId, hop)).toBe(true);
    expect(verifyHop(vault.vaultId + 1n, hop)).toBe(false);
    const { header, siblings } = hop;
    const other: Partial<ProvenHop>[] = [
      { outId: hop.outId + 1n },
      { outId: hop.outId - (1n << 63n) },
      { part: 1 },
      { amount: 31n },
      { to: cat },
      { deadline: hop.deadline + 1n },
      { list: header.batchRoot },
      { signature: "0x" },
      { siblings: [] },
      { siblings: [...siblings, header.batchRoot] },
      { header: { ...header, vaultCount: 1 } },
      { header: { ...header, vaultCount: 2 ** 20 } },
      { header: { ...header, batchRoot: hop.list } },
    ];
    for (const change of other)
      expect(verifyHop(vault.vaultId, { ...hop, ...change }), Object.keys(change)[0]).toBe(false);
  });

  it("has no header before L1 has committed the last transfer", async () => {
    const world = await transferable();
    const { engine, token } = world;
    const [given] = await moved(world, [{ vaultId: token, amount: 0n, to: bob }], 0, false);
    const before = await engine.proofs.exit(given ?? 0n);
    expect([before.header, before.hops?.[0]?.header.sequence]).toEqual([null, 0n]);
    await commitAll(engine, "zk-rollup", 0);
    const after = await engine.proofs.exit(given ?? 0n);
    expect(after.header).toEqual((await engine.proofs.exit(token)).header);
    expect(after.hops?.[0]?.header.sequence).toBeGreaterThan(after.header?.sequence ?? 0n);
  });

  it("reads one page of a batch with several", async () => {
    const world = await transferable();
    const { engine, tenant, assets } = world;
    const mints = Array.from({ length: 300 }, (_, i) => mintOf(assets.erc721, 1000 + i));
    const { transactions } = await engine.mint(
      tenant.principal,
      requestOf(tenant.users[0], ...mints),
    );
    await engine.operator.seal("validium");
    await commitAll(engine, "validium", 1);
    const made = await moved(
      world,
      transactions.map(({ vaultId }) => ({ vaultId, amount: 0n, to: bob })),
    );
    for (const slot of [0, 255, 256, 299]) {
      const proof = await engine.proofs.exit(made[slot] ?? 0n);
      expect([proof.vault.vaultId, proof.hops?.[0]?.siblings.length]).toEqual([
        transactions[slot]?.vaultId,
        9,
      ]);
      expect(verifyHops(committed(proof))).toBe(true);
    }
  });

  it("is refused for a redeemed vault, and in proofs of many vaults", async () => {
    const world = await transferable();
    const { engine, items, token } = world;
    await moved(world, [{ vaultId: items, amount: 2n, to: zeroAddress }]);
    const redeemed = 1n << 63n;
    for (const ask of [engine.proofs.exit(redeemed), engine.proofs.content(redeemed)])
      expect(await refusal(ask)).toMatchObject({ code: "vault_not_found" });
    const [given] = await moved(world, [{ vaultId: token, amount: 0n, to: bob }]);
    for (const ask of [engine.proofs.vaults([given ?? 0n]), engine.proofs.vaultState(given ?? 0n)])
      expect(await refusal(ask)).toMatchObject({ code: "validation_failed" });
  });

  it("lets the new owner ask for its withdrawal, in a list, like any other", async () => {
    const world = await transferable();
    const { engine, tenant, units } = world;
    const [given, change] = await moved(world, [{ vaultId: units, amount: 30n, to: bob }]);
    const vaultId = given ?? 0n;
    const asked = await signed(world, 5n, { vaultId, recipient: bob, signer: OWNERS[1] });
    await withdrawOne(engine, tenant.principal, asked);
    const pending = await Array.fromAsync(
      engine.operator.pendingWithdrawals(engine.settlement.chainId),
    );
    expect(pending[0]?.header).toEqual((await engine.proofs.exit(units)).header);
    const listed = {
      vaults: [{ vaultId: change ?? 0n, withdrawnBefore: 0n, quantity: 70n }],
      deadline: asked.deadline,
    };
    const signature = await OWNERS[0].signTypedData(
      withdrawalListTypedData(engine.settlement, { ...listed, recipient: ann }),
    );
    const [answer] = await engine.withdrawals.request(tenant.principal, {
      ...listed,
      signature,
    });
    expect(answer?.error).toBeNull();
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  it("holds the record that L1 does not count, so that the owner can refute it", async () => {
    const world = await transferable();
    const { engine, tenant, units } = world;
    await engine.transfers.request(
      tenant.principal,
      await signedTransfers(world, [{ vaultId: units, amount: 60n, to: bob }]),
    );
    await engine.operator.sealTransfers();
    expect((await engine.proofs.exit(units)).refutation).toBeUndefined();
    // The owner withdraws alone before the commit, so the record gives more than there is.
    await hear(engine, withdrawn(units, 50n, 50n, ann, 500n));
    await hear(engine, { ...(await onL1(engine, "zk-rollup", 0, 600n)), sequence: 1n });
    const proof = committed(await engine.proofs.exit(units));
    expect(proof.refutation).toMatchObject({ to: bob, amount: 60n });
    expect([verifyHops(proof), isTransferred(proof), tipIdOf(proof)]).toEqual([true, true, units]);
    const { deadline, header, signature } = proof.refutation as ProvenHop;
    const transfer = { vaultId: units, amount: 60n, to: bob };
    const powers = await powersOf(engine, transfer, deadline, signature);
    const { vault } = proof;
    const facts = { withdrawn: 50n, standard: "erc20", transferable: true, hops: 0 } as const;
    expect(transferFault({ ...vault, ...facts }, { transfer, deadline, ...header }, powers)).toBe(
      "amount",
    );
    expect((await engine.operator.verify()).problems).toEqual([]);
  });
});
