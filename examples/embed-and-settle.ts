/**
 * An engine in your own process that settles: it seals its batches by itself, commits them to a
 * chain of Hardhat, and pays a withdrawal that the owner has signed. It uses the package's public
 * imports alone; docs/guides/embed.md goes through it.
 *
 *   CONTRACT=0x… TOKEN=0x… npm run example -- embed-and-settle
 */

// The program imports public paths alone.
import { type EventData, type EventType, openEngine } from "mintmark";
import { connectL1 } from "mintmark/l1";
import { withdrawalListTypedData } from "mintmark/protocol";
import { Settler } from "mintmark/settlement";
import { mnemonicToAccount } from "viem/accounts";

const { RPC_URL = "http://127.0.0.1:8545", CONTRACT, TOKEN } = process.env;
// Hardhat's well-known accounts. Yours come from a key store, and the owner's is with the owner.
const words = "test test test test test test test test test test test junk";
const operator = mnemonicToAccount(words, { addressIndex: 1 });
const owner = mnemonicToAccount(words, { addressIndex: 3 });

// The engine over its own folder, bound to the contract on L1.
const l1 = await connectL1({
  rpc: RPC_URL,
  contract: CONTRACT as `0x${string}`,
  account: operator,
  pollingMs: 100,
});
const engine = await openEngine({
  store: "./settled-data",
  createIfMissing: true,
  environment: "sandbox",
  settlement: l1.settlement,
});

// The settler: from here on batches are sealed, committed and followed, and withdrawals are paid.
const stopping = new AbortController();
const settler = new Settler({
  engine,
  l1,
  fromBlock: 0n, // the block of the contract's deployment
  rollupData: "calldata", // "auto" takes blobs where the chain does
  sealing: { maxAgeMs: 1_000 }, // a batch is sealed a second after its first mint
  intervalMs: 500,
  // On a public chain, leave both out: by default the settler looks twice, 15 seconds apart.
  rereadMs: 0,
  secondLookMs: 0,
  // Only validium batches need a committee: see collectAttestations of mintmark/committee.
  committee: { attest: () => Promise.reject(new Error("no member signs validium batches")) },
  onError: console.error,
});
const settling = settler.run(stopping.signal);

// A tenant, and its token.
const { applicationId } = await engine.applications.create({
  applicationId: "0198c3e0-5d2f-7c31-9a64-1f0b8e7d2a20",
  name: "My game",
});
const { assetId } = await engine.assets.add({
  assetId: "0198c3e0-5d2f-7c31-9a64-1f0b8e7d2a21",
  applicationId,
  standard: "erc20",
  contractAddress: TOKEN as `0x${string}`,
  name: "Gold",
  symbol: "GLD",
});
await engine.operator.recordRegistered(assetId);

// A mint. It is durable when the call resolves, and final when L1 says so.
const principal = await engine.as(applicationId);
const { vaults } = await engine.mint(principal, {
  users: [
    {
      ownerAddress: owner.address,
      mints: [{ assetId, amount: 25, dataAvailabilityMode: "zk-rollup" }],
    },
  ],
});
const [vault] = vaults;
if (vault === undefined) throw new Error("a mint makes at least one vault");
await told("batch.finalized", ({ batchId }) => batchId === vault.batchId);
console.log(`batch ${vault.batchId} is final on L1`);

// The owner signs a withdrawal, and the settler pays it.
const prepared = await engine.withdrawals.prepare(principal, { vaults: [vault] });
const signature = await owner.signTypedData(withdrawalListTypedData(prepared.portal, prepared));
const [listed] = await engine.withdrawals.request(principal, { ...prepared, signature });
const withdrawalId = listed?.withdrawal?.withdrawalId;
await told("withdrawal.finalized", (paid) => paid.withdrawalId === withdrawalId);
console.log(`the owner has withdrawn ${vault.amount} GLD`);

stopping.abort();
await settling;
await engine.close();

/** Resolves when an event of the type fits, or at once if one has fitted already. */
async function told<T extends EventType>(type: T, fits: (data: EventData[T]) => boolean) {
  for await (const event of engine.events.stream(applicationId, { follow: true }))
    if (event.type === type && fits(event.data as EventData[T])) return;
}
