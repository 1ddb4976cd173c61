/**
 * Every error that a caller can get, by stable code. A test keeps it equal to the HTTP mapping and
 * the documentation.
 */
export const ERROR_CODES = {
  // The request breaks the documentation.
  validation_failed: "One or more fields are missing, unknown or of the wrong form; see `errors`.",
  malformed_json: "The body is not JSON as this API accepts it; see `errors`.",
  cursor_invalid:
    "The cursor was not issued by this engine for this application and these filters. Start again without a cursor.",
  // The caller is not authorized.
  credentials_missing: "No credentials were sent. Send the API key as X-Api-Key.",
  credentials_invalid:
    "The credentials are unknown, revoked, malformed or of the other environment.",
  credentials_expired: "The credentials have expired. Issue a new key.",
  scope_missing: "The key lacks the scope that this call needs.",
  role_missing: "Your role does not allow this. Ask an admin of the application, or the operator.",
  application_suspended: "The operator has suspended this application.",
  // The named thing does not exist for this application.
  application_not_found: "No such application.",
  key_not_found: "No such API key.",
  person_not_found: "No such person, or a removed one.",
  user_not_found: "No such user in this application.",
  asset_not_found: "No such asset.",
  vault_not_found: "No such vault.",
  transaction_not_found: "No such transaction in this application.",
  mint_not_found: "No such mint in this application.",
  batch_not_found: "No such batch.",
  withdrawal_not_found: "No such withdrawal in this application.",
  transfer_not_found: "No such transfer in this application.",
  webhook_not_found: "No such webhook in this application.",
  claim_not_found: "No such claim link. Its address may be incomplete.",
  metadata_not_found: "This token has no metadata.",
  drop_not_found: "No such drop in this application.",
  order_not_found: "No such order in this application, or of this owner.",
  // The present state forbids it.
  token_already_minted: "This ERC-721 token has been minted before; a token exists once.",
  token_id_conflict: "Another minting blob is already bound to this ERC-1155 token id.",
  asset_exists: "An asset of this contract is already known.",
  asset_minted: "This asset has mints. Only its default mode and rawMintingBlobs can change.",
  asset_not_enabled: "The asset is not enabled for this application.",
  asset_not_whitelisted: "The operator has not whitelisted the asset.",
  asset_not_registered: "The asset is not registered on L1.",
  user_exists:
    "A user of this id exists with another owner address. An owner's address never changes.",
  idempotency_in_progress: "A request with this idempotency key is still being processed.",
  proof_not_ready:
    "The batch of this vault is not sealed yet, or not committed on L1 as this call needs.",
  vault_void:
    "L1 refuses this vault, so its slot is void and its mint has failed; its transaction says why.",
  batch_committed: "L1 has committed this batch; its vaults never change.",
  mint_consented:
    "The issuer has consented to a batch that uses this mint, so it cannot be cancelled.",
  vault_spent:
    "A transfer takes this vault, or has taken it. Its new vaults can be withdrawn and transferred instead.",
  withdrawal_pending:
    "A withdrawal of this vault is still pending; wait for it or cancel it on L1.",
  order_exists:
    "An open order of this vault exists. Cancel it first; a vault has one open order at a time.",
  fill_pending:
    "An order of this vault was taken, and waits for L1. Wait for it, or cancel the order on L1.",
  order_ended: "This order is no longer open, so it can be neither taken nor cancelled.",
  order_not_allowed:
    "The application's terms do not allow this order, or have changed since it was prepared. Prepare it again.",
  claim_exists:
    "A claim link of this address exists with other terms. Make a new key for each link.",
  claim_taken: "This claim link has been used; its mint went to another owner.",
  claim_expired: "This claim link has expired. Ask whoever gave it to you for another.",
  claim_cancelled: "The application has cancelled this claim link. Ask for another.",
  metadata_hidden:
    "A placeholder hides this token, and freezing would show it. Remove the placeholder first.",
  metadata_frozen: "The application has frozen this metadata, so it never changes again.",
  asset_shared:
    "The asset is not reserved for this application, so the application cannot set its metadata. The operator reserves an asset when it is added.",
  too_many_keys: "The application has reached its limit of keys in force; revoke one.",
  too_many_people: "The team has reached its limit of people; remove one.",
  too_many_webhooks: "The application has reached its limit of webhooks; delete one.",
  too_many_drops:
    "The application has reached its limit of unfinished drops; wait for one to finish, or stop one.",
  // The request is well-formed but impossible.
  amount_out_of_range: "The amount must be a whole number from 1 to 2^63 - 1.",
  erc721_amount_not_one: "The amount of an ERC-721 mint must be 1.",
  minting_blob_invalid:
    "The minting blob does not fit the asset: empty for ERC-20, hex of 1 to 255 bytes in the asset's scheme otherwise.",
  duplicate_mint: "The same ERC-721 token occurs more than once in this request.",
  duplicate_user: "The same user occurs more than once in this request.",
  batch_too_large: "The request holds more users or mints than the limit.",
  standard_not_available:
    "The settlement contract's engine version does not support this standard.",
  rollup_not_available:
    "The token's chain lacks the precompile 0x0a, which pays vaults of rollup batches, or the engine has not learnt yet whether it has it. Mint as validium.",
  chain_not_supported: "This engine has no mirror on the chain of this token.",
  supply_cap_exceeded: "The asset's supply cap would be exceeded.",
  quota_exceeded: "The API key's mint quota would be exceeded.",
  places_exhausted:
    "The store has no places left for vaults of this mode. Mint in the other mode, or on another shard.",
  mint_unwithdrawable: "The token contract would refuse to mint this on L1.",
  asset_not_transferable:
    "The asset's token does not allow transfers, or lives on another chain than the state.",
  transfer_too_deep: "The vault has been transferred 8 times since its mint. Withdraw it instead.",
  insufficient_balance: "The vault's available balance is smaller than the quantity.",
  signature_invalid:
    "The signature is not the vault owner's over this withdrawal or these transfers.",
  deadline_invalid: "The deadline has passed, is too near, or is more than 30 days ahead.",
  drop_invalid: "Rows of the drop have a wrong form; see `errors`. Nothing was minted.",
  idempotency_key_reused: "This idempotency key was used with another request.",
  // The engine cannot serve now, or has found damage in its data.
  store_missing:
    "There is no store here. Create one with `mintmark init`, or restore the former one from a copy.",
  store_locked: "Another process has this store open. One engine owns a store at a time.",
  store_failed:
    "The store failed, so the engine accepts no more changes. Close it, repair the disk, open it again.",
  store_corrupt: "A stored record is damaged. Restore the store from a copy, or rebuild it.",
  store_mismatch:
    "The store belongs to another chain, contract, environment, format version or journal.",
  uploads_full:
    "Uploads of drops in progress hold as many bytes as they may, of this application or of all; repeat after Retry-After seconds.",
  history_diverged:
    "L1's history differs from this store's. The operator must adopt L1's history before further mints.",
  l1_not_compared:
    "The store has not been compared with L1 since the start. Repeat the request later.",
  backpressure: "Too many vaults wait for L1. Repeat the request after Retry-After seconds.",
  not_leader: "Another server of the cluster leads. Send the request to that one.",
  journal_unavailable:
    "The cluster's journal does not answer or replicate. Nothing is acknowledged until it does; repeat later.",
  kzg_unavailable:
    "The native KZG code does not work on this machine. Batches in blobs wait for it; new ones can use calldata.",
  engine_closed: "The engine is closed.",
  l1_failed: "L1 refused or did not answer.",
  signer_failed:
    "The signer of an account refused or did not answer; start it, or mend its setting.",
} as const;

