import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { erc20Abi, toHex } from "viem";
import { openEngine, type Uuid } from "../../core/index.ts";
import { withdrawalListTypedData } from "../../core/protocol/typed-data.ts";
import { USERS } from "../../scripts/sandbox/accounts.ts";
import { all, openTest } from "../core/engine/fixture.ts";
import { listOfOne } from "../one-withdrawal.ts";
import { at, seed } from "../settlement/fixture.ts";
import type { MemberProcess } from "./member-process.ts";
import { type MembersWorld, operatorOf, startMembersWorld } from "./member-world.ts";
import { OperatorProcess } from "./operator-process.ts";

export interface KillReport {
  readonly rounds: number;
  /** On L1, by kind. */
  readonly batches: Readonly<Record<string, number>>;
  readonly operatorKills: number;
  readonly memberKills: number;
  /** Requests that were sent again under their idempotency key. */
  readonly repeated: number;
  readonly mints: number;
  readonly withdrawals: number;
}

const OWNER = USERS[0];
const TOKENS_A_ROUND = 5;

/** The test's view of the running system: it speaks HTTP like any other client. */
class Client {
  repeated = 0;
  readonly #url: string;
  readonly #key: string;

  constructor(url: string, key: string) {
    this.#url = url;
    this.#key = key;
  }

  /**
   * Sends until there is an answer; a POST goes under one idempotency key, so it counts once
   * however often it arrives.
   */
  // biome-ignore lint/suspicious/noExplicitAny: whatever the server answered.
  async send(path: string, body?: unknown): Promise<any> {
    const headers = {
      "x-api-key": this.#key,
      ...(body !== undefined && {
        "content-type": "application/json",
        "idempotency-key": randomUUID(),
      }),
    };
    for (;;) {
      try {
        const reply = await fetch(`${this.#url}${path}`, {
          headers,
          ...(body !== undefined && { method: "POST", body: JSON.stringify(body) }),
          signal: AbortSignal.timeout(20_000),
        });
        if (reply.status < 500) return { status: reply.status, body: await reply.json() };
      } catch {
        // Dead for the moment.
      }
      this.repeated++;
      await sleep(100);
    }
  }
}

/**
 * Real processes on a real chain: while a client mints and withdraws over HTTP, the operator and
 * the members are killed one after another at random moments and started again. Rejects unless
 * everything that was acknowledged ends on L1, once.
 */
export async function killCampaign(
  rounds: number,
  random: (below: number) => number,
): Promise<KillReport> {
  const world = await startMembersWorld();
  const store = join(world.folder, "operator");
  const { key, assets } = await furnish(store, world);
  const start = operatorOf(world, store);
  let operator = await OperatorProcess.start(start);
  const client = new Client(operator.url, key);
  const kills = { operator: 0, member: 0 };
  const asked: { vaultId: string; quantity: bigint }[] = [];
  let minted = 0n;
  try {
    for (let round = 0; round < rounds; round++) {
      const minting = mintRound(client, assets, round);
      await sleep(random(1_500));
      if (random(2) === 0) {
        const restart = await operator.kill();
        kills.operator++;
        operator = await restart();
      } else {
        const victims = new Set([1 + random(4), 1 + random(4)]);
        const restarts = await Promise.all(
          [...victims].map((index) => killMember(world.processes, index)),
        );
        kills.member += victims.size;
        await sleep(random(1_500));
        for (const restart of restarts) await restart();
      }
      const points = await minting;
      minted += 10n;
      if (round % 2 === 0) asked.push(await withdraw(client, world, points, 4n));
    }
    await finish(client, rounds * (TOKENS_A_ROUND + 1), asked);
    const withdrawn = asked.reduce((sum, { quantity }) => sum + quantity, 0n);
    const read = { abi: erc20Abi, functionName: "balanceOf", args: [OWNER.owner.address] } as const;
    const onL1 = await world.client.readContract({ ...read, address: at(world.tokens, 0).address });
    if (onL1 !== withdrawn * 1_000n)
      throw new Error(`${onL1} base units on L1, ${withdrawn * 1_000n} were withdrawn`);
    const { body } = await client.send(`/api/v1/users/${OWNER.userId}/balances`);
    const balance = body.data.find(({ assetId }: { assetId: Uuid }) => assetId === assets.erc20);
    if (balance.amount !== `${minted}` || balance.withdrawn !== `${withdrawn}`) {
      throw new Error(`${JSON.stringify(balance)}: ${minted} were minted, ${withdrawn} withdrawn`);
    }
    await operator.stop();
    const batches = await requireOnce(store, world);
    return {
      rounds,
      batches,
      operatorKills: kills.operator,
      memberKills: kills.member,
      repeated: client.repeated,
      mints: rounds * (TOKENS_A_ROUND + 1),
      withdrawals: asked.length,
    };
  } catch (error) {
    throw new Error(
      `after ${JSON.stringify(kills)}; the operator said:\n${operator.output.slice(-3_000)}`,
      {
        cause: error,
      },
    );
  } finally {
    await operator.stop();
    await world.close();
  }
}

/**
 * The store follows from its journal, and L1 has each of its batches, once. Returns their number by
 * kind.
 */
