import {
  type Address,
  encodeFunctionData,
  hexToBigInt,
  hexToBytes,
  toHex,
  zeroAddress,
  zeroHash,
} from "viem";
import { beforeEach, describe, expect, it } from "vitest";
import { MAX_AMOUNT, MODES } from "../../core/model.ts";
import { commit, commitRollup, entry, provenArgs } from "./fixture/batches.ts";
import {
  COIN_QUANTUM,
  type Deployment,
  MATURITY,
  MODE,
  openChain,
  SCHEME,
  STANDARD,
} from "./fixture/deployment.ts";
import { batchArgs, type Request, request, signed, withdrawArgs } from "./fixture/withdrawals.ts";

const { fresh } = await openChain();

describe.each(MODES)("withdrawals from %s", (mode) => {
  let d: Deployment;
  let owner: Address;
  let friend: Address;
  beforeEach(async () => {
    d = await fresh();
    owner = d.actors.owner.account.address;
    friend = d.actors.stranger.account.address;
  });

  const withdraw = (asked: Request, account = d.actors.owner.account) =>
    d.state.write.withdraw(withdrawArgs(asked), { account });

  it("mint an ERC-20, quantized units times the quantum", async () => {
    const batch = await commit[mode](d, [entry(d.assets.coin, owner, "", 70n)]);
    const { vault } = request(batch, 0);
    await d.tells(withdraw(request(batch, 0)), "Withdrawn", [
      vault.vaultId,
      request(batch, 0).recipient,
      70n,
      70n,
    ]);
    expect(await d.tokens.coin.read.balanceOf([owner])).toBe(70n * COIN_QUANTUM);
  });

  it("mint an ERC-721 once it is mature, to the id that its text names", async () => {
    const batch = await commit[mode](d, [
      entry(d.assets.card, owner, "4711"),
      entry(d.assets.card, owner, "a hero"),
    ]);
    await d.mature();
    await withdraw(request(batch, 0));
    await withdraw(request(batch, 1));
    expect(await d.tokens.card.read.balanceOf([owner])).toBe(2n);
    expect((await d.tokens.card.read.ownerOf([4711n])).toLowerCase()).toBe(owner.toLowerCase());
  });

  it("mint an ERC-1155 without waiting, in parts until nothing is left", async () => {
    const batch = await commit[mode](d, [entry(d.assets.item, owner, "9", 10n)]);
    const { vaultId } = request(batch, 0).vault;
    for (const [quantity, total] of [
      [3n, 3n],
      [1n, 4n],
      [6n, 10n],
    ] as const) {
      await withdraw(request(batch, 0, { quantity }));
      expect(await d.tokens.item.read.balanceOf([owner, 9n])).toBe(total);
      expect(await d.state.read.withdrawn([vaultId, STANDARD.erc1155])).toBe(total);
    }
    await d.refuses(withdraw(request(batch, 0, { quantity: 1n })), "VaultExhausted", [vaultId]);
  });

  it("mint a foreign token's in its own scheme", async () => {
    const batch = await commit[mode](d, [entry(d.assets.imxCard, owner, "{12}:{onchain: blue}")]);
    await d.mature();
    await withdraw(request(batch, 0));
    expect((await d.tokens.imxCard.read.ownerOf([12n])).toLowerCase()).toBe(owner.toLowerCase());
    expect(await d.tokens.imxCard.read.blueprints([12n])).toBe(toHex("onchain: blue"));
  });

  it("go to whomever the owner names", async () => {
    const batch = await commit[mode](d, [entry(d.assets.coin, owner, "", 5n)]);
    await withdraw(request(batch, 0, { recipient: friend }));
    expect(await d.tokens.coin.read.balanceOf([friend])).toBe(5n * COIN_QUANTUM);
    expect(await d.tokens.coin.read.balanceOf([owner])).toBe(0n);
  });

  it("never exceed the vault", async () => {
    const slots = [
      entry(d.assets.coin, owner, "", 10n),
      entry(d.assets.item, owner, "1", 10n),
      entry(d.assets.card, owner, "1"),
    ];
    const batch = await commit[mode](d, slots);
    await d.mature();
    const most = [10n, 10n, 1n];
    for (const [slot, available] of most.entries()) {
      const { vaultId } = request(batch, slot).vault;
      for (const quantity of [available + 1n, MAX_AMOUNT, 2n ** 64n - 1n]) {
        await d.refuses(withdraw(request(batch, slot, { quantity })), "QuantityTooLarge", [
          vaultId,
          quantity,
          available,
        ]);
      }
    }
    await withdraw(request(batch, 0, { quantity: 4n }));
    await d.refuses(withdraw(request(batch, 0, { quantity: 7n })), "QuantityTooLarge", [
      request(batch, 0).vault.vaultId,
      7n,
      6n,
    ]);
  });

  it("happen once", async () => {
    const batch = await commit[mode](d, [
      entry(d.assets.coin, owner, "", 10n),
      entry(d.assets.card, owner, "1"),
    ]);
    await d.mature();
    for (const slot of [0, 1]) {
      await withdraw(request(batch, slot));
      await d.refuses(withdraw(request(batch, slot)), "VaultExhausted", [
        request(batch, slot).vault.vaultId,
      ]);
    }
  });

  it("reach the largest amount without touching the neighbours' words", async () => {
    const slots = Array.from({ length: 6 }, (_, i) =>
      entry(d.assets.item, owner, String(i), MAX_AMOUNT),
    );
    const batch = await commit[mode](d, slots);
    for (const slot of [1, 4]) await withdraw(request(batch, slot));
    for (const slot of slots.keys()) {
      const { vaultId } = request(batch, slot).vault;
      expect(await d.state.read.withdrawn([vaultId, STANDARD.erc1155])).toBe(
        slot === 1 || slot === 4 ? MAX_AMOUNT : 0n,
      );
    }
  });

  it("spend one bit an ERC-721, of 256 that share a word", async () => {
    const count = 260;
    const slots = Array.from({ length: count }, (_, i) => entry(d.assets.card, owner, String(i)));
    const batch = await commit[mode](d, slots);
    await d.mature();
    const taken = [0, 7, 255, 256, 259];
    for (const slot of taken) await withdraw(request(batch, slot));
    for (let slot = 0; slot < count; slot++) {
      const { vaultId } = request(batch, slot).vault;
      expect(await d.state.read.withdrawn([vaultId, STANDARD.erc721])).toBe(
        taken.includes(slot) ? 1n : 0n,
      );
    }
  });

  it("wait for an ERC-721's maturity, to the second", async () => {
    const batch = await commit[mode](d, [entry(d.assets.card, owner, "1")]);
    const { vault, header } = request(batch, 0);
    const maturesAt = header.committedAt + MATURITY;
    const { time } = d.connection.networkHelpers;
    await time.setNextBlockTimestamp(maturesAt - 1n);
    await d.refuses(
      d.state.write.withdraw(withdrawArgs(request(batch, 0)), {
        account: d.actors.owner.account,
        gas: 1_000_000n,
      }),
      "NotMature",
      [vault.vaultId, maturesAt],
    );
    await time.setNextBlockTimestamp(maturesAt);
    await withdraw(request(batch, 0));
  });

  it("need a quantity and a recipient", async () => {
    const batch = await commit[mode](d, [entry(d.assets.coin, owner, "", 5n)]);
    const { vaultId } = request(batch, 0).vault;
    await d.refuses(withdraw(request(batch, 0, { quantity: 0n })), "QuantityZero", [vaultId]);
    await d.refuses(withdraw(request(batch, 0, { recipient: zeroAddress })), "RecipientZero", [
      vaultId,
    ]);
  });

  it("need the batch's own header, to the last field", async () => {
    const batch = await commit[mode](d, [entry(d.assets.coin, owner, "", 5n)]);
    await commit[mode](d, [entry(d.assets.coin, owner, "", 6n)]);
    const asked = request(batch, 0);
    const { header, vault } = asked;
    const changes = [
      { batchRoot: toHex("another root", { size: 32 }) },
      { vaultCount: header.vaultCount + 1 },
      { committedAt: header.committedAt - MATURITY },
      { sequence: header.sequence + 1n },
    ];
    for (const change of changes) {
      await d.refuses(withdraw({ ...asked, header: { ...header, ...change } }), "HeaderMismatch", [
        vault.vaultId,
      ]);
    }
    // Ids of a batch that does not exist, of the other mode, and with a bit that no place uses.
    for (const bit of [1n << 40n, 1n << 52n, 1n << 62n, 1n << 63n]) {
      const vaultId = vault.vaultId ^ bit;
      await d.refuses(withdraw({ ...asked, vault: { ...vault, vaultId } }), "HeaderMismatch", [
        vaultId,
      ]);
    }
  });

  it("need the vault's own proof", async () => {
    const slots = Array.from({ length: 5 }, (_, i) => entry(d.assets.item, owner, String(i), 5n));
    const batch = await commit[mode](d, slots);
    const asked = request(batch, 2);
    const { vault, siblings } = asked;
    const wrong: Partial<Request>[] = [
      { siblings: [] },
      { siblings: siblings.slice(0, -1) },
      { siblings: [...siblings, ...siblings.slice(0, 1)] },
      { siblings: request(batch, 3).siblings },
      { siblings: siblings.toReversed() },
      { vault: { ...vault, amount: 6n } },
      { vault: { ...vault, owner: friend } },
      { vault: { ...vault, mintingBlob: toHex("3") } },
      { vault: { ...vault, vaultId: vault.vaultId + 1n } },
      { vault: { ...vault, vaultId: vault.vaultId + 8n } },
      { vault: { ...vault, assetType: BigInt(d.assets.coin.assetType) } },
    ];
    for (const change of wrong) {
      const changed = { ...asked, ...change };
      await d.refuses(withdraw(changed), "ProofInvalid", [changed.vault.vaultId]);
    }
    const elsewhere = { ...asked, vault: { ...vault, chainId: 1n } };
    await d.refuses(withdraw(elsewhere), "OtherChain", [1n]);
    await withdraw(asked);
  });

  it.each([
    ["vault id", 0, 64],
    ["chain", 1, 64],
    ["owner", 2, 160],
    ["amount", 4, 64],
    ["minting blob", 5, 248],
    ["minting blob's length", 6, 16],
  ])("need a vault whose %s is as wide as the interface says", async (_, word, bit) => {
    const batch = await commit[mode](d, [entry(d.assets.coin, owner, "", 70n)]);
    const args = withdrawArgs(request(batch, 0));
    const data = hexToBytes(
      encodeFunctionData({ abi: d.state.abi, functionName: "withdraw", args }),
    );
    // The vault lies behind its offset, which is the first argument. Its minting blob is an offset
    // too.
    const place = 4 + Number(hexToBigInt(toHex(data.slice(4, 36)))) + 32 * word + 31 - bit / 8;
    data[place] = 0x80;
    const call = () =>
      d.publicClient.call({ to: d.state.address, account: owner, data: toHex(data) });
    await expect(call()).rejects.toThrow("reverted");
    data[place] = 0;
    await call();
  });

  it("need the path of the vault's own asset in the batch's manifest", async () => {
    const { coin, item, card } = d.assets;
    const batch = await commit[mode](d, [
      entry(item, owner, "7", 5n),
      entry(coin, owner, "", 5n),
      entry(card, owner, "1"),
    ]);
    const asked = request(batch, 0);
    const { index, siblings } = asked.assetPath;
    const wrong = [
      { index: index ^ 1, siblings },
      { index: index + 4, siblings },
      { index, siblings: [] },
      { index, siblings: siblings.slice(0, -1) },
      { index, siblings: [...siblings, ...siblings] },
      { index, siblings: Array(9).fill(zeroHash) },
      { index, siblings: [...siblings].reverse() },
      request(batch, 1).assetPath,
    ];
    for (const assetPath of wrong) {
      const [vault, ...proof] = provenArgs({ ...asked, assetPath });
      const read = () => d.state.read.verifyVault([vault, ...proof]) as never;
      for (const call of [() => withdraw({ ...asked, assetPath }), read]) {
        await d.refuses(call(), "ProofInvalid", [vault.vaultId]);
      }
    }
    await withdraw(asked);
  });

  it("are shown by verifyVault, which proves and tells what is withdrawn", async () => {
    const batch = await commit[mode](d, [null, entry(d.assets.coin, owner, "", 5n)]);
    const asked = request(batch, 1, { quantity: 2n });
    const [vault, ...proof] = provenArgs(asked);
    expect(await d.state.read.verifyVault([vault, ...proof])).toBe(0n);
    await withdraw(asked);
    expect(await d.state.read.verifyVault([vault, ...proof])).toBe(2n);
    await d.refuses(d.state.read.verifyVault([{ ...vault, amount: 6n }, ...proof]), "ProofInvalid");
  });

  it("go on when committing is paused and the operator is gone", async () => {
    const batch = await commit[mode](d, [
      entry(d.assets.coin, owner, "", 5n),
      entry(d.assets.card, owner, "1"),
    ]);
    await d.mature();
    await d.state.write.pauseCommits([true], d.by("guardian"));
    await d.state.write.revokeOperator([d.config.operator], d.by("guardian"));
    await withdraw(request(batch, 0, { quantity: 2n }));
    const rest = await signed(d, d.actors.owner, request(batch, 0, { quantity: 3n }), {
      withdrawnBefore: 2n,
    });
    await d.state.write.withdrawBatch(batchArgs([rest]), d.by("relayer"));
    await d.state.write.withdrawBatch(batchArgs([request(batch, 1)]), d.by("owner"));
    expect(await d.tokens.coin.read.balanceOf([owner])).toBe(5n * COIN_QUANTUM);
    expect(await d.tokens.card.read.balanceOf([owner])).toBe(1n);
  });

  it("pay from old batches when many have followed", async () => {
    const batch = await commit[mode](d, [entry(d.assets.coin, owner, "", 5n)]);
    const before = await d.state.read.batchHeaderHash([MODE[mode], 0n]);
    for (let i = 0; i < 7; i++) await commitRollup(d, [entry(d.assets.coin, friend, "", 5n)]);
    expect(await d.state.read.batchHeaderHash([MODE[mode], 0n])).toBe(before);
    await withdraw(request(batch, 0));
  });
});

