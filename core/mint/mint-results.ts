import { orAborted, type WaitOptions } from "../abort.ts";
import { MintmarkError } from "../errors.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { readUsers } from "../ledger/user-records.ts";
import {
  type Address,
  type Asset,
  batchIdOf,
  type Hex,
  MAX_BATCH_VAULTS,
  MODES,
  type Status,
  type Uuid,
  type Vault,
  type VaultId,
} from "../model.ts";
import { hexToBytes } from "../protocol/hex.ts";
import { tokenIdOfBytes } from "../protocol/minting-blob.ts";
import {
  type MintReceipt,
  receiptContents,
  receiptRoot,
  receiptTypedData,
} from "../protocol/receipt.ts";
import { ROLLUP_BIT } from "../protocol/vault.ts";
import { type Journaled, readMint } from "../store/journal.ts";
import { MintColumns } from "../store/mint-columns.ts";
import {
  type MintJournalEntry,
  PlacedColumns,
  type PlacedMint,
  vaultIdOf,
} from "../store/mint-entry.ts";
import type { AssetFacts } from "../store/records.ts";
import { amountOf, highWord, lowWord } from "../store/vault-columns.ts";
import { findAsset } from "../tenants/asset-view.ts";
import { findMint } from "../vaults/transaction-range.ts";
import { amountIn, lostAt, readVaults, statusOf, vaultViews } from "../vaults/vaults.ts";
import type { Minted } from "./mint-transition.ts";

/**
 * The first answer to a mint. Its lists are made on first access, because they hold an object for
 * each entry and most callers need one of them. The getters belong to the class. As own properties
 * they would give each answer a hidden class of its own in V8, which keeps the answer in memory
 * until the next full collection.
 */
export class AcceptedResult implements MintResult {
  readonly mintId: Uuid;
  readonly replayed: boolean;
  readonly #ledger: Ledger;
  readonly #minted: Minted;
  #columns: MintedColumns | null = null;
  #vaults: Vault[] | null = null;
  #transactions: MintTransaction[] | null = null;

  constructor(ledger: Ledger, minted: Minted, replayed: boolean) {
    this.mintId = minted.header.mintId;
    this.replayed = replayed;
    this.#ledger = ledger;
    this.#minted = minted;
  }

  get vaults(): readonly Vault[] {
    this.#vaults ??= acceptedVaults(this.columns);
    return this.#vaults;
  }

  get transactions(): readonly MintTransaction[] {
    const { columns } = this;
    const at = (entry: number) =>
      ({ vaultId: vaultIdAt(columns, entry), status: "accepted" }) as const;
    this.#transactions ??= transactionsOf(this.#minted.header, at);
    return this.#transactions;
  }

  get columns(): MintedColumns {
    this.#columns ??= new MintedColumns(this.#ledger, this.#minted);
    return this.#columns;
  }

