import { pause } from "../../core/backoff.ts";
import type { OwnersTransfer, TransferPreparation } from "./api.ts";
import type { MintmarkClient } from "./client.ts";
import { answer, answerWhenFinal, type Waiting } from "./problem.ts";
import { type OwnerSigner, requireKind, signWith } from "./sign.ts";

/** The end of a vault: another owner gets it, or it is redeemed, which burns it for ever. */
export type VaultTransfer = {
  readonly vaultId: string;
  /**
   * Quantized units of an ERC-20 or ERC-1155 vault, as a decimal string. Default: all that is left.
   */
  readonly amount?: string;
} & ({ readonly to: `0x${string}` } | { readonly redeem: true });

/** The transfers, and who signs them. */
export interface TransferOptions extends Waiting {
  /** 1 to 1,024 vaults of one owner, each once. */
  readonly transfers: readonly VaultTransfer[];
  /** Signs for the owner: the owner's key or wallet, or a session key of the owner. */
  readonly signer: OwnerSigner;
  /** Seconds since 1970, as a decimal string. Default: in a day. */
  readonly deadline?: string;
  /**
   * Whether the client has the sign-in of an owner instead of an application's key. Default false.
   */
  readonly asOwner?: boolean;
  /**
   * Whether to wait for the vaults' batches, and until the transfer is final on L1 or has failed.
   * Default false.
   */
  readonly wait?: boolean;
  /** Called with the transfer, once it is accepted and after each poll. */
  readonly onStatus?: (transfer: OwnersTransfer) => void;
}

const ENDED: readonly OwnersTransfer["status"][] = ["finalized", "failed"];

/**
 * Transfers or redeems vaults with one signature of their owner: prepares the message, has it
 * signed and sends it. Rejects with `ApiError`, which names each vault that cannot be transferred;
 * then none is.
 *
 * @example
 * const gift = { vaultId, to: friend };
 * const { status } = await transfer(client, { transfers: [gift], signer: account, wait: true });
 */
export async function transfer(
  client: MintmarkClient,
  options: TransferOptions,
): Promise<OwnersTransfer> {
  const {
    transfers,
    signer,
    deadline,
    asOwner = false,
    wait = false,
    pollingMs = 2_000,
    onStatus,
    signal,
  } = options;
  const init = signal === undefined ? {} : { signal };
  const body = { transfers: [...transfers], ...(deadline !== undefined && { deadline }) };
  const route = asOwner ? "/owner/v1/transfers" : "/api/v1/transfers";
  const prepared = await answerWhenFinal(
    () => client.POST(`${route}/prepare`, { body, ...init }),
    options,
  );
  requireTransfers(prepared, transfers, deadline);
  const signature = await signWith(signer, prepared.typedData, prepared.ownerAddress);
  // The server has written the body, so its fields are those of the route.
  const signed = { ...prepared.submit.body, signature } as never;
  let taken: OwnersTransfer = await answer(client.POST(route, { body: signed, ...init }));
  const params = { path: { transferId: taken.transferId } };
  onStatus?.(taken);
  while (wait && !ENDED.includes(taken.status)) {
    await pause(pollingMs, signal);
    taken = await answer(client.GET(`${route}/{transferId}`, { params, ...init }));
    onStatus?.(taken);
  }
  return taken;
}

const REDEEMED = `0x${"00".repeat(20)}`;
/**
 * Seconds to the furthest deadline that no caller has named: the default of a day, and a day for
 * wrong clocks.
 */
const MOST_SECONDS = 2 * 86_400;

/**
 * Throws unless the message is what the caller asked for, because a signed transfer cannot be taken
 * back.
 */
export function requireTransfers(
  { typedData, submit }: TransferPreparation,
  transfers: readonly VaultTransfer[],
  wanted?: string,
): void {
  requireKind(typedData, "Transfers");
  const asked = transfers.map((one) => {
    const to = "to" in one ? one.to.toLowerCase() : REDEEMED;
    return `${one.vaultId} ${one.amount ?? "0"} ${to}`;
  });
  const latest = Math.floor(Date.now() / 1000) + MOST_SECONDS;
  type Message = { transfers: { vaultId: string; amount: string; to: string }[]; deadline: string };
  for (const { transfers: listed, deadline } of [
    typedData.message,
    submit.body,
  ] as unknown as readonly Message[]) {
    const prepared = listed.map(
      ({ vaultId, amount, to }) => `${vaultId} ${amount} ${to.toLowerCase()}`,
    );
    if (prepared.join() !== asked.join())
      throw new Error("the server prepared other transfers than it was asked for");
    if (wanted === undefined ? !(Number(deadline) <= latest) : deadline !== wanted)
      throw new Error("the server prepared another deadline than it was asked for");
  }
}
