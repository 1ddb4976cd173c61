import { createWalletClient, toHex } from "viem";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Archive } from "../../core/archive/archive.ts";
import { deriveBatch } from "../../core/archive/derive.ts";
import {
  follow,
  type VoidedDuplicate,
  voidDuplicates,
  Watcher,
  type WatcherOptions,
} from "../../core/archive/index.ts";
import { collectAttestations } from "../../core/committee/collector.ts";
import type { CommitteeMember } from "../../core/committee/member.ts";
import type { Address, Mode, VaultId } from "../../core/index.ts";
import { connectL1 } from "../../core/l1/connect.ts";
import type { SealedBatch } from "../../core/ports.ts";
import { assetType } from "../../core/protocol/asset.ts";
import type { VaultEntry } from "../../core/protocol/batch-data.ts";
import { batchDataOf, decodeBatch, encodeBatchData } from "../../core/protocol/batch-data.ts";
import { packVaultId } from "../../core/protocol/vault.ts";
import { lower } from "../../scripts/deploy/deployer.ts";
import { GUARDIAN, THRESHOLD, USERS } from "../../scripts/sandbox/accounts.ts";
import {
  at,
  type Chain,
  commitUnseen,
  createChain,
  MATURITY,
  openMembers,
  pointOn,
} from "../settlement/fixture.ts";
import { POISONS, poisonedWords } from "../settlement/signed-batches.ts";
import {
  claimed,
  createTransferWorld,
  friendOf,
  sealed,
  served,
  signTransfers,
  type TransferWorld,
  whole,
} from "../settlement/transfers-fixture.ts";
import { chainOf, openArchive, sourceOf } from "./fixture.ts";

/** Exceptions: else every user gets one in turn, of the chain's own token. */
interface How {
  readonly owner?: Address;
  readonly token?: Address;
  readonly standard?: "erc20" | "erc721";
  readonly chainId?: bigint;
}

type L1 = Awaited<ReturnType<typeof connectL1>>;

