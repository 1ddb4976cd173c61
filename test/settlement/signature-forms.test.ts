import hre from "hardhat";
import {
  createWalletClient,
  getContract,
  type Hex,
  hashMessage,
  hashTypedData,
  type LocalAccount,
  type PublicClient,
  zeroHash,
} from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Address, VaultId } from "../../core/index.ts";
import { stateCommitmentAbi } from "../../core/l1/abi.ts";
import {
  revocationCalldata,
  sessionCalldata,
  withdrawalCancellationCalldata,
} from "../../core/l1/index.ts";
import { ecdsaForm } from "../../core/protocol/index.ts";
import { compactBytes } from "../../core/protocol/signature.ts";
import {
  sessionEndTypedData,
  sessionTypedData,
  transfersTypedData,
} from "../../core/protocol/transfer.ts";
import { cancellationTypedData, withdrawalListTypedData } from "../../core/protocol/typed-data.ts";
import { lower } from "../../scripts/deploy/deployer.ts";
import { buildServer } from "../../server/app.ts";
import { at, createWorld, inTwentyDays, MATURITY, type World } from "./fixture.ts";
import { becomeFinal, friendOf, TRANSFERABLE } from "./transfers-fixture.ts";

/** How a wallet writes its signature. The name of each is what the tests say of it. */
const FORMS: Readonly<Record<string, (signature: Hex) => Hex>> = {
  "65 bytes with v 27 or 28": (signature) => signature,
  "65 bytes with v 0 or 1": (signature) =>
    `${signature.slice(0, 130)}${signature.endsWith("1b") ? "00" : "01"}` as Hex,
  "64 bytes": compactBytes,
};

/** The signer for vaults: an account by its key, or the wallet contract of that key. */
interface Owner {
  readonly address: Address;
  readonly sign: (digest: Hex) => Promise<Hex>;
  readonly isWallet: boolean;
}

const TOKENS_OF_OWNER = 4;

