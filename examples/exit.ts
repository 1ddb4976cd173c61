/**
 * An owner leaves with an exit kit: no engine, no server and no operator, only L1 and the owner's
 * key. Shows how a vault's kit is made from L1 and the batch's data, kept as a file, and used.
 *
 *   MINTMARK_RPC_URL=… MINTMARK_CONTRACT=0x… OWNER_KEY=0x… npm run example -- exit <vaultId>
 *
 * L1 alone has the data of a zk-rollup batch in calldata. That of a batch in blobs comes from a
 * folder of blobs (MINTMARK_BLOBS), a beacon node (MINTMARK_BEACON) or a peer (MINTMARK_PEER), and
 * that of validium from a peer: a committee member, or any server that kept it. No source can lie,
 * since all data must make L1's hashes.
 */
import { writeFile } from "node:fs/promises";
import { BeaconNode, BlobFolder, HttpBatchSource } from "mintmark/archive";
import { exitKitToJson, exitWithKit, exportExitKit, proveFromL1 } from "mintmark/exit";
import { connectL1 } from "mintmark/l1";
import { privateKeyToAccount } from "viem/accounts";

const {
  MINTMARK_RPC_URL: rpc = "",
  MINTMARK_CONTRACT: contract,
  OWNER_KEY: key,
  MINTMARK_FROM_BLOCK = "0",
  MINTMARK_BLOBS: folder,
  MINTMARK_BEACON: beacon,
  MINTMARK_PEER: peer,
} = process.env;
const account = privateKeyToAccount(key as `0x${string}`);
const l1 = await connectL1({ rpc, contract: contract as `0x${string}`, account });

// The kit: the vault, its batch's header and the Merkle path between them. It holds no secret.
// After transfers, it also holds each transfer since the mint.
const fromBlock = BigInt(MINTMARK_FROM_BLOCK);
const proof = await proveFromL1(BigInt(process.argv[2] ?? ""), {
  l1,
  fromBlock,
  blobs: [...(folder ? [new BlobFolder(folder)] : []), ...(beacon ? [new BeaconNode(beacon)] : [])],
  sources: peer ? [new HttpBatchSource(peer)] : [],
});
// A hostile operator can commit a record that the owner has not signed. L1 refutes it, so it is
// looked for.
const kit = await exportExitKit(proof, l1, { fromBlock });
await writeFile("exit-kit.json", JSON.stringify(exitKitToJson(kit), null, 2));
console.log(`the kit of vault ${kit.tip.vaultId} is in exit-kit.json`);

// The withdrawal. L1 lets an ERC-721 out once its vault has matured, so this waits for that.
const { quantity, held, gasUsed } = await exitWithKit({
  kit,
  l1,
  account: account.address,
  immature: "wait",
});
console.log(
  `${quantity} of token ${kit.token.tokenId} is on L1 for ${gasUsed} gas; the owner holds ${held}`,
);
