import {
  type Address,
  concatHex,
  getAddress,
  parseEventLogs,
  sliceHex,
  toHex,
  zeroAddress,
} from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { beforeEach, describe, expect, it } from "vitest";
import { MODES, type Standard } from "../../core/model.ts";
import type { AssetId } from "../../core/ports.ts";
import { compactSignature } from "../../core/protocol/signature.ts";
import { naiveWords, naiveWordsOf } from "../core/naive/naive-words.ts";
import type { CommittedBatch, Consentable, Consenting } from "./fixture/batches.ts";
import {
  allOf,
  assetsIn,
  commitValidium,
  commitWith,
  commitWords,
  consentOf,
  entry,
  proofOf,
  provenArgs,
} from "./fixture/batches.ts";
import type { Deployment, Member, TestAsset } from "./fixture/deployment.ts";
import { assetOf, CHANGE_DELAY, openChain, SCHEME } from "./fixture/deployment.ts";
import { request, withdrawArgs } from "./fixture/withdrawals.ts";

const { fresh } = await openChain();
/** Solidity's `Wallet1271.Manner`. */
const MANNER = {
  honest: 0,
  reverts: 1,
  burnsGas: 2,
  answersTooMuch: 3,
  answersNothing: 4,
} as const;

let d: Deployment;
let [alice, bob] = [newKey(), newKey()];
/** Tokens of Alice, of Bob, and of nobody. */
let sword: TestAsset;
let shield: TestAsset;
let plain: TestAsset;
let owner: Address;
beforeEach(async () => {
  d = await fresh();
  [alice, bob] = [newKey(), newKey()];
  [sword, shield] = [await issuedBy(alice.address), await issuedBy(bob.address)];
  plain = d.assets.card;
  owner = d.actors.owner.account.address;
});

function newKey(): Member {
  return privateKeyToAccount(generatePrivateKey());
}

type Changed = NonNullable<Parameters<typeof consentOf>[3]>;

/** A registered ERC-721 of this issuer. */
async function issuedBy(issuer: Address): Promise<TestAsset> {
  return d.register("erc721", (await d.mintable.erc721({ issuer })).address);
}

/** One token each, in this order. */
function slots(id = "1") {
  return [sword, shield, plain].map((asset) => entry(asset, owner, id));
}

/** The assets that L1 has left out of a batch. */
function leftOut({ assets, leftOut: places }: CommittedBatch) {
  const names = new Map(
    [sword, shield, plain].map((asset, i) => [asset.assetType, ["sword", "shield", "plain"][i]]),
  );
  return assets
    .flatMap(({ assetType }, i) => (places.includes(i) ? [names.get(assetType)] : []))
    .toSorted();
}

/** The slots whose vaults can be withdrawn. */
async function paying(batch: CommittedBatch): Promise<number[]> {
  await d.mature();
  const paid: number[] = [];
  for (const slot of batch.vaults.keys()) {
    const withdrawal = d.state.write.withdraw(withdrawArgs(request(batch, slot)), d.by("owner"));
    if (
      batch.leftOut.length === 0 ||
      !batch.leftOut.some((at) => batch.assets[at]?.assetType === batch.vaults[slot]?.assetType)
    ) {
      await withdrawal;
      paid.push(slot);
    } else await d.refuses(withdrawal, "ProofInvalid");
  }
  return paid;
}

const both = () => allOf(consentOf(d, alice, [sword]), consentOf(d, bob, [shield]));

