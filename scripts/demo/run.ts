import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { createPublicClient, formatEther, formatUnits, getContract, type Hex, http } from "viem";
import { GAS_PER_BLOB } from "../../core/gas.ts";
import type { Address, Mode, Standard } from "../../core/index.ts";
import { readL1, stateCommitmentAbi } from "../../core/l1/index.ts";
import { MODES } from "../../core/model.ts";
import * as api from "../../server/client/index.ts";
import { print } from "../cli/output.ts";
import { type SandboxDescription, type SandboxOptions, startSandbox } from "../sandbox/sandbox.ts";
import { type Choice, choose } from "./choice.ts";
import { enter } from "./entry.ts";
import { trade } from "./trade.ts";
import { until } from "./until.ts";

/** Where a batch's data go: to the committee, into blobs, or into calldata. */
const KINDS = ["validium", "blobs", "calldata"] as const;
type Kind = (typeof KINDS)[number];

export type DemoResult = Awaited<ReturnType<typeof runDemo>>;

/** New ids in every run, so the demo can be repeated on one sandbox. */
const MINTS_PER_USER_AND_STANDARD = 10;
/** The sandbox's points have 18 decimals and a quantum of 10^9 base units. */
const UNITS_OF_POINT = 1_000_000_000;
const POINTS_OF_USER = 250;
const PRICE_OF_SWORD = 200;
/** A text of several field elements of a blob. */
const DESCRIPTION = "a potion from the demo, described in more letters than an element holds";

/**
 * Does the main job once, over HTTP and L1 only, and reports the results. `say` gets one line at a
 * time.
 */
async function runDemo(sandbox: SandboxDescription, say: (line: string) => void) {
  const client = api.createClient({ baseUrl: sandbox.api, apiKey: sandbox.apiKey });
  const chain = await chainReader(sandbox.rpcUrl, sandbox.contract);
  const checks: { what: string; found: string; expected: string; ok: boolean }[] = [];
  const check = (what: string, found: unknown, expected: unknown) => {
    const ok = String(found).toLowerCase() === String(expected).toLowerCase();
    checks.push({ what, found: String(found), expected: String(expected), ok });
    say(`  ${ok ? "ok  " : "FAIL"} ${what}: ${found}${ok ? "" : ` (expected ${expected})`}`);
  };

  const request = mintRequest(sandbox);
  const mints = request.users.reduce((sum, user) => sum + user.mints.length, 0);
  say(
    `1. One request mints ${mints} tokens of three standards in both modes for ${request.users.length} users`,
  );
  const minted = await api.mint(client, request);
  check("transactions acknowledged", minted.transactions.length, mints);

  say("2. Batches are sealed, signed by the committee (validium), and committed to L1");
  const { mintId } = minted;
  const page = (cursor: string | undefined) =>
    client.GET("/api/v1/transactions", {
      params: { query: { mintId, limit: 100, ...(cursor && { cursor }) } },
    });
  const mintsNow = () => Array.fromAsync(api.everyEntry(page));
  const isSettled = ({ status }: api.Transaction) => status === "settled" || status === "finalized";
  const settled = await until("every mint settled", mintsNow, (all) => all.every(isSettled));
  const kinds = await kindsOf(client, settled);
  const costs = await costsByKind(settled, kinds, chain);
  for (const kind of KINDS.filter((one) => costs[one].batches > 0)) {
    const { batches: count, mints: mine, gasPerMint, blobGasPerMint } = costs[kind];
    const name = kind === "validium" ? kind : `rollup in ${kind}`;
    const blobGas = blobGasPerMint === 0 ? "" : `, ${blobGasPerMint} blob gas`;
    say(`  ${name}: ${count} batch(es), ${mine} mints, ${gasPerMint} gas a mint${blobGas}`);
  }

  say("3. State roots: the engine's, and L1's own");
  const { committed } = await api.answer(client.GET("/public/v1/state"));
  check("validium root on L1", await chain.state.stateRoot([0]), committed.rootValidium);
  check("rollup root on L1", await chain.state.stateRoot([1]), committed.rootRollup);
  check("state commitment on L1", await chain.state.stateCommitment(), committed.commitment);

  say(
    "4. Owners withdraw one token of each standard; each signs, and the token appears on L1 by itself",
  );
  const chosen = [
    choose(sandbox, minted.vaults, "erc20", 0, "validium"),
    choose(sandbox, minted.vaults, "erc721", 1, "zk-rollup"),
    choose(sandbox, minted.vaults, "erc1155", 2, "zk-rollup"),
  ] as const;
  const paidFrom = chosen.map(({ vault }) => kinds.get(vault.batchId));
  const before = await Promise.all(chosen.map((choice) => held(chain, choice)));
  const done = await Promise.all(chosen.map((choice) => withdrawn(client, choice)));
  for (const [index, choice] of chosen.entries()) {
    const gained = (await held(chain, choice)) - (before[index] ?? 0n);
    const tokens = (amount: bigint) => formatUnits(amount, choice.asset.decimals);
    check(
      `${choice.asset.symbol} that ${choice.user.name} gained on L1`,
      tokens(gained),
      tokens(choice.gain),
    );
  }
  const gasPerWithdrawal = Math.round(
    Number((await chain.gasOf(hashesOf(done))).gas) / done.length,
  );

  const circulated = await circulate(
    { client, chain, sandbox, say, check },
    minted.vaults,
    chosen[2],
  );
  const withdrawalsOf = (kind: Kind) => paidFrom.filter((from) => from === kind).length;
  const batches = byKind((kind) => ({ ...costs[kind], withdrawals: withdrawalsOf(kind) }));
  return {
    mints,
    vaults: minted.vaults.length,
    batches,
    withdrawals: done.length,
    gasPerWithdrawal,
    ...circulated,
    checks,
  };
}

