import { afterEach, describe, expect, it, vi } from "vitest";
import { MintTransition } from "../../../core/mint/mint.ts";
import { fixture, mintOf, requestOf } from "./fixture.ts";

// The defect itself is put in: a fast check that refuses, while the plain one finds nothing wrong.
afterEach(() => vi.restoreAllMocks());

describe("a mint that the fast check refuses and the plain one accepts", () => {
  it("is tried again, since the state may have changed in between", async () => {
    const { engine, tenant, assets } = await fixture();
    await using _ = engine;
    const refusing = vi.spyOn(MintTransition.prototype, "apply").mockReturnValueOnce(null);
    const request = requestOf(tenant.users[0], mintOf(assets.erc721, 1));
    const { vaults } = await engine.mint(tenant.principal, request, { idempotencyKey: "once" });
    expect(vaults).toHaveLength(1);
    expect(refusing).toHaveBeenCalledTimes(2);
    const again = await engine.mint(tenant.principal, request, { idempotencyKey: "once" });
    expect(again).toMatchObject({ replayed: true, vaults: [{ vaultId: vaults[0]?.vaultId }] });
  });

  it.each([undefined, "a key"])(
    "is a separate error after a few attempts, with the idempotency key %s",
    async (key) => {
      const { engine, tenant, assets } = await fixture();
      await using _ = engine;
      const refusing = vi.spyOn(MintTransition.prototype, "apply").mockReturnValue(null);
      const options = key === undefined ? {} : { idempotencyKey: key };
      const request = requestOf(tenant.users[0], mintOf(assets.erc721, 1));
      await expect(engine.mint(tenant.principal, request, options)).rejects.toThrow("The checks of a mint disagree");
      expect(refusing.mock.calls.length).toBeLessThanOrEqual(5);
      refusing.mockRestore();
      expect((await engine.mint(tenant.principal, request, options)).replayed).toBe(false);
    },
  );
});
