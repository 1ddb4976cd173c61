import { createHash } from "node:crypto";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { LevelJournal } from "../../../core/index.ts";
import * as model from "../../../core/model.ts";
import { ByteReader } from "../../../core/store/binary.ts";
import { ENTRY_KINDS } from "../../../core/store/entries.ts";
import { FORMAT_VERSION } from "../../../core/store/format.ts";
import { encodeEntry } from "../../../core/store/journal.ts";
import type { Field } from "../../../core/store/layout.ts";
import { decodeMint } from "../../../core/store/mint-entry.ts";
import * as records from "../../../core/store/records.ts";
import * as storeKeys from "../../../core/store/store-keys.ts";
import { encodeBatchTokens } from "../../../core/store/token-index.ts";
import { encodeChunk } from "../../../core/store/vault-columns.ts";
import { openTest, SETTLEMENT } from "./fixture.ts";

/**
 * If this test fails, compare the bytes that a store keeps with those before. If any of them
 * changed, raise FORMAT_VERSION. Then set both values here.
 */
it("has a new version for each change of a persisted byte", async () => {
  expect({ version: FORMAT_VERSION, fingerprint: await fingerprint() }).toEqual({
    version: 11,
    fingerprint: "d7f7d5beff883cf0521bb6a018e9eea11db662eae6544e99aaf916c3670894b8",
  });
});

it.each([
  [
    "a newer version",
    `mintmark store ${FORMAT_VERSION + 1} by 7.8.9\n`,
    /reads format .* version 7\.8\.9/,
  ],
  [
    "an older version",
    `mintmark store ${FORMAT_VERSION - 1} by 0.0.9\n`,
    /reads format .* version 0\.0\.9/,
  ],
  ["a version without formats", null, /early Mintmark wrote it, .* restore the whole folder/],
  ["nobody knows who", "mintmark store", /valid file FORMAT/],
])("refuses the folder of %s, and changes no byte of it", async (_, format, message) => {
  const folder = await mkdtemp(join(tmpdir(), "mintmark-format-"));
  await (await openTest(folder)).close();
  const file = join(folder, "FORMAT");
  const own = await readFile(file);
  if (format === null) await rm(file);
  else await writeFile(file, format);
  const before = await contentOf(folder);
  for (const opening of [() => openTest(folder), () => LevelJournal.open(folder)])
    await expect(opening()).rejects.toMatchObject({
      code: "store_mismatch",
      message: expect.stringMatching(message),
    });
  expect(await contentOf(folder)).toEqual(before);
  await writeFile(file, own);
  await (await openTest(folder, { createIfMissing: false })).close();
  await rm(folder, { recursive: true });
});

async function contentOf(folder: string): Promise<readonly (readonly [string, string])[]> {
  const files = (await readdir(folder)).sort();
  return Promise.all(
    files.map(async (file) => [file, await readFile(join(folder, file), "hex")] as const),
  );
}

const OWNER = `0x${"a1".repeat(20)}` as const;
const HASH = `0x${"b2".repeat(32)}` as const;
const UUID = "0190c0de-0000-7000-8000-0123456789ab";

/**
 * A hash of what each decoder reads from the same bytes, of each key, and of vectors of the
 * protocol.
 */
