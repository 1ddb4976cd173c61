import { type Address, keccak256, toHex } from "viem";
import { beforeEach, describe, expect, it } from "vitest";
import type { CommittedBatch } from "./fixture/batches.ts";
import {
  commit,
  commitRollup,
  commitValidium,
  entry,
  proofOf,
  provenArgs,
} from "./fixture/batches.ts";
import { assetOf, type Deployment, openChain, SCHEME, STANDARD } from "./fixture/deployment.ts";
import { request, withdrawArgs } from "./fixture/withdrawals.ts";

const { fresh } = await openChain();

/** One vault of a pair: where it is. */
interface Place {
  readonly batch: CommittedBatch;
  readonly slot: number;
}

describe("two vaults of one ERC-721 token", () => {
  let d: Deployment;
  let victim: Address;
  let thief: Address;
  beforeEach(async () => {
    d = await fresh();
    victim = d.actors.owner.account.address;
    thief = d.actors.stranger.account.address;
  });

  const voidDuplicate = (earlier: Place, later: Place) => {
    const [a, b] = [proofOf(earlier.batch, earlier.slot), proofOf(later.batch, later.slot)];
    return d.state.write.voidDuplicate([...provenArgs(a), ...provenArgs(b)], d.by("relayer"));
  };
  const withdraw = ({ batch, slot }: Place, account = d.actors.stranger.account) =>
    d.state.write.withdraw(withdrawArgs(request(batch, slot)), { account });
  const idOf = ({ batch, slot }: Place) => proofOf(batch, slot).vault.vaultId;
  const refuses = (earlier: Place, later: Place) =>
    d.refuses(voidDuplicate(earlier, later), "NotDuplicates", [idOf(earlier), idOf(later)]);

  it.each([
    ["rollup, rollup", "zk-rollup", "zk-rollup"],
    ["validium, validium", "validium", "validium"],
    ["rollup, then validium", "zk-rollup", "validium"],
    ["validium, then rollup", "validium", "zk-rollup"],
  ] as const)("the later one is exhausted by anyone: %s", async (_, first, second) => {
    // The other mode is some batches ahead, so that batch numbers do not tell which came first.
    for (let i = 0; i < 3; i++) await commit[second](d, [entry(d.assets.coin, victim, "", 1n)]);
    const earlier = { batch: await commit[first](d, [entry(d.assets.card, victim, "7")]), slot: 0 };
    const later = {
      batch: await commit[second](d, [null, entry(d.assets.card, thief, "7")]),
      slot: 1,
    };
    await refuses(later, earlier);
    await d.tells(voidDuplicate(earlier, later), "DuplicateVoided", [idOf(earlier), idOf(later)]);
    expect(await d.state.read.withdrawn([idOf(later), STANDARD.erc721])).toBe(1n);
    await d.mature();
    await d.refuses(withdraw(later), "VaultExhausted", [idOf(later)]);
    await withdraw(earlier, d.actors.owner.account);
    expect((await d.tokens.card.read.ownerOf([7n])).toLowerCase()).toBe(victim.toLowerCase());
  });

  it("in one batch, the lower slot came first", async () => {
    const slots = [
      entry(d.assets.coin, victim, "", 1n),
      entry(d.assets.card, victim, "7"),
      entry(d.assets.card, thief, "7"),
    ];
    const batch = await commitRollup(d, slots);
    const [earlier, later] = [
      { batch, slot: 1 },
      { batch, slot: 2 },
    ];
    await refuses(later, earlier);
    await voidDuplicate(earlier, later);
    await d.refuses(voidDuplicate(earlier, later), "VaultExhausted");
  });

  it("an earlier vault that nobody could withdraw takes no token with it", async () => {
    const honest = {
      batch: await commitRollup(d, [entry(d.assets.coin, victim, "", 1n)]),
      slot: 0,
    };
    const hollow = [
      entry(d.assets.card, thief, "7", 2n),
      entry(d.assets.card, "0x0000000000000000000000000000000000000000", "7"),
      entry(d.assets.card, thief, ""),
    ];
    for (const slot of hollow) {
      const earlier = { batch: await commitValidium(d, [slot]), slot: 0 };
      const later = { batch: await commitRollup(d, [entry(d.assets.card, victim, "7")]), slot: 0 };
      await refuses(earlier, later);
    }
    const long = await commitValidium(d, [entry(d.assets.card, thief, "7".repeat(256))]);
    await d.refuses(voidDuplicate({ batch: long, slot: 0 }, honest), "ProofInvalid");
    expect(await d.state.read.withdrawn([idOf(honest), STANDARD.erc20])).toBe(0n);
  });

  it("an earlier vault from before the token's registration takes no token with it, and is never paid", async () => {
    const { address } = await d.viem.deployContract("ImxToken", [d.state.address]);
    const asset = assetOf("erc721", address);
    const slots = [entry(asset, thief, "{7}:{}")];
    await d.refuses(commitValidium(d, slots), "AssetNotRegistered");
    const planted = { batch: await commitValidium(d, slots, []), slot: 0 };
    await d.register("erc721", address);
    const honest = { batch: await commitRollup(d, [entry(asset, victim, "{7}:{}")]), slot: 0 };
    const stolen = { batch: await commitRollup(d, [entry(asset, thief, "{7}:{}")]), slot: 0 };
    for (const later of [honest, stolen]) {
      await d.refuses(voidDuplicate(planted, later), "ProofInvalid");
    }
    await voidDuplicate(honest, stolen);
    await d.mature();
    await d.refuses(withdraw(planted), "BatchBeforeRegistration");
    await withdraw(honest, d.actors.owner.account);
  });

  it("a vault is no duplicate of itself", async () => {
    const batch = await commitRollup(d, [entry(d.assets.card, victim, "7")]);
    await refuses({ batch, slot: 0 }, { batch, slot: 0 });
  });

  it("other tokens, other contracts and other standards are none", async () => {
    const otherCard = await d.viem.deployContract("RevertingToken");
    const other = await d.register("erc721", otherCard.address);
    const batch = await commitRollup(d, [
      entry(d.assets.card, victim, "7"),
      entry(d.assets.card, thief, "8"),
      entry(other, thief, "7"),
      entry(d.assets.item, victim, "7", 1n),
      entry(d.assets.item, thief, "7", 1n),
      entry(d.assets.coin, victim, "", 1n),
      entry(d.assets.coin, thief, "", 1n),
      entry(d.assets.imxCard, thief, "{7}:{}"),
    ]);
    for (const [a, b] of [
      [0, 1],
      [0, 2],
      [0, 3],
      [3, 4],
      [5, 6],
      [0, 7],
    ] as const) {
      await refuses({ batch, slot: a }, { batch, slot: b });
    }
  });

  it("are voided with proofs of both only", async () => {
    const [first, second] = [
      await commitRollup(d, [entry(d.assets.card, victim, "7"), entry(d.assets.card, victim, "8")]),
      await commitRollup(d, [entry(d.assets.card, thief, "7"), entry(d.assets.card, thief, "8")]),
    ];
    const [a, b] = [proofOf(first, 0), proofOf(second, 0)];
    const write = (earlier: typeof a, later: typeof b) =>
      d.state.write.voidDuplicate([...provenArgs(earlier), ...provenArgs(later)]);
    const [otherA, otherB] = [proofOf(first, 1).siblings, proofOf(second, 1).siblings];
    await d.refuses(write({ ...a, siblings: otherA }, b), "ProofInvalid");
    await d.refuses(write(a, { ...b, siblings: otherB }), "ProofInvalid");
    await d.refuses(write({ ...a, header: b.header }, b), "HeaderMismatch");
    const forged = { ...a, header: { ...a.header, sequence: 0n, committedAt: 0n } };
    await d.refuses(write(forged, b), "HeaderMismatch");
  });

  it("spellings of one id are one token in the imx scheme", async () => {
    const first = await commitValidium(d, [
      entry(d.assets.imxCard, victim, "{7}:{blue}"),
      entry(d.assets.imxCard, victim, "{8}:{}"),
    ]);
    const second = await commitValidium(d, [
      entry(d.assets.imxCard, thief, "{7}:{red}"),
      entry(d.assets.imxCard, thief, "{7}:{}"),
      entry(d.assets.imxCard, thief, "{7}:{}:{}"),
      entry(d.assets.imxCard, thief, "{77}:{blue}"),
    ]);
    for (const slot of [0, 1, 2])
      await voidDuplicate({ batch: first, slot: 0 }, { batch: second, slot });
    await refuses({ batch: first, slot: 0 }, { batch: second, slot: 3 });
    await refuses({ batch: first, slot: 1 }, { batch: second, slot: 3 });
  });

  it("a spelling that the scheme does not have cannot be voided, and need not be: it is never withdrawn", async () => {
    const first = await commitValidium(d, [entry(d.assets.imxCard, victim, "{7}:{}")]);
    const second = await commitValidium(d, [entry(d.assets.imxCard, thief, "{007}:{}")]);
    await d.mature();
    await d.refuses(
      voidDuplicate({ batch: first, slot: 0 }, { batch: second, slot: 0 }),
      "MintingBlobInvalid",
    );
    await d.refuses(withdraw({ batch: second, slot: 0 }), "MintingBlobInvalid");
    await withdraw({ batch: first, slot: 0 }, d.actors.owner.account);
  });

  it("a text and the number that its hash is name one token in the mintmark scheme", async () => {
    const number = BigInt(keccak256(toHex("a hero"))).toString();
    const first = await commitRollup(d, [entry(d.assets.card, victim, "a hero")]);
    const second = await commitRollup(d, [entry(d.assets.card, thief, number)]);
    await voidDuplicate({ batch: first, slot: 0 }, { batch: second, slot: 0 });
  });

  it("of another chain's token are not voided here", async () => {
    const far = assetOf("erc721", d.assets.card.token, 1n, 137n);
    await d.state.write.registerAsset([STANDARD.erc721, 137n, far.token, 1n, SCHEME.imx]);
    const batch = await commitRollup(d, [
      entry(far, victim, "7"),
      entry(far, thief, "7"),
      entry(d.assets.card, thief, "7"),
    ]);
    await refuses({ batch, slot: 0 }, { batch, slot: 1 });
    await refuses({ batch, slot: 0 }, { batch, slot: 2 });
  });

  it("a withdrawal before a duplicate matures keeps the token, even if the duplicate's batch is hidden", async () => {
    const earlier = { batch: await commitRollup(d, [entry(d.assets.card, victim, "7")]), slot: 0 };
    await d.mature();
    const hidden = { batch: await commitValidium(d, [entry(d.assets.card, thief, "7")]), slot: 0 };
    await d.refuses(withdraw(hidden), "NotMature");
    await withdraw(earlier, d.actors.owner.account);
    await d.mature();
    await d.refuses(withdraw(hidden), "TokenRefused");
    expect((await d.tokens.card.read.ownerOf([7n])).toLowerCase()).toBe(victim.toLowerCase());
  });

  it("if nobody watches for the maturity time, the first withdrawal of the two gets the token", async () => {
    const earlier = { batch: await commitRollup(d, [entry(d.assets.card, victim, "7")]), slot: 0 };
    const later = { batch: await commitRollup(d, [entry(d.assets.card, thief, "7")]), slot: 0 };
    await d.mature();
    await withdraw(later);
    await d.refuses(withdraw(earlier, d.actors.owner.account), "TokenRefused");
    await d.refuses(voidDuplicate(earlier, later), "VaultExhausted");
  });
});
