import { type Address, type Hex, MAX_AMOUNT } from "../../../../core/model.ts";
import type { BatchDataReason, VaultEntry } from "../../../../core/protocol/batch-data.ts";
import { decodeBatch, placeVaults } from "../../../../core/protocol/batch-decoder.ts";
import { encodeBatchData } from "../../../../core/protocol/batch-encoder.ts";
import { BatchTree } from "../../../../core/protocol/batch-tree.ts";
import { keccak256 } from "../../../../core/protocol/hash.ts";
import { bytesToHex, hexToBytes } from "../../../../core/protocol/hex.ts";
import { batchRoot, manifestRoot } from "../../../../core/protocol/manifest.ts";
import { vaultLeaves } from "../../../../core/protocol/vault.ts";
import { ASSETS, derivedAddress, text, type VectorAsset } from "./derive.ts";

const { coin, card, item, farCard } = ASSETS;
/** Place of every batch of these vectors. */
const PLACE = { mode: "zk-rollup", batchNumber: 3 } as const;

const owner = (n: number): Address => derivedAddress(`owner ${n}`);
const entry = (asset: VectorAsset, ownerNumber: number, blob: Hex, amount = 1n): VaultEntry => ({
  chainId: asset.chainId,
  owner: owner(ownerNumber),
  assetType: asset.assetType,
  amount,
  blob,
});
const times = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));

/** Batches as the core's encoder writes them. */
const ENCODED: Readonly<Record<string, readonly (VaultEntry | null)[]>> = {
  "one ERC-721": [entry(card, 0, text("1"))],
  "a range to one owner": times(100, (i) => entry(card, 0, text(String(950 + i)))),
  "random decimal ids of four owners": times(32, (i) => entry(card, (i * 7) % 4, text(String((i * 7919) % 1000)))),
  "distinct owners": times(20, (i) => entry(card, 100 + i, text(String(i)))),
  "texts of one length and of many": times(16, (i) =>
    entry(item, i % 2, text(i < 8 ? `gem ${i}` : "shard".slice(0, 1 + (i % 5)))),
  ),
  "texts and decimals": times(12, (i) => entry(card, i % 3, text(i % 4 === 0 ? `Sword ${i}` : String(10 + i)))),
  "ERC-20 amounts of every width": times(16, (i) =>
    entry(coin, i % 2, "0x", i === 15 ? MAX_AMOUNT : 1n << BigInt(4 * i)),
  ),
  "three standards and a far chain": [
    entry(coin, 0, "0x", 500n),
    entry(coin, 1, "0x", 70_000n),
    ...times(5, (i) => entry(card, 1, text(String(7 + i)))),
    entry(item, 2, text("potion"), 12n),
    entry(item, 2, text("elixir")),
    entry(farCard, 0, text("{17}:{blueprint}")),
    entry(coin, 0, "0x"),
  ],
  "void slots in front, between and behind": [
    null,
    entry(card, 0, text("41")),
    null,
    null,
    entry(card, 0, text("42")),
    entry(card, 0, text("43")),
    null,
  ],
  "nothing but void slots": [null, null, null],
  "ids of thirty-two digits": times(3, (i) => entry(card, 0, text(String(10n ** 31n + BigInt(i))))),
  "an id past what is packed": [entry(card, 0, text("1".repeat(33)))],
  "a blob of 255 bytes": [entry(item, 0, text("x".repeat(255)), 2n)],
  // 300 owners of two vaults each, so that some have two-byte indices.
  "more owners than a byte counts": times(600, (i) => entry(coin, 1000 + (i % 300), "0x")),
};

const u = (value: number | bigint, bytes: number): string => value.toString(16).padStart(2 * bytes, "0");
const assetEntry = (asset: VectorAsset): string => u(asset.chainId, 8) + asset.assetType.slice(2);
const head = (assets: readonly VectorAsset[], owners: readonly number[] = []): string =>
  `01${u(assets.length, 2)}${assets.map(assetEntry).join("")}${u(owners.length, 2)}${owners.map((n) => owner(n).slice(2)).join("")}`;
const run = (asset: number, form: number, length: number, rest = ""): string =>
  u(asset, 2) + u(form, 1) + u(length, 3) + rest;
const inline = (n: number): string => owner(n).slice(2);
/** amountForm, blobForm, ownerForm */
const form = (amount: number, blob: number, ownerForm: number): number => (amount << 4) | (blob << 2) | ownerForm;

