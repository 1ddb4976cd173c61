import { network } from "hardhat";
import * as viem from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { beforeEach, describe, expect, it } from "vitest";
import { packedAssets } from "../../core/l1/arguments.ts";
import * as blobBatch from "../../core/protocol/blob-batch.ts";
import { nextHistory, stateLeaf } from "../../core/protocol/commitment.ts";
import { batchRoot, manifestRoot } from "../../core/protocol/manifest.ts";
import { naiveWords } from "../core/naive/naive-words.ts";
import type { CommittedBatch, Consenting } from "./fixture/batches.ts";
import {
  commitBlobs,
  commitRollup,
  commitValidium,
  consentOf,
  entry,
  proofOf,
  provenArgs,
} from "./fixture/batches.ts";
import { commitBlobBatch, openingWords, pointOf, powerOfRoot, sendBlobs } from "./fixture/blobs.ts";
import { type Deployment, openChain, STANDARD, type TestAsset } from "./fixture/deployment.ts";
import {
  batchArgs,
  listed,
  type Request,
  request,
  signed,
  withdrawArgs,
} from "./fixture/withdrawals.ts";

const { fresh } = await openChain();
const { ELEMENT_BYTES } = blobBatch;
/** A head has form, asset index and owner before the place of its continuation. */
const HEAD_CONTINUATION = 1 + 1 + 20;
const text = (characters: string) => new TextEncoder().encode(characters);
let d: Deployment;
let owner: viem.Address;
beforeEach(async () => {
  d = await fresh();
  owner = d.actors.owner.account.address;
});
const card = (mintingBlob: string) => entry(d.assets.card, owner, mintingBlob);
const coins = (amount: bigint) => entry(d.assets.coin, owner, "", amount);
const items = (mintingBlob: string, amount: bigint) =>
  entry(d.assets.item, owner, mintingBlob, amount);
const withdraw = (asked: Request) => d.state.write.withdraw(withdrawArgs(asked), d.by("owner"));
const refused = (asked: Request) =>
  d.refuses(withdraw(asked), "ProofInvalid", [asked.vault.vaultId]);

