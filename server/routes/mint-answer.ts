import { z } from "zod";
import {
  type AcceptedColumns,
  MAX_BATCH_VAULTS,
  type MintResult,
  MODES,
  STATUSES,
} from "../../core/index.ts";
import { decimalAmount, ROLLUP_BIT } from "../../core/internal.ts";
import { AsciiWriter, type BufferPool } from "../http/wire/buffers.ts";
import * as s from "./api/fields.ts";
import { time, writerOf } from "./api/writer.ts";
import { vault } from "./vaults.ts";

const mintTransaction = s.responseComponent("MintTransaction", {
  transactionId: z.string(),
  userIndex: z.int().min(0).describe("Position in the request's `users`."),
  mintIndex: z
    .int()
    .min(0)
    .describe("Position in that user's `mints`, where an entry of `quantity` n counts as n."),
  vaultId: s.outDecimal,
  status: z.enum(STATUSES),
});

const receiptShown = s.responseComponent("MintReceipt", {
  root: s.outHash.describe("Root of the tree of the vaults' leaves, in their order here."),
  count: z.int().describe("The number of these vaults."),
  time: z.int().describe("Time of the acknowledgement in milliseconds since 1970, as signed."),
  signer: s.outAddress,
  signature: z.string().describe("EIP-712 `MintReceipt(bytes32 root,uint32 count,uint64 time)`."),
  chainIds: z.record(z.string(), s.outDecimal).describe("The chain of each asset's token."),
});

export const mintReply = s.responseComponent("MintReply", {
  mintId: s.outUuid,
  vaults: z
    .array(vault)
    .describe("Every vault that the request touched, once, with its state after it."),
  transactions: z.array(mintTransaction).describe("One per entry, in request order."),
  receipt: receiptShown
    .nullable()
    .describe(
      "The operator's signed receipt for the vaults as of this mint, whatever later mints add; null without a receipt key.",
    ),
});

const replyToWire = writerOf(mintReply);
const vaultToWire = writerOf(vault);
const mintedToWire = writerOf(mintTransaction);
const receiptToWire = writerOf(receiptShown);

/**
 * Usual and most bytes of a vault and a transaction: minting blobs have up to 255 bytes, token ids
 * 78 digits, decimal amounts 256, names and symbols 250 characters of up to 4 bytes.
 */
const USUAL_VAULT_BYTES = 704;
const USUAL_TRANSACTION_BYTES = 160;
const MOST_VAULT_BYTES = 4096;
const MOST_TRANSACTION_BYTES = 256;

/** The answer to fewer entries is sent as text, which Node sends together with its header. */
const FEW = 16;
/** Objects that are written as JSON in one turn: a few milliseconds. */
const OBJECTS_AT_ONCE = 500;
/**
 * Entries that are written from columns in one turn: some ten milliseconds with the longest minting
 * blobs.
 */
const COLUMNS_AT_ONCE = 2_000;

/** The result of a mint as JSON, for commands. */
export async function mintToWire(result: MintResult) {
  const { mintId, vaults, transactions } = result;
  return replyToWire({ mintId, vaults, transactions, receipt: await result.receipt() });
}

/**
 * The bytes of `JSON.stringify(await mintToWire(result))`. A long one is made in pieces, each in
 * its turn. The answer to a mint is written from columns in a fraction of the time: it is the most
 * expensive part of a large mint. Only the names of assets need escapes there: the rest is UUIDs,
 * hex, decimals, times, and our own names.
 *
 * @returns the body, and what to call when it is no longer in use; null for nothing
 */
