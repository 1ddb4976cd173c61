import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Address, Hash, Standard } from "../../../core/model.ts";
import {
  type CommittedRecord,
  type TransferableVault,
  type TransferPowers,
  transferFault,
  transferredVault,
} from "../../../core/protocol/transfer-rules.ts";
import { type ModelAsset, NaiveTransferModel } from "../naive/naive-transfer-model.ts";
import { derivedAddress, derivedHash } from "./vectors.ts";

/** Owners, and the keys of sessions. */
const ACTORS: readonly Address[] = ["ann", "bob", "cat"].map(derivedAddress);
const KEYS: readonly Address[] = ["key 1", "key 2"].map(derivedAddress);
const NOBODY: Address = `0x${"00".repeat(20)}`;
const MATURITY = 10n;
const ASSETS: readonly ModelAsset[] = (["erc20", "erc721", "erc1155", "erc20"] as const).map(
  (standard: Standard, i) => ({ standard, assetType: derivedHash(`asset ${i}`), transferable: i < 3 }),
);

interface Session {
  authorizedAt: bigint;
  until: bigint;
  revokedAt: bigint;
  limit: bigint;
  assetType: Hash;
}
interface Record extends CommittedRecord {
  readonly signer: Address | null;
  readonly digest: Hash;
}

/** L1 as the contract has it: it keeps what was committed, and decides by the pure rules when somebody exits. */
class LazyL1 {
  now = 1_000n;
  readonly minted = new Map<bigint, { vault: TransferableVault; token: string; maturesAt: bigint }>();
  readonly records = new Map<bigint, Record>();
  readonly made = new Map<bigint, { readonly inId: bigint; readonly part: 0 | 1 }>();
  readonly withdrawn = new Map<bigint, bigint>();
  readonly tokens = new Set<string>();
  readonly sessions = new Map<string, Session>();
  readonly approvals = new Map<string, bigint>();
  readonly cancellations = new Map<string, bigint>();

  powers(owner: Address, { signer, digest }: Record): TransferPowers {
    return {
      signer,
      session: this.sessions.get(`${owner} ${signer}`) ?? null,
      approvedAt: this.approvals.get(`${owner} ${digest}`) ?? 0n,
      cancelledAt: this.cancellations.get(`${owner} ${digest}`) ?? 0n,
      signerCancelledAt: this.cancellations.get(`${signer} ${digest}`) ?? 0n,
    };
  }

  /** The vault at the end of a chain whose records all count. */
  vault(id: bigint, seen = new Set<bigint>()): TransferableVault | null {
    const withdrawn = this.withdrawn.get(id) ?? 0n;
    const minted = this.minted.get(id);
    if (minted !== undefined) return { ...minted.vault, withdrawn };
    const made = this.made.get(id);
    const record = made && this.records.get(made.inId);
    if (made === undefined || record === undefined || seen.has(id)) return null;
    const before = this.vault(made.inId, seen.add(id));
    if (before === null || transferFault(before, record, this.powers(before.owner, record)) !== null) return null;
    return { ...transferredVault(before, record, { outId: id, part: made.part }), withdrawn };
  }

  origin(id: bigint): bigint {
    const made = this.made.get(id);
    return made === undefined ? id : this.origin(made.inId);
  }

  exit(id: bigint): { owner: Address; amount: bigint } | null {
    const vault = this.vault(id);
    if (vault === null || vault.owner === NOBODY || vault.withdrawn === vault.amount) return null;
    const record = this.records.get(id);
    const counts = record !== undefined && transferFault(vault, record, this.powers(vault.owner, record)) === null;
    if (vault.transferable && counts) return null;
    const { maturesAt = 0n, token = "" } = this.minted.get(this.origin(id)) ?? {};
    if (this.now < maturesAt || this.tokens.has(`${vault.assetType} ${token}`)) return null;
    return { owner: vault.owner, amount: vault.amount - vault.withdrawn };
  }
}

type Random = (below: number) => number;

function mint(l1: LazyL1, model: NaiveTransferModel, random: Random, batch: number): void {
  const made = Array.from({ length: 1 + random(3) }, (_, slot) => {
    const asset = ASSETS[random(ASSETS.length)] as ModelAsset;
    const amount = asset.standard === "erc721" ? 1n : BigInt(1 + random(6));
    const token = asset.standard === "erc20" ? "" : String(random(4));
    return { vaultId: idOf(batch, slot), owner: ACTORS[random(3)] as Address, asset, amount, token };
  });
  for (const { vaultId, owner, asset, amount, token } of made) {
    const vault = { vaultId, owner, amount, withdrawn: 0n, ...asset, hops: 0 };
    l1.minted.set(vaultId, { vault, token, maturesAt: asset.standard === "erc721" ? l1.now + MATURITY : 0n });
  }
  model.mint(made, l1.now + MATURITY);
}

const idOf = (batch: number, slot: number) => (BigInt(batch) << 20n) + BigInt(slot);

