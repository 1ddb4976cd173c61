import { pause } from "../../core/backoff.ts";
import type { Order, OrderPreparation } from "./api.ts";
import type { MintmarkClient } from "./client.ts";
import { answer, answerWhenFinal, everyEntry, type Waiting } from "./problem.ts";
import { type OwnerSigner, requireKind, signWith } from "./sign.ts";

/** An offer: units of a vault, and what its owner wants for them. */
export interface SellOptions extends Waiting {
  readonly vaultId: string;
  /** Quantized units, as a decimal string. Default: all that are left. */
  readonly amount?: string;
  readonly want: {
    readonly assetId: string;
    /** The id of an ERC-721 or ERC-1155 token. */
    readonly tokenId?: string;
    /** Quantized units, as a decimal string. */
    readonly amount: string;
  };
  /** The only owner who can take it. Default: anybody. */
  readonly taker?: `0x${string}`;
  /** Seconds since 1970, as a decimal string. Default: in seven days. */
  readonly deadline?: string;
  /**
   * The largest part that may go to others as fee and royalty, in hundredths of a percent. Default
   * 1,000.
   */
  readonly mostShared?: number;
  /** Signs for the owner. */
  readonly signer: OwnerSigner;
}

/** A purchase: the order to take, and the vault to pay with. */
export interface BuyOptions extends Waiting {
  readonly orderId: string;
  /** Default: the first vault of `ownerAddress` that has enough. */
  readonly vaultId?: string;
  /** The buyer; needed without `vaultId`. */
  readonly ownerAddress?: `0x${string}`;
  readonly mostShared?: number;
  readonly signer: OwnerSigner;
  /** Waits until L1 has settled the fill, or it is over. Default false. */
  readonly wait?: boolean;
  /** Called with the buyer's order, once it is accepted and after each poll. */
  readonly onStatus?: (order: Order) => void;
}

/** Fields of an order's message, as JSON. */
interface Message {
  readonly give: MessageItem;
  readonly want: MessageItem;
  readonly shares: readonly { readonly to: string; readonly amount: string }[];
  readonly taker: string;
  readonly vaultId: string;
  readonly deadline: string;
}

interface MessageItem {
  readonly token: string;
  readonly id: string;
  readonly amount: string;
}

/** The order as its signer means it; absent fields are the server's to choose. */
interface Meant {
  readonly vaultId: string;
  readonly give?: MessageItem;
  readonly want: MessageItem;
  readonly taker: string;
  readonly deadline?: string | undefined;
  readonly mostShared?: number | undefined;
}

const ANYBODY = `0x${"00".repeat(20)}`;
const MOST_SHARED = 1_000;
/** Seconds to the furthest deadline that no caller has named: seven days, and a day for clocks. */
const MOST_SECONDS = 8 * 86_400;

/**
 * Lists an order: prepares the message, checks that it says what was asked for, has it signed and
 * sends it. Takes the wanted asset's contract from the server. Rejects with `ApiError`.
 *
 * @example
 * const want = { assetId: points, amount: "250" };
 * const { orderId } = await sell(client, { vaultId, want, signer: account });
 */
export async function sell(client: MintmarkClient, options: SellOptions): Promise<Order> {
  const { vaultId, amount, want, taker, deadline, mostShared, signer, signal } = options;
  const init = signal === undefined ? {} : { signal };
  const body = {
    vaultId,
    want,
    ...(amount !== undefined && { amount }),
    ...(taker !== undefined && { taker }),
    ...(deadline !== undefined && { deadline }),
  };
  const params = { path: { assetId: want.assetId } };
  const asset = await answer(client.GET("/api/v1/assets/{assetId}", { params, ...init }));
  const prepared = await answerWhenFinal(
    () => client.POST("/api/v1/orders/prepare", { body, ...init }),
    options,
  );
  const wanted = {
    token: asset.contractAddress,
    id: want.tokenId ?? "0",
    amount: `${BigInt(want.amount) * BigInt(asset.quantum)}`,
  };
  requireOrder(prepared, { vaultId, want: wanted, taker: taker ?? ANYBODY, deadline, mostShared });
  const signature = await signWith(signer, prepared.typedData, prepared.ownerAddress);
  const signed = { ...prepared.submit.body, signature } as never;
  return answer(client.POST("/api/v1/orders", { body: signed, ...init }));
}

