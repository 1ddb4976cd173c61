import {
  type AbiFunction,
  type Address,
  concatHex,
  encodeFunctionData,
  getAbiItem,
  type Hex,
  numberToHex,
  size,
  slice,
  toFunctionSelector,
  toFunctionSignature,
} from "viem";
import { invalid } from "../errors.ts";
import { TRADE_GAS } from "../gas.ts";
import { MAX_AMOUNT, MAX_BATCH_VAULTS } from "../model.ts";
import type { Trade, TradeSide } from "../protocol/trade.ts";
import { isTransferred, tipIdOf, tipOwnerOf } from "../protocol/transfer-proof.ts";
import { MAX_ORDER_SHARES, type OrderItem, type OrderMessage } from "../protocol/typed-data.ts";
import { headerPlaceOf } from "../protocol/vault.ts";
import { stateCommitmentAbi as abi } from "./abi.ts";
import { packedHops } from "./arguments.ts";

export type { Trade, TradeSide };

/** Flags of a packed side, see docs/protocol.md 11. */
const HAS_AMOUNTS = 1;
const HAS_WANT = 2;
const HAS_BEFORE = 4;
const HAS_SHARES = 8;
const HAS_WAY = 16;
const HAS_TAKER = 32;
/** Bound of a packed side: its length is a u16. */
const MAX_SIDE_BYTES = 0xffff;
/** Most batches and assets of a call: a side names one by a byte. */
const MAX_TRADED_ASSETS = 256;

/**
 * The arguments of `settle`. Sides of one batch and asset name it once. Throws `validation_failed`
 * for orders that do not fit each other or their vaults, or when a side is too long.
 *
 * @param tradeGas - most gas of each trade, at least what the contract asks for
 */
export function settlementArguments(trades: readonly Trade[], tradeGas = TRADE_GAS) {
  const assets = new Map<string, ReturnType<typeof tradedAsset>>();
  const indexOf = (side: TradeSide) => {
    const own = tradedAsset(side);
    const key = [own.mode, own.batchNumber, own.assetType, ...Object.values(own.header)].join();
    if (!assets.has(key)) assets.set(key, own);
    const index = [...assets.keys()].indexOf(key);
    if (index < MAX_TRADED_ASSETS) return index;
    throw invalid(`the trades are of more than ${MAX_TRADED_ASSETS} assets of batches`);
  };
  const packed = trades.flatMap(({ maker, taker }) => [
    packedSide(maker, taker, indexOf(maker)),
    packedSide(taker, maker, indexOf(taker)),
  ]);
  return [[...assets.values()], concatHex(packed), tradeGas] as const;
}

/**
 * Calldata of `settle` on the settlement contract. Any account can send it.
 *
 * @example
 * const data = settleCalldata([{ maker: { ...proof, order, signature, quantum }, taker }]);
 */
export function settleCalldata(trades: readonly Trade[], tradeGas = TRADE_GAS): Hex {
  const args = settlementArguments(trades, tradeGas);
  return encodeFunctionData({ abi, functionName: "settle", args });
}

/** {@link settlementArguments} lie behind it in the calldata, and the task behind them. */
const SETTLE_TRADE = toFunctionSelector(
  toFunctionSignature(settleItem()).replace("settle(", "settleTrade("),
);
/** The place of the maturity in a trade's task (contracts/state/Trades.sol). */
const MATURITY_BITS = 128n;

function settleItem() {
  return getAbiItem({ abi, name: "settle" }) as AbiFunction;
}

/**
 * Calldata by which the code of makings settles one trade, and reverts with the trade's own reason.
 * `settle` calls itself so.
 */
export function tradeCalldata(trade: Trade, maturity: bigint): Hex {
  const task = numberToHex(maturity << MATURITY_BITS, { size: 32 });
  return concatHex([SETTLE_TRADE, slice(settleCalldata([trade]), 4), task]);
}

/** The advice about each reason by which L1 refuses a trade. */
const ADVICE: Readonly<Record<string, string>> = {
  NotMature: "it waits until then",
  SignatureInvalid: "the owner signs anew, if its wallet no longer agrees",
  AuthorizationIsCancelled: "the owner has cancelled it on L1, and signs another order",
  AuthorizationExpired: "the owner signs an order with a later deadline",
  QuantityTooLarge: "the vault has been used otherwise since, so a new order is needed",
  VaultExhausted: "the vault has been used otherwise since, so a new order is needed",
  Spent: "a transfer has taken the vault, so a new order is needed",
  VaultSpent: "a transfer has taken the vault, so a new order is needed",
  NotTransferable: "the asset's token says that it cannot change hands",
  OrderUnmet: "both orders must name the same amounts",
  ShareInvalid: "an order's shares exceed what its owner receives",
};

/**
 * A sentence of why L1 refuses a trade, with what to do.
 *
 * @param reason - the contract's error, such as `NotMature(7, 1893456000)`
 */
