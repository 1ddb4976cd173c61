import type {
  BatchHeader,
  BlobProof,
  Hash,
  Hex,
  Mode,
  ProvenHop,
  VaultContent,
  VaultProof,
} from "../../../core/protocol/verifier.ts";

/** The operator's public API (/openapi.json) as used by this page. The page checks everything. */
export interface Roots {
  readonly countValidium: number;
  readonly countRollup: number;
  readonly rootValidium: Hash;
  readonly rootRollup: Hash;
  readonly commitment: Hash;
}

export interface State {
  readonly chainId: string;
  readonly contract: Hex;
  readonly portals: readonly { readonly chainId: string; readonly contract: Hex }[];
  readonly sealed: Roots;
  readonly committed: Roots;
}

export interface Batch {
  readonly batchId: string;
  readonly mode: Mode;
  readonly batchNumber: number;
  readonly kind: "validium" | "calldata" | "blobs" | "transfers";
  readonly vaultCount: number;
  readonly status: string;
  /** Assets that L1 has left out: their vaults pay nobody. */
  readonly leftOut: readonly { readonly chainId: string; readonly assetType: Hash }[];
  readonly batchRoot: Hash | null;
  readonly dataHash: Hash | null;
  readonly l1TxHash: Hash | null;
  readonly l1BlockNumber: string | null;
  readonly committedAt: string | null;
  readonly l1Sequence: string | null;
}

export interface Proof extends VaultProof {
  readonly batchRoot: Hash;
  readonly leaf: Hash;
  readonly header: BatchHeader | null;
  /** The transfers since the mint; `vault` is the minted one. */
  readonly hops: readonly ProvenHop[];
}

/** One vault that a transfer made. */
export interface Step {
  readonly status: string;
  readonly vaultId: string;
  readonly from: Hex;
  readonly to: Hex;
  readonly isChange: boolean;
  readonly newVaultId: string | null;
  readonly amount: string | null;
}

/** Where a vault comes from and went, and what it holds; null for nothing. */
export interface History {
  readonly before: readonly Step[];
  readonly after: readonly Step[];
  readonly vault: VaultContent | null;
}

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

export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  const response = await fetch(path, init).catch(() => {
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

async function read<T>(path: string): Promise<T> {
  return (await request(path)).json();
}

export const readSettings = (): Promise<Settings> => read("/explorer/settings.json");
export const readState = (): Promise<State> => read("/public/v1/state");
export const readBatch = (batchId: string): Promise<Batch> => read(`/public/v1/batches/${encodeURIComponent(batchId)}`);

/** What the token in a vault is called and looks like, by its issuer; null when the issuer has said nothing. */
export async function readMetadata(vaultId: bigint): Promise<Readonly<Record<string, unknown>> | null> {
  try {
    return await read(`/public/v1/vaults/${vaultId}/metadata`);
  } catch (error) {
    if (error instanceof Problem && /_not_found$/.test(error.code)) return null;
    throw error;
  }
}

export async function readBatches(cursor: string | null): Promise<{ data: Batch[]; next: string | null }> {
  const query = cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`;
  const page = await read<{ data: Batch[]; pagination: { nextCursor: string | null } }>(
    `/public/v1/batches?limit=20${query}`,
  );
  return { data: page.data, next: page.pagination.nextCursor };
}

export async function readBatchData(batchId: string): Promise<Uint8Array> {
  const response = await request(`/public/v1/batches/${encodeURIComponent(batchId)}/data`);
  return new Uint8Array(await response.arrayBuffer());
}

/** The proof of each blob of a batch. */
export async function readBlobProofs(batchId: string): Promise<readonly BlobProof[]> {
  return (
    await read<{ readonly data: readonly BlobProof[] }>(`/public/v1/batches/${encodeURIComponent(batchId)}/blobs`)
  ).data;
}

/** A vault's proof, with numbers in the core's types. */
export async function readProof(vaultId: string): Promise<Proof> {
  // biome-ignore lint/suspicious/noExplicitAny: typed by the OpenAPI document; the core checks all values.
  const proof = await read<any>(`/public/v1/vaults/${encodeURIComponent(vaultId)}/proof`);
  const { vault, header, hops = [], ...rest } = proof;
  return { ...rest, vault: contentOf(vault), header: header && headerOf(header), hops: hops.map(hopOf) };
}

/** A vault's transfers and content, with numbers in the core's types. */
export async function readHistory(vaultId: string): Promise<History> {
  // biome-ignore lint/suspicious/noExplicitAny: typed by the OpenAPI document.
  const history = await read<any>(`/public/v1/vaults/${encodeURIComponent(vaultId)}/history`);
  const { vault, ...rest } = history;
  return { ...rest, vault: vault && contentOf(vault) };
}

// biome-ignore lint/suspicious/noExplicitAny: typed by the OpenAPI document.
function contentOf(vault: any): VaultContent {
  return { ...vault, vaultId: BigInt(vault.vaultId), chainId: BigInt(vault.chainId), amount: BigInt(vault.amount) };
}

// biome-ignore lint/suspicious/noExplicitAny: typed by the OpenAPI document.
function headerOf(header: any): BatchHeader {
  return { ...header, committedAt: BigInt(header.committedAt), sequence: BigInt(header.sequence) };
}

// biome-ignore lint/suspicious/noExplicitAny: typed by the OpenAPI document; the core checks all values.
function hopOf(hop: any): ProvenHop {
  const { outId, amount, deadline, header } = hop;
  const numbers = { outId: BigInt(outId), amount: BigInt(amount), deadline: BigInt(deadline) };
  return { ...hop, ...numbers, header: headerOf(header) };
}
