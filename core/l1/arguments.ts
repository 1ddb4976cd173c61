import {
  concatHex,
  encodeFunctionData,
  type Hex,
  hexToBigInt,
  numberToHex,
  size,
  slice,
} from "viem";
import { invalid } from "../errors.ts";
import {
  type Hash,
  MAX_BATCH_VAULTS,
  type MintingBlobScheme,
  type Mode,
  type Standard,
} from "../model.ts";
import type {
  AssetId,
  Consent,
  ListedVault,
  ProvenHop,
  ProvenVault,
  WithdrawalAuthorization,
  WithdrawalCall,
} from "../ports.ts";
import { ASSET_ENTRY_BYTES } from "../protocol/batch-data.ts";
import { compareAssets } from "../protocol/manifest.ts";
import type { SessionEndMessage, SessionMessage } from "../protocol/transfer.ts";
import { isTransferred, tipIdOf, tipOwnerOf } from "../protocol/transfer-proof.ts";
import { type CancellationMessage, cancellationId } from "../protocol/typed-data.ts";
import { headerPlaceOf } from "../protocol/vault.ts";
import { stateCommitmentAbi as abi } from "./abi.ts";

export const MODE_VALUE: Readonly<Record<Mode, number>> = { validium: 0, "zk-rollup": 1 };

/** The contract's values of `Standard`. */
export const STANDARD_VALUE: Readonly<Record<Standard, number>> = {
  erc20: 1,
  erc721: 2,
  erc1155: 3,
};

export const SCHEME_VALUE: Readonly<Record<MintingBlobScheme, number>> = {
  imx: 0,
  mintmark: 1,
  raw32: 2,
};

/** Flags of a packed item, see docs/protocol.md 6. */
const HAS_RECIPIENT = 1;
const HAS_AMOUNTS = 2;
const IS_LISTED = 4;
const HAS_WAY = 8;
/** Bound of a packed item: its length is a u16. */
const MAX_ITEM_BYTES = 0xffff;
/**
 * Bound of an issuer's consent. A longer one would cost the operator more than the issuer's slots
 * are worth.
 */
const MAX_SIGNATURE_BYTES = 4_096;

const bytes = (value: bigint | number, size: number) => numberToHex(value, { size });

/** Vault, header and paths in the order of the contract's functions. */
export function provenVaultArguments({ vault, header, siblings, assetPath }: ProvenVault) {
  const path = { siblings, assetIndex: assetPath.index, assetSiblings: assetPath.siblings };
  return [{ ...vault, assetType: BigInt(vault.assetType) }, header, path] as const;
}

/** Arguments of the functions of transferred vaults: also the transfers since the mint. */
export function transferredArguments(proven: ProvenVault) {
  const { hops = [], refutation } = proven;
  const refuted = refutation === undefined ? [] : [refutation];
  return [...provenVaultArguments(proven), packedHops(hops), packedHops(refuted)] as const;
}

/** Records with their proofs, one behind the other (docs/protocol.md 10). */
export function packedHops(hops: readonly ProvenHop[]): Hex {
  return concatHex(
    hops.flatMap(({ outId, part, amount, to, deadline, list, signature, header, siblings }) => [
      ...[bytes(outId, 8), bytes(part, 1), bytes(amount, 8), to, bytes(deadline, 4), list],
      ...[
        signature === "0x" ? bytes(0, 64) : signature,
        header.batchRoot,
        bytes(header.vaultCount, 4),
      ],
      ...[
        bytes(header.committedAt, 8),
        bytes(header.sequence, 8),
        bytes(siblings.length, 1),
        ...siblings,
      ],
    ]),
  );
}

/** A batch's manifest for the contract: chainId(8) and assetType(32) of each asset. */
export function packedAssets(assets: readonly AssetId[]): Hex {
  return concatHex(assets.flatMap(({ chainId, assetType }) => [bytes(chainId, 8), assetType]));
}

/** The inverse of {@link packedAssets}. */
export function unpackedAssets(packed: Hex): AssetId[] {
  return Array.from({ length: size(packed) / ASSET_ENTRY_BYTES }, (_, i) => {
    const at = i * ASSET_ENTRY_BYTES;
    const [chainId, assetType] = [
      slice(packed, at, at + 8),
      slice(packed, at + 8, at + ASSET_ENTRY_BYTES),
    ];
    return { chainId: hexToBigInt(chainId), assetType };
  });
}

/**
 * The contract's form of consents (docs/protocol.md 5). Throws `validation_failed` for a consent
 * that is too long, or that names an asset outside of the manifest.
 */
