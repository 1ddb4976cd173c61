/**
 * The receipt of a mint: the operator's signature over what it has acknowledged.
 * Shows how an owner keeps the receipt of one vault, and how anybody checks it without the engine.
 *
 *   npm run example -- receipt
 */
import { receiptOf, verifyReceipt } from "mintmark/protocol";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { openShop, SETTLEMENT } from "./shop.ts";

// The operator publishes this address and keeps the key.
const receiptSigner = privateKeyToAccount(generatePrivateKey());
const { engine, applicationId, principal, addToken } = await openShop("./receipt-data", {
  receiptSigner,
});
await using _ = engine;
const assetId = await addToken({
  standard: "erc1155",
  contractAddress: "0xbcf26943c0197d2ee0e5d05c716be60cc2761508",
  name: "Potions",
  symbol: "PTN",
});
const owner = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
const { userId } = await engine.users.create(applicationId, { ownerAddress: owner });

const mints = ["1", "2"].map((tokenId) => ({
  assetId,
  tokenId,
  amount: 5,
  dataAvailabilityMode: "zk-rollup" as const,
}));
const reply = await engine.mint(principal, { users: [{ userId, mints }] });
const signed = await reply.receipt();
const [vault] = reply.vaults;
if (signed === null || vault === undefined)
  throw new Error("a mint has a vault, and this engine signs receipts");

// The owner keeps about 1 KB, good without the rest of the reply.
const receipt = receiptOf({ vaults: reply.vaults, receipt: signed }, vault.vaultId);
const forged = { ...receipt, vault: { ...receipt.vault, amount: 500n } };
console.log(`the operator signed for ${receipt.vault.amount} of vault ${receipt.vault.vaultId}:`);
console.log(
  `  receipt as it was given: ${await verifyReceipt(SETTLEMENT, receiptSigner.address, receipt)}`,
);
console.log(
  `  with another amount:     ${await verifyReceipt(SETTLEMENT, receiptSigner.address, forged)}`,
);
