import { type Address, type Hash, SERIES, type Series, type Uuid, type VaultId } from "../model.ts";
import { putUuid } from "./binary.ts";

/**
 * Parts of a key. Ids below 2^64 take 8 bytes, so usual keys are short and neighbours adjacent;
 * other ids take 32.
 */
interface Values {
  readonly u8: number;
  readonly u16: number;
  readonly u32: number;
  readonly u64: number | bigint; // A number is below 2^53
  readonly mode: Series; // 1 byte
  readonly uuid: Uuid;
  readonly address: Address;
  readonly hash: Hash | string;
  readonly tokenId: bigint;
  readonly text: string; // Ends with a zero, which no text holds, so none is a prefix of another
}

/** Bytes of parts whose length does not vary. */
const BYTES = { u8: 1, u16: 2, u32: 4, u64: 8, mode: 1, uuid: 16, address: 20, hash: 32 } as const;

type KeyPart = keyof Values | number;

/**
 * Each kind of key: its first byte and its parts, of which a number is a byte of that value.
 * Integers are big-endian, so byte order is their order. `→` is what the record holds; without one,
 * the key says all.
 */
const KEYS = {
  head: [0x01], // → the end of the journal and the open batches
  secret: [0x02], // → this store's own random key for cursors. The journal does not determine it.
  seed: [0x04], // → this store's own random key for the hashes of tokens
  divergence: [0x05], // Present while L1's history differs from the store's
  // → in a cluster, the number of writes of the shared journal that this server's store holds
  position: [0x06],
  /**
   * → as the folder's file of that name, once a step brought the records to another format than the
   * genesis's.
   */
  format: [0x07],
  journal: [0x03, "u64"], // sequence → journal entry
  application: [0x10, "u32"], // application → application
  key: [0x11, "u32"], // keyIndex → API key
  asset: [0x12, "u32"], // asset → asset
  enablement: [0x13, "u32", "u32"], // application ‖ asset, present when enabled
  user: [0x14, "u32", "u32"], // application ‖ user → user
  userId: [0x15, "u32", "uuid"], // application ‖ userId → user(4) ‖ owner(20)
  webhook: [0x16, "u32"], // webhookIndex → webhook
  rotation: [0x17, "u32", "uuid"], // application ‖ rotationId → the rotation of a webhook's secret
  owner: [0x18, "address", "u32"], // owner ‖ application → the owner's first user there
  ownerUser: [0x18, "address", "u32", "u32"], // owner ‖ application ‖ user → each of the owner's other users
  userReference: [0x19, "u32", "text", "u32"], // application ‖ reference ‖ user, present for such a user
  person: [0x70, "u32"], // personIndex → person
  auditCount: [0x71, "u32"], // log → the number of its entries so far; log: 0 the operator's, else applicationIndex + 1
  audit: [0x72, "u32", "u64"], // log ‖ number → journal sequence of an `acted` entry; the newest ones of each log
  batch: [0x20, "mode", "u32"], // mode ‖ batchNumber → batch
  chunk: [0x21, "mode", "u32", "u16"], // mode ‖ batchNumber ‖ chunk → 64 vaults
  batchData: [0x22, "mode", "u32"], // mode ‖ batchNumber → batch data
  pageRoots: [0x23, "mode", "u32"], // mode ‖ batchNumber → page roots
  batchTokens: [0x24, "mode", "u32"], // mode ‖ batchNumber → hashes of the ERC-721 tokens of a sealed batch
  batchApplications: [0x25, "mode", "u32"], // mode ‖ batchNumber → the applications with vaults in a sealed batch
  voids: [0x26, "mode", "u32"], // mode ‖ batchNumber → the void slots of a sealed batch, if any
  lost: [0x27, "mode", "u32", "u64"], // mode ‖ batchNumber ‖ journal sequence → mints lost when L1's history was adopted
  item: [0x28, "u32", "tokenId", "mode", "u32"], // asset ‖ token id ‖ mode ‖ batchNumber → its slots in a sealed batch
  binding: [0x30, "u32", "tokenId"], // asset ‖ token id → the minting blob bound to an ERC-1155 id
  /**
   * assetId ‖ token id → the metadata of a token. The asset's id outlives a change before its first
   * mint.
   */
  metadata: [0x32, "uuid", "tokenId"],
  collection: [0x33, "uuid"], // assetId → the metadata of an asset
  claim: [0x34, "address"], // link → the claim link of a key with this address
  applicationClaim: [0x35, "u32", "u64"], // application ‖ number → link(20): the application's claim links
  transaction: [0x40, "u32", "u64"], // application ‖ first sequence → journal sequence: the application's transactions
  userTransaction: [0x41, "u32", "u32", "u64"], // application ‖ user ‖ first sequence → journal sequence: the user's
  mint: [0x42, "uuid"], // mintId → journal sequence
  idempotency: [0x43, "u32", "hash"], // application ‖ SHA-256 of the idempotency key → digest(32) ‖ journal sequence
  applicationEvent: [0x44, "u32", "u64"], // application ‖ sequence → event
  /** application ‖ reference ‖ first sequence → journal sequence: the mints with the reference. */
  mintReference: [0x46, "u32", "text", "u64"],
  modeMark: [0x47, "u32", 1, "mode", "u64"], // application ‖ mode ‖ block: a request begins there with the mode
  assetMark: [0x47, "u32", 2, "u32", "u64"], // application ‖ asset ‖ block: a request begins there with the asset
  // application ‖ … ‖ sequence → journal sequence: withdrawals, all or of a user, asset, vault or
  // status' number
  applicationWithdrawal: [0x45, "u32", "u64"],
  applicationDeposit: [0x49, "u32", "u64"], // application ‖ sequence → journal sequence: its deposits
  userWithdrawal: [0x48, "u32", 1, "u32", "u64"],
  assetWithdrawal: [0x48, "u32", 2, "u32", "u64"],
  vaultWithdrawal: [0x48, "u32", 3, "u64", "u64"],
  statusWithdrawal: [0x48, "u32", 4, "u8", "u64"],
  activity: [0x50, "u64"], // vaultId → the withdrawn and reserved amounts of a vault
  withdrawal: [0x51, "uuid"], // withdrawalId → withdrawal
  pendingWithdrawal: [0x52, "u64", "u64"], // chainId ‖ journal sequence → withdrawalId: neither settled nor failed
  cancellation: [0x53, "u64", "address", "hash"], // chainId ‖ signer ‖ id, present when L1 has it: of a list, or of a vault
  withdrawalList: [0x54, "hash"], // digest → a signed list of vaults
  transferList: [0x55, "uuid"], // transferId → transfers with one signature
  transferDigest: [0x56, "hash"], // digest → transferId of these signed transfers; none once they have failed
  /**
   * journal sequence ‖ transferId → transferId: transfers that wait. Those of one adopted history
   * have one sequence.
   */
  waitingTransfers: [0x57, "u64", "uuid"],
  batchTransfers: [0x58, "u32", "u32"], // batchNumber ‖ first slot → transferId: the lists of a rollup batch of transfers
  applicationTransfer: [0x59, "u32", 1, "u64"], // application ‖ sequence → journal sequence: all its lists of transfers
  vaultTransfer: [0x59, "u32", 2, "u64", "u64"], // application ‖ vaultId ‖ sequence → those that spend the vault
  transferSession: [0x5a, "address", "address"], // owner ‖ key → the key's session: it transfers for the owner
  transferApproval: [0x5b, "address", "hash"], // owner ‖ digest → the approval of a list of transfers on L1
  l1Event: [0x60, "u64", "u64", "u32"], // chainId ‖ blockNumber ‖ logIndex → an applied L1 event
  /**
   * vaultId ‖ blockNumber ‖ logIndex → total withdrawn then; blocks of the chain of the vault's
   * token.
   */
  vaultEvent: [0x61, "u64", "u64", "u32"],
  portal: [0x62, "u64"], // chainId → the contract that pays withdrawals there
  import: [0x63, "u64", "mode", "u32"], // chainId ‖ mode ‖ batchNumber → header of a batch that a mirror has imported
  making: [0x65, "u32"], // making → its header, its vaults, and its place on L1
  entry: [0x66, "hash", "tokenId"], // assetType ‖ token id → the making of its latest entry
  unclaimed: [0x67, "address", "u32", "u8"], // owner ‖ making ‖ slot, present while the vault is no user's
  deposit: [0x68, "u64"], // vaultId → journal sequence of the deposit that gave it to a user
  orderTerms: [0x69, "u32"], // application → the rules of its orders
  order: [0x6a, "uuid"], // orderId → order
  orderDigest: [0x6b, "hash"], // digest → orderId of this signed order
  liveOrder: [0x6c, "u64"], // vaultId → orderId of the vault's open order
  // scope ‖ application ‖ … ‖ journal sequence → orderId: the orders of an application, or of a
  // given asset or token; scope: 0 all orders, 1 the open ones
  applicationOrder: [0x6d, "u8", "u32", 0, "u64"],
  assetOrder: [0x6d, "u8", "u32", 1, "u32", "u64"],
  tokenOrder: [0x6d, "u8", "u32", 2, "u32", "tokenId", "u64"],
  // application ‖ asset given ‖ asset wanted ‖ units wanted ‖ journal sequence → orderId: open ones
  pricedOrder: [0x6d, 1, "u32", 3, "u32", "u32", "u64", "u64"],
  makerOrder: [0x6e, "u8", "address", "u64"], // scope ‖ maker ‖ journal sequence → orderId, in all applications
  trade: [0x6f, "u64"], // vaultId → orderId of the vault's order in a fill that waits for L1
  checkpoint: [0x64, "u64", "u64"], // chainId ‖ blockNumber → hash of a block with applied events
} as const satisfies Readonly<Record<string, readonly [prefix: number, ...parts: KeyPart[]]>>;

