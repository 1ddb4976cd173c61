/**
 * Tickets of one concert: numbered seats are ERC-721 tokens, standing places are one ERC-1155 id
 * with a supply cap. Shows what the engine refuses, and by which error code: a seat that is sold
 * twice, and more places than there are.
 *
 *   npm run example -- tickets
 */
import { MintmarkError, type Uuid } from "mintmark";
import { openShop } from "./shop.ts";

const { engine, applicationId, principal, addToken } = await openShop("./ticket-data");
await using _ = engine;
const seats = await addToken({
  standard: "erc721",
  contractAddress: "0xbcf26943c0197d2ee0e5d05c716be60cc2761508",
  name: "Seats",
  symbol: "SEAT",
});
const places = await addToken({
  standard: "erc1155",
  contractAddress: "0x59f2f1fcfe2474fd5f0b9ba1e73ca90b143eb8d0",
  name: "Standing places",
  symbol: "STAND",
  supplyCap: 3n,
});

/** Sells tickets of one id. */
async function sell(userId: Uuid, assetId: Uuid, tokenId: string, amount: number): Promise<string> {
  const mint = { assetId, tokenId, amount, dataAvailabilityMode: "zk-rollup" } as const;
  try {
    await engine.mint(principal, { users: [{ userId, mints: [mint] }] });
    return "sold";
  } catch (error) {
    if (error instanceof MintmarkError) return `refused: ${error.code}`;
    throw error;
  }
}

const alice = await engine.users.create(applicationId, {
  ownerAddress: "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
});
const bob = await engine.users.create(applicationId, {
  ownerAddress: "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc",
});
console.log(`seat 1412 to alice: ${await sell(alice.userId, seats, "1412", 1)}`);
console.log(`seat 1412 to bob: ${await sell(bob.userId, seats, "1412", 1)}`);
console.log(`2 standing places to bob: ${await sell(bob.userId, places, "1", 2)}`);
console.log(`2 more to alice: ${await sell(alice.userId, places, "1", 2)}`);
console.log(`1 more to alice: ${await sell(alice.userId, places, "1", 1)}`);
