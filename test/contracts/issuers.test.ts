import { type Address, getAddress, type Hex, maxUint256, pad, toHex, zeroAddress } from "viem";
import { beforeEach, describe, expect, it } from "vitest";
import {
  assetOf,
  CHANGE_DELAY,
  type Deployment,
  openChain,
  SCHEME,
  STANDARD,
} from "./fixture/deployment.ts";

const { fresh } = await openChain();
const HERE = 31_337n;
const [FIRST, SECOND] = [`0x${"0f".repeat(20)}`, `0x${"05".repeat(20)}`] as const;
const INSTANCE = "0x00000000000000000000000000000000000000aa";

let d: Deployment;
let admin: { account: Deployment["actors"]["admin"]["account"] };
beforeEach(async () => {
  d = await fresh();
  admin = d.by("admin");
});

/** Deploys an ERC-20 whose `issuer()` returns these bytes, and registers it with a quantum. */
async function issued(answer: Hex, owner: Address = d.config.admin) {
  const token = await d.viem.deployContract("IssuedToken", [answer, owner]);
  const account = owner === d.config.admin ? admin.account : d.actors.owner.account;
  return { token: token.address, ...(await quantumOf(token.address, 1n, account)) };
}

async function quantumOf(token: Address, quantum: bigint, account = admin.account) {
  await d.state.write.registerAsset([STANDARD.erc20, HERE, token, quantum, SCHEME.imx], {
    account,
  });
  return { asset: assetOf("erc20", token, quantum) };
}

function issuerOf(asset: { readonly chainId: bigint; readonly assetType: Hex }) {
  return d.state.read.issuerOf([asset.chainId, BigInt(asset.assetType)]);
}

const later = () => d.time.increase(CHANGE_DELAY);

describe("registration", () => {
  it("asks the token for its issuer, tells it, and keeps it whatever the token says later", async () => {
    const card = await d.mintable.erc721({ issuer: FIRST });
    expect(await card.read.issuer()).toBe(getAddress(FIRST));
    await d.tells(
      d.state.write.registerAsset([STANDARD.erc721, HERE, card.address, 1n, SCHEME.mintmark]),
      "IssuerChanged",
      [getAddress(card.address), getAddress(FIRST), 1n],
    );
    expect(await issuerOf(assetOf("erc721", card.address))).toEqual([getAddress(FIRST), 1n, false]);
  });

  it.each([
    ["the zero address", pad("0x", { size: 32 })],
    ["a word that is no address", toHex(maxUint256)],
    ["the lowest word that is no address", toHex(1n << 160n, { size: 32 })],
    ["two words", pad(FIRST, { size: 64 })],
    ["nothing", "0x"],
  ] as const)("takes %s for nobody", async (_, answer) => {
    const { asset } = await issued(answer);
    expect(await issuerOf(asset)).toEqual([zeroAddress, 0n, false]);
  });

  it("asks nobody about another chain's token", async () => {
    const token = await d.viem.deployContract("IssuedToken", [pad(FIRST), d.config.admin]);
    await d.state.write.registerAsset([STANDARD.erc20, 5n, token.address, 1n, SCHEME.imx]);
    expect(await issuerOf(assetOf("erc20", token.address, 1n, 5n))).toEqual([
      zeroAddress,
      0n,
      false,
    ]);
    expect(await issuerOf({ chainId: 9n, assetType: "0x09" })).toEqual([zeroAddress, 0n, false]);
  });

  it("gives all quanta of a token one issuer, whatever the token says when a stranger registers another", async () => {
    const { token, asset } = await issued(pad(FIRST));
    await d.state.write.suspendIssuer([token], admin);
    const { asset: tens } = await quantumOf(token, 10n);
    for (const each of [asset, tens])
      expect(await issuerOf(each)).toEqual([getAddress(FIRST), 2n, true]);
    await d.state.write.scheduleIssuer([token, SECOND], admin);
    await later();
    await d.state.write.activateIssuer([token], admin);
    for (const each of [asset, tens])
      expect(await issuerOf(each)).toEqual([getAddress(SECOND), 3n, false]);
  });
});

