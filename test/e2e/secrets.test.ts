import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { toHex } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { attestationRequestTypedData } from "../../core/committee/index.ts";
import { until } from "../../scripts/demo/until.ts";
import { COMMITTEE, OPERATOR } from "../../scripts/sandbox/accounts.ts";
import { askServer } from "../../server/process/operator/socket.ts";
import { openTest } from "../core/engine/fixture.ts";
import { FaultyNode } from "../faulty-node.ts";
import { Receiver } from "../server/receiver.ts";
import { at, seed } from "../settlement/fixture.ts";
import { MemberProcess } from "./member-process.ts";
import { operatorOf, startMembersWorld } from "./member-world.ts";
import { OperatorProcess } from "./operator-process.ts";

const FORM = { "content-type": "application/x-www-form-urlencoded" };
const JSON_TYPE = { "content-type": "application/json" };

test("a whole run of the server prints no secret that was used in it", async () => {
  const world = await startMembersWorld({ members: COMMITTEE.slice(0, 1), threshold: 1 });
  await using _world = { [Symbol.asyncDispose]: world.close };
  await using receiver = await new Receiver().listen();
  const store = join(world.folder, "operator");
  const { applicationId, key, owner, userId, erc721 } = await (async () => {
    await using engine = await openTest(store, { settlement: world.l1.settlement });
    const { principal, users, assets } = await seed(engine, world);
    const { secret } = await engine.keys.issue(principal.applicationId);
    return {
      applicationId: principal.applicationId,
      key: secret,
      ...at(users, 0),
      erc721: assets.get("erc721"),
    };
  })();
  const [tokenSecret, rpcSecret] = [
    randomBytes(32).toString("hex"),
    randomBytes(16).toString("hex"),
  ];
  const [farSecret, signerSecret] = [
    randomBytes(16).toString("hex"),
    randomBytes(16).toString("hex"),
  ];
  const secrets = [
    key,
    tokenSecret,
    rpcSecret,
    farSecret,
    toHex(OPERATOR.getHdKey().privateKey ?? new Uint8Array()),
  ];
  const start = {
    ...operatorOf(world, store),
    rpcUrl: `${world.rpcUrl}/v3/${rpcSecret}`,
    settings: {
      MINTMARK_THRESHOLD: "1",
      MINTMARK_CONFIRMATIONS: "0",
      MINTMARK_TOKEN_SECRET: tokenSecret,
      MINTMARK_LOG_LEVEL: "trace",
      MINTMARK_WEBHOOK_REACH: "public-and-loopback",
      MINTMARK_METRICS_PORT: "0",
      // Its node cannot be reached, and every round says so.
      MINTMARK_MIRRORS: JSON.stringify([
        {
          chainId: 31_338,
          contract: world.settlement.address,
          rpcUrl: `http://127.0.0.1:1/v3/${farSecret}`,
        },
      ]),
    },
  };
  await using server = await OperatorProcess.start(start);
  const send = async (
    method: string,
    path: string,
    headers: Record<string, string>,
    body?: string,
    // biome-ignore lint/suspicious/noExplicitAny: whatever the server answered.
  ): Promise<any> => {
    const reply = await fetch(`${server.url}${path}`, {
      method,
      headers,
      ...(body !== undefined && { body }),
    });
    return reply.json();
  };
  const withKey = { "x-api-key": key, ...JSON_TYPE };

  // The secrets that a run makes: another key, by the operator; a token; two of a webhook; an
  // owner's sign-in.
  const running = { signal: new AbortController().signal, progress: () => {} };
  const issued = await askServer(
    store,
    { operation: "keys.issue", input: { applicationId } },
    running,
  );
  if (issued === undefined) throw new Error("the server does not listen for its operator");
  const { apiKey: another } = issued.result as { apiKey: string };
  const client = `grant_type=client_credentials&client_id=${key.split("_")[2]}&client_secret=${encodeURIComponent(key)}`;
  const { access_token: token } = await send("POST", "/oauth/token", FORM, client);
  const hook = await send(
    "POST",
    "/api/v1/webhooks",
    withKey,
    JSON.stringify({ url: receiver.url }),
  );
  const { secret: rotated } = await send("POST", `/api/v1/webhooks/${hook.webhookId}/secret`, {
    "x-api-key": key,
  });
  const { message } = await send(
    "POST",
    "/owner/v1/challenge",
    JSON_TYPE,
    JSON.stringify({ address: owner.address }),
  );
  const signature = await owner.signMessage({ message });
  const { token: signIn } = await send(
    "POST",
    "/owner/v1/sign-in",
    JSON_TYPE,
    JSON.stringify({ message, signature }),
  );
  secrets.push(another, token, hook.secret, rotated, signIn);

  // Good requests, through to L1.
  const entry = { mintingBlob: "31", assetId: erc721, amount: 1, dataAvailabilityMode: "validium" };
  const bearer = { authorization: `Bearer ${token}`, ...JSON_TYPE };
  const { vaults } = await send(
    "POST",
    "/api/v1/mint",
    bearer,
    JSON.stringify({ users: [{ userId, mints: [entry] }] }),
  );
  const { vaultId } = vaults[0];
  await until(
    "settlement",
    () => send("GET", `/api/v1/vaults/${vaultId}`, { "x-api-key": another }),
    ({ status }) => status === "settled" || status === "finalized",
  );
  const kit = await send("GET", `/owner/v1/vaults/${vaultId}/exit-kit`, {
    authorization: `Bearer ${signIn}`,
  });
  expect(kit.format).toBe("mintmark-exit-kit");
  await receiver.has(2);

  // Bad ones, with secrets where they do not belong.
  for (const secret of secrets) {
    const text = encodeURIComponent(secret);
    await send("GET", `/api/v1/assets?key=${text}`, {});
    await send("GET", `/${text}`, { "x-api-key": secret, authorization: `Bearer ${secret}` });
    await send("GET", `/api/v1/users/${text}`, withKey);
    await send("POST", "/api/v1/users", withKey, `{"${secret}": "${secret}"`);
    await send(
      "POST",
      "/api/v1/mint",
      { ...withKey, "idempotency-key": secret },
      JSON.stringify({ [secret]: secret }),
    );
    await send("POST", "/api/v1/mint", { ...withKey, "content-type": secret.slice(0, 20) }, secret);
    await send(
      "POST",
      "/oauth/token",
      { ...FORM, authorization: `Basic ${btoa(`x:${secret}`)}` },
      `scope=${text}`,
    );
    await send("GET", "/healthz", { "x-request-id": secret.slice(0, 64) });
  }
  const mirrorFailed = (output: string) => output.includes("a mirror failed; trying again");
  await until("the mirror's failure", async () => server.output, mirrorFailed);
  expect(await server.stop()).toBe(0);

  // A server that cannot reach its chain says so without the key to it.
  const { port } = new URL(world.rpcUrl);
  const unreachable = {
    ...start,
    rpcUrl: start.rpcUrl.replace(`:${port}/`, ":1/"),
    settings: {
      ...start.settings,
      MINTMARK_RECEIPT_SIGNER: `${OPERATOR.address}=http://127.0.0.1:1/keys/${signerSecret}`,
    },
  };
  await using waiting = await OperatorProcess.start(unreachable);
  const saysSo = (output: string) => output.includes("L1 does not answer");
  await until("the word that L1 does not answer", async () => waiting.output, saysSo);
  await fetch(`${waiting.url}/keys/${signerSecret}`);
  expect(await waiting.stop()).toBe(0);

  const output = `${server.output}${waiting.output}`;
  expect(output).toContain('"msg":"request completed"');
  expect(output).toContain("[redacted]");
  secrets.push(signerSecret);
  expect(secrets.every((secret) => secret.length >= 32)).toBe(true);
  for (const secret of secrets) {
    // Parts, too: what a key or a token holds besides its prefix, also when it was percent-encoded.
    const parts = secret.split(/[._+/=]/).slice(1);
    for (const part of [
      secret,
      secret.replace(/^0x/, ""),
      ...parts.filter(({ length }) => length >= 16),
    ]) {
      expect(output.includes(part), `${part.slice(0, 6)}… in the output`).toBe(false);
    }
  }
});

