import fc from "fast-check";
import { type Address, type Hash, type Hex, zeroAddress } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { expect, it } from "vitest";
import { type Engine, type L1Event, MODES, type Mode, type VaultId } from "../../../core/index.ts";
import { slotsOf } from "../../../core/protocol/batch-data.ts";
import { wordsIn } from "../../../core/protocol/blob-batch.ts";
import { bytesToHex } from "../../../core/protocol/hex.ts";
import { type Transfer, transfersDigest } from "../../../core/protocol/transfer.ts";
import { transferSigner } from "../../../core/protocol/transfer-rules.ts";
import { packVaultId } from "../../../core/protocol/vault.ts";
import { withdrawOne } from "../../one-withdrawal.ts";
import { type ModelRecord, NaiveTransferModel } from "../naive/naive-transfer-model.ts";
import { naiveDecode, naiveDigest } from "../naive/naive-transfers.ts";
import {
  type Fixture,
  fixture,
  hashOf,
  mintOf,
  OWNERS,
  openTest,
  requestOf,
  SETTLEMENT,
} from "./fixture.ts";
import { committed, HOME, signed, type Told } from "./l1-fixture.ts";
import { signedTransfers } from "./transfers-fixture.ts";

const GAME = privateKeyToAccount(`0x${"77".repeat(32)}`);
const ANY_ASSET = `0x${"00".repeat(32)}` as const;

/** Each step looks at what there is, and does nothing when that is not enough. */
type Step =
  | {
      readonly does: "mint";
      readonly user: number;
      readonly kind: number;
      readonly amount: number;
      readonly mode: Mode;
    }
  | {
      readonly does: "transfer";
      readonly picks: readonly number[];
      readonly to: number;
      readonly amount: number;
      readonly by: "owner" | "session" | "approval";
    }
  | {
      readonly does: "alone" | "request" | "void" | "authorize" | "revoke" | "cancel";
      readonly pick: number;
      readonly amount: number;
    }
  | { readonly does: "commit" | "final" | "give" | "settle" | "take back" | "restart" | "wait" }
  | { readonly does: "reorg"; readonly back: number };

const pick = fc.nat(1_000);
const amount = fc.integer({ min: 1, max: 5 });
const mode = fc.constantFrom<Mode>(...MODES);
const does = <const D extends readonly string[]>(...all: D) => fc.constantFrom<D[number]>(...all);
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({ does: does("mint"), user: fc.nat(3), kind: fc.nat(2), amount, mode }),
    },
    {
      weight: 8,
      arbitrary: fc.record({
        does: does("transfer"),
        picks: fc.array(pick, { minLength: 1, maxLength: 4 }),
        to: fc.nat(4),
        amount: fc.nat(3),
        by: does("owner", "owner", "owner", "session", "approval"),
      }),
    },
    {
      weight: 5,
      arbitrary: fc.record({
        does: does("alone", "alone", "request", "request", "void", "authorize", "revoke", "cancel"),
        pick,
        amount,
      }),
    },
    {
      weight: 14,
      arbitrary: fc.record({
        does: does(
          "commit",
          "commit",
          "final",
          "give",
          "settle",
          "settle",
          "settle",
          "take back",
          "restart",
          "wait",
        ),
      }),
    },
    { weight: 2, arbitrary: fc.record({ does: does("reorg"), back: fc.nat(4) }) },
  ),
  { minLength: 50, maxLength: 90, size: "max" },
);

/** An act that L1 has taken, in order. */
interface Logged {
  readonly block: bigint;
  apply(model: NaiveTransferModel): void;
  readonly ids: readonly VaultId[];
}

/** An engine, and the chain beside it, which knows only what it was given. */
class World {
  engine: Engine;
  readonly #made: Fixture;
  #block = 10n;
  #final = 10n;
  #unique = 0;
  #log: Logged[] = [];

  constructor(made: Fixture) {
    this.#made = made;
    this.engine = made.engine;
  }