  async receipt({ signal }: WaitOptions = {}): Promise<MintReceipt | null> {
    const { receiptSigner: signer, settlement } = this.#ledger.services;
    if (signer === undefined) return null;
    const { vaults } = this;
    const chainIds: Record<Uuid, bigint> = {};
    for (const { assetId } of vaults)
      chainIds[assetId] ??= findAsset(this.#ledger, assetId, null).chainId;
    const root = receiptRoot(receiptContents(vaults, chainIds));
    const message = { root, count: vaults.length, time: this.#minted.time };
    const signature = await orAborted(
      signer.signTypedData(receiptTypedData(settlement, message)),
      signal,
    );
    return { ...message, signer: signer.address.toLowerCase() as Address, signature, chainIds };
  }

  /** The lists are getters of the class, so JSON would leave them out without this. */
  toJSON(): Omit<MintResult, "columns" | "receipt"> {
    const { mintId, vaults, transactions, replayed } = this;
    return { mintId, vaults, transactions, replayed };
  }
}

/** One for each entry of a mint, in order. */
function transactionsOf(
  { mintId, users }: Pick<MintJournalEntry, "mintId" | "users">,
  at: (entry: number) => Pick<MintTransaction, "vaultId" | "status">,
): MintTransaction[] {
  const transactions: MintTransaction[] = [];
  // Made once: it would be a string for each entry.
  const prefix = `${mintId}.`;
  for (const [userIndex, { count }] of users.entries()) {
    for (let mintIndex = 0; mintIndex < count; mintIndex++) {
      const { vaultId, status } = at(transactions.length);
      transactions.push({
        transactionId: prefix + transactions.length,
        userIndex,
        mintIndex,
        vaultId,
        status,
      });
    }
  }
  return transactions;
}

/** Each vault once, as it stood after its last entry. */
function acceptedVaults(columns: MintedColumns): Vault[] {
  const { time, users } = columns;
  let user = 0;
  let end = users[0]?.entries ?? 0;
  return Array.from(columns.lastEntries(), (entry): Vault => {
    // A user's vaults come together, in the order of the users.
    for (; entry >= end; end += users[user]?.entries ?? 0) user++;
    const { userId, ownerAddress } = users[user] as Minted["users"][number];
    const asset = columns.asset(entry);
    const mode = MODES[columns.mode[entry]!] ?? "validium";
    const amount = columns.amountAfter(entry);
    return {
      vaultId: vaultIdAt(columns, entry),
      userId,
      ownerAddress,
      assetId: asset.assetId,
      assetType: asset.assetType,
      mintingBlob: columns.mintingBlobAt(entry),
      tokenId: columns.tokenId(entry),
      dataAvailabilityMode: mode,
      ...amountIn(asset, amount),
      availableBalance: amount,
      withdrawnBalance: 0n,
      transferredBalance: 0n,
      batchId: batchIdOf(mode, columns.batchNumber[entry]!),
      status: "accepted",
      createdAt: time - columns.age[entry]!,
      updatedAt: time,
    };
  });
}

function vaultIdAt({ mode, batchNumber, slot }: AcceptedColumns, entry: number): VaultId {
  const within = BigInt(batchNumber[entry]! * MAX_BATCH_VAULTS + slot[entry]!);
  return mode[entry] === 0 ? within : ROLLUP_BIT | within;
}

/** A mint as it was accepted, read again from its journal entry. */
async function readMinted(
  ledger: Ledger,
  { time, entry }: Journaled<MintJournalEntry>,
): Promise<Minted> {
  const { applicationIndex, users, mints } = entry;
  const indices = users.map(({ userIndex }) => userIndex);
  const holders = await readUsers(ledger, applicationIndex, indices);
  const columns = new MintColumns(mints.length);
  const placed = new PlacedColumns(mints.length);
  columns.userCounts.push(...users.map(({ count }) => count));
  for (const [i, mint] of mints.entries()) {
    columns.assetIndex[i] = mint.assetIndex;
    columns.setMode(i, MODES.indexOf(mint.mode));
    columns.setAmount(i, highWord(mint.amount), lowWord(mint.amount));
    columns.putMintingBlob(i, hexToBytes(mint.mintingBlob));
    columns.noteShortId(i, ledger.tenants.assetAt(mint.assetIndex));
    placed.batchNumber[i] = mint.batchNumber;
    placed.slot[i] = mint.slot;
    if (mint.amountBefore > 0n)
      placed.grew(i, highWord(mint.amountBefore), lowWord(mint.amountBefore), mint.age);
  }
  return { time, header: entry, columns, placed, users: holders };
}

/** The first answer to the mint at a journal sequence. */
export async function replayedResult(ledger: Ledger, sequence: number): Promise<MintResult> {
  return new AcceptedResult(
    ledger,
    await readMinted(ledger, await readMint(ledger.store, sequence)),
    true,
  );
}

/** Vaults of one mint that are read together. */
const VAULTS_AT_ONCE = 500;

/** A mint with its vaults and statuses as they are now. Throws `mint_not_found`. */
export async function presentResult(
  ledger: Ledger,
  applicationId: Uuid,
  mintId: Uuid,
): Promise<MintResult> {
  const mint = await findMint(ledger, applicationId, mintId);
  const { entry } = mint;
  const isLost = (placed: PlacedMint) => lostAt(ledger, placed, mint.sequence) !== null;
  // A vault that L1's history lacks is gone. Another vault may have its id.
  const places = new Map(
    entry.mints.filter((placed) => !isLost(placed)).map((placed) => [vaultIdOf(placed), placed]),
  );
  const vaults: Vault[] = [];
  const all = [...places.values()];
  // Pieces let other requests run in between.
  for (let at = 0; at < all.length; at += VAULTS_AT_ONCE) {
    const located = await readVaults(ledger, all.slice(at, at + VAULTS_AT_ONCE), null);
    vaults.push(...(await vaultViews(ledger, entry.applicationIndex, located)));
  }
  const transactions = transactionsOf(entry, (i) => {
    const placed = entry.mints[i];
    if (placed === undefined)
      throw new MintmarkError("store_corrupt", "A mint's entry ends early.");
    return {
      vaultId: vaultIdOf(placed),
      status: isLost(placed) ? "failed" : statusOf(ledger, placed),
    };
  });
  const receipt: MintResult["receipt"] = async (options) =>
    ledger.services.receiptSigner === undefined
      ? null
      : new AcceptedResult(ledger, await readMinted(ledger, mint), true).receipt(options);
  return { mintId: entry.mintId, vaults, transactions, columns: null, replayed: false, receipt };
}

/** One entry of a mint request and the vault that it is in. */
export interface MintTransaction {
  readonly transactionId: string;
  /**
   * Position in the request: `/users/<userIndex>/mints/<mintIndex>`. An entry of `quantity` n
   * counts as n entries.
   */
  readonly userIndex: number;
  readonly mintIndex: number;
  readonly vaultId: VaultId;
  readonly status: Status;
}

/** The result of a mint request. */
export interface MintResult {
  readonly mintId: Uuid;
  /**
   * Each vault that the request touched, once, as it stood after the request, in order of first
   * touch.
   */
  readonly vaults: readonly Vault[];
  /** One per entry, in request order. */
  readonly transactions: readonly MintTransaction[];
  /** The answer as typed arrays; null when it was read from disk. */
  readonly columns: AcceptedColumns | null;
  /** Whether an earlier request with the same idempotency key gave this answer. */
  readonly replayed: boolean;
  /**
   * The operator's signed receipt for the vaults as they were acknowledged. It is the same each
   * time; null without a `receiptSigner`. The operator signs on the call, so a mint without a
   * receipt costs no signature. Rejects as the signer does.
   */
  receipt(wait?: WaitOptions): Promise<MintReceipt | null>;
}

/** The part of a mint that stays in memory for its answer. Copies only what the caller asks for. */
class MintedColumns implements AcceptedColumns {
  readonly time: number;
  readonly users: AcceptedColumns["users"];
  readonly assetIndex: Uint32Array;
  readonly mode: Uint8Array;
  readonly mintingBlobs: Uint8Array;
  readonly mintingBlobEnd: Uint32Array;
  readonly batchNumber: Uint32Array;
  readonly slot: Uint32Array;
  readonly age: Float64Array;
  readonly #ledger: Ledger;
  readonly #columns: MintColumns;
  readonly #placed: PlacedColumns;

  constructor(ledger: Ledger, { time, columns, placed, users }: Minted) {
    this.time = time;
    this.users = users.map(({ userId, ownerAddress }, i) => {
      return { userId, ownerAddress, entries: columns.userCounts[i] ?? 0 };
    });
    ({
      assetIndex: this.assetIndex,
      mode: this.mode,
      mintingBlobs: this.mintingBlobs,
      mintingBlobEnd: this.mintingBlobEnd,
    } = columns);
    ({ batchNumber: this.batchNumber, slot: this.slot, age: this.age } = placed);
    this.#ledger = ledger;
    this.#columns = columns;
    this.#placed = placed;
  }

  asset(entry: number): AssetFacts {
    return this.#ledger.tenants.assetAt(this.#columns.assetIndex[entry]!);
  }

  amountAfter(entry: number): bigint {
    const { amountHigh, amountLow } = this.#columns;
    const { beforeHigh, beforeLow } = this.#placed;
    const before = amountOf(beforeHigh[entry]!, beforeLow[entry]!);
    return before + amountOf(amountHigh[entry]!, amountLow[entry]!);
  }

  spellsTokenId(entry: number): boolean {
    return this.#columns.shortId[entry]! >= 0;
  }

  tokenId(entry: number): bigint | null {
    const short = this.#columns.shortId[entry]!;
    if (short >= 0) return BigInt(short);
    const { standard, mintingBlobScheme } = this.asset(entry);
    return tokenIdOfBytes(standard, mintingBlobScheme, this.#columns.mintingBlobBytes(entry));
  }

  mintingBlobAt(entry: number): Hex {
    return this.#columns.mintingBlobAt(entry);
  }

  lastEntries(): Uint32Array {
    const { count, assetIndex, mode } = this.#columns;
    const last = new Uint32Array(count);
    // Finds only vaults that can grow. An ERC-721 vault is touched once.
    const found = new Map<number, number>();
    let vaults = 0;
    for (let entry = 0; entry < count; entry++) {
      if (this.#ledger.tenants.standards[assetIndex[entry]!] !== "erc721") {
        const place = this.batchNumber[entry]! * MAX_BATCH_VAULTS + this.slot[entry]!;
        // A place is below 2^52, so this is exact.
        const vault = 2 * place + mode[entry]!;
        const earlier = found.get(vault);
        if (earlier !== undefined) {
          last[earlier] = entry;
          continue;
        }
        found.set(vault, vaults);
      }
      last[vaults++] = entry;
    }
    return last.subarray(0, vaults);
  }
}

/**
 * The answer to a fresh mint as typed arrays, one element an entry, all users' entries back to
 * back. It makes no object for each vault and transaction. The arrays belong to the engine: read
 * them, do not change them. `MintResult.vaults` and `.transactions` hold the same as objects.
 */
export interface AcceptedColumns {
  /** ms since 1970. */
  readonly time: number;
  readonly users: readonly {
    readonly userId: Uuid;
    readonly ownerAddress: Address;
    readonly entries: number;
  }[];
  /** Equal for entries of one asset. */
  readonly assetIndex: Uint32Array;
  /** Position in `MODES`. */
  readonly mode: Uint8Array;
  readonly batchNumber: Uint32Array;
  readonly slot: Uint32Array;
  /** Age of the entry's vault, in ms. */
  readonly age: Float64Array;
  /** All entries' values back to back, and the end of each. */
  readonly mintingBlobs: Uint8Array;
  readonly mintingBlobEnd: Uint32Array;
  /** The asset of an entry. */
  asset(
    entry: number,
  ): Pick<Asset, "assetId" | "assetType" | "quantum" | "decimals" | "name" | "symbol">;
  /** The vault's amount after the entry. */
  amountAfter(entry: number): bigint;
  /** The token id of an entry; null for an ERC-20. */
  tokenId(entry: number): bigint | null;
  /** Whether the entry's minting blob is its token id as ASCII decimals. */
  spellsTokenId(entry: number): boolean;
  /** The last entry of each vault, in order of the vaults' first entries. */
  lastEntries(): Uint32Array;
}
