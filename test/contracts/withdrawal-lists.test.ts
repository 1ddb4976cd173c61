import { type Address, concat, type Hash, type Hex, slice, zeroAddress } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { beforeEach, describe, expect, it } from "vitest";
import { typedDataDomain } from "../../core/protocol/typed-data.ts";
import { type CommittedBatch, commitRollup, commitValidium, entry } from "./fixture/batches.ts";
import { COIN_QUANTUM, type Deployment, openChain } from "./fixture/deployment.ts";
import { errorIn, outcomeOf } from "./fixture/outcomes.ts";
import type { Request } from "./fixture/withdrawals.ts";
import {
  authorizationOf,
  batchArgs,
  compacted,
  entryOf,
  listed,
  NEVER,
  request,
  signed,
} from "./fixture/withdrawals.ts";

const { fresh } = await openChain();
const KEY = privateKeyToAccount(generatePrivateKey());
const OTHER = privateKeyToAccount(generatePrivateKey());

describe("a list of withdrawals with one signature", () => {
  let d: Deployment;
  let first: CommittedBatch;
  let second: CommittedBatch;
  beforeEach(async () => {
    d = await fresh();
    const slots = [
      entry(d.assets.coin, KEY.address, "", 10n),
      entry(d.assets.card, KEY.address, "1"),
      entry(d.assets.item, KEY.address, "1", 3n),
    ];
    first = await commitRollup(d, slots);
    second = await commitValidium(d, [
      entry(d.assets.coin, KEY.address, "", 10n),
      entry(d.assets.card, KEY.address, "2"),
    ]);
    await d.mature();
  });

  const all = () =>
    [0, 1, 2]
      .map((slot) => request(first, slot))
      .concat([0, 1].map((slot) => request(second, slot)));
  const submit = async (requests: readonly Request[], gas = 16_000_000n) =>
    outcomeOf(
      d,
      await d.state.write.withdrawBatch(batchArgs(requests), {
        account: d.actors.relayer.account,
        gas,
      }),
    );
  const idsOf = (requests: readonly Request[]) => requests.map(({ vault }) => vault.vaultId);
  const errorsOf = async (requests: readonly Request[]) =>
    (await submit(requests)).failed.map(({ error }) => error);

  it("pays vaults of several batches, modes and standards to the one recipient that it names", async () => {
    const recipient = d.actors.stranger.account.address;
    const asked = await listed(
      d,
      KEY,
      all().map((one) => ({ ...one, recipient })),
    );
    const { withdrawn, failed } = await submit(asked);
    expect({ withdrawn: withdrawn.toSorted(), failed }).toEqual({
      withdrawn: idsOf(asked).toSorted(),
      failed: [],
    });
    expect(await d.tokens.coin.read.balanceOf([recipient])).toBe(20n * COIN_QUANTUM);
    for (const id of [1n, 2n])
      expect((await d.tokens.card.read.ownerOf([id])).toLowerCase()).toBe(recipient.toLowerCase());
  });

  it("can be used one vault at a time, in any order, and each vault once", async () => {
    const asked = await listed(d, KEY, all());
    for (const one of asked.toReversed())
      expect((await submit([one])).withdrawn).toEqual(idsOf([one]));
    expect(await errorsOf(asked)).toEqual(asked.map(() => "VaultExhausted"));
  });

  it("pays a part of a vault for each total that it names", async () => {
    const vault = request(first, 0, { quantity: 4n });
    const list = [0n, 4n].map((withdrawnBefore) => entryOf(vault, withdrawnBefore));
    const [whole] = await listed(d, KEY, [vault], { list });
    if (whole === undefined) throw new Error("one request is listed");
    // The list's entry for the vault after its first part.
    const then = {
      ...whole,
      authorization: { ...authorizationOf(whole), list: list.toReversed() },
    };
    expect((await submit([whole])).withdrawn).toHaveLength(1);
    // Reversed, it is another list, which nobody has signed.
    expect(await errorsOf([then])).toEqual(["SignatureInvalid"]);
    expect(await errorsOf([whole])).toEqual(["NotListed"]);
    expect(await d.tokens.coin.read.balanceOf([KEY.address])).toBe(4n * COIN_QUANTUM);
  });

  it("needs all of its vaults named: none can be left out, added or exchanged", async () => {
    const asked = await listed(d, KEY, all());
    const own = asked[0]?.authorization?.list ?? [];
    const foreign = { ...entryOf(request(first, 0)), quantity: 1n };
    for (const list of [
      own.slice(0, -1),
      [...own, foreign],
      own.toReversed(),
      [{ ...foreign }, ...own.slice(1)],
    ]) {
      const changed = asked.map((one) => ({
        ...one,
        authorization: { ...authorizationOf(one), list },
      }));
      const named = changed.filter(({ vault }) =>
        list.some(({ vaultId }) => vaultId === vault.vaultId),
      );
      expect(new Set(await errorsOf(named))).toEqual(new Set(["SignatureInvalid"]));
    }
  });

  it("is nobody else's word, and no other recipient's, deadline's or contract's", async () => {
    const asked = await listed(d, KEY, all());
    const changes: ((one: Request) => Request)[] = [
      (one) => ({ ...one, recipient: d.actors.stranger.account.address }),
      (one) => ({ ...one, authorization: { ...authorizationOf(one), deadline: NEVER - 1n } }),
    ];
    for (const change of changes) {
      expect(new Set(await errorsOf(asked.map(change)))).toEqual(new Set(["SignatureInvalid"]));
    }
    const elsewhere = {
      settlement: { ...d.settlement, contract: d.tokens.coin.address.toLowerCase() as Address },
    };
    expect(new Set(await errorsOf(await listed(elsewhere, KEY, all())))).toEqual(
      new Set(["SignatureInvalid"]),
    );
    expect(typedDataDomain(d.settlement).verifyingContract.toLowerCase()).toBe(
      d.state.address.toLowerCase(),
    );
    expect(new Set(await errorsOf(await listed(d, OTHER, all())))).toEqual(
      new Set(["SignatureInvalid"]),
    );
  });

  it("of a stranger who lists somebody's vaults pays nobody, though the stranger's signature is good", async () => {
    const asked = (await listed(d, OTHER, all())).map((one) => ({
      ...one,
      vault: { ...one.vault, owner: OTHER.address },
    }));
    expect(new Set(await errorsOf(asked))).toEqual(new Set(["ProofInvalid"]));
  });

  it("fails only its own items when it has expired or has a bad signature", async () => {
    const coin = d.assets.coin;
    const batch = await commitRollup(
      d,
      [OTHER, OTHER, KEY, KEY].map(({ address }) => entry(coin, address, "", 1n)),
    );
    const at = (...slots: number[]) => slots.map((slot) => request(batch, slot));
    const good = await listed(d, KEY, at(2, 3));
    const expired = await listed(d, OTHER, at(0, 1), { deadline: 1n });
    const forged = await listed(d, KEY, at(0, 1), { deadline: NEVER - 1n });
    for (const [bad, error] of [
      [expired, "AuthorizationExpired"],
      [forged, "SignatureInvalid"],
    ] as const) {
      const snapshot = await d.testClient.snapshot();
      const { withdrawn, failed } = await submit([...bad, ...good]);
      expect(failed.map((each) => each.error)).toEqual([error, error]);
      expect(withdrawn).toEqual(idsOf(good));
      await d.testClient.revert({ id: snapshot });
    }
  });

  it("takes EIP-2098 signatures", async () => {
    const asked = (await listed(d, KEY, all())).map((one) => compacted(one));
    expect((await submit(asked)).failed).toEqual([]);
  });

  it("stands beside other lists in one call", async () => {
    const batch = await commitRollup(
      d,
      [KEY, OTHER, OTHER].map(({ address }) => entry(d.assets.coin, address, "", 1n)),
    );
    const asked = [
      ...(await listed(d, KEY, all())),
      await signed(d, KEY, request(batch, 0)),
      ...(await listed(d, OTHER, [request(batch, 1), request(batch, 2)])),
    ];
    expect((await submit(asked)).failed).toEqual([]);
  });

  it("counts by a wallet contract's consent, and by the key of an account that has delegated its code", async () => {
    const wallet = await d.viem.deployContract("Wallet1271", [KEY.address, 0]);
    const batch = await commitRollup(d, [
      entry(d.assets.coin, wallet.address, "", 1n),
      entry(d.assets.coin, wallet.address, "", 2n),
      entry(d.assets.coin, OTHER.address, "", 3n),
    ]);
    await d.testClient.setCode({
      address: OTHER.address,
      bytecode: `0xef0100${d.tokens.coin.address.slice(2)}`,
    });
    const asked = [
      ...(await listed(d, KEY, [request(batch, 0), request(batch, 1)])),
      ...(await listed(d, OTHER, [request(batch, 2)])),
    ];
    expect((await submit(asked)).failed).toEqual([]);
  });

  it("of a wallet that burns its gas is asked once, and costs one item's gas for all of its items", async () => {
    const wallet = await d.viem.deployContract("Wallet1271", [KEY.address, 1]);
    const batch = await commitRollup(d, [
      ...Array.from({ length: 8 }, () => entry(d.assets.coin, wallet.address, "", 1n)),
      entry(d.assets.coin, d.actors.relayer.account.address, "", 1n),
    ]);
    const asked = await listed(
      d,
      KEY,
      Array.from({ length: 8 }, (_, slot) => request(batch, slot)),
    );
    const { withdrawn, failed, gasUsed } = await submit([...asked, request(batch, 8)]);
    expect(failed).toHaveLength(8);
    expect(withdrawn).toEqual([request(batch, 8).vault.vaultId]);
    expect(gasUsed).toBeLessThan(1_000_000n);
  });

  it("is checked with an item's gas in full, or the call reverts for want of it", async () => {
    const asked = await listed(d, KEY, all().slice(0, 1));
    const call = {
      ...d.state,
      functionName: "withdrawBatch",
      args: batchArgs(asked),
      account: d.actors.relayer.account,
    } as const;
    let refused = 0;
    for (let gas = 400_000n; gas < 1_200_000n; gas += 40_000n) {
      const result = await d.publicClient.simulateContract({ ...call, gas }).then(
        ({ result }) => result,
        (error) => errorIn(error).error,
      );
      expect([0n, "GasTooLow"]).toContain(result);
      if (result === "GasTooLow") refused++;
    }
    expect(refused).toBeGreaterThan(0);
    expect(refused).toBeLessThan(20);
  });

  it("refuses the call by name when an item names no list, no entry, or a list breaks off", async () => {
    const [asked] = await listed(d, KEY, all());
    if (asked === undefined) throw new Error("one request is listed");
    const [[group], [list = "0x"], itemGas] = batchArgs([asked]);
    if (group === undefined) throw new Error("one group");
    const write = (items: Hex, lists: readonly Hex[]) =>
      d.state.write.withdrawBatch([[{ ...group, items }], lists, itemGas], d.by("relayer"));
    const head = (number: Hex, position: Hex) =>
      concat([slice(group.items, 0, 6), number, position, slice(group.items, 9)]);
    const malformed = (call: Promise<Hash>) => d.refuses(call, "ListMalformed");
    await malformed(write(group.items, []));
    await malformed(write(head("0x01", "0x0000"), [list]));
    await malformed(write(head("0x00", "0x0005"), [list]));
    const { failed } = await outcomeOf(d, await write(group.items, [slice(list, 0, 100)]));
    expect(failed.map(({ error }) => error)).toEqual(["ListMalformed"]);
    // Nor has a list more than 256 vaults, or none.
    for (const count of ["0x0000", "0x0101", "0xffff"] as const) {
      const long = concat([slice(list, 0, 48), count, `0x${"00".repeat(24 * 300)}`]);
      const { failed } = await outcomeOf(d, await write(group.items, [long]));
      expect(failed.map(({ error }) => error)).toEqual(["ListMalformed"]);
    }
    // A list that no item names is checked, and harms nobody.
    expect(
      (await outcomeOf(d, await write(group.items, [list, "0x", `0x${"ff".repeat(60)}`]))).failed,
    ).toEqual([]);
  });

  it("refuses an item that names a recipient of its own beside its list", async () => {
    const [asked] = await listed(d, KEY, all());
    if (asked === undefined) throw new Error("one request is listed");
    const [[group], lists, itemGas] = batchArgs([asked]);
    if (group === undefined) throw new Error("one group");
    for (const flags of ["0x05", "0x07", "0x0c", "0x14", "0xff"] as const) {
      const items = concat([slice(group.items, 0, 5), flags, slice(group.items, 6)]);
      const write = d.state.write.withdrawBatch(
        [[{ ...group, items }], lists, itemGas],
        d.by("relayer"),
      );
      await d.refuses(write, "ListMalformed");
    }
  });

  it("leaves a vault as it was when its token refuses, and pays it later by the same list", async () => {
    const token = await d.viem.deployContract("RevertingToken");
    const refusing = await d.register("erc1155", token.address);
    const batch = await commitRollup(d, [
      entry(refusing, KEY.address, "1"),
      entry(d.assets.coin, KEY.address, "", 1n),
    ]);
    const asked = await listed(d, KEY, [request(batch, 0), request(batch, 1)]);
    const { withdrawn, failed } = await submit(asked);
    expect([withdrawn, failed.map(({ error }) => error)]).toEqual([
      [request(batch, 1).vault.vaultId],
      ["TokenRefused"],
    ]);
    await token.write.setRefusing([false]);
    expect((await submit(asked.slice(0, 1))).withdrawn).toHaveLength(1);
  });

  it("pays nobody at the zero address", async () => {
    const asked = await listed(d, KEY, all(), { recipient: zeroAddress });
    expect(new Set(await errorsOf(asked))).toEqual(new Set(["RecipientZero"]));
  });
});
