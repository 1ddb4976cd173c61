import type { Balance, Vault } from "../../../core/index.ts";

/**
 * A user's balance of each token: the sums over its vaults, in the order of their making, without
 * void ones.
 */
export function naiveBalances(vaults: readonly Vault[]): Balance[] {
  const held = vaults.filter(({ status }) => status !== "failed");
  const tokens = Map.groupBy(held, ({ assetId, mintingBlob }) => `${assetId} ${mintingBlob}`);
  const sum = (amounts: readonly bigint[]) => amounts.reduce((total, amount) => total + amount, 0n);
  return [...tokens.values()].flatMap((own) => {
    const [first] = own;
    if (first === undefined) return [];
    const { assetId, quantum, decimals, tokenId, mintingBlob } = first;
    return [
      {
        ...{ assetId, quantum, decimals, tokenId, mintingBlob },
        amount: sum(own.map(({ amount }) => amount)),
        available: sum(own.map(({ availableBalance }) => availableBalance)),
        withdrawn: sum(own.map(({ withdrawnBalance }) => withdrawnBalance)),
      },
    ];
  });
}
