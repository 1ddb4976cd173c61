import { type Hex, MAX_AMOUNT } from "../../../../core/model.ts";
import { blobContent, encodeBlobBatch, manifestHash } from "../../../../core/protocol/blob-batch.ts";
import { ELEMENT_BYTES, elementCount, writeElements } from "../../../../core/protocol/elements.ts";
import { bytesToHex, hexToBytes } from "../../../../core/protocol/hex.ts";
import { ASSETS, derivedAddress, derivedHash, text } from "./derive.ts";

const OWNER = derivedAddress("owner 0");
/** Where the continuations of these vectors lie. */
const CONTINUATION = 0x1234;
const raw = (id: bigint): Hex => `0x${id.toString(16).padStart(64, "0")}`;

const VAULTS: readonly (readonly [name: string, assetIndex: number, amount: bigint, blob: Hex])[] = [
  ["one unit of an ERC-20", 0, 1n, "0x"],
  ["the largest amount", 254, MAX_AMOUNT, "0x"],
  ["id 0", 1, 1n, text("0")],
  ["the last id of 80 bits", 1, 1n, text(String(2n ** 80n - 1n))],
  ["the first id of 81 bits", 1, 1n, text(String(2n ** 80n))],
  ["the last id of 248 bits", 1, 1n, text(String(2n ** 248n - 1n))],
  ["the first id of 249 bits", 1, 1n, text(String(2n ** 248n))],
  ["the last id", 1, 1n, text(String(2n ** 256n - 1n))],
  ["an imx id", 2, 1n, text("{17}:{}")],
  ["a long imx id", 2, 1n, text(`{${2n ** 256n - 1n}}:{}`)],
  ["32 raw bytes of a small id", 3, 1n, raw(7n)],
  ["32 raw bytes of a large id", 3, 1n, raw(2n ** 256n - 1n)],
  ["32 digits, which are a decimal", 3, 1n, text(`1${"0".repeat(31)}`)],
  ["an id and an amount of 40 bits", 4, 2n ** 40n - 1n, text(String(2n ** 40n - 1n))],
  ["two of id 0", 4, 2n, text("0")],
  ["an id of 41 bits with an amount", 4, 2n, text(String(2n ** 40n))],
  ["an amount of 41 bits with an id", 4, 2n ** 40n, text("1")],
  ["an imx id with an amount", 2, 2n, text("{17}:{}")],
  ["32 raw bytes with an amount", 3, 2n, raw(7n)],
  ["a decimal with a zero in front", 1, 1n, text("007")],
  ["an imx id with a blueprint", 2, 1n, text("{17}:{blueprint}")],
  ["an imx id with a zero in front", 2, 1n, text("{07}:{}")],
  ["one byte", 1, 1n, "0x00"],
  ["thirty bytes", 1, 5n, text("x".repeat(30))],
  ["thirty-one bytes", 1, MAX_AMOUNT, text("x".repeat(31))],
  ["sixty-one bytes", 1, 1n, text("x".repeat(61))],
];

/** Vaults that no element holds; they belong into calldata. */
const TOO_LONG: readonly (readonly [name: string, amount: bigint, blob: Hex])[] = [
  ["sixty-two bytes", 1n, text("x".repeat(62))],
  ["255 bytes", 1n, text("x".repeat(255))],
  ["the last id with an amount", 2n, text(String(2n ** 256n - 1n))],
  ["the first number that is no id", 1n, text(String(2n ** 256n))],
];

const u = (value: number | bigint, bytes: number): string => value.toString(16).padStart(2 * bytes, "0");
const start = `01${OWNER.slice(2)}`;
const zero = "00".repeat(32);
const head = (tag: number, payload: string): string => u(tag, 1) + start + payload;
const continuation = (content: string): string => `0a${content.padEnd(62, "0")}`;