describe.each(MODES)("a %s batch", (mode) => {
  const commit = (consenting: Consenting, id?: string) =>
    commitWith(mode, d, slots(id), consenting);

  it("pays every vault when each issuer has consented", async () => {
    const batch = await commit(both());
    expect(batch.leftOut).toEqual([]);
    expect(await paying(batch)).toEqual([0, 1, 2]);
  });

  it("leaves out the tokens of an issuer that has not consented, and nobody else's", async () => {
    const batch = await commit(consentOf(d, alice, [sword]));
    expect(leftOut(batch)).toEqual(["shield"]);
    const logs = await d.publicClient.getTransactionReceipt({ hash: batch.txHash });
    const [event] = parseEventLogs({
      abi: d.state.abi,
      eventName: "AssetsLeftOut",
      logs: logs.logs,
    });
    expect(event?.args).toEqual({
      mode: MODES.indexOf(mode),
      batchNumber: BigInt(batch.batchNumber),
      assets:
        1n << BigInt(batch.assets.findIndex(({ assetType }) => assetType === shield.assetType)),
    });
    expect(await paying(batch)).toEqual([0, 2]);
  });

  it("leaves out all tokens with issuers when nobody has consented, also when no other is there", async () => {
    expect(leftOut(await commit(async () => "0x"))).toEqual(["shield", "sword"]);
    const alone = await commitWith(mode, d, [entry(sword, owner, "2")], async () => "0x");
    expect(leftOut(alone)).toEqual(["sword"]);
    expect(await paying(alone)).toEqual([]);
  });

  it("takes a compact signature as well", async () => {
    const compact: Consenting = async (batch) => {
      const packed = await consentOf(d, alice, [sword])(batch);
      const { r, vs } = compactSignature(sliceHex(packed, 4));
      return concatHex([sliceHex(packed, 0, 2), "0x0040", r, vs]);
    };
    expect(leftOut(await commit(compact))).toEqual(["shield"]);
  });

  it.each<readonly [string, (batch: Consentable) => Changed]>([
    ["another mode", ({ mode: own }) => ({ mode: own === "validium" ? "zk-rollup" : "validium" })],
    ["another batch", ({ batchNumber }) => ({ batchNumber: batchNumber + 1 })],
    ["other vaults", () => ({ content: `0x${"11".repeat(32)}` })],
    ["another number of slots", ({ vaultCount }) => ({ vaultCount: vaultCount + 1 })],
    ["a manifest without another's asset", ({ assets }) => ({ assets: assets.slice(1) })],
    ["another chain", () => ({ settlement: { ...d.settlement, chainId: 1n } })],
    [
      "another contract",
      () => ({ settlement: { ...d.settlement, contract: `0x${"22".repeat(20)}` } }),
    ],
    ["an earlier epoch", () => ({ epoch: 0n })],
  ])("takes no consent to %s", async (_, changed) => {
    const replayed: Consenting = async (batch) =>
      consentOf(d, alice, [sword], changed(batch))(batch);
    expect(leftOut(await commit(allOf(replayed, consentOf(d, bob, [shield]))))).toEqual(["sword"]);
  });

  it("takes no consent of another key, and none that also names another issuer's token or nobody's", async () => {
    const stranger = newKey();
    for (const consenting of [
      consentOf(d, stranger, [sword]),
      consentOf(
        d,
        alice,
        [sword, shield].sort((a, b) => (a.assetType < b.assetType ? -1 : 1)),
      ),
      consentOf(
        d,
        alice,
        [sword, plain].sort((a, b) => (a.assetType < b.assetType ? -1 : 1)),
      ),
      consentOf(d, alice, [plain]),
      async () => concatHex(["0x000041", `0x${"41".repeat(65)}`]),
    ]) {
      expect(leftOut(await commit(consenting))).toEqual(["shield", "sword"]);
    }
  });

  it("takes each issuer's consent whatever stands beside it", async () => {
    const bad = consentOf(d, newKey(), [shield]);
    expect(leftOut(await commit(allOf(bad, both(), bad)))).toEqual([]);
  });

  it("takes no consent of an issuer that was suspended or replaced after it had signed", async () => {
    const signed: Consenting = async (batch) => {
      const consents = await both()(batch);
      await d.state.write.suspendIssuer([sword.token], d.by("admin"));
      return consents;
    };
    expect(leftOut(await commit(signed))).toEqual(["sword"]);
    // A suspended issuer's newer signatures do not count either.
    expect(leftOut(await commit(both(), "2"))).toEqual(["sword"]);
    await d.state.write.scheduleIssuer([sword.token, bob.address], d.by("admin"));
    await d.time.increase(CHANGE_DELAY);
    await d.state.write.activateIssuer([sword.token], d.by("admin"));
    expect(leftOut(await commit(both(), "3"))).toEqual(["sword"]);
    const assets = [sword, shield].sort((a, b) => (a.assetType < b.assetType ? -1 : 1));
    expect(leftOut(await commit(consentOf(d, bob, assets), "4"))).toEqual([]);
  });

  it("takes all other consents when a stranger suspends the issuer of a token of his own", async () => {
    const eve = newKey();
    const stone = await issuedBy(eve.address);
    const signed: Consenting = async (batch) => {
      const consents = await allOf(both(), consentOf(d, eve, [stone]))(batch);
      await d.state.write.suspendIssuer([stone.token], d.by("admin"));
      return consents;
    };
    const batch = await commitWith(mode, d, [...slots(), entry(stone, owner, "1")], signed);
    expect(batch.leftOut.map((place) => batch.assets[place]?.assetType)).toEqual([stone.assetType]);
    expect(await paying(batch)).toEqual([0, 1, 2]);
  });

  it("takes no consent to words under another manifest, where they are other vaults", async () => {
    // {A, X} is what the issuer of X is shown, {X, Z} is what is committed: what was a vault of A
    // is one of X then, which the issuer has never seen.
    const { assetType } = d.assets.card;
    const [a, z] = [1n, 2n ** 64n - 1n].map((chainId) => ({ chainId, assetType }));
    for (const { chainId } of [a, z] as readonly AssetId[])
      await d.state.write.registerAsset([2, chainId, d.assets.card.token, 1n, SCHEME.imx]);
    const { chainId, assetType: type } = sword;
    const x = { chainId, assetType: type };
    const thief = d.actors.stranger.account.address;
    const words = [
      naiveWords({ owner, amount: 1n, mintingBlob: toHex("1") }, 1),
      naiveWords({ owner: thief, amount: 1n, mintingBlob: toHex("2") }, 0),
    ];
    const shown = [a, x] as readonly AssetId[];
    const lied: Consenting = (batch) => consentOf(d, alice, [sword], { assets: shown })(batch);
    const assets = [x, z] as readonly AssetId[];
    const spelt = { assets, words, claims: [null, entry(sword, thief, "2")] };
    for (const [consenting, out] of [
      [lied, [0]],
      [consentOf(d, alice, [sword]), []],
    ] as const) {
      const batch = await commitWords(mode, d, spelt, consenting);
      expect(batch.leftOut).toEqual(out);
      await d.mature();
      const asked = withdrawArgs(request(batch, 1));
      const withdrawal = d.state.write.withdraw(asked, { account: thief });
      if (out.length > 0) await d.refuses(withdrawal, "ProofInvalid");
      else await withdrawal;
    }
  });

  it("asks nobody once the issuer is removed, and always pays earlier consents", async () => {
    const before = await commit(both());
    await d.state.write.scheduleIssuer([sword.token, zeroAddress], d.by("admin"));
    await d.time.increase(CHANGE_DELAY);
    await d.state.write.activateIssuer([sword.token], d.by("admin"));
    expect(leftOut(await commit(async () => "0x", "2"))).toEqual(["shield"]);
    expect(await paying(before)).toEqual([0, 1, 2]);
  });

  it("refuses consents that break off or name an asset that is not there", async () => {
    for (const [consents, at] of [
      ["0x01", 0n],
      ["0x0100", 0n],
      ["0x01000041", 0n],
      ["0x010300000000", 0n],
      ["0x00000001", 3n],
      ["0x00000000", 3n],
    ] as const) {
      const refused = commit(async () => consents);
      await d.refuses(
        refused.then(({ txHash }) => txHash),
        "ConsentsMalformed",
        [at],
      );
    }
  });

  it("takes a wallet contract's consent, and is stopped by none that misbehaves", async () => {
    for (const [manner, value] of Object.entries(MANNER)) {
      const wallet = await d.viem.deployContract("Wallet1271", [alice.address, value]);
      const walleted = await issuedBy(wallet.address);
      const batch = await commitWith(
        mode,
        d,
        [entry(walleted, owner, "1"), ...slots(manner.length.toString() + value)],
        allOf(consentOf(d, alice, [walleted]), both()),
      );
      expect(
        batch.leftOut.map((place) => batch.assets[place]?.assetType),
        manner,
      ).toEqual(manner === "honest" ? [] : [walleted.assetType]);
      const { gasUsed } = await d.publicClient.getTransactionReceipt({ hash: batch.txHash });
      expect(gasUsed).toBeLessThan(450_000n);
    }
    const wallet = await d.viem.deployContract("Wallet1271", [alice.address, MANNER.honest]);
    const walleted = await issuedBy(wallet.address);
    const other = await commitWith(
      mode,
      d,
      [entry(walleted, owner, "1")],
      consentOf(d, bob, [walleted]),
    );
    expect(other.leftOut).toEqual([0]);
  });

  it("knows no issuer on another chain", async () => {
    await d.state.write.registerAsset([2, 5n, getAddress(sword.token), 1n, SCHEME.imx]);
    const batch = await commitWith(
      mode,
      d,
      [{ ...entry(sword, owner, "1"), chainId: 5n }],
      async () => "0x",
    );
    expect(batch.leftOut).toEqual([]);
  });
});

