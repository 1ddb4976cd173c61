import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { createSiweMessage } from "viem/siwe";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { pageScripts } from "../../server/pages/bundle.ts";
import type { ServerChain } from "../../server/service.ts";
import {
  type Answer,
  createWorld,
  refusal,
  SETTLEMENT,
  type World,
  type WorldOptions,
} from "./fixture.ts";

const account = privateKeyToAccount(generatePrivateKey());
const address = account.address.toLowerCase();
const stranger = privateKeyToAccount(generatePrivateKey());

let world: World;
const open = async (options: WorldOptions = {}) => {
  world = await createWorld(options);
};
beforeEach(() => open());
afterEach(async () => {
  vi.useRealTimers();
  await world[Symbol.asyncDispose]();
});

const post = (path: string, body: unknown, host = "localhost:3000") =>
  world.send("POST", path, { key: null, body, headers: { host } });
const challenge = async (host?: string): Promise<string> => {
  return (await post("/owner/v1/challenge", { address: account.address }, host)).body.message;
};
const signIn = async () => {
  const message = await challenge();
  return post("/owner/v1/sign-in", { message, signature: await account.signMessage({ message }) });
};

describe("an owner's sign-in", () => {
  test("names the origin, the chain and the address, and signs in once", async () => {
    const message = await challenge();
    expect(message).toContain(
      `localhost:3000 wants you to sign in with your Ethereum account:\n${account.address}\n`,
    );
    expect(message).toContain("URI: http://localhost:3000\nVersion: 1\nChain ID: 31337\n");
    const proof = { message, signature: await account.signMessage({ message }) };
    expect((await post("/owner/v1/sign-in", proof)).body).toMatchObject({ address });
    expect(refusal(await post("/owner/v1/sign-in", proof))).toMatchObject({
      status: 401,
      code: "credentials_invalid",
    });
  });

  test("is refused to another's signature, which ends no challenge", async () => {
    const message = await challenge();
    const foreign = { message, signature: await stranger.signMessage({ message }) };
    expect(refusal(await post("/owner/v1/sign-in", foreign))).toMatchObject({
      status: 422,
      code: "signature_invalid",
    });
    const own = { message, signature: await account.signMessage({ message }) };
    expect((await post("/owner/v1/sign-in", own)).body).toMatchObject({ address });
  });

  test("succeeds after 10,100 other challenges, and once of two at the same time", async () => {
    await world[Symbol.asyncDispose]();
    await open({ rateLimits: { publicReads: { units: 100_000, windowSeconds: 1 } } });
    const message = await challenge();
    for (let i = 0; i < 101; i++) await Promise.all(Array.from({ length: 100 }, () => challenge()));
    const proof = { message, signature: await account.signMessage({ message }) };
    const both = await Promise.all([
      post("/owner/v1/sign-in", proof),
      post("/owner/v1/sign-in", proof),
    ]);
    expect(both.map(({ status }) => status).sort()).toEqual([200, 401]);
  });

  test("is refused for a message that is not ours word for word: other domain, chain, address or time", async () => {
    const given = await challenge();
    const nonce = /Nonce: (\w+)/.exec(given)?.[1] ?? "";
    const changes = [
      { domain: "evil.example" },
      { chainId: 1 },
      { address: stranger.address },
      { expirationTime: new Date(Date.now() + 1e9) },
      { uri: "https://evil.example" },
    ];
    for (const change of changes) {
      const base = {
        address: account.address,
        chainId: 31_337,
        domain: "localhost:3000",
        nonce,
        uri: "http://localhost:3000",
      };
      const message = createSiweMessage({ ...base, version: "1", ...change });
      const signer = "address" in change ? stranger : account;
      const answer = await post("/owner/v1/sign-in", {
        message,
        signature: await signer.signMessage({ message }),
      });
      expect(refusal(answer).code, JSON.stringify(change)).toBe("credentials_invalid");
    }
  });

  test("is refused at another name of the server than the challenge was asked at", async () => {
    const message = await challenge();
    const proof = { message, signature: await account.signMessage({ message }) };
    expect(refusal(await post("/owner/v1/sign-in", proof, "127.0.0.1:3000")).code).toBe(
      "credentials_invalid",
    );
  });

  test("takes no name on the caller's word but those of the loopback interface", async () => {
    await world[Symbol.asyncDispose]();
    await open({ hosts: ["*"] });
    const answer = await post("/owner/v1/challenge", { address }, "mint.example");
    expect(refusal(answer)).toMatchObject({
      status: 400,
      errors: ["/headers/host validation_failed"],
    });
    await world[Symbol.asyncDispose]();
    await open({ hosts: ["*"], origin: new URL("https://mint.example") });
    expect(await challenge("anything.example")).toMatch(/^mint\.example wants you/);
  });

  test("is refused when it is signed too late", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const message = await challenge();
    const signature = await account.signMessage({ message });
    vi.setSystemTime(Date.now() + 6 * 60_000);
    expect(refusal(await post("/owner/v1/sign-in", { message, signature })).code).toBe(
      "credentials_expired",
    );
  });

  test("lets a wallet contract sign when L1 says that it did", async () => {
    await world[Symbol.asyncDispose]();
    const asked: string[] = [];
    const unasked = () => Promise.reject(new Error("a sign-in asks for nothing else"));
    const l1: ServerChain = {
      settlement: SETTLEMENT,
      registration: unasked,
      maturity: unasked,
      verifyVault: unasked,
      verifyTransferred: unasked,
      withdrawn: unasked,
      block: unasked,
      blockNumber: unasked,
      events: unasked,
      rollupData: unasked,
      verifySignature: async (signer, _digest, signature) => {
        asked.push(signer);
        return signature === "0x1271";
      },
    };
    const publicReads = { units: 600, windowSeconds: 1_000_000 };
    await open({
      chains: new Map([[SETTLEMENT.chainId, async () => l1]]),
      rateLimits: { publicReads },
    });
    expect(
      (await post("/owner/v1/sign-in", { message: await challenge(), signature: "0x1271" })).body
        .address,
    ).toBe(address);
    expect(
      refusal(await post("/owner/v1/sign-in", { message: await challenge(), signature: "0x1272" }))
        .code,
    ).toBe("signature_invalid");
    expect(asked).toEqual([address, address]);
    // The question costs the caller's address 5 units.
    const rate = ({ headers }: Answer) => Number(/r=(\d+)/.exec(String(headers.ratelimit))?.[1]);
    const given = await post("/owner/v1/challenge", { address: account.address });
    const { message } = given.body;
    const refused = await post("/owner/v1/sign-in", { message, signature: "0x1272" });
    expect(rate(given) - rate(refused)).toBe(5);
  });
});

