import { v7 as uuidv7 } from "uuid";
import { argumentError, MintmarkError } from "../errors.ts";
import type { EngineContext } from "../ledger/context.ts";
import type { Ledger } from "../ledger/ledger.ts";
import {
  type Address,
  type Hash,
  type Hex,
  MAX_AMOUNT,
  type Uuid,
  type VaultId,
} from "../model.ts";
import { requireBigint } from "../protocol/bounds.ts";
import { ZERO_ADDRESS } from "../protocol/hex.ts";
import {
  cancellationId,
  type OrderItem,
  type OrderMessage,
  orderDigest,
} from "../protocol/typed-data.ts";
import type { VaultPlace } from "../protocol/vault.ts";
import type { Group } from "../store/group.ts";
import type {
  ActivityRecord,
  AssetFacts,
  AssetRecord,
  OrderItemRecord,
  OrderRecord,
  OrderTermsRecord,
} from "../store/records.ts";
import { keyOf } from "../store/store-keys.ts";
import type { StoredVault } from "../store/vault-columns.ts";
import type { Transition } from "../store/writer.ts";
import { requireKey, requireScope } from "../tenants/api-keys.ts";
import { isVisible, visibleAsset } from "../tenants/asset-view.ts";
import { orNull, requireAddress } from "../validate.ts";
import { lineageFaults } from "../vaults/makings.ts";
import { CANCELLED_VAULT, requireMovable } from "../vaults/movable.ts";
import {
  faultOf,
  MIN_VALIDITY,
  requireDeadline,
  type SignedOptions,
  secondsNow,
  signedForm,
  usualDeadline,
  type VaultCaller,
} from "../vaults/signed-requests.ts";
import { decodeActivity, ownVaults, tokenIn } from "../vaults/vaults.ts";
import { putFilled } from "./fills.ts";
import {
  decodeOrder,
  decodeOrderId,
  messageOfOrder,
  orderNamed,
  putEnded,
  putOrder,
} from "./order-records.ts";
import { decodeTerms, readTerms, requireListing, WHOLE } from "./terms.ts";

/** A vault, and what its owner wants for it. */
export interface OrderPreparation {
  readonly vaultId: VaultId;
  /** Units of the vault to give; default all that are left. The rest stays in the vault. */
  readonly amount?: bigint | undefined;
  readonly want: {
    readonly assetId: Uuid;
    /** The id of an ERC-721 or ERC-1155 token. */
    readonly tokenId?: bigint | undefined;
    /** Units. */
    readonly amount: bigint;
  };
  /** The only owner who can take it. Default: anybody. */
  readonly taker?: Address | undefined;
  /** Seconds since 1970; default in seven days. */
  readonly deadline?: bigint | undefined;
}

/** The owner signs `orderTypedData(settlement, prepared.order)`. */
export interface PreparedOrder {
  readonly owner: Address;
  readonly order: OrderMessage;
  /** The hash of the typed data. */
  readonly digest: Hash;
}

/** An order that an owner has signed. */
export interface OrderRequest extends OrderMessage {
  /** The owner's EIP-712 `Order`, in the settlement contract's domain. */
  readonly signature: Hex;
}

/** A vault that is offered, and what no later change of it touches. */
interface Offered {
  readonly place: VaultPlace;
  readonly vault: StoredVault;
  readonly asset: AssetFacts;
}

