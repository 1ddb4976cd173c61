import { getSignPayload } from "ox/TypedData";
import type { TypedDataDomain } from "viem";
import { argumentError } from "../errors.ts";
import { type Address, type Hash, MAX_AMOUNT, MAX_BATCH_VAULTS, type VaultId } from "../model.ts";
import type { ListedVault, PortalIdentity } from "../ports.ts";
import { MAX_UINT64, MAX_UINT256, requireBigint, requireInteger } from "./bounds.ts";
import { hashOf, keccak256, packed, textHash } from "./hex.ts";
import { MAX_BATCH_NUMBER, requireVaultId } from "./vault.ts";

/**
 * The message that a committee member signs: it has stored the batch's data and derived the root
 * from it.
 */
export interface ValidiumBatchMessage {
  /**
   * The history of both modes before the batch. L1 accepts the signature only after this history.
   */
  readonly history: Hash;
  readonly batchNumber: number;
  readonly batchRoot: Hash;
  readonly vaultCount: number;
  readonly dataHash: Hash;
  readonly epoch: bigint;
}

/**
 * The message that a committee member signs for a mirror: the source had this state in a final
 * block.
 */
export interface MirroredStateMessage {
  /** The chain of the settlement contract. */
  readonly sourceChainId: bigint;
  readonly sourceContract: Address;
  readonly countValidium: number;
  readonly countRollup: number;
  /** The source's state commitment at these counts. */
  readonly commitment: Hash;
  /** The epoch of the mirror's committee. */
  readonly epoch: bigint;
}

/**
 * The message that an owner signs so that somebody else may submit its withdrawals. Each vault can
 * be withdrawn on its own, in any order.
 */
export interface WithdrawalListMessage {
  readonly vaults: readonly ListedVault[];
  readonly recipient: Address;
  /** Seconds since 1970. */
  readonly deadline: bigint;
}

/** An amount of a token in an order, as a wallet shows it. */
export interface OrderItem {
  readonly token: Address;
  /** 0 for an ERC-20. */
  readonly id: bigint;
  /** Base units; 1 for an ERC-721. */
  readonly amount: bigint;
}

/** A part of what the signer of an order receives that goes to somebody else: a fee, a royalty. */
export interface OrderShare {
  readonly to: Address;
  /** Base units. */
  readonly amount: bigint;
}

/**
 * The message by which an owner trades: it gives this much of one vault, and receives at least
 * that. It counts once, and ends when anything else is taken of the vault.
 */
export interface OrderMessage {
  readonly give: OrderItem;
  readonly want: OrderItem;
  /** At most 4. They come out of what the signer receives. */
  readonly shares: readonly OrderShare[];
  /** The only account whose order this one is settled with; zero for any. */
  readonly taker: Address;
  /** The vault that the signer owns now. */
  readonly vaultId: VaultId;
  /** Units taken of the vault before. */
  readonly withdrawnBefore: bigint;
  /** Seconds since 1970. */
  readonly deadline: bigint;
}

/** Most shares of one order. */
export const MAX_ORDER_SHARES = 4;

/**
 * Most vaults of one list. With the longest signature, one vault still fits into the gas of a
 * withdrawal.
 */
export const MAX_LISTED_VAULTS = 256;

type FieldOf<F> = F extends `${infer Type} ${infer Name}`
  ? { readonly name: Name; readonly type: Type }
  : never;
type FieldsOf<T> = T extends `${infer F},${infer Rest}`
  ? readonly [FieldOf<F>, ...FieldsOf<Rest>]
  : readonly [FieldOf<T>];

/**
 * The fields of a message, from their text in EIP-712's `encodeType`: `"uint64 vaultId,address
 * owner"`.
 */
export function struct<const T extends string>(fields: T): FieldsOf<T> {
  return fields.split(",").map((field) => {
    const [type, name] = field.split(" ");
    return { name, type };
  }) as never;
}

const ORDER =
  "Item give,Item want,Share[] shares,address taker,uint64 vaultId,uint64 withdrawnBefore,uint64 deadline";