export async function mintAnswer(
  result: MintResult,
  buffers: BufferPool,
  turn: () => Promise<void>,
) {
  const { mintId, columns } = result;
  const receipt = await result.receipt();
  const length = columns === null ? result.transactions.length : columns.assetIndex.length;
  const answer = new AsciiWriter(
    buffers,
    512 + length * (USUAL_VAULT_BYTES + USUAL_TRANSACTION_BYTES),
  );
  answer.text(`{"mintId":"${mintId}","vaults":[`);
  if (columns === null) await addObjects(answer, result.vaults, vaultToWire, turn);
  else await addVaults(answer, columns, turn);
  answer.reserve(TRANSACTIONS.length);
  answer.bytes(TRANSACTIONS);
  if (length >= COLUMNS_AT_ONCE) await turn();
  if (columns === null) await addObjects(answer, result.transactions, mintedToWire, turn);
  else addTransactions(answer, mintId, columns);
  const end = `],"receipt":${receipt === null ? null : JSON.stringify(receiptToWire(receipt))}}`;
  answer.reserve(end.length);
  answer.text(end);
  if (length >= FEW) return { body: answer.written(), sent: () => answer.release() };
  const body = answer.written().toString("utf8");
  answer.release();
  return { body, sent: null };
}

async function addObjects<T>(
  answer: AsciiWriter,
  objects: readonly T[],
  toWire: (object: T) => unknown,
  turn: () => Promise<void>,
): Promise<void> {
  for (let at = 0; at < objects.length; at += OBJECTS_AT_ONCE) {
    if (at > 0) await turn();
    const text = JSON.stringify(objects.slice(at, at + OBJECTS_AT_ONCE).map(toWire));
    answer.utf8(`${at > 0 ? "," : ""}${text.slice(1, -1)}`);
  }
}

const TRANSACTIONS = ascii('],"transactions":[');
const COMMA = ascii(",");
const VAULT = ascii('{"vaultId":"');
const TOKEN = ascii('","tokenId":"');
const NO_TOKEN = ascii('","tokenId":null');
const QUOTE = ascii('"');
const AMOUNT = MODES.map((mode) => ascii(`,"dataAvailabilityMode":"${mode}","amount":"`));

/** Neighbours mostly share holder, asset, amount, batch and times: these are formatted once. */
async function addVaults(
  answer: AsciiWriter,
  columns: AcceptedColumns,
  turn: () => Promise<void>,
): Promise<void> {
  const { users, assetIndex, mode, batchNumber, age, mintingBlobs, mintingBlobEnd } = columns;
  const tokens = new Map<number, string>();
  const owned = new Map<number, Buffer>();
  const amounts = new Map<number, AmountPiece>();
  let states = new Map<number, Buffer>();
  let user = 0;
  let usersEnd = users[0]?.entries ?? 0;
  let batch = -1;
  let batchMode = -1;
  for (const [i, entry] of columns.lastEntries().entries()) {
    while (entry >= usersEnd) {
      usersEnd += users[++user]?.entries ?? Number.POSITIVE_INFINITY;
      owned.clear();
    }
    if (batchNumber[entry] !== batch || mode[entry] !== batchMode) {
      batch = batchNumber[entry] as number;
      batchMode = mode[entry] as number;
      states = new Map();
    }
    if (i > 0 && i % COLUMNS_AT_ONCE === 0) await turn();
    answer.reserve(MOST_VAULT_BYTES);
    if (i > 0) answer.bytes(COMMA);
    answer.bytes(VAULT);
    addVaultId(answer, columns, entry);
    const asset = assetIndex[entry] as number;
    const token = tokens.get(asset) ?? keep(tokens, asset, tokenOf(columns, entry));
    answer.bytes(owned.get(asset) ?? keep(owned, asset, ownership(columns, user, token)));
    const mintingBlobStart = entry === 0 ? 0 : (mintingBlobEnd[entry - 1] as number);
    answer.hex(mintingBlobs, mintingBlobStart, mintingBlobEnd[entry] as number);
    addTokenId(answer, columns, entry, mintingBlobStart);
    answer.bytes(AMOUNT[batchMode] as Buffer);
    const amount = columns.amountAfter(entry);
    const last = amounts.get(asset);
    const shown =
      last?.amount === amount ? last : keep(amounts, asset, amountOf(columns, entry, amount));
    answer.bytes(shown.bytes);
    const since = age[entry] as number;
    answer.bytes(states.get(since) ?? keep(states, since, state(columns, entry)));
  }
}

