import { withdrawalTypedData } from "../../core/protocol/typed-data.ts";
import {
  answer,
  createClient,
  everyEntry,
  type MintmarkClient,
  type MintRequest,
  mint,
  type Transaction,
  type Vault,
  type Withdrawal,
} from "../../server/client/index.ts";
import { USERS } from "../sandbox/accounts.ts";
import type { SandboxDescription } from "../sandbox/sandbox.ts";
import { type ChainReader, chainReader } from "./chain.ts";
import { until } from "./until.ts";

const MODES = ["validium", "zk-rollup"] as const;
type Mode = (typeof MODES)[number];
type Standard = "erc20" | "erc721" | "erc1155";

export interface Check {
  readonly what: string;
  readonly found: string;
  readonly expected: string;
  readonly ok: boolean;
}

export interface DemoResult {
  readonly mints: number;
  readonly vaults: number;
  readonly batches: Readonly<
    Record<Mode, { readonly batches: number; readonly mints: number; readonly gasPerMint: number }>
  >;
  readonly withdrawals: number;
  readonly gasPerWithdrawal: number;
  readonly checks: readonly Check[];
}

/** New ids in every run, so the demo can be repeated on one sandbox. */
const MINTS_PER_USER_AND_STANDARD = 10;

/** Does the main job once, over HTTP and L1 only, and reports the results. `say` gets one line at a time. */
export async function runDemo(sandbox: SandboxDescription, say: (line: string) => void): Promise<DemoResult> {
  const client = createClient({ baseUrl: sandbox.api, apiKey: sandbox.apiKey });
  const chain = chainReader(sandbox.rpcUrl, sandbox.contract);
  const checks: Check[] = [];
  const check = (what: string, found: unknown, expected: unknown) => {
    const ok = String(found).toLowerCase() === String(expected).toLowerCase();
    checks.push({ what, found: String(found), expected: String(expected), ok });
    say(`  ${ok ? "ok  " : "FAIL"} ${what}: ${found}${ok ? "" : ` (expected ${expected})`}`);
  };

  const request = mintRequest(sandbox);
  const mints = request.users.reduce((sum, user) => sum + user.mints.length, 0);
  say(`1. One request mints ${mints} tokens of three standards in both modes for ${request.users.length} users`);
  const minted = await mint(client, request);
  check("transactions acknowledged", minted.transactions.length, mints);

  say("2. Batches are sealed, signed by the committee (validium), and committed to L1");
  const settled = await until("every mint settled", () => mintTransactions(client, minted.mintId), allSettled);
  const batches = await gasByMode(settled, chain);
  for (const mode of MODES) {
    say(
      `  ${mode}: ${batches[mode].batches} batch(es), ${batches[mode].mints} mints, ${batches[mode].gasPerMint} gas a mint`,
    );
  }

  say("3. State roots: the engine's, and L1's own");
  const { committed } = await answer(client.GET("/public/v1/state"));
  check("validium root on L1", await chain.stateRoot("validium"), committed.rootValidium);
  check("zk-rollup root on L1", await chain.stateRoot("zk-rollup"), committed.rootRollup);
  check("state commitment on L1", await chain.stateCommitment(), committed.commitment);

  say("4. Owners withdraw one token of each standard; each signs, and the token appears on L1 by itself");
  const chosen = (["erc20", "erc721", "erc1155"] as const).map((standard) => choose(sandbox, minted.vaults, standard));
  const before = await Promise.all(chosen.map((choice) => held(chain, choice)));
  const requested: Withdrawal[] = [];
  for (const choice of chosen) requested.push(await requestWithdrawal(client, sandbox, chain, choice));
  const done = await until("every withdrawal settled", () => withdrawals(client, requested), everySettled);
  for (const { withdrawalId, status, failure } of done) {
    if (status === "failed") throw new Error(`withdrawal ${withdrawalId} failed: ${failure}`);
  }
  for (const [index, choice] of chosen.entries()) {
    const gained = (await held(chain, choice)) - (before[index] ?? 0n);
    check(`${choice.asset.symbol} that ${choice.user.name} gained on L1`, gained, choice.gain);
  }
  const gasPerWithdrawal = await averageGas(done, chain);
  return { mints, vaults: minted.vaults.length, batches, withdrawals: done.length, gasPerWithdrawal, checks };
}

function mintRequest({ users, assets }: SandboxDescription): MintRequest {
  const base = Date.now() * 100;
  const entry = (standard: Standard, tokenId: number | null, amount: number, mode: Mode) => ({
    assetId: assets.find((asset) => asset.standard === standard)?.assetId ?? "",
    ...(tokenId !== null && { tokenId: String(tokenId) }),
    amount,
    dataAvailabilityMode: mode,
  });
  let next = base;
  return {
    users: users.map(({ userId }) => ({
      userId,
      mints: MODES.flatMap((mode) => [
        entry("erc20", null, 250, mode),
        ...Array.from({ length: MINTS_PER_USER_AND_STANDARD }, () => entry("erc721", next++, 1, mode)),
        ...Array.from({ length: MINTS_PER_USER_AND_STANDARD }, (_, id) => entry("erc1155", id + 1, 5, mode)),
      ]),
    })),
  };
}