/**
 * Takes an order: prepares the counter-order, checks that it gives what the order wants and no
 * more, has it signed and sends it. Rejects with `ApiError`, such as `order_ended`.
 *
 * @example
 * const { status } = await buy(client, { orderId, ownerAddress, signer: account, wait: true });
 */
export async function buy(client: MintmarkClient, options: BuyOptions): Promise<Order> {
  const {
    orderId,
    mostShared,
    signer,
    wait = false,
    pollingMs = 2_000,
    onStatus,
    signal,
  } = options;
  const init = signal === undefined ? {} : { signal };
  const path = (id: string) => ({ params: { path: { orderId: id } }, ...init });
  const order = await answer(client.GET("/api/v1/orders/{orderId}", path(orderId)));
  const vaultId = options.vaultId ?? (await payingVault(client, order, options));
  const prepared = await answerWhenFinal(
    () =>
      client.POST("/api/v1/orders/{orderId}/fills/prepare", {
        ...path(orderId),
        body: { vaultId },
      }),
    options,
  );
  const [give, want] = [itemOf(order.want), itemOf(order.give)];
  requireOrder(prepared, { vaultId, give, want, taker: order.maker, mostShared });
  const signature = await signWith(signer, prepared.typedData, prepared.ownerAddress);
  const body = { ...prepared.submit.body, signature } as never;
  let taken = await answer(
    client.POST("/api/v1/orders/{orderId}/fills", { ...path(orderId), body }),
  );
  onStatus?.(taken);
  while (wait && taken.status === "filled") {
    await pause(pollingMs, signal);
    taken = await answer(client.GET("/api/v1/orders/{orderId}", path(taken.orderId)));
    onStatus?.(taken);
  }
  return taken;
}

/** The first vault of the buyer that has what the order wants. */
async function payingVault(
  client: MintmarkClient,
  { want }: Order,
  { ownerAddress, signal }: BuyOptions,
): Promise<string> {
  if (ownerAddress === undefined) throw new TypeError("give vaultId or ownerAddress");
  const page = (cursor: string | undefined) => {
    const query = { ownerAddress, assetId: want.assetId, limit: 100, ...(cursor && { cursor }) };
    return client.GET("/api/v1/vaults", { params: { query }, ...(signal && { signal }) });
  };
  for await (const { vaultId, availableBalance, tokenId } of everyEntry(page)) {
    const isWanted = want.tokenId === null || want.tokenId === tokenId;
    if (isWanted && BigInt(availableBalance) >= BigInt(want.amount)) return vaultId;
  }
  throw new Error(`no vault of ${ownerAddress} has ${want.amountDecimal} ${want.symbol}`);
}

/** An item of a listed order as its message has it. */
export function itemOf({ tokenAddress, tokenId, amount, quantum }: Order["give"]): MessageItem {
  return {
    token: tokenAddress,
    id: tokenId ?? "0",
    amount: `${BigInt(amount) * BigInt(quantum)}`,
  };
}

/** Throws unless the message is what the caller asked for, because a signed order is an offer. */
export function requireOrder(
  { typedData, submit }: OrderPreparation,
  { vaultId, give, want, taker, deadline, mostShared = MOST_SHARED }: Meant,
): void {
  requireKind(typedData, "Order");
  const latest = Math.floor(Date.now() / 1000) + MOST_SECONDS;
  for (const message of [typedData.message, submit.body] as unknown as readonly Message[]) {
    const isSame = (a: MessageItem, b: MessageItem) =>
      a.token.toLowerCase() === b.token.toLowerCase() && a.id === b.id && a.amount === b.amount;
    if (message.vaultId !== vaultId || (give !== undefined && !isSame(message.give, give)))
      throw new Error("the server prepared an order that gives something else");
    if (!isSame(message.want, want))
      throw new Error("the server prepared an order that wants something else");
    if (message.taker.toLowerCase() !== taker.toLowerCase())
      throw new Error("the server prepared an order for another taker");
    if (
      deadline === undefined ? !(Number(message.deadline) <= latest) : message.deadline !== deadline
    )
      throw new Error("the server prepared another deadline than it was asked for");
    const shared = message.shares.reduce((sum, { amount }) => sum + BigInt(amount), 0n);
    if (shared * 10_000n > BigInt(want.amount) * BigInt(mostShared))
      throw new Error(`the server prepared shares of ${shared} base units, more than was allowed`);
  }
}
