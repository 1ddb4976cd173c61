import { type Address, encodeFunctionData, getAddress, toHex } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { beforeEach, describe, expect, it } from "vitest";
import { withdrawalDigest } from "../../core/protocol/typed-data.ts";
import { type CommittedBatch, commitRollup, entry } from "./fixture/batches.ts";
import { COIN_QUANTUM, type Deployment, openChain } from "./fixture/deployment.ts";
import type { Request } from "./fixture/withdrawals.ts";
import {
  cancelArgs,
  compacted,
  messageOf,
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

describe("an owner's authorization", () => {
  let d: Deployment;
  let batch: CommittedBatch;
  const key = privateKeyToAccount(generatePrivateKey());
  beforeEach(async () => {
    d = await fresh();
    batch = await commitRollup(d, [
      entry(d.assets.coin, key.address, "", 10n),
      entry(d.assets.coin, key.address, "", 10n),
    ]);
  });

  const relay = (asked: Request) => d.state.write.withdraw(withdrawArgs(asked), d.by("relayer"));
  const vaultId = () => request(batch, 0).vault.vaultId;
  const digestOf = (asked: Request, withdrawnBefore = 0n) =>
    withdrawalDigest(d.settlement, messageOf(asked, withdrawnBefore, asked.authorization.deadline));
  const refusesSignature = (asked: Request, withdrawnBefore = 0n) =>
    d.refuses(relay(asked), "SignatureInvalid", [digestOf(asked, withdrawnBefore)]);
  const balance = (of: Address) => d.tokens.coin.read.balanceOf([of]);

  it("lets anybody submit the withdrawal, in 65 bytes and in 64", async () => {
    await relay(await signed(d, key, request(batch, 0)));
    await relay(compacted(await signed(d, key, request(batch, 1))));
    expect(await balance(key.address)).toBe(20n * COIN_QUANTUM);
  });

  it("is needed by everyone but the owner", async () => {
    for (const { account } of [d.actors.relayer, d.actors.admin, d.actors.operator]) {
      await d.refuses(
        d.state.write.withdraw(withdrawArgs(request(batch, 0)), { account }),
        "NotOwner",
        [vaultId(), getAddress(account.address)],
      );
    }
  });

  it("is the owner's own: somebody else's signature takes nothing", async () => {
    await refusesSignature(await signed(d, d.actors.stranger, request(batch, 0)));
    await refusesSignature(await signed(d, d.actors.relayer, request(batch, 0)));
  });

  it("fixes vault, quantity, recipient, deadline and what was withdrawn before", async () => {
    const honest = await signed(d, key, request(batch, 0, { quantity: 4n }));
    const thief = d.actors.relayer.account.address;
    const { authorization } = honest;
    await refusesSignature({ ...honest, recipient: thief });
    await refusesSignature({ ...honest, quantity: 5n });
    await refusesSignature({
      ...honest,
      authorization: { ...authorization, deadline: NEVER + 1n },
    });
    await refusesSignature(request(batch, 1, { quantity: 4n, authorization }));
    await refusesSignature(
      await signed(d, key, request(batch, 0, { quantity: 4n }), { withdrawnBefore: 1n }),
    );
    await relay(honest);
  });

  it("is used up by its withdrawal, and by any other of the vault", async () => {
    const [first, other] = [
      await signed(d, key, request(batch, 0, { quantity: 4n })),
      await signed(d, key, request(batch, 0, { quantity: 3n })),
    ];
    await relay(first);
    await refusesSignature(first, 4n);
    await refusesSignature(other, 4n);
    await relay(await signed(d, key, request(batch, 0, { quantity: 3n }), { withdrawnBefore: 4n }));
    expect(await balance(key.address)).toBe(7n * COIN_QUANTUM);
  });

  it("is of one chain and one contract", async () => {
    for (const settlement of [
      { ...d.settlement, chainId: 1n },
      { ...d.settlement, contract: d.tokens.coin.address },
    ]) {
      await refusesSignature(await signed({ settlement }, key, request(batch, 0)));
    }
  });

  it("expires after its deadline, not at it", async () => {
    const { time } = d.connection.networkHelpers;
    const deadline = BigInt(await time.latest()) + 100n;
    const asked = await signed(d, key, request(batch, 0), { deadline });
    await time.setNextBlockTimestamp(deadline + 1n);
    await d.refuses(
      d.state.write.withdraw(withdrawArgs(asked), {
        account: d.actors.relayer.account,
        gas: 1_000_000n,
      }),
      "AuthorizationExpired",
      [deadline],
    );
    const later = deadline + 50n;
    const inTime = await signed(d, key, request(batch, 0), { deadline: later });
    await time.setNextBlockTimestamp(later);
    await relay(inTime);
  });

  it("can be cancelled for ever, by its signer only", async () => {
    const owner = d.actors.owner;
    const own = await commitRollup(d, [entry(d.assets.coin, owner.account.address, "", 10n)]);
    const asked = await signed(d, owner, request(own, 0, { quantity: 4n }));
    const digest = withdrawalDigest(d.settlement, messageOf(asked));
    await d.state.write.cancelAuthorization(cancelArgs(asked), d.by("stranger"));
    await d.publicClient.simulateContract({
      abi: d.state.abi,
      address: d.state.address,
      functionName: "withdraw",
      args: withdrawArgs(asked),
      account: d.actors.relayer.account,
    });
    await d.tells(
      d.state.write.cancelAuthorization(cancelArgs(asked), { account: owner.account }),
      "AuthorizationCancelled",
    );
    await d.refuses(relay(asked), "AuthorizationIsCancelled", [digest]);
    // Another message of the same vault, and the owner's own call, go on.
    await relay(
      await signed(d, owner, request(own, 0, { quantity: 4n }), { deadline: NEVER - 1n }),
    );
    await d.state.write.withdraw(withdrawArgs(request(own, 0, { quantity: 6n })), {
      account: owner.account,
    });
  });

  it("is not needed in the owner's own call, and is checked when it is there", async () => {
    const owner = d.actors.owner;
    const own = await commitRollup(d, [entry(d.assets.coin, owner.account.address, "", 10n)]);
    const bad = { deadline: NEVER, signature: "0x00" } as const;
    await d.refuses(
      d.state.write.withdraw(withdrawArgs(request(own, 0, { authorization: bad })), {
        account: owner.account,
      }),
      "SignatureInvalid",
    );
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
      await relay(await signed(d, key, request(own, 0)));
      await d.mature();
      await relay(await signed(d, key, request(own, 1)));
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
        const asked = await signed(d, key, request(own, 0));
        await d.refuses(
          d.state.write.withdraw(withdrawArgs(asked), {
            account: d.actors.relayer.account,
            gas: 2_000_000n,
          }),
          "SignatureInvalid",
          [digestOf(asked)],
        );
      },
    );

    it("is checked by key first: an account that has delegated its code still signs with its key", async () => {
      await d.testClient.setCode({
        address: key.address,
        bytecode: `0xef0100${d.tokens.coin.address.slice(2)}`,
      });
      await relay(await signed(d, key, request(batch, 0)));
      expect(await balance(key.address)).toBe(10n * COIN_QUANTUM);
      await refusesSignature({
        ...request(batch, 1),
        authorization: { deadline: NEVER, signature: toHex(1n, { size: 65 }) },
      });
    });
  });
});
