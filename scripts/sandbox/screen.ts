import { relative } from "node:path";
import type { SandboxDescription } from "./sandbox.ts";

/** The output of `npm start`: everything a newcomer needs, ready to paste. */
export function screen({
  users,
  assets,
  applicationId,
  consoleLinks,
  ...sandbox
}: SandboxDescription): string {
  const { api, rpcUrl, contract, fromBlock, store, rollupData, apiKey } = sandbox;
  const folder = relative("", store);
  const [alice, bob] = users;
  const assetId = (standard: string) =>
    assets.find((asset) => asset.standard === standard)?.assetId;
  const sword = {
    assetId: assetId("erc721"),
    tokenId: "1000001",
    amount: 1,
    dataAvailabilityMode: "zk-rollup",
  };
  const points = {
    assetId: assetId("erc20"),
    amountDecimal: "12.5",
    dataAvailabilityMode: "validium",
  };
  const potions = {
    assetId: assetId("erc1155"),
    tokenId: "7",
    amount: 5,
    dataAvailabilityMode: "validium",
  };
  const mints = [
    { userId: alice?.userId, mints: [sword, points] },
    { userId: bob?.userId, mints: [potions] },
  ];
  const lines = [
    "",
    "Mintmark sandbox",
    "",
    `  API        ${api}`,
    `  reference  ${api}/docs`,
    `  explorer   ${api}/explorer`,
    `  guide      ${api}/guide`,
    `  key        ${apiKey}`,
    `  chain      ${rpcUrl}      StateCommitment ${contract}`,
    `  rollup     batches in ${rollupData}${rollupData === "blobs" ? ", and in calldata what does not fit" : ""}`,
    "",
    ...users.map(
      ({ name, userId, ownerAddress }) => `  ${name.padEnd(9)}  ${userId}  owner ${ownerAddress}`,
    ),
    ...assets.map(
      (asset) =>
        `  ${asset.standard.padEnd(9)}  ${asset.assetId}  ${asset.symbol} ${asset.contractAddress}`,
    ),
    "",
    "The console, for your team and for the operator (each link signs in once):",
    "",
    `  team       ${consoleLinks.team}`,
    `  operator   ${consoleLinks.operator}`,
    "",
    "Mint three tokens for two users:",
    "",
    `  curl -s ${api}/api/v1/mint -H 'X-Api-Key: ${apiKey}' -H 'Content-Type: application/json' \\`,
    `    -d '${JSON.stringify({ users: mints })}'`,
    "",
    "Watch them go to L1 (accepted, batched, submitted, settled, finalized):",
    "",
    `  curl -s '${api}/api/v1/transactions?limit=5' -H 'X-Api-Key: ${apiKey}'`,
    "",
    "The first rollup vault's public proof, as soon as its batch is sealed, and the assets:",
    "",
    `  until curl -sf ${api}/public/v1/vaults/9223372036854775808/proof; do sleep 1; done`,
    `  curl -s '${api}/api/v1/assets?assetType=mintable-erc721' -H 'X-Api-Key: ${apiKey}'`,
    "",
    "Commands of an operator, in another terminal:",
    "",
    `  npx mintmark batches status --store ${folder}`,
    `  npx mintmark keys issue --application ${applicationId} --store ${folder}`,
    "",
    "The same state, made from the chain and a source of validium data. The line deletes the folder `rebuilt` first:",
    "",
    `  rm -rf rebuilt && npx mintmark rebuild rebuilt --rpc ${rpcUrl} --contract ${contract} --from-block ${fromBlock} --peers ${api}`,
    "",
    "`npx mintmark demo`, in another terminal, does all of it. Ctrl-C stops everything; the next start begins anew,",
    "with the same key and ids.",
    "",
  ];
  return `${lines.join("\n")}\n`;
}
