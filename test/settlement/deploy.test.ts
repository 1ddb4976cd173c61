import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import hre from "hardhat";
import type { Hex } from "viem";
import * as viem from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { readArtifact } from "../../core/l1/artifact.ts";
import { readL1 } from "../../core/l1/index.ts";
import { powersOf, roleHolders } from "../../core/l1/powers.ts";
import { contractCode } from "../../core/protocol/contract-code.ts";
import { checkPlan } from "../../scripts/deploy/check.ts";
import { deploy } from "../../scripts/deploy/deploy.ts";
import { type Deployer, deployContract, lower, send } from "../../scripts/deploy/deployer.ts";
import { pendingOf, readRecord, recordPath, writeRecord } from "../../scripts/deploy/record.ts";
import type { SettlementConfig } from "../../scripts/deploy/settlement.ts";
import type { TokenConfig } from "../../scripts/deploy/token.ts";
import { ADMIN, COMMITTEE, GUARDIAN, OPERATOR } from "../../scripts/sandbox/accounts.ts";
import { mintmark, mintmarkProcess } from "../cli/cli.ts";
import { adminOver, at, hardhat, TERMS } from "./fixture.ts";

const CONFIG: SettlementConfig = { ...TERMS, maturity: 5n };
const SWORDS: TokenConfig = {
  standard: "erc721",
  name: "Swords",
  symbol: "SWRD",
  admin: ADMIN.address,
};
const POINTS: TokenConfig = {
  standard: "erc20",
  name: "Points",
  symbol: "PTS",
  quantum: 10n,
  admin: ADMIN.address,
};

const erc20 = (fields: object) =>
  JSON.stringify({ standard: "erc20", name: "Points", symbol: "PTS", ...fields });

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "mintmark-deploy-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