describe("a signature in each form is good on L1, from", () => {
  let world: World;
  let app: Awaited<ReturnType<typeof buildServer>>;
  let secret: string;
  const owners = new Map<string, Owner>();
  const vaults = new Map<Owner, readonly VaultId[]>();
  const key = privateKeyToAccount(generatePrivateKey());

  beforeAll(async () => {
    world = await createWorld({
      config: { transfers: true },
      tokens: TRANSFERABLE,
      verifySignature: (_chainId, ...signed) => world.l1.verifySignature(...signed),
    });
    const { chain, engine, l1, principal, users, assets } = world;
    app = await buildServer({
      engine,
      chains: new Map([[engine.settlement.chainId, async () => l1]]),
    });
    secret = (await engine.keys.issue(principal.applicationId)).secret;
    for (const [i, [name, written]] of Object.entries(FORMS).entries()) {
      const account: LocalAccount = at(users, i).owner;
      owners.set(name, {
        address: lower(account.address),
        sign: async (hash) => written((await account.sign?.({ hash })) ?? "0x"),
        isWallet: false,
      });
    }
    owners.set("a wallet contract's key", {
      address: await walletOf(key.address),
      sign: (hash) => key.sign({ hash }),
      isWallet: true,
    });
    const told = `0x${"7e11".repeat(10)}` as const;
    await chain.rpc("hardhat_setCode", [told, SAYS_YES]);
    owners.set("a wallet contract that was told on chain", {
      address: told,
      sign: async () => "0x",
      isWallet: true,
    });
    for (const owner of owners.values()) {
      const { address: ownerAddress } = owner;
      const mint = { assetId: assets.get("erc721"), amount: 1, dataAvailabilityMode: "zk-rollup" };
      const first = vaults.size * TOKENS_OF_OWNER;
      const mints = Array.from({ length: TOKENS_OF_OWNER }, (_, i) => ({
        ...mint,
        tokenId: `${first + i}`,
      }));
      const { vaults: made } = await engine.mint(principal, {
        users: [{ ownerAddress, mints }],
      } as unknown);
      vaults.set(
        owner,
        made.map(({ vaultId }) => vaultId),
      );
    }
    await world.settler.round();
    await chain.passSeconds(MATURITY + 1n);
    await becomeFinal(world);
  });
  afterAll(async () => {
    await app.close();
    await world.close();
  });

  async function walletOf(account: Address): Promise<Address> {
    const { abi, bytecode } = await hre.artifacts.readArtifact("Wallet1271");
    const { transport, client } = world.chain;
    const payer = createWalletClient({ account: key, transport });
    await world.chain.rpc("hardhat_setBalance", [key.address, "0xde0b6b3a7640000"]);
    const hash = await payer.deployContract({
      abi,
      bytecode: bytecode as Hex,
      args: [account, 0],
      chain: null,
    });
    const { contractAddress } = await client.waitForTransactionReceipt({ hash });
    return lower(contractAddress ?? "0x");
  }

  const post = (url: string, payload: unknown) => {
    const body = JSON.stringify(payload, (_, value: unknown) =>
      typeof value === "bigint" ? `${value}` : value,
    );
    const headers = {
      "x-api-key": secret,
      "content-type": "application/json",
      host: "localhost:3000",
    };
    return app.inject({ method: "POST", url, headers, body });
  };
  /** A transaction of somebody who pays, and is nobody's owner. */
  async function send(data: Hex): Promise<void> {
    const { transport, client, settlement } = world.chain;
    const payer = createWalletClient({ account: key, transport });
    const hash = await payer.sendTransaction({ to: settlement.address, data, chain: null });
    expect((await client.waitForTransactionReceipt({ hash })).status).toBe("success");
  }
  const contract = () =>
    getContract({
      abi: stateCommitmentAbi,
      address: world.chain.settlement.address,
      client: world.chain.client as PublicClient,
    });
  const all = () =>
    [...owners].map(([name, owner]) => ({ name, owner, ids: vaults.get(owner) ?? [] }));

  test("for withdrawals: lists of one vault and of many", async () => {
    const { engine } = world;
    const listed: string[] = [];
    for (const { owner, ids } of all())
      for (const some of [ids.slice(0, 1), ids.slice(1, 3)]) {
        const message = {
          vaults: some.map((vaultId) => ({ vaultId, withdrawnBefore: 0n, quantity: 1n })),
          recipient: owner.address,
          deadline: inTwentyDays(),
        };
        const typed = withdrawalListTypedData(engine.settlement, message);
        const signature = await owner.sign(hashTypedData(typed));
        const answer = await post("/api/v1/withdrawals", { ...message, signature });
        expect(answer.statusCode, answer.body).toBe(202);
        for (const { withdrawal } of answer.json().vaults) listed.push(withdrawal.withdrawalId);
      }
    expect(listed).toHaveLength(owners.size * 3);
    await world.settler.round();
    await becomeFinal(world);
    for (const withdrawalId of listed)
      expect(
        await engine.withdrawals.get(world.principal.applicationId, withdrawalId),
      ).toMatchObject({ status: "finalized", failure: null });
  });

  test("for transfers; wallet contracts approve them on L1", async () => {
    const { engine, principal } = world;
    const given: string[] = [];
    const friend = friendOf(world);
    for (const { name, owner, ids } of all()) {
      const transfers = [{ vaultId: ids[3] ?? 0n, amount: 0n, to: friend }];
      const message = { transfers, deadline: BigInt(Math.floor(Date.now() / 1000) + 86_400) };
      const digest = hashTypedData(transfersTypedData(engine.settlement, message));
      const signature = await owner.sign(digest);
      const answer = await post("/api/v1/transfers", { ...message, signature });
      if (!owner.isWallet) given.push(answer.json().transferId);
      expect(answer.statusCode, name).toBe(owner.isWallet ? 422 : 202);
    }
    await world.settler.round();
    await becomeFinal(world);
    for (const id of given)
      expect((await engine.transfers.get(principal.applicationId, id)).transfers[0]).toMatchObject({
        failure: null,
        amount: 1n,
      });
    expect(given).toHaveLength(3);
  });

  test("for sessions, their end, and cancellations, whoever pays", async () => {
    const { settlement } = world.engine;
    for (const { name, owner } of all()) {
      const game = lower(privateKeyToAccount(generatePrivateKey()).address);
      const until = 2n ** 40n;
      const session = { owner: owner.address, key: game, until, limit: 1n, assetType: zeroHash };
      const digest = hashTypedData(sessionTypedData(settlement, session));
      const body = { ownerAddress: owner.address, keyAddress: game, until, limit: "1" };
      const signature = await owner.sign(digest);
      const answer = await post("/api/v1/session-keys/prepare", { ...body, signature });
      expect(answer.statusCode, answer.body).toBe(200);
      await send(answer.json().call.data);
      const [authorizedAt] = await contract().read.session([owner.address, game]);
      expect(authorizedAt, name).toBeGreaterThan(0n);
      const bare = await post("/api/v1/session-keys/prepare", body);
      expect(bare.json().call.data).toBe(sessionCalldata(session));

      const end = { owner: owner.address, key: game };
      const ending = hashTypedData(sessionEndTypedData(settlement, end));
      await send(revocationCalldata(end, await formOf(owner, ending)));
      expect((await contract().read.session([owner.address, game]))[2], name).toBeGreaterThan(0n);

      const cancelled = { signer: owner.address, id: digest };
      const cancelling = hashTypedData(cancellationTypedData(settlement, cancelled));
      await send(withdrawalCancellationCalldata(cancelled, await formOf(owner, cancelling)));
      expect(await contract().read.isCancelled([owner.address, digest]), name).toBe(true);
    }
  });

  test("in place of one that L1 refused, which holds up no other withdrawal", async () => {
    const { chain, engine, principal, settler } = world;
    const owner = owners.get("a wallet contract that was told on chain") as Owner;
    const vaultId = vaults.get(owner)?.[3] ?? 0n;
    const list = {
      vaults: [{ vaultId, withdrawnBefore: 0n, quantity: 1n }],
      recipient: owner.address,
      deadline: inTwentyDays(),
    };
    const ask = async (signature: Hex) =>
      (await post("/api/v1/withdrawals", { ...list, signature })).json().vaults[0].withdrawal;
    const prepare = () => post("/api/v1/withdrawals/prepare", { vaults: [{ vaultId }] });
    const { withdrawalId } = await ask("0x1234");
    await chain.rpc("hardhat_setCode", [owner.address, SAYS_NO]);
    expect((await prepare()).statusCode).toBe(409);
    await settler.round();
    await chain.rpc("hardhat_setCode", [owner.address, SAYS_YES]);
    const withdrawal = () => engine.withdrawals.get(principal.applicationId, withdrawalId);
    expect(await withdrawal()).toMatchObject({
      status: "accepted",
      failure: expect.stringContaining("SignatureInvalid"),
    });
    expect((await prepare()).statusCode).toBe(200);
    expect(await ask("0x5678")).toMatchObject({ withdrawalId, status: "accepted" });
    const [pending] = await Array.fromAsync(
      engine.operator.pendingWithdrawals(engine.settlement.chainId),
    );
    expect(pending?.authorization.signature).toBe("0x5678");
    // Another attempt with the refused signature would wait for some seconds.
    await settler.round();
    expect((await withdrawal()).status).toBe("settled");
  });

  /** The form of an owner's signature that goes to L1, whatever wrote it. */
  async function formOf({ address, sign }: Owner, digest: Hex): Promise<Hex> {
    const signature = await sign(digest);
    return (await ecdsaForm(address, digest, signature)) ?? signature;
  }

  test("for a sign-in", async () => {
    for (const { name, owner } of all()) {
      const { message } = (await post("/owner/v1/challenge", { address: owner.address })).json();
      const signature = await owner.sign(hashMessage(message));
      const answer = await post("/owner/v1/sign-in", { message, signature });
      expect(answer.json(), name).toMatchObject({ address: owner.address });
    }
  });

  test("and in no other: another's, a high s, an undeployed wallet's, or v 0 and 1 of a wallet", async () => {
    const [first] = all();
    const wallet = owners.get("a wallet contract's key") as Owner;
    const game = lower(key.address);
    const ask = async (owner: Address, sign: (digest: Hex) => Promise<Hex>) => {
      const session = { owner, key: game, until: 2n ** 40n, limit: 1n, assetType: zeroHash };
      const signature = await sign(
        hashTypedData(sessionTypedData(world.engine.settlement, session)),
      );
      const body = { ownerAddress: owner, keyAddress: game, until: 2n ** 40n, limit: "1" };
      return (await post("/api/v1/session-keys/prepare", { ...body, signature })).json();
    };
    const refused = { status: 422, code: "signature_invalid" };
    const owner = first?.owner.address ?? "0x";
    const own = (hash: Hex) => first?.owner.sign(hash) ?? key.sign({ hash });
    expect(await ask(owner, (hash) => key.sign({ hash }))).toMatchObject(refused);
    expect(await ask(owner, async (hash) => highS(await own(hash)))).toMatchObject(refused);
    expect(await ask(owner, async () => "0x")).toMatchObject(refused);
    expect(await ask(owner, async () => `0x${"00".repeat(64)}${"6492".repeat(16)}`)).toMatchObject({
      ...refused,
      detail: expect.stringContaining("Deploy the wallet"),
    });
    const other = FORMS["65 bytes with v 0 or 1"] as (signature: Hex) => Hex;
    expect(
      await ask(wallet.address, async (hash) => other(await key.sign({ hash }))),
    ).toMatchObject(refused);
  });
});

/** Code that says yes to every question about a signature, and code that has no answer. */
const SAYS_YES = "0x631626ba7e60e01b5f5260205ff3";
const SAYS_NO = "0x00";
const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

/** The other signature of the same key over the same digest, which L1 refuses. */
function highS(signature: Hex): Hex {
  const s = (ORDER - BigInt(`0x${signature.slice(66, 130)}`)).toString(16).padStart(64, "0");
  return `${signature.slice(0, 66)}${s}${signature.endsWith("1b") ? "1c" : "1b"}` as Hex;
}
