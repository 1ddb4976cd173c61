import { MemoryLevel } from "memory-level";
import { recoverTypedDataAddress, toHex } from "viem";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Address, Hash, L1Block, L1Event, SealedBatch } from "../../core/index.ts";
import { Issuer, type IssuerOptions } from "../../core/issuer/issuer.ts";
import { LocalMintRecord, type RecordedMint } from "../../core/issuer/local-record.ts";
import { type AssetPolicy, MintPolicy, type MintRecord } from "../../core/issuer/usage-book.ts";
import { BLOB_BYTES, manifestHash } from "../../core/protocol/blob-batch.ts";
import { assetsHash, consentTypedData } from "../../core/protocol/consent.ts";
import { bytesToHex, keccak256 } from "../../core/protocol/hex.ts";
import { KzgThread } from "../../core/protocol/kzg/kzg-thread.ts";
import { versionedHash } from "../../core/protocol/versioned-hash.ts";
import type { Database } from "../../core/store/ports.ts";
import { ADMIN, GUARDIAN } from "../../scripts/sandbox/accounts.ts";
import {
  entry,
  OWNER,
  registry,
  sealed,
  sealedBlobs,
  TENS,
  TOKENS,
  TYPES,
} from "./signed-batches.ts";

const kzg = new KzgThread();
afterAll(() => kzg.close());

const ISSUER = ADMIN;
const OTHER: Address = `0x${"0b".repeat(20)}`;
const ZERO: Hash = `0x${"00".repeat(32)}`;
const FORGED: Hash = `0x${"11".repeat(32)}`;

/** Epochs of the issuer's assets; what is not here is another's. */
let epochs: Record<Hash, bigint>;
const suspended = new Set<Hash>();
let counts = { countValidium: 0, countRollup: 0 };
beforeEach(() => {
  epochs = { [TYPES.erc721]: 0n, [TYPES.erc20]: 0n, [TENS]: 0n };
  counts = { countValidium: 0, countRollup: 0 };
  suspended.clear();
});

const l1: IssuerOptions["l1"] = {
  ...registry,
  state: async () => ({
    ...counts,
    rootValidium: ZERO,
    rootRollup: ZERO,
    commitment: ZERO,
    history: ZERO,
  }),
  issuers: async (assets) =>
    assets.map(({ assetType }) => {
      const epoch = epochs[assetType];
      return epoch === undefined
        ? { issuer: OTHER, epoch: 0n, suspended: false }
        : { issuer: ISSUER.address, epoch, suspended: suspended.has(assetType) };
    }),
};

const opened: Issuer[] = [];
afterEach(async () => {
  for (const issuer of opened.splice(0)) await issuer.close();
});

async function open(
  record: (store: Database) => MintRecord,
  store: Database = new MemoryLevel(),
): Promise<Issuer> {
  const issuer = await Issuer.open({ account: ISSUER, store, l1, record: record(store), kzg });
  opened.push(issuer);
  return issuer;
}

/** An issuer beside its application's record of these mints. */
async function recording(...mints: RecordedMint[]) {
  const store = new MemoryLevel();
  const record = new LocalMintRecord(store);
  const issuer = await open(() => record, store);
  await record.record(mints);
  return { record, issuer };
}

let nextId = 0;
function minted(
  token: keyof typeof TOKENS,
  text = "",
  amount = 1n,
  owner: Address = OWNER,
): RecordedMint {
  return { id: `order-${nextId++}`, token: TOKENS[token], owner, amount, mintingBlob: toHex(text) };
}

/** L1 has taken this batch, finally; the newest one of its mode. */
async function finalize(
  { archive }: Issuer,
  batch: SealedBatch,
  versionedHashes?: readonly Hash[],
): Promise<void> {
  const { countValidium, countRollup } = archive.state();
  const sequence = BigInt(countValidium + countRollup);
  const { mode, batchNumber, batchRoot, vaultCount, dataHash, data } = batch;
  const place = {
    txHash: ZERO,
    blockNumber: sequence + 1n,
    logIndex: 0,
    committedAt: 1n,
    sequence,
  } as const;
  const blobs = versionedHashes && { blobs: { versionedHashes, assets: batch.assets } };
  const commit = {
    type: "batchCommitted",
    mode,
    batchNumber,
    batchRoot,
    vaultCount,
    dataHash,
  } as const;
  const event: L1Event = { ...commit, ...blobs, ...place };
  await archive.apply(event, data);
  await archive.advance({ number: sequence + 1n, hash: ZERO, timestamp: 1n } satisfies L1Block);
}

