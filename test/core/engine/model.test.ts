import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Engine, MODES, type Mode, type User } from "../../../core/index.ts";
import { type NaiveAsset, NaiveLedger, type NaiveMint } from "../naive/naive-ledger.ts";
import {
  all,
  type Fixture,
  fixture,
  knownAsset,
  mintingBlobOf,
  mintOf,
  openTest,
  refusal,
  SETTLEMENT,
} from "./fixture.ts";

const BATCH_VAULTS = 5;

interface Real {
  engine: Engine;
  readonly fixture: Fixture;
}

interface Model {
  readonly ledger: NaiveLedger;
  readonly assets: readonly { readonly assetId: string; readonly naive: NaiveAsset }[];
  readonly users: readonly User[];
}

type Step = fc.AsyncCommand<Model, Real>;

/** One entry: which user, which asset, which token of a few, how much, which mode. */
const entry = fc.record({
  user: fc.nat(3),
  asset: fc.nat(3),
  token: fc.nat(12),
  amount: fc.oneof(fc.bigInt(1n, 9n), fc.constantFrom(2n ** 53n + 1n, 2n ** 62n, 2n ** 63n - 1n)),
  mode: fc.constantFrom<Mode>(...MODES),
});
type EntryChoice = typeof entry extends fc.Arbitrary<infer T> ? T : never;

class MintStep implements Step {
  readonly choices: readonly EntryChoice[];

  constructor(choices: readonly EntryChoice[]) {
    this.choices = choices;
  }

  check = (): boolean => true;

  async run(model: Model, real: Real): Promise<void> {
    const sorted = [...this.choices].sort((a, b) => a.user - b.user);
    const naive = sorted.map((choice) => naiveMint(model, choice));
    const expected = model.ledger.mint(naive.map(({ mint }) => mint));
    const users = [...new Set(sorted.map(({ user }) => user))].map((user) => ({
      userId: model.users[user]?.userId,
      mints: naive.filter((one) => one.user === user).map(({ body }) => body),
    }));
    const attempt = real.engine.mint(real.fixture.tenant.principal, { users } as unknown);
    if (typeof expected === "string") {
      expect((await refusal(attempt)).code).toBe(expected);
      return;
    }
    expect((await attempt).transactions.map(({ vaultId }) => vaultId)).toEqual(expected);
  }

  toString = (): string =>
    `mint(${JSON.stringify(this.choices, (_, v) => (typeof v === "bigint" ? String(v) : v))})`;
}

function naiveMint(model: Model, { user, asset, token, amount, mode }: EntryChoice) {
  const { assetId, naive } = model.assets[asset] ?? { assetId: "", naive: undefined };
  const owner = model.users[user]?.ownerAddress;
  if (naive === undefined || owner === undefined)
    throw new Error("the model has no such asset or user");
  const text = naive.standard === "erc20" ? "" : String(token);
  const units = naive.standard === "erc721" ? 1n : amount;
  const mint: NaiveMint = {
    asset: naive,
    owner,
    amount: units,
    mintingBlob: mintingBlobOf(text),
    tokenId: BigInt(token),
    mode,
  };
  return { user, mint, body: mintOf(assetId, text, units.toString(), mode) };
}

class SealStep implements Step {
  readonly mode: Mode;

  constructor(mode: Mode) {
    this.mode = mode;
  }

  check = (): boolean => true;

  async run(model: Model, real: Real): Promise<void> {
    expect((await real.engine.operator.seal(this.mode)) !== null).toBe(
      model.ledger.seal(this.mode),
    );
  }

  toString = (): string => `seal(${this.mode})`;
}

/** Makes a slot of a sealed batch void, perhaps one that is so already. */
class VoidStep implements Step {
  readonly mode: Mode;
  readonly batch: number;
  readonly slot: number;

  constructor(mode: Mode, batch: number, slot: number) {
    this.mode = mode;
    this.batch = batch;
    this.slot = slot;
  }

  check = ({ ledger }: Model): boolean =>
    ledger.batches[this.mode].slice(0, -1)[this.batch]?.[this.slot] !== undefined;

  async run(model: Model, { engine }: Real): Promise<void> {
    model.ledger.voidSlot(this.mode, this.batch, this.slot);
    await engine.operator.voidSlots(this.mode, this.batch, [
      { firstSlot: this.slot, count: 1, failure: "refused" },
    ]);
  }

