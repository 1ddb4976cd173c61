import { decimalAmount, type Hex } from "../../../core/protocol/verifier.ts";
import type * as client from "../../client/index.ts";
import { itemOf, requireOrder } from "../../client/trade.ts";
import { grouped } from "../shared/format.ts";
import { code } from "../shared/parts.tsx";
import {
  jsonAsOwner,
  type MarketAsset,
  type OwnersOrder,
  type OwnVault,
  type SignedIn,
} from "./api.ts";
import { dayOf, leftOf, numbered } from "./own-vaults.tsx";
import { type Act, signAsked } from "./owner-acts.tsx";
import { settlement } from "./source.tsx";

// An owner trades by its wallet: it signs what it gives and wants, after the page has checked it.

const ANYBODY: Hex = `0x${"00".repeat(20)}`;

/** A token on one side of an order. */
type Side = Pick<OwnersOrder["give"], "name" | "symbol" | "quantum" | "decimals" | "tokenId">;

/** An order that the server has prepared, the page has checked, and nobody has signed. */
export interface Deal {
  readonly prepared: client.OrderPreparation;
  /** Where the signed order goes. */
  readonly path: string;
  readonly give: Side;
  readonly want: Side;
  /** Whether it takes an order of another owner. */
  readonly isFill: boolean;
  check(): void;
}

interface Sale {
  readonly vault: OwnVault;
  readonly units: bigint;
  /** A fungible token. */
  readonly currency: MarketAsset;
  readonly price: bigint;
  /** null for anybody. */
  readonly taker: Hex | null;
}

const PATH = "/owner/v1/orders";

/** Prepares an order that offers units of a vault. */
export async function prepareSale(
  signedIn: SignedIn,
  { vault, units, currency, price, taker }: Sale,
): Promise<Deal> {
  const { quantum, tokenId, contractAddress } = vault;
  const vaultId = String(vault.vaultId);
  const body = {
    vaultId,
    amount: String(units),
    want: { assetId: currency.assetId, amount: String(price) },
    ...(taker !== null && { taker }),
  };
  const give = {
    token: contractAddress,
    id: tokenId ?? "0",
    amount: String(units * BigInt(quantum)),
  };
  const wanted = {
    token: currency.contractAddress,
    id: "0",
    amount: String(price * BigInt(currency.quantum)),
  };
  const meant = { vaultId, give, want: wanted, taker: taker ?? ANYBODY };
  const want = { ...currency, tokenId: null };
  return prepare(signedIn, PATH, body, { give: vault, want, isFill: false }, meant);
}

/** Prepares the counter-order that takes an order, paid from a vault. */
export async function prepareFill(
  signedIn: SignedIn,
  order: OwnersOrder,
  vault: OwnVault,
): Promise<Deal> {
  const vaultId = String(vault.vaultId);
  const [give, want] = [itemOf(order.want), itemOf(order.give)];
  const meant = { vaultId, give, want, taker: order.maker };
  const sides = { give: order.want, want: order.give, isFill: true };
  return prepare(signedIn, `${PATH}/${order.orderId}/fills`, { vaultId }, sides, meant);
}

async function prepare(
  signedIn: SignedIn,
  path: string,
  body: object,
  sides: Pick<Deal, "give" | "want" | "isFill">,
  meant: Parameters<typeof requireOrder>[1],
): Promise<Deal> {
  const prepared = await jsonAsOwner<client.OrderPreparation>(signedIn, `${path}/prepare`, body);
  const check = () => requireOrder(prepared, meant);
  try {
    check();
  } catch (cause) {
    throw new Error("The server prepared another order than the one you asked for.", { cause });
  }
  return { ...sides, prepared, path, check };
}

/** Signs a checked order and sends it. */
export async function signDeal({ signedIn }: Act, deal: Deal): Promise<string[]> {
  const { prepared, path, check } = deal;
  const { chainId } = await settlement();
  const signature = await signAsked(signedIn, "order", prepared, chainId, check);
  await jsonAsOwner<OwnersOrder>(signedIn, path, { ...prepared.typedData.message, signature });
  return [];
}

interface Message {
  readonly give: { readonly amount: string };
  readonly want: { readonly amount: string };
  readonly shares: readonly { readonly to: string; readonly amount: string }[];
  readonly deadline: string;
}

function messageOf({ typedData }: client.OrderPreparation): Message {
  return typedData.message as unknown as Message;
}

/** Base units of a token as people write them. */
function baseText({ name, symbol, quantum, decimals, tokenId }: Side, base: string): string {
  const units = BigInt(base) / BigInt(quantum);
  const text = grouped(decimalAmount(units, { decimals, quantum: BigInt(quantum) }));
  if (tokenId === null) return `${text} ${symbol}`;
  return text === "1" ? numbered(name, tokenId) : `${text} of ${numbered(name, tokenId)}`;
}

/** Says in words what the wallet is about to show. */
export function DealText({ deal }: { deal: Deal }) {
  const { prepared, give, want, isFill } = deal;
  const { shares, deadline, ...message } = messageOf(prepared);
  const given = baseText(give, message.give.amount);
  const got = baseText(want, message.want.amount);
  const shared = shares.reduce((sum, { amount }) => sum + BigInt(amount), 0n);
  const left = String(BigInt(message.want.amount) - shared);
  return (
    <>
      <p>
        {isFill ? `You give ${given} for ${got}.` : `You offer ${given} for ${got}.`}
        {shares.length > 0 && ` You get ${baseText(want, left)}. The rest goes to `}
        {shares.map(({ to, amount }, i) => [
          i > 0 && ", ",
          code(to),
          ` (${baseText(want, amount)})`,
        ])}
        {shares.length > 0 && ", as fee and royalty."}
      </p>
      <p>
        {isFill
          ? "L1 settles both sides or neither. After you have signed, both tokens wait for it, and only an exit of yours or the seller's ends that."
          : `Whoever takes it can do so until ${dayOf(deadline)}, at this price and no other. You can take the offer off this page. To rule it out for good, use the token otherwise, or cancel it on L1.`}
      </p>
      <p class="quiet">It costs you no gas.</p>
    </>
  );
}

/** The smallest of the vaults that alone has so many units; undefined for none. */
export function vaultWith(vaults: readonly OwnVault[], units: bigint): OwnVault | undefined {
  return [...vaults]
    .sort((a, b) => Number(leftOf([a]) - leftOf([b])))
    .find((vault) => leftOf([vault]) >= units);
}
