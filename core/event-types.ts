import type { Address, Hash, Mode, Uuid, VaultId } from "./model.ts";

/** A batch that holds vaults of the application, as it stood then. */
export interface BatchEventData {
  /** `validium-12`, `zk-rollup-3`. */
  readonly batchId: string;
  readonly dataAvailabilityMode: Mode;
  /** Vaults of all applications together. */
  readonly vaultCount: number;
  readonly batchRoot: Hash;
  readonly l1TxHash: Hash | null;
  readonly l1BlockNumber: bigint | null;
}

/** A withdrawal as it stood then. */
export interface WithdrawalEventData {
  readonly withdrawalId: Uuid;
  readonly userId: Uuid;
  /** Of the vault's token, and of the transaction and block below. */
  readonly chainId: bigint;
  readonly vaultId: VaultId;
  readonly quantity: bigint;
  readonly recipient: Address;
  readonly l1TxHash: Hash | null;
  readonly l1BlockNumber: bigint | null;
  /** Why L1 refused an attempt, or why the withdrawal has failed. */
  readonly failure: string | null;
}

/** What each type of event tells. Types are only added to; docs/api.md lists them. */
export interface EventData {
  /** A request was minted: one event however many mints it holds. */
  readonly "mint.accepted": { readonly mintId: Uuid; readonly users: number; readonly mints: number };
  /** L1 refuses these vaults, so they are void and their mints have failed: consecutive vault ids of one batch. */
  readonly "mint.failed": { readonly firstVaultId: VaultId; readonly vaults: number; readonly failure: string };
  readonly "asset.enabled": { readonly assetId: Uuid };
  readonly "asset.disabled": { readonly assetId: Uuid };
  readonly "batch.sealed": BatchEventData;
  /** A transaction that commits the batch is on its way; again for each transaction that replaces another. */
  readonly "batch.submitted": BatchEventData;
  readonly "batch.settled": BatchEventData;
  readonly "batch.finalized": BatchEventData;
  /** A reorganisation of L1 took the batch back from settled to submitted. */
  readonly "batch.reverted": BatchEventData;
  readonly "withdrawal.accepted": WithdrawalEventData;
  readonly "withdrawal.submitted": WithdrawalEventData;
  /** L1 refused an attempt; the withdrawal stays pending. */
  readonly "withdrawal.attempt_refused": WithdrawalEventData;
  readonly "withdrawal.settled": WithdrawalEventData;
  readonly "withdrawal.finalized": WithdrawalEventData;
  readonly "withdrawal.failed": WithdrawalEventData;
  /** A reorganisation of L1 made the withdrawal pending again. */
  readonly "withdrawal.reverted": WithdrawalEventData;
  /** A webhook has failed for so long that nothing is delivered to it until it is enabled again. */
  readonly "webhook.disabled": { readonly webhookId: Uuid; readonly failure: string };
}

export type EventType = keyof EventData;

/** One thing that an application is told of. What it tells never changes: it is written once, with what happened. */
export type ApplicationEvent = {
  readonly [T in EventType]: {
    /** 1, 2, 3 … within the application, without a gap. */
    readonly sequence: number;
    readonly type: T;
    /** ms since 1970; never smaller than the event's before. */
    readonly createdAt: number;
    readonly data: EventData[T];
  };
}[EventType];

export interface EventOptions {
  /** The sequence of the last event that is known already; default 0, from the first. */
  readonly after?: number;
  /** Waits for what is still to come, instead of ending with the newest event. Default false. */
  readonly follow?: boolean;
  /** Ends the iteration: it rejects with the signal's reason. */
  readonly signal?: AbortSignal;
}