interface Stage {
  readonly client: api.MintmarkClient;
  readonly chain: ChainReader;
  readonly sandbox: SandboxDescription;
  readonly say: (line: string) => void;
  readonly check: (what: string, found: unknown, expected: unknown) => void;
}

/** A trade, and the entry of what was withdrawn. */
async function circulate(
  { client, chain, sandbox, say, check }: Stage,
  minted: readonly api.Vault[],
  withdrawn: Choice,
) {
  const sword = choose(sandbox, minted, "erc721", 0, "zk-rollup");
  const purse = choose(sandbox, minted, "erc20", 1, "validium");
  const [seller, buyer] = [sword.user.name, purse.user.name];
  say(
    `5. A trade: ${seller} sells ${buyer} a sword for ${PRICE_OF_SWORD} points; each signs once, and neither pays gas`,
  );
  const ether = await chain.ether([sword, purse]);
  const onL1 = await held(chain, withdrawn);
  const price = BigInt(PRICE_OF_SWORD * UNITS_OF_POINT);
  // Both wait for a final block, which can be the same.
  const [traded, entered] = await Promise.all([
    trade(client, sword, purse, price),
    enter(client, sandbox, withdrawn),
  ]);
  const points = (units: bigint) =>
    formatUnits(units * BigInt(purse.vault.quantum), purse.asset.decimals);
  check(`SWRD that ${buyer} bought`, traded.bought, 1);
  check(
    `PTS that ${seller} earned, ${points(traded.fee)} of the price being the application's`,
    points(traded.earned),
    points(price - traded.fee),
  );
  check(`PTS that ${buyer} kept`, points(traded.change), POINTS_OF_USER - PRICE_OF_SWORD);
  check("ether that both paid", formatEther(ether - (await chain.ether([sword, purse]))), 0);

  const { asset, user, vault, gain } = withdrawn;
  say(
    `6. An entry: ${user.name} brings a withdrawn token back; L1 burns it, and makes a vault of it`,
  );
  check(
    `${asset.symbol} that ${user.name} gave up on L1`,
    onL1 - (await held(chain, withdrawn)),
    gain,
  );
  check(`${asset.symbol} in the new vault`, entered.vault.availableBalance, vault.amount);
  check("status of the new vault", entered.vault.status, "finalized");
  const gasOf = async (hash: Hex) => Number((await chain.gasOf([hash])).gas);
  return { gasOfTrade: await gasOf(traded.txHash), gasOfEntry: await gasOf(entered.txHash) };
}