export async function prepareOrder(
  ledger: Ledger,
  caller: VaultCaller,
  preparation: OrderPreparation,
): Promise<PreparedOrder> {
  const { vaultId, want, taker, deadline = usualDeadline(ledger, "order") } = preparation;
  requireCaller(caller);
  ledger.l1.requirePromising();
  requireDeadline(ledger, deadline, "order");
  const offered = await offeredVault(ledger, caller, vaultId);
  const { applicationId } = applicationAt(ledger, offered);
  const { asset } = visibleAsset(ledger, applicationId, want.assetId, null);
  const activity = decodeActivity(await ledger.store.get(keyOf.activity(vaultId)));
  requireMovable(ledger, offered.place, offered.vault, activity, null);
  const { amount = offered.vault.amount - activity.withdrawn } = preparation;
  const message = {
    give: givenOf(offered, amount),
    want: itemOf("want", asset, { tokenId: want.tokenId ?? null, amount: want.amount }),
    taker: taker === undefined ? ZERO_ADDRESS : requireAddress("taker", taker),
    vaultId,
    withdrawnBefore: activity.withdrawn,
    deadline,
  };
  requireLeft(offered, message, activity);
  const terms = await readTerms(ledger, offered.vault.applicationIndex);
  const order = allowedOrder(ledger, caller, offered, message, terms);
  const digest = orderDigest(ledger.services.settlement, order);
  return { owner: offered.vault.owner, order, digest };
}

/** A new order, as it is at first; the id of an earlier one with the same message. */
export type Taken = OrderRecord | Uuid;

/** Takes a signed order. The same one again is the same order. */
export async function createOrder(
  context: EngineContext,
  caller: VaultCaller,
  request: OrderRequest,
  options?: SignedOptions,
): Promise<Taken> {
  const { ledger, writer } = context;
  const signed = await signedOrder(ledger, caller, request, options);
  if (typeof signed === "string") return signed;
  const { live } = signed;
  const replaced = live === undefined ? null : await orderNamed(ledger, live);
  return writer.run(placing(ledger, caller, { ...signed, replaced }), options?.signal);
}

/** The order that a caller takes, and the vault that it gives for it. */
export interface FillPreparation {
  readonly vaultId: VaultId;
  /** Seconds since 1970; default in a day. */
  readonly deadline?: bigint | undefined;
}

/** The counter-order that takes an order: exactly the other way round, and for its maker alone. */
export async function prepareFill(
  ledger: Ledger,
  caller: VaultCaller,
  order: OrderRecord,
  { vaultId, deadline = usualDeadline(ledger, "fill") }: FillPreparation,
): Promise<PreparedOrder> {
  requireListing(await readTerms(ledger, order.applicationIndex), caller);
  const { assetId } = ledger.tenants.assetAt(order.give.assetIndex);
  const { tokenId, amount } = order.give;
  const asked = { vaultId, amount: order.want.amount, taker: order.maker, deadline };
  const want = { assetId, amount, ...(tokenId !== null && { tokenId }) };
  const prepared = await prepareOrder(ledger, caller, { ...asked, want });
  requireFits(ledger, order, { message: prepared.order, owner: prepared.owner });
  const stored = await ledger.store.getMany(makersKeys(ledger, order));
  requireTakeable(ledger, order, await offeredOf(ledger, order), stored, null);
  return prepared;
}

/** Takes an order by a signed counter-order. The same one again is the same fill. */
export async function createFill(
  context: EngineContext,
  caller: VaultCaller,
  order: OrderRecord,
  request: OrderRequest,
  options?: SignedOptions,
): Promise<Taken> {
  const { ledger, writer } = context;
  const signed = await signedOrder(ledger, caller, request, options);
  if (typeof signed === "string") return requireNotListed(ledger, signed);
  requireListing(await readTerms(ledger, order.applicationIndex), caller);
  requireFits(ledger, order, { message: signed.message, owner: signed.offered.vault.owner });
  const makers = await offeredOf(ledger, order);
  return writer.run(filling(ledger, caller, { ...signed, order, makers }), options?.signal);
}

/** Throws `order_exists` when the same message is an open order, which takes nothing. */
async function requireNotListed(ledger: Ledger, orderId: Uuid): Promise<Uuid> {
  const { status } = decodeOrder(orderId, await ledger.store.get(keyOf.order(orderId)));
  if (status === "open") throw new MintmarkError("order_exists");
  return orderId;
}

interface SignedOrder {
  readonly offered: Offered;
  readonly message: OrderMessage;
  readonly digest: Hash;
  readonly signature: Hex;
  /** The id of the vault's open order, as stored; undefined for none. */
  readonly live: Buffer | undefined;
}

