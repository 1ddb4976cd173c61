import type {
  OrderPreparation,
  SessionKeyPreparation,
  TransferPreparation,
  WithdrawalPreparation,
} from "./api.ts";

/** EIP-712 typed data as the API prepares it: plain JSON. */
export type TypedData = (
  | WithdrawalPreparation
  | TransferPreparation
  | SessionKeyPreparation
  | OrderPreparation
)["typedData"];

/** Where Ethereum wallets take requests (EIP-1193). */
export interface Eip1193Provider {
  /** Sends a request to the wallet, and resolves with its answer. */
  request(call: { readonly method: string; readonly params: readonly unknown[] }): Promise<unknown>;
}

/**
 * A viem account or wallet client. A wallet client without an account signs with the vaults' owner.
 */
export interface TypedDataSigner {
  /** Resolves with the signature over EIP-712 typed data. */
  signTypedData(typedData: never): Promise<`0x${string}`>;
  readonly account?: unknown;
}

/** An owner's signer; a function serves libraries that have no such object. */
export type OwnerSigner =
  | TypedDataSigner
  | Eip1193Provider
  | ((typedData: TypedData, ownerAddress: string) => Promise<string>);

export async function signWith(
  signer: OwnerSigner,
  typedData: TypedData,
  ownerAddress: string,
): Promise<string> {
  if (typeof signer === "function") return signer(typedData, ownerAddress);
  if ("signTypedData" in signer) {
    // A wallet client signs with its own account, or with the one that is named. An account takes
    // the data alone.
    const account = "request" in signer ? { account: signer.account ?? ownerAddress } : {};
    // viem types the data by its contents, which only the server knows.
    return signer.signTypedData({ ...account, ...typedData } as never);
  }
  const params = [ownerAddress, JSON.stringify(typedData)];
  const signature = await signer.request({ method: "eth_signTypedData_v4", params });
  if (typeof signature === "string") return signature;
  throw new TypeError("the wallet answered eth_signTypedData_v4 without a signature");
}

/**
 * Throws unless typed data is a message of Mintmark of this type. A message of another type, or of
 * another program, can hold the fields that a caller looks at and mean something else. Does not
 * check which contract the domain names.
 */
export function requireKind({ primaryType, domain }: TypedData, wanted: string): void {
  if (primaryType === wanted && domain.name === "Mintmark") return;
  throw new Error("the server prepared another message than it was asked for");
}

/**
 * The address of a viem account or of a wallet client's account, in lower case; null for other
 * signers.
 */
export function accountOf(signer: OwnerSigner): string | null {
  const { address, account } = signer as { readonly address?: unknown; readonly account?: unknown };
  const own =
    address ?? (account as { readonly address?: unknown } | undefined)?.address ?? account;
  return typeof own === "string" ? own.toLowerCase() : null;
}