describe("the deployment", () => {
  let node: Awaited<ReturnType<typeof hardhat>>;
  let by: Deployer;
  let record: string;
  const transactions = () => by.client.getTransactionCount({ address: ADMIN.address });

  beforeEach(async () => {
    node = await hardhat();
    by = await adminOver(viem.custom(node));
    record = recordPath(folder, by.chainId);
  });
  afterEach(() => node.close());

  test("run again verifies, and sends nothing", async () => {
    const first = await deploy(by, { record, settlement: CONFIG, tokens: [SWORDS, POINTS] });
    const sent = await transactions();
    const again = await deploy(by, { record, settlement: CONFIG, tokens: [SWORDS, POINTS] });
    expect(again).toEqual(first);
    expect(await readRecord(record)).toEqual(first);
    expect(await transactions()).toBe(sent);
  });

  test("interrupted before its tokens goes on from there", async () => {
    const first = await deploy(by, { record, settlement: CONFIG });
    const whole = await deploy(by, { record, settlement: CONFIG, tokens: [SWORDS, POINTS] });
    expect(whole.settlement).toEqual(first.settlement);
    expect(whole.tokens.map(({ symbol, minterLocked }) => [symbol, minterLocked])).toEqual([
      ["SWRD", true],
      ["PTS", true],
    ]);
  });

  /**
   * The deployer, whose process ends when it asks the chain for a method, once it has been answered
   * or before.
   */
  function killedAt(method: string, nth: number, isAnswered: boolean): Deployer {
    let calls = 0;
    let isDead = false;
    const dying = async (asked: { readonly method: string; readonly params?: unknown[] }) => {
      const isLast = asked.method === method && ++calls >= nth;
      const answer = isDead || (isLast && !isAnswered) ? null : await node.request(asked as never);
      isDead ||= isLast;
      if (isDead) throw new Error("killed");
      return answer;
    };
    const transport = viem.custom({ request: dying as viem.EIP1193RequestFn }, { retryCount: 0 });
    return {
      ...by,
      transport,
      client: viem.createPublicClient({ transport, pollingInterval: 5, cacheTime: 0 }),
    };
  }

  test.each([
    ["before a creation is sent", "eth_sendRawTransaction", false],
    ["after a creation is sent", "eth_sendRawTransaction", true],
    ["before a creation is seen on the chain", "eth_getTransactionReceipt", true],
  ] as const)("killed %s creates nothing twice", async (_, method, isAnswered) => {
    const asked = { record, settlement: { ...CONFIG, transfers: true }, tokens: [SWORDS, POINTS] };
    for (let nth = 1; nth <= 8; nth++) {
      await deploy(killedAt(method, nth, isAnswered), asked).catch((error: Error) => {
        expect(error.message).toContain("killed");
      });
    }
    const whole = await deploy(by, asked);
    expect(whole.tokens.map(({ symbol }) => symbol)).toEqual(["SWRD", "PTS"]);
    // Five creations, two registrations, two locks.
    expect(await transactions()).toBe(9);
    expect(await deploy(by, asked)).toEqual(whole);
  });

  test("signs a creation anew when the kept one has reverted", async () => {
    const args = [60n, [GUARDIAN.address], [GUARDIAN.address]] as const;
    const { abi, bytecode } = readArtifact("AdminTimeLock");
    const data = viem.encodeDeployData({ abi, bytecode, args });
    const fees = { maxFeePerGas: 10n ** 10n, maxPriorityFeePerGas: 1n };
    const starved = await ADMIN.signTransaction({
      chainId: by.chainId,
      nonce: 0,
      data,
      gas: 300_000n,
      ...fees,
    });
    const pending = pendingOf(record);
    await pending.set(viem.keccak256(data), [starved]);
    await by.client.sendRawTransaction({ serializedTransaction: starved }).catch(() => {});
    const { status, blockNumber } = await by.client.getTransactionReceipt({
      hash: viem.keccak256(starved),
    });
    expect(status).toBe("reverted");
    const lock = await deployContract({ ...by, pending }, "AdminTimeLock", args);
    expect(lock.deployedAtBlock).toBeGreaterThan(blockNumber);
    expect(await transactions()).toBe(2);
  });

  describe("while fees rise above what was offered", () => {
    const args = [60n, [GUARDIAN.address], [GUARDIAN.address]] as const;
    const rpc = (method: string, ...params: unknown[]) =>
      node.request({ method, params } as never) as Promise<unknown>;
    const pendingHashes = async () => {
      const { transactions: all } = await by.client.getBlock({ blockTag: "pending" });
      return all;
    };
    /** Blocks go on at this price, until the work is done. */
    async function minedAt(baseFee: bigint, work: Promise<unknown>): Promise<void> {
      let isDone = false;
      const done = work.finally(() => {
        isDone = true;
      });
      while (!isDone) {
        await rpc("hardhat_setNextBlockBaseFeePerGas", viem.toHex(baseFee));
        await rpc("evm_mine");
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      await done;
    }
    let offered: bigint;
    beforeEach(async () => {
      await rpc("evm_setAutomine", false);
      ({ maxFeePerGas: offered } = await by.client.estimateFeesPerGas());
    });

    test("a creation offers more at its own nonce, and is there once", async () => {
      const hurried = { ...by, replaceAfterMs: 50, pending: pendingOf(record) };
      const creating = deployContract(hurried, "AdminTimeLock", args);
      await minedAt(offered * 3n, creating);
      const lock = await creating;
      expect(await by.client.getCode({ address: lock.address })).toBeDefined();
      expect(await transactions()).toBe(1);
    });

    test("so does a call", async () => {
      await rpc("evm_setAutomine", true);
      const { tokens } = await deploy(by, { record, settlement: CONFIG, tokens: [SWORDS] });
      const sent = await transactions();
      await rpc("evm_setAutomine", false);
      const calling = send(
        { ...by, replaceAfterMs: 50 },
        "MintableERC721",
        at(tokens, 0).address,
        "grantRole",
        [viem.zeroHash, GUARDIAN.address],
      );
      await minedAt(offered * 3n, calling);
      expect(await transactions()).toBe(sent + 1);
    });

    test("a run that is killed after it raised goes on with each of its offers", async () => {
      const pending = pendingOf(record);
      const dying = { ...killedAt("eth_sendRawTransaction", 3, true), pending, replaceAfterMs: 50 };
      await expect(deployContract(dying, "AdminTimeLock", args)).rejects.toThrow("killed");
      expect(await pendingHashes()).toHaveLength(1);
      await rpc("evm_mine");
      expect(await transactions()).toBe(1);
      const lock = await deployContract({ ...by, pending }, "AdminTimeLock", args);
      expect(await by.client.getCode({ address: lock.address })).toBeDefined();
      expect(await transactions()).toBe(1);
    });
  });

  test("locks the minter of a token that another account administers, and hands the administration over", async () => {
    const token = { ...SWORDS, admin: GUARDIAN.address };
    const { tokens } = await deploy(by, { record, settlement: CONFIG, tokens: [token] });
    expect(at(tokens, 0).minterLocked).toBe(true);
    const { abi } = readArtifact("MintableERC721");
    const ask = (functionName: string, ...args: unknown[]) =>
      by.client.readContract({ abi, address: at(tokens, 0).address, functionName, args });
    expect(await ask("minterLocked")).toBe(true);
    const role = await ask("DEFAULT_ADMIN_ROLE");
    expect(await ask("hasRole", role, GUARDIAN.address)).toBe(true);
    expect(await ask("hasRole", role, ADMIN.address)).toBe(false);
  });

  test("killed while it hands a token over goes on from there", async () => {
    const asked = { record, settlement: CONFIG, tokens: [{ ...SWORDS, admin: GUARDIAN.address }] };
    for (let nth = 1; nth <= 6; nth++) {
      const dying = killedAt("eth_sendRawTransaction", nth, true);
      await deploy(dying, asked).catch((error: Error) => expect(error.message).toContain("killed"));
    }
    expect((await deploy(by, asked)).tokens).toMatchObject([
      { symbol: "SWRD", minterLocked: true },
    ]);
    // Two creations, a registration, a lock, a grant, a renouncement.
    expect(await transactions()).toBe(6);
  });

  test("pays a gas price on a chain without a base fee", async () => {
    const legacy = async (asked: { readonly method: string; readonly params?: unknown[] }) => {
      const answer = await node.request(asked as never);
      if (asked.method !== "eth_getBlockByNumber") return answer;
      const { baseFeePerGas: _, ...block } = answer as Record<string, unknown>;
      return block;
    };
    const transport = viem.custom({ request: legacy as viem.EIP1193RequestFn });
    const client = viem.createPublicClient({ transport, pollingInterval: 5, cacheTime: 0 });
    await deploy({ ...by, client, transport }, { record, settlement: CONFIG, tokens: [SWORDS] });
    for (let number = 1n; number <= (await by.client.getBlockNumber()); number++) {
      const { transactions: sent } = await by.client.getBlock({
        blockNumber: number,
        includeTransactions: true,
      });
      expect(sent.map(({ type }) => type)).toEqual(sent.map(() => "legacy"));
    }
  });

  test.each([
    ["operator", { operator: GUARDIAN.address }],
    ["guardian", { guardian: OPERATOR.address }],
    ["admin", { admin: OPERATOR.address }],
    ["maturity", { maturity: 6n }],
    ["changeDelay", { changeDelay: 61n }],
    ["committee", { threshold: 2 }],
  ])(
    "names a record whose %s is not what the chain has, and sends nothing",
    async (name, change) => {
      const deployment = await deploy(by, { record, settlement: CONFIG });
      const lower = Object.fromEntries(
        Object.entries(change).map(([key, value]) => [
          key,
          typeof value === "string" ? value.toLowerCase() : value,
        ]),
      );
      await writeRecord(record, {
        ...deployment,
        settlement: { ...deployment.settlement, ...lower },
      });
      const sent = await transactions();
      await expect(deploy(by, { record, settlement: CONFIG, tokens: [SWORDS] })).rejects.toThrow(
        name,
      );
      expect(await transactions()).toBe(sent);
    },
  );

  test("has transfers only when they are asked for, and refuses other code in their place", async () => {
    const without = await deploy(by, { record: `${record}.without`, settlement: CONFIG });
    expect(without.settlement.transfersCode).toBeUndefined();
    expect(without.settlement.makingsCode).toBeUndefined();
    const { settlement, ...rest } = await deploy(by, {
      record,
      settlement: { ...CONFIG, transfers: true },
    });
    const code = await by.client.getCode({ address: settlement.transfersCode ?? viem.zeroAddress });
    expect(viem.keccak256(code ?? "0x")).toBe(contractCode.Transfers.hash);
    const { transfersCode, ...others } = settlement;
    await writeRecord(record, { ...rest, settlement: others });
    await expect(deploy(by, { record, settlement: CONFIG })).rejects.toThrow("transfersCode");
    await writeRecord(record, { ...rest, settlement });
    const setCode = (address: unknown, code: unknown) =>
      node.rpc("hardhat_setCode", [address, code]);
    const refused = async (name: string) => {
      await expect(deploy(by, { record, settlement: CONFIG })).rejects.toThrow(
        `is not this version's ${name}`,
      );
      await expect(readL1({ rpc: by.transport, contract: settlement.address })).rejects.toThrow(
        name,
      );
    };
    await setCode(transfersCode, "0x00");
    await refused("Transfers");
    // A delegation to the genuine code is another's key.
    await setCode(transfersCode, `0xef0100${settlement.address.slice(2)}`);
    await refused("Transfers");
    await setCode(transfersCode, code);
    const { makingsCode } = settlement;
    const makings = await by.client.getCode({ address: makingsCode ?? viem.zeroAddress });
    expect(viem.keccak256(makings ?? "0x")).toBe(contractCode.Makings.hash);
    await setCode(makingsCode, code);
    await refused("Makings");
    await setCode(makingsCode, makings);
    await readL1({ rpc: by.transport, contract: settlement.address });
    // The genuine code with another account as its administration: an upgrade key.
    const own = (await by.client.getCode({ address: settlement.address })) ?? "0x";
    const [place] = contractCode.StateCommitment.immutables.administrationCode;
    const administration = own.slice(2 + 2 * (place + 12), 2 + 2 * (place + 32));
    await setCode(settlement.address, own.replaceAll(administration, "ab".repeat(20)));
    await refused("Administration");
  });

  test("refuses the genuine code behind a constructor that planted headers and a second operator", async () => {
    const genuine = await deploy(by, { record, settlement: CONFIG });
    const { settlement } = genuine;
    const contract = viem.getContractAddress({
      from: ADMIN.address,
      nonce: BigInt(await transactions()),
    });
    const name = { name: "Mintmark", version: "1", chainId: BigInt(by.chainId) };
    const domainAt = (verifyingContract: Hex) =>
      viem.domainSeparator({ domain: { ...name, verifyingContract } }).slice(2);
    const code = ((await by.client.getCode({ address: settlement.address })) ?? "0x")
      .slice(2)
      .replaceAll(domainAt(viem.getAddress(settlement.address)), domainAt(contract));
    const under = (key: Hex, slot: Hex | bigint) =>
      viem.keccak256(
        viem.concat([
          viem.pad(key),
          typeof slot === "bigint" ? viem.toHex(slot, { size: 32 }) : slot,
        ]),
      );
    // The first rollup header, whichever of these slots its mapping has, and a role of the mapping
    // at slot 0.
    const headers = Array.from({ length: 16 }, (_, slot) =>
      under("0x00", under("0x01", BigInt(slot))),
    );
    const operatorRole = viem.keccak256(viem.toHex("OPERATOR"));
    const planted = [...headers, under(GUARDIAN.address, under(operatorRole, 0n))];
    const writes = planted.map((slot) => `60017f${slot.slice(2)}55`).join("");
    const length = viem.toHex(code.length / 2, { size: 2 }).slice(2);
    const offset = viem.toHex(writes.length / 2 + 13, { size: 2 }).slice(2);
    const data: Hex = `0x${writes}61${length}61${offset}5f3961${length}5ff3${code}`;
    const hash = await viem
      .createWalletClient({ account: ADMIN, transport: by.transport })
      .sendTransaction({ ...{ chain: null, data, gas: 15_000_000n } });
    const { blockNumber, contractAddress } = await by.client.getTransactionReceipt({ hash });
    expect(contractAddress).toBe(contract.toLowerCase());
    // Its runtime code is this package's in every byte, and its storage is forged.
    const l1 = await readL1({ rpc: by.transport, contract });
    expect(l1.settlement.contract).toBe(contract.toLowerCase());
    const { abi } = readArtifact("StateCommitment");
    const read = (functionName: string, ...args: unknown[]) =>
      by.client.readContract({ abi, address: contract, functionName, args });
    expect(await read("batchHeaderHash", 1, 0n)).toBe(viem.pad("0x01"));
    expect(await read("hasRole", operatorRole, GUARDIAN.address)).toBe(true);
    const address = lower(contract);
    await writeRecord(record, {
      ...genuine,
      settlement: { ...settlement, address, deployedAtBlock: blockNumber },
    });
    await expect(deploy(by, { record, settlement: CONFIG })).rejects.toThrow("another constructor");
    await writeRecord(record, { ...genuine, settlement: { ...settlement, address } });
    await expect(deploy(by, { record, settlement: CONFIG })).rejects.toThrow(
      "Give the block of its creation",
    );
  });

  test("names every holder of a role that the record lacks, and who holds the roles now", async () => {
    const deployment = await deploy(by, { record, settlement: { ...CONFIG, changeDelay: 0n } });
    const { address, deployedAtBlock } = deployment.settlement;
    const send = async (functionName: string, ...args: unknown[]) => {
      const { abi } = readArtifact("StateCommitment");
      const wallet = viem.createWalletClient({ account: ADMIN, transport: by.transport });
      await wallet.writeContract({ abi, address, functionName, args, chain: null });
    };
    const refused = (list: string) =>
      expect(deploy(by, { record, settlement: CONFIG })).rejects.toThrow(
        `${list} of ${address} is `,
      );
    const [operator, guardian, admin] = [OPERATOR, GUARDIAN, ADMIN].map((account) =>
      lower(account.address),
    );
    const extra = lower(at(COMMITTEE, 0).address);
    const holders = () => roleHolders(by.client, address, deployedAtBlock);
    expect(await holders()).toEqual({ admin: [admin], guardian: [guardian], operator: [operator] });
    await send("scheduleOperator", extra);
    await send("activateOperator", extra);
    await refused("list of operators");
    expect(await holders()).toMatchObject({ operator: [operator, extra].toSorted() });
    // A first operator who keeps the role beside the recorded one is no better.
    const settlement = { ...deployment.settlement, operator: extra };
    await writeRecord(record, { ...deployment, settlement });
    await refused("list of operators");
    await send("revokeOperator", OPERATOR.address);
    expect((await deploy(by, { record, settlement: CONFIG })).settlement).toEqual(settlement);
    for (const role of [viem.zeroHash, viem.keccak256(viem.toHex("GUARDIAN"))]) {
      await send("grantRole", role, extra);
      await refused(role === viem.zeroHash ? "list of admins" : "list of guardians");
      await send("revokeRole", role, extra);
    }
    expect(await holders()).toEqual({ admin: [admin], guardian: [guardian], operator: [extra] });
    await deploy(by, { record, settlement: CONFIG });
    // A node without the constructor's events could hide a holder.
    await expect(roleHolders(by.client, address, deployedAtBlock + 1n)).rejects.toThrow(
      "keeps old events",
    );
  });

  test("shows every power: what is in force, what is announced, and the pause", async () => {
    const asked = { record, settlement: { ...CONFIG, changeDelay: 3_600n } };
    const { address, deployedAtBlock } = (await deploy(by, asked)).settlement;
    const { abi } = readArtifact("StateCommitment");
    const wallet = viem.createWalletClient({ account: ADMIN, transport: by.transport });
    const send = (functionName: string, ...args: unknown[]) =>
      wallet.writeContract({ abi, address, functionName, args, chain: null });
    const powers = () => powersOf(by.client, address, deployedAtBlock, "StateCommitment");
    const members = CONFIG.committee.map(lower).toSorted();
    const first = { epoch: 0n, threshold: CONFIG.threshold, members };
    expect(await powers()).toMatchObject({ committee: first, isPaused: false, announced: [] });
    const [one, two] = [lower(at(COMMITTEE, 0).address), lower(at(COMMITTEE, 1).address)];
    await send("scheduleOperator", one);
    await send("scheduleOperator", two);
    await send("scheduleCommittee", [one], 1);
    await send("pauseCommits", true);
    // It withdraws the announcement, and no event tells so.
    await send("revokeOperator", two);
    expect(await powers()).toMatchObject({
      committee: first,
      isPaused: true,
      announced: [
        { power: "operator", accounts: [one], isDue: false },
        { power: "committee", accounts: [one], threshold: 1, isDue: false },
      ],
    });
    await node.rpc("evm_increaseTime", [3_600]);
    await node.rpc("hardhat_mine", []);
    expect((await powers()).announced.map(({ isDue }) => isDue)).toEqual([true, true]);
    await send("activateCommittee", [one], 1);
    await send("activateOperator", one);
    await send("pauseCommits", false);
    expect(await powers()).toMatchObject({
      committee: { epoch: 1n, threshold: 1, members: [one] },
      isPaused: false,
      announced: [],
    });
  });

  test("refuses an address in the code with bytes above it", async () => {
    const { address } = (await deploy(by, { record, settlement: { ...CONFIG, transfers: true } }))
      .settlement;
    const own = (await by.client.getCode({ address })) ?? "0x";
    for (const immutable of ["administrationCode", "transfersCode", "makingsCode"] as const) {
      const [place] = contractCode.StateCommitment.immutables[immutable];
      const word = own.slice(2 + 2 * place, 2 + 2 * (place + 32));
      const code = own.replaceAll(word, `01${word.slice(2)}`);
      await node.rpc("hardhat_setCode", [address, code]);
      await expect(readL1({ rpc: by.transport, contract: address })).rejects.toThrow(
        `${address} on chain ${by.chainId} is not this version's StateCommitment`,
      );
    }
    await node.rpc("hardhat_setCode", [address, own]);
    await readL1({ rpc: by.transport, contract: address });
  });

  test("refuses a record whose contract the chain does not hold: another chain of the same id, or a fresh one", async () => {
    const deployment = await deploy(by, { record, settlement: CONFIG });
    await node.rpc("hardhat_setCode", [deployment.settlement.address, "0x00"]);
    await expect(deploy(by, { record, settlement: CONFIG })).rejects.toThrow("is not this version");
  });

  test("refuses a record of another chain, and a file that is no record", async () => {
    const deployment = await deploy(by, { record, settlement: CONFIG });
    await writeRecord(record, { ...deployment, chainId: 1 });
    await expect(deploy(by, { record, settlement: CONFIG })).rejects.toThrow("is of chain 1");
    await writeFile(record, '{"version":2}');
    await expect(deploy(by, { record, settlement: CONFIG })).rejects.toThrow(
      "not a deployment record",
    );
  });
});

describe("the check before a deployment", () => {
  const settlement = { ...CONFIG, maturity: 86_400n };
  const plan = { settlement, tokens: [], allowNoDelay: false };

  /** A chain that is no test chain by its id. */
  async function onPublicChain(check: (by: Deployer) => Promise<void>) {
    const node = await hardhat("other");
    try {
      await check(await adminOver(viem.custom(node)));
    } finally {
      await node.close();
    }
  }

  test.each([
    ["change delay", { changeDelay: 0n }],
    ["maturity", { maturity: 0n }],
  ] as const)(
    "takes a %s of 0 on a public chain only when told so, with a warning",
    async (what, change) => {
      await onPublicChain(async (by) => {
        const asked = { ...plan, settlement: { ...settlement, ...change } };
        await expect(checkPlan(by, asked)).rejects.toThrow(`the ${what} is 0`);
        expect(await checkPlan(by, { ...asked, allowNoDelay: true })).toEqual([
          expect.stringContaining(`the ${what} is 0`),
        ]);
        // A local test chain may have these terms.
        expect(await checkPlan({ ...by, chainId: 31_337 }, asked)).toEqual([]);
      });
    },
  );

  test("takes a maturity below finality and a watcher's time on no network of value, and warns elsewhere", async () => {
    await onPublicChain(async (by) => {
      const asked = (maturity: bigint) => ({ ...plan, settlement: { ...settlement, maturity } });
      const short = asked(599n);
      const sentence = expect.stringMatching(/the maturity is 599 s\. A block of chain \d+ is/);
      const mainnet = { ...by, chainId: 1 };
      await expect(checkPlan(mainnet, short)).rejects.toThrow("MINTMARK_ALLOW_NO_DELAY=yes");
      expect(await checkPlan(mainnet, { ...short, allowNoDelay: true })).toEqual([sentence]);
      expect(await checkPlan({ ...by, chainId: 11_155_111 }, short)).toEqual([sentence]);
      expect(await checkPlan({ ...by, chainId: 31_337 }, short)).toEqual([]);
      expect(await checkPlan(mainnet, asked(86_400n))).toEqual([]);
    });
  });

  test("refuses a multisig that is not on the chain, where nobody could ever administer the contracts", async () => {
    await onPublicChain(async (by) => {
      const asked = { ...plan, multisig: GUARDIAN.address };
      await expect(checkPlan(by, asked)).rejects.toThrow(
        `the multisig ${GUARDIAN.address} has no code on chain 31338`,
      );
      expect(await checkPlan({ ...by, chainId: 31_337 }, asked)).toEqual([]);
      expect(await by.client.getTransactionCount({ address: ADMIN.address })).toBe(0);
    });
  });

  test("refuses tokens whose vaults the contract, or a mirror, could never transfer", async () => {
    await onPublicChain(async (by) => {
      const tokens = [{ ...SWORDS, transferable: true }];
      const refused = "token SWRD cannot be transferable";
      await expect(checkPlan(by, { ...plan, tokens })).rejects.toThrow(
        `${refused}: the settlement contract`,
      );
      const asked = { ...plan, settlement: { ...CONFIG, transfers: true }, tokens };
      expect(await checkPlan(by, asked)).toEqual([expect.stringContaining("the maturity is")]);
      const mirror = { by: { ...by, chainId: 31_339 }, config: { admin: ADMIN.address }, tokens };
      await expect(checkPlan(by, { ...asked, mirror })).rejects.toThrow(`${refused}: a mirror`);
    });
  });

  test("warns of nothing, and sends nothing, when all is well", async () => {
    await onPublicChain(async (by) => {
      await by.client.request({
        method: "hardhat_setCode",
        params: [GUARDIAN.address, "0x00"],
      } as never);
      expect(
        await checkPlan(by, { ...plan, multisig: GUARDIAN.address, tokens: [SWORDS, POINTS] }),
      ).toEqual([]);
      expect(await by.client.getTransactionCount({ address: ADMIN.address })).toBe(0);
    });
  });
});

describe("the deploy command", () => {
  let server: Awaited<ReturnType<typeof hre.network.createServer>>;
  let rpcUrl: string;

  beforeAll(async () => {
    server = await hre.network.createServer("local", "127.0.0.1", 0);
    const { address, port } = await server.listen();
    rpcUrl = `http://${address}:${port}`;
  });
  afterAll(() => server.close());

  const command = (env: Readonly<Record<string, string>>, args: readonly string[] = []) =>
    mintmark(["deploy", ...args], env);

  test("deploys by environment, hands the administration to a multisig's time lock, and never prints the key", async () => {
    const key = generatePrivateKey();
    const deployer = privateKeyToAccount(key);
    const client = viem.createPublicClient({ transport: viem.http(rpcUrl), cacheTime: 0 });
    const give = {
      method: "hardhat_setBalance",
      params: [deployer.address, viem.toHex(10n ** 19n)],
    } as never;
    await client.request(give);
    const environment = {
      MINTMARK_RPC_URL: rpcUrl,
      MINTMARK_DEPLOYER_KEY: key,
      MINTMARK_MULTISIG: GUARDIAN.address,
      MINTMARK_OPERATOR: OPERATOR.address,
      MINTMARK_COMMITTEE: COMMITTEE.map(({ address }) => address).join(","),
      MINTMARK_THRESHOLD: "3",
      MINTMARK_DEPLOYMENTS: folder,
      MINTMARK_TOKEN: JSON.stringify({ standard: "erc1155", name: "Potions", symbol: "PTN" }),
    };
    const first = await mintmarkProcess(["deploy", "--json"], environment);
    const deployment = first.json() as {
      settlement: { address: `0x${string}`; admin: `0x${string}` };
      tokens: { symbol: string }[];
    };
    expect(deployment.tokens.map(({ symbol }) => symbol)).toEqual(["PTN"]);
    const { admin, address } = deployment.settlement;
    expect(admin).not.toBe(deployer.address.toLowerCase());
    expect((await client.getCode({ address: admin }))?.length).toBeGreaterThan(2);

    const sent = await client.getTransactionCount({ address: deployer.address });
    const second = await command(environment);
    expect(second.stdout).toContain(address);
    expect(second.stdout).toMatch(/^PTN 0x[0-9a-f]{40}$/m);
    // It is said once, while it can still be changed.
    const never = "PTN can never be transferred";
    expect([first, second].map(({ stderr }) => stderr.includes(never))).toEqual([true, false]);
    expect(await client.getTransactionCount({ address: deployer.address })).toBe(sent);

    const file = await readFile(recordPath(folder, 31_337), "utf8");
    const everything = [first.stdout, first.stderr, second.stdout, second.stderr, file]
      .join("\n")
      .toLowerCase();
    expect(everything).not.toContain(key.slice(2));
  });

  /** A deployer with this much, what makes it deploy, and how many transactions it has sent. */
  async function deployerWith(wei: bigint) {
    const key = generatePrivateKey();
    const { address } = privateKeyToAccount(key);
    const client = viem.createPublicClient({ transport: viem.http(rpcUrl), cacheTime: 0 });
    await client.request({
      method: "hardhat_setBalance",
      params: [address, viem.toHex(wei)],
    } as never);
    const environment = {
      MINTMARK_RPC_URL: rpcUrl,
      MINTMARK_DEPLOYER_KEY: key,
      MINTMARK_COMMITTEE: COMMITTEE.map((member) => member.address).join(","),
      MINTMARK_THRESHOLD: "3",
      MINTMARK_DEPLOYMENTS: folder,
    };
    return { address, environment, sent: () => client.getTransactionCount({ address }) };
  }
  async function refused(env: Readonly<Record<string, string>>, args: readonly string[] = []) {
    const ended = await command(env, args);
    expect(ended.code, "the deployment was not refused").not.toBe(0);
    return ended;
  }

  test.each([
    [
      "an administrator and a multisig",
      { MINTMARK_ADMIN: ADMIN.address, MINTMARK_MULTISIG: GUARDIAN.address },
      "not both",
      2,
    ],
    [
      "a threshold above the committee",
      { MINTMARK_THRESHOLD: "6" },
      "the threshold is 1 to 5, not 6",
    ],
    [
      "a member named twice",
      { MINTMARK_COMMITTEE: `${ADMIN.address},${ADMIN.address}` },
      "names a member twice",
    ],
    ["a delay that no contract takes", { MINTMARK_CHANGE_DELAY: "2592001" }, "at most 30 days"],
    [
      "an operator without an account",
      { MINTMARK_OPERATOR: viem.zeroAddress },
      "the operator is the zero address",
    ],
    [
      "a token of quantum 0",
      { MINTMARK_TOKEN: erc20({ quantum: "0" }) },
      "token PTS: the quantum is 0",
    ],
    [
      "a token that nobody can mint",
      { MINTMARK_TOKEN: erc20({ cap: "0" }) },
      "token PTS: the cap is 0",
    ],
    [
      "a field of another standard",
      { MINTMARK_TOKEN: erc20({ uri: "https://x.example/" }) },
      "an erc20 cannot have",
    ],
    [
      "a mirror on the chain itself",
      { MINTMARK_MIRROR_RPC_URL: "here" },
      "the settlement contract's own",
    ],
  ])("refuses %s before it sends anything", async (_, change, reason, code = 1) => {
    const { environment, sent } = await deployerWith(10n ** 19n);
    const asked = Object.fromEntries(
      Object.entries(change).map(([name, value]) => [name, value === "here" ? rpcUrl : value]),
    );
    const ended = await refused({ ...environment, ...asked });
    expect([ended.code, ended.stdout]).toEqual([code, ""]);
    expect(ended.stderr).toContain(reason);
    expect(await sent()).toBe(0);
  });

  test("refuses a contract as operator before it sends anything", async () => {
    const client = viem.createPublicClient({ transport: viem.http(rpcUrl), cacheTime: 0 });
    const contract = privateKeyToAccount(generatePrivateKey()).address;
    await client.request({ method: "hardhat_setCode", params: [contract, "0x00"] } as never);
    const { environment, sent } = await deployerWith(10n ** 19n);
    const { stderr } = await refused({ ...environment, MINTMARK_OPERATOR: contract });
    expect(stderr).toContain("is a contract, not a plain account");
    expect(await sent()).toBe(0);
  });

  test("tells an account without money in one sentence: its address, what it has, what it needs", async () => {
    const { address, environment, sent } = await deployerWith(10n ** 12n);
    const { code, stderr } = await refused(environment);
    expect(code).toBe(1);
    expect(stderr).toMatch(
      new RegExp(
        `^error: nothing was deployed: ${address} has 0\\.000001 ether on chain 31337 and needs about 0\\.\\d+ \\(`,
      ),
    );
    expect(stderr.trim().split("\n")).toHaveLength(1);
    expect(stderr.length).toBeLessThan(300);
    expect(await sent()).toBe(0);
  });

  test("names every variable that is missing or wrong, without its value, and exits with 2", async () => {
    const key = "0x1234567890secret";
    const failure = await command({ MINTMARK_RPC_URL: rpcUrl, MINTMARK_DEPLOYER_KEY: key });
    expect(failure).toMatchObject({ code: 2, stdout: "" });
    for (const name of ["MINTMARK_COMMITTEE", "MINTMARK_THRESHOLD"])
      expect(failure.stderr).toContain(name);
    const committee = {
      MINTMARK_COMMITTEE: COMMITTEE.map(({ address }) => address).join(),
      MINTMARK_THRESHOLD: "1",
    };
    const wrong = await command({
      MINTMARK_RPC_URL: rpcUrl,
      MINTMARK_DEPLOYER_KEY: key,
      ...committee,
    });
    expect(wrong).toMatchObject({ code: 2, stdout: "" });
    expect(wrong.stderr).toContain("MINTMARK_DEPLOYER_KEY: not a private key");
    expect(failure.stderr + wrong.stderr).not.toContain(key);
  });
});
