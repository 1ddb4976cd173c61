import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MemoryLevel } from "memory-level";
import { type Hex, http, toHex } from "viem";
import { collectAttestations } from "../../core/committee/collector.ts";
import { RemoteMember } from "../../core/committee/member-service.ts";
import type { Kzg } from "../../core/index.ts";
import { connectL1 } from "../../core/l1/connect.ts";
import { Settler } from "../../core/settlement/settler.ts";
import { deploy } from "../../scripts/deploy/deploy.ts";
import { recordPath } from "../../scripts/deploy/record.ts";
import type { SettlementConfig } from "../../scripts/deploy/settlement.ts";
import type { TokenConfig } from "../../scripts/deploy/token.ts";
import { COMMITTEE, OPERATOR, THRESHOLD } from "../../scripts/sandbox/accounts.ts";
import { startChain } from "../../scripts/sandbox/chain.ts";
import { openTest } from "../core/engine/fixture.ts";
import { adminOver, at, seed, TERMS, TOKENS } from "../settlement/fixture.ts";
import { MemberProcess } from "./member-process.ts";
import type { OperatorOptions } from "./operator-process.ts";

/** Seconds; long enough that the members see a duplicate first, short enough to wait for. */
const MATURITY = 3n;

/**
 * A chain reachable over HTTP, the contracts, an engine, and a committee of processes: five, of
 * which three must sign.
 */
export async function startMembersWorld({
  members = COMMITTEE,
  threshold = THRESHOLD,
  kzg,
  config = {},
  tokens: wanted = TOKENS,
}: {
  readonly members?: typeof COMMITTEE;
  readonly threshold?: number;
  /** Puts the rollup into blobs. */
  readonly kzg?: Kzg;
  /** The settlement contract's terms. */
  readonly config?: Partial<SettlementConfig>;
  /** Default {@link TOKENS}. */
  readonly tokens?: readonly TokenConfig[];
} = {}) {
  const stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "mintmark-members-"));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const chain = await startChain("local", 0);
  stack.defer(() => chain.stop());
  const by = await adminOver(http(chain.rpcUrl));
  const { settlement, tokens } = await deploy(by, {
    record: recordPath(folder, by.chainId),
    tokens: wanted,
    settlement: {
      ...TERMS,
      committee: members.map(({ address }) => address),
      threshold,
      maturity: MATURITY,
      ...config,
    },
  });
  const l1 = await connectL1({
    rpc: chain.rpcUrl,
    contract: settlement.address,
    account: OPERATOR,
    finality: { confirmations: 0n },
    pollingMs: 20,
    ...(kzg && { kzg }),
  });
  const engineStore = new MemoryLevel<Uint8Array, Uint8Array>();
  const engine = await openTest(engineStore, { settlement: l1.settlement, ...(kzg && { kzg }) });
  stack.defer(() => engine.close());

  const processes: MemberProcess[] = [];
  stack.defer(async () => {
    await Promise.all(processes.map((process) => process.stop()));
  });
  const startMember = (index: number, peers: readonly string[]) => {
    return MemberProcess.start({
      key: toHex(at(members, index).getHdKey().privateKey ?? new Uint8Array()),
      store: join(folder, `member-${index}`),
      rpcUrl: chain.rpcUrl,
      contract: settlement.address,
      fromBlock: settlement.deployedAtBlock,
      port: 0,
      peers,
    });
  };
  // The first one is the others' peer; it never fails here.
  const first = await startMember(0, []);
  processes.push(first);
  processes.push(
    ...(await Promise.all(members.slice(1).map((_, i) => startMember(i + 1, [first.url])))),
  );

  /** A settler over members at these addresses; by default the five processes. */
  function settlerOver(
    urls: readonly string[] = processes.map(({ url }) => url),
    timeoutMs = 20_000,
  ) {
    const committee = collectAttestations({
      members: members.map(({ address }, index) => {
        return new RemoteMember({
          address,
          url: at(urls, index),
          operator: OPERATOR,
          settlement: l1.settlement,
        });
      }),
      threshold,
      l1,
      timeoutMs,
      earlierBatch: (batchNumber) => engine.batches.getSealed("validium", batchNumber),
    });
    const { deployedAtBlock: fromBlock } = settlement;
    return {
      committee,
      settler: new Settler({ engine, l1, committee, fromBlock, sealing: { maxAgeMs: 0 } }),
    };
  }

  return {
    rpcUrl: chain.rpcUrl,
    client: by.client,
    settlement,
    tokens,
    l1,
    engine,
    engineStore,
    processes,
    folder,
    settlerOver,
    ...(await seed(engine, { tokens })),
    close: () => stack.disposeAsync(),
  };
}

export type MembersWorld = Awaited<ReturnType<typeof startMembersWorld>>;

/** How an operator of this world is started, over a store of its own. */
export function operatorOf(
  { rpcUrl, settlement, processes }: MembersWorld,
  store: string,
): OperatorOptions {
  return {
    store,
    rpcUrl,
    contract: settlement.address,
    fromBlock: settlement.deployedAtBlock,
    members: processes.map(({ url }) => url),
    port: 0,
  };
}

/** The data that a service serves of a batch; null when it has none. */
export async function servedData(url: string, batchId: string): Promise<Hex | null> {
  const response = await fetch(`${url}/public/v1/batches/${batchId}/data`);
  return response.ok ? toHex(new Uint8Array(await response.arrayBuffer())) : null;
}
