import { createClient, custom, erc20Abi } from "viem";
import { readContract } from "viem/actions";
import * as exit from "../../../core/exit/browser.ts";
import type { Hash } from "../../../core/index.ts";
import { connectWallet } from "../../../core/l1/index.ts";
import type { Provider } from "../shared/wallets.tsx";

// An owner's own withdrawal through its wallet: the part of the pages that needs an Ethereum
// library.

export { parseExitKit } from "../../../core/exit/browser.ts";
export type ExitKit = exit.ExitKit;

export type Outcome = Pick<exit.VaultExit, "vaultId" | "txHash" | "refusal">;

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
  return { left: quantity, ...(await names(provider, kit)) };
}

/** A contract's own name must not fill the page. */
const MOST_CHARACTERS = 60;

/** The token contract's name, symbol and decimals; null where it says nothing. */
async function names(provider: Provider, { token }: ExitKit) {
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
    throw error instanceof Error ? new Error(sentence(error.message), { cause: error }) : error;
  }
}

function connect(wallet: Provider, address: `0x${string}`, { settlement }: ExitKit) {
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
