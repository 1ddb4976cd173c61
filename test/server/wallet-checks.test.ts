import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeEach, expect, test } from "vitest";
import type { Address, Hex } from "../../core/index.ts";
import { type Answer, refusal, signedIn } from "./fixture.ts";
import { transferWorld } from "./transfers-fixture.ts";

/** A node that knows no wallet contract, and notes whom it was asked about. */
const asked: Address[] = [];
const SLOW = { windowSeconds: 1_000_000_000 };
const UNITS = 10_000;

const owner = privateKeyToAccount(generatePrivateKey());
const { world, final } = await transferWorld(owner, {
  rateLimits: { key: { ...SLOW, units: UNITS }, publicReads: { ...SLOW, units: 200 } },
  verifySignature: async (_, signer) => {
    asked.push(signer);
    return false;
  },
});
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(() => void asked.splice(0));

const left = ({ headers }: Answer) => Number(/r=(\d+)/.exec(String(headers.ratelimit))?.[1]);

/** A signature as a wallet contract of two owners gives it: no plain key's. */
const OF_WALLET: Hex = `0x${"12".repeat(130)}`;
const deadline = String(Math.floor(Date.now() / 1_000) + 7_200);

/** The requests that take a wallet contract's signature. */
async function requests(path: "/api/v1" | "/owner/v1") {
  const { ticket, units } = await final();
  await world.send("PUT", "/api/v1/order-terms", {
    body: { listing: "owners", fee: null, assets: [] },
  });
  const order = (vaultId: string, give: object, want: object) => ({
    give,
    want,
    shares: [],
    taker: `0x${"00".repeat(20)}`,
    vaultId,
    withdrawnBefore: "0",
    deadline,
    signature: OF_WALLET,
  });
  const { body: vault } = await world.send("GET", `/api/v1/vaults/${ticket}`);
  const token = { token: world.erc721.contractAddress, id: vault.tokenId, amount: "1" };
  const points = { token: world.erc20.contractAddress, id: "0", amount: "10" };
  const ofOwner = {
    [`${path}/withdrawals`]: {
      vaults: [{ vaultId: units, quantity: "10" }],
      deadline,
      signature: OF_WALLET,
    },
    [`${path}/orders`]: order(ticket, token, points),
  };
  if (path === "/owner/v1") return ofOwner;
  const session = { ownerAddress: owner.address, keyAddress: `0x${"ab".repeat(20)}`, limit: "1" };
  return {
    ...ofOwner,
    [`${path}/session-keys/prepare`]: { ...session, until: deadline, signature: OF_WALLET },
  };
}

test("a question to a wallet contract costs an application's key 500 units", async () => {
  const all = Object.entries(await requests("/api/v1"));
  for (const [path, body] of all) {
    const before = await world.send("GET", "/api/v1/order-terms");
    const refused = await world.send("POST", path, { body });
    expect([path, refusal(refused).code]).toEqual([path, "signature_invalid"]);
    expect(left(before) - left(refused)).toBe(500);
  }
  expect(asked).toEqual(all.map(() => owner.address.toLowerCase()));
});

test("it costs an owner who is signed in 5 of the address's units", async () => {
  const session = await signedIn(world, owner);
  const all = Object.entries(await requests("/owner/v1"));
  for (const [path, body] of all) {
    const before = await world.send("GET", "/owner/v1/sign-in", session);
    const refused = await world.send("POST", path, { ...session, body });
    expect([path, refusal(refused).code]).toEqual([path, "signature_invalid"]);
    expect(left(before) - left(refused)).toBe(5);
  }
  expect(asked).toHaveLength(all.length);
  const { units } = await final();
  const before = await world.send("GET", "/owner/v1/sign-in", session);
  // This server has no chain, which it finds out when it asks.
  const kit = await world.send("GET", `/owner/v1/vaults/${units}/exit-kit`, session);
  expect(refusal(kit).code).toBe("l1_failed");
  expect(left(before) - left(kit)).toBe(5);
});

test("a node is not asked for a caller who has no units left", async () => {
  const { "/api/v1/withdrawals": body } = await requests("/api/v1");
  const codes: string[] = [];
  for (let i = 0; i <= UNITS / 500; i++) {
    const answer = await world.send("POST", "/api/v1/withdrawals", { body: body as object });
    codes.push(refusal(answer).code);
  }
  expect(codes.at(-1)).toBe("rate_limited");
  expect(asked).toHaveLength(codes.filter((code) => code === "signature_invalid").length);
});
