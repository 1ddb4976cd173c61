import { DURABLE, TEXT } from "../archive/keys.ts";
import { invalid, MintmarkError } from "../errors.ts";
import type { Address, Hex } from "../model.ts";
import { MAX_UINT256, requireBigint } from "../protocol/bounds.ts";
import { bytesToHex } from "../protocol/hex.ts";
import { canonicalMintingBlob } from "../protocol/minting-blob.ts";
import { requireAddress } from "../validate.ts";
import { type IssuedVault, type Lines, summed, UsageBook } from "./usage-book.ts";

/** A mint that the application records before it asks the operator for it. */
export interface RecordedMint {
  /**
   * The application's own id of the mint, 1 to 255 printable characters. An id stands for one mint.
   */
  readonly id: string;
  /** The token's contract. */
  readonly token: Address;
  readonly owner: Address;
  /** Base units of the token: the mint request's amount times the asset's quantum. */
  readonly amount: bigint;
  /** The token's decimal id, in the scheme `mintmark`. Replaces the minting blob. */
  readonly tokenId?: bigint;
  /** The minting blob of the mint request. Without blob and id, the mint is an ERC-20's. */
  readonly mintingBlob?: string;
}

/** The stored form of a recorded mint. */
interface Entry {
  readonly line: string;
  readonly amount: string;
  readonly cancelled?: true;
}

const mintKey = (id: string) => `mint/${id}`;
const recordedKey = (line: string) => `recorded/${line}`;

const ID = /^[\x21-\x7e]{1,255}$/;

/**
 * The application's own record of its mints, in a store. The application records each mint before
 * it asks the operator for it. The issuer signs only for vaults that recorded mints cover: same
 * owner, token and minting blob, and at most the recorded amount.
 *
 * ```
 * mint/<id>        JSON: a recorded mint
 * recorded/<line>  decimal: base units that are recorded of a token, owner and minting blob
 * ```
 *
 * @example
 * const record = new LocalMintRecord(store);
 * await record.record([{ id: "order-17", token, owner, amount: 1n, tokenId: 17n }]);
 */
export class LocalMintRecord extends UsageBook {
  /**
   * Records mints, all or none, durably. A mint that is recorded already stays as it is. Returns
   * the number of new ones.
   *
   * @throws MintmarkError `idempotency_key_reused` when an id stands for another mint;
   *   `validation_failed`, `amount_out_of_range` or `minting_blob_invalid` for what is no mint
   */
  record(mints: readonly RecordedMint[]): Promise<number> {
    const entries = new Map<string, Entry>();
    for (const mint of mints) {
      const entry = entryOf(mint);
      requireSame(mint.id, entries.get(mint.id), entry);
      entries.set(mint.id, entry);
    }
    return this.turns.run(async () => {
      const ids = [...entries.keys()];
      const known = await this.#entriesOf(ids);
      const added = ids.filter((id, i) => {
        requireSame(id, known[i], entries.get(id) as Entry);
        return known[i] === undefined;
      });
      const news = added.map((id) => [id, entries.get(id) as Entry] as const);
      await this.#write(news, summed(news.map(([, { line, amount }]) => [line, BigInt(amount)])));
      return added.length;
    });
  }

  /**
   * Takes back a recorded mint that the application no longer asks for. Its id stays taken.
   *
   * @throws MintmarkError `mint_not_found`, or `mint_consented` when a batch uses it
   */
  cancel(id: string): Promise<void> {
    return this.turns.run(async () => {
      const [entry] = await this.#entriesOf([id]);
      if (entry === undefined)
        throw new MintmarkError("mint_not_found", `No mint is recorded under ${id}.`);
      if (entry.cancelled) return;
      const { line, amount } = entry;
      const [recorded = 0n] = await this.limitsOf([line]);
      const [used = 0n] = await this.usedOf([line]);
      if (recorded - BigInt(amount) < used) throw new MintmarkError("mint_consented");
      await this.#write([[id, { ...entry, cancelled: true }]], new Map([[line, -BigInt(amount)]]));
    });
  }

  protected linesOf(vaults: readonly IssuedVault[]): Lines {
    return summed(vaults.map((vault) => [lineOf(vault), vault.amount] as const));
  }

  /** The amounts that the application has recorded. */
  protected limitsOf(lines: readonly string[]): Promise<readonly bigint[]> {
    return this.amountsAt(lines.map(recordedKey));
  }

  protected refusalOf(line: string, used: bigint, limit: bigint): string {
    const [token, owner, mintingBlob] = line.split("/");
    const what =
      mintingBlob === "0x" ? `of ${token}` : `of ${token} with the minting blob ${mintingBlob}`;
    return `the application has recorded ${limit} ${what} for ${owner}, and batches would use ${used}`;
  }

  async #entriesOf(ids: readonly string[]): Promise<(Entry | undefined)[]> {
    const stored = await this.store.getMany<string, string>(ids.map(mintKey), TEXT);
    return stored.map((text) => (text === undefined ? undefined : JSON.parse(text)));
  }

  async #write(
    entries: readonly (readonly [id: string, entry: Entry])[],
    changes: Lines,
  ): Promise<void> {
    const lines = [...changes.keys()];
    const recorded = await this.limitsOf(lines);
    const write = this.store.batch();
    for (const [id, entry] of entries) write.put(mintKey(id), JSON.stringify(entry), TEXT);
    for (const [i, line] of lines.entries())
      write.put(recordedKey(line), `${(recorded[i] ?? 0n) + (changes.get(line) ?? 0n)}`, TEXT);
    await write.write(DURABLE);
  }
}

function entryOf({ id, token, owner, amount, tokenId, mintingBlob }: RecordedMint): Entry {
  if (!ID.test(id)) throw invalid("id must have 1 to 255 printable ASCII characters");
  if (typeof amount !== "bigint" || amount < 1n || amount > MAX_UINT256)
    throw new MintmarkError(
      "amount_out_of_range",
      "The amount must be a whole number from 1 to 2^256 - 1.",
    );
  if (tokenId !== undefined && mintingBlob !== undefined)
    throw invalid("give tokenId or the minting blob, not both");
  if (tokenId !== undefined) requireBigint("tokenId", tokenId, 0n, MAX_UINT256);
  const named =
    tokenId === undefined
      ? (mintingBlob ?? "")
      : bytesToHex(new TextEncoder().encode(tokenId.toString()));
  const mint = { token: requireAddress("token", token), owner: requireAddress("owner", owner) };
  return {
    line: lineOf({ ...mint, mintingBlob: canonicalMintingBlob(named) }),
    amount: amount.toString(),
  };
}

function requireSame(id: string, known: Entry | undefined, { line, amount }: Entry): void {
  if (known === undefined || (known.line === line && known.amount === amount)) return;
  throw new MintmarkError("idempotency_key_reused", `Another mint is recorded under ${id}.`);
}

function lineOf({
  token,
  owner,
  mintingBlob,
}: {
  readonly token: Address;
  readonly owner: Address;
  readonly mintingBlob: Hex;
}) {
  return `${token}/${owner}/${mintingBlob}`;
}
