import { toHex } from "viem";
import { type Engine, MODES, type Standard, type VaultId } from "../../core/index.ts";
import { SourceHistory } from "../../core/mirror/history.ts";
import type { L1Reader } from "../../core/ports.ts";
import type { KzgThread } from "../../core/protocol/kzg/kzg-thread.ts";
import { OPERATOR } from "../../scripts/sandbox/accounts.ts";
import { all } from "../core/engine/fixture.ts";
import { FaultyNode, type NodeFault } from "../faulty-node.ts";
import {
  CONFIRMATIONS,
  connectFar,
  createMirrorWorld,
  type MirrorWorld,
  newMirrorSettler,
} from "../mirror/fixture.ts";
import { dying, numbers, SickCommittee } from "./campaign-faults.ts";
import { compare, settle } from "./campaign-outcome.ts";
import { at, type Chain, MATURITY } from "./fixture.ts";

const NODE_FAULTS: readonly NodeFault[] = ["refused", "lostAnswer", "sentTwice", "dropped", "down"];
const FAULTS = [
  ...NODE_FAULTS,
  "reorganised",
  "killed",
  "broke",
  "membersGone",
  "membersLie",
] as const;
export type Fault = (typeof FAULTS)[number];

const FEES = { replaceAfterMs: 40 };

export interface CampaignReport {
  readonly steps: number;
  readonly injected: Readonly<Record<Fault, number>>;
  readonly requestsStruck: number;
  readonly roundsFailed: number;
  readonly vaults: number;
  /** Numbers for each chain: the state's own, then the mirror's. */
  readonly withdrawals: readonly number[];
  readonly batches: number;
  /** The number of batches in blobs. */
  readonly inBlobs: number;
}

/** A chain with tokens, and what pays them there. */
export interface Place {
  readonly chain: MirrorWorld["far"] | Chain;
  readonly node: FaultyNode;
  readonly portal: Pick<L1Reader, "settlement" | "withdrawn">;
  readonly assets: ReadonlyMap<Standard, string>;
  readonly tokens: ReadonlyMap<
    Standard,
    { readonly address: `0x${string}`; readonly quantum: bigint }
  >;
  /** The ids of the campaign's withdrawals. */
  readonly withdrawals: string[];
}

export interface AskedVault {
  readonly place: Place;
  readonly standard: Standard;
  readonly tokenId: bigint;
  amount: bigint;
  withdrawn: bigint;
}

/** The campaign asked these of the engine, and must find them on its chains. */
export interface Asked {
  readonly near: MirrorWorld["near"];
  readonly places: readonly Place[];
  readonly vaults: Map<VaultId, AskedVault>;
}

/**
 * Mints and withdraws tokens of two chains through one fault after another, on either, then lets
 * everything heal, settles, and compares engine and chains to the last unit. The same seed does the
 * same. Rejects when something was lost, minted twice or left behind.
 *
 * @param kzg - puts the rollup of the state's own chain into blobs; the other chain's goes into
 *   calldata
 */
