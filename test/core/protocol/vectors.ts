import { readFileSync } from "node:fs";
import { keccak_256 } from "@noble/hashes/sha3.js";
import type { Address, Hash, Hex, Mode, Standard } from "../../../core/model.ts";
import type { Settlement, VaultContent } from "../../../core/ports.ts";
import { bytesToHex } from "../../../core/protocol/hex.ts";
import { MAX_TRANSFER_SLOTS } from "../../../core/protocol/transfer-data.ts";
import type { OrderMessage } from "../../../core/protocol/typed-data.ts";

/**
 * The files of test/vectors, which the tests of the core and of the contracts read. They are
 * frozen: a file that changed would mean another version of the protocol. Bytes are `0x` hex in
 * lower case, integers decimal strings.
 */
export interface VectorFiles {
  assets: {
    vectors: readonly (AssetVector & { name: string; mintingBlob: Hex; mintableAssetId: Hash })[];
  };
  attestations: {
    settlement: SettlementVector;
    message: BatchMessageVector;
    digest: Hash;
    epoch: string;
    threshold: string;
    members: readonly Address[];
    committeeHash: Hash;
    vectors: readonly { signers: readonly string[]; attestation: Hex }[];
    refused: readonly { name: string; attestation: Hex }[];
  };
  "batch-data": {
    batchNumber: string;
    assets: readonly AssetVector[];
    mode: Mode;
    vectors: readonly (BatchVector & {
      dataHash: Hash;
      content: Hash;
      encoder: boolean;
      vaultCount: string;
    })[];
    refused: readonly { name: string; reason: string; data: Hex }[];
    refusedByAsset: readonly { name: string; reason: string; data: Hex }[];
  };
  "batch-trees": {
    zeroRoots: readonly Hash[];
    vectors: readonly {
      count: string;
      height: string;
      root: Hash;
      leaves: readonly Hash[];
      proofs: readonly { slot: string; leaf: Hash; siblings: readonly Hash[] }[];
      multiproofs: readonly {
        slots: readonly string[];
        leaves: readonly Hash[];
        siblings: readonly Hash[];
      }[];
    }[];
  };
  "blob-elements": {
    continuation: string;
    owner: Address;
    vectors: readonly {
      name: string;
      assetIndex: string;
      amount: string;
      mintingBlob: Hex;
      elements: readonly Hash[];
    }[];
    nobodys: readonly { name: string; elements: readonly Hash[] }[];
    contents: readonly {
      vaultCount: string;
      assets: readonly AssetIdVector[];
      manifestHash: Hash;
      versionedHashes: readonly Hash[];
      content: Hash;
    }[];
  };
  "minting-blobs": {
    vectors: readonly {
      standard: Standard;
      scheme: Scheme;
      input: string;
      canonical: Hex;
      tokenId: string | null;
    }[];
    refused: readonly { standard: Standard; scheme: Scheme; input: string }[];
  };
  commitments: {
    stateLeaves: readonly (StateLeafVector & { stateLeaf: Hash })[];
    commitments: readonly (StateVector & { settlement: SettlementVector; commitment: Hash })[];
    emptyHistory: { settlement: SettlementVector; history: Hash };
    histories: readonly {
      history: Hash;
      mode: string;
      stateLeaf: Hash;
      commits: string;
      next: Hash;
    }[];
    headers: readonly (HeaderVector & { headerHash: Hash })[];
  };
  manifests: {
    vectors: readonly {
      assets: readonly AssetIdVector[];
      leftOut: readonly string[];
      root: Hash;
      paths: readonly (AssetIdVector & { leaf: Hash; index: string; siblings: readonly Hash[] })[];
    }[];
    batchRoots: readonly { kind: string; manifestRoot: Hash; content: Hash; batchRoot: Hash }[];
    settlement: SettlementVector;
    assetsHashes: readonly {
      assets: readonly (AssetIdVector & { issuerEpoch: string })[];
      assetsHash: Hash;
    }[];
    consents: readonly {
      mode: Mode;
      batchNumber: string;
      vaultCount: string;
      content: Hash;
      manifest: Hash;
      assetsHash: Hash;
      digest: Hash;
    }[];
  };
  orders: {
    domain: { chainId: string; verifyingContract: Address };
    vectors: readonly {
      give: ItemVector;
      want: ItemVector;
      shares: readonly { to: Address; amount: string }[];
      taker: Address;
      vaultId: string;
      withdrawnBefore: string;
      deadline: string;
      digest: Hash;
    }[];
  };
  "state-trees": {
    leaves: readonly Hash[];
    states: readonly { count: string; root: Hash; frontier: readonly Hash[] }[];
    batchProofs: readonly {
      oldRoot: Hash;
      newRoot: Hash;
      batchNumber: string;
      stateLeaf: Hash;
      siblings: readonly Hash[];
    }[];
    consistencyProofs: readonly ConsistencyVector[];
    refused: readonly (ConsistencyVector & { name: string })[];
  };
  "starkex-assets": {
    vectors: readonly {
      standard: Standard;
      token: Address;
      quantum: string;
      mintingBlob: Hex;
      assetId: Hex;
    }[];
  };
  "transfer-rules": {
    vectors: readonly {
      by: "owner" | "key";
      amount: string;
      before: number;
      counts: boolean;
    }[];
  };
  transfers: {
    batchNumber: string;
    vectors: readonly (BatchVector & {
      dataHash: Hash;
      groups: readonly { list: Hash; digest: Hash }[];
      slots: string;
      leaves?: readonly Hash[];
      content: Hash;
    })[];
    transferBatch: BatchMessageVector & { digest: Hash };
    session: {
      owner: Address;
      key: Address;
      until: string;
      limit: string;
      assetType: Hash;
      digest: Hash;
    };
    sessionEnd: { digest: Hash };
    refused: readonly { name: string; reason: string; data: Hex }[];
  };
  "typed-data": {
    domain: { chainId: string; verifyingContract: Address };
    validiumBatches: readonly (BatchMessageVector & { digest: Hash })[];
    mirroredStates: readonly {
      sourceChainId: string;
      sourceContract: Address;
      countValidium: string;
      countRollup: string;
      commitment: Hash;
      epoch: string;
      digest: Hash;
    }[];
    withdrawalLists: readonly {
      vaults: readonly { vaultId: string; withdrawnBefore: string; quantity: string }[];
      recipient: Address;
      deadline: string;
      digest: Hash;
    }[];
  };
  "vault-proofs": {
    settlement: SettlementVector;
    header: HeaderVector;
    headerHash: Hash;
    mode: Mode;
    batchNumber: string;
    data: Hex;
    stateLeaf: Hash;
    statePath: StatePathVector;
    commitment: Hash;
    proofs: readonly (ProofVector & { leaf: Hash })[];
    multiproofs: readonly MultiproofVector[];
    refused: readonly (ProofVector & { name: string; batchRoot: Hash })[];
    refusedMultiproofs: readonly (MultiproofVector & { name: string })[];
  };
  vaults: {
    vectors: readonly {
      vault: VaultVector;
      assetIndex: string;
      words: readonly Hex[];
      leaf: Hash;
      mode: Mode;
      batchNumber: string;
      slot: string;
    }[];
    notWords: readonly { name: string; words: readonly Hex[] }[];
    refusedVaultIds: readonly string[];
  };
}