export function tradeRefusal(reason: string): string {
  const advice = ADVICE[reason.slice(0, reason.indexOf("("))];
  return `L1 refuses the trade now: ${reason}${advice === undefined ? "" : `; ${advice}`}.`;
}

/** The contract's `TradedAsset` of a side's batch and asset. */
function tradedAsset({ vault, header, assetPath }: TradeSide) {
  return {
    ...headerPlaceOf(vault.vaultId),
    header,
    assetType: BigInt(vault.assetType),
    assetIndex: assetPath.index,
    assetSiblings: assetPath.siblings,
  };
}

/** One side, with its length in front. */
function packedSide(side: TradeSide, other: TradeSide, asset: number): Hex {
  const { vault, order, signature, siblings } = side;
  const tip = tipIdOf(side);
  if (order.vaultId !== tip)
    throw invalid(`the order of vault ${tip} names vault ${order.vaultId}`);
  requireFits(order, other);
  const slot = Number(vault.vaultId % BigInt(MAX_BATCH_VAULTS));
  const units = unitsOf(order.give, side);
  const want = unitsOf(order.want, other);
  const { withdrawnBefore: before } = order;
  const given = unitsOf(other.order.give, other);
  if (want > given) throw invalid(`the order of vault ${tip} wants more than it is given`);
  const parts: readonly (readonly [flag: number, bytes: Hex] | false)[] = [
    (vault.amount !== 1n || units !== 1n) && [HAS_AMOUNTS, u64s(vault.amount, units)],
    want !== given && [HAS_WANT, u64s(want)],
    before !== 0n && [HAS_BEFORE, u64s(before)],
    [0, u64s(order.deadline)],
    order.shares.length > 0 && [HAS_SHARES, packedShares(order, other)],
    isTransferred(side) && [HAS_WAY, wayOf(side)],
    BigInt(order.taker) !== 0n && [HAS_TAKER, "0x"],
  ];
  const kept = parts.filter((part) => part !== false);
  const flags = kept.reduce((sum, [flag]) => sum | flag, 0);
  const long = () => invalid(`the side of vault ${tip} has more than ${MAX_SIDE_BYTES} bytes`);
  if (size(signature) > MAX_SIDE_BYTES) throw long();
  const body = concatHex([
    ...[bytes(flags, 1), bytes(asset, 1), bytes(slot, 3)],
    ...(isTransferred(side) ? [u64s(tip)] : []),
    ...[bytes(size(vault.mintingBlob), 1), vault.mintingBlob, vault.owner],
    ...kept.map(([, part]) => part),
    ...[bytes(size(signature), 2), signature, ...siblings],
  ]);
  if (size(body) <= MAX_SIDE_BYTES) return concatHex([bytes(size(body), 2), body]);
  throw long();
}

/** Requires what L1 takes from the other side instead of reading it. */
function requireFits({ vaultId, want, taker }: OrderMessage, other: TradeSide): void {
  const { give } = other.order;
  if (want.token.toLowerCase() !== give.token.toLowerCase() || want.id !== give.id)
    throw invalid(`the order of vault ${vaultId} wants another token than it is given`);
  const owner = tipOwnerOf(other);
  if (BigInt(taker) !== 0n && taker.toLowerCase() !== owner)
    throw invalid(`the order of vault ${vaultId} is not for ${owner}`);
}

function packedShares({ vaultId, shares }: OrderMessage, other: TradeSide): Hex {
  if (shares.length > MAX_ORDER_SHARES)
    throw invalid(`the order of vault ${vaultId} has more than ${MAX_ORDER_SHARES} shares`);
  const { token, id } = other.order.give;
  const packed = shares.flatMap(({ to, amount }): [Address, Hex] => [
    to,
    u64s(unitsOf({ token, id, amount }, other)),
  ]);
  return concatHex([bytes(shares.length, 1), ...packed]);
}

/** The records that have made the vault, without its id. */
function wayOf({ hops = [], refutation }: TradeSide): Hex {
  const way = packedHops(hops);
  const refuted = packedHops(refutation === undefined ? [] : [refutation]);
  return concatHex([bytes(size(way), 2), bytes(size(refuted), 2), way, refuted]);
}

/** An item's amount in quantized units of the asset that this side gives. */
function unitsOf({ amount }: OrderItem, { quantum }: TradeSide): bigint {
  if (amount % quantum !== 0n) throw invalid(`${amount} base units are no multiple of ${quantum}`);
  const units = amount / quantum;
  if (units <= MAX_AMOUNT) return units;
  throw invalid(`${amount} base units are more than a vault holds`);
}

const bytes = (value: bigint | number, size: number) => numberToHex(value, { size });
const u64s = (...values: readonly bigint[]) => concatHex(values.map((value) => bytes(value, 8)));