describe("a commit by blobs", () => {
  it("puts the content of count, manifest and blobs into state and history, and tells all of it", async () => {
    const before = await d.state.read.history();
    const batch = await commitBlobs(d, [card("1"), null, coins(5n)]);
    const { header, dataHash, assets, blobs } = batch;
    expect(header).toMatchObject({
      vaultCount: 3,
      batchRoot: batchRoot("blobs", manifestRoot(assets), dataHash),
    });
    const leaf = stateLeaf({
      batchNumber: 0,
      vaultCount: 3,
      dataHash,
      batchRoot: header.batchRoot,
    });
    expect(await d.state.read.history()).toBe(nextHistory(before, "zk-rollup", leaf));
    const [event] = await d.state.getEvents.BlobsCommitted({ batchNumber: 0n }, { fromBlock: 0n });
    expect(event?.args).toEqual({
      batchNumber: 0n,
      assets: packedAssets(assets),
      versionedHashes: blobs?.versionedHashes,
    });
    expect(await d.state.read.batchCounts()).toEqual([0n, 1n]);
  });

  it("takes 24,576 slots in six blobs, and calldata before and after", async () => {
    // The third batch writes no new slot of the frontier.
    for (let i = 0; i < 2; i++) await commitRollup(d, [coins(1n)]);
    const batch = await commitBlobs(d, Array(24_576).fill(coins(1n)));
    const after = await commitRollup(d, [coins(2n)]);
    expect([batch.batchNumber, after.batchNumber, batch.header.vaultCount]).toEqual([2, 3, 24_576]);
    const { gasUsed } = await d.publicClient.getTransactionReceipt({ hash: batch.txHash });
    // Instrumented code takes more gas.
    if (process.env.HARDHAT_COVERAGE === undefined)
      expect(Number(gasUsed) / 24_576).toBeLessThanOrEqual(4);
    await withdraw(request(batch, 24_575));
    expect(await d.tokens.coin.read.balanceOf([owner])).toBe(1_000n);
  });

  const commits = (change: Parameters<typeof commitBlobBatch>[2]) =>
    commitBlobBatch(d, [coins(1n)], change);
  it.each([
    ["no slot", { batch: { vaultCount: 0 } }, "VaultCountInvalid"],
    ["more slots than elements", { batch: { vaultCount: 4097 } }, "VaultCountInvalid"],
    ["a batch number that is not the next", { batchNumber: 1n }, "BatchNumberMismatch"],
    [
      "an asset that is not registered",
      { batch: { assets: [{ chainId: 5n, assetType: viem.numberToHex(7, { size: 32 }) }] } },
      "AssetNotRegistered",
    ],
  ] as const)("is refused with %s", async (_, change, error) => {
    await d.refuses(commits(change), error);
  });

  it("is refused without a blob, by anyone but the operator, and while paused", async () => {
    const args = [
      await d.state.read.history(),
      0n,
      1,
      packedAssets([d.assets.coin]),
      "0x",
    ] as const;
    const by = (actor: "operator" | "stranger") => d.state.write.commitBlobBatch(args, d.by(actor));
    await d.refuses(by("operator"), "BlobCountInvalid", [0n]);
    await d.refuses(by("stranger"), "AccessControlUnauthorizedAccount");
    await d.state.write.pauseCommits([true], d.by("guardian"));
    await d.refuses(by("operator"), "CommittingPaused");
  });

  it("is refused from code, which could commit the blobs of one transaction many times", async () => {
    const { operator } = d.actors;
    const args = [
      await d.state.read.history(),
      0n,
      1,
      packedAssets([d.assets.coin]),
      "0x",
    ] as const;
    const payload = viem.encodeFunctionData({
      abi: d.state.abi,
      functionName: "commitBlobBatch",
      args,
    });
    const multisig = await d.viem.deployContract("ContractOperator", [viem.zeroAddress, "0x"]);
    const forwarded = multisig.write.forward([d.state.address, payload], {
      account: operator.account,
    });
    await d.refuses(forwarded, "NotPlainAccount");
    const delegation = `0xef0100${multisig.address.slice(2)}` as const;
    await d.testClient.setCode({ address: operator.account.address, bytecode: delegation });
    await d.refuses(commits({}), "NotPlainAccount", [operator.account.address]);
  });

  it("is refused on a chain that cannot open an element", async () => {
    const old = await network.create({ network: "local", override: { hardfork: "shanghai" } });
    const harness = await old.viem.deployContract("ProofHarness");
    await old.viem.assertions.revertWithCustomError(
      harness.read.committedBlobs(),
      harness,
      "NoPointEvaluation",
    );
  });

  it("is refused with more blobs than six, where a chain lets a transaction carry them", async () => {
    const prague = await network.create({ network: "local", override: { hardfork: "prague" } });
    const harness = await prague.viem.deployContract("ProofHarness");
    const data = viem.encodeFunctionData({ abi: harness.abi, functionName: "committedBlobs" });
    const chain = { publicClient: await prague.viem.getPublicClient(), state: harness };
    await sendBlobs(chain, new Uint8Array(6 * blobBatch.BLOB_ELEMENTS * ELEMENT_BYTES), data);
    const seven = sendBlobs(
      chain,
      new Uint8Array(7 * blobBatch.BLOB_ELEMENTS * ELEMENT_BYTES),
      data,
    );
    await prague.viem.assertions.revertWithCustomErrorWithArgs(seven, harness, "BlobCountInvalid", [
      7n,
    ]);
  });

  describe("of a token with an issuer", () => {
    const issuer = privateKeyToAccount(viem.keccak256(viem.toHex("issuer")));
    let sword: TestAsset;
    let consenting: Consenting;
    beforeEach(async () => {
      sword = await d.register(
        "erc721",
        (await d.mintable.erc721({ issuer: issuer.address })).address,
      );
      consenting = consentOf(d, issuer, [sword]);
    });

    it("leaves the token out without a consent to its content, and pays nobody of it", async () => {
      const slots = [coins(1n), entry(sword, owner, "1")];
      const left = await commitBlobs(d, slots);
      const held = await commitBlobs(d, slots, { consenting });
      expect([left.leftOut.length, held.leftOut.length]).toEqual([1, 0]);
      await d.mature();
      await refused(request(left, 1));
      await withdraw(request(left, 0));
      await withdraw(request(held, 1));
    });

    it("has a consent to one manifest count for no other one with the same blobs", async () => {
      // The blobs name the asset by place 0. Under another manifest that is another asset, or the
      // issuer's has other vaults.
      const slots = [entry(sword, owner, "1")];
      const { blobs } = await commitBlobBatch(d, slots, { consenting });
      const assets = [sword, d.assets.card]
        .map(({ chainId, assetType }) => ({ chainId, assetType }))
        .sort((a, b) => (a.assetType < b.assetType ? -1 : 1));
      const place = assets.findIndex(({ assetType }) => assetType === sword.assetType);
      const signedFor = blobBatch.blobContent(
        1,
        blobBatch.manifestHash(blobs.assets),
        blobs.versionedHashes,
      );
      const moved = (consent: Consenting) =>
        commitBlobs(d, slots, { batch: { assets }, consenting: consent });
      expect(
        (await moved((batch) => consenting({ ...batch, content: signedFor }))).leftOut,
      ).toEqual([place]);
      expect((await moved(consenting)).leftOut).toEqual([]);
    });
  });
});

