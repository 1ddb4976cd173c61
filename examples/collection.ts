/**
 * A collection of 10,000 pieces, minted over HTTP from a CSV file with a line `tokenId,ownerAddress` for each piece.
 * Shows users, requests for many users at once, and idempotency keys: after a crash, run it again with the same file.
 *
 *   MINTMARK_URL=http://127.0.0.1:3000 MINTMARK_KEY=mm_test_… MINTMARK_ASSET=… node examples/collection.ts drop.csv
 */
import { readFile } from "node:fs/promises";
import { answer, createClient, everyEntry, mint } from "mintmark/client";

const { MINTMARK_URL = "http://127.0.0.1:3000", MINTMARK_KEY = "", MINTMARK_ASSET = "" } = process.env;
const client = createClient({ baseUrl: MINTMARK_URL, apiKey: MINTMARK_KEY });

// The pieces of each owner, in the order of the file.
const pieces = new Map<`0x${string}`, string[]>();
for (const line of (await readFile(process.argv[2] ?? "drop.csv", "utf8")).trim().split("\n")) {
  const [tokenId = "", address = ""] = line.trim().toLowerCase().split(",");
  const owner = address as `0x${string}`; // the API refuses what is not an address
  pieces.set(owner, [...(pieces.get(owner) ?? []), tokenId]);
}

// Each owner is a user of the application. The API knows the users of an earlier run.
const userIds = new Map<string, string>();
const page = (cursor?: string) =>
  client.GET("/api/v1/users", { params: { query: { limit: 100, ...(cursor && { cursor }) } } });
for await (const { ownerAddress, userId } of everyEntry(page)) userIds.set(ownerAddress, userId);
for (const ownerAddress of pieces.keys()) {
  if (userIds.has(ownerAddress)) continue;
  const { userId } = await answer(client.POST("/api/v1/users", { body: { ownerAddress } }));
  userIds.set(ownerAddress, userId);
}

// One request mints for 100 owners: all of its pieces or none.
const USERS_PER_REQUEST = 100;
const owners = [...pieces.keys()];
let minted = 0;
for (let from = 0; from < owners.length; from += USERS_PER_REQUEST) {
  const users = owners.slice(from, from + USERS_PER_REQUEST).map((owner) => ({
    userId: userIds.get(owner) ?? "",
    mints: (pieces.get(owner) ?? []).map((tokenId) => ({
      assetId: MINTMARK_ASSET,
      tokenId,
      amount: 1,
      dataAvailabilityMode: "zk-rollup" as const,
    })),
  }));
  const { vaults } = await mint(client, { users }, { idempotencyKey: `drop-${from}` });
  minted += vaults.length;
}
console.log(`${minted} pieces of ${owners.length} owners are minted`);
