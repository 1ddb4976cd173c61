import type { Engine, EngineOptions, MintOptions, MintResult, VoidSlots } from "./engine-types.ts";
import { MintmarkError } from "./errors.ts";
import type { EventOptions } from "./event-types.ts";
import {
  batchView,
  committedCount,
  findBatch,
  listBatches,
  openBatch,
  sealedBatch,
  sealedCount,
  stateOver,
  vaultContent,
} from "./ledger/batches/batches.ts";
import { batchProof, consistencyProof, vaultMultiproof, vaultProof, vaultStateProof } from "./ledger/batches/proofs.ts";
import { closeOpenBatch, sealClosed } from "./ledger/batches/seal.ts";
import { voidSlots } from "./ledger/batches/void-slots.ts";
import { Cursors } from "./ledger/cursor.ts";
import { applicationEvents } from "./ledger/events/event-log.ts";
import { EventHub } from "./ledger/events/events.ts";
import { LedgerWebhooks } from "./ledger/events/webhooks.ts";
import type { Ledger } from "./ledger/ledger.ts";
import { readLimits } from "./ledger/limits.ts";
import { listOf } from "./ledger/list.ts";
import { forgetIdempotencyKeys } from "./ledger/mint/forget-keys.ts";
import { type Idempotency, idempotencyKeyHash } from "./ledger/mint/idempotency.ts";
import { type MintOutcome, MintTransition } from "./ledger/mint/mint.ts";
import { MintCheck } from "./ledger/mint/mint-check.ts";
import { columnsOf, type MintColumns, readMintColumns } from "./ledger/mint/mint-columns.ts";
import { AcceptedResult, presentResult, replayedResult } from "./ledger/mint/mint-results.ts";
import { Issues, type MintRequest, readMintRequest } from "./ledger/mint/request.ts";
import { recordSubmitted } from "./ledger/settlement/batch-progress.ts";
import { recordFinalized, recordReorg } from "./ledger/settlement/finality.ts";
import { recordCommitted, recordEvents, recordWithdrawn } from "./ledger/settlement/l1-events.ts";
import { requestWithdrawal } from "./ledger/settlement/withdrawal-request.ts";
import {
  pendingWithdrawals,
  readWithdrawal,
  recordWithdrawalAttempt,
  recordWithdrawalFailed,
  recordWithdrawalSubmitted,
} from "./ledger/settlement/withdrawals.ts";
import { authenticate, issueKey, keyView, revokeKey } from "./ledger/tenants/api-keys.ts";
import { applicationView, createApplication, suspendApplication } from "./ledger/tenants/applications.ts";
import {
  addAsset,
  assetView,
  durableAsset,
  listAssets,
  markAssetRegistered,
  setEnabled,
  setMintingFault,
  whitelistAsset,
} from "./ledger/tenants/assets.ts";
import { createUser, listUsers, readUser } from "./ledger/tenants/users.ts";
import { listTransactions, listWithdrawals, readTransaction } from "./ledger/transactions/transactions.ts";
import { requireAddress } from "./ledger/validate.ts";
import { listVaults, readBalances } from "./ledger/vaults/holdings.ts";
import { batchAt, placeOf, readVault, vaultViews } from "./ledger/vaults/vaults.ts";
import type {
  AssetFilter,
  BatchFilter,
  List,
  PageOptions,
  TransactionFilter,
  VaultFilter,
  WithdrawalFilter,
} from "./list-types.ts";
import type {
  ApiKey,
  Application,
  Asset,
  Batch,
  Mode,
  Principal,
  Scope,
  Transaction,
  User,
  Uuid,
  Vault,
  VaultId,
  Withdrawal,
} from "./model.ts";
import { MODES } from "./model.ts";
import { canonicalSettlement, openLedger } from "./store/opening.ts";
import { type VerifyOptions, verifyStore } from "./verify/verify.ts";
import type { Webhooks } from "./webhook-types.ts";

export type * from "./engine-types.ts";
export type * from "./event-types.ts";
export type * from "./list-types.ts";
export type * from "./proof-types.ts";
export type * from "./webhook-types.ts";

