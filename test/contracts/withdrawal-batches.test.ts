import type { Hex } from "viem";
import * as viem from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { beforeEach, describe, expect, it } from "vitest";
import { MAX_AMOUNT } from "../../core/model.ts";
import { assetsIn, commitRollup, commitValidium, entry, provenArgs } from "./fixture/batches.ts";
import { COIN_QUANTUM, type Deployment, openChain, type TestAsset } from "./fixture/deployment.ts";
import { errorIn, outcomeOf } from "./fixture/outcomes.ts";
import {
  authorizationOf,
  batchArgs,
  ITEM_GAS,
  listed,
  type Request,
  request,
  SOME_TERMS,
  signed,
  withdrawArgs,
} from "./fixture/withdrawals.ts";

const { fresh } = await openChain();

describe("a batch of withdrawals", () => {
  let d: Deployment;
  let owner: viem.Address;
  beforeEach(async () => {
    d = await fresh();
    owner = d.actors.owner.account.address;
  });

  const submit = async (requests: readonly Request[], gas = 16_000_000n) => {
    const hash = await d.state.write.withdrawBatch(batchArgs(requests), {
      account: d.actors.owner.account,
      gas,
    });
    return outcomeOf(d, hash);
  };

  it("serves many owners and standards in one transaction", async () => {
    const keys = Array.from({ length: 3 }, () => privateKeyToAccount(generatePrivateKey()));
    const slots = keys.flatMap(({ address }, i) => [
      entry(d.assets.coin, address, "", 5n),
      entry(d.assets.card, address, String(i)),
      entry(d.assets.item, address, "1", 2n),
    ]);
    const batches = [
      await commitRollup(d, slots),
      await commitValidium(
        d,
        slots.map((slot) => ({
          ...slot,
          mintingBlob: slot.mintingBlob === "0x" ? slot.mintingBlob : ("0x39" as Hex),
        })),
      ),
    ];
    await d.mature();
    const requests: Request[] = [];
    for (const batch of batches) {
      for (const slot of slots.keys()) {
        const key = keys[Math.floor(slot / 3)];
        if (key) requests.push(await signed(d, key, request(batch, slot)));
      }
    }
    const { withdrawn, failed } = await submit(requests);
    // The two later ones of three validium cards of one id find it minted.
    expect(withdrawn).toHaveLength(16);
    expect(failed).toHaveLength(2);
    for (const { address } of keys)
      expect(await d.tokens.coin.read.balanceOf([address])).toBe(10n * COIN_QUANTUM);
  });

  it("pays and refuses as `withdraw` does, for the same reasons", async () => {
    const slots = [
      entry(d.assets.coin, owner, "", 10n),
      entry(d.assets.card, owner, "7"),
      entry(d.assets.item, owner, "1", 3n),
      entry(d.assets.coin, owner, "", 1n << 63n),
      entry(d.assets.coin, owner, "1", 1n),
      entry(d.assets.card, owner, ""),
      entry(d.assets.card, owner, "9", 2n),
      entry({ ...d.assets.coin, assetType: viem.pad("0x01") }, owner, "", 1n),
    ];
    // The manifest cannot name what is not registered.
    const batch = await commitValidium(d, slots, assetsIn(slots.slice(0, -1)));
    const at = (slot: number, change: Partial<Request> = {}) => request(batch, slot, change);
    const stranger = d.actors.stranger.account.address;
    const own = slots.flatMap((_, slot) => [
      at(slot),
      at(slot, { quantity: 0n }),
      at(slot, { quantity: 2n, recipient: stranger }),
      at(slot, { quantity: MAX_AMOUNT }),
      at(slot, { recipient: viem.zeroAddress }),
      at(slot, { siblings: at(slot).siblings.slice(1) }),
      at(slot, { siblings: [...at(slot).siblings].reverse() }),
      at(slot, { header: { ...batch.header, committedAt: 0n } }),
      at(slot, { vault: { ...at(slot).vault, owner: stranger } }),
    ]);
    const call = { abi: d.state.abi, address: d.state.address, account: owner, gas: 16_000_000n };
    for (const matured of [false, true]) {
      if (matured) await d.mature();
      for (const one of own) {
        const args = withdrawArgs(one);
        const single = await d.publicClient
          .simulateContract({ ...call, functionName: "withdraw", args })
          .then(() => null, errorIn);
        const snapshot = await d.testClient.snapshot();
        const { withdrawn, failed } = await submit([one]);
        await d.testClient.revert({ id: snapshot });
        if (single === null) expect(withdrawn).toEqual([one.vault.vaultId]);
        else expect(failed).toEqual([{ vaultId: one.vault.vaultId, ...single }]);
      }
    }
  });

  it("of nobody's tokens does nothing", async () => {
    expect(await submit([])).toMatchObject({ withdrawn: [], failed: [] });
  });

  it("isolates each faulty item, reports its reason, and undoes nothing of the others", async () => {
    const slots = [
      ...Array.from({ length: 8 }, () => entry(d.assets.coin, owner, "", 10n)),
      entry(d.assets.card, owner, "1"),
      entry(d.assets.coin, d.actors.stranger.account.address, "", 10n),
    ];
    const batch = await commitRollup(d, slots);
    const at = (slot: number, change: Partial<Request> = {}) => request(batch, slot, change);
    const forged = await signed(d, d.actors.relayer, at(9));
    const faulty: [Request, string][] = [
      [at(0, { quantity: 11n }), "QuantityTooLarge"],
      [at(1, { quantity: 0n }), "QuantityZero"],
      [at(2, { siblings: [] }), "ProofInvalid"],
      [at(3, { header: { ...batch.header, sequence: 9n } }), "HeaderMismatch"],
      [at(4, { recipient: viem.zeroAddress }), "RecipientZero"],
      [await signed(d, d.actors.owner, at(5), { deadline: 1n }), "AuthorizationExpired"],
      [at(8), "NotMature"],
      [forged, "SignatureInvalid"],
      [at(9), "NotOwner"],
    ];
    const requests = [at(6), ...faulty.map(([asked]) => asked), at(7), at(7)];
    const { withdrawn, failed } = await submit(requests);
    expect(withdrawn).toEqual([at(6), at(7)].map(({ vault }) => vault.vaultId));
    // Items come in the order of their groups, so what failed is compared without its order.
    const expected = [...faulty, [at(7), "VaultExhausted"] as const].map(([{ vault }, error]) => [
      vault.vaultId,
      error,
    ]);
    expect(failed.map(({ vaultId, error }) => [vaultId, error]).sort()).toEqual(expected.sort());
    expect(await d.tokens.coin.read.balanceOf([owner])).toBe(20n * COIN_QUANTUM);
    // Vaults whose items failed can be withdrawn as they should have been.
    await d.mature();
    expect((await submit([0, 1, 2, 3, 4, 5, 8].map((slot) => at(slot)))).failed).toEqual([]);
  });

  it("returns how many items failed", async () => {
    const batch = await commitRollup(d, [
      entry(d.assets.coin, owner, "", 1n),
      entry(d.assets.card, owner, "1"),
    ]);
    const { result } = await d.publicClient.simulateContract({
      abi: d.state.abi,
      address: d.state.address,
      functionName: "withdrawBatch",
      args: batchArgs([request(batch, 1), request(batch, 0)]),
      account: owner,
      gas: 16_000_000n,
    });
    expect(result).toBe(1n);
  });

  describe("with a hostile token among them", () => {
    /**
     * Withdraws from the hostile asset between two honest items, and expects that only it fails.
     */
    const surviving = async (asset: TestAsset) => {
      const batch = await commitRollup(d, [
        entry(d.assets.coin, owner, "", 1n),
        entry(asset, owner, "1"),
        entry(d.assets.item, owner, "1", 1n),
      ]);
      await d.mature();
      const asked = [0, 1, 2].map((slot) => request(batch, slot));
      const result = await submit(asked);
      expect(result.withdrawn).toEqual([asked[0], asked[2]].map((item) => item?.vault.vaultId));
      expect(result.failed).toHaveLength(1);
      expect(await d.state.read.verifyVault(provenArgs(request(batch, 1)))).toBe(0n);
      return { ...result, hostile: request(batch, 1) };
    };

    it("that refuses is reported with its words, and can be asked again", async () => {
      const token = await d.viem.deployContract("RevertingToken");
      const { failed, hostile } = await surviving(await d.register("erc1155", token.address));
      expect(failed[0]?.error).toBe("TokenRefused");
      const refusal = viem.decodeErrorResult({ abi: token.abi, data: failed[0]?.args[1] as Hex });
      expect(refusal.errorName).toBe("Refused");
      await token.write.setRefusing([false]);
      expect((await submit([hostile])).withdrawn).toEqual([hostile.vault.vaultId]);
      expect(await token.read.balanceOf([owner])).toBe(1n);
    });

    it("that burns all its gas gets no more than an item's", async () => {
      const token = await d.viem.deployContract("GasBurner", [viem.maxUint256]);
      const { gasUsed } = await surviving(await d.register("erc1155", token.address));
      expect(gasUsed).toBeLessThan(2n * ITEM_GAS);
    });

    it("that reverts with more bytes than can be kept", async () => {
      const token = await d.viem.deployContract("ReturnBomb", [200_000n, true]);
      const { failed, gasUsed } = await surviving(await d.register("erc1155", token.address));
      expect(failed[0]?.error).toBe("TokenRefused");
      expect(viem.size(failed[0]?.args[1] as Hex)).toBe(256);
      expect(gasUsed).toBeLessThan(2n * ITEM_GAS);
    });

    it("that reverts with a megabyte, which its gas cannot pay", async () => {
      const token = await d.viem.deployContract("ReturnBomb", [1n << 20n, true]);
      const { gasUsed } = await surviving(await d.register("erc1155", token.address));
      expect(gasUsed).toBeLessThan(2n * ITEM_GAS);
    });

    it("that is no contract any more", async () => {
      const token = await d.viem.deployContract("RevertingToken");
      const asset = await d.register("erc1155", token.address);
      await d.testClient.setCode({ address: token.address, bytecode: "0x" });
      expect((await surviving(asset)).failed[0]?.error).toBe("TokenWithoutCode");
    });

    it("or a wallet that burns gas, answers too much, or reverts", async () => {
      const key = privateKeyToAccount(generatePrivateKey());
      for (const manner of [1, 2, 3]) {
        const wallet = await d.viem.deployContract("Wallet1271", [key.address, manner]);
        const batch = await commitRollup(d, [
          entry(d.assets.coin, wallet.address, "", 1n),
          entry(d.assets.coin, owner, "", 1n),
        ]);
        const asked = [await signed(d, key, request(batch, 0)), request(batch, 1)];
        const { withdrawn, failed } = await submit(asked);
        expect(failed.map(({ error }) => error)).toEqual(["SignatureInvalid"]);
        expect(withdrawn).toEqual([request(batch, 1).vault.vaultId]);
      }
    });
  });

  it("takes a token's answer of any size for a mint, without copying it", async () => {
    const token = await d.viem.deployContract("ReturnBomb", [200_000n, false]);
    const batch = await commitRollup(d, [
      entry(await d.register("erc1155", token.address), owner, "1"),
    ]);
    const { withdrawn, gasUsed } = await submit([request(batch, 0)]);
    expect(withdrawn).toHaveLength(1);
    expect(gasUsed).toBeLessThan(400_000n);
  });

  it("lets no item fail for want of gas that the caller has withheld", async () => {
    const token = await d.viem.deployContract("GasBurner", [viem.maxUint256]);
    const burner = await d.register("erc1155", token.address);
    const batch = await commitRollup(d, [
      ...Array.from({ length: 3 }, () => entry(burner, owner, "1")),
      entry(d.assets.coin, owner, "", 1n),
    ]);
    const asked = [0, 1, 2, 3].map((slot) => request(batch, slot));
    const write = (gas: bigint) =>
      d.state.write.withdrawBatch(batchArgs(asked), { account: d.actors.owner.account, gas });
    // Enough for the first two to burn; the third, or the fourth, would get less than its gas.
    await d.refuses(write(1_800_000n), "GasTooLow", [2n]);
    await d.refuses(write(2_450_000n), "GasTooLow", [3n]);
    expect((await outcomeOf(d, await write(2_900_000n))).failed).toHaveLength(3);
    expect(await d.tokens.coin.read.balanceOf([owner])).toBe(COIN_QUANTUM);
  });

  it("gives an item its gas in full or reverts, whatever must be copied for it first", async () => {
    const token = await d.viem.deployContract("GasBurner", [400_000n]);
    const thirsty = await d.register("erc1155", token.address);
    const batch = await commitRollup(d, [
      entry(thirsty, owner, "1"),
      entry(d.assets.coin, owner, "", 1n),
    ]);
    // 60 kB in the second item: copying them costs nearly what is held back for the report.
    const padding = Array.from({ length: 1_900 }, () => viem.zeroHash);
    const asked = [request(batch, 0), request(batch, 1, { siblings: padding })];
    const call = {
      abi: d.state.abi,
      address: d.state.address,
      functionName: "withdrawBatch",
      args: batchArgs(asked),
      account: owner,
    } as const;
    let succeeded = 0;
    for (let gas = 1_050_000n; gas < 1_700_000n; gas += 20_000n) {
      const outcome = await d.publicClient
        .simulateContract({ ...call, gas })
        .catch((error: viem.BaseError) => error);
      if (outcome instanceof viem.BaseError) {
        expect(
          outcome.walk((cause) => cause instanceof viem.ContractFunctionRevertedError),
        ).toMatchObject({
          data: { errorName: "GasTooLow" },
        });
      } else {
        expect(outcome.result).toBe(1n);
        succeeded++;
      }
    }
    expect(succeeded).toBeGreaterThan(0);
    expect(succeeded).toBeLessThan(33);
  });

  it("reverts for want of gas in no case when it has the gas that a relay sends, whatever its items do", async () => {
    const token = await d.viem.deployContract("GasBurner", [viem.maxUint256]);
    const burner = await d.register("erc1155", token.address);
    const key = privateKeyToAccount(generatePrivateKey());
    const wallet = await d.viem.deployContract("Wallet1271", [key.address, 1]);
    const asked: Request[] = [];
    for (let i = 0; i < 5; i++) {
      const batch = await commitRollup(d, [
        entry(burner, owner, "1"),
        entry(d.assets.coin, wallet.address, "", 1n),
      ]);
      // The longest signature that the server takes, for a wallet that burns its gas.
      const [one] = await listed(d, key, [request(batch, 1)]);
      const { list, deadline } = authorizationOf(one as Request);
      const authorization = { deadline, list, signature: `0x${"ff".repeat(4_096)}` as Hex };
      asked.push(request(batch, 0), request(batch, 1, { authorization }));
    }
    const last = await commitRollup(d, [entry(d.assets.coin, owner, "", 1n)]);
    asked.push(request(last, 0));
    const data = viem.encodeFunctionData({
      abi: d.state.abi,
      functionName: "withdrawBatch",
      args: batchArgs(asked),
    });
    const gas =
      21_000n + 16n * BigInt(viem.size(data)) + BigInt(asked.length + 5) * 680_000n + 50_000n;
    const { withdrawn, failed } = await submit(asked, gas);
    expect(failed).toHaveLength(10);
    expect(withdrawn).toEqual([asked[10]?.vault.vaultId]);
  });

  it("gives an item the gas that its caller sets, for tokens that need more than the least", async () => {
    const token = await d.viem.deployContract("GasBurner", [700_000n]);
    const thirsty = await d.register("erc1155", token.address);
    const asked = [request(await commitRollup(d, [entry(thirsty, owner, "1")]), 0)];
    const submitWith = async (itemGas: bigint) =>
      outcomeOf(
        d,
        await d.state.write.withdrawBatch(batchArgs(asked, itemGas), {
          account: d.actors.owner.account,
          gas: 16_000_000n,
        }),
      );
    expect((await submitWith(ITEM_GAS)).failed).toHaveLength(1);
    expect((await submitWith(1_000_000n)).withdrawn).toHaveLength(1);
    const everything = d.state.write.withdrawBatch(batchArgs(asked, viem.maxUint64), d.by("owner"));
    await d.refuses(everything, "GasTooLow", [0n]);
  });

  describe("with items packed wrongly", () => {
    let group: ReturnType<typeof batchArgs>[0][number];
    let vaultId: bigint;
    const item = (index: number) => sliceItems(group.items)[index] as Hex;
    const write = (items: Hex) =>
      d.state.write.withdrawBatch([[{ ...group, items }], [], ITEM_GAS], d.by("owner"));
    beforeEach(async () => {
      const batch = await commitRollup(d, [
        entry(d.assets.coin, owner, "", 5n),
        entry(d.assets.coin, owner, "", 7n),
      ]);
      const [only] = batchArgs([request(batch, 0), request(batch, 1)])[0];
      if (only === undefined) throw new Error("no group");
      group = only;
      vaultId = request(batch, 0).vault.vaultId;
    });

    it("refuses the call when they break off or name no slot", async () => {
      const refused = (items: Hex, offset: bigint) =>
        d.refuses(write(items), "ItemsMalformed", [offset]);
      const behind = BigInt(viem.size(item(0)));
      await refused(viem.slice(group.items, 0, viem.size(group.items) - 1), behind);
      await refused(viem.concat([item(0), "0x00"]), behind);
      await refused("0xffffffffff", 0n);
      // Slot 2^20.
      await refused(viem.concat([item(0), "0x0000100000"]), behind);
    });

    it("fails an item alone when its parts do not fill it", async () => {
      const body = viem.slice(item(0), 5);
      const faulty = [
        "0x" as Hex,
        viem.slice(body, 0, 20),
        viem.slice(body, 0, viem.size(body) - 1),
        viem.concat([body, "0x00"]),
        viem.concat(["0x10", viem.slice(body, 1)]),
        viem.concat(["0x03", viem.slice(body, 1)]),
        viem.concat([viem.slice(body, 0, 37), "0xff", viem.slice(body, 38)]),
      ];
      const hash = await write(viem.concat([...faulty.map((one) => framed(0, one)), item(1)]));
      const { withdrawn, failed } = await outcomeOf(d, hash);
      expect(failed).toEqual(
        faulty.map(() => ({ vaultId, error: "ItemMalformed", args: [vaultId] })),
      );
      expect(withdrawn).toEqual([vaultId + 1n]);
      expect((await outcomeOf(d, await write(item(0)))).withdrawn).toEqual([vaultId]);
    });
  });

  it("is the only caller of an item", async () => {
    const { vault } = request(await commitRollup(d, [entry(d.assets.coin, owner, "", 1n)]), 0);
    await d.refuses(
      d.state.write.withdrawItem(
        [SOME_TERMS, vault.vaultId, vault.assetType, BigInt(owner)],
        d.by("owner"),
      ),
      "NotSelf",
    );
  });
});

/** An item's body with its length and slot in front. */
function framed(slot: number, body: Hex): Hex {
  return viem.concat([
    viem.numberToHex(viem.size(body), { size: 2 }),
    viem.numberToHex(slot, { size: 3 }),
    body,
  ]);
}

/** The items of a group, each with its length and slot in front. */
function sliceItems(items: Hex): Hex[] {
  const found: Hex[] = [];
  for (let rest = items; rest !== "0x"; ) {
    const end = 5 + viem.hexToNumber(viem.slice(rest, 0, 2));
    found.push(viem.slice(rest, 0, end));
    rest = end === viem.size(rest) ? "0x" : viem.slice(rest, end);
  }
  return found;
}