/** A checked order; the id of an earlier one with the same message. */
async function signedOrder(
  ledger: Ledger,
  caller: VaultCaller,
  request: OrderRequest,
  options?: SignedOptions,
): Promise<SignedOrder | Uuid> {
  requireCaller(caller);
  const offered = await offeredVault(ledger, caller, request.vaultId);
  const message = canonical(request);
  const digest = orderDigest(ledger.services.settlement, message);
  // One read: a reader's turn on LevelDB's thread costs more than what it reads.
  const [earlier, terms, live] = await ledger.store.getMany([
    keyOf.orderDigest(digest),
    keyOf.orderTerms(offered.vault.applicationIndex),
    keyOf.liveOrder(message.vaultId),
  ]);
  if (earlier !== undefined) return decodeOrderId(earlier);
  requireDeadline(ledger, message.deadline, "order");
  const allowed = allowedOrder(ledger, caller, offered, message, decodeTerms(terms));
  requireSame(allowed, message);
  const { chainId } = ledger.services.settlement;
  const { owner } = offered.vault;
  const by = { chainId, owner, digest, signature: request.signature };
  const signature = await signedForm(ledger.services, by, options);
  return { offered, message, digest, signature, live };
}

function cancellationOf(ledger: Ledger, owner: Address, id: Hash | VaultId): Buffer {
  return keyOf.cancellation(ledger.services.settlement.chainId, owner, cancellationId(id));
}

/** The keys that {@link requireOwnSide} needs, first among those of a transition. */
function ownKeys(ledger: Ledger, { offered, message, digest }: SignedOrder): Buffer[] {
  return [
    keyOf.orderDigest(digest),
    keyOf.activity(message.vaultId),
    cancellationOf(ledger, offered.vault.owner, digest),
    cancellationOf(ledger, offered.vault.owner, message.vaultId),
    keyOf.liveOrder(message.vaultId),
  ];
}

/** Checks a signed order against its vault as it is now. Returns the vault's activity. */
function requireOwnSide(
  ledger: Ledger,
  group: Group,
  { offered, message }: SignedOrder,
  [, activity, isCancelled, isVaultCancelled]: readonly (Buffer | undefined)[],
): ActivityRecord {
  ledger.l1.requirePromising();
  requireDeadline(ledger, message.deadline, "order");
  const now = decodeActivity(activity);
  requireMovable(ledger, offered.place, offered.vault, now, group);
  requireLeft(offered, message, now);
  if (isCancelled !== undefined) throw new MintmarkError("signature_invalid", CANCELLED);
  if (isVaultCancelled !== undefined) throw new MintmarkError("signature_invalid", CANCELLED_VAULT);
  return now;
}

/**
 * The transition of a signed order: checks the vault as it is now, then lists the order.
 *
 * @param signed - with the open order of the vault before
 */
function placing(
  ledger: Ledger,
  caller: VaultCaller,
  signed: SignedOrder & { readonly replaced: OrderRecord | null },
): Transition<Taken> {
  const { offered, replaced } = signed;
  const keys = [
    ...ownKeys(ledger, signed),
    ...(replaced === null
      ? []
      : [
          keyOf.order(replaced.orderId),
          cancellationOf(ledger, offered.vault.owner, replaced.digest),
        ]),
  ];
  return {
    weight: 1,
    keys: () => keys,
    apply(group, stored) {
      const found = keys.map((key, i) => group.resolve(key, stored[i]));
      const [earlier, , , , live, known, isKnownCancelled] = found;
      if (!("owner" in caller)) requireKey(ledger, group, caller);
      if (earlier !== undefined) return decodeOrderId(earlier);
      const { withdrawn } = requireOwnSide(ledger, group, signed, found);
      if (live !== undefined) {
        // A concurrent request may have listed another one.
        if (known === undefined || decodeOrderId(live) !== replaced?.orderId)
          throw new MintmarkError("order_exists");
        const before = decodeOrder(replaced.orderId, known);
        const isOver =
          isKnownCancelled !== undefined ||
          before.deadline < secondsNow(ledger) ||
          before.withdrawnBefore !== withdrawn;
        if (!isOver) throw new MintmarkError("order_exists");
        putEnded(ledger, group, before, "stale", REPLACED);
      }
      return putOrder(ledger, group, placed(ledger, group, signed), null);
    },
  };
}

