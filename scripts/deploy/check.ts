import {
  type Address,
  type Chain,
  encodeDeployData,
  formatEther,
  formatGwei,
  getContractError,
  zeroAddress,
} from "viem";
import { GAS_AFTER_TOKEN } from "../../core/gas.ts";
import { type ContractName, readArtifact } from "../../core/l1/artifact.ts";
import { askL1, codeOn } from "../../core/l1/connection.ts";
import { MAX_MEMBERS } from "../../core/protocol/attestation.ts";
import { isLocalChain } from "../../server/process/settings/settings.ts";
import { type Deployer, lower } from "./deployer.ts";
import { type MirrorTerms, mirrorArgs, verifyMirror } from "./mirror.ts";
import { type Deployment, isRecorded } from "./record.ts";
import { type SettlementConfig, settlementArgs, verifySettlement } from "./settlement.ts";
import { type TokenConfig, tokenCreation } from "./token.ts";

export interface DeploymentPlan {
  /**
   * `admin` is the deployer at first on a new deployment with a multisig; the time lock replaces
   * it.
   */
  readonly settlement: SettlementConfig;
  /**
   * Administers a new settlement contract through a time lock, which is deployed first; default
   * `admin` itself.
   */
  readonly multisig?: Address | undefined;
  /** Deployed and registered unless a recorded token has the same standard and symbol. */
  readonly tokens: readonly TokenConfig[];
  readonly mirror?: {
    readonly by: Deployer;
    readonly config: MirrorTerms;
    readonly tokens: readonly TokenConfig[];
  };
  /** Allows no change delay, or too short a maturity, on a public chain. */
  readonly allowNoDelay: boolean;
  /** How the operator allows it; default by the variable of `mintmark deploy`. */
  readonly toAllowNoDelay?: string;
}

const BY_VARIABLE = "Set MINTMARK_ALLOW_NO_DELAY=yes";

/** A watcher looks at final blocks every few seconds, and its transaction may need replacements. */
const WATCHER_SECONDS = 600n;
const FINALITY_SECONDS = 1_200n;
/** The contracts' `MAX_DELAY`. */
const MAX_DELAY_SECONDS = 30n * 86_400n;
const MAX_QUANTUM = (1n << 128n) - 1n;

/**
 * Checks everything known before the first transaction: the terms, the tokens, the record's
 * contracts, that every constructor accepts its arguments, and that the account can pay on each
 * chain. Throws one error with all faults of the terms.
 *
 * @returns warnings about unusual terms
 */
export async function checkPlan(
  by: Deployer,
  plan: DeploymentPlan,
  earlier?: Deployment,
): Promise<string[]> {
  const warnings = checkTerms(by, plan, earlier);
  if (earlier === undefined) {
    await requireAccounts(by, plan);
    warnings.push(...(await maturityWarnings(by, plan.settlement.maturity, plan)));
  } else await verifySettlement(by, earlier.settlement);
  const { mirror } = plan;
  const known = mirrorOf(plan, earlier);
  if (mirror && known && earlier) {
    const { address: sourceContract } = earlier.settlement;
    await verifyMirror(mirror.by, { ...known, sourceChainId: BigInt(by.chainId), sourceContract });
  }
  if (mirror && known === undefined) {
    const { maturity } = earlier?.settlement ?? plan.settlement;
    warnings.push(...(await maturityWarnings(mirror.by, maturity, plan)));
  }
  await requireFunds(by, await gasHere(by, plan, earlier));
  if (mirror) await requireFunds(mirror.by, await gasOnMirror(by, plan, earlier));
  return warnings;
}

/**
 * Warns of a maturity in which nobody can void a duplicate on the chain. Rejects it on a network of
 * value, unless the plan allows it.
 */