test("a member whose node fails tells a stranger's question without the key to the node", async () => {
  const world = await startMembersWorld({ members: COMMITTEE.slice(0, 1), threshold: 1 });
  await using _world = { [Symbol.asyncDispose]: world.close };
  const node = new FaultyNode(world.client);
  await using _node = { [Symbol.asyncDispose]: () => node.close() };
  const secret = randomBytes(16).toString("hex");
  const member = await MemberProcess.start({
    key: toHex(at(COMMITTEE, 0).getHdKey().privateKey ?? new Uint8Array()),
    store: join(world.folder, "other"),
    rpcUrl: `${await node.listen()}/v3/${secret}`,
    contract: world.settlement.address,
    fromBlock: world.settlement.deployedAtBlock,
    port: 0,
    peers: [],
  });
  node.faults = { down: true };
  const hash = `0x${"33".repeat(32)}` as const;
  const asked = {
    mode: "validium",
    batchNumber: 0,
    batchRoot: hash,
    vaultCount: 1,
    dataHash: hash,
    history: hash,
    sequence: 0n,
    epoch: 0n,
  } as const;
  // Anyone can sign a request, so the member asks its node who the operators are.
  const stranger = privateKeyToAccount(generatePrivateKey());
  const signature = await stranger.signTypedData(
    attestationRequestTypedData(world.l1.settlement, asked),
  );
  const { mode: _, batchNumber: __, ...terms } = asked;
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(terms)) query.set(name, `${value}`);
  const response = await fetch(`${member.url}/v1/batches/validium-0/attestation?${query}`, {
    method: "POST",
    headers: {
      authorization: `Operator ${signature}`,
      "content-type": "application/octet-stream",
    },
    body: new Uint8Array(1),
  });
  const { code } = (await response.json()) as { readonly code: string };
  expect(code).toBe("l1_failed");
  expect(await member.stop()).toBe(0);
  expect(member.output).toContain("/v3/[redacted]");
  expect(member.output).not.toContain(secret);
});
