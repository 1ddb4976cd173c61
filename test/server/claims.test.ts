import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, describe, expect, test } from "vitest";
import { claimTypedData } from "../../core/protocol/typed-data.ts";
import { createWorld, SETTLEMENT } from "./fixture.ts";

const OWNER = `0x${"7a".repeat(20)}` as const;
const MODE = { dataAvailabilityMode: "validium" } as const;

const world = await createWorld();
afterAll(() => world[Symbol.asyncDispose]());

const newLink = () => privateKeyToAccount(generatePrivateKey());
type Link = ReturnType<typeof newLink>;
const create = (claims: readonly object[], key?: string) =>
  world.send("POST", "/api/v1/claims", { body: { claims }, ...(key !== undefined && { key }) });
const seen = (link: Link) => world.send("GET", `/public/v1/claims/${link.address}`, { key: null });
const signature = (link: Link, owner: `0x${string}`) =>
  link.signTypedData(claimTypedData(SETTLEMENT, { link: link.address, owner }));
const take = async (link: Link, owner: `0x${string}` = OWNER, signer: Link = link) => {
  const body = { ownerAddress: owner, signature: await signature(signer, owner) };
  return world.send("POST", `/public/v1/claims/${link.address}`, { key: null, body });
};

describe("claim links over HTTP", () => {
  test("are created with a key, and claimed without one", async () => {
    const link = newLink();
    const mint = { assetId: world.erc721.assetId, tokenId: "500", ...MODE };
    const expiresAt = "2999-01-01T00:00:00.000Z";
    const made = await create([{ linkAddress: link.address, mint, expiresAt }]);
    const linkAddress = link.address.toLowerCase();
    expect(made.body.data).toMatchObject([
      { linkAddress, status: "open", mint, expiresAt, mintId: null },
    ]);
    expect((await seen(link)).body).toEqual({
      ...{
        linkAddress,
        status: "open",
        expiresAt,
        ownerAddress: null,
        tokenId: "500",
        amount: null,
        quantity: null,
      },
      asset: {
        assetId: world.erc721.assetId,
        standard: "erc721",
        name: "Token erc721",
        symbol: "ERC721",
      },
      settlement: { chainId: "31337", contract: SETTLEMENT.contract },
    });
    const taken = await take(link);
    expect(taken.body).toMatchObject({
      linkAddress,
      ownerAddress: OWNER,
      vaults: [{ tokenId: "500" }],
    });
    expect((await take(link)).body).toEqual(taken.body);
    expect((await take(link, `0x${"7b".repeat(20)}`)).body).toMatchObject({
      code: "claim_taken",
      status: 409,
    });
    const { body } = await world.send("GET", `/api/v1/claims/${link.address}`);
    expect(body).toMatchObject({
      ...{ status: "claimed", ownerAddress: OWNER, mintId: taken.body.mintId },
      signature: await signature(link, OWNER),
    });
    expect((await world.send("GET", "/api/v1/claims")).body.data).toEqual([body]);
    const { body: vaults } = await world.send("GET", `/api/v1/vaults?ownerAddress=${OWNER}`);
    expect(vaults.data).toMatchObject([{ tokenId: "500", ownerAddress: OWNER }]);
  });

  test("say what is wrong: another key, no link, cancelled, of another application", async () => {
    const [link, other, cancelled] = [newLink(), newLink(), newLink()];
    const mint = { assetId: world.erc20.assetId, amountDecimal: "2", ...MODE };
    const claims = [link, other, cancelled].map(({ address }) => ({ linkAddress: address, mint }));
    expect((await create(claims)).status).toBe(200);
    expect((await seen(link)).body).toMatchObject({ amount: "2", tokenId: null });
    expect((await take(link, OWNER, other)).body).toMatchObject({
      code: "signature_invalid",
      status: 422,
    });
    expect((await take(newLink())).body).toMatchObject({ code: "claim_not_found", status: 404 });
    const path = `/api/v1/claims/${cancelled.address}`;
    expect((await world.send("DELETE", path, { key: world.otherKey })).body).toMatchObject({
      code: "claim_not_found",
    });
    expect((await world.send("DELETE", path)).body).toMatchObject({ status: "cancelled" });
    expect((await take(cancelled)).body).toMatchObject({ code: "claim_cancelled" });
    expect(
      (await create([{ ...claims[0], mint: { ...mint, amountDecimal: "3" } }])).body,
    ).toMatchObject({
      code: "claim_exists",
      errors: [{ pointer: "/claims/0/linkAddress" }],
    });
    expect(
      (await create([{ linkAddress: newLink().address, mint: { ...mint, assetId: OWNER } }])).body,
    ).toMatchObject({
      errors: [{ pointer: "/claims/0/mint/assetId" }],
    });
    const bad = { ...mint, amountDecimal: "0.0000000000000000001" };
    expect(
      (await create([...claims.slice(1), { linkAddress: newLink().address, mint: bad }])).body,
    ).toMatchObject({
      errors: [{ pointer: "/claims/2/mint/amountDecimal" }],
    });
    const reader = await world.newKey(["read", "mint"]);
    expect((await create(claims, reader)).body).toMatchObject({ code: "scope_missing" });
  });
});
