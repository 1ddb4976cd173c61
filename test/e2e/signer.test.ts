import { type ChildProcess, spawn } from "node:child_process";
import { createPrivateKey, scryptSync } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { secp256k1 } from "@noble/curves/secp256k1";
import { Keystore } from "ox";
import type { Hex, TransactionSerializable } from "viem";
import { createTestClient, hexToBytes, http, keccak256, toHex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { httpSigner, signerAccount } from "../../core/l1/index.ts";
import { withdrawalListTypedData } from "../../core/protocol/typed-data.ts";
import { processAccount } from "../../scripts/cli/arguments.ts";
import { deploySettlement } from "../../scripts/deploy/settlement.ts";
import { ADMIN, OPERATOR } from "../../scripts/sandbox/accounts.ts";
import { startChain } from "../../scripts/sandbox/chain.ts";
import { accountOf } from "../../server/process/account.ts";
import { cleanEnvironment, SERVER, settingsOf } from "../cli/cli.ts";
import { openTest } from "../core/engine/fixture.ts";
import { listOfOne } from "../one-withdrawal.ts";
import { adminOver, readyAsset, TERMS } from "../settlement/fixture.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
const CHAIN_ID = 31_337n;
const KEY = toHex(OPERATOR.getHdKey().privateKey ?? new Uint8Array());
const OWN = privateKeyToAccount(KEY);
const TO = `0x${"5e".repeat(20)}` as const;

/**
 * Published with the format, by
 * https://ethereum.org/developers/docs/data-structures-and-encoding/web3-secret-storage.
 */
const PASSWORD = "testpassword";
const SECRET = "0x7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d";
const PBKDF2 = {
  crypto: {
    cipher: "aes-128-ctr",
    cipherparams: { iv: "6087dab2f9fdbbfaddc31a909735c1e6" },
    ciphertext: "5318b4d5bcd28de64ee5559e671353e16f075ecae9f99c7a79a38af5f869aa46",
    kdf: "pbkdf2",
    kdfparams: {
      c: 262_144,
      dklen: 32,
      prf: "hmac-sha256",
      salt: "ae3cd4e7013836a3df6bd7241b12db061dbe2c6785853cce422d148a624ce0bd",
    },
    mac: "517ead924a9d0dc3124507e3393d175ce3ff7c1e96529c6c555ce9e51205e9b2",
  },
  id: "3198bc9c-6672-5ab3-d995-4942343ae5b6",
  version: 3,
};
const SCRYPT = {
  ...PBKDF2,
  crypto: {
    cipher: "aes-128-ctr",
    cipherparams: { iv: "83dbcc02d8ccb40e466191a123791e0e" },
    ciphertext: "d172bf743a674da9cdad04534d56926ef8358534d458fffccd4e6ad2fbde479c",
    kdf: "scrypt",
    kdfparams: {
      dklen: 32,
      n: 262_144,
      p: 8,
      r: 1,
      salt: "ab0c7876052600dd703518d6fc3fe8984592145b591fc8fb5c6d43190334ba19",
    },
    mac: "2103ac29920d71da29f15d75b4a16dbe95cfd7ff8faea1056c33131d846e3097",
  },
};

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "mintmark-signer-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function written(name: string, content: unknown): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, typeof content === "string" ? content : JSON.stringify(content));
  return path;
}

