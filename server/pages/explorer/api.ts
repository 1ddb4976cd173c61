import type {
  BatchHeader,
  BlobProof,
  Hex,
  ProvenHop,
  VaultContent,
  VaultProof,
} from "../../../core/protocol/verifier.ts";
import type { Batch, BatchPage, BlobProofs, PublicVaultHistory, State } from "../../client/index.ts";

// The operator's public API (/openapi.json) as used by this page. The page checks everything.

export type { Batch, State };
export type Roots = State["committed"];

export interface Proof extends VaultProof {
  readonly batchRoot: Hex;
  readonly leaf: Hex;
  readonly header: BatchHeader | null;
  /** The transfers since the mint; `vault` is the minted one. */
  readonly hops: readonly ProvenHop[];
}

/** One vault that a transfer made. */
export type Step = Omit<PublicVaultHistory["before"][number], "vaultId" | "newVaultId" | "amount"> & {
  readonly vaultId: bigint;
  readonly newVaultId: bigint | null;
  readonly amount: bigint | null;
};

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

/** Numbers that the API writes as decimal text, which are bigint in the core. */
const WHOLE = new Set(["vaultId", "newVaultId", "chainId", "amount", "outId", "deadline", "committedAt", "sequence"]);

/** An answer, with its large numbers in the core's types. */
async function readExactly<T>(path: string): Promise<T> {
  return JSON.parse(await (await request(path)).text(), (name, value) =>
    WHOLE.has(name) && typeof value === "string" ? BigInt(value) : value,
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
export async function readProof(vaultId: string): Promise<Proof> {
  const { hops = [], ...rest } = await readExactly<Omit<Proof, "hops"> & Partial<Pick<Proof, "hops">>>(
    `${ofVault(vaultId)}/proof`,
  );
  return { ...rest, hops };
}
export const readHistory = (vaultId: string | bigint) => readExactly<History>(`${ofVault(vaultId)}/history`);

export async function readBatches(cursor: string | null): Promise<{ data: readonly Batch[]; next: string | null }> {
  const query = cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`;
  const { data, pagination } = await read<BatchPage>(`/public/v1/batches?limit=20${query}`);
  return { data, next: pagination.nextCursor };
}

export async function readBatchData(batchId: string): Promise<Uint8Array> {
  return new Uint8Array(await (await request(`${ofBatch(batchId)}/data`)).arrayBuffer());
}
