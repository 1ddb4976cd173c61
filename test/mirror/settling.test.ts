import { readFile } from "node:fs/promises";
import { createWalletClient, custom, erc20Abi, erc721Abi, parseAbi, toHex } from "viem";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  type Engine,
  type Mode,
  type Standard,
  type VaultId,
  WITHDRAWAL_EVENTS,
} from "../../core/index.ts";
import { signatureChecks } from "../../core/l1/connect.ts";
import { proofOnMirror } from "../../core/mirror/relay.ts";
import { KzgThread } from "../../core/protocol/kzg/kzg-thread.ts";
import { unpackVaultId } from "../../core/protocol/vault.ts";
import type { MirrorSettler } from "../../core/settlement/mirror-settler.ts";
import { send } from "../../scripts/deploy/deployer.ts";
import { deployMirror } from "../../scripts/deploy/mirror.ts";
import { ADMIN, OPERATOR, USERS } from "../../scripts/sandbox/accounts.ts";
import { MATURITY, type Request, readyAsset } from "../settlement/fixture.ts";
import { signTransfers } from "../settlement/transfers-fixture.ts";
import {
  CONFIRMATIONS,
  connectFar,
  createMirrorWorld,
  type MirrorWorld,
  newMirrorSettler,
} from "./fixture.ts";

const OWNER = USERS[0].owner;

const WALLET = new URL(
  "../../artifacts/contracts/test/Wallet1271.sol/Wallet1271.json",
  import.meta.url,
);
const ROLES = parseAbi(["function MINTER_ROLE() view returns (bytes32)"]);

let world: MirrorWorld;
afterEach(() => world.close());

const mintFar = (standard: "erc20" | "erc721", mode: Mode, text: string, amount = 1) =>
  ({ ...world.near, assets: world.far.assets }).mint(standard, mode, text, amount);
const requestFar = (vaultId: VaultId, quantity = 1n) =>
  world.near.requestWithdrawal(vaultId, quantity, undefined, world.mirror.settlement);
/** Commits what is minted, and lets its commit become final. */
async function commitFinally(): Promise<void> {
  await world.near.settler.round();
  await world.near.chain.mine(Number(CONFIRMATIONS));
}
/** The settler of the state's own chain beside one of the mirror. */
const besides = (mirror: MirrorSettler) =>
  world.near.chain.newSettler({ ...world.near, mirrors: [mirror] });
const statusOf = async ({ withdrawalId }: { readonly withdrawalId: string }) =>
  (await world.near.engine.withdrawals.get(world.near.principal.applicationId, withdrawalId))
    .status;
const vaultOf = (vaultId: VaultId) =>
  world.near.engine.vaults.get(world.near.principal.applicationId, vaultId);
const tokenOf = (standard: Standard) => world.far.tokens.get(standard) ?? "0x";
const farBalance = (standard: "erc20" | "erc721") =>
  world.far.client.readContract({
    abi: standard === "erc20" ? erc20Abi : erc721Abi,
    address: tokenOf(standard),
    functionName: "balanceOf",
    args: [OWNER.address],
  });
const farTransactions = () => world.far.client.getTransactionCount({ address: OPERATOR.address });