type Keys = typeof KEYS;
type ValuesOf<Parts> = Parts extends readonly [infer First, ...infer Rest]
  ? First extends keyof Values
    ? [Values[First], ...ValuesOf<Rest>]
    : ValuesOf<Rest>
  : [];

function forKeys<T>(make: (prefix: number, parts: readonly KeyPart[]) => T) {
  const made = Object.entries(KEYS).map(([name, [prefix, ...parts]]) => [
    name,
    make(prefix, parts),
  ]);
  return Object.fromEntries(made) as { readonly [K in keyof Keys]: T };
}

export const PREFIX = forKeys((prefix) => prefix);

/** The beginning of all keys of a kind that have these values first. */
export const prefixOf: {
  readonly [K in keyof Keys]: (...values: Partial<ValuesOf<Keys[K]>>) => Buffer;
} = forKeys(keyMaker);

/** The key of a kind with all its values. */
export const keyOf: { readonly [K in keyof Keys]: (...values: ValuesOf<Keys[K]>) => Buffer } =
  prefixOf;

function keyMaker(
  prefix: number,
  parts: readonly KeyPart[],
): (...values: readonly unknown[]) => Buffer {
  return (...values) => {
    let length = 1;
    let given = 0;
    for (const part of parts) {
      if (typeof part === "number") length++;
      else if (given === values.length) break;
      else if (part === "tokenId") length += (values[given++] as bigint) < 1n << 64n ? 8 : 32;
      else if (part === "text") length += Buffer.byteLength(values[given++] as string) + 1;
      else {
        length += BYTES[part];
        given++;
      }
    }
    const key = Buffer.allocUnsafe(length);
    key[0] = prefix;
    given = 0;
    for (let at = 1, i = 0; at < length; i++) {
      const part = parts[i] as KeyPart;
      at =
        typeof part === "number"
          ? key.writeUInt8(part, at)
          : putPart(key, at, part, values[given++]);
    }
    return key;
  };
}