const refusal = (reason: string) => ({ name: "Refusal", reason });

const refuses = (issuer: Issuer, batch: SealedBatch, reason = "not_allowed") =>
  expect(issuer.consent(batch), reason).rejects.toMatchObject(refusal(reason));

describe("an issuer beside its application's record", () => {
  test("signs a batch in blobs over its content, and refuses data that is not the content's", async () => {
    const { record, issuer } = await recording(minted("erc721", "1"));
    const batch = await sealedBlobs(
      0,
      [entry("erc721", "1"), null, entry("erc1155", "5", 3n)],
      kzg,
    );
    const changed = (at: number, value: number) => ({
      ...batch,
      data: batch.data.slice().fill(value, at, at + 1),
    });
    const last = batch.data.length - 1;
    const blob = batch.data.length - BLOB_BYTES;
    for (const [claim, reason] of [
      // Another element, one outside of the field, another number of slots, and half a blob.
      [changed(last, 1), "data_hash"],
      [changed(blob, 0xff), "malformed"],
      [changed(4, 4), "data_hash"],
      [{ ...batch, data: batch.data.slice(0, blob + BLOB_BYTES / 2) }, "malformed"],
      [{ ...batch, vaultCount: 4 }, "root"],
      [{ ...batch, batchRoot: ZERO }, "root"],
      [{ ...batch, mode: "validium" }, "data_hash"],
      [{ ...batch, mode: "validium", dataHash: bytesToHex(keccak256(batch.data)) }, "malformed"],
    ] as const)
      await refuses(issuer, claim, reason);
    expect(await issuer.data("zk-rollup", 0)).toBeNull();

    const { signature } = await issuer.consent(batch);
    const assets = [{ chainId: 31_337n, assetType: TYPES.erc721, issuerEpoch: 0n }];
    const message = {
      mode: "zk-rollup",
      batchNumber: 0,
      vaultCount: batch.vaultCount,
      content: batch.content,
      manifest: manifestHash(batch.assets),
      assetsHash: assetsHash(assets),
    } as const;
    const signed = consentTypedData(l1.settlement, message);
    expect(await recoverTypedDataAddress({ ...signed, signature })).toBe(ISSUER.address);
    expect(Buffer.from((await issuer.data("zk-rollup", 0)) ?? []).equals(batch.data)).toBe(true);
    // The mint is used, until a final batch is without it.
    await refuses(issuer, sealed(0, [entry("erc721", "1")]));
    await finalize(issuer, batch, [versionedHash(await kzg.commitment(batch.data.subarray(blob)))]);
    expect(await issuer.settle()).toBe(1);
    await expect(record.cancel(`order-${nextId - 1}`)).rejects.toThrow();
  });

  test("signs for its own tokens beside one that names it and that it does not know", async () => {
    epochs[TYPES.erc1155] = 0n;
    const { record, issuer } = await recording(minted("erc721", "1"), minted("erc20", "", 10n));
    const foreign = entry("erc1155", "5");
    const batch = sealed(0, [entry("erc721", "1"), entry("erc20", "", 10n), foreign]);
    const consent = await issuer.consent(batch);
    expect(consent).toMatchObject({
      assets: [TYPES.erc721, TYPES.erc20],
      refused: [{ assetType: TYPES.erc1155, reason: expect.stringContaining("has recorded 0") }],
    });
    // The mints of the tokens that it signed for are used, also when the operator asks again.
    expect(await issuer.consent(batch)).toEqual(consent);
    await refuses(issuer, sealed(1, [entry("erc20", "", 1n), foreign]));
    // It may still sign for the rest of this content, and for nothing else in its place.
    await record.record([minted("erc1155", "5")]);
    expect((await issuer.consent(batch)).assets).toHaveLength(3);
    const other = sealed(0, [entry("erc721", "1"), entry("erc20", "", 10n), entry("erc1155", "6")]);
    await refuses(issuer, other, "equivocation");
  });

  test("signs for no token whose administrator has suspended it, and for its other ones", async () => {
    const { issuer } = await recording(minted("erc721", "1"), minted("erc20", "", 10n));
    suspended.add(TYPES.erc20);
    const batch = sealed(0, [entry("erc721", "1"), entry("erc20", "", 10n)]);
    expect(await issuer.consent(batch)).toMatchObject({ assets: [TYPES.erc721], refused: [] });
    await refuses(issuer, sealed(1, [entry("erc20", "", 10n)]), "not_issuer");
  });

  test.each<[string, string, SealedBatch]>([
    ["a mint that was not recorded", "not_allowed", sealed(0, [entry("erc721", "9")])],
    ["another owner", "not_allowed", sealed(0, [{ ...entry("erc721", "1"), owner: OTHER }])],
    ["a larger amount", "not_allowed", sealed(0, [entry("erc20", "", 11n)])],
    [
      "a token twice in a batch",
      "not_allowed",
      sealed(0, [entry("erc721", "1"), entry("erc721", "1")]),
    ],
    [
      "base units beyond those recorded",
      "not_allowed",
      sealed(0, [{ ...entry("erc20", "", 2n), assetType: TENS }]),
    ],
    [
      "a root that the data does not make",
      "root",
      { ...sealed(0, [entry("erc721", "1")]), batchRoot: FORGED },
    ],
    [
      "a hash of other data",
      "data_hash",
      { ...sealed(0, [entry("erc721", "1")]), dataHash: FORGED },
    ],
    ["a batch without its assets", "not_issuer", sealed(0, [entry("erc1155", "5")])],
    ["a batch far ahead of L1", "ahead", sealed(16, [entry("erc721", "1")])],
    ["amount 2 of an ERC-721", "malformed", sealed(0, [entry("erc721", "1", 2n)])],
  ])("refuses %s, and uses nothing up", async (_, reason, batch) => {
    const { issuer } = await recording(minted("erc721", "1"), minted("erc20", "", 10n));
    await refuses(issuer, batch, reason);
    expect(await issuer.data("validium", 0)).toBeNull();
    await issuer.consent(
      sealed(0, [entry("erc721", "1"), { ...entry("erc20", "", 1n), assetType: TENS }]),
    );
  });

  test("uses each mint once: neither a later batch nor the other mode can hold it again", async () => {
    const { issuer } = await recording(minted("erc721", "1"), minted("erc20", "", 10n));
    await issuer.consent(sealed(0, [entry("erc721", "1"), entry("erc20", "", 6n)]));
    for (const mode of ["validium", "zk-rollup"] as const) {
      for (const again of [entry("erc721", "1"), entry("erc20", "", 5n)]) {
        await refuses(issuer, sealed(1, [again], mode));
      }
    }
    await issuer.consent(sealed(1, [entry("erc20", "", 4n)], "zk-rollup"));
  });

  test("signs a second content of a batch only if the vaults of its own tokens stand there unchanged", async () => {
    const { record, issuer } = await recording(minted("erc721", "1"), minted("erc721", "2"));
    const others = (text: string) => entry("erc1155", text, 3n);
    await issuer.consent(sealed(0, [entry("erc721", "1"), others("5"), others("6")]));
    // A void vault of another issuer's token changes the content.
    await issuer.consent(sealed(0, [entry("erc721", "1"), null, others("6")]));
    const changed: SealedBatch[] = [
      sealed(0, [entry("erc721", "2"), others("5"), others("6")]),
      sealed(0, [entry("erc721", "1"), entry("erc721", "2"), others("6")]),
      sealed(0, [null, others("5"), entry("erc721", "1")]),
    ];
    for (const batch of changed) await refuses(issuer, batch, "equivocation");
    // An asset of which it signed a vault stays unchanged also when it is no longer its own.
    delete epochs[TYPES.erc721];
    epochs[TYPES.erc1155] = 0n;
    await record.record([minted("erc1155", "6", 3n)]);
    await refuses(issuer, sealed(0, [null, null, others("6")]), "equivocation");
  });

  test("bounds the contents of one batch that it stores", async () => {
    const { issuer } = await recording(minted("erc721", "1"));
    const content = (text: string) => sealed(0, [entry("erc721", "1"), entry("erc1155", text)]);
    for (let i = 0; i < 16; i++) await issuer.consent(content(`${i}`));
    await refuses(issuer, content("one more"), "equivocation");
    await issuer.consent(content("3"));
  });

  test("signs for the epoch in force, as often as the registry changes it", async () => {
    const { issuer } = await recording(minted("erc721", "1"));
    const batch = sealed(0, [entry("erc721", "1")]);
    const { signature } = await issuer.consent(batch);
    epochs[TYPES.erc721] = 2n;
    expect((await issuer.consent(batch)).signature).not.toBe(signature);
  });

  test("names the wallet contract whose key it is as the issuer", async () => {
    const store = new MemoryLevel();
    const record = new LocalMintRecord(store);
    const issuer = await Issuer.open({
      account: GUARDIAN,
      address: ISSUER.address,
      store,
      l1,
      record,
    });
    opened.push(issuer);
    await record.record([minted("erc721", "1")]);
    expect(issuer.address).toBe(ISSUER.address.toLowerCase());
    const { signature } = await issuer.consent(sealed(0, [entry("erc721", "1")]));
    expect(signature).toMatch(/^0x[0-9a-f]{130}$/);
  });

  test("frees what a batch used once another content is final, and nothing before", async () => {
    const { issuer } = await recording(minted("erc721", "1"), minted("erc20", "", 10n));
    const lost = sealed(0, [entry("erc721", "1"), entry("erc20", "", 10n)]);
    await issuer.consent(lost);
    await finalize(issuer, sealed(0, [entry("erc20", "", 4n)]));
    await issuer.settle();
    await refuses(issuer, lost, "committed");
    await issuer.consent(sealed(1, [entry("erc721", "1"), entry("erc20", "", 6n)]));
    await refuses(issuer, sealed(2, [entry("erc20", "", 1n)]));
  });

  test("counts what L1 has taken without its consent, also while the data was missing", async () => {
    const { issuer } = await recording(minted("erc721", "1"), minted("erc721", "2"));
    const [early, later] = [sealed(0, [entry("erc721", "1")]), sealed(1, [entry("erc721", "2")])];
    const { data, ...unknown } = early;
    await finalize(issuer, { ...unknown, data: null as never });
    await finalize(issuer, later);
    expect(await issuer.settle()).toBe(1);
    await refuses(issuer, sealed(2, [entry("erc721", "2")]));
    await issuer.archive.supply("validium", 0, data);
    expect(await issuer.settle()).toBe(1);
    await refuses(issuer, sealed(2, [entry("erc721", "1")]));
    expect(await issuer.settle()).toBe(0);
  });
});

