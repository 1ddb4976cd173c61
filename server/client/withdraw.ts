import { pause } from "../../core/backoff.ts";
import type { Withdrawal, WithdrawalPreparation } from "./api.ts";
import type { MintmarkClient } from "./client.ts";
import { answer, answerWhenFinal, everyEntry, type Waiting } from "./problem.ts";
import { accountOf, type OwnerSigner, requireKind, signWith } from "./sign.ts";

/** The vaults to withdraw, and who signs. */
export interface WithdrawOptions extends Waiting {
  /** 1 to 256 vaults of one owner: all that is left of each. */
  readonly vaultIds: readonly string[];
  /** Signs for the owner. */
  readonly signer: OwnerSigner;
  /** Default: the owner. */
  readonly recipient?: `0x${string}`;
  /** Seconds since 1970, as a decimal string. Default: in seven days. */
  readonly deadline?: string;
  /**
   * Waits until at least one vault can be withdrawn, then until each withdrawal is paid or fails.
   * Default false.
   */
  readonly wait?: boolean;
}

/** The result for one vault: its withdrawal, or why there is none. */
export interface VaultWithdrawal {
  readonly vaultId: string;
  readonly withdrawal: Withdrawal | null;
  readonly error: { readonly code: string; readonly detail: string } | null;
}

const PENDING: readonly Withdrawal["status"][] = ["accepted", "submitted"];

/**
 * Withdraws vaults with one signature of their owner: prepares the message, has it signed and sends
 * it. Answers each vault in the order given, and rejects with `ApiError` when none can be withdrawn
 * now. With `wait` it resolves once each withdrawal is paid or has failed.
 *
 * @example
 * const done = await withdraw(client, { vaultIds: [vaultId], signer: account, wait: true });
 * for (const { vaultId, error } of done) console.log(vaultId, error?.detail ?? "withdrawn");
 */
export async function withdraw(
  client: MintmarkClient,
  options: WithdrawOptions,
): Promise<VaultWithdrawal[]> {
  const {
    vaultIds,
    signer,
    recipient,
    deadline,
    wait = false,
    pollingMs = 2_000,
    signal,
  } = options;
  const body = {
    vaults: vaultIds.map((vaultId) => ({ vaultId })),
    ...(recipient !== undefined && { recipient }),
    ...(deadline !== undefined && { deadline }),
  };
  const init = signal === undefined ? {} : { signal };
  const prepared = await answerWhenFinal(
    () => client.POST("/api/v1/withdrawals/prepare", { body, ...init }),
    options,
  );
  const { ownerAddress, typedData, submit, refused } = prepared;
  requireWithdrawal(prepared, options);
  const signature = await signWith(signer, typedData, ownerAddress);
  const found = new Map<string, VaultWithdrawal>();
  for (const { vaultId, error } of refused)
    found.set(vaultId, { vaultId, withdrawal: null, error });
  // The server has written the body, so its fields are those of the route.
  const signed = { ...submit.body, signature } as never;
  const { vaults } = await answer(client.POST("/api/v1/withdrawals", { body: signed, ...init }));
  for (const one of vaults) found.set(one.vaultId, one);
  while (wait && [...found.values()].some(isPending)) {
    await pause(pollingMs, signal);
    for (const one of await newest(client, ownerAddress, found, init)) found.set(one.vaultId, one);
  }
  return vaultIds.flatMap((vaultId) => found.get(vaultId) ?? []);
}

/**
 * Throws unless the message is what the caller asked for: with another one, the tokens could go to
 * anybody.
 */
export function requireWithdrawal(
  { typedData, ownerAddress }: WithdrawalPreparation,
  { vaultIds, signer, recipient, deadline }: WithdrawOptions,
): void {
  const message = typedData.message as {
    readonly vaults: readonly { readonly vaultId: string }[];
    readonly recipient: string;
    readonly deadline: string;
  };
  requireKind(typedData, "WithdrawalList");
  if (!message.vaults.every(({ vaultId }) => vaultIds.includes(vaultId)))
    throw new Error("the server prepared a withdrawal of other vaults than it was asked for");
  if (deadline !== undefined && message.deadline !== deadline)
    throw new Error("the server prepared another deadline than it was asked for");
  const owner = message.recipient.toLowerCase();
  if (owner !== (recipient ?? ownerAddress).toLowerCase())
    throw new Error("the server prepared another recipient than it was asked for");
  const account = accountOf(signer);
  if (recipient === undefined && account !== null && owner !== account)
    throw new Error(
      `the server says that ${owner} owns the vaults, which is not the signer. Give the \`recipient\`.`,
    );
}

function isPending({ withdrawal }: VaultWithdrawal): boolean {
  return withdrawal !== null && PENDING.includes(withdrawal.status);
}

/** The pending withdrawals as they are now, from the owner's newest ones. */
async function newest(
  client: MintmarkClient,
  ownerAddress: `0x${string}`,
  found: ReadonlyMap<string, VaultWithdrawal>,
  init: { readonly signal?: AbortSignal },
): Promise<VaultWithdrawal[]> {
  const waiting = new Set(
    [...found.values()].filter(isPending).map(({ withdrawal }) => withdrawal?.withdrawalId),
  );
  const seen: VaultWithdrawal[] = [];
  const page = (cursor: string | undefined) => {
    const query = { ownerAddress, limit: 100, ...(cursor !== undefined && { cursor }) };
    return client.GET("/api/v1/withdrawals", { params: { query }, ...init });
  };
  for await (const withdrawal of everyEntry(page)) {
    if (!waiting.delete(withdrawal.withdrawalId)) continue;
    seen.push({ vaultId: withdrawal.vaultId, withdrawal, error: null });
    if (waiting.size === 0) break;
  }
  return seen;
}