async function mintTransactions(client: MintmarkClient, mintId: string): Promise<Transaction[]> {
  const all: Transaction[] = [];
  const page = (cursor: string | undefined) =>
    client.GET("/api/v1/transactions", { params: { query: { mintId, limit: 100, ...(cursor && { cursor }) } } });
  for await (const transaction of everyEntry(page)) all.push(transaction);
  return all;
}

function allSettled(transactions: readonly Transaction[]): boolean {
  return transactions.every(({ status }) => status === "settled" || status === "finalized");
}

function everySettled(all: readonly Withdrawal[]): boolean {
  return all.every(({ status }) => status === "settled" || status === "finalized" || status === "failed");
}

async function gasByMode(transactions: readonly Transaction[], chain: ChainReader): Promise<DemoResult["batches"]> {
  const ofMode = async (mode: Mode) => {
    const mine = transactions.filter(({ dataAvailabilityMode }) => dataAvailabilityMode === mode);
    const hashes = new Set(mine.map(({ l1TxHash }) => l1TxHash).filter((hash) => hash !== null));
    let gas = 0n;
    for (const hash of hashes) gas += await chain.gasUsed(hash);
    return { batches: hashes.size, mints: mine.length, gasPerMint: Math.round(Number(gas) / mine.length) };
  };
  return { validium: await ofMode("validium"), "zk-rollup": await ofMode("zk-rollup") };
}

/** A vault of this mint to withdraw from: another user for each standard, both modes among them. */
function choose({ users, assets }: SandboxDescription, vaults: readonly Vault[], standard: Standard) {
  const plan = { erc20: [0, "validium", 100n], erc721: [1, "zk-rollup", 1n], erc1155: [2, "validium", 3n] } as const;
  const [index, mode, quantity] = plan[standard];
  const asset = assets.find((known) => known.standard === standard);
  const user = users[index];
  const vault = vaults.find(
    (found) => found.assetId === asset?.assetId && found.userId === user?.userId && found.dataAvailabilityMode === mode,
  );
  const owner = USERS[index]?.owner;
  if (!asset || !user || !vault || !owner) throw new Error(`the mint reply holds no ${standard} vault of ${mode}`);
  // The sandbox's points have a quantum of 10^9 base units.
  const gain = standard === "erc20" ? quantity * 1_000_000_000n : quantity;
  return { standard, asset, user, vault, owner, quantity, gain };
}

type Choice = ReturnType<typeof choose>;

/** The owner's balance of the token on L1, in base units; for an ERC-721, 1 for its owner. */
async function held(chain: ChainReader, { standard, asset, user, vault }: Choice): Promise<bigint> {
  const { contractAddress } = asset;
  if (standard === "erc20") return chain.balance20(contractAddress, user.ownerAddress);
  const id = BigInt(vault.tokenId ?? 0);
  if (standard === "erc1155") return chain.balance1155(contractAddress, user.ownerAddress, id);
  const owner = await chain.owner721(contractAddress, id).catch(() => null);
  return owner?.toLowerCase() === user.ownerAddress ? 1n : 0n;
}

async function requestWithdrawal(
  client: MintmarkClient,
  sandbox: SandboxDescription,
  chain: ChainReader,
  choice: Choice,
): Promise<Withdrawal> {
  const { vault, owner, quantity, user } = choice;
  const deadline = BigInt(Math.floor(Date.now() / 1000) + 3_600);
  const message = {
    vaultId: BigInt(vault.vaultId),
    withdrawnBefore: BigInt(vault.withdrawnBalance),
    quantity,
    recipient: user.ownerAddress,
    deadline,
  };
  const settlement = { chainId: await chain.chainId(), contract: sandbox.contract };
  const signature = await owner.signTypedData(withdrawalTypedData(settlement, message));
  const body = { vaultId: vault.vaultId, quantity: String(quantity), deadline: String(deadline), signature };
  return answer(client.POST("/api/v1/withdrawals", { body }));
}

function withdrawals(client: MintmarkClient, requested: readonly Withdrawal[]): Promise<Withdrawal[]> {
  return Promise.all(
    requested.map(({ withdrawalId }) =>
      answer(client.GET("/api/v1/withdrawals/{withdrawalId}", { params: { path: { withdrawalId } } })),
    ),
  );
}

async function averageGas(done: readonly Withdrawal[], chain: ChainReader): Promise<number> {
  const hashes = new Set(done.map(({ l1TxHash }) => l1TxHash).filter((hash) => hash !== null));
  let gas = 0n;
  for (const hash of hashes) gas += await chain.gasUsed(hash);
  return Math.round(Number(gas) / done.length);
}
