/**
 * An owner leaves with an exit kit: no engine, no server and no operator, only L1 and the owner's key.
 * Shows how the kit of a zk-rollup vault in calldata is made from L1 alone, kept as a file, and used.
 *
 *   MINTMARK_RPC_URL=… MINTMARK_CONTRACT=0x… OWNER_KEY=0x… node examples/exit.ts <vaultId>
 */
import { writeFile } from "node:fs/promises";
import { exitKitToJson, exitWithKit, exportExitKit, proveFromL1 } from "mintmark/exit";
import { connectL1 } from "mintmark/l1";
import { privateKeyToAccount } from "viem/accounts";

const {
  MINTMARK_RPC_URL: rpc = "",
  MINTMARK_CONTRACT: contract,
  OWNER_KEY: key,
  MINTMARK_FROM_BLOCK = "0",
} = process.env;
const account = privateKeyToAccount(key as `0x${string}`);
const l1 = await connectL1({ rpc, contract: contract as `0x${string}`, account });

// The kit: the vault, its batch's header and the Merkle path between them. It holds no secret.
const proof = await proveFromL1(BigInt(process.argv[2] ?? ""), { l1, fromBlock: BigInt(MINTMARK_FROM_BLOCK) });
const kit = await exportExitKit(proof, l1);
await writeFile("exit-kit.json", JSON.stringify(exitKitToJson(kit), null, 2));
console.log(`the kit of vault ${kit.vault.vaultId} is in exit-kit.json`);

// The withdrawal. L1 lets an ERC-721 out once its vault has matured, so this waits for that.
const { quantity, held, gasUsed } = await exitWithKit({ kit, l1, account: account.address, immature: "wait" });
console.log(`${quantity} of token ${kit.token.tokenId} is on L1 for ${gasUsed} gas; the owner holds ${held}`);