/** Returns the end of the part. */
function putPart(key: Buffer, at: number, kind: keyof Values, value: unknown): number {
  if (kind === "u32") return key.writeUInt32BE(value as number, at);
  if (kind === "u64") {
    if (typeof value === "bigint") return key.writeBigUInt64BE(value, at);
    key.writeUInt32BE(Math.floor((value as number) / 2 ** 32), at);
    return key.writeUInt32BE((value as number) % 2 ** 32, at + 4);
  }
  if (kind === "mode") return key.writeUInt8(SERIES.indexOf(value as Series), at);
  if (kind === "text") return at + key.write(`${value}\0`, at);
  if (kind === "tokenId") {
    const digits = (value as bigint).toString(16);
    return at + key.write(digits.padStart(digits.length > 16 ? 64 : 16, "0"), at, "hex");
  }
  if (kind === "uuid") putUuid(key, at, value as Uuid);
  else if (kind === "address" || kind === "hash") {
    const written = key.write((value as string).slice(2), at, BYTES[kind], "hex");
    if (written !== BYTES[kind]) throw new Error(`no ${kind}: ${value}`);
  } else key.writeUIntBE(value as number, at, BYTES[kind]);
  return at + BYTES[kind];
}

/** The value of a key that says all. */
export const PRESENT = Buffer.from([1]);