describe("a local record of mints", () => {
  test("takes a mint once under its id", async () => {
    const record = new LocalMintRecord(new MemoryLevel());
    const mint = minted("erc20", "", 5n);
    expect(await record.record([mint, mint])).toBe(1);
    expect(await record.record([mint, minted("erc20", "", 1n)])).toBe(1);
    for (const other of [
      { ...mint, amount: 6n },
      { ...mint, owner: OTHER },
      { ...mint, token: TOKENS.erc721 },
    ]) {
      const unrecorded = minted("erc721", "7");
      await expect(record.record([unrecorded, other])).rejects.toMatchObject({
        code: "idempotency_key_reused",
      });
      await expect(record.cancel(unrecorded.id)).rejects.toMatchObject({ code: "mint_not_found" });
    }
  });

  test.each<[string, Partial<RecordedMint>]>([
    ["validation_failed", { id: "" }],
    ["validation_failed", { id: "a b" }],
    ["validation_failed", { owner: `0x${"00".repeat(20)}` }],
    ["amount_out_of_range", { amount: 0n }],
    ["minting_blob_invalid", { mintingBlob: "0xzz" }],
    ["validation_failed", { tokenId: 1n }],
  ])("refuses with %s what is no mint", async (code, part) => {
    const record = new LocalMintRecord(new MemoryLevel());
    // It throws before it does anything, or rejects.
    await expect(
      (async () => record.record([{ ...minted("erc721", "1"), ...part }]))(),
    ).rejects.toMatchObject({
      code,
    });
  });

  test("takes a mint back that no batch uses, and never the id", async () => {
    const { record, issuer } = await recording();
    const [one, two] = [minted("erc20", "", 5n), minted("erc20", "", 3n)];
    await record.record([one, two]);
    await record.cancel(two.id);
    await record.cancel(two.id);
    expect(await record.record([two])).toBe(0);
    await refuses(issuer, sealed(0, [entry("erc20", "", 6n)]));
    await issuer.consent(sealed(0, [entry("erc20", "", 5n)]));
    await expect(record.cancel(one.id)).rejects.toMatchObject({ code: "mint_consented" });
  });
});

