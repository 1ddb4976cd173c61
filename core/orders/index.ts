/**
 * Orders: owners offer vaults for other tokens by signed messages, others take them, and L1 settles
 * both sides in one call. A part of its own: the engine runs without it.
 */

export { LISTINGS } from "../store/records.ts";
export type { Item, Order, OrderFilter, OrderStatus, Share } from "./book.ts";
export { FillSender, type FillSenderOptions, type L1Trader } from "./fill-sender.ts";
export type { Market } from "./markets.ts";
export { type Orders, ordersOf } from "./orders.ts";
export type { FillPreparation, OrderPreparation, OrderRequest, PreparedOrder } from "./request.ts";
export type { AssetTerms, Listing, OrderTerms, Part } from "./terms.ts";