  toString = (): string => `void(${this.mode}, ${this.batch}, ${this.slot})`;
}

class EnableStep implements Step {
  readonly asset: number;
  readonly enabled: boolean;

  constructor(asset: number, enabled: boolean) {
    this.asset = asset;
    this.enabled = enabled;
  }

  check = (): boolean => true;

  async run(model: Model, real: Real): Promise<void> {
    const asset = model.assets[this.asset];
    if (asset === undefined) return;
    const { applicationId } = real.fixture.tenant;
    const { engine } = real;
    await (this.enabled
      ? engine.assets.enable(applicationId, asset.assetId)
      : engine.assets.disable(applicationId, asset.assetId));
    asset.naive.enabled = this.enabled;
  }

  toString = (): string => `${this.enabled ? "enable" : "disable"}(${this.asset})`;
}

/** Closes the engine and opens it over the same store. */
class ReopenStep implements Step {
  check = (): boolean => true;

  async run(_: Model, real: Real): Promise<void> {
    const { settlement, limits } = real.engine;
    await real.engine.close();
    real.engine = await openTest(real.fixture.database, {
      clock: real.fixture.clock.read,
      settlement,
      limits,
    });
  }

  toString = (): string => "reopen";
}

const steps = [
  fc.array(entry, { minLength: 1, maxLength: 8 }).map((choices) => new MintStep(choices)),
  fc.constantFrom<Mode>(...MODES).map((mode) => new SealStep(mode)),
  fc
    .tuple(fc.constantFrom<Mode>(...MODES), fc.nat(3), fc.nat(4))
    .map(([mode, batch, slot]) => new VoidStep(mode, batch, slot)),
  fc.tuple(fc.nat(3), fc.boolean()).map(([asset, enabled]) => new EnableStep(asset, enabled)),
  fc.constant(new ReopenStep()),
];

async function setup(): Promise<{ model: Model; real: Real }> {
  const limits = { batchVaults: { validium: BATCH_VAULTS, "zk-rollup": BATCH_VAULTS } };
  const real = await fixture({ limits });
  const { engine, tenant } = real;
  const capped = await knownAsset(engine, "erc20", { supplyCap: 40n });
  await engine.assets.enable(tenant.applicationId, capped);
  const ids = [...Object.values(real.assets), capped];
  const assets = await Promise.all(
    ids.map(async (assetId) => {
      const { standard, assetType, supplyCap } = await engine.assets.get(
        tenant.applicationId,
        assetId,
      );
      return { assetId, naive: { standard, assetType, supplyCap, enabled: true } };
    }),
  );
  const ledger = new NaiveLedger(SETTLEMENT.chainId, BATCH_VAULTS);
  return { model: { ledger, assets, users: tenant.users }, real: { engine, fixture: real } };
}

/** After any run: the same roots, the same balances, and a store that follows from its journal. */
async function requireSame(
  { ledger, assets, users }: Model,
  { engine, fixture: { tenant } }: Real,
): Promise<void> {
  const { rootValidium, rootRollup } = engine.batches.state();
  expect([rootValidium, rootRollup]).toEqual(MODES.map((mode) => ledger.root(mode)));
  for (const { userId, ownerAddress } of users) {
    const balances = await all(engine.vaults.balances(tenant.applicationId, userId));
    for (const { assetId, naive } of assets) {
      const own = balances.filter((balance) => balance.assetId === assetId);
      expect(own.reduce((sum, { amount }) => sum + amount, 0n)).toBe(
        ledger.balance(ownerAddress, naive),
      );
    }
  }
  expect((await engine.operator.verify()).problems).toEqual([]);
}

describe("the engine and the naive ledger", () => {
  it("agree after any sequence of mints, seals, enablements and restarts", async () => {
    await fc.assert(
      fc.asyncProperty(fc.commands(steps, { maxCommands: 25 }), async (commands) => {
        let last: { model: Model; real: Real } | null = null;
        await fc.asyncModelRun(async () => {
          last = await setup();
          return last;
        }, commands);
        const { model, real } = last ?? (await setup());
        await requireSame(model, real);
        await real.engine.close();
      }),
      { numRuns: 100 },
    );
  });
});