/**
 * Opens the engine over a store, and makes the store when it is new.
 *
 * @throws MintmarkError `store_locked`, `store_corrupt`, `store_mismatch`, `store_failed`, or `validation_failed` for bad options
 * @example
 * await using engine = await openEngine({ store: "./data", environment: "sandbox", settlement });
 */
export async function openEngine(options: EngineOptions): Promise<Engine> {
  const limits = readLimits(options.limits);
  requireAddress("settlement.contract", options.settlement.contract);
  const settlement = canonicalSettlement(options.settlement);
  const events = new EventHub();
  const emit: EventHub["emit"] = (type, event) => events.emit(type, event);
  const { ledger, secret } = await openLedger({ ...options, settlement }, limits, emit);
  return new LedgerEngine(ledger, new Cursors(secret), events, new LedgerWebhooks(ledger, secret));
}

/** Every method looks whether the engine can still be used, and hands on to the module that knows. */
class LedgerEngine implements Engine {
  readonly webhooks: Webhooks;
  readonly #ledger: Ledger;
  readonly #cursors: Cursors;
  readonly #events: EventHub;
  readonly #minting = new Set<string>();
  #closing: Promise<void> | null = null;

  constructor(ledger: Ledger, cursors: Cursors, events: EventHub, webhooks: Webhooks) {
    this.#ledger = ledger;
    this.#cursors = cursors;
    this.#events = events;
    this.webhooks = webhooks;
  }

  get settlement() {
    return this.#ledger.settlement;
  }

  get environment() {
    return this.#ledger.environment;
  }

  get limits() {
    return this.#ledger.limits;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.#ledger.writer.close();
    await this.#ledger.sealingThread.close();
    await this.#ledger.store.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** The ledger, unless the engine is closed or its store has failed. */
  get #usable(): Ledger {
    this.#ledger.writer.ensureUsable();
    return this.#ledger;
  }

