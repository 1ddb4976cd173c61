import {
  type Address,
  concat,
  encodeAbiParameters,
  encodeFunctionData,
  getAddress,
  getContractAddress,
  numberToHex,
  parseSignature,
  toFunctionSelector,
  zeroAddress,
  zeroHash,
} from "viem";
import type { PrivateKeyAccount } from "viem/accounts";
import { beforeEach, describe, expect, it } from "vitest";
import { readArtifact } from "../../core/l1/artifact.ts";
import { type CommittedBatch, commitRollup, entry } from "./fixture/batches.ts";
import { assetOf, MATURITY, SCHEME, STANDARD } from "./fixture/deployment.ts";
import { madeIn } from "./fixture/makings.ts";
import {
  commitTransfers,
  exitArgs,
  give,
  hopOf,
  openTransferChain,
  signedGroup,
  type TransferDeployment,
} from "./fixture/transfers.ts";
import { request, withdrawArgs } from "./fixture/withdrawals.ts";

const { connection, fresh } = await openTransferChain();
const { time } = connection.networkHelpers;
const ODDITY = { none: 0, fee: 1, silent: 2, hook: 3 } as const;
const QUANTUM = 1_000n;

describe("an escrow", () => {
  let d: TransferDeployment;
  let [annKey, bobKey]: readonly PrivateKeyAccount[] = [];
  let ann: Address;
  let bob: Address;
  let factory: Awaited<ReturnType<typeof deployFactory>>;
  const deployFactory = () => d.viem.deployContract("EscrowFactory");
  beforeEach(async () => {
    d = await fresh();
    [annKey, bobKey] = d.keys;
    ann = (annKey as PrivateKeyAccount).address;
    bob = (bobKey as PrivateKeyAccount).address;
    factory = await deployFactory();
  });

  async function coins() {
    const token = await d.viem.deployContract("OddERC20");
    const args = [d.state.address, token.address, QUANTUM] as const;
    const address = (await factory.simulate.createERC20(args)).result;
    await factory.write.createERC20(args);
    const escrow = await d.viem.getContractAt("EscrowERC20", address);
    await token.write.mint([ann, 100_000n]);
    await token.write.approve([address, 2n ** 255n], { account: ann });
    return { token, escrow, asset: assetOf("erc20", address, QUANTUM) };
  }
  async function cards() {
    const token = await d.viem.deployContract("OddERC721");
    const args = [d.state.address, token.address] as const;
    const address = (await factory.simulate.createERC721(args)).result;
    await factory.write.createERC721(args);
    const escrow = await d.viem.getContractAt("EscrowERC721", address);
    await token.write.mint([ann, 7n]);
    await token.write.setApprovalForAll([address, true], { account: ann });
    return { token, escrow, asset: assetOf("erc721", address) };
  }
  const register = (standard: "erc20" | "erc721", address: Address) =>
    d.state.write.registerAsset(
      standard === "erc20"
        ? [STANDARD.erc20, 31_337n, address, QUANTUM, SCHEME.mintmark]
        : [STANDARD.erc721, 31_337n, address, 1n, SCHEME.raw32],
    );
  const withdraw = (batch: CommittedBatch, by: Address, recipient = by, quantity?: bigint) =>
    d.state.write.withdraw(
      withdrawArgs(request(batch, 0, { recipient, ...(quantity && { quantity }) })),
      { account: by },
    );

  it("is where its terms say, has one code, and is created once", async () => {
    const { escrow, token } = await coins();
    const { bytecode } = readArtifact("EscrowERC20");
    const types = ["address", "address", "uint256"].map((type) => ({ type }));
    const terms = encodeAbiParameters(types, [d.state.address, token.address, QUANTUM]);
    const expected = getContractAddress({
      opcode: "CREATE2",
      from: factory.address,
      salt: zeroHash,
      bytecode: concat([bytecode, terms]),
    });
    expect(getAddress(escrow.address)).toBe(expected);
    const again = factory.write.createERC20([d.state.address, token.address, QUANTUM]);
    await expect(again).rejects.toThrow("reverted");
    expect(await escrow.read.decimals()).toBe(6);
    expect([await escrow.read.name(), await escrow.read.symbol()]).toEqual(["Odd", "ODD"]);
    const { escrow: card } = await cards();
    expect([await card.read.name(), await card.read.symbol()]).toEqual(["Odd", "ODD"]);
  });

  it("takes nothing before it is registered, and is registered as itself by anybody", async () => {
    const coin = await coins();
    const card = await cards();
    await expect(coin.escrow.write.enter([ann, QUANTUM], { account: ann })).rejects.toThrow(
      "EscrowNotRegistered",
    );
    await expect(card.escrow.write.enter([ann, 7n], { account: ann })).rejects.toThrow(
      "EscrowNotRegistered",
    );
    const other = (standard: number, address: Address, quantum: bigint, scheme: number) =>
      d.state.write.registerAsset([standard, 31_337n, address, quantum, scheme]);
    const { address } = coin.escrow;
    await d.refuses(other(STANDARD.erc20, address, 1n, SCHEME.mintmark), "QuantumMismatch");
    await d.refuses(other(STANDARD.erc1155, address, 1n, SCHEME.mintmark), "StandardMismatch");
    const own = card.escrow.address;
    await d.refuses(other(STANDARD.erc721, own, 1n, SCHEME.mintmark), "SchemeMismatch");
    await d.refuses(other(STANDARD.erc20, own, 1n, SCHEME.raw32), "StandardMismatch");
    await register("erc20", address);
    await register("erc721", own);
    for (const { asset } of [coin, card]) {
      const id = BigInt(asset.assetType);
      expect(await d.state.read.isMadeOnly([31_337n, id])).toBe(true);
      expect(await d.state.read.isTransferable([31_337n, id])).toBe(true);
      expect(await d.state.read.issuerOf([31_337n, id])).toEqual([zeroAddress, 0n, false]);
    }
  });

  it("holds what has entered, and pays it to whom the vault was given", async () => {
    const { token, escrow } = await coins();
    await register("erc20", escrow.address);
    const made = await madeIn(d, escrow.write.enter([ann, 9_000n], { account: ann }));
    expect(await token.read.balanceOf([escrow.address])).toBe(9_000n);
    expect(made.vaults[0]).toMatchObject({
      amount: 9n,
      owner: ann.toLowerCase(),
      mintingBlob: "0x",
    });
    const vaultId = made.vaults[0]?.vaultId as bigint;
    const moved = await commitTransfers(d, [
      await signedGroup(d, annKey as PrivateKeyAccount, [give(vaultId, bob, 4n)]),
    ]);
    const exit = exitArgs(made, 0, { hops: [hopOf(moved, 0)], recipient: bob, quantity: 4n });
    await d.state.write.withdrawTransferred(exit, { account: bob });
    const change = exitArgs(made, 0, { hops: [hopOf(moved, 1)], recipient: ann, quantity: 5n });
    await d.state.write.withdrawTransferred(change, { account: ann });
    expect(await token.read.balanceOf([bob])).toBe(4_000n);
    expect(await token.read.balanceOf([escrow.address])).toBe(0n);

    const card = await cards();
    await register("erc721", card.escrow.address);
    const enter = () => madeIn(d, card.escrow.write.enter([bob, 7n], { account: ann }));
    const first = await enter();
    expect(first.vaults[0]?.mintingBlob).toBe(numberToHex(7, { size: 32 }));
    await withdraw(first, bob, ann);
    expect(getAddress(await card.token.read.ownerOf([7n]))).toBe(ann);
    // The id's next entry ends the vault that has paid.
    const second = await enter();
    await d.refuses(withdraw(first, bob), "LineageEnded");
    await withdraw(second, bob);
    expect(getAddress(await card.token.read.ownerOf([7n]))).toBe(bob);
  });

  it("pays no vault of a batch, whoever commits it", async () => {
    const { escrow, asset } = await coins();
    await register("erc20", escrow.address);
    await madeIn(d, escrow.write.enter([ann, 9_000n], { account: ann }));
    const card = await cards();
    await register("erc721", card.escrow.address);
    await card.escrow.write.enter([ann, 7n], { account: ann });
    const raw = { ...entry(card.asset, bob), mintingBlob: numberToHex(7, { size: 32 }) };
    for (const slot of [entry(asset, bob, "", 9n), raw]) {
      const batch = await commitRollup(d, [slot]);
      await time.increase(MATURITY);
      await d.refuses(withdraw(batch, bob), "VaultNotMade");
    }
  });

  it("pulls exactly what it makes a vault of, from the caller alone", async () => {
    const { token, escrow } = await coins();
    await register("erc20", escrow.address);
    const enter = (amount = 2_000n, by = ann) => escrow.write.enter([by, amount], { account: by });
    for (const oddity of [ODDITY.fee, ODDITY.silent]) {
      await token.write.behave([oddity, zeroAddress, "0x"]);
      await expect(enter()).rejects.toThrow("TokenNotMoved");
    }
    const inner = encodeFunctionData({
      abi: token.abi,
      functionName: "transferFrom",
      args: [ann, escrow.address, QUANTUM],
    });
    // The hook's own transfer changes the balance during the pull.
    await token.write.approve([token.address, 2n ** 255n], { account: ann });
    await token.write.behave([ODDITY.hook, token.address, inner]);
    await expect(enter()).rejects.toThrow("TokenNotMoved");
    await token.write.behave([ODDITY.none, zeroAddress, "0x"]);
    await expect(enter(2_000n, bob)).rejects.toThrow("reverted");
    await d.refuses(enter(1_500n), "AmountIndivisible");
    await d.refuses(enter(0n), "VaultUnpayable");
    expect(await token.read.balanceOf([escrow.address])).toBe(0n);
    expect(await d.state.read.makings()).toBe(0n);

    const card = await cards();
    await register("erc721", card.escrow.address);
    await card.token.write.setApprovalForAll([bob, true], { account: ann });
    const stolen = card.escrow.write.enter([bob, 7n], { account: bob });
    await expect(stolen).rejects.toThrow("NotHolder");
    await card.token.write.behave([true]);
    const silent = card.escrow.write.enter([ann, 7n], { account: ann });
    await expect(silent).rejects.toThrow("TokenNotMoved");
  });

  it("keeps a vault whole when the token does not pay", async () => {
    const { token, escrow } = await coins();
    await register("erc20", escrow.address);
    const made = await madeIn(d, escrow.write.enter([ann, 9_000n], { account: ann }));
    const hook = encodeFunctionData({
      abi: escrow.abi,
      functionName: "enter",
      args: [ann, QUANTUM],
    });
    for (const [oddity, payload] of [
      [ODDITY.silent, "0x"],
      [ODDITY.hook, hook],
    ] as const) {
      await token.write.behave([oddity, escrow.address, payload]);
      await d.refuses(withdraw(made, ann), "TokenRefused");
    }
    await token.write.behave([ODDITY.none, zeroAddress, "0x"]);
    await d.refuses(withdraw(made, ann, escrow.address), "TokenRefused");
    await withdraw(made, ann);
    expect(await token.read.balanceOf([ann])).toBe(100_000n);

    const card = await cards();
    await register("erc721", card.escrow.address);
    const held = await madeIn(d, card.escrow.write.enter([ann, 7n], { account: ann }));
    await d.refuses(withdraw(held, ann, card.escrow.address), "TokenRefused");
    await card.token.write.behave([true]);
    await d.refuses(withdraw(held, ann), "TokenRefused");
    await card.token.write.behave([false]);
    await withdraw(held, ann);
  });

  it("takes and pays a token that its owner moves by `transfer` alone", async () => {
    const token = await d.viem.deployContract("OldToken");
    const args = [d.state.address, token.address] as const;
    const { result } = await factory.simulate.createERC721(args);
    await factory.write.createERC721(args);
    const escrow = await d.viem.getContractAt("EscrowERC721", result);
    await register("erc721", result);
    await token.write.mint([ann, 7n]);
    await token.write.approve([result, 7n], { account: ann });
    const made = await madeIn(d, escrow.write.enter([bob, 7n], { account: ann }));
    expect(getAddress(await token.read.ownerOf([7n]))).toBe(getAddress(result));
    // The token refuses this recipient, and its own error is told.
    const reason = toFunctionSelector("NotAllowed()");
    await d.refuses(withdraw(made, bob, token.address), "TokenRefused", [result, reason]);
    await withdraw(made, bob);
    expect(getAddress(await token.read.ownerOf([7n]))).toBe(bob);
  });

  it("pays for the settlement contract alone", async () => {
    const { escrow } = await coins();
    const card = await cards();
    for (const actor of ["admin", "operator", "stranger"] as const) {
      const coin = escrow.write.mintFor([ann, 1n, "0x"], d.by(actor));
      await expect(coin).rejects.toThrow("NotSettlement");
      const id = numberToHex(7, { size: 32 });
      const other = card.escrow.write.mintFor([ann, 1n, id], d.by(actor));
      await expect(other).rejects.toThrow("NotSettlement");
    }
  });

  it("takes a permit, also one that somebody has brought before", async () => {
    const { token, escrow } = await coins();
    await register("erc20", escrow.address);
    await token.write.approve([escrow.address, 0n], { account: ann });
    const deadline = 2n ** 40n;
    const permit = async (value: bigint) => {
      const message = {
        owner: ann,
        spender: escrow.address,
        value,
        nonce: await token.read.nonces([ann]),
        deadline,
      };
      const signature = await (annKey as PrivateKeyAccount).signTypedData({
        domain: {
          name: "Odd",
          version: "1",
          chainId: 31_337,
          verifyingContract: token.address,
        },
        types: {
          Permit: [
            { name: "owner", type: "address" },
            { name: "spender", type: "address" },
            { name: "value", type: "uint256" },
            { name: "nonce", type: "uint256" },
            { name: "deadline", type: "uint256" },
          ],
        },
        primaryType: "Permit",
        message,
      });
      const { r, s, v } = parseSignature(signature);
      return [deadline, Number(v), r, s] as const;
    };
    const enter = (amount: bigint, signed: Awaited<ReturnType<typeof permit>>) =>
      escrow.write.enterWithPermit([ann, amount, ...signed], { account: ann });
    await enter(2_000n, await permit(2_000n));
    const signed = await permit(3_000n);
    await token.write.permit([ann, escrow.address, 3_000n, ...signed], d.by("stranger"));
    await enter(3_000n, signed);
    expect(await token.read.balanceOf([escrow.address])).toBe(5_000n);
    await expect(enter(1_000n, signed)).rejects.toThrow("reverted");
  });
});
