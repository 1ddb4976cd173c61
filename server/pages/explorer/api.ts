import type { BlobProof, ProvenHop, VaultContent } from "../../../core/protocol/verifier.ts";
import type * as client from "../../client/index.ts";
import { type Problem, request } from "../shared/request.ts";
import {
  chooseWallet,
  type Provider,
  signChallenge,
  type Wallet,
  walletOf,
} from "../shared/wallets.tsx";

// The operator's API (/openapi.json) as used by this page. The page checks everything.

/** Numbers that the API writes as decimal text, which are bigint in the core. */
const WHOLE = [
  "vaultId",
  "newVaultId",
  "chainId",
  "amount",
  "outId",
  "deadline",
  "committedAt",
  "sequence",
  "withdrawnBalance",
] as const;
type Whole<T> = T extends string ? bigint : T;
/** An answer with its large numbers in the core's types. */
type Exact<T> = T extends object
  ? { readonly [K in keyof T]: K extends (typeof WHOLE)[number] ? Whole<T[K]> : Exact<T[K]> }
  : T;

export type Batch = client.Batch;
export type State = client.State;
export type Roots = State["committed"];
/** `hops` are the transfers since the mint, and `vault` is the minted one. */
export type Proof = Omit<Required<Exact<client.VaultProof>>, "hops"> & {
  readonly hops: readonly ProvenHop[];
};
/** Where a vault comes from and went, and what it holds; null for nothing. */
export type History = Exact<client.PublicVaultHistory>;

export interface Settings {
  readonly environment: string;
  readonly rpc: string | null;
  /** Vaults of an owner that the operator withdraws at its cost a day; 0 when it pays for none. */
  readonly relayVaults: number;
}

async function exactly<T>(answer: Promise<Response>): Promise<Exact<T>> {
  const whole: readonly string[] = WHOLE;
  return JSON.parse(await (await answer).text(), (name, value) =>
    whole.includes(name) && typeof value === "string" ? BigInt(value) : value,
  );
}

async function read<T>(path: string): Promise<T> {
  return (await request(path)).json();
}

const ofBatch = (batchId: string) => `/public/v1/batches/${encodeURIComponent(batchId)}`;
const ofVault = (vaultId: string | bigint) =>
  `/public/v1/vaults/${encodeURIComponent(String(vaultId))}`;

export const readSettings = () => read<Settings>("/explorer/settings.json");
export const readState = () => read<State>("/public/v1/state");
export const readBatch = (batchId: string) => read<Batch>(ofBatch(batchId));
export const readBlobProofs = async (batchId: string): Promise<readonly BlobProof[]> =>
  (await read<client.BlobProofs>(`${ofBatch(batchId)}/blobs`)).data;
export const readProof = async (vaultId: string) =>
  ({
    hops: [],
    ...(await exactly<client.VaultProof>(request(`${ofVault(vaultId)}/proof`))),
  }) as Proof;
export const readHistory = (vaultId: string | bigint) =>
  exactly<client.PublicVaultHistory>(request(`${ofVault(vaultId)}/history`));