/** Elements that are nobody's at slot 0 of a batch with one slot. The others begin at element 1. */
const NOBODYS: readonly (readonly [name: string, elements: readonly string[]])[] = [
  ["a void slot", [zero]],
  ["tag 0 with content", [head(0, u(1, 10))]],
  ...[0x0a, 0x0b, 0x10, 0x72, 0xff].map((tag) => [`tag ${tag}`, [head(tag, u(1, 10))]] as const),
  ["a continuation without a head", [continuation("0131")]],
  ["amount 0", [head(1, u(0, 10))]],
  ["amount 2^63", [head(1, u(2n ** 63n, 10))]],
  ["an amount of 65 bits", [head(1, u(2n ** 64n + 1n, 10))]],
  ["an id with amount 0", [head(5, u(0, 5) + u(7, 5))]],
  ["an id with amount 1 in the form of amounts", [head(5, u(1, 5) + u(7, 5))]],
  ["a long id that is short", [head(6, u(1, 2) + u(0, 8)), continuation(u(7, 31))]],
  ["a long id of 257 bits", [head(6, u(1, 2) + u(256, 8)), continuation(u(7, 31))]],
  ["a long id whose continuation has no tag", [head(6, u(1, 2) + u(1, 8)), `00${u(7, 31)}`]],
  ["a long id whose continuation is a head", [head(6, u(1, 2) + u(1, 8)), head(2, u(7, 10))]],
  ["a long id whose continuation is its own head", [head(6, u(0, 2) + u(1, 8))]],
  ["a long id whose continuation lies past the blobs", [head(6, u(4096, 2) + u(1, 8))]],
  ["a long id whose continuation lies far past the blobs", [head(6, u(0xffff, 2) + u(1, 8))]],
  ["raw bytes that are a decimal", [head(8, u(1, 2) + u(0x31, 8)), continuation("30".repeat(31))]],
  ["bytes of length 0", [head(9, u(1, 2) + u(1, 8)), continuation("00")]],
  ["bytes that are a short id", [head(9, u(1, 2) + u(1, 8)), continuation("0137")]],
  ["bytes that are an id with an amount", [head(9, u(1, 2) + u(2, 8)), continuation("0137")]],
  ["bytes that are an imx id", [head(9, u(1, 2) + u(1, 8)), continuation(`07${text("{17}:{}").slice(2)}`)]],
  ["bytes with something behind them", [head(9, u(1, 2) + u(1, 8)), continuation("017800ff")]],
  ["bytes with amount 0", [head(9, u(1, 2) + u(0, 8)), continuation("0178")]],
  ["bytes with amount 2^63", [head(9, u(1, 2) + u(2n ** 63n, 8)), continuation("0178")]],
  ["31 bytes with one continuation", [head(9, u(1, 2) + u(1, 8)), `0a1f${"78".repeat(30)}`, zero]],
  [
    "31 bytes whose second continuation has another tag",
    [head(9, u(1, 2) + u(1, 8)), `0a1f${"78".repeat(30)}`, `0978${"00".repeat(30)}`],
  ],
  ["62 bytes", [head(9, u(1, 2) + u(1, 8)), `0a3e${"78".repeat(30)}`, `0a${"78".repeat(31)}`]],
  ["255 bytes", [head(9, u(1, 2) + u(1, 8)), `0aff${"78".repeat(30)}`, `0a${"78".repeat(31)}`]],
];

/** Vaults as elements, elements that are nobody's, and the content of blob batches. */
export function blobElementVectors() {
  const { card, coin } = ASSETS;
  const { assets, vaultCount } = encodeBlobBatch([
    { chainId: card.chainId, assetType: card.assetType, owner: OWNER, amount: 1n, blob: text("1") },
    { chainId: coin.chainId, assetType: coin.assetType, owner: OWNER, amount: 9n, blob: "0x" },
  ]);
  return {
    description:
      "Field elements of vaults (docs/protocol.md 4): the head, and the continuations, the first of which lies at place `continuation`. " +
      "`tooLong`: vaults that no element holds. `nobodys`: elements that slot 0 of a batch of one slot does not pay for; all further ones stand " +
      "from element 1 on. `contents`: of blob batches, by count, manifest and versioned hashes.",
    continuation: CONTINUATION,
    owner: OWNER,
    vectors: VAULTS.map(([name, assetIndex, amount, blob]) => {
      const bytes = hexToBytes(blob);
      const elements = new Uint8Array((CONTINUATION + 2) * ELEMENT_BYTES);
      const count = writeElements(elements, 0, CONTINUATION, {
        assetIndex,
        owner: hexToBytes(OWNER),
        amount,
        blob: bytes,
      });
      const places = [0, CONTINUATION, CONTINUATION + 1].slice(0, count);
      const shown = places.map((at) => bytesToHex(elements.subarray(at * ELEMENT_BYTES, (at + 1) * ELEMENT_BYTES)));
      return { name, assetIndex, amount, blob, elements: shown };
    }),
    tooLong: TOO_LONG.map(([name, amount, blob]) => {
      if (elementCount(amount, hexToBytes(blob)) !== 0) throw new Error(name);
      return { name, amount, blob };
    }),
    nobodys: NOBODYS.map(([name, elements]) => ({ name, elements: elements.map((element) => `0x${element}`) })),
    contents: [1, 2, 6].map((blobs) => {
      const versionedHashes = Array.from(
        { length: blobs },
        (_, i) => `0x01${derivedHash(`blob ${i}`).slice(4)}` as Hex,
      );
      const count = blobs === 1 ? vaultCount : blobs * 4096;
      const hash = manifestHash(assets);
      return {
        vaultCount: count,
        assets,
        manifestHash: hash,
        versionedHashes,
        content: blobContent(count, hash, versionedHashes),
      };
    }),
  };
}
