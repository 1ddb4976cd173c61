import { createClient, custom, erc20Abi, parseUnits } from "viem";
import { readContract, signTypedData } from "viem/actions";
import * as exit from "../../../core/exit/browser.ts";
import type { Hash } from "../../../core/index.ts";
import { connectWallet } from "../../../core/l1/index.ts";
import { orderTypedData } from "../../../core/protocol/index.ts";
import type { Provider } from "../shared/wallets.tsx";

// An owner's own transactions through its wallet: the part of the pages that needs an Ethereum
// library.

export { parseExitKit } from "../../../core/exit/browser.ts";
export type ExitKit = exit.ExitKit;

export type RenewedVault = exit.RenewalResult["vaults"][number];

export type Outcome = Pick<exit.VaultExit, "vaultId" | "txHash" | "refusal">;

export { OFFER_FORMAT, parseOffer } from "../../../core/exit/browser.ts";
export type Offer = exit.Offer;

/**
 * The contract's answer on a kit, through its owner's wallet: the units that are left, and its
 * token's names.
 */
export type Checked = Awaited<ReturnType<typeof check>>;

/**
 * Has the kit's contract verify it. Rejects with what is wrong with the kit, and when nothing is
 * left.
 */
export async function check(provider: Provider, address: `0x${string}`, kit: ExitKit) {
  const l1 = await connect(provider, address, kit);
  const { quantity } = await exit.planExit({ kit, l1, account: address });
  return { left: quantity, ...(await names(provider, kit.token)) };
}

/** A token's contract says these; null where it says nothing. */
export type TokenNames = Awaited<ReturnType<typeof names>>;

/** A contract's own name must not fill the page. */
const MOST_CHARACTERS = 60;

/** The token contract's name, symbol and decimals; null where it says nothing. */
export async function names(
  provider: Provider,
  token: Pick<ExitKit["token"], "address" | "standard">,
) {
  const client = createClient({ transport: custom(provider) });
  const at = { abi: erc20Abi, address: token.address } as const;
  const none = () => null;
  const [name, symbol, decimals] = await Promise.all([
    readContract(client, { ...at, functionName: "name" }).catch(none),
    readContract(client, { ...at, functionName: "symbol" }).catch(none),
    token.standard === "erc20"
      ? readContract(client, { ...at, functionName: "decimals" }).catch(none)
      : null,
  ]);
  return {
    name: name?.slice(0, MOST_CHARACTERS) ?? null,
    symbol: symbol?.slice(0, MOST_CHARACTERS) ?? null,
    decimals,
  };
}

/**
 * Withdraws all that is left of the kits' vaults, which one contract pays, by transactions of their
 * owner.
 */
export async function withdraw(
  provider: Provider,
  address: `0x${string}`,
  kits: readonly ExitKit[],
  onSent: (txHash: Hash) => void,
): Promise<readonly Outcome[]> {
  const [kit, ...more] = kits;
  if (kit === undefined) return [];
  const l1 = await connect(provider, address, kit);
  try {
    if (more.length === 0) {
      const { txHash } = await exit.exitWithKit({ kit, l1, account: address, onSent });
      return [{ vaultId: kit.tip.vaultId, txHash, refusal: null }];
    }
    const exits = await exit.exitWithKits({ kits, l1, account: address, onSent });
    return exits.map(({ vaultId, txHash, refusal }) => ({
      vaultId,
      txHash,
      refusal: refusal && sentence(refusal),
    }));
  } catch (error) {
    throw asSentence(error);
  }
}

/**
 * Makes new vaults of all that is left of the kits' vaults, by one transaction of their owner.
 * Resolves once it is mined.
 */
export async function renew(
  provider: Provider,
  address: `0x${string}`,
  kits: readonly [ExitKit, ...ExitKit[]],
  onSent: (txHash: Hash) => void,
): Promise<readonly RenewedVault[]> {
  try {
    const l1 = await connect(provider, address, kits[0]);
    return (await exit.renewWithKits({ kits, l1, account: address, onSent })).vaults;
  } catch (error) {
    throw asSentence(error);
  }
}