const ITEM = "address token,uint256 id,uint256 amount";
const SHARE = "address to,uint256 amount";

/** EIP-712 types of all messages, also for a wallet's `signTypedData`. */
export const TYPED_DATA_TYPES = {
  ValidiumBatch: struct(
    "bytes32 history,uint64 batchNumber,bytes32 batchRoot,uint32 vaultCount,bytes32 dataHash,uint64 epoch",
  ),
  MirroredState: struct(
    "uint64 sourceChainId,address sourceContract,uint64 countValidium,uint64 countRollup,bytes32 commitment,uint64 epoch",
  ),
  WithdrawalList: struct("ListedVault[] vaults,address recipient,uint64 deadline"),
  RenewalList: struct("ListedVault[] vaults,address recipient,uint64 deadline"),
  ListedVault: struct("uint64 vaultId,uint64 withdrawnBefore,uint64 quantity"),
  Order: struct(ORDER),
  Item: struct(ITEM),
  Share: struct(SHARE),
  Cancellation: struct("address signer,bytes32 id"),
  Claim: struct("address link,address owner"),
} as const;

/** EIP-712 domain of a settlement contract or a mirror. */
export function typedDataDomain(settlement: PortalIdentity) {
  return {
    name: "Mintmark",
    version: "1",
    chainId: settlement.chainId,
    verifyingContract: settlement.contract,
  } as const satisfies TypedDataDomain;
}

/** A message of some types, for viem's `signTypedData`. */
export function typedData<const T, const P extends string, M>(
  settlement: PortalIdentity,
  types: T,
  primaryType: P,
  message: M,
) {
  return { domain: typedDataDomain(settlement), types, primaryType, message } as const;
}

const DOMAIN_WORDS = [
  "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)",
  "Mintmark",
  "1",
].map(textHash);

/** The hash of {@link typedDataDomain}, as the contract's constructor computes it. */
export function domainHash({ chainId, contract }: PortalIdentity): Uint8Array {
  return keccak256(packed([32, 32, 32, 32, 12, 20], ...DOMAIN_WORDS, chainId, 0, contract));
}

/**
 * The `ValidiumBatch` typed data for viem's `signTypedData`. Throws `validation_failed` for values
 * out of bounds.
 *
 * @example
 * const message = { history, batchNumber, batchRoot, vaultCount, dataHash, epoch: 1n };
 * const signature = await member.signTypedData(validiumBatchTypedData(settlement, message));
 */
export function validiumBatchTypedData(
  settlement: PortalIdentity,
  { history, batchNumber, batchRoot, vaultCount, dataHash, epoch }: ValidiumBatchMessage,
) {
  requireInteger("batchNumber", batchNumber, 0, MAX_BATCH_NUMBER);
  requireInteger("vaultCount", vaultCount, 1, MAX_BATCH_VAULTS);
  requireBigint("epoch", epoch, 0n, MAX_UINT64);
  const message = {
    history,
    batchNumber: BigInt(batchNumber),
    batchRoot,
    vaultCount,
    dataHash,
    epoch,
  } as const;
  return typedData(
    settlement,
    { ValidiumBatch: TYPED_DATA_TYPES.ValidiumBatch },
    "ValidiumBatch",
    message,
  );
}

/**
 * The `MirroredState` typed data. Throws `validation_failed` for values out of bounds.
 *
 * @param mirror - the contract that accepts the state, on its own chain: the domain
 *
 * @example
 * const message = { sourceChainId: 1n, sourceContract, countValidium, countRollup, commitment,
 * epoch: 1n }; const signature = await
 * member.signTypedData(mirroredStateTypedData(mirror.settlement, message));
 */
export function mirroredStateTypedData(mirror: PortalIdentity, message: MirroredStateMessage) {
  requireBigint("sourceChainId", message.sourceChainId, 0n, MAX_UINT64);
  requireInteger("countValidium", message.countValidium, 0, MAX_BATCH_NUMBER);
  requireInteger("countRollup", message.countRollup, 0, MAX_BATCH_NUMBER);
  requireBigint("epoch", message.epoch, 0n, MAX_UINT64);
  const counts = {
    countValidium: BigInt(message.countValidium),
    countRollup: BigInt(message.countRollup),
  };
  const { MirroredState } = TYPED_DATA_TYPES;
  return typedData(mirror, { MirroredState }, "MirroredState", { ...message, ...counts } as const);
}