describe("a vault in blobs", () => {
  it.each([
    ["a decimal id", "7", 7n],
    ["an id of 256 bits, in one continuation", String(2n ** 256n - 1n), 2n ** 256n - 1n],
    [
      "a text of 30 bytes, in one continuation",
      "x".repeat(30),
      BigInt(viem.keccak256(text("x".repeat(30)))),
    ],
    [
      "a text of 61 bytes, in two continuations",
      "x".repeat(61),
      BigInt(viem.keccak256(text("x".repeat(61)))),
    ],
    [
      "a text of 255 bytes, in nine continuations",
      "x".repeat(255),
      BigInt(viem.keccak256(text("x".repeat(255)))),
    ],
  ])("pays an ERC-721 by %s", async (_, mintingBlob, id) => {
    const batch = await commitBlobs(d, [null, coins(1n), card(mintingBlob)]);
    const early = request(batch, 2);
    await d.refuses(withdraw(early), "NotMature");
    await d.mature();
    await withdraw(early);
    expect((await d.tokens.card.read.ownerOf([id])).toLowerCase()).toBe(owner);
    await d.refuses(withdraw(early), "VaultExhausted");
  });

  it("pays a minting blob of each length at which it takes another continuation", async () => {
    const lengths = Array.from({ length: 9 }, (_, i) => [31 * i + 30, 31 * i + 31]).flat();
    const texts = [1, 32, ...lengths.filter((length) => length <= 255), 255].map((length, i) =>
      `${i % 10}`.repeat(length).replace(/^./, "#"),
    );
    const batch = await commitBlobs(
      d,
      texts.map((text, i) => items(text, BigInt(i + 1))),
    );
    for (const [slot, of] of texts.entries()) {
      await withdraw(request(batch, slot));
      const id = BigInt(viem.keccak256(text(of)));
      expect(await d.tokens.item.read.balanceOf([owner, id])).toBe(BigInt(slot + 1));
    }
  });

  it("is paid with exactly an item's least gas, however long its minting blob", async () => {
    const batch = await commitBlobs(d, [card("x".repeat(255)), items("y".repeat(255), 7n)]);
    await d.mature();
    const relayed = [
      await signed(d, d.actors.owner, request(batch, 0)),
      await signed(d, d.actors.owner, request(batch, 1)),
    ];
    const [groups, lists, least] = batchArgs(relayed);
    const low = d.state.write.withdrawBatch([groups, lists, least - 1n], d.by("relayer"));
    await d.refuses(low, "ItemGasTooLow", [least - 1n]);
    const fromBlock = await d.publicClient.getBlockNumber();
    await d.state.write.withdrawBatch([groups, lists, least], d.by("relayer"));
    expect(await d.state.getEvents.WithdrawalFailed({}, { fromBlock })).toEqual([]);
    const id = BigInt(viem.keccak256(text("y".repeat(255))));
    expect(await d.tokens.item.read.balanceOf([owner, id])).toBe(7n);
  });

  it("pays an imx token with and without a blueprint", async () => {
    const slots = ["{7}:{}", "{8}:{gold}"].map((mintingBlob) =>
      entry(d.assets.imxCard, owner, mintingBlob),
    );
    const batch = await commitBlobs(d, slots);
    await d.mature();
    for (const slot of [0, 1]) await withdraw(request(batch, slot));
    expect((await d.tokens.imxCard.read.ownerOf([8n])).toLowerCase()).toBe(owner);
  });

  it("pays in parts, relayed, by one signature for many, and in a batch", async () => {
    const batch = await commitBlobs(d, [
      coins(10n),
      items("3", 9n),
      items("a long name of a thing, longer than one element", 4n),
      coins(7n),
    ]);
    await withdraw(request(batch, 0, { quantity: 4n }));
    const relayer = d.by("relayer");
    const rest = await signed(d, d.actors.owner, request(batch, 0, { quantity: 6n }), {
      withdrawnBefore: 4n,
    });
    const list = await listed(d, d.actors.owner, [
      request(batch, 1),
      request(batch, 2, { quantity: 3n }),
    ]);
    const alone = await signed(d, d.actors.owner, request(batch, 3));
    const wrong = { ...request(batch, 3), siblings: request(batch, 0).siblings };
    const fromBlock = await d.publicClient.getBlockNumber();
    await d.state.write.withdrawBatch(batchArgs([rest, ...list, wrong, alone]), relayer);
    const [failed, ...more] = await d.state.getEvents.WithdrawalFailed({}, { fromBlock });
    expect([failed?.args.vaultId, more]).toEqual([wrong.vault.vaultId, []]);
    expect(failed?.args.reason).toBe(
      viem.encodeErrorResult({
        abi: d.state.abi,
        errorName: "ProofInvalid",
        args: [wrong.vault.vaultId],
      }),
    );
    expect(await d.tokens.coin.read.balanceOf([owner])).toBe(17_000n);
    expect(await d.tokens.item.read.balanceOf([owner, 3n])).toBe(9n);
    const { vaultId } = request(batch, 2).vault;
    expect(await d.state.read.withdrawn([vaultId, STANDARD.erc1155])).toBe(3n);
    expect(await d.state.read.verifyVault(provenArgs(proofOf(batch, 2)))).toBe(3n);
  });

  it("can be voided as the later one, and can void a later one of calldata", async () => {
    const first = await commitBlobs(d, [card("7")]);
    const second = await commitRollup(d, [card("7")]);
    // A second commit of these blobs makes two vaults of one token.
    const third = await commitBlobs(d, [card("7")]);
    const relayer = d.by("relayer");
    const pair = (a: CommittedBatch, b: CommittedBatch) =>
      [...provenArgs(proofOf(a, 0)), ...provenArgs(proofOf(b, 0))] as const;
    await d.refuses(d.state.write.voidDuplicate(pair(third, first), relayer), "NotDuplicates");
    await d.state.write.voidDuplicate(pair(first, second), relayer);
    await d.state.write.voidDuplicate(pair(second, third), relayer);
    await d.mature();
    for (const batch of [second, third])
      await d.refuses(withdraw(request(batch, 0)), "VaultExhausted");
    await withdraw(request(first, 0));
  });
});

