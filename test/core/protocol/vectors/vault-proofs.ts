import type { Hash } from "../../../../core/model.ts";
import type { VaultContent } from "../../../../core/ports.ts";
import type { VaultEntry } from "../../../../core/protocol/batch-data.ts";
import { decodeBatch, placeVaults } from "../../../../core/protocol/batch-decoder.ts";
import { encodeBatchData } from "../../../../core/protocol/batch-encoder.ts";
import { BatchTree } from "../../../../core/protocol/batch-tree.ts";
import { batchHeaderHash, stateCommitment, stateLeaf } from "../../../../core/protocol/commitment.ts";
import { keccak256 } from "../../../../core/protocol/hash.ts";
import { bytesToHex, hexToBytes, unpackHashes } from "../../../../core/protocol/hex.ts";
import { manifestPath, manifestRoot, batchRoot as rootOf } from "../../../../core/protocol/manifest.ts";
import {
  type ProvableBatch,
  proveVault,
  proveVaults,
  type VaultMultiproof,
  type VaultProof,
} from "../../../../core/protocol/proof.ts";
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
  const data = encodeBatchData(entries);
  const { assets } = decodeBatch(data);
  const batch = { tree: new BatchTree(vaultLeaves(vaults)), assets };
  const batchRoot = rootOf(MODE, manifestRoot(assets), bytesToHex(batch.tree.root));
  const dataHash = bytesToHex(keccak256(data));
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
    data: bytesToHex(data),
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
    proofs: present.map((vault) => ({ ...proveVault(batch, vault), leaf: bytesToHex(vaultLeaf(vault)) })),
    multiproofs: [present, present.slice(0, 1), present.slice(-2), present.filter((_, i) => i % 3 === 0)].map((some) =>
      proveVaults(batch, some),
    ),
    refused: hostileProofs(batch, present, batchRoot),
    refusedMultiproofs: hostileMultiproofs(batch, present),
  };
}

/** What somebody might send to take what is not theirs, or twice what is. */
function hostileProofs(batch: ProvableBatch, vaults: readonly VaultContent[], batchRoot: Hash) {
  const { tree, assets } = batch;
  const vault = pick(vaults, 3);
  const honest = proveVault(batch, vault);
  const { slot } = unpackVaultId(vault.vaultId);
  const placed = (place: { mode?: "validium" | "zk-rollup"; batchNumber?: number; slot?: number }) => ({
    ...vault,
    vaultId: packVaultId({ mode: MODE, batchNumber: BATCH_NUMBER, slot, ...place }),
  });
  const sibling = derivedHash("a sibling that is not there");
  const other = { tree: new BatchTree(vaultLeaves(placeVaults(entries, MODE, BATCH_NUMBER + 1))), assets };
  const rootUnder = (content: Uint8Array) => rootOf(MODE, manifestRoot(assets), bytesToHex(content));
  const { assetPath } = honest;
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
    refused("another batch's proof", proveVault(other, { ...vault, vaultId: placed({ batchNumber: 6 }).vaultId })),
    refused("another batch's root", {}, rootUnder(other.tree.root)),
    refused("a count of one fewer level", { vaultCount: 8 }),
    refused("a count of one more level", { vaultCount: 17 }),
    refused("a count below the slot", { vaultCount: slot }),
    refused("a count of 0", { vaultCount: 0 }),
    refused("a leaf shown as the content", { siblings: [] }, rootUnder(vaultLeaf(vault))),
    refused(
      "a leaf shown as the content of a batch of one",
      { siblings: [], vaultCount: 1 },
      rootUnder(vaultLeaf(vault)),
    ),
    refused(
      "a node shown as the content",
      { siblings: honest.siblings.slice(0, -1) },
      rootUnder(nodeAbove(tree, slot)),
    ),
    refused(
      "a node shown as the content of a smaller batch",
      { siblings: honest.siblings.slice(0, -1), vaultCount: 3 },
      rootUnder(nodeAbove(tree, slot)),
    ),
    refused("the content shown as the batch root", {}, bytesToHex(tree.root)),
    refused("the manifest of another kind", {}, rootOf("calldata", manifestRoot(assets), bytesToHex(tree.root))),
    refused(
      "a manifest that leaves the asset out",
      {},
      rootOf(MODE, manifestRoot(assets, [assetPath.index]), bytesToHex(tree.root)),
    ),
    refused("another asset's path", { assetPath: manifestPath(assets, coin) }),
    refused("another index of the asset", { assetPath: { ...assetPath, index: assetPath.index ^ 1 } }),
    refused("an index past the asset's path", { assetPath: { ...assetPath, index: assetPath.index + 4 } }),
    refused("no siblings of the asset", { assetPath: { ...assetPath, siblings: [] } }),
    refused("a sibling too few of the asset", { assetPath: { ...assetPath, siblings: assetPath.siblings.slice(1) } }),
    refused("a sibling too many of the asset", {
      assetPath: { ...assetPath, siblings: [...assetPath.siblings, `0x${"00".repeat(32)}`] },
    }),
    refused("nine siblings of the asset", { assetPath: { ...assetPath, siblings: Array(9).fill(sibling) } }),
  ];
}

/** The same for many vaults at once. */
function hostileMultiproofs(batch: ProvableBatch, vaults: readonly VaultContent[]) {
  const [first, second, third, another] = [1, 2, 7, 8].map((index) => pick(vaults, index)) as Quartet<VaultContent>;
  const honest = proveVaults(batch, [first, second, third]);
  const { manifest } = honest;
  const inBatch = (batchNumber: number) =>
    honest.vaults.map((vault) => ({
      ...vault,
      vaultId: packVaultId({ ...unpackVaultId(vault.vaultId), batchNumber }),
    }));
  const sibling = derivedHash("a sibling that is not there");
  const other = { ...batch, tree: new BatchTree(vaultLeaves(placeVaults(entries, MODE, BATCH_NUMBER + 1))) };
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
    refused("another batch's proof", proveVaults(other, inBatch(BATCH_NUMBER + 1))),
    refused("truncated by one sibling", { siblings: honest.siblings.slice(0, -1) }),
    refused("without siblings", { siblings: [] }),
    refused("extended by a sibling", { siblings: [...honest.siblings, sibling] }),
    refused("a changed sibling", { siblings: [...honest.siblings.slice(0, -1), sibling] }),
    refused("siblings in reverse", { siblings: honest.siblings.toReversed() }),
    refused("a count of one fewer level", { vaultCount: 8 }),
    refused("a count of one more level", { vaultCount: 17 }),
    refused("a count below a slot", { vaultCount: unpackVaultId(third.vaultId).slot }),
    refused("a count of 0", { vaultCount: 0 }),
    refused("no manifest", { manifest: [] }),
    refused("an asset left out", {
      manifest: manifest.map((leaf, i): Hash => (i === 1 ? `0x${"00".repeat(32)}` : leaf)),
    }),
    refused("an asset too few", { manifest: manifest.slice(0, -1) }),
    refused("an asset too many", { manifest: [...manifest, sibling] }),
    refused("assets in reverse", { manifest: manifest.toReversed() }),
    refused("more assets than a batch has", { manifest: [...manifest, ...Array(253).fill(`0x${"00".repeat(32)}`)] }),
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