describe("a keystore", () => {
  test("as geth writes it opens too", async () => {
    const cost = { N: 262_144, r: 8, p: 1, maxmem: 2 ** 29 };
    const salt = Buffer.alloc(32, 5);
    const derived = scryptSync(PASSWORD, salt, 32, cost).toString("hex");
    const kdfparams = { dklen: 32, n: cost.N, r: cost.r, p: cost.p, salt: salt.toString("hex") };
    const content = Keystore.encrypt(SECRET, `0x${derived}`, {
      iv: Buffer.alloc(16, 6),
      kdf: "scrypt",
      kdfparams,
    });
    const keystore = await written("geth.json", content);
    const passwordFile = await written("password", `${PASSWORD}\n`);
    const account = await accountOf({ keystore, passwordFile });
    expect(account?.address).toBe(privateKeyToAccount(SECRET).address);
  });

  test.each([
    ["pbkdf2", PBKDF2],
    ["scrypt", SCRYPT],
  ])("of the format's own example with %s opens by its password", async (name, content) => {
    const keystore = await written(`${name}.json`, content);
    const passwordFile = await written("password", `${PASSWORD}\n`);
    const account = await accountOf({ keystore, passwordFile });
    expect(account?.address).toBe(privateKeyToAccount(SECRET).address);
  });

  test("that cannot be opened is refused in words, without its password", async () => {
    const keystore = await written("good.json", PBKDF2);
    const wrong = await written("wrong", "not the password");
    const good = await written("password", PASSWORD);
    const hungry = {
      ...PBKDF2,
      crypto: { ...SCRYPT.crypto, kdfparams: { ...SCRYPT.crypto.kdfparams, n: 2 ** 30 } },
    };
    const odd = {
      ...PBKDF2,
      crypto: { ...SCRYPT.crypto, kdfparams: { ...SCRYPT.crypto.kdfparams, n: 3 } },
    };
    const cases = [
      [{ keystore, passwordFile: wrong }, /password does not open the keystore .*good\.json/],
      [{ keystore: join(folder, "none.json"), passwordFile: good }, /none\.json cannot be read/],
      [
        { keystore: await written("text.json", "{"), passwordFile: good },
        /no keystore of version 3/,
      ],
      [
        { keystore: await written("hungry.json", hungry), passwordFile: good },
        /crypto\.kdfparams\.n is wrong/,
      ],
      [
        { keystore: await written("odd.json", odd), passwordFile: good },
        /crypto\.kdfparams is wrong/,
      ],
      [{ keystore, passwordFile: await written("empty", "\n") }, /no password for the keystore/],
    ] as const;
    for (const [source, reason] of cases) {
      const error = await accountOf(source).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({
        code: "keystore_invalid",
        message: expect.stringMatching(reason),
      });
      expect(String(error)).not.toContain("not the password");
    }
  });
});

test("a variable of a process's key that is empty counts as unset", async () => {
  for (const name of ["KEYSTORE", "SIGNER", "PASSWORD_FILE"])
    vi.stubEnv(`MINTMARK_MEMBER_${name}`, "");
  vi.stubEnv("MINTMARK_MEMBER_KEY", KEY);
  try {
    expect((await processAccount("MEMBER")).account.address).toBe(OWN.address);
    vi.stubEnv("MINTMARK_MEMBER_KEYSTORE", "key.json");
    await expect(processAccount("MEMBER")).rejects.toThrow("give one of MINTMARK_MEMBER_KEY");
  } finally {
    vi.unstubAllEnvs();
  }
});

test("the address of a process's signing service is secret in its log", async () => {
  vi.stubEnv("MINTMARK_MEMBER_SIGNER", `${OWN.address}=http://127.0.0.1:1/keys/0123456789abcdef`);
  try {
    expect((await processAccount("MEMBER")).secrets).toEqual(["0123456789abcdef"]);
  } finally {
    vi.unstubAllEnvs();
  }
});

