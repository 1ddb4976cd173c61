import { erc20Abi, erc721Abi, parseAbi, toHex } from "viem";
import type { MemberClient } from "../../core/committee/collector.ts";
import { type Engine, MODES, STANDARDS, type Standard, type VaultId } from "../../core/index.ts";
import { OPERATOR } from "../../scripts/sandbox/accounts.ts";
import { FaultyChain, type NodeFault } from "./faulty-chain.ts";
import {
  at,
  type Chain,
  connectOperator,
  createWorld,
  MATURITY,
  mine,
  mint,
  newSettler,
  passSeconds,
  requestWithdrawal,
  rpc,
  type World,
} from "./fixture.ts";

const NODE_FAULTS: readonly NodeFault[] = ["refused", "lostAnswer", "sentTwice", "dropped", "down"];
const FAULTS = [...NODE_FAULTS, "reorganised", "killed", "broke", "membersGone", "membersLie"] as const;
export type Fault = (typeof FAULTS)[number];

export interface CampaignReport {
  readonly steps: number;
  readonly injected: Readonly<Record<Fault, number>>;
  readonly requestsStruck: number;
  readonly roundsFailed: number;
  readonly vaults: number;
  readonly withdrawals: number;
  readonly batches: number;
}

/** What the campaign asked of the engine, and must find on L1. */
interface Asked {
  readonly vaults: Map<
    VaultId,
    { readonly standard: Standard; readonly tokenId: bigint; amount: bigint; withdrawn: bigint }
  >;
  withdrawals: string[];
}

/**
 * Mints and withdraws through one fault after another, then lets everything heal, settles, and compares engine and L1 to the last unit.
 * The same seed does the same. Rejects when something was lost, minted twice or left behind.
 */
export async function campaign(steps: number, seed: number): Promise<CampaignReport> {
  const random = numbers(seed);
  const sick = new Set<number>();
  let lying = false;
  const member = (it: MemberClient, index: number): MemberClient => ({
    address: it.address,
    async sign(batch, epoch, signal) {
      if (!sick.has(index)) return it.sign(batch, epoch, signal);
      if (!lying) throw new Error("connection refused");
      return it
        .sign({ ...batch, batchRoot: batch.dataHash, dataHash: batch.batchRoot }, epoch, signal)
        .catch(() => "0x");
    },
    ...(it.nextBatch && { nextBatch: it.nextBatch.bind(it) }),
  });
  let faulty: FaultyChain | undefined;
  const through = (chain: Chain) => {
    faulty ??= new FaultyChain(chain);
    return faulty.request;
  };
  const world = await createWorld({ member, request: through, fees: { replaceAfterMs: 40 } });
  const node = faulty as unknown as FaultyChain;
  const { chain, engine, committee } = world;
  const injected = Object.fromEntries(FAULTS.map((fault) => [fault, 0])) as Record<Fault, number>;
  const asked: Asked = { vaults: new Map(), withdrawals: [] };
  let roundsFailed = 0;
  let later = 0;
  /** Each round is a minute after the one before, so that what waits to be tried again is tried again. */
  const clock = () => Date.now() + later;
  let settler = newSettler({ engine, l1: world.l1, committee, clock }, chain);
  const round = async () => {
    later += 60_000;
    await settler.round().catch(() => roundsFailed++);
  };
  /** A new process of the operator: nothing of the old one's memory is left but what the engine has on disk. */
  const restart = async (of: Engine = engine) => {
    settler = newSettler(
      { engine: of, l1: await connectOperator(chain, node.request, { replaceAfterMs: 40 }), committee },
      chain,
    );
  };

  try {
    for (let step = 0; step < steps; step++) {
      await askForMints(world, asked, random, step);
      await askForWithdrawals(world, asked, random);
      const fault = at(FAULTS, random(FAULTS.length));
      injected[fault]++;
      const snapshot = fault === "reorganised" ? await rpc(chain, "evm_snapshot") : null;
      // A node that forgets every transaction for ever lets no round end, so it takes some.
      if (isNodeFault(fault)) node.plan(fault, (fault === "dropped" ? 2 : 1) + random(6));
      if (fault === "membersGone" || fault === "membersLie") {
        lying = fault === "membersLie";
        for (let index = 0; index <= random(4); index++) sick.add(random(5));
      }
      if (fault === "broke") await rpc(chain, "hardhat_setBalance", [OPERATOR.address, "0x1"]);
      if (fault === "killed") await restart(dying(engine, 1 + random(12)));
      await round();
      node.heal();
      sick.clear();
      if (fault === "broke") await rpc(chain, "hardhat_setBalance", [OPERATOR.address, toHex(10n ** 24n)]);
      if (fault === "killed") await restart();
      if (snapshot !== null) {
        await rpc(chain, "evm_revert", [snapshot]);
        await mine(chain, random(5));
      }
      if (random(4) === 0) await passSeconds(chain, MATURITY);
      if (random(3) === 0) await mine(chain, 1 + random(30));
    }
    await settle(world, asked, round, () => passSeconds(chain, MATURITY));
    await compare(world, asked);
    const { countValidium, countRollup } = engine.state();
    return {
      steps,
      injected,
      requestsStruck: node.struck,
      roundsFailed,
      vaults: asked.vaults.size,
      withdrawals: asked.withdrawals.length,
      batches: countValidium + countRollup,
    };
  } finally {
    await world.close();
  }
}

function isNodeFault(fault: Fault): fault is NodeFault {
  return NODE_FAULTS.some((each) => each === fault);
}

