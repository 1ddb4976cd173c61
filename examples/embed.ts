/**
 * The engine inside of your own process: an application, a token, one mint and its proof.
 * No chain runs here. The engine only binds its store to the contract that it will commit to.
 *
 *   npm run example -- embed
 */
import { openEngine } from "mintmark";

const engine = await openEngine({
  store: "./data", // a LevelDB folder, or any abstract-level database
  createIfMissing: true, // for the first run; take it out before you settle on L1
  environment: "sandbox",
  settlement: {
    chainId: 31337n,
    contract: "0x8464135c8f25da09e49bc8782676a84730c318bc",
    engineVersion: 5,
  },
});
// Without ids of your own, each run would create another application.
const { applicationId } = await engine.applications.create({
  applicationId: "0198c3e0-5d2f-7c31-9a64-1f0b8e7d2a10",
  name: "My game",
});
const { assetId } = await engine.assets.add({
  assetId: "0198c3e0-5d2f-7c31-9a64-1f0b8e7d2a11",
  applicationId, // only this application may mint it
  standard: "erc721",
  contractAddress: "0xbcf26943c0197d2ee0e5d05c716be60cc2761508",
  name: "Swords",
  symbol: "SWRD",
  firstTokenId: 1n, // the engine numbers the swords
});
// The settlement loop does this when L1 has registered the token.
await engine.operator.recordRegistered(assetId);

const owner = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
const { vaults } = await engine.mint(await engine.as(applicationId), {
  users: [
    { ownerAddress: owner, mints: [{ assetId, quantity: 1, dataAvailabilityMode: "zk-rollup" }] },
  ],
});
await engine.operator.seal("zk-rollup");
for (const { vaultId, batchId } of vaults) {
  const { batchRoot } = await engine.proofs.vault(vaultId);
  console.log(`vault ${vaultId} of ${batchId} has root ${batchRoot}`);
}
await engine.close();