export async function campaign(
  steps: number,
  seed: number,
  kzg?: KzgThread,
): Promise<CampaignReport> {
  const fees = { ...FEES, ...(kzg && { kzg }) };
  const random = numbers(seed);
  const committee = new SickCommittee();
  let faulty: FaultyNode | undefined;
  const request = (chain: Chain) => {
    faulty ??= new FaultyNode(chain);
    return faulty.request;
  };
  const world = await createMirrorWorld({
    member: committee.member,
    request,
    fees,
    ...(kzg && { kzg }),
  });
  const { near, far } = world;
  const { engine } = near;
  const places = placesOf(world, faulty as unknown as FaultyNode);
  const [home, there] = places;
  const asked: Asked = { near, places, vaults: new Map() };
  const injected = Object.fromEntries(FAULTS.map((fault) => [fault, 0])) as Record<Fault, number>;
  let roundsFailed = 0;
  let later = 0;
  /**
   * Each round is a minute after the one before, so that what waits to be tried again is tried
   * again.
   */
  const clock = () => Date.now() + later;
  /**
   * A new process of the operator: nothing of the old one's memory is left but what the engine has
   * on disk.
   */
  const start = async (of: Engine = engine) => {
    const l1 = await near.chain.connectOperator(home.node.request, fees);
    const mirror = await newMirrorSettler(world, {
      engine: of,
      connect: () => connectFar(world, there.node.request, FEES),
      source: new SourceHistory(l1, near.chain.settlement.deployedAtBlock),
      committee: {
        members: world.attesters.map(committee.attester),
        threshold: 3,
        timeoutMs: 20_000,
      },
      clock,
    });
    return [
      near.chain.newSettler({
        engine: of,
        l1,
        committee: near.committee,
        clock,
        mirrors: [mirror],
      }),
      mirror,
    ];
  };
  let settlers = await start();
  const round = async () => {
    later += 60_000;
    for (const settler of settlers) await settler.round().catch(() => roundsFailed++);
  };

  try {
    for (let step = 0; step < steps; step++) {
      await askForMints(asked, random, step);
      await askForWithdrawals(asked, random);
      const fault = at(FAULTS, random(FAULTS.length));
      const { chain, node } = at(places, random(places.length));
      injected[fault]++;
      const snapshot = fault === "reorganised" ? await chain.rpc("evm_snapshot") : null;
      // A node that forgets every transaction for ever lets no round end, so it takes some.
      if (isNodeFault(fault)) node.plan(fault, (fault === "dropped" ? 2 : 1) + random(6));
      if (fault === "membersGone" || fault === "membersLie")
        committee.sicken(fault === "membersLie", random);
      if (fault === "broke") await chain.rpc("hardhat_setBalance", [OPERATOR.address, "0x1"]);
      if (fault === "killed") settlers = await start(dying(engine, 1 + random(12)));
      await round();
      node.heal();
      committee.heal();
      if (fault === "broke")
        await chain.rpc("hardhat_setBalance", [OPERATOR.address, toHex(10n ** 24n)]);
      if (fault === "killed") settlers = await start();
      if (snapshot !== null) {
        await chain.rpc("evm_revert", [snapshot]);
        await chain.mine(random(5));
      }
      for (const place of places) {
        if (random(4) === 0) await place.chain.passSeconds(MATURITY);
        if (random(3) === 0) await place.chain.mine(1 + random(30));
      }
    }
    await settle(asked, round, async () => {
      await near.chain.mine(Number(CONFIRMATIONS));
      for (const { chain } of places) await chain.passSeconds(MATURITY);
    });
    await compare(asked, near.l1);
    const { countValidium, countRollup } = engine.batches.state();
    return {
      steps,
      injected,
      requestsStruck: home.node.struck + there.node.struck,
      roundsFailed,
      vaults: asked.vaults.size,
      withdrawals: places.map(({ withdrawals }) => withdrawals.length),
      batches: countValidium + countRollup,
      inBlobs: (await all(engine.batches.list())).filter(({ kind }) => kind === "blobs").length,
    };
  } finally {
    await world.close();
  }

  function placesOf({ mirror }: MirrorWorld, node: FaultyNode): readonly [Place, Place] {
    const nearTokens = new Map(near.chain.tokens.map((token) => [token.standard, token]));
    const farTokens = new Map(
      [...far.tokens].map(([standard, address]) => [standard, { address, quantum: 10n }]),
    );
    return [
      {
        chain: near.chain,
        node,
        portal: near.l1,
        assets: near.assets,
        tokens: nearTokens,
        withdrawals: [],
      },
      {
        ...{ chain: far, node: new FaultyNode(far), portal: mirror },
        ...{ assets: far.assets, tokens: farTokens, withdrawals: [] },
      },
    ];
  }
}

function isNodeFault(fault: Fault): fault is NodeFault {
  return NODE_FAULTS.some((each) => each === fault);
}

async function askForMints(
  { near, places, vaults }: Asked,
  random: (below: number) => number,
  step: number,
) {
  for (let i = 0; i <= random(3); i++) {
    const place = at(places, random(places.length));
    const standard = at([...place.assets.keys()], random(place.assets.size));
    const mode = at(MODES, random(2));
    const tokenId =
      standard === "erc20" ? 0n : standard === "erc721" ? BigInt(step * 10 + i) : BigInt(random(5));
    const amount = standard === "erc721" ? 1 : 1 + random(1_000);
    const text = standard === "erc20" ? "" : `${tokenId}`;
    const vaultId = await { ...near, assets: place.assets }.mint(standard, mode, text, amount);
    const known = vaults.get(vaultId);
    if (known === undefined)
      vaults.set(vaultId, { place, standard, tokenId, amount: BigInt(amount), withdrawn: 0n });
    else known.amount += BigInt(amount);
  }
}

/**
 * Asks for some of what lies in a committed vault; what the engine refuses for good reasons is not
 * counted.
 */
async function askForWithdrawals(
  { near, vaults }: Asked,
  random: (below: number) => number,
): Promise<void> {
  const ids = [...vaults.keys()];
  for (let i = 0; i < Math.min(2, ids.length); i++) {
    const vaultId = at(ids, random(ids.length));
    const vault = vaults.get(vaultId);
    const { availableBalance } = await near.engine.vaults.get(
      near.principal.applicationId,
      vaultId,
    );
    if (vault === undefined || availableBalance === 0n) continue;
    const quantity =
      vault.standard === "erc721" ? 1n : 1n + BigInt(random(Number(availableBalance)));
    const { portal, withdrawals } = vault.place;
    try {
      const asked = await near.requestWithdrawal(vaultId, quantity, undefined, portal.settlement);
      withdrawals.push(asked.withdrawalId);
      vault.withdrawn += quantity;
    } catch (error) {
      // One withdrawal of a vault at a time, and of sealed ones only.
      const { code = "" } = error as { code?: string };
      if (code !== "withdrawal_pending" && code !== "proof_not_ready") throw error;
    }
  }
}
