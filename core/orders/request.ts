import { v7 as uuidv7 } from "uuid";
import { zeroAddress } from "viem";
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
import { MAX_UINT64, requireBigint } from "../protocol/bounds.ts";
import { ecdsaForm } from "../protocol/signature.ts";
import {
  cancellationId,
  type OrderItem,
  type OrderMessage,
  orderDigest,
} from "../protocol/typed-data.ts";
import type { VaultPlace } from "../protocol/vault.ts";
import type { Group } from "../store/group.ts";
import { decodeRecord } from "../store/layout.ts";
import {
  type ActivityRecord,
  type AssetRecord,
  type OrderItemRecord,
  type OrderRecord,
  orderIdRecord,
} from "../store/records.ts";
import { keyOf } from "../store/store-keys.ts";
import type { StoredVault } from "../store/vault-columns.ts";
import type { Transition } from "../store/writer.ts";
import { requireKey, requireScope } from "../tenants/api-keys.ts";
import { isVisible, visibleAsset } from "../tenants/asset-view.ts";
import { requireAddress } from "../validate.ts";
import { lineageFaults } from "../vaults/makings.ts";
import { requireMovable } from "../vaults/movable.ts";
import {
  requireDeadline,
  secondsNow,
  signedForm,
  type VaultCaller,
} from "../vaults/signed-requests.ts";
import { decodeActivity, ownVaults, placeOf, tokenIn } from "../vaults/vaults.ts";
import { decodeOrder, putOrder } from "./order-records.ts";
import { readTerms, requireListing, WHOLE } from "./terms.ts";

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

const VALID_SECONDS = 7n * 86_400n;
/** Least seconds from a request to its deadline: a taker signs and L1 settles before. */
const MIN_VALIDITY = 300n;

/** A vault that is offered, and what no later change of it touches. */
interface Offered {
  readonly place: VaultPlace;
  readonly vault: StoredVault;
  readonly asset: AssetRecord;
}

export async function prepareOrder(
  ledger: Ledger,
  caller: VaultCaller,
  preparation: OrderPreparation,
): Promise<PreparedOrder> {
  const { vaultId, want, taker, deadline = secondsNow(ledger) + VALID_SECONDS } = preparation;
  requireCaller(caller);
  ledger.l1.requirePromising();
  requireBigint("deadline", deadline, 0n, MAX_UINT64);
  requireDeadline(ledger, deadline, MIN_VALIDITY);
  const offered = await offeredVault(ledger, caller, vaultId);
  const { applicationId } = applicationAt(ledger, offered);
  const { asset } = visibleAsset(ledger, applicationId, want.assetId, "durable");
  const activity = decodeActivity(await ledger.store.get(keyOf.activity(vaultId)));
  requireMovable(ledger, offered.place, offered.vault, activity);
  const { amount = offered.vault.amount - activity.withdrawn } = preparation;
  const message = {
    give: givenOf(offered, amount),
    want: itemOf("want", asset, { tokenId: want.tokenId ?? null, amount: want.amount }),
    taker: taker === undefined ? zeroAddress : requireAddress("taker", taker),
    vaultId,
    withdrawnBefore: activity.withdrawn,
    deadline,
  };
  requireLeft(offered, message, activity);
  const order = await allowedOrder(ledger, caller, offered, message);
  const digest = orderDigest(ledger.services.settlement, order);
  return { owner: offered.vault.owner, order, digest };
}