/** A stable error code; codes are never renamed. */
export type ErrorCode = keyof typeof ERROR_CODES;

/** One bad entry of a request. `pointer` is an RFC 6901 JSON pointer to it. */
export interface Issue {
  readonly pointer: string;
  readonly code: ErrorCode;
  readonly detail: string;
}

/** Most bad entries in one error. A request can have far more than anybody reads. */
export const MAX_ISSUES = 100;

/**
 * The only error class of the core: a stable `code`, a sentence with the next step, and all bad
 * entries.
 *
 * @example
 * if (error instanceof MintmarkError && error.code === "quota_exceeded") askForMore();
 */
export class MintmarkError extends Error {
  override readonly name = "MintmarkError";
  readonly code: ErrorCode;
  /** The bad entries of the request, in order; empty when the error is not about entries. */
  readonly issues: readonly Issue[];
  /** Whether more than {@link MAX_ISSUES} entries are bad, so `issues` is incomplete. */
  readonly moreIssues: boolean;

  constructor(
    code: ErrorCode,
    detail: string = ERROR_CODES[code],
    options: { issues?: readonly Issue[]; moreIssues?: boolean; cause?: unknown } = {},
  ) {
    super(detail, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.issues = options.issues ?? [];
    this.moreIssues = options.moreIssues ?? false;
  }
}

/**
 * A refusal of an argument, which names it and points to it.
 *
 * @param name - of the field, such as `deadline` or `transfers[3].amount`
 * @param rule - goes on from the name: "must be a UUID"
 */
export function argumentError(name: string, rule: string, cause?: unknown): MintmarkError {
  const pointer = `/${name.replaceAll(/\[(\d+)\]/g, ".$1").replaceAll(".", "/")}`;
  const issues = [{ pointer, code: "validation_failed", detail: rule } as const];
  return new MintmarkError("validation_failed", `${name} ${rule}`, { issues, cause });
}

/** A refusal of what was given, as a whole. */
export function invalid(detail: string): MintmarkError {
  return new MintmarkError("validation_failed", detail);
}

/** The words of an error, or of anything else that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
