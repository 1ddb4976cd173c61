import fc from "fast-check";
import { type Address, bytesToHex, type Hex, hexToBytes, toHex, zeroAddress } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { describe, expect, it } from "vitest";
import { MODES, type Mode, type Standard } from "../../core/model.ts";
import type { VaultEntry } from "../../core/protocol/batch-data.ts";
import { stateLeaf } from "../../core/protocol/commitment.ts";
import { StateTree } from "../../core/protocol/state-tree.ts";
import * as batches from "./fixture/batches.ts";
import type { Deployment } from "./fixture/deployment.ts";
import {
  CHANGE_DELAY,
  COIN_QUANTUM,
  MATURITY,
  MODE,
  openChain,
  STANDARD,
} from "./fixture/deployment.ts";
import { outcomeOf } from "./fixture/outcomes.ts";
import {
  authorizationOf,
  batchArgs,
  digestOf,
  listed,
  NEVER,
  type Request,
  request,
  withdrawArgs,
} from "./fixture/withdrawals.ts";

const { fresh } = await openChain();
const RUNS = Number(process.env.MINTMARK_HOSTILE_PLAYS ?? 20);
const [ISSUER, THIEF, ...OWNERS] = Array.from({ length: 5 }, () =>
  privateKeyToAccount(generatePrivateKey()),
) as [Owner, Owner, ...Owner[]];
type Owner = ReturnType<typeof privateKeyToAccount>;
/** Around a time in which the clock of a call is not that of the model. */
const BLUR = 60n;

const HOWS = [
  ...["owner calls", "owner signs", "owner lists", "owner calls", "owner signs", "owner lists"],
  ...[
    "stranger calls",
    "stranger signs",
    "stranger lists",
    "another recipient",
    "another quantity",
    "expired",
  ],
  ...["vault cancelled", "listed for another recipient", "listed after another total"],
  "list cancelled",
] as const;
const ACTIONS = [
  ...["commit", "commit", "commit", "commit", "commit", "wait"],
  ...[
    "withdraw",
    "withdraw",
    "withdraw",
    "withdraw",
    "withdraw",
    "withdraw",
    "withdraw",
    "withdraw",
  ],
  ...[
    "wait",
    "forge",
    "void",
    "out of turn",
    "trespass",
    "pause",
    "revoke",
    "reinstate",
    "suspend",
    "elect",
  ],
] as const;

interface Place {
  readonly batch: batches.CommittedBatch;
  readonly slot: number;
  readonly vault: NonNullable<batches.CommittedBatch["vaults"][number]>;
  /** Null of an asset that L1 does not know. */
  readonly standard: Standard | null;
  readonly isLeftOut: boolean;
  paid: bigint;
  isVoid: boolean;
}

/**
 * Deeds of an operator who has the committee on its side, and the administration meanwhile; someone
 * watches.
 */
class Play {
  readonly #d: Deployment;
  readonly #assets: Issued["assets"];
  readonly #cardToken: Issued["cards"];
  readonly #itemToken: Issued["items"];
  readonly #places: Place[] = [];
  readonly #batches: batches.CommittedBatch[] = [];
  readonly #headers: Hex[] = [];
  readonly #cards = new Map<bigint, Address>();
  /** Vaults of which their owners have cancelled all that they sign. */
  readonly #cancelled = new Set<bigint>();
  readonly #suspended = new Set<string>();
  #paused = false;
  #revoked = false;
  readonly counts = { withdrawals: 0, voids: 0, refusals: 0, leftOut: 0 };

