import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { createPublicClient, createWalletClient, custom, http, parseAbi, toHex } from "viem";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../../scripts/demo/until.ts";
import { USERS } from "../../scripts/sandbox/accounts.ts";
import { type Sandbox, startSandbox } from "../../scripts/sandbox/sandbox.ts";
import {
  type ApiError,
  answer,
  createClient,
  type MintmarkClient,
  mint,
  withdraw,
} from "../../server/client/index.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
const OWNER_OF = parseAbi(["function ownerOf(uint256) view returns (address)"]);
const [{ owner, userId }] = USERS;

describe("withdrawing through the client, on the sandbox's chain", () => {
  let folder: string;
  let sandbox: Sandbox;
  let client: MintmarkClient;
  let vaultIds: string[];
  /** The vaults of the tokens 1 to 7, by index. */
  const vault = (index: number) => vaultIds[index] ?? "";

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "mintmark-withdraw-"));
    sandbox = await startSandbox({ folder, port: 0, chainPort: 0 });
    const { api, apiKey, assets } = sandbox.description;
    client = createClient({ baseUrl: api, apiKey });
    const assetId = assets.find(({ standard }) => standard === "erc721")?.assetId ?? "";
    const mints = Array.from({ length: 7 }, (_, i) => ({
      tokenId: String(i + 1),
      assetId,
      amount: "1",
    }));
    const mode = { dataAvailabilityMode: "zk-rollup" } as const;
    const { vaults } = await mint(client, {
      users: [{ userId, mints: mints.map((one) => ({ ...one, ...mode })) }],
    });
    vaultIds = vaults.map(({ vaultId }) => vaultId);
    const read = () =>
      answer(client.GET("/api/v1/vaults/{vaultId}", { params: { path: { vaultId: vault(5) } } }));
    await until("the batch is sealed", read, ({ status }) => status !== "accepted");
  });
  afterAll(async () => {
    await sandbox?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  const chain = () => createPublicClient({ transport: http(sandbox.description.rpcUrl) });
  /** Who has a token on L1. */
  const ownerOf = (tokenId: bigint) => {
    const address =
      sandbox.description.assets.find(({ standard }) => standard === "erc721")?.contractAddress ??
      "0x";
    return chain().readContract({
      abi: OWNER_OF,
      address,
      functionName: "ownerOf",
      args: [tokenId],
    });
  };
  /** A wallet of the browser's kind. */
  const asked: string[] = [];
  const provider = {
    async request({ method, params }: { method: string; params?: readonly unknown[] }) {
      asked.push(method);
      if (method === "eth_signTypedData_v4")
        return owner.signTypedData(JSON.parse(String(params?.[1])));
      throw new Error(`the test's wallet knows no ${method}`);
    },
  };

  test("the documented example with viem withdraws a vault", async () => {
    const page = await readFile(join(ROOT, "docs/api.md"), "utf8");
    const example = /```js\n(import \{ privateKeyToAccount[\s\S]*?)```/.exec(page)?.[1] ?? "";
    const { api, apiKey } = sandbox.description;
    const env = {
      ...{
        PATH: process.env.PATH,
        MINTMARK_URL: api,
        MINTMARK_API_KEY: apiKey,
        VAULT_ID: vault(0),
      },
      OWNER_KEY: toHex(owner.getHdKey().privateKey ?? new Uint8Array()),
    };
    const args = ["--input-type=module", "--eval", example];
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: ROOT, env });
    expect(stdout).toContain("withdrawal: [Object]");
  });

  test("an account signs for several vaults at once, and the tokens are on L1 when it has waited", async () => {
    const ids = [vault(1), "77", vault(2)];
    const done = await withdraw(client, {
      vaultIds: ids,
      signer: owner,
      wait: true,
      pollingMs: 100,
    });
    expect(
      done.map(({ vaultId, withdrawal, error }) => [vaultId, withdrawal !== null, error?.code]),
    ).toEqual([
      [vault(1), true, undefined],
      ["77", false, "vault_not_found"],
      [vault(2), true, undefined],
    ]);
    for (const { withdrawal } of done)
      expect(withdrawal?.status ?? "settled").toMatch(/settled|finalized/);
    expect([await ownerOf(2n), await ownerOf(3n)]).toEqual([owner.address, owner.address]);
    await until(
      "the documented withdrawal is paid",
      () => ownerOf(1n).catch(() => null),
      (holder) => holder !== null,
    );
  });

  test("a provider, a wallet client over it, and the documented call of ethers sign the same", async () => {
    const byProvider = await withdraw(client, { vaultIds: [vault(3)], signer: provider });
    const wallet = createWalletClient({ transport: custom(provider) });
    const byWallet = await withdraw(client, { vaultIds: [vault(4)], signer: wallet });
    expect(asked).toEqual(["eth_signTypedData_v4", "eth_signTypedData_v4"]);
    const recipient = USERS[1].owner.address;
    const byFunction = await withdraw(client, {
      vaultIds: [vault(5)],
      recipient,
      signer: (typedData, ownerAddress) => {
        expect(ownerAddress).toBe(owner.address.toLowerCase());
        const { EIP712Domain: _, ...types } = typedData.types;
        return owner.signTypedData({ ...typedData, types });
      },
      wait: true,
      pollingMs: 100,
    });
    expect([byProvider, byWallet].map(([one]) => one?.withdrawal?.status)).toEqual([
      "accepted",
      "accepted",
    ]);
    expect(byFunction[0]?.withdrawal).toMatchObject({ recipient: recipient.toLowerCase() });
    expect(await ownerOf(6n)).toBe(recipient);
  });

  test("signs nothing but what it was asked for", async () => {
    const { api, apiKey } = sandbox.description;
    const thief = `0x${"ee".repeat(20)}`;
    const own = owner.address.toLowerCase();
    const signer = {
      signTypedData: () => expect.unreachable("a lie was signed"),
      address: owner.address,
    };
    const attempt = (truth: string, lie: string, more: object = {}) => {
      const lying: typeof fetch = async (input, init) => {
        const response = await fetch(input, init);
        return new Response((await response.text()).replaceAll(truth, lie), response);
      };
      const asked = { vaultIds: [vault(6)], signer, ...more };
      return withdraw(createClient({ baseUrl: api, apiKey, fetch: lying }), asked);
    };
    await expect(attempt(`"recipient":"${own}"`, `"recipient":"${thief}"`)).rejects.toThrow(
      "another recipient",
    );
    await expect(attempt(own, thief)).rejects.toThrow("Give the `recipient`");
    await expect(attempt(own, thief, { recipient: owner.address })).rejects.toThrow(
      "another recipient",
    );
    await expect(attempt(vault(6), "77")).rejects.toThrow("other vaults");
    await expect(attempt('"primaryType":"', '"primaryType":"Permit')).rejects.toThrow(
      "another message",
    );
    await expect(attempt('"name":"Mintmark"', '"name":"USD Coin"')).rejects.toThrow(
      "another message",
    );
    const deadline = String(Math.floor(Date.now() / 1_000) + 3_600);
    await expect(attempt(deadline, `${deadline}0`, { deadline })).rejects.toThrow(
      "another deadline",
    );
  });

  test("rejects with the reason when nothing can be withdrawn, or the wallet declines", async () => {
    const nothing = await withdraw(client, { vaultIds: ["77"], signer: owner }).catch(
      (error: ApiError) => error.code,
    );
    expect(nothing).toBe("vault_not_found");
    const spent = await withdraw(client, { vaultIds: [vault(1)], signer: owner }).catch(
      (error: ApiError) => error.code,
    );
    expect(spent).toBe("insufficient_balance");
    const declined = { code: 4001, message: "User rejected the request." };
    const signer = { request: () => Promise.reject(declined) };
    const pending = withdraw(client, { vaultIds: [vault(6)], signer });
    await expect(pending).rejects.toEqual(declined);
  });
});
