/**
 * The background work of an engine inside of your own process: a drop mints the rows of a file, and
 * a webhook gets the event. No server of Mintmark runs.
 *
 *   npm run example -- background
 */
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { Drops, WebhookDispatcher } from "mintmark";
import { openShop } from "./shop.ts";

const { engine, applicationId, principal, addToken } = await openShop("./data");
await using _ = engine;
const assetId = await addToken({
  standard: "erc20",
  contractAddress: "0xbcf26943c0197d2ee0e5d05c716be60cc2761508",
  name: "Gold",
  symbol: "GLD",
});

// Your endpoint is elsewhere, and has an address with https.
const endpoint = createServer((_, response) => response.end()).listen(0, "127.0.0.1");
await once(endpoint, "listening");
const url = `http://127.0.0.1:${(endpoint.address() as AddressInfo).port}`;
await engine.webhooks.create(applicationId, { url, types: ["mint.accepted"] });
const webhooks = new WebhookDispatcher(engine, {
  reach: "public-and-loopback",
  onError: console.error,
});
webhooks.start();
const request = once(endpoint, "request") as Promise<[IncomingMessage]>;

await using drops = new Drops({ folder: "./drops", engine, onError: console.error });
await drops.start(); // goes on with what an earlier process left
const rows = new Blob([
  "ownerAddress,amount\n0x70997970c51812dc3a010c7d01b50e0d17dc79c8,25\n",
]).stream();
const asked = { format: "csv", defaults: { assetId, dataAvailabilityMode: "zk-rollup" } } as const;
const { job } = await drops.upload(principal, asked, rows);
const [{ headers }] = await request;
console.log(`a drop of ${job.rows} row is minted; the webhook got event ${headers["webhook-id"]}`);
await webhooks.stop();
endpoint.close();