describe("withdrawals of another chain's tokens", () => {
  beforeEach(async () => {
    world = await createMirrorWorld();
  });

  test("go there by themselves once the batch is final, and what owners do there alone is reflected", async () => {
    const settler = await newMirrorSettler(world);
    const { near } = world;
    const [points, sword] = [
      await mintFar("erc20", "validium", "", 5),
      await mintFar("erc721", "zk-rollup", "7"),
    ];
    const home = await near.mint("erc20", "validium", "", 2);
    await near.settler.round();
    const asked = [await requestFar(points, 3n), await requestFar(sword)];
    const beside = await near.requestWithdrawal(home, 2n);
    // Nobody vouches for a commit that is not final; the settlement contract's own chain need not
    // wait.
    expect(await settler.round()).toEqual({ imported: 0, withdrawn: 0 });
    expect((await near.settler.round()).withdrawn).toBe(1);
    await near.chain.mine(Number(CONFIRMATIONS));
    expect(await settler.round()).toEqual({ imported: 2, withdrawn: 1 });
    expect(await farBalance("erc20")).toBe(30n);
    expect(await Promise.all([...asked, beside].map(statusOf))).toEqual([
      "settled",
      "accepted",
      "settled",
    ]);
    // An ERC-721 matures by the mirror's clock.
    await world.far.passSeconds(MATURITY);
    expect(await settler.round()).toEqual({ imported: 0, withdrawn: 1 });
    expect(await farBalance("erc721")).toBe(1n);
    expect(await vaultOf(points)).toMatchObject({ withdrawnBalance: 3n, availableBalance: 2n });

    const mirror = await world.far.mirrorBy(OWNER);
    const { vault, header, ...path } = await proofOnMirror(
      await near.engine.proofs.vault(points),
      mirror,
    );
    if (header === null) throw new Error("not on the mirror");
    await mirror.withdrawOwn({
      vault,
      header,
      ...path,
      quantity: 2n,
      recipient: OWNER.address,
      authorization: null,
    });
    await settler.round();
    expect(await vaultOf(points)).toMatchObject({ withdrawnBalance: 5n, availableBalance: 0n });
    await world.far.mine(Number(CONFIRMATIONS));
    await settler.round();
    expect(await Promise.all(asked.map(statusOf))).toEqual(["finalized", "finalized"]);
    // A mirror has no transfers.
    const signed = await signTransfers(near, [
      { vaultId: points, amount: 0n, to: OPERATOR.address },
    ]);
    await expect(near.engine.transfers.request(near.principal, signed)).rejects.toMatchObject({
      code: "asset_not_transferable",
    });
    expect((await near.engine.operator.verify()).problems).toEqual([]);
  });

  test("stay, and are paid, while the mirror's node answers [] for logs", async () => {
    const { near, far } = world;
    const node = { isSilent: false };
    const connect = async () => {
      const mirror = await connectFar(world);
      const events = mirror.events.bind(mirror);
      return Object.assign(mirror, {
        events: async (...range: Parameters<typeof events>) =>
          node.isSilent ? [] : events(...range),
      });
    };
    const settler = await newMirrorSettler(world, { connect });
    const vaults = [
      await mintFar("erc20", "validium", "", 5),
      await mintFar("erc20", "zk-rollup", ""),
    ];
    await commitFinally();
    const [first = 0n, second = 0n] = vaults;
    const asked = [await requestFar(first, 3n)];
    await settler.round();
    node.isSilent = true;
    asked.push(await requestFar(second));
    /** Rounds of which some fail while the node leaves out what it told of before. */
    const rounds = async () => {
      for (let i = 0; i < 4; i++) {
        await far.mine(Number(CONFIRMATIONS) / 2);
        await settler.round().catch((error) => expect(error.code).toBe("l1_failed"));
      }
    };
    await rounds();
    expect(await Promise.all(asked.map(statusOf))).toEqual(["settled", expect.any(String)]);
    expect(await vaultOf(first)).toMatchObject({ withdrawnBalance: 3n });
    node.isSilent = false;
    await rounds();
    expect(await Promise.all(asked.map(statusOf))).toEqual(["finalized", "finalized"]);
    expect(await farBalance("erc20")).toBe(40n);
    expect((await near.engine.operator.verify()).problems).toEqual([]);
  });

  test("are paid though a stranger has registered another quantum of the token first, on both chains", async () => {
    const { near, far } = world;
    const [chainId, token] = [BigInt(far.by.chainId), `0x${"7a".padStart(40, "0")}` as const];
    // Takes every call and answers none: it states neither standard nor quantum.
    await far.rpc("hardhat_setCode", [token, "0x00"]);
    for (const quantum of [7n, 10n]) {
      await send(far.by, "StateMirror", far.contract, "registerAsset", [
        1,
        chainId,
        token,
        quantum,
        0,
      ]);
      const { by, settlement } = near.chain;
      await send(by, "StateCommitment", settlement.address, "registerAsset", [
        1,
        chainId,
        token,
        quantum,
        0,
      ]);
    }
    for (const chain of [near.chain, far]) await chain.mine(Number(CONFIRMATIONS));
    const asset = {
      standard: "erc20",
      chainId,
      contractAddress: token,
      quantum: 10n,
      name: "S",
      symbol: "S",
    } as const;
    const assets = new Map([
      ["erc20" as const, await readyAsset(near.engine, near.principal.applicationId, asset)],
    ]);
    const points = await { ...near, assets }.mint("erc20", "validium", "", 5);
    await commitFinally();
    await near.settler.round();
    const asked = await requestFar(points, 5n);
    expect(await (await newMirrorSettler(world)).round()).toEqual({ imported: 1, withdrawn: 1 });
    expect(await statusOf(asked)).toBe("settled");
    expect(await world.mirror.withdrawn(points, "erc20")).toBe(5n);
  });

  test("are taken back and sent again when that chain is reorganised, without the state's chain noticing", async () => {
    const settler = await newMirrorSettler(world);
    const { near, far } = world;
    const [first, second] = [
      await mintFar("erc20", "validium", "", 5),
      await mintFar("erc20", "zk-rollup", "", 4),
    ];
    await commitFinally();
    await near.settler.round();
    await settler.round();
    const beforeBatch = await far.rpc("evm_snapshot");
    const asked = [await requestFar(first, 5n)];
    await settler.round();
    const beforeSecond = await far.rpc("evm_snapshot");
    asked.push(await requestFar(second, 4n));
    await settler.round();
    // The second payment is gone; then all that this chain ever knew of the batches.
    for (const snapshot of [beforeSecond, beforeBatch]) {
      expect([await Promise.all(asked.map(statusOf)), await farBalance("erc20")]).toEqual([
        ["settled", "settled"],
        90n,
      ]);
      const reverted: string[] = [];
      const stop = near.engine.events.on(WITHDRAWAL_EVENTS, ({ event }) =>
        reverted.push(event.type),
      );
      await far.rpc("evm_revert", [snapshot]);
      await far.passSeconds(7n);
      await settler.round();
      stop();
      expect(reverted).toContain("withdrawal.reverted");
    }
    expect([await Promise.all(asked.map(statusOf)), await farBalance("erc20")]).toEqual([
      ["settled", "settled"],
      90n,
    ]);
    expect((await near.engine.batches.get("validium", 0)).status).toBe("finalized");
    expect((await near.engine.operator.verify()).problems).toEqual([]);
  });

  test("are sent again when that chain replaces final blocks while the server is down", async () => {
    const { near, far } = world;
    const vaultId = await mintFar("erc20", "validium", "", 5);
    await commitFinally();
    await near.settler.round();
    const settler = await newMirrorSettler(world);
    await settler.round();
    const before = await far.rpc("evm_snapshot");
    const asked = await requestFar(vaultId, 5n);
    await settler.round();
    await far.mine(Number(CONFIRMATIONS) + 5);
    await settler.round();
    expect(await statusOf(asked)).toBe("finalized");

    await far.rpc("evm_revert", [before]);
    await far.passSeconds(7n);
    await far.mine(2 * Number(CONFIRMATIONS));
    await (await newMirrorSettler(world)).round();
    expect([await statusOf(asked), await farBalance("erc20")]).toEqual(["settled", 50n]);
    expect((await near.engine.operator.verify()).problems).toEqual([]);
  });

  test("wait while that chain is down, and delay no withdrawal of the state's own chain", async () => {
    const { near } = world;
    let down = true;
    const request = ((call: Parameters<Request>[0]) => {
      if (down) throw new Error("connection refused");
      return world.far.request(call as never);
    }) as Request;
    const settler = await newMirrorSettler(world, { connect: () => connectFar(world, request) });
    const both = besides(settler);
    const [points, home] = [
      await mintFar("erc20", "validium", "", 5),
      await near.mint("erc20", "validium", "", 2),
    ];
    expect((await both.round()).committed).toBe(1);
    const [far, beside] = [await requestFar(points, 5n), await near.requestWithdrawal(home, 2n)];
    await expect(settler.round()).rejects.toMatchObject({ code: "l1_failed" });
    expect(await both.round()).toMatchObject({ withdrawn: 1 });
    down = false;
    await near.chain.mine(Number(CONFIRMATIONS));
    expect(await settler.round()).toEqual({ imported: 1, withdrawn: 1 });
    down = true;
    await mintFar("erc721", "validium", "8");
    await expect(settler.round()).rejects.toMatchObject({ code: "l1_failed" });
    expect((await both.round()).committed).toBe(1);
    expect(await Promise.all([far, beside].map(statusOf))).toEqual(["settled", "finalized"]);
  });

  test("go on without the committee from batches that the mirror has accepted already, and take no step that nobody waits for", async () => {
    const dead = { attest: () => Promise.reject(new Error("connection refused")) };
    const members = world.attesters.map(({ address }) => ({ address, ...dead }));
    const settler = await newMirrorSettler(world, { committee: { members, threshold: 3 } });
    const [known, unknown] = [
      await mintFar("erc20", "validium", "", 5),
      await mintFar("erc20", "zk-rollup", "", 4),
    ];
    await commitFinally();
    const asked = await requestFar(known, 5n);
    await expect(settler.round()).rejects.toThrow("connection refused");
    const living = await newMirrorSettler(world);
    expect(await living.round()).toEqual({ imported: 1, withdrawn: 1 });
    const steps = await world.mirror.stepCount();
    const later = await mintFar("erc20", "validium", "", 3);
    await commitFinally();
    const waiting = await requestFar(unknown, 4n);
    expect(await settler.round()).toEqual({ imported: 1, withdrawn: 1 });
    expect([await statusOf(asked), await statusOf(waiting)]).toEqual(["settled", "settled"]);
    expect(await world.mirror.stepCount()).toBe(steps);
    await requestFar(later, 3n);
    await expect(settler.round()).rejects.toThrow("connection refused");
  });

  test("are taken for no contract that mirrors another state", async () => {
    const { near, far } = world;
    const config = { ...far.config, sourceContract: `0x${"44".repeat(20)}` as const };
    const { address } = await deployMirror(far.by, config);
    const other = await newMirrorSettler(world, { connect: () => far.mirrorBy(OPERATOR, address) });
    await expect(other.round()).rejects.toThrow(
      / is no mirror of 0x.* on chain \d+, but of 0x4{40} on chain \d+$/,
    );
    expect(near.engine.operator.portals().map(({ contract }) => contract)).not.toContain(address);
  });

  test("are given up when their authorization expires before that chain has heard of the batch", async () => {
    const settler = await newMirrorSettler(world);
    const points = await mintFar("erc20", "validium", "", 5);
    await world.near.settler.round();
    const soon = BigInt(Math.floor(Date.now() / 1000) + 1_800);
    const asked = await world.near.requestWithdrawal(points, 5n, soon, world.mirror.settlement);
    await settler.round();
    expect([await statusOf(asked), (await vaultOf(points)).availableBalance]).toEqual([
      "accepted",
      0n,
    ]);
    await world.far.passSeconds(3_600n);
    // Past in its newest block, and not finally so: a reorganisation could still take it.
    await settler.round();
    expect(await statusOf(asked)).toBe("accepted");
    await world.far.mine(Number(CONFIRMATIONS));
    await settler.round();
    expect([await statusOf(asked), (await vaultOf(points)).availableBalance]).toEqual([
      "failed",
      5n,
    ]);
  });

  test("are sent once, though the process is killed between sending and recording, or before the transaction is mined", async () => {
    const { near, far } = world;
    const { engine } = near;
    const [first, second] = [
      await mintFar("erc20", "validium", "", 5),
      await mintFar("erc20", "zk-rollup", "", 4),
    ];
    await commitFinally();
    const asked = [await requestFar(first, 5n)];
    const dying: Engine = {
      ...engine,
      operator: {
        ...engine.operator,
        recordWithdrawalSubmitted: () => Promise.reject(new Error("killed")),
      },
    };
    await expect((await newMirrorSettler(world, { engine: dying })).round()).rejects.toThrow(
      "killed",
    );
    const sent = await farTransactions();
    const successor = await newMirrorSettler(world);
    expect(await successor.round()).toEqual({ imported: 0, withdrawn: 0 });
    expect([await farTransactions(), await farBalance("erc20")]).toEqual([sent, 50n]);

    asked.push(await requestFar(second, 4n));
    await far.rpc("evm_setAutomine", [false]);
    const stopping = new AbortController();
    engine.events.on(WITHDRAWAL_EVENTS, ({ event }) => {
      if (event.type === "withdrawal.submitted") stopping.abort(new Error("stopped"));
    });
    const stopped = expect(successor.round(stopping.signal)).rejects.toThrow("stopped");
    const underWay = async () => {
      if (!(await world.mirror.isImported("zk-rollup", 0))) await far.mine(1);
      return stopping.signal.aborted;
    };
    await expect.poll(underWay).toBe(true);
    await stopped;
    await far.rpc("evm_setAutomine", [true]);
    await far.mine(1);
    await (await newMirrorSettler(world)).round();
    expect([await Promise.all(asked.map(statusOf)), await farBalance("erc20")]).toEqual([
      ["settled", "settled"],
      90n,
    ]);
  });
});

