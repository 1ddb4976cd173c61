import type { Command } from "commander";
import { CHECKSUM_WRONG, checksumHolds } from "../../core/internal.ts";
import { group, operating, paged } from "../cli/command.ts";
import { UsageError } from "../cli/exit-codes.ts";
import { requiredSecret, setting } from "../cli/secret.ts";

export function addBatches(program: Command): void {
  const batches = group(program, "batches", "batches of mints: seal, commit to L1, look at");
  operating(
    batches,
    "seal",
    "close the open batches now, of one mode or of both",
    ["batches seal", "batches seal --mode zk-rollup"],
    "batches.seal",
    ({ mode }) => ({ mode }),
  ).option("--mode <mode>", "validium or zk-rollup");
  operating(
    batches,
    "commit",
    "one round with L1: see what happened there, commit what is sealed, send withdrawals that are due",
    [
      "batches commit --from-block 19000000 --rpc https://rpc.example --key-stdin < operator.key",
      "batches commit --from-block 19000000 --threshold 2 --members 0x…=https://a.example,0x…=https://b.example",
    ],
    "batches.commit",
    async ({ rpc, fromBlock, confirmations, members, threshold, keyStdin }) => ({
      confirmations,
      rpc: setting(rpc, "MINTMARK_RPC_URL", "the chain's RPC: --rpc"),
      fromBlock: setting(fromBlock, "MINTMARK_FROM_BLOCK", "the block of the contract's deployment: --from-block"),
      members: membersOf(members ?? process.env.MINTMARK_MEMBERS),
      threshold: Number(threshold ?? process.env.MINTMARK_THRESHOLD ?? 0),
      operatorKey: await requiredSecret("MINTMARK_OPERATOR_KEY", keyStdin === true),
    }),
  )
    .option("--from-block <number>", "block of the settlement contract's deployment (MINTMARK_FROM_BLOCK)")
    .option("--rpc <url>", "the chain's RPC (MINTMARK_RPC_URL)")
    .option("--confirmations <blocks>", "blocks that make one final, for chains without finality")
    .option("--members <list>", "the committee, for validium: address=url with commas between (MINTMARK_MEMBERS)")
    .option("--threshold <number>", "signatures that a validium batch needs (MINTMARK_THRESHOLD)")
    .option("--key-stdin", "read the operator's private key from standard input (else MINTMARK_OPERATOR_KEY)");
  operating(
    batches,
    "adopt",
    "put L1's history in the place of this store's, after two servers ran on copies of one store",
    ["batches adopt --from-block 19000000 --rpc https://rpc.example --peers https://member.example"],
    "batches.adopt",
    ({ rpc, fromBlock, confirmations, peers }) => ({
      confirmations,
      rpc: setting(rpc, "MINTMARK_RPC_URL", "the chain's RPC: --rpc"),
      fromBlock: setting(fromBlock, "MINTMARK_FROM_BLOCK", "the block of the contract's deployment: --from-block"),
      peers: listed(peers ?? process.env.MINTMARK_PEERS),
    }),
  )
    .option("--from-block <number>", "block of the settlement contract's deployment (MINTMARK_FROM_BLOCK)")
    .option("--rpc <url>", "the chain's RPC (MINTMARK_RPC_URL)")
    .option("--confirmations <blocks>", "blocks that make one final, for chains without finality")
    .option("--peers <urls>", "who has validium data, with commas between (MINTMARK_PEERS)");
  paged(
    operating(
      batches,
      "status",
      "list batches and where they are, newest first; all their fields with --json",
      ["batches status", "batches status --mode validium --limit 5 --json"],
      "batches.status",
      ({ mode, limit, cursor }) => ({ mode, limit, cursor }),
      ["batchId", "vaultCount", "status", "l1BlockNumber", "l1TxHash"],
    ).option("--mode <mode>", "validium or zk-rollup"),
  );
}

export function addWithdrawals(program: Command): void {
  const withdrawals = group(program, "withdrawals", "withdrawals to L1");
  const application = ["--application <uuid>", "the application's id"] as const;
  const example = "--application 01a1fd1b-bf5c-743a-abf0-3c3fec348cab";
  paged(
    operating(
      withdrawals,
      "list",
      "list an application's withdrawals, newest first; all their fields with --json",
      [`withdrawals list ${example}`],
      "withdrawals.list",
      ({ application, limit, cursor }) => ({ applicationId: application, limit, cursor }),
      ["transactionId", "status", "userId", "vaultId", "amount", "l1TxHash", "failure"],
    ).requiredOption(...application),
  );
  operating(
    withdrawals,
    "show <withdrawal>",
    "show one withdrawal, and why it waits",
    [`withdrawals show 01a1fd1b-bfbe-7246-add7-f4566c613096 ${example}`],
    "withdrawals.show",
    ({ application }, [withdrawalId]) => ({ applicationId: application, withdrawalId }),
  ).requiredOption(...application);
  operating(
    withdrawals,
    "pending",
    "list what the next commit may send, of every application; all fields with --json",
    ["withdrawals pending"],
    "withdrawals.pending",
    () => ({}),
    ["withdrawalId", "standard", "vaultId", "quantity", "recipient", "deadline", "status"],
  );
}

function listed(list: unknown): string[] {
  return typeof list === "string" && list !== "" ? list.split(",").map((entry) => entry.trim()) : [];
}

function membersOf(list: unknown): { address: string; url: string }[] {
  return listed(list).map(memberOf);
}

function memberOf(text: string): { address: string; url: string } {
  const [, address, url] = /^(0x[0-9a-fA-F]{40})=(.+)$/.exec(text.trim()) ?? [];
  if (address === undefined || url === undefined) throw new UsageError(`--members: give address=url, not "${text}"`);
  if (!checksumHolds(address)) throw new UsageError(`--members: ${CHECKSUM_WRONG}`);
  return { address, url };
}
