import fc from "fast-check";
import { describe, expect } from "vitest";
import {
  type Balance,
  type Engine,
  MODES,
  type Mode,
  type Uuid,
  type Vault,
} from "../../../core/index.ts";
import { PREFIX } from "../../../core/store/store-keys.ts";
import { withdrawOne } from "../../one-withdrawal.ts";
import { naiveBalances } from "../naive/naive-balances.ts";
import { NaiveStore } from "../naive/naive-store.ts";
import {
  type Fixture,
  fixture,
  mintingBlobOf,
  mintOf,
  OWNERS,
  openTest,
  refusal,
  requestOf,
} from "./fixture.ts";
import { it } from "./it.ts";
import { committed, HOME, hear, signed, stranger, withdrawn } from "./l1-fixture.ts";

const USERS = [0, 1] as const;

/**
 * A store that can hold an answer back: what is known of the vaults of a user who is being asked
 * for.
 */
class SlowStore extends NaiveStore {
  #held: (() => void) | null = null;
  readonly #through = Promise.withResolvers<void>();

  /** Resolves once the answer is there and held back. */
  holdNextActivity(): Promise<void> {
    return new Promise((resolve) => {
      this.#held = resolve;
    });
  }

  release(): void {
    this.#through.resolve();
  }

  override async getMany(keys: Buffer[]): Promise<(Buffer | undefined)[]> {
    const answer = await super.getMany(keys);
    if (this.#held === null || keys[0]?.[0] !== PREFIX.activity) return answer;
    this.#held();
    this.#held = null;
    await this.#through.promise;
    return answer;
  }
}

/**
 * Each step may change what users hold. It looks at what there is, and does nothing when that is
 * not enough.
 */
type Step =
  | {
      readonly does: "mint";
      readonly user: number;
      readonly mints: readonly (readonly [number, number, Mode])[];
    }
  | { readonly does: "seal"; readonly mode: Mode }
  | {
      readonly does: "request" | "alone" | "fail";
      readonly pick: number;
      readonly quantity: number;
    }
  | { readonly does: "void"; readonly pick: number }
  | { readonly does: "commit" | "restart" }
  | { readonly does: "reorg"; readonly back: number };

const mode = fc.constantFrom<Mode>(...MODES);
const pick = fc.nat(1_000);
const quantity = fc.integer({ min: 1, max: 6 });
const steps = fc.array(
  fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({
        does: fc.constant("mint" as const),
        user: fc.nat(1),
        mints: fc.array(fc.tuple(fc.nat(8), quantity, mode), { minLength: 1, maxLength: 6 }),
      }),
    },
    { weight: 2, arbitrary: fc.record({ does: fc.constant("seal" as const), mode }) },
    {
      weight: 4,
      arbitrary: fc.record({
        does: fc.constantFrom("request" as const, "alone" as const, "fail" as const),
        pick,
        quantity,
      }),
    },
    { weight: 2, arbitrary: fc.record({ does: fc.constant("void" as const), pick }) },
    {
      weight: 2,
      arbitrary: fc.record({ does: fc.constantFrom("commit" as const, "restart" as const) }),
    },
    { weight: 1, arbitrary: fc.record({ does: fc.constant("reorg" as const), back: fc.nat(4) }) },
  ),
  { minLength: 1, maxLength: 30 },
);

/** An engine to which all of this happens, and the chain's part of it. */
class World {
  engine: Engine;
  readonly #made: Fixture;
  #block = 10n;
  #unique = 0;

  constructor(made: Fixture) {
    this.#made = made;
    this.engine = made.engine;
  }

  get applicationId(): Uuid {
    return this.#made.tenant.applicationId;
  }

  userId(user: number): Uuid {
    return this.#made.tenant.users[user]?.userId ?? "";
  }

