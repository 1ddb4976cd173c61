/**
 * The engine inside of your own process: an application, a user, a token, one mint and its proof.
 * No chain runs here. The engine only binds its store to the contract that it will commit to.
 *
 *   npm run example -- embed
 */
import { openEngine } from "mintmark";

await using engine = await openEngine({
  store: "./data", // a LevelDB folder, or any abstract-level database
  createIfMissing: true, // leave this out once L1 has batches of the store
  environment: "sandbox",
  settlement: {
    chainId: 31337n,
    contract: "0x8464135c8f25da09e49bc8782676a84730c318bc",
    engineVersion: 5,
  },
});
const { applicationId } = await engine.applications.create({ name: "My game" });
const { secret } = await engine.keys.issue(applicationId);
const owner = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
const { userId } = await engine.users.create(applicationId, { ownerAddress: owner });
const { assetId } = await engine.assets.add({
  standard: "erc721",
  contractAddress: "0xbcf26943c0197d2ee0e5d05c716be60cc2761508",
  name: "Swords",
  symbol: "SWRD",
  applicationId, // its own token: mintable as soon as L1 has it registered
});
await engine.operator.recordRegistered(assetId);

const mint = { assetId, tokenId: "1", amount: 1, dataAvailabilityMode: "zk-rollup" };
const { vaults } = await engine.mint(await engine.keys.authenticate(secret), {
  users: [{ userId, mints: [mint] }],
});
await engine.operator.seal("zk-rollup");
for (const { vaultId, batchId } of vaults) {
  const { batchRoot } = await engine.proofs.vault(vaultId);
  console.log(`vault ${vaultId} of ${batchId} has root ${batchRoot}`);
}