describe("withdrawals of another chain's vaults in blobs", () => {
  const kzg = new KzgThread();
  beforeEach(async () => {
    world = await createMirrorWorld({ fees: { kzg }, isAsked: false });
  });
  afterAll(() => kzg.close());

  test("are paid there, and are refused until its chain is known to open them", async () => {
    const { near } = world;
    await near.settler.chooseRollupData();
    const settler = await newMirrorSettler(world);
    await expect(mintFar("erc20", "zk-rollup", "", 5)).rejects.toThrow("has not learnt yet");
    // It asks the mirror's chain.
    await settler.round();
    const points = await mintFar("erc20", "zk-rollup", "", 5);
    const sword = await mintFar("erc721", "zk-rollup", "7");
    const kindOf = (vaultId: VaultId) =>
      near.engine.batches.get("zk-rollup", unpackVaultId(vaultId).batchNumber);
    await commitFinally();
    expect([(await kindOf(points)).kind, (await kindOf(sword)).kind]).toEqual(["blobs", "blobs"]);
    const asked = [await requestFar(points, 5n), await requestFar(sword)];
    expect(await settler.round()).toEqual({ imported: 1, withdrawn: 1 });
    await world.far.passSeconds(MATURITY);
    expect(await settler.round()).toEqual({ imported: 0, withdrawn: 1 });
    expect([await farBalance("erc20"), await farBalance("erc721")]).toEqual([50n, 1n]);
    expect(await Promise.all(asked.map(statusOf))).toEqual(["settled", "settled"]);
  });
});