describe("an issuer with a policy", () => {
  let now = Date.UTC(2026, 0, 1, 23);
  const governed = (assets: readonly AssetPolicy[]) =>
    open((store) => new MintPolicy(store, assets, () => now));

  test("signs within it, each ERC-721 id once", async () => {
    const issuer = await governed([{ token: TOKENS.erc721, ids: [{ first: 1n, last: 3n }] }]);
    await issuer.consent(sealed(0, [entry("erc721", "1"), entry("erc721", "3")]));
    for (const text of ["4", "0", "1", "hero"]) {
      await refuses(issuer, sealed(1, [entry("erc721", text)]));
    }
    await issuer.consent(sealed(1, [entry("erc721", "2")]));
    // Nor does it sign for a token that the policy does not name.
    await refuses(issuer, sealed(2, [entry("erc20", "", 1n)]));
  });

  test("holds a token to its cap over all batches, in base units", async () => {
    const issuer = await governed([{ token: TOKENS.erc20, cap: 100n }]);
    await issuer.consent(
      sealed(0, [entry("erc20", "", 50n), { ...entry("erc20", "", 4n), assetType: TENS }]),
    );
    await refuses(issuer, sealed(1, [entry("erc20", "", 11n)]));
    await issuer.consent(sealed(1, [entry("erc20", "", 10n)]));
  });

  test("holds an ERC-1155 id to its own cap", async () => {
    epochs[TYPES.erc1155] = 0n;
    const issuer = await governed([{ token: TOKENS.erc1155, capPerId: 5n }]);
    await issuer.consent(sealed(0, [entry("erc1155", "1", 5n), entry("erc1155", "2", 5n)]));
    await refuses(issuer, sealed(1, [entry("erc1155", "2", 1n)]));
  });

  test("holds a token to its rate a day", async () => {
    const issuer = await governed([{ token: TOKENS.erc20, perDay: 10n }]);
    await issuer.consent(sealed(0, [entry("erc20", "", 10n)]));
    await refuses(issuer, sealed(1, [entry("erc20", "", 1n)]));
    now += 3_600_000;
    await issuer.consent(sealed(1, [entry("erc20", "", 10n)]));
    // The first batch's amount counts for the day on which it was asked for.
    await finalize(issuer, sealed(0, [entry("erc20", "", 10n)]));
    await issuer.settle();
    await refuses(issuer, sealed(2, [entry("erc20", "", 1n)]));
  });
});

test("an issuer signs nothing when it dies between the record's write and its own, and can be asked again", async () => {
  const store = new MemoryLevel();
  const record = new LocalMintRecord(store);
  let dies = true;
  const dying: MintRecord = {
    settle: (...settled) => record.settle(...settled),
    async use(...asked) {
      const reason = await record.use(...asked);
      if (dies) throw new Error("killed");
      return reason;
    },
  };
  const issuer = await open(() => dying, store);
  await record.record([minted("erc721", "1"), minted("erc721", "2")]);
  await expect(issuer.consent(sealed(0, [entry("erc721", "1")]))).rejects.toThrow("killed");
  dies = false;
  // Nothing was signed for the number, so another content may take it, and the mint of the first is
  // free.
  await issuer.consent(sealed(0, [entry("erc721", "2")]));
  await issuer.consent(sealed(1, [entry("erc721", "1")]));
});
