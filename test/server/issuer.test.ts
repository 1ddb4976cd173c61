import type { FastifyInstance } from "fastify";
import { MemoryLevel } from "memory-level";
import { toHex } from "viem";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Address, SealedBatch } from "../../core/index.ts";
import { Issuer, type IssuerConsent } from "../../core/issuer/issuer.ts";
import { LocalMintRecord } from "../../core/issuer/local-record.ts";
import { RemoteIssuer } from "../../core/issuer/remote-issuer.ts";
import { ADMIN, GUARDIAN, OPERATOR } from "../../scripts/sandbox/accounts.ts";
import { buildIssuerServer } from "../../server/issuer/app.ts";
import { SignerMetrics } from "../../server/member/metrics.ts";
import { entry, OWNER, registry, sealed, TOKENS, TYPES } from "../settlement/signed-batches.ts";

const SECRET = "a secret that only the application knows".replaceAll(" ", "-");
const ZERO = `0x${"00".repeat(32)}` as const;
const l1 = {
  ...registry,
  state: async () => ({ countValidium: 0, countRollup: 0, ...ROOTS }),
  issuers: async (assets: readonly unknown[]) =>
    assets.map(() => ({ issuer: ADMIN.address, epoch: 0n, suspended: false })),
  isOperator: async (account: Address) => account === OPERATOR.address.toLowerCase(),
};
const ROOTS = { rootValidium: ZERO, rootRollup: ZERO, commitment: ZERO, history: ZERO };

let issuer: Issuer;
let app: FastifyInstance;
let url: string;
let metrics: SignerMetrics;
const watcher: { lastError: unknown } = { lastError: null };
beforeEach(async () => {
  const store = new MemoryLevel();
  const record = new LocalMintRecord(store);
  issuer = await Issuer.open({ account: ADMIN, store, l1, record });
  metrics = new SignerMetrics(issuer.archive);
  app = buildIssuerServer({ issuer, l1, watcher, metrics, records: { record, secret: SECRET } });
  url = await app.listen({ host: "127.0.0.1", port: 0 });
});
afterEach(async () => {
  watcher.lastError = null;
  await app.close();
  await issuer.close();
});

function client(operator = OPERATOR): RemoteIssuer {
  return new RemoteIssuer({ address: ADMIN.address, url, operator, settlement: registry.settlement });
}

function consent(batch: SealedBatch, operator = OPERATOR): Promise<IssuerConsent> {
  return client(operator).consent(batch, AbortSignal.timeout(5_000));
}

async function record(body: unknown, authorization = `Bearer ${SECRET}`) {
  const headers = { authorization, "content-type": "application/json" };
  const response = await fetch(`${url}/v1/mints`, { method: "POST", headers, body: JSON.stringify(body) });
  return { status: response.status, ...((await response.json()) as { recorded?: number; code?: string }) };
}

const MINT = { id: "order-1", contractAddress: TOKENS.erc721, owner: OWNER, amount: "1", mintingBlob: toHex("1") };

test("records what the application minted, then consents to it, and serves the batch to anyone", async () => {
  const batch = sealed(0, [entry("erc721", "1")], "zk-rollup");
  await expect(consent(batch)).rejects.toThrow(/refused \(not_allowed\): the application has recorded 0/);
  expect(await record({ mints: [MINT] })).toEqual({ status: 200, recorded: 1 });
  expect(await record({ mints: [MINT] })).toEqual({ status: 200, recorded: 0 });
  const { signature, ...covered } = await consent(batch);
  expect(signature).toMatch(/^0x[0-9a-f]{130}$/);
  expect(covered).toEqual({ assets: [TYPES.erc721], refused: [] });
  const served = await fetch(`${url}/public/v1/batches/zk-rollup-0/data`);
  expect(toHex(new Uint8Array(await served.arrayBuffer()))).toBe(toHex(batch.data));
  const text = await metrics.registry.metrics();
  for (const answer of ["signed", "not_allowed"]) {
    expect(text).toContain(`mintmark_signing_requests_total{answer="${answer}"} 1`);
  }
});

test("takes a mint back until a batch uses it", async () => {
  const cancel = async (id: string) => {
    const headers = { authorization: `Bearer ${SECRET}` };
    const response = await fetch(`${url}/v1/mints/${encodeURIComponent(id)}`, { method: "DELETE", headers });
    const code = response.status === 204 ? null : ((await response.json()) as { code: string }).code;
    return [response.status, code];
  };
  const other = { ...MINT, id: "a/b", mintingBlob: toHex("2") };
  await record({ mints: [MINT, other] });
  expect(await cancel("a/b")).toEqual([204, null]);
  expect(await cancel("nothing")).toEqual([404, "mint_not_found"]);
  await consent(sealed(0, [entry("erc721", "1")]));
  expect(await cancel(MINT.id)).toEqual([409, "mint_consented"]);
});

test("refuses records without the secret, and consent requests without the operator's role", async () => {
  for (const authorization of ["Bearer wrong", SECRET, `Bearer ${SECRET} `.repeat(2)]) {
    expect(await record({ mints: [MINT] }, authorization)).toMatchObject({ status: 401, code: "credentials_invalid" });
  }
  expect((await fetch(`${url}/v1/mints/order-1`, { method: "DELETE" })).status).toBe(401);
  await record({ mints: [MINT] });
  await expect(consent(sealed(0, [entry("erc721", "1")]), GUARDIAN)).rejects.toThrow("credentials_invalid");
});

test.each<[string, unknown]>([
  ["nothing", {}],
  ["no mints", { mints: [] }],
  ["an unknown field", { mints: [{ ...MINT, token: "1" }] }],
  ["a token named twice", { mints: [{ ...MINT, tokenId: "1" }] }],
  ["an amount as a number", { mints: [{ ...MINT, amount: 1 }] }],
  ["a wrong checksum", { mints: [{ ...MINT, owner: "0x00000000000000000000000000000000000000aA" }] }],
])("refuses a record of %s", async (_, body) => {
  expect(await record(body)).toMatchObject({ status: 400, code: "validation_failed" });
});

test("is ready once its archive is up to date with L1", async () => {
  const ready = async () => (await fetch(`${url}/readyz`)).status;
  expect(await ready()).toBe(503);
  await issuer.archive.advance({ number: 1n, hash: ZERO, timestamp: 0n });
  expect(await ready()).toBe(200);
  watcher.lastError = new Error("the node is gone");
  expect(await ready()).toBe(503);
  const status = (await (await fetch(`${url}/v1/status`)).json()) as object;
  expect(status).toMatchObject({ address: ADMIN.address.toLowerCase(), l1Block: "1", inStepWithL1: false });
});