describe("a token's issuer", () => {
  it("is named at once when there is none, also of a registered token", async () => {
    const { token, asset } = await issued("0x");
    await d.tells(d.state.write.scheduleIssuer([token, FIRST], admin), "IssuerChanged", [
      getAddress(token),
      getAddress(FIRST),
      1n,
    ]);
    expect(await issuerOf(asset)).toEqual([getAddress(FIRST), 1n, false]);
  });

  it("is suspended at once, and comes back by the delay only", async () => {
    const { token, asset } = await issued(pad(FIRST));
    await d.tells(d.state.write.suspendIssuer([token], admin), "IssuerSuspended", [
      getAddress(token),
      getAddress(FIRST),
      2n,
    ]);
    expect(await issuerOf(asset)).toEqual([getAddress(FIRST), 2n, true]);
    await d.state.write.scheduleIssuer([token, FIRST], admin);
    await d.refuses(d.state.write.activateIssuer([token], admin), "ChangeNotDue");
    await later();
    await d.state.write.activateIssuer([token], admin);
    expect(await issuerOf(asset)).toEqual([getAddress(FIRST), 3n, false]);
  });

  it.each([
    ["another one", SECOND],
    ["nobody", zeroAddress],
  ] as const)("is replaced by %s once, after the delay", async (_, next) => {
    const { token, asset } = await issued(pad(FIRST));
    const block = await d.publicClient.getBlock();
    await d.tells(d.state.write.scheduleIssuer([token, next], admin), "IssuerScheduled", [
      getAddress(token),
      getAddress(next),
      (at: bigint) => at >= block.timestamp + CHANGE_DELAY,
    ]);
    const activate = () => d.state.write.activateIssuer([token], admin);
    await d.refuses(activate(), "ChangeNotDue");
    expect(await issuerOf(asset)).toEqual([getAddress(FIRST), 1n, false]);
    await later();
    await activate();
    expect(await issuerOf(asset)).toEqual([getAddress(next), 2n, false]);
    await d.refuses(activate(), "ChangeNotDue", [0n]);
  });

  it("stays when the change is called off", async () => {
    const { token } = await issued(pad(FIRST));
    await d.state.write.scheduleIssuer([token, SECOND], admin);
    await d.tells(d.state.write.cancelIssuer([token], admin), "IssuerScheduled", [
      getAddress(token),
      zeroAddress,
      0n,
    ]);
    await later();
    await d.refuses(d.state.write.activateIssuer([token], admin), "ChangeNotDue", [0n]);
  });

  it("is changed only by the token's owner or admin, not by the settlement contract's administrator", async () => {
    const owned = await issued(pad(FIRST), d.actors.owner.account.address);
    const nobodys = await issued(pad(FIRST), zeroAddress);
    for (const { token } of [owned, nobodys]) {
      for (const who of ["stranger", "operator", "guardian", "admin"] as const) {
        const by = d.by(who);
        for (const change of [
          () => d.state.write.scheduleIssuer([token, SECOND], by),
          () => d.state.write.activateIssuer([token], by),
          () => d.state.write.cancelIssuer([token], by),
          () => d.state.write.suspendIssuer([token], by),
        ]) {
          const args = [getAddress(token), getAddress(by.account.address)] as const;
          await d.refuses(change(), "NotTokenOwner", args);
        }
      }
    }
  });

  it("is not replaced by a stranger just before a commit, whose consent would then be stale", async () => {
    const { token, asset } = await issued(pad(FIRST));
    await d.state.write.scheduleIssuer([token, SECOND], admin);
    await later();
    for (const who of ["stranger", "operator", "guardian"] as const) {
      const activation = d.state.write.activateIssuer([token], d.by(who));
      await d.refuses(activation, "NotTokenOwner");
    }
    expect(await issuerOf(asset)).toEqual([getAddress(FIRST), 1n, false]);
  });

  it("is of a registered token only, and suspended only when there is one", async () => {
    const { token } = await issued("0x");
    for (const [change, which] of [
      [() => d.state.write.scheduleIssuer([INSTANCE, FIRST], admin), INSTANCE],
      [() => d.state.write.activateIssuer([INSTANCE], admin), INSTANCE],
      [() => d.state.write.cancelIssuer([INSTANCE], admin), INSTANCE],
      [() => d.state.write.suspendIssuer([token], admin), token],
    ] as const) {
      await d.refuses(change(), "IssuerUnknown", [getAddress(which)]);
    }
  });

  it("is asked for with enough gas, however little a stranger gives to the registration", async () => {
    let registered = 0;
    for (let gas = 80_000n; gas <= 200_000n; gas += 4_000n) {
      const { address } = await d.mintable.erc721({ issuer: FIRST });
      const registration = d.state.write.registerAsset(
        [STANDARD.erc721, HERE, address, 1n, SCHEME.mintmark],
        {
          account: d.actors.stranger.account,
          gas,
        },
      );
      const done = await registration.then(
        () => true,
        () => false,
      );
      if (!done) continue;
      registered++;
      expect((await issuerOf(assetOf("erc721", address)))[0]).toBe(getAddress(FIRST));
    }
    expect(registered).toBeGreaterThan(5);
  });
});