function mintRequest({ users, assets }: SandboxDescription): api.MintRequest {
  type Token = { tokenId?: string; mintingBlob?: string };
  const entry = (standard: Standard, token: Token, amount: number, dataAvailabilityMode: Mode) => {
    const assetId = assets.find((asset) => asset.standard === standard)?.assetId ?? "";
    return { assetId, ...token, amount, dataAvailabilityMode };
  };
  const numbered = (id: number) => ({ tokenId: String(id) });
  const described = (id: number) => ({
    mintingBlob: Buffer.from(`{${id}}:{${DESCRIPTION}}`).toString("hex"),
  });
  let next = Date.now() * 100;
  return {
    users: users.map(({ userId }) => ({
      userId,
      mints: MODES.flatMap((mode) => [
        entry("erc20", {}, POINTS_OF_USER * UNITS_OF_POINT, mode),
        ...Array.from({ length: MINTS_PER_USER_AND_STANDARD }, () =>
          entry("erc721", numbered(next++), 1, mode),
        ),
        ...Array.from({ length: MINTS_PER_USER_AND_STANDARD }, (_, id) =>
          entry("erc1155", mode === "validium" ? numbered(id + 1) : described(id + 1), 5, mode),
        ),
      ]),
    })),
  };
}

function byKind<T>(of: (kind: Kind) => T): Record<Kind, T> {
  return { validium: of("validium"), blobs: of("blobs"), calldata: of("calldata") };
}

async function kindsOf(client: api.MintmarkClient, mints: readonly api.Transaction[]) {
  const kinds = new Map<string, Kind>();
  for (const batchId of new Set(mints.map((one) => one.batchId))) {
    const { kind } = await api.answer(
      client.GET("/public/v1/batches/{batchId}", { params: { path: { batchId } } }),
    );
    if (kind !== "transfers") kinds.set(batchId, kind);
  }
  return kinds;
}

async function costsByKind(
  mints: readonly api.Transaction[],
  kinds: ReadonlyMap<string, Kind>,
  chain: ChainReader,
) {
  const costs = byKind(() => ({ batches: 0, mints: 0, gasPerMint: 0, blobGasPerMint: 0 }));
  for (const [kind, mine] of Map.groupBy(
    mints,
    ({ batchId }) => kinds.get(batchId) ?? "calldata",
  )) {
    const commits = hashesOf(mine);
    const { gas, blobGas } = await chain.gasOf(commits);
    const [gasPerMint, blobGasPerMint] = [gas, blobGas].map((amount) =>
      Math.round(Number(amount) / mine.length),
    );
    Object.assign(costs[kind], {
      batches: commits.length,
      mints: mine.length,
      gasPerMint,
      blobGasPerMint,
    });
  }
  return costs;
}

function hashesOf(all: readonly { readonly l1TxHash: Hex | null }[]): Hex[] {
  return [...new Set(all.flatMap(({ l1TxHash }) => l1TxHash ?? []))];
}

/** The owner's balance of the token on L1, in base units; for an ERC-721, 1 for its owner. */
function held({ l1 }: ChainReader, { standard, asset, user, vault }: Choice): Promise<bigint> {
  const tokenId = vault.tokenId === null ? null : BigInt(vault.tokenId);
  return l1.holding(asset.contractAddress, standard, user.ownerAddress, tokenId);
}

/** All of a vault, by its owner's signature, once L1 has paid it. */
async function withdrawn(
  client: api.MintmarkClient,
  { vault, owner }: Choice,
): Promise<api.Withdrawal> {
  const asked = { vaultIds: [vault.vaultId], signer: owner, wait: true, pollingMs: 250 };
  const [{ withdrawal = null, error = null } = {}] = await api.withdraw(client, asked);
  if (withdrawal !== null && withdrawal.status !== "failed") return withdrawal;
  throw new Error(
    `the withdrawal of vault ${vault.vaultId} failed: ${withdrawal?.failure ?? error?.detail}`,
  );
}