export const HEAD_KEY = keyOf.head();
export const DIVERGENCE_KEY = keyOf.divergence();
export const SECRET_KEY = keyOf.secret();
export const POSITION_KEY = keyOf.position();
export const SEED_KEY = keyOf.seed();
export const FORMAT_KEY = keyOf.format();

/** A key, and a whole number below 2^53 behind it as u64. */
export function requestByKey(of: Buffer, sequence: number): Buffer {
  const key = Buffer.concat([of, Buffer.alloc(8)]);
  putPart(key, of.length, "u64", sequence);
  return key;
}

/** The indexes that hold a list of transfers. */
export const transferIndexes = (
  application: number,
  spent: readonly { readonly vaultId: VaultId }[],
): Buffer[] => [
  prefixOf.applicationTransfer(application),
  ...spent.map(({ vaultId }) => prefixOf.vaultTransfer(application, vaultId)),
];

/**
 * The indexes that hold an order: of all orders, and of the open ones.
 */
export function orderIndexes(
  { applicationIndex, give, want, maker, journalSequence }: OrderPlace,
  scope: "all" | "open",
): Buffer[] {
  const number = scope === "all" ? 0 : 1;
  const { assetIndex, tokenId } = give;
  const of = [number, applicationIndex] as const;
  return [
    keyOf.applicationOrder(...of, journalSequence),
    keyOf.assetOrder(...of, assetIndex, journalSequence),
    ...(tokenId === null ? [] : [keyOf.tokenOrder(...of, assetIndex, tokenId, journalSequence)]),
    keyOf.makerOrder(number, maker, journalSequence),
    ...(scope === "all"
      ? []
      : [
          keyOf.pricedOrder(
            applicationIndex,
            assetIndex,
            want.assetIndex,
            want.amount,
            journalSequence,
          ),
        ]),
  ];
}

/** The facts of an order that its indexes hold. */
interface OrderPlace {
  readonly applicationIndex: number;
  readonly maker: Address;
  readonly journalSequence: number;
  readonly give: { readonly assetIndex: number; readonly tokenId: bigint | null };
  readonly want: { readonly assetIndex: number; readonly amount: bigint };
}

const BLOCK = 64; // Sequences of an application that share marks: few enough to scan
export const blockOf = (sequence: number): number => Math.floor(sequence / BLOCK);
export const firstOfBlock = (block: number): number => block * BLOCK;

/** The inverse of `keyOf.l1Event`, without the chain. */
export const placeOfL1Event = (
  key: Buffer,
): { readonly blockNumber: bigint; readonly logIndex: number } => ({
  blockNumber: key.readBigUInt64BE(9),
  logIndex: key.readUInt32BE(17),
});
/** The inverse of `keyOf.checkpoint`, without the chain. */
export const blockOfCheckpoint = (key: Buffer): bigint => key.readBigUInt64BE(9);

/** A key as the key of a Map. */
export function keyString(key: Buffer): string {
  return key.toString("latin1");
}

/** The first key after all keys that start with `prefix`. */
export function endOf(prefix: Buffer): Buffer {
  const end = Buffer.from(prefix);
  let last = end.length - 1;
  while (end[last] === 0xff) last--;
  end[last] = (end[last] ?? 0) + 1;
  return end.subarray(0, last + 1);
}