  constructor(d: Deployment, { assets, cards, items }: Issued) {
    this.#d = d;
    [this.#assets, this.#cardToken, this.#itemToken] = [assets, cards, items];
  }

  async take(does: (typeof ACTIONS)[number], a: number, b: number, c: number): Promise<void> {
    const { state, actors, connection } = this.#d;
    const { time } = connection.networkHelpers;
    const place = this.#places[a % Math.max(1, this.#places.length)];
    const other = this.#places[b % Math.max(1, this.#places.length)];
    const by = (actor: keyof typeof actors) => ({ account: actors[actor].account });
    const { operator } = this.#d.config;
    if (does === "commit" && !this.#paused && !this.#revoked) await this.#commit(a, b, c);
    else if (does === "withdraw" && place)
      await this.#withdraw(place, BigInt(b), HOWS[c % HOWS.length] ?? "owner calls");
    else if (does === "forge" && place) await this.#forge(place, b, BigInt(1 + (c % 7)));
    else if (does === "void" && place && other) await this.#void(place, other);
    else if (does === "wait") await time.increase(1n + (BigInt(b) % (2n * MATURITY)));
    else if (does === "out of turn")
      await this.#commitWrongly(BigInt(a % 9), b % 2 === 0 ? "operator" : "stranger");
    else if (does === "trespass") await this.#trespass(a);
    else if (does === "pause") {
      await state.write.pauseCommits([a % 3 === 0], by(a % 3 === 0 ? "guardian" : "admin"));
      this.#paused = a % 3 === 0;
    } else if (does === "revoke" && a % 2 === 0) {
      await state.write.revokeOperator([operator], by("guardian"));
      this.#revoked = true;
    } else if (does === "reinstate" && this.#revoked) {
      await this.#refused(state.write.activateOperator([operator]));
      await state.write.scheduleOperator([operator], by("admin"));
      await this.#refused(state.write.activateOperator([operator]));
      await time.increase(CHANGE_DELAY + 1n);
      await state.write.activateOperator([operator]);
      this.#revoked = false;
    } else if (does === "suspend" && a % 2 === 0) {
      const { token } = b % 2 === 0 ? this.#assets.card : this.#assets.item;
      await state.write.suspendIssuer([token], by("admin"));
      this.#suspended.add(token);
    } else if (does === "elect") {
      const { token } = b % 2 === 0 ? this.#assets.card : this.#assets.item;
      await state.write.scheduleIssuer([token, ISSUER.address], by("admin"));
      await this.#refused(state.write.activateIssuer([token], by("admin")));
      await time.increase(CHANGE_DELAY + 1n);
      await state.write.activateIssuer([token], by("admin"));
      this.#suspended.delete(token);
    }
  }

  async #refused(call: Promise<unknown>): Promise<void> {
    await expect(call).rejects.toThrow();
    this.counts.refusals++;
  }

  /**
   * A few owners and token ids, so that they collide; a validium batch may hold what L1 does not
   * take.
   */
  #entryFrom(seed: number, isSpoilt: boolean): VaultEntry {
    const { coin, card, item } = this.#assets;
    const asset = [coin, card, item][seed % 3] ?? coin;
    const owner = OWNERS[(seed >> 3) % OWNERS.length] as Owner;
    const amount = asset === card ? 1n : BigInt(1 + ((seed >> 6) % 1000));
    const vault = batches.entry(
      asset,
      owner.address,
      asset === coin ? "" : String((seed >> 9) % 8),
      amount,
    );
    if (!isSpoilt) return vault;
    const spoils: readonly Partial<VaultEntry>[] = [
      { amount: 0n },
      { amount: 2n ** 64n - 1n },
      { amount: 2n },
      { mintingBlob: "0x" },
      { mintingBlob: toHex(new Uint8Array(256)) },
      { chainId: vault.chainId ^ 1n },
      { assetType: toHex(BigInt(vault.assetType) ^ 1n, { size: 32 }) },
      {},
    ];
    return { ...vault, ...spoils[(seed >> 12) % spoils.length] };
  }

  /**
   * The issuer's consent to a batch, or an operator's forgery of it; and the assets for which it
   * counts.
   */
  #consenting(named: batches.CommittedBatch["assets"], how: number) {
    const able = named.filter(({ assetType }) => {
      const { token } =
        assetType === this.#assets.card.assetType ? this.#assets.card : this.#assets.item;
      return !this.#suspended.has(token);
    });
    const nobody: batches.Consenting = async () => "0x";
    if (able.length === 0 || how === 1) return { consenting: nobody, counted: [] };
    const changes = {
      3: { content: toHex(1, { size: 32 }) },
      5: { batchNumber: 99 },
      6: { epoch: 99n },
    } as const;
    const of = how === 7 ? able.slice(0, 1) : able;
    const consenting: batches.Consenting = (batch) => {
      const mode = batch.mode === "validium" ? "zk-rollup" : "validium";
      const change = how === 4 ? { mode: mode as Mode } : (changes[how as 3] ?? {});
      return batches.consentOf(this.#d, how === 2 ? THIEF : ISSUER, of, change)(batch);
    };
    return { consenting, counted: how === 0 || how > 6 ? of : [] };
  }

