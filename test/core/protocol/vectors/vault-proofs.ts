import type { Hash } from "../../../../core/model.ts";
import type { VaultContent } from "../../../../core/ports.ts";
import type { VaultEntry } from "../../../../core/protocol/batch-data.ts";
import { placeVaults } from "../../../../core/protocol/batch-decoder.ts";
import { encodeBatchData } from "../../../../core/protocol/batch-encoder.ts";
import { BatchTree } from "../../../../core/protocol/batch-tree.ts";
import { batchHeaderHash, stateCommitment, stateLeaf } from "../../../../core/protocol/commitment.ts";
import { keccak256 } from "../../../../core/protocol/hash.ts";
import { bytesToHex, hexToBytes, unpackHashes } from "../../../../core/protocol/hex.ts";
import { proveVault, proveVaults, type VaultMultiproof, type VaultProof } from "../../../../core/protocol/proof.ts";
import { StateHistory } from "../../../../core/protocol/state-tree.ts";
import { packVaultId, unpackVaultId, vaultLeaf, vaultLeaves } from "../../../../core/protocol/vault.ts";
import { ASSETS, derivedAddress, derivedHash, SETTLEMENT, text } from "./derive.ts";

const { coin, card, item } = ASSETS;
const MODE = "validium";
const BATCH_NUMBER = 5;
const SLOTS = 11;
const VOID_SLOT = 6;

const entries: readonly (VaultEntry | null)[] = Array.from({ length: SLOTS }, (_, slot) => {
  if (slot === VOID_SLOT) return null;
  const asset = [card, item, coin][slot % 3] ?? card;
  const blob = asset === coin ? "0x" : text(String(100 + slot));
  return {
    chainId: asset.chainId,
    owner: derivedAddress(`owner ${slot % 4}`),
    assetType: asset.assetType,
    amount: asset === card ? 1n : BigInt(1 + slot * 300),
    blob,
  };
});

/** A batch of known vaults in a state: proofs that hold, and hostile ones that do not. */
export function vaultProofVectors() {
  const vaults = placeVaults(entries, MODE, BATCH_NUMBER);
  const tree = new BatchTree(vaultLeaves(vaults));
  const batchRoot = bytesToHex(tree.root);
  const dataHash = bytesToHex(keccak256(encodeBatchData(entries)));
  const present = vaults.filter((vault) => vault !== null);
  const header = { batchRoot, vaultCount: SLOTS, committedAt: 1_767_225_600n, sequence: 8n };

  const history = new StateHistory();
  for (let n = 0; n < BATCH_NUMBER; n++) history.append(hexToBytes(derivedHash(`state leaf ${n}`)));
  const leaf = stateLeaf({ batchNumber: BATCH_NUMBER, vaultCount: SLOTS, dataHash, batchRoot });
  history.append(hexToBytes(leaf));
  for (let n = BATCH_NUMBER + 1; n < 9; n++) history.append(hexToBytes(derivedHash(`state leaf ${n}`)));
  const roots = {
    rootValidium: bytesToHex(history.root()),
    rootRollup: derivedHash("rollup root"),
    countValidium: history.count,
    countRollup: 3,
  };

  return {
    description:
      "Proofs of vaults (docs/protocol.md 3, 7): a batch of eleven slots (6 is void) in a validium state of nine batches. `proofs` hold against `header`, and with " +
      "`statePath` against `commitment`; `multiproofs` hold too. `refused`: hostile proofs, each with the root it claims to lead to; `refusedMultiproofs`, against `header`'s root: nothing may accept one.",
    settlement: SETTLEMENT,
    mode: MODE,
    batchNumber: BATCH_NUMBER,
    header,
    headerHash: batchHeaderHash(header),
    data: bytesToHex(encodeBatchData(entries)),
    stateLeaf: leaf,
    statePath: {
      dataHash,
      siblings: unpackHashes(history.siblings(BATCH_NUMBER)),
      otherRoot: roots.rootRollup,
      countValidium: roots.countValidium,
      countRollup: roots.countRollup,
    },
    ...roots,
    commitment: stateCommitment(SETTLEMENT, roots),
    proofs: present.map((vault) => ({ ...proveVault(tree, vault), leaf: bytesToHex(vaultLeaf(vault)) })),
    multiproofs: [present, present.slice(0, 1), present.slice(-2), present.filter((_, i) => i % 3 === 0)].map((some) =>
      proveVaults(tree, some),
    ),
    refused: hostileProofs(tree, present, batchRoot),
    refusedMultiproofs: hostileMultiproofs(tree, present),
  };
}