/** xorshift32; resolves each call to an integer below its argument. */
function numbers(seed: number): (below: number) => number {
  let state = seed | 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

/** The engine of a process that dies at its n-th change: from then on nothing answers. */
function dying(engine: Engine, atChange: number): Engine {
  let left = atChange;
  return new Proxy(engine, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      return (...args: readonly unknown[]) => {
        if (/^record|^seal$/.test(String(name))) left--;
        if (left <= 0) throw new Error("killed");
        return value.apply(target, args);
      };
    },
  });
}

async function askForMints(world: World, { vaults }: Asked, random: (below: number) => number, step: number) {
  for (let i = 0; i <= random(3); i++) {
    const standard = at(STANDARDS, random(3));
    const mode = at(MODES, random(2));
    const tokenId = standard === "erc20" ? 0n : standard === "erc721" ? BigInt(step * 10 + i) : BigInt(random(5));
    const amount = standard === "erc721" ? 1 : 1 + random(1_000);
    const vaultId = await mint(world, standard, mode, standard === "erc20" ? "" : `${tokenId}`, amount);
    const known = vaults.get(vaultId);
    if (known === undefined) vaults.set(vaultId, { standard, tokenId, amount: BigInt(amount), withdrawn: 0n });
    else known.amount += BigInt(amount);
  }
}

/** Asks for some of what lies in a committed vault; what the engine refuses for good reasons is not counted. */
async function askForWithdrawals(world: World, asked: Asked, random: (below: number) => number): Promise<void> {
  const ids = [...asked.vaults.keys()];
  for (let i = 0; i < Math.min(2, ids.length); i++) {
    const vaultId = at(ids, random(ids.length));
    const vault = asked.vaults.get(vaultId);
    const { availableBalance } = await world.engine.vault(world.principal.applicationId, vaultId);
    if (vault === undefined || availableBalance === 0n) continue;
    const quantity = vault.standard === "erc721" ? 1n : 1n + BigInt(random(Number(availableBalance)));
    try {
      asked.withdrawals.push((await requestWithdrawal(world, vaultId, quantity)).withdrawalId);
      vault.withdrawn += quantity;
    } catch (error) {
      // One withdrawal of a vault at a time, and of sealed ones only.
      const { code = "" } = error as { code?: string };
      if (code !== "withdrawal_pending" && code !== "proof_not_ready") throw error;
    }
  }
}

/** Everything is whole again: rounds until nothing is left to do. */
async function settle(world: World, asked: Asked, round: () => Promise<unknown>, mature: () => Promise<void>) {
  const { engine, principal } = world;
  for (let attempt = 0; attempt < 60; attempt++) {
    await mature();
    await round();
    const statuses = await Promise.all(
      asked.withdrawals.map(async (id) => (await engine.withdrawal(principal.applicationId, id)).status),
    );
    const state = JSON.stringify(await engine.committedState(), asText) === JSON.stringify(engine.state(), asText);
    if (state && statuses.every((status) => status === "settled" || status === "finalized")) return;
  }
  throw new Error("not everything was settled after sixty rounds without a fault");
}

function asText(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? `${value}` : value;
}

const erc1155Abi = parseAbi(["function balanceOf(address owner, uint256 id) view returns (uint256)"]);

/** Nothing lost, nothing minted twice: vault by vault, and token by token. */
async function compare(world: World, { vaults }: Asked): Promise<void> {
  const { engine, l1, chain, principal, users } = world;
  const owner = at(users, 0).owner.address;
  same("the state on L1", await l1.state(), engine.state());
  const onL1 = new Map<string, bigint>();
  for (const [vaultId, { standard, tokenId, amount, withdrawn }] of vaults) {
    const vault = await engine.vault(principal.applicationId, vaultId);
    same(`amount of vault ${vaultId}`, vault.amount, amount);
    same(`what was withdrawn of vault ${vaultId}`, vault.withdrawnBalance, withdrawn);
    same(`what L1 says was withdrawn of vault ${vaultId}`, await l1.withdrawn(vaultId, standard), withdrawn);
    const token = `${standard} ${tokenId}`;
    onL1.set(token, (onL1.get(token) ?? 0n) + withdrawn);
  }
  const [erc20, erc721, erc1155] = chain.tokens.map(({ address }) => address) as [
    `0x${string}`,
    `0x${string}`,
    `0x${string}`,
  ];
  const { client } = chain;
  for (const [token, withdrawn] of onL1) {
    const [standard, id = "0"] = token.split(" ");
    const tokenId = BigInt(id);
    if (standard === "erc20") {
      const balance = await client.readContract({
        abi: erc20Abi,
        address: erc20,
        functionName: "balanceOf",
        args: [owner],
      });
      same("the ERC-20 balance", balance, withdrawn * 1_000n);
    } else if (standard === "erc1155") {
      const read = { abi: erc1155Abi, address: erc1155, functionName: "balanceOf", args: [owner, tokenId] } as const;
      same(`the balance of item ${tokenId}`, await client.readContract(read), withdrawn);
    } else if (withdrawn === 1n) {
      const read = { abi: erc721Abi, address: erc721, functionName: "ownerOf", args: [tokenId] } as const;
      same(`the owner of token ${tokenId}`, await client.readContract(read), owner);
    }
  }
  const { problems } = await engine.verify();
  same("the problems that verify found", problems, []);
}

function same(what: string, found: unknown, expected: unknown): void {
  const [a, b] = [JSON.stringify(found, asText), JSON.stringify(expected, asText)];
  if (a !== b) throw new Error(`${what}: ${a}, expected ${b}`);
}