/** The demo's own reads of L1, without the engine. */
async function chainReader(rpc: string, address: Address) {
  const client = createPublicClient({ transport: http(rpc) });
  return {
    l1: await readL1({ rpc, contract: address }),
    state: getContract({ abi: stateCommitmentAbi, address, client }).read,
    /** The wei that owners have together. */
    async ether(owners: readonly Choice[]) {
      const balances = owners.map(({ owner }) => client.getBalance(owner));
      return (await Promise.all(balances)).reduce((sum, balance) => sum + balance, 0n);
    },
    /**
     * Sums the gas of the receipts. The local chain's leave the blob gas out, where it follows from
     * the blobs.
     */
    async gasOf(hashes: readonly Hex[]) {
      let [gas, blobGas] = [0n, 0n];
      for (const hash of hashes) {
        const receipt = await client.getTransactionReceipt({ hash });
        const isBlobs = receipt.type === "eip4844" && receipt.blobGasUsed === undefined;
        const { blobVersionedHashes = [] } = isBlobs ? await client.getTransaction({ hash }) : {};
        gas += receipt.gasUsed;
        blobGas += receipt.blobGasUsed ?? BigInt(blobVersionedHashes.length) * GAS_PER_BLOB;
      }
      return { gas, blobGas };
    },
  };
}

type ChainReader = Awaited<ReturnType<typeof chainReader>>;

type Told = Pick<SandboxOptions, "onProgress" | "onError">;

/**
 * Runs the demo on a running sandbox, or on its own, and prints the results. Resolves with whether
 * all checks passed.
 */
export async function demo(folder: string, isJson: boolean, told: Told): Promise<boolean> {
  const say = (line: string) => (isJson ? process.stderr : process.stdout).write(`${line}\n`);
  const result = await resultOf(folder, say, told);
  const failed = result.checks.filter(({ ok }) => !ok).length;
  if (isJson) print(result, true);
  else {
    say("");
    print(figures(result), false);
    say(`\n${result.checks.length - failed} of ${result.checks.length} checks passed`);
  }
  return failed === 0;
}

async function resultOf(
  folder: string,
  say: (line: string) => void,
  told: Told,
): Promise<DemoResult> {
  const running = await runningSandbox(folder);
  if (running !== null) {
    say(`using the sandbox at ${running.api}`);
    return runDemo(running, say);
  }
  const sandbox = await startSandbox({ folder: ".mintmark/demo", port: 0, chainPort: 0, ...told });
  try {
    return await runDemo(sandbox.description, say);
  } finally {
    await sandbox.stop();
  }
}

/** The sandbox of another process, if its description exists and its API responds. */
async function runningSandbox(folder: string): Promise<SandboxDescription | null> {
  try {
    const description = JSON.parse(
      await readFile(resolve(folder, "sandbox.json"), "utf8"),
    ) as SandboxDescription;
    const health = await fetch(`${description.api}/healthz`);
    return health.ok ? description : null;
  } catch {
    return null;
  }
}

function figures({ mints, vaults, batches, withdrawals, ...result }: DemoResult): unknown {
  const row = (
    name: string,
    field: keyof DemoResult["batches"][Kind] | null,
    all: number | null,
  ) => {
    return { "": name, ...byKind((kind) => (field === null ? null : batches[kind][field])), all };
  };
  const count = KINDS.reduce((sum, kind) => sum + batches[kind].batches, 0);
  return [
    row("mints", "mints", mints),
    row("vaults", null, vaults),
    row("batches", "batches", count),
    row("gas per mint", "gasPerMint", null),
    row("blob gas per mint", "blobGasPerMint", null),
    row("withdrawals", "withdrawals", withdrawals),
    row("gas per withdrawal", null, result.gasPerWithdrawal),
    row("gas of the trade", null, result.gasOfTrade),
    row("gas of the entry", null, result.gasOfEntry),
  ];
}
