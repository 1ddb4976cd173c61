import { join } from "node:path";
import { isLocalChain } from "../../server/process/settings/settings.ts";
import type { Deployment } from "../deploy/record.ts";
import { passwordFile, type Signing } from "./accounts.ts";
import type { Process, Settings } from "./files.ts";
import type { Answers } from "./terms.ts";

interface Facts {
  readonly folder: string;
  readonly rpc: string;
  readonly deployment: Deployment;
  readonly terms: Answers;
  readonly isTest: boolean;
  readonly members: readonly Signing[];
  readonly signers: Readonly<Record<"operator" | "receipt" | "watcher", Signing>>;
  /** The operator's wei below which its server warns. */
  readonly leastBalance: bigint;
}

/** The processes of a deployment with their settings: a server, its own members, a watcher, and a backup each hour. */
export function processesOf(facts: Facts): Process[] {
  const { folder, rpc, deployment, terms, isTest, signers, leastBalance } = facts;
  const { address: contract, deployedAtBlock, threshold } = deployment.settlement;
  const chain = {
    MINTMARK_RPC_URL: rpc,
    MINTMARK_CONTRACT: contract,
    MINTMARK_FROM_BLOCK: `${deployedAtBlock}`,
    // A local chain makes no blocks by itself that would make others final.
    ...(isLocalChain(BigInt(deployment.chainId)) && { MINTMARK_CONFIRMATIONS: "0", MINTMARK_POLL_MS: "1000" }),
  };
  const serverUrl = `http://127.0.0.1:${terms.port}`;
  const members = facts.members.map((member, at) => ({ ...member, port: terms.port + 100 + at }));
  const committee = [
    ...members.map(({ address, port }) => `${address}=http://127.0.0.1:${port}`),
    ...terms.committee.map(({ address, url }) => `${address}=${url}`),
  ];
  const peers = [serverUrl, ...terms.committee.map(({ url }) => url)];
  const keyOf = (party: string, signing: Signing) => signingSettings(folder, party, signing);
  const store = join(folder, "server", "store");
  const { MINTMARK_POLL_MS: _, ...serverChain } = chain;
  const server: Process = {
    name: "server",
    command: ["server"],
    readyUrl: `${serverUrl}/readyz`,
    settings: {
      MINTMARK_STORE: store,
      MINTMARK_ENVIRONMENT: isTest ? "sandbox" : "live",
      MINTMARK_CHAIN_ID: `${deployment.chainId}`,
      ...serverChain,
      ...keyOf("OPERATOR", signers.operator),
      ...keyOf("RECEIPT", signers.receipt),
      MINTMARK_MEMBERS: committee.join(),
      MINTMARK_THRESHOLD: `${threshold}`,
      // Somebody who tries it waits for each seal.
      ...(isTest && { MINTMARK_SEAL_SECONDS: "5" }),
      MINTMARK_LEAST_BALANCE: `${leastBalance}`,
      MINTMARK_PORT: `${terms.port}`,
      MINTMARK_METRICS_PORT: `${terms.port + 1}`,
    },
  };
  const memberOf = (member: (typeof members)[number], at: number): Process => ({
    name: `member-${at + 1}`,
    command: ["member"],
    readyUrl: `http://127.0.0.1:${member.port}/readyz`,
    settings: {
      MINTMARK_MEMBER_STORE: join(folder, `member-${at + 1}`, "store"),
      ...chain,
      ...keyOf("MEMBER", member),
      MINTMARK_PEERS: peers.join(),
      MINTMARK_PORT: `${member.port}`,
    },
  });
  const watcher: Process = {
    name: "watcher",
    command: ["watch"],
    readyUrl: null,
    settings: {
      MINTMARK_STORE: join(folder, "watcher", "store"),
      ...chain,
      ...keyOf("WATCHER", signers.watcher),
      MINTMARK_PEERS: [...peers, ...members.map(({ port }) => `http://127.0.0.1:${port}`)].join(),
    },
  };
  const backup: Process = {
    name: "backup",
    command: ["backup", join(folder, "backup", "journal")],
    readyUrl: null,
    every: "1h",
    settings: { MINTMARK_STORE: store },
  };
  return [server, ...members.map(memberOf), watcher, backup];
}

function signingSettings(folder: string, party: string, { address, keystore, url }: Signing): Settings {
  if (url !== undefined) return { [`MINTMARK_${party}_SIGNER`]: `${address}=${url}` };
  return {
    [`MINTMARK_${party}_KEYSTORE`]: keystore ?? "",
    [`MINTMARK_${party}_PASSWORD_FILE`]: passwordFile(join(folder, "keys")),
  };
}
