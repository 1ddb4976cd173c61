import { getSignPayload } from "ox/TypedData";
import { invalid, MintmarkError } from "../errors.ts";
import {
  type Address,
  type Hash,
  type Hex,
  MAX_AMOUNT,
  MAX_BATCH_VAULTS,
  type Uuid,
  type VaultId,
} from "../model.ts";
import type { PortalIdentity, VaultContent } from "../ports.ts";
import { BatchTree } from "./batch-tree.ts";
import { MAX_UINT64, requireBigint, requireInteger } from "./bounds.ts";
import {
  bytesToHex,
  foldPath,
  HASH_BYTES,
  hashMessages,
  packHashes,
  unpackHashes,
  writeHex,
} from "./hex.ts";
import { treeHeight } from "./merkle.ts";
import { isSignedBy } from "./signature.ts";
import { struct, typedData } from "./typed-data.ts";
import { unpackVaultId } from "./vault.ts";

const LEAF_PREFIX = 0x0b;
/** Prefix 1, vault id 8, chain id 8, owner 20, asset type 32, amount 8. */
const LEAF_HEADER_BYTES = 77;

/** EIP-712 types of an operator's receipt for a mint. */
const RECEIPT_TYPES = { MintReceipt: struct("bytes32 root,uint32 count,uint64 time") } as const;

/** The message that the operator signs: it has acknowledged the vaults below this root. */
export interface ReceiptMessage {
  /**
   * Root of the tree over the request's vaults, in the reply's order, built as a batch's tree
   * (docs/protocol.md 2). Its leaves are not a batch's, which name assets by an index that only the
   * seal gives.
   */
  readonly root: Hash;
  /** Number of vaults of the request. */
  readonly count: number;
  /** Time of the acknowledgement, milliseconds since 1970. */
  readonly time: number;
}

/** The operator's signed receipt for all vaults of one mint. */
export interface MintReceipt extends ReceiptMessage {
  readonly signer: Address;
  /** 65 bytes, `r ‖ s ‖ v`. */
  readonly signature: Hex;
  /**
   * The chain of each asset's token. With it, the reply's vaults give the content of the leaves.
   */
  readonly chainIds: Readonly<Record<Uuid, bigint>>;
}

/** The receipt of one vault, verifiable on its own. */
export interface VaultReceipt {
  readonly vault: VaultContent;
  /** Position of the vault in the request. */
  readonly index: number;
  readonly count: number;
  /** The ceil(log2 count) siblings, from the leaf upwards. */
  readonly siblings: readonly Hash[];
  /** Milliseconds since 1970. */
  readonly time: number;
  readonly signature: Hex;
}

/** A whole number, from the engine or from JSON. */
type Whole = bigint | string;

/** A vault of a mint's reply. */
export interface ReceiptVault {
  readonly vaultId: VaultId | string;
  readonly ownerAddress: Address;
  readonly assetId: Uuid;
  readonly assetType: Hash;
  readonly amount: Whole;
  readonly mintingBlob: Hex;
}

/** The parts of a mint's reply that the receipts need. */
export interface MintReply {
  readonly vaults: readonly ReceiptVault[];
  readonly receipt: Omit<MintReceipt, "signer" | "chainIds"> & {
    readonly chainIds: Readonly<Record<Uuid, Whole>>;
  };
}

/**
 * The `MintReceipt` typed data for viem's `signTypedData`. Throws `validation_failed` for values
 * out of bounds.
 *
 * @example
 * const signature = await operator.signTypedData(receiptTypedData(settlement, { root, count, time
 * }));
 */
export function receiptTypedData(settlement: PortalIdentity, message: ReceiptMessage) {
  const { root, count, time } = message;
  requireInteger("count", count, 1, MAX_BATCH_VAULTS);
  requireInteger("time", time, 0, Number.MAX_SAFE_INTEGER);
  return typedData(settlement, RECEIPT_TYPES, "MintReceipt", {
    root,
    count,
    time: BigInt(time),
  } as const);
}

/** The contents of the vaults of a mint's reply. */
export function receiptContents(
  vaults: readonly ReceiptVault[],
  chainIds: Readonly<Record<Uuid, Whole>>,
): VaultContent[] {
  return vaults.map(({ vaultId, ownerAddress: owner, assetId, assetType, amount, mintingBlob }) => {
    const chainId = chainIds[assetId];
    if (chainId === undefined) throw invalid(`the chain of asset ${assetId} is missing`);
    return {
      vaultId: BigInt(vaultId),
      chainId: BigInt(chainId),
      owner,
      assetType,
      amount: BigInt(amount),
      mintingBlob,
    };
  });
}