type Scheme = "mintmark" | "imx" | "raw32";

interface AssetIdVector {
  chainId: string;
  assetType: Hash;
}

interface ItemVector {
  token: Address;
  id: string;
  amount: string;
}

interface AssetVector {
  standard: Standard;
  chainId: string;
  token: Address;
  quantum: string;
  assetType: Hash;
}

interface BatchVector {
  name: string;
  data: Hex;
  batchRoot: Hash;
}

interface BatchMessageVector {
  history: Hash;
  batchNumber: string;
  batchRoot: Hash;
  vaultCount: string;
  dataHash: Hash;
  epoch: string;
}

export interface ConsistencyVector {
  oldCount: string;
  newCount: string;
  oldRoot: Hash;
  newRoot: Hash;
  proof: { leaf: Hash; atOld: readonly Hash[]; atNew: readonly Hash[] } | null;
}

export interface HeaderVector {
  batchRoot: Hash;
  vaultCount: string;
  committedAt: string;
  sequence: string;
}

export interface MultiproofVector {
  vaults: readonly VaultVector[];
  vaultCount: string;
  siblings: readonly Hash[];
  manifest: readonly Hash[];
}

export interface ProofVector {
  vault: VaultVector;
  vaultCount: string;
  siblings: readonly Hash[];
  assetPath: { index: string; siblings: readonly Hash[] };
}

