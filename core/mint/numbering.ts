import { blobTextOf } from "../protocol/blob.ts";
import { MintColumns } from "../store/mint-columns.ts";
import type { AssetRecord } from "../store/records.ts";
import { MAX_SHORT_ID } from "../store/token-id.ts";

/** A request with an id for each token that the engine numbers, one entry a token. */
export interface Numbered {
  readonly columns: MintColumns;
  /** By entry here: the entry of the original request. */
  readonly origins: Uint32Array;
}

/** Gives each entry without a token id the next ids of its asset, in the order of the request. */
export function numberTokens(columns: MintColumns, assetAt: (assetIndex: number) => AssetRecord): Numbered {
  const { count, assetIndex, mode, amountHigh, amountLow } = columns;
  const numbered = new MintColumns(columns.minted);
  const origins = new Uint32Array(columns.minted);
  const next = new Map<number, bigint>();
  const texts: Uint8Array[] = [];
  let end = 0;
  let to = 0;
  const add = (entry: number, blob: Uint8Array, shortId: number): void => {
    origins[to] = entry;
    numbered.assetIndex[to] = assetIndex[entry] as number;
    numbered.setMode(to, mode[entry] as number);
    numbered.setAmount(to, amountHigh[entry] as number, amountLow[entry] as number);
    numbered.shortId[to] = shortId;
    const reference = columns.referenceAt(entry);
    if (reference !== null) numbered.setReference(to, reference);
    const metadata = columns.metadataAt(entry);
    if (metadata !== null) numbered.setMetadata(to, metadata);
    end += blob.length;
    numbered.blobEnd[to++] = end;
    texts.push(blob);
  };
  for (let entry = 0; entry < count; entry++) {
    const asset = assetAt(assetIndex[entry] as number);
    if (asset.nextTokenId === null) {
      add(entry, columns.blobBytes(entry), columns.shortId[entry] as number);
      continue;
    }
    let id = next.get(asset.assetIndex) ?? asset.nextTokenId;
    for (let i = columns.quantityAt(entry); i > 0; i--, id++) {
      const isShort = asset.blobScheme === "mintmark" && id <= MAX_SHORT_ID;
      add(entry, Buffer.from(blobTextOf(asset.blobScheme, String(id)), "latin1"), isShort ? Number(id) : -1);
    }
    next.set(asset.assetIndex, id);
  }
  numbered.blobs = Buffer.concat(texts);
  numbered.recipients.push(...columns.recipients);
  let entry = 0;
  for (const entries of columns.userCounts) {
    let tokens = 0;
    for (const behind = entry + entries; entry < behind; entry++) tokens += columns.quantityAt(entry);
    numbered.userCounts.push(tokens);
  }
  return { columns: numbered, origins };
}
