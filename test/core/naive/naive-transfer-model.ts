import type { Address, Hash, Standard } from "../../../core/model.ts";

/**
 * The protocol of transfers as an eager ledger: a record moves its vault at once, when it is
 * committed, or never. L1 knows only what was committed and decides at each exit. Both must agree
 * at all times, which is the invariant of transfers.
 */

const NOBODY = `0x${"00".repeat(20)}`;

interface ModelVault {
  readonly vaultId: bigint;
  readonly owner: Address;
  /** The minted vault that it comes from. */
  readonly origin: bigint;
  readonly standard: Standard;
  readonly assetType: Hash;
  readonly transferable: boolean;
  /** Text of the minting blob. */
  readonly token: string;
  readonly sequence: number;
  /** First second at which it can be withdrawn. */
  readonly maturesAt: bigint;
  readonly first: bigint;
  /** Records since the mint. */
  readonly depth: number;
  rest: bigint;
  moved: boolean;
}

export interface ModelRecord {
  readonly vaultId: bigint;
  readonly amount: bigint;
  readonly to: Address;
  /** Whose signature it has; null for none or an invalid one. */
  readonly signer: Address | null;
  /** The owners may have approved this digest. */
  readonly digest: Hash;
  readonly deadline: bigint;
  /** The ids of the one or two slots that it takes. */
  readonly outIds: readonly bigint[];
}

interface ModelSession {
  readonly from: bigint;
  readonly until: bigint;
  revokedAt: bigint | null;
  readonly limit: bigint;
  readonly assetType: Hash | null;
}

/** An asset that vaults hold. */
export interface ModelAsset {
  readonly standard: Standard;
  readonly assetType: Hash;
  readonly transferable: boolean;
}

export class NaiveTransferModel {
  readonly vaults = new Map<bigint, ModelVault>();
  readonly spent = new Set<bigint>();
  /** The batches that L1 has: mode and number. */
  readonly batches = new Set<bigint>();
  readonly voided = new Set<bigint>();
  readonly #minted = new Set<string>();
  readonly #sessions = new Map<string, ModelSession>();
  readonly #usedKeys = new Set<string>();
  readonly #approvals = new Map<string, bigint>();
  readonly #cancellations = new Map<string, bigint>();
  #sequence = 0;

  /** Commits mints. `maturesAt` is of ERC-721 vaults. */
  mint(
    vaults: readonly {
      vaultId: bigint;
      owner: Address;
      asset: ModelAsset;
      amount: bigint;
      token: string;
    }[],
    maturesAt: bigint,
  ): void {
    for (const { vaultId, owner, asset, amount, token } of vaults) {
      this.batches.add(vaultId >> 20n);
      this.vaults.set(vaultId, {
        ...asset,
        vaultId,
        owner,
        origin: vaultId,
        token,
        sequence: this.#sequence,
        maturesAt: asset.standard === "erc721" ? maturesAt : 0n,
        first: amount,
        depth: 0,
        rest: amount,
        moved: false,
      });
    }
    this.#sequence++;
  }

  /**
   * Commits records; false when L1 refuses the batch: a vault is spent already, its batch is not
   * there, or a deadline is over.
   */
  transfer(records: readonly ModelRecord[], now: bigint): boolean {
    const ids = records.map(({ vaultId }) => vaultId);
    if (records.some(({ deadline }) => now > deadline)) return false;
    if (ids.some((id) => !this.batches.has(id >> 20n))) return false;
    if (new Set(ids).size !== ids.length || ids.some((id) => this.spent.has(id))) return false;
    const moves = records.filter((record) => this.#moves(record, now));
    for (const id of ids) this.spent.add(id);
    for (const record of moves) this.#move(record);
    for (const { outIds } of records) for (const id of outIds) this.batches.add(id >> 20n);
    this.#sequence++;
    return true;
  }

  #moves({ vaultId, amount, signer, digest }: ModelRecord, now: bigint): boolean {
    const vault = this.vaults.get(vaultId);
    if (vault === undefined || !vault.transferable) return false;
    if (vault.depth === 8) return false;
    if (vault.rest === 0n || this.voided.has(vault.origin) || vault.owner === NOBODY) return false;
    if (amount !== 0n && (vault.standard === "erc721" || amount >= vault.rest)) return false;
    for (const by of [vault.owner, signer]) {
      const cancelled = this.#cancellations.get(`${by} ${digest}`);
      if (cancelled !== undefined && cancelled < now) return false;
    }
    if (signer === vault.owner) return true;
    const approved = this.#approvals.get(`${vault.owner} ${digest}`);
    if (approved !== undefined && approved < now) return true;
    const session = this.#sessions.get(`${vault.owner} ${signer}`);
    if (session === undefined || now <= session.from || now > session.until) return false;
    if (session.revokedAt !== null && now > session.revokedAt) return false;
    if (session.assetType !== null && session.assetType !== vault.assetType) return false;
    if (amount !== 0n && vault.depth > 3) return false;
    return (amount === 0n ? vault.first : amount) <= session.limit;
  }