describe.each([
  ["the operator alone", "zk-rollup"],
  ["the operator with a committee majority, which hides the data", "validium"],
] as const)("of a token with an issuer, %s", (_, mode) => {
  const forged = newKey();
  let thief: Address;
  beforeEach(() => {
    thief = d.actors.operator.account.address;
  });
  const withdrawAs = (account: Address, batch: CommittedBatch) =>
    d.state.write.withdraw(withdrawArgs(request(batch, 0)), { account });
  /** A registered token of Alice's, of any standard. */
  const issued = async (standard: Standard) =>
    d.register(
      standard,
      (await d.mintable[standard]({ cap: 100n, issuer: alice.address })).address,
    );

  it.each(["erc20", "erc721", "erc1155"] as const)(
    "mints no %s that the issuer has not consented to",
    async (standard) => {
      const asset = await issued(standard);
      const slot = entry(
        asset,
        thief,
        standard === "erc20" ? "" : "1",
        standard === "erc721" ? 1n : 50n,
      );
      for (const consenting of [async () => "0x" as const, consentOf(d, forged, [asset])]) {
        const batch = await commitWith(mode, d, [slot], consenting);
        await d.mature();
        await d.refuses(withdrawAs(thief, batch), "ProofInvalid");
      }
    },
  );

  it("uses up nothing of its cap", async () => {
    const coin = await issued("erc20");
    const honest = await commitWith(
      mode,
      d,
      [entry(coin, owner, "", 100n)],
      consentOf(d, alice, [coin]),
    );
    const greedy = await commitWith(
      mode,
      d,
      [entry(coin, thief, "", 100n)],
      consentOf(d, forged, [coin]),
    );
    await d.refuses(withdrawAs(thief, greedy), "ProofInvalid");
    await withdrawAs(owner, honest);
  });

  it("takes no ERC-721 by an earlier duplicate that nobody has seen, and voids nothing by it", async () => {
    const planted = await commitWith(
      mode,
      d,
      [entry(sword, thief, "1")],
      consentOf(d, forged, [sword]),
    );
    const honest = await commitWith(
      mode,
      d,
      [entry(sword, owner, "1")],
      consentOf(d, alice, [sword]),
    );
    await d.mature();
    await d.refuses(withdrawAs(thief, planted), "ProofInvalid");
    const voiding = d.state.write.voidDuplicate([
      ...provenArgs(proofOf(planted, 0)),
      ...provenArgs(proofOf(honest, 0)),
    ]);
    await d.refuses(voiding, "ProofInvalid");
    await withdrawAs(owner, honest);
  });
});