/** The maker's side of a fill, as {@link requireTakeable} needs it. */
function makersKeys(ledger: Ledger, { orderId, maker, vaultId, digest }: OrderRecord): Buffer[] {
  return [
    keyOf.order(orderId),
    keyOf.activity(vaultId),
    cancellationOf(ledger, maker, digest),
    cancellationOf(ledger, maker, vaultId),
  ];
}

/** Throws unless the order can be taken now. Returns it. */
function requireTakeable(
  ledger: Ledger,
  { orderId }: OrderRecord,
  makers: Offered,
  [stored, activity, isCancelled, isVaultCancelled]: readonly (Buffer | undefined)[],
  group: Group | null,
): OrderRecord {
  const order = decodeOrder(orderId, stored);
  const now = decodeActivity(activity);
  const isAsSigned =
    order.status === "open" &&
    order.deadline >= secondsNow(ledger) + MIN_VALIDITY.order &&
    isCancelled === undefined &&
    isVaultCancelled === undefined &&
    now.withdrawn === order.withdrawnBefore;
  if (!isAsSigned) throw new MintmarkError("order_ended");
  const fault = faultOf(() => requireMovable(ledger, makers.place, makers.vault, now, group));
  if (fault !== null) throw new MintmarkError("order_ended", `The maker's vault: ${fault.message}`);
  return order;
}

/** The transition of a fill: checks both vaults as they are now, and holds them. */
function filling(
  ledger: Ledger,
  caller: VaultCaller,
  signed: SignedOrder & { readonly order: OrderRecord; readonly makers: Offered },
): Transition<Taken> {
  const own = ownKeys(ledger, signed);
  const keys = [...own, ...makersKeys(ledger, signed.order)];
  return {
    weight: 1,
    keys: () => keys,
    apply(group, stored) {
      const found = keys.map((key, i) => group.resolve(key, stored[i]));
      const [earlier, , , , live] = found;
      if (!("owner" in caller)) requireKey(ledger, group, caller);
      if (earlier !== undefined) return decodeOrderId(earlier);
      requireOwnSide(ledger, group, signed, found);
      if (live !== undefined) throw new MintmarkError("order_exists");
      const others = found.slice(own.length);
      const order = requireTakeable(ledger, signed.order, signed.makers, others, group);
      const counter = putOrder(ledger, group, placed(ledger, group, signed), null);
      return putFilled(ledger, group, order, counter);
    },
  };
}

/** Throws unless the counter-order is the order the other way round, by another owner. */
function requireFits(
  ledger: Ledger,
  order: OrderRecord,
  { message, owner }: { readonly message: OrderMessage; readonly owner: Address },
): void {
  const { give, want } = messageOfOrder(ledger, order);
  const isForMaker = message.taker === order.maker;
  if (!isForMaker || !isSameItem(message.give, want) || !isSameItem(message.want, give))
    throw new MintmarkError(
      "order_not_allowed",
      "The counter-order must give what the order wants, want what it gives, and name its maker as taker.",
    );
  if (order.maker === owner || (order.taker !== null && order.taker !== owner))
    throw new MintmarkError("order_not_allowed", "This owner cannot take the order.");
}

function isSameItem(a: OrderItem, b: OrderItem): boolean {
  return a.token === b.token && a.id === b.id && a.amount === b.amount;
}