describe("an owner's sign-in", () => {
  const kit = (vaultId: string, token: string | null) =>
    world.send("GET", `/owner/v1/vaults/${vaultId}/exit-kit`, {
      key: null,
      ...(token !== null && { headers: { authorization: `Bearer ${token}` } }),
    });

  test("is no credential of an application, and none of an application's opens the owner's things", async () => {
    const { token } = (await signIn()).body;
    const bearer = { authorization: `Bearer ${token}` };
    expect(
      refusal(await world.send("GET", "/api/v1/assets", { key: null, headers: bearer })).code,
    ).toBe("credentials_invalid");
    expect(refusal(await kit("1", null)).code).toBe("credentials_missing");
    expect(refusal(await kit("1", `${token.slice(0, -4)}AAAA`)).code).toBe("credentials_invalid");
    const withKey = await world.send("GET", "/owner/v1/vaults/1/exit-kit");
    expect(refusal(withKey).code).toBe("credentials_missing");
  });

  test("ends after a quarter of an hour", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const { token } = (await signIn()).body;
    expect(refusal(await kit("1", token)).code).toBe("vault_not_found");
    vi.setSystemTime(Date.now() + 16 * 60_000);
    expect((await kit("1", token)).body).toMatchObject({
      code: "credentials_expired",
      detail: expect.stringContaining("Sign in again"),
    });
  });

  test("shows the owner's own vaults only, and a kit only where L1 can be asked", async () => {
    const { engine, applicationId, erc20, users } = world;
    const { userId } = await engine.users.create(applicationId, {
      ownerAddress: address as `0x${string}`,
    });
    const mint = {
      mintingBlob: "",
      assetId: erc20.assetId,
      amount: 5,
      dataAvailabilityMode: "validium",
    };
    const body = { users: [userId, users[0]].map((id) => ({ userId: id, mints: [mint] })) };
    const { vaults } = (await world.send("POST", "/api/v1/mint", { body })).body;
    const { token } = (await signIn()).body;
    const [own, foreign] = vaults.map(({ vaultId }: { vaultId: string }) => vaultId);
    expect(refusal(await kit(own, token)).code).toBe("proof_not_ready");
    await engine.operator.seal("validium");
    expect(refusal(await kit(own, token)).code).toBe("l1_failed");
    expect(refusal(await kit(foreign, token))).toMatchObject({
      status: 404,
      code: "vault_not_found",
    });
  });
});