it("the first to withdraw gets the rest of a token's cap", async () => {
  const d = await fresh();
  const { owner, operator } = d.actors;
  const capped = await d.mintable.erc20({ cap: 100n });
  const asset = await d.register("erc20", capped.address);
  const honest = await commitRollup(d, [entry(asset, owner.account.address, "", 60n)]);
  const greedy = await commitRollup(d, [entry(asset, operator.account.address, "", 100n)]);
  const withdraw = (asked: Request, account: typeof owner.account) =>
    d.state.write.withdraw(withdrawArgs(asked), { account });
  await withdraw(request(greedy, 0, { recipient: operator.account.address }), operator.account);
  await d.refuses(withdraw(request(honest, 0), owner.account), "TokenRefused");
  expect(await capped.read.balanceOf([operator.account.address])).toBe(100n);
  expect(await d.state.read.withdrawn([request(honest, 0).vault.vaultId, STANDARD.erc20])).toBe(0n);
});

describe("withdrawals of what the registry does not hold here", () => {
  it("refuse a token of another chain", async () => {
    const d = await fresh();
    await d.state.write.registerAsset([
      STANDARD.erc20,
      137n,
      d.assets.coin.token,
      COIN_QUANTUM,
      SCHEME.imx,
    ]);
    const batch = await commitRollup(d, [
      { ...entry(d.assets.coin, d.actors.owner.account.address, "", 5n), chainId: 137n },
    ]);
    await d.refuses(
      d.state.write.withdraw(withdrawArgs(request(batch, 0)), d.by("owner")),
      "OtherChain",
      [137n],
    );
  });

  it("refuse a token whose code has gone", async () => {
    const d = await fresh();
    const batch = await commitRollup(d, [
      entry(d.assets.coin, d.actors.owner.account.address, "", 5n),
    ]);
    await d.testClient.setCode({ address: d.assets.coin.token, bytecode: "0x" });
    await d.refuses(
      d.state.write.withdraw(withdrawArgs(request(batch, 0)), d.by("owner")),
      "TokenWithoutCode",
      [d.assets.coin.token],
    );
  });
});