  async take(step: Step): Promise<void> {
    const { engine } = this;
    switch (step.does) {
      case "mint":
        await this.#mint(step.user, step.mints);
        return;
      case "seal":
        await engine.operator.seal(step.mode);
        return;
      case "request":
        return this.#withSealed(step.pick, async (vault) => {
          const made = { ...this.#made, engine };
          const signer = OWNERS[vault.ownerAddress === OWNERS[0].address.toLowerCase() ? 0 : 1];
          const { withdrawnBalance: withdrawnBefore, vaultId } = vault;
          const request = await signed(made, BigInt(step.quantity), {
            withdrawnBefore,
            vaultId,
            signer,
          });
          const asked = withdrawOne(engine, this.#made.tenant.principal, request);
          await asked.catch((error) =>
            expect(error.code).toMatch(/^(insufficient_balance|withdrawal_pending)$/),
          );
        });
      case "alone":
        return this.#withSealed(step.pick, async ({ vaultId, amount, withdrawnBalance }) => {
          const taken = BigInt(step.quantity);
          const total = withdrawnBalance + taken;
          if (total > amount) return;
          await engine.operator.recordEvents(
            HOME,
            [withdrawn(vaultId, taken, total, stranger, ++this.#block)],
            this.#block,
          );
        });
      case "fail": {
        const { data } = await engine.withdrawals.list(this.applicationId);
        const pending = data.filter(({ status }) => status === "accepted");
        const chosen = pending[step.pick % pending.length];
        if (chosen !== undefined)
          await engine.operator.recordWithdrawalFailed(
            chosen.withdrawalId,
            "no",
            chosen.deadline + 1n,
          );
        return;
      }
      case "void":
        return this.#withSealed(step.pick, async ({ dataAvailabilityMode, batchId, vaultId }) => {
          const batchNumber = Number(batchId.slice(dataAvailabilityMode.length + 1));
          const firstSlot = Number(vaultId & 0xf_ffffn);
          const slots = [{ firstSlot, count: 1, failure: "refused" }];
          const mode = dataAvailabilityMode === "zk-rollup" ? "zk-rollup" : "validium";
          const voided = engine.operator.voidSlots(mode, batchNumber, slots);
          await voided.catch((error) => expect(error.code).toBe("batch_committed"));
        });
      case "commit":
        return this.#commit();
      case "restart":
        await engine.close();
        this.engine = await openTest(this.#made.database, { clock: this.#made.clock.read });
        return;
      case "reorg": {
        const from = this.#block - BigInt(step.back);
        if (from > 10n) await engine.operator.recordReorg(HOME, from);
        return;
      }
    }
  }

  async #mint(user: number, mints: readonly (readonly [number, number, Mode])[]): Promise<void> {
    const { tenant, assets } = this.#made;
    const entries = mints.map(([token, amount, mode]) => {
      if (token < 2) return mintOf(assets.erc20, "", amount, mode);
      if (token < 6) return mintOf(assets.erc1155, token, amount, mode);
      return mintOf(assets.erc721, this.#unique++, 1, mode);
    });
    await this.engine.mint(tenant.principal, requestOf(tenant.users[user], ...entries));
  }

  async #withSealed(pick: number, body: (vault: Vault) => Promise<void>): Promise<void> {
    const vaults = await Array.fromAsync(this.engine.vaults.list(this.applicationId));
    const sealed = vaults.filter(({ status }) => status !== "accepted" && status !== "failed");
    const vault = sealed[pick % sealed.length];
    if (vault !== undefined) await body(vault);
  }

  /** The oldest sealed batch of the first mode that has one. */
  async #commit(): Promise<void> {
    for (const mode of MODES) {
      const waiting = await Array.fromAsync(this.engine.batches.list({ mode }));
      const next = waiting
        .reverse()
        .find(({ status }) => status === "sealed" || status === "submitted");
      if (next === undefined) continue;
      const event = await committed(this.engine, mode, next.batchNumber, ++this.#block);
      await this.engine.operator.recordEvents(HOME, [event], this.#block);
      return;
    }
  }
}

