/**
 * The background work of an engine inside of your own process: a drop mints the rows of a file, and a webhook gets the
 * event. No server of Mintmark runs.
 *
 *   npm run example -- background
 */
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { Drops, openEngine, WebhookDispatcher } from "mintmark";

await using engine = await openEngine({
  store: "./data",
  createIfMissing: true,
  environment: "sandbox",
  settlement: { chainId: 31337n, contract: "0x8464135c8f25da09e49bc8782676a84730c318bc", engineVersion: 5 },
});
const { applicationId } = await engine.applications.create({ name: "My game" });
const { secret } = await engine.keys.issue(applicationId);
const gold = { contractAddress: "0xbcf26943c0197d2ee0e5d05c716be60cc2761508", name: "Gold", symbol: "GLD" } as const;
const { assetId } = await engine.assets.add({ standard: "erc20", ...gold, applicationId });
await engine.operator.recordRegistered(assetId);

// Your endpoint is elsewhere, and has an address with https.
const endpoint = createServer((_, response) => response.end()).listen(0, "127.0.0.1");
await once(endpoint, "listening");
const url = `http://127.0.0.1:${(endpoint.address() as AddressInfo).port}`;
await engine.webhooks.create(applicationId, { url, types: ["mint.accepted"] });
const webhooks = new WebhookDispatcher(engine, { reach: "public-and-loopback", onError: console.error });
webhooks.start();
const request = once(endpoint, "request") as Promise<[IncomingMessage]>;

await using drops = new Drops({ folder: "./drops", engine, onError: console.error });
await drops.start(); // goes on with what an earlier process left
const rows = new Blob(["ownerAddress,amount\n0x70997970c51812dc3a010c7d01b50e0d17dc79c8,25\n"]).stream();
const asked = { format: "csv", defaults: { assetId, dataAvailabilityMode: "zk-rollup" } } as const;
const { job } = await drops.upload(await engine.keys.authenticate(secret), asked, rows);
const [{ headers }] = await request;
console.log(`a drop of ${job.rows} row is minted; the webhook got event ${headers["webhook-id"]}`);
await webhooks.stop();
endpoint.close();