  #move({ vaultId, amount, to, outIds }: ModelRecord): void {
    const vault = this.vaults.get(vaultId);
    if (vault === undefined) throw new Error("a record that moves has a vault");
    const paid = amount === 0n ? vault.rest : amount;
    const parts = [
      { owner: to, first: paid },
      { owner: vault.owner, first: vault.rest - paid },
    ];
    for (const [part, outId] of outIds.entries()) {
      const { owner, first } = parts[part] as (typeof parts)[number];
      this.vaults.set(outId, {
        ...vault,
        vaultId: outId,
        owner,
        first,
        depth: vault.depth + 1,
        rest: first,
        moved: false,
        sequence: this.#sequence,
      });
    }
    vault.moved = true;
  }

  /** Who can withdraw from the vault now, and how much; null for nobody. */
  exit(vaultId: bigint, now: bigint): { readonly owner: Address; readonly amount: bigint } | null {
    const vault = this.vaults.get(vaultId);
    if (vault === undefined || vault.moved || vault.owner === NOBODY) return null;
    if (vault.rest === 0n || this.voided.has(vault.origin) || now < vault.maturesAt) return null;
    if (vault.standard === "erc721" && this.#minted.has(`${vault.assetType} ${vault.token}`))
      return null;
    return { owner: vault.owner, amount: vault.rest };
  }

  /** A withdrawal that L1 has paid. */
  withdraw(vaultId: bigint, quantity: bigint): void {
    const vault = this.vaults.get(vaultId);
    if (vault === undefined || vault.rest < quantity)
      throw new Error("nothing like that can be paid");
    vault.rest -= quantity;
    if (vault.standard === "erc721") this.#minted.add(`${vault.assetType} ${vault.token}`);
  }

  /** Whether a pair of minted vaults are duplicates and the later one can be voided; then it is. */
  void(earlier: bigint, later: bigint): boolean {
    const [a, b] = [this.vaults.get(earlier), this.vaults.get(later)];
    if (a === undefined || b === undefined || a.origin !== earlier || b.origin !== later)
      return false;
    const isSame = a.standard === "erc721" && a.assetType === b.assetType && a.token === b.token;
    const isOrdered = a.sequence < b.sequence || (a.sequence === b.sequence && earlier < later);
    // The contract does not know that a vault which was transferred is empty: voiding it once more
    // does no harm.
    if (!isSame || !isOrdered || this.voided.has(later) || (!b.moved && b.rest === 0n))
      return false;
    this.voided.add(later);
    return true;
  }

  /** Whether L1 has paid an ERC-721 vault that transfers made of this mint. */
  isPaid(origin: bigint): boolean {
    return [...this.vaults.values()].some(
      (vault) => vault.origin === origin && vault.vaultId !== origin && vault.rest === 0n,
    );
  }

  approve(owner: Address, digest: Hash, now: bigint): void {
    const key = `${owner} ${digest}`;
    if (!this.#approvals.has(key)) this.#approvals.set(key, now);
  }

  cancel(by: Address, digest: Hash, now: bigint): void {
    const key = `${by} ${digest}`;
    if (!this.#cancellations.has(key)) this.#cancellations.set(key, now);
  }

  /** False when the key was authorized or revoked before. */
  authorize(
    owner: Address,
    key: Address,
    terms: Omit<ModelSession, "from" | "revokedAt">,
    now: bigint,
  ): boolean {
    const name = `${owner} ${key}`;
    if (this.#usedKeys.has(name)) return false;
    this.#usedKeys.add(name);
    this.#sessions.set(name, { ...terms, from: now, revokedAt: null });
    return true;
  }

  revoke(owner: Address, key: Address, now: bigint): void {
    const name = `${owner} ${key}`;
    this.#usedKeys.add(name);
    const session = this.#sessions.get(name);
    if (session !== undefined) session.revokedAt ??= now;
  }
}
