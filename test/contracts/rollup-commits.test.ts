import { bytesToHex, encodeFunctionData, type Hex, keccak256, zeroAddress, zeroHash } from "viem";
import { beforeEach, describe, expect, it } from "vitest";
import {
  batchLeaves,
  encodeBatchData,
  type VaultEntry,
  wordBatch,
} from "../../core/protocol/batch-data.ts";
import { BatchTree } from "../../core/protocol/batch-tree.ts";
import {
  batchHeaderHash,
  emptyHistory,
  nextHistory,
  stateCommitment,
  stateLeaf,
} from "../../core/protocol/commitment.ts";
import { hexToBytes } from "../../core/protocol/hex.ts";
import { StateTree } from "../../core/protocol/state-tree.ts";
import { NAIVE_VOID, naiveContent } from "../core/naive/naive-words.ts";
import {
  assetsIn,
  commitRollup,
  committedEvent,
  commitValidium,
  entry,
  sealedRoot,
} from "./fixture/batches.ts";
import { type Deployment, MODE, openChain } from "./fixture/deployment.ts";

const { fresh, connection } = await openChain();

describe("rollup commits", () => {
  let d: Deployment;
  let owner: Hex;
  beforeEach(async () => {
    d = await fresh();
    owner = d.actors.owner.account.address;
  });

  const one = () => [entry(d.assets.card, owner, "1")];
  const write = async (
    batchNumber: bigint,
    slots: readonly (VaultEntry | null)[],
    account = d.actors.operator.account,
  ) =>
    d.state.write.commitRollupBatch(
      [await d.state.read.history(), "0x", batchNumber, bytesToHex(encodeBatchData(slots))],
      { account },
    );

  it("derives the root that the core derives, and stores what the event says", async () => {
    const slots = [
      ...Array.from({ length: 40 }, (_, i) => entry(d.assets.card, owner, String(100 + i))),
      null,
      entry(d.assets.coin, d.actors.stranger.account.address, "", 5_000_000n),
      entry(d.assets.item, owner, "a sword", 3n),
      entry(d.assets.imxCard, owner, "{7}:{blue}"),
    ];
    const batch = await commitRollup(d, slots);
    expect(batch.header.batchRoot).toBe(
      sealedRoot("zk-rollup", batch.assets, bytesToHex(batch.tree.root)),
    );
    expect(batch.header.vaultCount).toBe(slots.length);
    expect(batch.header.sequence).toBe(0n);
    const event = await committedEvent(d, batch.txHash);
    expect(event.args).toMatchObject({
      mode: MODE["zk-rollup"],
      batchNumber: 0n,
      dataHash: batch.dataHash,
    });
    const { timestamp } = await d.publicClient.getBlock({ blockNumber: event.blockNumber });
    expect(batch.header.committedAt).toBe(timestamp);
    expect(await d.state.read.batchHeaderHash([MODE["zk-rollup"], 0n])).toBe(
      batchHeaderHash(batch.header),
    );
  });

  it("grows the state tree as the core's does, mode by mode, in one global sequence", async () => {
    const trees = { validium: new StateTree(), "zk-rollup": new StateTree() };
    for (let sequence = 0; sequence < 9; sequence++) {
      const commit = sequence % 3 === 1 ? commitValidium : commitRollup;
      const batch = await commit(d, [entry(d.assets.card, owner, String(sequence))]);
      expect(batch.header.sequence).toBe(BigInt(sequence));
      const { mode, batchNumber, dataHash, header } = batch;
      trees[mode].append(hexToBytes(stateLeaf({ batchNumber, dataHash, ...header })));
      const [rootValidium, rootRollup] = [trees.validium, trees["zk-rollup"]].map((tree) =>
        bytesToHex(tree.root()),
      );
      const counts = [trees.validium.count, trees["zk-rollup"].count] as const;
      expect(await d.state.read.stateRoot([MODE.validium])).toBe(rootValidium);
      expect(await d.state.read.stateRoot([MODE["zk-rollup"]])).toBe(rootRollup);
      expect(await d.state.read.batchCounts()).toEqual(counts.map(BigInt));
      expect(await d.state.read.stateCommitment()).toBe(
        stateCommitment(d.settlement, {
          rootValidium: rootValidium ?? zeroHash,
          rootRollup: rootRollup ?? zeroHash,
          countValidium: counts[0],
          countRollup: counts[1],
        }),
      );
    }
  });

  it("takes only the next number, and tells a replay from a gap", async () => {
    await commitRollup(d, one());
    await commitRollup(d, one());
    for (const given of [0n, 1n, 3n, 2n ** 32n, 2n ** 64n - 1n]) {
      await d.refuses(write(given, one()), "BatchNumberMismatch", [2n, given]);
    }
    await write(2n, one());
  });

  it("keeps one history of both modes, which begins with its own empty state, and takes no commit that follows another", async () => {
    let history = emptyHistory(d.settlement);
    expect(await d.state.read.history()).toBe(history);
    const past: Hex[] = [zeroHash];
    for (let sequence = 0; sequence < 6; sequence++) {
      const data = bytesToHex(
        encodeBatchData([entry(d.assets.card, owner, String(100 + sequence))]),
      );
      for (const given of past) {
        const commit = d.state.write.commitRollupBatch(
          [given, "0x", (await d.state.read.batchCounts())[1], data],
          d.by("operator"),
        );
        await d.refuses(commit, "HistoryMismatch", [history, given]);
      }
      past.push(history);
      const commit = sequence % 3 === 1 ? commitValidium : commitRollup;
      const { mode, batchNumber, dataHash, header } = await commit(d, [
        entry(d.assets.card, owner, String(sequence)),
      ]);
      history = nextHistory(history, mode, stateLeaf({ batchNumber, dataHash, ...header }));
      expect(await d.state.read.history()).toBe(history);
    }
  });

  it("takes several commits of one block, each of which follows the one before it", async () => {
    const [account, batches] = [d.actors.operator.account, [0, 1, 2]];
    const datas = batches.map((n) => encodeBatchData([entry(d.assets.card, owner, String(n))]));
    const hashes: Hex[] = [];
    let history = emptyHistory(d.settlement);
    await d.testClient.setAutomine(false);
    for (const [n, data] of datas.entries()) {
      const args = [history, "0x", BigInt(n), bytesToHex(data)] as const;
      hashes.push(await d.state.write.commitRollupBatch(args, { account, gas: 300_000n }));
      const slots = [entry(d.assets.card, owner, String(n))];
      const tree = new BatchTree(batchLeaves(wordBatch(slots), "zk-rollup", n));
      const batchRoot = sealedRoot("zk-rollup", assetsIn(slots), bytesToHex(tree.root));
      const batch = { batchNumber: n, vaultCount: 1, dataHash: keccak256(data), batchRoot };
      history = nextHistory(history, "zk-rollup", stateLeaf(batch));
    }
    await d.testClient.mine({ blocks: 1 });
    await d.testClient.setAutomine(true);
    const events = await Promise.all(hashes.map((hash) => committedEvent(d, hash)));
    expect(new Set(events.map(({ blockNumber }) => blockNumber)).size).toBe(1);
    expect(await d.state.read.history()).toBe(history);
  });

  it("takes batches from the operator only", async () => {
    const role = await d.state.read.OPERATOR_ROLE();
    const { admin, guardian, owner: user, stranger } = d.actors;
    for (const { account } of [admin, guardian, user, stranger]) {
      await d.refuses(write(0n, one(), account), "AccessControlUnauthorizedAccount");
    }
    expect(await d.state.read.hasRole([role, d.actors.operator.account.address])).toBe(true);
  });

  it("takes nothing from a contract, so that the data is the transaction's own input", async () => {
    const payload = encodeFunctionData({
      abi: d.state.abi,
      functionName: "commitRollupBatch",
      args: [await d.state.read.history(), "0x", 0n, bytesToHex(encodeBatchData(one()))],
    });
    const multisig = await d.viem.deployContract("ContractOperator", [zeroAddress, "0x"]);
    await d.refuses(
      multisig.write.forward([d.state.address, payload], d.by("operator")),
      "NotPlainAccount",
    );
    await d.refuses(
      connection.viem.deployContract("ContractOperator", [d.state.address, payload], {
        client: { wallet: d.actors.operator },
      }) as unknown as Promise<Hex>,
      "NotPlainAccount",
    );
  });

  it("takes nothing from an account that has delegated its code", async () => {
    const { operator } = d.actors;
    const delegation = `0xef0100${d.tokens.coin.address.slice(2)}` as const;
    await d.testClient.setCode({ address: operator.account.address, bytecode: delegation });
    await d.refuses(write(0n, one()), "NotPlainAccount");
  });

  it("refuses an asset that nobody has registered, and takes it once somebody has", async () => {
    const chainId = 424_242n;
    const slots = one().map((slot) => ({ ...slot, chainId }));
    await d.refuses(write(0n, slots), "AssetNotRegistered", [
      chainId,
      BigInt(d.assets.card.assetType),
    ]);
    await d.state.write.registerAsset([2, chainId, d.assets.card.token, 1n, 0]);
    await write(0n, slots);
  });

  it("holds as many vaults as it says, and not one more", async () => {
    const most = Number(await d.state.read.MAX_ROLLUP_VAULTS());
    const range = (count: number) =>
      Array.from({ length: count }, (_, i) => entry(d.assets.card, owner, String(10_000 + i)));
    await d.refuses(write(0n, range(most + 1)), "BatchDataInvalid");
    const batch = await commitRollup(d, range(most));
    expect(batch.header.batchRoot).toBe(
      sealedRoot("zk-rollup", batch.assets, bytesToHex(batch.tree.root)),
    );
    const { gasUsed } = await d.publicClient.getTransactionReceipt({ hash: batch.txHash });
    expect(gasUsed).toBeLessThan(16_777_216n);
  });

  it("takes a batch whose only slot is void", async () => {
    const batch = await commitRollup(d, [null]);
    expect(batch.header).toMatchObject({
      vaultCount: 1,
      batchRoot: sealedRoot("zk-rollup", [], naiveContent([NAIVE_VOID], 1n << 63n)),
    });
  });

  it("stops at the last leaf but one, so that a count is never ambiguous", async () => {
    await fillTree(d);
    const last = 2n ** 32n - 1n;
    expect((await d.state.read.batchCounts())[1]).toBe(last);
    await d.refuses(write(last, one()), "StateFull");
  });

  it("keeps the data's hash in the state leaf, so that the same vaults encoded otherwise are another state", async () => {
    const batch = await commitRollup(d, one());
    expect(batch.dataHash).toBe(keccak256(encodeBatchData(one())));
    const tree = new StateTree();
    tree.append(hexToBytes(stateLeaf({ batchNumber: 0, dataHash: zeroHash, ...batch.header })));
    expect(await d.state.read.stateRoot([MODE["zk-rollup"]])).not.toBe(bytesToHex(tree.root()));
  });
});

/** Sets the rollup count, the second 32 bits of the slot that holds the counts, to 2^32 - 1. */
async function fillTree(d: Deployment): Promise<void> {
  await commitRollup(d, [entry(d.assets.card, d.actors.owner.account.address, "1")]);
  for (let index = 0; index < 64; index++) {
    const slot = `0x${index.toString(16).padStart(64, "0")}` as const;
    const word = await d.publicClient.getStorageAt({ address: d.state.address, slot });
    // Counts 0 and 1, sequence 1, epoch 0, not paused.
    if (BigInt(word ?? 0) !== (1n << 32n) + (1n << 64n)) continue;
    const value =
      `0x${((1n << 64n) + (0xffff_ffffn << 32n)).toString(16).padStart(64, "0")}` as const;
    await d.testClient.setStorageAt({ address: d.state.address, index: slot, value });
    return;
  }
  throw new Error("found no slot of counts");
}
