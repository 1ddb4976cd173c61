import { type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import { contextOf } from "../../../core/engine.ts";
import type { EngineOptions, WaitOptions } from "../../../core/index.ts";
import * as fills from "../../../core/orders/fills.ts";
import { type Order, ordersOf } from "../../../core/orders/index.ts";
import { claimTypedData, orderTypedData } from "../../../core/protocol/typed-data.ts";
import { isWanted } from "../../../core/webhooks/webhooks.ts";
import { withdrawOne } from "../../one-withdrawal.ts";
import {
  all,
  fixture,
  hashOf,
  knownAsset,
  mintingBlobOf,
  mintOf,
  OWNERS,
  requestOf,
} from "./fixture.ts";
import {
  committed,
  HOME,
  hear,
  MIRROR,
  made,
  signed,
  signedList,
  stranger,
  withdrawn,
} from "./l1-fixture.ts";
import { signedOrder } from "./orders-fixture.ts";
import { signedTransfers } from "./transfers-fixture.ts";

const [{ address: ownerAddress }] = OWNERS;
/** The keys of two claim links. */
const LINKS = [
  privateKeyToAccount(`0x${"11".repeat(32)}`),
  privateKeyToAccount(`0x${"12".repeat(32)}`),
] as const;

/**
 * An engine with two sealed batches, a withdrawal of the first vault, a webhook, a key and an asset
 * that is only known.
 */
export async function changeable(options: Partial<EngineOptions> & Pick<EngineOptions, "store">) {
  const made = await fixture(options);
  const { engine, tenant, assets } = made;
  const mint = (...texts: string[]) =>
    engine.mint(
      tenant.principal,
      requestOf(tenant.users[0], ...texts.map((text) => mintOf(assets.erc721, text))),
    );
  await engine.mint(tenant.principal, {
    users: [
      ...requestOf(
        tenant.users[0],
        mintOf(assets.erc20, "", 100),
        mintOf(assets.erc721, 1),
        mintOf(assets.erc1155, 9, 3),
      ).users,
      ...requestOf(tenant.users[1], mintOf(assets.erc1155, 10, 300)).users,
      ...requestOf(tenant.users[2], mintOf(assets.erc1155, 11, 5)).users,
    ],
  });
  await engine.operator.seal("validium");
  const { withdrawalId } = await withdrawOne(engine, tenant.principal, await signed(made, 10n));
  await mint("2");
  await engine.operator.seal("validium");
  const webhook = await engine.webhooks.create(tenant.applicationId, {
    url: "https://example.com/told",
  });
  const other = await knownAsset(engine, "erc20", { ready: false });
  const own = await knownAsset(engine, "erc1155", { applicationId: tenant.applicationId });
  const key = await engine.keys.issue(tenant.applicationId);
  return {
    ...made,
    withdrawalId,
    webhookId: webhook.webhook.webhookId,
    other,
    own,
    keyId: key.key.keyId,
  };
}

export type Changeable = Awaited<ReturnType<typeof changeable>>;
type Change = (made: Changeable, wait?: WaitOptions) => Promise<unknown>;

async function newestPerson(
  { people }: Changeable["engine"],
  tenant: Changeable["tenant"],
): Promise<string> {
  const { data } = await people.list(tenant.applicationId);
  return data.findLast(({ removedAt }) => removedAt === null)?.personId ?? "";
}

/** The token of the sign-in that "people.signIn" opens. */
let token = "";

/** An owner offers its ERC-1155 vault for so many units of the second user's id. */
async function listOrder(
  made: Changeable,
  amount: bigint,
  wait?: WaitOptions,
  vaultId = 2n,
  signer: PrivateKeyAccount = OWNERS[0],
): Promise<Order> {
  const want = { assetId: made.assets.erc1155, tokenId: 10n, amount };
  const order = await signedOrder(made, { vaultId, want }, signer);
  return ordersOf(made.engine).create(made.tenant.principal, order, wait);
}

/** The second user takes the newest open order. */
async function takeOrder(made: Changeable, seconds: number, wait?: WaitOptions): Promise<Order> {
  const { engine, tenant, clock } = made;
  const orders = ordersOf(engine);
  const [open] = await all(orders.list(tenant.applicationId, { status: "open" }));
  const orderId = open?.orderId ?? "";
  const deadline = BigInt(Math.floor(clock.now / 1000) + seconds);
  const { order } = await orders.prepareFill(tenant.principal, orderId, { vaultId: 3n, deadline });
  const signature = await OWNERS[1].signTypedData(orderTypedData(engine.settlement, order));
  return orders.fill(tenant.principal, orderId, { ...order, signature }, wait);
}

/** The context, and the order that took another one. */
async function newestFill({ engine }: Changeable) {
  const context = contextOf(engine);
  const [fill] = await fills.pendingFills(context.ledger);
  return [context, fill?.taker.orderId ?? ""] as const;
}

/**
 * Every method that waits for the writer, by a call that changes something once it follows all
 * before it.
 */
export const CHANGES: Readonly<Record<string, Change>> = {
  "applications.create": ({ engine }, wait) =>
    engine.applications.create({ name: "another" }, wait),
  "keys.issue": ({ engine, tenant }, wait) => engine.keys.issue(tenant.applicationId, {}, wait),
  "keys.revoke": ({ engine, keyId }, wait) => engine.keys.revoke(keyId, wait),
  "assets.add": ({ engine }, wait) =>
    engine.assets.add(
      {
        standard: "erc721",
        contractAddress: stranger,
        name: "New",
        symbol: "NEW",
        firstTokenId: 7n,
      },
      wait,
    ),
  "assets.whitelist": ({ engine, other }, wait) => engine.assets.whitelist(other, wait),
  "operator.recordRegistered": ({ engine, other }, wait) =>
    engine.operator.recordRegistered(other, {}, wait),
  "operator.recordMintingFault": ({ engine, other }, wait) =>
    engine.operator.recordMintingFault(other, "paused", wait),
  "assets.enable": ({ engine, tenant, other }, wait) =>
    engine.assets.enable(tenant.applicationId, other, wait),
  "assets.disable": ({ engine, tenant, other }, wait) =>
    engine.assets.disable(tenant.applicationId, other, wait),
  "assets.change of all": ({ engine, other }, wait) =>
    engine.assets.change(other, { standard: "erc1155", mintingBlobScheme: "imx" }, wait),
  "assets.unlist": ({ engine, other }, wait) => engine.assets.unlist(other, wait),
  "users.create": ({ engine, tenant }, wait) =>
    engine.users.create(tenant.applicationId, { ownerAddress }, wait),
  "users.createAll": ({ engine, tenant }, wait) =>
    engine.users.createAll(
      tenant.applicationId,
      [{ ownerAddress: stranger, reference: "customer" }],
      wait,
    ),
  "applications.change": ({ engine, tenant }, wait) =>
    engine.applications.change(tenant.applicationId, { dataAvailabilityMode: "validium" }, wait),
  "metadata.set": ({ engine, tenant, own }, wait) =>
    engine.metadata.set(
      tenant.applicationId,
      own,
      { tokenId: 1n, metadata: { name: "One" } },
      wait,
    ),
  "metadata.setAll": ({ engine, tenant, own }, wait) =>
    engine.metadata.setAll(
      tenant.applicationId,
      own,
      [1n, (1n << 256n) - 1n].map((tokenId) => ({ tokenId, metadata: { name: "Both" } })),
      wait,
    ),
  "metadata.freezeTokens": ({ engine, tenant, own }, wait) =>
    engine.metadata.freezeTokens(tenant.applicationId, own, [1n], wait),
  "mint with metadata": ({ engine, tenant, own }, wait) =>
    engine.mint(
      tenant.principal,
      requestOf(tenant.users[0], { ...mintOf(own, 2), metadata: { name: "Two" } }),
      wait,
    ),
  "metadata.changeCollection": ({ engine, tenant, own }, wait) =>
    engine.metadata.changeCollection(
      tenant.applicationId,
      own,
      { placeholder: { name: "?" } },
      wait,
    ),
  "metadata.freeze": ({ engine, tenant, own }, wait) =>
    engine.metadata.freeze(tenant.applicationId, own, wait),
  "claims.createAll": ({ engine, tenant, own }, wait) =>
    engine.claims.createAll(
      tenant.principal,
      LINKS.map(({ address }, i) => ({
        linkAddress: address,
        mint: mintOf(own, 70 + i),
        expiresAt: null,
      })),
      wait,
    ),
  "claims.take": async ({ engine }, wait) => {
    const [link] = LINKS;
    const claim = { link: link.address, owner: ownerAddress };
    const signature = await link.signTypedData(claimTypedData(engine.settlement, claim));
    return engine.claims.take(link.address, { ownerAddress, signature }, wait);
  },
  "claims.cancel": ({ engine, tenant }, wait) =>
    engine.claims.cancel(tenant.applicationId, LINKS[1].address, wait),
  "assets.change": ({ engine, assets }, wait) =>
    engine.assets.change(
      assets.erc721,
      { rawMintingBlobs: true, dataAvailabilityMode: "zk-rollup" },
      wait,
    ),
  "mint to an address": ({ engine, tenant, assets }, wait) =>
    engine.mint(
      tenant.principal,
      { users: [{ ownerAddress: `0x${"4e".repeat(20)}`, mints: [mintOf(assets.erc721, 5)] }] },
      wait,
    ),
  mint: ({ engine, tenant, assets }, wait) =>
    engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc721, 3)), wait),
  "mint with a key": ({ engine, tenant, assets }, wait) =>
    engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc721, 4)), {
      ...wait,
      idempotencyKey: "k",
    }),
  "operator.keepRequest": ({ engine, tenant: { applicationId } }, wait) =>
    engine.operator.keepRequest({ applicationId, callersKey: "k", digest: hashOf(9) }, wait),
  "operator.seal": ({ engine }, wait) => engine.operator.seal("validium", wait),
  "operator.leaveOut": async ({ engine }, wait) => {
    const { assets } = await engine.batches.getSealed("validium", 1);
    return engine.operator.leaveOut(
      "validium",
      1,
      assets.map((asset) => ({ ...asset, failure: "no consent" })),
      wait,
    );
  },
  "operator.voidSlots": ({ engine }, wait) =>
    engine.operator.voidSlots(
      "validium",
      1,
      [{ firstSlot: 0, count: 1, failure: "refused" }],
      wait,
    ),
  "operator.recordRefusals": ({ engine }, wait) =>
    engine.operator.recordRefusals("validium", 0, [{ slot: 0, refusal: "paused" }], wait),
  "operator.recordSubmitted": ({ engine }, wait) =>
    engine.operator.recordSubmitted("validium", 0, hashOf(1), wait),
  "operator.recordEvents of a commit": async ({ engine }, wait) =>
    hear(engine, await committed(engine, "validium", 0, 10n), wait),
  "operator.recordWithdrawalSubmitted": ({ engine, withdrawalId }, wait) =>
    engine.operator.recordWithdrawalSubmitted(withdrawalId, hashOf(2), wait),
  "operator.recordWithdrawalAttempt": ({ engine, withdrawalId }, wait) =>
    engine.operator.recordWithdrawalAttempt(withdrawalId, "not yet", wait),
  "operator.recordWithdrawalFailed": ({ engine, withdrawalId, clock }, wait) =>
    engine.operator.recordWithdrawalFailed(withdrawalId, "too late", BigInt(clock.now), wait),
  "withdrawals.request": async (made, wait) =>
    withdrawOne(made.engine, made.tenant.principal, await signed(made, 5n), wait),
  "withdrawals.requestList": async (made, wait) =>
    made.engine.withdrawals.request(made.tenant.principal, await signedList(made, [1n]), wait),
  "operator.recordEvents of a withdrawal": ({ engine }, wait) =>
    hear(engine, withdrawn(0n, 7n, 7n, stranger, 11n), wait),
  "operator.recordEvents": ({ engine }, wait) =>
    engine.operator.recordEvents(HOME, [withdrawn(0n, 1n, 8n, stranger, 12n)], 12n, {
      ...wait,
      blockHash: hashOf(12),
    }),
  "operator.recordReorg": ({ engine }, wait) =>
    engine.operator.recordReorg(HOME, 12n, undefined, wait),
  "operator.addMirror": ({ engine }, wait) => engine.operator.addMirror(MIRROR, wait),
  "operator.recordFinalized": ({ engine }, wait) =>
    engine.operator.recordFinalized(HOME, 11n, { ...wait, blockHash: hashOf(11) }),
  "operator.recordRegistered as transferable": ({ engine, assets }, wait) =>
    engine.operator.recordRegistered(assets.erc1155, { transferable: true }, wait),
  "orders.setTerms": ({ engine, tenant, assets }, wait) => {
    const fee = { basisPoints: 200, to: `0x${"fe".repeat(20)}` } as const;
    const rules = [{ assetId: assets.erc1155, royalty: fee, minimum: 1n }];
    const terms = { listing: "application", fee, assets: rules } as const;
    return ordersOf(engine).setTerms(tenant.applicationId, terms, wait);
  },
  "orders.create": (made, wait) => listOrder(made, 100n, wait),
  "orders.cancel": async ({ engine, tenant }, wait) => {
    const [open] = await all(ordersOf(engine).list(tenant.applicationId, { status: "open" }));
    return ordersOf(engine).cancel(tenant.principal, open?.orderId ?? "", wait);
  },
  "orders.create again": (made, wait) => listOrder(made, 101n, wait),
  "orders.fill": (made, wait) => takeOrder(made, 7_200, wait),
  "fills submitted": async (made, wait) =>
    fills.recordFillSubmitted(...(await newestFill(made)), hashOf(20), wait),
  "fills refused": async (made, wait) =>
    fills.recordFillRefused(...(await newestFill(made)), "not yet", wait),
  "fills failed": async (made, wait) =>
    fills.recordFillFailed(...(await newestFill(made)), "gone", wait),
  "orders.fill again": (made, wait) => takeOrder(made, 7_201, wait),
  "fills settled": async (made, wait) => fills.recordFillSettled(...(await newestFill(made)), wait),
  "orders.create, left open": (made, wait) => listOrder(made, 102n, wait),
  "orders.create by another": (made, wait) => listOrder(made, 5n, wait, 4n, OWNERS[2]),
  "orders.fill, left waiting": (made, wait) => takeOrder(made, 7_202, wait),
  "transfers.request": async (made, wait) => {
    const transfers = [{ vaultId: 2n, amount: 1n, to: `0x${"7a".repeat(20)}` as const }];
    return made.engine.transfers.request(
      made.tenant.principal,
      await signedTransfers(made, transfers),
      wait,
    );
  },
  "operator.sealTransfers": ({ engine }, wait) => engine.operator.sealTransfers(wait),
  "operator.takeBackTransfers": async ({ engine }, wait) => {
    const batches = await Array.fromAsync(engine.batches.list({ mode: "zk-rollup" }));
    const { batchNumber = -1 } = batches.find(({ kind }) => kind === "transfers") ?? {};
    return engine.operator.takeBackTransfers(batchNumber, "not now", wait);
  },
  "operator.sealTransfers again": ({ engine }, wait) => engine.operator.sealTransfers(wait),
  "operator.recordEvents of a session key": ({ engine }, wait) => {
    const facts = {
      key: stranger,
      until: 9n,
      limit: 9n,
      assetType: hashOf(0),
      authorizedAt: 1n,
    } as const;
    const at = { txHash: hashOf(13), blockNumber: 13n, logIndex: 0 };
    return hear(engine, { type: "sessionAuthorized", owner: ownerAddress, ...facts, ...at }, wait);
  },
  "operator.recordEvents of a making": async ({ engine, tenant, assets }, wait) => {
    const { assetType } = await engine.assets.get(tenant.applicationId, assets.erc721);
    const sword = { assetType, amount: 1n, mintingBlob: mintingBlobOf("900") } as const;
    const vaults = [ownerAddress, `0x${"d5".repeat(20)}` as const].map((owner) => ({
      ...sword,
      owner,
    }));
    const events = [made(1, vaults.slice(0, 1), 14n, 900n), made(2, vaults.slice(1), 15n, 900n)];
    return engine.operator.recordEvents(HOME, events, 15n, { ...wait, finalized: 15n });
  },
  "operator.forgetIdempotencyKeys": ({ engine, clock }, wait) =>
    engine.operator.forgetIdempotencyKeys(clock.now + 1, wait),
  "webhooks.create": ({ engine, tenant }, wait) =>
    engine.webhooks.create(tenant.applicationId, { url: "https://example.com/also" }, wait),
  "webhooks.rotateSecret": ({ engine, tenant, webhookId }, wait) =>
    engine.webhooks.rotateSecret(tenant.applicationId, webhookId, wait),
  "webhooks.change": ({ engine, tenant, webhookId }, wait) =>
    engine.webhooks.change(tenant.applicationId, webhookId, { types: ["mint.accepted"] }, wait),
  "webhooks.skip": async ({ engine, tenant, webhookId }, wait) => {
    const { applicationId } = tenant;
    const webhook = await engine.webhooks.get(applicationId, webhookId);
    const after = webhook.delivered;
    const events = await Array.fromAsync(engine.events.stream(applicationId, { after }));
    const next = events.find(({ type }) => isWanted(webhook, type))?.sequence ?? after;
    return engine.webhooks.skip(applicationId, webhookId, next, wait);
  },
  "operator.webhooks.recordDelivered": ({ engine, webhookId }, wait) =>
    engine.operator.webhooks.recordDelivered(webhookId, 1_000, wait),
  "operator.webhooks.recordFailing": ({ engine, webhookId }, wait) =>
    engine.operator.webhooks.recordFailing(webhookId, "500", wait),
  "operator.webhooks.recordDisabled": ({ engine, webhookId }, wait) =>
    engine.operator.webhooks.recordDisabled(webhookId, "500", wait),
  "webhooks.enable": ({ engine, tenant, webhookId }, wait) =>
    engine.webhooks.enable(tenant.applicationId, webhookId, wait),
  "webhooks.delete": ({ engine, tenant, webhookId }, wait) =>
    engine.webhooks.delete(tenant.applicationId, webhookId, wait),
  "people.invite": ({ engine, tenant }, wait) =>
    engine.people.invite(
      { applicationId: tenant.applicationId, role: "developer", name: "Dev" },
      wait,
    ),
  "people.setAddress": async ({ engine, tenant }, wait) =>
    engine.people.setAddress(await newestPerson(engine, tenant), ownerAddress, wait),
  "people.link": async ({ engine, tenant }, wait) =>
    engine.people.link(await newestPerson(engine, tenant), wait),
  "people.signIn": async ({ engine }, wait) => {
    token = (await engine.people.signIn({ address: ownerAddress }, wait)).token;
  },
  actingAs: async ({ engine, tenant }, wait) => {
    const acting = await engine.actingAs(await engine.people.signedIn(token), "users");
    await acting.users.create(tenant.applicationId, { ownerAddress: `0x${"5e".repeat(20)}` }, wait);
  },
  "people.signOut": ({ engine }, wait) => engine.people.signOut(token, wait),
  "people.changeRole": async ({ engine, tenant }, wait) =>
    engine.people.changeRole(await newestPerson(engine, tenant), "admin", wait),
  "people.remove": async ({ engine, tenant }, wait) =>
    engine.people.remove(await newestPerson(engine, tenant), wait),
  "applications.suspend": ({ engine, tenant }, wait) =>
    engine.applications.suspend(tenant.applicationId, wait),
  "applications.resume": ({ engine, tenant }, wait) =>
    engine.applications.resume(tenant.applicationId, wait),
  "assets.remove": ({ engine, other }, wait) => engine.assets.remove(other, wait),
};
