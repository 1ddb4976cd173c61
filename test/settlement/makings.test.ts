import { encodeFunctionData, parseEventLogs } from "viem";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { stateCommitmentAbi } from "../../core/l1/abi.ts";
import { readArtifact } from "../../core/l1/artifact.ts";
import { at, codeOf, expectOneHistory } from "./fixture.ts";
import {
  becomeFinal,
  createTransferWorld,
  give,
  type TransferWorld,
  whole,
} from "./transfers-fixture.ts";

describe("vaults that L1 makes, which the engine does not hold", () => {
  let world: TransferWorld;
  beforeAll(async () => {
    world = await createTransferWorld();
  });
  afterAll(() => world.close());

  /** A call of the first user to a contract of the chain. */
  const call = async (
    abi: ReturnType<typeof readArtifact>["abi"],
    address: `0x${string}`,
    functionName: string,
    args: readonly unknown[],
    from = at(world.users, 0).owner.address,
  ) => {
    const { client, rpc } = world.chain;
    const data = encodeFunctionData({ abi, functionName, args });
    await rpc("hardhat_impersonateAccount", [from]);
    const hash = (await rpc("eth_sendTransaction", [{ from, to: address, data }])) as `0x${string}`;
    return client.waitForTransactionReceipt({ hash });
  };

  test("stop nothing, and are refused where they are named", async () => {
    const { engine, settler, chain, vaults, principal } = world;
    const owner = at(world.users, 0).owner.address;
    await world.withdrawAlone(vaults.units, 60n);
    const { abi } = readArtifact("MintableERC20");
    const token = at(chain.tokens, 0);
    if (!token.minterLocked)
      await call(abi, token.address, "lockMinter", [], chain.by.account.address);
    const { logs } = await call(abi, token.address, "enter", [owner, 60_000n]);
    const [made] = parseEventLogs({ abi: stateCommitmentAbi, eventName: "VaultMade", logs });
    const [event] = parseEventLogs({ abi: stateCommitmentAbi, eventName: "Made", logs });
    if (made === undefined || event === undefined) throw new Error("the entry made no vault");
    const { vaultId } = made.args;
    const { batchRoot, vaultCount, sequence } = event.args;
    await call(stateCommitmentAbi, chain.settlement.address, "withdraw", [
      { ...made.args, chainId: BigInt(chain.by.chainId) },
      { batchRoot, vaultCount, committedAt: 0n, sequence },
      { siblings: [], assetIndex: 0, assetSiblings: [] },
      20n,
      owner,
    ]);
    await call(stateCommitmentAbi, chain.settlement.address, "cancel", [
      owner,
      `0x${vaultId.toString(16).padStart(64, "0")}`,
      "0x",
    ]);
    await becomeFinal(world);
    await world.mint("erc1155", "zk-rollup", "8", 7);
    expect(await settler.round()).toMatchObject({ sealed: 1, committed: 1 });
    await becomeFinal(world);
    await expectOneHistory(world);
    expect((await engine.operator.verify()).problems).toEqual([]);
    expect(await codeOf(engine.vaults.get(principal.applicationId, vaultId))).toBe(
      "vault_not_found",
    );
    expect(await codeOf(engine.proofs.exit(vaultId))).toBe("vault_not_found");
    expect(await codeOf(give(world, [whole(world, vaultId)]))).toBe("vault_not_found");
  });
});