  async createApplication(application: { readonly applicationId?: Uuid; readonly name: string }): Promise<Application> {
    return createApplication(this.#usable, application);
  }

  async application(applicationId: Uuid): Promise<Application> {
    return applicationView(this.#usable.application(applicationId));
  }

  async *applications(): AsyncGenerator<Application> {
    for (const record of this.#usable.applications.values()) yield applicationView(record);
  }

  async suspendApplication(applicationId: Uuid, suspended: boolean): Promise<Application> {
    return suspendApplication(this.#usable, applicationId, suspended);
  }

  async issueKey(applicationId: Uuid, key: Parameters<Engine["issueKey"]>[1] = {}) {
    return issueKey(this.#usable, applicationId, key);
  }

  async *keys(applicationId: Uuid): AsyncGenerator<ApiKey> {
    const { applicationIndex } = this.#usable.application(applicationId);
    for (const key of this.#ledger.keys.values()) {
      if (key.applicationIndex === applicationIndex) yield keyView(this.#ledger, key);
    }
  }

  async revokeKey(keyId: string): Promise<ApiKey> {
    return revokeKey(this.#usable, keyId);
  }

  async addAsset(asset: Parameters<Engine["addAsset"]>[0]): Promise<Asset> {
    return addAsset(this.#usable, asset);
  }

  async *allAssets(): AsyncGenerator<Asset> {
    for (const asset of this.#usable.assets.values()) yield assetView(this.#ledger, asset, null);
  }

  async whitelistAsset(assetId: Uuid, whitelisted: boolean): Promise<Asset> {
    return whitelistAsset(this.#usable, assetId, whitelisted);
  }

  async markAssetRegistered(assetId: Uuid, facts: { readonly minterLocked?: boolean | null } = {}): Promise<Asset> {
    return markAssetRegistered(this.#usable, assetId, facts.minterLocked ?? null);
  }

  async setMintingFault(assetId: Uuid, fault: string | null): Promise<Asset> {
    return setMintingFault(this.#usable, assetId, fault);
  }

  async authenticate(token: string): Promise<Principal> {
    return authenticate(this.#usable, token);
  }

  async createUser(applicationId: Uuid, user: Parameters<Engine["createUser"]>[1]): Promise<User> {
    return createUser(this.#usable, applicationId, user);
  }

  async user(applicationId: Uuid, userId: Uuid): Promise<User> {
    return readUser(this.#usable, applicationId, userId);
  }

  users(applicationId: Uuid, page: PageOptions = {}): List<User> {
    return listOf(page, async (at) => listUsers(this.#usable, this.#cursors, applicationId, at));
  }

  async enableAsset(applicationId: Uuid, assetId: Uuid): Promise<Asset> {
    return setEnabled(this.#usable, applicationId, assetId, true);
  }

  async disableAsset(applicationId: Uuid, assetId: Uuid): Promise<Asset> {
    return setEnabled(this.#usable, applicationId, assetId, false);
  }

  async asset(applicationId: Uuid, assetId: Uuid): Promise<Asset> {
    const { applicationIndex } = this.#usable.application(applicationId);
    return assetView(this.#ledger, durableAsset(this.#ledger, assetId), applicationIndex);
  }

  assets(applicationId: Uuid, filter: AssetFilter = {}): List<Asset> {
    return listOf(filter, async (at) => listAssets(this.#usable, this.#cursors, applicationId, at));
  }

  async mint(principal: Principal, request: unknown, options: MintOptions = {}): Promise<MintResult> {
    const ledger = this.#usable;
    requireScope(principal, "mint");
    const read = readMint(ledger, request);
    const key = options.idempotencyKey;
    if (key === undefined) return await this.#mint(principal, read, null, options.signal);
    const digest = read.columns?.digest() ?? null;
    const idempotency = { key: idempotencyKeyHash(requireIdempotencyKey(key)), digest };
    const inFlight = `${principal.applicationId} ${key}`;
    if (this.#minting.has(inFlight)) throw new MintmarkError("idempotency_in_progress");
    this.#minting.add(inFlight);
    try {
      return await this.#mint(principal, read, idempotency, options.signal);
    } finally {
      this.#minting.delete(inFlight);
    }
  }

  /** Mints, or finds out plainly why not; what was wrong may be so no longer when it is looked at, then once more. */
  async #mint(
    principal: Principal,
    { columns, plain, issues }: ReadMint,
    idempotency: Idempotency | null,
    signal: AbortSignal | undefined,
  ): Promise<MintResult> {
    const ledger = this.#ledger;
    const minted =
      columns === null
        ? null
        : await ledger.writer.run(new MintTransition(ledger, principal, columns, idempotency), signal);
    if (minted !== null) return resultOf(ledger, minted);
    const request = plain ?? columns?.toRequest((index) => ledger.assetAt(index).assetId);
    if (request === undefined) throw new Error("a request that was read in no way");
    const check = new MintCheck(ledger, principal, request, issues, idempotency);
    const earlier = await ledger.writer.run(check, signal);
    if (earlier !== null) return resultOf(ledger, earlier);
    const again = columns ?? columnsOf(request, ledger.assetIndices);
    const digest = again?.digest() ?? null;
    const sameKey = idempotency === null ? null : { ...idempotency, digest };
    return this.#mint(principal, { columns: again, plain: request, issues: new Issues() }, sameKey, signal);
  }

  async checkMint(principal: Principal, request: unknown): Promise<{ readonly users: number; readonly mints: number }> {
    const ledger = this.#usable;
    requireScope(principal, "mint");
    const issues = new Issues();
    const read = readMintRequest(request, ledger.limits, issues);
    await ledger.writer.run(new MintCheck(ledger, principal, read, issues, null));
    return { users: read.users.length, mints: read.mints.length };
  }

  async forgetIdempotencyKeys(before: number, { signal }: { readonly signal?: AbortSignal } = {}): Promise<number> {
    return forgetIdempotencyKeys(this.#usable, before, signal);
  }

  async mintResult(applicationId: Uuid, mintId: Uuid): Promise<MintResult> {
    return presentResult(this.#usable, applicationId, mintId);
  }

  async transaction(applicationId: Uuid, transactionId: string) {
    return readTransaction(this.#usable, applicationId, transactionId);
  }

  transactions(applicationId: Uuid, filter: TransactionFilter = {}): List<Transaction> {
    return listOf(filter, async (at) => listTransactions(this.#usable, this.#cursors, applicationId, at));
  }

  async vault(applicationId: Uuid, vaultId: VaultId): Promise<Vault> {
    const ledger = this.#usable;
    const { applicationIndex } = ledger.application(applicationId);
    const place = placeOf(vaultId);
    batchAt(ledger, place);
    const vault = await readVault(ledger, place);
    if (vault.applicationIndex !== applicationIndex) throw new MintmarkError("vault_not_found");
    const [view] = await vaultViews(ledger, applicationIndex, [{ place, vault }]);
    if (view === undefined) throw new MintmarkError("vault_not_found");
    return view;
  }

  vaults(applicationId: Uuid, filter: VaultFilter = {}): List<Vault> {
    return listOf(filter, async (at) => listVaults(this.#usable, this.#cursors, applicationId, at));
  }

  balances(applicationId: Uuid, userId: Uuid) {
    return readBalances(this.#usable, applicationId, userId);
  }

  async requestWithdrawal(principal: Principal, request: Parameters<Engine["requestWithdrawal"]>[1]) {
    requireScope(principal, "withdraw");
    return requestWithdrawal(this.#usable, principal, request);
  }

  async withdrawal(applicationId: Uuid, withdrawalId: Uuid) {
    return readWithdrawal(this.#usable, applicationId, withdrawalId);
  }

  withdrawals(applicationId: Uuid, filter: WithdrawalFilter = {}): List<Withdrawal> {
    return listOf(filter, async (at) => listWithdrawals(this.#usable, this.#cursors, applicationId, at));
  }

  async seal(mode: Mode): Promise<Batch | null> {
    const ledger = this.#usable;
    requireMode(mode);
    // In an object, so that the writer goes on while the batch is being sealed.
    const { sealed } = await ledger.writer.alone(async (group) => ({
      sealed: ledger.open(mode).vaultCount === 0 ? null : sealClosed(ledger, group, closeOpenBatch(ledger, mode)),
    }));
    const record = await sealed;
    return record === null ? null : batchView(record);
  }

  async voidSlots(mode: Mode, batchNumber: number, slots: readonly VoidSlots[]): Promise<Batch> {
    return voidSlots(this.#usable, requireMode(mode), batchNumber, slots);
  }

  openBatch(mode: Mode): Batch {
    return openBatch(this.#usable, requireMode(mode));
  }

  async batch(mode: Mode, batchNumber: number): Promise<Batch> {
    const open = this.openBatch(mode);
    return open.batchNumber === batchNumber ? open : batchView(findBatch(this.#usable, mode, batchNumber));
  }

  batches(filter: BatchFilter = {}): List<Batch> {
    return listOf(filter, async (at) => listBatches(this.#usable, this.#cursors, at));
  }

  async sealedBatch(mode: Mode, batchNumber: number) {
    return sealedBatch(this.#usable, requireMode(mode), batchNumber);
  }

  async vaultContent(vaultId: VaultId) {
    return vaultContent(this.#usable, vaultId);
  }

  async vaultProof(vaultId: VaultId) {
    return vaultProof(this.#usable, vaultId);
  }

  async vaultMultiproof(vaultIds: readonly VaultId[]) {
    return vaultMultiproof(this.#usable, vaultIds);
  }

  async vaultStateProof(vaultId: VaultId, at?: Parameters<Engine["vaultStateProof"]>[1]) {
    return vaultStateProof(this.#usable, vaultId, at);
  }

  async batchProof(mode: Mode, batchNumber: number) {
    return batchProof(this.#usable, requireMode(mode), batchNumber);
  }

  async consistencyProof(...[older, newer]: Parameters<Engine["consistencyProof"]>) {
    return consistencyProof(this.#usable, older, newer);
  }

  state() {
    const ledger = this.#usable;
    return stateOver(ledger, sealedCount(ledger, "validium"), sealedCount(ledger, "zk-rollup"));
  }

  async committedState() {
    const ledger = this.#usable;
    return stateOver(ledger, committedCount(ledger, "validium"), committedCount(ledger, "zk-rollup"));
  }

  settlementCursor(): bigint | null {
    return this.#usable.durableHead.l1Observed;
  }

  settlementFinalized(): bigint | null {
    return this.#usable.durableHead.l1Finalized;
  }

  async recordSubmitted(mode: Mode, batchNumber: number, txHash: Parameters<Engine["recordSubmitted"]>[2]) {
    return recordSubmitted(this.#usable, requireMode(mode), batchNumber, txHash);
  }

  async recordEvents(events: Parameters<Engine["recordEvents"]>[0], toBlock: bigint): Promise<void> {
    return recordEvents(this.#usable, events, toBlock);
  }

  async recordCommitted(event: Parameters<Engine["recordCommitted"]>[0]): Promise<Batch> {
    return recordCommitted(this.#usable, event);
  }

  async recordWithdrawn(event: Parameters<Engine["recordWithdrawn"]>[0]): Promise<void> {
    return recordWithdrawn(this.#usable, event);
  }

  async recordFinalized(blockNumber: bigint): Promise<void> {
    return recordFinalized(this.#usable, blockNumber);
  }

  async recordReorg(blockNumber: bigint): Promise<void> {
    return recordReorg(this.#usable, blockNumber);
  }

  async recordWithdrawalSubmitted(withdrawalId: Uuid, txHash: Parameters<Engine["recordWithdrawalSubmitted"]>[1]) {
    return recordWithdrawalSubmitted(this.#usable, withdrawalId, txHash);
  }

  async recordWithdrawalAttempt(withdrawalId: Uuid, failure: string) {
    return recordWithdrawalAttempt(this.#usable, withdrawalId, failure);
  }

  async recordWithdrawalFailed(withdrawalId: Uuid, failure: string, l1Time: bigint) {
    return recordWithdrawalFailed(this.#usable, withdrawalId, failure, l1Time);
  }

  pendingWithdrawals() {
    return pendingWithdrawals(this.#usable);
  }

  applicationEvents(applicationId: Uuid, options: EventOptions = {}) {
    return applicationEvents(this.#usable, applicationId, options);
  }

  on: Engine["on"] = (type, listener) => this.#events.on(type, listener);

  async verify(options: VerifyOptions = {}) {
    return verifyStore(this.#usable, options);
  }
}

/** A mint request in one of its two forms: columns when nothing in it is wrong so far, plain objects when something may be. */
interface ReadMint {
  readonly columns: MintColumns | null;
  readonly plain: MintRequest | null;
  readonly issues: Issues;
}

function readMint(ledger: Ledger, request: unknown): ReadMint {
  const columns = readMintColumns(request, ledger.limits, ledger.assetIndices);
  const issues = new Issues();
  return { columns, plain: columns === null ? readMintRequest(request, ledger.limits, issues) : null, issues };
}

function resultOf(ledger: Ledger, { sequence, minted }: MintOutcome): MintResult | Promise<MintResult> {
  return minted === null ? replayedResult(ledger, sequence) : new AcceptedResult(ledger, minted);
}

function requireScope(principal: Principal, scope: Scope): void {
  if (!principal.scopes.includes(scope))
    throw new MintmarkError("scope_missing", `The key does not carry the scope ${scope}.`);
}

function requireMode(mode: Mode): Mode {
  if (!MODES.includes(mode)) throw new MintmarkError("validation_failed", `mode must be one of ${MODES.join(", ")}`);
  return mode;
}

function requireIdempotencyKey(key: string): string {
  if (!/^[\x20-\x7e]{1,255}$/.test(key)) {
    throw new MintmarkError("validation_failed", "an idempotency key is 1 to 255 printable ASCII characters");
  }
  return key;
}
