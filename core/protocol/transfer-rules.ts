import type { Address, Hash, Hex, Standard, VaultId } from "../model.ts";
import { ZERO_ADDRESS } from "./hex.ts";
import { signerOf } from "./signature.ts";
import {
  MAX_SESSION_CHANGE_HOPS,
  MAX_TRANSFER_HOPS,
  type Transfer,
  TransferPart,
} from "./transfer.ts";

/** A vault as transfers see it, minted or made by a transfer. */
export interface TransferableVault {
  readonly vaultId: VaultId;
  readonly owner: Address;
  /** Units at first, before any withdrawal. */
  readonly amount: bigint;
  /** Units withdrawn so far; 1 for a voided ERC-721. */
  readonly withdrawn: bigint;
  readonly standard: Standard;
  readonly assetType: Hash;
  /**
   * Whether the asset is registered as transferable on the state's chain, since before the mint's
   * batch.
   */
  readonly transferable: boolean;
  /** Records between the mint and this vault; 0 for a minted vault. */
  readonly hops: number;
}

/** A session as L1 keeps it. Times are seconds since 1970. */
export interface TransferSession {
  /** 0 for a key that was revoked before any authorization: it never can be authorized. */
  readonly authorizedAt: bigint;
  /** Last second. */
  readonly until: bigint;
  /** 0 for never. */
  readonly revokedAt: bigint;
  /** Most units of one transfer. */
  readonly limit: bigint;
  /** The only asset type; zero for every asset of the owner. */
  readonly assetType: Hash;
}

/** The powers that a record can rest on. They are facts of L1, and of the record itself. */
export interface TransferPowers {
  /** Whose signature the record has; null for none, or an invalid one. */
  readonly signer: Address | null;
  /** The session of the vault's owner with the signer's key, if L1 knows one. */
  readonly session: TransferSession | null;
  /** When the vault's owner approved the group's digest; 0 for never. */
  readonly approvedAt: bigint;
  /** When the vault's owner cancelled the digest; 0 for never. */
  readonly cancelledAt: bigint;
  /**
   * Seconds when the session key cancelled; counts only for a record that rests on its session. 0
   * for never.
   */
  readonly signerCancelledAt: bigint;
}

/** A record of a transfer batch that L1 has committed. */
export interface CommittedRecord {
  readonly transfer: Transfer;
  readonly deadline: bigint;
  readonly committedAt: bigint;
}

/** Why a record moves nothing. Stores keep a fault by its place here, so new ones go to the end. */
export const TRANSFER_FAULTS = {
  other_vault: "The record spends another vault.",
  expired: "The batch came after the deadline.",
  not_transferable: "The asset is not transferable.",
  too_deep:
    "Eight transfers lie between the mint and the vault, or four and a session's key leaves change.",
  exhausted: "Nothing is left in the vault.",
  amount: "The amount is not below the rest of the vault, or the token has no parts.",
  cancelled: "Its signer has cancelled the list on L1 before.",
  not_authorized: "Neither the owner, nor a session in force, nor an approval covers the record.",
} as const;
/** A key of {@link TRANSFER_FAULTS}. */
export type TransferFault = keyof typeof TRANSFER_FAULTS;

/**
 * The fault of a committed record over a vault, or null when the record moves it. Exactly the
 * contract's rule: it checks the deadline at the commit, and also takes no record there of a vault
 * whose batch it does not have. The answer never changes from a fault to null, and from null to a
 * fault only when the vault is voided as a duplicate.
 *
 * @example
 * const never = { approvedAt: 0n, cancelledAt: 0n, signerCancelledAt: 0n };
 * const fault = transferFault(vault, record, { signer, session: null, ...never });
 */
export function transferFault(
  vault: TransferableVault,
  record: CommittedRecord,
  powers: TransferPowers,
): TransferFault | null {
  const { transfer, deadline, committedAt } = record;
  const rest = vault.amount - vault.withdrawn;
  if (transfer.vaultId !== vault.vaultId) return "other_vault";
  if (committedAt > deadline) return "expired";
  if (!vault.transferable) return "not_transferable";
  if (vault.hops >= MAX_TRANSFER_HOPS) return "too_deep";
  if (rest <= 0n) return "exhausted";
  if (transfer.amount !== 0n && (vault.standard === "erc721" || transfer.amount >= rest))
    return "amount";
  return authorityFault(vault, transfer, committedAt, powers);
}

/**
 * The vault that a part of a valid record makes. A redemption's receiver is the zero address, and
 * so nobody.
 */
export function transferredVault(
  vault: TransferableVault,
  { transfer }: Pick<CommittedRecord, "transfer">,
  { outId, part }: { readonly outId: VaultId; readonly part: TransferPart },
): TransferableVault {
  const rest = vault.amount - vault.withdrawn;
  const paid = transfer.amount === 0n ? rest : transfer.amount;
  const [owner, amount] =
    part === TransferPart.receiver ? [transfer.to, paid] : [vault.owner, rest - paid];
  return { ...vault, vaultId: outId, owner, amount, withdrawn: 0n, hops: vault.hops + 1 };
}

/**
 * The account whose signature a record has, as the contract's `ecrecover` sees it: 64 bytes `r ‖
 * vs` with a low s. Null for any other signature.
 */
export async function transferSigner(digest: Hash, signature: Hex): Promise<Address | null> {
  return COMPACT.test(signature) ? signerOf(digest, signature) : null;
}

const COMPACT = /^0x[0-9a-f]{128}$/;

function authorityFault(
  vault: TransferableVault,
  transfer: Transfer,
  committedAt: bigint,
  { signer, session, approvedAt, cancelledAt, signerCancelledAt }: TransferPowers,
): TransferFault | null {
  // Strictly earlier. Otherwise the answer could change within the second of the commit.
  const isBefore = (time: bigint) => time !== 0n && time < committedAt;
  if (isBefore(cancelledAt)) return "cancelled";
  const owner = vault.owner.toLowerCase();
  if (owner === ZERO_ADDRESS) return "not_authorized";
  if (signer?.toLowerCase() === owner || isBefore(approvedAt)) return null;
  if (isBefore(signerCancelledAt)) return "cancelled";
  if (signer === null || session === null) return "not_authorized";
  if (!sessionCovers(session, vault, transfer, committedAt)) return "not_authorized";
  const leavesChange = transfer.amount !== 0n;
  return leavesChange && vault.hops >= MAX_SESSION_CHANGE_HOPS ? "too_deep" : null;
}

/** Whether a session covers a transfer at this time. How often its vault was split is apart. */
export function sessionCovers(
  session: TransferSession,
  vault: Pick<TransferableVault, "amount" | "assetType">,
  transfer: Transfer,
  committedAt: bigint,
): boolean {
  // A whole rest counts with the full amount, because the rest can shrink and an invalid record
  // must stay invalid.
  const units = transfer.amount === 0n ? vault.amount : transfer.amount;
  return (
    session.authorizedAt !== 0n &&
    session.authorizedAt < committedAt &&
    committedAt <= session.until &&
    (session.revokedAt === 0n || committedAt <= session.revokedAt) &&
    units <= session.limit &&
    (BigInt(session.assetType) === 0n || BigInt(session.assetType) === BigInt(vault.assetType))
  );
}