/**
 * The `WithdrawalList` for viem's `signTypedData`. Throws `validation_failed` for values out of
 * bounds.
 *
 * @example
 * const message = { vaults: [{ vaultId, withdrawnBefore: 0n, quantity: 1n }], recipient, deadline
 * }; const signature = await owner.signTypedData(withdrawalListTypedData(settlement, message));
 */
export function withdrawalListTypedData(
  settlement: PortalIdentity,
  message: WithdrawalListMessage,
) {
  requireList(message);
  const { WithdrawalList, ListedVault } = TYPED_DATA_TYPES;
  return typedData(settlement, { WithdrawalList, ListedVault }, "WithdrawalList", message);
}

/**
 * The `RenewalList` for viem's `signTypedData`: L1 takes the whole list in one call, and makes
 * vaults of the recipient in place of tokens. Throws `validation_failed` for values out of bounds.
 *
 * @example
 * const vaults = [{ vaultId, withdrawnBefore: 0n, quantity: 5n }];
 * const message = { vaults, recipient, deadline };
 * const signature = await owner.signTypedData(renewalListTypedData(settlement, message));
 */
export function renewalListTypedData(settlement: PortalIdentity, message: WithdrawalListMessage) {
  requireList(message);
  const { RenewalList, ListedVault } = TYPED_DATA_TYPES;
  return typedData(settlement, { RenewalList, ListedVault }, "RenewalList", message);
}

/**
 * The digest that the owner of all vaults of a list signs.
 *
 * @example
 * await isSignedBy(owner, withdrawalListDigest(settlement, message), signature);
 */
export function withdrawalListDigest(
  settlement: PortalIdentity,
  message: WithdrawalListMessage,
): Hash {
  return getSignPayload(withdrawalListTypedData(settlement, message));
}

/**
 * The `Order` for viem's `signTypedData`. Throws `validation_failed` for values out of bounds.
 *
 * @example
 * const give = { token: sword, id: 7n, amount: 1n };
 * const want = { token: gold, id: 0n, amount: 250n };
 * const vault = { vaultId, withdrawnBefore: 0n };
 * const order = { give, want, shares: [], taker: zeroAddress, ...vault, deadline };
 * const signature = await owner.signTypedData(orderTypedData(settlement, order));
 */
export function orderTypedData(settlement: PortalIdentity, message: OrderMessage) {
  requireOrder(message);
  const { Order, Item, Share } = TYPED_DATA_TYPES;
  return typedData(settlement, { Order, Item, Share }, "Order", message);
}

const ITEM_TYPE_HASH = textHash(`Item(${ITEM})`);
const SHARE_TYPE_HASH = textHash(`Share(${SHARE})`);
const ORDER_TYPE_HASH = textHash(`Order(${ORDER})Item(${ITEM})Share(${SHARE})`);

/**
 * The digest that the maker of an order signs. It also names the order to L1's `cancel`. An engine
 * needs a thousand a second, and `hashTypedData` takes a fifth of a millisecond for each.
 *
 * @example
 * await isSignedBy(owner, orderDigest(settlement, order), signature);
 */
export function orderDigest(settlement: PortalIdentity, message: OrderMessage): Hash {
  requireOrder(message);
  const { give, want, shares, taker, vaultId, withdrawnBefore, deadline } = message;
  const itemHash = ({ token, id, amount }: OrderItem) =>
    keccak256(packed([32, 12, 20, 32, 32], ITEM_TYPE_HASH, 0, token, id, amount));
  const shareHashes = shares.map(({ to, amount }) =>
    keccak256(packed([32, 12, 20, 32], SHARE_TYPE_HASH, 0, to, amount)),
  );
  const order = packed(
    [32, 32, 32, 32, 12, 20, 32, 32, 32],
    ...[ORDER_TYPE_HASH, itemHash(give), itemHash(want), keccak256(packed([32], ...shareHashes))],
    ...[0, taker, vaultId, withdrawnBefore, deadline],
  );
  return hashOf([2, 32, 32], 0x1901, domainHash(settlement), keccak256(order));
}

