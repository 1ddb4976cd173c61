import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { http, toHex } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { deriveBatch } from "../../core/archive/derive.ts";
import type { Mode, SealedBatch, Uuid } from "../../core/index.ts";
import { type IssuerClient, RemoteIssuer } from "../../core/issuer/index.ts";
import { assetType } from "../../core/protocol/asset.ts";
import { encodeBatchData } from "../../core/protocol/batch-data.ts";
import { manifestHash } from "../../core/protocol/blob-batch.ts";
import { assetsHash, consentTypedData } from "../../core/protocol/consent.ts";
import { KzgThread } from "../../core/protocol/kzg/kzg-thread.ts";
import { Settler } from "../../core/settlement/index.ts";
import { send } from "../../scripts/deploy/deployer.ts";
import { deployToken } from "../../scripts/deploy/token.ts";
import { ADMIN, COMMITTEE, GUARDIAN, OPERATOR } from "../../scripts/sandbox/accounts.ts";
import { at, readyAsset } from "../settlement/fixture.ts";
import { MemberProcess } from "./member-process.ts";
import { type MembersWorld, servedData, startMembersWorld } from "./member-world.ts";

const KEY = generatePrivateKey();
const ISSUER = privateKeyToAccount(KEY);
const SECRET = randomBytes(24).toString("hex");

