import fc from "fast-check";
import { concat, type Hex, numberToHex, parseSignature } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { describe, expect } from "vitest";
import type { Address, Engine } from "../../../core/index.ts";
import { claimTypedData } from "../../../core/protocol/typed-data.ts";
import { claimKillRounds } from "./claim-kill.ts";
import {
  all,
  type Fixture,
  fixture,
  mintOf,
  OWNERS,
  openTest,
  refusal,
  SETTLEMENT,
} from "./fixture.ts";
import { it } from "./it.ts";

const [ALICE, BOB] = OWNERS.map(({ address }) => address.toLowerCase()) as [Address, Address];
const DAY = 86_400_000;
type Link = ReturnType<typeof newLink>;
const newLink = () => privateKeyToAccount(generatePrivateKey());
const low = (link: Link) => link.address.toLowerCase() as Address;

/** The claim of a link's holder, for an owner. */
const signed = async (
  link: Link,
  owner: Address,
  settlement: Parameters<typeof claimTypedData>[0] = SETTLEMENT,
) => ({
  ownerAddress: owner,
  signature: await link.signTypedData(claimTypedData(settlement, { link: link.address, owner })),
});
const take = async (engine: Engine, link: Link, owner: Address) =>
  engine.claims.take(link.address, await signed(link, owner));

/** Links for one unit each of an ERC-20, or for what `mints` say. */
async function linked(count: number, mintsOf?: (made: Fixture) => object[], more: object = {}) {
  const made = await fixture();
  const links = Array.from({ length: count }, newLink);
  const mints = mintsOf?.(made) ?? links.map(() => mintOf(made.assets.erc20, "", 1));
  const claims = links.map(({ address }, i) => ({ linkAddress: address, mint: mints[i], ...more }));
  await made.engine.claims.createAll(made.tenant.principal, claims);
  return { ...made, links, claims };
}

const mintedOf = async ({ engine, tenant }: Fixture, assetId: string) =>
  (await engine.assets.get(tenant.applicationId, assetId)).minted;