function transfer(l1: LazyL1, model: NaiveTransferModel, random: Random, batch: number): void {
  const known = [...model.vaults.keys()];
  const records = Array.from({ length: 1 + random(3) }, () => {
    const vaultId = random(20) === 0 ? idOf(random(40), random(3)) : (known[random(known.length)] ?? 0n);
    const owner = model.vaults.get(vaultId)?.owner ?? null;
    const signer = random(3) > 0 ? owner : ([...ACTORS, ...KEYS, null][random(6)] ?? null);
    const amount = random(2) === 0 ? 0n : BigInt(1 + random(6));
    const to = random(8) === 0 ? NOBODY : (ACTORS[random(3)] as Address);
    const deadline = random(20) === 0 ? l1.now - BigInt(random(2)) : l1.now + 100n;
    return {
      vaultId,
      amount,
      to,
      deadline,
      signer: signer === NOBODY ? null : signer,
      digest: derivedHash(`list ${random(4)}`),
    };
  });
  let slot = 0;
  const placed = records.map((record) => ({
    ...record,
    outIds: Array.from({ length: record.amount === 0n ? 1 : 2 }, () => idOf(batch, slot++)),
  }));
  const spends = records.map(({ vaultId }) => vaultId);
  const isRefused = (id: bigint) => l1.records.has(id) || !model.batches.has(id >> 20n);
  const refused =
    new Set(spends).size < spends.length || spends.some(isRefused) || records.some(({ deadline }) => deadline < l1.now);
  expect(model.transfer(placed, l1.now)).toBe(!refused);
  if (refused) return;
  for (const { vaultId, amount, to, deadline, signer, digest, outIds } of placed) {
    const committedAt = l1.now;
    l1.records.set(vaultId, { transfer: { vaultId, amount, to }, deadline, signer, digest, committedAt });
    for (const [part, outId] of outIds.entries()) l1.made.set(outId, { inId: vaultId, part: part as 0 | 1 });
  }
}

function withdraw(l1: LazyL1, model: NaiveTransferModel, random: Random): void {
  const open = [...model.vaults.keys()].filter((id) => l1.exit(id) !== null);
  const id = open[random(Math.max(1, open.length))];
  if (id === undefined) return;
  const quantity = BigInt(1 + random(Number(l1.exit(id)?.amount)));
  const vault = l1.vault(id);
  const { token = "" } = l1.minted.get(l1.origin(id)) ?? {};
  if (vault?.standard === "erc721") l1.tokens.add(`${vault.assetType} ${token}`);
  l1.withdrawn.set(id, (l1.withdrawn.get(id) ?? 0n) + quantity);
  model.withdraw(id, quantity);
}

function voidDuplicate(l1: LazyL1, model: NaiveTransferModel, random: Random): void {
  const ids = [...l1.minted.keys()];
  const [earlier, later] = [ids[random(ids.length)], ids[random(ids.length)]];
  if (earlier !== undefined && later !== undefined && model.void(earlier, later)) l1.withdrawn.set(later, 1n);
}

function session(l1: LazyL1, model: NaiveTransferModel, random: Random): void {
  const [owner, key] = [ACTORS[random(3)] as Address, KEYS[random(2)] as Address];
  const known = l1.sessions.get(`${owner} ${key}`);
  if (random(3) === 0) {
    model.revoke(owner, key, l1.now);
    const none = { authorizedAt: 0n, until: 0n, limit: 0n, assetType: ANY, revokedAt: 0n };
    l1.sessions.set(`${owner} ${key}`, { ...(known ?? none), revokedAt: known?.revokedAt || l1.now });
    return;
  }
  const assetType = random(2) === 0 ? null : (ASSETS[random(3)]?.assetType ?? null);
  const terms = { until: l1.now + BigInt(1 + random(20)), limit: BigInt(1 + random(6)), assetType };
  expect(model.authorize(owner, key, terms, l1.now)).toBe(known === undefined);
  if (known !== undefined) return;
  l1.sessions.set(`${owner} ${key}`, { ...terms, assetType: assetType ?? ANY, authorizedAt: l1.now, revokedAt: 0n });
}
const ANY: Hash = `0x${"00".repeat(32)}`;

function approve(l1: LazyL1, model: NaiveTransferModel, random: Random): void {
  const [owner, digest] = [ACTORS[random(3)] as Address, derivedHash(`list ${random(4)}`)];
  model.approve(owner, digest, l1.now);
  const name = `${owner} ${digest}`;
  if (!l1.approvals.has(name)) l1.approvals.set(name, l1.now);
}

function cancel(l1: LazyL1, model: NaiveTransferModel, random: Random): void {
  const [by, digest] = [[...ACTORS, ...KEYS][random(5)] as Address, derivedHash(`list ${random(4)}`)];
  model.cancel(by, digest, l1.now);
  const name = `${by} ${digest}`;
  if (!l1.cancellations.has(name)) l1.cancellations.set(name, l1.now);
}

describe("rules that decide at the exit", () => {
  it("pay each vault to the account that a ledger which decides at the commit names", () => {
    const seen = { moved: 0, refuted: 0 };
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 2 ** 30 }), { minLength: 150, maxLength: 400 }), (entropy) => {
        const [l1, model] = [new LazyL1(), new NaiveTransferModel()];
        let used = 0;
        const random: Random = (below) => (entropy[used++ % entropy.length] ?? 0) % below;
        for (let batch = 0; batch < 24 && used < entropy.length; batch++) {
          const action = batch === 0 ? 0 : random(11);
          if (action < 2) mint(l1, model, random, batch);
          else if (action < 5) transfer(l1, model, random, batch);
          else if (action === 5) withdraw(l1, model, random);
          else if (action === 6) voidDuplicate(l1, model, random);
          else if (action === 7) session(l1, model, random);
          else if (action === 8) approve(l1, model, random);
          else if (action === 9) cancel(l1, model, random);
          else l1.now += BigInt(random(8));
          for (const id of new Set([...l1.minted.keys(), ...l1.made.keys()])) {
            expect(l1.exit(id), `vault ${id}`).toEqual(model.exit(id, l1.now));
          }
        }
        for (const [id, { moved, transferable }] of model.vaults) {
          if (moved) seen.moved++;
          else if (transferable && l1.records.has(id) && l1.exit(id) !== null) seen.refuted++;
        }
      }),
      { numRuns: 150 },
    );
    expect(Math.min(seen.moved, seen.refuted)).toBeGreaterThan(30);
  });
});
