import { once } from "node:events";
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  request,
  type Server,
} from "node:http";
import type { AddressInfo } from "node:net";
import { toHex } from "viem";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { deriveBatch } from "../../core/archive/derive.ts";
import { attestationRequestTypedData } from "../../core/committee/member-service.ts";
import { encodeBatchData } from "../../core/protocol/batch-data.ts";
import { validiumBatchTypedData } from "../../core/protocol/typed-data.ts";
import { packVaultId } from "../../core/protocol/vault.ts";
import { COMMITTEE, GUARDIAN, OPERATOR } from "../../scripts/sandbox/accounts.ts";
import { at, pointOn } from "../settlement/fixture.ts";
import { type MembersWorld, servedData, startMembersWorld } from "./member-world.ts";

describe("a committee of five processes", () => {
  let world: MembersWorld;
  const servers: Server[] = [];

  beforeAll(async () => {
    world = await startMembersWorld();
  });
  afterAll(() => world.close());
  afterEach(() => {
    for (const server of servers.splice(0)) server.closeAllConnections();
  });

  const urls = () => world.processes.map(({ url }) => url);
  const statusOf = async (index: number) => at(world.processes, index).status();

  /** A service that stands where a member should, on any port. */
  async function impostor(answer: RequestListener): Promise<string> {
    const server = createServer(answer);
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  test("signs, stores, and serves the data to anyone", async () => {
    const { settler, committee } = world.settlerOver();
    await committee.requireInForce();
    await world.mint("erc721", "validium", "one");
    await world.mint("erc721", "zk-rollup", "two");
    expect((await settler.round()).committed).toBe(2);
    const { data } = await world.engine.batches.getSealed("validium", 0);
    for (const index of COMMITTEE.keys()) {
      await expect.poll(() => servedData(at(urls(), index), "validium-0"), POLL).toBe(toHex(data));
      await expect.poll(() => servedData(at(urls(), index), "zk-rollup-0"), POLL).not.toBeNull();
      expect((await statusOf(index)).address).toBe(at(COMMITTEE, index).address.toLowerCase());
    }
  });

  test("goes on when two are killed, and takes them back when they return", async () => {
    const { settler, committee } = world.settlerOver();
    const restarts = [];
    for (const index of [1, 4]) restarts.push(await at(world.processes, index).kill());
    await world.mint("erc721", "validium", "while two are dead");
    expect((await settler.round()).committed).toBe(1);
    const failed = committee.standings().filter(({ state }) => state === "failed");
    const dead = [at(COMMITTEE, 1), at(COMMITTEE, 4)].map(({ address }) => address.toLowerCase());
    expect(failed.map(({ address }) => address).toSorted()).toEqual(dead.toSorted());
    for (const { failure } of failed) expect(failure).toContain("cannot be reached");

    for (const [i, index] of [1, 4].entries()) world.processes[index] = await at(restarts, i)();
    // They catch up by themselves: from L1's history and another member.
    for (const index of [1, 4])
      await expect.poll(async () => (await statusOf(index)).nextBatch, POLL).toBe(2);
    await world.mint("erc721", "validium", "all five again");
    expect((await settler.round()).committed).toBe(1);
    const states = () => committee.standings().map(({ state }) => state);
    await expect.poll(states, POLL).toEqual(Array(5).fill("signed"));
  });

  const signer = (index: number) => at(COMMITTEE, index);
  const signature = async (index: number, batchRoot: `0x${string}`) => {
    const { batchNumber, vaultCount, dataHash } = await world.engine.batches.get("validium", 3);
    const { history } = await world.l1.state();
    const message = {
      history,
      batchNumber,
      batchRoot,
      vaultCount,
      dataHash: dataHash ?? "0x",
      epoch: 0n,
    };
    return signer(index).signTypedData(validiumBatchTypedData(world.l1.settlement, message));
  };
  const ROOT: `0x${string}` = `0x${"66".repeat(32)}`;
  const json = (make: () => unknown): RequestListener => {
    return async (asked, response) => {
      asked.resume();
      response.end(JSON.stringify(asked.url === "/v1/status" ? { nextBatch: 3 } : await make()));
    };
  };
  /** Each stands in for the fifth member, in turn, and the fourth is dead. */
  const LIARS: Record<string, RequestListener> = {
    "signs another root": json(async () => ({ signature: await signature(4, ROOT) })),
    "signs with another key": json(async () => {
      const { batchRoot } = await world.engine.batches.get("validium", 3);
      return { signature: await signature(0, batchRoot ?? ROOT) };
    }),
    "answers without a signature": json(() => ({ signature: "0x1234" })),
    "claims a nonsensical next batch": json(() => null),
    "serves a web page": (_, response) => response.end("<html>"),
    "never stops talking": (_, response) => {
      const talk = () => {
        while (!response.destroyed && response.write("x".repeat(65_536)));
        if (!response.destroyed) response.once("drain", talk);
      };
      talk();
    },
    "never answers": () => {},
    "sends elsewhere": (_, response) => response.writeHead(302, { location: at(urls(), 0) }).end(),
  };

  test("continues with one member dead and another lying, whatever the lie, and names it", async () => {
    await world.mint("erc721", "validium", "among liars");
    await world.engine.operator.seal("validium");
    const batch = await world.engine.batches.getSealed("validium", 3);
    const gone = await impostor((asked) => asked.destroy());
    for (const [lie, answer] of Object.entries(LIARS)) {
      const lying = [...urls().slice(0, 3), gone, await impostor(answer)];
      const { committee } = world.settlerOver(lying, 1_500);
      const attestation = await committee.attest(batch, await pointOn(world.l1));
      expect(attestation, lie).toMatch(/^0x03/);
      const liar = () =>
        committee.standings().find(({ address }) => address === signer(4).address.toLowerCase());
      await expect.poll(() => liar()?.state, { ...POLL, message: lie }).toBe("failed");
      expect(liar()?.failure, lie).not.toBe("");
    }
    expect((await world.settlerOver().settler.round()).committed).toBe(1);
  });

  describe("a member's door", () => {
    const batchNumber = 4;
    /** A batch of the operator's that this member has not seen. */
    async function nextBatch(text: string) {
      const [assetType, owner] = await typeAndOwner();
      const data = encodeBatchData([
        { chainId: 31_337n, owner, assetType, amount: 1n, mintingBlob: toHex(text) },
      ]);
      const { batchRoot, vaultCount, dataHash } = deriveBatch("validium", batchNumber, data);
      return {
        batchNumber,
        batchRoot,
        vaultCount,
        dataHash,
        ...(await pointOn(world.l1)),
        epoch: 0n,
        data,
      };
    }
    async function typeAndOwner() {
      const { vault } = await world.engine.proofs.vault(
        packVaultId({ mode: "validium", batchNumber: 0, slot: 0 }),
      );
      return [vault.assetType, vault.owner] as const;
    }
    type Batch = Awaited<ReturnType<typeof nextBatch>>;

    async function ask(
      batch: Batch,
      { by = OPERATOR, body = batch.data as NonNullable<RequestInit["body"]>, headers = {} } = {},
    ) {
      const { batchRoot, vaultCount, dataHash } = batch;
      const signed = await by.signTypedData(
        attestationRequestTypedData(world.l1.settlement, batch),
      );
      const { history, sequence, epoch } = batch;
      const claim = new URLSearchParams({
        batchRoot,
        vaultCount: `${vaultCount}`,
        dataHash,
        history,
      });
      claim.set("sequence", `${sequence}`);
      claim.set("epoch", `${epoch}`);
      const response = await fetch(
        `${at(urls(), 2)}/v1/batches/validium-${batch.batchNumber}/attestation?${claim}`,
        {
          method: "POST",
          body,
          headers: {
            "content-type": "application/octet-stream",
            authorization: `Operator ${signed}`,
            ...headers,
          },
        },
      );
      const answer = (await response.json()) as {
        code?: string;
        signature?: string;
        requestId?: string;
      };
      return { status: response.status, ...answer };
    }

    test("is open only to an operator, and reads no body before checking", async () => {
      const batch = await nextBatch("5");
      expect(await ask(batch, { by: GUARDIAN })).toMatchObject({
        status: 401,
        code: "credentials_invalid",
      });
      const forged = { authorization: `Operator 0x${"11".repeat(65)}` };
      expect(await ask(batch, { headers: forged })).toMatchObject({
        status: 401,
        code: "credentials_invalid",
      });
      expect(await ask(batch, { headers: { authorization: "Bearer x" } })).toMatchObject({
        status: 401,
      });
      // Another claim than the one that was signed.
      const other = await OPERATOR.signTypedData(
        attestationRequestTypedData(world.l1.settlement, await nextBatch("6")),
      );
      expect(await ask(batch, { headers: { authorization: `Operator ${other}` } })).toMatchObject({
        status: 401,
      });
      // Told before anything of the sixty megabytes that it announces has been sent.
      const hashes = { batchRoot: ROOT, dataHash: ROOT, history: ROOT };
      const claim = new URLSearchParams({ ...hashes, vaultCount: "1", sequence: "0", epoch: "0" });
      const waiting = request(`${at(urls(), 2)}/v1/batches/validium-4/attestation?${claim}`, {
        method: "POST",
        headers: {
          "content-type": "application/octet-stream",
          "content-length": 60_000_000,
          ...forged,
        },
      });
      waiting.flushHeaders();
      const [response] = (await once(waiting, "response")) as [IncomingMessage];
      expect(response.statusCode).toBe(401);
      waiting.destroy();
      expect((await statusOf(2)).nextBatch).toBe(batchNumber);
    });

    test("refuses what is malformed, and leaves nothing of it", async () => {
      const batch = await nextBatch("5");
      expect(await ask(batch, { body: "not the data" })).toMatchObject({
        status: 422,
        code: "data_hash",
      });
      const asJson = { headers: { "content-type": "application/json" }, body: "{}" };
      expect(await ask(batch, asJson)).toMatchObject({ status: 415 });
      const huge = new Uint8Array(65 * 1024 * 1024);
      expect(await ask(batch, { body: huge }).catch(() => ({ status: 413 }))).toMatchObject({
        status: 413,
      });
      expect(await ask({ ...batch, batchNumber: 9 })).toMatchObject({ status: 409, code: "ahead" });
      expect(await ask({ ...batch, history: ROOT })).toMatchObject({
        status: 409,
        code: "diverged",
      });
      const { sequence } = batch;
      const ahead = { ...batch, history: ROOT, sequence: sequence + 1n };
      expect(await ask(ahead)).toMatchObject({ status: 409, code: "behind" });
      expect(await ask({ ...batch, vaultCount: 2 })).toMatchObject({ status: 422, code: "root" });
      const repeated = await nextBatch("one");
      expect(await ask(repeated)).toMatchObject({ status: 422, code: "duplicate" });
      for (const path of [
        "/v1/batches/validium-x/attestation",
        "/v1/batches/validium-4/attestation?epoch=-1",
      ]) {
        const { status } = await fetch(`${at(urls(), 2)}${path}`, { method: "POST" });
        expect([400, 404]).toContain(status);
      }
      expect(await servedData(at(urls(), 2), "validium-4")).toBeNull();
    });

    test("never signs twice for one number, even after a kill", async () => {
      const [first, second] = [await nextBatch("7"), await nextBatch("8")];
      const { signature: given } = await ask(first);
      expect(given).toMatch(/^0x[0-9a-f]{130}$/);
      const restart = await at(world.processes, 2).kill();
      world.processes[2] = await restart();
      expect(await ask(second)).toMatchObject({ status: 409, code: "equivocation" });
      expect(await ask(first)).toMatchObject({ status: 200, signature: given });
    });
  });

  test("voids on L1, by itself, the second vault of a token that a hostile operator has minted twice", async () => {
    const { vault } = await world.engine.proofs.vault(
      packVaultId({ mode: "validium", batchNumber: 0, slot: 0 }),
    );
    const data = encodeBatchData([
      { ...vault, owner: GUARDIAN.address.toLowerCase() as `0x${string}` },
    ]);
    const batch = {
      mode: "zk-rollup",
      batchNumber: 1,
      data,
      ...deriveBatch("zk-rollup", 1, data),
    } as const;
    await world.l1.commit(batch, (await world.l1.state()).history, "0x");
    const later = packVaultId({ mode: "zk-rollup", batchNumber: 1, slot: 0 });
    await expect.poll(() => world.l1.withdrawn(later, "erc721"), POLL).toBe(1n);
    expect(await world.l1.withdrawn(vault.vaultId, "erc721")).toBe(0n);
  });

  test("never prints a key, and stops cleanly", async () => {
    for (const [index, member] of world.processes.entries()) {
      const key = at(COMMITTEE, index).getHdKey().privateKey ?? new Uint8Array();
      expect(await member.stop()).toBe(0);
      expect(member.output).not.toContain(toHex(key).slice(2));
    }
  });
});

const POLL = { interval: 100 };