async function fingerprint(): Promise<string> {
  const hash = createHash("sha256");
  // A key of wrong arguments can leave bytes unset.
  using _ = vi.spyOn(Buffer, "allocUnsafe").mockImplementation((size) => Buffer.alloc(size));
  const add = (...parts: unknown[]) => hash.update(`${JSON.stringify(parts, plain)}\n`);
  const fields = Object.entries<unknown>(records).filter((each): each is [string, Field<unknown>] =>
    isField(each[1]),
  );
  expect(fields.length).toBeGreaterThan(30);
  for (const [name, field] of fields)
    for (const bytes of STREAMS)
      add(
        name,
        read(bytes, (from) => field.read(from)),
      );
  for (const { number, field } of Object.values(ENTRY_KINDS.byName).toSorted(
    (a, b) => a.number - b.number,
  ))
    for (const bytes of STREAMS)
      add(
        number,
        read(bytes, (from) => field.read(from)),
      );
  for (const bytes of STREAMS) add(read(bytes, decodeMint));
  const { chainId, contract } = SETTLEMENT;
  const genesis = {
    formatVersion: 0,
    environment: "live",
    chainId,
    contract,
    engineVersion: 5,
  } as const;
  add(encodeEntry(1, { kind: "genesis", ...genesis }));
  const vault = {
    applicationIndex: 1,
    userIndex: 300,
    owner: OWNER,
    assetIndex: 2,
    amount: 1n << 40n,
  } as const;
  const times = { createdAt: 1_000, updatedAt: 2_000 };
  add(
    encodeChunk(
      [0, 5].map((more) => ({
        ...vault,
        userIndex: vault.userIndex + more,
        mintingBlob: "0x3132",
        ...times,
      })),
    ),
  );
  add(encodeBatchTokens({ hashes: Uint32Array.of(7, 263, 9), slots: Uint32Array.of(0, 1, 2) }));
  add(Object.values(model).filter(Array.isArray), storeKeys.PREFIX);
  for (const [name, keyOf] of Object.entries({ ...storeKeys, ...storeKeys.keyOf })) {
    if (typeof keyOf !== "function") continue;
    // Most take as many values as their key has parts.
    const counts = keyOf.length > 0 ? [keyOf.length] : name === "item" ? [4] : [0, 1, 2, 3];
    const given = counts.flatMap((count) => [...argumentsOf(count)]);
    const found = given.map((values) => [values, keyWith(keyOf as never, values)]);
    const made = found.filter(([, key]) => key !== null);
    expect(made, name).not.toEqual([]);
    add(name, made);
  }
  const vectors = [
    "assets",
    "batch-data",
    "batch-trees",
    "blob-elements",
    "minting-blobs",
    "commitments",
    "manifests",
  ];
  for (const name of [...vectors, "state-trees", "transfers", "vaults"])
    add(name, await readFile(new URL(`../../vectors/${name}.json`, import.meta.url), "utf8"));
  return hash.digest("hex");
}

/** Bytes that are equal in every run: small ones, which are short lengths and known numbers. */
const STREAMS = Array.from({ length: 240 }, (_, stream) => {
  let state = stream + 1;
  return Uint8Array.from({ length: 600 }, () => {
    state = (state * 48_271) % 2_147_483_647;
    return state % ((stream % 24) + 1);
  });
});

function read(bytes: Uint8Array, decode: (from: ByteReader) => unknown) {
  const from = new ByteReader(bytes);
  try {
    const value = decode(from);
    return [value, from.skip(0)];
  } catch {
    return null;
  }
}

function isField(value: unknown): value is Field<unknown> {
  return typeof value === "object" && value !== null && "read" in value && "write" in value;
}

const LISTED = {
  vaultId: 0x1234_5678_9an,
  journalSequence: 5,
  transferId: UUID,
  mode: "zk-rollup",
  batchNumber: 7,
  slot: 9,
  applicationIndex: 1,
  maker: OWNER,
  give: { assetIndex: 2, tokenId: 7n },
  want: { assetIndex: 3, amount: 5n },
};
const VALUES = [
  3,
  LISTED.vaultId,
  "zk-rollup",
  UUID,
  OWNER,
  HASH,
  Buffer.alloc(24, "c3d4"),
  LISTED,
  [LISTED],
];

function* argumentsOf(
  count: number,
  given: readonly unknown[] = [],
): Generator<readonly unknown[]> {
  if (given.length === count) yield given;
  else for (const value of VALUES) yield* argumentsOf(count, [...given, value]);
}

function keyWith(
  keyOf: (...values: readonly unknown[]) => unknown,
  values: readonly unknown[],
): unknown {
  try {
    return keyOf(...values);
  } catch {
    return null;
  }
}

function plain(_: string, value: unknown): unknown {
  if (typeof value === "bigint") return `${value}n`;
  return value instanceof Map ? [...value] : value;
}
