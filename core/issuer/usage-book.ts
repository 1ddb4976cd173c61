import { DURABLE, TEXT } from "../archive/keys.ts";
import { Turns } from "../at-once.ts";
import type { Address, Hex, Standard, VaultId } from "../model.ts";
import type { Database } from "../store/ports.ts";

/** A vault of the issuer's tokens in a batch. */
export interface IssuedVault {
  readonly vaultId: VaultId;
  readonly owner: Address;
  /** The token's contract. */
  readonly token: Address;
  readonly standard: Standard;
  /** Base units of the token; 1 for an ERC-721. A vault can hold several mints of one owner. */
  readonly amount: bigint;
  /** The minting blob; `0x` for an ERC-20. */
  readonly mintingBlob: Hex;
  /** The token id in the minting blob; null for an ERC-20. */
  readonly tokenId: bigint | null;
}

/**
 * The record that an issuer compares batches with: the application's mints, or a policy. The issuer
 * makes one call at a time.
 *
 * An implementation stores which mints each batch uses, so that no mint is used twice.
 */
export interface MintRecord {
  /**
   * Marks the mints of these vaults as used by the batch, all or none, durably. The same call again
   * changes nothing. A call with other vaults replaces the batch's use of the token; the issuer
   * makes one only if it signed nothing of the token for the batch.
   *
   * @param batchId - such as `validium-12`
   * @param token - contract of all of these vaults
   * @returns null, or why the issuer must not sign for this token
   */
  use(batchId: string, token: Address, vaults: readonly IssuedVault[]): Promise<string | null>;
  /**
   * L1's final history has this batch, and pays exactly these vaults of the issuer's tokens. Frees
   * what the batch used beyond them. Vaults beyond its use count as used, also above a limit.
   */
  settle(batchId: string, vaults: readonly IssuedVault[]): Promise<void>;
}

const usedKey = (line: string) => `used/${line}`;
const usageKey = (batchId: string) => `usage/${batchId}`;

/**
 * Amounts by line. A line is a text that names the counted thing: the token's contract, then parts
 * behind slashes.
 */
export type Lines = ReadonlyMap<string, bigint>;

/** A batch's use, and the UTC day of its first request. */
interface Usage {
  readonly day: string;
  readonly lines: Lines;
}

/**
 * Counts what batches use against limits, in a store.
 *
 * ```
 * used/<line>       decimal: units that all batches together use of a line
 * usage/<batch id>  JSON: what a batch uses, until L1's final history has the batch
 * ```
 */
export abstract class UsageBook implements MintRecord {
  protected readonly store: Database;
  readonly #today: () => string;
  /** Changes run one after another, because each reads totals and writes them. */
  protected readonly turns = new Turns();

  /** @param clock - milliseconds since 1970 */
  constructor(store: Database, clock: () => number = Date.now) {
    this.store = store;
    this.#today = () => new Date(clock()).toISOString().slice(0, 10);
  }

  /** The use of these vaults, by line. */
  protected abstract linesOf(vaults: readonly IssuedVault[], day: string): Lines;

  /** The limit of each line, in order; null for no limit. */
  protected abstract limitsOf(lines: readonly string[]): Promise<readonly (bigint | null)[]>;

  /** The error of a full line. */
  protected abstract refusalOf(line: string, used: bigint, limit: bigint): string;

  use(batchId: string, token: Address, vaults: readonly IssuedVault[]): Promise<string | null> {
    return this.turns.run(async () => {
      const known = await this.#usageOf(batchId);
      const others = [...known.lines].filter(([line]) => line.split("/", 1)[0] !== token);
      const usage = {
        day: known.day,
        lines: new Map([...others, ...this.linesOf(vaults, known.day)]),
      };
      const totals = await this.#totalsAfter(known.lines, usage.lines);
      const grown = [...totals].filter(
        ([line]) => (usage.lines.get(line) ?? 0n) > (known.lines.get(line) ?? 0n),
      );
      const limits = await this.limitsOf(grown.map(([line]) => line));
      for (const [i, [line, used]] of grown.entries()) {
        const limit = limits[i] ?? null;
        if (limit !== null && used > limit) return this.refusalOf(line, used, limit);
      }
      await this.#write(batchId, totals, usage);
      return null;
    });
  }