/**
 * A hash of each vault's content, whatever place its asset has in a manifest; the leaves of a
 * receipt's tree, 32 bytes each: `keccak256(0x0b ‖ vaultId(8) ‖ chainId(8) ‖
 * owner(20) ‖ assetType(32) ‖ amount(8) ‖ mintingBlob)`.
 */
export function contentHashes(contents: readonly VaultContent[]): Uint8Array {
  const texts = contents.reduce((sum, { mintingBlob }) => sum + bytesOf(mintingBlob), 0);
  const preimages = new Uint8Array(contents.length * LEAF_HEADER_BYTES + texts);
  const view = new DataView(preimages.buffer);
  const ends = new Uint32Array(contents.length);
  let at = 0;
  for (const [
    i,
    { vaultId, chainId, owner, assetType, amount, mintingBlob },
  ] of contents.entries()) {
    unpackVaultId(vaultId);
    requireBigint("chainId", chainId, 0n, MAX_UINT64);
    if (amount < 1n || amount > MAX_AMOUNT) throw new MintmarkError("amount_out_of_range");
    view.setUint8(at, LEAF_PREFIX);
    view.setBigUint64(at + 1, vaultId);
    view.setBigUint64(at + 9, chainId);
    writeHex(owner, 20, preimages, at + 17);
    writeHex(assetType, HASH_BYTES, preimages, at + 37);
    view.setBigUint64(at + 69, amount);
    at = writeHex(mintingBlob, bytesOf(mintingBlob), preimages, at + LEAF_HEADER_BYTES);
    ends[i] = at;
  }
  const leaves = new Uint8Array(contents.length * HASH_BYTES);
  hashMessages(preimages, ends, leaves);
  return leaves;
}

const bytesOf = (mintingBlob: Hex) => (mintingBlob.length - 2) / 2;

/** The root that the operator signs for these vaults. */
export function receiptRoot(contents: readonly VaultContent[]): Hash {
  return bytesToHex(new BatchTree(contentHashes(contents)).root);
}

/**
 * The receipt of one vault, from a mint's reply of the engine or the HTTP API.
 *
 * @param reply - the vaults as acknowledged, with their receipt
 * @throws MintmarkError `vault_not_found`; `validation_failed` when the receipt is for other
 *   vaults, such as before an amount grew
 *
 * @example
 * const minted = await engine.mint(principal, request);
 * const receipt = await minted.receipt(); // null without a receiptSigner
 * if (receipt !== null) send(receiptOf({ vaults: minted.vaults, receipt }, vaultId));
 */
export function receiptOf(reply: MintReply, vaultId: VaultId | string): VaultReceipt {
  try {
    return receiptIn(reply, vaultId);
  } catch (error) {
    // The reply comes from a server, so it can have any form.
    throw error instanceof MintmarkError ? error : invalid("this is no reply of a mint");
  }
}

function receiptIn({ vaults, receipt }: MintReply, vaultId: VaultId | string): VaultReceipt {
  const contents = receiptContents(vaults, receipt.chainIds);
  const index = contents.findIndex((content) => content.vaultId === BigInt(vaultId));
  const vault = contents[index];
  if (vault === undefined)
    throw new MintmarkError("vault_not_found", "The mint has no such vault.");
  const tree = new BatchTree(contentHashes(contents));
  if (bytesToHex(tree.root) !== receipt.root || contents.length !== receipt.count) {
    throw invalid("these are not the vaults of the receipt");
  }
  const { count, time, signature } = receipt;
  return { vault, index, count, siblings: unpackHashes(tree.siblings(index)), time, signature };
}

/**
 * Whether the operator has signed this receipt. Needs only the settlement contract and the
 * operator's receipt address. False for a malformed receipt too.
 *
 * @param signer - the address that the operator has published for its receipts
 *
 * @example
 * if (!(await verifyReceipt(settlement, operatorAddress, receipt))) throw new Error("not the
 * operator's receipt");
 */
export async function verifyReceipt(
  settlement: PortalIdentity,
  signer: Address,
  receipt: VaultReceipt,
): Promise<boolean> {
  try {
    const { vault, index, count, siblings, time, signature } = receipt;
    requireInteger("count", count, 1, MAX_BATCH_VAULTS);
    requireInteger("index", index, 0, count - 1);
    if (siblings.length !== treeHeight(count)) return false;
    const root = bytesToHex(foldPath(contentHashes([vault]), index, packHashes(siblings)));
    const signed = receiptTypedData(settlement, { root, count, time });
    return await isSignedBy(signer, getSignPayload(signed), signature);
  } catch {
    return false;
  }
}

/**
 * The operator's key for receipts, such as a viem account. Its signatures are deterministic (RFC
 * 6979).
 */
export interface ReceiptSigner {
  readonly address: Address;
  /** The EIP-712 signature. */
  signTypedData(message: ReturnType<typeof receiptTypedData>): Promise<Hex>;
}
