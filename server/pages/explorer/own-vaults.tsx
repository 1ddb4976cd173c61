import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { brief, grouped } from "../shared/format.ts";
import { useLoad } from "../shared/parts.tsx";
import { Amount, amountText, textIn, useMetadata } from "../shared/tokens.tsx";
import { type OwnersOrder, type OwnVault, readOwnVaults, type SignedIn } from "./api.ts";
import { fateOf } from "./transfer-view.tsx";

// The owner's vaults as the server has them, and the words in which the page shows them.

/** Milliseconds between two reads, while something is on its way and while nothing is. */
const HASTY_MS = 2_000;
export const CALM_MS = 5_000;

/** Pages that the first read reads; each later read reads one. */
const FIRST_PAGES = 10;

/**
 * The owner's vaults. Their pages are read again and again, one at a time and in turns, while the
 * page is visible: so they stay as they are at the server, and new ones appear by themselves.
 */
export function useOwnVaults(signedIn: SignedIn) {
  const kept = useRef(new Map<bigint, OwnVault>()).current;
  const at = useRef({ next: null as string | null, isStarted: false, isWhole: false }).current;
  const read = async () => {
    for (let pages = at.isStarted ? 1 : FIRST_PAGES; pages > 0; pages--) {
      const { vaults, next } = await readOwnVaults(signedIn, at.next);
      for (const vault of vaults) kept.set(vault.vaultId, vault);
      at.next = next;
      at.isWhole ||= next === null;
      if (next === null) break;
    }
    at.isStarted = true;
    return { vaults: [...kept.values()].sort(byAge), isWhole: at.isWhole };
  };
  const isHasty = [...kept.values()].some(isMoving);
  return useLoad(read, null, isHasty ? HASTY_MS : CALM_MS);
}

/** The newest first. */
function byAge(a: OwnVault, b: OwnVault): number {
  return b.createdAt.localeCompare(a.createdAt) || (a.vaultId < b.vaultId ? -1 : 1);
}

function isMoving(vault: OwnVault): boolean {
  return standingAt(vault, false).kind === "waiting";
}

/** All vaults of one token: the units of an ERC-20, or what the owner has of an id. */
export interface Holding {
  /** The address of its page ends with it. */
  readonly path: string;
  readonly newest: OwnVault;
  readonly held: readonly OwnVault[];
  readonly gone: readonly OwnVault[];
}

/** In the order of their newest vaults. */
export function holdingsOf(vaults: readonly OwnVault[]): readonly Holding[] {
  const groups = Map.groupBy(vaults, ({ assetId, tokenId }) =>
    tokenId === null ? assetId : `${assetId}/${tokenId}`,
  );
  return [...groups].map(([path, all]) => ({
    path,
    newest: all[0] as OwnVault,
    held: all.filter((vault) => !isGone(vault)),
    gone: all.filter(isGone),
  }));
}

/** Units that nothing has taken yet. */
export function leftOf(vaults: readonly OwnVault[]): bigint {
  return vaults.reduce((sum, { amount, withdrawnBalance }) => sum + amount - withdrawnBalance, 0n);
}

/** A token's class and id, as a collector writes them. */
export function numbered(name: string, tokenId: string): string {
  return `${name} #${brief(tokenId)}`;
}

/** The name of a vault's token, its picture's address, and its amounts in words. */
export function useLook(vault: OwnVault) {
  const { name, symbol, decimals, quantum, tokenId, mintingBlob, unsealedAsset } = vault;
  const metadata = { decimals, quantum, symbol, ...useMetadata(vault) };
  // The metadata of a contract is not yet that of its token.
  const own = unsealedAsset === null ? textIn(metadata, "name") : null;
  const label = tokenId === null ? name : numbered(name, tokenId);
  return {
    title: own === null || own === name ? label : own,
    label,
    image: textIn(metadata, "image"),
    description: textIn(metadata, "description"),
    amountOf: (units: bigint) => amountText(units, mintingBlob, metadata),
  };
}