const manyAssets = (count: number): string =>
  `01${u(count, 2)}${times(count, (i) => u(card.chainId, 8) + u(i, 32)).join("")}`;

/** Well-formed data that the core's encoder does not write: other encoders' choices are as good. */
const HAND_MADE: Readonly<Record<string, string>> = {
  "unused owners": head([card], [0, 1]) + run(0, form(0, 1, 0), 1, `02${inline(2)}3737`),
  "an amount wider than it needs": head([coin]) + run(0, form(8, 0, 0), 1, inline(0) + u(1, 8)),
  "a decimal as text": head([card], [0]) + run(0, form(0, 1, 3), 1, `0000${u(1, 1)}35`),
  "texts of one length": head([item], [0, 1]) + run(0, form(0, 1, 1), 3, `03${"00"}616263${"01"}646566${"01"}303037`),
  "texts of their own lengths":
    head([item], [0]) + run(0, form(0, 1, 3), 3, `0000${"00"}${"01"}61${"02"}6262${"01"}63`),
  "packed characters that are no digits":
    head([item], [0]) + run(0, form(0, 2, 3), 2, `0000${"06"}${"abcdef"}${"0a0b0c"}`),
  "packed digits that begin with zeros":
    head([card], [0]) + run(0, form(0, 2, 3), 3, `0000${"03"}${"0007"}${"0000"}${"0123"}`),
  "thirty-two packed characters": head([card], [0]) + run(0, form(0, 2, 3), 1, `0000${"20"}${"f".repeat(32)}`),
  "an odd number of digits": head([card], [0]) + run(0, form(0, 2, 1), 2, `03${"00"}${"0123"}${"00"}${"0999"}`),
  "one digit, zero": head([card], [0]) + run(0, form(0, 2, 3), 1, `0000${"01"}${"00"}`),
  "a range to the last number of its digits": head([card], [0]) + run(0, form(0, 3, 3), 3, `0000${"02"}${"97"}`),
  "a range from zero": head([card], [0]) + run(0, form(0, 3, 3), 10, `0000${"01"}${"00"}`),
  "a range over several owners":
    head([card], [0, 1]) + run(0, form(0, 3, 2), 3, `03${"0997"}${"0001"}${"0000"}${"0001"}`),
  "a range of amounts": head([item], [0]) + run(0, form(2, 3, 3), 2, `0000${"02"}${"10"}${"0102"}${"0003"}`),
  "a void run in the middle": `${head([card], [0])}${run(0, form(0, 2, 3), 1, "00000101")}ffff000002${run(0, form(0, 2, 3), 1, "00000102")}`,
};