async function maturityWarnings(
  by: Deployer,
  maturity: bigint,
  { allowNoDelay, toAllowNoDelay = BY_VARIABLE }: DeploymentPlan,
): Promise<string[]> {
  if (maturity === 0n || isLocalChain(BigInt(by.chainId))) return [];
  const finality = await finalitySeconds(by);
  if (maturity >= finality + WATCHER_SECONDS) return [];
  const sentence =
    `the maturity is ${maturity} s. A block of chain ${by.chainId} is final after some ${finality} s, and a watcher needs ` +
    `${WATCHER_SECONDS} s more, so a duplicate ERC-721 can be withdrawn before anyone voids it`;
  // viem's list takes long to load.
  const chains: readonly Chain[] = Object.values(await import("viem/chains"));
  const known = chains.find(({ id }) => id === by.chainId);
  if (allowNoDelay || known === undefined || known.testnet === true) return [sentence];
  throw new Error(`nothing was deployed:\n  ${sentence}. ${toAllowNoDelay} to deploy it so`);
}

/** The chain's own blocks tell. A node without the tag shows none, so Ethereum's time counts. */
async function finalitySeconds({ client }: Deployer): Promise<bigint> {
  const newest = await askL1("reading the newest block", () => client.getBlock());
  const finalized = await client.getBlock({ blockTag: "finalized" }).catch(() => null);
  return finalized === null ? FINALITY_SECONDS : newest.timestamp - finalized.timestamp;
}

/** Throws one error with all faults that the terms have by themselves; returns warnings. */
export function checkTerms(by: Deployer, plan: DeploymentPlan, earlier?: Deployment): string[] {
  const { settlement, mirror } = plan;
  const problems: string[] = [];
  const warnings: string[] = [];
  if (earlier === undefined) {
    for (const [what, seconds, meaning] of [
      ["change delay", settlement.changeDelay, "a new operator or committee is active at once"],
      [
        "maturity",
        settlement.maturity,
        "a duplicate ERC-721 can be withdrawn before anyone voids it",
      ],
    ] as const) {
      if (seconds > MAX_DELAY_SECONDS)
        problems.push(`the ${what} is ${seconds} s; the contract takes at most 30 days`);
      if (seconds !== 0n || isLocalChain(BigInt(by.chainId))) continue;
      const sentence = `the ${what} is 0: ${meaning}`;
      if (plan.allowNoDelay) warnings.push(sentence);
      else problems.push(`${sentence}. ${plan.toAllowNoDelay ?? BY_VARIABLE} to deploy it so`);
    }
    for (const role of ["admin", "guardian", "operator"] as const)
      if (settlement[role] === zeroAddress) problems.push(`the ${role} is the zero address`);
    if (plan.multisig === zeroAddress) problems.push("the multisig is the zero address");
    problems.push(...committeeProblems("the committee", settlement));
  }
  problems.push(...plan.tokens.flatMap(tokenProblems));
  const hasTransfers =
    earlier === undefined ? settlement.transfers : earlier.settlement.transfersCode !== undefined;
  if (!hasTransfers)
    problems.push(...transferableAmong(plan.tokens, "the settlement contract has no transfers"));
  if (mirror) {
    if (mirror.by.chainId === by.chainId)
      problems.push(
        `the mirror's RPC serves chain ${by.chainId} too, which is the settlement contract's own`,
      );
    if (mirror.config.admin === zeroAddress)
      problems.push("the mirror's admin is the zero address");
    const { committee, threshold } = { ...(earlier?.settlement ?? settlement), ...mirror.config };
    problems.push(...committeeProblems("the mirror's committee", { committee, threshold }));
    problems.push(...mirror.tokens.flatMap(tokenProblems));
    problems.push(...transferableAmong(mirror.tokens, "a mirror has no transfers"));
  }
  if (problems.length > 0)
    throw new Error(`nothing was deployed:\n${problems.map((line) => `  ${line}`).join("\n")}`);
  return warnings;
}