function keep<Piece>(pieces: Map<number, Piece>, key: number, piece: Piece): Piece {
  pieces.set(key, piece);
  return piece;
}

function tokenOf(columns: AcceptedColumns, entry: number): string {
  const { assetId, assetType, quantum, decimals, name, symbol } = columns.asset(entry);
  const names = `"name":${JSON.stringify(name)},"symbol":${JSON.stringify(symbol)}`;
  return `"assetId":"${assetId}","assetType":"${assetType}",${names},"quantum":"${quantum}","decimals":${decimals}`;
}

function ownership(columns: AcceptedColumns, user: number, token: string): Buffer {
  const { userId, ownerAddress } = columns.users[user] ?? {};
  return Buffer.from(
    `","userId":"${userId}","ownerAddress":"${ownerAddress}",${token},"mintingBlob":"0x`,
  );
}

/** The last amount of an asset, as it is written. */
interface AmountPiece {
  readonly amount: bigint;
  readonly bytes: Buffer;
}

function amountOf(columns: AcceptedColumns, entry: number, amount: bigint): AmountPiece {
  const decimal = decimalAmount(amount, columns.asset(entry));
  return {
    amount,
    bytes: ascii(`${amount}","amountDecimal":"${decimal}","availableBalance":"${amount}`),
  };
}

function state({ mode, batchNumber, age, time: at }: AcceptedColumns, entry: number): Buffer {
  const batchId = `${MODES[mode[entry] as number]}-${batchNumber[entry]}`;
  const createdAt = time(at - (age[entry] as number));
  return ascii(
    `","withdrawnBalance":"0","transferredBalance":"0","batchId":"${batchId}","status":"accepted","createdAt":"${createdAt}","updatedAt":"${time(at)}"}`,
  );
}

function addTokenId(
  answer: AsciiWriter,
  columns: AcceptedColumns,
  entry: number,
  mintingBlobStart: number,
): void {
  const spelt = columns.spellsTokenId(entry);
  const tokenId = spelt ? null : columns.tokenId(entry);
  if (!spelt && tokenId === null) {
    answer.bytes(NO_TOKEN);
    return;
  }
  answer.bytes(TOKEN);
  if (tokenId === null)
    answer.slice(columns.mintingBlobs, mintingBlobStart, columns.mintingBlobEnd[entry] as number);
  else answer.text(`${tokenId}`);
  answer.bytes(QUOTE);
}

function addVaultId(
  answer: AsciiWriter,
  { mode, batchNumber, slot }: AcceptedColumns,
  entry: number,
): void {
  const within = (batchNumber[entry] as number) * MAX_BATCH_VAULTS + (slot[entry] as number);
  if (mode[entry] === 0) answer.decimal(within);
  else answer.text(`${ROLLUP_BIT | BigInt(within)}`);
}

const USER_INDEX = ascii('","userIndex":');
const MINT_INDEX = ascii(',"mintIndex":');
const OF_VAULT = ascii(',"vaultId":"');
const ACCEPTED = ascii('","status":"accepted"}');

function addTransactions(answer: AsciiWriter, mintId: string, columns: AcceptedColumns): void {
  const start = ascii(`{"transactionId":"${mintId}.`);
  let entry = 0;
  for (const [userIndex, { entries }] of columns.users.entries()) {
    for (let mintIndex = 0; mintIndex < entries; mintIndex++, entry++) {
      answer.reserve(MOST_TRANSACTION_BYTES);
      if (entry > 0) answer.bytes(COMMA);
      answer.bytes(start);
      answer.decimal(entry);
      answer.bytes(USER_INDEX);
      answer.decimal(userIndex);
      answer.bytes(MINT_INDEX);
      answer.decimal(mintIndex);
      answer.bytes(OF_VAULT);
      addVaultId(answer, columns, entry);
      answer.bytes(ACCEPTED);
    }
  }
}

function ascii(text: string): Buffer {
  return Buffer.from(text, "latin1");
}