describe("a wallet contract on another chain", () => {
  test("signs for the mirror there, and its own chain is asked whether it has", async () => {
    world = await createMirrorWorld({
      verifySignature: (...asked) => signatureChecks([world.near.l1, world.mirror])(...asked),
    });
    const { near, far, mirror } = world;
    const { abi, bytecode } = JSON.parse(await readFile(WALLET, "utf8"));
    const creator = createWalletClient({
      account: ADMIN,
      transport: custom({ request: far.request }),
    });
    const hash = await creator.deployContract({
      abi,
      bytecode,
      args: [OWNER.address, 0],
      chain: null,
    });
    const { contractAddress } = await far.client.waitForTransactionReceipt({ hash });
    const wallet = contractAddress ?? "0x";
    const { userId } = await near.engine.users.create(near.principal.applicationId, {
      ownerAddress: wallet,
    });
    const users = [{ userId, owner: { ...OWNER, address: wallet } }];
    const theirs = { ...near, users };
    const vaults = [
      await { ...theirs, assets: far.assets }.mint("erc20", "validium", "", 5),
      await theirs.mint("erc20", "validium", "", 5),
    ] as const;
    await commitFinally();
    const asked = await theirs.requestWithdrawal(vaults[0], 5n, undefined, mirror.settlement);
    // Where the wallet is not, nobody can say that it has signed.
    await expect(theirs.requestWithdrawal(vaults[1], 5n)).rejects.toMatchObject({
      code: "signature_invalid",
    });
    expect(await (await newMirrorSettler(world)).round()).toEqual({ imported: 1, withdrawn: 1 });
    expect(await statusOf(asked)).toBe("settled");
    expect(await mirror.holding(tokenOf("erc20"), "erc20", wallet, null)).toBe(50n);
  });
});

