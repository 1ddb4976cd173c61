import type { PrivateKeyAccount } from "viem/accounts";
import type { Mode } from "../../core/index.ts";
import { committed } from "../core/engine/l1-fixture.ts";
import { createWorld, type World, type WorldOptions } from "./fixture.ts";

/** A world whose ERC-20 and ERC-721 are transferable. */
export interface TransferWorld {
  readonly world: World;
  /** The owner's user. */
  readonly userId: string;
  /** Mints a ticket and 10 units for the owner, final on L1. */
  final(): Promise<{ ticket: string; units: string }>;
  /** L1 commits the sealed batches of a mode, and they are final. */
  commit(mode: Mode): Promise<void>;
}

export async function transferWorld(
  owner: PrivateKeyAccount,
  options?: WorldOptions,
): Promise<TransferWorld> {
  const world = await createWorld(options);
  const { engine, erc20, erc721, applicationId, send } = world;
  const { chainId } = engine.settlement;
  for (const { assetId } of [erc20, erc721])
    await engine.operator.recordRegistered(assetId, { minterLocked: true, transferable: true });
  const { userId } = await engine.users.create(applicationId, { ownerAddress: owner.address });
  const next = { validium: 0, "zk-rollup": 0 };
  let block = 100n;
  let tokenId = 1;
  const commit = async (mode: Mode) => {
    const { countValidium, countRollup } = engine.batches.state();
    const count = mode === "validium" ? countValidium : countRollup;
    for (; next[mode] < count; next[mode]++) {
      block += 1n;
      const event = { ...(await committed(engine, mode, next[mode], block)), sequence: block };
      await engine.operator.recordEvents(chainId, [event], block);
    }
    await engine.operator.recordFinalized(chainId, block);
  };
  return {
    world,
    userId,
    commit,
    async final() {
      const mode = { dataAvailabilityMode: "validium" };
      const mints = [
        { assetId: erc721.assetId, tokenId: String(tokenId++), amount: 1, ...mode },
        { assetId: erc20.assetId, amount: 10, ...mode },
      ];
      const { body } = await send("POST", "/api/v1/mint", { body: { users: [{ userId, mints }] } });
      await engine.operator.seal("validium");
      await commit("validium");
      const [ticket, units] = body.vaults.map(({ vaultId }: { vaultId: string }) => vaultId);
      return { ticket, units };
    },
  };
}
