import {
  type Address,
  BaseError,
  ContractFunctionRevertedError,
  decodeErrorResult,
  type Hash,
  type Hex,
  maxUint256,
  parseEventLogs,
  size,
  zeroAddress,
} from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { beforeEach, describe, expect, it } from "vitest";
import { commitRollup, commitValidium, entry } from "./fixture/batches.ts";
import { COIN_QUANTUM, type Deployment, MATURITY, openChain, type TestAsset } from "./fixture/deployment.ts";
import { type Request, request, signed } from "./fixture/withdrawals.ts";

const { fresh } = await openChain();
const ITEM_GAS = 500_000n;

describe("a batch of withdrawals", () => {
  let d: Deployment;
  let owner: Address;
  beforeEach(async () => {
    d = await fresh();
    owner = d.actors.owner.account.address;
  });

  const submit = async (requests: readonly Request[], gas = 16_000_000n) => {
    const hash = await d.state.write.withdrawBatch([requests], { account: d.actors.owner.account, gas });
    return outcome(d, hash);
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
        slots.map((slot) => ({ ...slot, blob: slot.blob === "0x" ? slot.blob : ("0x39" as Hex) })),
      ),
    ];
    await d.connection.networkHelpers.time.increase(MATURITY);
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
    for (const { address } of keys) expect(await d.tokens.coin.read.balanceOf([address])).toBe(10n * COIN_QUANTUM);
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
      [at(4, { recipient: zeroAddress }), "RecipientZero"],
      [await signed(d, d.actors.owner, at(5), { deadline: 1n }), "AuthorizationExpired"],
      [at(8), "NotMature"],
      [forged, "SignatureInvalid"],
      [at(9), "NotOwner"],
    ];
    const requests = [at(6), ...faulty.map(([asked]) => asked), at(7), at(7)];
    const { withdrawn, failed } = await submit(requests);
    expect(withdrawn).toEqual([at(6), at(7)].map(({ vault }) => vault.vaultId));
    expect(failed.map(({ error }) => error)).toEqual([...faulty.map(([, error]) => error), "VaultExhausted"]);
    expect(await d.tokens.coin.read.balanceOf([owner])).toBe(20n * COIN_QUANTUM);
    // What failed can be withdrawn as it should have been.
    await d.connection.networkHelpers.time.increase(MATURITY);
    expect((await submit([0, 1, 2, 3, 4, 5, 8].map((slot) => at(slot)))).failed).toEqual([]);
  });

  it("returns which items succeeded", async () => {
    const batch = await commitRollup(d, [entry(d.assets.coin, owner, "", 1n), entry(d.assets.card, owner, "1")]);
    const { result } = await d.publicClient.simulateContract({
      abi: d.state.abi,
      address: d.state.address,
      functionName: "withdrawBatch",
      args: [[request(batch, 1), request(batch, 0)]],
      account: owner,
      gas: 16_000_000n,
    });
    expect(result).toEqual([false, true]);
  });

  describe("with a hostile token among them", () => {
    /** Withdraws from the hostile asset between two honest items, and expects that only it fails. */
    const surviving = async (asset: TestAsset) => {
      const batch = await commitRollup(d, [
        entry(d.assets.coin, owner, "", 1n),
        entry(asset, owner, "1"),
        entry(d.assets.item, owner, "1", 1n),
      ]);
      await d.connection.networkHelpers.time.increase(MATURITY);
      const asked = [0, 1, 2].map((slot) => request(batch, slot));
      const result = await submit(asked);
      expect(result.withdrawn).toEqual([asked[0], asked[2]].map((item) => item?.vault.vaultId));
      expect(result.failed).toHaveLength(1);
      const { vault, header, siblings } = request(batch, 1);
      expect(await d.state.read.verifyVault([vault, header, siblings])).toBe(0n);
      return { ...result, hostile: request(batch, 1) };
    };

    it("that refuses: its words are in the report, and it can be asked again", async () => {
      const token = await d.viem.deployContract("RevertingToken");
      const { failed, hostile } = await surviving(await d.register("erc1155", token.address));
      expect(failed[0]?.error).toBe("TokenRefused");
      const refusal = decodeErrorResult({ abi: token.abi, data: failed[0]?.args[1] as Hex });
      expect(refusal.errorName).toBe("Refused");
      await token.write.setRefusing([false]);
      expect((await submit([hostile])).withdrawn).toEqual([hostile.vault.vaultId]);
      expect(await token.read.balanceOf([owner])).toBe(1n);
    });

    it("that burns all its gas: it gets no more than an item's", async () => {
      const token = await d.viem.deployContract("GasBurner", [maxUint256]);
      const { gasUsed } = await surviving(await d.register("erc1155", token.address));
      expect(gasUsed).toBeLessThan(2n * ITEM_GAS);
    });

    it("that reverts with more bytes than can be kept", async () => {
      const token = await d.viem.deployContract("ReturnBomb", [200_000n, true]);
      const { failed, gasUsed } = await surviving(await d.register("erc1155", token.address));
      expect(failed[0]?.error).toBe("TokenRefused");
      expect(size(failed[0]?.args[1] as Hex)).toBe(256);
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
    const batch = await commitRollup(d, [entry(await d.register("erc1155", token.address), owner, "1")]);
    const { withdrawn, gasUsed } = await submit([request(batch, 0)]);
    expect(withdrawn).toHaveLength(1);
    expect(gasUsed).toBeLessThan(400_000n);
  });

  it("lets no item fail for want of gas that the caller has withheld", async () => {
    const token = await d.viem.deployContract("GasBurner", [maxUint256]);
    const burner = await d.register("erc1155", token.address);
    const batch = await commitRollup(d, [
      ...Array.from({ length: 3 }, () => entry(burner, owner, "1")),
      entry(d.assets.coin, owner, "", 1n),
    ]);
    const asked = [0, 1, 2, 3].map((slot) => request(batch, slot));
    const write = (gas: bigint) => d.state.write.withdrawBatch([asked], { account: d.actors.owner.account, gas });
    // Enough for the first two to burn; the third, or the fourth, would get less than its gas.
    await d.viem.assertions.revertWithCustomErrorWithArgs(write(1_450_000n), d.state, "GasTooLow", [2n]);
    await d.viem.assertions.revertWithCustomErrorWithArgs(write(1_950_000n), d.state, "GasTooLow", [3n]);
    expect((await outcome(d, await write(2_300_000n))).failed).toHaveLength(3);
    expect(await d.tokens.coin.read.balanceOf([owner])).toBe(COIN_QUANTUM);
  });

  it("gives an item its gas in full or reverts, whatever must be copied for it first", async () => {
    const token = await d.viem.deployContract("GasBurner", [400_000n]);
    const thirsty = await d.register("erc1155", token.address);
    const batch = await commitRollup(d, [entry(thirsty, owner, "1"), entry(d.assets.coin, owner, "", 1n)]);
    // 100 kB behind the item: copying them costs more than what is held back for the report.
    const padding = { deadline: 0n, signature: `0x${"00".repeat(100_000)}` as Hex };
    const asked = [request(batch, 0), request(batch, 1, { authorization: padding })];
    const call = {
      abi: d.state.abi,
      address: d.state.address,
      functionName: "withdrawBatch",
      args: [asked],
      account: owner,
    } as const;
    let succeeded = 0;
    for (let gas = 1_050_000n; gas < 1_700_000n; gas += 20_000n) {
      const outcome = await d.publicClient.simulateContract({ ...call, gas }).catch((error: BaseError) => error);
      if (outcome instanceof BaseError) {
        expect(outcome.walk((cause) => cause instanceof ContractFunctionRevertedError)).toMatchObject({
          data: { errorName: "GasTooLow" },
        });
      } else {
        expect(outcome.result).toEqual([true, false]);
        succeeded++;
      }
    }
    expect(succeeded).toBeGreaterThan(0);
    expect(succeeded).toBeLessThan(33);
  });

  it("is the only caller of an item", async () => {
    const batch = await commitRollup(d, [entry(d.assets.coin, owner, "", 1n)]);
    await d.viem.assertions.revertWithCustomError(
      d.state.write.withdrawItem([request(batch, 0), owner], { account: d.actors.owner.account }),
      d.state,
      "NotSelf",
    );
  });
});

/** What a batch's events tell of its items, in order. */
async function outcome(d: Deployment, hash: Hash) {
  const { logs, gasUsed } = await d.publicClient.getTransactionReceipt({ hash });
  const events = parseEventLogs({ abi: d.state.abi, logs, eventName: ["Withdrawn", "WithdrawalFailed"] });
  const withdrawn: bigint[] = [];
  const failed: { vaultId: bigint; error: string; args: readonly unknown[] }[] = [];
  for (const event of events) {
    if (event.eventName === "Withdrawn") withdrawn.push(event.args.vaultId);
    else failed.push({ vaultId: event.args.vaultId, ...named(d, event.args.reason) });
  }
  return { withdrawn, failed, gasUsed };
}

/** The error's name; an empty reason means that the item ran out of gas. */
function named(d: Deployment, reason: Hex) {
  if (reason === "0x") return { error: "out of gas", args: [] };
  const { errorName, args } = decodeErrorResult({ abi: d.state.abi, data: reason });
  return { error: errorName, args: args ?? [] };
}
