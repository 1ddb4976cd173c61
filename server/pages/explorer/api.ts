import type { BlobProof } from "../../../core/protocol/verifier.ts";
import type * as client from "../../client/index.ts";
import { type Problem, request } from "../shared/request.ts";
import { chooseWallet, type Provider, signChallenge, type Wallet } from "../shared/wallets.tsx";

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
export type Proof = Required<Exact<client.VaultProof>>;
/** Where a vault comes from and went, and what it holds; null for nothing. */
export type History = Exact<client.PublicVaultHistory>;

export interface Settings {
  readonly environment: string;
  readonly rpc: string | null;
  /** Vaults of an owner that the operator withdraws at its cost a day; 0 when it pays for none. */
  readonly relayVaults: number;
}

async function readExactly<T>(path: string): Promise<Exact<T>> {
  const whole: readonly string[] = WHOLE;
  return JSON.parse(await (await request(path)).text(), (name, value) =>
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
export const readProof = async (vaultId: string): Promise<Proof> => ({
  hops: [],
  ...(await readExactly<client.VaultProof>(`${ofVault(vaultId)}/proof`)),
});
export const readHistory = (vaultId: string | bigint) =>
  readExactly<client.PublicVaultHistory>(`${ofVault(vaultId)}/history`);

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

/** An owner who has signed in, and its wallet. In memory only: it ends with the page. */
export interface OwnSignIn extends client.OwnerSignIn {
  readonly provider: Provider;
}

/** A sign-in, and its end at the server, which shows the sign-in again. */
export interface SignedIn extends OwnSignIn {
  end(): void;
}

export async function signIn(wallet: Wallet): Promise<OwnSignIn> {
  const { provider } = wallet;
  const body = await signChallenge(provider, "owner");
  chooseWallet(wallet);
  const opened: client.OwnerSignIn = await (await request("/owner/v1/sign-in", { body })).json();
  return { ...opened, provider };
}

/** A request of the signed-in owner. A refused sign-in has ended. */
export async function asOwner(
  { token, end }: SignedIn,
  path: string,
  body?: unknown,
): Promise<Response> {
  return request(path, { body, headers: { authorization: `Bearer ${token}` } }).catch(
    (error: Problem) => {
      if (error.code.startsWith("credentials_")) end();
      throw error;
    },
  );
}

export async function jsonAsOwner<T>(signedIn: SignedIn, path: string, body?: unknown): Promise<T> {
  return (await asOwner(signedIn, path, body)).json();
}