describe("ERC-721 tokens that a hostile operator mints twice", () => {
  let chain: Chain;
  let operator: L1;
  let members: CommitteeMember[];
  /** Anyone's account, without a role. */
  let anyone: L1;
  const counts: Record<Mode, number> = { validium: 0, "zk-rollup": 0 };

  beforeAll(async () => {
    chain = await createChain();
    operator = await chain.connectOperator();
    members = await openMembers(operator);
    anyone = await connectAs(GUARDIAN);
  });
  afterAll(async () => {
    for (const member of members) await member.close();
    await chain.close();
  });

  function connectAs(account: typeof GUARDIAN) {
    const { transport, settlement } = chain;
    const finality = { confirmations: 0n };
    return connectL1({
      rpc: transport,
      contract: settlement.address,
      account,
      finality,
      pollingMs: 5,
    });
  }

  /** Commits a batch of these tokens, whoever has them, and returns their vaults. */
  async function commit(mode: Mode, tokens: readonly string[], how: How = {}): Promise<VaultId[]> {
    const batch = batchOf(mode, counts[mode]++, tokens, how);
    const after = await pointOn(operator);
    const { history } = after;
    if (mode === "zk-rollup") await operator.commit(batch, history, "0x");
    else {
      // These members do not watch L1, so they know of no rollup batch.
      const committee = collectAttestations({ members, threshold: THRESHOLD, l1: operator });
      await operator.commit(batch, history, await committee.attest(batch, after));
    }
    return tokens.map((_, slot) => packVaultId({ mode, batchNumber: batch.batchNumber, slot }));
  }

  function batchOf(
    mode: Mode,
    batchNumber: number,
    tokens: readonly string[],
    how: How = {},
  ): SealedBatch {
    const token =
      how.token ?? chain.tokens.find(({ standard }) => standard === "erc721")?.address ?? "0x";
    const chainId = how.chainId ?? 31_337n;
    const entries = tokens.map((text, i): VaultEntry => {
      const owner = how.owner ?? lower(at(USERS, i % USERS.length).owner.address);
      return {
        chainId,
        owner,
        assetType: assetType(how.standard ?? "erc721", token, 1n),
        amount: 1n,
        mintingBlob: toHex(text),
      };
    });
    const data = encodeBatchData(entries);
    return { mode, batchNumber, data, ...deriveBatch(mode, batchNumber, data) };
  }

  async function watch(archive: Archive, more: Partial<WatcherOptions> = {}) {
    const voided: VoidedDuplicate[] = [];
    const onVoided = (each: VoidedDuplicate) => voided.push(each);
    const { deployedAtBlock: fromBlock } = chain.settlement;
    await new Watcher({ archive, l1: anyone, fromBlock, onVoided, ...more }).round();
    return voided.map(({ earlier, later }) => [earlier, later]);
  }

  const isVoid = async (vaultId: VaultId) => (await operator.withdrawn(vaultId, "erc721")) === 1n;

  test("are voided by anyone who watches, the later one of each pair, once", async () => {
    const archive = await openArchive({ l1: anyone });
    const [first = 0n, other = 0n] = await commit("zk-rollup", ["1", "2"]);
    expect(await watch(archive)).toEqual([]);
    const [second = 0n] = await commit("zk-rollup", ["1"]);
    expect(await watch(archive)).toEqual([[first, second]]);
    expect([await isVoid(first), await isVoid(other), await isVoid(second)]).toEqual([
      false,
      false,
      true,
    ]);
    expect(await watch(archive)).toEqual([]);
    await expect(archive.withdrawn(second)).resolves.toBe(1n);
  });

  test.each(POISONS)("beside a record that is no vault: %s", async (_, tag, payload) => {
    const token = `beside ${tag} ${payload}`;
    const batchNumber = counts["zk-rollup"]++;
    const { data: honest } = batchOf("zk-rollup", batchNumber, [token, token]);
    const data = batchDataOf(poisonedWords(decodeBatch(honest).slots, tag, payload));
    const batch = { data, ...deriveBatch("zk-rollup", batchNumber, data) };
    const { history } = await pointOn(operator);
    await operator.commit({ mode: "zk-rollup", batchNumber, ...batch }, history, "0x");
    const [first = 0n, second = 0n] = [1, 2].map((slot) =>
      packVaultId({ mode: "zk-rollup", batchNumber, slot }),
    );
    // A watcher that begins anew reads all of L1's batches.
    expect(await watch(await openArchive({ l1: anyone }))).toContainEqual([first, second]);
    expect(await isVoid(second)).toBe(true);
  });

  test("in one batch too, however often they occur", async () => {
    const [first = 0n, second = 0n, third = 0n] = await commit("zk-rollup", ["3", "3", "3"]);
    const voided = await watch(await openArchive({ l1: anyone }));
    expect(voided).toEqual([
      [first, second],
      [first, third],
    ]);
  });

  test("in L1's order, whenever a validium batch's data arrives", async () => {
    const [validium = 0n] = await commit("validium", ["4"]);
    const [rollup = 0n] = await commit("zk-rollup", ["4"]);
    const archive = await openArchive({ l1: anyone });
    // The rollup vault is read first, and yet the other one is the earlier.
    expect(await watch(archive)).toEqual([]);
    expect(await watch(archive, { sources: [sourceOf(at(members, 0))] })).toEqual([
      [validium, rollup],
    ]);
    expect([await isVoid(validium), await isVoid(rollup)]).toEqual([false, true]);
  });

  test("even if an earlier vault of the token has no owner, for which L1 voids nothing", async () => {
    await commit("zk-rollup", ["7"], { owner: `0x${"00".repeat(20)}` });
    const [first = 0n] = await commit("zk-rollup", ["7"]);
    const [second = 0n] = await commit("zk-rollup", ["7"]);
    expect(await watch(await openArchive({ l1: anyone }))).toContainEqual([first, second]);
  });

  test("by a member that has signed a third one, which is never committed, or replaced", async () => {
    const cheated = at(members, 0);
    await cheated.sign(batchOf("validium", counts.validium, ["8"]), {
      ...(await pointOn(operator)),
      epoch: 0n,
    });
    const { archive } = cheated;
    const sources = [sourceOf(at(members, 1))];
    const [first = 0n] = await commit("zk-rollup", ["8"]);
    const [second = 0n] = await commit("zk-rollup", ["8"]);
    expect(await watch(archive)).toContainEqual([first, second]);
    // The others sign another batch of that number, and L1 takes that one.
    await commit("validium", ["9"]);
    expect(await watch(archive, { sources })).toEqual([]);
    const [third = 0n] = await commit("zk-rollup", ["8"]);
    expect(await watch(archive)).toEqual([[first, third]]);
  });

  test.each([
    ["loops for ever", "0x635b6000566000526004601cf3"],
    ["stops at an invalid instruction", "0x60fe60005360016000f3"],
    ["answers with one byte", "0x6460016000f36000526005601bf3"],
    ["answers with more than a number", "0x6462030000f36000526005601bf3"],
  ] as const)("even if a token in the same batch %s when asked for its cap", async (name, data) => {
    const wallet = createWalletClient({ account: GUARDIAN, transport: chain.transport });
    const hash = await wallet.sendTransaction({ chain: null, data });
    const { contractAddress } = await chain.client.waitForTransactionReceipt({ hash });
    const token = lower(contractAddress ?? "0x");
    await operator.registerAsset({
      standard: "erc20",
      chainId: 31_337n,
      contractAddress: token,
      quantum: 1n,
      mintingBlobScheme: "imx",
    });
    await commit("zk-rollup", [""], { token, standard: "erc20" });
    const [first = 0n, second = 0n] = await commit("zk-rollup", [name, name]);
    expect(await watch(await openArchive({ l1: anyone }))).toContainEqual([first, second]);
    expect(await anyone.supplyCap(token)).toBeNull();
  });

  test("by a watcher that lives on while its node answers [] for logs", async () => {
    const node = { isSilent: false };
    const l1 = Object.assign(await connectAs(GUARDIAN), {
      events: async (...range: Parameters<typeof anyone.events>) =>
        node.isSilent ? [] : anyone.events(...range),
    });
    const archive = await openArchive({ l1 });
    const watcher = { l1 };
    const [first = 0n] = await commit("zk-rollup", ["silent"]);
    expect(await watch(archive, watcher)).not.toContainEqual([first, expect.anything()]);
    node.isSilent = true;
    const [second = 0n] = await commit("zk-rollup", ["silent"]);
    await expect(watch(archive, watcher)).rejects.toMatchObject({ code: "l1_failed" });
    node.isSilent = false;
    expect(await watch(archive, watcher)).toEqual([[first, second]]);
    // The void is left out too: L1 itself says that it is done.
    node.isSilent = true;
    expect(await watch(archive, watcher)).toEqual([]);
    node.isSilent = false;
    await chain.mine(1);
    expect(await watch(archive, watcher)).toEqual([]);
    expect(await archive.withdrawn(second)).toBe(1n);
    // An event that was read stays, whatever the node leaves out later.
    node.isSilent = true;
    await chain.mine(1);
    expect(await watch(archive, watcher)).toEqual([]);
    expect(await archive.withdrawn(second)).toBe(1n);
  });

  test("by the first of many watchers, without errors for the others", async () => {
    const [, second = 0n] = [
      ...(await commit("zk-rollup", ["5"])),
      ...(await commit("zk-rollup", ["5"])),
    ];
    const watchers = [GUARDIAN, ...USERS.map(({ owner }) => owner)];
    const rounds = watchers.map(async (account) => {
      const l1 = await connectAs(account);
      return watch(await openArchive({ l1 }), { l1 });
    });
    const voided = (await Promise.all(rounds)).flat();
    expect(voided.length).toBeGreaterThan(0);
    expect(await isVoid(second)).toBe(true);
  });

  test("stay once the later one is withdrawn: the watcher sends nothing and continues", async () => {
    await commit("zk-rollup", ["6"]);
    const [taken = 0n] = await commit("zk-rollup", ["6"]);
    await chain.passSeconds(MATURITY + 1n);
    const archive = await openArchive({ l1: anyone });
    const { deployedAtBlock: fromBlock } = chain.settlement;
    const thief = await connectAs(at(USERS, 0).owner);
    const reader = new Watcher({
      archive,
      l1: Object.assign(Object.create(anyone), { voidDuplicate: refuse }),
      fromBlock,
    });
    await expect(reader.round()).rejects.toThrow("not now");
    const { vault, header, siblings, assetPath } = await archive.vaultProof(taken);
    await thief.withdrawOwn({
      vault,
      header,
      siblings,
      assetPath,
      quantity: 1n,
      recipient: vault.owner,
      authorization: null,
    });
    expect(await watch(archive)).toEqual([]);
  });
});