describe("an issuer's process", () => {
  let world: MembersWorld;
  let issuer: MemberProcess;
  const kzg = new KzgThread();
  let token: `0x${string}`;
  let crowns: ReadonlyMap<"erc721", Uuid>;

  beforeAll(async () => {
    world = await startMembersWorld({ members: [at(COMMITTEE, 0)], threshold: 1, kzg });
    const { rpcUrl, engine, principal, settlement, folder } = world;
    const config = {
      standard: "erc721",
      name: "Crowns",
      symbol: "CRWN",
      admin: ADMIN.address,
      issuer: ISSUER.address,
    } as const;
    token = (await deployToken(by(), settlement.address, config)).address;
    const asset = { ...config, contractAddress: token, quantum: 1n };
    crowns = new Map([["erc721", await readyAsset(engine, principal.applicationId, asset)]]);
    issuer = await MemberProcess.start({
      command: "issuer",
      env: { MINTMARK_RECORD_SECRET: SECRET },
      key: KEY,
      store: join(folder, "issuer"),
      rpcUrl,
      contract: settlement.address,
      fromBlock: settlement.deployedAtBlock,
      port: 0,
      peers: [at(world.processes, 0).url],
    });
  });
  afterAll(async () => {
    await issuer?.stop();
    await world?.close();
    await kzg.close();
  });

  const by = () => ({
    account: ADMIN,
    client: world.client,
    transport: http(world.rpcUrl),
    chainId: 31_337,
  });
  const client = (operator = OPERATOR, url = issuer.url) =>
    new RemoteIssuer({ address: ISSUER.address, url, operator, settlement: world.l1.settlement });
  const owner = () => at(world.users, 0).owner.address;
  /** The application's own backend, before it asks the operator for the mints. */
  const record = (ids: readonly string[], secret = SECRET) =>
    fetch(`${issuer.url}/v1/mints`, {
      method: "POST",
      headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
      body: JSON.stringify({
        mints: ids.map((id) => ({
          id,
          contractAddress: token,
          owner: owner(),
          amount: "1",
          tokenId: id,
        })),
      }),
    });
  const mintCrown = (mode: Mode, id: string) =>
    ({ ...world, assets: crowns }).mint("erc721", mode, id);
  const round = async (consentMs = 60_000, asked: IssuerClient = client()) => {
    const { l1, engine, settlement } = world;
    const { committee } = world.settlerOver();
    const issuers = [asked];
    const { deployedAtBlock: fromBlock } = settlement;
    const settler = new Settler({
      engine,
      l1,
      committee,
      fromBlock,
      issuers,
      consentMs,
      sealing: { maxAgeMs: 0 },
    });
    await settler.chooseRollupData();
    const done = await settler.round();
    settler.consents.stop();
    return done;
  };

  test("consents to what the application has recorded, stores it first, and serves it to anyone, blobs too", async () => {
    expect((await record(["1"], "x".repeat(40))).status).toBe(401);
    expect(await (await record(["1", "2"])).json()).toEqual({ recorded: 2 });
    await mintCrown("validium", "1");
    world.engine.operator.placeInBlobs(31_337n, true);
    await mintCrown("zk-rollup", "2");
    expect(await round()).toMatchObject({ committed: 2 });
    for (const mode of ["validium", "zk-rollup"] as const) {
      const { kind, leftOut } = await world.engine.batches.get(mode, 0);
      expect([kind, leftOut]).toEqual([mode === "validium" ? mode : "blobs", null]);
      const { data } = await world.engine.batches.getSealed(mode, 0);
      expect(await servedData(issuer.url, `${mode}-0`)).toBe(toHex(data));
    }
    for (const path of ["/healthz", "/readyz"]) {
      await expect.poll(async () => (await fetch(`${issuer.url}${path}`)).status).toBe(200);
    }
  });

  /**
   * Mints a crown, and a sword of nobody's issuer in the same batch; settles it, and tells why L1
   * left the crown out.
   */
  async function failureOf(id: string, ...asked: Parameters<typeof round>): Promise<string | null> {
    const { engine, l1 } = world;
    const [crown, sword] = [
      await mintCrown("zk-rollup", id),
      await world.mint("erc721", "zk-rollup", id),
    ];
    // The first round may find that L1 left out what nobody expected.
    for (let tries = 0; tries < 4; tries++) {
      const done = await round(...asked).catch(() => null);
      if (done !== null && (await l1.state()).countRollup === engine.batches.state().countRollup)
        break;
    }
    expect((await l1.state()).history).toBe(engine.operator.history());
    const paid = async (vaultId: bigint) => {
      const { header, ...proof } = await engine.proofs.vault(vaultId);
      return header !== null && (await l1.verifyVault({ ...proof, header })) === 0n;
    };
    expect(await paid(sword)).toBe(true);
    const { leftOut } = await engine.batches.get(
      "zk-rollup",
      engine.batches.state().countRollup - 1,
    );
    if (leftOut === null) expect(await paid(crown)).toBe(true);
    else await expect(engine.proofs.vault(crown)).rejects.toMatchObject({ code: "vault_void" });
    expect((await engine.operator.verify()).problems).toEqual([]);
    return leftOut?.[0]?.failure ?? null;
  }

  test("has its own recorded mints paid, and costs an unrecorded one only its own slot", async () => {
    await record(["3"]);
    expect(await failureOf("3")).toBeNull();
    expect(await failureOf("4")).toContain("has recorded 0");
    await record(["5"]);
    expect(await failureOf("5")).toBeNull();
  });

  test("never signs a second content with other vaults, also after it was killed", async () => {
    await record(["7", "8"]);
    const batchOf = (ids: readonly string[]): SealedBatch => {
      const vault = {
        chainId: 31_337n,
        owner: owner(),
        assetType: assetType("erc721", token, 1n),
        amount: 1n,
      };
      const data = encodeBatchData(ids.map((id) => ({ ...vault, mintingBlob: toHex(id) })));
      return { mode: "validium", batchNumber: 1, data, ...deriveBatch("validium", 1, data) };
    };
    const signal = AbortSignal.timeout(60_000);
    const first = batchOf(["7"]);
    const own = [{ chainId: 31_337n, assetType: assetType("erc721", token, 1n), issuerEpoch: 1n }];
    const given = await client().consent(first, signal);
    const message = {
      mode: "validium",
      batchNumber: 1,
      vaultCount: first.vaultCount,
      content: first.content,
      manifest: manifestHash(first.assets),
      assetsHash: assetsHash(own),
    } as const;
    expect(given).toEqual({
      signature: await ISSUER.signTypedData(consentTypedData(world.l1.settlement, message)),
      assets: own.map(({ assetType: type }) => type),
      refused: [],
    });
    await expect(client(GUARDIAN).consent(first, signal)).rejects.toThrow("credentials_invalid");
    const restart = await issuer.kill();
    issuer = await restart();
    await expect(client().consent(batchOf(["8"]), signal)).rejects.toThrow("equivocation");
    await expect(client().consent(batchOf(["7", "8"]), signal)).rejects.toThrow("equivocation");
    expect(await client().consent(first, signal)).toEqual(given);
    // A mint that a batch uses cannot be taken back, nor anything without the secret.
    for (const [secret, status] of [
      [SECRET, 409],
      [SECRET.slice(1), 401],
    ] as const) {
      const headers = { authorization: `Bearer ${secret}` };
      expect((await fetch(`${issuer.url}/v1/mints/7`, { method: "DELETE", headers })).status).toBe(
        status,
      );
    }
    expect(issuer.output).not.toContain(KEY.slice(2));
    expect(issuer.output).not.toContain(SECRET);
  });

  test("that is silent holds up a batch for the setting", async () => {
    const silent = createServer(() => {}).listen(0, "127.0.0.1");
    await once(silent, "listening");
    const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
    await record(["9"]);
    expect(await failureOf("9", 1_500, client(OPERATOR, url))).toContain("no answer");
    silent.closeAllConnections();
    silent.close();
  });

  test("that is suspended after it has signed stops nobody: L1 leaves its token out, and everything goes on", async () => {
    await record(["10"]);
    const suspending: IssuerClient = {
      address: ISSUER.address,
      async consent(batch, signal) {
        const consent = await client().consent(batch, signal);
        await send(by(), "StateCommitment", world.settlement.address, "suspendIssuer", [token]);
        return consent;
      },
    };
    expect(await failureOf("10", 60_000, suspending)).toBeTruthy();
    expect(await failureOf("11")).toContain("suspended");
  });
});
