import type { Ledger } from "../ledger/ledger.ts";
import type { PageStart } from "../ledger/list.ts";
import type { TokenSum, TokenSums } from "../ledger/token-sums-cache.ts";
import { findUser } from "../ledger/users.ts";
import type { Hex, Uuid, Vault } from "../model.ts";
import { fastTokenIdOf } from "../store/token-id.ts";
import { addTransactions } from "./token-sums.ts";
import { collect, type Found } from "./transaction-scan.ts";
import { placeIn } from "./transfer-lists.ts";
import { failureOf, readVaults, vaultViews } from "./vaults.ts";

/** A user's balances by token, in the order of first mints: each ERC-721 vault, other vaults summed, no void ones. */
export async function balancesFrom(ledger: Ledger, applicationId: Uuid, userId: Uuid, { after, limit }: PageStart) {
  const holding = await findUser(ledger, applicationId, userId);
  const { applicationIndex, userIndex } = holding;
  const within = { from: 0, to: ledger.application(applicationId).nextSequence };
  const sums = await ledger.tokenSums.of(holding, within.to, (sums) =>
    addTransactions(ledger, holding, sums, within.to),
  );
  const parts = [{ users: [userIndex], type: undefined, within }] as const;
  const scan = { applicationIndex, parts, order: "asc", after } as const;
  const { found, next } = await collect(ledger, scan, limit, (one) => isFirst(ledger, sums, one, userIndex));
  return { data: await balancesOf(ledger, applicationIndex, sums, found), next };
}

/** Whether a mint or a transfer is the first valid one of its token. That one gives the token its place in the list. */
function isFirst(ledger: Ledger, sums: TokenSums, { sequence, source }: Found, userIndex: number): boolean {
  if (source.type === "transfer") {
    const { list, output, assetIndex, blob } = source;
    if (output.holderIndex !== userIndex || placeIn(list, output.position) === null) return false;
    return ledger.standards[assetIndex] === "erc721" || sums.of(assetIndex, blob)?.first === sequence;
  }
  if (source.type !== "mint" || source.mint.amountBefore !== 0n) return false;
  const { assetIndex, blob } = source.mint;
  if (ledger.standards[assetIndex] === "erc721") return failureOf(ledger, source.mint, source.journalSequence) === null;
  return sums.of(assetIndex, blob)?.first === sequence;
}

async function balancesOf(
  ledger: Ledger,
  applicationIndex: number,
  sums: TokenSums,
  found: readonly Found[],
): Promise<Balance[]> {
  const firsts = found.flatMap(({ source }) => (source.type === "withdrawal" ? [] : [{ source, ...tokenOf(source) }]));
  const unique = firsts.filter(({ assetIndex }) => ledger.standards[assetIndex] === "erc721");
  const places = unique.flatMap(({ place }) => place ?? []);
  const vaults = await vaultViews(ledger, applicationIndex, await readVaults(ledger, places));
  const vaultOf = new Map(unique.map(({ source }, i) => [source, vaults[i]]));
  return firsts.flatMap(({ source, assetIndex, blob }) => {
    const vault = vaultOf.get(source);
    const sum = vault === undefined ? sums.of(assetIndex, blob) : undefined;
    if (sum !== undefined) return sum.amount === 0n ? [] : [balanceOfSum(ledger, sum)];
    // A vault that was transferred is its receiver's balance now.
    return vault === undefined || vault.amount === vault.transferredBalance ? [] : [balanceOfVault(vault)];
  });
}

function tokenOf(source: Exclude<Found["source"], { readonly type: "withdrawal" }>) {
  if (source.type === "transfer") return { ...source, place: placeIn(source.list, source.output.position) };
  return { place: source.mint, assetIndex: source.mint.assetIndex, blob: source.mint.blob };
}

function balanceOfVault({ assetId, quantum, decimals, tokenId, mintingBlob, amount, ...vault }: Vault): Balance {
  const { availableBalance: available, withdrawnBalance: withdrawn } = vault;
  return { assetId, quantum, decimals, tokenId, mintingBlob, amount, available, withdrawn };
}

function balanceOfSum(ledger: Ledger, { assetIndex, blob, amount, heldBack, withdrawn }: TokenSum): Balance {
  const { assetId, standard, blobScheme, quantum, decimals } = ledger.assetAt(assetIndex);
  const tokenId = fastTokenIdOf(standard, blobScheme, blob);
  return { assetId, quantum, decimals, tokenId, mintingBlob: blob, amount, available: amount - heldBack, withdrawn };
}

/** A user's balance of one token, over all vaults. */
export interface Balance {
  readonly assetId: Uuid;
  /** The asset's quantum, as in `Vault`. */
  readonly quantum: bigint;
  readonly decimals: number;
  /** null for ERC-20. */
  readonly tokenId: bigint | null;
  readonly mintingBlob: Hex;
  readonly amount: bigint;
  readonly available: bigint;
  readonly withdrawn: bigint;
}
