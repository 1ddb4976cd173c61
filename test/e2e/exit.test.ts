import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseAbi, toHex } from "viem";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { deriveBatch } from "../../core/archive/index.ts";
import { exportExitKit } from "../../core/exit/index.ts";
import type { VaultId } from "../../core/index.ts";
import { encodeBatchData } from "../../core/protocol/batch-data.ts";
import { packVaultId } from "../../core/protocol/vault.ts";
import { exitKitText, readExitKit } from "../../scripts/commands/exit.ts";
import { COMMITTEE } from "../../scripts/sandbox/accounts.ts";
import { at } from "../settlement/fixture.ts";
import { type MembersWorld, startMembersWorld } from "./member-world.ts";
import { run } from "./script.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
const ABI = parseAbi([
  "function balanceOf(address) view returns (uint256)",
  "function ownerOf(uint256) view returns (address)",
]);

describe("owners' exits with everything gone but the chain", () => {
  let world: MembersWorld;
  let key: `0x${string}`;
  let owner: `0x${string}`;
  const vaults: Record<"sword" | "points" | "shield", VaultId> = {
    sword: 0n,
    points: 0n,
    shield: 0n,
  };

  const coins: VaultId[] = [];

  beforeAll(async () => {
    world = await startMembersWorld({ members: COMMITTEE.slice(0, 1), threshold: 1 });
    const { owner: account } = at(world.users, 0);
    key = toHex(account.getHdKey().privateKey ?? new Uint8Array());
    owner = account.address;
    vaults.sword = await world.mint("erc721", "validium", "7");
    vaults.points = await world.mint("erc20", "zk-rollup", "", 5);
    vaults.shield = await world.mint("erc721", "validium", "8");
    // One vault a batch: of one batch they would be one vault.
    for (let i = 0; i < 3; i++) {
      coins.push(await world.mint("erc20", "validium", "", 3));
      await world.engine.operator.seal("validium");
    }
    expect((await world.settlerOver().settler.round()).committed).toBe(4);
    for (const [i, vaultId] of coins.entries()) {
      const kit = await exportExitKit(await world.engine.proofs.vault(vaultId), world.l1);
      await writeFile(join(world.folder, `coins-${i}.json`), exitKitText(kit));
    }
    // The kit of one vault is kept from when the engine was there.
    const kit = await exportExitKit(await world.engine.proofs.vault(vaults.sword), world.l1);
    await writeFile(join(world.folder, "sword.json"), exitKitText(kit));
    await world.engine.close();
  });
  afterAll(() => world.close());

  const file = (name: string) => join(world.folder, name);
  const chain = () => ({
    MINTMARK_RPC_URL: world.rpcUrl,
    MINTMARK_CONTRACT: world.settlement.address,
  });
  const tokenOf = (standard: string) =>
    at(
      world.tokens.filter((token) => token.standard === standard),
      0,
    ).address;
  const ownerOf = (id: bigint) =>
    world.client.readContract({
      abi: ABI,
      address: tokenOf("erc721"),
      functionName: "ownerOf",
      args: [id],
    });

  test("the public state is rebuilt from the chain and one member's store", async () => {
    const env = { ...chain(), MINTMARK_STORE: file("rebuilt"), MINTMARK_CONFIRMATIONS: "0" };
    const alone = await run("rebuild", [], env);
    expect(alone.code).toBe(1);
    expect(alone.stderr).toContain("data is missing: name a source with --peers");
    expect(alone.stdout).toMatch(/^missing +validium-0/m);
    const member = at(world.processes, 0).url;
    const { stdout, code } = await run("rebuild", ["--json"], { ...env, MINTMARK_PEERS: member });
    expect(code).toBe(0);
    const { rootValidium, rootRollup, commitment } = await world.l1.state();
    expect(JSON.parse(stdout)).toMatchObject({
      batches: { validium: 3, "zk-rollup": 1 },
      vaults: { validium: 5, "zk-rollup": 1 },
      missing: [],
      state: { rootValidium, rootRollup, commitment },
    });
  });

  test("a kit is made from the rebuilt store, from a member, and from L1 alone", async () => {
    const fromStore = ["--store", file("rebuilt"), "--out"];
    const out = (name: string) =>
      run("exit-kit", [`${vaults.shield}`, ...fromStore, file(name)], chain());
    expect(await out("shield.json")).toMatchObject({ code: 0, stdout: "" });
    // It may be the only copy of another kit.
    expect(await out("shield.json")).toMatchObject({ code: 1 });
    const member = { ...chain(), MINTMARK_PEERS: at(world.processes, 0).url };
    const fromMember = await run("exit-kit", [`${vaults.shield}`], member);
    expect(fromMember.stdout).toBe(await readFile(file("shield.json"), "utf8"));
    const fromL1 = await run(
      "exit-kit",
      [`${vaults.points}`, "--out", file("points.json")],
      chain(),
    );
    expect(fromL1.code).toBe(0);
    const nobody = await run("exit-kit", [`${vaults.shield}`], chain());
    expect(nobody).toMatchObject({ code: 1, stdout: "" });
    expect(nobody.stderr).toContain("name a member");
  });

  test("the command withdraws with kit, RPC and key: waits for maturity, says what it does, and the token is there", async () => {
    await at(world.processes, 0).stop();
    const env = { MINTMARK_RPC_URL: world.rpcUrl };
    const checked = await run("exit", [file("points.json"), "--dry-run"], env, key);
    expect(checked).toMatchObject({ code: 0, stderr: "" });
    expect(checked.stdout).toContain("the kit is valid: withdrawing 5 unit(s)");

    // A unit of this token is 10^-15 of it.
    const part = await run(
      "exit",
      [file("points.json"), "--dry-run", "--amount", "0.000000000000002"],
      env,
      key,
    );
    expect(part.stdout).toContain("the kit is valid: withdrawing 2 unit(s)");

    const swords = await run("exit", [file("sword.json"), "--wait"], env, `${key}\n`);
    expect(swords).toMatchObject({ code: 0 });
    expect(swords.stdout).toContain(
      `${owner.toLowerCase()} now holds 1 of the token on L1, 0 before`,
    );
    expect(await ownerOf(7n)).toBe(owner);

    const json = await run("exit", [file("shield.json"), "--wait", "--json"], {
      ...env,
      MINTMARK_OWNER_KEY: key,
    });
    expect(JSON.parse(json.stdout)).toMatchObject({
      held: "1",
      heldBefore: "0",
      vaultId: `${vaults.shield}`,
    });
    expect(await ownerOf(8n)).toBe(owner);

    const points = await run("exit", [file("points.json")], env, key);
    expect(points.stdout).toContain("now holds 5000 of the token on L1, 0 before");
    const balance = {
      abi: ABI,
      address: tokenOf("erc20"),
      functionName: "balanceOf",
      args: [owner],
    } as const;
    expect(await world.client.readContract(balance)).toBe(5_000n);
    for (const { stdout, stderr } of [checked, swords, json, points])
      expect(stdout + stderr).not.toContain(key.slice(2));
  });

  test("the command withdraws many vaults by one transaction", async () => {
    const env = { MINTMARK_RPC_URL: world.rpcUrl };
    const kits = ["coins-0.json", "coins-1.json", "coins-2.json"].map(file);
    const before = await world.client.getTransactionCount({ address: owner });
    const exits = await run("exit", [...kits, file("points.json")], env, key);
    expect(exits.code).toBe(1);
    for (const id of coins)
      expect(exits.stdout).toMatch(new RegExp(`^vault ${id}: paid by 0x`, "m"));
    expect(exits.stdout).toContain(`vault ${vaults.points}: All of this vault has been withdrawn`);
    expect(await world.client.getTransactionCount({ address: owner })).toBe(before + 1);
    const balance = {
      abi: ABI,
      address: tokenOf("erc20"),
      functionName: "balanceOf",
      args: [owner],
    } as const;
    expect(await world.client.readContract(balance)).toBe(14_000n);
  });

  test("anyone's watch command voids a token that the operator mints again", async () => {
    const { vault } = await readExitKit(file("shield.json"));
    const data = encodeBatchData([
      { ...vault, owner: at(COMMITTEE, 1).address.toLowerCase() as `0x${string}` },
    ]);
    const batch = {
      mode: "zk-rollup",
      batchNumber: 1,
      data,
      ...deriveBatch("zk-rollup", 1, data),
    } as const;
    await world.l1.commit(batch, (await world.l1.state()).history, "0x");
    const later = packVaultId({ mode: "zk-rollup", batchNumber: 1, slot: 0 });
    const child = spawn(process.execPath, ["scripts/mintmark.js", "watch"], {
      cwd: ROOT,
      env: {
        PATH: process.env.PATH,
        ...chain(),
        MINTMARK_STORE: file("rebuilt"),
        MINTMARK_CONFIRMATIONS: "0",
      },
      stdio: ["pipe", "pipe", "inherit"],
    });
    child.stdin.end(key);
    let output = "";
    child.stdout.on("data", (chunk) => {
      output += chunk;
    });
    await expect
      .poll(() => output)
      .toContain(`voided vault ${later}, a duplicate of ${vaults.shield}`);
    expect(await world.l1.withdrawn(later, "erc721")).toBe(1n);
    const closed = once(child, "close");
    child.kill("SIGINT");
    expect((await closed)[0]).toBe(0);
    expect(output).not.toContain(key.slice(2));
  });

  test("the command says what is wrong, sends nothing, and ends with 1, or with 2 for a wrong setting", async () => {
    const env = { MINTMARK_RPC_URL: world.rpcUrl };
    const refused = async (
      args: readonly string[],
      input: string,
      reason: string,
      code = 1,
      over = env,
    ) => {
      const ended = await run("exit", args, over, input);
      expect({ code: ended.code, stdout: ended.stdout }, reason).toEqual({ code, stdout: "" });
      expect(ended.stderr).toContain(reason);
    };
    await Promise.all([
      refused([file("sword.json")], key, "All of this vault has been withdrawn"),
      refused([file("sword.json")], "", "set MINTMARK_OWNER_KEY", 2),
      refused([file("sword.json")], key, "MINTMARK_RPC_URL", 2, {} as typeof env),
    ]);
  });
});
