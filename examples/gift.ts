/**
 * A player gives a sword to a friend, and the friend takes it to L1 without the server and without
 * the player.
 *
 * MINTMARK_URL=… MINTMARK_API_KEY=… MINTMARK_RPC_URL=… PLAYER_KEY=0x… FRIEND_KEY=0x… npm run
 * example -- gift <vaultId>
 *
 * The vault must be final on L1. MINTMARK_BLOBS names a folder of blobs, for a sword that was
 * minted into blobs.
 */
import { BlobFolder } from "mintmark/archive";
import { answer, createClient, transfer } from "mintmark/client";
import { exitWithKit, exportExitKit, proveFromL1 } from "mintmark/exit";
import { connectL1 } from "mintmark/l1";
import { privateKeyToAccount } from "viem/accounts";

const {
  MINTMARK_URL: baseUrl = "",
  MINTMARK_API_KEY: apiKey = "",
  MINTMARK_RPC_URL: rpc = "",
} = process.env;
const player = privateKeyToAccount(process.env.PLAYER_KEY as `0x${string}`);
const friend = privateKeyToAccount(process.env.FRIEND_KEY as `0x${string}`);

// The player signs once, and pays no gas. The friend need not be online.
const client = createClient({ baseUrl, apiKey });
const gift = { vaultId: process.argv[2] ?? "", to: friend.address };
const { status, transfers } = await transfer(client, {
  transfers: [gift],
  signer: player,
  wait: true,
});
const vaultId = BigInt(transfers[0]?.newVaultId ?? 0);
console.log(`the gift is ${status}: vault ${vaultId} is the friend's`);

// From here on only L1 is asked, and only the friend signs.
const { contract } = await answer(client.GET("/public/v1/state"));
const l1 = await connectL1({ rpc, contract: contract as `0x${string}`, account: friend });
const folder = process.env.MINTMARK_BLOBS;
const search = { fromBlock: 0n };
const proof = await proveFromL1(vaultId, {
  l1,
  ...search,
  blobs: folder ? [new BlobFolder(folder)] : [],
});
const kit = await exportExitKit(proof, l1, search);
const { held } = await exitWithKit({ kit, l1, account: friend.address, immature: "wait" });
console.log(`sword ${kit.token.tokenId} is on L1, and the friend holds ${held}`);