function refuse(): Promise<never> {
  return Promise.reject(new Error("not now"));
}

describe("an ERC-721 token that has left through a transfer", () => {
  let world: TransferWorld;
  let ids: readonly [earlier: VaultId, later: VaultId, tip: VaultId];

  beforeAll(async () => {
    world = await createTransferWorld();
    const { l1, tokens, users } = { ...world, ...world.chain };
    const token = tokens.find(({ standard }) => standard === "erc721")?.address ?? "0x";
    const batchNumber = (await l1.state()).countRollup;
    const minted = {
      chainId: 31_337n,
      owner: lower(at(users, 0).owner.address),
      assetType: assetType("erc721", token, 1n),
      amount: 1n,
      mintingBlob: toHex("77"),
    };
    const { history } = await pointOn(l1);
    await l1.commit(
      sealed("zk-rollup", batchNumber, encodeBatchData([minted, minted])),
      history,
      "0x",
    );
    const idOf = (number: number, slot: number) =>
      packVaultId({ mode: "zk-rollup", batchNumber: number, slot });
    ids = [idOf(batchNumber, 0), idOf(batchNumber, 1), idOf(batchNumber + 1, 0)];
    const group = await signTransfers(world, [whole(world, ids[1])]);
    await commitUnseen(l1, claimed([group], batchNumber + 1));
    await world.chain.passSeconds(MATURITY + 1n);
    await world.chain.mine(20);
  });
  afterAll(() => world.close());

  test("is left to whom L1 has paid it, whoever voids its mint then", async () => {
    const { l1, chain, users } = world;
    const [earlier, later, tip] = ids;
    const read = async (archive: Archive) =>
      follow({ archive, ...(await chainOf(world)), sources: [served(world)] });
    const archive = await openArchive(world);
    await read(archive);
    const friend = await connectL1({
      rpc: chain.transport,
      contract: chain.settlement.address,
      account: at(users, 1).owner,
      finality: { confirmations: 0n },
      pollingMs: 5,
    });
    const unsent = Object.assign(Object.create(l1), { voidDuplicate: refuse });
    await expect(voidDuplicates({ archive, portal: unsent })).rejects.toThrow("not now");
    const { vault, header, siblings, assetPath, hops } = await archive.vaultProof(tip);
    await friend.withdrawOwn({
      vault,
      header,
      siblings,
      assetPath,
      hops,
      quantity: 1n,
      recipient: friendOf(world),
      authorization: null,
    });
    // The archive does not know yet. L1 does.
    expect(await voidDuplicates({ archive, portal: unsent })).toBe(0);
    const [first, second] = [await archive.vaultProof(earlier), await archive.vaultProof(later)];
    await l1.voidDuplicate(first, second);
    await chain.mine(1);
    for (const each of [archive, await openArchive(world)]) {
      await read(each);
      expect(await Promise.all(ids.map((id) => each.paid(id)))).toEqual([0n, 0n, 1n]);
      expect(await each.spending(later)).toEqual({ outId: tip, fault: null });
      expect(await Array.fromAsync(each.vaultsOf(friendOf(world)))).toEqual([tip]);
      expect(await Array.fromAsync(each.invalidTransfers())).toEqual([]);
    }
  });
});
