import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { FastifyInstance } from "fastify";
import { MemoryLevel } from "memory-level";
import { createPublicClient } from "viem";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { collectAttestations } from "../../core/committee/collector.ts";
import { type Engine, openEngine } from "../../core/index.ts";
import { contractTag } from "../../core/internal.ts";
import type { connectL1 } from "../../core/l1/connect.ts";
import type { Settler } from "../../core/settlement/settler.ts";
import { deploySettlement } from "../../scripts/deploy/settlement.ts";
import { deployToken } from "../../scripts/deploy/token.ts";
import { ADMIN, COMMITTEE, GUARDIAN, OPERATOR, THRESHOLD } from "../../scripts/sandbox/accounts.ts";
import { buildServer } from "../../server/app.ts";
import { buildRouter } from "../../server/shards/router.ts";
import { findShards } from "../../server/shards/shard.ts";
import { type Chain, connectOperator, createChain, mine, newSettler, openMembers } from "../settlement/fixture.ts";

const OWNER = `0x${"70".repeat(20)}` as const;

/** An engine with its store, its contract and its token, the server before it, and what a client of it holds. */
interface Shard {
  readonly engine: Engine;
  readonly l1: Awaited<ReturnType<typeof connectL1>>;
  readonly settler: Settler;
  readonly app: FastifyInstance;
  readonly url: string;
  readonly key: string;
  readonly keyId: string;
  readonly userId: string;
  readonly assetId: string;
  close(): Promise<void>;
}

async function startShard(chain: Chain): Promise<Shard> {
  const l1 = await connectOperator(chain);
  const engine = await openEngine({
    store: new MemoryLevel(),
    settlement: l1.settlement,
    environment: "sandbox",
    createIfMissing: true,
  });
  const members = await openMembers(l1);
  const settler = newSettler(
    { engine, l1, committee: collectAttestations({ members, threshold: THRESHOLD, l1 }) },
    chain,
  );
  const { applicationId } = await engine.applications.create({ name: chain.settlement.address });
  const { key, secret } = await engine.keys.issue(applicationId);
  const { userId } = await engine.users.create(applicationId, { ownerAddress: OWNER });
  const { address, name, symbol } = chain.tokens[0] as Chain["tokens"][number];
  const { assetId } = await engine.assets.add({ standard: "erc721", contractAddress: address, name, symbol });
  await engine.assets.whitelist(assetId);
  await engine.operator.recordRegistered(assetId);
  await engine.assets.enable(applicationId, assetId);
  const app = await buildServer({ engine, trustedProxies: ["127.0.0.1"] });
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  const close = async () => {
    await app.close();
    await engine.close();
    for (const member of members) await member.close();
  };
  return { engine, l1, settler, app, url, key: secret, keyId: key.keyId, userId, assetId, close };
}

/** The chain with another settlement contract on it, and a token that this one mints: an ERC-721 asset has one home. */
async function withOwnContract(chain: Chain): Promise<Chain> {
  const settlement = await deploySettlement(chain.by, {
    admin: ADMIN.address,
    guardian: GUARDIAN.address,
    operator: OPERATOR.address,
    committee: COMMITTEE.map(({ address }) => address),
    threshold: THRESHOLD,
    changeDelay: 60n,
    maturity: 100n,
  });
  const token = { standard: "erc721", name: "Shields", symbol: "SHLD", admin: ADMIN.address } as const;
  const client = createPublicClient({ transport: chain.transport, pollingInterval: 5, cacheTime: 0 });
  const tokens = [await deployToken(chain.by, settlement.address, token)];
  // Nothing is minted of a token before its registration is final.
  await mine(chain, 20);
  return { ...chain, client, settlement, tokens };
}