/** The maker's vault. Throws `order_ended` when it never counts again. */
async function offeredOf(ledger: Ledger, { maker, vaultId }: OrderRecord): Promise<Offered> {
  const found = await orNull("vault_not_found", () =>
    orNull("vault_void", () => offeredVault(ledger, { owner: maker }, vaultId)),
  );
  if (found === null) throw new MintmarkError("order_ended");
  return found;
}

const CANCELLED = "The owner has cancelled this order on L1. Sign another one.";
const REPLACED = "The owner has listed the vault anew.";

/** Journals a signed order. The caller writes its record. */
function placed(
  ledger: Ledger,
  group: Group,
  { offered, message, digest, signature }: SignedOrder,
): OrderRecord {
  const { vault, asset } = offered;
  const { applicationIndex, userIndex, owner: maker } = vault;
  const wanted = assetOf(ledger, applicationIndex, message.want, group);
  const orderId = uuidv7();
  const order = {
    applicationIndex,
    userIndex,
    maker,
    digest,
    signature,
    give: inUnits(asset, message.give),
    want: inUnits(wanted, message.want),
    shares: message.shares.map(({ to, amount }) => ({ to, amount: amount / wanted.quantum })),
    taker: message.taker === ZERO_ADDRESS ? null : message.taker,
    vaultId: message.vaultId,
    withdrawnBefore: message.withdrawnBefore,
    deadline: message.deadline,
  };
  const entry = ledger.journal.record(group, { kind: "orderPlaced", orderId, ...order });
  const { sequence: journalSequence, time } = entry;
  return {
    orderId,
    journalSequence,
    ...order,
    status: "open",
    counterId: null,
    l1TxHash: null,
    failure: null,
    createdAt: time,
    updatedAt: time,
  };
}

function requireCaller(caller: VaultCaller): void {
  if (!("owner" in caller)) requireScope(caller, "transfer");
}

/** The caller's vault. Throws `vault_not_found`, and `vault_void` for a lineage that has ended. */
async function offeredVault(
  ledger: Ledger,
  caller: VaultCaller,
  vaultId: VaultId,
): Promise<Offered> {
  const [located] = await ownVaults(ledger, caller, [{ vaultId }]);
  if (!located?.vault.amount) throw new MintmarkError("vault_not_found");
  const [ended] = await lineageFaults(ledger, [located]);
  if (ended) throw ended;
  return { ...located, asset: ledger.tenants.assetAt(located.vault.assetIndex) };
}

function applicationAt(ledger: Ledger, { vault }: Offered) {
  const application = ledger.tenants.applications.durable.get(vault.applicationIndex);
  if (application === undefined) throw new MintmarkError("vault_not_found");
  return application;
}

/**
 * The order as the application's terms want it, with fee and royalty as shares. Throws
 * `order_not_allowed`.
 */
function allowedOrder(
  ledger: Ledger,
  caller: VaultCaller,
  offered: Offered,
  message: Omit<OrderMessage, "shares">,
  terms: OrderTermsRecord,
): OrderMessage {
  const { asset } = offered;
  const { applicationIndex } = offered.vault;
  requireListing(terms, caller);
  const wanted = assetOf(ledger, applicationIndex, message.want, null);
  const given = message.give.amount / asset.quantum;
  const give = givenOf(offered, given);
  const { transferable, chainId } = wanted;
  if (transferable !== true || chainId !== ledger.services.settlement.chainId)
    throw new MintmarkError("asset_not_transferable");
  const units = message.want.amount / wanted.quantum;
  for (const [{ assetIndex, symbol }, amount] of [
    [asset, given],
    [wanted, units],
  ] as const) {
    const least = terms.assets.find((each) => each.assetIndex === assetIndex)?.minimum ?? 0n;
    if (amount < least)
      throw new MintmarkError(
        "order_not_allowed",
        `An order has at least ${least} units of ${symbol}.`,
      );
  }
  const royalty = terms.assets.find((each) => each.assetIndex === asset.assetIndex)?.royalty;
  // A single token has no parts.
  const parts = wanted.standard === "erc721" ? [] : [terms.fee, royalty];
  const shares = parts.flatMap((part) => {
    const of = part ? (units * BigInt(part.basisPoints)) / WHOLE : 0n;
    return part && of > 0n ? [{ to: part.to, amount: of * wanted.quantum }] : [];
  });
  const want = itemOf("want", wanted, inUnits(wanted, message.want));
  const { taker, vaultId, withdrawnBefore, deadline } = message;
  return { give, want, shares, taker, vaultId, withdrawnBefore, deadline };
}