describe("nobody is paid", () => {
  /** A request with other openings. */
  const opening = (
    batch: CommittedBatch,
    slot: number,
    places: readonly number[],
    point = pointOf,
  ): Request => {
    if (batch.blobs === undefined) throw new Error("a batch of blobs");
    const { blobs, ...inTree } = batch;
    return { ...request(inTree, slot), siblings: openingWords(blobs, places, point) };
  };

  it("by an element that is not exactly the encoding of the vault that is claimed", async () => {
    const u = (value: number | bigint, bytes: number) =>
      value.toString(16).padStart(2 * bytes, "0");
    const head = (tag: number, payload: string) =>
      `0x${u(tag, 1)}00${owner.slice(2)}${payload}` as const;
    const long = card(String(2n ** 90n));
    const two = items("ab", 2n);
    const [untagged, seven, ab] = [21, 22, 23];
    const claims = [
      [head(0x10, u(2n ** 64n + 5n, 10)), coins(5n)],
      [head(0x00, u(5, 10)), coins(5n)],
      [head(0x0a, u(5, 10)), coins(5n)],
      [head(0x70, u(5, 10)), coins(5n)],
      [head(0x11, u(5, 10)), coins(5n)],
      [viem.zeroHash, coins(5n)],
      [head(0x10, u(0, 10)), coins(0n)],
      [head(0x10, u(2n ** 63n, 10)), coins(2n ** 63n)],
      [head(0x50, u(1, 5) + u(7, 5)), card("7")],
      [head(0x20, u(7, 10)), card("007")],
      [head(0x20, u(7, 10)), entry(d.assets.imxCard, owner, "{7}:{}")],
      [head(0x20, u(2n ** 64n + 7n, 10)), card("7")],
      // Continuations lie among the heads, behind the blob, or have no tag.
      [head(0x21, u(0, 2) + u(0, 8)), long, 0],
      [head(0x21, u(4096, 2) + u(0, 8)), long, 4096],
      [head(0x21, u(untagged, 2) + u(0, 8)), long, untagged],
      // Another form is the vault's, or the tag names another number of continuations.
      [head(0x61, u(seven, 2) + u(1, 8)), card("7"), seven],
      [head(0x60, u(ab, 2) + u(2, 8)), two, ab],
      [head(0x62, u(ab, 2) + u(2, 8)), two, ab],
      [head(0x6f, u(ab, 2) + u(2, 8)), two, ab],
      // Something stands behind the text, or its place is another one than the head's.
      [head(0x61, u(ab + 1, 2) + u(2, 8)), two, ab + 1],
      [head(0x61, u(ab + 1, 2) + u(2, 8)), two, ab],
    ] as const;
    expect(claims).toHaveLength(untagged);
    const vaultCount = claims.length;
    const elements = new Uint8Array(blobBatch.BLOB_BYTES);
    const all = [
      ...claims.map(([element]) => element),
      `0x00${u(2n ** 90n, 31)}`,
      `0x0a0137${"00".repeat(29)}`,
      `0x0a026162${"00".repeat(28)}`,
      `0x0a026162${"00".repeat(27)}01`,
    ] as const;
    for (const [place, element] of all.entries())
      elements.set(viem.hexToBytes(element), place * ELEMENT_BYTES);
    for (const asset of [d.assets.coin, d.assets.card, d.assets.item, d.assets.imxCard]) {
      const of = claims.map(([, claim]) => (claim.assetType === asset.assetType ? claim : null));
      // The slots only name the manifest: the elements are others.
      const slots = of.map((claim) => claim && entry(asset, owner, "", 1n));
      const batch = await commitBlobs(d, slots, { batch: { elements, vaultCount } });
      for (const [slot, [, claim, at = 0]] of claims.entries()) {
        if (of[slot] === null) continue;
        const [, header, path] = provenArgs(opening(batch, slot, [slot]));
        const vaultId = batch.vaults[slot]?.vaultId ?? 0n;
        const vault = { ...claim, assetType: BigInt(claim.assetType), vaultId };
        const count = naiveWords(claim, 0).rest.length;
        const more = Array.from({ length: count }, (_, i) => Math.min(at + i, 4095));
        const siblings = [...opening(batch, slot, [slot, ...more]).siblings];
        if (count > 0) siblings[siblings.length - 1] = viem.numberToHex(at, { size: 32 });
        const held = d.state.read.verifyVault([vault, header, { ...path, siblings }]);
        await d.refuses(held, "ProofInvalid", [vaultId]);
      }
    }
  });

  it("by another slot's opening, another batch's, or another commitment's", async () => {
    const slots = [coins(5n), coins(6n)];
    const [batch, other] = [
      await commitBlobs(d, slots),
      await commitBlobs(d, [coins(6n), coins(5n)]),
    ];
    await refused(opening(batch, 0, [1]));
    await refused({ ...request(batch, 0), siblings: request(other, 1).siblings });
    await refused({ ...request(batch, 0), vault: request(batch, 1).vault });
    const words = [...request(batch, 0).siblings];
    const foreign = request(other, 0).siblings;
    await refused({ ...request(batch, 0), siblings: [...words.slice(0, 2), ...foreign.slice(2)] });
    // A wrong opening burns the gas that it gets. It gets little of what the item has.
    const [groups, lists] = batchArgs([opening(batch, 0, [1])]);
    const gas = { account: d.actors.owner.account, gas: 5_000_000n };
    const hash = await d.state.write.withdrawBatch([groups, lists, 4_000_000n], gas);
    expect((await d.publicClient.getTransactionReceipt({ hash })).gasUsed).toBeLessThan(600_000n);
    await withdraw(request(batch, 0));
  });

  it("by proofs at points in natural order, or outside of the domain", async () => {
    const slots = Array.from({ length: 8 }, (_, i) => coins(BigInt(i + 1)));
    const batch = await commitBlobs(d, slots);
    await refused(opening(batch, 3, [3], powerOfRoot));
    await refused(opening(batch, 3, [3], () => 5n));
    // The value at the natural point is that of another slot, which the contract takes only as that
    // slot.
    await withdraw(opening(batch, 3, [3]));
  });

  it("by a slot behind the count, or by one that the count makes a continuation", async () => {
    const slots = [coins(1n), coins(2n), card(String(2n ** 200n))];
    const short = await commitBlobs(d, slots, { batch: { vaultCount: 2 } });
    await refused({
      ...request(
        { ...short, vaults: [null, null, { ...coins(2n), vaultId: (1n << 63n) + 2n }] },
        2,
      ),
    });
    // Element 3 is the continuation of slot 2, unless it is a slot itself.
    const long = await commitBlobs(d, slots, { batch: { vaultCount: 4 } });
    await d.mature();
    await refused(request(long, 2));
    await withdraw(request(long, 1));
  });

  it("by a continuation behind the last element", async () => {
    const slots = [card(String(2n ** 200n))];
    const honest = blobBatch.encodeBlobBatch(slots);
    const elements = honest.elements.slice();
    elements.set([blobBatch.BLOB_ELEMENTS >> 8, blobBatch.BLOB_ELEMENTS & 0xff], HEAD_CONTINUATION);
    const batch = await commitBlobs(d, slots, { batch: { elements } });
    await d.mature();
    if (batch.blobs === undefined) throw new Error("a batch of blobs");
    const { siblings, ...asked } = request({ ...batch, blobs: { ...batch.blobs, ...honest } }, 0);
    const words = openingWords(batch.blobs, [0, 1]).slice(0, -1);
    expect(words).toHaveLength(siblings.length - 1);
    await refused({
      ...asked,
      siblings: [...words, viem.numberToHex(blobBatch.BLOB_ELEMENTS, { size: 32 })],
    });
  });

  it("by a path that is too short, too long, or of the other kind", async () => {
    const batch = await commitBlobs(d, [coins(1n), coins(2n)]);
    const tree = await commitRollup(d, [coins(1n), coins(2n)]);
    const whole = request(batch, 1).siblings;
    for (const words of [
      [],
      whole.slice(0, 4),
      whole.slice(0, -1),
      [...whole, viem.zeroHash],
      [...whole.slice(0, 2), ...whole.slice(1)],
    ]) {
      await refused({ ...request(batch, 1), siblings: words });
    }
    await refused({ ...request(batch, 1), siblings: request(tree, 1).siblings });
    await refused({ ...request(tree, 1), siblings: whole });
    const validium = await commitValidium(d, [coins(1n), coins(2n)]);
    await refused({ ...request(validium, 1), siblings: whole });
    await withdraw(request(batch, 1));
  });

  it("by another manifest, or another place in it", async () => {
    const batch = await commitBlobs(d, [coins(1n), card("7")]);
    const cards = request(batch, 1);
    await d.mature();
    await refused({ ...request(batch, 0), assetPath: cards.assetPath });
    await refused({
      ...cards,
      vault: { ...cards.vault, assetType: BigInt(d.assets.coin.assetType) },
    });
    const [, ...rest] = cards.siblings;
    await refused({ ...cards, siblings: [blobBatch.manifestHash([d.assets.card]), ...rest] });
    await withdraw(cards);
  });

  it("by a changed element of the vault's own", async () => {
    const batch = await commitBlobs(d, [card("x".repeat(40))]);
    const asked = request(batch, 0);
    await d.mature();
    for (const change of [
      { owner: d.actors.stranger.account.address },
      { mintingBlob: viem.toHex("x".repeat(39)) },
      { mintingBlob: viem.toHex(`${"x".repeat(39)}y`) },
    ]) {
      await refused({ ...asked, vault: { ...asked.vault, ...change } });
    }
    const moved = [...asked.siblings];
    moved[moved.length - 1] = viem.numberToHex(2, { size: 32 });
    await refused({ ...asked, siblings: moved });
    await withdraw(asked);
  });

  it("by blobs that the transaction of a call carries when the contract does not name them", async () => {
    const data = viem.encodeFunctionData({ abi: d.state.abi, functionName: "history" });
    await sendBlobs(d, blobBatch.encodeBlobBatch([coins(1n)]).elements, data);
    expect(await d.state.read.batchCounts()).toEqual([0n, 0n]);
  });
});
