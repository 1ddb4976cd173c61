import type { Balance, Vault } from "../../../core/index.ts";
import { decimalAmount } from "../../../core/protocol/quantized.ts";

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
    const { assetId, quantum, decimals, name, symbol, tokenId, mintingBlob } = first;
    const amount = sum(own.map((vault) => vault.amount));
    return [
      {
        ...{ assetId, quantum, decimals, name, symbol, tokenId, mintingBlob },
        amount,
        amountDecimal: decimalAmount(amount, first),
        available: sum(own.map(({ availableBalance }) => availableBalance)),
        withdrawn: sum(own.map(({ withdrawnBalance }) => withdrawnBalance)),
      },
    ];
  });
}