/** The asset of an item, if the application can see it. */
function assetOf(
  ledger: Ledger,
  applicationIndex: number,
  { token }: OrderItem,
  group: Group | null,
): AssetRecord {
  const { chainId } = ledger.services.settlement;
  const asset = ledger.tenants.assetsByContract
    .records(`${chainId} ${token}`, group)
    .find((each) => isVisible(each, applicationIndex));
  if (asset === undefined) throw new MintmarkError("asset_not_found");
  return asset;
}

/** Units of a token as an item of the message. */
function itemOf(
  name: "give" | "want",
  { standard, contractAddress, quantum }: AssetFacts,
  { tokenId, amount }: Pick<OrderItemRecord, "tokenId" | "amount">,
): OrderItem {
  requireBigint(`${name}.amount`, amount, 1n, standard === "erc721" ? 1n : MAX_AMOUNT);
  if ((tokenId === null) !== (standard === "erc20"))
    throw argumentError(
      `${name}.tokenId`,
      standard === "erc20" ? "is not for ERC-20" : "is missing",
    );
  return { token: contractAddress, id: tokenId ?? 0n, amount: amount * quantum };
}

function inUnits({ assetIndex, standard, quantum }: AssetFacts, { id, amount }: OrderItem) {
  return { assetIndex, tokenId: standard === "erc20" ? null : id, amount: amount / quantum };
}

/** The message with addresses in lower case, and without the other fields of a request. */
function canonical(request: OrderRequest): OrderMessage {
  const { give, want, shares, taker, vaultId, withdrawnBefore, deadline } = request;
  const item = (name: string, { token, id, amount }: OrderItem): OrderItem => ({
    token: requireAddress(`${name}.token`, token),
    id,
    amount,
  });
  return {
    give: item("give", give),
    want: item("want", want),
    shares: shares.map(({ to, amount }, i) => ({
      to: requireAddress(`shares[${i}].to`, to),
      amount,
    })),
    taker: taker === ZERO_ADDRESS ? taker : requireAddress("taker", taker),
    vaultId,
    withdrawnBefore,
    deadline,
  };
}

/** Throws unless the owner has signed what the terms allow now. */
function requireSame(allowed: OrderMessage, { give, want, shares }: OrderMessage): void {
  if (!isSameItem(give, allowed.give))
    throw new MintmarkError(
      "order_not_allowed",
      "The vault holds another token than the order gives.",
    );
  const hasShares =
    shares.length === allowed.shares.length &&
    shares.every(({ to, amount }, i) => {
      const share = allowed.shares[i];
      return share?.to === to && share.amount === amount;
    });
  if (!isSameItem(want, allowed.want) || !hasShares) throw new MintmarkError("order_not_allowed");
}

/** Units of the offered vault as an item of the message. */
function givenOf({ vault, asset }: Offered, amount: bigint): OrderItem {
  return itemOf("give", asset, { tokenId: tokenIn(asset, vault.mintingBlob), amount });
}

/**
 * Throws unless the vault still has the units that the order gives, and none was withdrawn since.
 */
function requireLeft(
  { vault, asset }: Offered,
  { withdrawnBefore, give }: Pick<OrderMessage, "withdrawnBefore" | "give">,
  activity: ActivityRecord,
): void {
  if (activity.withdrawn !== withdrawnBefore)
    throw new MintmarkError("order_not_allowed", "The vault has changed. Prepare the order again.");
  if (give.amount > (vault.amount - activity.withdrawn) * asset.quantum)
    throw new MintmarkError("insufficient_balance");
}