function transferableAmong(tokens: readonly TokenConfig[], why: string): string[] {
  const found = tokens.filter(({ transferable }) => transferable);
  return found.map(({ symbol }) => `token ${symbol} cannot be transferable: ${why}`);
}

/** Tokens whose owners can never transfer them, because nobody said otherwise. */
export function neverTransferable(
  tokens: readonly Pick<TokenConfig, "symbol" | "transferable">[],
): string[] {
  const found = tokens.filter(({ transferable }) => transferable !== true);
  return found.map(
    ({ symbol }) =>
      `${symbol} can never be transferred before its withdrawal: give \`"transferable": true\` if it shall be`,
  );
}

function committeeProblems(
  what: string,
  terms: Pick<SettlementConfig, "committee" | "threshold">,
): string[] {
  const { threshold } = terms;
  const members = terms.committee.map(lower);
  const problems: string[] = [];
  if (new Set(members).size !== members.length) problems.push(`${what} names a member twice`);
  if (members.includes(zeroAddress)) problems.push(`${what} contains the zero address`);
  if (members.length > MAX_MEMBERS)
    problems.push(
      `${what} has ${members.length} members; the contract takes at most ${MAX_MEMBERS}`,
    );
  const { length } = members;
  if (threshold < 1 || threshold > length)
    problems.push(
      `${what} has ${length} members, so the threshold is 1 to ${length}, not ${threshold}`,
    );
  return problems;
}

function tokenProblems(token: TokenConfig): string[] {
  const { standard, symbol, quantum, cap, royalty, mintingBlobScheme, uri } = token;
  const problems: string[] = [];
  const refuse = (why: string) => problems.push(`token ${symbol}: ${why}`);
  if (standard === "erc20") {
    if (quantum !== undefined && (quantum === 0n || quantum > MAX_QUANTUM))
      refuse(`the quantum is ${quantum}; it is 1 to 2^128 - 1 base units`);
    if (cap === 0n) refuse("the cap is 0, so nothing could ever be minted");
    if (cap !== undefined && quantum !== undefined && cap < quantum)
      refuse("the cap is below one quantum");
    if (mintingBlobScheme !== undefined || uri !== undefined)
      refuse('an erc20 cannot have "mintingBlobScheme" and "uri"');
  } else if (cap !== undefined || quantum !== undefined)
    refuse('only an erc20 can have "cap" and "quantum"');
  if (royalty !== undefined) {
    if (standard === "erc20") refuse('an erc20 cannot have a "royalty"');
    if (royalty.fraction > 10_000n)
      refuse(`the royalty is ${royalty.fraction} ten-thousandths, more than the price`);
    if (royalty.receiver === zeroAddress) refuse("the royalty's receiver is the zero address");
  }
  if (token.admin === zeroAddress) refuse("the admin is the zero address");
  return problems;
}

async function requireAccounts(
  by: Deployer,
  { settlement: { operator }, multisig }: DeploymentPlan,
): Promise<void> {
  const hasCode = async (address: Address) => (await codeOn(by.client)(address)) !== "0x";
  // The contract accepts rollup batches from plain accounts only.
  if (await hasCode(operator))
    throw new Error(
      `nothing was deployed: the operator ${operator} is a contract, not a plain account`,
    );
  if (multisig === undefined || isLocalChain(BigInt(by.chainId)) || (await hasCode(multisig)))
    return;
  // An address of another chain, or a mistyped one, would administer nothing for ever.
  throw new Error(
    `nothing was deployed: the multisig ${multisig} has no code on chain ${by.chainId}. Deploy it there first, or name a plain account by MINTMARK_ADMIN`,
  );
}

/**
 * Gas that the settlement contract's chain still needs. Constructors that refuse their arguments
 * throw here.
 */