  /** L1's clock moves with every block. */
  get #time(): bigint {
    return BigInt(Math.floor(this.#made.clock.now / 1000)) + this.#block;
  }

  /** The protocol's own idea of what L1 has taken. */
  get model(): NaiveTransferModel {
    const model = new NaiveTransferModel();
    for (const { apply } of this.#log) apply(model);
    return model;
  }

  get ids(): readonly VaultId[] {
    return this.#log.flatMap(({ ids }) => ids);
  }

  async take(step: Step): Promise<void> {
    const { engine } = this;
    switch (step.does) {
      case "mint":
        return this.#mint(step);
      case "transfer":
        return this.#transfer(step);
      case "give":
        for (const each of MODES) await engine.operator.seal(each);
        await engine.operator.sealTransfers();
        return;
      case "take back": {
        const batches = await Array.fromAsync(engine.batches.list({ mode: "zk-rollup" }));
        const open = batches.find(
          ({ kind, status }) => kind === "transfers" && status === "sealed",
        );
        if (open !== undefined)
          await engine.operator.takeBackTransfers(open.batchNumber, "not now");
        return;
      }
      case "commit":
        return this.#commit();
      case "settle":
        for (const does of ["give", "commit", "commit", "commit", "final"] as const)
          await this.take({ does });
        return;
      case "final":
        this.#final = this.#block;
        return engine.operator.recordFinalized(HOME, this.#block);
      case "wait":
        this.#made.clock.now += 3_000_000;
        return;
      case "restart":
        await engine.close();
        this.engine = await openTest(this.#made.database, { clock: this.#made.clock.read });
        return;
      case "reorg": {
        const from = this.#block - BigInt(step.back);
        if (from <= 10n) return;
        if (from <= this.#final) {
          this.#final = from - 1n;
          await engine.operator.recordReorg(HOME, from, "below final");
        } else await engine.operator.recordReorg(HOME, from);
        this.#log = this.#log.filter(({ block }) => block < from);
        return;
      }
      case "alone": {
        const { model } = this;
        const ready = this.ids.filter((id) => model.exit(id, 2n ** 62n) !== null);
        const vaultId = ready[step.pick % ready.length];
        if (vaultId === undefined) return;
        return this.#pay(vaultId, BigInt(step.amount));
      }
      case "request":
        return this.#request(step.pick, BigInt(step.amount));
      case "void": {
        const { model } = this;
        const unique = this.ids.filter((id) => {
          const vault = model.vaults.get(id);
          // The contract voids no vault that was withdrawn from, and none twice.
          return (
            vault?.standard === "erc721" &&
            vault.origin === id &&
            vault.rest > 0n &&
            !model.voided.has(id)
          );
        });
        const tips = this.ids.filter((id) => {
          const vault = model.vaults.get(id);
          return vault?.standard === "erc721" && vault.depth > 0 && model.exit(id, 2n ** 62n);
        });
        // The token leaves through a transfer, and then somebody voids its mint.
        const tip = step.amount > 2 ? tips[step.pick % tips.length] : undefined;
        if (tip !== undefined) await this.#pay(tip, 1n);
        const laterVaultId =
          tip === undefined ? unique[step.pick % unique.length] : model.vaults.get(tip)?.origin;
        if (laterVaultId === undefined || (tip === undefined && step.amount > 2)) return;
        const event = { type: "duplicateVoided", earlierVaultId: 0n, laterVaultId } as const;
        return this.#tell(event, [], (on) => void on.voided.add(laterVaultId));
      }
      case "authorize": {
        const owner = ownerAt(step.pick);
        const terms = { until: this.#time + 20_000n, limit: BigInt(step.amount) };
        const at = this.#time + 1n;
        const session = {
          owner,
          key: GAME.address,
          ...terms,
          assetType: ANY_ASSET,
          authorizedAt: at,
        };
        if (
          !this.model.authorize(
            owner,
            GAME.address.toLowerCase() as Address,
            { ...terms, assetType: null },
            at,
          )
        )
          return;
        await this.#tell({ type: "sessionAuthorized", ...session }, [], (on) => {
          on.authorize(
            owner,
            GAME.address.toLowerCase() as Address,
            { ...terms, assetType: null },
            at,
          );
        });
        return this.take({ does: "final" });
      }
      case "cancel": {
        const [digest, by] = [...this.#signed][step.pick % Math.max(1, this.#signed.size)] ?? [];
        if (digest === undefined || by === undefined) return;
        // The contract keeps the first cancellation.
        this.#signed.delete(digest);
        const cancelledAt = this.#time + 1n;
        const event = { type: "transfersCancelled", owner: by, digest, cancelledAt } as const;
        return this.#tell(event, [], (on) => on.cancel(by, digest, cancelledAt));
      }
      case "revoke": {
        const owner = ownerAt(step.pick);
        const at = this.#time + 1n;
        const key = GAME.address.toLowerCase() as Address;
        if (step.amount > 3) return;
        // The contract takes one revocation of a key.
        if (this.#revoked.has(owner)) return;
        this.#revoked.add(owner);
        return this.#tell({ type: "sessionRevoked", owner, key, revokedAt: at }, [], (on) =>
          on.revoke(owner, key, at),
        );
      }
    }
  }

  /** L1 pays the vault's owner, at most all that is left. */
  async #pay(vaultId: VaultId, most: bigint): Promise<void> {
    const { model } = this;
    const { owner: recipient, amount: rest } = model.exit(vaultId, 2n ** 62n) as NonNullable<
      ReturnType<NaiveTransferModel["exit"]>
    >;
    const quantity = most < rest ? most : rest;
    const { first = 0n } = model.vaults.get(vaultId) ?? {};
    const withdrawnTotal = first - rest + quantity;
    const event = { type: "withdrawn", vaultId, recipient, quantity, withdrawnTotal } as const;
    await this.#tell(event, [], (on) => on.withdraw(vaultId, quantity));
  }

  readonly #revoked = new Set<Address>();
  /** Lists that may be cancelled, by the account that signed or approved them. */
  readonly #signed = new Map<Hash, Address>();

  /** L1 takes something in a block of its own. */
  async #tell(
    event: Told,
    ids: readonly VaultId[],
    apply: (model: NaiveTransferModel) => void,
  ): Promise<void> {
    const block = ++this.#block;
    const at = { txHash: hashOf(Number(block)), blockNumber: block, logIndex: 0 };
    await this.engine.operator.recordEvents(HOME, [{ ...event, ...at } as L1Event], block);
    this.#log.push({ block, apply, ids });
  }

  async #mint({ user, kind, amount, mode }: Step & { readonly does: "mint" }): Promise<void> {
    const { tenant, assets } = this.#made;
    const entries = [
      mintOf(assets.erc20, "", amount, mode),
      mintOf(assets.erc1155, user, amount, mode),
      mintOf(assets.erc721, 1_000 + ++this.#unique, 1, mode),
    ];
    await this.engine.mint(
      tenant.principal,
      requestOf(tenant.users[user], entries[kind] as (typeof entries)[number]),
    );
  }

  async #transfer({ picks, to, amount, by }: Step & { readonly does: "transfer" }): Promise<void> {
    const { engine } = this;
    const { tenant } = this.#made;
    const listed = await Array.fromAsync(engine.vaults.list(tenant.applicationId));
    // Most requests are for vaults that can be transferred.
    const ready = listed.filter(
      ({ status, availableBalance }) => status === "finalized" && availableBalance > 0n,
    );
    const all = picks.length < 4 && ready.length > 0 ? ready : listed;
    const chosen = [...new Set(picks.map((at) => all[at % all.length]))].filter(
      (vault) => vault !== undefined,
    );
    const [first] = chosen;
    if (first === undefined) return;
    const receiver = to === 4 ? zeroAddress : ownerAt(to);
    const transfers = chosen
      .filter(({ ownerAddress }) => ownerAddress === first.ownerAddress)
      .map(
        ({ vaultId, mintingBlob }): Transfer => ({
          vaultId,
          amount: mintingBlob.length > 6 ? 0n : BigInt(amount),
          to: receiver,
        }),
      );
    const owner = OWNERS.find(({ address }) => address.toLowerCase() === first.ownerAddress);
    const signer = by === "session" ? GAME : owner;
    if (signer === undefined) throw new Error("a vault of nobody");
    const made = { engine, clock: this.#made.clock };
    const request = await signedTransfers(made, transfers, {
      signer: signer as (typeof OWNERS)[0],
    });
    if (by === "approval") {
      const digest = transfersDigest(SETTLEMENT, request);
      const approvedAt = this.#time + 1n;
      const event = {
        type: "transfersApproved",
        owner: first.ownerAddress,
        digest,
        approvedAt,
      } as const;
      // The contract keeps the first approval.
      await this.#tell(event, [], (on) => on.approve(first.ownerAddress, digest, approvedAt));
      await this.take({ does: "final" });
    }
    const signature = by === "approval" ? "0x" : request.signature;
    const asked = engine.transfers.request(tenant.principal, { ...request, signature });
    await asked.catch((error) => expect(error.code).toMatch(REFUSED));
    const digest = transfersDigest(SETTLEMENT, request);
    this.#signed.set(
      digest,
      (by === "approval" ? first.ownerAddress : signer.address.toLowerCase()) as Address,
    );
  }

  /** An owner asks for a withdrawal, which L1 pays later or never. */
  async #request(pick: number, quantity: bigint): Promise<void> {
    const { tenant, clock } = this.#made;
    const listed = await Array.fromAsync(this.engine.vaults.list(tenant.applicationId));
    const ready = listed.filter(
      ({ status, availableBalance }) => status !== "accepted" && availableBalance > 0n,
    );
    const vault = ready[pick % ready.length];
    if (vault === undefined) return;
    const { vaultId, withdrawnBalance: withdrawnBefore, ownerAddress } = vault;
    const signer = OWNERS.find(
      ({ address }) => address.toLowerCase() === ownerAddress,
    ) as (typeof OWNERS)[0];
    const made = { ...this.#made, engine: this.engine, clock };
    const request = await signed(made, quantity, {
      vaultId,
      withdrawnBefore,
      signer,
      recipient: ownerAddress,
    });
    const asked = withdrawOne(this.engine, tenant.principal, request);
    await asked.catch((error) => expect(error.code).toMatch(REFUSED));
  }

  /** L1 commits the oldest batch of a mode that waits, the modes in turn. */
  async #commit(): Promise<void> {
    const { engine } = this;
    const place = await this.#next();
    if (place === null) return;
    const { mode, batchNumber } = place;
    const { kind } = await engine.batches.get(mode, batchNumber);
    const { data } = await engine.batches.getSealed(mode, batchNumber);
    const sequence = BigInt(this.#log.filter(({ apply }) => COMMITS.has(apply)).length);
    const committedAt = this.#time + 1n;
    const event = { ...(await committed(engine, mode, batchNumber, 0n)), sequence, committedAt };
    const ids: VaultId[] = [];
    let apply: Logged["apply"];
    if (kind === "transfers") {
      const records: ModelRecord[] = [];
      for (const group of naiveDecode(bytesToHex(data)) ?? []) {
        const digest = naiveDigest(SETTLEMENT, group);
        const { signature, deadline } = group;
        const signer = signature === "0x" ? null : await transferSigner(digest, signature);
        for (const transfer of group.transfers) {
          const parts = transfer.amount === 0n ? 1 : 2;
          const outIds = Array.from({ length: parts }, (_, i) =>
            packVaultId({ mode, batchNumber, slot: ids.length + i }),
          );
          ids.push(...outIds);
          records.push({ ...transfer, signer, digest, deadline, outIds });
        }
      }
      // After a reorganisation L1 can lack a batch that these transfers spend.
      if (!this.model.transfer(records, committedAt)) {
        this.#block++;
        return;
      }
      apply = (model) => expect(model.transfer(records, committedAt)).toBe(true);
    } else {
      const vaults = slotsOf(wordsIn(data)).flatMap((slot, i) => {
        if (slot === null) return [];
        const vaultId = packVaultId({ mode, batchNumber, slot: i });
        ids.push(vaultId);
        const { assetType, amount, mintingBlob } = slot;
        const standard = this.#standards.get(assetType) ?? "erc20";
        const asset = { standard, assetType, transferable: true };
        return [
          {
            vaultId,
            owner: slot.owner.toLowerCase() as Address,
            asset,
            amount,
            token: mintingBlob,
          },
        ];
      });
      apply = (model) => model.mint(vaults, 0n);
    }
    COMMITS.add(apply);
    await this.#tell(event, ids, apply);
  }

  async #next(): Promise<{ readonly mode: Mode; readonly batchNumber: number } | null> {
    for (const mode of this.#block % 2n === 0n ? MODES : [...MODES].reverse()) {
      const batches = await Array.fromAsync(this.engine.batches.list({ mode }));
      const next = batches
        .reverse()
        .find(({ status }) => status === "sealed" || status === "submitted");
      if (next !== undefined) return next;
    }
    return null;
  }