describe("pages", () => {
  test("come with a strict policy, are kept by browsers, and hold nothing that is not named", async () => {
    const page = await world.app.inject({ url: "/explorer" });
    const policy = String(page.headers["content-security-policy"]);
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toContain("unsafe-inline");
    const docs = await world.app.inject({ url: "/docs" });
    expect(docs.headers["content-security-policy"]).toContain("require-trusted-types-for 'script'");
    expect(page.body).not.toMatch(/<script(?![^>]* src=)|<style|\son\w+=|\sstyle=/);
    const { etag = "" } = page.headers;
    expect(
      (await world.app.inject({ url: "/explorer", headers: { "if-none-match": etag } })).statusCode,
    ).toBe(304);
    for (const path of [
      "/explorer/../package.json",
      "/explorer/main.tsx",
      "/explorer/%2e%2e/package.json",
    ]) {
      expect((await world.app.inject({ url: path })).statusCode, path).toBe(404);
    }
  });

  test("come in the coding that the browser likes best", async () => {
    for (const [accepts, coding] of [
      ["gzip;q=0.5, br;q=0.1", "gzip"],
      ["br, gzip", "br"],
      ["gzip, br;q=0", "gzip"],
      ["identity, gzip;q=0.9", undefined],
      ["*;q=0.5, gzip;q=0", "br"],
      ["gzip;q=0", undefined],
      ["gzip, br;q=0.", "gzip"],
      ["gzip;q=0.5, br;q=1.001", "gzip"],
    ] as const) {
      const { headers } = await world.app.inject({
        url: "/explorer/style.css",
        headers: { "accept-encoding": accepts },
      });
      expect(headers["content-encoding"], accepts).toBe(coding);
    }
  });

  test("bring the core's code to the browser, and of the packages only those that check proofs, encode calls and draw", async () => {
    const built = await pageScripts("explorer");
    const read = new Map<string, string>();
    const load = async (name: string): Promise<void> => {
      if (read.has(name)) return;
      const { statusCode, body, headers } = await world.app.inject({ url: `/explorer/${name}` });
      expect([statusCode, headers["content-type"]]).toEqual([
        200,
        "text/javascript; charset=utf-8",
      ]);
      expect(built.get(name)).toEqual(Buffer.from(body));
      read.set(name, body);
      for (const [, next = ""] of body.matchAll(/^(?:import|\} from) "\.\/([^"]+)"/gm))
        await load(next);
    };
    await load("explorer.js");
    expect(read.has("withdraw.js")).toBe(false);
    // The bundler names each source before its code.
    const sources = [...read.values()].flatMap((body) =>
      [...body.matchAll(/^\/\/ (\S+\.m?[jt]sx?)$/gm)].map(([, path = ""]) => path),
    );
    expect(sources).toContain("core/protocol/proof.ts");
    const packages = sources.flatMap(
      (path) => /.*node_modules\/(@[^/]+\/[^/]+|[^/]+)/.exec(path)?.[1] ?? [],
    );
    const named = ["@noble/hashes", "@noble/curves", "ox", "preact", "viem", "abitype"];
    expect(new Set(packages)).toEqual(new Set(named));
  });
});