/** Tokens that come back from L1 to the settlement contract, and where they are. */
export type Entry = Pick<
  exit.EntryOptions,
  "token" | "standard" | "quantum" | "tokenId" | "units"
> & { readonly settlement: ExitKit["settlement"] };

/** Burns the account's tokens on L1, which makes a vault of them. Resolves once it is mined. */
export async function enter(
  provider: Provider,
  address: `0x${string}`,
  entry: Entry,
  onSent: (txHash: Hash) => void,
): Promise<void> {
  try {
    const l1 = await connect(provider, address, entry);
    await exit.enterToken({ ...entry, l1, account: address, onSent });
  } catch (error) {
    throw asSentence(error);
  }
}

/** An owner wants this for a vault. */
export interface Wanted {
  readonly token: `0x${string}`;
  /** null for ERC-20. */
  readonly tokenId: bigint | null;
  /** Whole tokens, such as `12.5`. */
  readonly amount: string;
}

/** Has the owner sign an offer of a whole vault. Resolves with the text of its file. */
export async function makeOffer(
  provider: Provider,
  address: `0x${string}`,
  kit: ExitKit,
  { token, tokenId, amount }: Wanted,
): Promise<string> {
  const l1 = await connect(provider, address, kit);
  const client = createClient({ transport: custom(provider) });
  const decimals =
    tokenId === null
      ? await readContract(client, { abi: erc20Abi, address: token, functionName: "decimals" })
      : 0;
  const want = { token, id: tokenId ?? 0n, amount: parseUnits(amount, decimals) };
  const order = await exit.prepareOffer({ kit, l1, account: address, want });
  const typed = orderTypedData(kit.settlement, order);
  const signature = await signTypedData(client, { account: address, ...typed });
  return exit.offerText({ kit, order, signature });
}

/** Takes an offer by one transaction of the account, which gives its own kit's vault for it. */
export async function settle(
  provider: Provider,
  address: `0x${string}`,
  { kit, offer }: { readonly kit: ExitKit; readonly offer: exit.Offer },
  onSent: (txHash: Hash) => void,
): Promise<Hash> {
  try {
    const l1 = await connect(provider, address, kit);
    return (await exit.settleWithKits({ kit, offer, l1, account: address, onSent })).txHash;
  } catch (error) {
    throw asSentence(error);
  }
}

function asSentence(error: unknown): unknown {
  return error instanceof Error ? new Error(sentence(error.message), { cause: error }) : error;
}

function connect(
  wallet: Provider,
  address: `0x${string}`,
  { settlement }: Pick<ExitKit, "settlement">,
) {
  return connectWallet({
    wallet: wallet as Parameters<typeof connectWallet>[0]["wallet"],
    address,
    ...settlement,
  });
}

const MEANINGS: readonly (readonly [RegExp, string])[] = [
  [/NotMature\(/, "This token cannot leave yet: it still matures on L1. Try again later."],
  [
    /TokenRefused\(/,
    "The token contract refuses this withdrawal for now: it may be paused, or the token may exist already.",
  ],
  [/VaultSpent\(/, "A transfer takes this vault, so it is no longer yours, or it is redeemed."],
  [/VaultExhausted\(|AmountInvalid\(/, "Nothing is left of this vault."],
  [
    /BatchBeforeRegistration\(|AssetNotRegistered\(/,
    "The contract has no registration of this token that pays this vault.",
  ],
  [/User rejected|denied transaction/i, "You declined the request in your wallet."],
  [
    /insufficient funds/i,
    "This account has too little of the chain's own currency to pay for the transaction.",
  ],
];

/** A refusal as a sentence, with the contract's words when they say more. */
function sentence(reason: string): string {
  return MEANINGS.find(([pattern]) => pattern.test(reason))?.[1] ?? reason;
}