describe("tokens of another chain that could never be withdrawn", () => {
  beforeEach(async () => {
    world = await createMirrorWorld({ lockMinter: false });
  });

  test("are found when they are minted: their own chain is asked", async () => {
    const settler = await newMirrorSettler(world);
    const both = besides(settler);
    const { near, far } = world;
    await settler.round();
    // The application takes the next token for itself, there.
    const role = await far.client.readContract({
      abi: ROLES,
      address: tokenOf("erc721"),
      functionName: "MINTER_ROLE",
    });
    await send(far.by, "MintableERC721", tokenOf("erc721"), "grantRole", [role, ADMIN.address]);
    await send(far.by, "MintableERC721", tokenOf("erc721"), "mintFor", [
      ADMIN.address,
      1n,
      toHex("9"),
    ]);
    await far.mine(Number(CONFIRMATIONS));
    const [taken, free] = [
      await mintFar("erc721", "validium", "9"),
      await mintFar("erc721", "validium", "10"),
    ];
    await both.round();
    expect((await vaultOf(taken)).status).toBe("failed");
    expect((await vaultOf(free)).status).toBe("settled");
    // A token that only the settlement contract has in its registry: the mirror, which would have
    // to pay it, does not know it.
    const stranger = {
      ...({ standard: "erc20", chainId: world.mirror.settlement.chainId } as const),
      name: "New",
      symbol: "NEW",
    };
    const { assetId } = await near.engine.assets.add({
      ...stranger,
      contractAddress: `0x${"33".repeat(20)}`,
    });
    await near.engine.assets.whitelist(assetId);
    await near.engine.operator.recordRegistered(assetId);
    await send(far.by, "MintableERC20", tokenOf("erc20"), "revokeRole", [
      role,
      world.mirror.settlement.contract,
    ]);
    const asked = await newMirrorSettler(world);
    await asked.round();
    const { unavailableReason } = await near.engine.assets.get(
      near.principal.applicationId,
      far.assets.get("erc20") ?? "",
    );
    const unregistered = await near.engine.assets.get(near.principal.applicationId, assetId);
    expect(unregistered.unavailableReason).toContain("has no final registration of it");
    expect(unavailableReason).toContain(
      `${world.mirror.settlement.contract}, which pays its withdrawals, does not hold`,
    );
    expect((await near.engine.operator.verify()).problems).toEqual([]);
  });
});
