import { type Address, encodeFunctionData, getAddress, type Hex, toHex } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { beforeEach, describe, expect, it } from "vitest";
import { cancellationTypedData, typedDataDomain } from "../../core/protocol/typed-data.ts";
import { type CommittedBatch, commitRollup, entry } from "./fixture/batches.ts";
import { COIN_QUANTUM, type Deployment, openChain } from "./fixture/deployment.ts";
import { outcomeOf } from "./fixture/outcomes.ts";
import type { Request } from "./fixture/withdrawals.ts";
import {
  authorizationOf,
  batchArgs,
  digestOf,
  listed,
  NEVER,
  request,
  signed,
  withdrawArgs,
} from "./fixture/withdrawals.ts";

const { fresh } = await openChain();
const MANNER = {
  honest: 0,
  reverts: 1,
  burnsGas: 2,
  answersTooMuch: 3,
  answersNothing: 4,
} as const;
const key = privateKeyToAccount(generatePrivateKey());
const other = privateKeyToAccount(generatePrivateKey());

describe("an owner's word", () => {
  let d: Deployment;
  let batch: CommittedBatch;
  beforeEach(async () => {
    d = await fresh();
    batch = await commitRollup(d, [
      entry(d.assets.coin, key.address, "", 10n),
      entry(d.assets.coin, key.address, "", 10n),
    ]);
  });

  const submit = async (requests: readonly Request[], gas = 4_000_000n) =>
    outcomeOf(
      d,
      await d.state.write.withdrawBatch(batchArgs(requests), {
        account: d.actors.relayer.account,
        gas,
      }),
    );
  const errorsOf = async (...requests: Request[]) =>
    (await submit(requests)).failed.map(({ error, args }) => [error, ...args]);
  const refusesSignature = async (asked: Request) =>
    expect(await errorsOf(asked)).toEqual([["SignatureInvalid", digestOf(d, asked)]]);
  const balance = (of: Address) => d.tokens.coin.read.balanceOf([of]);
  const idOf = (asked: Request) => toHex(asked.vault.vaultId, { size: 32 });

  it("is needed by everyone but the owner", async () => {
    for (const { account } of [d.actors.relayer, d.actors.admin, d.actors.operator]) {
      await d.refuses(
        d.state.write.withdraw(withdrawArgs(request(batch, 0)), { account }),
        "NotOwner",
        [request(batch, 0).vault.vaultId, getAddress(account.address)],
      );
    }
  });

  it("is used up by its withdrawal, and by any other of the vault", async () => {
    const part = (quantity: bigint, withdrawnBefore = 0n) =>
      signed(d, key, request(batch, 0, { quantity }), { withdrawnBefore });
    const [first, second] = [await part(4n), await part(3n)];
    expect(await errorsOf(first)).toEqual([]);
    for (const used of [first, second]) expect((await errorsOf(used))[0]?.[0]).toBe("NotListed");
    expect(await errorsOf(await part(3n, 4n))).toEqual([]);
    expect(await balance(key.address)).toBe(7n * COIN_QUANTUM);
  });

  it("expires after its deadline, not at it", async () => {
    const { time } = d.connection.networkHelpers;
    const deadline = BigInt(await time.latest()) + 100n;
    const asked = await signed(d, key, request(batch, 0), { deadline });
    await time.setNextBlockTimestamp(deadline + 1n);
    expect(await errorsOf(asked)).toEqual([["AuthorizationExpired", deadline]]);
    const later = deadline + 50n;
    const inTime = await signed(d, key, request(batch, 0), { deadline: later });
    await time.setNextBlockTimestamp(later);
    expect(await errorsOf(inTime)).toEqual([]);
  });

  it("is in a domain that the contract tells by ERC-5267", async () => {
    const { name, version, chainId, verifyingContract } = typedDataDomain(d.settlement);
    const contract = getAddress(verifyingContract);
    const none = `0x${"00".repeat(32)}`;
    expect(await d.state.read.eip712Domain()).toEqual([
      ...["0x0f", name, version, chainId],
      ...[contract, none, []],
    ]);
  });

  describe("taken back", () => {
    const cancel = (signer: Address, id: Hex, signature: Hex = "0x", by = d.by("stranger")) =>
      d.state.write.cancel([signer, id, signature], by);
    const cancellation = (signer: Address, id: Hex, settlement = d.settlement, by = key) =>
      by.signTypedData(cancellationTypedData(settlement, { signer, id }));
    /** The cancellations that the contract tells of. */
    const told = async (hash: Hex) => {
      const { blockNumber } = await d.publicClient.getTransactionReceipt({ hash });
      const range = { fromBlock: blockNumber, toBlock: blockNumber };
      return (await d.state.getEvents.AuthorizationCancelled({}, range)).map(({ args }) => args);
    };

    it("by a signature that anybody brings: the list is void for ever, another one is not", async () => {
      const [asked] = await listed(d, key, [request(batch, 0)]);
      const [kept] = await listed(d, key, [request(batch, 1)]);
      const id = digestOf(d, asked as Request);
      const hash = await cancel(key.address, id, await cancellation(key.address, id));
      expect(await told(hash)).toEqual([{ signer: getAddress(key.address), id }]);
      expect(await d.state.read.isCancelled([key.address, id])).toBe(true);
      expect(await errorsOf(asked as Request)).toEqual([["AuthorizationIsCancelled", id]]);
      expect(await errorsOf(kept as Request)).toEqual([]);
    });

    it("once: brought again, with whatever signature, it does nothing and tells nothing", async () => {
      const id = idOf(request(batch, 0));
      const signature = await cancellation(key.address, id);
      await cancel(key.address, id, signature);
      for (const again of [signature, "0x1234"] as const)
        expect(await told(await cancel(key.address, id, again))).toEqual([]);
    });

    it("for one vault: its entries of all lists are void, and the rest of each is paid", async () => {
      const id = idOf(request(batch, 0));
      const all = [0, 1].map((slot) => request(batch, slot));
      const [before, beside] = await listed(d, key, all);
      await cancel(key.address, id, await cancellation(key.address, id));
      const after = await signed(d, key, request(batch, 0), { deadline: NEVER - 1n });
      const refused = ["AuthorizationIsCancelled", id];
      expect(await errorsOf(before as Request, beside as Request, after)).toEqual([
        refused,
        refused,
      ]);
      expect(await balance(key.address)).toBe(10n * COIN_QUANTUM);
    });

    it("by the signer's own call, which leaves the signer's own withdrawal as it is", async () => {
      const { owner } = d.actors;
      const own = await commitRollup(d, [entry(d.assets.coin, owner.account.address, "", 10n)]);
      const asked = await signed(d, owner, request(own, 0));
      await cancel(owner.account.address, idOf(asked), "0x", d.by("owner"));
      expect((await errorsOf(asked))[0]?.[0]).toBe("AuthorizationIsCancelled");
      await d.state.write.withdraw(withdrawArgs(asked), d.by("owner"));
    });

    it("by nobody else: not by a stranger's call, signature or cancellation of its own", async () => {
      const asked = await signed(d, key, request(batch, 0));
      for (const id of [digestOf(d, asked), idOf(asked)]) {
        const strangers = await cancellation(other.address, id, d.settlement, other);
        const forged = await cancellation(key.address, id, d.settlement, other);
        await cancel(other.address, id, strangers);
        await cancel(d.actors.stranger.account.address, id);
        for (const signature of ["0x", strangers, forged] as const)
          await d.refuses(cancel(key.address, id, signature), "SignatureInvalid");
      }
      expect(await errorsOf(asked)).toEqual([]);
    });

    it("for one contract of one chain, and for the list or vault that it names", async () => {
      const id = idOf(request(batch, 0));
      const foreign = [
        { ...d.settlement, chainId: 1n },
        { ...d.settlement, contract: d.tokens.coin.address },
      ];
      for (const settlement of foreign) {
        const signature = await cancellation(key.address, id, settlement);
        await d.refuses(cancel(key.address, id, signature), "SignatureInvalid");
      }
      const signature = await cancellation(key.address, id);
      const another = idOf(request(batch, 1));
      await d.refuses(cancel(key.address, another, signature), "SignatureInvalid");
    });

    it("by a wallet contract, as its ERC-1271 says", async () => {
      const wallet = await d.viem.deployContract("Wallet1271", [key.address, MANNER.honest]);
      const own = await commitRollup(d, [entry(d.assets.coin, wallet.address, "", 10n)]);
      const asked = await signed(d, key, request(own, 0));
      const id = digestOf(d, asked);
      const forged = await cancellation(wallet.address, id, d.settlement, other);
      await d.refuses(cancel(wallet.address, id, forged), "SignatureInvalid");
      await cancel(wallet.address, id, await cancellation(wallet.address, id));
      expect((await errorsOf(asked))[0]?.[0]).toBe("AuthorizationIsCancelled");
    });
  });

  describe("of a contract wallet", () => {
    const walletBatch = async (manner: keyof typeof MANNER) => {
      const wallet = await d.viem.deployContract("Wallet1271", [key.address, MANNER[manner]]);
      const own = await commitRollup(d, [
        entry(d.assets.coin, wallet.address, "", 10n),
        entry(d.assets.card, wallet.address, "8"),
      ]);
      return { wallet, own };
    };

    it("is what the wallet says by ERC-1271", async () => {
      const { wallet, own } = await walletBatch("honest");
      await d.mature();
      const asked = await listed(d, key, [request(own, 0), request(own, 1)]);
      expect(await errorsOf(...asked)).toEqual([]);
      expect(await balance(wallet.address)).toBe(10n * COIN_QUANTUM);
      expect(await d.tokens.card.read.balanceOf([wallet.address])).toBe(1n);
    });

    it("is neither a stranger's signature, nor its key's over something else", async () => {
      const { own } = await walletBatch("honest");
      await refusesSignature(await signed(d, d.actors.stranger, request(own, 0)));
      const honest = await signed(d, key, request(own, 0));
      await refusesSignature({ ...honest, recipient: d.actors.stranger.account.address });
    });

    it("is not needed when the wallet itself calls", async () => {
      const { wallet, own } = await walletBatch("honest");
      const payload = encodeFunctionData({
        abi: d.state.abi,
        functionName: "withdraw",
        args: withdrawArgs(request(own, 0)),
      });
      await d.actors.stranger.sendTransaction({ to: key.address, value: 10n ** 18n });
      await d.testClient.impersonateAccount({ address: key.address });
      await wallet.write.execute([d.state.address, payload], { account: key.address });
      expect(await balance(wallet.address)).toBe(10n * COIN_QUANTUM);
    });

    it.each(["reverts", "burnsGas", "answersTooMuch", "answersNothing"] as const)(
      "that %s is no consent",
      async (manner) => {
        const { own } = await walletBatch(manner);
        await refusesSignature(await signed(d, key, request(own, 0)));
      },
    );

    it("is checked by key first: an account that has delegated its code still signs with its key", async () => {
      await d.testClient.setCode({
        address: key.address,
        bytecode: `0xef0100${d.tokens.coin.address.slice(2)}`,
      });
      expect(await errorsOf(await signed(d, key, request(batch, 0)))).toEqual([]);
      const bad = await signed(d, key, request(batch, 1));
      const signature = toHex(1n, { size: 65 });
      await refusesSignature({
        ...bad,
        authorization: { ...authorizationOf(bad), signature },
      });
    });
  });
});