/** All pages, so small that the list needs several. */
async function pagesOf(
  engine: Engine,
  applicationId: Uuid,
  userId: Uuid,
  limit: number,
): Promise<Balance[]> {
  const found: Balance[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await engine.vaults.balances(applicationId, userId, { limit, cursor });
    expect(page.data.length).toBeLessThanOrEqual(limit);
    found.push(...page.data);
    if (page.nextCursor === null) return found;
    cursor = page.nextCursor;
  }
}

describe("balances", () => {
  it("are the sums over vaults, through mints, withdrawals, failures, void slots, reorganisations and restarts", async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (taken) => {
        const world = new World(
          await fixture({ limits: { batchVaults: { validium: 5, "zk-rollup": 4 } } }),
        );
        for (const step of taken) {
          await world.take(step);
          for (const user of USERS) {
            const userId = world.userId(user);
            const vaults = await Array.fromAsync(
              world.engine.vaults.list(world.applicationId, { userId }),
            );
            const expected = naiveBalances(vaults);
            expect(await pagesOf(world.engine, world.applicationId, userId, 2)).toEqual(expected);
            expect(
              await Array.fromAsync(world.engine.vaults.balances(world.applicationId, userId)),
            ).toEqual(expected);
          }
        }
        await world.engine.close();
      }),
      { numRuns: 60 },
    );
  });

  it("are consistent during concurrent mints and withdrawals, and right afterwards", async ({
    made,
  }) => {
    const { engine, tenant, assets } = made;
    const [user] = tenant.users;
    const userId = user?.userId ?? "";
    const mint = () => engine.mint(tenant.principal, requestOf(user, mintOf(assets.erc20, "", 3)));
    await mint();
    await engine.operator.seal("validium");
    const asking = async () => {
      for (let i = 0; i < 20; i++) {
        const { data } = await engine.vaults.balances(tenant.applicationId, userId);
        expect((data[0]?.amount ?? 0n) % 3n).toBe(0n);
        expect(data[0]?.available ?? 0n).toBeLessThanOrEqual(data[0]?.amount ?? 0n);
      }
    };
    const minting = async () => {
      for (let i = 0; i < 20; i++) await mint();
    };
    const leaving = async () => {
      for (let i = 1; i <= 3; i++) {
        await engine.operator.recordEvents(
          HOME,
          [withdrawn(0n, 1n, BigInt(i), stranger, BigInt(10 + i))],
          BigInt(10 + i),
        );
      }
    };
    await Promise.all([asking(), asking(), minting(), leaving()]);
    const vaults = await Array.fromAsync(engine.vaults.list(tenant.applicationId, { userId }));
    expect((await engine.vaults.balances(tenant.applicationId, userId)).data).toEqual(
      naiveBalances(vaults),
    );
    expect(naiveBalances(vaults)).toMatchObject([{ amount: 63n, available: 60n, withdrawn: 3n }]);
  });

  it("include a recorded withdrawal while an earlier request still computes its sums", async ({
    make,
  }) => {
    const store = new SlowStore();
    const { engine, tenant, assets } = await make({ store });
    const userId = tenant.users[0]?.userId ?? "";
    await engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc20, "", 10)));
    await engine.operator.seal("validium");
    const held = store.holdNextActivity();
    const early = engine.vaults.balances(tenant.applicationId, userId);
    await held;
    await hear(engine, withdrawn(0n, 4n, 4n, stranger, 11n));
    const late = engine.vaults.balances(tenant.applicationId, userId);
    store.release();
    await early;
    expect((await late).data).toMatchObject([{ amount: 10n, available: 6n, withdrawn: 4n }]);
  });

  it("cost the transactions of their sums, in turns, again after a change, and the one who asked", async ({
    engine,
    tenant,
    assets,
  }) => {
    const [user] = tenant.users;
    const userId = user?.userId ?? "";
    const mints = Array.from({ length: 1_000 }, () => mintOf(assets.erc1155, 7, 1));
    for (let i = 0; i < 4; i++) await engine.mint(tenant.principal, requestOf(user, ...mints));
    // The page itself ends at the second token.
    await engine.mint(tenant.principal, requestOf(user, mintOf(assets.erc1155, 8, 1)));
    const page = async (onExamined?: (transactions: number) => void | Promise<void>) =>
      (await engine.vaults.balances(tenant.applicationId, userId, { limit: 1 }, { onExamined }))
        .data;
    const told = async () => {
      const counts: number[] = [];
      expect(await page((examined) => void counts.push(examined))).toMatchObject([
        { tokenId: 7n, amount: 4_000n },
      ]);
      return counts;
    };
    const first = await told();
    const later = await told();
    expect(first.at(-1)! - later.at(-1)!).toBe(4_001);
    expect(first.length - later.length).toBeGreaterThanOrEqual(4);
    await engine.operator.seal("validium");
    await hear(engine, withdrawn(0n, 1n, 1n, stranger, 11n));
    // One who cannot pay for the sums fails alone. Another one who waits for them begins anew.
    const isReading = Promise.withResolvers<void>();
    const isRefused = Promise.withResolvers<void>();
    const poor = page(async () => {
      isReading.resolve();
      await isRefused.promise;
      throw new Error("no more units");
    });
    await isReading.promise;
    const other = told();
    isRefused.resolve();
    await expect(poor).rejects.toThrow("no more units");
    expect((await other).at(-1)).toBe(first.at(-1));
  });

  it("refuse another application's user, and another list's cursor", async ({
    engine,
    tenant,
    assets,
  }) => {
    const userId = tenant.users[0]?.userId ?? "";
    const { applicationId: other } = await engine.applications.create({ name: "other" });
    expect((await refusal(engine.vaults.balances(other, userId))).code).toBe("user_not_found");
    const mints = [1, 2, 3].map((id) => mintOf(assets.erc721, id));
    await engine.mint(tenant.principal, requestOf(tenant.users[0], ...mints));
    const { nextCursor, data } = await engine.vaults.balances(tenant.applicationId, userId, {
      limit: 1,
    });
    expect(data).toMatchObject([
      { tokenId: 1n, mintingBlob: mintingBlobOf(1), amount: 1n, available: 1n, withdrawn: 0n },
    ]);
    const cursor = nextCursor ?? "";
    const foreign = engine.vaults.balances(tenant.applicationId, tenant.users[1]?.userId ?? "", {
      cursor,
    });
    expect((await refusal(foreign)).code).toBe("cursor_invalid");
    expect((await refusal(engine.vaults.list(tenant.applicationId, { userId, cursor }))).code).toBe(
      "cursor_invalid",
    );
  });

  it("count a mint that came after L1's history was adopted, also behind a withdrawal", async ({
    engine,
    tenant,
    assets,
    made,
  }) => {
    const userId = tenant.users[0]?.userId ?? "";
    const mint = (units: number) =>
      engine.mint(tenant.principal, requestOf(tenant.users[0], mintOf(assets.erc20, "", units)));
    await mint(100);
    await engine.operator.seal("validium");
    await withdrawOne(engine, tenant.principal, await signed(made, 10n));
    const foreign = {
      ...(await committed(engine, "validium", 0, 5n)),
      batchRoot: `0x${"11".repeat(32)}`,
    } as const;
    expect((await refusal(hear(engine, foreign))).code).toBe("history_diverged");
    await engine.operator.adopt([{ mode: "validium", first: 0, batches: [] }]);
    // In the place of the lost vault.
    await mint(5);
    const { data } = await engine.vaults.balances(tenant.applicationId, userId);
    expect(data).toMatchObject([{ amount: 5n, available: 5n }]);
  });
});