export async function requireOnce(
  store: string,
  { l1, settlement }: Pick<MembersWorld, "l1" | "settlement">,
): Promise<Record<string, number>> {
  await using engine = await openEngine({
    store,
    settlement: l1.settlement,
    environment: "sandbox",
  });
  const { problems } = await engine.operator.verify();
  if (problems.length > 0)
    throw new Error(`the store does not follow from its journal: ${problems.join("; ")}`);
  const events = await l1.events(settlement.deployedAtBlock, await l1.blockNumber());
  const onL1 = events.flatMap((event) =>
    event.type === "batchCommitted" ? [`${event.mode}-${event.batchNumber}`] : [],
  );
  const batches = (await all(engine.batches.list())).filter(({ status }) => status !== "open");
  const sealed = batches.map(({ mode, batchNumber }) => `${mode}-${batchNumber}`);
  if (`${onL1.toSorted()}` !== `${sealed.toSorted()}`)
    throw new Error(`L1 has ${onL1}, the store ${sealed}`);
  const kinds: Record<string, number> = {};
  for (const { kind } of batches) kinds[kind] = (kinds[kind] ?? 0) + 1;
  return kinds;
}

/** An application with a key, users and enabled assets in the operator's store. */
async function furnish(store: string, world: MembersWorld) {
  await using engine = await openTest(store, { settlement: world.l1.settlement });
  const { principal, assets } = await seed(engine, world);
  const { secret } = await engine.keys.issue(principal.applicationId);
  return {
    key: secret,
    assets: { erc20: assets.get("erc20") ?? "", erc721: assets.get("erc721") ?? "" },
  };
}

/** Some tokens in one mode and points in the other; resolves with the vault of the points. */
async function mintRound(
  client: Client,
  assets: { erc20: Uuid; erc721: Uuid },
  round: number,
): Promise<string> {
  const [one, other] = round % 2 === 0 ? ["validium", "zk-rollup"] : ["zk-rollup", "validium"];
  const swords = Array.from({ length: TOKENS_A_ROUND }, (_, i) => ({
    mintingBlob: toHex(`${round * TOKENS_A_ROUND + i}`),
    assetId: assets.erc721,
    amount: 1,
    dataAvailabilityMode: one,
  }));
  const points = {
    mintingBlob: "",
    assetId: assets.erc20,
    amount: 10,
    dataAvailabilityMode: other,
  };
  for (const mints of [swords, [points]]) {
    const { status, body } = await client.send("/api/v1/mint", {
      users: [{ userId: OWNER.userId, mints }],
    });
    if (status !== 200) throw new Error(`minting: ${status} ${JSON.stringify(body)}`);
    if (mints.length === 1) return body.vaults[0].vaultId;
  }
  throw new Error("no points were minted");
}

async function killMember(processes: MemberProcess[], index: number): Promise<() => Promise<void>> {
  const restart = await at(processes, index).kill();
  return async () => {
    processes[index] = await restart();
  };
}

/**
 * Waits until the vault can be withdrawn from, and asks for some of it with the owner's signature.
 */
async function withdraw(client: Client, { l1 }: MembersWorld, vaultId: string, quantity: bigint) {
  const deadline = BigInt(Math.floor(Date.now() / 1000) + 86_400);
  const message = {
    vaultId: BigInt(vaultId),
    withdrawnBefore: 0n,
    quantity,
    recipient: OWNER.owner.address,
    deadline,
  };
  const signature = await OWNER.owner.signTypedData(
    withdrawalListTypedData(l1.settlement, listOfOne(message)),
  );
  for (;;) {
    const { status, body } = await client.send("/api/v1/withdrawals", {
      vaults: [{ vaultId, quantity: `${quantity}` }],
      deadline: `${deadline}`,
      signature,
    });
    // The answer of an attempt before may have been lost: then its reservation stands.
    if (status < 300 || body.code === "withdrawal_pending") return { vaultId, quantity };
    if (body.code !== "proof_not_ready")
      throw new Error(`withdrawing: ${status} ${JSON.stringify(body)}`);
    await sleep(200);
  }
}

/** Everything that was acknowledged is settled, and what was asked for is withdrawn. */
async function finish(
  client: Client,
  transactions: number,
  asked: readonly { vaultId: string; quantity: bigint }[],
) {
  const deadline = Date.now() + 120_000;
  for (;;) {
    const statuses = new Map<string, number>();
    for (let cursor = ""; ; ) {
      const { body } = await client.send(`/api/v1/transactions?type=mint&limit=100${cursor}`);
      for (const { status } of body.data) statuses.set(status, (statuses.get(status) ?? 0) + 1);
      if (!body.pagination.hasMore) break;
      cursor = `&cursor=${body.pagination.nextCursor}`;
    }
    const onL1 = (statuses.get("settled") ?? 0) + (statuses.get("finalized") ?? 0);
    const vaults = await Promise.all(
      asked.map(({ vaultId }) => client.send(`/api/v1/vaults/${vaultId}`)),
    );
    const paid = vaults.filter(
      ({ body }, i) => body.withdrawnBalance === `${asked[i]?.quantity}`,
    ).length;
    if (onL1 === transactions && paid === asked.length) return;
    if (Date.now() > deadline) {
      const counts = JSON.stringify(Object.fromEntries(statuses));
      throw new Error(
        `${transactions} mints: ${counts}; ${paid} of ${asked.length} withdrawals on L1`,
      );
    }
    await sleep(500);
  }
}
