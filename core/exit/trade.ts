import { zeroAddress } from "viem";
import { invalid, MintmarkError } from "../errors.ts";
import type { Address, Hex } from "../model.ts";
import type { L1Receipt } from "../ports.ts";
import type { L1Settler, TradeSide } from "../protocol/trade.ts";
import type { OrderItem, OrderMessage } from "../protocol/typed-data.ts";
import { decimal, hex, list, object, oneOf } from "../validate.ts";
import { type ExitKit, exitKit, exitKitToJson, readFile, requireWholeKit } from "./kit.ts";
import { standingOf } from "./standing.ts";
import { type ExitOptions, planExit, timeOn } from "./withdraw.ts";

/** A signed order with its vault's kit: whoever has both can bring the trade to L1 alone. */
export interface Offer {
  readonly kit: ExitKit;
  readonly order: OrderMessage;
  /** The owner's EIP-712 `Order`, in the settlement contract's domain. */
  readonly signature: Hex;
}

/** The format name in an offer's file; docs/exit-kit.md. */
export const OFFER_FORMAT = "mintmark-offer";

/** An owner's vault, and what the owner wants for all that is left of it. */
export interface NewOffer extends Pick<ExitOptions, "kit" | "l1" | "account" | "signal"> {
  /** In base units. */
  readonly want: OrderItem;
}

/** An order counts for so long, in seconds of L1's clock. */
const OFFER_SECONDS = 7n * 86_400n;

/**
 * The order that its owner signs to offer a vault, after the contract has checked the kit.
 *
 * @throws MintmarkError as {@link planExit} does
 *
 * @example
 * const order = await prepareOffer({ kit, l1, account, want });
 * const signature = await owner.signTypedData(orderTypedData(kit.settlement, order));
 */
export async function prepareOffer({ want, ...options }: NewOffer): Promise<OrderMessage> {
  const { kit, quantity, withdrawnBefore } = await planExit(options);
  const now = await timeOn(options.l1);
  return {
    give: itemOf(kit, quantity),
    want,
    shares: [],
    taker: zeroAddress,
    vaultId: kit.tip.vaultId,
    withdrawnBefore,
    deadline: now + OFFER_SECONDS,
  };
}

/** An offer, and the vault of the account that takes it. */
export interface SettleOptions
  extends Pick<ExitOptions, "kit" | "account" | "onSent" | "signal" | "fromBlock"> {
  readonly offer: Offer;
  readonly l1: ExitOptions["l1"] & L1Settler;
}

/**
 * Takes an offer by one transaction of the account: L1 gives each side the other's vault, or it
 * changes nothing. What L1 would refuse is refused here, before anything is sent.
 *
 * @throws MintmarkError `validation_failed` for a damaged kit, or a vault of another token than the
 *   offer wants; `insufficient_balance` when the vault has less; `order_ended` when the offered
 *   vault is no longer as signed; `l1_failed` with the contract's reason
 *
 * @example
 * const { txHash } = await settleWithKits({ offer, kit, l1, account: owner.address });
 */
export async function settleWithKits(options: SettleOptions): Promise<L1Receipt> {
  const { offer, l1, account, onSent, signal } = options;
  const { order, signature } = offer;
  requireWholeKit(offer.kit);
  const plan = await planExit(options);
  requireFits(order, plan.kit, account);
  if (order.want.amount > plan.baseUnits)
    throw new MintmarkError(
      "insufficient_balance",
      `The offer wants ${order.want.amount} base units, and the vault has ${plan.baseUnits}.`,
    );
  const makers = await standingOf(offer.kit, l1, options);
  const { quantum } = offer.kit.token;
  if (makers.withdrawnBefore !== order.withdrawnBefore || makers.left * quantum < order.give.amount)
    throw new MintmarkError("order_ended", "The offered vault is no longer as its owner signed.");
  const counter: OrderMessage = {
    ...{ give: order.want, want: order.give, shares: [], deadline: order.deadline },
    taker: offer.kit.tip.owner,
    vaultId: plan.kit.tip.vaultId,
    withdrawnBefore: plan.withdrawnBefore,
  };
  const maker: TradeSide = { ...makers.kit, order, signature, quantum };
  // The taker itself sends, so its order needs no signature.
  const own = { order: counter, signature: "0x", quantum: plan.kit.token.quantum } as const;
  const trade = { maker, taker: { ...plan.kit, ...own } };
  const refusal = await l1.checkTrade(trade);
  if (refusal !== null) throw new MintmarkError("l1_failed", refusal);
  const { refusals, ...receipt } = await l1.settle([trade], { onSent, signal });
  if (refusals?.[0] === null) return receipt;
  throw new MintmarkError("l1_failed", refusals?.[0] ?? `transaction ${receipt.txHash} reverted`);
}

function requireFits({ want, taker }: OrderMessage, { token }: ExitKit, account: Address): void {
  if (want.token !== token.address || want.id !== (token.tokenId ?? 0n))
    throw invalid(
      `The offer wants token ${want.token}, id ${want.id}. Choose the kit of such a vault.`,
    );
  if (taker !== zeroAddress && taker !== account.toLowerCase())
    throw invalid(`The offer is for ${taker} alone.`);
}

/** Units of a kit's vault as an item of an order. */
function itemOf({ token }: ExitKit, units: bigint): OrderItem {
  return { token: token.address, id: token.tokenId ?? 0n, amount: units * token.quantum };
}

/**
 * The text of an offer's file. Whoever has the file can take the offer.
 *
 * @example
 * await writeFile("offer.json", offerText({ kit, order, signature }));
 */
export function offerText({ kit, order, signature }: Offer): string {
  const file = { format: OFFER_FORMAT, version: 1, kit: exitKitToJson(kit), order, signature };
  const text = JSON.stringify(file, (_, value) =>
    typeof value === "bigint" ? String(value) : value,
  );
  return `${text}\n`;
}

/**
 * Reads an offer's file. Throws `validation_failed` for any other text, and when the order is not
 * of the kit's vault.
 *
 * @example
 * const offer = parseOffer(await file.text());
 */
export function parseOffer(text: string): Offer {
  const { kit, order, signature } = readFile(text, "an offer", offer);
  const own = itemOf(kit, 1n);
  if (
    order.vaultId !== kit.tip.vaultId ||
    order.give.token !== own.token ||
    order.give.id !== own.id
  )
    throw invalid("The offer is damaged: its order is not of its vault.");
  return { kit, order, signature };
}

const address = hex(20, 20);
const item = object({ token: address, id: decimal, amount: decimal });
const offer = object({
  format: oneOf([OFFER_FORMAT]),
  version: oneOf([1]),
  kit: exitKit,
  order: object({
    give: item,
    want: item,
    shares: list(object({ to: address, amount: decimal }), 4),
    taker: address,
    vaultId: decimal,
    withdrawnBefore: decimal,
    deadline: decimal,
  }),
  signature: hex(1, 4_096),
});
