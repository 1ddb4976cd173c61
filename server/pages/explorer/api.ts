import type { BlobProof } from "../../../core/protocol/verifier.ts";
import type { Batch, BatchPage, BlobProofs, PublicVaultHistory, State, VaultProof } from "../../client/index.ts";

// The operator's public API (/openapi.json) as used by this page. The page checks everything.

/** Numbers that the API writes as decimal text, which are bigint in the core. */
const WHOLE = ["vaultId", "newVaultId", "chainId", "amount", "outId", "deadline", "committedAt", "sequence"] as const;
type Whole<T> = T extends string ? bigint : T;
/** An answer with its large numbers in the core's types. */
type Exact<T> = T extends object
  ? { readonly [K in keyof T]: K extends (typeof WHOLE)[number] ? Whole<T[K]> : Exact<T[K]> }
  : T;

export type { Batch, State };
export type Roots = State["committed"];
/** `hops` are the transfers since the mint, and `vault` is the minted one. */
export type Proof = Required<Exact<VaultProof>>;
/** Where a vault comes from and went, and what it holds; null for nothing. */
export type History = Exact<PublicVaultHistory>;

export interface Settings {
  readonly environment: string;
  readonly rpc: string | null;
  /** Vaults of an owner that the operator withdraws at its cost a day; 0 when it pays for none. */
  readonly relayVaults: number;
}

/** An answer that is a problem document. */
export class Problem extends Error {
  readonly code: string;

  constructor(code: string, detail: string) {
    super(detail);
    this.code = code;
  }
}

/** Reads an address, or posts a body to it. */
export async function request(path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Response> {
  const sent = {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify(body),
  };
  const response = await fetch(path, body === undefined ? { headers } : sent).catch(() => {
    throw new Error("The operator's server is unreachable. Owners can withdraw without it: see the exit kit.");
  });
  if (response.ok) return response;
  const { code = "unknown", detail = `The server answered ${response.status}.` } = await response
    .json()
    .catch(() => ({}));
  if (code !== "rate_limited") throw new Problem(code, detail);
  const seconds = Number(response.headers.get("retry-after")) || 1;
  throw new Problem(code, `This server accepts no more requests from your network for now. Try again in ${seconds} s.`);
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
const ofVault = (vaultId: string | bigint) => `/public/v1/vaults/${encodeURIComponent(String(vaultId))}`;

export const readSettings = () => read<Settings>("/explorer/settings.json");
export const readState = () => read<State>("/public/v1/state");
export const readBatch = (batchId: string) => read<Batch>(ofBatch(batchId));
export const readBlobProofs = async (batchId: string): Promise<readonly BlobProof[]> =>
  (await read<BlobProofs>(`${ofBatch(batchId)}/blobs`)).data;
export const readProof = async (vaultId: string): Promise<Proof> => ({
  hops: [],
  ...(await readExactly<VaultProof>(`${ofVault(vaultId)}/proof`)),
});
export const readHistory = (vaultId: string | bigint) => readExactly<PublicVaultHistory>(`${ofVault(vaultId)}/history`);

export async function readBatches(cursor: string | null): Promise<{ data: readonly Batch[]; next: string | null }> {
  const query = cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`;
  const { data, pagination } = await read<BatchPage>(`/public/v1/batches?limit=20${query}`);
  return { data, next: pagination.nextCursor };
}

export async function readBatchData(batchId: string): Promise<Uint8Array> {
  return new Uint8Array(await (await request(`${ofBatch(batchId)}/data`)).arrayBuffer());
}