export async function gasHere(
  by: Deployer,
  plan: DeploymentPlan,
  earlier?: Deployment,
): Promise<bigint> {
  let gas = 0n;
  if (earlier === undefined) {
    const { multisig, settlement } = plan;
    if (multisig !== undefined)
      gas += await gasOf(by, "AdminTimeLock", [settlement.changeDelay, [multisig], [multisig]]);
    if (settlement.transfers)
      gas += (await gasOf(by, "Transfers", [])) + (await gasOf(by, "Makings", []));
    gas += await gasOf(by, "StateCommitment", settlementArgs(settlement));
  }
  gas += await gasOfTokens(by, plan.tokens, earlier?.tokens);
  const foreign =
    plan.mirror?.tokens.filter((token) => !isRecorded(mirrorOf(plan, earlier)?.tokens, token)) ??
    [];
  return gas + BigInt(foreign.length) * GAS_AFTER_TOKEN;
}

async function gasOnMirror(
  source: Deployer,
  plan: DeploymentPlan,
  earlier?: Deployment,
): Promise<bigint> {
  const { mirror, settlement } = plan;
  if (mirror === undefined) return 0n;
  const known = mirrorOf(plan, earlier);
  let gas = await gasOfTokens(mirror.by, mirror.tokens, known?.tokens);
  if (known === undefined) {
    const { committee, threshold, changeDelay, maturity } = earlier?.settlement ?? settlement;
    const terms = { committee, threshold, changeDelay, maturity, ...mirror.config };
    const sourceContract = earlier?.settlement.address ?? mirror.by.account.address;
    const args = mirrorArgs({ ...terms, sourceChainId: BigInt(source.chainId), sourceContract });
    gas += await gasOf(mirror.by, "StateMirror", args);
  }
  return gas;
}

function mirrorOf({ mirror }: DeploymentPlan, earlier?: Deployment) {
  return earlier?.mirrors.find(({ chainId }) => chainId === mirror?.by.chainId);
}

async function gasOfTokens(
  by: Deployer,
  tokens: readonly TokenConfig[],
  recorded?: Deployment["tokens"],
) {
  let gas = 0n;
  for (const token of tokens) {
    if (isRecorded(recorded, token)) continue;
    // Any minter works for the estimate, since the settlement contract may not exist yet.
    const { contract, args } = tokenCreation(by, by.account.address, token);
    gas += (await gasOf(by, contract, args)) + GAS_AFTER_TOKEN;
  }
  return gas;
}

async function gasOf(by: Deployer, name: ContractName, args: readonly unknown[]): Promise<bigint> {
  const { abi, bytecode } = readArtifact(name);
  const data = encodeDeployData({ abi, bytecode, args });
  return askL1(`trying to deploy ${name}`, async () => {
    try {
      return await by.client.estimateGas({ account: by.account.address, data });
    } catch (error) {
      const call = { abi, args: [], functionName: "constructor" };
      throw getContractError(error as Parameters<typeof getContractError>[0], call);
    }
  });
}

/**
 * Rejects with one sentence when the account cannot pay for this gas at the chain's present price.
 */
async function requireFunds(by: Deployer, gas: bigint): Promise<void> {
  // An interrupted run has paid for its transactions already. Then each transaction is checked by
  // itself.
  if (gas === 0n || (await by.pending?.isEmpty()) === false) return;
  const { address } = by.account;
  const ask = () => Promise.all([by.client.getBalance({ address }), priceOf(by)]);
  const [balance, price] = await askL1("asking for balance and fees", ask);
  if (balance >= gas * price) return;
  throw new Error(
    `nothing was deployed: ${address} has ${formatEther(balance)} ether on chain ${by.chainId} and needs about ${formatEther(gas * price)} (${gas} gas at ${formatGwei(price)} gwei). Send it there, then run this again.`,
  );
}

export async function priceOf({ client }: Deployer): Promise<bigint> {
  const { baseFeePerGas } = await client.getBlock();
  return baseFeePerGas === null
    ? client.getGasPrice()
    : (await client.estimateFeesPerGas()).maxFeePerGas;
}