interface SettlementVector {
  chainId: string;
  contract: Address;
}

interface StateLeafVector {
  batchNumber: string;
  vaultCount: string;
  dataHash: Hash;
  batchRoot: Hash;
}

interface StateVector {
  rootValidium: Hash;
  rootRollup: Hash;
  countValidium: string;
  countRollup: string;
}

export interface StatePathVector {
  dataHash: Hash;
  siblings: readonly Hash[];
  otherRoot: Hash;
  countValidium: string;
  countRollup: string;
}

export interface VaultVector {
  vaultId: string;
  chainId: string;
  owner: Address;
  assetType: Hash;
  amount: string;
  mintingBlob: Hex;
}

/** The vault of a vector. */
export function contentOf(vault: VaultVector): VaultContent {
  return {
    ...vault,
    vaultId: BigInt(vault.vaultId),
    chainId: BigInt(vault.chainId),
    amount: BigInt(vault.amount),
  } as VaultContent;
}

/** One file of test/vectors. */
export function vectors<Name extends keyof VectorFiles>(name: Name): VectorFiles[Name] {
  return JSON.parse(readFileSync(new URL(`../../vectors/${name}.json`, import.meta.url), "utf8"));
}

/**
 * The fewest records of too many slots: too long for a file. @param amount - of each record, in 16
 * digits; none for whole vaults
 */
export function tooManySlots(amount = ""): Hex {
  const [form, records] =
    amount === "" ? ["16", MAX_TRANSFER_SLOTS + 1] : ["17", MAX_TRANSFER_SLOTS / 2 + 1];
  const digits = (value: number, length: number) => value.toString(16).padStart(length, "0");
  const receiver = derivedAddress("receiver a").slice(2);
  const groups = Array.from({ length: Math.ceil(records / 1000) }, (_, i) => {
    const ids = Array.from({ length: Math.min(1000, records - 1000 * i) }, (__, j) => 1000 * i + j);
    return `${form}72550000${digits(ids.length, 4)}${ids.map((id) => digits(id, 16) + receiver + amount).join("")}`;
  });
  return `0x03${groups.join("")}`;
}

/** Made-up content: everything follows from a label by hashing, so that each run makes the same. */
export function derivedHash(label: string): Hash {
  return bytesToHex(keccak_256(new TextEncoder().encode(`mintmark vector: ${label}`)));
}

export function derivedAddress(label: string): Address {
  return derivedHash(label).slice(0, 42) as Address;
}

/** The settlement contract of the vectors. */
export const SETTLEMENT: Settlement = {
  chainId: 31337n,
  contract: derivedAddress("settlement"),
  engineVersion: 5,
};

/** The message of an order's vector. */
export function orderOf(vector: VectorFiles["orders"]["vectors"][number]): OrderMessage {
  const { give, want, shares, taker, vaultId, withdrawnBefore, deadline } = vector;
  const itemOf = ({ token, id, amount }: ItemVector) => ({
    token,
    id: BigInt(id),
    amount: BigInt(amount),
  });
  return {
    give: itemOf(give),
    want: itemOf(want),
    shares: shares.map(({ to, amount }) => ({ to, amount: BigInt(amount) })),
    taker,
    vaultId: BigInt(vaultId),
    withdrawnBefore: BigInt(withdrawnBefore),
    deadline: BigInt(deadline),
  };
}