describe("a claim link", () => {
  it("mints once to the owner that its key has signed, and tells who", async () => {
    const made = await linked(1, ({ assets }) => [
      { ...mintOf(assets.erc721, 7), reference: "seat 7" },
    ]);
    const { engine, tenant, links } = made;
    const [link] = links as [Link];
    expect(await engine.claims.find(link.address)).toEqual({
      ...{ linkAddress: low(link), status: "open", expiresAt: null, ownerAddress: null },
      asset: { assetId: made.assets.erc721, standard: "erc721", name: "erc721", symbol: "erc721" },
      ...{ tokenId: 7n, amount: null, quantity: null },
    });
    const stranger = `0x${"5a".repeat(20)}` as const;
    const { mintId, vaults, replayed } = await take(engine, link, stranger);
    expect(replayed).toBe(false);
    expect(vaults).toMatchObject([{ tokenId: 7n, ownerAddress: stranger }]);
    expect(await engine.claims.get(tenant.applicationId, link.address)).toMatchObject({
      linkAddress: low(link),
      status: "claimed",
      mintId,
      decidedAt: made.clock.now,
      ...(await signed(link, stranger)),
    });
    const again = await take(engine, link, stranger);
    expect([again.mintId, again.replayed]).toEqual([mintId, true]);
    expect(await refusal(take(engine, link, BOB))).toMatchObject({ code: "claim_taken" });
    expect(await refusal(engine.claims.cancel(tenant.applicationId, link.address))).toMatchObject({
      code: "claim_taken",
    });
    await engine.close();
    await using opened = await openTest(made.database);
    expect((await opened.operator.verify()).problems).toEqual([]);
    expect((await take(opened, link, stranger)).mintId).toBe(mintId);
    expect(await refusal(take(opened, link, BOB))).toMatchObject({ code: "claim_taken" });
  });

  it("mints once when a hundred holders claim it at a time, for the first of them", async () => {
    const made = await linked(1);
    const { engine, links, assets } = made;
    await using _ = engine;
    const [link] = links as [Link];
    const owners = Array.from(
      { length: 100 },
      (_, i) => `0x${(0x1000 + (i % 50)).toString(16).padStart(40, "0")}` as const,
    );
    const results = await Promise.allSettled(owners.map((owner) => take(engine, link, owner)));
    const won = results.flatMap((result, i) =>
      result.status === "fulfilled" ? [{ ...result.value, owner: owners[i] }] : [],
    );
    const { ownerAddress, mintId } = await engine.claims.get(
      made.tenant.applicationId,
      link.address,
    );
    // The winner sent its claim twice, and both answers name the one mint.
    expect(won.map(({ owner }) => owner)).toEqual([ownerAddress, ownerAddress]);
    for (const each of results) {
      if (each.status === "fulfilled") expect(each.value.mintId).toBe(mintId);
      else expect(each.reason).toMatchObject({ code: "claim_taken" });
    }
    expect(await mintedOf(made, assets.erc20)).toBe(1n);
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  it("cannot be led to another owner by who sees its claim", async () => {
    const made = await linked(2);
    const { engine, links } = made;
    await using _ = engine;
    const [link, other] = links as [Link, Link];
    const seen = await signed(link, ALICE);
    const { r, s, yParity } = parseSignature(seen.signature);
    const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
    const mirrored = concat([
      r,
      numberToHex(order - BigInt(s), { size: 32 }),
      yParity === 0 ? "0x1c" : "0x1b",
    ]);
    const tries: [Address, { ownerAddress: Address; signature: Hex }][] = [
      // The seen signature with another owner, and for another link.
      [link.address, { ...seen, ownerAddress: BOB }],
      [other.address, seen],
      // Signed by another link's key, and by the owner.
      [link.address, await signed(other, BOB)],
      [
        link.address,
        {
          ownerAddress: BOB,
          signature: await other.signTypedData(
            claimTypedData(SETTLEMENT, { link: link.address, owner: BOB }),
          ),
        },
      ],
      // Signed for another deployment.
      [link.address, await signed(link, ALICE, { ...SETTLEMENT, chainId: 1n })],
      [link.address, await signed(link, ALICE, { ...SETTLEMENT, contract: BOB })],
      // Not the one form of a signature.
      [link.address, { ownerAddress: ALICE, signature: mirrored }],
      [link.address, { ownerAddress: ALICE, signature: "0x" }],
      [link.address, { ownerAddress: ALICE, signature: `${seen.signature}00` }],
    ];
    for (const [address, claim] of tries)
      expect(await refusal(engine.claims.take(address, claim))).toMatchObject({
        code: "signature_invalid",
      });
    expect(await refusal(take(engine, newLink(), BOB))).toMatchObject({ code: "claim_not_found" });
    const upper = { ...seen, signature: `0x${seen.signature.slice(2).toUpperCase()}` as const };
    expect((await engine.claims.take(link.address, upper)).vaults).toMatchObject([
      { ownerAddress: ALICE },
    ]);
  });

  it("ends with its time, or when its issuer cancels it", async ({
    engine,
    tenant,
    clock,
    assets,
    made,
  }) => {
    const [late, cancelled, kept] = [newLink(), newLink(), newLink()];
    const mint = mintOf(assets.erc20, "", 1);
    const create = (
      ...claims: { linkAddress: Address; mint: unknown; expiresAt?: number | null }[]
    ) => engine.claims.createAll(tenant.principal, claims);
    await create(
      { linkAddress: late.address, mint, expiresAt: clock.now + DAY },
      { linkAddress: cancelled.address, mint },
      { linkAddress: kept.address, mint, expiresAt: null },
    );
    for (let i = 0; i < 2; i++) {
      const ended = await engine.claims.cancel(tenant.applicationId, cancelled.address);
      expect(ended).toMatchObject({ status: "cancelled", decidedAt: clock.now });
    }
    clock.now += DAY;
    expect(await engine.claims.find(late.address)).toMatchObject({ status: "expired" });
    expect(await refusal(take(engine, late, ALICE))).toMatchObject({ code: "claim_expired" });
    expect(await refusal(take(engine, cancelled, ALICE))).toMatchObject({
      code: "claim_cancelled",
    });
    expect(
      await refusal(create({ linkAddress: newLink().address, mint, expiresAt: clock.now })),
    ).toEqual({
      code: "claim_expired",
      issues: { "/claims/0/expiresAt": "claim_expired" },
    });
    await take(engine, kept, ALICE);
    expect(await mintedOf(made, assets.erc20)).toBe(1n);
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  it("ends with the key that created it, but what was claimed stays", async () => {
    const made = await linked(2);
    const { engine, tenant, links } = made;
    await using _ = engine;
    const [used, open] = links as [Link, Link];
    const { mintId } = await take(engine, used, ALICE);
    await engine.keys.revoke(tenant.principal.keyId);
    expect(await refusal(take(engine, open, ALICE))).toMatchObject({ code: "claim_cancelled" });
    expect((await take(engine, used, ALICE)).mintId).toBe(mintId);
  });

  it("whose token is minted in another way says so, and stays open", async () => {
    const made = await linked(1, ({ assets }) => [mintOf(assets.erc721, 7)]);
    const { engine, tenant, links, assets } = made;
    await using _ = engine;
    const [link] = links as [Link];
    await engine.mint(tenant.principal, {
      users: [{ ownerAddress: BOB, mints: [mintOf(assets.erc721, 7)] }],
    });
    expect(await refusal(take(engine, link, ALICE))).toMatchObject({
      code: "token_already_minted",
    });
    expect(await engine.claims.find(link.address)).toMatchObject({ status: "open" });
  });
});

describe("links are created", () => {
  it("all or none, after every check of their mints", async ({ engine, tenant, assets }) => {
    const [first, second] = [newLink().address, newLink().address];
    const create = (...mints: unknown[]) =>
      engine.claims.createAll(
        tenant.principal,
        mints.map((mint, i) => ({ linkAddress: i === 0 ? first : second, mint })),
      );
    const good = mintOf(assets.erc721, 7);
    expect(await refusal(create(good, good))).toEqual({
      code: "duplicate_mint",
      issues: { "/claims/1/mint/mintingBlob": "duplicate_mint" },
    });
    expect(await refusal(create(good, { ...good, assetId: tenant.applicationId }))).toEqual({
      code: "asset_not_found",
      issues: { "/claims/1/mint/assetId": "asset_not_found" },
    });
    for (const bad of [
      7,
      undefined,
      { ...good, amount: 1n },
      { ...good, reference: "x".repeat(20_000) },
    ])
      expect(await refusal(create(good, bad))).toMatchObject({ code: "validation_failed" });
    expect(await refusal(engine.claims.find(first))).toMatchObject({ code: "claim_not_found" });
    const twice = [first, first].map((linkAddress) => ({ linkAddress, mint: good }));
    for (const claims of [
      [],
      twice,
      Array.from({ length: 1_001 }, () => ({ linkAddress: newLink().address, mint: good })),
    ])
      expect(await refusal(engine.claims.createAll(tenant.principal, claims))).toMatchObject({
        code: "validation_failed",
      });
    for (const scope of ["mint", "users"] as const) {
      const principal = { ...tenant.principal, scopes: [scope] };
      const asked = engine.claims.createAll(principal, [{ linkAddress: first, mint: good }]);
      expect(await refusal(asked)).toMatchObject({ code: "scope_missing" });
    }
  });

  it("again with the same terms without a change, also after a claim, and never with others", async () => {
    const made = await linked(3, ({ assets }) => [1, 2, 3].map((id) => mintOf(assets.erc721, id)));
    const { engine, tenant, links, claims, assets } = made;
    await using _ = engine;
    await take(engine, links[1] as Link, ALICE);
    const before = await all(engine.claims.list(tenant.applicationId));
    expect(await engine.claims.createAll(tenant.principal, claims)).toEqual(before);
    const fourth = { linkAddress: newLink().address, mint: mintOf(assets.erc721, 4) };
    const more = await engine.claims.createAll(tenant.principal, [claims[2] ?? fourth, fourth]);
    expect(more.map(({ status }) => status)).toEqual(["open", "open"]);
    const changed = [
      fourth,
      { ...claims[0], linkAddress: claims[0]?.linkAddress ?? "0x", mint: mintOf(assets.erc721, 9) },
    ];
    expect(await refusal(engine.claims.createAll(tenant.principal, changed))).toEqual({
      code: "claim_exists",
      issues: { "/claims/1/linkAddress": "claim_exists" },
    });
    const other = await engine.applications.create({ name: "other" });
    expect(await refusal(engine.claims.get(other.applicationId, fourth.linkAddress))).toMatchObject(
      {
        code: "claim_not_found",
      },
    );
    expect(
      await refusal(engine.claims.cancel(other.applicationId, fourth.linkAddress)),
    ).toMatchObject({
      code: "claim_not_found",
    });
    expect(await all(engine.claims.list(other.applicationId))).toEqual([]);
    expect((await engine.operator.verify()).problems).toEqual([]);
  });

  it("and listed page by page, in their order", async () => {
    const made = await linked(7);
    const { engine, tenant, links } = made;
    await using _ = engine;
    const found = await all(engine.claims.list(tenant.applicationId, { limit: 3 }));
    expect(found.map(({ linkAddress }) => linkAddress)).toEqual(links.map(low));
  });
});

it("in any order of claims, cancels and repeats mints each link at most once, and nobody else's", async () => {
  const owners = [ALICE, BOB];
  const step = fc.record({
    link: fc.nat(3),
    owner: fc.nat(1),
    kind: fc.constantFrom("take", "take", "take", "cancel", "create", "stranger"),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 24 }), async (steps) => {
      const made = await linked(4);
      const { engine, tenant, links, claims, assets } = made;
      await using _ = engine;
      /** The fate of each link, by the first step that could decide it. */
      const expected = new Map<number, string>();
      const done = steps.map(async ({ link, owner, kind }) => {
        const [key, to] = [links[link] as Link, owners[owner] as Address];
        if (kind === "create") return engine.claims.createAll(tenant.principal, claims);
        if (kind === "cancel") return engine.claims.cancel(tenant.applicationId, key.address);
        if (kind === "stranger")
          return engine.claims.take(key.address, await signed(newLink(), to));
        return take(engine, key, to);
      });
      const results = await Promise.allSettled(done);
      for (const [i, { link }] of links.map((_, link) => ({ link })).entries()) {
        const { status, ownerAddress } = await engine.claims.find((links[i] as Link).address);
        expected.set(link, status === "claimed" ? String(ownerAddress) : status);
        for (const [at, each] of steps.entries()) {
          if (each.link !== link || each.kind === "create") continue;
          const isWinner = each.kind === "take" && ownerAddress === owners[each.owner];
          const isCancel = each.kind === "cancel" && status === "cancelled";
          expect(results[at]?.status).toBe(isWinner || isCancel ? "fulfilled" : "rejected");
        }
      }
      const taken = [...expected.values()].filter((value) => value.startsWith("0x"));
      expect(await mintedOf(made, assets.erc20)).toBe(BigInt(taken.length));
      const held = await all(engine.vaults.list(tenant.applicationId));
      const sumOf = (owner: Address) =>
        held
          .filter(({ ownerAddress }) => ownerAddress === owner)
          .reduce((sum, { amount }) => sum + amount, 0n);
      for (const owner of owners)
        expect(sumOf(owner)).toBe(BigInt(taken.filter((value) => value === owner).length));
      expect((await engine.operator.verify()).problems).toEqual([]);
    }),
    { numRuns: 15 },
  );
});

it("mints each link once, though its process is killed while holders claim", async () => {
  const { links, minted, acknowledged } = await claimKillRounds(1, 18, 300);
  expect(minted).toBe(BigInt(links));
  expect(acknowledged).toBeGreaterThan(0);
});