export async function readBatches(
  cursor: string | null,
): Promise<{ data: readonly Batch[]; next: string | null }> {
  const query = cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`;
  const { data, pagination } = await read<client.BatchPage>(`/public/v1/batches?limit=20${query}`);
  return { data, next: pagination.nextCursor };
}

export async function readBatchData(batchId: string): Promise<Uint8Array> {
  return new Uint8Array(await (await request(`${ofBatch(batchId)}/data`)).arrayBuffer());
}

/** An owner who has signed in, and its wallet. */
export interface OwnSignIn extends Pick<client.OwnerSignIn, "address" | "expiresAt"> {
  readonly provider: Provider;
}

/** A sign-in, and its end at the server, which shows the sign-in again. */
export interface SignedIn extends OwnSignIn {
  end(): void;
}

// The sign-in is a cookie, which no script can read. With this header it counts.
const SIGN_IN = "/owner/v1/sign-in";
const headers = { "mintmark-owner": "1" };

export async function signIn(wallet: Wallet): Promise<OwnSignIn> {
  const { provider } = wallet;
  const body = await signChallenge(provider, "owner");
  chooseWallet(wallet);
  const opened: client.OwnerSignIn = await (await request(SIGN_IN, { body, headers })).json();
  return { ...opened, provider };
}

/** The sign-in that an earlier visit has left; null for none. */
export async function resumeSignIn(): Promise<OwnSignIn | null> {
  const signedIn: client.OwnerSignIn = await (await request(SIGN_IN, { headers })).json();
  return { ...signedIn, provider: await walletOf(signedIn.address) };
}

export async function signOut(): Promise<void> {
  await request(SIGN_IN, { method: "DELETE", headers });
}

/** A request of the signed-in owner. A refused sign-in has ended. */
export async function asOwner(
  { end }: SignedIn,
  path: string,
  body?: unknown,
  method?: "DELETE",
): Promise<Response> {
  return request(path, { body, headers, ...(method && { method }) }).catch((error: Problem) => {
    if (error.code.startsWith("credentials_")) end();
    throw error;
  });
}

export async function jsonAsOwner<T>(signedIn: SignedIn, path: string, body?: unknown): Promise<T> {
  return (await asOwner(signedIn, path, body)).json();
}

/** A vault of the signed-in owner, with the content that its proof proves. */
export type OwnVault = Exact<client.OwnersVault> &
  VaultContent & { readonly unsealedAsset: string | null };

/** A page of the owner's vaults, and the cursor of the next one; null at the end. */
export async function readOwnVaults(
  signedIn: SignedIn,
  cursor: string | null,
): Promise<{ readonly vaults: readonly OwnVault[]; readonly next: string | null }> {
  const query = cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`;
  const { data, pagination } = await exactly<client.OwnersVaultPage>(
    asOwner(signedIn, `/owner/v1/vaults?limit=100${query}`),
  );
  const vaults = data.map(
    (each) =>
      ({
        ...each,
        owner: each.ownerAddress,
        mintingBlob: each.mintingBlob,
        unsealedAsset: each.standing === "arriving" ? each.assetId : null,
      }) as OwnVault,
  );
  return { vaults, next: pagination.nextCursor };
}

export type OwnersOrder = client.OwnersOrder;
export type Market = client.OwnerMarkets["data"][number];
export type MarketAsset = client.OwnerMarketAsset;

const ORDERS = "/owner/v1/orders";
const ofMarket = (applicationId: string) => `/owner/v1/markets/${applicationId}`;

/** The owner's newest orders. */
export async function readOwnOrders(signedIn: SignedIn): Promise<readonly OwnersOrder[]> {
  return (await jsonAsOwner<client.OwnersOrderPage>(signedIn, `${ORDERS}?limit=100`)).data;
}

export async function readMarkets(signedIn: SignedIn): Promise<readonly Market[]> {
  return (await jsonAsOwner<client.OwnerMarkets>(signedIn, "/owner/v1/markets")).data;
}

export async function readMarketAssets(
  signedIn: SignedIn,
  { applicationId }: Market,
): Promise<readonly MarketAsset[]> {
  const assets: MarketAsset[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const after = cursor && `&cursor=${encodeURIComponent(cursor)}`;
    const path = `${ofMarket(applicationId)}/assets?limit=100${after}`;
    const page: client.OwnerMarketAssetPage = await jsonAsOwner(signedIn, path);
    assets.push(...page.data);
    cursor = page.pagination.nextCursor;
  }
  return assets;
}

/** A page of the orders that the owner could take, and the cursor of the next one. */
export async function readOffers(
  signedIn: SignedIn,
  { applicationId }: Market,
  cursor: string | null,
): Promise<{ readonly offers: readonly OwnersOrder[]; readonly next: string | null }> {
  const after = cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`;
  const path = `${ofMarket(applicationId)}/orders?limit=24${after}`;
  const { data, pagination } = await jsonAsOwner<client.OwnersOrderPage>(signedIn, path);
  return { offers: data, next: pagination.nextCursor };
}

export async function cancelOrder(signedIn: SignedIn, { orderId }: OwnersOrder): Promise<void> {
  await asOwner(signedIn, `${ORDERS}/${orderId}`, undefined, "DELETE");
}