export function packedConsents(assets: readonly AssetId[], consents: readonly Consent[]): Hex {
  return concatHex(
    consents.map(({ assets: own, signature }) => {
      const indexes = own.map((asset) =>
        assets.findIndex((each) => compareAssets(each, asset) === 0),
      );
      if (indexes.includes(-1) || size(signature) > MAX_SIGNATURE_BYTES)
        throw invalid("The consent does not belong to the batch, or it is too long.");
      const named = [indexes.length, ...indexes].map((index) => bytes(index, 1));
      return concatHex([...named, bytes(size(signature), 2), signature]);
    }),
  );
}

export function withdrawalArguments(call: WithdrawalCall) {
  return [...provenVaultArguments(call), call.quantity, call.recipient] as const;
}

/** The call of the vault's owner, who needs no signature. */
export function withdrawalCall(call: WithdrawalCall) {
  const { quantity, recipient } = call;
  if (!isTransferred(call))
    return { abi, functionName: "withdraw", args: withdrawalArguments(call) } as const;
  const args = [...transferredArguments(call), quantity, recipient] as const;
  return { abi, functionName: "withdrawTransferred", args } as const;
}

/**
 * Calldata of `withdraw`, for a transaction of the vault's owner to the settlement contract or
 * mirror; of `withdrawTransferred` after transfers.
 *
 * @example
 * const data = withdrawCalldata({ ...proof, header, quantity, recipient, authorization: null });
 */
export function withdrawCalldata(call: WithdrawalCall): Hex {
  return encodeFunctionData(withdrawalCall(call));
}

/**
 * Calls of one batch and asset share a group and keep their order in it. Calls under one signature
 * share a list. Throws `validation_failed` when a call is too long for a packed item, or its list
 * does not name its vault.
 */
export function withdrawalBatchArguments(calls: readonly WithdrawalCall[], itemGas: bigint) {
  const lists: Hex[] = [];
  const groups = new Map<string, ReturnType<typeof withdrawalGroup>>();
  for (const call of calls) {
    const list = call.authorization && packedList(call, call.authorization);
    if (list !== null && !lists.includes(list)) lists.push(list);
    const item = packedItem(call, list === null ? null : lists.indexOf(list));
    const own = withdrawalGroup(call);
    // After a reorganisation two calls can carry different headers of one batch. Each then has its
    // own group.
    const key = [own.mode, own.batchNumber, own.assetType, ...Object.values(own.header)].join();
    const group = groups.get(key) ?? own;
    groups.set(key, { ...group, items: concatHex([group.items, item]) });
  }
  return [[...groups.values()], lists, itemGas] as const;
}

/** The arguments of `renew` for the vaults of one list, all of which the calls name. */
export function renewalArguments(calls: readonly WithdrawalCall[]) {
  const [groups, [list = "0x"]] = withdrawalBatchArguments(calls, 0n);
  return [groups, list] as const;
}

/**
 * Calldata of `renew` on the settlement contract. Any account can send it with the owner's
 * signature of `renewalListTypedData`; the owner's own call has `0x` in its place. Errors are as
 * for a batch of withdrawals.
 *
 * @param calls - every vault of the list once, with the list in each
 *
 * @example
 * const authorization = { deadline, list, signature };
 * const terms = { quantity, recipient, authorization };
 * const data = renewalCalldata(proofs.map((proof) => ({ ...proof, ...terms })));
 */
export function renewalCalldata(calls: readonly WithdrawalCall[]): Hex {
  return encodeFunctionData({ abi, functionName: "renew", args: renewalArguments(calls) });
}

/** The contract's `WithdrawalGroup` of a call's batch and asset, without items. */
function withdrawalGroup({ vault, header, assetPath }: WithdrawalCall) {
  const place = { ...headerPlaceOf(vault.vaultId), header };
  const asset = {
    assetType: BigInt(vault.assetType),
    assetIndex: assetPath.index,
    assetSiblings: assetPath.siblings,
  };
  return { ...place, ...asset, items: "0x" as Hex };
}

/** An owner's list for the contract. */
export function packedList(
  call: WithdrawalCall,
  { deadline, signature, list }: WithdrawalAuthorization,
): Hex {
  const terms = [tipOwnerOf(call), call.recipient, bytes(deadline, 8), bytes(list.length, 2)];
  return concatHex([...terms, packedEntries(list), signature]);
}

/** The entries of a list, 24 bytes each. */
export function packedEntries(list: readonly ListedVault[]): Hex {
  const words = list.flatMap(({ vaultId, withdrawnBefore, quantity }) => [
    vaultId,
    withdrawnBefore,
    quantity,
  ]);
  return concatHex(words.map((word) => bytes(word, 8)));
}

/**
 * One item of a group's `items`, with its length and slot in front.
 *
 * @param number - the list's place among those of the call; null without a list
 */