  readonly #standards = new Map<string, "erc20" | "erc721" | "erc1155">();

  /** Every owner holds a final vault of each asset. */
  async prepare(): Promise<void> {
    const { assets } = this.#made;
    for (const [standard, assetId] of Object.entries(assets) as [
      "erc20" | "erc721" | "erc1155",
      string,
    ][]) {
      await this.engine.operator.recordRegistered(assetId, { transferable: true });
      const { assetType } = await this.engine.assets.get(this.#made.tenant.applicationId, assetId);
      this.#standards.set(assetType, standard);
    }
    for (let i = 0; i < 12; i++) {
      const mode = i % 2 === 0 ? "validium" : "zk-rollup";
      await this.take({ does: "mint", user: i % 4, kind: i % 3, amount: 5, mode });
    }
    await this.take({ does: "settle" });
  }

  /** The engine's word on every vault that L1 has, beside the model's. */
  async compare(): Promise<void> {
    const { engine, model } = this;
    const { applicationId } = this.#made.tenant;
    const underway = new Set<VaultId>();
    for (const { kind, status, batchNumber } of await Array.fromAsync(
      engine.batches.list({ mode: "zk-rollup" }),
    )) {
      if (
        kind !== "transfers" ||
        status === "settled" ||
        status === "finalized" ||
        status === "open"
      )
        continue;
      const { data } = await engine.batches.getSealed("zk-rollup", batchNumber);
      for (const group of naiveDecode(bytesToHex(data)) ?? [])
        for (const { vaultId } of group.transfers) underway.add(vaultId);
    }
    for (const vaultId of this.ids) {
      const here = await engine.vaults.get(applicationId, vaultId).catch((error) => {
        expect(error.code).toBe("vault_not_found");
        return null;
      });
      const there = model.vaults.get(vaultId);
      if (there === undefined || there.owner === zeroAddress) {
        expect(here).toBeNull();
        continue;
      }
      if (model.voided.has(there.origin) && !model.isPaid(there.origin)) {
        expect(here?.availableBalance ?? 0n).toBe(0n);
        continue;
      }
      const { ownerAddress, amount, withdrawnBalance, transferredBalance } = here ?? {};
      expect([vaultId, ownerAddress, amount]).toEqual([vaultId, there.owner, there.first]);
      expect([vaultId, withdrawnBalance]).toEqual([vaultId, there.first - there.rest]);
      if (!underway.has(vaultId))
        expect([vaultId, transferredBalance]).toEqual([vaultId, there.moved ? there.rest : 0n]);
      expect(here?.availableBalance).toBeLessThanOrEqual(there.moved ? 0n : there.rest);
    }
  }
}

/** The entries of a log that are commits. */
const COMMITS = new WeakSet<Logged["apply"]>();
/** A random request may meet these errors. */
const REFUSED = new RegExp(
  `^(${[
    "amount_out_of_range",
    "vault_spent",
    "proof_not_ready",
    "insufficient_balance",
    "withdrawal_pending",
    "transfer_too_deep",
    "signature_invalid",
    "vault_not_found",
    "vault_void",
  ].join("|")})$`,
);

function ownerAt(i: number): Hex {
  return (OWNERS[i % 4] as (typeof OWNERS)[0]).address.toLowerCase() as Hex;
}

it("vaults are what L1 has made of them, after mints, transfers, withdrawals, sessions, take-backs and reorganisations", async () => {
  let moved = 0;
  let voidedInVain = 0;
  await fc.assert(
    fc.asyncProperty(steps, async (taken) => {
      const world = new World(await fixture());
      await world.prepare();
      for (const step of taken) await world.take(step);
      await world.take({ does: "void", pick: 0, amount: 5 });
      await world.compare();
      expect((await world.engine.operator.verify()).problems).toEqual([]);
      const { model } = world;
      for (const { moved: has } of model.vaults.values()) if (has) moved++;
      for (const origin of model.voided) if (model.isPaid(origin)) voidedInVain++;
      await world.engine.close();
    }),
    { numRuns: 8 },
  );
  expect(moved).toBeGreaterThan(10);
  expect(voidedInVain).toBeGreaterThan(0);
});