/** Takes a signed order. The same one again is the same order. */
export async function createOrder(
  { ledger, writer }: EngineContext,
  caller: VaultCaller,
  request: OrderRequest,
  signal?: AbortSignal,
): Promise<Uuid> {
  requireCaller(caller);
  const offered = await offeredVault(ledger, caller, request.vaultId);
  const message = canonical(request);
  const digest = orderDigest(ledger.services.settlement, message);
  const earlier = await ledger.store.get(keyOf.orderDigest(digest));
  if (earlier !== undefined) return decodeId(earlier);
  requireDeadline(ledger, message.deadline, MIN_VALIDITY);
  const allowed = await allowedOrder(ledger, caller, offered, message);
  requireSame(allowed, message);
  const { chainId } = ledger.services.settlement;
  const { owner } = offered.vault;
  const signed = { chainId, owner, digest, signature: request.signature };
  const signature =
    (await ecdsaForm(owner, digest, request.signature)) ??
    (await signedForm(ledger.services, signed, signal));
  const replaced = await liveOrderOf(ledger, message.vaultId);
  return writer.run(
    placing(ledger, caller, { offered, message, digest, signature, replaced }),
    signal,
  );
}

interface Signed {
  readonly offered: Offered;
  readonly message: OrderMessage;
  readonly digest: Hash;
  readonly signature: Hex;
  /** The open order of the vault before. */
  readonly replaced: OrderRecord | null;
}

/** The transition of a signed order: checks the vault as it is now, then lists the order. */
function placing(ledger: Ledger, caller: VaultCaller, signed: Signed): Transition<Uuid> {
  const { offered, message, digest, replaced } = signed;
  const { place, vault } = offered;
  const { chainId } = ledger.services.settlement;
  const cancelled = (id: Hash | VaultId) =>
    keyOf.cancellation(chainId, vault.owner, cancellationId(id));
  const keys = [
    keyOf.orderDigest(digest),
    keyOf.activity(message.vaultId),
    keyOf.liveOrder(message.vaultId),
    cancelled(digest),
    cancelled(message.vaultId),
    ...(replaced === null ? [] : [keyOf.order(replaced.orderId), cancelled(replaced.digest)]),
  ] as const;
  return {
    weight: 1,
    keys: () => [...keys],
    apply(group, stored) {
      const [earlier, activity, live, isCancelled, isVaultCancelled, known, isKnownCancelled] =
        keys.map((key, i) => group.resolve(key, stored[i]));
      if (!("owner" in caller)) requireKey(ledger, caller);
      if (earlier !== undefined) return decodeId(earlier);
      ledger.l1.requirePromising();
      requireDeadline(ledger, message.deadline, MIN_VALIDITY);
      const now = decodeActivity(activity);
      requireMovable(ledger, place, vault, now);
      requireLeft(offered, message, now);
      if (isCancelled !== undefined) throw new MintmarkError("signature_invalid", CANCELLED);
      if (isVaultCancelled !== undefined)
        throw new MintmarkError("signature_invalid", CANCELLED_VAULT);
      if (live !== undefined) {
        // A concurrent request may have listed another one.
        if (known === undefined || decodeId(live) !== replaced?.orderId)
          throw new MintmarkError("order_exists");
        const before = decodeOrder(replaced.orderId, known);
        const isOver =
          isKnownCancelled !== undefined ||
          before.deadline < secondsNow(ledger) ||
          before.withdrawnBefore !== now.withdrawn;
        if (!isOver) throw new MintmarkError("order_exists");
        putEnded(ledger, group, before, "stale", REPLACED);
      }
      return putPlaced(ledger, group, signed);
    },
  };
}

const CANCELLED = "The owner has cancelled this order on L1. Sign another one.";
const CANCELLED_VAULT =
  "The owner has cancelled on L1 what it signs of this vault. Only the owner itself can withdraw it there.";
const REPLACED = "The owner has listed the vault anew.";

/** Ends an open order. */
export function putEnded(
  ledger: Ledger,
  group: Group,
  order: OrderRecord,
  status: Exclude<OrderRecord["status"], "open">,
  failure: string | null,
): OrderRecord {
  const { orderId } = order;
  const { time } = ledger.journal.record(group, { kind: "orderEnded", orderId, status, failure });
  return putOrder(group, { ...order, status, failure, updatedAt: time }, order);
}

