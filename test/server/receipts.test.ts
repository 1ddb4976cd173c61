import { privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { receiptOf, verifyReceipt } from "../../core/protocol/index.ts";
import { createWorld, entries, SETTLEMENT, type World } from "./fixture.ts";

const OPERATOR = privateKeyToAccount(`0x${"11".repeat(32)}`);

const mint = (world: World) =>
  world.send("POST", "/api/v1/mint", { body: { users: [{ userId: world.users[0], mints: entries(world, 1) }] } });

describe("the receipt in a mint's reply", () => {
  test("proves each vault of the JSON as it came", async () => {
    await using world = await createWorld({ receiptSigner: OPERATOR });
    const { body: reply } = await mint(world);
    expect(reply.vaults).toHaveLength(3);
    for (const { vaultId } of reply.vaults) {
      expect(await verifyReceipt(SETTLEMENT, OPERATOR.address, receiptOf(reply, vaultId))).toBe(true);
    }
    const later = await world.send("GET", `/api/v1/mints/${reply.mintId}`);
    expect(later.body.receipt).toEqual(reply.receipt);
  });

  test("is null when the operator signs none", async () => {
    await using world = await createWorld();
    expect((await mint(world)).body.receipt).toBeNull();
  });
});