/** What somebody might send to take what is not theirs, or twice what is. */
function hostileProofs(tree: BatchTree, vaults: readonly VaultContent[], batchRoot: Hash) {
  const vault = pick(vaults, 3);
  const honest = proveVault(tree, vault);
  const { slot } = unpackVaultId(vault.vaultId);
  const placed = (place: { mode?: "validium" | "zk-rollup"; batchNumber?: number; slot?: number }) => ({
    ...vault,
    vaultId: packVaultId({ mode: MODE, batchNumber: BATCH_NUMBER, slot, ...place }),
  });
  const sibling = derivedHash("a sibling that is not there");
  const otherTree = new BatchTree(vaultLeaves(placeVaults(entries, MODE, BATCH_NUMBER + 1)));
  const refused = (name: string, change: Partial<VaultProof>, root = batchRoot) => ({
    name,
    batchRoot: root,
    ...honest,
    ...change,
  });
  return [
    refused("another slot's id", { vault: placed({ slot: slot + 1 }) }),
    refused("the sibling's id", { vault: placed({ slot: slot ^ 1 }) }),
    refused("the same vault in another batch", { vault: placed({ batchNumber: BATCH_NUMBER + 1 }) }),
    refused("the same vault in the other mode", { vault: placed({ mode: "zk-rollup" }) }),
    refused("an id with an unused bit", { vault: { ...vault, vaultId: vault.vaultId | (1n << 52n) } }),
    refused("a larger amount", { vault: { ...vault, amount: vault.amount + 1n } }),
    refused("another owner", { vault: { ...vault, owner: derivedAddress("a thief") } }),
    refused("another chain", { vault: { ...vault, chainId: vault.chainId + 1n } }),
    refused("another asset", { vault: { ...vault, assetType: coin.assetType } }),
    refused("another blob", { vault: { ...vault, blob: text("1") } }),
    refused("another slot's siblings", { siblings: unpackHashes(tree.siblings(0)) }),
    refused("truncated by one sibling", { siblings: honest.siblings.slice(0, -1) }),
    refused("without siblings", { siblings: [] }),
    refused("extended by a zero sibling", { siblings: [...honest.siblings, `0x${"00".repeat(32)}`] }),
    refused("extended by the root's fold", { siblings: [...honest.siblings, sibling] }),
    refused("a changed sibling", { siblings: [...honest.siblings.slice(0, -1), sibling] }),
    refused("siblings in reverse", { siblings: honest.siblings.toReversed() }),
    refused("another batch's proof", proveVault(otherTree, { ...vault, vaultId: placed({ batchNumber: 6 }).vaultId })),
    refused("another batch's root", {}, bytesToHex(otherTree.root)),
    refused("a count of one fewer level", { vaultCount: 8 }),
    refused("a count of one more level", { vaultCount: 17 }),
    refused("a count below the slot", { vaultCount: slot }),
    refused("a count of 0", { vaultCount: 0 }),
    refused("a leaf shown as the root", { siblings: [] }, bytesToHex(vaultLeaf(vault))),
    refused(
      "a leaf shown as the root of a batch of one",
      { siblings: [], vaultCount: 1 },
      bytesToHex(vaultLeaf(vault)),
    ),
    refused("a node shown as the root", { siblings: honest.siblings.slice(0, -1) }, bytesToHex(nodeAbove(tree, slot))),
    refused(
      "a node shown as the root of a smaller batch",
      { siblings: honest.siblings.slice(0, -1), vaultCount: 3 },
      bytesToHex(nodeAbove(tree, slot)),
    ),
  ];
}

/** The same for many vaults at once. */
function hostileMultiproofs(tree: BatchTree, vaults: readonly VaultContent[]) {
  const [first, second, third, another] = [1, 2, 7, 8].map((index) => pick(vaults, index)) as Quartet<VaultContent>;
  const honest = proveVaults(tree, [first, second, third]);
  const inBatch = (batchNumber: number) =>
    honest.vaults.map((vault) => ({
      ...vault,
      vaultId: packVaultId({ ...unpackVaultId(vault.vaultId), batchNumber }),
    }));
  const sibling = derivedHash("a sibling that is not there");
  const otherTree = new BatchTree(vaultLeaves(placeVaults(entries, MODE, BATCH_NUMBER + 1)));
  const refused = (name: string, change: Partial<VaultMultiproof>) => ({ name, ...honest, ...change });
  return [
    refused("no vault", { vaults: [] }),
    refused("no vault and no sibling", { vaults: [], siblings: [] }),
    refused("a vault twice", { vaults: [first, first, second, third] }),
    refused("a vault left out", { vaults: [first, third] }),
    refused("a vault added", { vaults: [first, second, third, another] }),
    refused("a vault in another's place", { vaults: [first, second, another] }),
    refused("vaults out of order", { vaults: [second, first, third] }),
    refused("ids exchanged", {
      vaults: [{ ...first, vaultId: second.vaultId }, { ...second, vaultId: first.vaultId }, third],
    }),
    refused("another owner of one", { vaults: [first, second, { ...third, owner: derivedAddress("a thief") }] }),
    refused("a larger amount of one", { vaults: [first, { ...second, amount: second.amount + 1n }, third] }),
    refused("the same vaults in another batch", { vaults: inBatch(BATCH_NUMBER + 1) }),
    refused("one of them in another batch", { vaults: [...inBatch(BATCH_NUMBER + 1).slice(0, 1), second, third] }),
    refused("another batch's proof", proveVaults(otherTree, inBatch(BATCH_NUMBER + 1))),
    refused("truncated by one sibling", { siblings: honest.siblings.slice(0, -1) }),
    refused("without siblings", { siblings: [] }),
    refused("extended by a sibling", { siblings: [...honest.siblings, sibling] }),
    refused("a changed sibling", { siblings: [...honest.siblings.slice(0, -1), sibling] }),
    refused("siblings in reverse", { siblings: honest.siblings.toReversed() }),
    refused("a count of one fewer level", { vaultCount: 8 }),
    refused("a count of one more level", { vaultCount: 17 }),
    refused("a count below a slot", { vaultCount: unpackVaultId(third.vaultId).slot }),
    refused("a count of 0", { vaultCount: 0 }),
  ];
}

type Quartet<T> = [T, T, T, T];

/** The node one level below the root that a slot stands under. */
function nodeAbove(tree: BatchTree, slot: number): Uint8Array {
  const level = tree.levels[tree.height - 1] ?? new Uint8Array();
  const index = slot >> (tree.height - 1);
  return level.slice(index * 32, index * 32 + 32);
}

function pick<T>(items: readonly T[], index: number): T {
  const found = items[index];
  if (found === undefined) throw new Error(`no item ${index}`);
  return found;
}
