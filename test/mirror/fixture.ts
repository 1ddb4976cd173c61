import { custom, type LocalAccount } from "viem";
import type { Standard, Uuid } from "../../core/index.ts";
import { readL1 } from "../../core/l1/connect.ts";
import type { FeeOptions } from "../../core/l1/fees.ts";
import { connectMirror } from "../../core/l1/mirror.ts";
import { MirrorAttester, SourceHistory } from "../../core/mirror/history.ts";
import { MirrorSettler, type MirrorSettlerOptions } from "../../core/settlement/mirror-settler.ts";
import { send } from "../../scripts/deploy/deployer.ts";
import { deployMirror } from "../../scripts/deploy/mirror.ts";
import { deployToken, type TokenConfig } from "../../scripts/deploy/token.ts";
import { ADMIN, COMMITTEE, OPERATOR, THRESHOLD } from "../../scripts/sandbox/accounts.ts";
import {
  adminOver,
  type Chain,
  createWorld,
  hardhat,
  MATURITY,
  readyAsset,
  type WorldOptions,
} from "../settlement/fixture.ts";

/**
 * Blocks above one that make it final on the source here, as for the settlement fixture's operator.
 */
export const CONFIRMATIONS = 20n;
const REGISTRY_VALUE: Readonly<Record<Standard, number>> = { erc20: 1, erc721: 2, erc1155: 3 };

const TOKENS: readonly TokenConfig[] = [
  { standard: "erc20", name: "Far points", symbol: "FPTS", quantum: 10n, admin: ADMIN.address },
  { standard: "erc721", name: "Far swords", symbol: "FSWRD", admin: ADMIN.address },
];

export type MirrorWorld = Awaited<ReturnType<typeof createMirrorWorld>>;

/**
 * Two chains of different ids in this process: the state, its engine and its committee on one; a
 * mirror, an ERC-20 and an ERC-721 on the other, both registered on both and enabled at the engine,
 * which knows the mirror, in place of the near ones. The engine has learnt that the other chain
 * opens blobs if `isAsked`.
 */
export async function createMirrorWorld({
  lockMinter = true,
  isAsked = true,
  ...options
}: WorldOptions & { lockMinter?: boolean; isAsked?: boolean } = {}) {
  const near = await createWorld(options);
  const { chain, engine } = near;
  const node = await hardhat("other");
  const { request } = node;
  // A refusal comes as an error that viem takes for a busy node: it need not wait before it asks
  // again.
  const transport = custom({ request }, { retryCount: 3, retryDelay: 1 });
  const by = await adminOver(transport);
  const config = {
    admin: ADMIN.address,
    sourceChainId: BigInt(chain.by.chainId),
    sourceContract: chain.settlement.address,
    committee: COMMITTEE.map(({ address }) => address),
    threshold: THRESHOLD,
    changeDelay: 60n,
    maturity: MATURITY,
  };
  const deployed = await deployMirror(by, config);
  const assets = new Map<Standard, Uuid>();
  const tokens = new Map<Standard, `0x${string}`>();
  for (const token of TOKENS) {
    const { standard, address, quantum, name, symbol } = await deployToken(by, deployed.address, {
      ...token,
      lockMinter,
    });
    const registration = [
      REGISTRY_VALUE[standard],
      BigInt(by.chainId),
      address,
      quantum,
      0,
    ] as const;
    await send(
      chain.by,
      "StateCommitment",
      chain.settlement.address,
      "registerAsset",
      registration,
    );
    const far = {
      standard,
      chainId: BigInt(by.chainId),
      contractAddress: address,
      quantum,
      name,
      symbol,
    };
    assets.set(standard, await readyAsset(engine, near.principal.applicationId, far));
    tokens.set(standard, address);
  }
  // Nothing is minted before its registrations are final.
  await chain.mine(Number(CONFIRMATIONS));
  await node.mine(Number(CONFIRMATIONS));
  const mirrorBy = (account: LocalAccount, contract = deployed.address) =>
    connectMirror({
      rpc: transport,
      contract,
      account,
      finality: { confirmations: 0n },
      pollingMs: 5,
    });
  const mirror = await mirrorBy(OPERATOR);
  await engine.operator.addMirror(mirror.settlement);
  if (isAsked) engine.operator.placeInBlobs(mirror.settlement.chainId, await mirror.opensBlobs());
  return {
    near,
    far: {
      ...node,
      client: by.client,
      by,
      config,
      assets,
      tokens,
      mirrorBy,
      contract: deployed.address,
      deployedAtBlock: deployed.deployedAtBlock,
    },
    mirror,
    source: await newHistory(chain),
    attesters: await Promise.all(
      COMMITTEE.map(async (member) => new MirrorAttester(member, await newHistory(chain))),
    ),
    async close() {
      await near.close();
      await node.close();
    },
  };
}

/**
 * Connects the operator to the mirror; `request` stands between it and the chain, so that a test
 * can break it.
 */
export function connectFar({ far }: MirrorWorld, request = far.request, fees: FeeOptions = {}) {
  return connectMirror({
    rpc: custom({ request }, { retryCount: 3, retryDelay: 1 }),
    contract: far.contract,
    account: OPERATOR,
    finality: { confirmations: CONFIRMATIONS },
    pollingMs: 5,
    ...fees,
  });
}

/** Brings withdrawals to the mirror, when it is told to. */
export async function newMirrorSettler(
  world: MirrorWorld,
  change: Partial<MirrorSettlerOptions> = {},
) {
  const { near, far, attesters } = world;
  return new MirrorSettler({
    engine: near.engine,
    connect: () => connectFar(world),
    source: await newHistory(near.chain),
    committee: { members: attesters, threshold: THRESHOLD, timeoutMs: 20_000 },
    fromBlock: far.deployedAtBlock,
    lagMs: 0,
    secondLookMs: 0,
    rereadMs: 0,
    ...change,
  });
}

/** The source as one more reader sees it. */
export async function newHistory(chain: Chain): Promise<SourceHistory> {
  const l1 = await readL1({
    rpc: chain.transport,
    contract: chain.settlement.address,
    finality: { confirmations: CONFIRMATIONS },
  });
  return new SourceHistory(l1, chain.settlement.deployedAtBlock);
}