it("leaves a validium batch's asset out when its content is committed with another number of slots", async () => {
  // Three slots and four have one height, so the same content has a path for each.
  const words = naiveWordsOf(slots());
  const shown: Consenting = (batch) =>
    allOf(
      consentOf(d, alice, [sword], { vaultCount: 3 }),
      consentOf(d, bob, [shield], { vaultCount: 3 }),
    )(batch);
  for (const [vaultCount, out] of [
    [3, []],
    [4, ["shield", "sword"]],
  ] as const) {
    const spelt = { assets: assetsIn(slots()), words, claims: slots(), vaultCount };
    const batch = await commitWords("validium", d, spelt, shown);
    expect(leftOut(batch)).toEqual(out);
  }
});

it("costs members nothing: they sign the whole batch, whatever L1 leaves out of it", async () => {
  const withdrawn = await commitValidium(d, slots(), undefined, consentOf(d, bob, [shield]));
  expect(leftOut(withdrawn)).toEqual(["sword"]);
  const whole = await commitValidium(d, slots("2"), undefined, both());
  expect(withdrawn.header.batchRoot).not.toBe(whole.header.batchRoot);
});

it("holds for 255 tokens of one issuer in one signature", async () => {
  const tokens: TestAsset[] = [];
  const key = newKey();
  const coin = await d.viem.deployContract("IssuedToken", [
    `0x${"00".repeat(12)}${key.address.slice(2)}`,
    d.config.admin,
  ]);
  for (let quantum = 1n; quantum <= 255n; quantum++) {
    await d.state.write.registerAsset(
      [1, 31_337n, coin.address, quantum, SCHEME.imx],
      d.by("admin"),
    );
    tokens.push(assetOf("erc20", coin.address, quantum));
  }
  tokens.sort((a, b) => (a.assetType < b.assetType ? -1 : 1));
  const batch = await commitWith(
    "zk-rollup",
    d,
    tokens.map((asset) => entry(asset, owner)),
    consentOf(d, key, tokens),
  );
  expect(batch.leftOut).toEqual([]);
  expect(
    (
      await commitWith(
        "zk-rollup",
        d,
        tokens.map((asset) => entry(asset, owner)),
        consentOf(d, key, tokens.slice(1)),
      )
    ).leftOut,
  ).toEqual([0]);
});
