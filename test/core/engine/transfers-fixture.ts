import type { PrivateKeyAccount } from "viem/accounts";
import type { Engine, Mode, TransferRequest } from "../../../core/index.ts";
import { compactBytes } from "../../../core/protocol/signature.ts";
import { type Transfer, transfersTypedData } from "../../../core/protocol/transfer.ts";
import { type Fixture, fixture, mintOf, OWNERS, requestOf } from "./fixture.ts";
import { committed, HOME } from "./l1-fixture.ts";

/** A block further on for each commit of a test. */
let block = 100n;

/** L1 commits the mode's sealed batches from this one on, and they are final. */
export async function commitAll(engine: Engine, mode: Mode, from: number): Promise<void> {
  const state = engine.batches.state();
  const count = mode === "validium" ? state.countValidium : state.countRollup;
  for (let number = from; number < count; number++) {
    block += 1n;
    const event = await committed(engine, mode, number, block);
    await engine.operator.recordEvents(
      HOME,
      [{ ...event, sequence: await commits(engine) }],
      block,
    );
  }
  await engine.operator.recordFinalized(HOME, block);
}

/**
 * A fixture with transferable assets, whose first user holds 100 units, an ERC-721 token and 7 of
 * an ERC-1155 id.
 */
export async function transferable(
  options: Parameters<typeof fixture>[0] = {},
  mode: Mode = "validium",
) {
  const made = await fixture(options);
  const { engine, assets, tenant } = made;
  for (const assetId of Object.values(assets))
    await engine.operator.recordRegistered(assetId, { minterLocked: true, transferable: true });
  const mints = [
    mintOf(assets.erc20, "", 100, mode),
    mintOf(assets.erc721, 1, 1, mode),
    mintOf(assets.erc1155, 5, 7, mode),
  ];
  const { transactions } = await engine.mint(
    tenant.principal,
    requestOf(tenant.users[0], ...mints),
  );
  await engine.operator.seal(mode);
  await commitAll(engine, mode, 0);
  const [units, token, items] = transactions.map(({ vaultId }) => vaultId) as [
    bigint,
    bigint,
    bigint,
  ];
  return { ...made, units, token, items };
}

/** The commits that L1 has taken: the place of the next one in its order. */
export async function commits({ batches }: Engine): Promise<bigint> {
  const { countValidium, countRollup } = batches.state();
  let count = 0n;
  for (const [mode, sealed] of [
    ["validium", countValidium],
    ["zk-rollup", countRollup],
  ] as const) {
    for (let i = 0; i < sealed; i++)
      if (["settled", "finalized"].includes((await batches.get(mode, i)).status)) count++;
  }
  return count;
}

export async function signedTransfers(
  { engine, clock }: Pick<Fixture, "engine" | "clock">,
  transfers: readonly Transfer[],
  options: { readonly signer?: PrivateKeyAccount; readonly seconds?: number } = {},
): Promise<TransferRequest> {
  const { signer = OWNERS[0], seconds = 7_200 } = options;
  const message = { transfers, deadline: BigInt(Math.floor(clock.now / 1000) + seconds) };
  const signature = await signer.signTypedData(transfersTypedData(engine.settlement, message));
  return { ...message, signature: compactBytes(signature) };
}