/** Data that every decoder refuses. */
const REFUSED: readonly (readonly [string, BatchDataReason, string])[] = [
  ["no byte", "truncated", ""],
  ["version 0", "version_unknown", `00${head([card]).slice(2)}ffff000001`],
  ["version 2", "version_unknown", `02${head([card]).slice(2)}ffff000001`],
  ["only a version", "truncated", "01"],
  ["assets that end early", "truncated", head([card]).slice(0, 60)],
  ["no owner count", "truncated", `01${u(1, 2)}${assetEntry(card)}`],
  ["owners that end early", "truncated", `01${u(0, 2)}${u(2, 2)}${inline(0)}`],
  ["no run", "no_run", head([card], [0])],
  ["a byte too many", "truncated", `${head([])}ffff00000100`],
  ["a byte too few", "truncated", `${head([])}ffff0000`],
  ["a run header that ends early", "truncated", head([card]) + u(0, 2)],
  ["a raw run that ends early", "truncated", head([card]) + run(0, form(0, 1, 0), 1)],
  ["a text that ends early", "truncated", head([card]) + run(0, form(0, 1, 0), 1, `02${inline(0)}31`)],
  [
    "a text of its own length that ends early",
    "truncated",
    head([card]) + run(0, form(0, 1, 0), 1, `00${inline(0)}0231`),
  ],
  ["a text without its own length", "truncated", head([card]) + run(0, form(0, 1, 0), 1, `00${inline(0)}`)],
  ["an owner that ends early", "truncated", head([coin]) + run(0, form(0, 0, 0), 1, inline(0).slice(2))],
  ["an amount that ends early", "truncated", head([coin]) + run(0, form(2, 0, 0), 1, `${inline(0)}01`)],
  ["packed digits that end early", "truncated", head([card], [0]) + run(0, form(0, 2, 3), 1, `0000${"03"}${"01"}`)],
  ["a first id that ends early", "truncated", head([card], [0]) + run(0, form(0, 3, 3), 1, `0000${"03"}${"01"}`)],
  ["a run of length 0", "run_empty", head([coin]) + run(0, form(0, 0, 0), 0)],
  ["a void run of length 0", "run_empty", `${head([])}ffff000000`],
  ["2^20 + 1 void slots", "too_many_slots", `${head([])}ffff${u((1 << 20) + 1, 3)}`],
  ["2^20 slots and one", "too_many_slots", `${head([])}ffff${u(1 << 20, 3)}ffff000001`],
  [
    "2^24 - 1 ids of a range",
    "too_many_slots",
    head([card], [0]) + run(0, form(0, 3, 3), 0xffffff, `0000${"08"}${"10000000"}`),
  ],
  ["256 assets", "too_many_assets", manyAssets(256) + u(0, 2)],
  ["65,535 assets, which are not there", "too_many_assets", `01${u(0xffff, 2)}`],
  ["an asset twice", "asset_order", head([coin, coin]) + run(1, form(1, 0, 0), 1, `${inline(0)}09`)],
  ["assets that descend", "asset_order", head([farCard, card]) + run(0, form(0, 1, 0), 1, `01${inline(0)}31`)],
  ["an asset that no vault has", "asset_unused", head([card, farCard]) + run(0, form(0, 1, 0), 1, `01${inline(0)}31`)],
  ["an asset of nothing but void slots", "asset_unused", `${head([card])}ffff000002`],
  ["an asset past the dictionary", "asset_index", head([coin]) + run(1, form(0, 0, 0), 1, inline(0))],
  ["an asset without a dictionary", "asset_index", head([]) + run(0, form(0, 0, 0), 1, inline(0))],
  ["asset 0xfffe", "asset_index", head([coin]) + run(0xfffe, form(0, 0, 0), 1, inline(0))],
  ["an owner past the dictionary, one byte", "owner_index", head([coin], [0]) + run(0, form(0, 0, 1), 1, "01")],
  ["an owner past the dictionary, two bytes", "owner_index", head([coin], [0]) + run(0, form(0, 0, 2), 1, "0001")],
  ["an owner past the dictionary, whole run", "owner_index", head([coin], [0]) + run(0, form(0, 0, 3), 1, "0001")],
  ["an owner 256 past the dictionary", "owner_index", head([coin], [0]) + run(0, form(0, 0, 2), 1, "0100")],
  ["amount form 9", "amount_form", head([coin]) + run(0, form(9, 0, 0), 1, inline(0) + u(1, 9))],
  ["amount form 15", "amount_form", head([coin]) + run(0, form(15, 0, 0), 1, inline(0) + u(1, 15))],
  ["amount 0", "amount_out_of_range", head([coin]) + run(0, form(1, 0, 0), 1, `${inline(0)}00`)],
  ["amount 0 in eight bytes", "amount_out_of_range", head([coin]) + run(0, form(8, 0, 0), 1, inline(0) + u(0, 8))],
  ["amount 2^63", "amount_out_of_range", head([coin]) + run(0, form(8, 0, 0), 1, inline(0) + u(1n << 63n, 8))],
  ["amount 2^64 - 1", "amount_out_of_range", head([coin]) + run(0, form(8, 0, 0), 1, inline(0) + "ff".repeat(8))],
  ["a raw blob of length 0", "blob_empty", head([card]) + run(0, form(0, 1, 0), 1, `00${inline(0)}00`)],
  ["packed, no digits", "digits_out_of_range", head([card], [0]) + run(0, form(0, 2, 3), 1, `0000${"00"}`)],
  [
    "packed, 33 digits",
    "digits_out_of_range",
    head([card], [0]) + run(0, form(0, 2, 3), 1, `0000${"21"}0${"1".repeat(33)}`),
  ],
  ["a range, no digits", "digits_out_of_range", head([card], [0]) + run(0, form(0, 3, 3), 1, `0000${"00"}`)],
  [
    "a range, 33 digits",
    "digits_out_of_range",
    head([card], [0]) + run(0, form(0, 3, 3), 1, `0000${"21"}0${"1".repeat(33)}`),
  ],
  ["a nibble of ten in a range", "digit_invalid", head([card], [0]) + run(0, form(0, 3, 3), 1, `0000${"04"}${"1a00"}`)],
  [
    "a nibble of fifteen at the end of a range",
    "digit_invalid",
    head([card], [0]) + run(0, form(0, 3, 3), 1, `0000${"02"}${"1f"}`),
  ],
  ["a range from 00", "leading_zero", head([card], [0]) + run(0, form(0, 3, 3), 1, `0000${"02"}${"00"}`)],
  ["a range from 012", "leading_zero", head([card], [0]) + run(0, form(0, 3, 3), 1, `0000${"03"}${"0012"}`)],
  ["a front nibble", "digit_invalid", head([card], [0]) + run(0, form(0, 2, 3), 1, `0000${"01"}${"15"}`)],
  ["a front nibble of a range", "digit_invalid", head([card], [0]) + run(0, form(0, 3, 3), 1, `0000${"03"}${"1234"}`)],
  ["a leading zero of a range", "leading_zero", head([card], [0]) + run(0, form(0, 3, 3), 1, `0000${"02"}${"09"}`)],
  ["a range past 99", "range_overflow", head([card], [0]) + run(0, form(0, 3, 3), 4, `0000${"02"}${"97"}`)],
  ["a range past 9", "range_overflow", head([card], [0]) + run(0, form(0, 3, 3), 2, `0000${"01"}${"09"}`)],
  [
    "a range past 32 nines",
    "range_overflow",
    head([card], [0]) + run(0, form(0, 3, 3), 2, `0000${"20"}${"9".repeat(32)}`),
  ],
];