function packedItem(call: WithdrawalCall, number: number | null): Hex {
  const { vault, siblings } = call;
  const slot = Number(vault.vaultId % BigInt(MAX_BATCH_VAULTS));
  const word = number === null ? ownWord(call) : listedWord(call, number);
  const body = concatHex([
    wayOf(call),
    word,
    bytes(size(vault.mintingBlob), 1),
    vault.mintingBlob,
    ...siblings,
  ]);
  if (size(body) <= MAX_ITEM_BYTES) return concatHex([bytes(size(body), 2), bytes(slot, 3), body]);
  const most = `an item of a batch has at most ${MAX_ITEM_BYTES}`;
  const message = `withdrawal of vault ${tipIdOf(call)}: ${size(body)} bytes, ${most}; its owner can withdraw it`;
  throw invalid(message);
}

/** The records that have made the vault, in front of its item; nothing for a minted one. */
function wayOf(call: WithdrawalCall): Hex {
  if (!isTransferred(call)) return "0x";
  const { vault, hops = [], refutation } = call;
  const [way, refuted] = [
    packedHops(hops),
    packedHops(refutation === undefined ? [] : [refutation]),
  ];
  const lengths = [bytes(size(way), 2), bytes(size(refuted), 2)];
  return concatHex([
    bytes(HAS_WAY, 1),
    bytes(tipIdOf(call), 8),
    vault.owner,
    ...lengths,
    way,
    refuted,
  ]);
}

/** The withdrawal itself, by the caller's word. */
function ownWord(call: WithdrawalCall): Hex {
  const { vault, quantity, recipient } = call;
  const owner = tipOwnerOf(call);
  const hasRecipient = recipient.toLowerCase() !== owner;
  const hasAmounts = vault.amount !== 1n || quantity !== 1n;
  const flags = (hasRecipient ? HAS_RECIPIENT : 0) | (hasAmounts ? HAS_AMOUNTS : 0);
  return concatHex([
    ...[bytes(flags, 1), owner],
    ...(hasRecipient ? [recipient] : []),
    ...(hasAmounts ? [bytes(vault.amount, 8), bytes(quantity, 8)] : []),
  ]);
}

/** The vault's place in its list, which holds the rest. */
function listedWord(call: WithdrawalCall, number: number): Hex {
  const { vault, authorization } = call;
  const tipId = tipIdOf(call);
  const position = authorization?.list.findIndex(({ vaultId }) => vaultId === tipId) ?? -1;
  if (position < 0) throw invalid(`the list does not name vault ${tipId}`);
  const hasAmount = vault.amount !== 1n;
  const flags = IS_LISTED | (hasAmount ? HAS_AMOUNTS : 0);
  const place = [bytes(flags, 1), bytes(number, 1), bytes(position, 2)];
  return concatHex(hasAmount ? [...place, bytes(vault.amount, 8)] : place);
}

/**
 * Calldata of `authorizeSession` on the settlement contract. Any account can send it with the
 * owner's signature of `sessionTypedData`. The owner's own account needs no signature.
 *
 * @example
 * const data = sessionCalldata(session, await player.signTypedData(sessionTypedData(settlement,
 * session)));
 */
export function sessionCalldata(session: SessionMessage, signature: Hex = "0x"): Hex {
  return encodeFunctionData({
    abi,
    functionName: "authorizeSession",
    args: sessionArguments(session, signature),
  });
}

export function sessionArguments(
  { owner, key, until, limit, assetType }: SessionMessage,
  signature: Hex,
) {
  return [owner, key, until, limit, BigInt(assetType), signature] as const;
}

/**
 * Calldata of `revokeSession` on the settlement contract. It ends the key's session, or makes sure
 * that there never is one. Any account can send it with the owner's signature of
 * `sessionEndTypedData`. The owner's own needs no signature.
 *
 * @example
 * await wallet.sendTransaction({ to: contract, data: revocationCalldata({ owner:
 * wallet.account.address, key }) });
 */
export function revocationCalldata({ owner, key }: SessionEndMessage, signature: Hex = "0x"): Hex {
  return encodeFunctionData({ abi, functionName: "revokeSession", args: [owner, key, signature] });
}

/**
 * Calldata of `cancel` on the contract that pays. It takes back a list, or all that the signer's
 * lists say of a vault. Any account can send it with the signature of `cancellationTypedData`. The
 * signer's own needs none.
 *
 * @example
 * await wallet.sendTransaction({ to: contract, data: withdrawalCancellationCalldata({ signer, id })
 * });
 */
export function withdrawalCancellationCalldata(
  { signer, id }: CancellationMessage,
  signature: Hex = "0x",
): Hex {
  const args = [signer, cancellationId(id), signature] as const;
  return encodeFunctionData({ abi, functionName: "cancel", args });
}

/**
 * Calldata of `cancelTransfers` on the settlement contract, for the account of the owner or of the
 * signer. These transfers no longer count when they are committed in a later second.
 *
 * @example
 * await wallet.sendTransaction({ to: contract, data: cancellationCalldata(digest) });
 */
export function cancellationCalldata(digest: Hash): Hex {
  return encodeFunctionData({ abi, functionName: "cancelTransfers", args: [digest] });
}