/** The message that takes back what its signer has said of withdrawals, renewals and orders. */
export interface CancellationMessage {
  readonly signer: Address;
  /**
   * The digest of a list or an order, or a vault's id for all that the signer's lists and orders
   * say of the vault.
   */
  readonly id: Hash | VaultId;
}

/**
 * The `Cancellation` typed data for viem's `signTypedData`. Anybody can bring the signature to L1.
 *
 * @example
 * const signature = await owner.signTypedData(cancellationTypedData(portal, { signer, id }));
 */
export function cancellationTypedData(portal: PortalIdentity, message: CancellationMessage) {
  const id = cancellationId(message.id);
  const { Cancellation } = TYPED_DATA_TYPES;
  return typedData(portal, { Cancellation }, "Cancellation", { ...message, id } as const);
}

/** L1 knows a cancelled list, order or vault by these 32 bytes. */
export function cancellationId(id: Hash | VaultId): Hash {
  if (typeof id !== "bigint") return id;
  requireVaultId("id", id);
  return `0x${id.toString(16).padStart(64, "0")}`;
}

/** The message that the key of a claim link signs: its mint goes to this owner. */
export interface ClaimMessage {
  /** The address of the link's key. */
  readonly link: Address;
  readonly owner: Address;
}

/**
 * The `Claim` typed data for viem's `signTypedData`.
 *
 * @example
 * const signature = await key.signTypedData(claimTypedData(settlement, { link: key.address, owner
 * }));
 */
export function claimTypedData(settlement: PortalIdentity, message: ClaimMessage) {
  return typedData(settlement, { Claim: TYPED_DATA_TYPES.Claim }, "Claim", message);
}

/**
 * The digest that the key of a claim link signs.
 *
 * @example
 * await isSignedBy(link, claimDigest(settlement, { link, owner }), signature);
 */
export function claimDigest(settlement: PortalIdentity, message: ClaimMessage): Hash {
  return getSignPayload(claimTypedData(settlement, message));
}

function requireList({ vaults, deadline }: WithdrawalListMessage): void {
  requireInteger("vaults", vaults.length, 1, MAX_LISTED_VAULTS);
  for (const [i, vault] of vaults.entries()) requireListable(vault, `vaults[${i}].`);
  requireBigint("deadline", deadline, 0n, MAX_UINT64);
}

/** @param at - begins the names of its fields: `vaults[3].` in a list */
function requireListable({ vaultId, withdrawnBefore, quantity }: ListedVault, at: string): void {
  requireVaultId(`${at}vaultId`, vaultId);
  requireBigint(`${at}withdrawnBefore`, withdrawnBefore, 0n, MAX_AMOUNT);
  requireBigint(`${at}quantity`, quantity, 1n, MAX_AMOUNT);
}

function requireOrder(order: OrderMessage): void {
  const { give, want, shares, vaultId, withdrawnBefore, deadline } = order;
  for (const [name, { id, amount }] of Object.entries({ give, want })) {
    requireBigint(`${name}.id`, id, 0n, MAX_UINT256);
    requireBigint(`${name}.amount`, amount, 1n, MAX_UINT256);
  }
  requireInteger("shares", shares.length, 0, MAX_ORDER_SHARES);
  for (const [i, { to, amount }] of shares.entries()) {
    requireBigint(`shares[${i}].amount`, amount, 1n, MAX_UINT256);
    if (BigInt(to) === 0n) throw argumentError(`shares[${i}].to`, "must not be the zero address");
  }
  requireVaultId("vaultId", vaultId);
  requireBigint("withdrawnBefore", withdrawnBefore, 0n, MAX_AMOUNT);
  requireBigint("deadline", deadline, 0n, MAX_UINT64);
}