const unknown: VectorAsset = { ...card, chainId: card.chainId + 1n };

/** Well-formed data that L1 and the committee refuse for the sake of its assets. */
const REFUSED_BY_ASSET: readonly (readonly [string, BatchDataReason, string])[] = [
  [
    "an asset that is not registered",
    "asset_unregistered",
    head([unknown]) + run(0, form(0, 1, 0), 1, `01${inline(0)}31`),
  ],
  ["ERC-20 with a text", "blob_form", head([coin]) + run(0, form(0, 1, 0), 1, `01${inline(0)}31`)],
  ["ERC-20 with digits", "blob_form", head([coin], [0]) + run(0, form(0, 2, 3), 1, "00000101")],
  ["ERC-20 with a range", "blob_form", head([coin], [0]) + run(0, form(0, 3, 3), 1, "00000101")],
  ["ERC-721 without a blob", "blob_form", head([card]) + run(0, form(0, 0, 0), 1, inline(0))],
  ["ERC-1155 without a blob", "blob_form", head([item]) + run(0, form(1, 0, 0), 1, `${inline(0)}02`)],
  ["ERC-721 of amount 2", "erc721_amount", head([card]) + run(0, form(1, 1, 0), 1, `01${inline(0)}0231`)],
  ["ERC-721 of amount 1 in a byte", "erc721_amount", head([card]) + run(0, form(1, 1, 0), 1, `01${inline(0)}0131`)],
];

/** Batch data: what the encoder writes, what else is valid, and every rejection. */
export function batchDataVectors() {
  const encoded = Object.entries(ENCODED).map(([name, slots]) => ({
    name,
    encoder: true,
    data: encodeBatchData(slots),
  }));
  const handMade = Object.entries(HAND_MADE).map(([name, data]) => ({
    name,
    encoder: false,
    data: hexToBytes(`0x${data}`),
  }));
  return {
    description:
      "Batch data (docs/protocol.md 4). `assets`: register these first. `vectors`: valid data, its slots (null for a void one), the vault " +
      "tree's root, the batch root and the data hash as batch `batchNumber` of `mode`; `encoder` tells what the core's encoder writes for these slots. " +
      "`refused`: what every decoder refuses, by reason. `refusedByAsset`: what only a decoder that knows the assets refuses.",
    ...PLACE,
    assets: Object.values(ASSETS),
    vectors: [...encoded, ...handMade].map(({ name, encoder, data }) => {
      const { slots, assets } = decodeBatch(data);
      const leaves = vaultLeaves(placeVaults(slots, PLACE.mode, PLACE.batchNumber));
      const content = bytesToHex(new BatchTree(leaves).root);
      return {
        name,
        encoder,
        data: bytesToHex(data),
        dataHash: bytesToHex(keccak256(data)),
        vaultCount: slots.length,
        content,
        batchRoot: batchRoot("calldata", manifestRoot(assets), content),
        ...(slots.length > 100 ? {} : { slots }),
      };
    }),
    refused: REFUSED.map(([name, reason, data]) => ({ name, reason, data: `0x${data}` })),
    refusedByAsset: REFUSED_BY_ASSET.map(([name, reason, data]) => ({ name, reason, data: `0x${data}` })),
  };
}
