import type { Entry } from "../../store/entries.ts";
import { encodeRecord } from "../../store/layout.ts";
import { type CollectionRecord, collectionRecord, type MetadataRecord, metadataRecord } from "../../store/records.ts";
import * as keys from "../../store/store-keys.ts";
import { type Expected, expectedRecord } from "./reference-records.ts";

interface Token {
  readonly key: Buffer;
  readonly record: MetadataRecord;
}

/** The part of the reference for metadata. It holds all of it, because any of it can still change. */
export class ReferenceMetadata {
  readonly #report: (problem: string) => void;
  readonly #tokens = new Map<string, Token>();
  readonly #collections = new Map<string, CollectionRecord>();

  constructor(report: (problem: string) => void) {
    this.#report = report;
  }

  /** Applies an entry of this part; false for any other. */
  apply(entry: Entry, time: number): boolean {
    switch (entry.kind) {
      case "metadataSet":
        for (const { tokenId, metadata } of entry.tokens) {
          const { key, record } = this.#token(entry.assetId, tokenId);
          const isFrozen = record?.frozen === true || this.#collections.get(entry.assetId)?.frozen === true;
          if (isFrozen) this.#report(`frozen metadata of token ${tokenId} changes`);
          this.#tokens.set(keys.keyString(key), { key, record: { metadata, frozen: false, updatedAt: time } });
        }
        return true;
      case "metadataFrozen":
        for (const tokenId of entry.tokenIds) {
          const { key, record } = this.#token(entry.assetId, tokenId);
          if (record === undefined) this.#report(`token ${tokenId} without metadata is frozen`);
          else this.#tokens.set(keys.keyString(key), { key, record: { ...record, frozen: true } });
        }
        return true;
      case "collectionChanged": {
        const { kind: _, ...facts } = entry;
        const before = this.#collections.get(entry.assetId);
        const isHidden = entry.placeholder !== null && entry.placeholder !== before?.placeholder;
        if (before?.frozen === true && (!entry.frozen || isHidden))
          this.#report(`the frozen metadata of asset ${entry.assetId} changes`);
        this.#collections.set(entry.assetId, { ...facts, updatedAt: time });
        return true;
      }
      default:
        return false;
    }
  }

  finish(): Expected[] {
    return [
      ...[...this.#tokens.values()].map(({ key, record }) =>
        expectedRecord(key, encodeRecord(metadataRecord, record), "the metadata of a token"),
      ),
      ...[...this.#collections.values()].map((record) =>
        expectedRecord(
          keys.collectionKey(record.assetId),
          encodeRecord(collectionRecord, record),
          `the metadata of asset ${record.assetId}`,
        ),
      ),
    ];
  }

  #token(assetId: string, tokenId: bigint): { readonly key: Buffer; readonly record: MetadataRecord | undefined } {
    const key = keys.metadataKey(assetId, tokenId);
    return { key, record: this.#tokens.get(keys.keyString(key))?.record };
  }
}
