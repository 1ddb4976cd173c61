import type { Address } from "../../model.ts";
import type { Database } from "../../store/ports.ts";
import { type IssuedVault, type Lines, summed, UsageBook } from "./usage-book.ts";

/** Limits of one token. A missing field sets no limit. */
export interface AssetPolicy {
  /** The token's contract. */
  readonly token: Address;
  /** Allowed ids, both ends included. No effect on an ERC-20. */
  readonly ids?: readonly { readonly first: bigint; readonly last: bigint }[];
  /** Most base units in all batches together. */
  readonly cap?: bigint;
  /** Most base units of one id. An ERC-721 id is minted once in any case. */
  readonly capPerId?: bigint;
  /** Most base units in batches of one UTC day. */
  readonly perDay?: bigint;
}

/**
 * An issuer's rules, for an application without a record of its mints. Within the rules the operator can mint what
 * nobody asked for. A token without rules is refused.
 *
 * @example
 * const record = new MintPolicy(store, [{ token, ids: [{ first: 1n, last: 10_000n }], perDay: 500n }]);
 * const issuer = await Issuer.open({ account, store, l1, record });
 */
export class MintPolicy extends UsageBook {
  readonly #rules: ReadonlyMap<string, AssetPolicy>;

  constructor(store: Database, assets: readonly AssetPolicy[], clock?: () => number) {
    super(store, clock);
    this.#rules = new Map(assets.map((asset) => [asset.token.toLowerCase(), asset]));
  }

  protected linesOf(vaults: readonly IssuedVault[], day: string): Lines {
    return summed(
      vaults.flatMap(({ token, standard, tokenId, amount }): (readonly [string, bigint])[] => [
        [token, amount],
        [`${token}/day/${day}`, amount],
        ...(tokenId === null ? [] : [[`${token}/${standard}/${tokenId}`, amount] as const]),
      ]),
    );
  }

  protected async limitsOf(lines: readonly string[]): Promise<readonly (bigint | null)[]> {
    return lines.map((line) => {
      const [token = "", kind, name = ""] = line.split("/");
      const rules = this.#rules.get(token);
      if (rules === undefined) return 0n;
      if (kind === undefined) return rules.cap ?? null;
      if (kind === "day") return rules.perDay ?? null;
      const id = BigInt(name);
      if (rules.ids !== undefined && !rules.ids.some(({ first, last }) => id >= first && id <= last)) return 0n;
      return kind === "erc721" ? 1n : (rules.capPerId ?? null);
    });
  }

  protected refusalOf(line: string, used: bigint, limit: bigint): string {
    const [token, kind, name] = line.split("/");
    const what = kind === undefined ? `of ${token}` : `of ${token} ${kind === "day" ? "on" : "with the id"} ${name}`;
    return `the policy allows ${limit} ${what}, and batches would use ${used}`;
  }
}