  settle(batchId: string, vaults: readonly IssuedVault[]): Promise<void> {
    return this.turns.run(async () => {
      const known = await this.#usageOf(batchId);
      await this.#write(
        batchId,
        await this.#totalsAfter(known.lines, this.linesOf(vaults, known.day)),
        null,
      );
    });
  }

  protected usedOf(lines: readonly string[]): Promise<bigint[]> {
    return this.amountsAt(lines.map(usedKey));
  }

  /** The amounts under these keys of the store; 0 for a missing one. */
  protected async amountsAt(keys: string[]): Promise<bigint[]> {
    const stored = await this.store.getMany<string, string>(keys, TEXT);
    return stored.map((text) => BigInt(text ?? "0"));
  }

  /** The new totals of the lines that change when a batch uses `after` instead of `before`. */
  async #totalsAfter(before: Lines, after: Lines): Promise<Map<string, bigint>> {
    const lines = [...new Set([...before.keys(), ...after.keys()])].filter(
      (line) => before.get(line) !== after.get(line),
    );
    const used = await this.usedOf(lines);
    return new Map(
      lines.map((line, i) => [
        line,
        (used[i] ?? 0n) - (before.get(line) ?? 0n) + (after.get(line) ?? 0n),
      ]),
    );
  }

  async #usageOf(batchId: string): Promise<Usage> {
    const stored = await this.store.get<string, string>(usageKey(batchId), TEXT);
    if (stored === undefined) return { day: this.#today(), lines: new Map() };
    const { day, lines } = JSON.parse(stored) as { day: string; lines: [string, string][] };
    return { day, lines: new Map(lines.map(([line, amount]) => [line, BigInt(amount)])) };
  }

  async #write(batchId: string, totals: Lines, usage: Usage | null): Promise<void> {
    const write = this.store.batch();
    for (const [line, used] of totals) {
      if (used === 0n) write.del(usedKey(line), TEXT);
      else write.put(usedKey(line), used.toString(), TEXT);
    }
    if (usage === null) write.del(usageKey(batchId), TEXT);
    else {
      const lines = [...usage.lines].map(([line, amount]) => [line, amount.toString()]);
      write.put(usageKey(batchId), JSON.stringify({ day: usage.day, lines }), TEXT);
    }
    await write.write(DURABLE);
  }
}

/** Sums amounts by line. */
export function summed(entries: Iterable<readonly [line: string, amount: bigint]>): Lines {
  const lines = new Map<string, bigint>();
  for (const [line, amount] of entries) lines.set(line, (lines.get(line) ?? 0n) + amount);
  return lines;
}

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
 * An issuer's rules, for an application without a record of its mints. Within the rules the
 * operator can mint what nobody asked for. A token without rules is refused.
 *
 * @example
 * const record = new MintPolicy(store, [{ token, ids: [{ first: 1n, last: 10_000n }], perDay: 500n
 * }]); const issuer = await Issuer.open({ account, store, l1, record });
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
      if (
        rules.ids !== undefined &&
        !rules.ids.some(({ first, last }) => id >= first && id <= last)
      )
        return 0n;
      return kind === "erc721" ? 1n : (rules.capPerId ?? null);
    });
  }

  protected refusalOf(line: string, used: bigint, limit: bigint): string {
    const [token, kind, name] = line.split("/");
    const what =
      kind === undefined
        ? `of ${token}`
        : `of ${token} ${kind === "day" ? "on" : "with the id"} ${name}`;
    return `the policy allows ${limit} ${what}, and batches would use ${used}`;
  }
}