describe("a signer", () => {
  const sign = (message: Hex) => secp256k1.sign(hexToBytes(keccak256(message)), hexToBytes(KEY));
  const high = (message: Hex) => {
    const { r, s } = sign(message);
    return new secp256k1.Signature(r, secp256k1.CURVE.n - s);
  };
  const base = {
    chainId: 31_337,
    nonce: 7,
    to: TO,
    value: 1n,
    gas: 21_000n,
    maxFeePerGas: 9n,
    maxPriorityFeePerGas: 1n,
  };
  const blobs = {
    ...base,
    blobVersionedHashes: [`0x01${"ab".repeat(31)}`],
    maxFeePerBlobGas: 3n,
    sidecars: false,
  };
  const transactions = [
    { ...base, type: "eip1559" },
    { ...blobs, type: "eip4844" },
  ] as unknown as TransactionSerializable[];
  const settlement = { chainId: CHAIN_ID, contract: TO };
  const message = { vaultId: 1n, withdrawnBefore: 0n, quantity: 4n, recipient: TO, deadline: 9n };
  const typedData = withdrawalListTypedData(settlement, listOfOne(message));

  test.each([
    ["64 bytes", (data: Hex) => `0x${sign(data).toCompactHex()}`],
    ["65 bytes", (data: Hex) => `0x${sign(data).toCompactHex()}1b`],
    ["a high s, as a KMS may", (data: Hex) => `0x${high(data).toCompactHex()}`],
  ])("that answers %s signs as the key itself does", async (_, answer) => {
    const account = signerAccount({
      address: OWN.address,
      sign: async (data) => answer(data) as Hex,
    });
    for (const transaction of transactions) {
      expect(await account.signTransaction(transaction)).toBe(
        await OWN.signTransaction(transaction),
      );
    }
    expect(await account.signTypedData(typedData)).toBe(await OWN.signTypedData(typedData));
    expect(await account.signMessage({ message: "hello" })).toBe(
      await OWN.signMessage({ message: "hello" }),
    );
  });

  test.each([
    [
      "of another key",
      ADMIN.address,
      (data: Hex) => `0x${sign(data).toCompactHex()}`,
      /is of another key/,
    ],
    ["that is none", OWN.address, () => "0x1234", /no signature of 64 or 65 bytes/],
  ])("whose signature is one %s is refused", async (_, address, answer, reason) => {
    const account = signerAccount({ address, sign: async (data) => answer(data) as Hex });
    await expect(account.signTypedData(typedData)).rejects.toMatchObject({
      code: "signer_failed",
      message: expect.stringMatching(reason),
    });
  });

  test("whose answer never ends is read no further than a signature is long, and shown on one line", async () => {
    const part = Buffer.from(`no\n\u001b[31m${"x".repeat(65_536)}`);
    let sent = 0;
    const endless = createServer((_, response) => {
      response.writeHead(403);
      const more = () => {
        while (!response.destroyed && response.write(part)) sent += part.length;
      };
      response.on("drain", more);
      more();
    });
    await once(endless.listen(0, "127.0.0.1"), "listening");
    const { port } = endless.address() as AddressInfo;
    const account = signerAccount(httpSigner(OWN.address, `http://127.0.0.1:${port}/`));
    await expect(account.signTypedData(typedData)).rejects.toMatchObject({
      code: "signer_failed",
      message: expect.stringMatching(/answered 403: no \[31mx{100,200}\.$/),
    });
    expect(sent).toBeLessThan(32 * 2 ** 20);
    endless.closeAllConnections();
    endless.close();
  });
});

describe("the signing service of the examples", () => {
  let rpcUrl: string;
  let contract: Hex;
  let signer: string;
  let service: ChildProcess;
  let pem: string;
  const stack = new AsyncDisposableStack();
  const spawned = (args: readonly string[], env: Record<string, string> = {}) => {
    const child = spawn(process.execPath, args, {
      cwd: ROOT,
      stdio: ["ignore", "pipe", "pipe"],
      env: cleanEnvironment(env),
    });
    stack.defer(() => void child.kill("SIGKILL"));
    return child;
  };
  /**
   * The first line that a process prints of this form; everything that it has printed, by `said`.
   */
  const said = new Map<ChildProcess, string>();
  const printed = (child: ChildProcess, pattern: RegExp) =>
    new Promise<string>((resolve, reject) => {
      const read = (chunk: Buffer) => {
        said.set(child, `${said.get(child) ?? ""}${chunk}`);
        const [, found] = pattern.exec(said.get(child) ?? "") ?? [];
        if (found !== undefined) resolve(found);
      };
      child.stdout?.on("data", read);
      child.stderr?.on("data", read);
      child.once("exit", () => reject(new Error(said.get(child))));
    });

  beforeAll(async () => {
    const chain = await startChain("local", 0);
    stack.defer(() => chain.stop());
    ({ rpcUrl } = chain);
    const terms = { ...TERMS, committee: [ADMIN.address], threshold: 1, maturity: 1n };
    contract = (
      await deploySettlement(await adminOver(http(rpcUrl)), terms)
    ).address.toLowerCase() as Hex;
    const [x, y] = [OWN.publicKey.slice(4, 68), OWN.publicKey.slice(68)].map((hex) =>
      base64(`0x${hex}`),
    );
    const jwk = { kty: "EC", crv: "secp256k1", d: base64(KEY), x, y };
    const key = createPrivateKey({ key: jwk as never, format: "jwk" });
    pem = await written("key.pem", String(key.export({ type: "pkcs8", format: "pem" })));
    service = spawned(["examples/signing-service.ts", pem, "0", `${CHAIN_ID}`, contract]);
    signer = await printed(service, /^(0x\S+=http:\S+)$/m);
  });
  afterAll(() => stack.disposeAsync());

  const base64 = (hex: string) => Buffer.from(hex.slice(2), "hex").toString("base64url");

  test("signs no transaction to another contract, and says so", async () => {
    const [address = "", url = ""] = signer.split("=");
    const account = signerAccount(httpSigner(address as Hex, url));
    const transaction = {
      to: TO,
      chainId: 31_337,
      nonce: 0,
      gas: 1n,
      maxFeePerGas: 1n,
      type: "eip1559",
    } as const;
    await expect(account.signTransaction(transaction)).rejects.toMatchObject({
      code: "signer_failed",
      message: expect.stringContaining("answered 403: this key signs no transaction to 0x5e"),
    });
  });

  test("signs nothing for another chain, no ether, no foreign typed data, and nothing for a page", async () => {
    const [address = "", url = ""] = signer.split("=");
    const account = signerAccount(httpSigner(address as Hex, url));
    const transaction = {
      to: contract,
      chainId: 31_337,
      nonce: 0,
      gas: 1n,
      maxFeePerGas: 1n,
      type: "eip1559",
    } as const;
    const refused = (message: string) => ({
      code: "signer_failed",
      message: expect.stringContaining(message),
    });
    await expect(account.signTransaction({ ...transaction, chainId: 999 })).rejects.toMatchObject(
      refused("no transaction on chain 999"),
    );
    await expect(account.signTransaction({ ...transaction, value: 1n })).rejects.toMatchObject(
      refused("this key sends no ether"),
    );
    const types = { Permit: [{ name: "spender", type: "address" }] } as const;
    const message = { spender: TO } as const;
    const domain = {
      name: "Mintmark",
      version: "1",
      chainId: 31_337,
      verifyingContract: TO,
    } as const;
    const permit = { domain, types, primaryType: "Permit", message } as const;
    await expect(account.signTypedData(permit)).rejects.toMatchObject(
      refused("typed data of one contract only"),
    );
    const own = { ...permit, domain: { ...domain, verifyingContract: contract } } as const;
    expect(await account.signTypedData(own)).toMatch(/^0x[0-9a-f]{130}$/);
    const body = JSON.stringify({ data: "0x02" });
    const page = { method: "POST", headers: { "content-type": "text/plain" }, body };
    expect((await fetch(url, page)).status).toBe(415);
  });

  test("signs the operator's commits, so that the server has no key", async () => {
    const store = join(folder, "store");
    const settlement = { chainId: CHAIN_ID, contract, engineVersion: 5 };
    const engine = await openTest(store, { settlement });
    const { applicationId } = await engine.applications.create({ name: "Game" });
    const { secret } = await engine.keys.issue(applicationId);
    const asset = { standard: "erc20", contractAddress: TO, name: "Gold", symbol: "GLD" } as const;
    const assetId = await readyAsset(engine, applicationId, asset);
    await engine.close();
    const server = spawned(SERVER, {
      ...settingsOf(store, settlement),
      MINTMARK_RPC_URL: rpcUrl,
      MINTMARK_OPERATOR_SIGNER: signer,
      MINTMARK_MEMBERS: `${ADMIN.address}=http://127.0.0.1:1`,
      MINTMARK_THRESHOLD: "1",
      MINTMARK_SEAL_SECONDS: "1",
      MINTMARK_SETTLE_SECONDS: "1",
      MINTMARK_CONFIRMATIONS: "0",
      MINTMARK_PORT: "0",
    });
    const url = await printed(server, /Server listening at (http:[^"\s]+)/);
    const mints = [{ assetId, amount: "5", dataAvailabilityMode: "zk-rollup" }];
    const mint = async () => {
      const headers = { "x-api-key": secret, "content-type": "application/json" };
      const body = JSON.stringify({ users: [{ ownerAddress: ADMIN.address, mints }] });
      expect((await fetch(`${url}/api/v1/mint`, { method: "POST", headers, body })).status).toBe(
        200,
      );
    };
    // Without its signer the server mints, commits nothing, and says so.
    service.kill("SIGKILL");
    await mint();
    const readiness = async () => JSON.stringify(await (await fetch(`${url}/readyz`)).json());
    await expect
      .poll(readiness, { interval: 250 })
      .toMatch(/checks\/commit.{0,80}The signer of an account refused or did not answer; start it/);
    // Only the log has the address of the service.
    expect(said.get(server)).toMatch(
      /signing service at http:\/\/127\.0\.0\.1:\d+ cannot be reached/,
    );
    const { port } = new URL(signer.slice(signer.indexOf("=") + 1));
    spawned(["examples/signing-service.ts", pem, port, `${CHAIN_ID}`, contract]);
    const read = async () =>
      (await (await fetch(`${url}/public/v1/batches/zk-rollup-0`)).json()) as { l1TxHash: Hex };
    await expect.poll(async () => (await read()).l1TxHash, { interval: 250 }).toMatch(/^0x/);
    const client = createTestClient({ mode: "anvil", transport: http(rpcUrl) });
    const { l1TxHash } = await read();
    const sent = (await client.request({
      method: "eth_getTransactionByHash",
      params: [l1TxHash],
    } as never)) as {
      readonly from: Hex;
    };
    expect(sent.from).toBe(OWN.address.toLowerCase());
    // The log tells each step at info level.
    for (const step of ["sealed", "committed"]) {
      await expect.poll(() => said.get(server)).toMatch(new RegExp(`"level":30[^\\n]*${step}`));
    }
    expect(said.get(server)).not.toContain(KEY.slice(2));
    server.kill("SIGTERM");
    expect(await once(server, "exit")).toEqual([0, null]);
  });
});
