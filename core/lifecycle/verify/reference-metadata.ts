import { collectionRecord, type MetadataRecord, metadataRecord } from "../../store/records.ts";
import * as keys from "../../store/store-keys.ts";
import { factsOf, type Handlers, Kept, Part } from "./reference-records.ts";

/** The part of the reference for metadata. It holds all of it, because any of it can still change. */
export class ReferenceMetadata extends Part {
  readonly #tokens = new Map<string, { readonly key: Buffer; readonly record: MetadataRecord }>();
  readonly #collections = new Kept(this.out, "the metadata of asset", keys.collectionKey, collectionRecord);

  readonly on = {
    metadataSet: ({ assetId, tokens }) => {
      for (const { tokenId, metadata } of tokens) {
        const { key, name, record } = this.#token(assetId, tokenId);
        if (record?.frozen === true || this.#collections.get(assetId)?.frozen === true)
          this.out.report(`frozen metadata of token ${tokenId} changes`);
        this.#tokens.set(name, { key, record: { metadata, frozen: false, updatedAt: this.out.time } });
      }
    },
    metadataFrozen: ({ assetId, tokenIds }) => {
      for (const tokenId of tokenIds) {
        const { key, name, record } = this.#token(assetId, tokenId);
        if (record === undefined) this.out.report(`token ${tokenId} without metadata is frozen`);
        else this.#tokens.set(name, { key, record: { ...record, frozen: true } });
      }
    },
    collectionChanged: (entry) => {
      const { assetId, placeholder, frozen } = entry;
      const before = this.#collections.get(assetId);
      const isHidden = placeholder !== null && placeholder !== before?.placeholder;
      if (before?.frozen === true && (!frozen || isHidden))
        this.out.report(`the frozen metadata of asset ${assetId} changes`);
      this.#collections.set(assetId, { ...factsOf(entry), updatedAt: this.out.time });
    },
  } satisfies Handlers;

  finish(): void {
    for (const { key, record } of this.#tokens.values())
      this.out.put(key, metadataRecord, record, "the metadata of a token");
    this.#collections.finish();
  }

  #token(assetId: string, tokenId: bigint) {
    const key = keys.metadataKey(assetId, tokenId);
    const name = keys.keyString(key);
    return { key, name, record: this.#tokens.get(name)?.record };
  }
}