  async #commit(a: number, b: number, c: number): Promise<void> {
    const mode = MODES[a % 2] as Mode;
    const isSpoilt = mode === "validium" && b % 3 === 0;
    const slots = Array.from({ length: 1 + (b % 5) }, (_, i) =>
      this.#entryFrom(((a >> 1) + 7_919 * i * (1 + (c >> 4))) % 2 ** 30, isSpoilt),
    );
    const { card, item } = this.#assets;
    const known = slots.filter((slot) => this.#standardOf(slot) !== null);
    const assets = batches.assetsIn(known);
    const issued = assets.filter(
      ({ assetType }) => assetType === card.assetType || assetType === item.assetType,
    );
    const { consenting, counted } = this.#consenting(issued, c % 16 < 8 ? 0 : c % 8);
    const batch =
      mode === "validium"
        ? await batches.commitValidium(this.#d, slots, assets, consenting)
        : await batches.commitRollup(this.#d, slots, consenting);
    const typesOf = (list: readonly { readonly assetType: Hex }[]) =>
      list.map(({ assetType }) => assetType).toSorted();
    const leftOut = batch.leftOut.flatMap((at) => batch.assets[at] ?? []);
    expect(typesOf(leftOut)).toEqual(typesOf(issued.filter((one) => !counted.includes(one))));
    this.counts.leftOut += leftOut.length;
    this.#batches.push(batch);
    this.#headers.push(await this.#headerOf(batch));
    for (const [slot, vault] of batch.vaults.entries()) {
      if (vault === null) continue;
      const isLeftOut = leftOut.some(
        (one) => one.assetType === vault.assetType && one.chainId === vault.chainId,
      );
      const later = {
        batch,
        slot,
        vault,
        standard: this.#standardOf(vault),
        isLeftOut,
        paid: 0n,
        isVoid: false,
      };
      this.#places.push(later);
      // A committee member looks at each new vault.
      for (const earlier of this.#places)
        if (this.#areDuplicates(earlier, later) && !later.isVoid) await this.#void(earlier, later);
    }
  }

  #headerOf({ mode, batchNumber }: batches.CommittedBatch): Promise<Hex> {
    return this.#d.state.read.batchHeaderHash([MODE[mode], BigInt(batchNumber)]);
  }

  #standardOf({ chainId, assetType }: Pick<VaultEntry, "chainId" | "assetType">): Standard | null {
    const found = Object.values(this.#assets).find(
      (asset) => asset.assetType === assetType && asset.chainId === chainId,
    );
    return found?.standard ?? null;
  }

  #isPayable({ vault, standard, isLeftOut }: Place): boolean {
    if (standard === null || isLeftOut || vault.amount === 0n || vault.amount >= 1n << 63n)
      return false;
    const length = hexToBytes(vault.mintingBlob).length;
    if ((standard === "erc20") !== (length === 0) || length > 255) return false;
    return standard !== "erc721" || vault.amount === 1n;
  }

  #areDuplicates(earlier: Place, later: Place): boolean {
    const [first, second] = [this.#places.indexOf(earlier), this.#places.indexOf(later)];
    const same =
      earlier.standard === "erc721" &&
      later.standard === "erc721" &&
      earlier.vault.mintingBlob === later.vault.mintingBlob;
    return first < second && same && this.#isPayable(earlier) && this.#isPayable(later);
  }

  async #void(earlier: Place, later: Place): Promise<void> {
    const isAllowed = this.#areDuplicates(earlier, later) && !later.isVoid && later.paid === 0n;
    const [first, second] = [earlier, later].map(({ batch, slot }) =>
      batches.provenArgs(batches.proofOf(batch, slot)),
    );
    if (first === undefined || second === undefined) return;
    const call = this.#d.state.write.voidDuplicate([...first, ...second]);
    if (!isAllowed) return this.#refused(call);
    await call;
    later.isVoid = true;
    this.counts.voids++;
  }