function putPlaced(
  ledger: Ledger,
  group: Group,
  { offered, message, digest, signature }: Signed,
): Uuid {
  const { vault, asset } = offered;
  const { applicationIndex, userIndex, owner: maker } = vault;
  const wanted = assetOf(ledger, applicationIndex, message.want);
  const orderId = uuidv7();
  const facts = {
    applicationIndex,
    userIndex,
    maker,
    digest,
    signature,
    give: inUnits(asset, message.give),
    want: inUnits(wanted, message.want),
    shares: message.shares.map(({ to, amount }) => ({ to, amount: amount / wanted.quantum })),
    taker: message.taker === zeroAddress ? null : message.taker,
    vaultId: message.vaultId,
    withdrawnBefore: message.withdrawnBefore,
    deadline: message.deadline,
  };
  const entry = ledger.journal.record(group, { kind: "orderPlaced", orderId, ...facts });
  const { sequence: journalSequence, time } = entry;
  const times = { createdAt: time, updatedAt: time };
  putOrder(
    group,
    { orderId, journalSequence, ...facts, status: "open", failure: null, ...times },
    null,
  );
  return orderId;
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
  const asked = [{ vaultId }];
  const [vault] = await ownVaults(ledger, caller, asked);
  if (!vault?.amount) throw new MintmarkError("vault_not_found");
  const [ended] = await lineageFaults(ledger, asked, [vault]);
  if (ended) throw ended;
  return { place: placeOf(vaultId), vault, asset: ledger.tenants.assetAt(vault.assetIndex) };
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
async function allowedOrder(
  ledger: Ledger,
  caller: VaultCaller,
  offered: Offered,
  message: Omit<OrderMessage, "shares">,
): Promise<OrderMessage> {
  const { asset } = offered;
  const { applicationIndex } = offered.vault;
  const terms = await readTerms(ledger, applicationIndex);
  requireListing(terms, caller);
  const wanted = assetOf(ledger, applicationIndex, message.want);
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
function assetOf(ledger: Ledger, applicationIndex: number, { token }: OrderItem): AssetRecord {
  const { chainId } = ledger.services.settlement;
  const asset = ledger.tenants.assetsByContract
    .records(`${chainId} ${token}`, "latest")
    .find((each) => isVisible(each, applicationIndex));
  if (asset === undefined) throw new MintmarkError("asset_not_found");
  return asset;
}

/** Units of a token as an item of the message. */
function itemOf(
  name: "give" | "want",
  { standard, contractAddress, quantum }: AssetRecord,
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

function inUnits({ assetIndex, standard, quantum }: AssetRecord, { id, amount }: OrderItem) {
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
    taker: taker === zeroAddress ? taker : requireAddress("taker", taker),
    vaultId,
    withdrawnBefore,
    deadline,
  };
}

/** Throws unless the owner has signed what the terms allow now. */
function requireSame(allowed: OrderMessage, { give, want, shares }: OrderMessage): void {
  const isSame = (a: OrderItem, b: OrderItem) =>
    a.token === b.token && a.id === b.id && a.amount === b.amount;
  if (!isSame(give, allowed.give))
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
  if (!isSame(want, allowed.want) || !hasShares) throw new MintmarkError("order_not_allowed");
}

/** Units of the offered vault as an item of the message. */
function givenOf({ vault, asset }: Offered, amount: bigint): OrderItem {
  return itemOf("give", asset, { tokenId: tokenIn(asset, vault.blob), amount });
}

/** Throws unless the vault still has the units that the order gives, and none was withdrawn since. */
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

async function liveOrderOf(ledger: Ledger, vaultId: VaultId): Promise<OrderRecord | null> {
  const live = await ledger.store.get(keyOf.liveOrder(vaultId));
  if (live === undefined) return null;
  const orderId = decodeId(live);
  return decodeOrder(orderId, await ledger.store.get(keyOf.order(orderId)));
}

function decodeId(stored: Buffer): Uuid {
  return decodeRecord(orderIdRecord, stored, "The id of an order");
}