/** One side of an order in words. */
export function itemText({ tokenId, name, symbol, amountDecimal }: OwnersOrder["give"]): string {
  if (tokenId === null) return `${grouped(amountDecimal)} ${symbol}`;
  return amountDecimal === "1"
    ? numbered(name, tokenId)
    : `${grouped(amountDecimal)} of ${numbered(name, tokenId)}`;
}

/** A day in the visitor's language. */
export function dayOf(seconds: string): string {
  return new Date(Number(seconds) * 1000).toLocaleDateString(undefined, { dateStyle: "medium" });
}

/** Whether the owner has the vault no more. */
export function isGone({ standing }: OwnVault): boolean {
  return ["withdrawn", "renewed", "traded", "given", "redeemed", "failed"].includes(standing);
}

export interface ShownStanding {
  readonly text: ComponentChildren;
  /**
   * `ready` can be selected, `waiting` is on its way, `spent` and `failed` have come to their end.
   */
  readonly kind: "ready" | "waiting" | "spent" | "failed";
}

/** Sentences for a withdrawal on its way, by the operator's status, and for a paid one. */
export const ON_THE_WAY: Readonly<Record<string, string>> = {
  accepted: "Accepted. It waits for its batch and its turn.",
  submitted: "Sent to L1.",
};
export const PAID = "It is on L1, in your wallet.";

export const isOnL1 = (status: string) => status === "settled" || status === "finalized";

/**
 * How a vault stands by the server's word.
 *
 * @param isRelayed - whether the operator pays for its owners
 * @param order - the newest order of the vault
 */
export function standingAt(
  vault: OwnVault,
  isRelayed: boolean,
  order?: OwnersOrder,
): ShownStanding {
  const { standing, transfer, withdrawal, withdrawnBalance, refusal } = vault;
  if (standing === "arriving")
    return { text: "On its way to you: its batch is not sealed yet.", kind: "waiting" };
  if (standing === "leaving")
    return { text: ON_THE_WAY[withdrawal?.status ?? ""] ?? ON_THE_WAY.accepted, kind: "waiting" };
  if (standing === "withdrawn") return { text: PAID, kind: "spent" };
  if (standing === "renewed") return { text: "You renewed it into another vault.", kind: "spent" };
  if (standing === "traded") return { text: tradedFor(order), kind: "spent" };
  if (standing === "failed") return { text: "The token refused it on L1.", kind: "failed" };
  if (transfer !== null && standing !== "held") {
    const fate = `It is ${fateOf(transfer.to)}`;
    return isOnL1(transfer.status)
      ? { text: `${fate}.`, kind: "spent" }
      : { text: `${fate}; ${transfer.status}.`, kind: "waiting" };
  }
  if (order?.status === "filled") {
    const why = order.failure === null ? "" : ` It waits: ${order.failure}`;
    return {
      text: `Traded for ${itemText(order.want)}. L1 is to settle it.${why}`,
      kind: "waiting",
    };
  }
  if (order?.status === "open") {
    const until = `until ${dayOf(order.deadline)}`;
    return { text: `Offered for ${itemText(order.want)}, ${until}.`, kind: "ready" };
  }
  const can =
    isRelayed && vault.transferable
      ? "You can withdraw it or give it away."
      : "You can withdraw it.";
  if (withdrawal?.status === "failed") {
    const why = withdrawal.failure ?? "no reason given";
    return { text: `The withdrawal failed: ${why}`, kind: "ready" };
  }
  if (refusal !== undefined)
    return { text: `Its token does not take it on L1 for now: ${refusal}`, kind: "ready" };
  if (withdrawnBalance === 0n) return { text: can, kind: "ready" };
  const taken = <Amount key="taken" of={vault} amount={withdrawnBalance} />;
  return { text: [taken, ` of it is gone already. ${can}`], kind: "ready" };
}

function tradedFor(order: OwnersOrder | undefined): string {
  if (order?.status !== "settled") return "It is somebody else's, by a trade.";
  return `Traded for ${itemText(order.want)}.`;
}