describe("two shards behind one address", () => {
  let chain: Chain;
  let shards: [Shard, Shard];
  let router: FastifyInstance;
  let api: string;

  beforeAll(async () => {
    chain = await createChain();
    shards = [await startShard(await withOwnContract(chain)), await startShard(await withOwnContract(chain))];
    router = await buildRouter({ shards: await findShards(shards.map(({ url }) => url)), hosts: ["router.example"] });
    api = await router.listen({ host: "127.0.0.1", port: 0 });
  });

  afterAll(async () => {
    await router.close();
    for (const shard of shards) await shard.close();
    await chain.close();
  });

  const send = async (path: string, headers: Record<string, string>, body?: unknown) => {
    const reply = await fetch(`${api}${path}`, {
      headers: { ...headers, ...(body !== undefined && { "content-type": "application/json" }) },
      ...(body !== undefined && { method: "POST", body: JSON.stringify(body) }),
    });
    // biome-ignore lint/suspicious/noExplicitAny: whatever the server answered.
    return { status: reply.status, headers: reply.headers, body: (await reply.json()) as any };
  };
  const mintBody = ({ userId, assetId }: Shard, token: number) => ({
    users: [
      {
        userId,
        mints: [
          {
            mintingBlob: Buffer.from(`${token}`).toString("hex"),
            assetId,
            amount: 1,
            dataAvailabilityMode: "zk-rollup",
          },
        ],
      },
    ],
  });

  test("the router is refused to another site's name", async () => {
    const statusAt = async (host: string) => (await router.inject({ url: "/shards", headers: { host } })).statusCode;
    expect(await statusAt("attacker.example")).toBe(421);
    for (const host of ["router.example", "router", "127.0.0.1"]) expect(await statusAt(host)).toBe(200);
  });

  test("a key names its contract", () => {
    for (const { keyId, engine } of shards) expect(keyId).toContain(contractTag(engine.settlement.contract));
  });

  test("each key mints at its own shard, and each shard settles on its own contract", async () => {
    for (const [i, shard] of shards.entries()) {
      for (let token = 0; token <= i; token++) {
        const { status } = await send("/api/v1/mint", { "x-api-key": shard.key }, mintBody(shard, token));
        expect(status).toBe(200);
      }
    }
    for (const [i, shard] of shards.entries()) {
      await shard.settler.round();
      expect(await shard.l1.state()).toEqual({
        ...shard.engine.batches.state(),
        history: shard.engine.operator.history(),
      });
      const { body } = await send("/api/v1/vaults", { "x-api-key": shard.key });
      expect(body.data.map(({ status, assetId }: { status: string; assetId: string }) => [status, assetId])).toEqual(
        Array(i + 1).fill(["settled", shard.assetId]),
      );
      const path = `/shards/${shard.engine.settlement.contract}/public/v1/state`;
      expect((await send(path, {})).body.committed.commitment).toBe(shard.engine.batches.state().commitment);
    }
    expect(shards[0].engine.batches.state().commitment).not.toBe(shards[1].engine.batches.state().commitment);
  });

  test("a token of one shard is unknown at the other", async () => {
    const [one, other] = shards;
    const { status, body } = await send(
      "/api/v1/mint",
      { "x-api-key": other.key },
      mintBody({ ...one, userId: other.userId }, 9),
    );
    expect([status, body.code]).toEqual([404, "asset_not_found"]);
  });

  test("bearer tokens are issued and taken by the key's shard, asked for by form or by Basic", async () => {
    for (const shard of shards) {
      const form = { grant_type: "client_credentials", client_id: shard.keyId, client_secret: shard.key };
      const basic = Buffer.from(`${shard.keyId}:${shard.key}`).toString("base64");
      const asked = [
        fetch(`${api}/oauth/token`, { method: "POST", body: new URLSearchParams(form) }),
        fetch(`${api}/oauth/token`, {
          method: "POST",
          body: new URLSearchParams({ grant_type: "client_credentials" }),
          headers: { authorization: `Basic ${basic}` },
        }),
      ];
      for (const reply of await Promise.all(asked)) {
        const { access_token: token } = (await reply.json()) as { access_token: string };
        const { body } = await send("/api/v1/state", { authorization: `Bearer ${token}` });
        expect(body.contract).toBe(shard.engine.settlement.contract);
      }
    }
  });

  test("credentials that lead nowhere, or to two shards, are refused", async () => {
    const [one, other] = shards;
    const { body: token } = await fetch(`${api}/oauth/token`, {
      method: "POST",
      body: new URLSearchParams({ grant_type: "client_credentials", client_id: other.keyId, client_secret: other.key }),
    }).then(async (reply) => ({ body: (await reply.json()) as { access_token: string } }));
    const cases: Record<string, string>[] = [
      {},
      { "x-api-key": "nonsense" },
      { "x-api-key": one.key.replace(one.keyId, `ffff${one.keyId.slice(4)}`) },
      { "x-api-key": one.key.replace(one.keyId, other.keyId) },
      { authorization: "Bearer a.b.c" },
      { authorization: "Bearer " },
      { "x-api-key": one.key, authorization: `Bearer ${token.access_token}` },
    ];
    for (const headers of cases) {
      const { status, body } = await send("/api/v1/vaults", headers);
      expect([status, body.requestId.length > 0]).toEqual([401, true]);
    }
    expect((await send("/shards/0x00/public/v1/state", {})).status).toBe(404);
    expect((await send("/public/v1/state", {})).status).toBe(404);
    // The public part of a shard is no way to its other parts, and odd paths are no fault of the router.
    const publicPart = `/shards/${one.l1.settlement.contract}/public`;
    for (const path of ["/%5c..%5c..%5creadyz", "/..%2f..%2freadyz", "/%25zz", "/%252e%252e/%252e%252e/readyz"]) {
      expect([400, 404], path).toContain((await send(publicPart + path, {})).status);
    }
    expect((await send("/shards", {})).body.shards).toHaveLength(2);
  });

  test("shards of one contract cannot stand behind one address", async () => {
    await expect(findShards([shards[0].url, shards[0].url])).rejects.toThrow("cannot be told apart");
  });

  test("the router waits for a server that starts", async () => {
    const [one] = shards;
    let asked = 0;
    const starting = createServer(async (_, reply) => {
      asked++;
      if (asked < 3) return reply.writeHead(503).end();
      reply.end(await (await fetch(`${one.url}/public/v1/state`)).text());
    });
    await once(starting.listen(0, "127.0.0.1"), "listening");
    const { port } = starting.address() as AddressInfo;
    const { contract } = one.l1.settlement;
    const found = await findShards([`http://127.0.0.1:${port}`]);
    expect([asked, found.get(contractTag(contract))?.contract]).toEqual([3, contract]);
    starting.close();
    const gone = findShards([`http://127.0.0.1:${port}`]);
    await expect(gone).rejects.toThrow("does not answer as a Mintmark server");
  });

  test("one that is down takes nobody along", async () => {
    const [one, other] = shards;
    expect((await send("/readyz", {})).status).toBe(200);
    await other.app.close();
    const down = await send("/api/v1/mint", { "x-api-key": other.key }, mintBody(other, 77));
    expect([down.status, down.body.code]).toEqual([503, "not_ready"]);
    expect((await send("/api/v1/mint", { "x-api-key": one.key }, mintBody(one, 77))).status).toBe(200);
    const { status, body } = await send("/readyz", {});
    expect([status, body.errors[0].pointer]).toEqual([503, `/shards/${other.engine.settlement.contract}`]);
  });
});
