import type { Address, LocalAccount } from "viem";
import { deriveBatch } from "../../core/archive/derive.ts";
import { follow } from "../../core/archive/follow.ts";
import type { BatchSource } from "../../core/archive/sources.ts";
import type { Mode, TransferList, VaultId } from "../../core/index.ts";
import type { SealedBatch } from "../../core/ports.ts";
import { compactBytes } from "../../core/protocol/signature.ts";
import { type Transfer, transfersTypedData } from "../../core/protocol/transfer.ts";
import { encodeTransferData, type TransferGroup } from "../../core/protocol/transfer-data.ts";
import { lower } from "../../scripts/deploy/deployer.ts";
import type { TokenConfig } from "../../scripts/deploy/token.ts";
import { at, createWorld, TOKENS, type World, type WorldOptions } from "./fixture.ts";

/** Tokens whose vaults can be transferred. */
export const TRANSFERABLE: readonly TokenConfig[] = TOKENS.map((token) => ({
  ...token,
  transferable: true,
}));

/**
 * A world whose first user holds final vaults: 100 units, a token, and 7 of an item.
 *
 * @param more - mints further ones
 */
export async function createTransferWorld(
  options: WorldOptions = {},
  more: (world: World) => Promise<unknown> = async () => {},
) {
  const world = await createWorld({
    ...options,
    config: { transfers: true },
    tokens: TRANSFERABLE,
  });
  const units = await world.mint("erc20", "validium", "", 100);
  const token = await world.mint("erc721", "zk-rollup", "1");
  const items = await world.mint("erc1155", "validium", "5", 7);
  await more(world);
  await world.settler.round();
  await becomeFinal(world);
  return { ...world, vaults: { units, token, items } };
}

export type TransferWorld = Awaited<ReturnType<typeof createTransferWorld>>;

/** All blocks so far become final, for the engine and for the members. */
export async function becomeFinal(
  world: Pick<World, "chain" | "settler" | "members" | "l1" | "engine">,
): Promise<void> {
  await world.chain.mine(20);
  await world.settler.round();
  const { deployedAtBlock: fromBlock } = world.chain.settlement;
  const sources = [served(world)];
  for (const { archive } of world.members)
    await follow({ archive, l1: world.l1, fromBlock, sources });
}

/** The engine as a source of data that is not in calldata. */
export function served({ engine }: Pick<World, "engine">): BatchSource {
  const batchData: BatchSource["batchData"] = async (mode, number) =>
    (await engine.batches.getSealed(mode, number)).data;
  return { name: "the engine's server", batchData };
}

export const friendOf = ({ users }: Pick<World, "users">): Address =>
  lower(at(users, 1).owner.address);

/** The whole rest of a vault for the second user. */
export function whole(
  world: Pick<World, "users">,
  vaultId: VaultId,
  to = friendOf(world),
): Transfer {
  return { vaultId, amount: 0n, to };
}

/** The owner's signature, the first user's by default. */
export async function signTransfers(
  world: Pick<World, "engine" | "users">,
  transfers: readonly Transfer[],
  by: Pick<LocalAccount, "signTypedData"> = at(world.users, 0).owner,
  deadline = BigInt(Math.floor(Date.now() / 1000) + 86_400),
): Promise<TransferGroup> {
  const message = { transfers, deadline };
  const signature = await by.signTypedData(transfersTypedData(world.engine.settlement, message));
  return { ...message, signature: compactBytes(signature) };
}

/** Signed transfers, handed to the engine. */
export async function give(
  world: World,
  transfers: readonly Transfer[],
  by?: Pick<LocalAccount, "signTypedData">,
): Promise<TransferList> {
  return world.engine.transfers.request(world.principal, await signTransfers(world, transfers, by));
}

/** A batch of transfers with this number, as an operator claims it. */
export function claimed(groups: readonly TransferGroup[], batchNumber: number): SealedBatch {
  return sealed("zk-rollup", batchNumber, encodeTransferData(groups));
}

/** A batch of this data, as an operator claims it. */
export function sealed(mode: Mode, batchNumber: number, data: Uint8Array): SealedBatch {
  const { assets, content, batchRoot, dataHash, vaultCount } = deriveBatch(mode, batchNumber, data);
  return { mode, batchNumber, data, assets, content, batchRoot, dataHash, vaultCount };
}

export function listOf(
  { engine, principal }: World,
  { transferId }: TransferList,
): Promise<TransferList> {
  return engine.transfers.get(principal.applicationId, transferId);
}
