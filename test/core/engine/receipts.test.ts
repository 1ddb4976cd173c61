import { describe, expect } from "vitest";
import type { MintResult } from "../../../core/index.ts";
import { receiptOf, verifyReceipt } from "../../../core/protocol/receipt.ts";
import { fixture, mintOf, OWNERS, openTest, requestOf, SETTLEMENT } from "./fixture.ts";
import { it } from "./it.ts";

const [, , , signer] = OWNERS;

async function verified(result: MintResult): Promise<boolean[]> {
  const receipt = await result.receipt();
  if (receipt === null) throw new Error("there is no receipt");
  return Promise.all(
    result.vaults.map(({ vaultId }) =>
      verifyReceipt(
        SETTLEMENT,
        signer.address,
        receiptOf({ vaults: result.vaults, receipt }, vaultId),
      ),
    ),
  );
}

describe("the receipt of a mint", () => {
  it("proves each vault as it was acknowledged", async ({ make }) => {
    const { engine, tenant, assets } = await make({ receiptSigner: signer });
    const mints = [
      mintOf(assets.erc20, "", 5),
      mintOf(assets.erc721, "7"),
      mintOf(assets.erc1155, "3", 4),
    ];
    expect(
      await verified(await engine.mint(tenant.principal, requestOf(tenant.users[0], ...mints))),
    ).toEqual([true, true, true]);
  });

  it("is the same for a repetition, after more was minted, and after a restart", async () => {
    const { engine, tenant, assets, database } = await fixture({ receiptSigner: signer });
    const body = requestOf(
      tenant.users[0],
      mintOf(assets.erc20, "", 5),
      mintOf(assets.erc721, "7"),
    );
    const first = await engine.mint(tenant.principal, body, { idempotencyKey: "once" });
    const receipt = await first.receipt();
    // The vault of the fungible grows; what was acknowledged stays what it was.
    await engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc20, "", 9)));
    const again = await engine.mint(tenant.principal, body, { idempotencyKey: "once" });
    expect(again.replayed).toBe(true);
    expect(await again.receipt()).toEqual(receipt);
    expect(await verified(again)).toEqual([true, true]);
    await engine.close();
    const reopened = await openTest(database, { receiptSigner: signer });
    await using _ = reopened;
    expect(await (await reopened.mints.get(tenant.applicationId, first.mintId)).receipt()).toEqual(
      receipt,
    );
  });

  it("is absent without a signer", async ({ engine, tenant, assets }) => {
    const result = await engine.mint(
      tenant.principal,
      requestOf(tenant.users[0], mintOf(assets.erc20, "", 5)),
    );
    expect(await result.receipt()).toBeNull();
  });
});