  async #withdraw(place: Place, random: bigint, how: (typeof HOWS)[number]): Promise<void> {
    const { batch, slot, vault, standard, paid } = place;
    const { state } = this.#d;
    const owner = OWNERS.find(
      ({ address }) => address.toLowerCase() === vault.owner.toLowerCase(),
    ) as Owner;
    const left = vault.amount - paid;
    // Half of the quantities are exactly what is left.
    const quantity = random % 2n === 0n ? left : random % 1_100n;
    const recipient = (OWNERS[Number(random % 3n)] as Owner).address;
    const now = BigInt(await this.#d.time.latest());
    const matures = batch.header.committedAt + MATURITY;
    if (standard === "erc721" && now < matures + BLUR && now + BLUR > matures) return;
    const isFree =
      standard !== "erc721" || (now >= matures && !this.#cards.has(cardOf(vault.mintingBlob)));
    const isListed = how === "owner signs" || how === "owner lists";
    const isWilling = how === "owner calls" || (isListed && !this.#cancelled.has(vault.vaultId));
    const isAllowed =
      isWilling &&
      this.#isPayable(place) &&
      !place.isVoid &&
      quantity > 0n &&
      quantity <= left &&
      isFree;
    const done = await this.#attempt(how, owner, place, quantity, recipient).catch(() => false);
    expect(
      done,
      `${how}: vault ${vault.vaultId} of batch ${batch.batchNumber}, slot ${slot}, ${quantity}`,
    ).toBe(isAllowed);
    if (!done) {
      this.counts.refusals++;
      return;
    }
    place.paid += quantity;
    this.counts.withdrawals++;
    if (standard === "erc721") this.#cards.set(cardOf(vault.mintingBlob), recipient);
    expect(await state.read.withdrawn([vault.vaultId, STANDARD[standard as Standard]])).toBe(
      place.paid,
    );
  }

  /** Whether it was paid. */
  async #attempt(
    how: string,
    owner: Owner,
    { batch, slot, vault, paid, standard }: Place,
    quantity: bigint,
    recipient: Address,
  ) {
    const { state, actors } = this.#d;
    const relayer = { account: actors.relayer.account };
    const withdrawnBefore = standard === "erc721" ? 0n : paid;
    const asked = request(batch, slot, { quantity, recipient });
    if (how === "owner calls" || how === "stranger calls") {
      const account = how === "owner calls" ? owner.address : actors.stranger.account;
      await state.write.withdraw(withdrawArgs(asked), { account });
      return true;
    }
    const signer = how.startsWith("stranger") ? THIEF : owner;
    const wrong = how.includes("another recipient")
      ? { ...asked, recipient: THIEF.address }
      : asked;
    // Deadlines differ, so that what was cancelled is nothing else.
    const deadline = how === "expired" ? 1n : NEVER - BigInt(this.counts.refusals);
    if (how === "vault cancelled") {
      this.#cancelled.add(vault.vaultId);
      const id = toHex(vault.vaultId, { size: 32 });
      await state.write.cancel([owner.address, id, "0x"], { account: owner.address });
    }
    const total = withdrawnBefore + (how === "listed after another total" ? 1n : 0n);
    const list = [
      ...(how.includes("list") ? [{ vaultId: 2n ** 51n, withdrawnBefore: 0n, quantity: 1n }] : []),
      { vaultId: vault.vaultId, withdrawnBefore: total, quantity },
    ];
    const signedList =
      how === "another quantity"
        ? list.map((each) => ({ ...each, quantity: each.quantity ^ 1n }))
        : list;
    const [one] = await listed(this.#d, signer, [wrong], { list: signedList, deadline });
    if (how === "list cancelled")
      await state.write.cancel([owner.address, digestOf(this.#d, one as Request), "0x"], {
        account: owner.address,
      });
    const { signature } = authorizationOf(one as Request);
    const sent = await state.write.withdrawBatch(
      batchArgs([{ ...(one as Request), recipient, authorization: { deadline, signature, list } }]),
      relayer,
    );
    return (await outcomeOf(this.#d, sent)).withdrawn.length === 1;
  }

  /** Withdraws from a vault that differs from a committed one by one field. */
  async #forge({ batch, slot }: Place, field: number, change: bigint): Promise<void> {
    const { vault, header, ...path } = batches.proofOf(batch, slot);
    const forged = {
      ...vault,
      ...(field % 5 === 0 && { amount: vault.amount ^ change }),
      ...(field % 5 === 1 && { owner: THIEF.address }),
      ...(field % 5 === 2 && { mintingBlob: `${vault.mintingBlob}31` as Hex }),
      ...(field % 5 === 3 && { vaultId: vault.vaultId ^ change }),
      ...(field % 5 === 4 && { assetType: vault.assetType ^ change }),
    };
    const args = [forged, header, batches.pathOf(path), 1n, THIEF.address] as const;
    await this.#refused(this.#d.state.write.withdraw(args, { account: forged.owner }));
  }

  /** An old number or one of the future, or somebody without the right to. */
  async #commitWrongly(number: bigint, who: "operator" | "stranger"): Promise<void> {
    const { state, actors } = this.#d;
    const [, next] = await state.read.batchCounts();
    if (number === next && who === "operator") return;
    const args = [
      await state.read.history(),
      "0x",
      who === "operator" ? number : next,
      "0x0100000000ffff000002",
    ] as const;
    await this.#refused(state.write.commitRollupBatch(args, { account: actors[who].account }));
  }

  async #trespass(which: number): Promise<void> {
    const { state, config, actors } = this.#d;
    const by = { account: actors.stranger.account };
    const member = by.account.address;
    const { token } = this.#assets.card;
    const calls = [
      () => state.write.pauseCommits([true], by),
      () => state.write.scheduleOperator([member], by),
      () => state.write.revokeOperator([config.operator], by),
      () => state.write.scheduleCommittee([[member], 1], by),
      () => state.write.activateCommittee([[member], 1], by),
      async () => state.write.grantRole([await state.read.OPERATOR_ROLE(), member], by),
      () => state.write.suspendIssuer([token], by),
      () => state.write.scheduleIssuer([token, member], by),
      () => state.write.activateIssuer([token], by),
      () => state.write.cancelIssuer([token], by),
    ];
    await this.#refused((calls[which % calls.length] as () => Promise<unknown>)());
  }

  /** Asserts what must hold after every sequence. */
  async check(): Promise<void> {
    const { state, tokens } = this.#d;
    for (const mode of MODES) {
      const own = this.#batches.filter((batch) => batch.mode === mode);
      const leaves = own.map(({ batchNumber, header, dataHash }) =>
        hexToBytes(stateLeaf({ batchNumber, dataHash, ...header })),
      );
      const history = new StateTree(new Uint8Array(Buffer.concat(leaves)));
      expect(await state.read.stateRoot([MODE[mode]])).toBe(bytesToHex(history.root()));
    }
    for (const [i, batch] of this.#batches.entries())
      expect(await this.#headerOf(batch)).toBe(this.#headers[i]);
    const paid = { erc20: 0n, erc721: 0n, erc1155: 0n };
    for (const place of this.#places) {
      if (place.standard === null) continue;
      const out = await state.read.withdrawn([place.vault.vaultId, STANDARD[place.standard]]);
      expect(out).toBe(place.isVoid ? 1n : place.paid);
      expect(place.paid).toBeLessThanOrEqual(place.vault.amount);
      paid[place.standard] += place.paid;
      if (place.paid > 0n)
        expect(this.#places.some((earlier) => this.#areDuplicates(earlier, place))).toBe(false);
    }
    expect(await tokens.coin.read.totalSupply()).toBe(paid.erc20 * COIN_QUANTUM);
    let [items, cards] = [0n, 0n];
    for (let id = 0n; id < 8n; id++) {
      items += await this.#itemToken.read.totalSupply([id]);
      const holder = await this.#cardToken.read.ownerOf([id]).catch(() => zeroAddress);
      expect(holder.toLowerCase()).toBe((this.#cards.get(id) ?? zeroAddress).toLowerCase());
      if (holder !== zeroAddress) cards++;
    }
    expect([items, cards]).toEqual([paid.erc1155, paid.erc721]);
  }
}

type Issued = Awaited<ReturnType<typeof issue>>;

/** Coins of nobody's issuer, and cards and items of one; owners who can call. */
async function issue(d: Deployment) {
  const [cards, items] = [
    await d.mintable.erc721({ issuer: ISSUER.address }),
    await d.mintable.erc1155({ issuer: ISSUER.address }),
  ];
  for (const { address } of [...OWNERS, THIEF]) {
    await d.testClient.setBalance({ address, value: 10n ** 20n });
    await d.testClient.impersonateAccount({ address });
  }
  const assets = {
    coin: d.assets.coin,
    card: await d.register("erc721", cards.address),
    item: await d.register("erc1155", items.address),
  };
  return { assets, cards, items };
}

/** The id that a decimal minting blob names. */
function cardOf(mintingBlob: Hex): bigint {
  const text = Buffer.from(hexToBytes(mintingBlob)).toString();
  return /^\d+$/.test(text) ? BigInt(text) : -1n;
}

describe("a hostile operator with the committee on its side, in any play with owners, thieves and the administration", () => {
  it("changes no batch, is paid no more than vaults hold, and takes no token from the earlier of its vaults", async () => {
    const total = { withdrawals: 0, voids: 0, refusals: 0, leftOut: 0 };
    const number = fc.noBias(fc.nat(2 ** 30));
    const actions = fc.array(fc.tuple(fc.constantFrom(...ACTIONS), number, number, number), {
      minLength: 70,
      maxLength: 90,
    });
    const property = fc.asyncProperty(actions, async (all) => {
      const d = await fresh();
      const play = new Play(d, await issue(d));
      for (const [does, a, b, c] of all) await play.take(does, a, b, c);
      await play.check();
      for (const name of Object.keys(total) as (keyof typeof total)[])
        total[name] += play.counts[name];
    });
    await fc.assert(property, { numRuns: RUNS, endOnFailure: true });
    // It would hold as well of a contract that refuses everything.
    expect(Math.min(...Object.values(total)), JSON.stringify(total)).toBeGreaterThan(5);
  });
});
